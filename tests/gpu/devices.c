/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c - one program on two devices: opened on both, launched on both before either is waited for. */
#include <stdlib.h>
#include <string.h>

#include "gpu_tests.h"

enum { DEVICES = 2, ELEMENTS = 1000003 };

struct device {
    struct suite t;
    ptxgen_loaded *loaded;
    uint32_t *x, *y, *end;
};

static bool device_begin(struct suite *t, struct device *d, int ordinal, const ptxgen_program *program)
{
    const size_t bytes = ELEMENTS * sizeof(uint32_t);
    void *p[3] = { NULL };
    bool ok;

    d->t = *t;
    d->t.gpu = NULL;
    ok = open_device(&d->t, ordinal) && ptxgen_load(t->s, d->t.gpu, program, &d->loaded) == PTXGEN_OK;
    for (int i = 0; i < 3 && ok; i++)
        ok = ptxgen_gpu_alloc(t->s, d->t.gpu, bytes, &p[i]) == PTXGEN_OK;
    d->x = p[0];
    d->y = p[1];
    d->end = p[2];
    return ok;
}

static void device_finish(struct device *d)
{
    if (d->t.gpu == NULL)
        return;
    ptxgen_gpu_free(d->t.gpu, d->x);
    ptxgen_gpu_free(d->t.gpu, d->y);
    ptxgen_gpu_free(d->t.gpu, d->end);
    ptxgen_loaded_destroy(d->loaded);
    for (int i = 0; i < STREAMS; i++)
        ptxgen_stream_destroy(d->t.gpu, d->t.stream[i]);
    ptxgen_gpu_close(d->t.gpu);
}

/* Each device scans numbers of its own: element i is i * factor. */
static bool device_write(struct device *d, uint32_t *host, uint32_t factor)
{
    const size_t bytes = ELEMENTS * sizeof *host;

    for (uint32_t i = 0; i < ELEMENTS; i++)
        host[i] = i * factor;
    return ptxgen_gpu_write(d->t.s, d->t.gpu, d->x, host, bytes) == PTXGEN_OK &&
           ptxgen_gpu_fill(d->t.s, d->t.gpu, d->y, POISON, bytes, d->t.stream[0]) == PTXGEN_OK;
}

static bool device_launch(struct device *d)
{
    const int64_t n = ELEMENTS;
    const void *in[] = { d->x };
    void *out[] = { d->y, d->end };
    const ptxgen_arguments args = { &n, in, out, NULL };

    return ptxgen_launch(d->t.s, d->loaded, &args, d->t.stream[0], NULL) == PTXGEN_OK;
}

static bool device_check(struct device *d, uint32_t *host, uint32_t factor)
{
    const size_t bytes = ELEMENTS * sizeof *host;
    uint32_t sum = 0;

    if (ptxgen_stream_wait(d->t.s, d->t.gpu, d->t.stream[0]) != PTXGEN_OK ||
        ptxgen_gpu_read(d->t.s, d->t.gpu, host, d->y, bytes) != PTXGEN_OK)
        return false;
    for (uint32_t i = 0; i < ELEMENTS; sum += i++ * factor)
        if (host[i] != sum)
            return false;
    return true;
}

void run_devices(struct suite *t, const char *specs)
{
    struct device d[DEVICES] = { { .loaded = NULL } };
    ptxgen_program *program = NULL;
    ptxgen_loaded *here = NULL;
    uint32_t *host = malloc(ELEMENTS * sizeof *host);
    char path[512];
    int count = 0;
    bool ok;

    if (ptxgen_gpu_count(t->s, &count) == PTXGEN_OK && count < DEVICES) {
        note_not_run("one program on two devices (needs two devices; here is %d)", count);
        free(host);
        return;
    }
    snprintf(path, sizeof path, "%s/scan_exclusive.yaml", specs);
    ok = host && load_spec(t, path, NULL, &program, &here);
    ptxgen_loaded_destroy(here);
    for (int i = 0; i < DEVICES && ok; i++)
        ok = device_begin(t, &d[i], i, program) && device_write(&d[i], host, 3 + 4 * (uint32_t)i);
    for (int k = 0; k < 3 && ok; k++)
        for (int i = 0; i < DEVICES && ok; i++)
            ok = device_launch(&d[i]);
    for (int i = 0; i < DEVICES && ok; i++)
        ok = device_check(&d[i], host, 3 + 4 * (uint32_t)i);
    if (ok)
        note_outcome(t, "two devices", OUTCOME_PASSED);
    else
        note_failure(t, "one program on two devices");
    for (int i = 0; i < DEVICES; i++)
        device_finish(&d[i]);
    ptxgen_program_destroy(program);
    free(host);
}
