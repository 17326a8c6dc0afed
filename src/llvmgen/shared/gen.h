/* SPDX-License-Identifier: Apache-2.0 */
/* gen.h - what emitters share: the kernel's arguments, points and their values, and the state of all reductions.
 *
 * A *point* is one element of the iteration space.  The state is the product of the states of all reductions of the
 * problem, flattened into one tuple, so that strategies see one operator whatever the spec says.
 */
#ifndef PTXGEN_GEN_H
#define PTXGEN_GEN_H

#include "llvmgen/expr/expr_emit.h"
#include "llvmgen/builder/kb.h"
#include "lower/access.h"

enum { GEN_VECTOR_MAX = 16 };

/* The kernel that is being emitted. */
struct gen {
    kb *k;
    const struct plan_case *c;
    const struct problem *p;
    const struct prog_kernel *kernel;
    kb_ptr pointer[PROG_ARG_MAX]; /* per argument, where it is a pointer */
    kb_val value[PROG_ARG_MAX];   /* per argument, where it is a scalar */
    int nfields;                  /* of the state */
    enum ty field[KB_TUP_MAX];
    const struct point *here; /* the segment that operators run in; NULL: there is a single one */
    bool padded;              /* the state has a padding element, so partly filled tiles need no branches */
};

/* Begin and end a kernel of the case: declares its parameters. */
void gen_begin(struct gen *g, kb *k, const struct plan *plan, const struct plan_case *c,
               const struct prog_kernel *kernel);
bool gen_end(struct gen *g);
/* In a kernel that is launched dependently: before the first access to memory. */
void gen_wait_for_predecessor(struct gen *g);
kb_ptr gen_input(const struct gen *g, int i);
kb_ptr gen_output(const struct gen *g, int i);
kb_val gen_param(const struct gen *g, int i);
kb_val gen_size(const struct gen *g, int i);
kb_val gen_value(const struct gen *g, enum kernel_value id);
bool gen_has_value(const struct gen *g, enum kernel_value id);
kb_ptr gen_buffer(const struct gen *g, enum kernel_buffer id, enum ty type);
kb_arr gen_partials(const struct gen *g); /* buffers partial0 …, one per field of the state */
int gen_tunable(const struct gen *g, enum tunable_id t);
kb_val gen_extent(struct gen *g, const struct prog_dim *d); /* i64 */
/* A field (0 for scalars) of an element, i64, of an array that lies at p. */
kb_val gen_load_field(struct gen *g, const struct prog_array *a, kb_ptr p, kb_val element, int field);
void gen_store_field(struct gen *g, const struct prog_array *a, kb_ptr p, kb_val element, int field, kb_val x);

/* ---- numbers and indices (segment.c) ----------------------------------------------------------------------------- */
/* The index along an axis (above 0); *number, along this axis and others before it, becomes the one without it. */
kb_val index_along(struct gen *g, int axis, kb_val *number);
/* A number becomes indices along those axes of [from, to) that are reduced (scanned), or kept; row-major. */
void space_split(struct gen *g, kb_val number, int from, int to, bool reduced, kb_val *index);
/* The linear number, i64, of the point with these indices along all axes. */
kb_val space_linear(struct gen *g, const kb_val *index);
/* Elements, i64, from one place of a segment to the next one, where the reduced (scanned) axes are neighbours. */
kb_val space_stride(struct gen *g);
/* The elements [*first, *last) of segment `number` between offsets, kept inside the array whatever they say. */
void space_offsets(struct gen *g, kb_val number, kb_val *first, kb_val *last);
/* Offset number i, i64, within [0, number of elements] whatever the caller's array holds. */
kb_val segment_offset(struct gen *g, kb_val i);

/* Where index i of a dimension of n >= 1 elements is read (boundary.c); *inside becomes false where the mode is
 * constant and i lies outside. */
kb_val boundary_index(kb *k, enum boundary_mode mode, kb_val i, kb_val n, kb_val *inside);

/* ---- points (gen_point.c) ---------------------------------------------------------------------------------------- */
/* The fields of all direct inputs at one point, side by side; see direct_slot(). */
struct direct {
    kb_val v[DIRECT_FIELDS_MAX];
};

struct point {
    struct emit_env env; /* leaves are resolved here */
    struct gen *g;
    kb_val base;                         /* i64 number of a point, … */
    kb_val offset;                       /* … and the i32 distance of this one, so that addresses fold */
    int64_t plus;                        /* … and a distance known when generating */
    kb_val index[SPACE_MAX];             /* along each axis; made when asked for */
    bool by_element;                     /* outputs in the space's order are stored by its number, not by indices */
    bool inside;                         /* its index along the reduced axis is one that points_inside() says */
    kb_val near;                         /* see point_is_near(): the same for many points */
    int distance;                        /* see point_is_near(): of this point */
    const struct direct *direct;         /* preloaded values, or NULL: load where used */
    int before, after;                   /* points of its row beside it whose values are there too, … */
    int towards;                         /* … those after it at higher (1) or lower (-1) places of `direct` */
    kb_val edges;                        /* u32, see row_edges(); none: vectors do not say where rows begin */
    int at, of;                          /* it is number `at` of `of` points that are side by side */
    const struct direct *beside;         /* of the points before the first and after the last of these, or NULL */
    const kb_tup *state;                 /* r, s or total in values of outputs, or NULL */
    kb_val segment;                      /* i64 number, for outputs per irregular segment */
    kb_val bin;                          /* i64 number, for totals of scans by index */
    const struct point_outputs *outputs; /* see output.h; NULL: a plain element */
};
void point_init(struct point *pt, struct gen *g, kb_val base, kb_val offset, int64_t plus);
kb_val point_linear(struct point *pt);                                /* i64 */
kb_val point_leaf(kb *k, struct emit_env *env, const struct expr *e); /* of the environment of a point */
kb_val point_index(struct point *pt, int axis);                       /* i64, along an axis */
/* Where the point lies in a direct array at p. */
kb_ptr point_address(const struct point *pt, const struct prog_array *a, kb_ptr p);
/* Of a vector of this many bytes, in an array that begins at a vector boundary. */
int gen_vector_alignment(int bytes);
/* The sums inside what n points contribute and write, for all of them at once. */
void points_together(struct point *pt, int n, size_t size /* of what a point is the beginning of */);
/* Element i (i64, at most one beyond either end) of an input of one dimension, or what its boundary has there. */
kb_val gen_load_beside(struct gen *g, int input, kb_val i);
/* Of a problem of one dimension: the point's index is `first` (i64), the same for many points, plus a distance known when
 * generating, unless it is not asked for.  Comparing it with an index takes one instruction per point. */
void point_is_near(struct point *pt, int dimension, kb_val first, int distance);
/* The point is number j of n that are side by side, whose values it has before and after its own. */
void point_is_of_vector(struct point *pt, int j, int n);
/* Where rows begin among n points that are side by side, the first of them being `pt` (boundary.c): bit i of the result,
 * u32, for point i, and bit n for the one after them.  No value where no map reads neighbours.  Points that it is
 * given to, and which have `direct`, read neighbours along the last axis by a select where a row may begin, and by one load
 * where these are not among the points. */
kb_val row_edges(struct gen *g, struct point *pt, int n);
void point_in_rows(struct point *pt, int j, int n, kb_val edges); /* number j of n */
kb_val row_begins(kb *k, kb_val edges, int i);                    /* bool: bit i */
/* What the expression, an input with offsets, reads from the values of points that are side by side, if it does. */
bool point_beside(struct point *pt, const struct expr *e, int slot, kb_val *x);
/* Indices along the only reduced axis at which no at() of a map reads beyond its array: those below this number, at most
 * `end`; i64. */
kb_val points_inside(struct gen *g, kb_val end);
/* The maps of all fields of all reductions, at most KB_TUP_MAX: how many. */
int point_maps(const struct problem *p, const struct expr **map);
/* Computes the parts of the maps, and of the indices of bins, that stay the same along these axes (bits): for points
 * whose environments begin with the `sum` of this one's. */
void point_ahead(struct point *pt, unsigned axes);
void point_ahead_of(struct point *pt, unsigned axes, int n, const struct expr *const *e); /* of these expressions */
/* What the point contributes to every reduction. */
kb_tup point_map(struct point *pt);
/* The index e (i64) of the point as i32, where there are less than 2^31 `bins`, and whether it is one of them. */
kb_val point_bin(struct point *pt, const struct expr *e, const struct prog_dim *bins, kb_val *inside);

/* Load the direct inputs of n consecutive points, the first at base[offset + plus]; aligned: as vectors. */
void direct_load(struct gen *g, kb_val base, kb_val offset, int64_t plus, int n, bool aligned, struct direct *out);
/* The same where the condition holds, else zeros. */
void direct_load_if(struct gen *g, kb_val condition, kb_val base, kb_val offset, int64_t plus, int n, bool aligned,
                    struct direct *out);
/* The type of each field in struct direct. */
enum ty direct_type(const struct gen *g, int slot);
/* The same for n scalars of one direct input as 32-bit words, aligned; they fill whole words. */
void direct_words(struct gen *g, int input, kb_val base, kb_val offset, int64_t plus, int n, kb_val *word);
/* The same in two steps, for at most 8 bytes of arrays of scalars that begin at words and go on for a word after the
 * elements: load whole words, from `element` + `further` (i64; the latter fills words) on; take the elements out. */
struct direct_shifted {
    kb_val word[DIRECT_FIELDS_MAX][3], bits[DIRECT_FIELDS_MAX];
};
void direct_load_shifted(struct gen *g, kb_val element, kb_val further, int n, struct direct_shifted *out);
void direct_take_shifted(struct gen *g, const struct direct_shifted *from, int n, struct direct *out);
/* Values of points without elements: init, identity, epilogue. */
void env_init(struct point *pt, struct gen *g, const kb_tup *state);

/* ---- the state (gen_state.c) ------------------------------------------------------------------------------------- */
/* Environment for operators: params, sizes and inputs that do not vary. */
void state_env(struct point *pt, struct gen *g);
kb_tup state_combine(struct gen *g, kb_tup left, kb_tup right);
/* What the points [lo, hi) of one thread contribute, combined by a balanced tree. */
kb_tup state_of_points(struct gen *g, struct point *pt, int lo, int hi);
/* The same of the first n, whose indices along the reduced axis are in the same n, 2 n, … from 0 on. */
kb_tup state_of_tile(struct gen *g, struct point *pt, int n);
/* n states in order; for at most GEN_MANY_MAX of them. */
enum { GEN_MANY_MAX = 64 };
kb_tup state_combine_many(struct gen *g, const kb_tup *x, int n);
/* Field f of reduction r, which has one, or takes many states at once, over many states: what state x adds, where `known` has
 * the total's fields before it; how two of these meet; and what an empty place has in their stead. */
kb_val state_field_share(struct gen *g, int r, int f, kb_tup x, kb_tup known);
kb_val state_field_join(struct gen *g, int r, int f, kb_val a, kb_val b);
kb_val state_field_pad(struct gen *g, int r, int f);
kb_tup state_pad_value(struct gen *g); /* only when g->padded, or state_pad_end() */
kb_tup state_zero(struct gen *g);      /* placeholder that no operator sees */
/* acc := have ? acc * x : x, and have := true; block-divergent. */
void state_accumulate(struct gen *g, kb_tvar acc, kb_var have, kb_tup x);
/* The same for an element as maps make it, of a problem that settle_find() finds conditions for.  `settled`: it held of
 * all of them for an element that changed nothing; then others for which they hold change nothing either. */
void state_take_element(struct gen *g, kb_tvar acc, kb_var have, kb_var settled, kb_tup x);
/* `init` combined on the left of x where `begins`, for the reductions that have one. */
kb_tup state_with_init(struct gen *g, kb_val begins, kb_tup x);
/* What comes before the first element: init, else the identity, else (never seen) zero. */
kb_tup state_start(struct gen *g);
/* The state in shared memory, `count` of them. */
kb_arr state_shared(struct gen *g, int count, const char *name);
/* The results: init applied, and what no elements come to.  empty: bool, no element. */
kb_tup state_results(struct gen *g, kb_tup total, kb_val empty);
/* One thread: evaluate and write the once-per-segment outputs. */
void state_store(struct gen *g, const kb_tup *results);
/* One thread: both: apply init, treat the empty case, evaluate and write the once-per-segment outputs. empty: bool, no
 * element. */
void state_finish(struct gen *g, kb_tup total, kb_val empty);

/* ---- collectives (collectives.c) --------------------------------------------------------------------------------- */
/* The leading lanes, threads or warps that hold a state: all, if the state has a padding element. */
struct valid_items {
    bool all;
    kb_val count; /* i32, when not all */
};
static inline struct valid_items valid_all(void) { return (struct valid_items){ .all = true }; }
static inline struct valid_items valid_first(kb_val count) { return (struct valid_items){ .count = count }; }
/* The least power of two that is not below n. */
int power_of_two_above(int n);
/* The whole warp arrives.  Lane 0 gets the total of the valid lanes among the first `lanes` (a power of two). */
kb_tup warp_reduce(struct gen *g, kb_tup x, int lanes, struct valid_items f);
/* The whole block arrives; lane 0 of each warp has the warp's total in x.  Thread 0 gets the total of the warps.
 * `aggregates`: state_shared of 32. */
kb_tup warps_combine(struct gen *g, kb_tup x, struct valid_items valid, kb_arr aggregates);
/* The whole block arrives.  Thread 0 gets the total of the valid threads, in their order. */
kb_tup block_reduce(struct gen *g, kb_tup x, struct valid_items threads, kb_arr aggregates);

/* The whole warp arrives.  Lane 0 gets the total of the lanes that have a state, in their order, and whether any has. */
void warp_reduce_some(struct gen *g, kb_tvar x, kb_var have);
/* The whole block arrives.  Thread 0 gets the total of the threads that have a state, in their order, and whether any has
 * one. */
kb_tup block_reduce_some(struct gen *g, kb_tup x, kb_val *have);

/* States number first, first + 1, … in order, `count` of them, each as `load` gives it to one thread: every thread
 * combines its consecutive ones.  The thread's total; *valid: how many threads have one.  The whole block arrives. */
typedef kb_tup load_state(struct gen *g, const void *what, kb_val number);
kb_tup gather_in_order(struct gen *g, kb_val first, kb_val count, load_state *load, const void *what, kb_val *valid);
/* The same, and the block's total in thread 0. */
kb_tup block_gather(struct gen *g, kb_val first, kb_val count, load_state *load, const void *what);

/* The same as `combine` says: shuffles, a tree in shared memory, atomic operations there, redux.sync
 * (threads_combine.c).  What is no shuffle needs a padded state, hence all threads valid. The whole block arrives. */
kb_tup threads_combine(struct gen *g, kb_tup x, struct valid_items threads, kb_arr aggregates);

/* The lanes with the same key, i32, below `keys`, u32; those with a negative one are nobody's peers. */
kb_val peers_of(kb *k, kb_val key, int keys);
/* Of lanes with the same key, u32: those in lanes before this one, and those after it. */
kb_val peers_below(kb *k, kb_val peers);
kb_val peers_above(kb *k, kb_val peers);
/* The whole warp arrives.  What x comes to in order, from this lane to the last peer (above), or from the first peer to
 * this lane.  `next`: the lane of the next peer on that side, i32; KB_WARP (above), or -1: there is none. */
kb_tup peers_combine(struct gen *g, kb_val next, bool above, kb_tup x);
/* n times a sum. */
kb_tup state_times(kb *k, kb_tup x, kb_val n);

/* The back-off: nanoseconds that a thread sleeps when a word of another block is not there yet, and where it polls no
 * more than a number of times.  Not measured against other values. */
enum { BACKOFF_NANOSECONDS = 20, POLL_NANOSECONDS = 50 };

/* ---- searches by a warp (search.c) ------------------------------------------------------------------------------- */
/* The first place in [first, end) for which `before` does not hold, or `end`, i64; `before` holds for all places in front
 * of this one and for none after it.  32 places are looked at in a round, `apart` from one another in the first: warp_evenly over all of them, or
 * 1 where the answer is expected near `first`.  All arguments are the same in all lanes; the whole warp arrives. */
typedef kb_val is_before(struct gen *g, const void *what, kb_val place);
kb_val warp_search(struct gen *g, kb_val first, kb_val end, kb_val apart, is_before *before, const void *what);
/* The same until at most `enough` places are left: the first of them. */
kb_val warp_narrow(struct gen *g, kb_val first, kb_val end, kb_val apart, int enough, is_before *before,
                   const void *what);
/* A round of places around the one that is expected, closer the nearer to it: the lane's, i64, which may lie outside of
 * [0, end); and what it says: the answer lies in [*lo, *hi] when `before` holds at the lane's place, or would if that
 * were inside. */
kb_val warp_around(struct gen *g, kb_val expected);
void warp_enclose(struct gen *g, kb_val place, kb_val end, kb_val before, kb_val *lo, kb_val *hi);
/* The distance at which 32 places cover `count` of them; at least 1. */
kb_val warp_evenly(struct gen *g, kb_val count);

/* ---- states in words, updated atomically (atomic_state.c) -------------------------------------------------------- */
/* A field's bits as an unsigned integer of 32 bits (narrower ones too) or 64, and back. */
kb_val field_bits(kb *k, kb_val x);
kb_val field_from_bits(kb *k, kb_val bits, enum ty ty);
/* One u64 per reduction, all zero before the first update; any threads. */
void accumulate_atomic(struct gen *g, kb_ptr words, kb_tup x);
/* The same with a word of op_word_bytes() for each reduction, and the states from what they hold.  Elements leave no
 * word at zero whose padding element is a NaN, where the problem has bins. */
void accumulate_words(struct gen *g, const kb_ptr *word, kb_tup x);
/* The same where no other thread touches the words: without atomic operations. */
void combine_words(struct gen *g, const kb_ptr *word, kb_tup x);
kb_tup decode_words(struct gen *g, const kb_val *bits);
void encode_words(struct gen *g, kb_tup x, kb_val *word); /* the other way */
/* One thread, after all updates: the total.  take_accumulated() also leaves zero. */
kb_tup read_accumulated(struct gen *g, kb_ptr words);
kb_tup take_accumulated(struct gen *g, kb_ptr words);

/* ---- the last block to finish (reduce/reduce.c) ------------------------------------------------------------------ */
/* The whole block arrives.  Thread 0 stores the block's total and takes a ticket; true in every thread of the block that
 * takes the last ticket. */
kb_val is_last_block(struct gen *g, kb_tup total, kb_val block, kb_val blocks);
/* The whole block arrives.  Thread 0 gets `valid` partials from number `first` on, combined in order. */
kb_tup reduce_partials(struct gen *g, kb_val first, kb_val valid);

/* ---- one thread's or warp's share (reduce/tiles.c, reduce/windows.c) --------------------------------------------- */
/* Each thread gets the total of its elements, tiles round-robin over the blocks; *threads: the threads of the block that
 * have one. */
kb_tup tiles_reduce(struct gen *g, kb_val block, kb_val blocks, struct valid_items *threads);
/* Where bulk copies exist: prefetch the beginning of the block's first tile into the second-level cache.  Nothing is
 * read, so this may come before gen_wait_for_predecessor(). */
void tiles_prefetch(struct gen *g, kb_val block);
/* The number of leading blocks that have a total then; for states without padding. */
kb_val tiles_valid_blocks(struct gen *g, kb_val blocks);
/* The whole warp arrives.  Lane 0 gets the total of the warp's consecutive windows, in order; *warps: the warps of the
 * block that have one. */
kb_tup windows_reduce(struct gen *g, kb_val block, kb_val blocks, struct valid_items *warps);

#define STRATEGY(id, kind, name, reference, tunables, chain) void emit_##id(struct gen *g);
#include "lower/strategies.def"
#undef STRATEGY

#endif
