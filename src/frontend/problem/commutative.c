/* SPDX-License-Identifier: Apache-2.0 */
/* commutative.c - is an operator commutative, and is it exact, by its text alone.
 *
 * Value numbering: every distinct normal form gets a number, and an expression's number is made of its kind and its
 * operands' numbers.  Operands of commutative operations are sorted; where grouping does not change bits (integers,
 * bool, min, max) chains are flattened first; a > b is b < a.  The operator is commutative when every field has the
 * same number with a and b exchanged.  This proves nothing about operators that are commutative for deeper reasons:
 * those are declared.
 */
#include "frontend/frontend_impl.h"

#include <stdlib.h>

enum { CHAIN_MAX = 64 };

/* A normal form: what it is and the numbers of its operands. */
struct form {
    int key[8]; /* kind, type, op, which, which2, field, low and high half of a constant */
    int noperands;
    const int *operand;
    int next; /* in the same bucket, or -1 */
};

struct numbering {
    struct arena *a;
    struct form *form;
    int nforms, cap_forms;
    int bucket[1024];
    bool swapped;
    int *let_number[2]; /* of the operator's lets, plain and with a and b exchanged */
};

static int intern(struct numbering *n, const struct form *f)
{
    unsigned hash = 2166136261u;
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (unsigned)f->key[i]) * 16777619u;
    for (int i = 0; i < f->noperands; i++)
        hash = (hash ^ (unsigned)f->operand[i]) * 16777619u;
    int *head = &n->bucket[hash % 1024];
    for (int i = *head; i >= 0; i = n->form[i].next)
        if (!memcmp(n->form[i].key, f->key, sizeof f->key) && n->form[i].noperands == f->noperands &&
            (!f->noperands || !memcmp(n->form[i].operand, f->operand, sizeof(int) * (size_t)f->noperands)))
            return i;
    struct form copy = *f;
    int *operand = arena_new(n->a, int, f->noperands ? f->noperands : 1);
    if (f->noperands)
        memcpy(operand, f->operand, sizeof(int) * (size_t)f->noperands);
    copy.operand = operand;
    copy.next = *head;
    *head = n->nforms;
    ARENA_PUSH(n->a, n->form, n->nforms, n->cap_forms, copy);
    return n->nforms - 1;
}

static bool is_min_max(const struct expr *e) { return e->kind == EX_CALL && (e->op == FN_MIN || e->op == FN_MAX); }

static bool operands_commute(const struct expr *e)
{
    if (e->kind == EX_CALL)
        return is_min_max(e) || e->op == FN_HYPOT;
    if (e->kind != EX_BINARY)
        return false;
    switch (e->op) {
    case BIN_ADD:
    case BIN_MUL:
    case BIN_AND:
    case BIN_OR:
    case BIN_XOR:
    case BIN_EQ:
    case BIN_NE:
    case BIN_LAND:
    case BIN_LOR: return true;
    default: return false;
    }
}

static bool groups_freely(const struct expr *e)
{
    if (is_min_max(e))
        return true;
    return operands_commute(e) && e->kind == EX_BINARY && e->op != BIN_EQ && e->op != BIN_NE && !ty_is_float(e->type);
}

static int by_number(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static int number(struct numbering *n, const struct expr *e);

static bool continues(const struct expr *e, const struct expr *operand)
{
    return groups_freely(e) && operand->kind == e->kind && operand->op == e->op && operand->type == e->type;
}

static int chain_length(const struct expr *e)
{
    int n = 0;
    for (int i = 0; i < e->nargs; i++)
        n += continues(e, e->arg[i]) ? chain_length(e->arg[i]) : 1;
    return n;
}

/* Numbers of the operands of e and, when flattening, of those of its operands that are the same operation. */
static int chain(struct numbering *n, const struct expr *e, bool flatten, int *out, int count)
{
    for (int i = 0; i < e->nargs; i++)
        if (flatten && continues(e, e->arg[i]))
            count = chain(n, e->arg[i], true, out, count);
        else
            out[count++] = number(n, e->arg[i]);
    return count;
}

static int number(struct numbering *n, const struct expr *e)
{
    if (e->kind == EX_OP_LET)
        return n->let_number[n->swapped][e->which];
    int operand[CHAIN_MAX];
    struct form f = { .operand = operand };
    enum expr_kind kind = e->kind;
    int op = e->op;
    if (n->swapped && (kind == EX_LEFT || kind == EX_RIGHT))
        kind = kind == EX_LEFT ? EX_RIGHT : EX_LEFT;
    f.noperands = chain(n, e, chain_length(e) <= CHAIN_MAX, operand, 0);
    if (operands_commute(e))
        qsort(operand, (size_t)f.noperands, sizeof *operand, by_number);
    if (kind == EX_BINARY && (op == BIN_GT || op == BIN_GE)) {
        int first = operand[0];
        operand[0] = operand[1];
        operand[1] = first;
        op = op == BIN_GT ? BIN_LT : BIN_LE;
    }
    const int key[8] = { (int)kind,
                         (int)e->type,
                         op,
                         e->which,
                         e->which2,
                         e->field,
                         (int)(uint32_t)e->imm.u,
                         (int)(uint32_t)(e->imm.u >> 32) };
    memcpy(f.key, key, sizeof key);
    return intern(n, &f);
}

bool op_is_commutative(struct arena *a, const struct op *op)
{
    struct numbering *n = arena_new(a, struct numbering, 1);
    n->a = a;
    memset(n->bucket, -1, sizeof n->bucket);
    for (int side = 0; side < 2; side++) {
        n->swapped = side;
        n->let_number[side] = arena_new(a, int, op->nlets ? op->nlets : 1);
        for (int i = 0; i < op->nlets; i++)
            n->let_number[side][i] = number(n, op->let[i].value);
    }
    for (int i = 0; i < op->nfields; i++) {
        n->swapped = false;
        int plain = number(n, op->combine[i]);
        n->swapped = true;
        if (number(n, op->combine[i]) != plain)
            return false;
    }
    return true;
}

/* a.f OP b.f, in either order. */
static bool joins_field(const struct expr *e, int field)
{
    if (e->nargs != 2)
        return false;
    const struct expr *x = e->arg[0], *y = e->arg[1];
    bool sides = (x->kind == EX_LEFT && y->kind == EX_RIGHT) || (x->kind == EX_RIGHT && y->kind == EX_LEFT);
    return sides && x->field == field && y->field == field;
}

/* The same with an OP for which any order and grouping gives the same bits. */
static bool is_componentwise(const struct expr *e, int field) { return groups_freely(e) && joins_field(e, field); }

/* Float minima and maxima have no instruction that treats NaN as the language does. */
enum native op_field_native(const struct op *op, int field)
{
    const struct expr *e = op->combine[field];
    if (!joins_field(e, field) || ty_bytes(e->type) < 4 || e->type == TY_BOOL)
        return NATIVE_NONE;
    if (is_min_max(e))
        return ty_is_float(e->type) ? NATIVE_NONE : e->op == FN_MIN ? NATIVE_MIN : NATIVE_MAX;
    if (e->kind != EX_BINARY)
        return NATIVE_NONE;
    switch (e->op) {
    case BIN_ADD: return NATIVE_ADD;
    case BIN_AND: return NATIVE_AND;
    case BIN_OR: return NATIVE_OR;
    case BIN_XOR: return NATIVE_XOR;
    default: return NATIVE_NONE;
    }
}

bool op_fieldwise(const struct op *op)
{
    bool all = op->nfields > 1;
    for (int f = 0; all && f < op->nfields; f++)
        all = op_field_native(op, f) != NATIVE_NONE;
    return all;
}

/* The fields that e uses, where lets use these. */
static unsigned fields_used(const struct expr *e, const unsigned *let)
{
    unsigned used = e->kind == EX_LEFT || e->kind == EX_RIGHT ? 1u << e->field
                    : e->kind == EX_OP_LET                    ? let[e->which]
                                                              : 0;
    for (int i = 0; i < e->nargs; i++)
        used |= fields_used(e->arg[i], let);
    return used;
}

bool op_separate(const struct op *op)
{
    unsigned let[LET_VALUES_MAX];
    bool all = op->nfields > 1;
    for (int i = 0; all && i < op->nlets; i++)
        let[i] = fields_used(op->let[i].value, let);
    for (int f = 0; all && f < op->nfields; f++)
        all = !(fields_used(op->combine[f], let) & ~(1u << f));
    return all;
}

bool op_is_exact(const struct op *op)
{
    for (int i = 0; i < op->nfields; i++)
        if (!is_componentwise(op->combine[i], i))
            return false;
    return true;
}

enum native op_native(const struct op *op)
{
    return op->builtin && op->nfields == 1 ? op_field_native(op, 0) : NATIVE_NONE;
}

enum { OP_WORD = 8 /* bytes that one atomic operation updates */ };

int op_packed_bytes(const struct op *op)
{
    int bytes = 0;
    for (int f = 0; f < op->nfields; f++)
        bytes += ty_bytes(op->field[f]);
    return bytes <= OP_WORD / 2 ? OP_WORD / 2 : bytes <= OP_WORD ? OP_WORD : 0;
}

int op_field_word(const struct op *op, int field, int *bit)
{
    int word = 0, used = 0;
    for (int f = 0; f < field; f++) {
        used += ty_bytes(op->field[f]);
        if (used + ty_bytes(op->field[f + 1]) > OP_WORD)
            word++, used = 0;
    }
    *bit = 8 * used;
    return word;
}

int op_words(const struct op *op)
{
    int bit;
    return op_field_word(op, op->nfields - 1, &bit) + 1;
}

int op_word_bytes(const struct op *op)
{
    return op_native(op) ? ty_bytes(op->field[0]) : op_words(op) > 1 ? OP_WORD : op_packed_bytes(op);
}
