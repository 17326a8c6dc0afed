/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - the facts of an explanation, gathered once for all of its forms. */
#ifndef PTXGEN_EXPLAIN_H
#define PTXGEN_EXPLAIN_H

#include "cost.h"
#include "lower/lower_impl.h"

struct explained {
    struct ptxgen_session *s;
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

/* Why a strategy of the problem's kind is in the plan or not.  At known sizes one is chosen, and others of the plan
 * have cases for other launches. */
enum choice { CHOICE_CHOSEN, CHOICE_ELSEWHERE, CHOICE_FITS, CHOICE_UNFIT };
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

#endif
