/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.h - what strategies give to their kernels, beside what every kernel gets of the problem.
 *
 * Planning adds these arguments (plan_value_arg(), plan_buffer_arg()) and emitters read them (gen_value(),
 * gen_buffer()), both by the identifier.  The name is what plans, manifests and PTX show.  Rows: id, name.
 */
#ifndef PTXGEN_ARGUMENTS_H
#define PTXGEN_ARGUMENTS_H

/* clang-format off */
/* Numbers. */
#define KERNEL_VALUES(X)                                                                                               \
    /* several families */                                                                                             \
    X(SEGMENTS, "segments") X(LENGTH, "length") X(COUNT, "count") X(TILES, "tiles") X(ROWS, "rows")                    \
    X(STRIPS, "strips") X(RECIPROCAL1, "reciprocal1") X(RECIPROCAL2, "reciprocal2")                        \
    X(DIVISOR0, "divisor0") X(DIVISOR1, "divisor1") X(DIVISOR2, "divisor2") X(DIVISOR3, "divisor3")                    \
    X(DIVISOR4, "divisor4") X(DIVISOR5, "divisor5") /* reciprocals of sizes, in their order */                         \
    /* reduce */                                                                                                       \
    X(HEAD, "head") X(LEAD, "lead") X(VECTORS, "vectors") X(BLOCKS, "blocks") X(COLUMNS, "columns") X(BINS, "bins")    \
    X(ELEMENTS, "elements")                                                                                            \
    /* segreduce */                                                                                                    \
    X(VECTOR_END, "vector_end") X(VECTORS_ACROSS, "vectors_across") X(PARTS, "parts") X(CHUNK, "chunk")                \
    X(PER_TILE, "per_tile") X(SHARE, "share") X(SHARES, "shares") X(TILE, "tile") X(PACE, "pace") X(STAY, "stay")      \
    X(WATCHING, "watching") X(HELPING, "helping")                                                                      \
    /* scan, segscan */                                                                                                \
    X(PER_SEGMENT, "per_segment") X(TICKETS, "tickets") X(RECIPROCAL, "reciprocal") X(ACROSS, "across") X(PER_WARP, "per_warp")                \
    X(FLAGS_ALIGNED, "flags_aligned") X(PIECE, "piece")                                                                                  \
    /* stencil */                                                                                                      \
    X(PLACES, "places") X(BOXES1, "boxes1") X(BOXES2, "boxes2") X(LANES_X, "lanes_x") X(LANES_Y, "lanes_y") \
    X(STEPS, "steps") X(BOXES0, "boxes0") X(ENDS_BEFORE, "ends_before") X(ENDS_AFTER, "ends_after")                    \
    X(SENDERS, "senders")

/* Workspace. */
#define KERNEL_BUFFERS(X)                                                                                              \
    /* several families */                                                                                             \
    X(PARTIAL, "partial0") /* the first of one for each field of the state */                                          \
    X(COUNTER, "counter") X(STATES, "states") X(WORDS, "words")                                                        \
    /* reduce */                                                                                                       \
    X(ACCUMULATOR, "accumulator") X(TABLE, "table") X(RESULTS, "results")                                              \
    /* segreduce */                                                                                                    \
    X(CARRY, "carry") X(LAUNCH, "launch") X(COUNT, "count") X(QUEUE, "queue") X(PARTS, "parts")                        \
    /* scan */                                                                                                         \
    X(CUTS, "cuts")
/* clang-format on */

/* 0: no argument of these. */
enum kernel_value {
    VAL_NONE,
#define X(id, name) VAL_##id,
    KERNEL_VALUES(X)
#undef X
};

enum kernel_buffer {
    BUF_NONE,
#define X(id, name) BUF_##id,
    KERNEL_BUFFERS(X)
#undef X
};

#endif
