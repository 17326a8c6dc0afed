/* SPDX-License-Identifier: Apache-2.0 */
/* diag.c - collecting messages; diag_render.c writes them. */
#include "diag.h"

#include <string.h>

void diags_init(struct diags *d, struct arena *a)
{
    memset(d, 0, sizeof *d);
    d->arena = a;
    d->file = "<string>";
    d->limit = 100;
}

void diags_clear(struct diags *d)
{
    d->first = d->last = NULL;
    d->errors = d->warnings = 0;
}

struct diag_source diags_source(struct diags *d, const char *file, const char *text, size_t length)
{
    const struct diag_source before = { d->file, d->source, d->length };
    d->file = file;
    d->source = text;
    d->length = text == NULL ? 0 : length;
    return before;
}

static struct diag *report(struct diags *d, enum severity severity, enum diag_code code, struct span at,
                           const char *format, va_list ap)
{
    struct diag *m = arena_new(d->arena, struct diag, 1);
    m->severity = severity;
    m->code = code;
    m->at = at;
    m->source = (struct diag_source){ d->file, d->source, d->length };
    m->text = arena_vprintf(d->arena, format, ap);
    int *count = severity == SEV_ERROR ? &d->errors : &d->warnings;
    if (++*count > d->limit)
        return m; /* the caller may still write into it; nobody reads it */
    if (d->last != NULL)
        d->last->next = m;
    else
        d->first = m;
    d->last = m;
    return m;
}

struct diag *diag_error(struct diags *d, enum diag_code code, struct span at, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    struct diag *m = report(d, SEV_ERROR, code, at, format, ap);
    va_end(ap);
    return m;
}

struct diag *diag_warning(struct diags *d, enum diag_code code, struct span at, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    struct diag *m = report(d, SEV_WARNING, code, at, format, ap);
    va_end(ap);
    return m;
}

void diag_hint(struct diags *d, struct diag *m, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    m->hint = arena_vprintf(d->arena, format, ap);
    va_end(ap);
}

void diag_note(struct diags *d, struct diag *m, struct span at, const char *format, ...)
{
    struct diag_note *note = arena_new(d->arena, struct diag_note, 1);
    va_list ap;
    va_start(ap, format);
    note->text = arena_vprintf(d->arena, format, ap);
    va_end(ap);
    note->at = at;
    struct diag_note **end = &m->notes;
    while (*end != NULL)
        end = &(*end)->next;
    *end = note;
}

void diag_suggest(struct diags *d, struct diag *m, const char *name, const char *const *names, int count)
{
    const char *near = str_nearest(name, names, count);
    if (near != NULL)
        diag_hint(d, m, "did you mean '%s'?", near);
}

struct row {
    int number;
    const char *title, *explanation;
};

bool diag_explain(int number, const char **title, const char **explanation)
{
    static const struct row rows[] = {
#define DIAG(id, number, title, explanation) { number, title, explanation },
#include "diag.def"
#undef DIAG
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number == number) {
            *title = rows[i].title;
            *explanation = rows[i].explanation;
            return true;
        }
    return false;
}
