/* SPDX-License-Identifier: Apache-2.0 */
/* kb.h - kernel builder: device code written in C that reads like the pseudo-code of the papers.
 *
 * Two stages are visible in the types.  A C `int` is known when the kernel is generated; a `kb_val` is known when it
 * runs.  `if`/`for` choose what is emitted, `kb_if`/`kb_for` emit a branch or a loop:
 *
 *     for (int d = 16; d > 0; d /= 2)                   // unrolled: five shuffles
 *         x = op_combine(k, op, x, kb_shfl_down(k, x, d));
 *     kb_for (k, i, from, to, step) { … }               // a loop in the PTX
 *
 * A kb_val is an SSA value and never changes; use a kb_var for what does.  Scopes are ordinary C blocks; never leave
 * one with break, return or goto (kb_kernel_end() reports the scope that was left open, with file and line).
 *
 * Values carry how uniform they are (the same for the grid, the block, the warp, or divergent).  A barrier or a
 * warp operation in a scope that is too divergent is a misuse; the first misuse is kept with its place and
 * reported by kb_kernel_end(), so emitters need no error paths.
 *
 * Everything that differs between NVIDIA GPUs and the host executor is a row of struct kb_target (kb_target.h).
 */
#ifndef PTXGEN_KB_H
#define PTXGEN_KB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/types.h"
#include "llvmgen/llvm_open.h"

enum {
    KB_WARP = 32,
    KB_TUP_MAX = 32,
    KB_FLOW_MAX = 64,
    KB_SHARED_STATIC = 48 * 1024 /* PROG_SHARED_STATIC; what is more is dynamic, up to shared_max */
};

typedef enum kb_uni { KB_UNI_GRID, KB_UNI_BLOCK, KB_UNI_WARP, KB_DIVERGENT } kb_uni;
enum kb_space { KB_GLOBAL = 1, KB_SHARED = 3, KB_CLUSTER_SHARED = 7 };
enum kb_scope_of { KB_SCOPE_BLOCK, KB_SCOPE_CLUSTER, KB_SCOPE_DEVICE, KB_SCOPE_SYSTEM };
enum kb_order { KB_WEAK, KB_RELAXED, KB_ACQUIRE, KB_RELEASE, KB_ACQ_REL };

typedef struct kb_val {
    LLVMValueRef ir;
    enum ty ty;
    kb_uni uni;
} kb_val; /* bool is i1 */
typedef struct kb_var {
    LLVMValueRef slot;
    enum ty ty;
    kb_uni uni;
    unsigned number;
} kb_var;
/* A pointer to elements of a type.  Bits of `flags` say how it may be read. */
typedef struct kb_ptr {
    LLVMValueRef ir;
    enum ty ty;
    enum kb_space space;
    kb_uni uni;
    unsigned char flags;
    const char *name; /* for reports of the host executor; may be NULL */
} kb_ptr;
enum {
    KB_INVARIANT = 1 /* not written while the kernel runs */,
    KB_STREAM = 2 /* read or written once: evict first */
};

/* A tuple is a C struct of SSA values, never an LLVM aggregate; memory of tuples is structure of arrays. */
typedef struct kb_tup {
    int n;
    kb_val e[KB_TUP_MAX];
} kb_tup;
typedef struct kb_tvar {
    int n;
    kb_var e[KB_TUP_MAX];
} kb_tvar;
typedef struct kb_arr {
    int n;
    kb_ptr e[KB_TUP_MAX];
} kb_arr;

typedef struct kb kb;
struct kb_target;

/* ---- builder and kernels --------------------------------------------------------------------------------------- */
struct kb_options {
    int sm, ptx;    /* 90, 80 */
    int omit_point; /* tests: leave out this ordering point (1, 2, …); 0: none */
    int shared_max; /* shared memory that a block may have, bytes; 0: what every device has, 48 KiB */
};
kb *kb_new(LLVMContextRef cx, LLVMModuleRef mod, const struct kb_target *t, const struct kb_options *o);
void kb_free(kb *k);
int kb_sm(const kb *k);
int kb_ptx(const kb *k);
/* Parameters are declared one after another between begin and the first use of the body. */
void kb_kernel_begin(kb *k, const char *name, int threads, int cluster /* 0: none */, int min_blocks /* 0 */,
                     int nparams);
kb_ptr kb_param_ptr(kb *k, enum ty elem, int align, unsigned flags,
                    const char *name);                /* next parameter: global pointer */
kb_val kb_param(kb *k, enum ty ty, const char *name); /* next parameter: scalar by value */
bool kb_kernel_end(kb *k);                            /* false: see kb_error() */
const char *kb_error(const kb *k);
int kb_shared_bytes(const kb *k); /* of the kernel just ended */
/* Ordering points emitted so far in this builder (barriers, warp syncs, fences, acquire/release accesses, kb_point()):
 * for mutation tests.  The text of point i (1…) is "file:line: what". */
int kb_points(const kb *k);
const char *kb_point_text(const kb *k, int i);

/* ---- names ------------------------------------------------------------------------------------------------------- */
kb_val kb_name(kb_val v, const char *name);
#define LET(x, expr) const kb_val x = kb_name((expr), #x)
void kb_section(kb *k, const char *name); /* prefix of the block names that follow; seen in the PTX's comments */

/* ---- scalars ----------------------------------------------------------------------------------------------------- */
kb_val kb_imm(kb *k, enum ty ty, int64_t x);
kb_val kb_immf(kb *k, enum ty ty, double x);
kb_val kb_const(kb *k, enum ty ty, union value v);
static inline kb_val kb_true(kb *k) { return kb_imm(k, TY_BOOL, 1); }
static inline kb_val kb_false(kb *k) { return kb_imm(k, TY_BOOL, 0); }
typedef struct kb_arg {
    kb_val v;
    int64_t imm;
} kb_arg; /* v.ir == NULL: imm */
static inline kb_arg kb_arg_v(kb_val v) { return (kb_arg){ v, 0 }; }
static inline kb_arg kb_arg_i(int64_t x) { return (kb_arg){ { NULL, TY_BOOL, KB_UNI_GRID }, x }; }
#define KB_ARG(x) _Generic((x), kb_val : kb_arg_v, default : kb_arg_i)(x)
/* Integer / and % here are the hardware's (undefined for 0); the language's total forms are in expr_emit.c.
 * Min and max: integers by signedness, floats minimumNumber and maximumNumber of IEEE 754-2019, as GPUs do. Comparisons
 * of floats are ordered but for NE. */
enum kb_bin {
    KB_ADD,
    KB_SUB,
    KB_MUL,
    KB_DIV,
    KB_REM,
    KB_AND,
    KB_OR,
    KB_XOR,
    KB_SHL,
    KB_SHR,
    KB_MIN,
    KB_MAX,
    KB_EQ,
    KB_NE,
    KB_LT,
    KB_LE,
    KB_GT,
    KB_GE
};
kb_val kb_bin(kb *k, enum kb_bin op, kb_val a, kb_arg rhs); /* both of one type */
#define kb_add(k, a, b) kb_bin((k), KB_ADD, (a), KB_ARG(b))
#define kb_sub(k, a, b) kb_bin((k), KB_SUB, (a), KB_ARG(b))
#define kb_mul(k, a, b) kb_bin((k), KB_MUL, (a), KB_ARG(b))
#define kb_div(k, a, b) kb_bin((k), KB_DIV, (a), KB_ARG(b))
#define kb_rem(k, a, b) kb_bin((k), KB_REM, (a), KB_ARG(b))
#define kb_and(k, a, b) kb_bin((k), KB_AND, (a), KB_ARG(b))
#define kb_or(k, a, b)  kb_bin((k), KB_OR, (a), KB_ARG(b))
#define kb_xor(k, a, b) kb_bin((k), KB_XOR, (a), KB_ARG(b))
#define kb_shl(k, a, b) kb_bin((k), KB_SHL, (a), KB_ARG(b))
#define kb_shr(k, a, b) kb_bin((k), KB_SHR, (a), KB_ARG(b))
#define kb_min(k, a, b) kb_bin((k), KB_MIN, (a), KB_ARG(b))
#define kb_max(k, a, b) kb_bin((k), KB_MAX, (a), KB_ARG(b))
#define kb_eq(k, a, b)  kb_bin((k), KB_EQ, (a), KB_ARG(b))
#define kb_ne(k, a, b)  kb_bin((k), KB_NE, (a), KB_ARG(b))
#define kb_lt(k, a, b)  kb_bin((k), KB_LT, (a), KB_ARG(b))
#define kb_le(k, a, b)  kb_bin((k), KB_LE, (a), KB_ARG(b))
#define kb_gt(k, a, b)  kb_bin((k), KB_GT, (a), KB_ARG(b))
#define kb_ge(k, a, b)  kb_bin((k), KB_GE, (a), KB_ARG(b))
kb_val kb_no_wrap(kb_val sum);  /* a promise: this sum, difference or product of signed integers does not overflow */
kb_val kb_not(kb *k, kb_val a); /* bitwise; logical for bool */
kb_val kb_neg(kb *k, kb_val a);
kb_val kb_cast(kb *k, kb_val a,
               enum ty to); /* the language's conversion: saturating float -> int, wrapping int -> int */
kb_val kb_bitcast(kb *k, kb_val a, enum ty to);
kb_val kb_popcount(kb *k, kb_val a);
kb_val kb_mul_high(kb *k, kb_val a, kb_val b); /* the upper half of the product of two u32 or u64 */
/* The word that begins `bits` (u32, below 32) behind the beginning of two neighbouring ones, u32. */
kb_val kb_funnel(kb *k, kb_val low, kb_val high, kb_val bits);
/* Four bytes of two words: digit i of `which`, 4 bits each, is the number of the result's byte i, 0 to 3 in `low` and 4
 * to 7 in `high`; u32. */
kb_val kb_permute(kb *k, kb_val low, kb_val high, unsigned which);
kb_val kb_permute_by(kb *k, kb_val low, kb_val high, kb_val which); /* the same, by digits (u32) up to 7 */
/* The four bytes of a word (u32), signed or not, and `plus` (i32), added up. */
kb_val kb_sum_bytes(kb *k, kb_val word, bool is_signed, kb_val plus);
/* The four bytes of a word (u32), each times a byte of another one, all without sign, and `plus` (u32), added up. */
kb_val kb_dot_bytes(kb *k, kb_val word, kb_val times, kb_val plus);
kb_val kb_ctz(kb *k, kb_val a); /* of 0: the width */
kb_val kb_clz(kb *k, kb_val a);
kb_val kb_fusing(kb *k,
                 kb_val v); /* a sum or product of floats that may be rounded together with the one that takes it */
kb_val kb_math(kb *k, int fn /* enum fn */, int n, const kb_val *args); /* float functions of functions.def */
kb_val kb_select_v(kb *k, kb_val c, kb_val a, kb_val b);
bool kb_is_const(kb_val v, int64_t *x); /* integer known while generating */

/* ---- variables ----------------------------------------------------------------------------------------------------- */
kb_var kb_var_v(kb *k, kb_val init, const char *name);
kb_val kb_get_v(kb *k, kb_var v);
void kb_set_v(kb *k, kb_var v, kb_val x);
kb_val kb_assume_uniform(kb_val v, kb_uni u); /* a promise; say why at the call */

/* ---- memory ----------------------------------------------------------------------------------------------------- */
/* An index: a value of any integer type, or a C int. */
static inline kb_val kb_index_v(kb *k, kb_val i) { return ((void)k, i); }
static inline kb_val kb_index_i(kb *k, int64_t i) { return kb_imm(k, TY_I32, i); }
#define KB_INDEX(k, i) _Generic((i), kb_val : kb_index_v, default : kb_index_i)((k), (i))
/* One element p[i], weak.  Prefer i32 for short distances from an advanced pointer. */
kb_val kb_load_v(kb *k, kb_ptr p, kb_val i);
void kb_store_v(kb *k, kb_ptr p, kb_val i, kb_val x);
kb_ptr kb_advance(kb *k, kb_ptr p, kb_val i); /* &p[i] */
kb_val kb_address(kb *k, kb_ptr p);           /* i64, of global memory */
/* n consecutive elements p[i … i+n), whose address is a multiple of `align` bytes (power of two): the widest loads that
 * allow it. Also used with ty U8 and a byte index to fetch structures, which kb_extract then takes apart. */
void kb_load_n(kb *k, kb_ptr p, kb_val i, int n, int align, kb_val *out);
void kb_store_n(kb *k, kb_ptr p, kb_val i, int n, int align, const kb_val *x);
/* `bytes` consecutive bytes at byte offset i of p as words (the last padded with zeros), and a field of them. */
void kb_load_words(kb *k, kb_ptr p, kb_val byte_index, int bytes, int align, kb_val *word /* TY_U32 */);
kb_val kb_extract(kb *k, const kb_val *word, int byte_offset, enum ty ty);
/* Access with memory order; only 4- and 8-byte types.  scope: KB_SCOPE_DEVICE but for clusters. */
kb_val kb_load_order(kb *k, kb_ptr p, kb_val i, enum kb_order o, enum kb_scope_of s, const char *file, int line);
void kb_store_order(kb *k, kb_ptr p, kb_val i, kb_val x, enum kb_order o, enum kb_scope_of s, const char *file,
                    int line);
#define kb_load_acquire(k, p, i)                                                                                       \
    kb_load_order((k), (p), KB_INDEX(k, i), KB_ACQUIRE, KB_SCOPE_DEVICE, __FILE__, __LINE__)
#define kb_load_relaxed(k, p, i)                                                                                       \
    kb_load_order((k), (p), KB_INDEX(k, i), KB_RELAXED, KB_SCOPE_DEVICE, __FILE__, __LINE__)
#define kb_store_release(k, p, i, x)                                                                                   \
    kb_store_order((k), (p), KB_INDEX(k, i), (x), KB_RELEASE, KB_SCOPE_DEVICE, __FILE__, __LINE__)
#define kb_store_relaxed(k, p, i, x)                                                                                   \
    kb_store_order((k), (p), KB_INDEX(k, i), (x), KB_RELAXED, KB_SCOPE_DEVICE, __FILE__, __LINE__)
/* Read-modify-write, relaxed, device scope (order comes from kb_fence); the old value.  KB_INC_WRAP: old >= x ? 0 : old
 * + 1. */
enum kb_rmw { KB_RMW_ADD, KB_RMW_MIN, KB_RMW_MAX, KB_RMW_AND, KB_RMW_OR, KB_RMW_XOR, KB_RMW_XCHG, KB_RMW_INC_WRAP };
kb_val kb_atomic_v(kb *k, enum kb_rmw op, kb_ptr p, kb_val i, kb_val x);
#define kb_atomic(k, op, p, i, x) kb_atomic_v((k), (op), (p), KB_INDEX(k, i), (x))
kb_val kb_cas(kb *k, kb_ptr p, kb_val i, kb_val expected,
              kb_val desired); /* relaxed, device scope; 4- and 8-byte integers; old value */
/* In this module loops over the terms of sums are written out further, and addresses are computed ahead of them: fewer
 * instructions, and more registers. */
void kb_tighten_sums(kb *k);
bool kb_sums_tight(const kb *k);
/* Shared memory of the kernel: arrays of `count` elements, one per field, each aligned to 16. Content: undefined. */
kb_ptr kb_shared_v(kb *k, enum ty ty, int count, const char *name);
kb_arr kb_shared(kb *k, int nfields, const enum ty *field, int count, const char *name);

/* ---- tuples: the scalar operation on every field ------------------------------------------------------------------- */
kb_tup kb_select_t(kb *k, kb_val c, kb_tup a, kb_tup b);
kb_tvar kb_var_t(kb *k, kb_tup init, const char *name);
kb_tup kb_get_t(kb *k, kb_tvar v);
void kb_set_t(kb *k, kb_tvar v, kb_tup x);
kb_tup kb_load_t(kb *k, kb_arr p, kb_val i);
void kb_store_t(kb *k, kb_arr p, kb_val i, kb_tup x);
kb_val kb_shfl_v(kb *k, int mode, kb_val x, kb_val arg, int width);
kb_tup kb_shfl_t(kb *k, int mode, kb_tup x, kb_val arg, int width);
#define kb_select(k, c, a, b)   _Generic((a), kb_val : kb_select_v, kb_tup : kb_select_t)((k), (c), (a), (b))
#define kb_var_new(k, init, nm) _Generic((init), kb_val : kb_var_v, kb_tup : kb_var_t)((k), (init), (nm))
#define kb_get(k, var)          _Generic((var), kb_var : kb_get_v, kb_tvar : kb_get_t)((k), (var))
#define kb_set(k, var, x)       _Generic((var), kb_var : kb_set_v, kb_tvar : kb_set_t)((k), (var), (x))
#define kb_load(k, p, i)        _Generic((p), kb_ptr : kb_load_v, kb_arr : kb_load_t)((k), (p), KB_INDEX(k, i))
#define kb_store(k, p, i, x)    _Generic((p), kb_ptr : kb_store_v, kb_arr : kb_store_t)((k), (p), KB_INDEX(k, i), (x))
/* Shuffles: all lanes of the warp arrive; `width` lanes (power of two) are a group of their own. */
enum { KB_SHFL_IDX, KB_SHFL_UP, KB_SHFL_DOWN, KB_SHFL_XOR };
#define kb_shfl(k, mode, x, a, w) _Generic((x), kb_val : kb_shfl_v, kb_tup : kb_shfl_t)((k), (mode), (x), (a), (w))
#define kb_shfl_down(k, x, d)     kb_shfl(k, KB_SHFL_DOWN, x, kb_imm((k), TY_I32, (d)), KB_WARP)
#define kb_shfl_up(k, x, d)       kb_shfl(k, KB_SHFL_UP, x, kb_imm((k), TY_I32, (d)), KB_WARP)
#define kb_shfl_xor(k, x, d)      kb_shfl(k, KB_SHFL_XOR, x, kb_imm((k), TY_I32, (d)), KB_WARP)
#define kb_shfl_idx(k, x, l)      kb_shfl(k, KB_SHFL_IDX, x, KB_INDEX(k, l), KB_WARP)

/* ---- threads and synchronisation --------------------------------------------------------------------------------- */
kb_val kb_tid(kb *k);    /* i32, 0 … threads-1 */
kb_val kb_block(kb *k);  /* i32, block-uniform */
kb_val kb_blocks(kb *k); /* i32, grid-uniform */
kb_val kb_lane(kb *k);   /* tid & 31 */
static inline kb_val kb_thread0(kb *k) { return kb_eq(k, kb_tid(k), 0); }
static inline kb_val kb_lane0(kb *k) { return kb_eq(k, kb_lane(k), 0); }
kb_val kb_warp(kb *k);                                 /* tid >> 5, warp-uniform */
int kb_threads(const kb *k);                           /* of the block, or of the team */
void kb_barrier_at(kb *k, const char *file, int line); /* all threads of the block, or of the team */
void kb_warp_sync_at(kb *k, const char *file, int line);
void kb_fence_at(kb *k, enum kb_order o, enum kb_scope_of s, const char *file, int line);
#define kb_barrier(k)     kb_barrier_at((k), __FILE__, __LINE__)
#define kb_warp_sync(k)   kb_warp_sync_at((k), __FILE__, __LINE__)
#define kb_fence(k, o, s) kb_fence_at((k), (o), (s), __FILE__, __LINE__)
/* Any other step whose omission a mutation test must notice: if (kb_point(k, "counter reset")) emit it. */
bool kb_point_at(kb *k, const char *what, const char *file, int line);
#define kb_point(k, what) kb_point_at((k), (what), __FILE__, __LINE__)
kb_val kb_any(kb *k, kb_val pred);
kb_val kb_all(kb *k, kb_val pred);
/* Of the lanes that are here with this one, whichever they are.  A lane that leaves a loop only when all of these have done
 * what they wait for cannot keep them from doing it. */
kb_val kb_all_here(kb *k, kb_val pred);
kb_val kb_ballot(kb *k, kb_val pred);             /* u32 */
kb_val kb_match(kb *k, kb_val word);              /* i32: the lanes that have the same word, u32 */
bool kb_has_redux(const kb *k);                   /* sm_80 */
kb_val kb_redux(kb *k, enum kb_rmw op, kb_val x); /* 32-bit integers; ADD MIN MAX AND OR XOR; warp-uniform result */
void kb_backoff(kb *k, int nanoseconds); /* in a loop that waits for others; 0: without sleeping, which only says so */
/* The element with these indices (i64, at most three) is about to be written, alone, to the `bytes` at p.  For targets that check (kb_checks_places) and no code elsewhere. */
void kb_placed(kb *k, kb_ptr p, int bytes, int rank, const kb_val *index);
bool kb_checks_places(const kb *k);

/* ---- clusters and dependent launch (sm_90) ----------------------------------------------------------------------- */
kb_val kb_cluster_rank(kb *k);                                /* i32, block-uniform */
kb_ptr kb_cluster_map(kb *k, kb_ptr shared, kb_val rank);     /* the same object in the shared memory of block `rank` */
void kb_cluster_arrive_at(kb *k, const char *file, int line); /* release; every thread */
void kb_cluster_wait_at(kb *k, const char *file, int line);   /* acquire; every thread */
#define kb_cluster_arrive(k) kb_cluster_arrive_at((k), __FILE__, __LINE__)
#define kb_cluster_wait(k)   kb_cluster_wait_at((k), __FILE__, __LINE__)
/* Before the first access to global memory in a kernel that is launched dependently; and: the next kernel may start
 * now. */
void kb_dependency_wait_at(kb *k, const char *file, int line);
#define kb_dependency_wait(k) kb_dependency_wait_at((k), __FILE__, __LINE__)
void kb_dependency_launch(kb *k);
/* All threads of the only block arrive.  Short messages go between the devices.  `table` (i64) is the address of a struct
 * exchange_table (launch/exchange.h); 0: nothing is done.  Afterwards every thread may read what came, so no array of the
 * kernel is invariant. */
void kb_exchange(kb *k, kb_val table);
enum { KB_HALO_SLOTS = 256 }; /* HALO_SLOTS */
/* Words that kernels of neighbouring ranks write for each other while both run.  `window` (i64) is the address of a struct
 * halo_head (launch/exchange.h).  The number of this launch's exchange, u32; 0: an earlier one has failed, and nothing
 * is sent or waited for. */
kb_val kb_halo_number(kb *k, kb_val window);
/* A word (u32) to an address (i64) of another rank's window; and until the word at an address of this one's has come; then
 * threads that have met the one that waited may read it.  Others may read other words so. */
void kb_halo_send(kb *k, kb_val to, kb_val word, kb_val number);
void kb_halo_wait(kb *k, kb_val window, kb_val from, kb_val number);
kb_val kb_halo_read(kb *k, kb_val from);
/* Without waiting: has the word come (bool), and which one?  The thread that asked has it then. */
kb_val kb_halo_peek(kb *k, kb_val from, kb_val number, kb_val *word);
/* `amount` (u32) parts of this launch's exchange are over, of `total` (u32): one thread, after a barrier of its block, or of
 * its warp where a part is a warp's. */
void kb_halo_done(kb *k, kb_val window, kb_val number, kb_val amount, kb_val total);
/* One thread, where kb_has_bulk(): ask for `bytes` from p on, both multiples of 16, to be brought to the second-level
 * cache.  It reads nothing, so it may come before kb_dependency_wait(), of inputs too that others still write. */
void kb_prefetch(kb *k, kb_ptr p, int64_t bytes);

/* ---- asynchronous copies and the barriers that they report to (sm_90) -------------------------------------------- */
/* An mbarrier has phases.  A phase is complete when as many arrivals have come as kb_mbar_init() said and all bytes
 * that were announced in it have landed; the next one then begins.  Who waits for parity 0 goes on when the first phase
 * is complete (and waits again once the second is), for parity 1 when the second is: a fresh barrier lets parity 1
 * pass.
 *
 * A thread that announces bytes and starts the copies is one lane (kb_if on the lane).  Addresses are multiples of 16
 * bytes and so are sizes; the caller sees to that. */
bool kb_has_bulk(const kb *k);
kb_ptr kb_mbarriers(kb *k, int count, const char *name); /* in shared memory */
/* One thread initialises and says when it has initialised all; a kb_barrier makes them known to the other threads. */
void kb_mbar_init(kb *k, kb_ptr bars, kb_val i, int arrivals);
void kb_mbar_ready_at(kb *k, const char *file, int line);
/* All lanes of a warp come; one arrival, which releases what they did before (a warp sync is part of it). */
void kb_mbar_arrive_at(kb *k, kb_ptr bars, kb_val i, const char *file, int line);
/* One lane: an arrival that announces `bytes` (i32) for this phase. */
void kb_mbar_expect_at(kb *k, kb_ptr bars, kb_val i, kb_val bytes, const char *file, int line);
/* Any lanes: until the phase of this parity (i32, 0 or 1) is complete; sees what its arrivals released and what landed. */
void kb_mbar_wait_at(kb *k, kb_ptr bars, kb_val i, kb_val parity, const char *file, int line);
#define kb_mbar_ready(k)           kb_mbar_ready_at((k), __FILE__, __LINE__)
#define kb_mbar_arrive(k, b, i)    kb_mbar_arrive_at((k), (b), (i), __FILE__, __LINE__)
#define kb_mbar_expect(k, b, i, n) kb_mbar_expect_at((k), (b), (i), (n), __FILE__, __LINE__)
#define kb_mbar_wait(k, b, i, p)   kb_mbar_wait_at((k), (b), (i), (p), __FILE__, __LINE__)
/* One lane starts the copy of `bytes` (i32) from global memory to shared memory of the block; it reports to bars[i]. */
void kb_bulk_load(kb *k, kb_ptr to, kb_ptr from, kb_val bytes, kb_ptr bars, kb_val i);
/* The other way.  What the copy reads was written by threads that then called kb_proxy_fence(), before a barrier.  The
 * copies since the last commit are a group; kb_bulk_wait: until at most `pending` groups of this thread are left that
 * are not done (`read`: that still read shared memory).  A thread ends only after its copies have read. */
void kb_bulk_store(kb *k, kb_ptr to, kb_ptr from, kb_val bytes);
void kb_bulk_commit(kb *k);
void kb_bulk_wait_at(kb *k, int pending, bool read, const char *file, int line);
void kb_proxy_fence_at(kb *k, const char *file, int line);
#define kb_bulk_wait(k, pending, read) kb_bulk_wait_at((k), (pending), (read), __FILE__, __LINE__)
#define kb_proxy_fence(k)              kb_proxy_fence_at((k), __FILE__, __LINE__)
/* sm_80: every thread copies its own 4, 8 or 16 bytes to[j … ) = from[i … ), whose addresses are multiples of their
 * number, in groups like those above; done means visible to this thread. */
bool kb_has_copy(const kb *k);
void kb_copy(kb *k, int bytes, kb_ptr to, kb_val j, kb_ptr from, kb_val i);
/* The same, or zeros where `exists` is false; from[i] is an address of the array all the same. */
void kb_copy_or_zero(kb *k, int bytes, kb_ptr to, kb_val j, kb_ptr from, kb_val i, kb_val exists);
void kb_copy_commit(kb *k);
void kb_copy_wait_at(kb *k, int pending, const char *file, int line);
#define kb_copy_wait(k, pending) kb_copy_wait_at((k), (pending), __FILE__, __LINE__)

/* ---- control flow ------------------------------------------------------------------------------------------------ */
enum kb_arm { KB_THEN, KB_ELSE, KB_DONE };
typedef struct kb_scope {
    enum kb_arm arm;
    int depth;
} kb_scope;
kb_scope kb_if_begin(kb *k, kb_val cond, const char *file, int line);
void kb_if_next(kb *k, kb_scope *s);
kb_scope kb_loop_begin(kb *k, const char *file, int line);
void kb_loop_end(kb *k, kb_scope *s);
kb_val kb_for_begin(kb *k, kb_val from, kb_arg to, kb_arg step, const char *file, int line);
kb_val kb_for_end(kb *k, kb_val i);
void kb_break_if(kb *k, kb_val cond);
/* A constant condition emits one arm. */
#define kb_if(k, cond)                                                                                                 \
    for (kb_scope kb_s_ = kb_if_begin((k), (cond), __FILE__, __LINE__); kb_s_.arm != KB_DONE; kb_if_next((k), &kb_s_)) \
        if (kb_s_.arm == KB_THEN)
#define kb_else else if (kb_s_.arm == KB_ELSE)
/* The first `warps` warps of the block are a team: inside, kb_threads() is theirs and kb_barrier() waits for them
 * alone, at the hardware's barrier `id` (1 … 15, one per team).  So helpers for a block serve a team.  The other warps
 * take the kb_else. */
kb_scope kb_team_begin(kb *k, int warps, int id, const char *file, int line);
#define kb_team(k, warps, id)                                                                                          \
    for (kb_scope kb_s_ = kb_team_begin((k), (warps), (id), __FILE__, __LINE__); kb_s_.arm != KB_DONE;                 \
         kb_if_next((k), &kb_s_))                                                                                      \
        if (kb_s_.arm == KB_THEN)
#define kb_loop(k)                                                                                                     \
    for (kb_scope kb_s_ = kb_loop_begin((k), __FILE__, __LINE__); kb_s_.arm != KB_DONE; kb_loop_end((k), &kb_s_))
/* for (i = from; i < to; i += step), signed or unsigned by the type of `from`; keeps the uniformity of its bounds. */
#define kb_for(k, i, from, to, step)                                                                                   \
    for (kb_val i = kb_for_begin((k), (from), KB_ARG(to), KB_ARG(step), __FILE__, __LINE__); i.ir;                     \
         i = kb_for_end((k), i))

#endif
