/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - the public API: the oracle and the host executor. */
#include <stdlib.h>

#include "api_stages.h"
#include "llvmgen/llvmgen.h"
#include "ref/ref.h"
#include "simt/simt.h"

/* ---- running on the host ----------------------------------------------------------------------------------------- */

_Static_assert(sizeof(ptxgen_value) == sizeof(union value) && sizeof(ptxgen_arguments) == sizeof(struct run_args),
               "public arguments are struct run_args under another name");

int64_t ptxgen_array_elements(const ptxgen_array_info *a, const int64_t *size)
{
    if (!a || a->rank < 0 || a->rank > PROG_RANK_MAX || (a->rank && !size))
        return -1;
    struct prog_array array = { .rank = a->rank, .stride = (int)a->element_size };
    for (int d = 0; d < a->rank; d++)
        array.dim[d] = (struct prog_dim){ a->size_index[d], a->size_add[d] };
    return prog_array_elements(&array, size);
}

static ptxgen_status data_error(ptxgen_session *s, const char *message)
{
    if (!message)
        return PTXGEN_OK;
    diag_error(&s->diags, D_RUN_DATA, s->blamed ? *s->blamed : span_none(), "%s", message);
    s->blamed = NULL;
    return PTXGEN_INVALID;
}

ptxgen_status ptxgen_evaluate(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_arguments *args)
{
    struct fit_arguments a;
    ptxgen_status status = PTXGEN_OK;
    if (LACKS(s, s, p, args) || !api_fit_arguments(s, p->shape, args, &a))
        return PTXGEN_USAGE;
    if (p->stages)
        return api_evaluate_stages(s, p, &a.args);
    WITH_MEMORY(s, status = data_error(s, ref_run(s, p->problem, &a.args)));
    return status;
}

ptxgen_status ptxgen_error_bound(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_arguments *args,
                                 double *const *bound)
{
    struct fit_arguments a;
    ptxgen_status status = PTXGEN_OK;
    if (LACKS(s, s, p, args) || !api_fit_arguments(s, p->shape, args, &a))
        return PTXGEN_USAGE;
    if (!api_is_single(s, p, "bounds of errors are of one problem; see ptxgen_host_run_stages()"))
        return PTXGEN_UNSUPPORTED;
    WITH_MEMORY(s, status = data_error(s, ref_bound(s, p->problem, &a.args, bound)));
    return status;
}

ptxgen_status ptxgen_host_create(ptxgen_session *s, const ptxgen_plan *plan, const ptxgen_compile_options *options,
                                 ptxgen_host **out)
{
    struct llvmgen_options o;
    CLEAR(out);
    if (LACKS(s, s, plan, out) || !api_compile_options(s, options, &o))
        return PTXGEN_USAGE;
    if (plan->stages)
        return api_host_stages(s, plan, options, out);
    const double begin = session_now();
    int nsymbols;
    const struct host_symbol *symbols = simt_symbols(&nsymbols);
    ptxgen_host *host = calloc(1, sizeof *host);
    if (!host)
        return PTXGEN_NO_MEMORY;
    jmp_buf oom;
    s->arena.oom = &oom;
    if (setjmp(oom)) {
        ptxgen_host_destroy(host);
        return PTXGEN_NO_MEMORY;
    }
    host->case_index = -1;
    host->control = simt_control_create();
    host->code = host->control ? llvmgen_host(s, plan->plan, &o, symbols, nsymbols) : NULL;
    if (!host->code) {
        ptxgen_host_destroy(host);
        return api_codegen_failure(s);
    }
    s->holders++; /* cases are compiled when runs take them */
    host->session = s;
    *out = host;
    session_log(s, PTXGEN_LOG_INFO, begin, "%s: prepared %d case%s for the host", plan->plan->problem->name,
                plan->plan->ncases, plan->plan->ncases == 1 ? "" : "s");
    return PTXGEN_OK;
}

void ptxgen_host_destroy(ptxgen_host *host)
{
    if (!host)
        return;
    if (host->stages)
        api_host_stages_destroy(host->stages);
    host_destroy(host->code);
    simt_control_destroy(host->control);
    ptxgen_session_destroy(host->session);
    free(host);
}

ptxgen_status api_read_modes(ptxgen_session *s, const char *modes, struct simt_options *o)
{
    simt_options_default(o);
    const char *wrong = modes ? simt_options_parse(modes, o) : NULL;
    if (!wrong)
        return PTXGEN_OK;
    WITH_MEMORY(s, diag_error(&s->diags, D_RUN_MODE, span_none(), "host executor modes: %s", wrong));
    return PTXGEN_USAGE;
}

ptxgen_status ptxgen_host_run(ptxgen_session *s, ptxgen_host *host, const ptxgen_arguments *args, const char *modes)
{
    NEED(PTXGEN_USAGE, s, s, host, args);
    if (host->stages)
        return api_host_run_stages(s, host, args, modes, NULL, NULL);
    const double begin = session_now();
    struct fit_arguments a;
    struct simt_options o;
    struct simt_report report;
    ptxgen_status status = api_read_modes(s, modes, &o);
    if (status != PTXGEN_OK)
        return status;
    if (!api_fit_arguments(s, host_program(host->code), args, &a))
        return PTXGEN_USAGE;
    o.watch = o.guard ? NULL : host->watch;
    o.watch_user = host->watch_user;
    simt_run(host->code, &a.args, host->control, &o, &report);
    host->case_index = report.case_index;
    WITH_MEMORY(s, status = simt_status(s, &report));
    session_log(s, PTXGEN_LOG_DEBUG, begin, "%s: ran on the host, case %s", host_program(host->code)->name,
                host->case_index < 0 ? "none" : ptxgen_host_case(host));
    return status;
}

void ptxgen_host_watch(ptxgen_host *host, ptxgen_host_watcher *watch, void *user)
{
    if (!host)
        return;
    host->watch = watch;
    host->watch_user = user;
}

const char *ptxgen_host_case(const ptxgen_host *host)
{
    return !host || host->case_index < 0 ? NULL : host_program(host->code)->cases[host->case_index].name;
}
