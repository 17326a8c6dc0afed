/* SPDX-License-Identifier: Apache-2.0 */
/* native.c - launches by the C library alone, for examples.py: the same spec and memory as the calls from Python beside them. */
#include "ptxgen/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct native {
    ptxgen_session *session;
    ptxgen_gpu *gpu;
    ptxgen_loaded *loaded;
    ptxgen_event begin, end;
    int64_t size[16];
    const void *input[16];
    void *output[16];
    ptxgen_value param[16];
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
struct native *native_open(const char *text, int sizes, const int64_t *size, int inputs, int outputs,
                           void *const *array, int params, const int64_t *param)
{
    struct native *n = calloc(1, sizeof *n);
    if (!n || sizes > 16 || inputs > 16 || outputs > 16 || params > 16 ||
        ptxgen_session_create(&n->session) != PTXGEN_OK)
        return NULL;
    for (int i = 0; i < sizes; i++)
        n->size[i] = size[i];
    for (int i = 0; i < inputs; i++)
        n->input[i] = array[i];
    for (int i = 0; i < outputs; i++)
        n->output[i] = array[inputs + i];
    for (int i = 0; i < params; i++)
        n->param[i].i = param[i];
    if (open_all(n, text) == PTXGEN_OK)
        return n;
    char *why = ptxgen_diagnostics_text(n->session, 0);
    fputs(why ? why : "out of memory\n", stderr);
    ptxgen_free(why);
    return NULL;
}

/* Seconds of one of `count` launches on the default stream; negative: one failed. */
double native_seconds(struct native *n, int count)
{
    const ptxgen_arguments args = { n->size, n->input, n->output, n->param };
    double seconds = -1;
    ptxgen_status status = ptxgen_event_record(n->session, n->gpu, n->begin, NULL);
    for (int i = 0; i < count && status == PTXGEN_OK; i++)
        status = ptxgen_launch(n->session, n->loaded, &args, NULL, NULL);
    if (status == PTXGEN_OK)
        status = ptxgen_event_record(n->session, n->gpu, n->end, NULL);
    if (status == PTXGEN_OK)
        status = ptxgen_event_seconds(n->session, n->gpu, n->begin, n->end, &seconds);
    return status == PTXGEN_OK ? seconds / count : -1;
}
