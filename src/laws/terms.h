/* SPDX-License-Identifier: Apache-2.0 */
/* terms.h - formulas for the prover: a directed graph of terms that knows equal ones, and its text in SMT-LIB.
 *
 * A term's operation is the text that stands before its operands: "bvadd", "fp.add RNE", "(_ sign_extend 24)"; a
 * literal or a variable has no operands.  Its sort follows from a type of the language and the level: bit-vectors and
 * IEEE floats, or Int and Real.  Terms are simplified while they are made as far as truth values and equal operands go,
 * so that many laws need no prover: both sides are one term.
 */
#ifndef PTXGEN_TERMS_H
#define PTXGEN_TERMS_H

#include "laws_impl.h"

struct term {
    const char *op;
    enum ty type;
    enum { TERM_PLAIN, TERM_VARIABLE, TERM_LITERAL, TERM_FUNCTION /* uninterpreted */ } kind;
    int infinite; /* ideal: this is -infinity or +infinity, which the prover knows nothing of */
    int nargs;
    const struct term *arg[3];
    int id;
    struct term *next;
};

enum { TERM_BUCKETS = 1024 };
struct terms {
    struct arena *a;
    enum level level;
    struct term *bucket[TERM_BUCKETS];
    int n;
    /* What is true of variables and functions as such, and what makes a model one of the declared types. */
    const struct term **fact, **clean;
    int nfacts, cap_facts, nclean, cap_clean;
    /* exp(x): see symbol_ideal.c */
    const struct term **exponent, **power;
    int npowers, cap_exponents, cap_powers;
    bool lost; /* something could not be said */
};

typedef const struct term *term;

void terms_begin(struct terms *t, struct arena *a, enum level level);
term term_make(struct terms *t, const char *op, enum ty type, int nargs, term x, term y, term z);
term term_variable(struct terms *t, const char *name, enum ty type);
term term_function(struct terms *t, const char *name, enum ty type, int nargs, term x, term y, term z);
/* The operands in an order of their own, for operations that commute. */
term term_commuting(struct terms *t, const char *op, enum ty type, term x, term y);
term term_true(struct terms *t, bool value);
term term_integer(struct terms *t, enum ty type, int64_t value); /* of the type's sort */
term term_value(struct terms *t, enum ty type, union value v);
term term_not(struct terms *t, term x);
term term_and(struct terms *t, term x, term y);
term term_or(struct terms *t, term x, term y);
term term_equal(struct terms *t, term x, term y);
term term_if(struct terms *t, term condition, term x, term y);
static inline bool term_is(term x, const char *op) { return __builtin_strcmp(x->op, op) == 0; }
void term_assume(struct terms *t, term fact);
void term_demand(struct terms *t, term clean);

/* ---- symbol.c: states and expressions as terms ---- */

struct symbols {
    struct terms *t;
    const struct problem *p;
    const struct reduction *red;
    int element; /* whose leaves are read; -1: what all elements have in common */
    const term *left, *right;
    term *let, *op_let;
};
void symbols_begin(struct symbols *s, struct terms *t, const struct problem *p, const struct reduction *red);
void symbols_element(struct symbols *s, int k, term *out);
void symbols_state(struct symbols *s, const char *name, term *out); /* any state: variables of its own */
void symbols_identity(struct symbols *s, const struct state *given, term *out);
void symbols_combine(struct symbols *s, const term *a, const term *b, term *out);
term symbols_claim(struct symbols *s, const struct expr *claim, const term *of);
/* The variable of a param, a size, or a field of an input that does not vary; NULL when nothing reads it. */
term symbols_fixed(struct symbols *s, const struct fixed *which);
/* One operation; symbol_bits.c, symbol_ideal.c. */
term bits_term(struct terms *t, const struct expr *e, const term *arg);
term ideal_term(struct terms *t, const struct expr *e, const term *arg);

/* ---- z3.c ---- */

struct z3;
/* NULL: it is not there. */
struct z3 *z3_open(struct arena *a, const struct laws_options *o);
void z3_close(struct z3 *z);
/* Can all of `fact` be true?  YES: model[i] gets the value of ask[i] in its type, ideally rounded to it (and given[i]
 * whether it has one).  clean: demand as well that nothing leaves its type. */
enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN };
enum answer z3_ask(struct z3 *z, struct terms *t, const term *fact, int nfacts, bool clean, const term *ask, int nask,
                   union value *model, bool *given);

/* ---- algebra.c ---- */

/* Are there products or quotients of variables in these (ideal) terms? */
bool algebra_is_for(const struct terms *t);
/* The goal holds wherever the facts do and nothing divides by zero.  false says nothing. */
bool algebra_proves(struct terms *t, struct z3 *z, term goal, const term *fact, int nfacts);

/* ---- invariant.c ---- */

/* Truths about every state that occurs, proved by induction: expressions over the fields as EX_LEFT. */
struct invariants {
    const struct expr **claim;
    int n, cap;
};
void invariants_find(struct invariants *inv, struct evaluator *v, struct z3 *z, enum level level);

#endif
