/* SPDX-License-Identifier: Apache-2.0 */
/* formula.h - small integer expressions that the host evaluates at launch: guards, grids, workspace sizes.
 *
 * A formula is a postfix program over int64 (a comparison gives 0 or 1; `/` and `%` truncate, and give 0 for a zero
 * divisor; overflow saturates).  The same formula is text in plans ("cdiv(n, 4096) <= sms * 4") and an array in
 * the manifest.  Evaluation allocates nothing and takes tens of nanoseconds.
 */
#ifndef PTXGEN_FORMULA_H
#define PTXGEN_FORMULA_H

#include "base/arena.h"
#include "base/str.h"

enum { FORMULA_MAX = 128, FORMULA_STACK = 16 };

/* clang-format off */
/*           id         text        what it is */
#define FORMULA_OPS(X)                                                              \
    X(CONST,    NULL,      0, "the number in imm")                                  \
    X(SIZE,     NULL,      0, "size number imm")                                    \
    X(PARAM,    "param",   0, "integer param number imm")                           \
    X(SMS,      "sms",     0, "multiprocessors of the device")                      \
    X(SM_ARCH,  "arch",    0, "10 * major + minor of the device")                   \
    X(SMEM,     "smem",    0, "largest dynamic shared memory of a block, bytes")    \
    X(RESIDENT, "resident",0, "resident blocks per multiprocessor of kernel imm")   \
    X(MISALIGN, "misalign",0, "the bits 1, 2, 4, 8 that an address of set imm has")  \
    X(APART,    "apart",   0, "those bits in which addresses of set imm differ")    \
    X(ADD,      "+",       2, "")                                                   \
    X(SUB,      "-",       2, "")                                                   \
    X(MUL,      "*",       2, "")                                                   \
    X(DIV,      "/",       2, "")                                                   \
    X(MOD,      "%",       2, "")                                                   \
    X(CDIV,     "cdiv",    2, "quotient rounded up")                                \
    X(POW2,     "pow2",    2, "least power of two from 1 to 2^62 not below the quotient") \
    X(MIN,      "min",     2, "")                                                   \
    X(MAX,      "max",     2, "")                                                   \
    X(LT,       "<",       2, "")                                                   \
    X(LE,       "<=",      2, "")                                                   \
    X(EQ,       "==",      2, "")                                                   \
    X(NE,       "!=",      2, "")                                                   \
    X(GE,       ">=",      2, "")                                                   \
    X(GT,       ">",       2, "")                                                   \
    X(AND,      "and",     2, "both nonzero")                                       \
    X(OR,       "or",      2, "either nonzero")                                     \
    X(NOT,      "not",     1, "")
/* clang-format on */

enum formula_op {
#define X(id, text, arity, what) FO_##id,
    FORMULA_OPS(X)
#undef X
        FO_COUNT
};

struct formula_step {
    enum formula_op op;
    int64_t imm;
};

struct formula {
    int n; /* 0: absent; formula_eval gives the default of the place (guards: true) */
    struct formula_step step[FORMULA_MAX];
};

/* What a formula is evaluated over.  Pointers are numbered inputs first, then outputs. */
struct formula_env {
    const int64_t *size;  /* per dimension name of the program */
    const int64_t *param; /* per param; integer ones only are meaningful */
    int sms, arch;
    int64_t smem;
    const int *resident; /* per kernel of the case; may be NULL while guards are evaluated */
    const void *const *pointer;
};

/* Absent formulas give 1, those that were too long 0. */
int64_t formula_eval(const struct formula *f, const struct formula_env *env);

/* The result of an operator with two operands. */
int64_t formula_binary(enum formula_op op, int64_t a, int64_t b);

/* What is known before a launch. */
struct formula_facts {
    const int64_t *size;            /* -1: not known; NULL: none */
    const int64_t *least, *most;    /* of each size; NULL: 0 and INT64_MAX */
    const int64_t *divisor;         /* of each size; NULL: 1 */
    const unsigned char *alignment; /* of each pointer: it is a multiple of 1, 2, 4, 8 or 16; NULL: of 1 */
    int sms;                        /* 0: not known, but no more than any GPU has */
};
/* The value of a formula as far as that goes.  False where it depends on something else. */
bool formula_known(const struct formula *f, const struct formula_facts *facts, int64_t *value);
/* Does f surely hold where g holds?  Each of the conditions that `and` joins to f is known to hold, or one of g's. */
bool formula_follows(const struct formula *f, const struct formula *g, const struct formula_facts *facts);

int formula_depth(const struct formula *f); /* of the stack that evaluation needs */

/* Building, in reading order of the result: f_le(f_size(0), 4096).  Operands are formulas or C integers.  Too long sets
 * n to -1. */
struct formula f_const(int64_t x);
struct formula f_leaf(enum formula_op op, int64_t imm);
struct formula f_bin(enum formula_op op, const struct formula *a, const struct formula *b);
struct formula f_not(const struct formula *a);
__attribute__((always_inline)) static inline struct formula f_itself(struct formula f) { return f; }
#define F_(x)              (&(const struct formula[1]){ _Generic((x), struct formula : f_itself, default : f_const)(x) }[0])
#define f_add(a, b)        f_bin(FO_ADD, F_(a), F_(b))
#define f_sub(a, b)        f_bin(FO_SUB, F_(a), F_(b))
#define f_mul(a, b)        f_bin(FO_MUL, F_(a), F_(b))
#define f_div(a, b)        f_bin(FO_DIV, F_(a), F_(b))
#define f_mod(a, b)        f_bin(FO_MOD, F_(a), F_(b))
#define f_cdiv(a, b)       f_bin(FO_CDIV, F_(a), F_(b))
#define f_pow2(a, b)       f_bin(FO_POW2, F_(a), F_(b))
#define f_min(a, b)        f_bin(FO_MIN, F_(a), F_(b))
#define f_max(a, b)        f_bin(FO_MAX, F_(a), F_(b))
#define f_le(a, b)         f_bin(FO_LE, F_(a), F_(b))
#define f_lt(a, b)         f_bin(FO_LT, F_(a), F_(b))
#define f_eq(a, b)         f_bin(FO_EQ, F_(a), F_(b))
#define f_ne(a, b)         f_bin(FO_NE, F_(a), F_(b))
#define f_ge(a, b)         f_bin(FO_GE, F_(a), F_(b))
#define f_and(a, b)        f_bin(FO_AND, F_(a), F_(b)) /* an absent one holds */
#define f_or(a, b)         f_bin(FO_OR, F_(a), F_(b))
#define f_size(i)          f_leaf(FO_SIZE, (i))
#define f_sms()            f_leaf(FO_SMS, 0)
#define f_resident(kernel) f_leaf(FO_RESIDENT, (kernel))
/* Facts about a set of pointers, bit i for pointer i: one step for any number of arrays, so that guards stay short.
 * `f_misalign(set) % 8 == 0`: each begins at a multiple of 8; `f_apart(set) % 8 == 0`: all are the same modulo 8. */
#define f_misalign(set) f_leaf(FO_MISALIGN, (int64_t)(set))
#define f_apart(set)    f_leaf(FO_APART, (int64_t)(set))
#define f_pointer(i)    (UINT64_C(1) << (i))

/* Names of what leaves refer to, for text: sizes stand alone (n), the others are param(k), resident(main),
 * misalign(x, y), apart(x, y).  A size whose name is a word of the formula language is written size(sms), what has
 * no name by its number: size(0).  An absent formula is `true`. */
struct formula_names {
    int nsizes, nparams, nkernels, npointers;
    const char *const *size, *const *param, *const *kernel, *const *pointer;
};
void formula_print(const struct formula *f, const struct formula_names *names, struct str *out);
/* Of the conditions that `and` joins to f, those that do not hold, each with what it sees: "n <= 128 (n = 500) and
 * misalign(x) % 16 == 0 (misalign(x) = 4)".  Nothing where f holds. */
void formula_print_unmet(const struct formula *f, const struct formula_names *names, const struct formula_env *env,
                         struct str *out);
void formula_json(const struct formula *f, const struct formula_names *names,
                  struct json *j); /* postfix array of strings and numbers */
void formula_json_text(const struct formula *f, const struct formula_names *names, struct json *j); /* or null */
/* NULL on success, else a message and the byte where it applies. */
const char *formula_parse(const char *text, const struct formula_names *names, struct formula *out, int *at);

#endif
