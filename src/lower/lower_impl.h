/* SPDX-License-Identifier: Apache-2.0 */
/* lower_impl.h - what planning functions share inside lower/. */
#ifndef PTXGEN_LOWER_IMPL_H
#define PTXGEN_LOWER_IMPL_H

#include "access.h"

enum { PLAN_CHECKS_MAX = 16 + 2 * PROBLEM_ARGS_MAX /* promises of sizes and arrays */ };

/* Elements that a thread holds in registers at once, at most. */
enum { ITEMS_MAX = 64 };

/* An empty plan with room for the above. */
struct plan *plan_new(struct ptxgen_session *s, const struct problem *p);
/* What formulas of a case (NULL: of guards and checks) refer to. */
struct formula_names plan_names(struct arena *a, const struct plan *plan, const struct prog_case *c);

/* A new case at the end of the plan, tunables from tuning.def and then the user's settings. */
struct plan_case *plan_case_add(struct planner *pl, const struct strategy *row, const char *name, struct formula guard);
void plan_case_drop(struct planner *pl); /* the last one */
/* Tunables of another variant of the strategy in tuning.def, where it has them and the user sets none; "": as it is.
 * plan_case_variant(): made lighter. */
void plan_case_tuned(struct planner *pl, struct plan_case *c, const char *variant);
struct tuning;
void plan_case_row(struct plan_case *c, const struct tuning *t); /* of that row; NULL: as it is */
void plan_case_variant(struct planner *pl, struct plan_case *c, const char *variant);
/* TN_MIN_BLOCKS as where no row of tuning.def says anything of it. */
void plan_min_blocks(struct planner *pl, struct plan_case *c);
/* Every element of a tile has its own copy of the expressions in the code, which takes time to generate and does not
 * fit into caches of instructions: large ones get by with fewer. */
void plan_lighten(const struct problem *p, struct plan_case *c);
/* Evidence of tuned values goes from tunables that have others now. */
void plan_evidence(struct arena *a, struct plan_case *c);
/* The strategy that the user asks for (--set over options over the spec), or NULL. */
const char *plan_pinned_name(const struct planner *pl, struct span *at);
/* A reason why a strategy, or a case, cannot be.  A list of them ends with { 0 }. */
struct misfit {
    bool holds;
    const char *why;
};
/* A strategy fits whatever `takes` (bool (const struct problem *p, const char **why)) takes, on every device. */
#define FITS_WHAT(id, takes)                                                                                           \
    bool id##_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)                 \
    {                                                                                                                  \
        (void)d, (void)a;                                                                                              \
        return takes(p, why);                                                                                          \
    }
static inline bool plan_takes_all(const struct problem *p, const char **why) { return (void)p, (void)why, true; }
/* Of the cases from number `from` on, none but the first: arrays that begin anywhere are left to others. */
void plan_keep_first(struct planner *pl, int from);
/* Does no reason hold?  Otherwise *why is the first that does. */
bool plan_takes(const char **why, const struct misfit *m);
/* Does the user ask for one?  Then its cases must take every launch that they can. */
bool plan_pinned(const struct planner *pl);
/* Set a tunable that the strategy has, unless the user does; from: NULL leaves where it comes from. */
void plan_set(struct plan_case *c, enum tunable_id t, int value, const char *from);
/* May it become smaller: is it above 1, and not the user's? */
static inline bool plan_shrinks(const struct plan_case *c, enum tunable_id t)
{
    return c->tunable[t] > 1 && !c->overridden[t];
}
/* Multiprocessors that grids, and conditions that results depend on, are made for. */
struct formula plan_sms(const struct problem *p);
/* Blocks of threads that take whole columns.  Columns of a few places are not worth a block of their own: the device begins
 * 800 blocks in a microsecond (H200, f32[2, 2^25]: 318 us, in turns 197), so no more blocks than some take turns. */
struct formula plan_blocks_in_turns(const struct problem *p, struct formula length, struct formula blocks);
/* Dependent launch wherever the architecture has it. */
void plan_set_pdl(const struct planner *pl, struct plan_case *c);
/* Are all settings of the user, in the spec and beside it, tunables (of the strategy, if there is a row) with values in
 * their ranges?  False after a diagnostic for each that is not. */
bool plan_settings_check(struct planner *pl, const struct strategy *row);

/* Scans: the cases whose outputs leave in another order than the space's; are there any? */
bool segscan_turned_plan(struct planner *pl);
/* Of rows in lines: the cases of scan.lookback whose tiles take turns, if it fits. They take whatever is left. */
void scan_turns_plan(struct planner *pl);
/* Of small whole arrays: the cases of scan.block, which come before those of all strategies. */
void scan_small_plan(struct planner *pl);

/* May a plan's tunable of class TUNABLE_FREE have this value?  A launch bound must fit a multiprocessor, dependent
 * launch needs sm_90; of others every value is fine. */
bool plan_free_fits(const struct plan *plan, enum tunable_id t, int value);

/* What no strategy looks at, of a case that is built: formulas that fit, tunables of class TUNABLE_FREE that the device
 * allows. False after a diagnostic. */
bool plan_case_valid(struct planner *pl, const struct plan_case *c);

/* False after a diagnostic: the case cannot be built, for the reason `why`.  tunables: those, as bits 1 << TN_x, with
 * whose values there is no plan, whatever values the others have; 0: that is not known. */
bool plan_contradiction(struct planner *pl, const struct plan_case *c, unsigned tunables, const char *why);
/* The same of the first reason that holds; true if none does. */
bool plan_consistent(struct planner *pl, const struct plan_case *c, const struct misfit *m);

/* What the user sets it to. */
int plan_setting(const struct planner *pl, enum tunable_id t, int otherwise);
/* Does the user set it? */
bool plan_overrides(const struct planner *pl, enum tunable_id t);

/* Its arguments begin with all inputs, outputs, params and sizes, in this order. */
/* Do kernels take points by their linear number, and indices from it for inputs that do not follow all axes? */
bool plan_divides_numbers(const struct problem *p);
struct prog_kernel *plan_kernel(struct planner *pl, struct plan_case *c, const char *suffix);
void plan_value_arg(struct prog_kernel *k, enum kernel_value id, enum ty type, struct formula value);
/* Where segments consist of pieces: the reciprocal of their length. */
void plan_piece_arg(struct prog_kernel *k, const struct problem *p);
int plan_buffer(struct planner *pl, struct plan_case *c, const char *name, enum prog_region region,
                struct formula bytes);
/* A buffer that is an argument of the kernels that the case has so far, from number `first` on. */
void plan_buffer_arg(struct planner *pl, struct plan_case *c, int first, enum kernel_buffer id, enum prog_region region,
                     struct formula bytes);
/* Such buffers "partial0" …, one for each field of the states in `slots`, `each` of them. */
void plan_partials_arg(struct planner *pl, struct plan_case *c, int first, struct formula slots, int each);
/* Buffer "words", for totals of `slots` blocks, each after `spare` words of 8 bytes. */
void plan_words_arg(struct planner *pl, struct plan_case *c, struct formula slots, int spare);
/* The result is valid until the next launch is added. */
struct prog_step *plan_launch(struct planner *pl, struct plan_case *c, int kernel, struct formula grid);
/* The case is complete: its arguments, and no room for more, go to the arena. */
void plan_arguments_end(struct planner *pl, struct plan_case *c);
void plan_check(struct planner *pl, struct formula condition, const char *message);
/* The checks that follow from the problem and the known sizes alone (checks.c). */
void plan_launch_checks(struct planner *pl);
/* Of the checks from number `before` on, those with a message that an earlier one has go. */
void plan_drop_repeated_checks(struct plan *plan, int before);

/* What is known about an extent, and about the number of points, before the launch: assume and given sizes. */
void plan_extent_range(const struct planner *pl, const struct prog_dim *e, int64_t *lo, int64_t *hi);
void plan_count_range(const struct planner *pl, int64_t *lo, int64_t *hi);
/* A range times that of an extent. */
void plan_range_times(const struct planner *pl, const struct prog_dim *e, int64_t *lo, int64_t *hi);

struct tuning {
    const char *strategy, *variant; /* variant: "", "wide" (states over 8 bytes), "several" (so wide, of several
                                       reductions), "pair" (several arrays), "narrow" (elements of 1 or 2), "ordered" */
    const char *size;               /* of a row that is a case of its own, its name; NULL: it is none */
    int sm;                         /* lowest architecture the row is for */
    const char *evidence;
    int64_t from, to; /* elements of a row that is a case of its own */
    int vector;       /* for arrays of vectors of so many elements; 0: of any */
    int value[TN_COUNT];
};
/* The row for the highest architecture not above sm; sm 0: the one for the lowest. */
const struct tuning *tuning_lookup(const char *strategy, const char *variant, int sm);
/* Row number n = 0, 1, … that is a case of the strategy; NULL: there are no more. */
const struct tuning *tuning_case(const char *strategy, int n, int sm);

#define STRATEGY(id, kind, name, reference, tunables, chain)                                                           \
    bool id##_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why);                \
    void id##_plan(struct planner *pl, const struct strategy *row);                                                    \
    bool id##_build(struct planner *pl, struct plan_case *c);
#include "strategies.def"
#undef STRATEGY

#endif
