/* SPDX-License-Identifier: Apache-2.0 */
/* test_kb_misuse.c - every rule of the kernel builder has a kernel that breaks it and is told so, with its place. */
#include "support/misuse_kernels.h"

static const struct {
    const char *name;
    emitter emit;
    const char *arch;
    const char *says; /* somewhere in the message */
    bool placed;      /* the message names the kernel's file */
} rows[] = {
    { "barrier in a divergent if", barrier_in_divergent_if, NULL,
      "barrier inside the divergent scope opened at support/misuse_kernels.h:", true },
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
    { "match of a bool", match_of_bool, NULL, "vote on type bool", false },
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
        cr_expect(!rows[i].placed || strstr(e.error, "misuse_kernels.h:"), "%s: no place in '%s'", rows[i].name,
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
