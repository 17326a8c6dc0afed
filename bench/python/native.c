/* SPDX-License-Identifier: Apache-2.0 */
/* native.c - launches by the C library alone, for examples.py: the same spec and memory as the calls from Python beside them. */
#include "ptxgen/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct native {
    ptxgen_session *session;
    ptxgen_gpu *gpu;
    ptxgen_loaded *loaded;
    ptxgen_event begin, end;
    ptxgen_arguments args; /* borrowed */
};

static ptxgen_status open_all(struct native *n, const char *text)
{
    ptxgen_status status = ptxgen_gpu_open(n->session, 0, &n->gpu);
    if (status == PTXGEN_OK)
        status = ptxgen_jit_string(n->session, n->gpu, text, strlen(text), "example", NULL, &n->loaded);
    if (status == PTXGEN_OK)
        status = ptxgen_event_create(n->session, n->gpu, &n->begin);
    return status == PTXGEN_OK ? ptxgen_event_create(n->session, n->gpu, &n->end) : status;
}

/* NULL: the reason was printed.  Arrays: inputs, then outputs. */
struct native *native_open(const char *text, const int64_t *size, void *const *array, int inputs,
                           const ptxgen_value *param)
{
    struct native *n = calloc(1, sizeof *n);
    if (!n || ptxgen_session_create(&n->session) != PTXGEN_OK)
        return NULL;
    n->args = (ptxgen_arguments){ size, (const void *const *)array, array + inputs, param };
    if (open_all(n, text) == PTXGEN_OK)
        return n;
    char *why = ptxgen_diagnostics_text(n->session, 0);
    fputs(why ? why : "out of memory\n", stderr);
    ptxgen_free(why);
    return NULL;
}

static ptxgen_status launch(struct native *n, int count)
{
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < count && status == PTXGEN_OK; i++)
        status = ptxgen_launch(n->session, n->loaded, &n->args, NULL, NULL);
    return status;
}

/* Seconds of one of `count` launches on the default stream, on the GPU and of the processor; negative: one failed. */
double native_seconds(struct native *n, int count)
{
    double seconds = -1;
    ptxgen_status status = ptxgen_event_record(n->session, n->gpu, n->begin, NULL);
    if (status == PTXGEN_OK)
        status = launch(n, count);
    if (status == PTXGEN_OK)
        status = ptxgen_event_record(n->session, n->gpu, n->end, NULL);
    if (status == PTXGEN_OK)
        status = ptxgen_event_seconds(n->session, n->gpu, n->begin, n->end, &seconds);
    return status == PTXGEN_OK ? seconds / count : -1;
}

double native_host_seconds(struct native *n, int count)
{
    struct timespec begin, end;
    timespec_get(&begin, TIME_UTC);
    const ptxgen_status status = launch(n, count);
    timespec_get(&end, TIME_UTC);
    const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    return status == PTXGEN_OK ? seconds / count : -1;
}
