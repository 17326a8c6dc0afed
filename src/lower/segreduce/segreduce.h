/* SPDX-License-Identifier: Apache-2.0 */
/* segreduce.h - what the planning of segmented reductions shares. */
#ifndef PTXGEN_SEGREDUCE_H
#define PTXGEN_SEGREDUCE_H

#include "lower/lower_impl.h"
#include "lower/segments.h"

/* ---- limits: which sizes go to which case; what has been measured stands in docs/design/segreduce-*.md ------------ */
enum {
    SEG_WARP = 32,
    SEG_VECTOR_BYTES = 16,
    SEG_PARTS_MAX = 1 << 16, /* blocks that share a segment, or a group of columns */

    /* Rows, in vectors of a segment: */
    ROWS_WARP = 400,       /* a warp each up to here; 2048 elements: 61.9 by a block, 62.7 us by a warp, … */
    ROWS_SHORT = 128,      /* four lanes each up to here, of narrow elements that take many instructions */
    ROWS_WARP_WIDE = 1024, /* … or here: a warp's tree costs states of several words less than a block's */
    ROWS_BLOCK = 2048,     /* 256 threads up to here; 64 of states of several words, … */
    ROWS_BLOCK_WIDE = 6144,
    ROWS_BLOCK_ORDERED = 4200, /* … up to here where their operators commute, or not, … */
    ROWS_WIDE_PER_SM = 16,     /* … and where so many rows of a multiprocessor fill it */
    ROWS_SPLIT = 8192,         /* several blocks each from here on, where blocks do not fill the device evenly: */
    ROWS_BLOCKS_PER_SM = 4,
    BESIDE_MAX = 32, /* elements of a lane at once where maps read neighbours */
    /* Tiles of whole rows: */
    TILE_SEGMENTS_MIN = 8,
    TILE_STAGES = 2,
    TILE_STAGED_MAX = 72 * 1024, /* bytes of a block */

    /* Columns: */
    COLUMN_STATE_WORDS_MAX = 32, /* of a thread's columns, … */
    COLUMNS_SHARING = 4,         /* of a thread, where no array is read in vectors */
    COLUMN_WIDE_WORDS = 8,       /* … from which on four vectors are in flight */
    COLUMN_FILL_THREADS = 1024,  /* per multiprocessor, from which on a thread takes all places */

    /* Whole segments between offsets, in vectors of a segment in the mean: */
    WHOLE_LEAST = 128,          /* shorter ones are better staged, … */
    WHOLE_LEAST_FEW = 64,       /* … but not where that takes two launches of next to nothing */
    WHOLE_WARP = 400,           /* up to here a warp each, … */
    WHOLE_BLOCK = 2048,         /* … up to here too where warps fill the device, and small blocks elsewhere */
    WHOLE_FILLED = 800,         /* from here on one round of 256 threads, in small arrays */
    WHOLE_PARTED = 8192,        /* up to here no two parts one after the other, in small arrays */
    WHOLE_WIDE = 12000,         /* from here on blocks of 512 threads, which need no queue */
    WHOLE_MOST = 20000,         /* longer ones are shared by all blocks */
    WHOLE_QUEUE = 1024,         /* warps up to here and blocks beyond, beside a queue of parts: */
    QUEUE_LARGE = 1 << 17,      /* elements per multiprocessor from which on the queue costs less than it saves */
    WHOLE_WARPS_PER_SM = 32,    /* that fill the device */
    WHOLE_SMS_PER_SEGMENT = 16, /* where a segment has more of them, all blocks share it too */
    WHOLE_WIDE_THREADS = 128,   /* of blocks with a queue for states of several words */
    WHOLE_WIDE_ITEMS = 4,       /* loads in flight beside states of several words */
    WHOLE_SMALL = 1 << 14,      /* elements per multiprocessor up to which an array is small */
    LARGE_SM = 2048,            /* threads */
    FEW_VALUES = 16,            /* of a thread's loads, that fit into the registers of a full multiprocessor */
    /* Their tiles: */
    WHOLE_TILES = 4096, /* of the array, … */
    TILE_ROUNDS_MIN = 2,
    TILE_ROUNDS_MAX = 16,      /* … of so many rounds of loads of a block, … */
    WHOLE_TILES_MAX = 1 << 16, /* … more where these were too many */
    TILES_EACH = 2,            /* that a block looks after at least */
    LOOKING_WARPS = 8,         /* per multiprocessor, beside a queue */

    /* Shares of elements between offsets: */
    SHARE_STAGES = 2,
    SHARE_TILE_MAX = 4608, /* bytes of all arrays that a warp stages at a time, … */
    SHARE_MIN = 512,       /* … and the fewest elements that are worth finding out where they lie */
    SHARE_LONG = 8192,     /* elements of a segment in the mean */
    SHARE_ENDS = 8192,     /* segments per share, where there are more of them than elements */
    MERGED_PER_SM = 64,    /* merge path: shares per multiprocessor */
    MERGED_MIN = 512
};

/* ---- facts ------------------------------------------------------------------------------------------------------- */
/* Has it segments of one size, or offsets?  Else *why. */
bool segreduce_regular(const struct problem *p, const char **why);
bool segreduce_between_offsets(const struct problem *p, const char **why);
/* Are segments runs of elements? */
bool segreduce_runs(const struct problem *p);
/* Does segreduce.resident take rows of this problem? */
bool segreduce_resident_takes(const struct problem *p);
int64_t segreduce_tile_length(const struct planner *pl); /* up to where segreduce.tile takes segments; 0: not at all */
int segreduce_state_words(const struct problem *p);      /* registers of one state */
/* Bytes of so many elements of every array that is read element by element, and `slack` for each. */
int64_t segreduce_staged_bytes(const struct problem *p, int64_t elements, int slack);
/* Elements after which every direct array is at a multiple of 16 bytes again; 0: there is no direct array. */
int segreduce_quantum(const struct problem *p);
bool segreduce_power_of_two(int x);

/* ---- cases ------------------------------------------------------------------------------------------------------- */
/* A case: `what` is the strategy's own; `aligned`: arrays begin at a vector boundary. */
typedef struct plan_case *segreduce_case(struct planner *pl, const struct strategy *row, const void *what,
                                         const char *name, struct formula guard, bool aligned);
/* A case for arrays that begin at a boundary of `vector` elements (0: of the case's vectors), and after it one of the
 * same tree for arrays that begin `anywhere`, or where results must not depend on addresses. */
void segreduce_add(struct planner *pl, const struct strategy *row, segreduce_case *make, const void *what,
                   const char *name, int vector, struct formula guard, bool anywhere);
/* Fewer items, where a thread would hold too many elements and the user sets none. */
void segreduce_fit_items(struct plan_case *c);
/* The shapes of a strategy (shapes.c), up to one that takes all lengths. */
void segreduce_add_shapes(struct planner *pl, const struct strategy *row);
void segreduce_add_boxes(struct planner *pl, const struct strategy *row);

/* ---- building ---------------------------------------------------------------------------------------------------- */
/* The problem's arguments, and what every kernel of segments is given. */
struct prog_kernel *segreduce_kernel(struct planner *pl, struct plan_case *c, const char *suffix);
/* A kernel of teams of lanes that read stretches, and what its tunables have to obey. */
struct prog_kernel *segreduce_team_kernel(struct planner *pl, struct plan_case *c, const char *suffix);
bool segreduce_check_tunables(struct planner *pl, const struct plan_case *c, bool vectors);
/* At most as many blocks as the user allows, or as a grid may have. */
struct formula segreduce_bounded(const struct plan_case *c, struct formula blocks);
/* Parts that `length` is cut into, so many elements each: equal, of whole steps, none empty; arguments of the kernel.
 * Returns how many there are. */
struct formula segreduce_parts(struct prog_kernel *k, struct formula length, struct formula wanted, int64_t step,
                               int64_t least);

/* segreduce.block between offsets (whole.c). */
void segreduce_whole_plan(struct planner *pl, const struct strategy *row);
bool segreduce_whole_build(struct planner *pl, struct plan_case *c);

#endif
