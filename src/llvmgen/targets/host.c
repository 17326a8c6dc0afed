/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - the kernel builder's target hooks for the host executor.
 *
 * Threads are fibers and everything that involves more than one of them is a call into simt/simt_rt.h.  A memory access
 * is a call that checks it and answers with the address to use, then a plain instruction: fibers of one executor run on
 * one OS thread, so that neither atomics nor fences are needed in the code itself.  Every mode of the executor lives
 * behind those calls; the code does not depend on them.
 *
 * Address spaces: the builder's pointers keep their NVPTX numbers where it uses them (this machine's code generator
 * treats them all as flat memory); the runtime takes and gives plain pointers.
 */
#include "llvmgen/builder/kb_target.h"

#include <stdio.h>
#include <string.h>

#include "frontend/expr/expr.h"
#include "simt/simt_rt.h"

/* ---- shorthand ------------------------------------------------------------------------------- */
static LLVMTypeRef type_i32(kb *k) { return LLVMInt32TypeInContext(kb_context(k)); }
static LLVMTypeRef type_ptr(kb *k) { return LLVMPointerTypeInContext(kb_context(k), 0); }
static LLVMTypeRef type_void(kb *k) { return LLVMVoidTypeInContext(kb_context(k)); }
static LLVMValueRef i32(kb *k, uint32_t x) { return LLVMConstInt(type_i32(k), x, 0); }

/* A pointer of any space as address space `space`.  By way of an integer: fast instruction selection knows no cast
 * between spaces, and would leave the rest of the block to the slow one. */
static LLVMValueRef as_space(kb *k, LLVMValueRef pointer, unsigned space)
{
    if (LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == space)
        return pointer;
    LLVMValueRef address = LLVMBuildPtrToInt(kb_builder(k), pointer, LLVMInt64TypeInContext(kb_context(k)), "");
    return LLVMBuildIntToPtr(kb_builder(k), address, LLVMPointerTypeInContext(kb_context(k), space), "");
}

/* A constant text of the module; equal texts are one object. */
static LLVMValueRef text(kb *k, const char *s)
{
    if (!s)
        return LLVMConstNull(type_ptr(k));
    char name[200];
    snprintf(name, sizeof name, "text:%s", s);
    LLVMValueRef global = LLVMGetNamedGlobal(kb_module(k), name);
    if (global)
        return global;
    const LLVMValueRef chars = LLVMConstStringInContext2(kb_context(k), s, strlen(s), false);
    global = LLVMAddGlobal(kb_module(k), LLVMTypeOf(chars), name);
    LLVMSetInitializer(global, chars);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(global, true);
    return global;
}

/* The ordering point that kb.c has just counted, "file:line: what", without folders. */
static LLVMValueRef site(kb *k)
{
    const char *s = kb_point_text(k, kb_points(k));
    if (!s)
        return text(k, NULL);
    const char *slash = strrchr(s, '/');
    return text(k, slash ? slash + 1 : s);
}

/* ---- kernels and registers ------------------------------------------------------------------- */
static void host_kernel(kb *k, int threads, int cluster, int min_blocks)
{
    (void)threads, (void)cluster, (void)min_blocks; /* the executor has them from the plan */
    LLVMSetFunctionCallConv(kb_function(k), LLVMCCallConv);
}

static LLVMValueRef host_shared_base(kb *k)
{
    return as_space(k, kb_call(k, "simt_shared", type_ptr(k), 0, NULL, false), KB_SHARED);
}

static void host_shared_done(kb *k, int bytes)
{
    (void)k, (void)bytes; /* the executor allocates what the program's kernel says */
}

static LLVMValueRef host_sreg(kb *k, enum kb_sreg which)
{
    static const char *const name[KB_SREG_COUNT] = {
        [KB_SREG_TID] = "simt_tid",
        [KB_SREG_BLOCK] = "simt_block",
        [KB_SREG_BLOCKS] = "simt_blocks",
        [KB_SREG_CLUSTER_RANK] = "simt_cluster_rank",
    };
    return kb_call(k, name[which], type_i32(k), 0, NULL, false);
}

/* ---- warp and block -------------------------------------------------------------------------- */
static LLVMValueRef host_shfl(kb *k, int mode, LLVMValueRef word, LLVMValueRef arg, int width)
{
    static const uint32_t modes[] = {
        [KB_SHFL_IDX] = SIMT_SHFL_IDX,
        [KB_SHFL_UP] = SIMT_SHFL_UP,
        [KB_SHFL_DOWN] = SIMT_SHFL_DOWN,
        [KB_SHFL_XOR] = SIMT_SHFL_XOR,
    };
    return kb_call(k, "simt_shfl", type_i32(k), 4,
                   (LLVMValueRef[]){ i32(k, modes[mode]), word, arg, i32(k, (uint32_t)width) }, true);
}

static LLVMValueRef host_vote(kb *k, enum kb_vote mode, LLVMValueRef pred)
{
    static const uint32_t modes[] = {
        [KB_VOTE_ANY] = SIMT_VOTE_ANY,
        [KB_VOTE_ALL] = SIMT_VOTE_ALL,
        [KB_VOTE_BALLOT] = SIMT_VOTE_BALLOT,
        [KB_VOTE_MATCH] = SIMT_VOTE_MATCH,
    };
    if (mode == KB_VOTE_HERE)
        return pred; /* each thread is at a place by itself */
    LLVMValueRef wide = mode == KB_VOTE_MATCH ? pred : LLVMBuildZExt(kb_builder(k), pred, type_i32(k), "");
    LLVMValueRef r = kb_call(k, "simt_vote", type_i32(k), 2, (LLVMValueRef[]){ i32(k, modes[mode]), wide }, true);
    return mode >= KB_VOTE_BALLOT ? r : LLVMBuildICmp(kb_builder(k), LLVMIntNE, r, i32(k, 0), "");
}

static LLVMValueRef host_redux(kb *k, enum kb_rmw op, LLVMValueRef x, bool is_signed)
{
    static const uint32_t ops[] = {
        [KB_RMW_ADD] = SIMT_REDUX_ADD, [KB_RMW_MIN] = SIMT_REDUX_MIN, [KB_RMW_MAX] = SIMT_REDUX_MAX,
        [KB_RMW_AND] = SIMT_REDUX_AND, [KB_RMW_OR] = SIMT_REDUX_OR,   [KB_RMW_XOR] = SIMT_REDUX_XOR,
    };
    return kb_call(k, "simt_redux", type_i32(k), 3, (LLVMValueRef[]){ i32(k, ops[op]), i32(k, is_signed), x }, true);
}

/* A call of a function of the executor. */
static void runtime(kb *k, const char *function, int n, LLVMValueRef *args)
{
    kb_call(k, function, type_void(k), n, args, true);
}

/* The same of one that takes the place in the emitter. */
static void at_site(kb *k, const char *function) { runtime(k, function, 1, (LLVMValueRef[]){ site(k) }); }

static void host_team_barrier(kb *k, int id, int threads)
{
    LLVMValueRef args[] = { site(k), i32(k, (uint32_t)id), i32(k, (uint32_t)threads) };
    runtime(k, "simt_team_barrier", 3, args);
}

static void host_barrier(kb *k) { at_site(k, "simt_barrier"); }
static void host_warp_sync(kb *k) { at_site(k, "simt_warp_sync"); }
static void host_cluster_arrive(kb *k) { at_site(k, "simt_cluster_arrive"); }
static void host_cluster_wait(kb *k) { at_site(k, "simt_cluster_wait"); }

static LLVMValueRef host_cluster_map(kb *k, LLVMValueRef shared, LLVMValueRef rank)
{
    LLVMValueRef args[] = { as_space(k, shared, 0), rank };
    return as_space(k, kb_call(k, "simt_cluster_map", type_ptr(k), 2, args, false), KB_CLUSTER_SHARED);
}

static void host_dependency_wait(kb *k) { runtime(k, "simt_dependency_wait", 0, NULL); }
static void host_dependency_launch(kb *k) { runtime(k, "simt_dependency_launch", 0, NULL); }

static void host_exchange(kb *k, LLVMValueRef table) { runtime(k, "simt_exchange", 1, &table); }

static LLVMValueRef host_halo_number(kb *k, LLVMValueRef window)
{
    return kb_call(k, "simt_halo_number", type_i32(k), 1, &window, true);
}
static void host_halo_send(kb *k, LLVMValueRef to, LLVMValueRef word, LLVMValueRef e)
{
    runtime(k, "simt_halo_send", 3, (LLVMValueRef[]){ to, word, e });
}
static void host_halo_wait(kb *k, LLVMValueRef window, LLVMValueRef from, LLVMValueRef e)
{
    runtime(k, "simt_halo_wait", 3, (LLVMValueRef[]){ window, from, e });
}
static LLVMValueRef host_halo_peek(kb *k, LLVMValueRef from, LLVMValueRef e)
{
    return kb_call(k, "simt_halo_peek", LLVMInt64TypeInContext(kb_context(k)), 2, (LLVMValueRef[]){ from, e }, true);
}
static LLVMValueRef host_halo_read(kb *k, LLVMValueRef from)
{
    return kb_call(k, "simt_halo_read", type_i32(k), 1, &from, true);
}
static void host_halo_done(kb *k, LLVMValueRef window, LLVMValueRef e, LLVMValueRef amount, LLVMValueRef total)
{
    runtime(k, "simt_halo_done", 4, (LLVMValueRef[]){ window, e, amount, total });
}

static void host_backoff(kb *k, int nanoseconds)
{
    runtime(k, "simt_backoff", 1, (LLVMValueRef[]){ i32(k, (uint32_t)nanoseconds) });
}

static void host_placed(kb *k, LLVMValueRef at, int bytes, int rank, const LLVMValueRef index[3], const char *name)
{
    LLVMValueRef args[] = {
        as_space(k, at, 0), i32(k, (uint32_t)bytes), i32(k, (uint32_t)rank), index[0], index[1], index[2], text(k, name)
    };
    runtime(k, "simt_placed", 7, args);
}

/* ---- memory ---------------------------------------------------------------------------------- */
static uint32_t order_of(enum kb_order o)
{
    static const uint32_t orders[] = {
        [KB_WEAK] = SIMT_WEAK,       [KB_RELAXED] = SIMT_RELAXED, [KB_ACQUIRE] = SIMT_ACQUIRE,
        [KB_RELEASE] = SIMT_RELEASE, [KB_ACQ_REL] = SIMT_ACQ_REL,
    };
    return orders[o];
}

/* What simt_rt.h calls `how`. */
static LLVMValueRef how_of(kb *k, const struct kb_access *a)
{
    uint32_t how = a->space == KB_SHARED ? SIMT_SHARED : a->space == KB_CLUSTER_SHARED ? SIMT_CLUSTER : SIMT_GLOBAL;
    how |= a->flags & KB_INVARIANT ? SIMT_INVARIANT : 0;
    how |= order_of(a->order) << SIMT_ORDER_SHIFT;
    return i32(k, how | (uint32_t)__builtin_ctz((unsigned)a->align) << SIMT_ALIGN_SHIFT);
}

/* The address at which the access really takes place: simt_load, simt_store or simt_rmw. */
static LLVMValueRef checked(kb *k, const char *function, const struct kb_access *a)
{
    LLVMValueRef args[] = { as_space(k, a->at, 0), i32(k, (uint32_t)a->bytes), how_of(k, a), text(k, a->name) };
    return kb_call(k, function, type_ptr(k), 4, args, true);
}

static LLVMValueRef load_from(kb *k, const struct kb_access *a, LLVMValueRef address)
{
    LLVMValueRef x = LLVMBuildLoad2(kb_builder(k), a->type, address, "");
    LLVMSetAlignment(x, (unsigned)a->align);
    return x;
}

static void store_to(kb *k, const struct kb_access *a, LLVMValueRef address, LLVMValueRef x)
{
    LLVMSetAlignment(LLVMBuildStore(kb_builder(k), x, address), (unsigned)a->align);
}

static LLVMValueRef host_load(kb *k, const struct kb_access *a) { return load_from(k, a, checked(k, "simt_load", a)); }

static void host_store(kb *k, const struct kb_access *a, LLVMValueRef x)
{
    store_to(k, a, checked(k, "simt_store", a), x);
}

static LLVMValueRef intrinsic(kb *k, const char *name, LLVMTypeRef type, int n, LLVMValueRef *args)
{
    const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(kb_module(k), id, &type, 1);
    return LLVMBuildCall2(kb_builder(k), LLVMGlobalGetValueType(f), f, args, (unsigned)n, "");
}

/* New value of a read-modify-write. */
static LLVMValueRef combine(kb *k, enum kb_rmw op, LLVMTypeRef type, LLVMValueRef old, LLVMValueRef x, bool is_signed,
                            bool is_float)
{
    LLVMBuilderRef b = kb_builder(k);
    LLVMValueRef pair[] = { old, x };
    switch (op) {
    case KB_RMW_ADD: return is_float ? LLVMBuildFAdd(b, old, x, "") : LLVMBuildAdd(b, old, x, "");
    case KB_RMW_MIN:
        return intrinsic(k, is_float ? "llvm.minnum" : is_signed ? "llvm.smin" : "llvm.umin", type, 2, pair);
    case KB_RMW_MAX:
        return intrinsic(k, is_float ? "llvm.maxnum" : is_signed ? "llvm.smax" : "llvm.umax", type, 2, pair);
    case KB_RMW_AND: return LLVMBuildAnd(b, old, x, "");
    case KB_RMW_OR: return LLVMBuildOr(b, old, x, "");
    case KB_RMW_XOR: return LLVMBuildXor(b, old, x, "");
    case KB_RMW_XCHG: return x;
    case KB_RMW_INC_WRAP: {
        LLVMValueRef next = LLVMBuildAdd(b, old, LLVMConstInt(type, 1, 0), "");
        LLVMValueRef wraps = LLVMBuildICmp(b, LLVMIntUGE, old, x, "");
        return LLVMBuildSelect(b, wraps, LLVMConstNull(type), next, "");
    }
    }
    return x;
}

static LLVMValueRef host_rmw(kb *k, enum kb_rmw op, const struct kb_access *a, LLVMValueRef x, bool is_signed,
                             bool is_float)
{
    LLVMValueRef address = checked(k, "simt_rmw", a);
    LLVMValueRef old = load_from(k, a, address);
    store_to(k, a, address, combine(k, op, a->type, old, x, is_signed, is_float));
    return old;
}

static LLVMValueRef host_cas(kb *k, const struct kb_access *a, LLVMValueRef expected, LLVMValueRef desired)
{
    LLVMTypeRef word = LLVMTypeOf(i32(k, 0));
    if (a->bytes < 4) {
        LLVMValueRef args[] = { as_space(k, a->at, 0),
                                i32(k, (uint32_t)a->bytes),
                                how_of(k, a),
                                text(k, a->name),
                                LLVMBuildZExt(kb_builder(k), expected, word, ""),
                                LLVMBuildZExt(kb_builder(k), desired, word, "") };
        return LLVMBuildTrunc(kb_builder(k), kb_call(k, "simt_cas_part", word, 6, args, true), a->type, "");
    }
    LLVMValueRef address = checked(k, "simt_rmw", a);
    LLVMValueRef old = load_from(k, a, address);
    LLVMValueRef same = LLVMBuildICmp(kb_builder(k), LLVMIntEQ, old, expected, "");
    store_to(k, a, address, LLVMBuildSelect(kb_builder(k), same, desired, old, ""));
    return old;
}

static void host_fence(kb *k, enum kb_order o, enum kb_scope_of s)
{
    static const uint32_t scopes[] = {
        [KB_SCOPE_BLOCK] = SIMT_SCOPE_BLOCK,
        [KB_SCOPE_CLUSTER] = SIMT_SCOPE_CLUSTER,
        [KB_SCOPE_DEVICE] = SIMT_SCOPE_DEVICE,
        [KB_SCOPE_SYSTEM] = SIMT_SCOPE_SYSTEM,
    };
    runtime(k, "simt_fence", 2, (LLVMValueRef[]){ i32(k, order_of(o)), i32(k, scopes[s]) });
}

/* ---- asynchronous copies --------------------------------------------------------------------- */
static void host_mbar_init(kb *k, LLVMValueRef bar, int arrivals, const char *name)
{
    runtime(k, "simt_mbar_init", 3, (LLVMValueRef[]){ as_space(k, bar, 0), i32(k, (uint32_t)arrivals), text(k, name) });
}
static void host_mbar_ready(kb *k) { runtime(k, "simt_mbar_ready", 0, NULL); }

static void host_mbar_arrive(kb *k, LLVMValueRef bar, LLVMValueRef bytes, const char *name)
{
    LLVMValueRef args[] = { as_space(k, bar, 0), bytes ? bytes : i32(k, 0), text(k, name) };
    runtime(k, "simt_mbar_arrive", 3, args);
}
static void host_mbar_wait(kb *k, LLVMValueRef bar, LLVMValueRef parity, const char *name)
{
    runtime(k, "simt_mbar_wait", 3, (LLVMValueRef[]){ as_space(k, bar, 0), parity, text(k, name) });
}

static void host_bulk_load(kb *k, const struct kb_copy *c, LLVMValueRef bytes, LLVMValueRef bar)
{
    LLVMValueRef args[] = { as_space(k, c->to, 0), as_space(k, c->from, 0), bytes,
                            as_space(k, bar, 0),   text(k, c->to_name),     text(k, c->from_name) };
    runtime(k, "simt_bulk_load", 6, args);
}
static void host_prefetch(kb *k, LLVMValueRef from, int64_t bytes, const char *name)
{
    runtime(k, "simt_prefetch", 3, (LLVMValueRef[]){ as_space(k, from, 0), i32(k, (int)bytes), text(k, name) });
}
static void host_bulk_store(kb *k, const struct kb_copy *c, LLVMValueRef bytes)
{
    LLVMValueRef args[] = { as_space(k, c->to, 0), as_space(k, c->from, 0), bytes, text(k, c->to_name),
                            text(k, c->from_name) };
    runtime(k, "simt_bulk_store", 5, args);
}
static void host_bulk_commit(kb *k) { runtime(k, "simt_bulk_commit", 0, NULL); }
static void host_bulk_wait(kb *k, int pending, bool read)
{
    runtime(k, "simt_bulk_wait", 2, (LLVMValueRef[]){ i32(k, (uint32_t)pending), i32(k, read) });
}
static void host_proxy_fence(kb *k) { runtime(k, "simt_proxy_fence", 0, NULL); }

static void host_copy(kb *k, const struct kb_copy *c, int bytes)
{
    LLVMValueRef exists = c->exists ? LLVMBuildZExt(kb_builder(k), c->exists, type_i32(k), "") : i32(k, 1);
    LLVMValueRef args[] = { as_space(k, c->to, 0), as_space(k, c->from, 0), i32(k, (uint32_t)bytes), exists,
                            text(k, c->to_name),   text(k, c->from_name) };
    runtime(k, "simt_copy", 6, args);
}
static void host_copy_commit(kb *k) { runtime(k, "simt_copy_commit", 0, NULL); }
static void host_copy_wait(kb *k, int pending)
{
    runtime(k, "simt_copy_wait", 1, (LLVMValueRef[]){ i32(k, (uint32_t)pending) });
}

/* ---- math ------------------------------------------------------------------------------------ */
/* What the code generator does itself; everything else is a function of host_math.c named like in C. */
static const char *math_intrinsic(int fn)
{
    switch (fn) {
    case FN_ABS: return "llvm.fabs";
    case FN_SQRT: return "llvm.sqrt";
    case FN_FMA: return "llvm.fma";
    case FN_FLOOR: return "llvm.floor";
    case FN_CEIL: return "llvm.ceil";
    case FN_ROUND: return "llvm.roundeven";
    case FN_TRUNC: return "llvm.trunc";
    default: return NULL;
    }
}

/* Of equal operands only zeros have different bits: the sign is set in either, or in both.  Not llvm.minimumnum, which
 * with AVX-512 gives NaN where one operand is NaN and the other is known not to be (LLVM 22). */
static LLVMValueRef host_extreme(kb *k, bool maximum, enum ty ty, LLVMValueRef a, LLVMValueRef b)
{
    if (ty_bits(ty) == 16)
        return NULL;
    LLVMBuilderRef at = kb_builder(k);
    LLVMTypeRef bits = kb_llvm_ty(k, ty == TY_F64 ? TY_U64 : TY_U32);
    LLVMValueRef x = LLVMBuildBitCast(at, a, bits, ""), y = LLVMBuildBitCast(at, b, bits, "");
    LLVMValueRef same = (maximum ? LLVMBuildAnd : LLVMBuildOr)(at, x, y, "");
    LLVMValueRef first = LLVMBuildFCmp(at, maximum ? LLVMRealOGT : LLVMRealOLT, a, b, "");
    LLVMValueRef r = LLVMBuildSelect(at, first, a, b, "");
    r = LLVMBuildSelect(at, LLVMBuildFCmp(at, LLVMRealOEQ, a, b, ""), LLVMBuildBitCast(at, same, kb_llvm_ty(k, ty), ""),
                        r, "");
    return LLVMBuildSelect(at, LLVMBuildFCmp(at, LLVMRealUNO, b, b, ""), a, r, "");
}

static LLVMValueRef host_math(kb *k, int fn, enum ty ty, int n, LLVMValueRef *args)
{
    LLVMTypeRef type = kb_llvm_ty(k, ty);
    if (fn == FN_ISNAN)
        return LLVMBuildFCmp(kb_builder(k), LLVMRealUNO, args[0], args[0], "");
    if (fn == FN_ISINF) {
        LLVMValueRef magnitude = intrinsic(k, "llvm.fabs", type, 1, args);
        LLVMValueRef infinity = LLVMConstRealOfString(type, "inf");
        return LLVMBuildFCmp(kb_builder(k), LLVMRealOEQ, magnitude, infinity, "");
    }
    const char *name = math_intrinsic(fn);
    if (name)
        return intrinsic(k, name, type, n, args);
    char function[32];
    fn = fn == KB_FN_EXP_FALLING ? FN_EXP : fn;
    snprintf(function, sizeof function, "%s%s", fn == KB_FN_FMOD ? "fmod" : fn_name((enum fn)fn),
             ty == TY_F32 ? "f" : "");
    return kb_call(k, function, type, n, args, false);
}

#define HOOK(hook) .hook = host_##hook,
const struct kb_target kb_target_host = {
    .name = "host", .division_traps = true, .fuses = true, .placed = host_placed, KB_HOOKS(HOOK)
};
