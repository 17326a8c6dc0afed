/* SPDX-License-Identifier: Apache-2.0 */
/* atomic_state.c - states that many threads update: a word of 4 or 8 bytes per reduction, in global or shared memory; with
 * bins (bins.c) also several words of 8 bytes.
 *
 * What is in memory is encoded so that all bits zero is the neutral element, because that is what control memory begins
 * with and is left at.  Operators with an instruction use it: add, or and xor as they are; the others on a mapping that
 * keeps their order and sends their identity to zero,
 *
 *     and(x) = ~or(~x)     max signed = max unsigned of x with the sign bit flipped     min(x) = ~max(~x)
 *
 * The rest is the fields side by side, exclusive-or'ed with those of the padding element: a word of them in a
 * compare-and-swap loop, and several words while their bin is locked.
 */
#include "llvmgen/shared/gen.h"

#include "lower/reduce/bins.h"

#include <string.h>

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

/* All fields of a state in words, op_words() of them. */
static void pack(kb *k, const struct op *op, kb_tup x, kb_val *word)
{
    for (int w = 0; w < op_words(op); w++)
        word[w] = kb_imm(k, op_word_bytes(op) == 4 ? TY_U32 : TY_U64, 0);
    for (int f = 0, at; f < op->nfields; f++) {
        kb_val *own = &word[op_field_word(op, f, &at)];
        *own = kb_or(k, *own, kb_shl(k, kb_cast(k, field_bits(k, x.e[f]), own->ty), at));
    }
}

static kb_tup unpack(kb *k, const struct op *op, const kb_val *word)
{
    static const enum ty word_of[] = { [1] = TY_U8, [2] = TY_U32, [4] = TY_U32, [8] = TY_U64 };
    kb_tup x = { .n = op->nfields };
    for (int f = 0, at; f < op->nfields; f++) {
        const kb_val own = word[op_field_word(op, f, &at)];
        x.e[f] = field_from_bits(k, kb_cast(k, kb_shr(k, own, at), word_of[ty_bytes(op->field[f])]), op->field[f]);
    }
    return x;
}

/* Between the words of a state and what is in memory for them; their own inverse. */
static void with_pad(kb *k, const struct op *op, struct emit_env *env, kb_val *word)
{
    kb_val pad[STATE_FIELDS_MAX];
    pack(k, op, emit_pad(k, op, env), pad);
    for (int w = 0; w < op_words(op); w++)
        word[w] = kb_xor(k, word[w], pad[w]);
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
static void not_zero(struct gen *g, const struct op *op, kb_val *word)
{
    kb *k = g->k;
    kb_val any = word[0];
    if (!g->p->nby || !op->pad[0] || expr_equal(op->pad[0], op->identity[0]))
        return;
    for (int w = 1; w < op_words(op); w++)
        any = kb_or(k, any, word[w]);
    word[0] = kb_select(k, kb_eq(k, any, 0), kb_imm(k, any.ty, 1), word[0]);
}

/* `word`, what is in memory, after x. */
static void combine_in_memory(struct gen *g, int r, struct emit_env *env, kb_val *word, kb_tup x)
{
    kb *k = g->k;
    const struct op *op = g->p->reduction[r].op;
    with_pad(k, op, env, word);
    pack(k, op, emit_combine(k, op, env, unpack(k, op, word), x), word);
    with_pad(k, op, env, word);
    not_zero(g, op, word);
}

static void update_by_swap(struct gen *g, struct emit_env *env, kb_ptr word, int r, kb_tup x)
{
    kb *k = g->k;
    const kb_val zero = kb_imm(k, TY_I32, 0);
    word.ty = op_word_bytes(g->p->reduction[r].op) == 4 ? TY_U32 : TY_U64;
    kb_var old = kb_var_new(k, kb_load_relaxed(k, word, zero), "old");
    kb_loop(k) {
        const kb_val seen = kb_get(k, old);
        kb_val own = seen;
        combine_in_memory(g, r, env, &own, x);
        LET(got, kb_cas(k, word, zero, seen, own));
        kb_break_if(k, kb_eq(k, got, seen));
        kb_set(k, old, got);
    }
}

/* Without atomic operations: other threads keep away.  held: they kept away by a lock of the words, and those in shared
 * memory are relaxed because nothing else orders threads of a block there. */
static void combine_packed(struct gen *g, struct emit_env *env, const kb_ptr *word, int r, kb_tup x, bool held)
{
    kb *k = g->k;
    const int words = op_words(g->p->reduction[r].op);
    const bool relaxed = held && word[0].space == KB_SHARED;
    kb_val own[STATE_FIELDS_MAX];
    for (int w = 0; w < words; w++)
        own[w] = relaxed ? kb_load_relaxed(k, word[w], 0) : kb_load(k, word[w], 0);
    combine_in_memory(g, r, env, own, x);
    for (int w = 0; w < words; w++)
        if (relaxed)
            kb_store_relaxed(k, word[w], 0, own[w]);
        else
            kb_store(k, word[w], 0, own[w]);
}

/* The fields of reduction r; *first: its first one, and then the next reduction's. */
static kb_tup own_fields(const struct gen *g, int r, kb_tup x, int *first)
{
    kb_tup own = { .n = g->p->reduction[r].op->nfields };
    for (int f = 0; f < own.n; f++)
        own.e[f] = x.e[(*first)++];
    return own;
}

/* The states of several words, where `lock` is this thread's: what others did before becomes visible, and then what this
 * thread does. */
static void update_held(struct gen *g, const kb_ptr *word, kb_ptr lock, kb_tup x)
{
    kb *k = g->k;
    const enum kb_scope_of scope = lock.space == KB_SHARED ? KB_SCOPE_BLOCK : KB_SCOPE_DEVICE;
    struct point pt;
    env_init(&pt, g, NULL);
    kb_fence(k, KB_ACQUIRE, scope);
    for (int r = 0, first = 0, w = 0; r < g->p->nreductions; w += op_words(g->p->reduction[r++].op)) {
        const kb_tup own = own_fields(g, r, x, &first);
        if (op_words(g->p->reduction[r].op) > 1)
            combine_packed(g, &pt.env, &word[w], r, own, true);
    }
    kb_fence(k, KB_RELEASE, scope);
    kb_store_relaxed(k, lock, 0, kb_imm(k, lock.ty, 0));
}

/* Lanes of a warp may wait for each other here: those that are through stay until all are, so that the warp does not
 * leave the one behind that holds the lock. */
static void update_locked(struct gen *g, const kb_ptr *word, kb_ptr lock, kb_tup x)
{
    kb *k = g->k;
    kb_var done = kb_var_new(k, kb_false(k), "done");
    kb_loop(k) {
        kb_if(k, kb_not(k, kb_get(k, done))) {
            LET(held, kb_cas(k, lock, kb_imm(k, TY_I32, 0), kb_imm(k, lock.ty, 0), kb_imm(k, lock.ty, 1)));
            kb_if(k, kb_eq(k, held, 0)) {
                update_held(g, word, lock, x);
                kb_set(k, done, kb_true(k));
            }
        }
        kb_break_if(k, kb_all_here(k, kb_get(k, done)));
        kb_backoff(k, 0);
    }
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
    int w = 0;
    for (int r = 0, first = 0; r < g->p->nreductions; w += op_words(g->p->reduction[r++].op)) {
        const struct op *op = g->p->reduction[r].op;
        const kb_tup own = own_fields(g, r, x, &first);
        struct point pt;
        env_init(&pt, g, NULL);
        if (op_native(op) != NATIVE_NONE)
            (alone ? combine_native : update_native)(g, word[w], r, own.e[0]);
        else if (alone)
            combine_packed(g, &pt.env, &word[w], r, own, false);
        else if (op_words(op) == 1)
            update_by_swap(g, &pt.env, word[w], r, own);
    }
    if (!alone && bins_locked(g->p))
        update_locked(g, word, word[w], x);
}

void accumulate_words(struct gen *g, const kb_ptr *word, kb_tup x) { update_words(g, word, x, false); }
void combine_words(struct gen *g, const kb_ptr *word, kb_tup x) { update_words(g, word, x, true); }

/* ---- the total --------------------------------------------------------------------------------------------------- */

static enum ty word_type(const struct op *op) { return op_word_bytes(op) == 4 ? TY_U32 : TY_U64; }

/* The state of a reduction from what is in memory, after those in x. */
static void decode(struct gen *g, const struct op *op, const kb_val *bits, kb_tup *x)
{
    kb *k = g->k;
    const enum native native = op_native(op);
    const enum ty ty = op->field[0];
    kb_val word[STATE_FIELDS_MAX];
    if (native) {
        x->e[x->n++] = field_from_bits(k, ty_is_float(ty) ? *bits : recode(k, native, *bits, ty_is_signed(ty)), ty);
        return;
    }
    struct point pt;
    env_init(&pt, g, NULL);
    memcpy(word, bits, (size_t)op_words(op) * sizeof *word);
    with_pad(k, op, &pt.env, word);
    const kb_tup own = unpack(k, op, word);
    for (int f = 0; f < op->nfields; f++)
        x->e[x->n++] = own.e[f];
}

kb_tup decode_words(struct gen *g, const kb_val *bits)
{
    kb_tup x = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; bits += op_words(g->p->reduction[r++].op))
        decode(g, g->p->reduction[r].op, bits, &x);
    return x;
}

void encode_words(struct gen *g, kb_tup x, kb_val *word)
{
    kb *k = g->k;
    struct point pt;
    env_init(&pt, g, NULL);
    for (int r = 0, first = 0; r < g->p->nreductions; word += op_words(g->p->reduction[r++].op)) {
        const struct op *op = g->p->reduction[r].op;
        const kb_tup own = own_fields(g, r, x, &first);
        const enum native native = op_native(op);
        if (native) {
            const kb_val bits = field_bits(k, own.e[0]);
            *word = ty_is_float(op->field[0]) ? bits : recode(k, native, bits, ty_is_signed(op->field[0]));
            continue;
        }
        pack(k, op, own, word);
        with_pad(k, op, &pt.env, word);
        not_zero(g, op, word);
    }
}

kb_tup read_accumulated(struct gen *g, kb_ptr words)
{
    kb_tup x = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; r++) {
        const struct op *op = g->p->reduction[r].op;
        const kb_val bits = kb_load(g->k, view(g->k, words, r, word_type(op)), 0);
        decode(g, op, &bits, &x);
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
        const kb_val bits = reset ? kb_atomic(k, KB_RMW_XCHG, at, 0, kb_imm(k, at.ty, 0)) : kb_load_relaxed(k, at, 0);
        decode(g, op, &bits, &x);
    }
    return x;
}
