/* SPDX-License-Identifier: Apache-2.0 */
/* scan_gen.h - what emitters of scans share: positions, runs of elements, and how runs are joined.
 *
 * A *segment* is a sequence of elements that is scanned on its own; *positions* count its elements in the order of the
 * scan.  A *run* is the combination of consecutive positions.  Runs may span segments: then `cut` says that a segment
 * begins within the run, x is what comes after the last such beginning, and nothing from before the run goes into it.
 *
 * Positions after the end of a segment stand for its last one again, so that loads stay inside and operators see
 * nothing but what elements contribute; no result of theirs is used.
 */
#ifndef PTXGEN_SCAN_GEN_H
#define PTXGEN_SCAN_GEN_H

#include "llvmgen/shared/places.h"
#include "lower/scan/scan.h"

enum { SCAN_ITEMS_MAX = PLACES_AT_ONCE_MAX };

/* ---- runs (runs.c) ----------------------------------------------------------------------------------------------- */

struct run {
    kb_val some; /* bool: holds an element */
    kb_val cut;  /* bool: a segment begins in it */
    kb_tup x;
};
struct run run_none(struct gen *g);
struct run run_of(struct gen *g, kb_tup x, kb_val cut); /* of at least one element */
struct run run_join(struct gen *g, struct run left, struct run right);

/* A run in variables, for loops and branches. */
struct run_var {
    kb_var some, cut;
    kb_tvar x;
};
struct run_var run_var_new(struct gen *g, struct run r);
struct run run_get(struct gen *g, struct run_var v);
void run_set(struct gen *g, struct run_var v, struct run r);

struct scan_ring;
struct scan_ring_tile;

/* ---- the elements that a thread holds (points.c) ----------------------------------------------------------------- */

/* (segment.c) The segment that is being scanned. */
struct scan_segment {
    kb_val number;     /* i64 */
    kb_val first;      /* i64: number of its first element in memory order, where segments are runs of elements */
    kb_val length;     /* i64 */
    struct point here; /* its first element in memory order: for what does not vary within it */
};
/* `number` is less than the number of segments.  Sets g->here, so operators read what belongs to this segment. */
void segment_open(struct gen *g, struct scan_segment *s, kb_val number);
/* All positions of all segments, as one sequence; offsets are not read. */
void segment_open_all(struct gen *g, struct scan_segment *s);
/* Write the totals of the segment; `state` is the combination of its elements, valid unless `empty`. */
void segment_finish(struct gen *g, struct scan_segment *s, kb_tup state, kb_val empty);
/* Of a segment without elements, by the thread where `here` (bool). */
void segment_finish_empty(struct gen *g, struct scan_segment *s, kb_val here);
/* The whole kernel of a scan over value "count" of elements: `body`, which gets `of`, or else the totals of segments
 * without elements. */
void scan_kernel_of(struct gen *g, void (*body)(struct gen *g, void *of), void *of);

static inline kb_ptr ptr_as(kb_ptr p, enum ty type)
{
    p.ty = type;
    return p;
}
/* Direct inputs in variables: loaded in one place, taken in another.  The first keep declares them. */
struct direct_vars {
    bool declared;
    kb_var value[SCAN_ITEMS_MAX][DIRECT_FIELDS_MAX];
};
void direct_keep(struct gen *g, struct direct_vars *v, const struct direct *direct, int n);
void direct_take(struct gen *g, const struct direct_vars *v, struct direct *direct, int n);
/* n values in the order of memory from the order of positions, and back. */
void turn_values(const struct gen *g, kb_val *x, int n);

/* n positions of a thread: consecutive ones from base + own on, or striped, so that every vector of the thread is a
 * stretch by itself and a warp's vectors lie side by side.  The caller sets the fields up to `rows`. */
struct items {
    struct gen *g;
    struct scan_segment *segment;
    int n;
    int stretch; /* consecutive positions at a time, where not all are: n divided by this are KB_WARP * stretch apart; 0 */
    kb_val base;     /* i64 position where the tile begins */
    kb_val own;      /* i32, relative to base */
    kb_val valid;    /* i32: positions from base on that are inside, at least 1 */
    kb_val is_start; /* bool: base + own is where the scan begins */
    bool staged;     /* a block's tile, own = thread * n: vectors of consecutive threads, through the transpose `stage`;
                     striped ones need none, their own = warp * KB_WARP * n + lane * stretch */
    bool apart;      /* else: full tiles are loaded and stored by code of their own, without clamps … */
    bool
        stepwise; /* … and with it: elements follow one another by additions, which multiples in registers cost more than */
    bool chained; /* … of scalars even their addresses do */
    kb_ptr stage;
    bool stage_used; /* since the last block barrier */
    bool rows;       /* segments of equal length follow one another within the tile: */
    kb_val next;     /* i32, relative to base + own: where the next one begins, at least 0 … */
    kb_val period;   /* i32: … and the distance between beginnings, at most the tile and one more */

    bool marked;     /* heads are set before contributions are made … */
    bool within;     /* … and [from, to) are the places, relative to base, that are written */
    kb_val from, to; /* i32 */

    /* Bytes are summed, four positions to a word, in the place of x, upto and state. */
    bool packed;
    kb_val word[SCAN_ITEMS_MAX / 4], state_word[SCAN_ITEMS_MAX / 4]; /* u32 */

    const struct scan_ring *ring; /* the tile is one of a ring (ring.h) */
    const struct scan_ring_tile *ring_tile;

    /* How indices follow without a division per position: all of the tile's are of `segment`, or they are these. */
    bool alone, walked;
    kb_val index[SCAN_ITEMS_MAX][SPACE_MAX];

    const struct turn *turn; /* the tile is one of a strip whose arrays lie in two orders (turn.c), or NULL */

    kb_val full; /* bool: the whole tile is inside; staged or apart: set by the caller */
    bool whole;  /* while the code for full tiles is emitted */
    int beside; /* 1: `direct` begins with the element before the first position, and has the one after the last; or 0 */
    struct direct direct[SCAN_ITEMS_MAX + 2];
    kb_val head[SCAN_ITEMS_MAX];  /* bool: a segment begins here by flags or rows */
    kb_val tail[SCAN_ITEMS_MAX];  /* bool, with rows: a segment ends here */
    kb_tup x[SCAN_ITEMS_MAX];     /* contributions, `init` included where a segment begins */
    kb_tup upto[SCAN_ITEMS_MAX];  /* by items_scan: everything in the segment up to and including the position */
    kb_tup state[SCAN_ITEMS_MAX]; /* by items_scan: what outputs call the state, which may exclude the position */
    bool in_bits[KB_TUP_MAX]; /* of a ring's tile, where some elements are kept: fields of contributions that are … */
    kb_val bits[KB_TUP_MAX][SCAN_ITEMS_MAX / 32]; /* … bits of words, u32, a bit per position */
    struct run outside, total;                    /* what comes before the block's tile, and the tile's total … */
    const struct run *inside; /* … and what comes before each stretch in it; NULL: there is no such tile */
    kb_ptr kept;              /* shared memory in which kept values lie side by side; ir NULL: not yet */
    bool counted;             /* a tile of a block: counters and fields of type bool are bits of words, too */
    kb_tup last;              /* by kept_scan() */
    int put;                  /* 1 + the output whose values lie there already, or 0 … */
    bool met;                 /* … and the block has met a barrier since */
};
/* Load what the positions contribute. */
void items_load(struct items *h);
/* The second half of it: from direct inputs and heads to contributions. */
void items_contribute(struct items *h);
/* Of a block's tile, set `own` and `stretch`. */
void items_arrange(struct items *h);
/* What comes before each stretch of the thread in the block's tile (in_tile[0]: before consecutive positions), and the
 * tile's total, the same in all threads.  The whole block arrives; aggregates may be used again after a barrier. */
struct aggregates;
void items_block_total(struct items *h, const struct aggregates *aggregates, struct run *in_tile, struct run *total);
/* The combination of consecutive positions. */
struct run items_total(struct items *h);
/* Scan the positions, `outside` having been combined before the tile and `inside` (NULL: nothing) as above. */
void items_scan(struct items *h, struct run outside, const struct run *inside);
/* Write the results of the positions that are inside; a staged tile is stored by vectors. */
void items_store(struct items *h);
/* The same as places, for arrangements with a `way` and a `store` of their own. */
struct places items_places(struct items *h);
/* Are they the words of h->state_word? */
bool items_store_words(const struct items *h, int output);
/* Distance of position i from own. */
int items_distance(const struct items *h, int i);
/* Is position i inside the segment? */
kb_val items_inside(const struct items *h, int i);
/* (segment.c) The indices of consecutive positions, where they are asked for: of `segment` alone; or of several rows, from
 * those of the thread's first one on.  And what is known of them at position i, which is at `at` or, if it is not inside, the
 * last one. */
void items_know_indices(struct items *h, bool alone);
void items_set_indices(const struct items *h, struct point *pt, int i, kb_val at);
/* The point at position i, or at the last one inside. */
void items_point(const struct items *h, struct point *pt, int i);
/* Are neighbours taken from the values that the thread has loaded, where it has?  For conditions, which compare them. */
bool items_know_neighbours(const struct items *h);
/* (stage.c) A block's tile: do lanes have them from each other?  Then, around the loads: */
bool beside_fits(const struct items *h);
void beside_load(struct items *h, kb_val *edge /* one per input */);
void beside_take(struct items *h, const kb_val *edge);
/* Place i with its state and what has been loaded there; of: the items. */
void item_point(void *of, struct point *pt, int i);
/* The state at the last position inside, for the thread that holds it. */
kb_tup items_last(const struct items *h);
/* Where there are totals: those of the segment, by the thread that holds its last position. */
void items_finish(const struct items *h);
/* bool: does the thread hold the last position of the segment? */
kb_val items_have_last(const struct items *h);

/* ---- strips whose arrays lie in two orders (turn.c) ------------------------------------------------------------- */

/* What goes through shared memory: fields of direct inputs, and of outputs. */
struct turn {
    kb_val first; /* i64, with scan_turn_planes(): the first element of the column that the thread loads */
    kb_ptr input[DIRECT_FIELDS_MAX];
    kb_ptr output[PROBLEM_ARGS_MAX][STATE_FIELDS_MAX];
};
void turn_new(struct gen *g, struct turn *t); /* once per kernel */
/* The segment of the column: columns are neighbours where lanes store side by side. */
kb_val turn_segment(struct gen *g, kb_val number);
/* Chained positions of a full tile, of `output` too (segscan/down.c): do they go down columns of scalars?  Then they are loaded and
 * stored so. */
bool items_loads_go_down(const struct items *h);
bool items_stores_go_down(const struct items *h, int output);
void items_load_down(struct items *h);
void items_store_down(const struct items *h, kb_ptr out, const kb_val *x);

/* (segscan/down.c) The positions of a column from `base` (i64) on, before `end`, of which `rows` threads take as many as a thread
 * holds; the thread is number `group` (i32) of them. */
struct items items_down(struct gen *g, struct scan_segment *s, kb_val base, kb_val end, int rows, kb_val group);

/* Inputs set out as they lie in memory; all lanes arrive.  Then `direct` is that of the thread's positions; the whole block
 * arrives. */
void turn_fetch(struct items *h, struct direct_vars *ahead);
void turn_take(struct items *h, const struct direct_vars *ahead);
/* Outputs: the fields x at position i; `of` is the items.  Then what was kept is stored, of columns where `exists`; the whole
 * block arrives. */
void turn_keep(void *of, int output, int i, const kb_val *x);
void turn_leave(struct items *h, kb_val exists);
/* (turn_pieces.c) Its second half, with scan_turn_several(). */
void turn_leave_pieces(const struct items *h, kb_val exists);

/* ---- outputs that some elements write (kept.c) -------------------------------------------------------------------- */

/* Does the block gather the values of this output in shared memory? */
bool kept_gathers(const struct items *h, int output);
/* Where all scans count, no value depends on the tiles before: put those of the first such output into shared memory
 * while the block waits.  Before kept_store(), the whole block arrives in both. */
void kept_put_first(struct items *h);
/* In the place of h->x[i], bits of what counters and fields of type bool have. */
void kept_mark(struct items *h);
/* Does the counter or field have something at position i?  bool */
kb_val kept_bit(const struct items *h, int field, int i);
/* Does an output keep what counter r counts? */
static inline bool kept_with(const struct problem *p, int output, int r)
{
    return p->output[output].role == OUT_KEPT && p->output[output].counter == r;
}
/* The combination of the positions; counters have 32 bits.  And the state's types again. */
struct run kept_run(struct items *h);
kb_tup kept_widen(struct gen *g, kb_tup x);
/* Counters have 32 bits in states of the whole kernel from now on, or no longer. */
void kept_narrow(struct gen *g, bool narrow);
/* Of a run, what counter r has, as `type`. */
kb_val kept_counted(struct gen *g, int r, const struct run *x, enum ty type);
/* In the place of items_scan(): `put_one` gets every position with its state, once per counter r, and places[] of its own.
 * And, in the place of items_finish(), with h->outside: the totals. */
typedef void kept_put(struct items *h, kb_var *place, int r, int i);
void kept_scan(struct items *h, struct run outside, struct run inside, kb_var *place, kept_put *put_one);
void kept_finish(const struct items *h);
/* h->counted: the buffer of the values, which the transpose uses before. */
void kept_buffer(struct items *h);
/* The same: scan the positions and store the values that are kept.  The whole block arrives. */
void kept_tile(struct items *h, struct run outside);
/* Store them, of which x has one per position, kept or not.  The whole block arrives. */
void kept_store(struct items *h, int output, const kb_val *x);
/* Where all scans count: what comes before each stretch in the warp, and the warp's total.  The warp arrives. */
struct run kept_count_warp(struct items *h, struct run *in_warp);
/* The same: the state after the tile. */
kb_tup kept_total(const struct items *h);

/* ---- places where segments begin (marks.c) ----------------------------------------------------------------------- */

/* Bits [own, own + n) of a bitmap of the tile's positions (u32, scan_mark_words() of them) become heads. */
void items_take_marks(struct items *h, kb_ptr map);

/* ---- the same by a whole block (block_marks.c) -------------------------------------------------------------------- */

/* Where segments between offsets begin in the block's only tile.  One after the other, by the whole block, without a
 * barrier but those of the last two: */
enum { BLOCK_MARKS_AT_ONCE = 9 };
struct block_marks {
    struct gen *g;
    int tile;
    kb_ptr map;                      /* block_marked() reads it */
    kb_val from, to;                 /* i64: the elements between the first and the last offset */
    kb_val least, offsets;           /* i64: what lies in the tile is at least `least` */
    kb_val expected, in_tile;        /* i64: the first offset in it and their number, if segments are alike */
    kb_val place, probe;             /* i64 of the lane: see warp_around() */
    kb_var begin, size, first, last; /* i64, the same in all threads: of the batch */
    kb_var at[BLOCK_MARKS_AT_ONCE];  /* the thread's of the batch */
};
/* An empty map, and what to expect of the tile that begins at position `base` (i64); reads no memory. */
void block_marks_new(struct gen *g, struct block_marks *m, int tile, kb_val base);
/* Offsets where they are expected set out. */
void block_marks_fetch(struct block_marks *m);
/* The map is complete for all threads; place `first` (i32) is marked too, where `is_start` (bool). */
void block_marks_finish(struct block_marks *m, kb_val first, kb_val is_start);
/* Does a segment begin at the place, plus i?  bool; place is a multiple of v, a power of two, and i less than that. */
kb_val block_marked(struct gen *g, kb_ptr map, kb_val place, int i, int v);

/* ---- bytes, four to a word (packed.c) ---------------------------------------------------------------------------- */

/* Would n positions of which `stretch` at a time are consecutive be held as words?  Segments begin nowhere within. */
bool packed_fits(const struct problem *p, int n, int stretch);
/* The place of the summed input among the direct ones. */
int packed_slot(const struct problem *p);
/* Word w of the bytes that are number `slot` of the direct inputs; after a load of whole words it is such a one. */
kb_val packed_word(const struct items *h, int slot, int w);
/* h->word where the tile is not full, from its bytes, which begin at a multiple of 4; what lies outside means nothing. */
void packed_load_part(struct items *h, kb_ptr from);
/* The bytes of h->state_word that are inside; `to` as above. */
void packed_store_part(struct items *h, kb_ptr to);
/* From h->word to what the positions contribute: `init` where the scan begins. */
void packed_contribute(struct items *h);
/* The combination of n positions from number `first` on. */
struct run packed_total(struct items *h, int first, int n);
/* Scan n positions from number `first` on, which come after `before`: h->state_word, and h->state where those are not
 * stored. */
void packed_scan(struct items *h, int first, int n, struct run before);

/* ---- the transpose (stage.c) ------------------------------------------------------------------------------------- */

/* Shared memory for n positions per thread, one array at a time; this warp's part of it. */
kb_ptr stage_new(struct gen *g, int n, kb_ptr all);
int stage_bytes(const struct gen *g, int n); /* of the buffer */
/* Load a full tile into h->direct, and whether flags mark its positions into h->head. */
void stage_load(struct items *h);
/* Store the n values of a full tile, or, with items_store_words(), its words. */
void stage_store(struct items *h, int output, const kb_val *x);

/* ---- collectives (runs.c) ---------------------------------------------------------------------------------------- */

/* What comes before this thread in the block, and the block's total, the same in all threads.  Every thread has a run
 * of at least one element.  `aggregates`: runs in shared memory, one per warp.  The whole block arrives; aggregates may be used
 * again after a barrier. */
struct aggregates {
    kb_arr x;
    kb_ptr cut;
    bool cuts;
};
struct aggregates aggregates_new(struct gen *g, int count, bool cuts, const char *name);
void aggregates_store(struct gen *g, const struct aggregates *p, kb_val i, struct run r);
struct run aggregates_load(struct gen *g, const struct aggregates *p, kb_val i);
struct run block_scan(struct gen *g, struct run own, const struct aggregates *aggregates, struct run *total);
/* The same from what each warp has, the same in all its lanes: what comes before the warp. */
struct run block_scan_warps(struct gen *g, struct run own, const struct aggregates *aggregates, struct run *total);
/* Its second half: what comes before the warp by the totals of `warps` warps, stored from place `first` on. */
struct run aggregates_before(struct gen *g, const struct aggregates *aggregates, kb_val first, int warps,
                             struct run *total);
/* (three_pass.c) The block turns `count` totals (i32), in global memory, into what comes before each of them; places after the
 * last one repeat it.  The whole block arrives. */
void totals_to_prefixes(struct gen *g, const struct aggregates *totals, kb_val count);
/* Inclusive over the lanes of a warp; all arrive. */
struct run warp_scan(struct gen *g, struct run own, int lanes, bool cuts);
/* What one lane has, for all of them, which all hold a run. */
struct run run_from_lane(struct gen *g, struct run r, kb_val lane, bool cuts);
/* What comes before the lane in the warp, and the warp's total, the same in all lanes; all arrive. */
struct run warp_scan_exclusive(struct gen *g, struct run own, bool cuts, struct run *total);

#endif
