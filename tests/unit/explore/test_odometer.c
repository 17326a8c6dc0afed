/* SPDX-License-Identifier: Apache-2.0 */
/* test_odometer.c - settings one after the other, and what is passed over. */
#include "explore/odometer.h"

#include <criterion/criterion.h>

/* threads 3 values, items 2, cluster 4, bulk 2; blocks_per_sm stands still. */
static void open(struct odometer *o)
{
    static const struct tunable_axis axis[] = { { .tunable = TN_THREADS, .n = 3 },
                                                { .tunable = TN_ITEMS, .n = 2 },
                                                { .tunable = TN_BLOCKS_PER_SM, .n = 6, .still = true },
                                                { .tunable = TN_CLUSTER, .n = 4 },
                                                { .tunable = TN_COPY_STAGES, .n = 2 } };
    odometer_clear(o);
    for (size_t i = 0; i < sizeof axis / sizeof *axis; i++)
        o->axis[o->naxes++] = axis[i];
}

Test(odometer, turns_through_all_settings_in_order)
{
    struct odometer o, there;
    open(&o);
    open(&there);
    int64_t n = 0;
    do {
        odometer_go_to(&there, n);
        for (int i = 0; i < o.naxes; i++)
            cr_expect_eq(there.axis[i].at, o.axis[i].at, "axis %d of setting %lld", i, (long long)n);
        cr_expect_eq(odometer_number(&o, o.naxes), n);
        n++;
    } while (odometer_turn(&o));
    cr_expect(n == 3 * 2 * 4 * 2 && odometer_settings(&o) == n);
}

Test(odometer, passes_over_what_begins_alike)
{
    struct odometer o;
    open(&o);
    odometer_go_to(&o, 3); /* number 3 of the 8 with these threads and items */
    cr_expect_eq(odometer_pass(&o, 2), 5);
    cr_expect_eq(odometer_number(&o, o.naxes), 7);
    cr_assert(odometer_turn(&o));
    cr_expect_eq(odometer_number(&o, o.naxes), 8);
    cr_expect_eq(odometer_pass(&o, o.naxes), 1, "itself");
    cr_expect_eq(odometer_pass(&o, 0), 40);
    cr_expect_not(odometer_turn(&o));
}

Test(odometer, recognises_what_is_illegal)
{
    struct odometer o;
    open(&o);
    odometer_go_to(&o, 2); /* cluster 1 */
    cr_expect_eq(odometer_illegal(&o), 0);
    cr_expect_eq(odometer_learn(&o, 0), 0, "for an unknown reason");
    cr_expect_eq(odometer_illegal(&o), 0);
    cr_expect_eq(odometer_learn(&o, WITH_ITEMS | WITH_CLUSTER | WITH_VECTOR), 4);
    int illegal = 0;
    for (int n = 0; n < odometer_settings(&o); n++) {
        odometer_go_to(&o, n);
        const bool same = o.axis[1].at == 0 && o.axis[3].at == 1;
        cr_expect_eq(odometer_illegal(&o), same ? 4 : 0, "setting %d", n);
        illegal += same;
    }
    cr_expect_eq(illegal, 3 * 2);
    /* What was learned first is forgotten first. */
    for (int k = 0; k < NOGOODS_MAX; k++) {
        odometer_go_to(&o, 0);
        odometer_learn(&o, WITH_THREADS | WITH_ITEMS);
    }
    cr_expect_eq(odometer_illegal(&o), 2);
    odometer_go_to(&o, 16 + 2);
    cr_expect_eq(odometer_illegal(&o), 0);
}

Test(odometer, is_dealt_by_the_first_axes)
{
    struct odometer o;
    open(&o);
    cr_expect(odometer_deal(&o, 0) == 0 && odometer_deal(&o, 1) == 0);
    cr_expect_eq(odometer_deal(&o, 2), 4, "3 x 2 settings are fewer than 4 for each of two parts");
    cr_expect_eq(odometer_deal(&o, 1000), o.naxes);
}
