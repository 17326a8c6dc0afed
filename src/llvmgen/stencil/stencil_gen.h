/* SPDX-License-Identifier: Apache-2.0 */
/* stencil_gen.h - what the files of the stencil emitters share: windows of points and the values around them. */
#ifndef PTXGEN_STENCIL_GEN_H
#define PTXGEN_STENCIL_GEN_H

#include "llvmgen/shared/output.h"
#include "llvmgen/shared/pair_tiles.h"
#include "lower/stencil/stencil.h"

/* A value that points of the window read: a field of a direct input at a distance from the window's first point. */
struct cell {
    int input, field;
    int at[SPACE_MAX];
    bool late;     /* loaded where a point needs it first; see sweep_rows() */
    bool sideways; /* some point reads it in another column than its own */
    bool mended;   /* what it has beyond the ends of its row is right */
    kb_val v;      /* ir NULL: not loaded yet */
    kb_val word;   /* bytes: the word that it was loaded in, u32, and its place in it; ir NULL: loaded alone */
    int byte;
    struct emit_cached two, four; /* this byte and the second one after it in halves of a word; four from it on */
};

/* How much of a window, with all that its points read at known offsets, lies inside the arrays. */
enum placement {
    PLACE_INSIDE, /* all */
    PLACE_ROWS,   /* all but columns, along the last axis; and there are rows before and after those that are read */
    PLACE_EDGE,   /* nothing is known but that a point exists */
};

/* A block's box of an input with everything around it that its points read, in shared memory. */
struct tile {
    bool staged;
    int extent[SPACE_MAX];
    kb_ptr field[STATE_FIELDS_MAX];
};

/* The values of a block's box of an output that leaves in its own order (turned.c). */
struct turned {
    bool kept;
    kb_ptr field[STATE_FIELDS_MAX];
};

/* The planes of an input, with everything around the block's tile that its points read, one after another in a ring in
 * shared memory. */
struct ring {
    bool staged;
    struct ring_shape is;
    bool copies; /* an element is one asynchronous copy */
    int vector;  /* elements of one; 1 unless rows begin at vector boundaries */
    kb_ptr field[STATE_FIELDS_MAX];
    kb_val at; /* i32: the thread's first row and column in a plane of the ring, but for what lies before the tile */
};

/* A kernel that takes rows beyond the part from other ranks (joined.c). */
struct joined {
    struct gen *g;
    int input, before, after; /* of which; how many rows */
    int rows;                 /* of both sides that the window has room for in one exchange */
    int at_once;              /* loads of a sender */
    kb_val senders;           /* u32: blocks that send */
    kb_val low, high;         /* u32: rows of boxes at the ends */
    kb_val box[SPACE_MAX];    /* i64: points of a box */
    kb_val at_end, end[2];    /* bool: the block is at an end of the part; there it reads rows of other ranks */
    kb_val amount;            /* u32: in how many of the parts it has */
    kb_var number;            /* u32: of the exchange, where it has any; 0: none */
};

/* The points of one thread, side by side from `origin` on. */
struct window {
    struct gen *g;
    int rank, points[SPACE_MAX];
    kb_val origin[SPACE_MAX], extent[SPACE_MAX]; /* i64 */
    enum placement place;
    bool vectors;                /* rows of the window begin at vector boundaries */
    bool skewed;                 /* each row begins at a column of its own; see stencil_skew() */
    const struct tile *tile;     /* per input, or NULL */
    const struct turned *turned; /* per output, or NULL */
    const kb_val *box;           /* the first point of the block, where it has one */
    const struct ring *ring;     /* per input, or NULL */
    struct pair_tiles *pairs;    /* what sums read, or NULL */
    struct joined *joined;       /* or NULL */
    int turn;                    /* with rings: where the lowest plane that is read lies */
    kb_val first;                /* i64: number of the element at the origin, where it is known already; else ir NULL */
    bool together;               /* points are computed side by side, operation by operation */
    bool by_distance;            /* PLACE_ROWS: places of columns are computed from the row's first point */
    bool partial;                /* values grow plane by plane: what is read around points lies in the newest, … */
    int away;                    /* … and the points are those so many places on, which may not exist */
    uint64_t word_ends;          /* a bit per input: see ends_in_words() */
    bool whole;                  /* all points exist and none is skipped, whatever the placement says */
    kb_val exists;               /* bool: points may exist; ir NULL: they may */
    kb_val any;                  /* bool: there is a point to compute; ir NULL: there is one */
    int ncells, capacity;
    struct cell *cell;
    int nspots;
    struct spot *spot; /* coordinates that have gone through their boundary */
};

/* Where a coordinate `at` from the first point along an axis is read. */
struct spot {
    int axis, at, mode;
    kb_val index, beyond; /* index: i32 in windows in vectors, else i64; beyond.ir NULL: never outside */
};

/* A window without cells; the cells of all that its points read; their values, of those that have none yet;
 * window_free() when it has been emitted.  window_load() does the middle ones. */
void window_init(struct window *w, struct gen *g, const kb_val *origin, const int *points, enum placement place);
void window_collect(struct window *w);
void window_fill(struct window *w);
void window_load(struct window *w);
/* NULL: no point of the window reads there. */
struct cell *window_cell(struct window *w, int input, int field, const int *at);
void window_free(struct window *w);
/* The row of `at` at the column of the first point, in an array that lies at p and has all axes; `at` lies inside but
 * for its column. */
kb_ptr window_row(struct window *w, const struct prog_array *a, kb_ptr p, const int *at);
/* A field of a direct input, `at` from the first point; loads it if it is no cell. */
kb_val window_read(struct window *w, int input, int field, const int *at);
/* Where only columns may leave: are all values of an input loaded as if rows went on, and put right afterwards?  Does that for
 * the values that have been loaded. (ends.c) */
bool ends_mended(const struct window *w, int input);
/* Columns of which the windows of points that exist read fewer beyond either end of a row. */
int64_t ends_beyond(const struct gen *g);
void ends_mend(struct window *w);
/* The inputs whose words at the ends of rows can be made of those beside them, in windows of sums that share parts. */
uint64_t ends_in_words(const struct window *w);
/* Where dimension d of an input is read `at` from the first point. *outside: replaces the value in `beyond` then; ir
 * NULL: never. */
kb_val window_index(struct window *w, const struct input *in, const struct reach *r, int d, int at, kb_val *beyond);

/* What a gather has combined at a point, and where that was emitted. */
struct gathered {
    struct gathered *older;
    const struct expr *e; /* any field of it */
    kb_tup x;
    unsigned place;
};

enum { VALUES_MAX = 64 }; /* of a point, that are computed once */

/* One point of a window. */
struct stencil_point {
    struct point pt; /* its environment's leaves are those of stencils */
    struct window *w;
    int at[SPACE_MAX];
    kb_val exists;           /* bool */
    kb_val skip;             /* bool: its surroundings leave an array whose boundary is `interior`; ir NULL: never */
    const kb_val *neighbour; /* fields, inside a gather */
    struct gathered *gathered;
    struct emit_cached value[VALUES_MAX];
};

/* The reach of gathers into arrays whose boundary is `interior`, which is known at launch only. */
struct gather_reach {
    bool any;
    kb_val lo[SPACE_MAX], hi[SPACE_MAX]; /* per axis, i64 */
};
struct gather_reach gather_reach(struct gen *g);

void stencil_point_init(struct stencil_point *sp, struct window *w, const int *at, const struct gather_reach *gr);
/* Does the problem have points that are not computed and keep their value, which is fed back? */
bool stencil_keeps_skipped(const struct problem *p);
/* Field f of output o; where the point is skipped, the value that is fed back. */
kb_val stencil_value(struct stencil_point *sp, int o, int f);
/* bool: the point has a value for this output. */
kb_val stencil_written(struct point *pt, int output);
/* All values of n points side by side: each operation for all of them, then the next.  any: NULL ir, or the condition under
 * which they are computed; afterwards they are variables.  LLVM moves the operations of a point to where it alone is stored
 * if nothing else uses its value, and then all that they read would live until there. */
void stencil_values(struct stencil_point *sp, int n, kb_val any);
/* A part of the value of n points, from the values of the part `before` it (NULL: none), which it replaces. */
void stencil_grow(struct stencil_point *sp, int n, const struct expr *before, const struct expr *part, kb_val *value);
/* ---- sweeps (stencil.c) ------------------------------------------------------------------------------------------ */
/* What a thread does in a kernel of windows. */
struct sweep {
    struct gen *g;
    enum stencil_role role;
    kb_val origin[SPACE_MAX]; /* first point of its window, i64 */
    struct gather_reach gather;
    const struct tile *tile;     /* per input, or NULL */
    const struct turned *turned; /* per output, or NULL */
    struct joined *joined;       /* or NULL */
    kb_val box[SPACE_MAX];       /* first point of the block */
    kb_tvar acc;                 /* what this thread's points contribute */
    kb_var have;
};
/* The first points of the thread's window, and of the block's box (place.c): a point for each thread of the grid in
 * row-major order, or a box of windows for each block. */
void sweep_linear_origin(struct sweep *s);
void sweep_box_origin(struct sweep *s);
/* All points of a window, row by row; NULL: out of memory, which has been noted.  For free(). */
struct stencil_point *sweep_points(struct sweep *s, struct window *w);
/* Store a row of them; computes what has not been. */
void sweep_store_row(struct sweep *s, struct window *w, struct stencil_point *sp);
/* Compute and store all rows of a window that has been loaded. */
void sweep_rows(struct sweep *s, struct window *w);
/* The block streams along axis 0 instead (stencil_stream.c); s->box[0] is the number of its chunk of places. */
void sweep_stream(struct sweep *s);
/* A kernel of windows in its role; staged: inputs with neighbours go through shared memory. */
void emit_windows(struct gen *g, enum stencil_role role, bool staged);
/* Load the tiles of a block whose box begins at `box`, one per input. The whole block arrives. */
void tiles_load(struct gen *g, const kb_val *box, struct tile *tile);
/* The row of `at` in its ring, at the column of the first point. */
kb_ptr ring_row(struct window *w, int input, int field, const int *at);
/* A field `at` from the first point of a window, from its tile. */
kb_val tile_read(struct window *w, int input, int field, const int *at);
/* ---- outputs in another order (turned.c) -------------------------------------------------------------------------- */
void turned_declare(struct gen *g, struct turned *turned);
/* Values of a point: into the tile, where the output has one; else false. */
bool turned_keep(struct point *pt, int output, const kb_val *x);
/* All values of the block have been kept: stores them.  The whole block arrives. */
void turned_leave(struct sweep *s);

/* ---- other ranks (joined.c) --------------------------------------------------------------------------------------- */
enum { JOINED_SLOT = 8 }; /* bytes of a word with its number */
/* Of a kernel of so many time steps. */
struct joined joined_of(struct gen *g, int steps);
/* Its params: the address of this rank's window, i64; is there a rank before (side 0) or after (1) this one?  bool. */
kb_val joined_window(struct joined *j);
kb_val joined_beside(struct joined *j, int side);
/* Words of an element; from the begin of a window to a word of this exchange: `element` (i64) counts from the first row before
 * the part, and after the last of these, from the first row after the part. */
int joined_words(const struct joined *j);
kb_val joined_slot(struct joined *j, kb_val number, kb_val element);
/* What block number `block` (u32) of j->senders sends to a side. */
void joined_send(struct joined *j, int side, kb_val block, kb_val number);
/* The row of boxes of a block, whose place in the grid is in row `box` (u32); j->box is known. */
kb_val joined_turn(struct joined *j, kb_val box);
/* Afterwards: sends, where the block does, and waits for what it reads around the box that begins at `box`; and when all that it takes has been taken.  The whole block arrives. */
void joined_begin(struct joined *j, const kb_val *box);
void joined_end(struct joined *j);
/* What an input has in `row`, before (side 0) or after (1) the part, at element `rest` of that row; where the row is none of
 * another rank, which *beyond (bool) tells: in the row that begins `here`. */
kb_val joined_take(struct joined *j, int side, kb_val row, kb_val rest, kb_ptr here, kb_val *beyond);

/* Where stencil_packs(): compute and store n points, a multiple of 4, of a row that lies inside but for its ends and
 * begins at a vector boundary (packed.c). */
void packed_row(struct stencil_point *sp, int n);
/* The same for all points of a window whose cells have been collected and not loaded, in row-major order, where
 * stencil_shares_sums() (sums.c). */
void packed_sums(struct window *w, struct stencil_point *sp);
/* The same where stencil_by_dots() (dots.c). */
void packed_dots(struct window *w, struct stencil_point *sp);
/* Load what lies in a plane of such a window. */
void packed_plane(struct window *w, int z);
kb_val stencil_gather(struct stencil_point *sp, const struct expr *e);

#endif
