/* SPDX-License-Identifier: Apache-2.0 */
/* misuse.c - every public function is called rightly and wrongly, by code that misuse.py makes of the headers.
 *
 * Nothing may crash.  What is refused is PTXGEN_USAGE with a message that names the parameter, and leaves no handle.
 * Run under valgrind as well.  Last line: "N passed, N failed".
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxgen/dist.h"
#include "ptxgen/stages.h"

static const char spec[] = "kind: reduce\ninputs: {x: 'f32[n]'}\nparams: {k: {type: f32, value: 2}}\nmap: k * x\n"
                           "operator: add\noutputs: {y: f32}\nstrategy: {name: reduce.block}\n";
enum { N = 4, NAMED = 3 };
static int8_t never;
#define NEVER ((void *)&never) /* what an out parameter holds before the call */

/* What stands for parameters: see the tables of misuse.py. */
static struct {
    ptxgen_session *session;
    ptxgen_problem *problem, *staged;
    ptxgen_plan *plan, *staged_plan;
    ptxgen_program *program;
    ptxgen_host *host;
    ptxgen_laws *laws;
    ptxgen_gpu *gpu;
    ptxgen_loaded *loaded;
    ptxgen_comm *comm;
    ptxgen_dist *dist;
    ptxgen_stream stream;
    ptxgen_event event;
    ptxgen_graph graph;
    ptxgen_laws_options laws_options;
    ptxgen_plan_options plan_options;
    ptxgen_explain_options explain_options;
    ptxgen_variant_options variant_options;
    ptxgen_compile_options compile_options;
    ptxgen_jit_options jit_options;
    ptxgen_comm_callbacks comm_callbacks;
    ptxgen_nccl_options nccl_options;
    ptxgen_dist_options dist_options;
    ptxgen_arguments arguments;
    ptxgen_argument named[NAMED];
    ptxgen_workspace workspace;
    ptxgen_tuning_entry tuning_entry;
    ptxgen_array_info array_info;
    ptxgen_gpu_info gpu_info;
    int64_t size[1];
    float x[N], y[1];
    const void *input[1];
    void *output[1];
    ptxgen_value param[1];
    double error[1], *bound[1];
    ptxgen_setting setting[1];
    ptxgen_kernel_resources resource[1];
    void *memory, *nccl_comm;
    const char *path;
    char *plan_text, *tuning_text;
} v;
static _Alignas(16) char wrong_room[4096]; /* a structure, and what a larger one might have behind it */

static int passed, failed;
static const char *function, *with;
static void begin(const char *name, const char *what)
{
    function = name;
    with = what;
    ptxgen_diagnostics_clear(v.session);
    if (!strcmp(name, "ptxgen_diagnostic_get"))
        ptxgen_evaluate(v.session, NULL, NULL);
}
static void crashed(int number)
{
    printf("%s, %s: signal %d\n", function, with, number);
    fflush(stdout);
    _Exit(1);
}
static void expect(int ok)
{
    passed += ok;
    failed += !ok;
    if (!ok) {
        char *text = ptxgen_diagnostics_text(v.session, 0);
        printf("%s, %s: %s\n", function, with, text ? text : "");
        ptxgen_free(text);
    }
}
static void good(ptxgen_status r) { expect(r == PTXGEN_OK); }
static void bad(ptxgen_status r) { expect(r == PTXGEN_USAGE); }
static void any(ptxgen_status r) { expect((unsigned)r <= PTXGEN_STOPPED && r != PTXGEN_INTERNAL); }
/* And a message says that this is NULL. */
static void refused(ptxgen_status r, const char *name)
{
    ptxgen_diagnostic d;
    char words[200];
    snprintf(words, sizeof words, "%s: %s is NULL", function, name);
    expect(r == PTXGEN_USAGE && ptxgen_diagnostic_get(v.session, 0, &d) == PTXGEN_OK && !strcmp(d.message, words));
}

static int visit_variant(const ptxgen_variant *variant, void *user) { return variant && user ? 1 : 2; }
static int visit_stage(int stage, int64_t step, const ptxgen_arguments *args, void *user)
{
    (void)stage, (void)step;
    return args && user ? 0 : 1;
}

static int watch(void *user)
{
    (void)user;
    return 0;
}

static int visit_count(const ptxgen_variant_count *count, void *user) { return count && user ? 0 : 1; }
static void listen(ptxgen_log_level level, const char *text, void *user) { (void)level, (void)text, (void)user; }
static int alone(void *user, const void *own, void *all, size_t bytes)
{
    (void)user;
    memcpy(all, own, bytes);
    return 0;
}
static int to_itself(void *user, const void *send, size_t send_bytes, int to, void *get, size_t get_bytes, int from)
{
    (void)user, (void)to, (void)from, (void)send_bytes;
    memcpy(get, send, get_bytes);
    return 0;
}
static const ptxgen_argument *wrong_named(const ptxgen_argument *first)
{
    static ptxgen_argument list[NAMED];
    memcpy(list, v.named, sizeof list);
    list[0] = *first;
    return list;
}

#include "misuse_calls.h"

static void need(ptxgen_status r)
{
    if (r != PTXGEN_OK) {
        char *text = ptxgen_diagnostics_text(v.session, 0);
        printf("%s: %s", ptxgen_status_text(r), text ? text : "");
        exit(1);
    }
}

static void make_structures(void)
{
    v.size[0] = N;
    v.input[0] = v.x;
    v.output[0] = v.y;
    v.param[0].f = 1;
    v.bound[0] = v.error;
    v.setting[0] = (ptxgen_setting){ "threads", "64" };
    v.resource[0] = (ptxgen_kernel_resources){ "x_all", 32, 0, 0 };
    v.laws_options = (ptxgen_laws_options){ sizeof v.laws_options, "off", 100, "off" };
    v.plan_options =
        (ptxgen_plan_options){ sizeof v.plan_options, "sm_90", 80, 1, v.setting, v.size, NULL, "H200", "off", 0, 132 };
    v.explain_options = (ptxgen_explain_options){
        sizeof v.explain_options, v.size, v.param, "H200", "d", 90, 132, 1, 1, 1, 1, v.resource, "ptxas", 1e-6, 1e-6,
        PTXGEN_FORM_TEXT,         0
    };
    v.variant_options = (ptxgen_variant_options){ sizeof v.variant_options, &v.plan_options, "H200", 0, 1, 2, 1, 0, 1 };
    v.compile_options = (ptxgen_compile_options){ sizeof v.compile_options, 0, NULL, 1 };
    v.jit_options = (ptxgen_jit_options){ sizeof v.jit_options, &v.plan_options, &v.compile_options, "off", 1 };
    v.comm_callbacks = (ptxgen_comm_callbacks){ sizeof v.comm_callbacks, alone, to_itself, &v };
    v.nccl_options = (ptxgen_nccl_options){ sizeof v.nccl_options, 1, 0, 0 };
    v.dist_options = (ptxgen_dist_options){ sizeof v.dist_options, "n", "seed:1", 16 };
    v.arguments = (ptxgen_arguments){ v.size, v.input, v.output, v.param };
    v.tuning_entry = (ptxgen_tuning_entry){ "H200", "sm_90", "default", v.size, 1e-6, 1e-6, 1 };
    v.named[0] = (ptxgen_argument)PTXGEN_ARRAY("x", v.x, sizeof v.x);
    v.named[1] = (ptxgen_argument)PTXGEN_INT("n", N);
    v.named[2] = (ptxgen_argument)PTXGEN_ARRAY("y", v.y, sizeof v.y);
}

int main(int argc, char **argv)
{
    v.path = argc == 2 ? argv[1] : "";
    make_structures();
    signal(SIGSEGV, crashed);
    signal(SIGABRT, crashed);
    signal(SIGFPE, crashed);
    need(ptxgen_session_create(&v.session));
    need(ptxgen_problem_from_string(v.session, spec, sizeof spec - 1, "x", &v.problem));
    static const char stages[] =
        "inputs: {x: 'f32[n]'}\nstages:\n  h: {kind: map, outputs: {y: {type: 'f32[n]', value: x / 2}}}\n"
        "  a: {kind: reduce, map: y, operator: add, outputs: {s: f32}}\n"
        "outputs: [s]\n";
    need(ptxgen_problem_from_string(v.session, stages, sizeof stages - 1, "stages", &v.staged));
    need(ptxgen_plan_create(v.session, v.staged, NULL, &v.staged_plan));
    need(ptxgen_plan_create(v.session, v.problem, NULL, &v.plan));
    need(ptxgen_compile(v.session, v.plan, NULL, &v.program));
    need(ptxgen_host_create(v.session, v.plan, NULL, &v.host));
    need(ptxgen_laws_check(v.session, v.problem, &v.laws_options, &v.laws));
    need(ptxgen_comm_from_host(v.session, &v.comm_callbacks, 0, 1, &v.comm));
    need(ptxgen_dist_load(v.session, v.comm, v.problem, &v.dist_options, &v.dist));
    need(ptxgen_gpu_open(v.session, 0, &v.gpu));
    void *nccl = dlopen(getenv("PTXGEN_LIBNCCL"), RTLD_NOW), *comm_of = nccl ? dlsym(nccl, "fake_nccl_comm") : NULL;
    v.nccl_comm = comm_of ? (*(void *(**)(int)) & comm_of)(0) : NULL;
    need(ptxgen_load(v.session, v.gpu, v.program, &v.loaded));
    need(ptxgen_stream_create(v.session, v.gpu, &v.stream));
    need(ptxgen_event_create(v.session, v.gpu, &v.event));
    need(ptxgen_capture_begin(v.session, v.gpu, v.stream));
    need(ptxgen_capture_end(v.session, v.gpu, v.stream, &v.graph));
    need(ptxgen_gpu_alloc(v.session, v.gpu, 4096, &v.memory));
    need(ptxgen_problem_input(v.problem, 0, &v.array_info));
    v.gpu_info = *ptxgen_gpu_describe(v.gpu);
    v.workspace = (ptxgen_workspace){ v.memory, 2048, (char *)v.memory + 2048, 2048 };
    v.plan_text = ptxgen_plan_text(v.plan);
    v.tuning_text = ptxgen_tuning_merge(v.session, v.problem, NULL, &v.tuning_entry);
    ptxgen_error_bound(v.session, v.problem, &v.arguments, v.bound);
    ptxgen_session_log(v.session, PTXGEN_LOG_DEBUG, listen, &v);
    begin("ptxgen_plan_create", "settings");
    bad(ptxgen_plan_create(v.session, v.problem, &(ptxgen_plan_options){ 0 }, &v.plan));
    need(ptxgen_plan_from_string(v.session, v.problem, v.plan_text, strlen(v.plan_text), NULL, &v.plan));

    try_all();

    ptxgen_free(v.plan_text);
    ptxgen_free(v.tuning_text);
    ptxgen_gpu_free(v.gpu, v.memory);
    ptxgen_graph_destroy(v.gpu, v.graph);
    ptxgen_event_destroy(v.gpu, v.event);
    ptxgen_stream_destroy(v.gpu, v.stream);
    ptxgen_loaded_destroy(v.loaded);
    ptxgen_gpu_close(v.gpu);
    ptxgen_dist_destroy(v.dist);
    ptxgen_comm_destroy(v.comm);
    ptxgen_session_destroy(v.session); /* programs and hosts outlive it */
    ptxgen_host_destroy(v.host);
    ptxgen_program_destroy(v.program);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
