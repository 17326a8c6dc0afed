/* SPDX-License-Identifier: Apache-2.0 */
/* spec_fixture.h - a session that builds specs from text, for tests of the frontend. */
#ifndef PTXGEN_SPEC_FIXTURE_H
#define PTXGEN_SPEC_FIXTURE_H

#include "frontend/problem/problem.h"
#include "frontend/stages/stages.h"

#include <criterion/criterion.h>
#include <string.h>

struct spec {
    struct ptxgen_session s;
    jmp_buf oom;
    const struct problem *p; /* NULL after errors */
    struct str text;         /* canonical text, or the messages */
};

#define SPEC_BEGIN(f)                                                                                                  \
    struct spec f = { 0 };                                                                                             \
    arena_init(&f.s.arena);                                                                                            \
    f.s.arena.oom = &f.oom;                                                                                            \
    diags_init(&f.s.diags, &f.s.arena)

static inline void spec_build_named(struct spec *f, const char *text, const char *name)
{
    if (setjmp(f->oom) != 0)
        cr_assert_fail("out of memory");
    f->p = problem_build(&f->s, "t.yaml", text, strlen(text), name);
    if (f->p != NULL)
        problem_print(f->p, &f->text);
    else
        diags_render_text(&f->s.diags, &f->text, false);
}

static inline void spec_build(struct spec *f, const char *text) { spec_build_named(f, text, "t"); }

static inline const char *spec_text(const struct spec *f) { return f->text.text != NULL ? f->text.text : ""; }

static inline void spec_end(struct spec *f)
{
    str_finish(&f->text);
    arena_finish(&f->s.arena);
}

/* A spec, and a part of its canonical text or of its messages. */
struct spec_row {
    const char *text, *says;
};
static inline void spec_rows(const struct spec_row *row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        SPEC_BEGIN(f);
        spec_build(&f, row[i].text);
        cr_expect(strstr(spec_text(&f), row[i].says), "wanted '%s' for\n%s%s", row[i].says, row[i].text, spec_text(&f));
        spec_end(&f);
    }
}

/* Canonical text, then the messages, each of which has a place. */
static inline void build_stages(const char *text, struct str *out)
{
    struct ptxgen_session s = { 0 };
    struct frontend_spec built;
    jmp_buf oom;
    arena_init(&s.arena);
    s.arena.oom = &oom;
    diags_init(&s.diags, &s.arena);
    if (setjmp(oom))
        cr_assert_fail("out of memory");
    const bool good = frontend_build(&s, "t.yaml", text, strlen(text), "t", &built);
    if (good && built.stages)
        stages_print(built.stages, out);
    else if (good)
        problem_print(built.problem, out);
    diags_render_text(&s.diags, out, false);
    for (const struct diag *d = s.diags.first; d; d = d->next)
        cr_expect(d->at.begin != SPAN_NONE, "'%s' has no place", d->text);
    arena_finish(&s.arena);
}

#endif
