/* SPDX-License-Identifier: Apache-2.0 */
/* expr_emit.h - typed expressions become kb_vals.
 *
 * The meaning is that of docs/spec-language.md: total, the same as the oracle's.  What an expression reads (inputs,
 * params, indices, states, neighbours) is the caller's business: a callback.  A `let` is emitted once per environment,
 * where it is first needed; a use in a scope that this place does not reach emits it again, so an environment may be
 * used across scopes.
 *
 *     struct emit_env env;
 *     emit_env_init(&env, my_leaf, &my_state, problem);
 *     kb_val x = emit_expr(k, &env, reduction->map[0]);
 *
 * Use a new environment for every element.
 */
#ifndef PTXGEN_EXPR_EMIT_H
#define PTXGEN_EXPR_EMIT_H

#include "frontend/problem/problem.h"
#include "llvmgen/builder/kb.h"

/* The value of a let and where it was emitted. */
struct emit_cached {
    kb_val value; /* ir NULL: not yet */
    unsigned place;
};

struct emit_env;
/* The value of a leaf: EX_INPUT, EX_PARAM, EX_SIZE, EX_INDEX, EX_LEFT, EX_RIGHT, EX_STATE, EX_TOTAL, EX_OUTPUT,
 * EX_NEIGHBOUR, EX_GATHER, EX_AT.  Its type must be e->type. */
typedef kb_val (*emit_leaf)(kb *k, struct emit_env *env, const struct expr *e);

/* A sum that is being emitted, around others: where its dimension is, and the values of expressions that do not vary
 * along it, which were emitted before its loop.  Without dimension (-1): values that were emitted for later. */
struct emit_sum {
    int dimension;
    kb_val index;
    unsigned place; /* where they were emitted */
    int nheld;
    struct emit_held {
        const struct expr *e;
        kb_val value;
    } * held;
    const struct emit_sum *outer;
};

/* Tiles of what sums read, which the threads of a block load together: sums take their terms tile by tile.  The whole
 * block arrives wherever such sums are emitted. */
struct emit_tiles {
    int terms; /* of a tile */
    /* Load terms first, first + 1, … of `count`, i64. */
    void (*load)(kb *k, struct emit_tiles *t, kb_val first, kb_val count);
    /* Leaves read term i + plus (i64) of the tile from here on; after one with this i and 0. */
    void (*term)(kb *k, struct emit_tiles *t, kb_val i, int plus);
};

struct emit_env {
    emit_leaf leaf;
    kb_val (*is_index)(kb *k, struct emit_env *env, kb_val i); /* is i (i64) the index?  NULL: compare them */
    int indexed;                                               /* … of which dimension */
    /* An index, which is not negative, by a size that is not 0 (i64); NULL: as all are divided. */
    kb_val (*quotient)(kb *k, struct emit_env *env, kb_val index, int size);
    void *user;              /* the callbacks' */
    const struct problem *p; /* may be NULL, as in an operator: then it is outer's */
    const struct let *let;   /* what EX_LET refers to */
    int nlets;
    struct emit_cached *cache; /* of each let, the operator's own or the problem's; NULL before the first is used */
    const struct op *op;       /* what EX_OP_LET refers to; set by emit_combine() */
    const kb_tup *left, *right;
    const struct expr *known; /* an expression whose value the caller has; NULL: none */
    kb_val known_value;
    const struct emit_sum *sum; /* the innermost; NULL: none */
    struct emit_tiles *tiles;   /* NULL: none */
    struct emit_env *outer;     /* leaves and lets that are not the operator's own; NULL outside emit_combine() */
};

/* p may be NULL when no expression refers to a let of the problem. */
void emit_env_init(struct emit_env *env, emit_leaf leaf, void *user, const struct problem *p);

kb_val emit_expr(kb *k, struct emit_env *env, const struct expr *e);
/* Emits the sums in the expressions, for the environments of n elements, which use the values from then on.  Sums over
 * one dimension share a loop. */
void emit_together(kb *k, int n, struct emit_env *const *env, int nexprs, const struct expr *const *e);
/* Emits the largest parts of the expressions that stay the same from element to element, as the callback says of an
 * expression whose arguments do.  Environments of elements use the values if they begin with env's `sum`. */
typedef bool emit_stays(const void *what, const struct expr *e);
void emit_ahead(kb *k, struct emit_env *env, emit_stays *same, const void *what, int nexprs,
                const struct expr *const *e);
/* n expressions as the fields of a tuple. */
kb_tup emit_exprs(kb *k, struct emit_env *env, int n, const struct expr *const *e);

/* a op b, a the earlier operand.  `outer` supplies params, sizes and invariant inputs; NULL for an operator without
 * them. */
kb_tup emit_combine(kb *k, const struct op *op, struct emit_env *outer, kb_tup a, kb_tup b);
/* The identity; a misuse for an operator that has none. */
kb_tup emit_identity(kb *k, const struct op *op, struct emit_env *outer);
/* The padding element (built-in operators: NaN for min and max), else the identity. */
kb_tup emit_pad(kb *k, const struct op *op, struct emit_env *outer);

/* a op b of one type with the language's meaning, and the functions of functions.def. */
kb_val emit_binary(kb *k, enum binary op, kb_val a, kb_val b);
kb_val emit_function(kb *k, enum fn f, int n, const kb_val *arg);
/* A fold over nothing, and one step of a fold. */
kb_val emit_fold_identity(kb *k, enum fold op, enum ty t);
kb_val emit_fold(kb *k, enum fold op, kb_val a, kb_val b);

/* ---- sums, for expr_emit.c (expr_sums.c) ---- */
kb_val sum_emit(kb *k, struct emit_env *env, const struct expr *e);
/* Has the value been emitted before the loops around, or for later? */
bool sum_held(const kb *k, const struct emit_env *env, const struct expr *e, kb_val *value);
/* The index that runs along e's dimension. */
kb_val sum_index(kb *k, const struct emit_env *env, const struct expr *e);

#endif
