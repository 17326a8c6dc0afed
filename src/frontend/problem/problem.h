/* SPDX-License-Identifier: Apache-2.0 */
/* problem.h - what is to be computed: validated, typed, without names or defaults left to fill; immutable.
 *
 * Made by problem_build() from the YAML tree; lower/ plans it, ref/ evaluates it, laws/ tests its operators.
 * Everything lives in the session's arena.
 */
#ifndef PTXGEN_PROBLEM_H
#define PTXGEN_PROBLEM_H

#include "program/program.h"
#include "base/session.h"
#include "frontend/expr/expr.h"

/* Limits.  STATE_FIELDS_MAX: of one state, and of the states of all reductions together; also of one structure in
 * memory.  SPEC_ARGS_MAX: inputs, outputs, params and sizes together, so that kernels have room for arguments of their
 * own; PROBLEM_ARGS_MAX: with the sizes of joined dimensions.  PROBLEM_NAME_MAX: characters of a spec's name, which those
 * of its kernels begin with. */
enum {
    STATE_FIELDS_MAX = 16,
    SPACE_MAX = 3,
    SPEC_ARGS_MAX = 40,
    PROBLEM_ARGS_MAX = SPEC_ARGS_MAX + PROG_RANK_MAX,
    LETS_MAX = 256,
    PROBLEM_NAME_MAX = 64
};
/* A let of literals has a value of each type that it is used at. */
enum { LET_VALUES_MAX = LETS_MAX * TY_COUNT };

enum problem_kind { KIND_REDUCE, KIND_SCAN, KIND_STENCIL };
enum determinism { DET_ANY, DET_RUN, DET_DEVICE };

/* A dimension name (its number is the size number of the program) with what `assume` says about it. */
struct dimension {
    const char *name;
    int64_t min, max;    /* inclusive; 0 and INT64_MAX by default */
    int64_t multiple_of; /* 1 by default */
    bool elements;       /* min is what at() needs */
    struct span at;
    /* Dimensions that are one to everything after the frontend (merge.c): the product of these sizes and `times`. */
    int nparts, part[PROG_RANK_MAX];
    int64_t times;
};

/* One axis of the iteration space. */
struct axis {
    struct prog_dim extent;
    bool reduced; /* in `over` (reduce) or scanned (scan) */
};

/* Switches over the modes have no default: the compiler refuses those that lack a new one. */
enum boundary_mode {
#define BOUNDARY(id, name, what) BOUND_##id,
#include "boundary.def"
#undef BOUNDARY
};
struct boundary {
    enum boundary_mode mode;
    union value constant[STATE_FIELDS_MAX]; /* BOUND_CONSTANT, per field of the input */
};

/* Numbers as in ptxgen.h.  ROLE_TABLE: read at computed places alone, with at() or inside sums. */
enum input_role { ROLE_ELEMENT, ROLE_OFFSETS, ROLE_FLAGS, ROLE_GATHER, ROLE_TABLE = 5 };
struct input {
    struct prog_array array;          /* its dimensions as kernels see them */
    const struct prog_array *written; /* … and as the spec has them, where some became one; NULL: the same */
    int within[PROG_RANK_MAX];        /* dimension of `array` that each one of `written` is a part of */
    enum input_role role;
    int axis[PROG_RANK_MAX];                 /* axis of the space that each dimension follows; -1 for other roles */
    struct boundary boundary[PROG_RANK_MAX]; /* per dimension of the input */
    bool neighbours;                         /* read at a nonzero offset somewhere */
    bool placed;                             /* read with at() or inside sums somewhere */
    bool summed;                             /* a table that has a dimension which sums go over */
    bool spread;                             /* a table whose dimensions are apart in an axis that they are parts of */
    bool used;                               /* read at all */
    struct span at;
};

/* A let uses only lets of lower numbers. */
struct let {
    const char *name;
    const struct expr *value;
};

/* An operator: how two states become one.  Built-in operators are rows of operators.def in this same form. */
struct op {
    const char *name; /* built-in name, or "user" */
    int nfields;
    const char *field_name[STATE_FIELDS_MAX]; /* "" for a scalar state */
    enum ty field[STATE_FIELDS_MAX];
    const struct expr *identity[STATE_FIELDS_MAX]; /* of params and sizes; all NULL: identity-free */
    const struct expr *pad[STATE_FIELDS_MAX]; /* neutral for padding inside kernels (built-in rows only), else NULL:
                                                 min, max use NaN */
    int nlets;
    const struct let *let;
    const struct expr *combine[STATE_FIELDS_MAX]; /* of EX_LEFT, EX_RIGHT, EX_OP_LET, params, sizes, invariant inputs */
    bool commutative;
    bool exact; /* any order and grouping gives the same bits (integer add, min, …) */
    bool builtin;
    const struct expr *many[STATE_FIELDS_MAX]; /* see operators.def; NULL: none, or the field combines by itself */
    bool finite;
};

/* The machine's own instruction for a built-in operator on a scalar state of 4 or 8 bytes, atomic and (4-byte integers)
 * of a warp; the same for a field that is combined without the others.  Have all of several fields one? */
enum native { NATIVE_NONE, NATIVE_ADD, NATIVE_MIN, NATIVE_MAX, NATIVE_AND, NATIVE_OR, NATIVE_XOR };
enum native op_native(const struct op *op);
enum native op_field_native(const struct op *op, int field);
bool op_fieldwise(const struct op *op);
/* Is each of several fields combined without the others? */
bool op_separate(const struct op *op);
/* Bytes of the word that holds a state's fields side by side: 4 or 8; 0: there is none. */
int op_packed_bytes(const struct op *op);
/* A state as words: a native operator's state is its own word, fields of up to 8 bytes together are one word, and others are
 * several of 8 bytes.  Their number, and the bytes of each; the word that has a field, and the field's first bit there. */
int op_words(const struct op *op);
int op_word_bytes(const struct op *op);
int op_field_word(const struct op *op, int field, int *bit);
/* What gathers combine neighbours with, each operator once, whatever types its fields have there. */
struct gatherer {
    const char *name; /* of the built-in, or the user's name for it */
    const struct op *op;
    const struct expr *const *map; /* what a neighbour contributes to its fields, in the first of these gathers */
    struct span at;
};
/* One named reduction or scan. */
struct reduction {
    const char *name; /* "r" / "s" when the spec has a single one */
    const struct op *op;
    const struct expr *map[STATE_FIELDS_MAX];  /* what an element contributes, in the state's types */
    const struct expr *init[STATE_FIELDS_MAX]; /* all NULL: none */
    bool counts;                               /* the elements of an output with a condition: one or none each */
    bool takes_many;                           /* elements are lifted scalars, and the operator has `many` for such */
    struct span at;
};

/* When the values of an output are known: at each point of the space, with the total of a segment, or at each point
 * once the results of its segment are known. */
enum moment { AT_POINT, AT_TOTAL, AT_RESULT };
/* The form of an output.  Switches over the forms have no default, as those over boundary modes. */
enum output_role {
#define OUTPUT(id, moment, what) OUT_##id,
#include "output.def"
#undef OUTPUT
};
struct output {
    struct prog_array array;
    const struct prog_array *written; /* as of an input */
    enum output_role role;
    int axis[PROG_RANK_MAX]; /* axis of the space that each dimension follows; -1: segment number of irregular segments,
                                or a computed place */
    const struct expr *value[STATE_FIELDS_MAX]; /* per field */
    const struct expr *where;                   /* OUT_KEPT: bool, of an element; it reads no state … */
    const struct expr *place; /* … and i64, where the condition holds: the index along the scanned axes */
    int counter;              /* … and the number of the scan that counts these elements */
    bool from_end;            /* … whose first one comes last */
    bool spread;              /* PLACED, SETTLED as an input that is spread */
    const struct expr *index[PROG_RANK_MAX]; /* PLACED, SETTLED: i64, along each dimension; NULL for other forms */
    const struct op *combine; /* … how elements meet at one place, and what is there before; NULL: they never meet */
    const struct expr *initial[STATE_FIELDS_MAX]; /* … and what all its elements hold first; NULL: what is there */
    struct span at;
};

/* A value that is read around a point: an input at certain offsets, or what a gather reads. */
enum { USES_MAX = 1 << 20 };
struct read {
    const struct expr *e; /* EX_INPUT or EX_GATHER */
    int uses;             /* how often the outputs and maps would have it with lets written out; at most USES_MAX */
};

enum moment output_moment(const struct output *o);
/* Do its elements lie at computed places? */
static inline bool output_is_placed(const struct output *o) { return o->role == OUT_PLACED || o->role == OUT_SETTLED; }
/* Is an element that is combined in memory updated as one word?  Else its fields are, each by itself. */
bool output_meets_as_word(const struct output *o);
/* f on the expressions of an output, each for itself: values, then places. */
void output_walk(const struct output *o, void (*f)(const struct expr *e, void *user), void *user);

struct feedback {
    int input, output;
};

struct tunable {
    const char *name;
    const char *value;
    struct span at;
};

struct problem {
    enum problem_kind kind;
    struct span at; /* of the value of `kind` */
    const char *name, *doc;
    int nsizes, njoined;
    const struct dimension *size; /* those that a launch is given, and behind them njoined products */
    int rank;                     /* of the iteration space; row-major order; at most SPACE_MAX */
    struct axis space[PROG_RANK_MAX];
    bool space_given; /* its order is the spec's */
    int ninputs, noutputs, nparams, nlets, nreductions;
    const struct input *input;
    const struct output *output;
    const struct prog_param *param;
    const struct let *let;
    const struct reduction *reduction; /* or scans */
    int ngatherers;
    const struct gatherer *gatherer; /* EX_GATHER: op */
    int nreads;                      /* stencil: all that the outputs per element and the maps read, each once */
    const struct read *read;
    /* irregular segments: input number, or -1 */
    int offsets, flags;
    bool starts; /* segments begin where an expression holds: the operators start anew there */
    /* reduce by computed indices: i64, along each new dimension.  Every output has those dimensions and then the kept
     * ones, in order, and axis -1 in all of them.  Its elements are the *bins*: an element of the space belongs to the
     * bin with its indices, to none where one is out of range. */
    int nby;
    const struct expr *by[PROG_RANK_MAX];
    struct prog_dim bin[PROG_RANK_MAX];
    /* A map all of whose outputs combine at the same places: the same as a reduction by these places.  Its outputs stay
     * PLACED, and what elements come to is combined with what they hold.  NULL: it is none. */
    const struct problem *binned;
    /* scan */
    bool exclusive, reverse;
    /* by a computed index: i64, the *bin* of an element, and how many bins there are.  Each bin is scanned by itself; an
     * element whose index is out of range is a bin of its own.  Totals are of bins: they have the kept dimensions and,
     * with axis -1, that of the bins.  NULL: all elements of a segment are scanned together. */
    const struct expr *key;
    struct prog_dim keys;
    /* stencil */
    bool iterated;
    int64_t steps;   /* constant steps, or */
    int steps_param; /* >= 0: the param that gives them */
    int nfeedback;
    const struct feedback *feedback;
    const unsigned char *alignment; /* per pointer: `assume` says that it is a multiple of 1, 2, 4, 8 or 16 */
    bool dynamic;                   /* has a gather */
    bool sums;                      /* has a sum inside an expression */
    uint64_t divisors;              /* bits of the sizes by which indices are divided (EX_BINARY: which2) */
    /* A fold of states that ranks exchange: the last param has the address of what says how, or 0 (kb_exchange()). */
    bool exchanges;
    /* A stencil on a part, whose kernel takes rows beyond it from the ranks beside this one while it runs: the last three
     * params have the addresses of struct halo_head of this rank, of the one before and the one after (0: there is none). */
    bool joins;
    enum determinism determinism;
    bool contract; /* products and sums of floats are rounded once */
    /* pinned lowering: NULL when chosen */
    const char *strategy;
    int ntunables;
    const struct tunable *tunable;
    struct span strategy_at;
};

/* From YAML text.  NULL when there were errors (all are in s->diags).  default_name: stem of the file name. */
const struct problem *problem_build(struct ptxgen_session *s, const char *file, const char *text, size_t length,
                                    const char *default_name);

/* An array as the spec writes it.  Pointers are numbered inputs first, then outputs. */
static inline const struct prog_array *problem_array(const struct problem *p, int pointer)
{
    if (pointer < p->ninputs)
        return p->input[pointer].written ? p->input[pointer].written : &p->input[pointer].array;
    const struct output *o = &p->output[pointer - p->ninputs];
    return o->written ? o->written : &o->array;
}

/* Drops what the spec pins, also in its other form, of which `room` gets a copy. */
void problem_unpin(struct problem *p, struct problem *room);

/* Size number i, a product too, where `size` are those that a launch is given; -1: not known. */
int64_t problem_size(const struct problem *p, int i, const int64_t *size);
/* The same of an extent, where all sizes are known. */
static inline int64_t problem_extent(const struct problem *p, const struct prog_dim *d, const int64_t *size)
{
    return d->add + (d->size < 0 ? 0 : problem_size(p, d->size, size));
}
/* Elements of an array as kernels see it; -1 for a negative shape, and where elements or bytes overflow. */
int64_t problem_elements(const struct problem *p, const struct prog_array *a, const int64_t *size);

/* Has the problem an output whose values are known then? */
bool problem_writes(const struct problem *p, enum moment moment);
/* Is there an output with the total of a scan, other than a count? */
bool problem_shows_totals(const struct problem *p);

/* Is e the exponential of what is at most 0, or NaN: in an output (op is NULL) of a reduction's map less the maximum, in a
 * built-in operator of a field less that?  Less than 2^-126 may be 0. */
bool problem_exp_falls(const struct problem *p, const struct op *op, const struct expr *e);

/* f on the expression, everything below it, and what lets of the problem in it stand for, each let once. */
void problem_walk(const struct problem *p, const struct expr *e, void (*f)(const struct expr *e, void *user),
                  void *user);

/* An expression of p, as the language has it; op: whose states it may be about, or NULL. */
void expr_print(const struct problem *p, const struct op *op, const struct expr *e, struct str *out);
/* Canonical text of a problem, `--emit=problem`: complete, stable, independent of layout, comments and key order. */
void problem_print(const struct problem *p, struct str *out);

/* The JSON Schema of the language, from the same rows that the checker uses. */
void problem_schema(struct str *out);

#endif
