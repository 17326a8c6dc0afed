/* SPDX-License-Identifier: Apache-2.0 */
/* test_temporal.c - several time steps per launch, on the host executor: random stencils in one to three dimensions,
 * all boundary modes per dimension and all types, arrays that are read at the point, several arrays that are fed back,
 * a reduction of the last step, rows of any length, extents from the smallest that fit on.  Compared with the oracle,
 * and bit by bit with a point per thread and one step per launch.
 */
#include <criterion/criterion.h>

#include "base/str.h"
#include "support/harness.h"

static uint64_t state;
static int below(int n) { return (int)(harness_random(&state) >> 33) % n; }
static bool chance(int percent) { return below(100) < percent; }

static const char *const types[] = {
    "f32", "f64", "i32", "f16", "bf16", "i8", "u8", "i16", "u16", "u32", "i64", "u64"
};
enum { NTYPES = sizeof types / sizeof *types };
static const char *const shapes[] = { "", "[n]", "[m, n]", "[d, m, n]" };
static const char *const names[] = { "d", "m", "n" };
static const char *const modes[] = { "clamp", "reflect", "mirror", "{constant: 1}", "interior", "wrap" };

struct choice {
    int rank, reach;
    const char *type;
    bool aux, pair, reduces, index;
};

/* Not a plane and a line at once: that does not fit. */
static void neighbour(struct str *out, const struct choice *c, const char *array)
{
    const int still = c->rank == 3 ? below(2) : -1;
    str_printf(out, "%s[", array);
    for (int d = 0; d < c->rank; d++)
        str_printf(out, "%s%d", d ? ", " : "", d == still ? 0 : below(2 * c->reach + 1) - c->reach);
    str_add(out, "]");
}

static void value(struct str *out, const struct choice *c)
{
    neighbour(out, c, "u");
    for (int i = 0; i < 4; i++) {
        str_add(out, chance(70) ? " + " : " - ");
        neighbour(out, c, c->pair && chance(30) ? "w" : "u");
    }
    if (c->aux)
        str_printf(out, " + %s(v) - %s(row)", c->type, c->type);
    if (c->index)
        str_printf(out, " + %s(index(%s) %% 7)", c->type, names[2 - below(c->rank)]);
}

enum { FIRST_LINE = 101 }; /* seeds of one dimension */

static char *random_spec(uint64_t seed, struct choice *c)
{
    struct str out = { 0 };
    state = seed;
    *c = (struct choice){ .rank = seed >= FIRST_LINE ? 1 : 2 + (seed % 4 == 0),
                          .reach = 1 + below(seed >= FIRST_LINE ? 4 : 2),
                          .type = types[below(NTYPES)],
                          .aux = chance(30),
                          .pair = chance(25),
                          .reduces = chance(25),
                          .index = chance(25) };
    const char *shape = shapes[c->rank], *t = c->type;
    const bool real = t[0] == 'f' || t[0] == 'b';
    str_printf(&out, "kind: stencil\ninputs: {u: \"%s%s\"", t, shape);
    if (c->pair)
        str_printf(&out, ", w: \"%s%s\"", t, shape);
    if (c->aux)
        str_printf(&out, ", v: \"%s%s\", row: \"i16[n]\"", types[below(NTYPES)], shape);
    str_printf(&out, "}\nparams: {steps: {type: i64, value: %d}}\nboundary: {u: {",
               (c->reduces ? 1 : 0) + below(c->rank == 3   ? 8
                                            : c->rank == 2 ? 21
                                                           : 40));
    int mode[3];
    for (int d = 3 - c->rank; d < 3; d++)
        str_printf(&out, "%s%s: %s", d > 3 - c->rank ? ", " : "", names[d], modes[mode[d] = below(6)]);
    if (c->pair) { /* wraps where the other does */
        str_add(&out, "}, w: {");
        for (int d = 3 - c->rank; d < 3; d++)
            str_printf(&out, "%s%s: %s", d > 3 - c->rank ? ", " : "", names[d], modes[mode[d] == 5 ? 5 : below(5)]);
    }
    str_add(&out, "}}\nlet: {a: \"");
    value(&out, c);
    str_add(&out, "\"}\n");
    if (c->reduces)
        str_add(&out, "reductions: {top: {map: \"out - u\", operator: max}}\n");
    str_printf(&out, "outputs:\n  out: {type: \"%s%s\", value: \"%s\"}\n", t, shape, real ? "a / 6 + 0.01 * u" : "a");
    if (c->pair)
        str_printf(&out, "  other: {type: \"%s%s\", value: \"w - %su\"}\n", t, shape, real ? "0.5 * " : "");
    if (c->reduces)
        str_printf(&out, "  top: %s\n", t);
    str_printf(&out, "iterate: {steps: steps, feedback: {u: out%s}}\n", c->pair ? ", w: other" : "");
    return str_take(&out);
}

/* The bits of the outputs of both plans agree; `single` is run on the data of h. */
static bool same_bits(struct harness *h, struct harness *single)
{
    const ptxgen_arguments args = { h->size, (const void *const *)h->input, h->expected, h->param };
    if (ptxgen_host_run(single->s, single->host, &args, NULL) != PTXGEN_OK)
        return harness_fail(single, "run of single steps");
    for (int o = 0; o < ptxgen_problem_output_count(h->problem); o++) {
        ptxgen_array_info a;
        ptxgen_problem_output(h->problem, o, &a);
        if (memcmp(h->output[o], h->expected[o], (size_t)h->count[o] * a.element_size) != 0)
            return false;
    }
    return true;
}

static const char *const temporal[] = { "strategy", "stencil.temporal", NULL, NULL };
static const char *const block_of_four[] = {
    "strategy", "stencil.temporal", "threads", "128", "items", "4", "steps", "2", NULL, NULL
};
/* One dimension: stretches whose vectors are of any width. */
static const char *const stretches[][10] = {
    { "strategy", "stencil.temporal", NULL, NULL },
    { "strategy", "stencil.temporal", "items", "8", "steps", "7", "threads", "64", NULL, NULL },
    { "strategy", "stencil.temporal", "items", "12", "steps", "16", NULL, NULL },
    { "strategy", "stencil.temporal", "items", "17", "steps", "2", NULL, NULL },
};
static const char *const global[] = { "strategy", "stencil.global", NULL, NULL };

/* Extents around those of a strip and a block; the smallest ones fall back to single steps. */
static void random_sizes(const struct choice *c, int64_t *size)
{
    static const int widths[] = { 100, 128, 129, 132, 202, 256, 257, 300, 403 }, heights[] = { 1, 2, 3, 5, 17, 40, 90 };
    static const int lines[] = { 7, 16, 17, 30 }, planes[] = { 1, 3, 5, 8, 21 };
    if (c->rank == 3) {
        size[0] = planes[below(5)];
        size[1] = lines[below(4)];
        size[2] = widths[below(5)];
    } else if (c->rank == 1) { /* a tile has 256 to 1024 points */
        static const int tiles[] = { 256, 384, 512, 544, 1024 }, more[] = { -1, 0, 1, 16, 35 };
        size[0] = chance(10) ? 1 + below(30) : tiles[below(5)] * (1 + below(4)) + more[below(5)];
    } else {
        size[0] = heights[below(7)];
        size[1] = widths[below(9)];
    }
}

static void run_seed(uint64_t seed)
{
    static const char *const simt[] = { "seed:2,race,uninit", "seed:3", "seed:4,weak,race,uninit", "seed:5,stale" };
    struct choice c;
    char *spec = random_spec(seed, &c);
    struct harness h, single;
    const char *const *pins = c.rank == 3 ? block_of_four : c.rank == 1 ? stretches[seed % 4] : temporal;
    cr_assert(harness_open(&h, "random", spec, "sm_90", pins), "seed %llu: %s\n%s", (unsigned long long)seed, h.text,
              spec);
    cr_assert(harness_open(&single, "random", spec, "sm_90", global), "%s", single.text);
    for (int k = 0; k < 2; k++) {
        int64_t size[8] = { 0 };
        random_sizes(&c, size);
        const int skew = chance(70) ? 0 : below(4);
        const char *mode = simt[below(4)];
        harness_data_at(&h, size, seed + (uint64_t)k, skew, 0);
        cr_assert(harness_check(&h, mode), "seed %llu, sizes %lld %lld %lld, skew %d, --simt=%s: %s\n%s",
                  (unsigned long long)seed, (long long)size[0], (long long)size[1], (long long)size[2], skew, mode,
                  h.text, spec);
        cr_assert(same_bits(&h, &single),
                  "seed %llu, sizes %lld %lld %lld, case %s: other bits than single steps; %s\n%s",
                  (unsigned long long)seed, (long long)size[0], (long long)size[1], (long long)size[2],
                  ptxgen_host_case(h.host), single.text, spec);
    }
    harness_close(&single);
    harness_close(&h);
    free(spec);
}

HARNESS_SEEDS(temporal, 1, 20)
HARNESS_SEEDS(temporal, 101, 40)
HARNESS_SEEDS(temporal, 1151, 1) /* bytes that begin anywhere, stretches without vectors, windows with */

/* The halo is as wide as the steps need: whatever is one point less would show at the ends of tiles. */
Test(temporal, tiles_of_a_line)
{
    static const char spec[] =
        "kind: stencil\ninputs: {u: 'i32[n]'}\nparams: {steps: {type: i32, value: 16}}\nboundary: clamp\n"
        "outputs: {out: {type: 'i32[n]', value: '3 * u[-1] - u + 5 * u[1]'}}\n"
        "iterate: {steps: steps, feedback: {u: out}}\n";
    static const int64_t sizes[][8] = { { 20000 }, { 20001 }, { 1024 }, { 1023 } };
    static const char *const names[] = { "line", "line", "line", "short" };
    struct harness h;
    cr_assert(harness_open(&h, "tiles", spec, "sm_90", temporal), "%s", h.text);
    for (int i = 0; i < 4; i++) {
        harness_data_at(&h, sizes[i], 5, 0, 0);
        cr_assert(harness_check(&h, "seed:2,race,uninit"), "%s", h.text);
        cr_assert_str_eq(ptxgen_host_case(h.host), names[i]);
    }
    harness_data_at(&h, sizes[0], 5, 1, 0);
    cr_assert(harness_check(&h, "seed:2,race,uninit"), "%s", h.text);
    cr_assert_str_eq(ptxgen_host_case(h.host), "line_shifted");
    harness_close(&h);
}

/* Tall enough that some rounds meet neither the first nor the last plane, wide enough that some strips meet no side. */
Test(temporal, away_from_the_edge)
{
    static const char spec[] =
        "kind: stencil\ninputs: {u: 'f32[m, n]'}\nparams: {steps: {type: i32, value: 13}}\nboundary: mirror\n"
        "outputs: {out: {type: 'f32[m, n]', value: '0.3 * u[-1, 1] + 0.2 * u[1, 0] + 0.1 * u[0, -1] + 0.4 * u'}}\n"
        "iterate: {steps: steps, feedback: {u: out}}\n";
    static const int64_t sizes[][8] = { { 70, 404 }, { 71, 403 } };
    struct harness h;
    cr_assert(harness_open(&h, "away", spec, "sm_90", temporal), "%s", h.text);
    for (int i = 0; i < 2; i++) {
        harness_data_at(&h, sizes[i], 5, 0, 0);
        cr_assert(harness_check(&h, "seed:2"), "%s", h.text);
        cr_assert_str_eq(ptxgen_host_case(h.host), i ? "strips_shifted" : "strips");
    }
    for (int64_t rows = 84; rows < 100;
         rows++) { /* a warp's last part has one row and more, and all of it is near the end */
        harness_data_at(&h, (const int64_t[8]){ rows, 403 - rows % 2 }, 5, 0, 0);
        cr_assert(harness_check(&h, "seed:2,sms:8"), "%lld rows: %s", (long long)rows, h.text);
    }
    harness_close(&h);
}
