/* SPDX-License-Identifier: Apache-2.0 */
/* timing.c - measuring launches on a GPU, between two events.
 *
 * A sample is a batch of launches back to back, long enough for the events' resolution, each on the next copy of the
 * arrays.  In a graph the host's part of a launch is paid once, when it is captured.
 */
#include <stdlib.h>

#include "data/copies.h"
#include "progress.h"

enum { BATCH_MAX = 5000, PROBE = 10, GRAPH_LAUNCHES = 20, GRAPH_LAUNCHES_MAX = 200 };
static const double sample_seconds = 0.5e-3;

static ptxgen_status launch(struct subject *x)
{
    void **data = copies_at(&x->copies, x->job, x->next++);
    ptxgen_arguments args = { x->job->size, (const void *const *)data, data + x->job->ninputs, x->job->param };
    return ptxgen_launch(x->job->session, x->loaded, &args, x->stream, NULL);
}

/* What a sample repeats: a launch, or a graph of `launches`. */
struct unit {
    ptxgen_graph graph;
    int launches;
};

/* Seconds on the device and on the host of `repeat` units. */
static ptxgen_status sample(struct subject *x, const struct unit *unit, int repeat, double *device, double *host)
{
    ptxgen_session *s = x->job->session;
    ptxgen_status status = ptxgen_event_record(s, x->gpu, x->begin, x->stream);
    double begin = progress_now();
    for (int i = 0; i < repeat && status == PTXGEN_OK; i++) {
        status = unit->graph ? ptxgen_graph_launch(s, x->gpu, unit->graph, x->stream) : launch(x);
    }
    *host = progress_now() - begin;
    status = status == PTXGEN_OK ? ptxgen_event_record(s, x->gpu, x->end, x->stream) : status;
    return status == PTXGEN_OK ? ptxgen_event_seconds(s, x->gpu, x->begin, x->end, device) : status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double q) { return sorted[(int)((n - 1) * q + 0.5)]; }

static void summarise(double *device, double *host, int samples, int launches, struct timing *out)
{
    qsort(device, (size_t)samples, sizeof *device, ascending);
    qsort(host, (size_t)samples, sizeof *host, ascending);
    out->median = quantile(device, samples, 0.5) / launches;
    out->p10 = quantile(device, samples, 0.1) / launches;
    out->p90 = quantile(device, samples, 0.9) / launches;
    out->host = quantile(host, samples, 0.5) / launches;
    out->samples = samples;
    out->launches = launches;
}

/* How many units make a sample, from a first measurement, which also warms up. */
static ptxgen_status choose_repeat(struct subject *x, const struct unit *unit, int *repeat)
{
    double device = 0, host;
    ptxgen_status status = sample(x, unit, PROBE, &device, &host);
    status = status == PTXGEN_OK ? sample(x, unit, PROBE, &device, &host) : status;
    double wanted = device > 0 ? sample_seconds * PROBE / device : PROBE;
    *repeat = wanted < 1 ? 1 : wanted > BATCH_MAX ? BATCH_MAX : (int)wanted + 1;
    return status;
}

static ptxgen_status time_unit(struct subject *x, const struct unit *unit, struct timing *out)
{
    double device[SAMPLES_MAX], host[SAMPLES_MAX];
    int repeat = 1;
    turn_begin(x);
    ptxgen_status status = choose_repeat(x, unit, &repeat);
    for (int i = 0; i < x->samples && status == PTXGEN_OK; i++) {
        status = sample(x, unit, repeat, &device[i], &host[i]);
    }
    turn_end(x);
    if (status == PTXGEN_OK) {
        summarise(device, host, x->samples, repeat * unit->launches, out);
    }
    return status;
}

ptxgen_status time_probe(struct subject *x, double *seconds)
{
    const struct unit unit = { NULL, 1 };
    double host;
    turn_begin(x);
    ptxgen_status status = sample(x, &unit, 2, seconds, &host);
    turn_end(x);
    *seconds /= 2;
    return status;
}

ptxgen_status time_stream(struct subject *x, struct timing *out)
{
    const struct unit unit = { NULL, 1 };
    return time_unit(x, &unit, out);
}

ptxgen_status time_graph(struct subject *x, struct timing *out)
{
    ptxgen_session *s = x->job->session;
    int64_t copies = x->copies.count;
    struct unit unit = { NULL, copies < GRAPH_LAUNCHES       ? GRAPH_LAUNCHES
                               : copies < GRAPH_LAUNCHES_MAX ? (int)copies
                                                             : GRAPH_LAUNCHES_MAX };
    ptxgen_status status = ptxgen_capture_begin(s, x->gpu, x->stream);
    if (status != PTXGEN_OK) {
        return status;
    }
    for (int i = 0; i < unit.launches && status == PTXGEN_OK; i++) {
        status = launch(x);
    }
    ptxgen_status ended = ptxgen_capture_end(s, x->gpu, x->stream, &unit.graph);
    status = status == PTXGEN_OK ? ended : status;
    status = status == PTXGEN_OK ? time_unit(x, &unit, out) : status;
    ptxgen_graph_destroy(x->gpu, unit.graph);
    return status;
}
