/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - one program at one size: every alignment, repeated, on several streams, from a graph, in place.
 *
 * All launches of a round are enqueued together, each with outputs of its own, and waited for and read back once.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_tests.h"

/* Copies of the outputs: of launches one after the other, of each stream, of the graph. */
enum {
    REPEATS = 3,
    OF_STREAM = REPEATS,
    OF_GRAPH = OF_STREAM + STREAMS,
    COPIES = OF_GRAPH + 1,
    LAUNCHES_PER_STREAM = 4
};
_Static_assert((int)COPIES <= (int)COPIES_MAX, "a round fits the bed");

/* The driver ends a capture in one thread when another waits for the context, as unloading and freeing do: captures are
 * alone. */
static pthread_rwlock_t capturing = PTHREAD_RWLOCK_INITIALIZER;
void begin_context_work(void) { pthread_rwlock_rdlock(&capturing); }
void end_context_work(void) { pthread_rwlock_unlock(&capturing); }
void begin_capture(void) { pthread_rwlock_wrlock(&capturing); }
void end_capture(void) { pthread_rwlock_unlock(&capturing); }

/* ---- launching ------------------------------------------------------------------------------- */
static bool start(struct suite *t, const struct target *target, int copy, ptxgen_stream stream)
{
    const ptxgen_arguments args = bed_arguments(t->bed, copy);

    return (t->gpu ? ptxgen_launch(t->s, target->loaded, &args, stream, NULL)
                   : ptxgen_host_run(t->s, target->host, &args, t->modes)) == PTXGEN_OK;
}

static bool wait(struct suite *t, int streams)
{
    bool ok = true;

    for (int i = 0; i < streams && t->gpu; i++)
        ok &= ptxgen_stream_wait(t->s, t->gpu, t->stream[i]) == PTXGEN_OK;
    return ok;
}

static bool repeat(struct suite *t, const struct target *target, int n, char *why, size_t length)
{
    for (int k = 0; k < n; k++)
        if (!start(t, target, k, t->stream[0])) {
            snprintf(why, length, "did not run");
            return false;
        }
    return true;
}

/* Several launches on each of several streams at once, every stream with outputs of its own. */
static bool overlap(struct suite *t, const struct target *target, char *why, size_t length)
{
    for (int k = 0; k < LAUNCHES_PER_STREAM; k++)
        for (int i = 0; i < STREAMS; i++)
            if (!start(t, target, OF_STREAM + i, t->stream[i])) {
                snprintf(why, length, "did not run on %d streams at once", STREAMS);
                return false;
            }
    return true;
}

/* Two launches in a graph, replayed three times. */
static bool replay(struct suite *t, const struct target *target, char *why, size_t length)
{
    const ptxgen_arguments args = bed_arguments(t->bed, OF_GRAPH);
    ptxgen_stream stream = t->stream[1];
    ptxgen_graph graph = NULL;
    bool ok = ptxgen_prepare(t->s, target->loaded, &args, stream) == PTXGEN_OK;

    if (ok) {
        begin_capture();
        ok = ptxgen_capture_begin(t->s, t->gpu, stream) == PTXGEN_OK;
        if (ok) {
            ok = start(t, target, OF_GRAPH, stream) && start(t, target, OF_GRAPH, stream);
            ok = ptxgen_capture_end(t->s, t->gpu, stream, &graph) == PTXGEN_OK && ok;
        }
        end_capture();
    }
    for (int k = 0; k < 3 && ok; k++)
        ok = ptxgen_graph_launch(t->s, t->gpu, graph, stream) == PTXGEN_OK;
    ok = ok && ptxgen_stream_wait(t->s, t->gpu, stream) == PTXGEN_OK;
    ptxgen_graph_destroy(t->gpu, graph);
    if (!ok)
        snprintf(why, length, "did not run from a graph");
    return ok;
}

/* ---- rounds ---------------------------------------------------------------------------------- */
static bool check_round(struct suite *t, int copies, void **keep, char *why, size_t length)
{
    const double since = seconds_now();
    bool ok = bed_fetch(t);

    if (!ok)
        snprintf(why, length, "the outputs could not be read");
    for (int c = 0; c < copies && ok; c++) {
        ok = bed_check(t, c, keep, why, length);
        if (!ok)
            snprintf(why + strlen(why), length - strlen(why), " (launch %d of %d%s)", c, copies,
                     c >= OF_GRAPH    ? ", from a graph"
                     : c >= OF_STREAM ? ", streams at once"
                                      : "");
    }
    note_time(PHASE_COMPARE, since);
    return ok;
}

/* `all`: with streams and a graph. */
static bool run_round(struct suite *t, const struct target *target, int repeats, bool all, void **keep, char *why,
                      size_t length)
{
    const double since = seconds_now();
    bool ok = bed_poison(t);

    if (!ok)
        snprintf(why, length, "no memory");
    ok = ok && repeat(t, target, repeats, why, length) &&
         (!all || (overlap(t, target, why, length) && replay(t, target, why, length)));
    if (ok && !wait(t, all ? STREAMS : 1)) {
        snprintf(why, length, "did not finish");
        ok = false;
    }
    note_time(PHASE_DEVICE, since);
    return ok && check_round(t, all ? COPIES : repeats, keep, why, length);
}

static int64_t input_elements(const struct sample *x)
{
    int64_t elements = 0;

    for (int i = 0; i < x->ninputs; i++)
        elements += ptxgen_array_elements(&x->input[i], x->size);
    return elements;
}

/* The protocols between blocks run a hundred times where they have some tens of tiles (stress.c: a thousand times). */
static int rounds_of(const struct suite *t, const struct sample *x, int shift)
{
    const int64_t elements = input_elements(x);

    if (!t->full || t->sanitize || t->gpu == NULL)
        return 1;
    return shift == 0 && elements >= 130000 && elements <= 200000 ? 100 / REPEATS + 1 : 1;
}

static bool run_rounds(struct suite *t, const struct target *target, struct sample *x, int shift, int in_place,
                       char *why, size_t length)
{
    const bool single = t->sanitize || t->gpu == NULL, all = !single && shift == 0 && in_place < 0;
    const int repeats = single || in_place >= 0 ? 1 : REPEATS;
    const bool same_bits = target->same_bits || only_integers(x);
    void *keep[ARRAYS_MAX] = { NULL };
    const double since = seconds_now();
    bool ok = bed_lay(t, x, shift, all ? COPIES : repeats, in_place);

    if (!ok)
        snprintf(why, length, "no memory");
    note_time(PHASE_DEVICE, since);
    for (int k = in_place >= 0 ? 1 : rounds_of(t, x, shift); k > 0 && ok; k--)
        ok = run_round(t, target, repeats, all && k == 1, same_bits ? keep : NULL, why, length);
    ok = ok && bed_check_inputs(t, why, length);
    bed_clear(t);
    for (int o = 0; o < ARRAYS_MAX; o++)
        free(keep[o]);
    if (!ok)
        snprintf(why + strlen(why), length - strlen(why), " (pointers %d elements off%s)", shift,
                 in_place >= 0 ? ", in place" : "");
    return ok;
}

/* ---- refusals -------------------------------------------------------------------------------- */
/* What the reference refuses must be refused. */
static bool run_refused(struct suite *t, const struct target *target, struct sample *x, char *why, size_t length)
{
    const bool laid = bed_lay(t, x, 0, 1, -1), ok = laid && !start(t, target, 0, t->stream[0]);

    ptxgen_diagnostics_clear(t->s);
    bed_clear(t);
    if (!ok)
        snprintf(why, length, laid ? "ran, but the reference refuses these sizes" : "no memory");
    return ok;
}

/* Pointers as aligned as those of the bed, far from each other, to nothing. */
static void stand_ins(const struct sample *x, int shift, int in_place, const void **in, void **out)
{
    const uintptr_t far = (uintptr_t)1 << 40;

    for (int o = 0; o < x->noutputs; o++)
        out[o] = (void *)(far * (uintptr_t)(o + 1) + (size_t)shift * x->output[o].element_size);
    for (int i = 0; i < x->ninputs; i++)
        in[i] = i == in_place ? out[0]
                              : (void *)(far * (uintptr_t)(ARRAYS_MAX + i) + (size_t)shift * x->input[i].element_size);
}

/* A strategy that was asked for by name, here or by the spec, may be for a range of sizes or for aligned pointers only,
 * and says so. */
static bool out_of_range(struct suite *t, const struct target *target, struct sample *x, int shift, int in_place)
{
    const void *in[ARRAYS_MAX];
    void *out[ARRAYS_MAX];
    const ptxgen_arguments args = { x->size, in, out, x->param };
    ptxgen_diagnostic last = { 0 };
    bool refused;

    if (!target->pinned)
        return false;
    if (t->gpu) {
        stand_ins(x, shift, in_place, in, out);
        refused = ptxgen_launch_case(t->s, target->loaded, &args) == NULL;
    } else {
        refused = bed_lay(t, x, shift, 1, in_place) && !start(t, target, 0, NULL);
        bed_clear(t);
    }
    if (refused)
        ptxgen_diagnostic_get(t->s, ptxgen_diagnostic_count(t->s) - 1, &last);
    refused = refused && last.message && strstr(last.message, "no case of");
    ptxgen_diagnostics_clear(t->s);
    return refused;
}

/* Have the driver compile what the launch needs, so that its time is known. */
static bool prepare(struct suite *t, const struct target *target, const struct sample *x, char *why, size_t length)
{
    const void *in[ARRAYS_MAX] = { NULL };
    void *out[ARRAYS_MAX] = { NULL };
    const ptxgen_arguments args = { x->size, in, out, x->param };
    const double since = seconds_now();
    bool ok = t->gpu == NULL || ptxgen_prepare(t->s, target->loaded, &args, t->stream[0]) == PTXGEN_OK;

    note_time(PHASE_LOAD, since);
    if (!ok)
        snprintf(why, length, "could not be prepared");
    return ok;
}

enum outcome run_target(struct suite *t, const struct target *target, struct sample *x, char *why, size_t length)
{
    static const int shifts[] = { 0, 1, 3, 5 };
    const int nshifts = t->full && input_elements(x) < 20000 ? 4 : 2;

    if (x->refused)
        return run_refused(t, target, x, why, length) ? OUTCOME_REFUSED : OUTCOME_FAILED;
    if (out_of_range(t, target, x, 0, -1))
        return OUTCOME_OUT_OF_RANGE;
    if (!prepare(t, target, x, why, length))
        return OUTCOME_FAILED;
    for (int i = 0; i < nshifts; i++)
        if (i > 0 && out_of_range(t, target, x, shifts[i], -1))
            note_refused_shift();
        else if (!run_rounds(t, target, x, shifts[i], -1, why, length))
            return OUTCOME_FAILED;
    if (target->in_place >= 0 && !out_of_range(t, target, x, 0, target->in_place) &&
        !run_rounds(t, target, x, 0, target->in_place, why, length))
        return OUTCOME_FAILED;
    return sample_outcome(x);
}
