/* SPDX-License-Identifier: Apache-2.0 */
/* test_mutants.c - every barrier, fence, warp sync and counter reset of the emitters is needed, and some mode of the
 * host executor notices when it is missing.
 *
 * The builder numbers its ordering points; each is left out in turn, and the kernels run in all modes over some seeds.
 * A mutant is caught when a run reports a finding or gives another result than the whole kernel.  The list of mutants
 * and who caught them is printed. Exempt ones carry the reason.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "llvmgen/llvmgen.h"
#include "simt/simt.h"

/* x[0] x[1] … as a recurrence: not commutative, and any lost or repeated element shows. */
#define RECURRENCE                                                                                                     \
    "map: {p: x | 1, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n  identity: {p: 1, q: 0}\n"                      \
    "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\n"

/* Scans have a second case for arrays that are not aligned, which no launch here would take. */
#define ONE_BY_ONE                                                                                                     \
    {                                                                                                                  \
        "vector", "1", { 0, 0 }                                                                                        \
    }

/* One program: its spec, pinned strategy, size; enough blocks and tiles that every part of the kernel runs. */
static const struct subject {
    const char *name, *spec, *arch;
    struct tunable set[5];
    int64_t size[2];
} subjects[] = {
    { "block",
      "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n",
      "sm_80",
      { { "strategy", "reduce.block", { 0, 0 } }, { "threads", "128", { 0, 0 } } },
      { 3001 } },
    { "last_block",
      "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n",
      "sm_90",
      { { "strategy", "reduce.last_block", { 0, 0 } }, { "threads", "64", { 0, 0 } }, { "items", "1", { 0, 0 } } },
      { 20011 } },
    { "gather",
      "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n",
      "sm_90",
      { { "strategy", "reduce.gather", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "blocks_per_sm", "16", { 0, 0 } } },
      { 20011 } },
    { "atomic",
      "kind: reduce\ninputs: {x: 'i32[n]'}\nreductions:\n  s: {map: u32(x), operator: add}\n  p: {map: u32(x) * 2 + 1, "
      "operator: mul}\n"
      "outputs: {s: {type: u32, value: s}, p: {type: u32, value: p}}\n",
      "sm_90",
      { { "strategy", "reduce.atomic", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "combine", "shared_atomic_all", { 0, 0 } } },
      { 20011 } },
    { "two_kernel",
      "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n",
      "sm_90",
      { { "strategy", "reduce.two_kernel", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "combine", "tree", { 0, 0 } },
        { "blocks_per_sm", "16", { 0, 0 } } },
      { 20011 } },
    { "tile_rings",
      "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n",
      "sm_90",
      { { "strategy", "reduce.last_block", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "max_grid", "40", { 0, 0 } },
        { "bulk", "2", { 0, 0 } } },
      { 60011 } },
    { "leaders",
      "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n",
      "sm_80",
      { { "strategy", "reduce.block", { 0, 0 } },
        { "threads", "128", { 0, 0 } },
        { "combine", "tree_leaders", { 0, 0 } } },
      { 3001 } },
    { "cluster",
      "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n",
      "sm_90",
      { { "strategy", "reduce.cluster", { 0, 0 } }, { "threads", "64", { 0, 0 } }, { "cluster", "4", { 0, 0 } } },
      { 3001 } },
    { "ordered",
      "kind: reduce\ninputs: {x: 'u32[n]'}\nmap: {p: x, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n"
      "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\noutputs: {q: {type: u32, value: r.q}}\n",
      "sm_90",
      { { "strategy", "reduce.last_block", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "blocks_per_sm", "16", { 0, 0 } },
        { "bulk", "0", { 0, 0 } } },
      { 20011 } },
    { "rings",
      "kind: reduce\ninputs: {x: 'u32[n]'}\nmap: {p: x, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n"
      "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\noutputs: {q: {type: u32, value: r.q}}\n",
      "sm_90",
      { { "strategy", "reduce.ordered", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "blocks_per_sm", "9", { 0, 0 } },
        { "bulk", "2", { 0, 0 } } },
      { 27011 } },
    { "scan_block",
      "kind: scan\ninputs: {x: 'u32[n]'}\n" RECURRENCE
      "outputs: {y: {type: 'u32[n]', value: s.q}, t: {type: u32, value: total.q}}\n",
      "sm_90",
      { { "strategy", "scan.block", { 0, 0 } }, { "threads", "64", { 0, 0 } }, { "items", "3", { 0, 0 } }, ONE_BY_ONE },
      { 1501 } },
    { "scan_rows",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\ndirection: reverse\n" RECURRENCE
      "outputs: {y: {type: 'u32[m, n]', value: s.q}, t: {type: 'u32[m]', value: total.q}}\n",
      "sm_80",
      { { "strategy", "segscan.block", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 5, 700 } },
    { "whole_rows",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE
      "outputs: {y: {type: 'u32[m, n]', value: s.q}, t: {type: 'u32[m]', value: total.q}}\n",
      "sm_90",
      { { "strategy", "segscan.staged", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 40, 63 } },
    { "warp_rows",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE
      "outputs: {y: {type: 'u32[m, n]', value: s.q}, t: {type: 'u32[m]', value: total.q}}\n",
      "sm_90",
      { { "strategy", "segscan.subwarp", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 90, 31 } },
    { "lookback",
      "kind: scan\ninputs: {x: 'u32[n]'}\n" RECURRENCE
      "outputs: {y: {type: 'u32[n]', value: s.q}, z: {type: 'u32[n]', value: s.p}, t: {type: u32, value: total.q}}\n",
      "sm_90",
      { { "strategy", "scan.lookback", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 3011 } },
    { "allpre",
      "kind: scan\ninputs: {x: 'u32[n]'}\n" RECURRENCE
      "outputs: {y: {type: 'u32[n]', value: s.q}, t: {type: u32, value: total.q}}\n",
      "sm_90",
      { { "strategy", "scan.allpre", { 0, 0 } },
        { "threads", "32", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 701 } },
    { "allpre_rows",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE
      "outputs: {y: {type: 'u32[m, n]', value: s.q}, t: {type: 'u32[m]', value: total.q}}\n",
      "sm_90",
      { { "strategy", "scan.allpre", { 0, 0 } },
        { "threads", "32", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 3, 190 } },
    { "lookahead",
      "kind: scan\ninputs: {x: 'u32[n]'}\n" RECURRENCE
      "outputs: {y: {type: 'u32[n]', value: s.q}, z: {type: 'u32[n]', value: s.p}}\n",
      "sm_90",
      { { "strategy", "scan.lookahead", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "stages", "3", { 0, 0 } } },
      { 2805 } },
    { "lookahead_rows",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE
      "outputs: {y: {type: 'u32[m, n]', value: s.q}, t: {type: 'u32[m]', value: total.q}}\n",
      "sm_90",
      { { "strategy", "scan.lookahead", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "stages", "3", { 0, 0 } } },
      { 4, 700 } },
    { "three_pass",
      "kind: scan\ninputs: {x: 'u32[n]'}\n" RECURRENCE "outputs: {y: {type: 'u32[n]', value: s.q}}\n",
      "sm_90",
      { { "strategy", "scan.three_pass", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        ONE_BY_ONE },
      { 4501 } },
    { "stream_rows",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE
      "outputs: {y: {type: 'u32[m, n]', value: s.q}, t: {type: 'u32[m]', value: total.q}}\n",
      "sm_80",
      { { "strategy", "segscan.stream", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 5, 700 } },
    { "cluster_rows",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE
      "outputs: {y: {type: 'u32[m, n]', value: s.q}, t: {type: 'u32[m]', value: total.q}}\n",
      "sm_90",
      { { "strategy", "segscan.cluster", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        ONE_BY_ONE },
      { 2, 1700 } },
    { "turn_rows",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\nmode: exclusive\noperator: add\n"
      "outputs: {y: 'u32[m, n]', t: 'u32[m]'}\n",
      "sm_90",
      { { "strategy", "segscan.lookback", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 7, 500 } },
    { "strips",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE "over: m\n"
      "outputs: {y: {type: 'u32[m, n]', value: s.q}, t: {type: 'u32[n]', value: total.q}}\n",
      "sm_90",
      { { "strategy", "segscan.column", { 0, 0 } }, { "threads", "64", { 0, 0 } }, { "items", "2", { 0, 0 } } },
      { 61, 37 } },
    { "shared_strips",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE "over: m\n"
      "outputs: {y: {type: 'u32[m, n]', value: s.q}, t: {type: 'u32[n]', value: total.q}}\n",
      "sm_90",
      { { "strategy", "segscan.strips", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "2", { 0, 0 } },
        { "rows", "2", { 0, 0 } },
        { "blocks_per_sm", "1", { 0, 0 } } },
      { 303, 11 } },
    { "marks",
      "kind: scan\ninputs: {x: 'u32[n]', off: 'i32[k]'}\nsegments: {offsets: off}\n" RECURRENCE
      "outputs: {y: {type: 'u32[n]', value: s.q}}\n",
      "sm_90",
      { { "strategy", "segscan.offsets", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 1500, 900 } },
    { "flat_rows",
      "kind: scan\ninputs: {x: 'u32[m, n]'}\nmode: exclusive\noperator: add\n"
      "outputs: {y: 'u32[m, n]', t: 'u32[m]'}\n",
      "sm_80",
      { { "strategy", "segscan.flat", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 7, 500 } },
    { "flags",
      "kind: scan\ninputs: {x: 'u32[n]', head: 'u8[n]'}\nsegments: {flags: head}\n" RECURRENCE
      "outputs: {y: {type: 'u32[n]', value: s.q}}\n",
      "sm_80",
      { { "strategy", "segscan.flags", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "3", { 0, 0 } },
        ONE_BY_ONE },
      { 3011 } },
    { "stencil",
      "kind: stencil\ninputs: {u: 'u32[n]'}\nboundary: wrap\nreductions: {top: {map: 'out * 3', operator: add}}\n"
      "outputs: {out: {type: 'u32[n]', value: 'u[-1] + u[1]'}, top: u32}\n",
      "sm_90",
      { { "strategy", "stencil.global", { 0, 0 } }, { "threads", "64", { 0, 0 } } },
      { 3011 } },
    { "stencil_tile",
      "kind: stencil\ninputs: {u: 'u32[m, n]'}\nboundary: wrap\n"
      "outputs: {out: {type: 'u32[m, n]', value: 'u[-1, 0] + u[0, 1]'}}\n",
      "sm_80",
      { { "strategy", "stencil.big_tile", { 0, 0 } }, { "threads", "64", { 0, 0 } } },
      { 37, 101 } },
    { "stencil_stream",
      "kind: stencil\ninputs: {u: 'u32[d, 7, 36]'}\nboundary: mirror\n"
      "outputs: {out: {type: 'u32[d, 7, 36]', value: 'u + 3 * u[-2, 0, 0] + u[-1, 0, 0] + u[1, 0, 0] + u[2, 0, 0] - "
      "u[0, -1, 1]'}}\n",
      "sm_80",
      { { "strategy", "stencil.stream", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "block_x", "32", { 0, 0 } },
        { "points_y", "2", { 0, 0 } },
        { "stages", "4", { 0, 0 } } },
      { 11 } },
    { "stencil_temporal",
      "kind: stencil\ninputs: {u: 'u32[d, 17, n]'}\nboundary: mirror\n"
      "outputs: {out: {type: 'u32[d, 17, n]', value: '3 * u[-1, 0, 0] + u[0, 1, 0] - u[0, -1, 1]'}}\niterate: {steps: "
      "2, feedback: {u: out}}\n",
      "sm_80",
      { { "strategy", "stencil.temporal", { 0, 0 } },
        { "threads", "128", { 0, 0 } },
        { "items", "4", { 0, 0 } },
        { "steps", "2", { 0, 0 } } },
      { 7, 132 } },
    { "stencil_some",
      "kind: stencil\ninputs: {u: 'u32[m, n]'}\nreductions:\n"
      "  top: {map: {s: out, m: u}, operator: {state: {s: u32, m: u32}, combine: {s: a.s + b.s, m: 'max(a.m, b.m)'}, "
      "commutative: true}}\n"
      "outputs: {out: {type: 'u32[m, n]', value: 'u[-1, 0] + u[0, 1]'}, top: {type: u32, value: top.s + top.m}}\n",
      "sm_80",
      { { "strategy", "stencil.global", { 0, 0 } }, { "threads", "64", { 0, 0 } } },
      { 37, 101 } },
    { "staged",
      "kind: reduce\ninputs: {x: 'u32[n]'}\nmap: {p: x, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n"
      "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\noutputs: {q: {type: u32, value: r.q}}\n",
      "sm_80",
      { { "strategy", "reduce.block", { 0, 0 } }, { "threads", "64", { 0, 0 } }, { "items", "3", { 0, 0 } } },
      { 5003 } },
    { "seg_block",
      "kind: reduce\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE "over: n\noutputs: {q: {type: 'u32[m]', value: r.q}}\n",
      "sm_80",
      { { "strategy", "segreduce.block", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "max_grid", "4", { 0, 0 } },
        ONE_BY_ONE },
      { 9, 700 } },
    { "seg_tile",
      "kind: reduce\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE "over: n\noutputs: {q: {type: 'u32[m]', value: r.q}}\n",
      "sm_90",
      { { "strategy", "segreduce.tile", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "blocks_per_sm", "1", { 0, 0 } } },
      { 1001, 5 } },
    { "seg_copied",
      "kind: reduce\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE "over: n\noutputs: {q: {type: 'u32[m]', value: r.q}}\n",
      "sm_80",
      { { "strategy", "segreduce.tile", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "blocks_per_sm", "1", { 0, 0 } } },
      { 1001, 5 } },
    { "seg_multi",
      "kind: reduce\ninputs: {x: 'u32[m, n]'}\noperator: add\nover: n\noutputs: {sum: 'u32[m]'}\n",
      "sm_90",
      { { "strategy", "segreduce.multi_block", { 0, 0 } },
        { "threads", "64", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        ONE_BY_ONE },
      { 2, 3001 } },
    { "column",
      "kind: reduce\ninputs: {x: 'u32[m, n]'}\n" RECURRENCE "over: m\noutputs: {q: {type: 'u32[n]', value: r.q}}\n",
      "sm_90",
      { { "strategy", "segreduce.column", { 0, 0 } },
        { "threads", "128", { 0, 0 } },
        { "items", "1", { 0, 0 } },
        { "rows", "2", { 0, 0 } } },
      { 101, 61 } },
    { "offsets",
      "kind: reduce\ninputs: {x: 'u32[n]', off: 'u32[k]'}\nsegments: {offsets: off}\n" RECURRENCE
      "outputs: {q: {type: 'u32[k-1]', value: r.q}}\n",
      "sm_90",
      { { "strategy", "segreduce.offsets", { 0, 0 } }, { "threads", "64", { 0, 0 } }, ONE_BY_ONE },
      { 6001, 7 } },
    { "staged_shares",
      "kind: reduce\ninputs: {x: 'u32[n]', off: 'u32[k]'}\nsegments: {offsets: off}\noperator: add\n"
      "outputs: {sum: {type: 'u32[k-1]', value: r}}\n",
      "sm_90",
      { { "strategy", "segreduce.offsets", { 0, 0 } }, { "threads", "64", { 0, 0 } }, { "items", "1", { 0, 0 } } },
      { 3001, 61 } },
};

/* Points that no mode can notice, with the reason. */
static const struct {
    const char *subject, *file; /* NULL: any */
    const char *text, *reason;
} exempt[] = {
    { "atomic", NULL, "release fence",
      "orders two read-modify-writes, which the executor performs one after the other" },
    { "atomic", NULL, "acquire fence",
      "orders two read-modify-writes, which the executor performs one after the other" },
    { NULL, "scan_ring.c", "warp sync", "the lanes have exchanged what they read by shuffles" },
    { NULL, NULL, "launch dependents", "only says that the next kernel may start; omitting it costs time" },
};

static const char *const modes[] = { "seed:%d,race,uninit", "seed:%d,weak", "seed:%d,stale", "seed:%d,late",
                                     "seed:%d,weak,stale,late" };
enum { NMODES = sizeof modes / sizeof *modes, SEEDS = 12, LAUNCHES = 3 };

enum { ARRAYS = 4 };

struct subject_run {
    struct ptxgen_session s;
    const struct problem *problem;
    const struct plan *plan;
    const int64_t *size;
    void *input[ARRAYS], *output[ARRAYS];
    uint64_t result[LAUNCHES]; /* hash of all outputs, per launch */
};

static int64_t bytes_of(const struct subject_run *r, const struct prog_array *a)
{
    return prog_array_elements(a, r->size) * a->stride;
}

/* Bytes are rarely 1, as flags of segments should be; offsets ascend to the first size; other words are anything. Every
 * launch has data of its own, so that what an earlier one left behind is seen. */
static void fill(struct subject_run *r, int input, int launch)
{
    const struct prog_array *a = &r->problem->input[input].array;
    const int64_t count = bytes_of(r, a) / a->stride;
    void *p = r->input[input];
    for (int64_t i = 0; i < count; i++) {
        const uint32_t x = (uint32_t)(i + 977 * launch) * 2654435761u >> 8;
        if (r->problem->input[input].role == ROLE_OFFSETS) {
            ((uint32_t *)p)[i] = (uint32_t)(r->size[0] * i / (count - 1));
            continue;
        }
        if (a->stride == 1)
            ((uint8_t *)p)[i] = x % 300 == 0;
        else
            ((uint32_t *)p)[i] = x;
    }
}

static uint64_t hash_outputs(const struct subject_run *r)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (int o = 0; o < r->problem->noutputs; o++)
        for (int64_t i = 0; i < bytes_of(r, &r->problem->output[o].array); i++)
            h = (h ^ ((uint8_t *)r->output[o])[i]) * 0x100000001B3u;
    return h;
}

static int run_once(struct subject_run *r, const struct host_code *h, int launch, struct simt_control *control,
                    const struct simt_options *o, struct simt_report *report)
{
    for (int i = 0; i < r->problem->ninputs; i++)
        fill(r, i, launch);
    for (int i = 0; i < r->problem->noutputs; i++)
        memset(r->output[i], 0xA5, (size_t)bytes_of(r, &r->problem->output[i].array));
    const struct run_args args = { .size = r->size, .input = (const void *const *)r->input, .output = r->output };
    simt_run(h, &args, control, o, report);
    return (int)report->what;
}

static void open_subject(struct subject_run *r, const struct subject *sub, bool first_case)
{
    static jmp_buf oom;
    memset(r, 0, sizeof *r);
    arena_init(&r->s.arena);
    diags_init(&r->s.diags, &r->s.arena);
    r->s.arena.oom = &oom;
    if (setjmp(oom))
        cr_assert_fail("memory");
    struct device d;
    cr_assert(device_by_name(sub->arch, 0, &d));
    const struct problem *p = problem_build(&r->s, sub->name, sub->spec, strlen(sub->spec), sub->name);
    int nset = 0;
    while (nset < 5 && sub->set[nset].name)
        nset++;
    const struct plan_options o = { .nset = nset, .set = sub->set, .size = sub->size }; /* fewer cases */
    r->plan = p ? plan_create(&r->s, p, &d, &o) : NULL;
    struct str text = { 0 };
    if (!r->plan)
        diags_render_text(&r->s.diags, &text, false);
    cr_assert(r->plan, "%s: %s", sub->name, text.text);
    if (first_case) {
        struct plan *one = arena_new(&r->s.arena, struct plan, 1);
        *one = *r->plan;
        one->ncases = 1;
        r->plan = one;
    }
    r->problem = p;
    r->size = sub->size;
    for (int i = 0; i < p->ninputs; i++)
        r->input[i] = malloc((size_t)bytes_of(r, &p->input[i].array));
    for (int i = 0; i < p->noutputs; i++)
        r->output[i] = malloc((size_t)bytes_of(r, &p->output[i].array));
}

static struct host_code *build(struct subject_run *r, int omit)
{
    int nsymbols;
    const struct host_symbol *symbols = simt_symbols(&nsymbols);
    const struct llvmgen_options o = { .omit_point = omit };
    return llvmgen_host(&r->s, r->plan, &o, symbols, nsymbols);
}

/* Several launches on one control block, so that a counter that is not reset shows. False: a finding. */
static bool run(struct subject_run *r, const struct host_code *h, const char *mode, int seed, bool *same)
{
    char text[64];
    struct simt_options o;
    struct simt_report report = { 0 };
    snprintf(text, sizeof text, mode, seed);
    simt_options_default(&o);
    cr_assert_null(simt_options_parse(text, &o));
    struct simt_control *control = simt_control_create();
    *same = true;
    bool ok = true;
    for (int l = 0; ok && l < LAUNCHES; l++) {
        ok = run_once(r, h, l, control, &o, &report) == SIMT_OK;
        *same &= hash_outputs(r) == r->result[l];
    }
    simt_control_destroy(control);
    return ok;
}

/* Which mode notices the missing point; NULL: none. */
static const char *caught_by(struct subject_run *r, const struct host_code *h, int *seed)
{
    for (int m = 0; m < NMODES; m++)
        for (*seed = 1; *seed <= SEEDS; ++*seed) {
            bool same;
            if (!run(r, h, modes[m], *seed, &same) || !same)
                return modes[m];
        }
    return NULL;
}

static const char *exempt_reason(const char *subject, const char *text)
{
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++)
        if ((!exempt[i].subject || !strcmp(exempt[i].subject, subject)) &&
            (!exempt[i].file || strstr(text, exempt[i].file)) && strstr(text, exempt[i].text))
            return exempt[i].reason;
    return NULL;
}

static void whole_kernel_is_clean(struct subject_run *r, const struct subject *sub, const struct host_code *h)
{
    struct simt_options o;
    struct simt_report report;
    simt_options_default(&o);
    for (int l = 0; l < LAUNCHES; l++) {
        cr_assert_eq(run_once(r, h, l, NULL, &o, &report), SIMT_OK, "%s: %s", sub->name, report.text);
        r->result[l] = hash_outputs(r);
    }
    int seed;
    const char *mode = caught_by(r, h, &seed);
    cr_assert_null(mode, "%s: the whole kernel fails in mode %s, seed %d", sub->name, mode, seed);
}

/* first_case: the plan's others are for arrays that are not aligned. */
static void test_subject(const struct subject *sub, bool first_case)
{
    struct subject_run r;
    open_subject(&r, sub, first_case);
    struct host_code *whole = build(&r, 0);
    cr_assert(whole);
    whole_kernel_is_clean(&r, sub, whole);
    const int points = host_points(whole);
    cr_assert_gt(points, 0);
    /* of the copies of an unrolled statement some never run on so few elements: one of them has to be caught */
    const bool unrolled = !strcmp(sub->name, "stencil_temporal");
    const char *caught = "";
    for (int i = 1; i <= points; i++) {
        const char *text = host_point_text(whole, i);
        const char *reason = exempt_reason(sub->name, text);
        if (unrolled && !strcmp(caught, text))
            continue;
        int seed = 0;
        struct host_code *mutant = build(&r, i);
        const char *mode = reason ? NULL : caught_by(&r, mutant, &seed);
        fprintf(stderr, "%-10s %-48s %s%s\n", sub->name, text,
                mode     ? "caught by "
                : reason ? "exempt: "
                         : "NOT CAUGHT",
                mode     ? mode
                : reason ? reason
                         : "");
        host_destroy(mutant);
        caught = mode ? text : caught;
        cr_expect(mode || reason, "%s: nothing notices that %s is missing", sub->name, text);
    }
    host_destroy(whole);
    for (int i = 0; i < ARRAYS; i++) {
        free(r.input[i]);
        free(r.output[i]);
    }
    arena_finish(&r.s.arena);
}

static void test_first(const char *name, bool first_case)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (!strcmp(subjects[i].name, name))
            test_subject(&subjects[i], first_case);
}

static void test_named(const char *name) { test_first(name, false); }

Test(mutants, block) { test_named("block"); }
Test(mutants, last_block) { test_named("last_block"); }
Test(mutants, gather) { test_named("gather"); }
Test(mutants, atomic) { test_named("atomic"); }
Test(mutants, two_kernel) { test_named("two_kernel"); }
Test(mutants, tile_rings) { test_named("tile_rings"); }
Test(mutants, leaders) { test_named("leaders"); }
Test(mutants, cluster) { test_named("cluster"); }
Test(mutants, ordered) { test_named("ordered"); }
Test(mutants, rings) { test_named("rings"); }
Test(mutants, staged) { test_named("staged"); }
Test(mutants, scan_block) { test_named("scan_block"); }
Test(mutants, scan_rows) { test_named("scan_rows"); }
Test(mutants, whole_rows) { test_named("whole_rows"); }
Test(mutants, warp_rows) { test_named("warp_rows"); }
Test(mutants, stream_rows) { test_named("stream_rows"); }
Test(mutants, cluster_rows) { test_named("cluster_rows"); }
Test(mutants, turn_rows) { test_named("turn_rows"); }
Test(mutants, strips) { test_named("strips"); }
Test(mutants, shared_strips) { test_named("shared_strips"); }
Test(mutants, lookback) { test_named("lookback"); }
Test(mutants, allpre) { test_named("allpre"); }
Test(mutants, allpre_rows) { test_named("allpre_rows"); }
Test(mutants, lookahead) { test_named("lookahead"); }
Test(mutants, lookahead_rows) { test_named("lookahead_rows"); }
Test(mutants, three_pass) { test_named("three_pass"); }
Test(mutants, marks) { test_named("marks"); }
Test(mutants, flat_rows) { test_named("flat_rows"); }
Test(mutants, flags) { test_named("flags"); }
Test(mutants, stencil) { test_named("stencil"); }
Test(mutants, stencil_tile) { test_named("stencil_tile"); }
Test(mutants, stencil_stream) { test_first("stencil_stream", true); }
Test(mutants, stencil_temporal) { test_first("stencil_temporal", true); }
Test(mutants, stencil_some) { test_named("stencil_some"); }
Test(mutants, seg_block) { test_named("seg_block"); }
Test(mutants, seg_tile) { test_first("seg_tile", true); }
Test(mutants, seg_copied) { test_first("seg_copied", true); }
Test(mutants, seg_multi) { test_named("seg_multi"); }
Test(mutants, column) { test_named("column"); }
Test(mutants, offsets) { test_named("offsets"); }
Test(mutants, staged_shares) { test_first("staged_shares", true); }
