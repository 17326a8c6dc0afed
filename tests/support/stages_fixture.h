/* SPDX-License-Identifier: Apache-2.0 */
/* stages_fixture.h - the frontend's view of a spec with stages, as text. */
#ifndef PTXGEN_STAGES_FIXTURE_H
#define PTXGEN_STAGES_FIXTURE_H

#include <criterion/criterion.h>
#include <string.h>

#include "frontend/stages/stages.h"

/* Canonical text, then the messages, each of which has a place. */
static void build_stages(const char *text, struct str *out)
{
    struct ptxgen_session s = { 0 };
    struct frontend_spec built;
    jmp_buf oom;
    arena_init(&s.arena);
    s.arena.oom = &oom;
    diags_init(&s.diags, &s.arena);
    if (setjmp(oom))
        cr_assert_fail("out of memory");
    if (frontend_build(&s, "t.yaml", text, strlen(text), "t", &built) && built.stages)
        stages_print(built.stages, out);
    diags_render_text(&s.diags, out, false);
    for (const struct diag *d = s.diags.first; d; d = d->next)
        cr_expect(d->at.begin != SPAN_NONE, "'%s' has no place", d->text);
    arena_finish(&s.arena);
}

#endif
