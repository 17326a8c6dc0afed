/* SPDX-License-Identifier: Apache-2.0 */
/* stages.h - specs with stages: what a run of them checks. */
#ifndef PTXGEN_CLI_STAGES_H
#define PTXGEN_CLI_STAGES_H

#include "cli.h"
#include "ptxgen/stages.h"

/* Has the spec stages, which the visits of a run that follows shall check?  gpu: where, or NULL. */
bool stages_checked(struct job *j, ptxgen_gpu *gpu);
ptxgen_stage_visitor stages_visit; /* user: the job */
void stages_checks_free(struct stage_checks *c);
/* What was found in all steps: per output of the program, and then in all stages. */
int stages_verdict(const struct job *j, struct verdict *verdict);

#endif
