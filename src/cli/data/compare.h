/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h - are the outputs of a launch, on the device, the same bits as before?  Reading them back and comparing
 * on the host takes a hundred times as long as the kernels that are measured. */
#ifndef PTXGEN_CLI_COMPARE_H
#define PTXGEN_CLI_COMPARE_H

#include "copies.h"

struct comparer {
    struct subject *subject;
    ptxgen_loaded *loaded; /* NULL: nothing can be compared */
    void **kept;           /* per output, on the device */
    void *answer;
};

/* Keeps the outputs of the first copy, where they are large enough to be worth it; what goes wrong on the way leaves a
 * comparer that never says yes. */
void comparer_keep(struct comparer *c, struct subject *x);
/* Does the first copy hold the bits that are kept? */
bool comparer_same(struct comparer *c);
void comparer_finish(struct comparer *c);

#endif
