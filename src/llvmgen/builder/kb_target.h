/* SPDX-License-Identifier: Apache-2.0 */
/* kb_target.h - what differs between targets: the only place where an intrinsic, inline assembly or an sm_ number
 * may appear is behind this table (targets/nvptx.c, targets/host.c).
 *
 * Hooks are semantic, not instruction-shaped, so that the host can deliver late and out of order.  kb.c has done
 * uniformity checks, counted ordering points and split wide values before a hook is called.  Addresses are final
 * (`at` points to the element).
 */
#ifndef PTXGEN_KB_TARGET_H
#define PTXGEN_KB_TARGET_H

#include "kb.h"

enum kb_sreg { KB_SREG_TID, KB_SREG_BLOCK, KB_SREG_BLOCKS, KB_SREG_CLUSTER_RANK, KB_SREG_COUNT };
/* Numbers of kb_target.math beside those of functions.def. */
enum {
    KB_FN_FMOD = 1000, /* x - y * trunc(x / y), exact */
    KB_FN_EXP_FALLING  /* of x <= 0, or NaN; what is less than 2^-126 may be 0 */
};
/* KB_VOTE_HERE: KB_VOTE_ALL among the lanes that are at this place with the one that asks. */
enum kb_vote { KB_VOTE_ANY, KB_VOTE_ALL, KB_VOTE_HERE, KB_VOTE_BALLOT, KB_VOTE_MATCH };

/* One memory access of an LLVM type (scalar or vector). */
struct kb_access {
    LLVMValueRef at; /* pointer, in the target's form */
    LLVMTypeRef type;
    int bytes, align;
    enum kb_space space;
    enum kb_order order;
    enum kb_scope_of scope;
    unsigned flags; /* KB_INVARIANT, KB_STREAM */
    const char *name;
};

/* Where a copy goes and comes from. */
struct kb_copy {
    LLVMValueRef to, from;
    const char *to_name, *from_name;
    LLVMValueRef exists; /* i1, of threads' own copies: else zeros are copied; NULL: it does */
};

struct kb_target {
    const char *name;
    bool fuses;          /* sums take products here already: its code generator is not asked to */
    bool division_traps; /* an integer division by zero, which GPUs give any value, ends the process */
    /* A kernel begins (after its function exists, builder in the entry block): calling convention, attributes. */
    void (*kernel)(kb *k, int threads, int cluster, int min_blocks);
    /* Static shared memory of the block: pointer in the space KB_SHARED.  offset: place in the kernel's arena of shared
     * bytes. `pool` is called once at the end of the kernel with the total so that a backing object can be made; see
     * kb.c. */
    LLVMValueRef (*shared_base)(kb *k);
    void (*shared_done)(kb *k, int bytes);
    LLVMValueRef (*sreg)(kb *k, enum kb_sreg which);                                       /* i32 */
    LLVMValueRef (*shfl)(kb *k, int mode, LLVMValueRef word, LLVMValueRef arg, int width); /* i32 */
    LLVMValueRef (*vote)(kb *k, enum kb_vote mode, LLVMValueRef pred); /* i1 -> i1, ballot i32, match i32 -> i32 */
    LLVMValueRef (*redux)(kb *k, enum kb_rmw op, LLVMValueRef x, bool is_signed); /* i32; NULL: none */
    /* The four bytes of an i32, and another i32, added up; NULL: no instruction for it. */
    LLVMValueRef (*sum_bytes)(kb *k, LLVMValueRef word, bool is_signed, LLVMValueRef plus);
    /* The four bytes of an i32, each times one of another, all without sign, and a third i32, added up; NULL: no instruction for it. */
    LLVMValueRef (*dot_bytes)(kb *k, LLVMValueRef word, LLVMValueRef times, LLVMValueRef plus);
    /* Four bytes of two i32, by digits of an i32, see kb_permute(); NULL: no instruction for it. */
    LLVMValueRef (*permute)(kb *k, LLVMValueRef low, LLVMValueRef high, LLVMValueRef which);
    void (*barrier)(kb *k);
    void (*team_barrier)(kb *k, int id, int threads);
    void (*warp_sync)(kb *k);
    void (*fence)(kb *k, enum kb_order o, enum kb_scope_of s);
    LLVMValueRef (*load)(kb *k, const struct kb_access *a);
    void (*store)(kb *k, const struct kb_access *a, LLVMValueRef x);
    LLVMValueRef (*rmw)(kb *k, enum kb_rmw op, const struct kb_access *a, LLVMValueRef x, bool is_signed,
                        bool is_float);
    LLVMValueRef (*cas)(kb *k, const struct kb_access *a, LLVMValueRef expected, LLVMValueRef desired);
    /* An element comes to a computed place, see kb_placed(); NULL: not checked. */
    void (*placed)(kb *k, LLVMValueRef at, int bytes, int rank, const LLVMValueRef index[3], const char *name);
    void (*backoff)(kb *k, int nanoseconds);
    LLVMValueRef (*math)(kb *k, int fn, enum ty ty, int n,
                         LLVMValueRef *args); /* f32 or f64 only; enum fn or KB_FN_… */
    /* minimumNumber and maximumNumber of IEEE 754-2019; NULL: no instruction for f16, bf16. */
    LLVMValueRef (*extreme)(kb *k, bool maximum, enum ty ty, LLVMValueRef a, LLVMValueRef b);
    /* x * y + z in f16 or bf16, rounded once; NULL, or a NULL result: no instruction for it. */
    LLVMValueRef (*narrow_fma)(kb *k, enum ty ty, LLVMValueRef *args);
    LLVMValueRef (*cluster_map)(kb *k, LLVMValueRef shared, LLVMValueRef rank);
    void (*cluster_arrive)(kb *k);
    void (*cluster_wait)(kb *k);
    void (*dependency_wait)(kb *k);
    void (*dependency_launch)(kb *k);
    void (*exchange)(kb *k, LLVMValueRef table /* i64 */);
    /* Addresses are i64; words, and e, the number of an exchange, i32. */
    LLVMValueRef (*halo_number)(kb *k, LLVMValueRef window);
    void (*halo_send)(kb *k, LLVMValueRef to, LLVMValueRef word, LLVMValueRef e);
    void (*halo_wait)(kb *k, LLVMValueRef window, LLVMValueRef from, LLVMValueRef e);
    LLVMValueRef (*halo_read)(kb *k, LLVMValueRef from);
    LLVMValueRef (*halo_peek)(kb *k, LLVMValueRef from, LLVMValueRef e); /* i64: the word, and above it its number */
    void (*halo_done)(kb *k, LLVMValueRef window, LLVMValueRef e, LLVMValueRef amount, LLVMValueRef total);
    void (*prefetch)(kb *k, LLVMValueRef from, int64_t bytes, const char *name);
    /* Asynchronous copies.  Pointers as everywhere; counts, parities and bytes are i32; names for reports. */
    void (*mbar_init)(kb *k, LLVMValueRef bar, int arrivals, const char *name);
    void (*mbar_ready)(kb *k);
    void (*mbar_arrive)(kb *k, LLVMValueRef bar, LLVMValueRef bytes /* to expect; NULL: none */, const char *name);
    void (*mbar_wait)(kb *k, LLVMValueRef bar, LLVMValueRef parity, const char *name);
    void (*bulk_load)(kb *k, const struct kb_copy *c, LLVMValueRef bytes, LLVMValueRef bar);
    void (*bulk_store)(kb *k, const struct kb_copy *c, LLVMValueRef bytes);
    void (*bulk_commit)(kb *k);
    void (*bulk_wait)(kb *k, int pending, bool read);
    void (*proxy_fence)(kb *k);
    void (*copy)(kb *k, const struct kb_copy *c, int bytes);
    void (*copy_commit)(kb *k);
    void (*copy_wait)(kb *k, int pending);
};
/* Those that every target has: X(hook) for each. */
/* clang-format off */
#define KB_HOOKS(X)                                                                                                    \
    X(kernel) X(shared_base) X(shared_done) X(sreg) X(shfl) X(vote) X(redux)                                           \
    X(barrier) X(team_barrier) X(warp_sync) X(fence) X(load) X(store) X(rmw) X(cas) X(backoff) X(math) X(extreme)      \
    X(cluster_map) X(cluster_arrive) X(cluster_wait) X(dependency_wait) X(dependency_launch) X(exchange) X(prefetch)   \
    X(halo_number) X(halo_send) X(halo_wait) X(halo_read) X(halo_peek) X(halo_done)                                                 \
    X(mbar_init) X(mbar_ready) X(mbar_arrive) X(mbar_wait)                                                             \
    X(bulk_load) X(bulk_store) X(bulk_commit) X(bulk_wait) X(proxy_fence) X(copy) X(copy_commit) X(copy_wait)
/* clang-format on */
extern const struct kb_target kb_target_nvptx, kb_target_host;

/* What kb.c shares with the target files and nobody else. */
LLVMContextRef kb_context(kb *k);
LLVMModuleRef kb_module(kb *k);
LLVMBuilderRef kb_builder(kb *k);
LLVMValueRef kb_function(kb *k);
LLVMTypeRef kb_llvm_ty(kb *k, enum ty ty);
/* Call a declared function or intrinsic by name (declared on first use); convergent: barriers, shuffles, inline
 * assembly like them. */
LLVMValueRef kb_call(kb *k, const char *name, LLVMTypeRef ret, int n, LLVMValueRef *args, bool convergent);
/* The call's value depends on its arguments alone: of equal calls one is left. */
LLVMValueRef kb_pure(kb *k, LLVMValueRef call);
/* Zeroed memory until the kernel ends; NULL is a misuse that has been noted. */
void *kb_scratch(kb *k, size_t bytes);
void kb_misuse(kb *k, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
