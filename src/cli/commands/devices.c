/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c - what --device can name on this machine. */
#include "cli.h"
#include "ptxgen/launch.h"

static void show(const struct options *o, int i, const ptxgen_gpu_info *g)
{
    if (o->json) {
        printf(", {\"device\": \"cuda:%d\", \"name\": ", i);
        json_text(stdout, g->name);
        printf(", \"arch\": \"sm_%d\", \"multiprocessors\": %d, \"memory\": %llu, \"l2\": %llu, \"driver\": %d, "
               "\"ptx\": %d}",
               g->sm, g->multiprocessors, (unsigned long long)g->memory, (unsigned long long)g->l2, g->driver, g->ptx);
        return;
    }
    printf("cuda:%-3d %s, sm_%d, %d multiprocessors, %.1f GiB, driver for CUDA %d.%d, PTX up to %d.%d\n", i, g->name,
           g->sm, g->multiprocessors, (double)g->memory / 0x1p30, g->driver / 1000, g->driver % 1000 / 10, g->ptx / 10,
           g->ptx % 10);
}

int cmd_devices(const struct options *o)
{
    ptxgen_session *s;
    ptxgen_diagnostic why;
    int count = 0;
    if (o->operands.n) {
        return fail(EXIT_USAGE, "unexpected '%s'", o->operands.item[0]);
    }
    if (ptxgen_session_create(&s) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    fputs(o->json ? "[{\"device\": \"cpu\"}" : "cpu      the host executor\n", stdout);
    if (ptxgen_gpu_count(s, &count) != PTXGEN_OK) {
        say("note", "%s", ptxgen_diagnostic_get(s, 0, &why) == PTXGEN_OK ? why.message : "no GPU");
        count = 0;
    }
    for (int i = 0; i < count; i++) {
        ptxgen_gpu_info info;
        if (ptxgen_gpu_query(s, i, &info) == PTXGEN_OK) {
            show(o, i, &info);
        } else {
            show_diagnostics(s);
        }
    }
    fputs(o->json ? "]\n" : "", stdout);
    ptxgen_session_destroy(s);
    return EXIT_OK;
}
