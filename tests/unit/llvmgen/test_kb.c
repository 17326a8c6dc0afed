/* SPDX-License-Identifier: Apache-2.0 */
/* test_kb.c - the kernel builder on the NVPTX target: what reaches the PTX. */
#include "support/emit_fixture.h"

/* ---- kernels of the rows below ----------------------------------------------------------------------------------- */

struct io {
    kb_ptr in, out;
    kb_val n, i;
};

static struct io begin(kb *k, enum ty ty, int align, unsigned flags)
{
    struct io io;
    kb_kernel_begin(k, "kernel", 128, 0, 0, 3);
    io.in = kb_param_ptr(k, ty, align, flags, "in");
    io.out = kb_param_ptr(k, ty, align, 0, "out");
    io.n = kb_param(k, TY_I32, "n");
    io.i = kb_tid(k);
    return io;
}

static void copy_n(kb *k, enum ty ty, int n, int align, unsigned flags)
{
    kb_val v[16];
    struct io io = begin(k, ty, align, flags);
    kb_load_n(k, io.in, kb_mul(k, io.i, n), n, align, v);
    kb_store_n(k, io.out, kb_mul(k, io.i, n), n, align, v);
    kb_kernel_end(k);
}
static void copy_f32x4(kb *k, const void *arg) { (void)arg, copy_n(k, TY_F32, 4, 16, KB_INVARIANT); }
static void copy_f32x4_written(kb *k, const void *arg) { (void)arg, copy_n(k, TY_F32, 4, 16, 0); }
static void copy_f32x4_unaligned(kb *k, const void *arg) { (void)arg, copy_n(k, TY_F32, 4, 4, KB_INVARIANT); }
static void copy_f32x7(kb *k, const void *arg) { (void)arg, copy_n(k, TY_F32, 7, 16, KB_INVARIANT); }
static void copy_f64x2(kb *k, const void *arg) { (void)arg, copy_n(k, TY_F64, 2, 16, KB_INVARIANT); }
static void copy_u8x16(kb *k, const void *arg) { (void)arg, copy_n(k, TY_U8, 16, 16, KB_INVARIANT); }
static void copy_f16x8(kb *k, const void *arg) { (void)arg, copy_n(k, TY_F16, 8, 16, KB_INVARIANT); }
static void copy_stream(kb *k, const void *arg) { (void)arg, copy_n(k, TY_F32, 4, 16, KB_INVARIANT | KB_STREAM); }
static void copy_stream_written(kb *k, const void *arg) { (void)arg, copy_n(k, TY_U16, 8, 16, KB_STREAM); }

static void ordered(kb *k, const void *arg)
{
    (void)arg;
    struct io io = begin(k, TY_U32, 4, KB_INVARIANT); /* an ordered load is never invariant */
    LET(a, kb_load_acquire(k, io.in, io.i));
    LET(b, kb_load_relaxed(k, io.in, io.i));
    kb_store_release(k, io.out, io.i, kb_add(k, a, b));
    kb_store_relaxed(k, io.out, io.i, b);
    kb_fence(k, KB_ACQ_REL, KB_SCOPE_DEVICE);
    kb_kernel_end(k);
}

static void atomics(kb *k, const void *arg)
{
    (void)arg;
    struct io io = begin(k, TY_U32, 4, 0);
    LET(x, kb_load(k, io.in, io.i));
    const kb_val zero = kb_imm(k, TY_I32, 0);
    kb_val r = kb_imm(k, TY_U32, 0);
    for (int op = KB_RMW_ADD; op <= KB_RMW_INC_WRAP; op++)
        r = kb_xor(k, r, kb_atomic(k, (enum kb_rmw)op, io.out, zero, x));
    r = kb_xor(k, r, kb_cas(k, io.out, zero, x, r));
    kb_store(k, io.out, io.i, r);
    kb_kernel_end(k);
}

static void float_atomics(kb *k, const void *arg)
{
    struct io io = begin(k, *(const enum ty *)arg, 8, 0);
    LET(x, kb_load(k, io.in, io.i));
    const kb_val zero = kb_imm(k, TY_I32, 0);
    for (int op = KB_RMW_ADD; op <= KB_RMW_MAX; op++)
        kb_store(k, io.out, io.i, kb_atomic(k, (enum kb_rmw)op, io.out, zero, x));
    kb_kernel_end(k);
}

static void block_sum(kb *k, const void *arg)
{
    (void)arg;
    struct io io = begin(k, TY_F32, 4, KB_INVARIANT);
    kb_ptr totals = kb_shared_v(k, TY_F32, 4, "totals");
    kb_ptr flag = kb_shared_v(k, TY_BOOL, 1, "flag");
    kb_val x = kb_load(k, io.in, io.i);
    for (int d = 16; d > 0; d /= 2)
        x = kb_add(k, x, kb_shfl_down(k, x, d));
    kb_section(k, "totals");
    kb_if(k, kb_eq(k, kb_lane(k), 0)) {
        kb_store(k, totals, kb_warp(k), x);
    }
    kb_barrier(k);
    kb_if(k, kb_eq(k, kb_warp(k), 0)) {
        LET(y, kb_load(k, totals, kb_and(k, kb_lane(k), 3)));
        kb_store(k, flag, kb_imm(k, TY_I32, 0), kb_any(k, kb_gt(k, y, kb_imm(k, TY_F32, 0))));
        kb_warp_sync(k);
        kb_store(k, io.out, kb_lane(k), kb_select(k, kb_load(k, flag, kb_imm(k, TY_I32, 0)), y, x));
    }
    kb_barrier(k);
    kb_kernel_end(k);
}

static void shuffles(kb *k, const void *arg)
{
    (void)arg;
    struct io io = begin(k, TY_F64, 8, 0);
    kb_val x = kb_load(k, io.in, io.i);
    const kb_val three = kb_imm(k, TY_I32, 3);
    x = kb_add(k, x, kb_shfl(k, KB_SHFL_UP, x, three, 8));
    x = kb_add(k, x, kb_shfl(k, KB_SHFL_DOWN, x, three, 16));
    x = kb_add(k, x, kb_shfl_xor(k, x, 1));
    x = kb_add(k, x, kb_shfl_idx(k, x, kb_imm(k, TY_I32, 0)));
    kb_store(k, io.out, io.i, x);
    kb_kernel_end(k);
}

static void redux(kb *k, const void *arg)
{
    (void)arg;
    struct io io = begin(k, TY_U32, 4, 0);
    kb_val x = kb_load(k, io.in, io.i);
    for (int op = KB_RMW_ADD; op <= KB_RMW_XOR && kb_has_redux(k); op++)
        x = kb_add(k, kb_redux(k, (enum kb_rmw)op, x), kb_lane(k).ty == TY_I32 ? kb_cast(k, kb_lane(k), TY_U32) : x);
    kb_val s = kb_cast(k, x, TY_I32);
    if (kb_has_redux(k))
        s = kb_redux(k, KB_RMW_MIN, s);
    kb_store(k, io.out, io.i, kb_cast(k, s, TY_U32));
    kb_kernel_end(k);
}

static void constant_if(kb *k, const void *arg)
{
    (void)arg;
    int arms = 0;
    struct io io = begin(k, TY_I32, 4, 0);
    kb_if(k, kb_eq(k, kb_imm(k, TY_I32, 1), 2)) {
        kb_store(k, io.out, io.i, kb_imm(k, TY_I32, 7777));
        arms |= 1;
    }
    kb_else
    {
        kb_store(k, io.out, io.i, kb_imm(k, TY_I32, 9999));
        arms |= 2;
    }
    cr_expect_eq(arms, 2, "only the arm that is taken is emitted");
    kb_if(k, kb_imm(k, TY_BOOL, 0)) {
        arms = 0;
    }
    cr_expect_eq(arms, 2);
    kb_kernel_end(k);
}

/* A load is an operand of a macro: it must be emitted once. */
static void once(kb *k, const void *arg)
{
    (void)arg;
    struct io io = begin(k, TY_I32, 4, 0);
    const kb_val zero = kb_imm(k, TY_I32, 0);
    kb_store(k, io.out, io.i, kb_min(k, kb_add(k, kb_atomic(k, KB_RMW_ADD, io.in, zero, io.n), io.i), 5));
    kb_for(k, j, zero, kb_atomic(k, KB_RMW_XOR, io.in, zero, io.n), kb_atomic(k, KB_RMW_OR, io.in, zero, io.n)) {
        kb_store(k, io.out, j, j);
    }
    kb_kernel_end(k);
}

static void cluster(kb *k, const void *arg)
{
    (void)arg;
    kb_kernel_begin(k, "kernel", 64, 2, 4, 1);
    kb_ptr out = kb_param_ptr(k, TY_I32, 4, 0, "out");
    kb_dependency_wait(k);
    kb_ptr mine = kb_shared_v(k, TY_I32, 64, "mine");
    kb_store(k, mine, kb_tid(k), kb_cluster_rank(k));
    kb_cluster_arrive(k);
    kb_cluster_wait(k);
    kb_ptr theirs = kb_cluster_map(k, mine, kb_xor(k, kb_cluster_rank(k), 1));
    kb_store(k, out, kb_tid(k), kb_load(k, theirs, kb_tid(k)));
    kb_cluster_arrive(k);
    kb_cluster_wait(k);
    kb_dependency_launch(k);
    kb_kernel_end(k);
}

/* What the previous kernel wrote is no invariant. */
static void dependent(kb *k, const void *arg)
{
    (void)arg;
    struct io io = begin(k, TY_F32, 16, KB_INVARIANT);
    kb_val v[4];
    kb_dependency_wait(k);
    kb_load_n(k, io.in, kb_mul(k, io.i, 4), 4, 16, v);
    kb_store(k, io.out, io.i, kb_add(k, v[0], kb_load(k, io.in, io.i)));
    kb_kernel_end(k);
}

static void spin(kb *k, const void *arg)
{
    (void)arg;
    struct io io = begin(k, TY_U32, 4, 0);
    kb_loop(k) {
        kb_break_if(k, kb_ne(k, kb_load_acquire(k, io.in, io.i), 0));
        kb_backoff(k, 40);
    }
    kb_kernel_end(k);
}

static void product_and_sum(kb *k, const void *arg)
{
    (void)arg;
    struct io io = begin(k, TY_F32, 4, 0);
    LET(x, kb_load(k, io.in, io.i));
    kb_store(k, io.out, io.i, kb_add(k, kb_mul(k, x, kb_load(k, io.out, io.i)), x));
    kb_kernel_end(k);
}

static void structure(kb *k, const void *arg) /* {f64, u8, bool, i16, f32}, 16 bytes */
{
    (void)arg;
    struct io io = begin(k, TY_F64, 16, KB_INVARIANT);
    kb_val word[4];
    kb_load_words(k, io.in, kb_mul(k, io.i, 16), 16, 16, word);
    kb_val x = kb_extract(k, word, 0, TY_F64);
    x = kb_add(k, x, kb_cast(k, kb_extract(k, word, 8, TY_U8), TY_F64));
    x = kb_select(k, kb_extract(k, word, 9, TY_BOOL), x, kb_neg(k, x));
    x = kb_add(k, x, kb_cast(k, kb_extract(k, word, 10, TY_I16), TY_F64));
    x = kb_add(k, x, kb_cast(k, kb_extract(k, word, 12, TY_F32), TY_F64));
    kb_store(k, io.out, io.i, x);
    kb_kernel_end(k);
}

static void flag_param(kb *k, const void *arg)
{
    (void)arg;
    kb_kernel_begin(k, "kernel", 32, 0, 0, 2);
    kb_ptr out = kb_param_ptr(k, TY_BOOL, 1, 0, "out");
    LET(flag, kb_param(k, TY_BOOL, "flag"));
    kb_store(k, out, kb_tid(k), kb_xor(k, flag, kb_gt(k, kb_lane(k), kb_warp(k))));
    kb_kernel_end(k);
}

/* ---- expected PTX ------------------------------------------------------------------------------------------------ */

struct fragment {
    const char *text;
    int count; /* exactly; -1: at least once */
};
struct row {
    const char *name;
    emitter emit;
    struct emission_options o;
    struct fragment expect[10];
};

static const struct row rows[] = {
    { "aligned run",
      copy_f32x4,
      { 0 },
      { { "ld.global.nc.v4.b32", 1 }, { "st.global.v4.b32", 1 }, { "ld.global.b32", 0 } } },
    { "written memory", copy_f32x4_written, { 0 }, { { "ld.global.v4.b32", 1 }, { ".nc", 0 } } },
    { "unaligned run",
      copy_f32x4_unaligned,
      { 0 },
      { { "ld.global.nc.b32", 4 }, { "st.global.b32", 4 }, { ".v4", 0 } } },
    { "odd run",
      copy_f32x7,
      { 0 },
      { { "ld.global.nc.v4.b32", 1 }, { "ld.global.nc.v2.b32", 1 }, { "ld.global.nc.b32", 1 } } },
    { "doubles", copy_f64x2, { 0 }, { { "ld.global.nc.v2.b64", 1 }, { "st.global.v2.b64", 1 } } },
    { "bytes", copy_u8x16, { 0 }, { { "ld.global.nc.v4.b32", 1 }, { "st.global.v4.b32", 1 }, { ".b8 ", 0 } } },
    { "halves", copy_f16x8, { 0 }, { { "ld.global.nc.v4.b32", 1 }, { "st.global.v4.b32", 1 } } },
    { "streamed", copy_stream, { 0 }, { { "ld.global.nc.L1::no_allocate.v4.f32", 1 } } },
    { "streamed, written", copy_stream_written, { 0 }, { { "ld.global.L1::no_allocate.v4.b32", 1 }, { ".nc", 0 } } },
    { "streamed, old PTX",
      copy_stream,
      { .arch = "sm_70" },
      { { "L1::no_allocate", 0 }, { "ld.global.nc.v4.b32", 1 } } },
    { "order",
      ordered,
      { 0 },
      { { "ld.acquire.gpu.global", 1 },
        { "ld.relaxed.gpu.global", 1 },
        { "st.release.gpu.global", 1 },
        { "st.relaxed.gpu.global", 1 },
        { "fence.acq_rel.gpu", 1 },
        { ".nc", 0 } } },
    { "order, sm_70",
      ordered,
      { .arch = "sm_70" },
      { { "ld.acquire.gpu.global", 1 }, { "st.release.gpu.global", 1 } } },
    { "acquire omitted",
      ordered,
      { .gen.omit_point = 1 },
      { { "ld.acquire", 0 }, { "ld.relaxed.gpu.global", 2 }, { "st.release", 1 } } },
    { "release omitted",
      ordered,
      { .gen.omit_point = 2 },
      { { "ld.acquire", 1 }, { "st.release", 0 }, { "st.relaxed.gpu.global", 2 } } },
    { "fence omitted", ordered, { .gen.omit_point = 3 }, { { "ld.acquire", 1 }, { "st.release", 1 }, { "fence", 0 } } },
    { "atomics",
      atomics,
      { 0 },
      { { "atom.global.add.u32", 1 },
        { "atom.global.min.u32", 1 },
        { "atom.global.and.b32", 1 },
        { "atom.global.exch.b32", 1 },
        { "atom.global.inc.u32", 1 },
        { "atom.relaxed.gpu.global.cas.b32", 1 } } },
    { "barriers",
      block_sum,
      { 0 },
      { { "bar.sync", 2 },
        { "bar.warp.sync", 1 },
        { "shfl.sync.down.b32", 5 },
        { "vote.sync.any", 1 },
        { ".shared .align 128", 1 },
        { ".local", 0 },
        { "%totals.then", -1 },
        { ".reqntid 128", 1 } } },
    { "barrier omitted", block_sum, { .gen.omit_point = 1 }, { { "bar.sync", 1 }, { "bar.warp.sync", 1 } } },
    { "warp sync omitted", block_sum, { .gen.omit_point = 2 }, { { "bar.sync", 2 }, { "bar.warp.sync", 0 } } },
    { "wide shuffles",
      shuffles,
      { 0 },
      { { "shfl.sync.up.b32", 2 },
        { "shfl.sync.down.b32", 2 },
        { "shfl.sync.bfly.b32", 2 },
        { "shfl.sync.idx.b32", 2 },
        { ",6144,", 2 },
        { ",4127,", 2 } } },
    { "redux",
      redux,
      { 0 },
      { { "redux.sync.add.s32", 1 }, { "redux.sync.min.u32", 1 }, { "redux.sync.min.s32", 1 }, { "redux.sync", 7 } } },
    { "no redux", redux, { .arch = "sm_75" }, { { "redux.sync", 0 } } },
    { "constant if", constant_if, { 0 }, { { "7777", 0 }, { "9999", 1 }, { "bra", 0 } } },
    { "operands once", once, { 0 }, { { "atom.global.add", 1 }, { "atom.global.xor", 1 }, { "atom.global.or", 1 } } },
    { "cluster",
      cluster,
      { 0 },
      { { "barrier.cluster.arrive", 2 },
        { "barrier.cluster.wait", 2 },
        { "mapa.shared::cluster", 1 },
        { "griddepcontrol.wait", 1 },
        { "griddepcontrol.launch_dependents", 1 },
        { ".reqnctapercluster 2", 1 },
        { ".minnctapersm 4", 1 },
        { "ld.shared::cluster", 1 } } },
    { "dependency wait omitted",
      cluster,
      { .gen.omit_point = 1 },
      { { "griddepcontrol.wait", 0 }, { "barrier.cluster.wait", 2 } } },
    { "cluster barrier omitted",
      cluster,
      { .gen.omit_point = 2 },
      { { "barrier.cluster.arrive", 1 }, { "barrier.cluster.wait", 1 } } },
    { "dependent", dependent, { 0 }, { { ".nc", 0 }, { "ld.global.v4.b32", 1 } } },
    { "dependent, O3", dependent, { .gen.pipeline = PIPELINE_O3 }, { { ".nc", 0 } } },
    { "spin", spin, { 0 }, { { "nanosleep", 1 } } },
    { "spin, no nanosleep", spin, { .arch = "sm_70", .ptx = 60 }, { { "nanosleep", 0 } } },
    { "not fused", product_and_sum, { 0 }, { { "fma", 0 }, { "mul.rn.f32", 1 }, { "add.rn.f32", 1 } } },
    { "structure", structure, { 0 }, { { "ld.global.nc.v4.b32", 1 }, { ".b8 ", 0 } } },
    { "bool", flag_param, { 0 }, { { ".param .u8", 1 }, { "st.global.b8", 1 } } },
};
enum { NROWS = sizeof rows / sizeof *rows };

Test(kb, ptx)
{
    for (int i = 0; i < NROWS; i++) {
        const struct row *r = &rows[i];
        struct emitted e = emit_with(r->o, r->emit, NULL);
        cr_assert(e.ok, "%s: %s", r->name, e.error);
        for (const struct fragment *f = r->expect; f->text; f++) {
            const int n = occurrences(e.text, f->text);
            cr_expect(f->count < 0 ? n > 0 : n == f->count, "%s: '%s' %d times in\n%s", r->name, f->text, n, e.text);
        }
        const char *said = assemble(e.text, r->o.arch ? r->o.arch : "sm_90");
        cr_expect_str_empty(said, "%s: ptxas says %s", r->name, said);
        free(e.text);
    }
}

Test(kb, float_atomics)
{
    const enum ty ty[] = { TY_F32, TY_F64 };
    for (int i = 0; i < 2; i++) {
        struct emitted e = emit_with((struct emission_options){ 0 }, float_atomics, &ty[i]);
        cr_assert(e.ok, "%s", e.error);
        cr_expect_eq(occurrences(e.text, "atom.global.add.f"), 1);
        cr_expect_eq(occurrences(e.text, "cas.b"), 2); /* min and max are loops */
        free(e.text);
    }
}

/* ---- every type on every target ---------------------------------------------------------------------------------- */

/* Loads and stores of every shape, arithmetic, comparison, shuffle and conversion of one type. */
static void exercise(kb *k, enum ty ty, int n, int align)
{
    char name[32];
    kb_val v[16];
    snprintf(name, sizeof name, "k_%s_%d", ty_name(ty), n);
    kb_kernel_begin(k, name, 64, 0, 0, 3);
    kb_ptr in = kb_param_ptr(k, ty, align, KB_INVARIANT, "in"), out = kb_param_ptr(k, ty, align, 0, "out");
    LET(x, kb_param(k, ty, "x"));
    LET(first, kb_mul(k, kb_tid(k), n));
    kb_load_n(k, in, first, n, align, v);
    for (int op = ty_is_float(ty) ? KB_MIN : KB_AND; op <= KB_MAX; op++)
        if (ty != TY_BOOL || op <= KB_XOR)
            v[0] = kb_bin(k, (enum kb_bin)op, v[0], kb_arg_v(x));
    for (int op = KB_ADD; op <= KB_DIV && ty != TY_BOOL; op++)
        v[0] = kb_bin(k, (enum kb_bin)op, v[0], kb_arg_v(x));
    for (int op = KB_EQ; op <= KB_GE; op++)
        v[0] = kb_select(k, kb_bin(k, (enum kb_bin)op, v[0], kb_arg_v(x)), v[0], x);
    for (int to = 0; to < TY_COUNT && ty != TY_BOOL; to++)
        v[0] = kb_add(k, v[0], kb_cast(k, kb_cast(k, v[0], (enum ty)to), ty));
    if (ty == TY_U64)
        v[0] = kb_mul_high(k, v[0], x);
    v[0] = kb_shfl_xor(k, v[0], 7);
    kb_store_n(k, out, first, n, align, v);
    kb_store(k, out, kb_cast(k, kb_tid(k), TY_U64), kb_load(k, in, kb_cast(k, kb_tid(k), TY_U16)));
    kb_kernel_end(k);
}

static void exercise_all(kb *k, const void *arg)
{
    (void)arg;
    for (int ty = 0; ty < TY_COUNT; ty++) {
        exercise(k, (enum ty)ty, 16 / ty_bytes((enum ty)ty), 16);
        exercise(k, (enum ty)ty, 5, ty_bytes((enum ty)ty));
    }
}

Test(kb, every_type_on_every_target, .timeout = 120)
{
    const char *const *arch;
    const int n = device_names(&arch);
    for (int i = 0; i < n; i++) {
        struct emitted e = emit_with((struct emission_options){ .arch = arch[i] }, exercise_all, NULL);
        cr_assert(e.ok, "%s: %s", arch[i], e.error);
        cr_expect_eq(occurrences(e.text, ".local"), 0, "%s", arch[i]);
        const char *said = assemble(e.text, arch[i]);
        cr_expect_str_empty(said, "%s: ptxas says %s", arch[i], said);
        free(e.text);
    }
}

Test(kb, every_pipeline)
{
    for (int p = PIPELINE_LEAN; p <= PIPELINE_O3; p++) {
        struct emission_options o = { .gen.pipeline = p };
        struct emitted e = emit_with(o, exercise_all, NULL);
        cr_assert(e.ok, "%d: %s", p, e.error);
        free(e.text);
    }
}

Test(kb, same_bytes_every_time)
{
    struct emitted a = emit_with((struct emission_options){ 0 }, exercise_all, NULL);
    struct emitted b = emit_with((struct emission_options){ 0 }, exercise_all, NULL);
    cr_assert_str_eq(a.text, b.text);
    free(a.text);
    free(b.text);
}

Test(kb, shared_bytes_and_points)
{
    struct emitted e = emit_with((struct emission_options){ 0 }, block_sum, NULL);
    cr_expect_eq(e.shared, 17); /* four floats, then a bool at the next multiple of 16 */
    cr_expect_eq(e.points, 3);
    free(e.text);
}

static void point_texts(kb *k, const void *arg)
{
    (void)arg;
    block_sum(k, NULL);
    cr_expect_str_eq(strchr(kb_point_text(k, 1), ' '), " barrier");
    cr_expect_str_eq(strchr(kb_point_text(k, 2), ' '), " warp sync");
    cr_expect_eq(strncmp(kb_point_text(k, 1), "llvmgen/test_kb.c:", 18), 0, "%s", kb_point_text(k, 1));
    cr_expect_str_empty(kb_point_text(k, 0));
    cr_expect_str_empty(kb_point_text(k, 4));
    cr_expect(kb_point(k, "reset"));
    cr_expect_eq(kb_points(k), 4);
}
Test(kb, point_texts) { free(emit_with((struct emission_options){ 0 }, point_texts, NULL).text); }

static void leave_out_third(kb *k, const void *arg)
{
    (void)arg;
    kb_kernel_begin(k, "kernel", 32, 0, 0, 0);
    cr_expect(kb_point(k, "one"));
    cr_expect(kb_point(k, "two"));
    cr_expect_not(kb_point(k, "three"));
    cr_expect(kb_point(k, "four"));
    kb_kernel_end(k);
}
Test(kb, points_left_out)
{
    free(emit_with((struct emission_options){ .gen.omit_point = 3 }, leave_out_third, NULL).text);
}
