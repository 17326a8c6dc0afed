/* SPDX-License-Identifier: Apache-2.0 */
/* misuse_kernels.h - kernels that each break one rule of the kernel builder; test_kb_misuse.c says what each is told.
 */
#ifndef PTXGEN_TESTS_MISUSE_KERNELS_H
#define PTXGEN_TESTS_MISUSE_KERNELS_H

#include "emit_fixture.h"

static kb_ptr start(kb *k)
{
    kb_kernel_begin(k, "bad", 128, 0, 0, 1);
    return kb_param_ptr(k, TY_I32, 4, 0, "out");
}
static kb_val zero(kb *k) { return kb_imm(k, TY_I32, 0); }

/* ---- uniformity -------------------------------------------------------------------------------------------------- */

static void barrier_in_divergent_if(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_if(k, kb_lt(k, kb_tid(k), 7)) {
        kb_barrier(k);
    }
    kb_kernel_end(k);
}

static void barrier_in_else(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_if(k, kb_eq(k, kb_warp(k), 0)) {
        kb_warp_sync(k); /* fine: the condition is the same for the warp */
    }
    kb_else { kb_barrier(k); }
    kb_kernel_end(k);
}

static void shuffle_in_divergent_if(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_if(k, kb_eq(k, kb_lane(k), 0)) {
        kb_shfl_down(k, kb_tid(k), 1);
    }
    kb_kernel_end(k);
}

static void vote_in_divergent_if(kb *k, const void *arg)
{
    kb_ptr out = start(k);
    (void)arg;
    kb_if(k, kb_ne(k, kb_load(k, out, kb_tid(k)), 0)) {
        kb_any(k, kb_imm(k, TY_BOOL, 1));
    }
    kb_kernel_end(k);
}

static void sync_in_divergent_loop(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_for(k, i, zero(k), kb_tid(k), 1) {
        kb_warp_sync(k);
        (void)i;
    }
    kb_kernel_end(k);
}

/* The barrier comes first in the text, and after the break in the second round. */
static void barrier_before_divergent_break(kb *k, const void *arg)
{
    kb_ptr out = start(k);
    (void)arg;
    kb_loop(k) {
        kb_barrier(k);
        kb_break_if(k, kb_eq(k, kb_load_relaxed(k, out, zero(k)), 1));
    }
    kb_kernel_end(k);
}

static void break_in_divergent_if(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_loop(k) {
        kb_barrier(k);
        kb_if(k, kb_eq(k, kb_tid(k), 3)) {
            kb_break_if(k, kb_imm(k, TY_BOOL, 1));
        }
    }
    kb_kernel_end(k);
}

static void divergent_set(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_var v = kb_var_new(k, zero(k), "v");
    v.uni = KB_UNI_BLOCK;
    kb_set(k, v, kb_block(k)); /* fine */
    kb_set(k, v, kb_tid(k));
    kb_kernel_end(k);
}

static void set_in_divergent_if(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_var v = kb_var_new(k, zero(k), "v");
    v.uni = KB_UNI_WARP;
    kb_if(k, kb_eq(k, kb_lane(k), 3)) {
        kb_set(k, v, zero(k));
    }
    kb_kernel_end(k);
}

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

static void break_out_of_if(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        break;
    }
    kb_kernel_end(k);
}

static void break_out_of_loop(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_loop(k) {
        kb_break_if(k, kb_eq(k, kb_tid(k), 0));
        break;
    }
    kb_kernel_end(k);
}

static void break_inside_for(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_for(k, i, zero(k), 10, 1) {
        kb_if(k, kb_eq(k, i, 3)) {
            break;
        }
    }
    kb_kernel_end(k);
}

static void return_from_helper(kb *k)
{
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        return;
    }
}
static void return_in_scope(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_if(k, kb_eq(k, kb_block(k), 0)) {
        return_from_helper(k);
    }
    kb_kernel_end(k);
}

static void break_if_outside(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        kb_break_if(k, kb_imm(k, TY_BOOL, 1));
    }
    kb_kernel_end(k);
}

static void nest(kb *k, int depth)
{
    if (depth == 0)
        return;
    kb_if(k, kb_eq(k, kb_tid(k), depth)) {
        nest(k, depth - 1);
    }
}
static void nested_too_deep(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    nest(k, KB_FLOW_MAX + 3);
    kb_kernel_end(k);
}

static void condition_not_bool(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_if(k, kb_tid(k)) {
        kb_barrier(k);
    }
    kb_kernel_end(k);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

static void mixed_operands(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_add(k, kb_tid(k), kb_imm(k, TY_I64, 1));
    kb_kernel_end(k);
}

static void mixed_set(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_var v = kb_var_new(k, zero(k), "v");
    kb_set(k, v, kb_imm(k, TY_U32, 0));
    kb_kernel_end(k);
}

static void mixed_store(kb *k, const void *arg)
{
    kb_ptr out = start(k);
    (void)arg;
    kb_store(k, out, zero(k), kb_imm(k, TY_F32, 0));
    kb_kernel_end(k);
}

static void mixed_select(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_select(k, kb_lt(k, kb_tid(k), 1), zero(k), kb_imm(k, TY_U32, 0));
    kb_kernel_end(k);
}

static void float_index(kb *k, const void *arg)
{
    kb_ptr out = start(k);
    (void)arg;
    kb_load(k, out, kb_imm(k, TY_F32, 3));
    kb_kernel_end(k);
}

static void small_atomic(kb *k, const void *arg)
{
    kb_kernel_begin(k, "bad", 128, 0, 0, 1);
    kb_ptr out = kb_param_ptr(k, TY_I16, 2, 0, "out");
    (void)arg;
    kb_load_acquire(k, out, zero(k));
    kb_kernel_end(k);
}

static void releasing_load(kb *k, const void *arg)
{
    kb_ptr out = start(k);
    (void)arg;
    kb_load_order(k, out, zero(k), KB_RELEASE, KB_SCOPE_DEVICE, __FILE__, __LINE__);
    kb_kernel_end(k);
}

static void acquiring_store(kb *k, const void *arg)
{
    kb_ptr out = start(k);
    (void)arg;
    kb_store_order(k, out, zero(k), zero(k), KB_ACQUIRE, KB_SCOPE_DEVICE, __FILE__, __LINE__);
    kb_kernel_end(k);
}

static void signed_wrap(kb *k, const void *arg)
{
    kb_ptr out = start(k);
    (void)arg;
    kb_atomic(k, KB_RMW_INC_WRAP, out, zero(k), kb_imm(k, TY_I32, 7));
    kb_kernel_end(k);
}

static void float_bits(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_xor(k, kb_immf(k, TY_F64, 1), 1);
    kb_kernel_end(k);
}

static void wide_bitcast(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_bitcast(k, kb_tid(k), TY_F64);
    kb_kernel_end(k);
}

static void split_field(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    const kb_val word[2] = { kb_imm(k, TY_U32, 1), kb_imm(k, TY_U32, 2) };
    kb_extract(k, word, 2, TY_F32);
    kb_kernel_end(k);
}

static void uneven_tuples(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_tup a = { .n = 1, .e = { zero(k) } }, b = { .n = 2, .e = { zero(k), zero(k) } };
    kb_select(k, kb_lt(k, kb_tid(k), 1), a, b);
    kb_kernel_end(k);
}

static void odd_width(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_shfl(k, KB_SHFL_IDX, kb_tid(k), zero(k), 12);
    kb_kernel_end(k);
}

/* ---- kernels and targets ----------------------------------------------------------------------------------------- */

static void missing_parameter(kb *k, const void *arg)
{
    (void)arg;
    kb_kernel_begin(k, "bad", 128, 0, 0, 3);
    kb_ptr out = kb_param_ptr(k, TY_I32, 4, 0, "out");
    kb_store(k, out, zero(k), kb_tid(k));
    kb_kernel_end(k);
}

static void extra_parameter(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_param(k, TY_I32, "more");
    kb_kernel_end(k);
}

static void parameter_of_none(kb *k, const void *arg)
{
    (void)arg;
    kb_kernel_begin(k, "bad", 128, 0, 0, 0);
    kb_ptr out = kb_param_ptr(k, TY_I32, 4, 0, "more");
    kb_store(k, out, zero(k), zero(k));
    kb_kernel_end(k);
}

static void too_much_shared(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_shared_v(k, TY_F64, 227 * 128 + 1, "big");
    kb_kernel_end(k);
}

static void cluster_on_old(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_cluster_arrive(k);
    kb_kernel_end(k);
}

static void dependency_on_old(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_dependency_wait(k);
    kb_kernel_end(k);
}

static void redux_on_old(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_redux(k, KB_RMW_ADD, kb_tid(k));
    kb_kernel_end(k);
}

static void match_of_bool(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_match(k, kb_true(k));
    kb_kernel_end(k);
}

static void cluster_scope_on_old(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_fence(k, KB_ACQ_REL, KB_SCOPE_CLUSTER);
    kb_kernel_end(k);
}

static void weak_fence(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_fence(k, KB_WEAK, KB_SCOPE_DEVICE);
    kb_kernel_end(k);
}

static void no_such_function(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_val x = kb_immf(k, TY_F32, 1);
    kb_math(k, FN_POPCOUNT, 1, &x);
    kb_kernel_end(k);
}

/* Two misuses: the first is reported. */
static void first_wins(kb *k, const void *arg)
{
    (void)arg;
    start(k);
    kb_bitcast(k, kb_tid(k), TY_F64);
    kb_add(k, kb_tid(k), kb_imm(k, TY_I64, 1));
    kb_kernel_end(k);
}

#endif
