/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - one program at one size: every alignment, repeated, on several streams, from a graph. */
#include "gpu_tests.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256 };

/* Memory of one launch: inputs shared, outputs its own. `shift` elements off the aligned beginning. */
struct memory {
    struct suite *t;
    const struct sample *x;
    void *in_base[ARRAYS_MAX], *out_base[ARRAYS_MAX];
    const void *in[ARRAYS_MAX];
    void *out[ARRAYS_MAX];
    int shift;
};

/* ---- memory on the device or the host -------------------------------------------------------- */
static void *get(struct suite *t, size_t bytes)
{
    void *p = NULL;

    if (t->gpu == NULL)
        return aligned_alloc(256, (bytes + 256) / 256 * 256);
    begin_context_work();
    ptxgen_status status = ptxgen_gpu_alloc(t->s, t->gpu, bytes, &p);
    end_context_work();
    return status == PTXGEN_OK ? p : NULL;
}

static void give(struct suite *t, void *p)
{
    begin_context_work();
    if (t->gpu)
        ptxgen_gpu_free(t->gpu, p);
    else
        free(p);
    end_context_work();
}

static bool put(struct suite *t, void *to, const void *from, size_t bytes)
{
    begin_context_work();
    bool ok = t->gpu == NULL || ptxgen_gpu_write(t->s, t->gpu, to, from, bytes) == PTXGEN_OK;
    if (t->gpu == NULL)
        memcpy(to, from, bytes);
    end_context_work();
    return ok;
}

static bool take(struct suite *t, void *to, const void *from, size_t bytes)
{
    if (t->gpu)
        return ptxgen_gpu_read(t->s, t->gpu, to, from, bytes) == PTXGEN_OK;
    memcpy(to, from, bytes);
    return true;
}

static bool poison(struct suite *t, void *p, size_t bytes, ptxgen_stream stream)
{
    if (t->gpu)
        return ptxgen_gpu_fill(t->s, t->gpu, p, POISON, bytes, stream) == PTXGEN_OK;
    memset(p, POISON, bytes);
    return true;
}

static size_t padded(const ptxgen_array_info *a, const struct sample *x, int shift)
{
    return array_bytes(a, x->size) + (size_t)shift * a->element_size + GUARD;
}

static bool memory_create(struct suite *t, const struct sample *x, int shift, const struct memory *shared,
                          struct memory *m)
{
    *m = (struct memory){ .t = t, .x = x, .shift = shift };
    for (int i = 0; i < x->ninputs; i++) {
        size_t lead = (size_t)shift * x->input[i].element_size;

        if (shared) {
            m->in[i] = shared->in[i];
            continue;
        }
        m->in_base[i] = get(t, padded(&x->input[i], x, shift));
        m->in[i] = m->in_base[i] ? (char *)m->in_base[i] + lead : NULL;
        if (!m->in[i] || !put(t, (char *)m->in_base[i] + lead, x->in[i], array_bytes(&x->input[i], x->size)))
            return false;
    }
    for (int o = 0; o < x->noutputs; o++) {
        m->out_base[o] = get(t, padded(&x->output[o], x, shift));
        if (!m->out_base[o])
            return false;
        m->out[o] = (char *)m->out_base[o] + (size_t)shift * x->output[o].element_size;
    }
    return true;
}

static void memory_finish(struct memory *m)
{
    for (int i = 0; i < ARRAYS_MAX; i++) {
        give(m->t, m->in_base[i]);
        give(m->t, m->out_base[i]);
    }
}

/* ---- launching and checking ------------------------------------------------------------------ */
static ptxgen_arguments arguments(const struct memory *m)
{
    return (ptxgen_arguments){ m->x->size, m->in, m->out, m->x->param };
}

static bool poison_outputs(struct memory *m, ptxgen_stream stream)
{
    for (int o = 0; o < m->x->noutputs; o++)
        if (!poison(m->t, m->out_base[o], padded(&m->x->output[o], m->x, m->shift), stream))
            return false;
    return true;
}

static ptxgen_status start(struct suite *t, const struct target *target, const struct memory *m, ptxgen_stream stream)
{
    ptxgen_arguments args = arguments(m);

    return t->gpu ? ptxgen_launch(t->s, target->loaded, &args, stream, NULL)
                  : ptxgen_host_run(t->s, target->host, &args, t->modes);
}

static bool finish(struct suite *t, ptxgen_stream stream)
{
    return t->gpu == NULL || ptxgen_stream_wait(t->s, t->gpu, stream) == PTXGEN_OK;
}

/* The whole padded output is read: what lies around the array must still be poison. */
static bool check_output(const struct memory *m, int o, void **keep, char *why, size_t length)
{
    const ptxgen_array_info *a = &m->x->output[o];
    size_t lead = (size_t)m->shift * a->element_size, bytes = array_bytes(a, m->x->size),
           all = padded(a, m->x, m->shift);
    unsigned char *got = malloc(all);
    bool ok = got && take(m->t, got, m->out_base[o], all);

    for (size_t i = 0; ok && i < all; i++)
        if ((i < lead || i >= lead + bytes) && got[i] != POISON) {
            snprintf(why, length, "%s: wrote byte %lld outside the array", a->name, (long long)i - (long long)lead);
            ok = false;
        }
    ok = ok && sample_check(m->x, o, got + lead, why, length);
    if (ok && keep && *keep && memcmp(*keep, got + lead, bytes) != 0) {
        snprintf(why, length, "%s: other bits than the first time", a->name);
        ok = false;
    }
    if (ok && keep && *keep == NULL && (*keep = malloc(bytes + 1)))
        memcpy(*keep, got + lead, bytes);
    free(got);
    return ok;
}

static bool check_outputs(const struct memory *m, void **keep, char *why, size_t length)
{
    for (int o = 0; o < m->x->noutputs; o++)
        if (!check_output(m, o, keep ? &keep[o] : NULL, why, length))
            return false;
    return true;
}

/* ---- the checks ------------------------------------------------------------------------------ */
static int repetitions(const struct suite *t, const struct sample *x)
{
    int64_t elements = 0;

    for (int i = 0; i < x->ninputs; i++)
        elements += ptxgen_array_elements(&x->input[i], x->size);
    if (t->sanitize || t->gpu == NULL)
        return 1;
    return !t->full ? 3 : elements >= 100000 && elements <= 200000 ? 1000 : 10;
}

static bool repeat(struct suite *t, const struct target *target, struct memory *m, char *why, size_t length)
{
    bool same_bits = target->same_bits || only_integers(m->x), ok = true;
    void *keep[ARRAYS_MAX] = { NULL };

    for (int k = repetitions(t, m->x); k > 0 && ok; k--) {
        ok = poison_outputs(m, t->stream[0]) && start(t, target, m, t->stream[0]) == PTXGEN_OK &&
             finish(t, t->stream[0]);
        if (!ok)
            snprintf(why, length, "did not run");
        ok = ok && check_outputs(m, same_bits ? keep : NULL, why, length);
    }
    for (int o = 0; o < ARRAYS_MAX; o++)
        free(keep[o]);
    return ok;
}

/* Several launches on each of several streams at once, every stream with outputs of its own. */
static bool overlap(struct suite *t, const struct target *target, const struct memory *shared, char *why, size_t length)
{
    struct memory m[STREAMS];
    bool ok = true;
    int made = 0;

    for (; made < STREAMS && ok; made++)
        ok = memory_create(t, shared->x, shared->shift, shared, &m[made]) && poison_outputs(&m[made], t->stream[made]);
    for (int k = 0; k < 8 && ok; k++)
        for (int i = 0; i < STREAMS && ok; i++)
            ok = start(t, target, &m[i], t->stream[i]) == PTXGEN_OK;
    for (int i = 0; i < STREAMS && ok; i++)
        ok = finish(t, t->stream[i]);
    if (!ok)
        snprintf(why, length, "did not run on %d streams at once", STREAMS);
    for (int i = 0; i < STREAMS && ok; i++)
        ok = check_outputs(&m[i], NULL, why, length);
    for (int i = 0; i < made; i++)
        memory_finish(&m[i]);
    return ok;
}

/* The driver ends a capture in one thread when another waits for the context, as unloading and freeing do: captures are
 * alone. */
static pthread_rwlock_t capturing = PTHREAD_RWLOCK_INITIALIZER;
void begin_context_work(void) { pthread_rwlock_rdlock(&capturing); }
void end_context_work(void) { pthread_rwlock_unlock(&capturing); }

/* Two launches in a graph, replayed three times. */
static bool replay(struct suite *t, const struct target *target, struct memory *m, char *why, size_t length)
{
    ptxgen_arguments args = arguments(m);
    ptxgen_stream stream = t->stream[1];
    ptxgen_graph graph = NULL;
    bool ok = ptxgen_prepare(t->s, target->loaded, &args, stream) == PTXGEN_OK && poison_outputs(m, stream) &&
              pthread_rwlock_wrlock(&capturing) == 0;

    if (ok && ptxgen_capture_begin(t->s, t->gpu, stream) == PTXGEN_OK) {
        ok = start(t, target, m, stream) == PTXGEN_OK && start(t, target, m, stream) == PTXGEN_OK;
        ok = ptxgen_capture_end(t->s, t->gpu, stream, &graph) == PTXGEN_OK && ok;
        pthread_rwlock_unlock(&capturing);
    } else if (ok) {
        ok = false;
        pthread_rwlock_unlock(&capturing);
    }
    for (int k = 0; k < 3 && ok; k++)
        ok = ptxgen_graph_launch(t->s, t->gpu, graph, stream) == PTXGEN_OK;
    ok = ok && finish(t, stream);
    ptxgen_graph_destroy(t->gpu, graph);
    if (!ok)
        snprintf(why, length, "did not run from a graph");
    return ok && check_outputs(m, NULL, why, length);
}

static bool run_shifted(struct suite *t, const struct target *target, const struct sample *x, int shift, char *why,
                        size_t length)
{
    struct memory m;
    bool ok = memory_create(t, x, shift, NULL, &m);

    if (!ok)
        snprintf(why, length, "no memory");
    ok = ok && repeat(t, target, &m, why, length);
    if (ok && t->gpu && !t->sanitize && shift == 0)
        ok = overlap(t, target, &m, why, length) && replay(t, target, &m, why, length);
    memory_finish(&m);
    return ok;
}

/* What the reference refuses must be refused. */
static bool run_refused(struct suite *t, const struct target *target, const struct sample *x, char *why, size_t length)
{
    struct memory m;
    bool ok = memory_create(t, x, 0, NULL, &m) && start(t, target, &m, t->stream[0]) != PTXGEN_OK;

    ptxgen_diagnostics_clear(t->s);
    memory_finish(&m);
    if (!ok)
        snprintf(why, length, "ran, but the reference refuses these sizes");
    return ok;
}

/* A strategy that was asked for by name may be for a range of sizes or for aligned pointers only, and says so. */
static bool out_of_range(struct suite *t, const struct target *target, const struct sample *x, int shift)
{
    struct memory m;
    ptxgen_diagnostic last = { 0 };
    bool refused = memory_create(t, x, shift, NULL, &m) && start(t, target, &m, t->stream[0]) != PTXGEN_OK;

    if (refused)
        ptxgen_diagnostic_get(t->s, ptxgen_diagnostic_count(t->s) - 1, &last);
    else
        finish(t, t->stream[0]);
    refused = refused && strcmp(target->name, "default") != 0 && last.message && strstr(last.message, "no case of");
    ptxgen_diagnostics_clear(t->s);
    memory_finish(&m);
    return refused;
}

enum outcome run_target(struct suite *t, const struct target *target, const struct sample *x, char *why, size_t length)
{
    static const int shifts[] = { 0, 1, 3, 5 };
    int nshifts = t->full ? 4 : 2;

    if (x->refused)
        return run_refused(t, target, x, why, length) ? OUTCOME_REFUSED : OUTCOME_FAILED;
    if (out_of_range(t, target, x, 0))
        return OUTCOME_OUT_OF_RANGE;
    for (int i = 0; i < nshifts; i++)
        if ((i == 0 || !out_of_range(t, target, x, shifts[i])) && !run_shifted(t, target, x, shifts[i], why, length)) {
            snprintf(why + strlen(why), length - strlen(why), " (pointers %d elements off)", shifts[i]);
            return OUTCOME_FAILED;
        }
    return OUTCOME_PASSED;
}
