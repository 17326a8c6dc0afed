/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_code.c - bytes between the GPUs of one machine, by kernels that write into the memory of the others.
 *
 * Each rank has a window, which all ranks can write.  It has slots for messages and flags, one for each piece of a message,
 * both twice, for even and odd exchanges: message j may come from another rank each time, and one may be ahead of the other.
 * It has the number of the last exchange; and for each rank, what that rank has done.  Exchange e is one launch on every
 * rank.  Block (c, j) has piece c of message j:
 *
 *     send:  wait until the receiver has done exchange e - 2       (its slot is free)
 *            copy the piece to the receiver's slot; flag = e
 *     get:   wait for the flag; copy the piece out of the slot
 *     last block: tell all ranks that this one has done e
 *
 * All but long messages travel as words of 64 bits with four bytes and e in them: a word is complete when its e is, and no
 * flag is written.  What a rank sends to itself is copied.  All waits end after a time, and the window remembers that one
 * did.  Then this exchange tells nobody that it is done, and later ones do nothing, so that the other ranks do not take what
 * is sent for what they wait for.
 *
 * Blocks send before they wait, and no more of them wait than any device has room for at once.
 */
#include "exchange.h"

/* Parameters: offsets of struct exchange_table, and from %m, which is 88 j beyond its begin, those of row[j]. */
#define OWN        "[table]"
#define HALF       "[table + 8]"
#define FAULT      "[table + 16]"
#define LIMIT      "[table + 24]"
#define LONGEST    "[table + 32]"
#define SEND_BYTES "[%m + 40]"
#define SEND       "[%m + 48]"
#define SEND_PIECE "[%m + 56]"
#define SLOT_THERE "[%m + 64]"
#define FLAG_THERE "[%m + 72]"
#define DONE_THERE "[%m + 80]"
#define GET_BYTES  "[%m + 88]"
#define GET        "[%m + 96]"
#define GET_PIECE  "[%m + 104]"
#define SLOT_HERE  "[%m + 112]"
#define FLAG_HERE  "[%m + 120]"

/* clang-format off */
/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* Threads of a block, in units of `bytes`. */
#define UNITS(label, bytes, load, store)                                                                               \
    label ":\n    mul.wide.u32 %step, %thread, " bytes ";\n    mul.wide.u32 %each, %threads, " bytes ";\n"             \
    "    add.s64 %from, %from, %step;\n    add.s64 %to, %to, %step;\n"                                                 \
    label "_NEXT:\n    setp.ge.u64 %p, %step, %n;\n    @%p ret;\n    " load ";\n    " store ";\n"                      \
    "    add.s64 %from, %from, %each;\n    add.s64 %to, %to, %each;\n    add.s64 %step, %step, %each;\n"               \
    "    bra " label "_NEXT;\n"
#define COPY                                                                                                           \
    "    { .param .b64 x; .param .b64 y; .param .b64 z; st.param.b64 [x], %to; st.param.b64 [y], %from;\n"             \
    "      st.param.b64 [z], %n; call.uni copy, (x, y, z); }\n"
static const char head[] =
    ".version 6.4\n.target sm_75\n.address_size 64\n"
    /* n bytes by all threads of the block, in units of 16 bytes, 4, or one, as all three are aligned */
    ".func copy(.param .b64 x, .param .b64 y, .param .b64 z)\n{\n"
    "    .reg .pred %p;\n    .reg .b32 %thread, %threads, %w0, %w1, %w2, %w3;\n"
    "    .reg .b64 %to, %from, %n, %a, %b, %step, %each;\n"
    "    ld.param.b64 %to, [x];\n    ld.param.b64 %from, [y];\n    ld.param.b64 %n, [z];\n"
    "    mov.u32 %thread, %tid.x;\n    mov.u32 %threads, %ntid.x;\n"
    "    or.b64 %a, %from, %to;\n    or.b64 %a, %a, %n;\n"
    "    and.b64 %b, %a, 3;\n    setp.ne.u64 %p, %b, 0;\n    @%p bra BYTES;\n"
    "    and.b64 %b, %a, 15;\n    setp.ne.u64 %p, %b, 0;\n    @%p bra WORDS;\n"
    UNITS("VECTORS", "16", "ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%from]", "st.global.v4.u32 [%to], {%w0, %w1, %w2, %w3}")
    UNITS("WORDS", "4", "ld.global.u32 %w0, [%from]", "st.global.u32 [%to], %w0")
    UNITS("BYTES", "1", "ld.global.u8 %w0, [%from]", "st.global.u8 [%to], %w0")
    "}\n";

/* ---- waits and words ---------------------------------------------------------------------------------------------- */

/* Until `reached` sets %p from what is loaded, or the time is over. */
#define WAIT(label, load, reached)                                                                                     \
    label ":\n    " load ";\n    " reached "    @%p bra " label "_DONE;\n"                                             \
    "    mov.u64 %now, %globaltimer;\n    sub.u64 %now, %now, %begin;\n    setp.lt.u64 %p, %now, %limit;\n"            \
    "    @%p bra " label ";\n    st.volatile.global.u32 [%error], 1;\n    ld.param.u64 %a, " FAULT ";\n"               \
    "    st.volatile.global.u32 [%a], 1;\n    mov.u64 %limit, 0;\n"                                                    \
    label "_DONE:\n"

/* %n bytes from %from to the slot %to, as words with four bytes and e in each; and from the slot %from to %to.  Thread i of
 * several has 4 i in %lane; %every: four times their number.  %i: bytes that are left, %whole: all four, at an address for
 * them. */
#define WORDS_BEGIN(label, end, bytes, words)                                                                          \
    "    mov.b64 %step, %lane;\n    add.s64 %from, %from, %step;\n    add.s64 %to, %to, %step;\n"                      \
    "    add.s64 " words ", " words ", %step;\n"                                                                       \
    label ":\n    setp.ge.u64 %p, %step, %n;\n    @%p bra " end ";\n"                                                  \
    "    sub.u64 %a, %n, %step;\n    min.u64 %a, %a, 4;\n    cvt.u32.u64 %i, %a;\n    and.b64 %a, " bytes ", 3;\n"     \
    "    setp.eq.u64 %p, %a, 0;\n    setp.eq.and.u32 %whole, %i, 4, %p;\n"
#define WORDS_END(label, words)                                                                                        \
    "    add.s64 %from, %from, %every;\n    add.s64 %to, %to, %every;\n    add.s64 " words ", " words ", %every;\n"    \
    "    add.s64 %step, %step, %every;\n    bra " label ";\n"
#define WORDS_OUT(label, end)                                                                                          \
    WORDS_BEGIN(label, end, "%from", "%to")                                                                            \
    "    @%whole ld.global.u32 %w0, [%from];\n    @%whole bra " label "_SEND;\n"                                       \
    "    mov.u32 %w1, 0;\n    mov.u32 %w2, 0;\n    mov.u32 %w3, 0;\n    ld.global.u8 %w0, [%from];\n"                  \
    "    setp.gt.u32 %p, %i, 1;\n    @%p ld.global.u8 %w1, [%from + 1];\n"                                             \
    "    setp.gt.u32 %p, %i, 2;\n    @%p ld.global.u8 %w2, [%from + 2];\n"                                             \
    "    setp.gt.u32 %p, %i, 3;\n    @%p ld.global.u8 %w3, [%from + 3];\n"                                             \
    "    shl.b32 %w1, %w1, 8;\n    shl.b32 %w2, %w2, 16;\n    shl.b32 %w3, %w3, 24;\n"                                 \
    "    or.b32 %w0, %w0, %w1;\n    or.b32 %w2, %w2, %w3;\n    or.b32 %w0, %w0, %w2;\n"                                \
    label "_SEND:\n    mov.b64 %word, {%w0, %e};\n    st.relaxed.sys.global.u64 [%to], %word;\n"                       \
    WORDS_END(label, "%to")
#define WORDS_IN(label, end)                                                                                           \
    WORDS_BEGIN(label, end, "%to", "%from")                                                                            \
    WAIT(label "_FULL", "ld.relaxed.sys.global.u64 %word, [%from]",                                                    \
         "mov.b64 {%w0, %seen}, %word;\n    setp.eq.u32 %p, %seen, %e;\n")                                             \
    "    @%whole st.global.u32 [%to], %w0;\n    @%whole bra " label "_NEXT;\n"                                         \
    "    shr.u32 %w1, %w0, 8;\n    shr.u32 %w2, %w0, 16;\n    shr.u32 %w3, %w0, 24;\n    st.global.u8 [%to], %w0;\n"   \
    "    setp.gt.u32 %p, %i, 1;\n    @%p st.global.u8 [%to + 1], %w1;\n"                                               \
    "    setp.gt.u32 %p, %i, 2;\n    @%p st.global.u8 [%to + 2], %w2;\n"                                               \
    "    setp.gt.u32 %p, %i, 3;\n    @%p st.global.u8 [%to + 3], %w3;\n"                                               \
    label "_NEXT:\n"                                                                                                   \
    WORDS_END(label, "%from")

/* ---- messages of any length --------------------------------------------------------------------------------------- */

/* The registers of a kernel, and what both begin with: %e is the number of this exchange, %half the slots for it. */
#define BEGIN                                                                                                          \
    "    .reg .pred %p, %first, %words, %whole;\n"                                                                     \
    "    .reg .b32 %thread, %c, %j, %e, %old, %seen, %w0, %w1, %w2, %w3, %i, %ranks;\n"                                \
    "    .reg .b64 %m, %piece, %half, %error, %begin, %limit, %now, %own, %at, %bytes, %n, %from, %to, %flag;\n"       \
    "    .reg .b64 %a, %step, %word, %done, %lane, %every;\n"                                                          \
    "    mov.u32 %thread, %tid.x;\n    setp.eq.u32 %first, %thread, 0;\n    mov.u64 %begin, %globaltimer;\n"           \
    "    ld.param.u64 %own, " OWN ";\n    ld.param.u64 %limit, " LIMIT ";\n    ld.global.u32 %e, [%own];\n"            \
    "    add.s64 %error, %own, 8;\n    ld.volatile.global.u32 %w0, [%error];\n    ld.param.u64 %half, " HALF ";\n"     \
    "    add.u32 %e, %e, 1;\n    sub.u32 %old, %e, 2;\n    and.b32 %w1, %e, 1;\n    cvt.u64.u32 %a, %w1;\n"            \
    "    mul.lo.u64 %half, %half, %a;\n    setp.ne.u32 %p, %w0, 0;\n"                                                  \
    "    bar.red.or.pred %p, 0, %p;\n    @%p ret;\n"
/* After a wait that was too long: this rank is not done. */
#define LATE "    ld.volatile.global.u32 %w0, [%error];\n    setp.ne.u32 %p, %w0, 0;\n    @%p bra DONE;\n"
/* %m: where the row of message %j begins. */
#define ROW "    mov.b64 %m, table;\n    mad.wide.u32 %m, %j, 88, %m;\n"
/* No acquire: all that follows are writes, which the answer alone allows. */
#define WAIT_FREE                                                                                                      \
    WAIT("FREE", "ld.relaxed.sys.global.u32 %seen, [%done]",                                                           \
         "sub.s32 %seen, %seen, %old;\n    setp.ge.s32 %p, %seen, 0;\n")
/* Piece %c of %bytes bytes: its place %at and its %n bytes; %words: how the message travels. */
#define CUT(end)                                                                                                       \
    "    cvt.u64.u32 %at, %c;\n    mul.lo.u64 %at, %at, %piece;\n    setp.ge.u64 %p, %at, %bytes;\n"                   \
    "    @%p bra " end ";\n    sub.u64 %n, %bytes, %at;\n    min.u64 %n, %n, %piece;\n"                                \
    "    ld.param.u64 %word, " LONGEST ";\n    setp.le.u64 %words, %bytes, %word;\n"

static const char send[] =
    ".visible .entry ptxgen_exchange(.param .align 8 .b8 table[1448])\n.maxntid 512, 1, 1\n{\n"
    BEGIN
    "    mov.u32 %c, %ctaid.x;\n    mov.u32 %j, %ctaid.y;\n    mul.wide.u32 %lane, %thread, 4;\n"
    "    mov.u32 %i, %ntid.x;\n    mul.wide.u32 %every, %i, 4;\n"
    ROW
    "    ld.param.u64 %bytes, " SEND_BYTES ";\n    ld.param.u64 %piece, " SEND_PIECE ";\n"
    CUT("GET")
    "    ld.param.u64 %from, " SEND ";\n    ld.param.u64 %to, " SLOT_THERE ";\n    ld.param.u64 %flag, " FLAG_THERE ";\n"
    "    add.s64 %from, %from, %at;\n    add.s64 %to, %to, %at;\n"
    "    setp.eq.u64 %p, %flag, 0;\n    @%p bra OWN;\n    ld.param.u64 %done, " DONE_THERE ";\n"
    WAIT_FREE
    "    add.s64 %to, %to, %half;\n    @%words bra WORDS;\n"
    COPY
    "    bar.sync 0;\n    @!%first bra GET;\n    mul.wide.u32 %a, %c, 4;\n    add.s64 %flag, %flag, %a;\n"
    "    add.s64 %flag, %flag, %half;\n    st.release.sys.global.u32 [%flag], %e;\n    bra GET;\n"
    "OWN:\n"
    COPY
    "    bra GET;\n"
    "WORDS:\n    add.s64 %to, %to, %at;\n"
    WORDS_OUT("OUT", "GET");

static const char get[] =
    "GET:\n    ld.param.u64 %bytes, " GET_BYTES ";\n    ld.param.u64 %piece, " GET_PIECE ";\n"
    CUT("TELL")
    "    ld.param.u64 %to, " GET ";\n    ld.param.u64 %from, " SLOT_HERE ";\n    add.s64 %to, %to, %at;\n"
    "    add.s64 %from, %from, %half;\n    add.s64 %from, %from, %at;\n    @%words bra READ;\n"
    "    ld.param.u64 %flag, " FLAG_HERE ";\n    mul.wide.u32 %a, %c, 4;\n    add.s64 %flag, %flag, %a;\n"
    "    add.s64 %flag, %flag, %half;\n    @!%first bra ARRIVED;\n"
    WAIT("FLAG", "ld.acquire.sys.global.u32 %seen, [%flag]", "setp.eq.u32 %p, %seen, %e;\n")
    "ARRIVED:\n    bar.sync 0;\n"
    COPY
    "    bra TELL;\n"
    "READ:\n    add.s64 %from, %from, %at;\n"
    WORDS_IN("IN", "TELL");

/* The last block tells all ranks: no slot of theirs is read any more. */
static const char tell[] =
    "TELL:\n    bar.sync 0;\n    @!%first bra DONE;\n    mov.u32 %w1, %nctaid.x;\n    mov.u32 %w2, %nctaid.y;\n"
    "    mul.lo.u32 %w1, %w1, %w2;\n    sub.u32 %w1, %w1, 1;\n"
    "    atom.acq_rel.gpu.global.inc.u32 %w0, [%own + 4], %w1;\n    setp.ne.u32 %p, %w0, %w1;\n    @%p bra DONE;\n"
    LATE
    "    st.global.u32 [%own], %e;\n    ld.global.u32 %ranks, [%own + 12];\n    mov.u32 %i, 0;\n"
    "RANK:\n    mul.wide.u32 %a, %i, 8;\n    add.s64 %a, %a, %own;\n    ld.global.u64 %a, [%a + 16];\n"
    "    st.relaxed.sys.global.u32 [%a], %e;\n    add.u32 %i, %i, 1;\n    setp.lt.u32 %p, %i, %ranks;\n    @%p bra RANK;\n"
    "DONE:\n    ret;\n}\n";

/* ---- short messages alone ----------------------------------------------------------------------------------------- */

/* One block, with a warp for each message. */
static const char words[] =
    ".visible .entry ptxgen_exchange_words(.param .align 8 .b8 table[1448])\n.maxntid 512, 1, 1\n{\n"
    BEGIN
    "    shr.u32 %j, %thread, 5;\n    and.b32 %c, %thread, 31;\n    mul.wide.u32 %lane, %c, 4;\n    mov.u64 %every, 128;\n"
    ROW
    "    ld.param.u64 %n, " SEND_BYTES ";\n    setp.eq.u64 %p, %n, 0;\n    @%p bra GET;\n"
    "    ld.param.u64 %from, " SEND ";\n    ld.param.u64 %to, " SLOT_THERE ";\n    ld.param.u64 %done, " DONE_THERE ";\n"
    "    add.s64 %to, %to, %half;\n"
    WAIT_FREE
    WORDS_OUT("OUT", "GET");
static const char words_get[] =
    "GET:\n    ld.param.u64 %n, " GET_BYTES ";\n    setp.eq.u64 %p, %n, 0;\n    @%p bra TELL;\n"
    "    ld.param.u64 %to, " GET ";\n    ld.param.u64 %from, " SLOT_HERE ";\n    add.s64 %from, %from, %half;\n"
    WORDS_IN("IN", "TELL")
    "TELL:\n    bar.sync 0;\n"
    LATE
    "    @%first st.global.u32 [%own], %e;\n    ld.global.u32 %ranks, [%own + 12];\n"
    "    mov.u32 %i, %thread;\n    mov.u32 %w0, %ntid.x;\n"
    "RANK:\n    setp.ge.u32 %p, %i, %ranks;\n    @%p bra DONE;\n    mul.wide.u32 %a, %i, 8;\n    add.s64 %a, %a, %own;\n"
    "    ld.global.u64 %a, [%a + 16];\n    st.relaxed.sys.global.u32 [%a], %e;\n    add.u32 %i, %i, %w0;\n    bra RANK;\n"
    "DONE:\n    ret;\n}\n";
/* clang-format on */

const char *const exchange_code[EXCHANGE_CODE_PARTS] = { head, send, get, tell, words, words_get };
