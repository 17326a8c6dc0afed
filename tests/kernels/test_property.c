/* SPDX-License-Identifier: Apache-2.0 */
/* test_property.c - random well-typed reductions agree with the oracle on the host executor.
 *
 * A spec is put together from a seed: one to three inputs of random types, one to three reductions by built-in or
 * hand-written operators (commutative and ordered, with and without identity), maps, params, init, an epilogue,
 * sometimes a per-element output and a determinism level.  Each runs at edge sizes, with aligned and misaligned arrays,
 * in random and round-robin order, under the checking modes.  A failure prints the spec, the size, the modes:
 * everything to run it again.
 */
#include <criterion/criterion.h>

#include "base/str.h"
#include "support/harness.h"

static uint64_t state;
static int below(int n) { return (int)(harness_random(&state) % (uint64_t)n); }
static bool chance(int percent) { return below(100) < percent; }

static const char *const types[] = {
    "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"
};
enum { FIRST_FLOAT = 8, NTYPES = 12 };

struct input_choice {
    char name;
    int type;
};

/* An expression of the input's own type. */
static void map_expression(struct str *out, const struct input_choice *in)
{
    static const char *const any[] = { "%c",         "%c * %c", "abs(%c)",        "if %c > 1 then %c else 0",
                                       "max(%c, 0)", "%c + %c", "clamp(%c, 0, 7)" };
    static const char *const floats[] = {
        "%c", "%c * %c", "sqrt(abs(%c))", "floor(%c * 4)", "if isnan(%c) then 0 else %c", "fma(%c, 0.5, %c)"
    };
    const char *f = in->type >= FIRST_FLOAT ? floats[below(6)] : any[below(7)];
    str_printf(out, f, in->name, in->name);
}

static void builtin(struct str *out, const struct input_choice *in, bool *identity_free)
{
    static const char *const ints[] = { "add", "mul",   "min",  "max",    "and",   "or",
                                        "xor", "first", "last", "argmin", "argmax" };
    static const char *const floats[] = { "add",    "min",    "max",     "first",    "last",
                                          "argmin", "argmax", "welford", "logsumexp" };
    const bool is_float = in->type >= FIRST_FLOAT;
    const char *op = is_float ? floats[below(9)] : ints[below(11)];
    *identity_free |= op[0] == 'f' || op[0] == 'l';
    if (!strncmp(op, "arg", 3)) {
        str_printf(out, "    map: {value: %c, index: index(n)}\n    operator: %s\n", in->name, op);
        return;
    }
    str_add(out, "    map: \"");
    map_expression(out, in);
    str_printf(out, "\"\n    operator: %s\n", op);
}

/* Hand-written operators; each is associative on what its map gives. */
static void handwritten(struct str *out, const struct input_choice *in, bool *identity_free)
{
    const char *t = types[in->type];
    const char c = in->name;
    switch (below(5)) {
    case 0:
        str_printf(out, "    map: {s: \"%s(%c)\", m: %c}\n    operator:\n      state: {s: %s, m: %s}\n", "i32", c, c,
                   "i32", t);
        str_add(out, "      combine: {s: a.s + b.s, m: \"min(a.m, b.m)\"}\n");
        *identity_free = true;
        break;
    case 1:
        str_printf(out, "    map: {v: %c, has: %c > 0}\n    operator:\n      state: {v: %s, has: bool}\n", c, c, t);
        str_add(out, "      identity: {v: 0, has: false}\n"
                     "      combine: {v: \"if a.has then a.v else b.v\", has: a.has or b.has}\n");
        break;
    case 2:
        str_printf(
            out,
            "    map: {p: \"u32(i32(%c))\", q: \"u32(i32(%c)) + 1\"}\n    operator:\n      state: {p: u32, q: u32}\n",
            c, c);
        str_add(out, "      identity: {p: 1, q: 0}\n      combine: {p: a.p * b.p, q: a.q * b.p + b.q}\n");
        break;
    case 3:
        str_add(out, "    map: {lo: index(n), hi: index(n), ok: true}\n    operator:\n      state: {lo: i64, hi: i64, "
                     "ok: bool}\n"
                     "      combine: {lo: a.lo, hi: b.hi, ok: a.ok and b.ok and b.lo == a.hi + 1}\n");
        *identity_free = true;
        break;
    default:
        str_printf(out,
                   "    map: {best: \"max(i32(%c), 0)\", left: \"max(i32(%c), 0)\", right: \"max(i32(%c), 0)\", total: "
                   "\"i32(%c)\"}\n",
                   c, c, c, c);
        str_add(
            out,
            "    operator:\n      state: {best: i32, left: i32, right: i32, total: i32}\n"
            "      identity: {best: 0, left: 0, right: 0, total: 0}\n      combine:\n"
            "        best: max(max(a.best, b.best), a.right + b.left)\n        left: max(a.left, a.total + b.left)\n"
            "        right: max(b.right, a.right + b.total)\n        total: a.total + b.total\n");
    }
}

/* The spec of a seed; *needs_element: a size of zero is an error. */
static char *random_spec(uint64_t seed, bool *needs_element)
{
    struct str out = { 0 };
    struct input_choice in[3];
    state = seed;
    const int ninputs = 1 + below(3), nred = 1 + below(3);
    str_add(&out, "kind: reduce\ninputs:\n");
    for (int i = 0; i < ninputs; i++) {
        in[i] = (struct input_choice){ (char)('u' + i), below(NTYPES) };
        str_printf(&out, "  %c: %s[n]\n", in[i].name, types[in[i].type]);
    }
    if (chance(30))
        str_printf(&out, "determinism: %s\n", chance(50) ? "run" : "device");
    const bool writes = chance(30);
    if (writes)
        str_printf(&out, "let: {double_it: %c + %c}\n", in[0].name, in[0].name);
    str_add(&out, "reductions:\n");
    *needs_element = false;
    char kinds[3];
    for (int r = 0; r < nred; r++) {
        str_printf(&out, "  r%d:\n", r);
        const size_t at = out.length;
        (chance(60) ? builtin : handwritten)(&out, &in[below(ninputs)], needs_element);
        const char *text = out.text + at;
        kinds[r] = strstr(text, "state: {s")       ? 's'
                   : strstr(text, "state: {v")     ? 'v'
                   : strstr(text, "state: {p")     ? 'p'
                   : strstr(text, "state: {lo")    ? 'l'
                   : strstr(text, "state: {best")  ? 'b'
                   : strstr(text, "operator: arg") ? 'a'
                   : strstr(text, "welford")       ? 'w'
                   : strstr(text, "logsumexp")     ? 'e'
                                                   : '.';
    }
    str_add(&out, "outputs:\n");
    for (int r = 0; r < nred; r++)
        switch (kinds[r]) {
        case 's': str_printf(&out, "  o%d: {type: i32, value: r%d.s}\n", r, r); break;
        case 'v': str_printf(&out, "  o%d: {type: bool, value: r%d.has}\n", r, r); break;
        case 'p': str_printf(&out, "  o%d: {type: u32, value: r%d.q}\n", r, r); break;
        case 'l': str_printf(&out, "  o%d: {type: bool, value: r%d.ok}\n", r, r); break;
        case 'b': str_printf(&out, "  o%d: {type: i32, value: r%d.best}\n", r, r); break;
        case 'a': str_printf(&out, "  o%d: {type: i64, value: r%d.index}\n", r, r); break;
        case 'w': str_printf(&out, "  o%d: {type: f64, value: f64(r%d.mean)}\n", r, r); break;
        case 'e': str_printf(&out, "  o%d: {type: f64, value: f64(r%d.max)}\n", r, r); break;
        default: str_printf(&out, "  o%d: {type: f64, value: f64(r%d)}\n", r, r); break;
        }
    if (writes)
        str_printf(&out, "  y: {type: \"%s[n]\", value: double_it}\n", types[in[0].type]);
    return str_take(&out);
}

static void run_seed(uint64_t seed)
{
    static const int sizes[] = { 0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 8191, 8192, 8193, 16385, 40000 };
    static const char *const modes[] = { "seed:1,race,uninit", "seed:0", "seed:3,weak,race,uninit", "seed:4,stale" };
    bool needs_element;
    char *spec = random_spec(seed, &needs_element);
    struct harness h;
    const char *arch = seed % 2 ? "sm_90" : "sm_80";
    cr_assert(harness_open(&h, "random", spec, arch, NULL), "seed %llu on %s: %s\n%s", (unsigned long long)seed, arch,
              h.text, spec);
    for (int k = 0; k < 3; k++) {
        const int n = sizes[below(sizeof sizes / sizeof *sizes)];
        const char *mode = modes[below(4)];
        if (n == 0 && needs_element)
            continue;
        harness_data(&h, n, seed + (uint64_t)k, below(4), chance(30));
        cr_assert(harness_check(&h, mode), "seed %llu on %s, n = %d, --simt=%s: %s\n%s", (unsigned long long)seed, arch,
                  n, mode, h.text, spec);
    }
    harness_close(&h);
    free(spec);
}

HARNESS_SEEDS(property, 1, 60)
HARNESS_SEEDS(property, 61, 60)
HARNESS_SEEDS(property, 121, 60)
HARNESS_SEEDS(property, 181, 60)
HARNESS_SEEDS(property, 241, 60)

/* Where bits must not depend on the run, they do not depend on where arrays begin either. */
static void check_addresses(const char *spec, int n)
{
    float first = 0;
    struct harness h;
    cr_assert(harness_open(&h, "addresses", spec, "sm_90", NULL), "%s", h.text);
    for (int skew = 0; skew < 3; skew++) {
        harness_data(&h, n, 1, skew, 0);
        cr_assert(harness_check(&h, NULL), "n = %d: %s\n%s", n, h.text, spec);
        const float last = ((float *)h.output[0])[h.count[0] - 1];
        first = skew == 0 ? last : first;
        cr_expect_eq(last, first, "n = %d, %d elements behind a boundary: %.9g, not %.9g (case %s)\n%s", n, skew,
                     (double)last, (double)first, ptxgen_host_case(h.host), spec);
    }
    harness_close(&h);
}

Test(property, the_same_bits_at_other_addresses)
{
    static const char *const spec[] = {
        "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\ndeterminism: run\n",
        "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\ndeterminism: device\n",
        "kind: reduce\ninputs: {x: 'f32[n]', w: 'f32[n]'}\nmap: x + 0 * w\noperator: add\noutputs: {sum: f32}\n"
        "determinism: run\n",
        "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\ndeterminism: device\n",
    };
    static const int sizes[] = { 1000, 4097, 16384, 100000, 200003 };
    for (size_t s = 0; s < sizeof spec / sizeof *spec; s++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_addresses(spec[s], sizes[i]);
}
