/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx_halo.c - words that kernels of neighbouring ranks write for each other while both run.
 *
 * The memory that `window` names begins with a struct halo_head (src/launch/exchange.h), where offsets are from.  A word is
 * four bytes and the number of the exchange: once the number is there, the four bytes are.  Waits end after a time, which
 * the head remembers: then no number is given any more, and nothing is sent or waited for.  Another rank, whose kernel was
 * refused, may write this into the head as well; so the host is told where it is seen.
 */
#include "nvptx_impl.h"

/* clang-format off */
/* The one after the last; 0 after a fault.  It skips 0 in a way that even and odd ones still take turns. */
static const char number[] =
    "{\n  .reg .pred %p;\n  .reg .b32 %e, %f;\n  .reg .b64 %a;\n  ld.global.u32 %e, [$1];\n"
    "  ld.volatile.global.u32 %f, [$1 + 8];\n  add.u32 %e, %e, 1;\n  setp.eq.u32 %p, %e, 0;\n"
    "  selp.b32 %e, 2, %e, %p;\n  setp.ne.u32 %p, %f, 0;\n  selp.b32 $0, 0, %e, %p;\n"
    "  @%p ld.global.u64 %a, [$1 + 16];\n  @%p st.volatile.global.u32 [%a], 1;\n}";
static const char send[] =
    "{\n  .reg .b64 %word;\n  mov.b64 %word, {$1, $2};\n  st.relaxed.sys.global.u64 [$0], %word;\n}";
/* Mostly the word is there, and the time is not asked. */
static const char wait[] =
    "{\n  .reg .pred %p;\n  .reg .b32 %w, %seen;\n  .reg .b64 %word, %begin, %limit, %now;\n"
    "  ld.relaxed.sys.global.u64 %word, [$1];\n  mov.b64 {%w, %seen}, %word;\n  setp.eq.u32 %p, %seen, $2;\n"
    "  @%p bra HALO_DONE;\n  mov.u64 %begin, %globaltimer;\n  ld.global.u64 %limit, [$0 + 24];\n"
    "HALO_NEXT:\n  ld.volatile.global.u32 %seen, [$0 + 8];\n  setp.ne.u32 %p, %seen, 0;\n  @%p bra HALO_LATE;\n"
    "  ld.relaxed.sys.global.u64 %word, [$1];\n  mov.b64 {%w, %seen}, %word;\n  setp.eq.u32 %p, %seen, $2;\n"
    "  @%p bra HALO_DONE;\n  mov.u64 %now, %globaltimer;\n  sub.u64 %now, %now, %begin;\n"
    "  setp.lt.u64 %p, %now, %limit;\n  @%p bra HALO_NEXT;\n"
    "HALO_LATE:\n  st.volatile.global.u32 [$0 + 8], 1;\n"
    "  ld.global.u64 %now, [$0 + 16];\n  st.volatile.global.u32 [%now], 1;\n"
    "HALO_DONE:\n}";
/* Never from a cache that the words do not reach. */
static const char read[] = "ld.relaxed.sys.global.u32 $0, [$1];";
static const char peek[] = "ld.relaxed.sys.global.u64 $0, [$1];";
/* The last of `total` keeps the number, and tells the other ranks. */
static const char done[] =
    "{\n  .reg .pred %p;\n  .reg .b32 %n;\n  .reg .b64 %a, %at;\n"
    "  atom.acq_rel.gpu.global.add.u32 %n, [$0 + 4], $2;\n  add.u32 %n, %n, $2;\n  setp.ne.u32 %p, %n, $3;\n"
    "  @%p bra HALO_END;\n  ld.volatile.global.u32 %n, [$0 + 8];\n  setp.ne.u32 %p, %n, 0;\n  @%p bra HALO_END;\n"
    "  st.global.u32 [$0 + 4], 0;\n  st.global.u32 [$0], $1;\n"
    "  fence.acq_rel.sys;\n  mov.b64 %at, $0;\n"
    "HALO_TELL:\n  ld.global.u64 %a, [%at + 32];\n  setp.eq.u64 %p, %a, 0;\n  @%p bra HALO_END;\n"
    "  st.relaxed.sys.global.u32 [%a], $1;\n  add.u64 %at, %at, 8;\n  bra HALO_TELL;\n"
    "HALO_END:\n}";
/* clang-format on */

static LLVMValueRef code(kb *k, LLVMTypeRef ret, const char *text, const char *constraints, int n, LLVMValueRef *args)
{
    LLVMTypeRef types[4];
    for (int i = 0; i < n; i++)
        types[i] = LLVMTypeOf(args[i]);
    return nv_asm(k, ret, text, constraints, n, args, types);
}

LLVMValueRef nv_halo_number(kb *k, LLVMValueRef window)
{
    return code(k, kb_llvm_ty(k, TY_U32), number, "=r,l,~{memory}", 1, &window);
}

void nv_halo_send(kb *k, LLVMValueRef to, LLVMValueRef word, LLVMValueRef e)
{
    code(k, LLVMVoidTypeInContext(kb_context(k)), send, "l,r,r,~{memory}", 3, (LLVMValueRef[]){ to, word, e });
}

void nv_halo_wait(kb *k, LLVMValueRef window, LLVMValueRef from, LLVMValueRef e)
{
    code(k, LLVMVoidTypeInContext(kb_context(k)), wait, "l,l,r,~{memory}", 3, (LLVMValueRef[]){ window, from, e });
}

LLVMValueRef nv_halo_read(kb *k, LLVMValueRef from)
{
    return code(k, kb_llvm_ty(k, TY_U32), read, "=r,l,~{memory}", 1, &from);
}

LLVMValueRef nv_halo_peek(kb *k, LLVMValueRef from, LLVMValueRef e)
{
    (void)e;
    return code(k, kb_llvm_ty(k, TY_U64), peek, "=l,l,~{memory}", 1, &from);
}

void nv_halo_done(kb *k, LLVMValueRef window, LLVMValueRef e, LLVMValueRef amount, LLVMValueRef total)
{
    code(k, LLVMVoidTypeInContext(kb_context(k)), done, "l,r,r,r,~{memory}", 4,
         (LLVMValueRef[]){ window, e, amount, total });
}
