/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tests.c - every spec and strategy at edge sizes on a GPU, against the sequential reference.
 *
 *     gpu_tests [quick|full|sanitize] [--specs DIR]... [--large DIR] [--stress DIR] [--filter TEXT] [--device K]
 *               [--threads N] [--host [MODES]]
 *
 * quick: a minute at most; full: more sizes, more alignments, 1000 repetitions at one size, the giant sizes; sanitize:
 * a smaller set for compute-sanitizer, by one thread.  Every spec is compiled for the device, once with the default
 * strategy and once with each strategy by name that fits; a spec that is not supported yet counts as skipped.  Exit
 * status: 0, 1 when something failed, 2 usage, 3 no device.
 */
#include "gpu_tests.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *folder[16], *large, *stress;
    int nfolders, device, threads;
    bool host;
};

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
        } else if (value && strcmp(argv[i], "--specs") == 0 && o->nfolders < 16) {
            o->folder[o->nfolders++] = argv[++i];
        } else if (value && strcmp(argv[i], "--large") == 0) {
            o->large = argv[++i];
        } else if (value && strcmp(argv[i], "--stress") == 0) {
            o->stress = argv[++i];
        } else if (value && strcmp(argv[i], "--filter") == 0) {
            t->filter = argv[++i];
        } else if (value && strcmp(argv[i], "--device") == 0) {
            o->device = atoi(argv[++i]);
        } else if (value && strcmp(argv[i], "--threads") == 0) {
            o->threads = atoi(argv[++i]);
        } else {
            return false;
        }
    }
    return true;
}

static bool open_device(struct suite *t, int device)
{
    bool ok = ptxgen_gpu_open(t->s, device, &t->gpu) == PTXGEN_OK;

    for (int i = 0; i < STREAMS && ok; i++)
        ok = ptxgen_stream_create(t->s, t->gpu, &t->stream[i]) == PTXGEN_OK;
    if (ok)
        printf("%s, driver for CUDA %d.%d\n", ptxgen_gpu_describe(t->gpu)->name,
               ptxgen_gpu_describe(t->gpu)->driver / 1000, ptxgen_gpu_describe(t->gpu)->driver % 1000 / 10);
    return ok;
}

/* As many as processors, but one where order or children matter. */
static int choose_threads(const struct suite *t, const struct options *o)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = o->threads ? o->threads : t->sanitize || o->host ? 1 : (int)processors;

    return threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
}

int main(int argc, char **argv)
{
    struct suite t = { 0 };
    struct options o = { 0 };
    int failed;

    if (!parse(argc, argv, &t, &o)) {
        fprintf(stderr, "usage: gpu_tests [quick|full|sanitize] [--specs DIR]... [--large DIR] [--stress DIR] "
                        "[--filter TEXT] [--device K]\n  [--threads N] [--host [MODES]]\n");
        return 2;
    }
    if (ptxgen_session_create(&t.s) != PTXGEN_OK || (!o.host && !open_device(&t, o.device))) {
        char *text = t.s ? ptxgen_diagnostics_text(t.s, 0) : NULL;

        fputs(text ? text : "out of memory\n", stderr);
        return 3;
    }
    for (int i = 0; i < o.nfolders; i++)
        add_folder(&t, o.folder[i]);
    run_specs(&t, choose_threads(&t, &o));
    if (o.large && t.gpu)
        run_large(&t, o.large);
    if (o.stress && t.gpu)
        run_stress(&t, o.stress);
    failed = show_summary(stdout);
    for (int i = 0; i < STREAMS && t.gpu; i++)
        ptxgen_stream_destroy(t.gpu, t.stream[i]);
    ptxgen_gpu_close(t.gpu);
    ptxgen_session_destroy(t.s);
    return failed != 0;
}
