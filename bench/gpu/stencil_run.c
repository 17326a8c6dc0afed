/* SPDX-License-Identifier: Apache-2.0 */
/* stencil_run.c - a stencil from data to verified times.
 *
 * Per stencil and extents: inputs are slices of one pool that repeats a random block (stencils.c), at least 1 GiB
 * altogether, so that each launch reads from memory; outputs have slots of 256 MiB altogether.  Bytes are what a
 * perfect implementation moves, each input read once and each output written once; the limit is the best copy that
 * moves as many, in the same run.  Every implementation is verified before and after it is timed, on the first points,
 * the last and some between.
 */
#include <stdlib.h>
#include <string.h>

#include "stencil_bench.h"

enum { CHECKED_POINTS = 1 << 20, STRIDE = 31 };
static const size_t inputs_total = (size_t)1 << 30, outputs_total = (size_t)1 << 28;

/* The device's pool: scalars of one type, the block repeated. */
struct pool {
    enum scalar type;
    void *block, *device;
    size_t bytes;
};
struct run {
    struct bench *b;
    struct field f;
    int64_t points;
    struct peer_size size;
    double bytes;
};

/* ---- memory -------------------------------------------------------------------------------------- */
static void drop_pool(struct bench *b, struct pool *pool)
{
    ptxgen_gpu_free(b->a.gpu, pool->device);
    free(pool->block);
    *pool = (struct pool){ 0 };
}

static bool fill_pool(struct bench *b, struct pool *pool, enum scalar type, size_t bytes)
{
    const size_t period = (size_t)STENCIL_PERIOD * (size_t)scalar_bytes(type);
    bool ok;

    if (pool->block && pool->type == type && pool->bytes >= bytes)
        return true;
    drop_pool(b, pool);
    pool->type = type;
    pool->bytes = (bytes + period - 1) / period * period;
    pool->block = stencil_block(type);
    ok = pool->block && ptxgen_gpu_alloc(b->a.s, b->a.gpu, pool->bytes, &pool->device) == PTXGEN_OK;
    for (size_t at = 0; ok && at < pool->bytes; at += period)
        ok = ptxgen_gpu_write(b->a.s, b->a.gpu, (char *)pool->device + at, pool->block, period) == PTXGEN_OK;
    return ok;
}

/* Slices of inputs begin at the same place of the block, wherever they lie in the pool. */
static bool place_inputs(struct run *r, struct pool *pool)
{
    const struct stencil *s = r->f.stencil;
    const size_t scalar = (size_t)scalar_bytes(s->type), period = (size_t)STENCIL_PERIOD * scalar;
    struct arena_gpu *a = &r->b->a;
    size_t slice = 0, at = 0, begin[INPUTS_MAX];

    for (int i = 0; i < s->ninputs; i++) {
        const size_t bytes = (size_t)r->points * (size_t)s->in_parts[i] * scalar;

        a->input_stride[i] = ((size_t)stencil_first(i) * scalar + bytes + period - 1) / period * period;
        slice += bytes;
    }
    a->slices = (int64_t)((inputs_total + slice - 1) / slice);
    for (int i = 0; i < s->ninputs; i++) {
        begin[i] = at + (size_t)stencil_first(i) * scalar;
        at += (size_t)a->slices * a->input_stride[i];
    }
    if ((double)at < r->bytes / 2) /* the copy that is the limit reads from here too */
        at = (size_t)(r->bytes / 2);
    a->ninputs = s->ninputs;
    if (!fill_pool(r->b, pool, s->type, at))
        return false;
    r->f.block = pool->block;
    for (int i = 0; i < s->ninputs; i++)
        a->input[i] = (char *)pool->device + begin[i];
    return true;
}

static bool place_outputs(struct run *r)
{
    const struct stencil *s = r->f.stencil;
    struct arena_gpu *a = &r->b->a;
    size_t slot = 0;
    bool ok = true;

    a->noutputs = s->noutputs;
    for (int o = 0; o < s->noutputs; o++) {
        a->output_stride[o] = ((size_t)r->points * (size_t)(s->out_parts[o] * scalar_bytes(s->type)) + 255) / 256 * 256;
        slot += a->output_stride[o];
    }
    a->slots = (int64_t)((outputs_total + slot - 1) / slot);
    for (int o = 0; o < s->noutputs && ok; o++)
        ok = ptxgen_gpu_alloc(a->s, a->gpu, a->output_stride[o] * (size_t)a->slots, &a->output[o]) == PTXGEN_OK;
    return ok;
}

/* ---- verification -------------------------------------------------------------------------------- */
/* Points [first, first + count) of an output of the first slot. */
static bool check_range(struct run *r, int output, int64_t first, int64_t count, char *why, size_t length)
{
    const struct stencil *s = r->f.stencil;
    struct arena_gpu *a = &r->b->a;
    const size_t element = (size_t)(s->out_parts[output] * scalar_bytes(s->type)), bytes = (size_t)count * element;
    void *got = malloc(bytes);
    bool ok = got && ptxgen_gpu_read(a->s, a->gpu, got, (char *)a->output[output] + (size_t)first * element, bytes) ==
                         PTXGEN_OK;

    ok = ok && stencil_check(&r->f, output, first, count, count <= CHECKED_POINTS / 4 ? 1 : STRIDE, got, why, length);
    free(got);
    return ok;
}

static bool verify(struct bench *b, void *of, struct impl *impl, char *why, size_t length)
{
    struct run *r = of;
    struct arena_gpu *a = &b->a;
    const int64_t n = r->points, part = n < CHECKED_POINTS ? n : CHECKED_POINTS;
    bool ok = true;

    for (int o = 0; o < a->noutputs && ok; o++)
        ok = ptxgen_gpu_fill(a->s, a->gpu, a->output[o], 0x7f, a->output_stride[o], a->stream) == PTXGEN_OK;
    a->next = 0;
    if (!ok || !impl_launch(a, impl) || ptxgen_stream_wait(a->s, a->gpu, a->stream) != PTXGEN_OK) {
        snprintf(why, length, "it did not run");
        return false;
    }
    for (int o = 0; o < a->noutputs && ok; o++)
        ok = check_range(r, o, 0, part, why, length) && check_range(r, o, (n - part) / 2, part, why, length) &&
             check_range(r, o, n - part, part, why, length);
    return ok;
}

/* ---- times ------------------------------------------------------------------------------------------ */
/* The best copy that reads and writes as many bytes together. */
static double copy_limit(struct run *r, const struct pool *pool, const struct subject *s)
{
    struct arena_gpu a = r->b->a;
    double seconds;

    a.size = (struct peer_size){ .n = (int64_t)(r->bytes / 2) };
    a.input[0] = pool->device;
    a.input_stride[0] = ((size_t)a.size.n + 255) / 256 * 256;
    a.slices = (int64_t)(pool->bytes / a.input_stride[0]);
    a.slices += a.slices == 0;
    a.ninputs = a.noutputs = 1;
    a.slots = 1;
    if (ptxgen_gpu_alloc(a.s, a.gpu, a.input_stride[0], &a.output[0]) != PTXGEN_OK)
        return 0;
    seconds = subject_limit(r->b, s, &a, "copy", false);
    ptxgen_gpu_free(a.gpu, a.output[0]);
    return seconds;
}

static void run_extent(struct run *r, struct pool *pool, ptxgen_loaded **loaded)
{
    struct bench *b = r->b;
    struct impl impl[IMPLS_MAX];
    struct subject s = { r->f.stencil->name, r->size, r->bytes, verify, r };

    if (place_inputs(r, pool) && place_outputs(r)) {
        b->a.next = 0;
        int n = subject_open(b, &s, loaded, impl);

        subject_time(b, &s, impl, n, copy_limit(r, pool, &s), false);
        subject_close(b, impl, n);
    } else {
        say_diagnostics(b, "no memory for the data");
        b->failed = true;
    }
    free_outputs(b);
}

/* ---- stencils --------------------------------------------------------------------------------------- */
/* Extents of a stencil: those asked for, or its own. */
static int extents_of(const struct bench *b, const struct stencil *s, struct extent *out)
{
    static const struct extent own[] = { { 2, { 4095, 4095 } },    { 2, { 8191, 8191 } },    { 2, { 16383, 16383 } },
                                         { 2, { 4096, 4096 } },    { 2, { 8192, 8192 } },    { 2, { 16384, 16384 } },
                                         { 3, { 255, 255, 255 } }, { 3, { 511, 511, 511 } }, { 3, { 511, 1023, 1023 } },
                                         { 3, { 256, 256, 256 } }, { 3, { 512, 512, 512 } } };
    static const struct extent quick[] = {
        { 2, { 1023, 1023 } }, { 2, { 4096, 4096 } }, { 3, { 127, 127, 127 } }, { 3, { 256, 256, 256 } }
    };
    const struct extent *e = b->o.nextents ? b->o.extent : b->o.quick ? quick : own;
    int count = b->o.nextents ? b->o.nextents
                : b->o.quick  ? (int)(sizeof quick / sizeof *quick)
                              : (int)(sizeof own / sizeof *own),
        n = 0;

    for (int i = 0; i < count; i++)
        if (e[i].rank == s->rank)
            out[n++] = e[i];
    return n;
}

static void set_extent(struct run *r, const struct extent *e)
{
    const struct stencil *s = r->f.stencil;
    double parts = 0;

    r->points = 1;
    for (int d = 0; d < 3; d++) {
        r->f.extent[d] = d < 3 - e->rank ? 1 : e->at[d - (3 - e->rank)];
        r->points *= r->f.extent[d];
    }
    for (int d = 0; d < e->rank; d++)
        r->b->a.psize[d] = e->at[d];
    for (int i = 0; i < s->ninputs; i++)
        parts += s->in_parts[i];
    for (int o = 0; o < s->noutputs; o++)
        parts += s->out_parts[o];
    r->bytes = (double)r->points * scalar_bytes(s->type) * parts;
    r->size = (struct peer_size){ .n = r->points, .param = r->f.param };
    memcpy(r->size.extent, r->f.extent, sizeof r->size.extent);
    r->b->a.size = r->size;
}

/* The spec's params: the stencil's own, then one step. */
static bool set_params(struct bench *b, const struct stencil *s, const ptxgen_problem *problem, ptxgen_value *param)
{
    const int n = ptxgen_problem_param_count(problem);
    ptxgen_param_info info;

    for (int i = 0; i < n && i <= STENCIL_PARAMS; i++) {
        if (ptxgen_problem_param(problem, i, &info) != PTXGEN_OK)
            return false;
        if (strcmp(info.name, "steps") == 0)
            param[i].i = 1;
        else if (i < STENCIL_PARAMS)
            param[i].f = (float)s->param[i];
    }
    b->a.param = param;
    return true;
}

static void run_stencil(struct bench *b, const struct stencil *s, struct pool *pool)
{
    ptxgen_program *program[LIST_MAX];
    ptxgen_loaded *loaded[LIST_MAX];
    ptxgen_problem *problem = NULL;
    ptxgen_value param[STENCIL_PARAMS + 1] = { { 0 } };
    struct extent extent[LIST_MAX];
    struct run r = { .b = b, .f = { .stencil = s, .param = s->param } };
    const int n = extents_of(b, s, extent);
    bool any = false;

    for (int i = 0; i < b->o.nours; i++)
        any |= load_ours(b, s->name, &b->o.ours[i], &problem, &program[i], &loaded[i]);
    any = any && problem && set_params(b, s, problem, param);
    b->failed |= !any;
    for (int i = 0; i < n && any; i++) {
        set_extent(&r, &extent[i]);
        run_extent(&r, pool, loaded);
    }
    for (int i = 0; i < b->o.nours; i++) {
        ptxgen_loaded_destroy(loaded[i]);
        ptxgen_program_destroy(program[i]);
    }
    memset(b->a.input, 0, sizeof b->a.input);
    b->a.param = NULL;
}

void run_stencils(struct bench *b)
{
    struct pool pool = { 0 };

    drop_inputs(b); /* of the other problems */
    for (int i = 0; i < nstencils; i++)
        if (asked_for(&b->o, stencils[i].name))
            run_stencil(b, &stencils[i], &pool);
    drop_pool(b, &pool);
}
