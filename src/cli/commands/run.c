/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - generate, run, verify, show. */
#include <stdlib.h>

#include "cli.h"

static int run(struct job *j)
{
    int status = load_problem(j->session, j->options, j->options->operands.item[0], &j->problem);
    status = status ? status : job_prepare(j);
    bool shows = true;
    if (status == EXIT_OK) {
        status = j->options->devices       ? several_run(j)
                 : j->options->distributed ? distributed_run(j, &shows)
                                           : device_run(j);
    }
    if (status != EXIT_OK || !shows) {
        return status;
    }
    struct verdict *verdict = j->options->verify ? calloc((size_t)j->noutputs + 1, sizeof *verdict) : NULL;
    if (j->options->verify && !verdict) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    status = verdict ? verify_job(j, verdict) : EXIT_OK;
    if (status == EXIT_OK || status == EXIT_DIFFERENT) {
        (j->options->json ? report_json : report_text)(j, verdict);
        int written = report_files(j);
        status = status == EXIT_OK ? written : status;
    }
    free(verdict);
    return status;
}

int cmd_run(const struct options *o)
{
    if (o->operands.n != 1) {
        return fail(EXIT_USAGE, "'run' takes one spec: ptxgen run SPEC.yaml");
    }
    struct job j = { .options = o };
    if (ptxgen_session_create(&j.session) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = run(&j);
    job_finish(&j);
    ptxgen_session_destroy(j.session);
    return status;
}
