/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx.c - the kernel builder's hooks for NVIDIA GPUs: threads, warps, synchronisation.
 *
 * NVVM intrinsics where LLVM has them; memory is in nvptx_memory.c, asynchronous copies in nvptx_async.c, math in
 * nvptx_math.c.
 */
#include "nvptx_impl.h"

#include <stdio.h>
#include <string.h>

#include "caps.h"

enum { PTX_KERNEL = 71 /* LLVM's number of the calling convention */, ALL_LANES = -1, SHARED_ALIGN = 128 };

static LLVMTypeRef void_ty(kb *k) { return LLVMVoidTypeInContext(kb_context(k)); }
static LLVMTypeRef i32_ty(kb *k) { return kb_llvm_ty(k, TY_I32); }
static LLVMValueRef i32(kb *k, int x) { return LLVMConstInt(i32_ty(k), (unsigned long long)x, true); }

/* ---- kernels and shared memory ----------------------------------------------------------------------------------- */

static void attribute(kb *k, const char *name, int value, const char *suffix)
{
    char text[32];
    snprintf(text, sizeof text, "%d%s", value, suffix);
    LLVMAttributeRef a =
        LLVMCreateStringAttribute(kb_context(k), name, (unsigned)strlen(name), text, (unsigned)strlen(text));
    LLVMAddAttributeAtIndex(kb_function(k), (unsigned)LLVMAttributeFunctionIndex, a);
}

static void nv_kernel(kb *k, int threads, int cluster, int min_blocks)
{
    LLVMSetFunctionCallConv(kb_function(k), PTX_KERNEL);
    attribute(k, "nvvm.reqntid", threads, ""); /* the exact size; never beside maxntid, which ptxas refuses */
    if (min_blocks > 0)
        attribute(k, "nvvm.minctasm", min_blocks, "");
    if (cluster > 0)
        attribute(k, "nvvm.cluster_dim", cluster, ",1,1");
}

/* The size is not known before the kernel ends: a declaration stands for the array until then.  What is more than a
 * kernel may have without asking is dynamic, and stays one. */
static void shared_name(kb *k, char *name, size_t size)
{
    size_t length;
    snprintf(name, size, "%s_shared", LLVMGetValueName2(kb_function(k), &length));
}

static LLVMValueRef nv_shared_base(kb *k)
{
    char name[256];
    shared_name(k, name, sizeof name);
    LLVMTypeRef none = LLVMArrayType2(LLVMInt8TypeInContext(kb_context(k)), 0);
    return LLVMAddGlobalInAddressSpace(kb_module(k), none, name, KB_SHARED);
}

static void nv_shared_done(kb *k, int bytes)
{
    char name[256];
    shared_name(k, name, sizeof name);
    LLVMValueRef declared = LLVMGetNamedGlobal(kb_module(k), name);
    LLVMSetAlignment(declared, SHARED_ALIGN);
    if (bytes > KB_SHARED_STATIC)
        return; /* stays external: .extern .shared, whose size the launch gives */
    LLVMTypeRef type = LLVMArrayType2(LLVMInt8TypeInContext(kb_context(k)), (uint64_t)bytes);
    LLVMValueRef g = LLVMAddGlobalInAddressSpace(kb_module(k), type, "", KB_SHARED);
    LLVMSetInitializer(g, LLVMGetPoison(type));
    LLVMSetLinkage(g, LLVMInternalLinkage);
    LLVMSetAlignment(g, SHARED_ALIGN);
    LLVMReplaceAllUsesWith(declared, g);
    LLVMDeleteGlobal(declared);
    LLVMSetValueName2(g, name, strlen(name));
}

/* ---- threads and warps ------------------------------------------------------------------------------------------- */

static LLVMValueRef nv_sreg(kb *k, enum kb_sreg which)
{
    static const char *const name[] = {
        [KB_SREG_TID] = "llvm.nvvm.read.ptx.sreg.tid.x",
        [KB_SREG_BLOCK] = "llvm.nvvm.read.ptx.sreg.ctaid.x",
        [KB_SREG_BLOCKS] = "llvm.nvvm.read.ptx.sreg.nctaid.x",
        [KB_SREG_CLUSTER_RANK] = "llvm.nvvm.read.ptx.sreg.cluster.ctarank",
    };
    return kb_call(k, name[which], i32_ty(k), 0, NULL, false);
}

/* The last operand holds the group's mask above bit 8 and the clamping lane below. */
static LLVMValueRef nv_shfl(kb *k, int mode, LLVMValueRef word, LLVMValueRef arg, int width)
{
    static const struct {
        const char *name;
        int clamp;
    } row[] = {
        [KB_SHFL_IDX] = { "llvm.nvvm.shfl.sync.idx.i32", KB_WARP - 1 },
        [KB_SHFL_UP] = { "llvm.nvvm.shfl.sync.up.i32", 0 },
        [KB_SHFL_DOWN] = { "llvm.nvvm.shfl.sync.down.i32", KB_WARP - 1 },
        [KB_SHFL_XOR] = { "llvm.nvvm.shfl.sync.bfly.i32", KB_WARP - 1 },
    };
    LLVMValueRef args[] = { i32(k, ALL_LANES), word, arg, i32(k, (KB_WARP - width) << 8 | row[mode].clamp) };
    return kb_call(k, row[mode].name, i32_ty(k), 4, args, true);
}

static LLVMValueRef nv_vote(kb *k, enum kb_vote mode, LLVMValueRef pred)
{
    static const char *const name[] = {
        [KB_VOTE_ANY] = "llvm.nvvm.vote.any.sync",        [KB_VOTE_ALL] = "llvm.nvvm.vote.all.sync",
        [KB_VOTE_HERE] = "llvm.nvvm.vote.all.sync",       [KB_VOTE_BALLOT] = "llvm.nvvm.vote.ballot.sync",
        [KB_VOTE_MATCH] = "llvm.nvvm.match.any.sync.i32",
    };
    LLVMValueRef args[] = { i32(k, ALL_LANES), pred };
    if (mode == KB_VOTE_HERE)
        args[0] = kb_call(k, "llvm.nvvm.activemask", i32_ty(k), 0, NULL, true);
    return kb_call(k, name[mode], kb_llvm_ty(k, mode >= KB_VOTE_BALLOT ? TY_U32 : TY_BOOL), 2, args, true);
}

static LLVMValueRef nv_redux(kb *k, enum kb_rmw op, LLVMValueRef x, bool is_signed)
{
    static const char *const name[][2] = {
        [KB_RMW_ADD] = { "llvm.nvvm.redux.sync.add", "llvm.nvvm.redux.sync.add" },
        [KB_RMW_MIN] = { "llvm.nvvm.redux.sync.umin", "llvm.nvvm.redux.sync.min" },
        [KB_RMW_MAX] = { "llvm.nvvm.redux.sync.umax", "llvm.nvvm.redux.sync.max" },
        [KB_RMW_AND] = { "llvm.nvvm.redux.sync.and", "llvm.nvvm.redux.sync.and" },
        [KB_RMW_OR] = { "llvm.nvvm.redux.sync.or", "llvm.nvvm.redux.sync.or" },
        [KB_RMW_XOR] = { "llvm.nvvm.redux.sync.xor", "llvm.nvvm.redux.sync.xor" },
    };
    LLVMValueRef args[] = { x, i32(k, ALL_LANES) };
    return kb_call(k, name[op][is_signed], i32_ty(k), 2, args, true);
}

/* Products with ones: of every architecture that is generated for. */
static LLVMValueRef nv_sum_bytes(kb *k, LLVMValueRef word, bool is_signed, LLVMValueRef plus)
{
    LLVMValueRef args[] = { word, i32(k, 0x01010101), plus };
    return kb_call(k, is_signed ? "llvm.nvvm.idp4a.s.s" : "llvm.nvvm.idp4a.u.u", i32_ty(k), 3, args, false);
}

static LLVMValueRef nv_dot_bytes(kb *k, LLVMValueRef word, LLVMValueRef times, LLVMValueRef plus)
{
    LLVMValueRef args[] = { word, times, plus };
    return kb_call(k, "llvm.nvvm.idp4a.u.u", i32_ty(k), 3, args, false);
}

static LLVMValueRef nv_permute(kb *k, LLVMValueRef low, LLVMValueRef high, LLVMValueRef which)
{
    LLVMValueRef args[] = { low, high, which };
    return kb_call(k, "llvm.nvvm.prmt", i32_ty(k), 3, args, false);
}

/* ---- synchronisation --------------------------------------------------------------------------------------------- */

static void nv_barrier(kb *k)
{
    LLVMValueRef id = i32(k, 0);
    kb_call(k, "llvm.nvvm.barrier.cta.sync.aligned.all", void_ty(k), 1, &id, true);
}

static void nv_team_barrier(kb *k, int id, int threads)
{
    LLVMValueRef args[] = { i32(k, id), i32(k, threads) };
    kb_call(k, "llvm.nvvm.barrier.cta.sync.aligned.count", void_ty(k), 2, args, true);
}

static void nv_warp_sync(kb *k)
{
    LLVMValueRef all = i32(k, ALL_LANES);
    kb_call(k, "llvm.nvvm.bar.warp.sync", void_ty(k), 1, &all, true);
}

static void nv_backoff(kb *k, int nanoseconds)
{
    LLVMValueRef ns = i32(k, nanoseconds);
    if (nanoseconds > 0 && cap_has(CAP_BACKOFF, kb_sm(k), kb_ptx(k)))
        kb_call(k, "llvm.nvvm.nanosleep", void_ty(k), 1, &ns, false);
}

static void plain_call(kb *k, const char *name) { kb_call(k, name, void_ty(k), 0, NULL, true); }
static void nv_cluster_arrive(kb *k) { plain_call(k, "llvm.nvvm.barrier.cluster.arrive.aligned"); }
static void nv_cluster_wait(kb *k) { plain_call(k, "llvm.nvvm.barrier.cluster.wait.aligned"); }
static void nv_dependency_wait(kb *k) { plain_call(k, "llvm.nvvm.griddepcontrol.wait"); }
static void nv_dependency_launch(kb *k) { plain_call(k, "llvm.nvvm.griddepcontrol.launch.dependents"); }

static LLVMValueRef nv_cluster_map(kb *k, LLVMValueRef shared, LLVMValueRef rank)
{
    LLVMValueRef args[] = { shared, rank };
    return kb_call(k, "llvm.nvvm.mapa.shared.cluster", LLVMPointerTypeInContext(kb_context(k), KB_CLUSTER_SHARED), 2,
                   args, false);
}

LLVMValueRef nv_asm(kb *k, LLVMTypeRef ret, const char *text, const char *constraints, int n, LLVMValueRef *args,
                    LLVMTypeRef *types)
{
    LLVMTypeRef fty = LLVMFunctionType(ret, types, (unsigned)n, false);
    LLVMValueRef a = LLVMGetInlineAsm(fty, text, strlen(text), constraints, strlen(constraints), true, false,
                                      LLVMInlineAsmDialectATT, false);
    return LLVMBuildCall2(kb_builder(k), fty, a, args, (unsigned)n, "");
}

#define HOOK(hook) .hook = nv_##hook,
const struct kb_target kb_target_nvptx = { .name = "nvptx64",
                                           .sum_bytes = nv_sum_bytes,
                                           .dot_bytes = nv_dot_bytes,
                                           .permute = nv_permute,
                                           .narrow_fma = nv_narrow_fma,
                                           KB_HOOKS(HOOK) };
