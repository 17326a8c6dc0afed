/* SPDX-License-Identifier: Apache-2.0 */
/* test_exchange_code.c - the kernels that write into other devices' memory, and those that decide about loops, are PTX for
 * every architecture.
 */
#include <criterion/criterion.h>

#include "launch/exchange.h"
#include "launch/launch_graph.h"
#include "support/emit_fixture.h"

Test(exchange_code, ptxas_takes_it)
{
    static const char *const arch[] = { "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120" };
    char text[16384] = "";
    for (int i = 0; i < EXCHANGE_CODE_PARTS; i++) {
        cr_assert(strlen(text) + strlen(exchange_code[i]) < sizeof text);
        strcat(text, exchange_code[i]);
    }
    for (size_t i = 0; i < sizeof arch / sizeof *arch; i++)
        cr_expect_str_empty(assemble(text, arch[i]), "%s: %s", arch[i], assemble(text, arch[i]));
}

/* The driver alone knows the function that sets a condition; the assembler of whole programs does not. */
Test(exchange_code, ptxas_takes_the_decisions)
{
    static const char *const arch[] = { "sm_75", "sm_80", "sm_90", "sm_100", "sm_120" };
    const char *const code[] = { loop_code, loop_agree_code };
    for (size_t i = 0; i < sizeof arch / sizeof *arch; i++)
        for (int k = 0; k < 2; k++) {
            char flags[40];
            snprintf(flags, sizeof flags, "%s -c", arch[i]);
            cr_expect_str_empty(assemble(code[k], flags), "%s: %s", arch[i], assemble(code[k], flags));
        }
}

/* The offsets that the PTX has written in it. */
Test(exchange_code, parameters_are_where_the_kernels_read_them)
{
    cr_expect_eq(offsetof(struct exchange_table, longest), 32);
    cr_expect_eq(offsetof(struct exchange_table, row), 40);
    cr_expect_eq(offsetof(struct exchange_row, done_there), 40);
    cr_expect_eq(offsetof(struct exchange_row, flag_here), 80);
    cr_expect_eq(sizeof(struct exchange_row), 88);
    cr_expect_eq(sizeof(struct exchange_table), 1448);
}

_Static_assert((int)KB_HALO_SLOTS == (int)HALO_SLOTS && sizeof(struct halo_head) <= HALO_SLOTS,
               "words come after the head");

/* What nvptx_halo.c has written in it. */
Test(exchange_code, a_halo_begins_as_the_kernels_read_it)
{
    cr_expect_eq(offsetof(struct halo_head, ticket), 4);
    cr_expect_eq(offsetof(struct halo_head, fault), 8);
    cr_expect_eq(offsetof(struct halo_head, host_fault), 16);
    cr_expect_eq(offsetof(struct halo_head, limit), 24);
    cr_expect_eq(offsetof(struct halo_head, told), 32);
}

/* Loads what came: not through the cache that this kernel's own writes do not reach. */
static void exchanges_and_loads(kb *k, const void *arg)
{
    (void)arg;
    kb_kernel_begin(k, "kernel", 64, 0, 0, 3);
    const kb_ptr in = kb_param_ptr(k, TY_U32, 4, KB_INVARIANT, "in"), out = kb_param_ptr(k, TY_U32, 4, 0, "out");
    const kb_val table = kb_param(k, TY_I64, "table");
    kb_exchange(k, table);
    kb_store(k, out, kb_tid(k), kb_load(k, in, kb_tid(k)));
    kb_kernel_end(k);
}

Test(exchange_code, ptxas_takes_it_inside_a_kernel)
{
    static const char *const arch[] = { "sm_75", "sm_80", "sm_90", "sm_100", "sm_120" };
    for (size_t i = 0; i < sizeof arch / sizeof *arch; i++) {
        const struct emitted e = emit_with((struct emission_options){ .arch = arch[i] }, exchanges_and_loads, NULL);
        cr_assert(e.ok, "%s", e.error);
        cr_expect_str_empty(assemble(e.text, arch[i]), "%s: %s", arch[i], assemble(e.text, arch[i]));
        cr_expect_eq(occurrences(e.text, "st.relaxed.sys.global.u64"), 1);
        cr_expect_eq(occurrences(e.text, "ld.global.nc"), 0);
        free(e.text);
    }
}
