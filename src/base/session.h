/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - what every stage needs: memory and a place for messages.  One per compilation thread. */
#ifndef PTXGEN_SESSION_H
#define PTXGEN_SESSION_H

#include "arena.h"
#include "diag.h"
#include "ptxgen/ptxgen.h"

struct ptxgen_session {
    struct arena arena;
    struct diags diags;
};

/* Work with memory of its own, which is freed behind it, also when memory runs out on the way, here or in the session's
 * arena: then the session's handler is called as always. */
void session_scratch(struct ptxgen_session *s, void (*work)(struct arena *scratch, void *user), void *user);

#endif
