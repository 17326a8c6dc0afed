/* SPDX-License-Identifier: Apache-2.0 */
/* kb_memory.c - addresses, loads and stores, vectors, atomics, shared memory.
 *
 * Every access goes to the target as one struct kb_access.  Runs of elements are moved by the widest vectors that their
 * alignment allows, up to 16 bytes.  Elements smaller than a word travel in 32-bit words and are taken apart in
 * registers, since vectors of bytes cost a shuffle per element.
 */
#include "kb_impl.h"

enum { VECTOR_BYTES = 16, WORD_BYTES = 4, SHARED_ALIGN = 16 };

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* Indices are taken as signed 64-bit by the address arithmetic; what is not that already is extended by its own sign. */
static LLVMValueRef index_value(kb *k, kb_val i)
{
    if (!ty_is_int(i.ty)) {
        kb_misuse(k, "index of type %s", ty_name(i.ty));
        return LLVMConstNull(k->ty[TY_I32]);
    }
    if (i.ty == TY_I32 || ty_bits(i.ty) == 64)
        return i.ir;
    return LLVMBuildIntCast2(k->b, i.ir, k->ty[TY_I64], ty_is_signed(i.ty), "");
}

static LLVMValueRef element(kb *k, kb_ptr p, kb_val i)
{
    int64_t known;
    kb_ready(k);
    if (kb_is_const(i, &known) && known == 0)
        return p.ir;
    LLVMValueRef index = index_value(k, i);
    return LLVMBuildInBoundsGEP2(k->b, kb_memory_ty(k, p.ty), p.ir, &index, 1, "");
}

static LLVMValueRef byte_offset(kb *k, LLVMValueRef at, int offset)
{
    if (offset == 0)
        return at;
    LLVMValueRef index = LLVMConstInt(k->ty[TY_I32], (unsigned long long)offset, false);
    return LLVMBuildInBoundsGEP2(k->b, kb_int_ty(k, 8), at, &index, 1, "");
}

kb_ptr kb_advance(kb *k, kb_ptr p, kb_val i)
{
    p.ir = element(k, p, i);
    p.uni = kb_uni_max(p.uni, i.uni);
    return p;
}

kb_val kb_address(kb *k, kb_ptr p)
{
    kb_ready(k);
    return kb_make(LLVMBuildPtrToInt(k->b, p.ir, kb_llvm_ty(k, TY_I64), ""), TY_I64, p.uni);
}

/* In a dependent kernel nothing is invariant: what the previous one still writes must not be loaded before the wait,
 * which an invariant load may be. */
static struct kb_access access_to(kb *k, kb_ptr p, LLVMValueRef at, LLVMTypeRef type, int bytes, int align)
{
    if (k->dependent)
        p.flags &= (unsigned char)~KB_INVARIANT;
    return (struct kb_access){ .at = at,
                               .type = type,
                               .bytes = bytes,
                               .align = align,
                               .space = p.space,
                               .order = KB_WEAK,
                               .scope = KB_SCOPE_BLOCK,
                               .flags = p.flags,
                               .name = p.name };
}

static struct kb_access scalar_access(kb *k, kb_ptr p, kb_val i)
{
    const int bytes = ty_bytes(p.ty);
    return access_to(k, p, element(k, p, i), kb_memory_ty(k, p.ty), bytes, bytes);
}

/* ---- one element ------------------------------------------------------------------------------------------------- */

/* bool: a byte in memory, a bit in registers. */
static LLVMValueRef from_memory(kb *k, enum ty ty, LLVMValueRef x)
{
    return ty == TY_BOOL ? LLVMBuildICmp(k->b, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)), "") : x;
}
static LLVMValueRef to_memory(kb *k, enum ty ty, LLVMValueRef x)
{
    return ty == TY_BOOL ? LLVMBuildZExt(k->b, x, kb_int_ty(k, 8), "") : x;
}

static bool same_type(kb *k, kb_ptr p, kb_val x)
{
    if (p.ty != x.ty)
        kb_misuse(k, "value of type %s stored to %s of type %s", ty_name(x.ty), p.name ? p.name : "memory",
                  ty_name(p.ty));
    return p.ty == x.ty;
}

kb_val kb_load_v(kb *k, kb_ptr p, kb_val i)
{
    const struct kb_access a = scalar_access(k, p, i);
    return kb_make(from_memory(k, p.ty, k->target->load(k, &a)), p.ty, kb_uni_max(p.uni, i.uni));
}

void kb_store_v(kb *k, kb_ptr p, kb_val i, kb_val x)
{
    if (!same_type(k, p, x))
        return;
    const struct kb_access a = scalar_access(k, p, i);
    k->target->store(k, &a, to_memory(k, p.ty, x.ir));
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Bytes of the next access: a power of two that does not pass the end.  Accesses only get smaller along a run, so that
 * each lies at a multiple of its size. */
static int chunk_bytes(int offset, int bytes, int align)
{
    int chunk = align < VECTOR_BYTES ? align : VECTOR_BYTES;
    while (offset + chunk > bytes)
        chunk /= 2;
    return chunk;
}

static LLVMTypeRef chunk_type(LLVMTypeRef element, int bytes, int chunk)
{
    return chunk == bytes ? element : LLVMVectorType(element, (unsigned)(chunk / bytes));
}

static LLVMValueRef lane_number(kb *k, int i) { return LLVMConstInt(k->ty[TY_I32], (unsigned long long)i, false); }

/* Lane i of a vector; what was put there, where that is seen. */
static LLVMValueRef part(kb *k, LLVMValueRef x, int i, int n)
{
    if (n == 1)
        return x;
    for (LLVMValueRef v = x; LLVMIsAInsertElementInst(v); v = LLVMGetOperand(v, 0))
        if (LLVMConstIntGetZExtValue(LLVMGetOperand(v, 2)) == (unsigned long long)i)
            return LLVMGetOperand(v, 1);
    return LLVMBuildExtractElement(k->b, x, lane_number(k, i), "");
}

static LLVMValueRef shift_left(kb *k, LLVMValueRef x, int bits)
{
    return bits ? LLVMBuildShl(k->b, x, lane_number(k, bits), "") : x;
}

/* Words of memory [at, at + bytes); what is not a whole word is gathered from smaller pieces. */
static void load_words(kb *k, kb_ptr p, LLVMValueRef at, int bytes, int align, LLVMValueRef *word)
{
    LLVMTypeRef i32 = k->ty[TY_U32];
    for (int o = 0, chunk; o < bytes; o += chunk) {
        chunk = chunk_bytes(o, bytes, align);
        const int unit = chunk < WORD_BYTES ? chunk : WORD_BYTES;
        LLVMTypeRef type = chunk_type(kb_int_ty(k, 8 * unit), unit, chunk);
        const struct kb_access a = access_to(k, p, byte_offset(k, at, o), type, chunk, chunk);
        LLVMValueRef x = k->target->load(k, &a);
        if (unit == WORD_BYTES) {
            for (int i = 0; i < chunk / WORD_BYTES; i++)
                word[o / WORD_BYTES + i] = part(k, x, i, chunk / WORD_BYTES);
            continue;
        }
        LLVMValueRef piece = shift_left(k, LLVMBuildZExt(k->b, x, i32, ""), 8 * (o % WORD_BYTES));
        LLVMValueRef *w = &word[o / WORD_BYTES];
        *w = o % WORD_BYTES ? LLVMBuildOr(k->b, *w, piece, "") : piece;
    }
}

void kb_load_words(kb *k, kb_ptr p, kb_val byte_index, int bytes, int align, kb_val *word)
{
    enum { WORDS_MAX = 64 };
    LLVMValueRef ir[WORDS_MAX];
    if (bytes > WORDS_MAX * WORD_BYTES || bytes < 1) {
        kb_misuse(k, "%d bytes at once", bytes);
        return;
    }
    kb_ptr bytewise = p;
    bytewise.ty = TY_U8;
    load_words(k, p, element(k, bytewise, byte_index), bytes, align, ir);
    for (int i = 0; i < (bytes + WORD_BYTES - 1) / WORD_BYTES; i++)
        word[i] = kb_make(ir[i], TY_U32, kb_uni_max(p.uni, byte_index.uni));
}

kb_val kb_extract(kb *k, const kb_val *word, int offset, enum ty ty)
{
    const int bytes = ty_bytes(ty), at = offset % WORD_BYTES;
    const kb_val w = word[offset / WORD_BYTES];
    LLVMValueRef x = w.ir;
    kb_ready(k);
    if (at + (bytes < WORD_BYTES ? bytes : WORD_BYTES) > WORD_BYTES) {
        kb_misuse(k, "a field of type %s at byte %d crosses a word", ty_name(ty), offset);
        return kb_imm(k, ty, 0);
    }
    if (bytes == 8) {
        LLVMValueRef both = LLVMGetPoison(LLVMVectorType(k->ty[TY_U32], 2));
        both = LLVMBuildInsertElement(k->b, both, x, lane_number(k, 0), "");
        x = LLVMBuildInsertElement(k->b, both, word[offset / WORD_BYTES + 1].ir, lane_number(k, 1), "");
    } else if (bytes < WORD_BYTES) {
        if (at)
            x = LLVMBuildLShr(k->b, x, lane_number(k, 8 * at), "");
        x = LLVMBuildTrunc(k->b, x, kb_int_ty(k, 8 * bytes), "");
    }
    if (ty != TY_BOOL)
        return kb_make(LLVMBuildBitCast(k->b, x, k->ty[ty], ""), ty, w.uni);
    return kb_make(from_memory(k, ty, x), ty, w.uni);
}

/* ---- runs of elements -------------------------------------------------------------------------------------------- */

/* Elements of a word or more, in vectors of their own type. */
static void load_wide(kb *k, kb_ptr p, LLVMValueRef at, int n, int align, kb_uni uni, kb_val *out)
{
    const int bytes = ty_bytes(p.ty);
    for (int o = 0, chunk; o < n * bytes; o += chunk) {
        chunk = chunk_bytes(o, n * bytes, align);
        const struct kb_access a =
            access_to(k, p, byte_offset(k, at, o), chunk_type(k->ty[p.ty], bytes, chunk), chunk, chunk);
        LLVMValueRef x = k->target->load(k, &a);
        for (int i = 0; i < chunk / bytes; i++)
            out[o / bytes + i] = kb_make(part(k, x, i, chunk / bytes), p.ty, uni);
    }
}

void kb_load_n(kb *k, kb_ptr p, kb_val i, int n, int align, kb_val *out)
{
    enum { PER_WORDS = VECTOR_BYTES };
    const int bytes = ty_bytes(p.ty);
    const kb_uni uni = kb_uni_max(p.uni, i.uni);
    LLVMValueRef at = element(k, p, i);
    if (align < bytes)
        align = bytes;
    if (bytes >= WORD_BYTES) {
        load_wide(k, p, at, n, align, uni, out);
        return;
    }
    for (int done = 0; done < n;) { /* a vector's worth of words at a time */
        LLVMValueRef ir[VECTOR_BYTES / WORD_BYTES];
        kb_val word[VECTOR_BYTES / WORD_BYTES];
        const int count = n - done < PER_WORDS / bytes ? n - done : PER_WORDS / bytes;
        load_words(k, p, byte_offset(k, at, done * bytes), count * bytes, align, ir);
        for (int w = 0; w < (count * bytes + WORD_BYTES - 1) / WORD_BYTES; w++)
            word[w] = kb_make(ir[w], TY_U32, uni);
        for (int j = 0; j < count; j++)
            out[done + j] = kb_extract(k, word, j * bytes, p.ty);
        done += count;
    }
}

/* Small elements as one integer of `bytes` bytes; a vector's bits are what the hardware's byte permutation makes best. */
static LLVMValueRef pack(kb *k, enum ty ty, const kb_val *x, int bytes)
{
    const int each = ty_bytes(ty), n = bytes / each;
    LLVMTypeRef unit = kb_int_ty(k, 8 * each);
    LLVMValueRef v = LLVMGetPoison(LLVMVectorType(unit, (unsigned)n));
    for (int j = 0; j < n; j++) {
        LLVMValueRef raw = LLVMBuildBitCast(k->b, to_memory(k, ty, x[j].ir), unit, "");
        if (n == 1)
            return raw;
        v = LLVMBuildInsertElement(k->b, v, raw, lane_number(k, j), "");
    }
    return LLVMBuildBitCast(k->b, v, kb_int_ty(k, 8 * bytes), "");
}

/* The value of one access that covers x[0 … chunk / size). */
static LLVMValueRef chunk_value(kb *k, enum ty ty, const kb_val *x, LLVMTypeRef unit_type, int unit, int chunk)
{
    const int each = ty_bytes(ty), per = unit / each;
    if (chunk == unit)
        return each < WORD_BYTES ? pack(k, ty, x, unit) : x[0].ir;
    LLVMValueRef v = LLVMGetPoison(chunk_type(unit_type, unit, chunk));
    for (int i = 0; i < chunk / unit; i++) {
        LLVMValueRef e = each < WORD_BYTES ? pack(k, ty, x + (ptrdiff_t)i * per, unit) : x[i].ir;
        v = LLVMBuildInsertElement(k->b, v, e, lane_number(k, i), "");
    }
    return v;
}

void kb_store_n(kb *k, kb_ptr p, kb_val i, int n, int align, const kb_val *x)
{
    const int each = ty_bytes(p.ty);
    LLVMValueRef at = element(k, p, i);
    if (align < each)
        align = each;
    for (int j = 0; j < n; j++)
        if (!same_type(k, p, x[j]))
            return;
    for (int o = 0, chunk; o < n * each; o += chunk) {
        chunk = chunk_bytes(o, n * each, align);
        const int unit = each >= WORD_BYTES ? each : chunk < WORD_BYTES ? chunk : WORD_BYTES;
        LLVMTypeRef unit_type = each >= WORD_BYTES ? k->ty[p.ty] : kb_int_ty(k, 8 * unit);
        const struct kb_access a =
            access_to(k, p, byte_offset(k, at, o), chunk_type(unit_type, unit, chunk), chunk, chunk);
        k->target->store(k, &a, chunk_value(k, p.ty, x + o / each, unit_type, unit, chunk));
    }
}

/* ---- order and atomicity ----------------------------------------------------------------------------------------- */

static bool ordered_type(kb *k, kb_ptr p, int least)
{
    if (ty_bytes(p.ty) < least)
        kb_misuse(k, "ordered access to %s of type %s", p.name ? p.name : "memory", ty_name(p.ty));
    return ty_bytes(p.ty) >= least;
}

/* Loads acquire, stores release. */
static bool order_fits(kb *k, enum kb_order o, enum kb_order strongest, const char *file, int line)
{
    const bool fits = o == KB_RELAXED || o == strongest;
    if (!fits)
        kb_misuse(k, "%s:%d: an access cannot have this order", kb_file_name(file), line);
    return fits;
}

static struct kb_access ordered_access(kb *k, kb_ptr p, kb_val i, enum kb_order o, enum kb_scope_of s)
{
    struct kb_access a = scalar_access(k, p, i);
    a.order = o;
    a.scope = s;
    a.flags = 0; /* somebody writes it: neither invariant nor read once */
    return a;
}

kb_val kb_load_order(kb *k, kb_ptr p, kb_val i, enum kb_order o, enum kb_scope_of s, const char *file, int line)
{
    if (!ordered_type(k, p, o == KB_RELAXED ? 1 : 4) || !order_fits(k, o, KB_ACQUIRE, file, line))
        return kb_imm(k, p.ty, 0);
    if (o == KB_ACQUIRE && kb_omit(k, "acquire load", file, line))
        o = KB_RELAXED;
    const struct kb_access a = ordered_access(k, p, i, o, s);
    return kb_make(k->target->load(k, &a), p.ty, KB_DIVERGENT);
}

void kb_store_order(kb *k, kb_ptr p, kb_val i, kb_val x, enum kb_order o, enum kb_scope_of s, const char *file,
                    int line)
{
    if (!ordered_type(k, p, 4) || !same_type(k, p, x) || !order_fits(k, o, KB_RELEASE, file, line))
        return;
    if (o == KB_RELEASE && kb_omit(k, "release store", file, line))
        o = KB_RELAXED;
    const struct kb_access a = ordered_access(k, p, i, o, s);
    k->target->store(k, &a, x.ir);
}

kb_val kb_atomic_v(kb *k, enum kb_rmw op, kb_ptr p, kb_val i, kb_val x)
{
    const bool bitwise = op == KB_RMW_AND || op == KB_RMW_OR || op == KB_RMW_XOR;
    const bool bad = !ordered_type(k, p, 4) || !same_type(k, p, x) || (op == KB_RMW_INC_WRAP && ty_kind(p.ty) != 'u') ||
                     (bitwise && ty_is_float(p.ty));
    if (bad) {
        kb_misuse(k, "atomic operation %d on type %s", (int)op, ty_name(p.ty));
        return kb_imm(k, p.ty, 0);
    }
    const struct kb_access a = ordered_access(k, p, i, KB_RELAXED, KB_SCOPE_DEVICE);
    return kb_make(k->target->rmw(k, op, &a, x.ir, ty_is_signed(p.ty), ty_is_float(p.ty)), p.ty, KB_DIVERGENT);
}

kb_val kb_cas(kb *k, kb_ptr p, kb_val i, kb_val expected, kb_val desired)
{
    if (!ordered_type(k, p, 1) || !ty_is_int(p.ty) || !same_type(k, p, expected) || !same_type(k, p, desired)) {
        kb_misuse(k, "compare-and-swap on type %s", ty_name(p.ty));
        return kb_imm(k, p.ty, 0);
    }
    const struct kb_access a = ordered_access(k, p, i, KB_RELAXED, KB_SCOPE_DEVICE);
    return kb_make(k->target->cas(k, &a, expected.ir, desired.ir), p.ty, KB_DIVERGENT);
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

/* All arrays of a kernel lie in one arena; their addresses are made in the entry block, so that they hold everywhere. */
kb_ptr kb_shared_v(kb *k, enum ty ty, int count, const char *name)
{
    LLVMBuilderRef saved = kb_enter_entry(k);
    if (!k->shared)
        k->shared = k->target->shared_base(k);
    const int offset = (k->shared_bytes + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
    k->shared_bytes = offset + count * ty_bytes(ty);
    kb_ptr p = { byte_offset(k, k->shared, offset), ty, KB_SHARED, KB_UNI_BLOCK, 0, name };
    kb_leave_entry(k, saved);
    return p;
}

kb_arr kb_shared(kb *k, int nfields, const enum ty *field, int count, const char *name)
{
    kb_arr a = { .n = nfields };
    for (int i = 0; i < nfields; i++)
        a.e[i] = kb_shared_v(k, field[i], count, name);
    return a;
}
