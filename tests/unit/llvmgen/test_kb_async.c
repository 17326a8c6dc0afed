/* SPDX-License-Identifier: Apache-2.0 */
/* test_kb_async.c - the kernel builder's teams, asynchronous copies and large shared memory: PTX, and what is refused.
 */
#include "support/emit_fixture.h"

enum { STAGES = 2, TEAM = 3, TILE = 4096 };

/* One producer warp fills a ring of stages for three consumer warps; every tile is copied to the output again. */
static void pipeline(kb *k, const void *arg)
{
    (void)arg;
    kb_kernel_begin(k, "kernel", (TEAM + 1) * KB_WARP, 0, 0, 3);
    const kb_ptr in = kb_param_ptr(k, TY_F32, 16, 0, "in"), out = kb_param_ptr(k, TY_F32, 16, 0, "out");
    const kb_val n = kb_param(k, TY_I32, "n"), bytes = kb_imm(k, TY_I32, TILE * 4), zero = kb_imm(k, TY_I32, 0);
    const kb_ptr stage = kb_shared_v(k, TY_F32, STAGES * TILE, "stage");
    const kb_ptr full = kb_mbarriers(k, STAGES, "full"), empty = kb_mbarriers(k, STAGES, "empty");
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        for (int s = 0; s < STAGES; s++) {
            kb_mbar_init(k, full, kb_imm(k, TY_I32, s), 1);
            kb_mbar_init(k, empty, kb_imm(k, TY_I32, s), TEAM);
        }
        kb_mbar_ready(k);
    }
    kb_barrier(k);
    kb_team(k, TEAM, 1)
    {
        kb_for(k, t, zero, n, 1) {
            LET(s, kb_and(k, t, 1));
            kb_mbar_wait(k, full, s, kb_and(k, kb_shr(k, t, 1), 1));
            kb_ptr tile = kb_advance(k, stage, kb_mul(k, s, TILE));
            kb_store(k, tile, kb_tid(k), kb_load(k, tile, kb_xor(k, kb_tid(k), 1)));
            kb_proxy_fence(k);
            kb_barrier(k);
            kb_if(k, kb_eq(k, kb_tid(k), 0)) {
                kb_bulk_store(k, kb_advance(k, out, kb_mul(k, t, TILE)), tile, bytes);
                kb_bulk_commit(k);
                kb_bulk_wait(k, 0, true);
            }
            kb_mbar_arrive(k, empty, s);
        }
        cr_expect_eq(kb_threads(k), TEAM * KB_WARP);
    }
    kb_else
    {
        cr_expect_eq(kb_threads(k), (TEAM + 1) * KB_WARP);
        kb_if(k, kb_eq(k, kb_lane(k), 0)) {
            kb_for(k, t, zero, n, 1) {
                LET(s, kb_and(k, t, 1));
                kb_mbar_wait(k, empty, s, kb_xor(k, kb_and(k, kb_shr(k, t, 1), 1), 1));
                kb_mbar_expect(k, full, s, bytes);
                kb_bulk_load(k, kb_advance(k, stage, kb_mul(k, s, TILE)), kb_advance(k, in, kb_mul(k, t, TILE)), bytes,
                             full, s);
            }
        }
    }
    kb_kernel_end(k);
}

/* Every thread copies as many bytes at a time as the argument says. */
static void copies(kb *k, const void *arg)
{
    const int bytes = *(const int *)arg;
    kb_kernel_begin(k, "kernel", 64, 0, 0, 2);
    const kb_ptr in = kb_param_ptr(k, TY_F32, 16, 0, "in"), out = kb_param_ptr(k, TY_F32, 16, 0, "out");
    const kb_ptr stage = kb_shared_v(k, TY_F32, 2 * 256, "stage");
    LET(at, kb_mul(k, kb_tid(k), bytes / 4));
    for (int s = 0; s < 2; s++) {
        kb_copy(k, bytes, stage, kb_add(k, at, s * 256), in, kb_add(k, at, s * 256));
        kb_copy_commit(k);
    }
    kb_copy_wait(k, 1);
    kb_store(k, out, kb_tid(k), kb_load(k, stage, at));
    kb_kernel_end(k);
}

/* Shared memory of as many bytes as the argument says. */
static void large(kb *k, const void *arg)
{
    kb_kernel_begin(k, "kernel", 64, 0, 0, 1);
    const kb_ptr out = kb_param_ptr(k, TY_U8, 16, 0, "out");
    const kb_ptr all = kb_shared_v(k, TY_U8, *(const int *)arg, "all");
    kb_store(k, all, kb_tid(k), kb_cast(k, kb_tid(k), TY_U8));
    kb_barrier(k);
    kb_store(k, out, kb_tid(k), kb_load(k, all, kb_xor(k, kb_tid(k), 1)));
    kb_kernel_end(k);
}

struct fragment {
    const char *text;
    int count;
};

static void expect(const char *name, struct emission_options o, emitter f, const void *arg,
                   const struct fragment *expected)
{
    struct emitted e = emit_with(o, f, arg);
    cr_assert(e.ok, "%s: %s", name, e.error);
    for (; expected->text; expected++)
        cr_expect_eq(occurrences(e.text, expected->text), expected->count, "%s: '%s' in\n%s", name, expected->text,
                     e.text);
    const char *said = assemble(e.text, o.arch ? o.arch : "sm_90");
    cr_expect_str_empty(said, "%s: ptxas says %s", name, said);
    free(e.text);
}

static const struct fragment whole[] = {
    { "mbarrier.init.shared::cta.b64", 4 },
    { "fence.mbarrier_init", 1 },
    { "bar.sync 0;", 1 },
    { "bar.sync 1,96;", 1 },
    { "mbarrier.try_wait.parity", 2 },
    { "mbarrier.arrive.expect_tx", 1 },
    { "mbarrier.arrive.shared::cta.b64", 1 },
    { "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", 1 },
    { "cp.async.bulk.global.shared::cta.bulk_group", 1 },
    { "cp.async.bulk.commit_group", 1 },
    { "cp.async.bulk.wait_group.read 0;", 1 },
    { "bar.warp.sync", 1 },
    { ".local", 0 },
    { NULL, 0 },
};

Test(kb_async, pipeline)
{
    expect("lean", (struct emission_options){ 0 }, pipeline, NULL, whole);
    expect("O3", (struct emission_options){ .gen.pipeline = PIPELINE_O3 }, pipeline, NULL,
           &whole[12]); /* may copy the producer's loop */
    expect("sm_100", (struct emission_options){ .arch = "sm_100" }, pipeline, NULL, whole);
}

/* Every step that orders can be left out, and nothing else goes with it. */
Test(kb_async, points_left_out)
{
    static const struct {
        const char *point;
        struct fragment f[2];
    } rows[] = {
        { "mbarrier initialisation fence", { { "fence.mbarrier_init", 0 } } },
        { "mbarrier wait", { { "mbarrier.try_wait", 1 } } },
        { "proxy fence", { { "fence.proxy.async", 1 } } },
        { "bulk wait", { { "wait_group", 0 } } },
        { "mbarrier arrive", { { "mbarrier.arrive.shared::cta.b64", 0 } } },
        { "mbarrier expect", { { "expect_tx", 0 } } },
    };
    static const char *const order[] = { "mbarrier initialisation fence",
                                         "barrier",
                                         "mbarrier wait",
                                         "proxy fence",
                                         "barrier",
                                         "bulk wait",
                                         "warp sync",
                                         "mbarrier arrive",
                                         "mbarrier wait",
                                         "mbarrier expect" };
    enum { POINTS = sizeof order / sizeof *order };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        int number = 0;
        while (strcmp(order[number], rows[r].point) != 0)
            number++;
        struct emission_options o = { .gen.omit_point = number + 1 };
        expect(rows[r].point, o, pipeline, NULL, rows[r].f);
    }
    struct emitted e = emit_with((struct emission_options){ 0 }, pipeline, NULL);
    cr_expect_eq(e.points, POINTS);
    free(e.text);
}

Test(kb_async, copies)
{
    static const int bytes[] = { 16, 8, 4 };
    for (int i = 0; i < 3; i++) {
        const struct fragment f[] = {
            { "cp.async.cg.shared.global", bytes[i] == 16 ? 2 : 0 },
            { "cp.async.ca.shared.global", bytes[i] == 16 ? 0 : 2 },
            { bytes[i] == 16  ? ",16;"
              : bytes[i] == 8 ? ",8;"
                              : ",4;",
              2 },
            { "cp.async.commit_group;", 2 },
            { "cp.async.wait_group 1;", 1 },
            { NULL, 0 },
        };
        expect("sm_80", (struct emission_options){ .arch = "sm_80" }, copies, &bytes[i], f);
        expect("sm_90", (struct emission_options){ 0 }, copies, &bytes[i], f);
    }
}

Test(kb_async, large_shared_memory)
{
    static const struct fragment is_static[] = { { ".extern .shared", 0 }, { ".shared .align 128", 1 }, { NULL, 0 } };
    static const struct fragment is_dynamic[] = { { ".extern .shared .align 128", 1 }, { NULL, 0 } };
    expect("48 KiB", (struct emission_options){ 0 }, large, &(int){ 48 * 1024 }, is_static);
    expect("48 KiB and a byte", (struct emission_options){ 0 }, large, &(int){ 48 * 1024 + 1 }, is_dynamic);
    expect("227 KiB", (struct emission_options){ 0 }, large, &(int){ 227 * 1024 }, is_dynamic);
    expect("99 KiB", (struct emission_options){ .arch = "sm_86" }, large, &(int){ 99 * 1024 }, is_dynamic);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void begin(kb *k)
{
    kb_kernel_begin(k, "bad", 128, 0, 0, 1);
    kb_param_ptr(k, TY_F32, 16, 0, "p");
}
static void bulk_on_old(kb *k, const void *arg)
{
    (void)arg;
    begin(k);
    kb_mbarriers(k, 1, "full");
    kb_kernel_end(k);
}
static void copy_on_old(kb *k, const void *arg)
{
    (void)arg;
    begin(k);
    kb_copy_commit(k);
    kb_kernel_end(k);
}
static void barrier_outside_team(kb *k, const void *arg)
{
    (void)arg;
    begin(k);
    kb_team(k, 2, 1) { kb_barrier(k); }
    kb_else { kb_barrier(k); }
    kb_kernel_end(k);
}
static void divergent_in_team(kb *k, const void *arg)
{
    (void)arg;
    begin(k);
    kb_team(k, 2, 1)
    {
        kb_if(k, kb_eq(k, kb_warp(k), 1)) {
            kb_barrier(k);
        }
    }
    kb_kernel_end(k);
}
static void team_in_team(kb *k, const void *arg)
{
    (void)arg;
    begin(k);
    kb_team(k, 2, 1)
    {
        kb_team(k, 1, 2) { kb_barrier(k); }
    }
    kb_kernel_end(k);
}
static void team_too_large(kb *k, const void *arg)
{
    (void)arg;
    begin(k);
    kb_team(k, 5, 1) { kb_barrier(k); }
    kb_kernel_end(k);
}
static void arrive_in_lane(kb *k, const void *arg)
{
    (void)arg;
    begin(k);
    const kb_ptr bars = kb_mbarriers(k, 1, "full");
    kb_if(k, kb_eq(k, kb_lane(k), 0)) {
        kb_mbar_arrive(k, bars, kb_imm(k, TY_I32, 0));
    }
    kb_kernel_end(k);
}
static void wait_on_no_barrier(kb *k, const void *arg)
{
    (void)arg;
    begin(k);
    kb_mbar_wait(k, kb_shared_v(k, TY_U32, 1, "word"), kb_imm(k, TY_I32, 0), kb_imm(k, TY_I32, 0));
    kb_kernel_end(k);
}
static void load_to_global(kb *k, const void *arg)
{
    (void)arg;
    kb_kernel_begin(k, "bad", 128, 0, 0, 1);
    const kb_ptr p = kb_param_ptr(k, TY_F32, 16, 0, "p");
    kb_bulk_load(k, p, p, kb_imm(k, TY_I32, 16), kb_mbarriers(k, 1, "full"), kb_imm(k, TY_I32, 0));
    kb_kernel_end(k);
}
static void prefetch_shared(kb *k, const void *arg)
{
    (void)arg;
    begin(k);
    kb_prefetch(k, kb_shared_v(k, TY_U32, 32, "stage"), 128);
    kb_kernel_end(k);
}
static void prefetch_on_old(kb *k, const void *arg)
{
    (void)arg;
    kb_kernel_begin(k, "bad", 128, 0, 0, 1);
    kb_prefetch(k, kb_param_ptr(k, TY_F32, 16, 0, "p"), 128);
    kb_kernel_end(k);
}
static void bytes_of_wrong_type(kb *k, const void *arg)
{
    (void)arg;
    begin(k);
    kb_mbar_expect(k, kb_mbarriers(k, 1, "full"), kb_imm(k, TY_I32, 0), kb_imm(k, TY_I64, 16));
    kb_kernel_end(k);
}

Test(kb_async, misuse)
{
    static const struct {
        const char *name;
        emitter emit;
        const char *arch, *says;
    } rows[] = {
        { "mbarrier on sm_80", bulk_on_old, "sm_80", "sm_80 with PTX 7.4 has no cp.async.bulk" },
        { "copy on sm_75", copy_on_old, "sm_75", "has no cp.async of 16 bytes" },
        { "barrier outside of the team", barrier_outside_team, NULL,
          "barrier inside the divergent scope opened at llvmgen/test_kb_async.c:" },
        { "divergence in a team", divergent_in_team, NULL,
          "barrier inside the divergent scope opened at llvmgen/test_kb_async.c:" },
        { "team in a team", team_in_team, NULL, "a team of 1 warps" },
        { "team of more than the block", team_too_large, NULL, "a team of 5 warps of 128 threads" },
        { "arrival of one lane", arrive_in_lane, NULL, "warp sync inside the divergent scope" },
        { "wait on a word", wait_on_no_barrier, NULL, "'word' is no mbarrier" },
        { "bulk load to global memory", load_to_global, NULL, "'p' is not in shared memory" },
        { "prefetch of shared memory", prefetch_shared, NULL, "'stage' is not in global memory" },
        { "prefetch on sm_80", prefetch_on_old, "sm_80", "sm_80 with PTX 7.4 has no cp.async.bulk" },
        { "64-bit bytes", bytes_of_wrong_type, NULL, "number of bytes of type i64" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct emitted e = emit_with((struct emission_options){ .arch = rows[i].arch }, rows[i].emit, NULL);
        cr_expect_not(e.ok, "%s: accepted", rows[i].name);
        cr_expect_not_null(strstr(e.error, rows[i].says), "%s: says '%s'", rows[i].name, e.error);
        free(e.text);
    }
}
