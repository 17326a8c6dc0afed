/* SPDX-License-Identifier: Apache-2.0 */
/* tuning_file.c - see tuning_file.h.  The format is described in docs/tuning.md. */
#define _GNU_SOURCE
#include "tuning_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/yaml/yaml_doc.h"
#include "lower/lower_impl.h"
#include "variants.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

enum { NUMBER_MAX = 1000000000 };

struct reader {
    struct ptxgen_session *s;
    bool ok;
};

static const char *wrong(struct reader *r, const struct ynode *at, const char *what)
{
    diag_error(&r->s->diags, D_BAD_TUNING, at ? at->at : span_none(), "%s", what);
    r->ok = false;
    return "";
}

static const char *scalar(struct reader *r, const struct ynode *mapping, const char *key)
{
    const struct ynode *v = mapping->kind == Y_MAPPING ? ynode_get(mapping, key) : NULL;
    if (v && v->kind == Y_SCALAR && strlen(v->text) == v->length)
        return v->text;
    return wrong(r, v ? v : mapping, arena_printf(&r->s->arena, "an entry has a '%s'", key));
}

/* Microseconds, or how many: from 0 to a billion. */
static double number(struct reader *r, const struct ynode *mapping, const char *key)
{
    const char *text = scalar(r, mapping, key);
    char *end;
    const double x = strtod(text, &end);
    if (*text && !*end && x >= 0 && x <= NUMBER_MAX)
        return x;
    if (r->ok)
        wrong(r, ynode_get(mapping, key),
              arena_printf(&r->s->arena, "'%s' must be a number from 0 to %d", key, NUMBER_MAX));
    return 0;
}

static bool whole(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno;
}

static void read_sizes(struct reader *r, const struct ynode *mapping, struct tuning_entry *e)
{
    const struct ynode *y = mapping->kind == Y_MAPPING ? ynode_get(mapping, "sizes") : NULL;
    if (!y || y->kind != Y_MAPPING) {
        wrong(r, y ? y : mapping, "an entry has 'sizes', NAME: NUMBER");
        return;
    }
    const char **name = arena_new(&r->s->arena, const char *, y->count);
    int64_t *size = arena_new(&r->s->arena, int64_t, y->count);
    for (int i = 0; i < y->count; i++) {
        const struct ynode *value = y->pair[i].value;
        name[i] = y->pair[i].key->text;
        if (value->kind != Y_SCALAR || !whole(value->text, &size[i]))
            wrong(r, value, "a size is a whole number");
    }
    e->nsizes = y->count;
    e->size_name = name;
    e->size = size;
}

static void read_entry(struct reader *r, const struct ynode *y, struct tuning_entry *e)
{
    e->problem = scalar(r, y, "problem");
    e->name = scalar(r, y, "name");
    e->gpu = scalar(r, y, "gpu");
    e->arch = scalar(r, y, "arch");
    e->variant = scalar(r, y, "variant");
    e->us = number(r, y, "us");
    e->default_us = number(r, y, "default_us");
    e->variants = (int)number(r, y, "variants");
    read_sizes(r, y, e);
}

static bool read_entries(struct reader *r, const struct ynode *root, struct tuning_file *out)
{
    const struct ynode *version = root->kind == Y_MAPPING ? ynode_get(root, "ptxgen_tuning") : NULL;
    const struct ynode *list = root->kind == Y_MAPPING ? ynode_get(root, "entries") : NULL;
    if (!version || version->kind != Y_SCALAR || strcmp(version->text, "1") || !list || list->kind != Y_SEQUENCE) {
        wrong(r, root, "a tuning file is a mapping of 'ptxgen_tuning: 1' and a list of 'entries'");
        return false;
    }
    out->entry = arena_new(&r->s->arena, struct tuning_entry, list->count + 1); /* room for one more */
    for (out->n = 0; out->n < list->count; out->n++)
        read_entry(r, list->item[out->n], &out->entry[out->n]);
    return r->ok;
}

bool tuning_read(struct ptxgen_session *s, const char *file, const char *text, size_t length, struct tuning_file *out)
{
    struct reader r = { .s = s, .ok = true };
    *out = (struct tuning_file){ 0 };
    const struct diag_source spec = diags_source(&s->diags, file, text, length);
    const int before = s->diags.errors;
    const struct ynode *root = yaml_parse(&s->diags, text, length);
    const bool ok = root && s->diags.errors == before && read_entries(&r, root, out);
    diags_source(&s->diags, spec.file, spec.text, spec.length);
    return ok;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* In double quotes, with what YAML asks to be escaped. */
static void quoted(struct str *out, const char *text)
{
    str_addc(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            str_addc(out, '\\');
        str_addc(out, (unsigned char)*text < 32 ? ' ' : *text);
    }
    str_addc(out, '"');
}

/* A name as it is, anything else in quotes. */
static void plain(struct str *out, const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    if (n > 0 && !text[n])
        str_add(out, text);
    else
        quoted(out, text);
}

void tuning_print(const struct tuning_file *f, struct str *out)
{
    str_add(out, "# Written by `ptxgen tune`; see docs/tuning.md.\nptxgen_tuning: 1\nentries:\n");
    for (int i = 0; i < f->n; i++) {
        const struct tuning_entry *e = &f->entry[i];
        str_add(out, "  - problem: ");
        quoted(out, e->problem);
        str_add(out, "\n    name: ");
        plain(out, e->name);
        str_add(out, "\n    gpu: ");
        quoted(out, e->gpu);
        str_add(out, "\n    arch: ");
        plain(out, e->arch);
        str_add(out, "\n    sizes: {");
        for (int d = 0; d < e->nsizes; d++) {
            str_add(out, d ? ", " : "");
            plain(out, e->size_name[d]);
            str_printf(out, ": %lld", (long long)e->size[d]);
        }
        str_add(out, "}\n    variant: ");
        quoted(out, e->variant);
        str_printf(out, "\n    us: %.4g\n    default_us: %.4g\n    variants: %d\n", e->us, e->default_us, e->variants);
    }
}

static bool same_place(const struct tuning_entry *a, const struct tuning_entry *b)
{
    if (strcmp(a->problem, b->problem) || strcmp(a->gpu, b->gpu) || strcmp(a->arch, b->arch) || a->nsizes != b->nsizes)
        return false;
    for (int i = 0; i < a->nsizes; i++)
        if (strcmp(a->size_name[i], b->size_name[i]) || a->size[i] != b->size[i])
            return false;
    return true;
}

void tuning_put(struct ptxgen_session *s, struct tuning_file *f, const struct tuning_entry *e)
{
    if (!f->entry)
        f->entry = arena_new(&s->arena, struct tuning_entry, 1);
    int i = 0;
    while (i < f->n && !same_place(&f->entry[i], e))
        i++;
    f->entry[i] = *e;
    f->n += i == f->n;
}

/* ---- what counts ------------------------------------------------------------------------------------------------- */

const char *tuning_key(struct ptxgen_session *s, const struct problem *p)
{
    struct problem bare = *p;
    struct str text = { 0 };
    uint64_t h = 0xcbf29ce484222325u;
    bare.name = "";
    bare.doc = NULL;
    bare.strategy = NULL;
    bare.ntunables = 0;
    problem_print(&bare, &text);
    for (size_t i = 0; i < text.length; i++)
        h = (h ^ (unsigned char)text.text[i]) * 0x100000001b3u;
    str_finish(&text);
    return arena_printf(&s->arena, "%016llx", (unsigned long long)h);
}

/* The entry's sizes in the problem's order; NULL when it is for other dimensions. */
static const int64_t *sizes_of(struct ptxgen_session *s, const struct problem *p, const struct tuning_entry *e)
{
    int64_t *size = arena_new(&s->arena, int64_t, p->nsizes + 1);
    if (e->nsizes != p->nsizes)
        return NULL;
    for (int i = 0; i < p->nsizes; i++) {
        int k = 0;
        while (k < e->nsizes && strcmp(e->size_name[k], p->size[i].name))
            k++;
        if (k == e->nsizes)
            return NULL;
        size[i] = e->size[k];
    }
    return size;
}

/* Known sizes leave out the entries for others. */
static bool covers(const struct problem *p, const int64_t *size, const int64_t *known)
{
    for (int i = 0; known && i < p->nsizes; i++) {
        int64_t lo, hi;
        tuning_range(size[i], &lo, &hi);
        if (known[i] >= 0 && (known[i] < lo || known[i] > hi))
            return false;
    }
    return true;
}

static bool same_device(const struct tuning_entry *e, const struct device *d, const char *gpu)
{
    struct device of;
    return device_by_name(e->arch, 0, &of) && of.sm == d->sm &&
           (!gpu || strcasestr(e->gpu, gpu) || strcasestr(gpu, e->gpu));
}

/* Is there a plan of it?  Tried in a session of its own, whose messages are only the reason of a warning here. */
static bool still_fits(struct ptxgen_session *s, const struct problem *p, const struct device *d, const struct tuned *t,
                       const char *variant)
{
    struct ptxgen_session alone = { 0 };
    jmp_buf oom;
    arena_init(&alone.arena);
    alone.arena.oom = &oom;
    diags_init(&alone.diags, &alone.arena);
    bool fits = true;
    if (!setjmp(oom)) {
        fits = plan_create(&alone, p, d, &(struct plan_options){ .nset = t->nset, .set = t->set }) != NULL;
        if (!fits)
            diag_warning(&s->diags, D_BAD_TUNING, span_none(), "tuned variant '%s' does not fit any more: %s", variant,
                         alone.diags.last ? alone.diags.last->text : "no plan");
    }
    arena_finish(&alone.arena);
    return fits;
}

bool tuning_counts(const struct problem *p) { return state_determinism(p) != DET_DEVICE; }

void tuning_select(struct ptxgen_session *s, const struct tuning_file *f, const struct problem *p,
                   const struct device *d, const char *gpu, struct plan_options *o)
{
    const char *key = tuning_key(s, p);
    struct tuned *tuned = arena_new(&s->arena, struct tuned, f->n + 1);
    o->tuned = tuned;
    for (int i = 0; i < f->n; i++) {
        const struct tuning_entry *e = &f->entry[i];
        struct tuned t = { 0 };
        if (strcmp(e->problem, key) || !same_device(e, d, gpu) || !(t.size = sizes_of(s, p, e)) ||
            !covers(p, t.size, o->size))
            continue;
        if (!tuning_counts(p)) {
            diag_warning(&s->diags, D_BAD_TUNING, span_none(),
                         "tuned variant '%s' is left out: determinism: device wants one combination tree whatever was "
                         "measured",
                         e->variant);
            break;
        }
        if (!strcmp(e->variant, "default") || !variant_parse(s, e->variant, &t.set, &t.nset) ||
            !still_fits(s, p, d, &t, e->variant))
            continue;
        tuned[o->ntuned++] = t;
    }
}
