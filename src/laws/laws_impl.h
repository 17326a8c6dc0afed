/* SPDX-License-Identifier: Apache-2.0 */
/* laws_impl.h - what the files of this folder share.
 *
 *   world.c     what names stand for in a trial: endless input arrays that follow from a seed
 *   evaluate.c  expressions over a world, at either level; elements, identities, combinations
 *   ideal.c     one operation over the integers and reals, refused where the type could not follow
 *   trial.c     both sides of a law; the oracle's word on them; their text
 *   search.c    trials: all of a small set, then random ones, the simplest counterexample kept
 *   z3.c        the prover, opened at run time
 *   symbol.c    states and leaves as terms, expressions to terms
 *   symbol_bits.c, symbol_ideal.c   one operation as a term, at either level
 *   algebra.c   equalities of fractions of polynomials, which the prover is bad at
 *   invariant.c what holds for all states that occur, found by trial and proved by induction
 *   prove.c     laws as queries
 *   laws.c      verdicts;  laws_text.c: their texts, keys and messages
 */
#ifndef PTXGEN_LAWS_IMPL_H
#define PTXGEN_LAWS_IMPL_H

#include "laws.h"
#include "ref/ref.h"

enum level { LEVEL_BITS, LEVEL_IDEAL };

/* ---- world.c ---- */

/* Palettes: which values a world draws from. */
enum palette { PALETTE_TINY, PALETTE_SPECIAL, PALETTE_MEDIUM, PALETTE_FULL, PALETTE_COUNT };

struct fixed {
    enum expr_kind kind; /* EX_INPUT, EX_PARAM, EX_SIZE */
    int which, field;
    union value value;
};

struct world {
    const struct problem *p;
    const struct reduction *red;
    uint64_t seed;
    enum palette palette;
    enum level level;          /* ideal worlds have no NaN, no infinity, and few digits */
    const struct fixed *fixed; /* values that a proof found, before all others */
    int nfixed;
    const union value
        *direct; /* not NULL: fields of element k are direct[k * nfields …], for operators with a free map */
};
/* Values worth trying one by one; the number of them. */
int world_specials(enum level level, enum ty t, union value *out);
enum { SPECIALS_MAX = 24 };
/* The point of the iteration space where element k of a segment lies. */
void world_point(const struct world *w, int k, int64_t *at);
int64_t world_size(const struct world *w, int size);
union value world_param(const struct world *w, int param);
/* EX_INPUT, EX_PARAM, EX_SIZE, EX_INDEX, EX_GATHER, EX_AT, EX_NEIGHBOUR, EX_RUN at a point. */
union value world_leaf(const struct world *w, const int64_t *at, const struct expr *e);
/* Any values may occur in the fields of different elements, independently. */
bool world_map_is_free(const struct problem *p, const struct reduction *red);

/* ---- ideal.c ---- */

/* A real number: exactly n / d; or an infinity; or within err of v. */
__extension__ typedef __int128 wide;
struct real {
    enum { REAL_EXACT, REAL_NEAR, REAL_PLUS_INF, REAL_MINUS_INF } kind;
    wide n, d;
    long double v, err;
};
/* A scalar at either level: floats are in `real` at the ideal one, everything else in `bits`. */
struct cell {
    union value bits;
    struct real real;
};
struct state {
    struct cell field[STATE_FIELDS_MAX];
};
/* e is EX_UNARY, EX_BINARY, EX_CALL or EX_CAST.  false: undefined, or outside of what the type can hold. */
bool ideal_apply(const struct expr *e, const struct cell *arg, struct cell *out);
/* false: NaN, or too large or small to be followed. */
bool ideal_from_bits(enum ty t, union value v, struct cell *out);
/* Surely equal, surely different, or 0: too near to tell. */
int ideal_compare_equal(enum ty t, const struct cell *a, const struct cell *b);

/* ---- evaluate.c ---- */

struct evaluator {
    const struct world *w;
    struct arena *a;
    bool undefined; /* ideal: something was refused since it was cleared */
    bool overflow;  /* and it was an integer that left its type */
    int64_t at[SPACE_MAX];
    const struct state *left, *right;
    struct memo {
        struct cell value;
        uint64_t stamp;
    } * let, *op_let;
    uint64_t stamp, op_stamp;
};
void evaluator_begin(struct evaluator *v, struct arena *a, const struct world *w);
void evaluate_element(struct evaluator *v, int k, struct state *out);
void evaluate_identity(struct evaluator *v, struct state *out);
/* A truth about a state: an expression over its fields as EX_LEFT. */
bool evaluate_claim(struct evaluator *v, const struct expr *claim, const struct state *of);
void evaluate_combine(struct evaluator *v, const struct state *a, const struct state *b, struct state *out);

/* ---- trial.c ---- */

struct trial {
    enum law law;
    bool right;   /* identity: on the right side */
    int count[3]; /* elements that a, b, c are made of */
    struct world world;
    const struct state *identity; /* instead of the operator's own; or NULL */
    struct state a, b, c, l, r;
};
int law_operands(enum law law); /* 3: a, b and c; 2; or 1 */
enum outcome { OUTCOME_EQUAL, OUTCOME_DIFFERENT, OUTCOME_UNDEFINED };
/* Evaluate both sides from a, b and c; *field: the first that differs. */
enum outcome trial_sides(struct evaluator *v, struct trial *t, int *field);
/* Make a, b and c of elements, then the same. */
enum outcome trial_run(struct evaluator *v, struct trial *t, int *field);

/* The operands' values of the ideal level from those in bits; false where there are none. */
bool trial_lift(struct trial *t);

/* A counterexample: states and both sides in the declared types, as the oracle computes them. */
struct example {
    bool found;
    struct trial trial; /* at the level of bits */
    int field;
    double weight;
    const char *cause;
};
/* The trial's states, whatever its level, evaluated by the oracle: do the sides differ? */
bool trial_replay(struct evaluator *v, const struct trial *t, struct example *out);
const char *example_text(struct arena *a, const struct example *x);
const char *example_cause(struct evaluator *v, const struct example *x);
void state_text(const struct op *op, const struct state *s, struct str *out);

/* ---- search.c ---- */

struct search_result {
    struct example bits, ideal; /* ideal: the sides differ over the integers or reals as well */
    bool complete;              /* every state was tried, bit for bit */
    bool tried;                 /* ideally, often enough to mean something */
};
void search_law(struct evaluator *v, enum law law, const struct state *identity, struct search_result *out);
/* An identity for the operator, not yet proved; false when none of the usual values serves. */
bool search_identity(struct evaluator *v, struct state *out);

/* ---- prove.c ---- */

struct prover; /* NULL: there is none */
struct prover *prover_open(struct arena *a, const struct problem *p, const struct reduction *red,
                           const struct laws_options *o);
void prover_close(struct prover *q);
bool prover_is_there(const struct prover *q);
void prover_rest(struct prover *q); /* asks nothing any more: only what is evident is proved */

enum proof { PROOF_YES, PROOF_NO, PROOF_UNKNOWN };
/* For every state that occurs (of which this may know too little for a proof).  PROOF_NO: *out has states that occur,
 * where the oracle's two sides differ; ideal: without anything leaving its type. */
enum proof prover_law(struct prover *q, enum level level, enum law law, const struct state *identity,
                      struct example *out);

#endif
