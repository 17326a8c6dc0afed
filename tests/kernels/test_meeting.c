/* SPDX-License-Identifier: Apache-2.0 */
/* test_meeting.c - maps whose elements meet at few places: by tables of each block, in every form, and directly in the
 * outputs, on the host executor against the oracle; for places that are spread evenly, of which a few are most, that are
 * all the same, and that lie out of range.  What the outputs hold before the launch is combined, too. */
#include <criterion/criterion.h>

#include "kernels/keyed.h"

static const struct keyed specs[] = {
    { "counts", "f32", "outputs: {y: {type: 'u32[k]', at: key, value: 1, combine: add}}\n" },
    { "counts from an initial value", "u8",
      "outputs: {y: {type: 'i64[k]', at: key, value: 1, combine: add, initial: 7}}\n" },
    { "sums", "f32", "outputs: {y: {type: 'f32[k]', at: key, value: x, combine: add}}\n" },
    { "several outputs at the same places", "i16",
      "let: {at7: abs(key) % 7}\noutputs:\n  s: {type: 'i32[k]', at: at7, value: i32(x), combine: add}\n"
      "  m: {type: 'i16[k]', at: at7, value: x, combine: max, initial: -5}\n"
      "  b: {type: 'bool[k]', at: at7, value: x > 90, combine: or, initial: false}\n"
      "  l: {type: 'f64[k]', at: at7, value: f64(x), combine: min}\n" },
    { "bytes, which share words with their neighbours", "i8",
      "outputs: {y: {type: 'i8[k]', at: key, value: x, combine: add}, z: {type: 'u8[k]', at: key, value: 1, combine: "
      "xor}}\n" },
    { "halves", "f16", "outputs: {y: {type: 'f16[k]', at: key, value: x, combine: max}}\n" },
    { "extremes, and NaN in every other place", "f32",
      "let: {v: \"if key % 2 == 0 then x - x + (x - x) / (x - x) else x\"}\n"
      "outputs: {lo: {type: 'f32[k]', at: key, value: v, combine: min, initial: 2}, hi: {type: 'f32[k]', at: key, "
      "value: v, combine: max, initial: -2}}\n" },
    { "products", "i64", "outputs: {y: {type: 'i64[k]', at: key, value: 1 + x * 2, combine: mul}}\n" },
    { "an operator of its own, with a param", "u32",
      "params: {p: u32}\noutputs: {y: {type: 'u32[k]', at: key, value: x, combine: {state: u32, identity: p, combine: "
      "(a ^ b) ^ p}}}\n" },
    { "neighbours", "f32",
      "boundary: wrap\noutputs: {y: {type: 'f32[k]', at: \"key[1] % 7\", value: \"x - x[-1]\", combine: add}}\n" },
    { "cells", "i32",
      "outputs: {y: {type: 'i32[7, 8]', at: [key / 6, abs(x) % 9], value: x, combine: add}, z: {type: 'u64[7, 8]', at: "
      "[key / 6, abs(x) % 9], value: 1, combine: add, initial: 3}}\n" },
    { "sums and counts, each by itself", "f32",
      "outputs: {y: {type: {s: f32, c: i32}, shape: [k], at: key, value: {s: x, c: 1}, initial: {c: 2, s: 0.5}, "
      "combine: {state: {s: f32, c: i32}, combine: {s: a.s + b.s, c: b.c + a.c}}}}\n" },
    { "several wide fields, each by itself", "i32",
      "outputs: {y: {type: {s: f64, c: i64, m: u64, l: i32, b: u32}, shape: [k], at: key, value: {s: f64(x), c: 1, m: "
      "u64(x), l: x, b: u32(x)}, combine: {state: {s: f64, c: i64, m: u64, l: i32, b: u32}, combine: {s: a.s + b.s, c: "
      "a.c + b.c, m: \"max(a.m, b.m)\", l: \"min(b.l, a.l)\", b: a.b ^ b.b}}}}\n" },
    { "ranges, products and bits, each by itself", "f32",
      "outputs: {y: {type: {l: f32, h: f64, p: u8, b: bool, c: i64}, shape: [k], at: key, value: {l: x, h: f64(x), p: "
      "u8(index(n)) | 1, b: x > 0.5, c: 1}, initial: {l: inf, h: 0, p: 3, b: true, c: 0}, combine: {state: {l: f32, h: "
      "f64, p: u8, b: bool, c: i64}, identity: {l: inf, h: -inf, p: 1, b: false, c: 0}, let: {q: a.p * b.p}, combine: "
      "{l: \"min(a.l, b.l)\", h: \"max(b.h, a.h)\", p: q, b: a.b ^ b.b, c: a.c + b.c}}}}\n" },
    { "first of the greatest", "f32",
      "outputs: {y: {type: {value: f32, index: i32}, shape: [k], at: key, value: {value: x, index: i32(index(n))}, "
      "combine: argmax, initial: {value: -2, index: -1}}}\n" },
    { "first of the least, and counts beside it", "i16",
      "outputs: {y: {type: {value: i16, index: i16}, shape: [k], at: key, value: {value: x / 4, index: i16(index(n))}, "
      "combine: argmin}, c: {type: 'u8[k]', at: key, value: 1, combine: add}}\n" },
    { "bytes beside floats", "f32",
      "outputs: {y: {type: {value: f32, index: u8}, shape: [k], at: key, value: {value: x, index: u8(index(n))}, "
      "initial: {value: inf, index: 9}, combine: argmin}}\n" },
    { "pairs of bytes", "u8",
      "outputs: {y: {type: {p: u8, q: u8}, shape: [k], at: key, value: {p: x, q: x}, initial: {p: 1, q: 0}, combine: "
      "{state: {p: u8, q: u8}, identity: {p: 0, q: 0}, combine: {p: a.p + b.p, q: \"max(a.q, b.q)\"}}}}\n" },
    { "products of complex numbers", "i32",
      "outputs: {y: {type: {re: u32, im: u32}, shape: [k], at: key, value: {re: u32(x), im: 1}, combine: {state: {re: "
      "u32, im: u32}, identity: {re: 1, im: 0}, combine: {re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * "
      "b.re}}}}\n" },
    { "logarithms of sums", "f32",
      "outputs: {y: {type: {max: f32, sum: f32}, shape: [k], at: key, value: {max: x, sum: 1}, combine: logsumexp, "
      "initial: {max: 0.25, sum: 1}}}\n" },
};
enum { SPECS = sizeof specs / sizeof *specs };

/* The plan has a case of the strategy, and is the same when its text is read back. */
static void plan_text(struct harness *h, const char *what, const char *strategy)
{
    char *text = ptxgen_plan_text(h->plan);
    ptxgen_plan *again = NULL;
    cr_assert(text && strstr(text, strategy), "%s has no case of %s:\n%s", what, strategy, text);
    const bool read = ptxgen_plan_from_string(h->s, h->problem, text, strlen(text), "plan", &again) == PTXGEN_OK ||
                      harness_fail(h, "read");
    cr_assert(read, "%s: %s", what, h->text);
    char *second = ptxgen_plan_text(again);
    cr_expect_str_eq(second, text);
    ptxgen_free(second);
    ptxgen_free(text);
}

/* The settings may be left out: the default. */
static void check(const char *strategy, const char *threads, const char *name, const char *value)
{
    for (int i = 0; i < SPECS; i++) {
        const char *set[] = { "strategy", strategy, "threads", threads, name, value, NULL, NULL };
        struct harness h;
        keyed_open(&h, "map", specs, i, name ? set : NULL);
        plan_text(&h, specs[i].name, strategy);
        keyed_launches(&h, specs[i].name);
    }
}

Test(meeting, by_default) { check("reduce.bins", NULL, NULL, NULL); }
Test(meeting, in_the_outputs) { check("stencil.global", "64", "block_x", "64"); }
Test(meeting, a_table_per_block) { check("reduce.bins", "64", "lanes", "0"); }
Test(meeting, a_table_per_warp) { check("reduce.bins", "64", "lanes", "32"); }
Test(meeting, a_table_of_each_thread_alone) { check("reduce.bins", "32", "lanes", "1"); }

/* Structures that are updated as one word, and do not begin at a multiple of it. */
Test(meeting, split_words)
{
    struct harness h;
    cr_assert(
        harness_open(&h, "t",
                     "kind: map\ninputs: {key: 'i32[n]'}\noutputs: {y: {type: {value: f32, index: i32}, shape: [k], "
                     "at: key, value: {value: 1, index: 0}, combine: argmax}}\n",
                     "sm_80", NULL),
        "%s", h.text);
    harness_data(&h, 40, 1, 0, 0);
    h.output[0] = (char *)harness_memory(&h, 8 * 41, 0) + 4;
    const ptxgen_arguments args = { h.size, (const void *const *)h.input, h.output, h.param };
    cr_expect_neq(ptxgen_host_run(h.s, h.host, &args, "seed:1"), PTXGEN_OK);
    harness_fail(&h, "run");
    cr_expect(strstr(h.text, "elements of y are updated as words, and begin at multiples of 8"), "%s", h.text);
    harness_close(&h);
}
