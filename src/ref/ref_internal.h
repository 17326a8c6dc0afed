/* SPDX-License-Identifier: Apache-2.0 */
/* ref_internal.h - what the files of the oracle share.
 *
 *   ref_scalar.c   one operation on scalars: the meaning of the language, rounded to the operation's type
 *   ref_bound.c    the same operation on values that carry an error bound
 *   ref_eval.c     expressions
 *   ref_spread.c   what the errors of two states do to their combination
 *   ref_element.c  where an element's inputs and outputs lie; boundaries
 *   ref_placed.c   outputs at computed places
 *   ref_fold.c     combining states: sequential, or a balanced tree when bounds are wanted
 *   ref_segment.c  reduce and scan
 *   ref_bins.c     reduce by computed indices
 *   ref_stencil.c  stencil
 *   ref.c          entry points
 *
 * There are two modes.  Plain: every operation is rounded to its own type and states are combined one after the other,
 * so that the result is what the text of the language says.  Tracked: every number has a bound on how far the same
 * quantity may be off in a program that computes in the declared types and combines in another order; see ref_bound.c.
 */
#ifndef PTXGEN_REF_INTERNAL_H
#define PTXGEN_REF_INTERNAL_H

#include "ref.h"

/* A value and, in tracked mode, its absolute error bound (0: exact; infinity: nothing is known). */
struct num {
    union value v;
    double err;
};

/* The fields of a state, of an element, or of an output at a point. */
struct tuple {
    struct num field[STATE_FIELDS_MAX];
};

/* Tracked mode: what has come together at a place of an output whose elements meet. */
struct met {
    struct num value;
    double magnitude; /* of all terms */
    int64_t count;
};

struct ref {
    struct ptxgen_session *session;
    const struct problem *p;
    const struct run_args *args;
    struct arena *scratch; /* freed at the end of the run */
    double *const *bound;  /* NULL in plain mode; else per output, which may be NULL */
    bool tracked;
    double combine_factor; /* tracked: > 0 while an operator is evaluated; see fold_begin */
    bool quiet;            /* tracked: double arithmetic without bounds, to see what a changed operand does */
    int64_t extent[SPACE_MAX];
    const struct num **fed; /* per input: its values in a later time step, or NULL: read memory */

    /* where we are */
    int64_t at[SPACE_MAX];
    int64_t run[PROBLEM_ARGS_MAX]; /* along dimensions that sums go over */
    int64_t segment;               /* of irregular segments */
    uint64_t stamp;                /* changes with the element; lets are evaluated once per stamp */
    struct num *let;
    uint64_t *let_stamp;

    /* what names stand for */
    const struct op *op; /* being evaluated */
    const struct tuple *left, *right;
    struct num *op_let;
    struct tuple *state, *total; /* per reduction or scan */
    struct tuple *output;        /* per output: values at this point */
    const struct tuple *neighbour;
    int64_t *kept; /* per output: values that have been written in this scan, where a condition chooses them */
    bool *unsure;  /* … and whether some such condition, or a place, is not certain */
    struct {
        int64_t *by; /* per element: 1 + number of the point that has written it */
        struct met *value;
    } * met;           /* per output at computed places, made when the first element comes */
    const char *wrong; /* the first message of an element */
};

/* ref_bound.c: e is EX_UNARY, EX_BINARY, EX_CALL or EX_CAST. */
struct num ref_apply(const struct ref *r, const struct expr *e, const struct num *arg);
/* |a - b| for two outcomes of one type: 0 when both are the same special value. */
/* What of x the type cannot hold is an infinity, or not known where only part of the interval is beyond the type. */
struct num ref_limit(enum ty t, struct num x);
/* Half a unit in the last place, relative. */
double ref_unit(enum ty t);
double ref_distance(enum ty t, union value a, union value b);
/* The upper or lower end of what a value may be. */
union value ref_corner(enum ty t, struct num x, bool upper);
struct num ref_choose(const struct expr *e, struct num condition, struct num yes, struct num no);

/* ref_eval.c */
struct num ref_eval(struct ref *r, const struct expr *e);
/* Every field of an expression list of `n` fields. */
void ref_eval_tuple(struct ref *r, const struct expr *const *e, int n, struct tuple *out);
/* out = a combined with b; out may be a or b. */
void ref_combine(struct ref *r, const struct op *op, const struct tuple *a, const struct tuple *b, struct tuple *out);

/* ref_spread.c: ref_combine() with bounds that do not grow where the operator damps errors. */
void ref_combine_bounded(struct ref *r, const struct op *op, const struct tuple *a, const struct tuple *b,
                         struct tuple *out);

/* ref_element.c */
void ref_next_element(struct ref *r); /* call after `at` has changed */
int64_t ref_dim(const struct ref *r, const struct prog_dim *d);
/* Field of an input at the current point plus offset (per dimension of the input; NULL: none). */
struct num ref_input(const struct ref *r, int input, int field, const int64_t *offset);
/* The same at a place, an index for each dimension; what lies outside follows the boundary. */
struct num ref_input_at(const struct ref *r, int input, int field, const int64_t *at);
/* The number of a 1-D or 2-D input that is not read per element (offsets, flags, gather rows). */
int64_t ref_input_number(const struct ref *r, int input, int64_t index);
/* Element number of array with the given axes at the current point, or -1 when outside. */
int64_t ref_place(const struct ref *r, const struct prog_array *a, const int *axis);
void ref_output_write(struct ref *r, int output, const struct tuple *value);
/* The element of this number gets the value. */
void ref_output_store(struct ref *r, int output, int64_t element, const struct tuple *value);
void ref_output_read(const struct ref *r, int output, struct tuple *value);
/* Evaluate and write all outputs with this role. */
void ref_write_outputs(struct ref *r, enum moment moment);
const char *ref_message(struct ref *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ref_placed.c: number of the element of the output at the place of the current point; negative: dropped. */
int64_t ref_placed(struct ref *r, int output);
/* Before the first element: what outputs hold. */
void ref_initials(struct ref *r);
/* The point's value comes to this element: *value becomes what the element holds then. */
void ref_meet(struct ref *r, int output, int64_t element, struct tuple *value);

/* ref_fold.c: a growing combination init, x0, x1, … in this order. */
enum { FOLD_DEPTH = 64 };
struct ref_fold {
    struct ref *r;
    const struct reduction *reduction;
    bool running; /* the value is asked for after every element: keep `prefix` */
    bool begun;   /* there is something to show: init, or an element */
    double combine_factor;
    /* plain: node[0] is everything so far.  tracked: complete subtrees, largest first, and the combination of all up to
     * each. */
    int top;
    int level[FOLD_DEPTH];
    struct tuple node[FOLD_DEPTH], prefix[FOLD_DEPTH];
};
/* n: elements that will be pushed at most; chained: the kernels may combine one tile after the other (scan). */
void fold_begin(struct ref_fold *f, struct ref *r, int reduction, int64_t n, bool chained);
void fold_push(struct ref_fold *f, const struct tuple *x);
/* The combination so far; the identity when there is none; false when there is no identity either. */
bool fold_value(struct ref_fold *f, struct tuple *out);

/* The drivers: NULL, or a message. */
const char *ref_reduce(struct ref *r);
const char *ref_scan(struct ref *r);
const char *ref_stencil(struct ref *r);
const char *ref_bins(struct ref *r); /* a reduce with `by` */

#endif
