/* SPDX-License-Identifier: Apache-2.0 */
/* mutant_subjects.h - the programs whose ordering points test_mutants.c leaves out one by one (mutant_subjects.def). */
#ifndef PTXGEN_TESTS_MUTANT_SUBJECTS_H
#define PTXGEN_TESTS_MUTANT_SUBJECTS_H

#include "llvmgen/llvmgen.h"

#define VECTOR  "x: 'u32[n]'"
#define MATRIX  "x: 'u32[m, n]'"
#define OFFSETS VECTOR ", off: 'i32[k]'}\nsegments: {offsets: off"
#define FLAGS   VECTOR ", head: 'u8[n]'}\nsegments: {flags: head"
#define SPEC(kind, inputs, operator, outputs)                                                                          \
    "kind: " kind "\ninputs: {" inputs "}\n" operator"\noutputs: {" outputs "}\n"
/* x[0] x[1] … as a recurrence: not commutative, and any lost or repeated element shows. */
#define STATE(identity)                                                                                                \
    "operator:\n  state: {p: u32, q: u32}\n" identity "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\n"
#define RECURRENCE "map: {p: x | 1, q: x + 1}\n" STATE("  identity: {p: 1, q: 0}\n")

/* ---- reductions: a sum, or the recurrence's end ------------------------------------------------------------------ */
#define SUM SPEC("reduce", "x: 'i32[n]'", "operator: add", "sum: i32")
#define SUM_AND_PRODUCT                                                                                                \
    SPEC("reduce", "x: 'i32[n]'",                                                                                      \
         "reductions:\n  s: {map: u32(x), operator: add}\n  p: {map: u32(x) * 2 + 1, operator: mul}",                  \
         "s: {type: u32, value: s}, p: {type: u32, value: p}")
#define SUM_ROWS       SPEC("reduce", MATRIX, "operator: add\nover: n", "sum: 'u32[m]'")
#define MAPPED_ROWS    SPEC("reduce", MATRIX, "operator: add\nover: n", "y: {type: 'u32[m, n]', value: x - r}")
#define MAPPED_COLUMNS SPEC("reduce", MATRIX, "operator: add\nover: m", "y: {type: 'u32[m, n]', value: x - r}")
#define SUM_OFFSETS    SPEC("reduce", OFFSETS, "operator: add", "sum: {type: 'u32[k-1]', value: r}")
#define ORDERED        SPEC("reduce", VECTOR, "map: {p: x, q: x + 1}\n" STATE(""), "q: {type: u32, value: r.q}")
#define REDUCE_ROWS    SPEC("reduce", MATRIX, RECURRENCE "over: n", "q: {type: 'u32[m]', value: r.q}")
#define REDUCE_COLUMNS SPEC("reduce", MATRIX, RECURRENCE "over: m", "q: {type: 'u32[n]', value: r.q}")
#define REDUCE_OFFSETS SPEC("reduce", OFFSETS, RECURRENCE, "q: {type: 'u32[k-1]', value: r.q}")

#define NEAREST                                                                                                        \
    SPEC("reduce", "x: 'u32[m, f]', c: 'u32[n, f]'", "operator: max\nover: n\nmap: sum(f, (x ^ c) >> 8)",              \
         "far: {type: 'u32[m]', value: r}")
#define BINS                                                                                                           \
    SPEC("reduce", VECTOR, "reductions:\n  s: {map: x, operator: add}\n  p: {map: x | 1, operator: mul}\nby: x % 41",  \
         "s: 'u32[k]', p: 'u32[k]'")
#define BINS_LOCKED                                                                                                    \
    SPEC("reduce", VECTOR,                                                                                             \
         "map: {p: x | 1, q: x, r: x % 3}\n"                                                                           \
         "operator: {state: {p: u32, q: u32, r: u32}, identity: {p: 1, q: 0, r: 0}, "                                  \
         "combine: {p: a.p * b.p, q: a.q + b.q, r: a.r + b.r}, commutative: true}\n"                                   \
         "by: if x % 4 < 2 then u32(index(n) / 900) else if x % 4 == 2 then u32(40) else x % 41",                      \
         "p: {type: 'u32[k]', value: r.p}, q: {type: 'u32[k]', value: r.q + r.r}")
#define BINS_PLACED                                                                                                    \
    SPEC("map", VECTOR, "",                                                                                            \
         "s: {type: 'u32[k]', at: x % 41, value: x, combine: add, initial: 1}, p: {type: 'u32[k]', at: x % 41, "       \
         "value: x | 1, combine: mul, initial: 3}")
#define BINS_ROWS                                                                                                      \
    SPEC("reduce", MATRIX,                                                                                             \
         "reductions:\n  s: {map: x, operator: add}\n  p: {map: x | 1, operator: mul}\nover: n\nby: x % 41",           \
         "s: 'u32[41, m]', p: 'u32[41, m]'")
#define BINS_COLUMNS                                                                                                   \
    SPEC("reduce", MATRIX,                                                                                             \
         "reductions:\n  s: {map: x, operator: add}\n  p: {map: x | 1, operator: mul}\nover: m\nby: index(m) * 5 % 8", \
         "s: 'u32[7, n]', p: 'u32[7, n]'")

/* ---- scans: with totals, or alone -------------------------------------------------------------------------------- */
#define Y           "y: {type: 'u32[n]', value: s.q}"
#define Z           ", z: {type: 'u32[n]', value: s.p}"
#define Y_ROWS      "y: {type: 'u32[m, n]', value: s.q}"
#define TOTAL(type) ", t: {type: " type ", value: total.q}"
#define SCAN        SPEC("scan", VECTOR, RECURRENCE, Y TOTAL("u32"))
#define SCAN_ALONE  SPEC("scan", VECTOR, RECURRENCE, Y)
#define SCAN_BOTH   SPEC("scan", VECTOR, RECURRENCE, Y Z)
#define SCAN_ALL    SPEC("scan", VECTOR, RECURRENCE, Y Z TOTAL("u32"))
#define SCAN_KEPT                                                                                                      \
    SPEC("scan", VECTOR, "",                                                                                           \
         "y: {type: 'u32[n]', where: x % 2 == 1, value: x}, z: {type: 'u32[n]', where: x % 3 != 0, value: x, "         \
         "from: end}, t: {type: i64, count: y}")
#define SCAN_RUNS                                                                                                      \
    SPEC("scan", VECTOR, "segments: {starts: 'x % 4 < x[-1] % 4'}\nmap: x\noperator: max",                             \
         "y: {type: 'u32[n]', where: last, value: x}, z: {type: 'u32[n]', where: last, value: s}, "                    \
         "t: {type: i64, count: y}")
#define SCAN_OFFSETS       SPEC("scan", OFFSETS, RECURRENCE, Y)
#define SCAN_FLAGS         SPEC("scan", FLAGS, RECURRENCE, Y)
#define SCAN_ROWS          SPEC("scan", MATRIX, RECURRENCE, Y_ROWS TOTAL("'u32[m]'"))
#define SCAN_ROWS_ALONE    SPEC("scan", MATRIX, RECURRENCE, Y_ROWS)
#define SCAN_ROWS_REVERSE  SPEC("scan", MATRIX, "direction: reverse\n" RECURRENCE, Y_ROWS TOTAL("'u32[m]'"))
#define SCAN_COLUMNS       SPEC("scan", MATRIX, RECURRENCE "over: m", Y_ROWS TOTAL("'u32[n]'"))
#define SCAN_COLUMNS_ALONE SPEC("scan", MATRIX, RECURRENCE "over: m", Y_ROWS)
#define SCAN_PIECES                                                                                                    \
    SPEC("scan", "x: 'u32[m, 3, n]', y: 'u32[m, 3, n]'", "map: {p: x | 1, q: y}\n" STATE("") "over: [m, n]",           \
         "p: {type: 'u32[m, 3, n]', value: s.p}, q: {type: 'u32[m, 3, n]', value: s.q}")
#define SCAN_BINS SPEC("scan", MATRIX, RECURRENCE "by: x % 41", Y_ROWS ", t: {type: 'u32[m, 41]', value: total.q}")
#define SORT_BINS                                                                                                      \
    SPEC("scan", MATRIX, "map: 1\noperator: add\nmode: exclusive\nby: x % 41\nbins: 40",                               \
         "y: {type: 'u32[m, 40, 1000]', at: [index(m), x % 41, s], value: x}")
#define SUMS_BEFORE SPEC("scan", MATRIX, "mode: exclusive\noperator: add", "y: 'u32[m, n]', t: 'u32[m]'")
/* Columns whose totals are always combined in the same way. */
#define SUM_COLUMNS_RUN SPEC("scan", "x: 'f32[m, n]'", "over: m\noperator: add\ndeterminism: run", "y: 'f32[m, n]'")

/* ---- stencils ---------------------------------------------------------------------------------------------------- */
#define STENCIL                                                                                                        \
    SPEC("stencil", "u: 'u32[m, n]'", "boundary: wrap", "out: {type: 'u32[m, n]', value: 'u[-1, 0] + u[0, 1]'}")
#define STENCIL_SUM                                                                                                    \
    SPEC("stencil", "u: 'u32[n]'", "boundary: wrap\nreductions: {top: {map: 'out * 3', operator: add}}",               \
         "out: {type: 'u32[n]', value: 'u[-1] + u[1]'}, top: u32")
#define STENCIL_REDUCED                                                                                                \
    SPEC("stencil", "u: 'u32[m, n]'",                                                                                  \
         "reductions:\n  top: {map: {s: out, m: u}, operator: {state: {s: u32, m: u32}, "                              \
         "combine: {s: a.s + b.s, m: 'max(a.m, b.m)'}, commutative: true}}",                                           \
         "out: {type: 'u32[m, n]', value: 'u[-1, 0] + u[0, 1]'}, top: {type: u32, value: top.s + top.m}")
#define STENCIL_DEEP                                                                                                   \
    SPEC("stencil", "u: 'u32[d, 7, 36]'", "boundary: mirror",                                                          \
         "out: {type: 'u32[d, 7, 36]', value: 'u + 3 * u[-2, 0, 0] + u[-1, 0, 0] + u[1, 0, 0] + u[2, 0, 0] - "         \
         "u[0, -1, 1]'}")
#define ALL_PAIRS                                                                                                      \
    SPEC("map", "x: 'u32[m, f]', c: 'u32[f, n]'", "", "far: {type: 'u32[m, n]', value: 'sum(f, (x ^ c) >> 8)'}")
#define STENCIL_STEPS                                                                                                  \
    SPEC("stencil", "u: 'u32[d, 17, n]'", "boundary: mirror\niterate: {steps: 2, feedback: {u: out}}",                 \
         "out: {type: 'u32[d, 17, n]', value: '3 * u[-1, 0, 0] + u[0, 1, 0] - u[0, -1, 1]'}")
#define STENCIL_LINE                                                                                                   \
    SPEC("stencil", "u: 'u32[n]', w: 'u32[n]'", "boundary: mirror\niterate: {steps: 2, feedback: {u: out, w: other}}", \
         "out: {type: 'u32[n]', value: '3 * u[-1] + w[1]'}, other: {type: 'u32[n]', value: 'u - 5 * w[-1]'}")

enum subject_cases { ALL, FIRST };
static const struct subject {
    const char *name, *spec, *arch, *pins;
    enum subject_cases cases;
    int64_t size[3];
} subjects[] = {
#define SUBJECT(name, spec, arch, pins, cases, m, n) { #name, spec, #arch, pins, cases, { m, n, 19 } },
#include "mutant_subjects.def"
#undef SUBJECT
};

#endif
