/* SPDX-License-Identifier: Apache-2.0 */
/* workspace.h - the layout of the control region, for the manifest and the generated header. */
#ifndef PTXGEN_PROGRAM_WORKSPACE_H
#define PTXGEN_PROGRAM_WORKSPACE_H

#include "program.h"

enum { WORKSPACE_ALIGNMENT = 256 };

/* Where a control buffer lies: at a fixed offset, or in a slot. */
struct control_place {
    int slot;       /* -1: at `offset` */
    int64_t offset; /* bytes */
};
struct control_place program_control_place(const struct program *p, int c, int buffer);
/* Bytes of all fixed buffers, and the number of slots. */
void program_control_layout(const struct program *p, int64_t *fixed, int *slots);

#endif
