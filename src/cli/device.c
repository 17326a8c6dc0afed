/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - where a run happens: the host executor, or a GPU through the launcher. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "ptxgen/launch.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int run_host(struct job *j)
{
    ptxgen_compile_options options;
    ptxgen_plan *plan;
    ptxgen_host *host = NULL;
    compile_options(j->options, &options);
    int status = make_plan(j->session, j->options, j->problem, NULL, &plan);
    if (status != EXIT_OK) {
        return status;
    }
    ptxgen_status made = ptxgen_host_create(j->session, plan, &options, &host);
    if (made == PTXGEN_OK) {
        double begin = now();
        made = ptxgen_host_run(j->session, host, &j->args, j->options->simt);
        j->seconds = now() - begin;
        const char *kase = ptxgen_host_case(host);
        snprintf(j->kase, sizeof j->kase, "%s", kase ? kase : "");
    }
    status = made == PTXGEN_OK ? EXIT_OK : fail_call(j->session, made, "running on the host");
    ptxgen_host_destroy(host);
    return status;
}

/* Device copies of all arrays; the pointers as they are passed, with the misalignment of the host's. */
struct copies {
    ptxgen_gpu *gpu;
    int n;
    void **block, **data;
};

static void copies_finish(struct copies *c)
{
    for (int i = 0; c->block && i < c->n; i++) {
        ptxgen_gpu_free(c->gpu, c->block[i]);
    }
    free(c->block);
    free(c->data);
}

static ptxgen_status copy_in(const struct job *j, struct copies *c)
{
    c->n = j->ninputs + j->noutputs;
    c->block = calloc((size_t)c->n + 1, sizeof *c->block);
    c->data = calloc((size_t)c->n + 1, sizeof *c->data);
    ptxgen_status status = c->block && c->data ? PTXGEN_OK : PTXGEN_NO_MEMORY;
    for (int i = 0; i < c->n && status == PTXGEN_OK; i++) {
        const struct array *a = i < j->ninputs ? &j->input[i] : &j->output[i - j->ninputs];
        size_t skip = (size_t)(a->data - a->block);
        status = ptxgen_gpu_alloc(j->session, c->gpu, a->bytes + skip, &c->block[i]);
        if (status == PTXGEN_OK) {
            c->data[i] = (char *)c->block[i] + skip;
            status = a->bytes ? ptxgen_gpu_write(j->session, c->gpu, c->data[i], a->data, a->bytes) : PTXGEN_OK;
        }
    }
    return status;
}

static ptxgen_status copy_out(const struct job *j, const struct copies *c)
{
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < j->noutputs && status == PTXGEN_OK; i++) {
        const struct array *a = &j->output[i];
        status = a->bytes ? ptxgen_gpu_read(j->session, c->gpu, a->data, c->data[j->ninputs + i], a->bytes) : PTXGEN_OK;
    }
    return status;
}

static ptxgen_status launch_on(struct job *j, ptxgen_gpu *gpu, ptxgen_loaded *loaded)
{
    struct copies c = { .gpu = gpu };
    ptxgen_status status = copy_in(j, &c);
    if (status == PTXGEN_OK) {
        ptxgen_arguments args = { j->size, (const void *const *)c.data, c.data + j->ninputs, j->param };
        const char *kase = ptxgen_launch_case(j->session, loaded, &args);
        snprintf(j->kase, sizeof j->kase, "%s", kase ? kase : "");
        status = ptxgen_prepare(j->session, loaded, &args, NULL);
        double begin = now();
        status = status == PTXGEN_OK ? ptxgen_launch(j->session, loaded, &args, NULL, NULL) : status;
        status = status == PTXGEN_OK ? ptxgen_stream_wait(j->session, gpu, NULL) : status;
        j->seconds = now() - begin;
    }
    status = status == PTXGEN_OK ? copy_out(j, &c) : status;
    copies_finish(&c);
    return status;
}

static int run_gpu(struct job *j, ptxgen_gpu *gpu)
{
    ptxgen_compile_options options;
    ptxgen_plan *plan;
    ptxgen_program *program = NULL;
    ptxgen_loaded *loaded = NULL;
    compile_options(j->options, &options);
    int status = make_plan(j->session, j->options, j->problem, NULL, &plan);
    if (status != EXIT_OK) {
        return status;
    }
    ptxgen_status made = ptxgen_compile(j->session, plan, &options, &program);
    made = made == PTXGEN_OK ? ptxgen_load(j->session, gpu, program, &loaded) : made;
    made = made == PTXGEN_OK ? launch_on(j, gpu, loaded) : made;
    ptxgen_loaded_destroy(loaded);
    ptxgen_program_destroy(program);
    return made == PTXGEN_OK ? EXIT_OK : fail_call(j->session, made, "running on the GPU");
}

static int open_and_run(struct job *j, int ordinal)
{
    ptxgen_gpu *gpu;
    ptxgen_status opened = ptxgen_gpu_open(j->session, ordinal, &gpu);
    if (opened != PTXGEN_OK) {
        return fail_call(j->session, opened, "opening the GPU");
    }
    snprintf(j->device, sizeof j->device, "%s", ptxgen_gpu_describe(gpu)->name);
    int status = run_gpu(j, gpu);
    ptxgen_gpu_close(gpu);
    return status;
}

int device_run(struct job *j)
{
    const char *device = j->options->device ? j->options->device : "auto";
    int64_t ordinal = 0;
    int count = 0;
    if (!strcmp(device, "auto")) {
        bool found = ptxgen_gpu_count(j->session, &count) == PTXGEN_OK && count > 0;
        ptxgen_diagnostics_clear(j->session);
        if (found && !j->options->simt) {
            return open_and_run(j, 0);
        }
        if (!found) {
            say("note", "no GPU here: running the kernels on the host (--device cpu)");
        }
        device = "cpu";
    }
    if (!strcmp(device, "cpu")) {
        snprintf(j->device, sizeof j->device, "cpu");
        return run_host(j);
    }
    if (strncmp(device, "cuda", 4) != 0 ||
        (device[4] && (device[4] != ':' || parse_count(device + 5, &ordinal) || ordinal > 1023))) {
        return fail(EXIT_USAGE, "--device %s: expected auto, cpu, cuda or cuda:N", device);
    }
    if (j->options->simt) {
        return fail(EXIT_USAGE, "--simt is of the host executor: use it with --device cpu");
    }
    return open_and_run(j, (int)ordinal);
}
