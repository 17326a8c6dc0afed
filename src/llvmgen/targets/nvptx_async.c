/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx_async.c - asynchronous copies of NVIDIA GPUs: mbarriers, bulk copies (sm_90), threads' own copies (sm_80).
 *
 * Everything is inline assembly that clobbers memory: LLVM's intrinsics say that they touch their operands alone, and
 * accesses to a buffer would be moved across the wait that it is filled at.  Shared addresses are given as 32-bit
 * numbers of the shared window. None of these instructions needs the lanes of a warp together.
 */
#include "nvptx_impl.h"

#include <stdio.h>

enum { OPERANDS_MAX = 4 };

/* Operands are i32 ($n in the text, constraint r) or pointers: shared ones become i32, global ones stay (l). */
static void statement(kb *k, const char *text, int n, const LLVMValueRef *operand)
{
    LLVMValueRef args[OPERANDS_MAX];
    LLVMTypeRef types[OPERANDS_MAX];
    char constraints[OPERANDS_MAX * 2 + sizeof "~{memory}"];
    int at = 0;
    for (int i = 0; i < n; i++) {
        LLVMTypeRef type = LLVMTypeOf(operand[i]);
        const bool pointer = LLVMGetTypeKind(type) == LLVMPointerTypeKind;
        const bool global = pointer && LLVMGetPointerAddressSpace(type) == KB_GLOBAL;
        args[i] =
            pointer && !global ? LLVMBuildPtrToInt(kb_builder(k), operand[i], kb_llvm_ty(k, TY_I32), "") : operand[i];
        types[i] = LLVMTypeOf(args[i]);
        constraints[at++] = global ? 'l' : 'r';
        constraints[at++] = ',';
    }
    snprintf(constraints + at, sizeof constraints - (size_t)at, "~{memory}");
    nv_asm(k, LLVMVoidTypeInContext(kb_context(k)), text, constraints, n, args, types);
}

static void numbered(kb *k, const char *format, int number)
{
    char text[64];
    snprintf(text, sizeof text, format, number);
    statement(k, text, 0, NULL);
}

/* ---- mbarriers --------------------------------------------------------------------------------------------------- */

void nv_mbar_init(kb *k, LLVMValueRef bar, int arrivals, const char *name)
{
    (void)name;
    LLVMValueRef count = LLVMConstInt(kb_llvm_ty(k, TY_I32), (unsigned)arrivals, false);
    statement(k, "mbarrier.init.shared::cta.b64 [$0], $1;", 2, (LLVMValueRef[]){ bar, count });
}

void nv_mbar_ready(kb *k)
{
    statement(k, "fence.mbarrier_init.release.cluster;", 0, NULL);
    statement(k, "fence.proxy.async.shared::cta;", 0, NULL);
}

void nv_mbar_arrive(kb *k, LLVMValueRef bar, LLVMValueRef bytes, const char *name)
{
    (void)name;
    if (bytes)
        statement(k, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", 2, (LLVMValueRef[]){ bar, bytes });
    else
        statement(k, "mbarrier.arrive.shared::cta.b64 _, [$0];", 1, &bar);
}

/* try_wait itself sleeps for a while that the hardware chooses. */
void nv_mbar_wait(kb *k, LLVMValueRef bar, LLVMValueRef parity, const char *name)
{
    (void)name;
    statement(k,
              "{\n\t.reg .pred done;\n"
              "wait_${:uid}:\n\t"
              "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n\t"
              "@!done bra wait_${:uid};\n\t}",
              2, (LLVMValueRef[]){ bar, parity });
}

/* ---- bulk copies ------------------------------------------------------------------------------------------------- */

void nv_bulk_load(kb *k, const struct kb_copy *c, LLVMValueRef bytes, LLVMValueRef bar)
{
    statement(k, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", 4,
              (LLVMValueRef[]){ c->to, c->from, bytes, bar });
}

void nv_prefetch(kb *k, LLVMValueRef from, int64_t bytes, const char *name)
{
    (void)name;
    LLVMValueRef size = LLVMConstInt(kb_llvm_ty(k, TY_I32), (unsigned long long)bytes, false);
    statement(k, "cp.async.bulk.prefetch.L2.global [$0], $1;", 2, (LLVMValueRef[]){ from, size });
}

void nv_bulk_store(kb *k, const struct kb_copy *c, LLVMValueRef bytes)
{
    statement(k, "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", 3,
              (LLVMValueRef[]){ c->to, c->from, bytes });
}

void nv_bulk_commit(kb *k) { statement(k, "cp.async.bulk.commit_group;", 0, NULL); }

void nv_bulk_wait(kb *k, int pending, bool read)
{
    numbered(k, read ? "cp.async.bulk.wait_group.read %d;" : "cp.async.bulk.wait_group %d;", pending);
}

void nv_proxy_fence(kb *k) { statement(k, "fence.proxy.async.shared::cta;", 0, NULL); }

/* ---- threads' own copies ----------------------------------------------------------------------------------------- */

/* Past the first-level cache where there is a choice: only 16 bytes can do that. */
void nv_copy(kb *k, const struct kb_copy *c, int bytes)
{
    char text[64];
    LLVMValueRef args[3] = { c->to, c->from };
    snprintf(text, sizeof text, "cp.async.%s.shared.global [$0], [$1], %d%s;", bytes == 16 ? "cg" : "ca", bytes,
             c->exists ? ", $2" : "");
    if (c->exists) { /* bytes that are read; the others are zeros */
        LLVMTypeRef i32 = kb_llvm_ty(k, TY_I32);
        args[2] = LLVMBuildSelect(kb_builder(k), c->exists, LLVMConstInt(i32, (unsigned)bytes, false),
                                  LLVMConstNull(i32), "");
    }
    statement(k, text, c->exists ? 3 : 2, args);
}

void nv_copy_commit(kb *k) { statement(k, "cp.async.commit_group;", 0, NULL); }
void nv_copy_wait(kb *k, int pending) { numbered(k, "cp.async.wait_group %d;", pending); }
