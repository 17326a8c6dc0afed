/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tests.c - every spec and strategy at edge sizes on a GPU, against the sequential reference.
 *
 *     gpu_tests [quick|full|sanitize] [--specs DIR]... [--large DIR] [--stress DIR] [--devices DIR] [--filter TEXT]
 *               [--without STRATEGY] [--shard I/N] [--device K] [--processes N] [--threads N] [--forms]
 *               [--graphs] [--host [MODES]]
 *
 * quick: a minute or two; full: more sizes, more alignments, 100 repetitions at some; sanitize: a smaller set for
 * compute-sanitizer, in one process, each strategy on one spec of a shard.  --large, --stress and --devices add the
 * giant arrays, the protocols between blocks on a busy device, and one program on two devices, with specs from that
 * folder; --graphs adds stages in graphs.  Every spec is compiled for the device, once with the default strategy and once with each strategy by name
 * that fits; a spec that is not supported yet counts as skipped.  --without leaves a strategy out, and says so in the
 * summary.  --shard I/N leaves only every N-th spec (full: part of a spec), from I on, counted from 0.  Without
 * --device the processes take all devices in turn, and so do shards.  --forms: it is a failure if a strategy fits a
 * spec of whole arrays, of rows, columns, offsets or flags, and never passes on any; so it is where quick or full takes
 * all specs.  Exit status: 0, 1 when something failed, 2 usage, 3 no device.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_tests.h"

/* full: the slowest spec takes as long as a process has for all its work. */
enum { FOLDERS_MAX = 16, PARTS_FULL = 8 };

struct options {
    const char *folder[FOLDERS_MAX], *large, *stress, *devices;
    int nfolders, processes, threads, shard, shards;
    bool host, forms, graphs;
};

/* An option with a value; false: there is none of this name, or the value is wrong. */
static bool parse_value(const char *option, const char *value, struct suite *t, struct options *o)
{
    const struct {
        const char *name, **text;
        int *number;
    } row[] = {
        { "--large", &o->large, NULL },         { "--stress", &o->stress, NULL },   { "--devices", &o->devices, NULL },
        { "--filter", &t->filter, NULL },       { "--device", NULL, &t->device },   { "--threads", NULL, &o->threads },
        { "--processes", NULL, &o->processes }, { "--without", &t->without, NULL },
    };
    char rest;

    if (strcmp(option, "--specs") == 0 && o->nfolders < FOLDERS_MAX) {
        o->folder[o->nfolders++] = value;
        return true;
    }
    if (strcmp(option, "--shard") == 0)
        return sscanf(value, "%d/%d%c", &o->shard, &o->shards, &rest) == 2 && o->shard >= 0 && o->shard < o->shards;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (strcmp(option, row[i].name) == 0) {
            if (row[i].text)
                *row[i].text = value;
            return row[i].text || sscanf(value, "%d%c", row[i].number, &rest) == 1;
        }
    return false;
}

static bool parse(int argc, char **argv, struct suite *t, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "quick") == 0) {
            continue;
        } else if (strcmp(argv[i], "full") == 0) {
            t->full = true;
        } else if (strcmp(argv[i], "sanitize") == 0) {
            t->sanitize = true;
        } else if (strcmp(argv[i], "--host") == 0) {
            o->host = true;
            if (value && strncmp(value, "--", 2) != 0)
                t->modes = argv[++i];
        } else if (strcmp(argv[i], "--forms") == 0) {
            o->forms = true;
        } else if (strcmp(argv[i], "--graphs") == 0) {
            o->graphs = true;
        } else if (value && parse_value(argv[i], value, t, o)) {
            i++;
        } else {
            return false;
        }
    }
    return true;
}

bool open_device(struct suite *t, int device)
{
    const ptxgen_gpu_info *info;
    char text[160];
    bool ok = ptxgen_gpu_open(t->s, device < 0 ? 0 : device, &t->gpu) == PTXGEN_OK;

    for (int i = 0; i < STREAMS && ok; i++)
        ok = ptxgen_stream_create(t->s, t->gpu, &t->stream[i]) == PTXGEN_OK;
    if (!ok)
        return false;
    info = ptxgen_gpu_describe(t->gpu);
    snprintf(text, sizeof text, "%s, driver for CUDA %d.%d", info->name, info->driver / 1000, info->driver % 1000 / 10);
    note_device(text);
    return true;
}

void close_device(struct suite *t)
{
    for (int i = 0; i < STREAMS && t->gpu; i++)
        ptxgen_stream_destroy(t->gpu, t->stream[i]);
    ptxgen_gpu_close(t->gpu);
    t->gpu = NULL;
    ptxgen_session_destroy(t->s);
    t->s = NULL;
}

static int clamp(int x, int least, int most) { return x < least ? least : x > most ? most : x; }

/* A process per processor; one process, and one thread, where a tool looks on or order or children matter. */
static void choose_workers(const struct suite *t, struct options *o)
{
    const bool alone = t->sanitize || o->host;
    const int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);

    o->threads = alone ? 1 : clamp(o->threads ? o->threads : 1, 1, THREADS_MAX);
    o->processes = alone ? 0 : clamp(o->processes ? o->processes : processors / o->threads, 1, PROCESSES_MAX);
}

/* What is left for this process: one that ends alone, with the device to itself. */
static void run_alone(struct suite *t, const struct options *o)
{
    if (o->large)
        run_large(t, o->large);
    if (o->stress)
        run_stress(t, o->stress);
    if (o->devices)
        run_devices(t, o->devices);
    if (o->graphs)
        run_graphs(t);
}

static int no_device(const struct suite *t)
{
    char *text = t->s ? ptxgen_diagnostics_text(t->s, 0) : NULL;

    fputs(text ? text : "out of memory\n", stderr);
    ptxgen_free(text);
    return 3;
}

int main(int argc, char **argv)
{
    struct suite t = { .device = -1 };
    struct options o = { .shards = 1 };
    int failed, devices = 0;

    if (!parse(argc, argv, &t, &o)) {
        fprintf(stderr, "usage: gpu_tests [quick|full|sanitize] [--specs DIR]... [--large DIR] [--stress DIR] "
                        "[--devices DIR]\n  [--filter TEXT] [--without STRATEGY] [--shard I/N] [--device K] "
                        "[--processes N] [--threads N] "
                        "[--forms] [--graphs] [--host [MODES]]\n");
        return 2;
    }
    choose_workers(&t, &o);
    if (!summary_create() || ptxgen_session_create(&t.s) != PTXGEN_OK)
        return no_device(&t);
    heed_signals();
    for (int i = 0; i < o.nfolders; i++)
        add_folder(&t, o.folder[i]);
    choose_work(t.full ? PARTS_FULL : 1, o.shard, o.shards);
    if (t.without)
        note_not_run("%s, by --without", t.without);
    if (o.nfolders && o.shards == 1 && !o.host && !t.sanitize && !t.filter)
        expect_strategies();
    if (o.forms)
        expect_forms();
    /* A process that has opened the driver must not fork. */
    if (o.processes > 0 && o.nfolders)
        run_specs(&t, o.processes, o.threads);
    if (!o.host && ptxgen_gpu_count(t.s, &devices) != PTXGEN_OK)
        return no_device(&t);
    if (o.shards > 1 && t.device < 0 && devices > 0)
        t.device = o.shard % devices;
    if (!o.host && !open_device(&t, t.device))
        return no_device(&t);
    if (o.processes == 0)
        run_specs(&t, 0, o.threads);
    if (t.gpu && !was_stopped())
        run_alone(&t, &o);
    if (was_stopped())
        note_failure(NULL, "stopped by a signal");
    failed = show_summary(stdout);
    close_device(&t);
    return failed != 0;
}
