/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - the facts of an explanation, gathered once for all of its forms. */
#ifndef PTXGEN_EXPLAIN_H
#define PTXGEN_EXPLAIN_H

#include "cost.h"
#include "frontend/stages/stages.h"
#include "lower/lower_impl.h"

struct explained {
    struct ptxgen_session *s;
    const char *stage; /* of a program: its name; else NULL */
    const struct plan *plan;
    const ptxgen_explain_options *options;
    struct resources resources;
    bool has_model; /* a GPU of the target is known: the figures below */
    struct gpu_model model;
    struct work work;
    bool at_size; /* sizes and GPU are known */
    const union value *param;
    struct roofline least;
    struct prediction prediction;
};

/* The facts of a plan.  False after a message. */
bool explain_gather(struct ptxgen_session *s, const struct plan *plan, const ptxgen_explain_options *options,
                    struct explained *x);
/* In the form that its options ask for. */
void explain_print(const struct explained *x, struct str *out);

/* Why a strategy of the problem's kind is in the plan or not.  At known sizes one is chosen, and others of the plan
 * have cases for other launches. */
enum choice { CHOICE_CHOSEN, CHOICE_ELSEWHERE, CHOICE_FITS, CHOICE_UNFIT };
/* Operator i of the problem and what it is for: a result, or an output whose elements it combines.  NULL: there are fewer. */
const struct op *explain_operator(const struct problem *p, int i, const char **name);
enum choice explain_choice(const struct explained *x, const struct strategy *row, const char **why);
/* What is known of a kernel, and how many of its blocks a multiprocessor holds. */
const ptxgen_kernel_resources *explain_kernel(const struct explained *x, const struct prog_kernel *k,
                                              struct occupancy *o);
/* The figures of the GPU that an explanation is of.  False after a message: the user's name is no known GPU. */
bool explain_model(struct ptxgen_session *s, const struct plan *plan, const ptxgen_explain_options *o,
                   struct gpu_model *model, bool *known);
/* Where the figures of the target come from. */
const char *explain_source(const struct explained *x);

/* What is taken, how long it takes and how far that is from the limit: lines. */
void explain_verdict(const struct explained *x, struct str *out);
/* A case's condition; with evidence, or where it takes the sizes, also tunables, kernels and grid. */
void explain_case(const struct explained *x, int number, bool evidence, struct str *out);
/* The iteration space, where its order comes from, and what another one would give: a line. */
void explain_space(const struct problem *p, struct str *out);
void explain_text(const struct explained *x, struct str *out);
void explain_json(const struct explained *x, struct str *out);
void explain_html(const struct explained *x, struct str *out);

/* ---- programs of stages: what is said of all, before or after the explanations of the stages ---- */

struct explained_stages {
    const struct stages *stages;
    struct explained *of; /* each */
    const int64_t *size;  /* of the whole; NULL: not known */
    bool predicted;       /* all of them are: the sums of a step follow */
    bool bounded;         /* so are least, read and written */
    double seconds, graph_seconds, least;
    int64_t launches, read, written; /* kernels, bytes of all stages */
    bool placed;                     /* the memory between the stages is known */
    struct stages_layout layout;
};
/* From the options of the whole those of a stage. */
ptxgen_explain_options explain_stage_options(struct ptxgen_session *s, const struct prog_stage *of,
                                             ptxgen_explain_options o);
/* In the form that the options ask for; plan: of each stage.  False after a message. */
bool stages_explain(struct ptxgen_session *s, const struct stages *stages, const struct plan *const *plan,
                    const ptxgen_explain_options *o, struct str *out);
/* Is there more than one step? */
bool stages_repeat(const struct prog_stages *p);
void stages_html(const struct explained_stages *x, struct str *out);

/* ---- HTML ---- */
void html_text(struct str *out, const char *text);
/* A section's beginning; stage: NULL, or what goes before the id. */
void html_heading(struct str *out, const char *stage, const char *id, const char *title);
/* A row of a table: a bar that begins at a part of its column, and is a part of it as wide. */
void html_bar(struct str *out, const char *class, const char *what, const char *number, double begin, double wide);

#endif
