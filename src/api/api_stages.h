/* SPDX-License-Identifier: Apache-2.0 */
/* api_stages.h - what the public API does where a spec has stages. */
#ifndef PTXGEN_API_STAGES_H
#define PTXGEN_API_STAGES_H

#include "api_impl.h"
#include "frontend/stages/stages.h"
#include "ptxgen/stages.h"
#include "simt/simt.h"

struct host_stages {
    const struct stages *stages;
    ptxgen_session *holds; /* its arena, where `stages` lies */
    ptxgen_host *stage[];
};

struct program_stages {
    const struct stages *stages;
    ptxgen_session *holds;  /* its arena, where `stages` and `case_name` lie */
    const char **case_name; /* STAGE.CASE, of all stages */
    ptxgen_program *stage[];
};

/* problem: for the cache that `place` names; NULL: no cache. */
ptxgen_status api_compile_stages(ptxgen_session *s, const ptxgen_problem *problem, const ptxgen_plan *plan,
                                 const ptxgen_compile_options *options, const char *place, ptxgen_program **out);
void api_program_stages_destroy(struct program_stages *of);
/* A text of all stages. */
char *api_stages_text(const ptxgen_program *p,
                      void (*print)(const struct prog_stages *p, const struct program *const *stage, struct str *out));
/* From the options of the whole those of a stage: its sizes, and its variant where `STAGE:ID` names it. */
ptxgen_status api_stage_options(ptxgen_session *s, const ptxgen_problem *p, int stage, ptxgen_plan_options *o);
ptxgen_status api_stage_variants(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_variant_options *options,
                                 int (*visit)(const ptxgen_variant *v, void *user), void *user);
ptxgen_status api_plan_stages(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_plan_options *o,
                              ptxgen_plan **out);
/* From what api_join() made of the texts of plans. */
ptxgen_status api_read_stages(ptxgen_session *s, const ptxgen_problem *p, const char *text, int64_t length,
                              const char *name, ptxgen_plan **out);
/* The texts of all stages, each under its name; text gives malloc memory, or NULL for a failure. */
char *api_join(const ptxgen_plan *plan, char *(*text)(const ptxgen_plan *stage, void *user), void *user);
char *api_explain_stages(ptxgen_session *s, const ptxgen_plan *plan, const ptxgen_explain_options *o);
ptxgen_status api_host_stages(ptxgen_session *s, const ptxgen_plan *plan, const ptxgen_compile_options *o,
                              ptxgen_host **out);
void api_host_stages_destroy(struct host_stages *of);
ptxgen_status api_host_run_stages(ptxgen_session *s, ptxgen_host *host, const ptxgen_arguments *args, const char *modes,
                                  ptxgen_stage_visitor *visit, void *user);
ptxgen_status api_evaluate_stages(ptxgen_session *s, const ptxgen_problem *p, const struct run_args *args);

#endif
