/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - see session.h. */
#include "session.h"

void session_scratch(struct ptxgen_session *s, void (*work)(struct arena *scratch, void *user), void *user)
{
    struct arena scratch;
    jmp_buf exhausted, *outer = s->arena.oom;
    arena_init(&scratch);
    if (setjmp(exhausted)) {
        arena_finish(&scratch);
        s->arena.oom = outer;
        longjmp(*outer, 1);
    }
    scratch.oom = s->arena.oom = &exhausted;
    work(&scratch, user);
    s->arena.oom = outer;
    arena_finish(&scratch);
}
