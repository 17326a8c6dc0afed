/* SPDX-License-Identifier: Apache-2.0 */
/* test_stencil.c - random stencils on the host executor against the oracle: one to three dimensions, offsets up to 6
 * either way, all boundary modes per input and dimension, all types, structures, auxiliary inputs of fewer or permuted
 * dimensions, gathers, time steps, reductions beside the sweep, extents from 1 up and below the offsets; every strategy
 * that fits.
 */
#include <criterion/criterion.h>

#include "api/api_impl.h"
#include "base/str.h"
#include "kernels/once.h"
#include "lower/plan.h"
#include "lower/stencil/stencil.h"

static uint64_t state;
static int below(int n) { return (int)(harness_random(&state) >> 33) % n; }
static bool chance(int percent) { return below(100) < percent; }

static const char *const types[] = {
    "f32", "f64", "i32", "f16", "bf16", "i8", "u8", "i16", "u16", "u32", "i64", "u64"
};
enum { NTYPES = sizeof types / sizeof *types };
static const char *const shapes[] = { "[n]", "[m, n]", "[d, m, n]" };
static const char *const names[] = { "d", "m", "n" };
static const char *const modes[] = { "clamp", "wrap", "reflect", "mirror", "{constant: 2}", "interior" };

struct choice {
    int rank, type, reach;
    bool structure, iterated, gathers, reduces;
};

static int offset(const struct choice *c) { return below(2 * c->reach + 1) - c->reach; }

/* u, or v.p and v.q of a structure, somewhere near. */
static void neighbour(struct str *out, const struct choice *c, const char *array, const char *field)
{
    str_printf(out, "%s[", array);
    for (int d = 0; d < c->rank; d++)
        str_printf(out, "%s%d", d ? ", " : "", chance(40) ? 0 : offset(c));
    str_printf(out, "]%s", field);
}

static void terms(struct str *out, const struct choice *c)
{
    const int n = 2 + below(6);
    const char *t = types[c->type];
    neighbour(out, c, "u", "");
    for (int i = 1; i < n; i++) {
        str_add(out, chance(70) ? " + " : " - ");
        if (chance(50))
            str_printf(out, "%d * ", 1 + below(3));
        switch (below(8)) {
        case 0: str_printf(out, "%s(k)", t); break;
        case 1: str_printf(out, "%s(row)", t); break;
        case 2: str_printf(out, "%s(index(%s) %% 7)", t, names[2 - below(c->rank)]); break;
        case 3:
            str_printf(out, "%s(", t);
            neighbour(out, c, "v", c->structure ? (chance(50) ? ".p" : ".q") : "");
            str_add(out, ")");
            break;
        default: neighbour(out, c, "u", "");
        }
    }
}

/* Maps that see an output that is not fed back read what is in its memory where points are left out: nothing, here. */
static int usable_modes(const struct choice *c) { return chance(30) && (c->iterated || !c->reduces) ? 6 : 5; }

static void boundaries(struct str *out, const struct choice *c)
{
    const char *mode = modes[below(usable_modes(c))];
    /* constants of structures are given by field */
    str_printf(out, "boundary: %s\n", c->structure && mode[0] == '{' ? "wrap" : mode);
}

/* Each input and dimension has a mode of its own. */
static void mixed_boundaries(struct str *out, const struct choice *c)
{
    const int usable = usable_modes(c);
    str_add(out, "boundary:\n  u: {");
    for (int d = 0; d < c->rank; d++)
        str_printf(out, "%s%s: %s", d ? ", " : "", names[3 - c->rank + d], modes[below(usable)]);
    str_printf(out, "}\n  v: %s\n", c->structure ? modes[below(4)] : modes[below(5)]);
}

static const char *gather_operator(const char *type)
{
    static const char *const names[] = { "add", "max", "and", "or" };
    return names[below(type[0] == 'i' || type[0] == 'u' ? 4 : 2)];
}

/* Of built-in operators, of a state that is lifted, of the user's, whose rows also tell equal neighbours apart. */
static void gather_term(struct str *out, const char *t)
{
    if (chance(50))
        str_printf(out, " + gather(u, off, x, %s, x * x)", gather_operator(t));
    else if (t[0] == 'f' && chance(30))
        str_add(out, " + gather(u, off, x, welford, x).mean");
    else
        str_printf(out, " + near.value + %s(near.row)", t);
}

static void gather_let(struct str *out, const char *t)
{
    str_printf(out,
               "operators:\n  nearest:\n    state: {value: %s, row: i64}\n    identity: {value: 0, row: -1}\n"
               "    let: {take: b.value < a.value or b.value == a.value and b.row < a.row}\n"
               "    combine: {value: if take then b.value else a.value, row: if take then b.row else a.row}\n"
               "    commutative: true\n",
               t);
}

static char *random_spec(uint64_t seed, struct choice *c)
{
    struct str out = { 0 };
    state = seed;
    *c = (struct choice){ .rank = 1 + below(3),
                          .type = below(NTYPES),
                          .reach = 1 + below(chance(25) ? 6 : 2),
                          .structure = chance(25),
                          .iterated = chance(35),
                          .gathers = chance(15),
                          .reduces = chance(35) };
    const char *t = types[c->type], *shape = shapes[c->rank - 1];
    str_printf(&out, "kind: stencil\ninputs:\n  u: \"%s%s\"\n", t, shape);
    if (c->structure)
        str_printf(&out, "  v: {type: {p: i8, q: %s}, shape: %s}\n", t, shape);
    else
        str_printf(&out, "  v: \"%s%s\"\n", types[below(NTYPES)], c->rank == 2 && chance(30) ? "[n, m]" : shape);
    str_add(&out, "  row: \"i16[n]\"\n");
    if (c->gathers)
        str_printf(&out, "  off: \"i32[p%s]\"\n", c->rank == 1 ? "" : c->rank == 2 ? ", 2" : ", 3");
    str_add(&out, "params: {k: {type: i32, value: 3}, steps: {type: i32, value: ");
    str_printf(&out, "%d}}\n", below(4));
    (chance(40) ? boundaries : mixed_boundaries)(&out, c);
    str_add(&out, "let: {a: \"");
    terms(&out, c);
    str_addc(&out, '"');
    if (c->gathers)
        str_add(&out, ", near: \"gather(u, off, x, nearest, x, index(p))\"");
    str_add(&out, "}\n");
    if (c->gathers)
        gather_let(&out, t);
    if (c->reduces)
        str_printf(&out,
                   "reductions:\n  total: {map: \"i64(i32(out)) + i64(i32(u))\", operator: add}\n  top: {map: u, "
                   "operator: %s}\n",
                   chance(60)   ? "max"
                   : chance(50) ? "first"
                                : "last");
    str_printf(&out, "outputs:\n  out: {type: \"%s%s\", value: \"a", t, shape);
    if (c->gathers)
        gather_term(&out, t);
    str_add(&out, "\"}\n");
    const bool fed_alone = c->iterated;
    if (!fed_alone || c->reduces)
        str_printf(&out, "  pair: {type: {lo: i32, hi: %s}, shape: %s, value: {lo: \"i32(a)\", hi: a + u}}\n", t,
                   shape);
    if (c->reduces)
        str_printf(&out, "  total: i64\n  top: \"%s\"\n", t);
    if (c->iterated)
        str_add(&out, "iterate: {steps: steps, feedback: {u: out}}\n");
    return str_take(&out);
}

static int64_t random_extent(int most)
{
    static const int extents[] = { 1, 2, 3, 4, 5, 8, 16, 31, 32, 33, 64, 65, 100, 128, 132, 257, 1000, 4096 };
    int64_t n;
    do
        n = extents[below(sizeof extents / sizeof *extents)];
    while (n > most);
    return n;
}

/* Sizes by name; few points in all. */
static void random_sizes(struct harness *h, int rank, int64_t *size)
{
    const int most = rank == 1 ? 4096 : rank == 2 ? 257 : 64;
    for (int i = 0; i < ptxgen_problem_size_count(h->problem); i++) {
        const char *name = ptxgen_problem_size_name(h->problem, i);
        size[i] = name[0] == 'p' ? below(4) : random_extent(name[0] == 'n' ? most : most / (rank == 3 ? 4 : 6));
    }
}

static void run_spec(const char *spec, int rank, uint64_t seed, const char *strategy)
{
    static const char *const simt[] = { "seed:1,race,uninit", "seed:2", "seed:3,weak,race,uninit", "seed:4,stale" };
    const char *set[] = { "strategy", strategy, NULL, NULL };
    struct harness h;
    const char *arch = seed % 2 ? "sm_90" : "sm_80";
    if (!harness_open(&h, "random", spec, arch, strategy ? set : NULL)) {
        cr_assert(strategy && strstr(h.text, "does not fit"), "seed %llu on %s: %s\n%s", (unsigned long long)seed, arch,
                  h.text, spec);
        harness_close(&h);
        return;
    }
    for (int k = 0; k < 3; k++) {
        int64_t size[8];
        random_sizes(&h, rank, size);
        const char *mode = simt[below(4)];
        const int skew = chance(50) ? 0 : below(4);
        harness_data_at(&h, size, seed + (uint64_t)k, skew, chance(30));
        ptxgen_arguments args = { h.size, (const void *const *)h.input, h.expected, h.param };
        if (ptxgen_evaluate(h.s, h.problem, &args) != PTXGEN_OK) /* no steps, and outputs that are not fed */
            continue;
        cr_assert(harness_check(&h, mode), "seed %llu on %s, %s, sizes %lld %lld %lld, skew %d, --simt=%s: %s\n%s",
                  (unsigned long long)seed, arch, strategy ? strategy : "chosen", (long long)size[0],
                  (long long)size[1], (long long)size[2], skew, mode, h.text, spec);
    }
    harness_close(&h);
}

static void run_seed(uint64_t seed)
{
    struct choice c;
    char *spec = random_spec(seed, &c);
    run_spec(spec, c.rank, seed, NULL);
    for (int i = 0; i < strategy_count(); i++)
        if (strategy_row(i)->kind == KIND_STENCIL)
            run_spec(spec, c.rank, seed, strategy_row(i)->name);
    free(spec);
}

/* ---- what feeds what --------------------------------------------------------------------------------------------- */

Test(stencil, sweeps)
{
    static const struct prog_arg fed = { .kind = ARG_FED, .index = 4, .output = 2, .buffer = 7 };
    static const struct prog_arg next = { .kind = ARG_NEXT, .index = 2, .output = 2, .buffer = 7 };
    for (int64_t sweeps = 1; sweeps <= 5; sweeps++) {
        enum prog_arg_kind before = ARG_INPUT;
        int before_index = 4;
        for (int64_t sweep = 0; sweep < sweeps; sweep++) {
            int from, to;
            const enum prog_arg_kind source = prog_arg_in_sweep(&fed, sweep, sweeps, &from);
            const enum prog_arg_kind target = prog_arg_in_sweep(&next, sweep, sweeps, &to);
            cr_expect(source == before && from == before_index, "sweep %d of %d reads what was written", (int)sweep,
                      (int)sweeps);
            cr_expect(source != target, "sweep %d of %d does not write what it reads", (int)sweep, (int)sweeps);
            before = target;
            before_index = to;
        }
        cr_expect(before == ARG_OUTPUT && before_index == 2, "the last of %d sweeps writes the output", (int)sweeps);
    }
}

/* Rows are told apart by where they begin modulo four elements: wider windows must not rely on more. */
Test(stencil, wide_windows_on_rows_that_begin_anywhere)
{
    static const char spec[] = "kind: stencil\ninputs: {x: 'f16[m, n]'}\n"
                               "outputs: {y: {type: 'f16[m, n]', value: 'x[0, 1] + x[-1, 0]'}}\n";
    const char *set[] = { "strategy", "stencil.multi_write", "points_x", "8", NULL, NULL };
    struct harness h;
    cr_assert(harness_open(&h, "wide", spec, "sm_90", set), "%s", h.text);
    for (int n = 36; n <= 48; n++) {
        const int64_t size[8] = { 9, n };
        harness_data_at(&h, size, 7, 0, 0);
        cr_expect(harness_check(&h, "seed:1"), "%d columns: %s", n, h.text);
    }
    harness_close(&h);
}

/* ---- rows that begin anywhere in a vector ------------------------------------------------------------------------ */

/* Windows inside, at the ends of rows and at other edges, all in one array; every way in which rows and planes can
 * begin.  Blocks that stream have chunks of several places, and several of them. */
static void run_shifted(uint64_t seed, bool stream)
{
    struct choice c;
    char *spec = random_spec(seed, &c);
    const char *const strategy = stream ? "stencil.stream" : "stencil.multi_write";
    const char *windows[] = { "strategy", strategy,  "threads",
                              "32",       "block_x", "8",
                              "block_y",  "4",       c.rank == 3 ? "points_z" : "points_y",
                              "4",        NULL,      NULL };
    const char *planes[] = { "strategy",
                             strategy,
                             "threads",
                             "32",
                             "block_x",
                             c.rank == 3 ? "16" : "32",
                             "stages",
                             seed % 2 ? "3" : "5",
                             c.rank == 3 ? "points_y" : NULL,
                             "3",
                             NULL,
                             NULL };
    const char **set = stream ? planes : windows;
    struct harness h;
    state = seed;
    const int64_t n = 96 + below(8),
                  size[8] = { c.rank == 3 ? 12 + below(4) : 40 + below(4), c.rank == 3 ? 13 + below(4) : n, n };
    if (c.rank > 1 && !c.gathers && harness_open(&h, "random", spec, "sm_90", set)) {
        harness_data_at(&h, size, seed, chance(80) ? 0 : below(4), 0);
        cr_assert(harness_check(&h, "seed:2,race,uninit"), "seed %llu on %s, sizes %lld %lld %lld: %s\n%s",
                  (unsigned long long)seed, strategy, (long long)size[0], (long long)size[1], (long long)size[2],
                  h.text, spec);
        harness_close(&h);
    }
    free(spec);
}

Test(stencil, shifted_rows)
{
    for (uint64_t seed = 1001; seed <= 1040; seed += (uint64_t)harness_one_in("PTXGEN_TEST_SEEDS"))
        run_shifted(seed, false);
}
Test(stencil, shifted_rows_stream)
{
    for (uint64_t seed = 1041; seed <= 1080; seed += (uint64_t)harness_one_in("PTXGEN_TEST_SEEDS"))
        run_shifted(seed, true);
}

/* ---- bytes in packed words --------------------------------------------------------------------------------------- */

/* Halves that would overflow, differences below zero, constants, reads across words; rows that begin at vectors and
 * rows that begin anywhere, with their ends. */
static void run_packed(const char *type, const char *value, int64_t columns)
{
    static const char form[] =
        "kind: stencil\ninputs:\n  u: %s[m, n]\n  v: %s[m, n]\nboundary: mirror\n"
        "let: {far: 'u[0, -2] * 3 + v[1, 5]'}\noutputs:\n  out: {type: '%s[m, n]', value: '%s'}\n";
    const char *set[] = { "strategy", "stencil.multi_write", "threads", "32", NULL, NULL };
    const int64_t size[8] = { 23, columns };
    char spec[512];
    struct harness h;
    snprintf(spec, sizeof spec, form, type, type, type, value);
    cr_assert(harness_open(&h, "packed", spec, "sm_90", set), "%s", spec);
    harness_data_at(&h, size, (uint64_t)columns, 0, 0);
    cr_expect(harness_check(&h, "seed:2,race,uninit"), "%lld columns: %s\n%s", (long long)columns, h.text, spec);
    harness_close(&h);
}

Test(stencil, packed_bytes)
{
    static const char *const values[] = {
        "u - v[0, 1] - far",
        "-(u[0, -1] + v[-1, 0]) * 7 + far + (251 * u + 253 * v)",
        "(u[0, 1] ^ 5 * v[0, -1]) - (far & u[1, 0]) + (v | 3)",
        "97 * (101 * (u + v[0, 3]) - u[-1, -3] * 99) - far * 90",
        "(5 * u[-1, 1] - 6 * v - 3 * far + (u[0, 3] << 5) + (v << 8)) >> 3",
        "(u[0, -3] >> 1) + (v[2, 2] >> 7) - (far >> 8) + (u[1, -1] >> 2) * 100 + ((u + v) >> 0)",
    };
    for (int i = 0; i < 8; i++)
        for (int64_t columns = 165; columns <= 168; columns++)
            run_packed(i % 2 ? "u8" : "i8", values[i < 4 ? i : i / 2 + 2], columns);
}

/* Sums of many bytes that share their rows and planes: runs and gaps, a constant of their own and one for all, a second
 * input; every boundary, rows that begin at vectors and rows that begin anywhere. */
static void run_shared(const char *boundary, const int64_t *size, bool box)
{
    const char *set[] = { "strategy", "stencil.multi_write", NULL, NULL };
    struct str spec = { 0 };
    struct harness h;
    str_printf(&spec, "kind: stencil\ninputs: {u: 'u8[d, m, n]'%s}\nboundary: %s\n", box ? "" : ", c: 'u8[d, m, n]'",
               boundary);
    str_printf(&spec, "outputs:\n  y: {type: 'u8[d, m, n]', value: '(%s", box ? "7" : "7 - 3 * c");
    for (int i = 0, z = -2, y = -2, x = -2; i < 125; i++, z = i / 25 - 2, y = i / 5 % 5 - 2, x = i % 5 - 2)
        if (box || (z + y + x) % 4 || z == y)
            str_printf(&spec, " %c u[%d, %d, %d]", box ? '+' : '-', z, y, x);
    str_printf(&spec, ") >> 3'}\n");
    cr_assert(harness_open(&h, "shared", spec.text, "sm_90", set), "%s\n%s", h.text, spec.text);
    cr_expect_eq(h.plan->plan->cases->tunable[TN_POINTS_Z], 4, "its windows are those of shared sums");
    harness_data_at(&h, size, (uint64_t)size[2], 0, 0);
    cr_expect(harness_check(&h, "seed:2,race,uninit,guard"), "%s, %d columns: %s", boundary, (int)size[2], h.text);
    harness_close(&h);
}

Test(stencil, shared_sums)
{
    static const char *const boundary[] = { "clamp", "{constant: 3}", "mirror", "reflect", "wrap", "interior" };
    for (int64_t i = 0; i < 12; i++) {
        const int64_t size[8] = { 11, 18 + i % 2, 133 + (i + i / 6) % 4 };
        run_shared(boundary[i % 6], size, (i + i / 6) % 4 < 2);
    }
}

/* ---- outputs in another order ------------------------------------------------------------------------------------ */

/* Every order of the dimensions, beside an output in the space's own: boxes inside, at ends and at corners; elements of
 * every size, structures, outputs shorter than the space, points that are left out. */
static void run_turned(const char *order, const char *type, const char *mode, const int64_t *size)
{
    const bool planes = strlen(order) > 4;
    const char *set[] = { "strategy", "stencil.multi_write", NULL, NULL }, *at = planes ? "1, " : "";
    struct str spec = { 0 };
    struct harness h;
    str_printf(&spec, "kind: stencil\ninputs: {u: '%s%s'}\nboundary: %s\noutputs:\n", type,
               planes ? "[d, m, n]" : "[m, n]", mode);
    str_printf(&spec, "  y: {type: '%s[%s]', value: 'u[%s-2, 1] + u[%s0, -1]'}\n", type, order, at, at);
    str_printf(&spec, "  s: {type: {p: i8, q: %s}, shape: [%s], value: {p: 'i8(u)', q: 'u[%s2, 0]'}}\n", type, order,
               at);
    str_printf(&spec, "  x: {type: '%s%s', value: 'u + u[%s1, 1]'}\n", type, planes ? "[d, m, n]" : "[m, n]", at);
    cr_assert(harness_open(&h, "turned", spec.text, "sm_90", set), "%s\n%s", h.text, spec.text);
    cr_expect_eq(h.plan->plan->cases->turns, strcmp(order + strlen(order) - 1, "n") != 0, "%s", order);
    for (int i = 0; i < 2; i++, size += 3) {
        harness_data_at(&h, planes ? size : size + 1, 7, 0, 0);
        cr_expect(harness_check(&h, "seed:1,race,uninit"), "%s, %s, %s: %s", order, type, mode, h.text);
    }
    harness_close(&h);
    str_finish(&spec);
}

Test(stencil, outputs_in_another_order)
{
    static const char *const orders[] = { "n, m", "n, m, d", "m, n, d", "d, n, m", "n, d, m", "m, d, n" };
    static const int64_t size[] = { 17, 70, 65, 19, 17, 33, 34, 5, 127, 33, 2, 18, 3, 66, 62, 1, 33, 17 };
    for (int i = 0; i < 6; i++)
        for (int mode = i % 2; mode < 6; mode += 2)
            run_turned(orders[i], types[(i + 2 * mode) % NTYPES], modes[mode], &size[i == 0 ? 0 : i < 3 ? 6 : 12]);
}

HARNESS_SEEDS(stencil, 1, 40)
HARNESS_SEEDS(stencil, 41, 40)
HARNESS_SEEDS(stencil, 81, 40)
HARNESS_SEEDS(stencil, 121, 40)
