/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_scan.c - random well-typed scans agree with the oracle on the host executor.
 *
 * A spec is put together from a seed: the shape (whole arrays, rows, columns, planes, flags, offsets), one or two scans
 * by operators of all sorts, inclusive or exclusive, forward or reversed, with and without init, totals, results that
 * read inputs, outputs of some elements, determinism.  Each runs several times on one control region, at sizes up and down, aligned and not,
 * sometimes in place.
 */
#include <criterion/criterion.h>

#include "base/str.h"
#include "kernels/once.h"

static uint64_t state;
static int below(int n) { return (int)(harness_random(&state) % (uint64_t)n); }
static bool chance(int percent) { return below(100) < percent; }
static const char *pick(const char *const *of, int n) { return of[below(n)]; }

/* dims: of x; kept: shape of totals, NULL: none are possible. */
static const struct shape {
    const char *dims, *over, *extra, *segments, *kept;
    int nsizes;
} shapes[] = {
    { "[n]", NULL, "", NULL, "", 1 },
    { "[m, n]", "n", "", NULL, "[m]", 2 },
    { "[m, n]", "m", "", NULL, "[n]", 2 },
    { "[m, n]", "[m, n]", "", NULL, "", 2 },
    { "[d, m, n]", "n", "", NULL, "[d, m]", 3 },
    { "[d, m, n]", "[m, n]", "", NULL, "[d]", 3 },
    { "[d, m, n]", "[d, n]", "", NULL, "[m]", 3 },
    { "[n]", NULL, "  f: u8[n]\n", "{flags: f}", NULL, 1 },
    { "[n]", NULL, "  off: i32[k]\n", "{offsets: off}", "[k-1]", 2 },
};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

/* A scan of x, the field that is written, and whether the operator has an identity. */
static const struct form {
    const char *map, *op, *field, *type, *init;
    bool identity;
} forms[] = {
    { "i32(x)", "add", "", "i32", "i32(p)", true },
    { "u64(x)", "mul", "", "u64", "u64(p)", true },
    { "i16(x)", "max", "", "i16", "i16(p)", true },
    { "f32(x)", "min", "", "f32", "f32(p)", true },
    { "f32(x)", "add", "", "f32", "f32(p)", true },
    { "f64(x) * 0.5", "add", "", "f64", "f64(p)", true },
    { "f16(x)", "last", "", "f16", "f16(p)", false },
    { "x > 3", "or", "", "bool", "p > 2", true },
    { "{p: u32(x), q: u32(x) + 1}",
      "{state: {p: u32, q: u32}, identity: {p: 1, q: 0}, combine: {p: a.p * b.p, q: a.q * b.p + b.q}}", ".q", "u32",
      "{p: 1, q: 5}", true },
    { "{s: i64(x), m: i8(x)}", "{state: {s: i64, m: i8}, combine: {s: a.s + b.s, m: 'min(a.m, b.m)'}}", ".s", "i64",
      "{s: 3, m: 0}", false },
    { "{value: x, index: 0}", "argmin", ".value", NULL, NULL, true },
};
enum { NFORMS = sizeof forms / sizeof *forms };

static char *random_spec(uint64_t seed, const struct shape **shape)
{
    static const char *const types[] = { "i8", "i16", "i32", "i64", "u8", "u32", "f16", "f32", "f64" };
    struct str out = { 0 };
    state = seed;
    const struct shape *s = *shape = &shapes[below(NSHAPES)];
    const char *type = pick(types, 9);
    const bool exclusive = chance(40);
    str_printf(&out, "kind: scan\ninputs:\n  x: '%s%s'\n%sparams: {p: {type: i32, value: 2}}\n", type, s->dims,
               s->extra);
    if (s->over)
        str_printf(&out, "over: %s\n", s->over);
    if (s->segments)
        str_printf(&out, "segments: %s\n", s->segments);
    if (exclusive)
        str_add(&out, "mode: exclusive\n");
    if (chance(50))
        str_add(&out, "direction: reverse\n");
    if (chance(25))
        str_printf(&out, "determinism: %s\n", chance(50) ? "run" : "device");
    const bool needs_start = exclusive || s->segments || s->kept, init = chance(40);
    const int n = init ? 1 : 1 + chance(30);
    const struct form *form[2];
    if (!init)
        str_add(&out, "scans:\n");
    for (int i = 0; i < n; i++) {
        do
            form[i] = &forms[below(NFORMS)];
        while (init ? !form[i]->init : needs_start && !form[i]->identity);
        if (init)
            str_printf(&out, "map: %s\noperator: %s\ninit: %s\n", form[i]->map, form[i]->op, form[i]->init);
        else
            str_printf(&out, "  s%d:\n    map: %s\n    operator: %s\n", i, form[i]->map, form[i]->op);
    }
    str_add(&out, "outputs:\n");
    for (int i = 0; i < n; i++) {
        const char *to = form[i]->type ? form[i]->type : type, *field = form[i]->field;
        struct str name = { 0 }, total = { 0 };
        str_printf(&name, init ? "s" : "s%d", i);
        str_printf(&total, init ? "total" : "s%d.total", i);
        str_printf(&out, "  y%d: {type: '%s%s', value: %s%s}\n", i, to, s->dims, name.text, field);
        if (s->kept && chance(60))
            str_printf(&out, "  t%d: {type: '%s%s', value: %s%s}\n", i, to, s->kept, total.text, field);
        free(str_take(&name));
        free(str_take(&total));
    }
    if (chance(30))
        str_printf(&out, "  z: {type: '%s%s', value: x}\n", type, s->dims);
    if (!s->segments && !(s->nsizes == 3 && *s->over == '[') && chance(40)) {
        str_printf(&out, "  k: {type: '%s%s', where: x > 3, value: x}\n", type, s->dims);
        str_printf(&out, "  l: {type: '%s%s', where: not (x > 3), value: %s%s, from: end}\n",
                   form[0]->type ? form[0]->type : type, s->dims, init ? "s" : "s0", form[0]->field);
        str_printf(&out, "  c: {type: 'i64%s', count: k}\n", s->kept);
    }
    return str_take(&out);
}

/* Few elements altogether, most of them along one dimension. */
static void random_sizes(const struct shape *s, bool totals, int64_t *size)
{
    static const int lengths[] = { 1, 2, 31, 33, 100, 255, 256, 1000, 4095, 4096, 4097, 9000, 30000 };
    const int longest = below(s->nsizes);
    for (int i = 0; i < s->nsizes; i++)
        size[i] = i == longest ? lengths[below(13 - 2 * (s->nsizes - 1))] : 1 + below(5);
    if (chance(8)) /* totals between no offsets would have a shape of -1 */
        size[below(s->segments && totals ? 1 : s->nsizes)] = 0;
}

static void run_seed(uint64_t seed)
{
    static const char *const modes[] = { "seed:1,race,uninit", "seed:0", "seed:3,weak,race,uninit",
                                         "seed:4,stale,late" };
    const struct shape *shape;
    char *spec = random_spec(seed, &shape);
    struct harness h;
    const char *arch = seed % 2 ? "sm_90" : "sm_80";
    cr_assert(harness_open(&h, "random", spec, arch, NULL), "seed %llu on %s: %s\n%s", (unsigned long long)seed, arch,
              h.text, spec);
    for (int i = 0; i < 4; i++) {
        int64_t size[8] = { 1, 1, 1 };
        const char *mode = modes[below(4)];
        random_sizes(shape, strstr(spec, "[k-1]"), size);
        harness_data_at(&h, size, seed + (uint64_t)i, below(4), chance(30) && !strstr(spec, "where"));
        cr_assert(harness_check(&h, mode), "seed %llu on %s, sizes %lld %lld %lld, --simt=%s: %s\n%s",
                  (unsigned long long)seed, arch, (long long)size[0], (long long)size[1], (long long)size[2], mode,
                  h.text, spec);
    }
    harness_close(&h);
    free(spec);
}

HARNESS_SEEDS(scans, 1, 40)
HARNESS_SEEDS(scans, 41, 40)
HARNESS_SEEDS(scans, 81, 40)
HARNESS_SEEDS(scans, 121, 40)

/* The scan of an array onto itself. */
static void check_in_place(const char *spec, const char *strategy, int64_t n)
{
    const char *set[] = { "strategy", strategy, "threads", "64", NULL, NULL };
    struct harness h;
    cr_assert(harness_open(&h, "in_place", spec, "sm_90", strategy ? set : NULL), "%s", h.text);
    harness_data(&h, n, 5, 0, 0);
    const ptxgen_arguments reference = { h.size, (const void *const *)h.input, h.expected, h.param };
    cr_assert_eq(ptxgen_evaluate(h.s, h.problem, &reference), PTXGEN_OK);
    void *both[] = { h.input[0] };
    const ptxgen_arguments args = { h.size, (const void *const *)h.input, both, h.param };
    cr_assert_eq(ptxgen_host_run(h.s, h.host, &args, "seed:2,race,weak"), PTXGEN_OK, "%s, n = %lld", strategy,
                 (long long)n);
    cr_assert_arr_eq(h.input[0], h.expected[0], (size_t)n * 4, "%s, n = %lld", strategy, (long long)n);
    harness_close(&h);
}

Test(scans, in_place)
{
    static const char *const strategy[] = { NULL, "scan.block", "scan.lookback", "scan.three_pass" };
    for (int i = 0; i < 4; i++)
        for (int reverse = 0; reverse < 2; reverse++)
            for (int n = 1; n < 20000; n = n * 3 + 1)
                check_in_place(
                    reverse
                        ? "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\ndirection: reverse\noutputs: {y: "
                          "'i32[n]'}\n"
                        : "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\nmode: exclusive\noutputs: {y: 'i32[n]'}\n",
                    strategy[i], n);
}

/* Totals of many tiles: the look-ahead goes through several windows of 32 or 64, and begins anew with every row.  The
 * operators do not commute; the second one's states are large. */
Test(scans, windows)
{
    static const char *const spec[] = {
        "kind: scan\ninputs: {x: 'u32[n]'}\nmap: {p: x | 1, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n"
        "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\n"
        "outputs: {y: {type: 'u32[n]', value: s.q}, t: {type: u32, value: total.q}}\n",
        "kind: scan\ninputs: {x: 'i64[n]'}\nmode: exclusive\nmap: {a: x, b: x, c: x, d: 1, e: x}\noperator:\n"
        "  state: {a: i64, b: i64, c: i64, d: i64, e: i64}\n  identity: {a: 0, b: 0, c: 0, d: 0, e: 0}\n"
        "  combine: {a: a.a + b.a, b: a.b + b.b + a.d * b.a, c: a.c + b.c, d: a.d + b.d, e: a.e + b.e}\n"
        "outputs: {y: {type: 'i64[n]', value: s.b}}\n",
        "kind: scan\ninputs: {x: 'u32[m, n]'}\nover: n\nmap: {p: x | 1, q: x + 1}\noperator:\n"
        "  state: {p: u32, q: u32}\n  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\n"
        "outputs: {y: {type: 'u32[m, n]', value: s.q}, t: {type: 'u32[m]', value: total.q}}\n",
    };
    static const int64_t size[][2] = { { 128 * 200 + 77 }, { 64 * 100 + 2 }, { 3, 128 * 70 + 4 } };
    static const char *const modes[] = { "seed:1,race,uninit", "seed:2,weak", "seed:3,stale,late" };
    for (int i = 0; i < 3; i++) {
        const char *set[] = { "strategy", "scan.pipeline", "threads", "32", "items", "1", "stages", "3", NULL, NULL };
        struct harness h;
        cr_assert(harness_open(&h, "windows", spec[i], "sm_90", set), "%d: %s", i, h.text);
        for (int m = 0; m < 3; m++) {
            harness_data_at(&h, size[i], 3, 0, 0);
            cr_assert(harness_check(&h, modes[m]), "%d, --simt=%s: %s", i, modes[m], h.text);
        }
        harness_close(&h);
    }
}

/* Maps of where segments begin: offsets of which thousands are the same, some of them several batches behind the tile's
 * first, elements outside of all segments, forwards and backwards. */
static void check_marks(const char **set, const int64_t *size)
{
    static const char *const spec[] = {
        "kind: scan\ninputs: {x: 'u32[n]', off: 'i64[k]'}\nsegments: {offsets: off}\n"
        "map: {p: x | 1, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n  identity: {p: 1, q: 0}\n"
        "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\noutputs: {y: {type: 'u32[n]', value: s.q}}\n",
        "kind: scan\ninputs: {x: 'i32[n]', off: 'i64[k]'}\nsegments: {offsets: off}\noperator: add\nmode: exclusive\n"
        "init: 3\ndirection: reverse\noutputs: {y: 'i32[n]'}\n",
    };
    static const struct {
        int64_t begin, step, repeat; /* offset i is begin + i / repeat * step, at most the number of elements */
    } law[] = { { 0, 1, 1 },   { 1001, 1, 3 }, { 130, 700, 2000 }, { 0, 128, 450 },
                { 1, 3, 450 }, { 5120, 1, 1 }, { 3, 0, 1 } };
    for (int i = 0; i < 2; i++) {
        struct harness h;
        cr_assert(harness_open(&h, "marks", spec[i], "sm_90", set), "%d: %s", i, h.text);
        for (size_t l = 0; l < sizeof law / sizeof *law; l++) {
            harness_data_at(&h, size, 3, 0, 0);
            for (int64_t j = 0; j < size[1]; j++) {
                const int64_t at = law[l].begin + j / law[l].repeat * law[l].step;
                ((int64_t *)h.input[1])[j] = at < size[0] ? at : size[0];
            }
            cr_assert(harness_check(&h, "seed:2,race,weak,stale,late,uninit"), "%d, law %zu: %s", i, l, h.text);
        }
        harness_close(&h);
    }
}

Test(scans, marks)
{
    const char *set[] = { "strategy", "scan.pipeline", "threads", "32", "items", "1", "stages", "3", NULL, NULL };
    check_marks(set, (int64_t[]){ 128 * 40, 9000 });
}

/* The last tile is partial, and backwards the first one. */
Test(scans, block_marks)
{
    const char *set[] = { "strategy", "scan.resident", "threads", "64", "items", "5", NULL, NULL };
    check_marks(set, (int64_t[]){ 5107, 9000 });
}

/* Not one offset: no segments, so nothing is read between them and nothing written. */
Test(scans, no_offsets)
{
    static const char *const direction[] = { "", "direction: reverse\n" };
    static const char *const strategy[] = { "scan.lookback", "scan.pipeline",  "scan.resident",
                                            "scan.block",    "segscan.column", "scan.block" };
    static const int64_t size[] = { 5120, 0 };
    for (int reverse = 0; reverse < 2; reverse++)
        for (int i = 0; i < 6; i++) {
            const char *set[] = { "strategy", strategy[i], "threads", "64", i == 5 ? "lanes" : NULL, "32", NULL, NULL };
            struct str spec = { 0 };
            str_printf(&spec,
                       "kind: scan\ninputs: {x: 'i32[n]', off: 'i64[k]'}\nsegments: {offsets: off}\noperator: add\n%s"
                       "outputs: {y: 'i32[n]'}\n",
                       direction[reverse]);
            char *text = str_take(&spec);
            run_once(text, set, size, 0, "seed:2,race,uninit", NULL);
            free(text);
        }
}

/* Where a segment ends, the next elements are its neighbours all the same: only the array has a boundary. */
Test(scans, neighbours_beyond_segments)
{
    static const char spec[] = "kind: scan\ninputs: {x: 'i32[n]', off: 'i32[k]'}\nsegments: {offsets: off}\nmap: x[1]\n"
                               "operator: add\noutputs: {y: 'i32[n]', z: {type: 'i32[n]', value: 'x[2] - x[-1]'}}\n";
    static const char *const strategy[] = { "scan.lookback", "scan.pipeline", "scan.resident", "scan.block",
                                            "segscan.column" };
    int refused = 0;
    for (size_t i = 0; i < sizeof strategy / sizeof *strategy; i++) {
        struct harness h;
        const char *set[] = { "strategy", strategy[i], NULL, NULL };
        if (!harness_open(&h, "beyond", spec, "sm_90", set)) {
            cr_expect(strstr(h.text, "no neighbours between offsets"), "%s", h.text);
            refused++;
        } else {
            harness_data_at(&h, (int64_t[]){ 3001, 700 }, 3, 0, 0);
            cr_expect(harness_check(&h, "seed:1,race,uninit,guard"), "%s: %s", strategy[i], h.text);
        }
        harness_close(&h);
    }
    cr_expect_eq(refused, 1);
}

/* Few columns in the look-ahead pipeline: numbers of columns that it takes (whole vectors, as many as the threads of a warp
 * have; with look-back as many as lanes; tiles of whole units of 16 bytes) and others, which are refused; rows that
 * fill several windows of tiles, and the last tile in part; backwards any number of them. */
Test(scans, columns)
{
    static const struct {
        const char *spec;
        int vector;
        const char *looks; /* warps that look back */
        int unit;          /* elements of 16 bytes */
    } of[] = {
        { "kind: scan\ninputs: {x: 'u32[m, n]'}\nover: m\nmap: {p: x | 1, q: x + 1}\noperator:\n"
          "  state: {p: u32, q: u32}\n  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\n"
          "outputs: {y: {type: 'u32[m, n]', value: s.q}}\n",
          4, "3", 4 },
        { "kind: scan\ninputs: {x: 'u32[m, n]'}\nover: m\nmode: exclusive\ndirection: reverse\n"
          "map: {p: x | 1, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n  identity: {p: 1, q: 0}\n"
          "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\noutputs: {y: {type: 'u32[m, n]', value: s.q}}\n",
          1, "3", 4 },
        { "kind: scan\ninputs: {x: 'u32[m, n]'}\nover: m\nmode: exclusive\ndirection: reverse\n"
          "map: {p: x | 1, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n  identity: {p: 1, q: 0}\n"
          "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\noutputs: {y: {type: 'u32[m, n]', value: s.q}}\n",
          4, "0", 4 },
        { "kind: scan\ninputs: {x: 'f64[m, n]', w: 'f64[m, n]'}\nover: m\nmap: x * w\noperator: add\n"
          "mode: exclusive\ninit: 3\noutputs: {y: 'f64[m, n]'}\n",
          2, "4", 2 },
        { "kind: scan\ninputs: {x: 'f64[m, n]', w: 'f64[m, n]'}\nover: m\nmap: x * w\noperator: add\n"
          "mode: exclusive\ninit: 3\ndeterminism: run\noutputs: {y: 'f64[m, n]'}\n",
          2, "0", 2 },
        { "kind: scan\ninputs: {x: 'i8[m, n]'}\nover: m\noperator: max\ndirection: reverse\n"
          "outputs: {y: 'i8[m, n]'}\n",
          4, "3", 16 },
    };
    static const int64_t rows[] = { 16, 1, 7, 64, 1002 },
                         columns[] = { 1, 2, 3, 4, 8, 6, 12, 17, 128, 20, 36, 24, 16, 64, 32, 16, 4, 32, 33, 9 };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char *set[] = { "strategy",
                              "scan.pipeline",
                              "threads",
                              "32",
                              "items",
                              "1",
                              "stages",
                              "3",
                              "lookback_warps",
                              of[i].looks,
                              "vector",
                              of[i].vector == 1   ? "1"
                              : of[i].vector == 2 ? "2"
                                                  : "4",
                              NULL,
                              NULL };
        const int vector = of[i].vector, most = *of[i].looks == '0' ? 32 * vector : 32;
        struct harness h;
        cr_assert(harness_open(&h, "columns", of[i].spec, "sm_90", set), "%zu: %s", i, h.text);
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            const int64_t size[] = { rows[c % 5], columns[c] };
            const int64_t n = columns[c];
            const bool fits = n % vector == 0 && n <= most, leads = strstr(of[i].spec, "reverse");
            const int64_t tile_rows = fits ? 32 / (n / vector) : 0;
            const bool taken = fits && tile_rows * n % of[i].unit == 0 && (!leads || tile_rows >= of[i].unit);
            harness_data_at(&h, size, 3, 0, 0);
            const bool right = harness_check(&h, "seed:2,race,weak,stale,late,uninit");
            cr_assert(right == taken, "%zu, %lld rows of %lld: %s", i, (long long)size[0], (long long)size[1], h.text);
            cr_assert(taken || strstr(h.text, "no case of "), "%zu: %s", i, h.text);
        }
        harness_close(&h);
    }
}

/* Backwards from any number of elements: a first tile of up to a line, and tiles that begin where bulk copies may. */
Test(scans, leads)
{
    static const char *const spec[] = {
        "kind: scan\ninputs: {x: 'u32[n]', w: 'u8[n]'}\ndirection: reverse\nmap: {p: x | 1, q: u32(w)}\noperator:\n"
        "  state: {p: u32, q: u32}\n  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\n"
        "outputs: {y: {type: 'u32[n]', value: s.q}, all: {type: u32, value: total.q}}\n",
        "kind: scan\ninputs: {x: 'i16[n]'}\ndirection: reverse\nmode: exclusive\noperator: add\ninit: 3\nmap: i32(x)\n"
        "outputs: {y: {type: 'i32[n]', value: s}}\n",
    };
    static const int64_t size[] = { 1, 2, 31, 32, 33, 127, 128, 129, 383, 384, 385, 4111, 9000 };
    for (int i = 0; i < 2; i++) {
        const char *set[] = { "strategy", "scan.pipeline", "threads", "64", "items", "1", "stages", "3", NULL, NULL };
        struct harness h;
        cr_assert(harness_open(&h, "leads", spec[i], "sm_90", set), "%d: %s", i, h.text);
        for (size_t n = 0; n < sizeof size / sizeof *size; n++) {
            harness_data_at(&h, &size[n], 3, 0, 0);
            cr_assert(harness_check(&h, "seed:2,race,weak,stale,late,uninit"), "%d, %lld: %s", i, (long long)size[n],
                      h.text);
        }
        harness_close(&h);
    }
}

/* Flags in every tile of seven windows, none in the next three, then some again: a block that has looked at no window
 * but its own goes back over those without a cut to the last one that has one.  Of 64 blocks each is two windows ahead
 * of itself. */
Test(scans, marks_of_flags)
{
    enum { WINDOW = 32 * 64, DENSE = 7 * WINDOW, SPARSE = 10 * WINDOW + 500, N = 11 * WINDOW };
    static const char spec[] =
        "kind: scan\ninputs: {x: 'u64[n]', head: 'u8[n]'}\nsegments: {flags: head}\ndirection: reverse\n"
        "map: {a: x | 1, b: x + 1, c: x, d: x, e: x}\noperator:\n"
        "  state: {a: u64, b: u64, c: u64, d: u64, e: u64}\n"
        "  combine: {a: a.a * b.a, b: a.b * b.a + b.b, c: a.c + b.c, d: a.d + b.d, e: a.e + b.e}\n"
        "outputs: {y: {type: 'u64[n]', value: s.b}}\n";
    const char *set[] = { "strategy", "scan.pipeline", "threads", "32", "items", "1", "stages", "3", NULL, NULL };
    static const int64_t size[] = { N };
    static const char *const modes[] = { "seed:1,sms:64,race,uninit", "seed:2,sms:64,weak,stale,late" };
    struct harness h;
    cr_assert(harness_open(&h, "marks", spec, "sm_90", set), "%s", h.text);
    for (int m = 0; m < 2; m++) {
        harness_data_at(&h, size, 3, 0, 0);
        for (int64_t i = 0; i < N; i++) /* tiles are counted from the end of memory */
            ((uint8_t *)h.input[1])[N - 1 - i] = i < DENSE ? i % 41 == 0 : i >= SPARSE && i % 777 == 0;
        cr_assert(harness_check(&h, modes[m]), "--simt=%s: %s", modes[m], h.text);
    }
    harness_close(&h);
}

/* Vectors of bytes are turned in shared memory, flags beside them one by one. */
Test(scans, flags_of_a_transpose)
{
    enum { N = 5003 };
    static const char spec[] = "kind: scan\ninputs: {x: 'u8[n]', head: 'u8[n]'}\nsegments: {flags: head}\n"
                               "operator: max\noutputs: {y: 'u8[n]'}\n";
    static const char *const items[] = { "1", "2", "4" };
    for (int i = 0; i < 3; i++) {
        const char *set[] = { "strategy", "scan.lookback", "threads",        "128", "vector", "16",
                              "items",    items[i],        "smem_transpose", "1",   NULL,     NULL };
        struct harness h;
        cr_assert(harness_open(&h, "flags", spec, "sm_90", set), "%s", h.text);
        harness_data_at(&h, (const int64_t[]){ N }, 3, 0, 0);
        for (int k = 0; k < N; k++)
            ((uint8_t *)h.input[1])[k] = k % 23 == 0;
        cr_assert(harness_check(&h, "seed:2,race,weak,uninit"), "%s items: %s", items[i], h.text);
        harness_close(&h);
    }
}

/* Runs that tiles cut across, and some that are longer than a tile: the last of a run has the sum of all of it. */
Test(scans, runs_across_tiles)
{
    enum { N = 20011, DENSE = 12000 };
    static const char spec[] =
        "kind: scan\ninputs: {key: 'i32[n]', x: 'i64[n]'}\nsegments: {starts: 'key != key[-1]'}\nmap: x\noperator: "
        "add\n"
        "outputs: {k: {type: 'i32[n]', where: last, value: key}, s: {type: 'i64[n]', where: last, value: s},\n"
        "  runs: {type: i64, count: k}}\n";
    static const char *const strategy[] = { "scan.resident", "scan.lookback", "scan.pipeline" };
    for (int i = 0; i < 3; i++) {
        const char *set[] = { "strategy", strategy[i], "threads", "64", NULL, NULL };
        struct harness h;
        cr_assert(harness_open(&h, "runs", spec, "sm_90", set), "%s", h.text);
        harness_data_at(&h, (const int64_t[]){ N }, 3, 0, 0);
        for (int k = 0; k < N; k++)
            ((int32_t *)h.input[0])[k] = k < DENSE ? k / 37 : k / 5000 - 7;
        cr_assert(harness_check(&h, "seed:2,sms:64,race,weak,stale,late,uninit"), "%s: %s", strategy[i], h.text);
        harness_close(&h);
    }
}

/* Rows that tiles cut across, shorter and longer than a tile of 128. */
Test(scans, marks_of_rows)
{
    static const char spec[] = "kind: scan\ninputs: {x: 'u32[m, n]'}\nover: n\noperator: add\nmode: exclusive\n"
                               "init: 3\noutputs: {y: 'u32[m, n]'}\n";
    const char *set[] = { "strategy", "scan.pipeline", "threads", "32", "items", "1", "stages", "3", NULL, NULL };
    static const int64_t size[][2] = { { 4001, 3 }, { 301, 37 }, { 13, 811 }, { 3, 9001 } };
    struct harness h;
    cr_assert(harness_open(&h, "marks", spec, "sm_90", set), "%s", h.text);
    for (int i = 0; i < 4; i++) {
        harness_data_at(&h, size[i], 3, 0, 0);
        cr_assert(harness_check(&h, "seed:2,race,weak,stale,late,uninit"), "%lld rows: %s", (long long)size[i][0],
                  h.text);
    }
    harness_close(&h);
}
