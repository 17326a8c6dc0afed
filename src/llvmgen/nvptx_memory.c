/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx_memory.c - memory accesses, fences and atomics of NVIDIA GPUs.
 *
 * Weak accesses are plain, with !invariant.load where nobody writes (ld.global.nc).  Ordered ones are LLVM's atomic
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

/* ---- loads that leave the first-level cache alone ---------------------------------------------------------------- */

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

/* One value or a vector of 2 or 4 by ld.global[.nc].L1::no_allocate; NULL where that does not exist. */
static LLVMValueRef streaming_load(kb *k, const struct kb_access *a)
{
    char text[128], constraints[48];
    char constraint;
    const char *type;
    const bool vector = LLVMGetTypeKind(a->type) == LLVMVectorTypeKind;
    LLVMTypeRef element = vector ? LLVMGetElementType(a->type) : a->type;
    const unsigned n = vector ? LLVMGetVectorSize(a->type) : 1;
    if (!cap_has(CAP_CACHE_HINT, kb_sm(k), kb_ptx(k)) || a->space != KB_GLOBAL || a->bytes > 16 ||
        !asm_class(element, &constraint, &type))
        return NULL;
    int at = snprintf(text, sizeof text, "ld.global%s.L1::no_allocate%s.%s ", a->flags & KB_INVARIANT ? ".nc" : "",
                      n == 4   ? ".v4"
                      : n == 2 ? ".v2"
                               : "",
                      type);
    at += snprintf(text + at, sizeof text - (size_t)at, "%s", n == 4 ? "{$0,$1,$2,$3}" : n == 2 ? "{$0,$1}" : "$0");
    snprintf(text + at, sizeof text - (size_t)at, ", [$%u];", n);
    size_t c = 0;
    LLVMTypeRef results[4];
    for (unsigned i = 0; i < n; i++) {
        results[i] = element;
        constraints[c++] = '=', constraints[c++] = constraint, constraints[c++] = ',';
    }
    snprintf(constraints + c, sizeof constraints - c, "l%s", a->flags & KB_INVARIANT ? "" : ",~{memory}");
    LLVMTypeRef ret = n == 1 ? element : LLVMStructTypeInContext(kb_context(k), results, n, false);
    LLVMTypeRef address_ty = LLVMTypeOf(a->at);
    LLVMValueRef address = a->at;
    LLVMValueRef r = nv_asm(k, ret, text, constraints, 1, &address, &address_ty);
    if (!vector)
        return r;
    LLVMValueRef v = LLVMGetPoison(a->type);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef e = LLVMBuildExtractValue(kb_builder(k), r, i, "");
        v = LLVMBuildInsertElement(kb_builder(k), v, e, LLVMConstInt(kb_llvm_ty(k, TY_I32), i, false), "");
    }
    return v;
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
