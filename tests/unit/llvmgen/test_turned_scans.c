/* SPDX-License-Identifier: Apache-2.0 */
/* test_turned_scans.c - scans whose outputs' last dimension is another axis than the space's last one.
 *
 * Every order of the dimensions and every axis, forwards and backwards, inclusive and exclusive, with totals and
 * structures, at sizes below a tile, of several tiles, and odd ones.
 */
#include <criterion/criterion.h>

#include "api/api_impl.h"
#include "base/str.h"
#include "support/harness.h"
#include "lower/plan.h"

/* What the axes that are scanned, and the last axes of the outputs, come to. */
enum turn { AS_THE_SPACE, TURNS };

struct turned {
    const char *dims, *over, *order, *kept;
    enum turn turn;
};

static const struct turned plane[] = {
    { "m, n", "n", "n, m", "m", TURNS },
    { "m, n", "m", "n, m", "n", TURNS },
    { "m, n", "n", "m, n", "m", AS_THE_SPACE },
};
static const struct turned space[] = {
    { "d, m, n", "n", "n, m, d", "d, m", TURNS },        { "d, m, n", "n", "n, d, m", "d, m", TURNS },
    { "d, m, n", "m", "n, m, d", "d, n", TURNS },        { "d, m, n", "m", "d, n, m", "d, n", TURNS },
    { "d, m, n", "d", "n, m, d", "m, n", TURNS },        { "d, m, n", "d", "n, d, m", "m, n", TURNS },
    { "d, m, n", "m", "m, d, n", "d, n", AS_THE_SPACE }, { "d, m, n", "[m, n]", "n, m, d", "d", AS_THE_SPACE },
};

/* Two scans: of structures and bytes; outputs of both, one of structures. */
static char *spec_of(const struct turned *t, const char *type, bool exclusive, bool reverse)
{
    struct str out = { 0 };
    str_printf(&out,
               "kind: scan\ninputs:\n  x: {type: {a: i32, b: bool}, shape: [%s]}\n  y: '%s[%s]'\n  w: 'i32[n]'\n"
               "over: %s\n%s%sscans:\n",
               t->dims, type, t->dims, t->over, exclusive ? "mode: exclusive\n" : "",
               reverse ? "direction: reverse\n" : "");
    str_printf(&out, "  s: {map: 'if x.b then x.a * w else w', operator: add}\n  h: {map: y, operator: max}\n");
    str_printf(&out, "outputs:\n  p: {type: 'i32[%s]', value: 's + w'}\n  q: {type: '%s[%s]', value: h}\n", t->order,
               type, t->order);
    str_printf(&out, "  r: {type: {lo: i64, hi: %s}, shape: [%s], value: {lo: 'i64(s)', hi: h}}\n", type, t->order);
    str_printf(&out, "  t: {type: 'i32[%s]', value: s.total}\n", t->kept);
    return str_take(&out);
}

static void check(const struct turned *t, const char *type, int mode, const char *const *set, const int64_t *size)
{
    static const char *const modes[] = { "seed:1,race,uninit", "seed:2,weak,race,uninit", "seed:3,stale,late" };
    char *spec = spec_of(t, type, mode & 1, mode & 2);
    struct harness h;
    const char *pinned = set ? set[1] : "default";
    cr_assert(harness_open(&h, "turned", spec, "sm_90", set), "%s, %s\n%s", pinned, h.text, spec);
    cr_expect_eq(h.plan->plan->cases->turns, t->turn == TURNS, "%s\n%s", pinned, spec);
    for (int i = 0; i < 3; i++, size += 3) {
        harness_data_at(&h, strlen(t->dims) > 4 ? size : size + 1, 7 + (uint64_t)i, i, 0);
        cr_expect(harness_check(&h, modes[i]), "%s, size %d: %s\n%s", pinned, i, h.text, spec);
    }
    harness_close(&h);
    free(spec);
}

static const char *const types[] = { "u8", "f16", "f64", "i32" };

/* Tiles of 32 columns by 128 rows, of 64 or 32 by 16 or 8; segments of several tiles, and of less than one. */
static const int64_t planes[] = { 0, 77, 143, 0, 300, 41, 0, 9, 8 };
static const int64_t spaces[] = { 43, 7, 34, 9, 19, 8, 34, 40, 3 };

Test(turned_scans, defaults)
{
    for (int mode = 0; mode < 4; mode++) {
        for (int i = 0; i < 2; i++)
            check(&plane[i], types[(i + mode) % 4], mode, NULL, planes);
        for (int i = 0; i < 6; i++)
            check(&space[i], types[(i + mode) % 4], mode, NULL, spaces);
    }
}

Test(turned_scans, look_back)
{
    static const char *const sets[][9] = {
        { "strategy", "segscan.strips", "threads", "64", "rows", "2", "items", "4", NULL },
        { "strategy", "segscan.strips", "threads", "128", "rows", "16", "items", "4", NULL },
        { "strategy", "segscan.strips", "threads", "96", "rows", "3", "items", "3", NULL },
    };
    for (int mode = 0; mode < 4; mode++)
        for (int s = 0; s < 3; s++) {
            check(&plane[mode % 2], types[(s + mode) % 4], mode, sets[s], planes);
            check(&space[mode], types[(s + mode) % 4], mode, mode == 2 ? NULL : sets[s], spaces);
        }
}

Test(turned_scans, columns)
{
    static const char *const sets[][9] = {
        { "strategy", "segscan.column", "threads", "64", "items", "16", NULL },
        { "strategy", "segscan.column", "threads", "64", "rows", "1", "items", "8", NULL },
        { "strategy", "segscan.column", "threads", "64", "rows", "1", "items", "3", NULL },
        { "strategy", "segscan.column", "threads", "32", "rows", "1", "items", "8", NULL },
        { "strategy", "segscan.column", "threads", "96", "items", "5", NULL },
    };
    for (int mode = 0; mode < 4; mode++)
        for (int s = 0; s < 5; s++) {
            check(&plane[(mode + s) % 2], types[(s + mode) % 4], mode, sets[s], planes);
            check(&space[(mode + s) % 2 * 4 + mode / 2], types[(s + mode) % 4], mode, sets[s], spaces);
        }
}

/* Boxes of 32 segments by one or several, plane by plane. */
Test(turned_scans, boxes)
{
    static const char *const sets[][9] = {
        { "strategy", "segscan.column", "threads", "32", "items", "1", NULL },
        { "strategy", "segscan.column", "threads", "128", "items", "3", NULL },
        { "strategy", "segscan.column", "threads", "256", "items", "8", NULL },
    };
    for (int mode = 0; mode < 4; mode++)
        for (int s = 0; s < 3; s++)
            check(&space[mode % 2 ? 2 : 5], types[(s + mode) % 4], mode, sets[s], spaces);
}

/* Two scanned axes, the first one of which is the outputs' last: tiles with several pieces, and with less than one. */
Test(turned_scans, pieces_of_columns)
{
    static const struct turned axes[] = { { "d, m, n", "[d, m]", "n, m, d", "n", TURNS },
                                          { "d, m, n", "[d, m]", "m, n, d", "n", TURNS } };
    static const char *const sets[][9] = {
        { "strategy", "segscan.strips", "threads", "128", "rows", "8", "items", "8", NULL },
        { "strategy", "segscan.strips", "threads", "64", "rows", "16", "items", "5", NULL },
        { "strategy", "segscan.strips", "threads", "64", "rows", "2", "items", "9", NULL },
    };
    static const int64_t sizes[] = { 43, 7, 34, 9, 19, 8, 137, 3, 19 };
    for (int mode = 0; mode < 4; mode++)
        for (int s = 0; s < 3; s++)
            check(&axes[(mode + s) % 2], types[(s + mode) % 4], mode, sets[s], sizes);
    check(&axes[0], "i32", 0, NULL, sizes);
}

/* Whose order no tile helps, and whose scanned axes are several. */
Test(turned_scans, others)
{
    check(&plane[2], "f16", 1, NULL, planes);
    check(&space[6], "u8", 3, NULL, spaces);
    check(&space[7], "f64", 0, NULL, spaces);
}

/* Outputs in both orders: where the scanned axis is the last one of some, the others are stored as they are; where a kept
 * axis is, nothing turns. */
Test(turned_scans, both_orders)
{
    static const char *const over[] = { "m", "n" };
    for (int i = 0; i < 2; i++) {
        struct str spec = { 0 };
        struct harness h;
        str_printf(&spec,
                   "kind: scan\ninputs: {x: 'f32[m, n]'}\nover: %s\noperator: max\nmode: exclusive\noutputs:\n"
                   "  p: {type: 'f32[n, m]', value: s}\n  q: {type: 'f32[m, n]', value: s + x}\n",
                   over[i]);
        cr_assert(harness_open(&h, "both", spec.text, "sm_90", NULL), "%s", h.text);
        cr_expect_eq(h.plan->plan->cases->turns, i == 0);
        harness_data_at(&h, (const int64_t[]){ 133, 70 }, 3, 1, 1);
        cr_expect(harness_check(&h, "seed:1,race,uninit"), "%s", h.text);
        harness_close(&h);
        str_finish(&spec);
    }
}

/* A tile follows the shared memory of the device, and with it the tree of combinations. */
Test(turned_scans, not_where_all_devices_give_the_same_bits)
{
    static const char spec[] =
        "kind: scan\ninputs: {x: 'f32[m, n]'}\nover: m\noperator: add\noutputs: {y: 'f32[n, m]'}\n"
        "determinism: %s\n";
    for (int i = 0; i < 2; i++) {
        char text[200];
        struct harness h;
        snprintf(text, sizeof text, spec, i ? "any" : "device");
        cr_assert(harness_open(&h, "bits", text, "sm_90", NULL), "%s", h.text);
        cr_expect_eq(h.plan->plan->cases->turns, i == 1);
        harness_close(&h);
    }
}
