/* SPDX-License-Identifier: Apache-2.0 */
/* explain_page.h - `ptxgen explain --html`. */
#ifndef PTXGEN_CLI_EXPLAIN_PAGE_H
#define PTXGEN_CLI_EXPLAIN_PAGE_H

#include "cli.h"

/* What is explained. */
struct explaining {
    const struct options *options;
    const char *path, *arch; /* of the spec; architecture, NULL: the default */
    ptxgen_session *session;
    const ptxgen_problem *problem;
    int stages; /* of a program: how many; else 0 */
    const ptxgen_plan *plan;
    const ptxgen_explain_options *explain;
};
int explain_page(const struct explaining *x, const char *path);

#endif
