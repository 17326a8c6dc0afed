/* SPDX-License-Identifier: Apache-2.0 */
/* caps.c - the rows of caps.h. */
#include "caps.h"

static const struct {
    int sm, ptx;
    const char *what;
} rows[] = {
#define X(id, sm, ptx, what) [CAP_##id] = { sm, ptx, what },
    CAPS(X)
#undef X
};

bool cap_has(enum cap c, int sm, int ptx) { return sm >= rows[c].sm && ptx >= rows[c].ptx; }
const char *cap_text(enum cap c) { return rows[c].what; }
