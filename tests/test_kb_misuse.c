/* SPDX-License-Identifier: Apache-2.0 */
/* test_kb_misuse.c - every rule of the kernel builder has a kernel that breaks it and is told so, with its place. */
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

static const struct {
    const char *name;
    emitter emit;
    const char *arch;
    const char *says; /* somewhere in the message */
    bool placed;      /* the message names this file */
} rows[] = {
    { "barrier in a divergent if", barrier_in_divergent_if, NULL,
      "barrier inside the divergent scope opened at test_kb_misuse.c:", true },
    { "barrier in a warp-uniform else", barrier_in_else, NULL, "barrier inside the divergent scope", true },
    { "shuffle in a divergent if", shuffle_in_divergent_if, NULL, "shuffle inside the divergent scope", true },
    { "vote in a divergent if", vote_in_divergent_if, NULL, "vote inside the divergent scope", true },
    { "sync in a divergent loop", sync_in_divergent_loop, NULL, "warp sync inside the divergent scope", true },
    { "barrier before a divergent break", barrier_before_divergent_break, NULL,
      "barrier inside a loop that threads leave at different times", true },
    { "break inside a divergent if", break_in_divergent_if, NULL,
      "barrier inside a loop that threads leave at different times", true },
    { "divergent value in a uniform variable", divergent_set, NULL, "divergent value assigned", false },
    { "divergent assignment", set_in_divergent_if, NULL, "assignment to a uniform variable inside", true },
    { "break in an if", break_out_of_if, NULL, "scope never closed", true },
    { "break in a loop", break_out_of_loop, NULL, "scope never closed", true },
    { "break in an if in a for", break_inside_for, NULL, "scope left open", true },
    { "return from a scope", return_in_scope, NULL, "scope left open", true },
    { "break outside a loop", break_if_outside, NULL, "kb_break_if outside a loop", false },
    { "nesting", nested_too_deep, NULL, "nested deeper", true },
    { "integer condition", condition_not_bool, NULL, "condition is not bool", true },
    { "operand types", mixed_operands, NULL, "operand types differ: i32 and i64", false },
    { "variable type", mixed_set, NULL, "u32 assigned to a variable of type i32", false },
    { "store type", mixed_store, NULL, "f32 stored to out of type i32", false },
    { "select types", mixed_select, NULL, "select of i32 and u32", false },
    { "float index", float_index, NULL, "index of type f32", false },
    { "ordered i16", small_atomic, NULL, "ordered access to out of type i16", false },
    { "releasing load", releasing_load, NULL, "cannot have this order", true },
    { "acquiring store", acquiring_store, NULL, "cannot have this order", true },
    { "signed inc", signed_wrap, NULL, "atomic operation", false },
    { "float xor", float_bits, NULL, "on type f64", false },
    { "bitcast", wide_bitcast, NULL, "bits of i32 taken as f64", false },
    { "field across words", split_field, NULL, "crosses a word", false },
    { "tuples", uneven_tuples, NULL, "tuples of 1 and 2 fields", false },
    { "shuffle width", odd_width, NULL, "shuffle of width 12", false },
    { "missing parameter", missing_parameter, NULL, "1 of its 3 parameters", false },
    { "extra parameter", extra_parameter, NULL, "one more than kernel bad announced", false },
    { "parameter of none", parameter_of_none, NULL, "one more than kernel bad announced", false },
    { "shared memory", too_much_shared, NULL, "232456 bytes of shared memory, more than the 232448", false },
    { "clusters on sm_80", cluster_on_old, "sm_80", "clusters need sm_90", false },
    { "dependent launch on sm_80", dependency_on_old, "sm_80", "needs sm_90", true },
    { "redux on sm_75", redux_on_old, "sm_75", "no warp reduction", false },
    { "cluster scope on sm_80", cluster_scope_on_old, "sm_80", "cluster scope needs sm_90", false },
    { "weak fence", weak_fence, NULL, "fence without an order", true },
    { "math function", no_such_function, NULL, "no math function", false },
    { "first of two", first_wins, NULL, "bits of i32", false },
};

Test(kb_misuse, rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct emitted e = emit_with((struct emission_options){ .arch = rows[i].arch }, rows[i].emit, NULL);
        cr_expect_not(e.ok, "%s: accepted", rows[i].name);
        cr_expect_null(e.text, "%s: has PTX", rows[i].name);
        cr_expect_eq(strncmp(e.error, "4001 ", 5), 0, "%s: %s", rows[i].name, e.error);
        cr_expect_not_null(strstr(e.error, rows[i].says), "%s: says '%s'", rows[i].name, e.error);
        cr_expect(!rows[i].placed || strstr(e.error, "test_kb_misuse.c:"), "%s: no place in '%s'", rows[i].name,
                  e.error);
        free(e.text);
    }
}

/* What looks alike and is right. */
static void all_fine(kb *k, const void *arg)
{
    kb_ptr out = start(k);
    (void)arg;
    kb_if(k, kb_eq(k, kb_block(k), 0)) {
        kb_barrier(k);
        kb_for(k, i, zero(k), kb_blocks(k), 1) {
            kb_barrier(k);
            kb_store(k, out, kb_tid(k), i);
        }
    }
    kb_else
    {
        kb_if(k, kb_eq(k, kb_warp(k), 1)) {
            kb_loop(k) {
                LET(x, kb_load_relaxed(k, out, zero(k)));
                kb_break_if(k, kb_any(k, kb_eq(k, x, 1)));
                kb_store(k, out, kb_tid(k), kb_shfl_down(k, x, 1));
            }
        }
    }
    kb_loop(k) {
        kb_break_if(k, kb_eq(k, kb_load_relaxed(k, out, zero(k)), 1));
    }
    kb_barrier(k);
    kb_if(k, kb_assume_uniform(kb_eq(k, kb_load_relaxed(k, out, zero(k)), 1), KB_UNI_BLOCK)) {
        kb_barrier(k);
    }
    kb_kernel_end(k);
}
Test(kb_misuse, what_is_right_is_accepted)
{
    struct emitted e = emit_with((struct emission_options){ 0 }, all_fine, NULL);
    cr_assert(e.ok, "%s", e.error);
    free(e.text);
}
