/* SPDX-License-Identifier: Apache-2.0 */
/* test_mutants.c - every barrier, fence, warp sync and counter reset of the emitters is needed, and some mode of the host
 * executor notices when it is missing.
 *
 * The builder numbers its ordering points; each is left out in turn, and the kernels run in all modes over some seeds.  A mutant is
 * caught when a run reports a finding or gives another result than the whole kernel.  The list of mutants and who caught them is printed.
 * Exempt ones carry the reason.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "llvmgen/llvmgen.h"
#include "simt/simt.h"

/* One program: its spec, pinned strategy, size; enough blocks and tiles that every part of the kernel runs. */
static const struct subject {
    const char *name, *spec, *arch;
    struct tunable set[4];
    int64_t n;
} subjects[] = {
    { "block", "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n", "sm_80",
      { { "strategy", "reduce.block", { 0, 0 } }, { "threads", "128", { 0, 0 } } }, 3001 },
    { "last_block", "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n", "sm_90",
      { { "strategy", "reduce.last_block", { 0, 0 } }, { "threads", "64", { 0, 0 } }, { "items", "1", { 0, 0 } } }, 20011 },
    { "cluster", "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n", "sm_90",
      { { "strategy", "reduce.cluster", { 0, 0 } }, { "threads", "64", { 0, 0 } }, { "cluster", "4", { 0, 0 } } }, 3001 },
    { "ordered",
      "kind: reduce\ninputs: {x: 'u32[n]'}\nmap: {p: x, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n"
      "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\noutputs: {q: {type: u32, value: r.q}}\n",
      "sm_90", { { "strategy", "reduce.last_block", { 0, 0 } }, { "threads", "64", { 0, 0 } }, { "items", "1", { 0, 0 } },
                 { "blocks_per_sm", "16", { 0, 0 } } }, 20011 },
    { "staged",
      "kind: reduce\ninputs: {x: 'u32[n]'}\nmap: {p: x, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n"
      "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\noutputs: {q: {type: u32, value: r.q}}\n",
      "sm_80", { { "strategy", "reduce.block", { 0, 0 } }, { "threads", "64", { 0, 0 } }, { "items", "3", { 0, 0 } } }, 5003 },
};

/* Points that no mode can notice, with the reason. */
static const struct {
    const char *text, *reason;
} exempt[] = {
    { "launch dependents", "only says that the next kernel may start; omitting it costs time" },
};

static const char *const modes[] = { "seed:%d,race,uninit", "seed:%d,weak", "seed:%d,stale", "seed:%d,late", "seed:%d,weak,stale,late" };
enum { NMODES = sizeof modes / sizeof *modes, SEEDS = 12, LAUNCHES = 3 };

struct subject_run {
    struct ptxgen_session s;
    const struct plan *plan;
    uint32_t *x, result;
    int64_t n;
};

static void open_subject(struct subject_run *r, const struct subject *sub)
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
    while (nset < 4 && sub->set[nset].name)
        nset++;
    const struct plan_options o = { .nset = nset, .set = sub->set };
    r->plan = p ? plan_create(&r->s, p, &d, &o) : NULL;
    struct str text = { 0 };
    if (!r->plan)
        diags_render_text(&r->s.diags, &text, false);
    cr_assert(r->plan, "%s: %s", sub->name, text.text);
    r->n = sub->n;
    r->x = malloc(sizeof *r->x * (size_t)r->n);
    for (int64_t i = 0; i < r->n; i++)
        r->x[i] = (uint32_t)i * 2654435761u >> 8;
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
        uint32_t got = 0xDEADBEEF;
        const struct run_args args = { .size = &r->n, .input = (const void *const[]){ r->x }, .output = (void *const[]){ &got } };
        simt_run(h, &args, control, &o, &report);
        ok = report.what == SIMT_OK;
        *same &= got == r->result;
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

static const char *exempt_reason(const char *text)
{
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++)
        if (strstr(text, exempt[i].text))
            return exempt[i].reason;
    return NULL;
}

static void whole_kernel_is_clean(struct subject_run *r, const struct subject *sub, const struct host_code *h)
{
    struct simt_options o;
    struct simt_report report;
    simt_options_default(&o);
    const struct run_args args = { .size = &r->n, .input = (const void *const[]){ r->x }, .output = (void *const[]){ &r->result } };
    simt_run(h, &args, NULL, &o, &report);
    cr_assert_eq((int)report.what, SIMT_OK, "%s: %s", sub->name, report.text);
    int seed;
    const char *mode = caught_by(r, h, &seed);
    cr_assert_null(mode, "%s: the whole kernel fails in mode %s, seed %d", sub->name, mode, seed);
}

static void test_subject(const struct subject *sub)
{
    struct subject_run r;
    open_subject(&r, sub);
    struct host_code *whole = build(&r, 0);
    cr_assert(whole);
    whole_kernel_is_clean(&r, sub, whole);
    const int points = host_points(whole);
    cr_assert_gt(points, 0);
    for (int i = 1; i <= points; i++) {
        const char *text = host_point_text(whole, i);
        const char *reason = exempt_reason(text);
        int seed = 0;
        struct host_code *mutant = build(&r, i);
        const char *mode = reason ? NULL : caught_by(&r, mutant, &seed);
        fprintf(stderr, "%-10s %-48s %s%s\n", sub->name, text, mode ? "caught by " : reason ? "exempt: " : "NOT CAUGHT", mode ? mode : reason ? reason : "");
        host_destroy(mutant);
        cr_expect(mode || reason, "%s: nothing notices that %s is missing", sub->name, text);
    }
    host_destroy(whole);
    free(r.x);
    arena_finish(&r.s.arena);
}

Test(mutants, block) { test_subject(&subjects[0]); }
Test(mutants, last_block) { test_subject(&subjects[1]); }
Test(mutants, cluster) { test_subject(&subjects[2]); }
Test(mutants, ordered) { test_subject(&subjects[3]); }
Test(mutants, staged) { test_subject(&subjects[4]); }
