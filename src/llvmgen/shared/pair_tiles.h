/* SPDX-License-Identifier: Apache-2.0 */
/* pair_tiles.h - terms of the rows of two tables in shared memory, for sums over them (lower/pairs.h).
 *
 *     for PAIRS_TERMS terms of the sums:
 *         the block loads these terms of the rows of all tiles, transposed
 *         each thread, for each term: the values of its rows and of its columns; all their pairs
 *
 * Where threads can copy (sm_80) there are two tiles of each table, and the next terms arrive while these are used.
 */
#ifndef PTXGEN_PAIR_TILES_H
#define PTXGEN_PAIR_TILES_H

#include "gen.h"
#include "lower/pairs.h"

/* Rows of a tile along an axis of the space.  A thread has `each` of them, `vector` side by side; neighbouring teams
 * have neighbouring vectors. */
struct pair_side {
    int each, vector, teams;
    kb_val rank;   /* i32: of this thread among the teams */
    kb_val first;  /* i64: index of the tile's first row */
    kb_val extent; /* i64, above 0 */
};
struct pair_side pair_side_of(int each, int teams, kb_val rank, kb_val extent); /* of four, or `each` */
struct pair_side pair_side_by(int each, int vector, int teams, kb_val rank, kb_val extent);
int pair_rows(const struct pair_side *s);
/* Place in the tile of the thread's row number i, i32, and the index of a place, i64. */
kb_val pair_place(kb *k, const struct pair_side *s, int i);
kb_val pair_index(kb *k, const struct pair_side *s, kb_val place);
/* The index of the thread's first row, i64, and how far behind it row number i lies. */
kb_val pair_first(kb *k, const struct pair_side *s);
int pair_away(const struct pair_side *s, int i);

struct pair_tile {
    const struct pairs_operand *what;
    kb_ptr memory, at_hand; /* of all stages; of the terms at hand */
    kb_ptr column;          /* of the terms at hand, from that on which a loop has come to: the thread's first row */
    int pitch;
    kb_val value[PAIRS_MAX]; /* of this thread's rows, for the term at hand */
    kb_ptr
        row[PAIRS_MAX]; /* of a table that is read directly: where its rows begin, or their places in those of terms */
};

struct pair_tiles {
    struct emit_tiles hooks; /* for the environments of all points of the thread */
    struct gen *g;
    struct pairs pairs;
    struct pair_side side[2]; /* by axis; `first` may change from tile to tile */
    struct pair_tile tile[PAIRS_OPERANDS_MAX];
    int stages;
    kb_val again[2]; /* bool, by axis, or none: all terms are loaded for the rows that were there the last time */
};
/* The whole block arrives where sums are emitted with the hooks. */
void pair_tiles_init(struct pair_tiles *s, struct gen *g, const struct pair_side *side);
/* The same without tiles: a thread reads its rows from the tables, each time that it takes a term.  index[axis]: i64, of the
 * rows from here on, all of which exist. */
void pair_tables_init(struct pair_tiles *s, struct gen *g, const struct pair_side *side);
void pair_tables_open(struct pair_tiles *s, kb_val index[2][PAIRS_MAX]);
/* Is e one of the operands, read by the thread's row row[axis] along each axis? */
bool pair_tiles_read(const struct pair_tiles *s, const struct expr *e, const int *row, kb_val *x);

#endif
