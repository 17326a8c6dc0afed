/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx_exchange.c - the exchange of short messages between GPUs, by one block in the middle of a kernel.
 *
 * The protocol, the window and the table are those of ptxgen_exchange_words (src/launch/exchange_code.c), so one rank may
 * take this code and another rank that kernel in the same exchange.  Here the table lies in global memory, messages are
 * whole words, and the warps of the block share the messages.  All threads of the block arrive, twice: before anything is
 * sent, and when all has come.  Then every thread of the block may read what has come.
 */
#include "nvptx_impl.h"

/* clang-format off */
/* Until `reached` sets %p from what is loaded, or the time is over; then this window and the host know it. */
#define WAIT(label, load, reached)                                                                                     \
    label ":\n  " load ";\n  " reached "  @%p bra " label "_DONE;\n"                                                   \
    "  mov.u64 %now, %globaltimer;\n  sub.u64 %now, %now, %begin;\n  setp.lt.u64 %p, %now, %limit;\n"                  \
    "  @%p bra " label ";\n  st.volatile.global.u32 [%own + 8], 1;\n  ld.global.u64 %a, [$0 + 16];\n"                  \
    "  st.volatile.global.u32 [%a], 1;\n  mov.u64 %limit, 0;\n"                                                        \
    label "_DONE:\n"
/* The rows of this warp, one after the other: %m is a row's address less 40. */
#define ROWS(label, end)                                                                                               \
    "  shr.u32 %j, %t, 5;\n"                                                                                           \
    label ":\n  setp.ge.u32 %p, %j, %ranks;\n  @%p bra " end ";\n  mov.b64 %m, $0;\n  mad.wide.u32 %m, %j, 88, %m;\n"  \
    "  mov.b64 %step, %lane;\n"
#define WORD(label, end) label ":\n  setp.ge.u64 %p, %step, %n;\n  @%p bra " end ";\n"
#define NEXT(label, four, eight)                                                                                       \
    "  add.s64 " four ", " four ", 128;\n  add.s64 " eight ", " eight ", 256;\n  add.s64 %step, %step, 128;\n"         \
    "  bra " label ";\n"

static const char exchange[] =
    "{\n  .reg .pred %p;\n  .reg .b32 %t, %j, %e, %old, %seen, %w, %ranks, %warps;\n"
    "  .reg .b64 %own, %half, %begin, %limit, %now, %m, %n, %from, %to, %done, %lane, %step, %a, %word;\n"
    "  mov.u32 %t, %tid.x;\n  mov.u64 %begin, %globaltimer;\n  mov.u32 %warps, %ntid.x;\n  shr.u32 %warps, %warps, 5;\n"
    "  and.b32 %w, %t, 31;\n  mul.wide.u32 %lane, %w, 4;\n"
    "  ld.global.u64 %own, [$0];\n  ld.global.u64 %half, [$0 + 8];\n  ld.global.u64 %limit, [$0 + 24];\n"
    "  ld.global.u32 %e, [%own];\n  ld.global.u32 %ranks, [%own + 12];\n  ld.volatile.global.u32 %w, [%own + 8];\n"
    "  add.u32 %e, %e, 1;\n  sub.u32 %old, %e, 2;\n  and.b32 %j, %e, 1;\n  cvt.u64.u32 %a, %j;\n"
    "  mul.lo.u64 %half, %half, %a;\n  setp.ne.u32 %p, %w, 0;\n  bar.red.or.pred %p, 0, %p;\n  @%p bra EXCHANGE_END;\n"
    ROWS("SEND", "SENT")
    "  ld.global.u64 %n, [%m + 40];\n  ld.global.u64 %from, [%m + 48];\n  ld.global.u64 %to, [%m + 64];\n"
    "  ld.global.u64 %done, [%m + 80];\n  add.s64 %to, %to, %half;\n"
    WAIT("FREE", "ld.relaxed.sys.global.u32 %seen, [%done]", "sub.s32 %seen, %seen, %old;\n  setp.ge.s32 %p, %seen, 0;\n")
    "  add.s64 %from, %from, %lane;\n  add.s64 %to, %to, %lane;\n  add.s64 %to, %to, %lane;\n"
    WORD("OUT", "OUT_END")
    "  ld.global.u32 %w, [%from];\n  mov.b64 %word, {%w, %e};\n  st.relaxed.sys.global.u64 [%to], %word;\n"
    NEXT("OUT", "%from", "%to")
    "OUT_END:\n  add.u32 %j, %j, %warps;\n  bra SEND;\nSENT:\n"
    ROWS("GET", "GOT")
    "  ld.global.u64 %n, [%m + 88];\n  ld.global.u64 %to, [%m + 96];\n  ld.global.u64 %from, [%m + 112];\n"
    "  add.s64 %from, %from, %half;\n"
    "  add.s64 %to, %to, %lane;\n  add.s64 %from, %from, %lane;\n  add.s64 %from, %from, %lane;\n"
    WORD("IN", "IN_END")
    WAIT("FULL", "ld.relaxed.sys.global.u64 %word, [%from]", "mov.b64 {%w, %seen}, %word;\n  setp.eq.u32 %p, %seen, %e;\n")
    "  st.global.u32 [%to], %w;\n"
    NEXT("IN", "%to", "%from")
    "IN_END:\n  add.u32 %j, %j, %warps;\n  bra GET;\n"
    /* After a wait that was too long: this rank is not done. */
    "GOT:\n  bar.sync 0;\n  ld.volatile.global.u32 %w, [%own + 8];\n  setp.ne.u32 %p, %w, 0;\n  @%p bra EXCHANGE_END;\n"
    "  setp.eq.u32 %p, %t, 0;\n  @%p st.global.u32 [%own], %e;\n  mov.u32 %j, %t;\n  mov.u32 %w, %ntid.x;\n"
    "TELL:\n  setp.ge.u32 %p, %j, %ranks;\n  @%p bra EXCHANGE_END;\n  mul.wide.u32 %a, %j, 8;\n  add.s64 %a, %a, %own;\n"
    "  ld.global.u64 %a, [%a + 16];\n  st.relaxed.sys.global.u32 [%a], %e;\n  add.u32 %j, %j, %w;\n  bra TELL;\n"
    "EXCHANGE_END:\n}";
/* clang-format on */

void nv_exchange(kb *k, LLVMValueRef table)
{
    static const char convergent[] = "convergent";
    LLVMTypeRef type = LLVMTypeOf(table);
    LLVMValueRef call = nv_asm(k, LLVMVoidTypeInContext(kb_context(k)), exchange, "l,~{memory}", 1, &table, &type);
    const unsigned kind = LLVMGetEnumAttributeKindForName(convergent, sizeof convergent - 1);
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(kb_context(k), kind, 0));
}
