/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - where a run happens: the host executor, or a GPU through the launcher. */
#include <stdlib.h>
#include <string.h>

#include "data/copies.h"
#include "data/stages.h"
#include "progress.h"

static ptxgen_status host_call(struct job *j, const int64_t *size, void *host)
{
    const ptxgen_arguments args = { size, j->args.input, j->args.output, j->args.param };
    if (j->visit && size == j->size) {
        return ptxgen_host_run_stages(j->session, host, &args, NULL, j->visit, j);
    }
    if (j->options->verify && size == j->size && stages_checked(j, NULL)) {
        return ptxgen_host_run_stages(j->session, host, &args, j->options->simt, stages_visit, j);
    }
    return ptxgen_host_run(j->session, host, &args, j->options->simt);
}

static ptxgen_status host_run(struct job *j, ptxgen_host *host)
{
    double expected = expect_seconds(j, host_call, host), begin = progress_now();
    for (int i = 0; i < j->noutputs && expected > 0; i++) {
        memset(j->output[i].data, 0, j->output[i].bytes);
    }
    progress_begin("running on the host executor", expected);
    ptxgen_status status = host_call(j, j->size, host);
    progress_end();
    j->seconds = progress_now() - begin;
    return status;
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
        made = host_run(j, host);
        const char *case_name = ptxgen_host_case(host);
        snprintf(j->case_name, sizeof j->case_name, "%s", case_name ? case_name : "");
    }
    status = made == PTXGEN_OK ? EXIT_OK : fail_call(j->session, made, "running on the host");
    ptxgen_host_destroy(host);
    return status;
}

static ptxgen_status launch_once(struct job *j, ptxgen_gpu *gpu, ptxgen_loaded *loaded, const ptxgen_arguments *args)
{
    if (j->visit) {
        j->gpu = gpu;
        return ptxgen_launch_stages(j->session, loaded, args, NULL, j->visit, j);
    }
    if (j->options->verify && stages_checked(j, gpu)) {
        return ptxgen_launch_stages(j->session, loaded, args, NULL, stages_visit, j);
    }
    return ptxgen_launch(j->session, loaded, args, NULL, NULL);
}

static ptxgen_status launch_on(struct job *j, ptxgen_gpu *gpu, ptxgen_loaded *loaded)
{
    struct copies c;
    ptxgen_status status = copies_create(j, gpu, 1, &c);
    if (status == PTXGEN_OK) {
        void **data = copies_at(&c, j, 0);
        ptxgen_arguments args = { j->size, (const void *const *)data, data + j->ninputs, j->param };
        const char *case_name = ptxgen_launch_case(j->session, loaded, &args);
        snprintf(j->case_name, sizeof j->case_name, "%s", case_name ? case_name : "");
        status = ptxgen_prepare(j->session, loaded, &args, NULL);
        double begin = progress_now();
        status = status == PTXGEN_OK ? launch_once(j, gpu, loaded, &args) : status;
        status = status == PTXGEN_OK ? ptxgen_stream_wait(j->session, gpu, NULL) : status;
        j->seconds = progress_now() - begin;
    }
    status = status == PTXGEN_OK ? copies_read(j, &c) : status;
    copies_finish(&c);
    return status;
}

int device_open(struct job *j, int ordinal, ptxgen_gpu **gpu)
{
    ptxgen_status opened = ptxgen_gpu_open(j->session, ordinal, gpu);
    if (opened != PTXGEN_OK) {
        int status = fail_call(j->session, opened, "opening the GPU");
        if (j->options->command->run != cmd_bench) {
            say("note", "'ptxgen %s --device cpu' runs the kernels on the host", j->options->command->name);
        }
        return status;
    }
    snprintf(j->device, sizeof j->device, "%s", ptxgen_gpu_describe(*gpu)->name);
    return EXIT_OK;
}

int device_load(struct job *j, ptxgen_gpu *gpu, ptxgen_program **program, ptxgen_loaded **loaded)
{
    struct options native = *j->options;
    ptxgen_compile_options options;
    ptxgen_plan *plan;
    if (!native.arch && !native.plan) {
        native.arch = ptxgen_gpu_arch(ptxgen_gpu_describe(gpu));
    }
    native.gpu = ptxgen_gpu_describe(gpu)->name;
    char *path = usual_tuning(&native);
    native.tuning = path ? path : native.tuning;
    compile_options(j->options, &options);
    int status = make_plan(j->session, &native, j->problem, NULL, &plan);
    free(path);
    if (status != EXIT_OK) {
        return status;
    }
    show_diagnostics(j->session); /* what is left out of a tuning file */
    warn_cache();
    progress_begin("compiling", 0);
    ptxgen_status made = ptxgen_compile_cached(j->session, j->problem, plan, &options, NULL, program);
    made = made == PTXGEN_OK ? ptxgen_load(j->session, gpu, *program, loaded) : made;
    progress_end();
    return made == PTXGEN_OK ? EXIT_OK : fail_call(j->session, made, "compiling for the GPU");
}

static int run_gpu(struct job *j, ptxgen_gpu *gpu)
{
    ptxgen_program *program = NULL;
    ptxgen_loaded *loaded = NULL;
    int status = device_load(j, gpu, &program, &loaded);
    if (status == EXIT_OK) {
        ptxgen_status made = launch_on(j, gpu, loaded);
        status = made == PTXGEN_OK ? EXIT_OK : fail_call(j->session, made, "running on the GPU");
    }
    ptxgen_loaded_destroy(loaded);
    ptxgen_program_destroy(program);
    return status;
}

static int open_and_run(struct job *j, int ordinal)
{
    ptxgen_gpu *gpu = NULL;
    int status = device_open(j, ordinal, &gpu);
    status = status ? status : run_gpu(j, gpu);
    ptxgen_gpu_close(gpu);
    return status;
}

int device_run(struct job *j)
{
    const char *device = j->options->device ? j->options->device : "auto";
    int count = 0, ordinal;
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
    int status = device_ordinal(device, &ordinal);
    if (status != EXIT_OK) {
        return status;
    }
    if (j->options->simt) {
        return fail(EXIT_USAGE, "--simt is of the host executor: use it with --device cpu");
    }
    return open_and_run(j, ordinal);
}
