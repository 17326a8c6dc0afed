/* SPDX-License-Identifier: Apache-2.0 */
/* api_impl.h - what the files of the public API share: the handles, and the way out for exhausted memory. */
#ifndef PTXGEN_API_IMPL_H
#define PTXGEN_API_IMPL_H

#include "frontend/problem/problem.h"
#include "base/session.h"
#include "ptxgen/ptxgen.h"

/* Problems and plans are handles onto the structures of the stages; both live in the session's arena. */
struct stages;
struct ptxgen_problem {
    const struct problem *problem; /* NULL: there are stages */
    const struct stages *stages;   /* NULL: there are none */
    ptxgen_problem **stage;
    ptxgen_problem **fused;      /* as stages->fusion; NULL: the stage runs */
    const struct program *shape; /* names, arrays and params; no cases */
    ptxgen_array_info *input, *output;
};
struct ptxgen_plan {
    const struct plan *plan; /* NULL: of stages */
    const struct stages *stages;
    ptxgen_plan **stage;
};
struct ptxgen_program {
    struct program *program;       /* NULL: of stages */
    struct program_stages *stages; /* or NULL */
};
struct ptxgen_host {
    struct ptxgen_session *session; /* whose memory has the plan; NULL: of stages, which hold their own */
    struct host_code *code;
    struct simt_control *control;
    int case_index;           /* of the last run */
    int (*watch)(void *user); /* a ptxgen_host_watcher, or NULL */
    void *watch_user;
    struct host_stages *stages; /* in place of all these, or NULL */
};

/* Run the statement with a way out for exhausted memory; gives the status to return. */
#define WITH_MEMORY(s, statement) WITH_MEMORY_OR(s, PTXGEN_NO_MEMORY, statement)
#define WITH_MEMORY_OR(s, exhausted, statement)                                                                        \
    do {                                                                                                               \
        jmp_buf oom_;                                                                                                  \
        jmp_buf *outer_ = (s)->arena.oom;                                                                              \
        if (setjmp(oom_)) {                                                                                            \
            (s)->arena.oom = outer_;                                                                                   \
            return exhausted;                                                                                          \
        }                                                                                                              \
        (s)->arena.oom = &oom_;                                                                                        \
        statement;                                                                                                     \
        (s)->arena.oom = outer_;                                                                                       \
    } while (0)

/* A problem as callers have it. */
ptxgen_problem *api_problem_handle(ptxgen_session *s, const struct problem *p);
/* Memory of the session, zeroed; NULL: it is exhausted. */
void *api_alloc(ptxgen_session *s, size_t bytes);
/* Is it one problem, without stages?  False after a message that says what `what` needs one for. */
bool api_is_single(ptxgen_session *s, const ptxgen_problem *p, const char *what);

/* From public options. */
struct llvmgen_options;
bool api_compile_options(ptxgen_session *s, const ptxgen_compile_options *options, struct llvmgen_options *to);
/* Sizes, arrays and params of a call, with defaults where params are NULL; false after a diagnostic.  p is, or has the
 * shape of, what is to run. */
struct fit_arguments {
    struct run_args args;
    union value param[PROBLEM_ARGS_MAX];
    const void *none[PROBLEM_ARGS_MAX];
};
bool api_fit_arguments(ptxgen_session *s, const struct program *p, const ptxgen_arguments *args,
                       struct fit_arguments *to);
/* Are counts, sizes and times of a call such ones?  False after a diagnostic that names the field. */
bool api_fit_number(ptxgen_session *s, const char *what, int64_t value, int64_t least, int64_t most);
bool api_fit_given(ptxgen_session *s, const char *what, const void *given);
bool api_fit_seconds(ptxgen_session *s, const char *what, double seconds);
bool api_fit_count(ptxgen_session *s, const char *what, int64_t count, int64_t most, const void *list);
bool api_fit_sizes(ptxgen_session *s, const struct problem *p, const int64_t *size, int64_t least);
bool api_fit_explain(ptxgen_session *s, const struct problem *p, const ptxgen_explain_options *o);
bool api_fit_plan_options(ptxgen_session *s, const struct problem *p, const ptxgen_plan_options *o);
/* The target of a plan; false after a diagnostic.  And what planning is told, without variant and tuning. */
struct device;
bool api_find_device(ptxgen_session *s, const ptxgen_plan_options *o, struct device *device);
struct plan_options;
struct plan_options *api_plan_options(ptxgen_session *s, const ptxgen_plan_options *o);
/* The entries of the tuning file that the options name; false after a diagnostic. */
bool api_apply_tuning(ptxgen_session *s, const ptxgen_plan_options *o, const struct problem *p, const struct device *d,
                      struct plan_options *to);
/* PTXGEN_OK, or what is wrong with the modes of the host executor is told; NULL: the usual ones. */
struct simt_options;
ptxgen_status api_read_modes(ptxgen_session *s, const char *modes, struct simt_options *o);
/* Why code generation failed, from the last message. */
ptxgen_status api_codegen_failure(const ptxgen_session *s);

#endif
