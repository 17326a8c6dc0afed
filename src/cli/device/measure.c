/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - a stream, events and copies of a job's arrays around measurements on a GPU. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "data/copies.h"
#include "data/stages.h"
#include "progress.h"

enum { COPIES_MAX = 16384, PLACES = 4 };

/* So many copies that a launch finds none of its arrays in the L2 cache, and at least PLACES, because the same kernel
 * can be some percent faster or slower where the device happens to have placed its arrays; within half of the device's
 * memory. */
static int64_t choose_copies(const struct job *j, const ptxgen_gpu_info *gpu)
{
    size_t one = copies_bytes(j);
    uint64_t cold = one ? 4 * gpu->l2 / one + 1 : 1, wanted = cold < PLACES ? PLACES : cold,
             fit = one ? gpu->memory / 2 / one : 1;
    wanted = wanted > fit ? fit : wanted;
    return wanted < 1 ? 1 : wanted > COPIES_MAX ? COPIES_MAX : (int64_t)wanted;
}

void turn_begin(struct subject *x)
{
    const char *file = getenv("PTXGEN_GPU_LOCK");
    const double begin = progress_now();
    x->turn = file && *file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666) + 1 : 0;
    if (x->turn > 0) {
        flock(x->turn - 1, LOCK_EX);
    }
    x->waited += progress_now() - begin;
}

void turn_end(struct subject *x)
{
    if (x->turn > 0) {
        close(x->turn - 1);
    }
    x->turn = 0;
}

double job_bytes(const struct job *j)
{
    double bytes = 0;
    for (int i = 0; i < j->ninputs; i++) {
        bytes += (double)j->input[i].bytes;
    }
    for (int i = 0; i < j->noutputs; i++) {
        bytes += (double)j->output[i].bytes;
    }
    return bytes;
}

ptxgen_status subject_open(struct job *j, ptxgen_gpu *gpu, struct subject *x)
{
    ptxgen_session *s = j->session;
    x->job = j;
    x->gpu = gpu;
    turn_begin(x);
    ptxgen_status status = copies_create(j, gpu, choose_copies(j, ptxgen_gpu_describe(gpu)), &x->copies);
    status = status == PTXGEN_OK ? ptxgen_stream_create(s, gpu, &x->stream) : status;
    status = status == PTXGEN_OK ? ptxgen_event_create(s, gpu, &x->begin) : status;
    status = status == PTXGEN_OK ? ptxgen_event_create(s, gpu, &x->end) : status;
    turn_end(x);
    return status;
}

void subject_close(struct subject *x)
{
    ptxgen_event_destroy(x->gpu, x->end);
    ptxgen_event_destroy(x->gpu, x->begin);
    if (x->stream) {
        ptxgen_stream_destroy(x->gpu, x->stream);
    }
    copies_finish(&x->copies);
}

ptxgen_status subject_load(struct subject *x, ptxgen_loaded *loaded)
{
    struct job *j = x->job;
    void **data = copies_at(&x->copies, j, 0);
    ptxgen_arguments args = { j->size, (const void *const *)data, data + j->ninputs, j->param };
    const char *case_name = ptxgen_launch_case(j->session, loaded, &args);
    snprintf(j->case_name, sizeof j->case_name, "%s", case_name ? case_name : "");
    x->loaded = loaded;
    return ptxgen_prepare(j->session, loaded, &args, x->stream);
}

void subject_unload(struct subject *x)
{
    if (x->stream && x->loaded) {
        ptxgen_stream_release(NULL, x->loaded, x->stream);
    }
    x->loaded = NULL;
}

ptxgen_status subject_launch(struct subject *x)
{
    struct job *j = x->job;
    ptxgen_status status = PTXGEN_OK;
    void **data = copies_at(&x->copies, j, 0);
    turn_begin(x);
    for (int i = 0; i < j->noutputs && status == PTXGEN_OK; i++) {
        status = ptxgen_gpu_fill(j->session, x->gpu, data[j->ninputs + i], 0, j->output[i].bytes, x->stream);
    }
    ptxgen_arguments args = { j->size, (const void *const *)data, data + j->ninputs, j->param };
    if (status == PTXGEN_OK) {
        status = !j->options->no_verify && stages_checked(j, x->gpu)
                     ? ptxgen_launch_stages(j->session, x->loaded, &args, x->stream, stages_visit, j)
                     : ptxgen_launch(j->session, x->loaded, &args, x->stream, NULL);
    }
    status = status == PTXGEN_OK ? ptxgen_stream_wait(j->session, x->gpu, x->stream) : status;
    turn_end(x);
    return status;
}

ptxgen_status subject_results(struct subject *x)
{
    ptxgen_status status = subject_launch(x);
    return status == PTXGEN_OK ? copies_read(x->job, &x->copies) : status;
}
