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

#endif
