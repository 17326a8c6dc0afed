/* SPDX-License-Identifier: Apache-2.0 */
/* several.c - `run --devices`: the GPUs of this process share a run, through NCCL.
 *
 * Each GPU is a rank, with a session of its own, and works in a thread of its own where ranks have to come together.  A
 * step is begun on all of them or on none, and the next one when all have ended it: so nobody waits for a rank that has
 * given up.  Parts are taken from the arrays of the whole, and results go back there.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comms.h"
#include "data/parts.h"
#include "data/stages.h"
#include "progress.h"

enum { DEVICES_MAX = 64, ORDINAL_MAX = 1023 };

struct several;
struct rank {
    struct several *of;
    int number;
    pthread_t thread;
    ptxgen_status (*step)(struct rank *r); /* what the thread does */
    ptxgen_status status;
    ptxgen_session *session; /* the first rank's is the job's, which knows the text of the spec */
    ptxgen_gpu *gpu;
    ptxgen_comm *comm;
    ptxgen_dist *dist;
    struct part part;
    int64_t *size;        /* of the part */
    void **block, **data; /* on the GPU, inputs and then outputs; an array lies in its block */
    double begin, end;
    const struct array *other; /* a result that is not as on the first rank */
};

/* Ranks wait for each other, until one has left for good. */
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int arrived, rounds;
    bool left;
};

struct several {
    struct job *j;
    struct comms *comms;
    int n, device[DEVICES_MAX];
    int split; /* number of the size */
    struct rank rank[DEVICES_MAX];
    pthread_mutex_t gate; /* held until all threads of a step are there */
    bool cancelled;
    pthread_barrier_t start;
    struct meeting visits;
    struct parts_stage stage; /* that is visited */
    bool seen;                /* all of it is there; with the lock of `visits` */
    int found;                /* by its verification */
};

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static int add_device(struct several *x, const char *text, const char *word, int length)
{
    char number[16];
    int64_t ordinal = -1;
    snprintf(number, sizeof number, "%.*s", length, word);
    if (length <= 0 || length >= (int)sizeof number || parse_count(number, &ordinal) || ordinal > ORDINAL_MAX)
        return fail(EXIT_USAGE, "--devices %s: '%.*s' is not the number of a GPU; expected numbers as in --devices 0,1",
                    text, length, word);
    for (int i = 0; i < x->n; i++)
        if (x->device[i] == (int)ordinal)
            return fail(EXIT_USAGE, "--devices %s: GPU %d is named twice, but each rank needs a GPU of its own", text,
                        (int)ordinal);
    if (x->n == DEVICES_MAX)
        return fail(EXIT_USAGE, "--devices %s: up to %d GPUs share a run", text, DEVICES_MAX);
    x->device[x->n++] = (int)ordinal;
    return EXIT_OK;
}

static int read_devices(struct several *x, const char *text)
{
    int status = EXIT_OK;
    for (const char *at = text; at && status == EXIT_OK;) {
        const int length = (int)strcspn(at, ",");
        status = add_device(x, text, at, length);
        at = at[length] ? at + length + 1 : NULL;
    }
    return status;
}

static int read_options(struct several *x)
{
    const struct options *o = x->j->options;
    if (o->distributed)
        return fail(EXIT_USAGE, "--devices shares a run among GPUs, --distributed among the ranks of mpirun: use one");
    if (o->device)
        return fail(EXIT_USAGE, "--devices names the GPUs: leave out --device");
    if (o->simt)
        return fail(EXIT_USAGE, "--simt is of the host executor: use it with --device cpu");
    if (o->plan || o->variant || o->set.n || o->tuning || o->arch || o->ptx || o->math_library)
        return fail(EXIT_USAGE, "--devices makes its own plans: leave out --plan, --variant, --set, --tuning, --arch, "
                                "--ptx and --math-library");
    return parts_block(o, &(int64_t){ 0 }) ? EXIT_USAGE : read_devices(x, o->devices);
}

/* One GPU after the other, so that the first that is not there is named. */
static int open_devices(struct several *x)
{
    for (int r = 0; r < x->n; r++) {
        struct rank *rank = &x->rank[r];
        rank->of = x;
        rank->number = r;
        rank->session = r ? NULL : x->j->session;
        if (r && ptxgen_session_create(&rank->session) != PTXGEN_OK)
            return fail(EXIT_DEVICE, "out of memory");
        const ptxgen_status opened = ptxgen_gpu_open(rank->session, x->device[r], &rank->gpu);
        if (opened != PTXGEN_OK) {
            const int status = fail_call(rank->session, opened, "opening the GPUs");
            say("note", opened == PTXGEN_USAGE ? "'ptxgen devices' lists the GPUs of this machine"
                                               : "'ptxgen run --device cpu' runs the kernels on the host");
            return status;
        }
    }
    snprintf(x->j->device, sizeof x->j->device, "%d GPU%s, %s", x->n, x->n == 1 ? "" : "s",
             ptxgen_gpu_describe(x->rank[0].gpu)->name);
    return EXIT_OK;
}

static int connect(struct several *x)
{
    char why[400];
    progress_begin("connecting the GPUs", 0);
    x->comms = comms_open(x->n, x->device, why, sizeof why);
    progress_end();
    if (!x->comms)
        return fail(EXIT_DEVICE, "%s", why);
    for (int r = 0; r < x->n; r++) {
        struct rank *rank = &x->rank[r];
        const ptxgen_status made =
            ptxgen_comm_from_nccl(rank->session, rank->gpu, comms_at(x->comms, r), NULL, &rank->comm);
        if (made != PTXGEN_OK)
            return fail_call(rank->session, made, "connecting the GPUs");
    }
    return EXIT_OK;
}

/* ---- a step of all ranks ----------------------------------------------------------------------------------------- */

static void *one(void *user)
{
    struct rank *r = user;
    pthread_mutex_lock(&r->of->gate);
    pthread_mutex_unlock(&r->of->gate);
    r->status = r->of->cancelled ? PTXGEN_NO_MEMORY : r->step(r);
    return NULL;
}

/* The rank that failed, before those that only learnt of it; NULL: none. */
static struct rank *failed(struct several *x)
{
    struct rank *found = NULL;
    for (int r = x->n - 1; r >= 0; r--)
        if (x->rank[r].status != PTXGEN_OK &&
            (!found || x->rank[r].status != PTXGEN_RANKS || found->status == PTXGEN_RANKS))
            found = &x->rank[r];
    return found;
}

static int on_all(struct several *x, ptxgen_status (*step)(struct rank *r), const char *what)
{
    int started = 0;
    pthread_mutex_lock(&x->gate);
    while (started < x->n && !x->cancelled) {
        x->rank[started].step = step;
        x->cancelled = pthread_create(&x->rank[started].thread, NULL, one, &x->rank[started]) != 0;
        started += !x->cancelled;
    }
    pthread_mutex_unlock(&x->gate);
    for (int r = 0; r < started; r++)
        pthread_join(x->rank[r].thread, NULL);
    if (x->cancelled)
        return fail(EXIT_DEVICE, "no thread can be started for each GPU");
    const struct rank *r = failed(x);
    if (!r)
        return EXIT_OK;
    const int status = fail_call(r->session, r->status, what);
    if (x->n > 1 && r->number > 0)
        say("note", "this was on GPU %d", x->device[r->number]);
    return status;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

/* What of array i is on the GPU of a rank: `bytes` bytes from `host` on; where they are not side by side in the whole array,
 * from memory of their own. */
struct piece {
    const struct array *a;
    bool part;   /* rows of the split dimension; else the whole array */
    bool packed; /* in memory of their own; free() */
    char *host;
    size_t bytes;
};

static struct piece piece_of(const struct rank *r, const struct job *j, int split, const struct array *a)
{
    struct piece p = { .a = a, .host = a->data, .bytes = a->bytes };
    int64_t outer, inner;
    p.part = parts_rows(j, split, a, &outer, &inner);
    if (!p.part)
        return p;
    p.packed = outer > 1 || r->part.block < r->part.count;
    p.bytes = (size_t)(outer * inner * r->part.count);
    p.host = p.packed ? malloc(p.bytes + 1) : a->data + r->part.first * inner;
    return p;
}

/* Of the run's own arrays. */
static struct piece own_piece(const struct rank *r, int i)
{
    return piece_of(r, r->of->j, r->of->split, parts_array(r->of->j, i));
}

static void drop(const struct piece *p)
{
    if (p->packed)
        free(p->host);
}

/* The GPU's array is as far from an aligned address as the host's. */
static ptxgen_status upload(struct rank *r, int i)
{
    const struct piece p = own_piece(r, i);
    const size_t past = (size_t)(p.a->data - p.a->block);
    ptxgen_status status =
        p.host ? ptxgen_gpu_alloc(r->session, r->gpu, past + p.bytes + 1, &r->block[i]) : PTXGEN_NO_MEMORY;
    if (status == PTXGEN_OK) {
        r->data[i] = (char *)r->block[i] + past;
        if (p.packed)
            parts_copy(r->of->j, r->of->split, p.a, p.host, &r->part, false);
        if (p.bytes)
            status = ptxgen_gpu_write(r->session, r->gpu, r->data[i], p.host, p.bytes);
    }
    drop(&p);
    return status;
}

/* A part of an array into the whole, or, on the first rank, all of it; from: on the GPU; j, split: as of piece_of(). */
static ptxgen_status download(const struct rank *r, const struct job *j, int split, const struct array *a,
                              const void *from)
{
    const struct piece p = piece_of(r, j, split, a);
    ptxgen_status status = p.host ? PTXGEN_OK : PTXGEN_NO_MEMORY;
    if (status == PTXGEN_OK && p.bytes && (p.part || r->number == 0))
        status = ptxgen_gpu_read(r->session, r->gpu, p.host, from, p.bytes);
    if (status == PTXGEN_OK && p.packed)
        parts_copy(j, split, p.a, p.host, &r->part, true);
    drop(&p);
    return status;
}

/* ---- the steps --------------------------------------------------------------------------------------------------- */

static ptxgen_status load(struct rank *r)
{
    ptxgen_dist_options options = PTXGEN_DIST_OPTIONS_INIT;
    options.split = r->of->j->options->shard;
    parts_block(r->of->j->options, &options.block);
    return ptxgen_dist_load(r->session, r->comm, r->of->j->problem, &options, &r->dist);
}

static ptxgen_status take(struct rank *r)
{
    struct job *j = r->of->j;
    const int n = j->ninputs + j->noutputs, split = parts_split(j, r->dist);
    ptxgen_status status = parts_share(r->session, j, r->dist, j->size[split], r->number, r->of->n, &r->part);
    r->size = parts_sizes(j, split, r->part.count);
    r->block = calloc((size_t)n + 1, sizeof *r->block);
    r->data = calloc((size_t)n + 1, sizeof *r->data);
    if (!r->size || !r->block || !r->data)
        return PTXGEN_NO_MEMORY;
    for (int i = 0; i < n && status == PTXGEN_OK; i++)
        status = upload(r, i);
    return status;
}

static ptxgen_arguments arguments(const struct rank *r)
{
    const struct job *j = r->of->j;
    return (ptxgen_arguments){ r->size, (const void *const *)r->data, r->data + j->ninputs, j->param };
}

static ptxgen_status prepare(struct rank *r)
{
    const ptxgen_arguments args = arguments(r);
    return ptxgen_dist_prepare(r->session, r->dist, &args, NULL);
}

/* ---- --verify of a program: the first rank compares each stage with the reference ---- */

/* False: some rank does not come any more. */
static bool meet(struct meeting *m, int n)
{
    pthread_mutex_lock(&m->lock);
    const int round = m->rounds;
    if (++m->arrived == n) {
        m->arrived = 0;
        m->rounds++;
        pthread_cond_broadcast(&m->changed);
    }
    while (m->rounds == round && !m->left)
        pthread_cond_wait(&m->changed, &m->lock);
    const bool met = m->rounds != round;
    pthread_mutex_unlock(&m->lock);
    return met;
}

static void leave(struct meeting *m)
{
    pthread_mutex_lock(&m->lock);
    m->left = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* The rank's parts into the whole arrays of the stage. */
static void show(struct rank *r, const ptxgen_arguments *args)
{
    struct several *x = r->of;
    struct job *of = &x->stage.of;
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < of->ninputs + of->noutputs && status == PTXGEN_OK; i++)
        status = download(r, of, x->stage.split, parts_array(of, i), parts_stage_shown(&x->stage, i, args));
    if (status == PTXGEN_OK)
        return;
    pthread_mutex_lock(&x->visits.lock);
    x->seen = false;
    pthread_mutex_unlock(&x->visits.lock);
}

static int visit(int stage, int64_t step, const ptxgen_arguments *args, void *user)
{
    struct rank *r = user;
    struct several *x = r->of;
    if (r->number == 0)
        x->seen = parts_stage_begin(&x->stage, x->j, r->dist, stage, args);
    bool met = meet(&x->visits, x->n);
    const bool begun = met && x->seen;
    met = met && meet(&x->visits, x->n); /* all have looked */
    if (met && begun)
        show(r, args);
    met = met && meet(&x->visits, x->n);
    if (r->number == 0) {
        x->found = met && x->seen ? parts_stage_verify(&x->stage, x->j, stage, step) : EXIT_DEVICE;
        parts_stage_finish(&x->stage);
    }
    met = met && meet(&x->visits, x->n);
    return met ? x->found : EXIT_DEVICE;
}

static ptxgen_status launch(struct rank *r)
{
    struct several *x = r->of;
    const ptxgen_arguments args = arguments(r);
    pthread_barrier_wait(&x->start);
    r->begin = progress_now();
    ptxgen_status status = x->j->checks ? ptxgen_dist_launch_stages(r->session, r->dist, &args, NULL, visit, r)
                                        : ptxgen_dist_launch_on(r->session, r->dist, &args, NULL);
    leave(&x->visits);
    const ptxgen_status waited = ptxgen_stream_wait(r->session, r->gpu, NULL);
    r->end = progress_now();
    status = status == PTXGEN_OK ? waited : status;
    return status == PTXGEN_OK ? ptxgen_dist_check(r->session, r->dist) : status;
}

static ptxgen_status give(struct rank *r)
{
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < r->of->j->noutputs && status == PTXGEN_OK; i++)
        status = download(r, r->of->j, r->of->split, &r->of->j->output[i], r->data[r->of->j->ninputs + i]);
    return status;
}

/* --verify: results that every rank has are the same bits everywhere. */
static ptxgen_status compare(struct rank *r)
{
    struct job *j = r->of->j;
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < j->noutputs && r->number > 0 && status == PTXGEN_OK; i++) {
        const struct piece p = own_piece(r, j->ninputs + i);
        char *here = p.part ? NULL : malloc(p.bytes + 1);
        if (here && p.bytes)
            status = ptxgen_gpu_read(r->session, r->gpu, here, r->data[j->ninputs + i], p.bytes);
        if (here && status == PTXGEN_OK && memcmp(here, p.host, p.bytes) != 0)
            r->other = p.a;
        status = here || p.part ? status : PTXGEN_NO_MEMORY;
        free(here);
        drop(&p);
    }
    return status;
}

static int same_everywhere(const struct several *x)
{
    for (int r = 1; r < x->n; r++)
        if (x->rank[r].other)
            return fail(EXIT_DIFFERENT, "verification failed: %s has other bits on GPU %d than on GPU %d",
                        x->rank[r].other->info.name, x->device[r], x->device[0]);
    return EXIT_OK;
}

/* From the first launch to the end of the last. */
static double seconds_of(const struct several *x)
{
    double begin = x->rank[0].begin, end = x->rank[0].end;
    for (int r = 1; r < x->n; r++) {
        begin = x->rank[r].begin < begin ? x->rank[r].begin : begin;
        end = x->rank[r].end > end ? x->rank[r].end : end;
    }
    return end - begin;
}

static int run(struct several *x)
{
    static const char what[] = "running on the GPUs";
    progress_begin("compiling", 0);
    int status = on_all(x, load, "compiling for the GPUs");
    if (status == EXIT_OK) {
        x->split = parts_split(x->j, x->rank[0].dist);
        status = on_all(x, take, "arrays on the GPUs");
    }
    status = status ? status : on_all(x, prepare, "preparing the GPUs");
    progress_end();
    if (status == EXIT_OK && x->j->options->verify)
        stages_checked(x->j, NULL);
    status = status ? status : on_all(x, launch, what);
    if (status == EXIT_OK && x->found == EXIT_DEVICE)
        return fail(EXIT_DEVICE, "a stage could not be read from the GPUs");
    x->j->seconds = seconds_of(x);
    status = status ? status : on_all(x, give, what);
    if (status == EXIT_OK && x->j->options->verify) {
        status = on_all(x, compare, what);
        status = status ? status : same_everywhere(x);
    }
    return status;
}

static void finish(struct several *x, bool good)
{
    if (!good)
        comms_abort(x->comms);
    for (int r = 0; r < x->n; r++) {
        struct rank *rank = &x->rank[r];
        ptxgen_dist_destroy(rank->dist);
        for (int i = 0; rank->block && i < x->j->ninputs + x->j->noutputs; i++)
            ptxgen_gpu_free(rank->gpu, rank->block[i]);
        free(rank->block);
        free(rank->data);
        free(rank->size);
        ptxgen_comm_destroy(rank->comm);
    }
    comms_close(x->comms);
    for (int r = 0; r < x->n; r++) {
        ptxgen_gpu_close(x->rank[r].gpu);
        if (r)
            ptxgen_session_destroy(x->rank[r].session);
    }
}

int several_run(struct job *j)
{
    struct several x = { .j = j, .visits = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER } };
    int status = read_options(&x);
    if (status != EXIT_OK)
        return status;
    if (pthread_mutex_init(&x.gate, NULL) != 0)
        return fail(EXIT_DEVICE, "out of memory");
    if (pthread_barrier_init(&x.start, NULL, (unsigned)x.n) != 0) {
        pthread_mutex_destroy(&x.gate);
        return fail(EXIT_DEVICE, "out of memory");
    }
    status = open_devices(&x);
    status = status ? status : connect(&x);
    status = status ? status : run(&x);
    finish(&x, status == EXIT_OK);
    pthread_barrier_destroy(&x.start);
    pthread_mutex_destroy(&x.gate);
    return status;
}
