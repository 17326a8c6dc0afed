/* SPDX-License-Identifier: Apache-2.0 */
/* expr.h - typed expressions: what maps, operators and output values are.
 *
 * Parsed by a Pratt parser from the text of a YAML scalar, then resolved and typed in a scope.  A typed expression is
 * immutable and has no names left, only numbers into struct problem.  Emitter (llvmgen/expr/expr_emit.c) and oracle
 * (ref/) evaluate the same tree; the meaning of every operation, including division by zero, shifts, float-to-integer
 * conversion and min/max with NaN, is that of docs/spec-language.md, the same everywhere.
 *
 * Conversions are explicit in the tree: the type checker inserts EX_CAST where the language converts implicitly, so
 * both operands of EX_BINARY have one type and every expression has exactly the type of its place.
 */
#ifndef PTXGEN_EXPR_H
#define PTXGEN_EXPR_H

#include "base/diag.h"
#include "base/types.h"

/* Operands of an operation or function, and arguments of any expression: a gather has one for each field of its state. */
enum { OFFSET_MAX = 6, OPERANDS_MAX = 3, EXPR_ARG_MAX = 16 };

enum expr_kind {
    EX_CONST,  /* imm */
    EX_INPUT,  /* input `which`, field `field`, at the element plus offset[0..noffsets) (noffsets 0: at the element) */
    EX_PARAM,  /* param `which` */
    EX_SIZE,   /* size of dimension name `which`, i64 */
    EX_INDEX,  /* i64 index along dimension number `which` of the iteration space */
    EX_LET,    /* problem let `which` */
    EX_OP_LET, /* let `which` of the operator that is being evaluated */
    EX_LEFT,   /* a.field of the operator being evaluated */
    EX_RIGHT,  /* b.field */
    EX_STATE,  /* field `field` of reduction or scan `which`: r in outputs of a reduce, s in those of a scan */
    EX_TOTAL,  /* field `field` of the total of scan `which` */
    EX_OUTPUT, /* value of output `which`, field `field`, at this point (maps of reductions beside a stencil) */
    EX_GATHER, /* field `field` of the states that arg[0..nargs) gives for each row of offsets input `which2`, read from input
                  `which`, combined by gatherer number `op` of the problem */
    EX_AT,  /* input `which`, field `field`, at the place that arg[0..nargs) computes, i64 per dimension; op: bits of
                  the dimensions that arg is never beyond at an element */
    EX_SUM, /* fold arg[0] with `op` (enum fold) while dimension name `which` runs from 0 below arg[1], i64 */
    EX_RUN, /* i64 index along dimension name `which`, inside arg[0] of its EX_SUM */
    EX_NEIGHBOUR, /* the neighbour's value inside the arguments of EX_GATHER: input `which`, field `field` */
    EX_UNARY,     /* op: enum unary */
    EX_BINARY,    /* op: enum binary; comparisons give bool */
    EX_CALL,      /* op: enum fn */
    EX_CAST,      /* arg[0] converted to type */
    EX_IF,        /* arg[0] ? arg[1] : arg[2] */
};

enum unary { UN_NEG, UN_NOT /* logical, bool */, UN_COMPL /* ~ */ };

enum binary {
    BIN_ADD,
    BIN_SUB,
    BIN_MUL,
    BIN_DIV,
    BIN_REM,
    BIN_AND,
    BIN_OR,
    BIN_XOR,
    BIN_SHL,
    BIN_SHR,
    BIN_EQ,
    BIN_NE,
    BIN_LT,
    BIN_LE,
    BIN_GT,
    BIN_GE,
    BIN_LAND,
    BIN_LOR, /* bool */
};

/* What EX_SUM folds with. */
enum fold { FOLD_ADD, FOLD_MUL, FOLD_MIN, FOLD_MAX, FOLD_AND, FOLD_OR, FOLD_COUNT };

/* Functions: rows of functions.def: FN(id, name, arity, types) with types one of: N numeric, F float, I integer. */
enum fn {
#define FN(id, name, arity, types, what) FN_##id,
#include "functions.def"
#undef FN
    FN_COUNT
};
const char *fn_name(enum fn f);

/* A product, and a sum that takes one, which may be rounded once; a sum over a dimension whose products are (contract.c). */
enum { FUSES = 1 };

struct expr {
    enum expr_kind kind;
    enum ty type;
    struct span at;
    int op;
    int which, which2, field; /* EX_BINARY: which2 where an index, not negative, is divided by a size that is not 0;
                                 EX_BINARY, EX_SUM: field is FUSES or 0 */
    int noffsets;
    int32_t offset[OFFSET_MAX];
    union value imm;
    int nargs;
    const struct expr *arg[EXPR_ARG_MAX];
};

/* f(expr, user) on e and everything below it, parents first. */
void expr_walk(const struct expr *e, void (*f)(const struct expr *e, void *user), void *user);
bool expr_equal(const struct expr *a, const struct expr *b);
/* Are two EX_GATHER fields of one state? */
bool expr_same_state(const struct expr *a, const struct expr *b);

#endif
