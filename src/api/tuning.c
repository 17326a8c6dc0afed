/* SPDX-License-Identifier: Apache-2.0 */
/* tuning.c - the public API: tuning files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_impl.h"
#include "explore/tuning_file.h"

enum { FILE_MAX = 64 << 20 }; /* a device may have no end */

/* The whole file, in the session; NULL after a diagnostic. */
static const char *read_whole(ptxgen_session *s, const char *path, size_t *length)
{
    struct str text = { 0 };
    char part[4096];
    FILE *f = fopen(path, "rb");
    int reason = f ? 0 : errno;
    for (size_t n; f && text.length <= FILE_MAX && (n = fread(part, 1, sizeof part, f)) > 0;)
        str_addn(&text, part, n);
    if (f && ferror(f))
        reason = errno ? errno : EIO;
    else if (text.length > FILE_MAX)
        reason = EFBIG;
    if (f)
        fclose(f);
    if (reason)
        diag_error(&s->diags, D_FILE, span_none(), "%s: %s", path, strerror(reason));
    *length = text.length;
    const char *kept = reason ? NULL : arena_strndup(&s->arena, text.text ? text.text : "", text.length);
    str_finish(&text);
    return kept;
}

bool api_apply_tuning(ptxgen_session *s, const ptxgen_plan_options *o, const struct problem *p, const struct device *d,
                      struct plan_options *to)
{
    struct tuning_file file;
    size_t length;
    if (!o->tuning || !strcmp(o->tuning, "off"))
        return true;
    const char *text = read_whole(s, o->tuning, &length);
    if (!text || !tuning_read(s, arena_strdup(&s->arena, o->tuning), text, length, &file))
        return false;
    tuning_select(s, &file, p, d, o->gpu, to);
    return true;
}

char *ptxgen_problem_key(ptxgen_session *s, const ptxgen_problem *p)
{
    jmp_buf oom;
    NEED(NULL, s, s, p);
    if (!api_is_single(s, p, "a key is of one problem"))
        return NULL;
    s->arena.oom = &oom;
    return setjmp(oom) ? NULL : strdup(tuning_key(s, p->problem));
}

int ptxgen_problem_tunable(const ptxgen_problem *p) { return p && p->problem && tuning_counts(p->problem); }

static void merge(ptxgen_session *s, const struct problem *p, struct tuning_file *file, const ptxgen_tuning_entry *e)
{
    const char **names = arena_new(&s->arena, const char *, p->nsizes + 1);
    for (int i = 0; i < p->nsizes; i++)
        names[i] = p->size[i].name;
    const struct tuning_entry entry = { .problem = tuning_key(s, p),
                                        .name = p->name,
                                        .gpu = e->gpu,
                                        .arch = e->arch,
                                        .variant = e->variant,
                                        .nsizes = p->nsizes,
                                        .size_name = names,
                                        .size = e->size,
                                        .us = e->seconds * 1e6,
                                        .default_us = e->default_seconds * 1e6,
                                        .variants = e->variants };
    tuning_put(s, file, &entry);
}

static bool fit_entry(ptxgen_session *s, const struct problem *p, const ptxgen_tuning_entry *e)
{
    return api_fit_given(s, "gpu", e->gpu) && api_fit_given(s, "arch", e->arch) &&
           api_fit_given(s, "variant", e->variant) && (!p->nsizes || api_fit_given(s, "size", e->size)) &&
           api_fit_sizes(s, p, e->size, 0) && api_fit_seconds(s, "seconds", e->seconds) &&
           api_fit_seconds(s, "default_seconds", e->default_seconds) &&
           api_fit_number(s, "variants", e->variants, 0, 1000000000);
}

char *ptxgen_tuning_merge(ptxgen_session *s, const ptxgen_problem *p, const char *text,
                          const ptxgen_tuning_entry *entry)
{
    NEED(NULL, s, s, p, entry);
    struct tuning_file file = { 0 };
    struct str out = { 0 };
    jmp_buf oom;
    s->arena.oom = &oom;
    if (setjmp(oom)) {
        str_finish(&out);
        return NULL;
    }
    if (!api_is_single(s, p, "a tuning file is about one problem") || !fit_entry(s, p->problem, entry))
        return NULL;
    if (text && !tuning_read(s, "the tuning file", text, strlen(text), &file))
        return NULL;
    merge(s, p->problem, &file, entry);
    tuning_print(&file, &out);
    return str_take(&out);
}

char *ptxgen_tuning_path(void)
{
    static const struct {
        const char *variable, *below;
    } place[] = { { "PTXGEN_TUNING", "" },
                  { "XDG_DATA_HOME", "/ptxgen/tuning.yaml" },
                  { "HOME", "/.local/share/ptxgen/tuning.yaml" } };
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        const char *value = getenv(place[i].variable);
        struct str path = { 0 };
        if (!value || !*value)
            continue;
        if (i == 0 && !strcmp(value, "off"))
            return NULL;
        str_printf(&path, "%s%s", value, place[i].below);
        return str_take(&path);
    }
    return NULL;
}

char *ptxgen_tuning_row(const ptxgen_plan *plan, const char *evidence)
{
    struct str out = { 0 };
    if (!plan || !evidence)
        return NULL;
    tuning_row(plan->plan, evidence, &out);
    return str_take(&out);
}
