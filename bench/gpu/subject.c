/* SPDX-License-Identifier: Apache-2.0 */
/* subject.c - what problems and stencils have in common: implementations that are verified before and after they are timed,
 * and the limit beside them. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

void free_outputs(struct bench *b)
{
    for (int o = 0; o < OUTPUTS_MAX; o++) {
        ptxgen_gpu_free(b->a.gpu, b->a.output[o]);
        b->a.output[o] = NULL;
    }
}

static int add_peers(struct bench *b, const char *problem, bool limit, struct impl *impl, int n)
{
    for (int i = 0; i < b->npeers && n < IMPLS_MAX; i++)
        if (strcmp(b->peer[i].problem, problem) == 0) {
            impl[n] = (struct impl){ .synchronous = b->peer[i].synchronous, .limit = limit, .peer = &b->peer[i] };
            impl[n].name = b->peer[i].name;
            n++;
        }
    return n;
}

double subject_limit(struct bench *b, const struct subject *s, struct arena_gpu *a, const char *kind, bool graph)
{
    struct impl impl[IMPLS_MAX];
    struct timing time[IMPLS_MAX];
    struct result row = { .problem = s->name, .mode = graph ? "graph" : "stream", .size = s->size, .is_limit = true };
    int n = add_peers(b, kind, true, impl, 0);

    for (int i = 0; i < n; i++)
        if (!impl_prepare(a, &impl[i]))
            n = 0;
    (graph ? measure_graph : measure_stream)(a, impl, n, b->o.samples, time);
    for (int i = 0; i < n; i++) {
        ptxgen_gpu_free(a->gpu, impl[i].temp);
        if (time[i].samples && (row.time.samples == 0 || time[i].median < row.time.median)) {
            row.time = time[i];
            row.impl = impl[i].name;
        }
    }
    if (row.time.samples == 0)
        return 0;
    row.bytes = (double)a->size.n * (strcmp(kind, "copy") == 0 ? 2 : 1);
    row.limit = row.time.median;
    report_add(&b->report, &row);
    return row.time.median;
}

int subject_open(struct bench *b, const struct subject *s, ptxgen_loaded *const *loaded, struct impl *impl)
{
    char why[160] = "", size[48];
    int n = 0, kept = 0;

    for (int i = 0; i < b->o.nours; i++)
        if (loaded[i]) {
            impl[n] = (struct impl){ .loaded = loaded[i] };
            impl[n++].name = b->o.ours[i].label;
        }
    if (!b->o.alone)
        n = add_peers(b, s->name, false, impl, n);
    for (int i = 0; i < n; i++)
        if (impl_prepare(&b->a, &impl[i]) && s->verify(b, s->of, &impl[i], why, sizeof why)) {
            impl[kept++] = impl[i];
        } else {
            size_text(&s->size, size, sizeof size);
            fprintf(stderr, "gpubench: %s %s %s: %s\n", s->name, size, impl[i].name, why);
            say_diagnostics(b, "before timing");
            ptxgen_gpu_free(b->a.gpu, impl[i].temp);
            b->failed = true;
        }
    return kept;
}

void subject_time(struct bench *b, const struct subject *s, struct impl *impl, int n, double limit, bool graph)
{
    struct timing time[IMPLS_MAX];

    (graph ? measure_graph : measure_stream)(&b->a, impl, n, b->o.samples, time);
    for (int i = 0; i < n; i++) {
        struct result row = { .problem = s->name,
                              .impl = impl[i].name,
                              .mode = graph ? "graph" : "stream",
                              .size = s->size,
                              .time = time[i],
                              .bytes = s->bytes,
                              .limit = limit };

        if (graph && time[i].samples == 0)
            continue;
        row.verified = s->verify(b, s->of, &impl[i], row.why, sizeof row.why);
        b->failed |= !row.verified || time[i].samples == 0;
        report_add(&b->report, &row);
    }
}

void subject_close(struct bench *b, struct impl *impl, int n)
{
    for (int i = 0; i < n; i++)
        ptxgen_gpu_free(b->a.gpu, impl[i].temp);
}
