/* SPDX-License-Identifier: Apache-2.0 */
/* operators_impl.h - operators: the rows of operators.def, and the user's own.  A part of frontend_impl.h. */
#ifndef PTXGEN_OPERATORS_IMPL_H
#define PTXGEN_OPERATORS_IMPL_H

#include "frontend/frontend_impl.h"

struct op_row {
    const char *name;
    const char *types;    /* what T may be: any of b s u f (kinds of types.h) */
    bool widen;           /* the default accumulator of narrow types is wider */
    const char *state;    /* "" for a scalar, else "max:T;sum:T"; types are T and I (any integer) */
    const char *identity; /* one expression per field, or "" */
    const char *pad;      /* the same, "" when the identity serves */
    const char *let;      /* "m=max(a.max, b.max);…" */
    const char *combine;
    const char *lift;   /* of a scalar map called x, or "" */
    const char *result; /* default result of a tuple, in r, or "" */
    bool commutative, finite;
    const char *many;  /* see operators.def */
    const char *exact; /* kinds of T for which any order gives the same bits */
};
const struct op_row *op_row_by_name(const char *name);
int op_row_count(void);
/* The row of that name; NULL: reported. */
const struct op_row *op_row_find(struct builder *b, const char *name, struct span at);
const struct op_row *op_row(int i);
enum ty op_default_accumulator(const struct op_row *row, enum ty element);
/* A built-in operator at the given field types; NULL when T is not one of its kinds (reported at `at`). */
const struct op *op_builtin(struct builder *b, const struct op_row *row, const enum ty *field, struct span at);
/* `operators`: the user's, by names; one of them, which is used then (NULL: there is none of that name); warns of others. */
void build_operators(struct builder *b);
struct own_op *own_op_find(const struct builder *b, const char *name);
void warn_unused_operators(struct builder *b);
/* Is it an operator of the user: written there, or the name of one? */
bool op_is_own(const struct builder *b, const struct ynode *n);
/* Such an operator. NULL when its state is in error; with other errors only its fields are set. */
const struct op *op_user(struct builder *b, const struct ynode *node);
/* Is it whole, without errors? */
static inline bool op_is_whole(const struct op *op) { return op && op->combine[op->nfields - 1]; }
bool op_reads_inputs(const struct op *op);
/* The types of a built-in operator's fields, whose values are these; false: they are in error, or do not fit each other. */
bool op_row_types(const struct scope *sc, const struct op_row *row, struct ast *const *field, enum ty accumulator,
                  enum ty *type);
/* After that: reports why; false. */
bool op_row_misfit(const struct scope *sc, const struct op_row *row, struct ast *const *field);
/* What a scalar contributes to the fields, of type t; false: reported. */
bool op_row_lift(const struct scope *sc, const struct op_row *row, int nfields, struct ast *scalar, enum ty t,
                 const struct expr **out);
int op_row_fields(const struct op_row *row, struct arena *a, const char **name, char *type); /* 1 for a scalar */
struct source op_row_item(const char *list, int i, struct span at); /* item i of a row's list, between ';' */
/* The values of a mapping, `what`, with exactly the fields of a state or an output; false: reported. */
bool fields_parse(const struct scope *sc, const struct ynode *node, const char *what, const char *of,
                  const char *const *names, int nfields, struct ast **out);
/* One expression per field of the operator's state, from a scalar or a mapping with exactly those fields. */
bool fields_build(const struct scope *sc, const struct op *op, const struct ynode *node, bool widened,
                  const struct expr **out);
bool op_is_commutative(struct arena *a, const struct op *op); /* by the syntactic normal form */
bool op_is_exact(const struct op *op);                        /* a componentwise integer or float min, max operator */

#endif
