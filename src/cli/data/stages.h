/* SPDX-License-Identifier: Apache-2.0 */
/* stages.h - specs with stages: what a run of them checks. */
#ifndef PTXGEN_CLI_STAGES_H
#define PTXGEN_CLI_STAGES_H

#include "cli.h"
#include "ptxgen/stages.h"

/* Has the spec stages, which the visits of a run that follows shall check?  gpu: where, or NULL. */
bool stages_checked(struct job *j, ptxgen_gpu *gpu);
ptxgen_stage_visitor stages_visit; /* user: the job */
/* What was found; all stages and steps count for the first output. */
int stages_verdict(const struct job *j, struct verdict *verdict);

#endif
