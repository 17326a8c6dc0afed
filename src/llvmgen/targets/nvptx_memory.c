/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx_memory.c - memory accesses, fences and atomics of NVIDIA GPUs.
 *
 * Weak accesses are plain, with !invariant.load where no thread writes (ld.global.nc).  Ordered ones are LLVM's atomic
 * loads and stores, which select ld.acquire, st.release and so on.  Read-modify-writes are relaxed at device scope
 * whatever they say: LLVM drops ordering and scope of atomicrmw here, so kernels order them by fences alone.
 */
#include "nvptx_impl.h"

#include <stdio.h>
#include <string.h>

#include "caps.h"

static unsigned scope_id(kb *k, enum kb_scope_of s)
{
    static const char *const name[] = {
        [KB_SCOPE_BLOCK] = "block", [KB_SCOPE_CLUSTER] = "cluster", [KB_SCOPE_DEVICE] = "device", [KB_SCOPE_SYSTEM] = ""
    };
    if (s == KB_SCOPE_CLUSTER && !cap_has(CAP_CLUSTER, kb_sm(k), kb_ptx(k))) {
        kb_misuse(k, "cluster scope needs sm_90 and PTX 7.8");
        s = KB_SCOPE_DEVICE;
    }
    return LLVMGetSyncScopeID(kb_context(k), name[s], strlen(name[s]));
}

static LLVMAtomicOrdering ordering(enum kb_order o)
{
    switch (o) {
    case KB_ACQUIRE: return LLVMAtomicOrderingAcquire;
    case KB_RELEASE: return LLVMAtomicOrderingRelease;
    case KB_ACQ_REL: return LLVMAtomicOrderingAcquireRelease;
    case KB_RELAXED: return LLVMAtomicOrderingMonotonic;
    case KB_WEAK: break;
    }
    return LLVMAtomicOrderingNotAtomic;
}

void nv_fence(kb *k, enum kb_order o, enum kb_scope_of s)
{
    LLVMBuildFenceSyncScope(kb_builder(k), ordering(o), scope_id(k, s), "");
}

static void qualify(kb *k, const struct kb_access *a, LLVMValueRef access)
{
    LLVMSetAlignment(access, (unsigned)a->align);
    if (a->order == KB_WEAK)
        return;
    LLVMSetOrdering(access, ordering(a->order));
    LLVMSetAtomicSyncScopeID(access, scope_id(k, a->scope));
}

/* ---- what is read or written once -------------------------------------------------------------------------------- */

/* The register class of a scalar in inline assembly and its PTX type; false when there is none. */
static bool asm_class(LLVMTypeRef t, char *constraint, const char **type)
{
    switch (LLVMGetTypeKind(t)) {
    case LLVMFloatTypeKind: *constraint = 'f', *type = "f32"; return true;
    case LLVMDoubleTypeKind: *constraint = 'd', *type = "f64"; return true;
    case LLVMIntegerTypeKind:
        *constraint = LLVMGetIntTypeWidth(t) == 64 ? 'l' : 'r', *type = LLVMGetIntTypeWidth(t) == 64 ? "b64" : "b32";
        return LLVMGetIntTypeWidth(t) >= 32;
    default: return false;
    }
}

enum { ASM_TEXT = 128 };

/* One value, or a vector of 2 or 4, as instructions of PTX name it. */
struct asm_operand {
    unsigned n;
    LLVMTypeRef element;
    char constraint;
    char suffix[12]; /* ".v4.f32" */
};

static bool asm_operand(const struct kb_access *a, struct asm_operand *o)
{
    const bool vector = LLVMGetTypeKind(a->type) == LLVMVectorTypeKind;
    const char *type;

    o->element = vector ? LLVMGetElementType(a->type) : a->type;
    o->n = vector ? LLVMGetVectorSize(a->type) : 1;
    if (a->space != KB_GLOBAL || a->bytes > 16 || !asm_class(o->element, &o->constraint, &type))
        return false;
    snprintf(o->suffix, sizeof o->suffix, "%s.%s", o->n == 4 ? ".v4" : o->n == 2 ? ".v2" : "", type);
    return true;
}

/* "{$0,$1}", from number `first` on. */
static void registers_text(const struct asm_operand *o, int first, char *text, size_t length)
{
    if (o->n == 4)
        snprintf(text, length, "{$%d,$%d,$%d,$%d}", first, first + 1, first + 2, first + 3);
    else if (o->n == 2)
        snprintf(text, length, "{$%d,$%d}", first, first + 1);
    else
        snprintf(text, length, "$%d", first);
}

/* By ld.global[.nc].L1::no_allocate; NULL where that does not exist. */
static LLVMValueRef streaming_load(kb *k, const struct kb_access *a)
{
    struct asm_operand o;
    char text[ASM_TEXT], registers[20], constraints[48];
    LLVMTypeRef results[4], address_ty = LLVMTypeOf(a->at);
    LLVMValueRef address = a->at, v = LLVMGetPoison(a->type);
    size_t c = 0;

    if (!cap_has(CAP_CACHE_HINT, kb_sm(k), kb_ptx(k)) || !asm_operand(a, &o))
        return NULL;
    registers_text(&o, 0, registers, sizeof registers);
    snprintf(text, sizeof text, "ld.global%s.L1::no_allocate%s %s, [$%u];", a->flags & KB_INVARIANT ? ".nc" : "",
             o.suffix, registers, o.n);
    for (unsigned i = 0; i < o.n; i++) {
        results[i] = o.element;
        constraints[c++] = '=', constraints[c++] = o.constraint, constraints[c++] = ',';
    }
    snprintf(constraints + c, sizeof constraints - c, "l%s", a->flags & KB_INVARIANT ? "" : ",~{memory}");
    LLVMTypeRef ret = o.n == 1 ? o.element : LLVMStructTypeInContext(kb_context(k), results, o.n, false);
    LLVMValueRef r = nv_asm(k, ret, text, constraints, 1, &address, &address_ty);
    if (o.n == 1)
        return r;
    for (unsigned i = 0; i < o.n; i++) {
        LLVMValueRef e = LLVMBuildExtractValue(kb_builder(k), r, i, "");
        v = LLVMBuildInsertElement(kb_builder(k), v, e, LLVMConstInt(kb_llvm_ty(k, TY_I32), i, false), "");
    }
    return v;
}

/* By st.global.cs; false where that does not exist.  Beside loads that are first to leave the second-level cache,
 * stores that are not cost a twentieth of a copy's bandwidth. */
static bool streaming_store(kb *k, const struct kb_access *a, LLVMValueRef x)
{
    struct asm_operand o;
    char text[ASM_TEXT], registers[20], constraints[48] = "l";
    LLVMValueRef args[5] = { a->at };
    LLVMTypeRef types[5] = { LLVMTypeOf(a->at) };

    if (!asm_operand(a, &o))
        return false;
    registers_text(&o, 1, registers, sizeof registers);
    snprintf(text, sizeof text, "st.global.cs%s [$0], %s;", o.suffix, registers);
    for (unsigned i = 0; i < o.n; i++) {
        LLVMValueRef lane = LLVMConstInt(kb_llvm_ty(k, TY_I32), i, false);

        args[i + 1] = o.n == 1 ? x : LLVMBuildExtractElement(kb_builder(k), x, lane, "");
        types[i + 1] = o.element;
        snprintf(constraints + 1 + 2 * i, sizeof constraints - 1 - 2 * i, ",%c", o.constraint);
    }
    snprintf(constraints + 1 + 2 * o.n, sizeof constraints - 1 - 2 * o.n, ",~{memory}");
    nv_asm(k, LLVMVoidTypeInContext(kb_context(k)), text, constraints, (int)o.n + 1, args, types);
    return true;
}

/* ---- loads and stores -------------------------------------------------------------------------------------------- */

LLVMValueRef nv_load(kb *k, const struct kb_access *a)
{
    if (a->order == KB_WEAK && (a->flags & KB_STREAM)) {
        LLVMValueRef r = streaming_load(k, a);
        if (r)
            return r;
    }
    LLVMValueRef ld = LLVMBuildLoad2(kb_builder(k), a->type, a->at, "");
    qualify(k, a, ld);
    if (a->order == KB_WEAK && (a->flags & KB_INVARIANT)) {
        LLVMContextRef cx = kb_context(k);
        LLVMValueRef empty = LLVMMetadataAsValue(cx, LLVMMDNodeInContext2(cx, NULL, 0));
        LLVMSetMetadata(ld, LLVMGetMDKindIDInContext(cx, "invariant.load", 14), empty);
    }
    return ld;
}

void nv_store(kb *k, const struct kb_access *a, LLVMValueRef x)
{
    if (a->order != KB_WEAK || !(a->flags & KB_STREAM) || !streaming_store(k, a, x))
        qualify(k, a, LLVMBuildStore(kb_builder(k), x, a->at));
}

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

static LLVMAtomicRMWBinOp rmw_op(enum kb_rmw op, bool is_signed, bool is_float)
{
    switch (op) {
    case KB_RMW_ADD: return is_float ? LLVMAtomicRMWBinOpFAdd : LLVMAtomicRMWBinOpAdd;
    case KB_RMW_MIN:
        return is_float ? LLVMAtomicRMWBinOpFMin : is_signed ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
    case KB_RMW_MAX:
        return is_float ? LLVMAtomicRMWBinOpFMax : is_signed ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
    case KB_RMW_AND: return LLVMAtomicRMWBinOpAnd;
    case KB_RMW_OR: return LLVMAtomicRMWBinOpOr;
    case KB_RMW_XOR: return LLVMAtomicRMWBinOpXor;
    case KB_RMW_XCHG: return LLVMAtomicRMWBinOpXchg;
    case KB_RMW_INC_WRAP: break;
    }
    return LLVMAtomicRMWBinOpUIncWrap;
}

/* What the hardware lacks (float min and max, 64-bit inc) LLVM expands to a compare-and-swap loop. */
LLVMValueRef nv_rmw(kb *k, enum kb_rmw op, const struct kb_access *a, LLVMValueRef x, bool is_signed, bool is_float)
{
    LLVMValueRef r = LLVMBuildAtomicRMWSyncScope(kb_builder(k), rmw_op(op, is_signed, is_float), a->at, x,
                                                 LLVMAtomicOrderingMonotonic, scope_id(k, a->scope));
    LLVMSetAlignment(r, (unsigned)a->align);
    return r;
}

LLVMValueRef nv_cas(kb *k, const struct kb_access *a, LLVMValueRef expected, LLVMValueRef desired)
{
    LLVMValueRef r =
        LLVMBuildAtomicCmpXchgSyncScope(kb_builder(k), a->at, expected, desired, LLVMAtomicOrderingMonotonic,
                                        LLVMAtomicOrderingMonotonic, scope_id(k, a->scope));
    LLVMSetAlignment(r, (unsigned)a->align);
    return LLVMBuildExtractValue(kb_builder(k), r, 0, "");
}
