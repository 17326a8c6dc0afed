/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c - one program on two devices: loaded on both and launched on both, by one host thread before it waits for
 * either, and by a thread for each device at the same time. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_tests.h"

enum { DEVICES = 2, ELEMENTS = 1000003, LAUNCHES = 300 };

struct device {
    struct suite t;
    ptxgen_loaded *loaded;
    uint32_t *x, *y, *end, factor;
    bool ok; /* of its thread */
};

static bool device_begin(struct suite *t, struct device *d, int ordinal, const ptxgen_program *program)
{
    const size_t bytes = ELEMENTS * sizeof(uint32_t);
    void *p[3] = { NULL };
    bool ok;

    d->t = *t;
    d->t.gpu = NULL;
    d->t.s = NULL;
    d->factor = 3 + 4 * (uint32_t)ordinal;
    ok = ptxgen_session_create(&d->t.s) == PTXGEN_OK && open_device(&d->t, ordinal) &&
         ptxgen_load(d->t.s, d->t.gpu, program, &d->loaded) == PTXGEN_OK;
    for (int i = 0; i < 3 && ok; i++)
        ok = ptxgen_gpu_alloc(d->t.s, d->t.gpu, bytes, &p[i]) == PTXGEN_OK;
    d->x = p[0];
    d->y = p[1];
    d->end = p[2];
    return ok;
}

static void device_finish(struct device *d)
{
    if (d->t.gpu) {
        ptxgen_gpu_free(d->t.gpu, d->x);
        ptxgen_gpu_free(d->t.gpu, d->y);
        ptxgen_gpu_free(d->t.gpu, d->end);
        ptxgen_loaded_destroy(d->loaded);
    }
    close_device(&d->t);
}

/* Each device scans numbers of its own: element i is i * factor. */
static bool device_write(struct device *d, uint32_t *host)
{
    const size_t bytes = ELEMENTS * sizeof *host;

    for (uint32_t i = 0; i < ELEMENTS; i++)
        host[i] = i * d->factor;
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

static bool device_check(struct device *d, uint32_t *host)
{
    const size_t bytes = ELEMENTS * sizeof *host;
    uint32_t sum = 0;

    if (ptxgen_stream_wait(d->t.s, d->t.gpu, d->t.stream[0]) != PTXGEN_OK ||
        ptxgen_gpu_read(d->t.s, d->t.gpu, host, d->y, bytes) != PTXGEN_OK)
        return false;
    for (uint32_t i = 0; i < ELEMENTS; sum += i++ * d->factor)
        if (host[i] != sum)
            return false;
    return true;
}

static void *device_thread(void *argument)
{
    struct device *d = argument;
    uint32_t *host = malloc(ELEMENTS * sizeof *host);

    d->ok = host && device_write(d, host);
    for (int k = 0; k < LAUNCHES && d->ok; k++)
        d->ok = device_launch(d);
    d->ok = d->ok && device_check(d, host);
    free(host);
    return NULL;
}

/* In turn from this thread. */
static bool in_turn(struct device *d)
{
    uint32_t *host = malloc(ELEMENTS * sizeof *host);
    bool ok = host != NULL;

    for (int i = 0; i < DEVICES && ok; i++)
        ok = device_write(&d[i], host);
    for (int k = 0; k < 3 && ok; k++)
        for (int i = 0; i < DEVICES && ok; i++)
            ok = device_launch(&d[i]);
    for (int i = 0; i < DEVICES && ok; i++)
        ok = device_check(&d[i], host);
    free(host);
    return ok;
}

static bool at_once(struct device *d)
{
    pthread_t thread[DEVICES];
    int started = 0;
    bool ok = true;

    while (started < DEVICES && pthread_create(&thread[started], NULL, device_thread, &d[started]) == 0)
        started++;
    for (int i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
        ok &= d[i].ok;
    }
    return ok && started == DEVICES;
}

/* With what each device has to say. */
static void fail(struct device *d, const char *what)
{
    for (int i = 0; i < DEVICES; i++)
        note_failure(&d[i].t, "one program on two devices, device %d: %s", i, what);
}

void run_devices(struct suite *t, const char *specs)
{
    struct device d[DEVICES] = { { .loaded = NULL } };
    ptxgen_program *program = NULL;
    ptxgen_loaded *here = NULL;
    char path[512];
    int count = 0;
    bool ok;

    if (ptxgen_gpu_count(t->s, &count) == PTXGEN_OK && count < DEVICES) {
        note_not_run("one program on two devices (needs two devices; here is %d)", count);
        return;
    }
    snprintf(path, sizeof path, "%s/scan_exclusive.yaml", specs);
    ok = load_spec(t, path, NULL, &program, &here);
    ptxgen_loaded_destroy(here);
    for (int i = 0; i < DEVICES && ok; i++)
        ok = device_begin(t, &d[i], i, program);
    if (!ok)
        fail(d, "cannot be loaded on both");
    else if (!in_turn(d))
        fail(d, "in turn");
    else if (!at_once(d))
        fail(d, "from two threads at once");
    else
        note_outcome(t, "two devices", OUTCOME_PASSED);
    for (int i = 0; i < DEVICES; i++)
        device_finish(&d[i]);
    ptxgen_program_destroy(program);
}
