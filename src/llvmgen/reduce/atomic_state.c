/* SPDX-License-Identifier: Apache-2.0 */
/* atomic_state.c - states that many threads update: one word of 8 bytes per reduction, in global or shared memory.
 *
 * What is in memory is encoded so that all bits zero is the neutral element, because that is what control memory begins
 * with and is left at.  Operators with an instruction use it: add, or and xor as they are; the others on a mapping that
 * keeps their order and sends their identity to zero,
 *
 *     and(x) = ~or(~x)     max signed = max unsigned of x with the sign bit flipped     min(x) = ~max(~x)
 *
 * The rest is a compare-and-swap loop on the fields side by side, exclusive-or'ed with those of the padding element.
 */
#include "llvmgen/shared/gen.h"

/* ---- fields as bits ---------------------------------------------------------------------------------------------- */

kb_val field_bits(kb *k, kb_val x)
{
    static const enum ty same_width[] = { [1] = TY_U8, [2] = TY_U16, [4] = TY_U32, [8] = TY_U64 };
    if (x.ty == TY_BOOL)
        return kb_cast(k, x, TY_U32);
    const kb_val bits = kb_bitcast(k, x, same_width[ty_bytes(x.ty)]);
    return ty_bytes(x.ty) < 4 ? kb_cast(k, bits, TY_U32) : bits;
}

kb_val field_from_bits(kb *k, kb_val bits, enum ty ty)
{
    if (ty == TY_BOOL)
        return kb_ne(k, bits, 0);
    if (ty_bytes(ty) < 4)
        bits = kb_cast(k, bits, ty_bytes(ty) == 1 ? TY_U8 : TY_U16);
    return kb_bitcast(k, bits, ty);
}

/* All fields of a state in one word. */
static kb_val pack(kb *k, const struct op *op, kb_tup x)
{
    const enum ty word = op_packed_bytes(op) == 4 ? TY_U32 : TY_U64;
    kb_val bits = kb_imm(k, word, 0);
    for (int f = 0, at = 0; f < op->nfields; at += 8 * ty_bytes(op->field[f++]))
        bits = kb_or(k, bits, kb_shl(k, kb_cast(k, field_bits(k, x.e[f]), word), at));
    return bits;
}

static kb_tup unpack(kb *k, const struct op *op, kb_val bits)
{
    static const enum ty word_of[] = { [1] = TY_U8, [2] = TY_U32, [4] = TY_U32, [8] = TY_U64 };
    kb_tup x = { .n = op->nfields };
    for (int f = 0, at = 0; f < op->nfields; at += 8 * ty_bytes(op->field[f++]))
        x.e[f] = field_from_bits(k, kb_cast(k, kb_shr(k, bits, at), word_of[ty_bytes(op->field[f])]), op->field[f]);
    return x;
}

/* ---- one reduction ----------------------------------------------------------------------------------------------- */

/* Word r, as a type of 4 or 8 bytes. */
static kb_ptr view(kb *k, kb_ptr words, int r, enum ty ty)
{
    kb_ptr p = kb_advance(k, words, kb_imm(k, TY_I32, r));
    p.ty = ty;
    return p;
}

/* Between a value and what is in memory for it; its own inverse.  Floats are added as they are. */
static kb_val recode(kb *k, enum native native, kb_val bits, bool is_signed)
{
    const int width = ty_bits(bits.ty);
    if ((native == NATIVE_MIN || native == NATIVE_MAX) && is_signed)
        bits = kb_xor(k, bits, kb_shl(k, kb_imm(k, bits.ty, 1), width - 1));
    return native == NATIVE_MIN || native == NATIVE_AND ? kb_not(k, bits) : bits;
}

static void update_native(struct gen *g, kb_ptr word, int r, kb_val x)
{
    static const enum kb_rmw rmw[] = {
        [NATIVE_ADD] = KB_RMW_ADD, [NATIVE_MIN] = KB_RMW_MAX, [NATIVE_MAX] = KB_RMW_MAX,
        [NATIVE_AND] = KB_RMW_OR,  [NATIVE_OR] = KB_RMW_OR,   [NATIVE_XOR] = KB_RMW_XOR
    };
    kb *k = g->k;
    const enum native native = op_native(g->p->reduction[r].op);
    const kb_val value = ty_is_float(x.ty) ? x : recode(k, native, field_bits(k, x), ty_is_signed(x.ty));
    word.ty = value.ty;
    kb_atomic(k, rmw[native], word, 0, value);
}

static void combine_native(struct gen *g, kb_ptr word, int r, kb_val x)
{
    static const enum kb_bin bin[] = { [NATIVE_ADD] = KB_ADD, [NATIVE_MIN] = KB_MAX, [NATIVE_MAX] = KB_MAX,
                                       [NATIVE_AND] = KB_OR,  [NATIVE_OR] = KB_OR,   [NATIVE_XOR] = KB_XOR };
    kb *k = g->k;
    const enum native native = op_native(g->p->reduction[r].op);
    const kb_val value = ty_is_float(x.ty) ? x : recode(k, native, field_bits(k, x), ty_is_signed(x.ty));
    word.ty = value.ty;
    kb_store(k, word, 0, kb_bin(k, bin[native], kb_load(k, word, 0), kb_arg_v(value)));
}

/* Where the padding element is a NaN and not the identity, a state of that very NaN gets another, so that zero is no element at all. */
static kb_val not_zero(struct gen *g, const struct op *op, kb_val bits)
{
    if (!g->p->nby || !op->pad[0] || expr_equal(op->pad[0], op->identity[0]))
        return bits;
    return kb_select(g->k, kb_eq(g->k, bits, 0), kb_imm(g->k, bits.ty, 1), bits);
}

static void update_by_swap(struct gen *g, struct emit_env *env, kb_ptr word, int r, kb_tup x)
{
    kb *k = g->k;
    const struct op *op = g->p->reduction[r].op;
    const kb_val zero = kb_imm(k, TY_I32, 0), pad = pack(k, op, emit_pad(k, op, env));
    word.ty = pad.ty;
    kb_var old = kb_var_new(k, kb_load_relaxed(k, word, zero), "old");
    kb_loop(k) {
        const kb_val seen = kb_get(k, old);
        const kb_tup sum = emit_combine(k, op, env, unpack(k, op, kb_xor(k, seen, pad)), x);
        LET(got, kb_cas(k, word, zero, seen, not_zero(g, op, kb_xor(k, pack(k, op, sum), pad))));
        kb_break_if(k, kb_eq(k, got, seen));
        kb_set(k, old, got);
    }
}

static void combine_packed(struct gen *g, struct emit_env *env, kb_ptr word, int r, kb_tup x)
{
    kb *k = g->k;
    const struct op *op = g->p->reduction[r].op;
    const kb_val pad = pack(k, op, emit_pad(k, op, env));
    word.ty = pad.ty;
    const kb_tup sum = emit_combine(k, op, env, unpack(k, op, kb_xor(k, kb_load(k, word, 0), pad)), x);
    kb_store(k, word, 0, not_zero(g, op, kb_xor(k, pack(k, op, sum), pad)));
}

void accumulate_atomic(struct gen *g, kb_ptr words, kb_tup x)
{
    kb_ptr word[STATE_FIELDS_MAX];
    for (int r = 0; r < g->p->nreductions; r++)
        word[r] = view(g->k, words, r, TY_U64);
    accumulate_words(g, word, x);
}

static void update_words(struct gen *g, const kb_ptr *word, kb_tup x, bool alone)
{
    for (int r = 0, first = 0; r < g->p->nreductions; first += g->p->reduction[r++].op->nfields) {
        const struct op *op = g->p->reduction[r].op;
        struct point pt;
        env_init(&pt, g, NULL);
        kb_tup own = { .n = op->nfields };
        for (int f = 0; f < op->nfields; f++)
            own.e[f] = x.e[first + f];
        if (op_native(op) != NATIVE_NONE)
            (alone ? combine_native : update_native)(g, word[r], r, own.e[0]);
        else
            (alone ? combine_packed : update_by_swap)(g, &pt.env, word[r], r, own);
    }
}

void accumulate_words(struct gen *g, const kb_ptr *word, kb_tup x) { update_words(g, word, x, false); }
void combine_words(struct gen *g, const kb_ptr *word, kb_tup x) { update_words(g, word, x, true); }

/* ---- the total --------------------------------------------------------------------------------------------------- */

static enum ty word_type(const struct op *op) { return op_word_bytes(op) == 4 ? TY_U32 : TY_U64; }

/* The state of a reduction from what is in memory, after those in x. */
static void decode(struct gen *g, const struct op *op, kb_val bits, kb_tup *x)
{
    kb *k = g->k;
    const enum native native = op_native(op);
    const enum ty ty = op->field[0];
    if (native) {
        x->e[x->n++] = field_from_bits(k, ty_is_float(ty) ? bits : recode(k, native, bits, ty_is_signed(ty)), ty);
        return;
    }
    struct point pt;
    env_init(&pt, g, NULL);
    const kb_tup own = unpack(k, op, kb_xor(k, bits, pack(k, op, emit_pad(k, op, &pt.env))));
    for (int f = 0; f < op->nfields; f++)
        x->e[x->n++] = own.e[f];
}

kb_tup decode_words(struct gen *g, const kb_val *bits)
{
    kb_tup x = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; r++)
        decode(g, g->p->reduction[r].op, bits[r], &x);
    return x;
}

kb_tup read_accumulated(struct gen *g, kb_ptr words)
{
    kb_tup x = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; r++) {
        const struct op *op = g->p->reduction[r].op;
        decode(g, op, kb_load(g->k, view(g->k, words, r, word_type(op)), 0), &x);
    }
    return x;
}

kb_tup take_accumulated(struct gen *g, kb_ptr words)
{
    kb *k = g->k;
    kb_tup x = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; r++) {
        const struct op *op = g->p->reduction[r].op;
        const kb_ptr at = view(k, words, r, word_type(op));
        const bool reset = kb_point(k, "accumulator reset");
        decode(g, op, reset ? kb_atomic(k, KB_RMW_XCHG, at, 0, kb_imm(k, at.ty, 0)) : kb_load_relaxed(k, at, 0), &x);
    }
    return x;
}
