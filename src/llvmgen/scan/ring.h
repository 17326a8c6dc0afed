/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - tiles of a scan on their way through shared memory: bulk copies in, in place, bulk copies out. */
#ifndef PTXGEN_SCAN_RING_H
#define PTXGEN_SCAN_RING_H

#include "llvmgen/shared/tile_state.h"
#include "tile.h"

struct scan_ring {
    struct gen *g;
    struct scan_layout layout;    /* of a stage */
    int stages, tile;             /* tile: elements */
    int each;                     /* of a thread */
    int warps;                    /* of the downsweep; a part of the tile for each */
    struct aggregates aggregates; /* per stage and warp: the total of its part */
    kb_ptr marks;                 /* where segments begin anywhere: u32, a bitmap of its tile's positions per stage */
    kb_ptr data;
    kb_ptr ticket; /* u64 per stage: the word of its ticket */
    kb_arr prefix; /* per stage */
    /* outputs that some elements write: per stage and output, where the first value of the tile goes (i64), and how many
     * there are (i32) */
    kb_ptr kept_first, kept_count;
    /* mbarriers per stage, one arrival each but for `combined` and `scanned` */
    kb_ptr empty;    /* the stage is free */
    kb_ptr numbered; /* its ticket is there */
    kb_ptr full;     /* its tile is there, and its bitmap */
    kb_ptr combined; /* the total of every warp's part of it is there */
    kb_ptr prefixed; /* the prefix of its tile is there */
    kb_ptr
        scanned; /* every warp of the downsweep has written its results, and the publishing warp has read the parts */
    /* columns by look-back */
    int looks;               /* look-back warps; 0: one look-ahead warp */
    kb_ptr published;        /* the totals of the stage's tile are in `total`, and published */
    kb_ptr looked;           /* each look-back warp has stored what it has read in `seen` and `ends` */
    kb_arr total;            /* per stage and column */
    kb_arr seen;             /* per stage, warp and lane */
    kb_ptr ends;             /* u32 per stage and warp, a bit per lane: what it has seen ends with a prefix */
    struct scan_segment all; /* of a whole array */
    kb_val begin, end;       /* i64, between offsets: the elements that are written */
};
/* Shared memory and mbarriers; one thread initialises them, and a barrier must follow.  All threads. */
void scan_ring_new(struct gen *g, struct scan_ring *r);

/* Where a warp or team (`uni`) is in its way around the ring; `parity` is that of the phase to wait for. */
struct scan_ring_place {
    kb_var stage, parity;
};
struct scan_ring_place scan_ring_begin(const struct scan_ring *r, int parity, kb_uni uni);
void scan_ring_advance(const struct scan_ring *r, struct scan_ring_place at);

struct scan_ring_tile {
    struct ticket ticket;
    kb_val exists; /* bool: the ticket is not one too many */
    kb_val stage;
    struct scan_segment segment; /* that it is part of */
    kb_val index;                /* i32: of the tile in its segment */
    kb_val base;                 /* i64: its first position in the segment */
    kb_val valid;                /* i32: its positions */
    kb_val start;                /* i64: its first element in the order of memory */
    kb_ptr data;                 /* u8 */
};
struct scan_ring_tile scan_ring_tile(const struct scan_ring *r, kb_val word, kb_val stage);
/* Operators read what belongs to the tile's segment, as long as *t lives. */
void scan_ring_enter(const struct scan_ring *r, struct scan_ring_tile *t);

/* An array's part of the tile, at its offset in a stage. */
kb_ptr scan_ring_array(const struct scan_ring *r, const struct scan_ring_tile *t, int offset, enum ty type);

/* Lanes 0 and 1 of the producer: the elements before and after a tile whose copies do not bring them, or what the boundary
 * has there. */
void scan_ring_fill_beside(const struct scan_ring *r, const struct scan_ring_tile *t);
/* All lanes of a warp: copy what is less than 16 bytes of its inputs; a warp sync must follow. */
void scan_ring_fill_rest(const struct scan_ring *r, const struct scan_ring_tile *t);
/* Where segments begin anywhere, all lanes of a warp: fill the bitmap, which no other warp writes.  The caller then arrives
 * at `full`. */
struct scan_marker {
    const struct scan_ring *r;
    kb_var first,
        least;      /* i64: the warp's latest tile begins with element `least`, and its offsets with number `first` */
    kb_var density; /* f32: offsets per element from the one before to that one, by which the next is expected */
};
void scan_marker_new(const struct scan_ring *r, struct scan_marker *m);
void scan_ring_mark(struct scan_marker *m, const struct scan_ring_tile *t);
/* The bitmap of the tile. */
kb_ptr scan_ring_marks(const struct scan_ring *r, const struct scan_ring_tile *t);
/* One lane: announce the tile to `full` and start the copies of its inputs. */
void scan_ring_fill(const struct scan_ring *r, const struct scan_ring_tile *t);
/* All lanes of a warp: copy its outputs, lane i what whole units of 16 bytes output i has, as a bulk copy.  The threads
 * that wrote them have called scan_ring_store and met. */
void scan_ring_drain(const struct scan_ring *r, const struct scan_ring_tile *t);
/* A piece of it: elements [from, to) (i32) of an array that begins at `stage` and at `memory`, both multiples of 16
 * bytes; `lane` starts the bulk copy. */
void scan_ring_drain_piece(const struct scan_ring *r, kb_ptr stage, kb_ptr memory, kb_val from, kb_val to, int lane);
/* Before the first of them: what lies outside of all segments is not copied. */
void scan_ring_bounds(struct scan_ring *r);

/* Store the total of a warp's part of the tile, which lane 0 has. */
void scan_ring_publish_part(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val warp, struct run total);
/* What comes before this warp's part of the tile, and the tile's total; waits until all parts are stored.  All lanes. */
struct run scan_ring_parts(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity, struct run *total);
/* One whole warp: publish the tile's total; the warp does not use the stage afterwards. */
void scan_ring_publish(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity);

/* The n positions of thread number `thread` in the tile, r->each in the team: sets up *h (all but g) and its direct
 * inputs. */
void scan_ring_load(struct scan_ring *r, struct scan_ring_tile *t, kb_val thread, int n, struct items *h);
/* Write the outputs of h into the stage, for scan_ring_drain. */
void scan_ring_store(struct items *h);
/* Elements of an output that are 16 bytes. */
int scan_ring_unit(const struct problem *p, int output);

/* ---- outputs that some elements write (kept_ring.c) --------------------------------------------------------------- */

/* In the place of items_scan() and items_finish(): scan the positions, and put the values that are kept into the stage,
 * which all threads of the team have read.  scan_ring_store() follows. */
void kept_ring_scan(struct items *h, struct run outside, const struct run *inside);
/* All lanes of a warp: copy the values that the tile keeps, as scan_ring_drain() does. */
void kept_ring_drain(const struct scan_ring *r, const struct scan_ring_tile *t);

#endif
