/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file stages.h
 * Specs with the key `stages`: programs of several problems that hand arrays to each other, perhaps in a loop.
 *
 *     #include <ptxgen/stages.h>
 *     #include <stdio.h>
 *
 *     static int seen(int stage, int64_t step, const ptxgen_arguments *args, void *problem)
 *     {
 *         printf("step %d, %s: %g\n", (int)step, ptxgen_stage_name(problem, stage), *(const float *)args->output[0]);
 *         return 0; // go on
 *     }
 *
 *     int main(void)
 *     {
 *         static const char spec[] = "inputs: {x: 'f32[n]'}\n"
 *                                    "stages:\n"
 *                                    "  total: {kind: reduce, operator: add, outputs: {sum: f32}}\n"
 *                                    "  share: {kind: stencil, outputs: {y: {type: 'f32[n]', value: x / sum}}}\n"
 *                                    "outputs: [y]\n";
 *         const float x[3] = { 1, 2, 5 };
 *         float y[3] = { 0 };
 *         const int64_t n = 3;
 *         const ptxgen_arguments args = { &n, (const void *[]){ x }, (void *[]){ y }, NULL };
 *         ptxgen_session *s = NULL;
 *         ptxgen_problem *problem = NULL;
 *         ptxgen_plan *plan = NULL;
 *         ptxgen_host *host = NULL;
 *         if (ptxgen_session_create(&s) == PTXGEN_OK &&
 *             ptxgen_problem_from_string(s, spec, sizeof spec - 1, "shares", &problem) == PTXGEN_OK &&
 *             ptxgen_plan_create(s, problem, NULL, &plan) == PTXGEN_OK &&
 *             ptxgen_host_create(s, plan, NULL, &host) == PTXGEN_OK &&
 *             ptxgen_host_run_stages(s, host, &args, NULL, seen, problem) == PTXGEN_OK) {
 *             printf("%g %g %g\n", y[0], y[1], y[2]);
 *         } else {
 *             char *text = ptxgen_diagnostics_text(s, 0);
 *             puts(text ? text : "out of memory");
 *             ptxgen_free(text);
 *         }
 *         ptxgen_host_destroy(host);
 *         ptxgen_session_destroy(s);
 *         return 0;
 *     }
 *
 * All calls of ptxgen.h and launch.h take them where nothing else is said: a problem, plan, host or loaded program of
 * such a spec is used like any other, and one launch runs all stages and steps.  What is here looks inside.
 * docs/stages.md is the guide.
 */
#ifndef PTXGEN_STAGES_PUBLIC_H
#define PTXGEN_STAGES_PUBLIC_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Number of stages; 0: the spec has none, and is one problem.  A condition that ends the loop is the last stage. */
PTXGEN_API int ptxgen_stage_count(const ptxgen_problem *p);
/** Name and problem of a stage; NULL past the end.  The problem belongs to the session, as p does. */
PTXGEN_API const char *ptxgen_stage_name(const ptxgen_problem *p, int stage);
PTXGEN_API const ptxgen_problem *ptxgen_stage_problem(const ptxgen_problem *p, int stage);
/** The stages that are part of others, from 0 on in the order of the spec: the name of each, the stage that has become
 * both, and the problem that the stage would be by itself.  NULL past the end. */
PTXGEN_API const char *ptxgen_fused_name(const ptxgen_problem *p, int stage);
PTXGEN_API const char *ptxgen_fused_into(const ptxgen_problem *p, int stage);
PTXGEN_API const ptxgen_problem *ptxgen_fused_problem(const ptxgen_problem *p, int stage);
/** The plan of a stage in that of the whole, which it belongs to; NULL past the end, and where there are no stages. */
PTXGEN_API const ptxgen_plan *ptxgen_stage_plan(const ptxgen_plan *plan, int stage);

/** Called after stage `stage` of step `step` has run, with what it read and wrote, in the order of its own problem:
 * host memory on the host, device memory on a gpu.  Another value than 0 ends the run, without an error. */
typedef int ptxgen_stage_visitor(int stage, int64_t step, const ptxgen_arguments *args, void *user);
/** ptxgen_host_run(), with a visit after each stage. */
PTXGEN_API ptxgen_status ptxgen_host_run_stages(ptxgen_session *s, ptxgen_host *host, const ptxgen_arguments *args,
                                                const char *PTXGEN_OPTIONAL modes, ptxgen_stage_visitor *visit,
                                                void *PTXGEN_OPTIONAL user);
/** ptxgen_launch(), with a visit after each stage; waits for each stage. */
PTXGEN_API ptxgen_status ptxgen_launch_stages(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_loaded *loaded,
                                              const ptxgen_arguments *args, ptxgen_stream PTXGEN_OPTIONAL stream,
                                              ptxgen_stage_visitor *visit, void *PTXGEN_OPTIONAL user);

/** Called during runs, about fifty times a second, by the thread that runs and on its own stack.  Another value than 0 ends
 * the run, which gives PTXGEN_STOPPED.  It must not use the host program or the session of the run. */
typedef int ptxgen_host_watcher(void *user);
/** From now on runs call `watch`; NULL: none.  The next run after one that was ended is as any other.  With the mode
 * `guard`, which runs in another process, nothing is called. */
PTXGEN_API void ptxgen_host_watch(ptxgen_host *host, ptxgen_host_watcher *PTXGEN_OPTIONAL watch,
                                  void *PTXGEN_OPTIONAL user);

#ifdef __cplusplus
}
#endif
#endif
