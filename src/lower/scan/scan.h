/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - what planning and emission of scans share: how the scanned elements lie in memory.
 *
 * A scan has *segments*: one per combination of the kept axes, or one per pair of offsets, or a single one.  The
 * elements of a segment have *positions* 0, 1, … in the order of the scan, which for `direction: reverse` is against
 * the order of memory.
 */
#ifndef PTXGEN_SCAN_H
#define PTXGEN_SCAN_H

#include "lower/segments.h"

struct plan_case;

/* What segments.h says of reduced axes holds for scanned ones. */
static inline bool scan_keeps(const struct problem *p) { return segments_kept(p); } /* an axis is not scanned */
/* Scanned axes are the last ones: a segment is a run of elements, and segments follow one another. */
static inline bool scan_trailing(const struct problem *p) { return segments_trailing(p); }
/* The last axis is scanned: neighbouring positions are neighbours in memory, but for those of different pieces. */
static inline bool scan_in_lines(const struct problem *p) { return scan_trailing(p) || segments_in_pieces(p); }
/* Axes that are scanned. */
static inline int scan_axes(const struct problem *p)
{
    int n = 0;
    for (int d = 0; d < p->rank; d++)
        n += p->space[d].reduced;
    return n;
}
/* Do maps load more than the elements of their positions? */
bool scan_loads_elsewhere(const struct problem *p);
bool scan_reads_neighbours(const struct problem *p);
/* A whole array. */
static inline bool scan_single(const struct problem *p) { return !scan_keeps(p) && p->offsets < 0; }
/* Segments of equal length, each by itself. */
static inline bool scan_has_rows(const struct problem *p) { return scan_keeps(p) && p->offsets < 0 && p->flags < 0; }
/* scan.pipeline: segments begin anywhere in one sequence of elements, between offsets, at flags, or at equal distances
 * where nothing else depends on the row. */
bool scan_marked(const struct problem *p);
/* The same: columns are scanned side by side, at most 32 threads with so many each. */
enum { SCAN_COLUMNS_VECTOR = 4 };
bool scan_few_columns(const struct problem *p);
/* The most columns, of threads with `vector` columns each; with look-back, one per lane. */
static inline int scan_columns_most(int looks, int vector) { return looks ? 32 : 32 * vector; }
/* Else: rows begin with tiles of their own. */
static inline bool scan_own_tiles(const struct problem *p)
{
    return scan_keeps(p) && !scan_marked(p) && !scan_few_columns(p);
}
/* Words of a bitmap of a tile's positions; threads that read theirs in whole words read one more. */
static inline int scan_mark_words(int tile) { return tile / 32 + 1; }
bool scan_has_totals(const struct problem *p);
/* An operator reads inputs (that do not vary within a segment), or the `init` of a distributed scan does. */
bool scan_operator_reads(const struct problem *p);
/* Is an output the state at its element, or the lowest byte of it, as a byte? */
bool scan_stores_byte(const struct problem *p, int output);
/* The direct input whose bytes are summed, where every output is the lowest byte of the sums and segments are stretches
 * in the order of memory; -1: none.  Four positions are then scanned at a time, where threads hold whole
 * words. */
int scan_summed_bytes(const struct problem *p);
/* Are bytes compared, and nothing wider written? */
bool scan_compares_bytes(const struct problem *p);
/* The most positions that a thread holds, whose vectors or pieces of consecutive positions have `vector` elements. */
int scan_items_most(const struct problem *p, int vector);
/* Words of 4 bytes that a thread holds per position: inputs and states. */
int scan_items_in_words(const struct problem *p);
/* Is there an output of some elements? */
bool scan_keeps_some(const struct problem *p);
/* scan.pipeline: does its ring gather the elements of such outputs side by side, and have them with what lies beside a
 * tile, where conditions compare neighbours? */
bool scan_ring_keeps(const struct problem *p);
bool scan_ring_beside(const struct problem *p);
/* Tiles of blocks: are all outputs per element such ones, and their values put by bits of words? */
bool scan_marks_kept(const struct problem *p, const struct plan_case *c);
int scan_kept_bytes(const struct problem *p); /* then: per position, of all outputs */
/* Scans by index: bytes per element of what a tile stages to finish its elements bin after bin, where all of them go to
 * computed places; 0: it does not. */
int scan_bins_staged(const struct problem *p);
/* Does a block take a stretch of tiles, which it reads twice, because a tile has too few elements for its bins? */
bool scan_bins_stretches(const struct plan_case *c);
/* Does what an element writes, or its index, depend on where it is in its segment? */
bool scan_bins_positions(const struct problem *p);
/* Do all scans count the elements of outputs with conditions? */
bool scan_counts(const struct problem *p);
/* Elements per thread by Clausen's model of the sequentiality degree, from what the device has for each of the threads
 * that the case keeps resident; and those that the case has. */
int scan_model_degree(const struct problem *p, const struct device *d, const struct plan_case *c);
int scan_degree(const struct plan_case *c);
int64_t scan_tile_elements(const struct plan_case *c); /* elements of a block's tile */
/* scan.pipeline: does a reversed scan begin with a small tile of its own, so that all other tiles begin where bulk copies
 * may, whatever the length?  With tiles of `tile` elements, it has up to so many elements, or rows of a few columns. */
bool scan_leads(const struct problem *p);
int scan_lead_most(const struct problem *p, int tile);
/* Where the arrays of a tile lie in a stage of scan.pipeline: byte offsets, -1 for what is not copied; an output takes
 * the place of an input of its width where it can.  bytes: of the stage.  An input whose neighbours are read has room
 * for one element on either side; kept values begin anywhere in the first 16 bytes. */
struct scan_layout {
    int input[PROBLEM_ARGS_MAX], output[PROBLEM_ARGS_MAX];
    int bytes;
};
void scan_layout(const struct problem *p, int tile, struct scan_layout *l);
/* Consecutive tiles whose totals a lane of its look-ahead reads: 32 times as many are a window. */
int scan_ahead_each(const struct problem *p);
/* Products of the extents of the scanned and of the kept axes. */
static inline struct formula scan_length(const struct problem *p) { return segments_length(p); }
static inline struct formula scan_segments(const struct problem *p) { return segments_count(p); }

/* ---- outputs in another order (segscan/turned.c) ------------------------------------------------------------------- */

/* The axis of their last dimension, which threads side by side store along; -1: there is none, or nothing turns. */
int scan_turn(const struct problem *p);
/* Lanes follow this axis, and direct inputs arrive through shared memory … */
bool scan_turns_inputs(const struct problem *p);
/* … or else this output leaves through it. */
bool scan_turns_output(const struct problem *p, int output);
/* Neither that axis nor the space's last one is scanned: blocks take boxes of both, plane by plane. */
bool scan_turn_planes(const struct problem *p, const struct plan_case *c);
/* Two axes are scanned, of which it is the first; the last of three is kept. */
bool scan_turn_several(const struct problem *p);
/* Elements of `bytes` of such a tile. */
int scan_turn_elements(const struct problem *p, const struct plan_case *c, int bytes);

/* ---- planning ---------------------------------------------------------------------------------------------------- */

struct planner;
struct strategy;
struct misfit;
/* Blocks per multiprocessor of a grid whose blocks wait for each other: every device and the host executor have as many. */
enum { SCAN_RESIDENT = 2 };
/* Where the output's last dimension is the first of two scanned ones; and, of segments of pieces, elements of memory for a tile that such an output leaves through. */
bool scan_turns_pieces(const struct problem *p, int output);
int scan_tile_turned(const struct plan_case *c);
/* Of several dimensions: are indices asked for, by index(), by inputs or by outputs? */
bool scan_asks_indices(const struct problem *p);
/* Results that go where indices say, one by one. */
bool scan_stores_by_index(const struct problem *p);
/* scan.lookback: are states of three or four words, so that more positions of a thread are worth more than vectors of them? */
bool scan_lookback_wide(const struct problem *p);
/* scan.lookback: tiles of rows take turns. */
bool scan_takes_turns(const struct problem *p, const struct plan_case *c);
/* Kernel and launch of a case whose one block takes a whole array. */
bool scan_whole_build(struct planner *pl, struct plan_case *c);
/* Does a strategy that spreads long scans over the device take what is left? */
/* Do operators take so long that a few warps cannot combine for all?  H200, logsumexp of 2^25 f64: scan.pipeline 836 us,
 * 556 with 8 warps that combine; look-back 429. */
bool scan_laborious(const struct planner *pl);
bool scan_spreads(struct planner *pl);
/* A case with the tunables of a variant. */
struct plan_case *scan_add_variant(struct planner *pl, const struct strategy *row, const char *variant,
                                   const char *name, struct formula guard);
/* A case with vectors and one with single elements, tunables of a variant; `smem_transpose`: through the transpose. */
void scan_add_cases(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                    struct formula guard, bool staged);
bool scan_check_tunables(struct planner *pl, const struct plan_case *c);
/* A kernel with the arguments that all scans have: those of the problem, length, segments. */
struct prog_kernel *scan_kernel(struct planner *pl, struct plan_case *c, const char *suffix);
/* Its further arguments where tiles cut across segments: count, tiles. The number of tiles. */
struct formula scan_tile_args(struct planner *pl, struct plan_case *c, struct prog_kernel *k);
/* The same where every row has tiles of its own: count, per_segment, tiles. */
struct formula scan_row_tile_args(struct planner *pl, struct plan_case *c, struct prog_kernel *k);
struct formula scan_row_tiles(const struct problem *p, const struct plan_case *c); /* of whole arrays too */
/* Buffer "states": the counter of tickets, a line of its own, and the states of tiles that depend on one another. */
void scan_control_args(struct planner *pl, struct plan_case *c, struct formula tiles);

#endif
