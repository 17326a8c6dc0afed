/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - what was chosen and why; or what a message's code means. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/copies.h"
#include "ptxgen/dist.h"
#include "page/explain_page.h"

/* The number of "PTXG-1203", "ptxg-1203" or "1203", or -1. */
static int code_number(const char *text)
{
    const char *digits = text + (strncasecmp(text, "PTXG-", 5) == 0 ? 5 : 0);
    size_t n = strspn(digits, "0123456789");
    return n == 0 || n > 4 || digits[n] ? -1 : (int)strtol(digits, NULL, 10);
}

/* Lines of up to so many bytes, broken at spaces. */
static void print_filled(const char *text)
{
    enum { WIDTH = 80 };
    while (strlen(text) > WIDTH) {
        int n = WIDTH;
        while (n > 0 && text[n] != ' ') {
            n--;
        }
        n = n > 0 ? n : WIDTH;
        printf("%.*s\n", n, text);
        text += n + (text[n] == ' ');
    }
    puts(text);
}

static int explain_code(int code)
{
    const char *title, *text;
    if (!ptxgen_explain_code(code, &title, &text)) {
        return fail(EXIT_USAGE, "there is no message PTXG-%04d", code);
    }
    printf("PTXG-%04d: %s\n\n", code, title);
    print_filled(text);
    return EXIT_OK;
}

/* What an explanation is made of. */
enum { KERNELS_MAX = 64, RANKS_MAX = 65536, ROWS_MAX = 64 };
struct explanation {
    struct job job;
    ptxgen_plan *plan;
    ptxgen_program *program;
    ptxgen_gpu *gpu;
    ptxgen_loaded *loaded;
    ptxgen_kernel_resources resource[KERNELS_MAX];
    ptxgen_explain_options options;
};

static bool all_sizes_known(const struct explanation *x)
{
    for (int i = 0; i < ptxgen_problem_size_count(x->job.problem); i++) {
        if (x->options.size[i] < 0) {
            return false;
        }
    }
    return true;
}

/* What `run` would refuse has no bytes to count. */
static int check_shapes(const struct explanation *x)
{
    const ptxgen_problem *p = x->job.problem;
    int status = EXIT_OK;
    for (int i = 0; i < ptxgen_problem_input_count(p) + ptxgen_problem_output_count(p) && status == EXIT_OK; i++) {
        ptxgen_array_info info;
        int64_t elements;
        size_t bytes;
        if (i < ptxgen_problem_input_count(p)) {
            ptxgen_problem_input(p, i, &info);
        } else {
            ptxgen_problem_output(p, i - ptxgen_problem_input_count(p), &info);
        }
        status = shape_of(&info, x->options.size, &elements, &bytes);
    }
    return status;
}

/* The GPU of this machine, if the explanation is of one: by default where there is one and no other target is named. */
static int find_gpu(struct explanation *x)
{
    const struct options *o = x->job.options;
    const char *device = o->device ? o->device : o->arch || o->gpu || o->plan ? "cpu" : "auto";
    int ordinal = 0, count = 0;
    if (!strcmp(device, "cpu")) {
        return EXIT_OK;
    }
    if (!strcmp(device, "auto")) {
        bool found = ptxgen_gpu_count(x->job.session, &count) == PTXGEN_OK && count > 0;
        ptxgen_diagnostics_clear(x->job.session);
        if (!found) {
            return EXIT_OK;
        }
    } else {
        int status = device_ordinal(device, &ordinal);
        if (status != EXIT_OK) {
            return status;
        }
    }
    int status = device_open(&x->job, ordinal, &x->gpu);
    if (status == EXIT_OK) {
        const ptxgen_gpu_info *info = ptxgen_gpu_describe(x->gpu);
        x->options.device = info->name;
        x->options.sm = info->sm;
        x->options.multiprocessors = info->multiprocessors;
        x->options.memory_clock_khz = info->memory_clock_khz;
        x->options.bus_bits = info->bus_bits;
        x->options.l2 = info->l2;
    }
    return status;
}

/* Registers by the driver. */
static ptxgen_status ask_driver(struct explanation *x)
{
    ptxgen_status status = PTXGEN_OK;
    int n = 0;
    for (int c = 0; c < ptxgen_program_case_count(x->program) && status == PTXGEN_OK; c++) {
        ptxgen_kernel_info info;
        for (int k = 0; n < KERNELS_MAX; k++) {
            status = ptxgen_kernel_query(x->job.session, x->loaded, c, k, &info);
            if (status != PTXGEN_OK) {
                break;
            }
            x->resource[n++] =
                (ptxgen_kernel_resources){ strdup(info.name), info.registers, info.shared_static, info.local };
        }
        if (status == PTXGEN_USAGE) { /* past the last kernel */
            ptxgen_diagnostics_clear(x->job.session);
            status = PTXGEN_OK;
        }
    }
    x->options.resource_count = n;
    x->options.resource_source = "driver";
    return status;
}

static int measure(struct explanation *x)
{
    struct subject subject = { .samples = 11 };
    struct timing stream = { 0 }, graph = { 0 };
    int prepared = job_prepare(&x->job);
    if (prepared != EXIT_OK) {
        return prepared;
    }
    report_random(stderr, &x->job);
    ptxgen_status status = subject_open(&x->job, x->gpu, &subject);
    status = status == PTXGEN_OK ? subject_load(&subject, x->loaded) : status;
    status = status == PTXGEN_OK ? time_stream(&subject, &stream) : status;
    status = status == PTXGEN_OK ? time_graph(&subject, &graph) : status;
    subject_unload(&subject);
    subject_close(&subject);
    x->options.stream_seconds = stream.median;
    x->options.graph_seconds = graph.median;
    return status == PTXGEN_OK ? EXIT_OK : fail_call(x->job.session, status, "measuring");
}

static int ask_gpu(struct explanation *x)
{
    ptxgen_session *s = x->job.session;
    ptxgen_status made = ptxgen_load(s, x->gpu, x->program, &x->loaded);
    made = made == PTXGEN_OK ? ask_driver(x) : made;
    if (made != PTXGEN_OK) {
        return fail_call(s, made, "loading");
    }
    return all_sizes_known(x) ? measure(x) : EXIT_OK;
}

enum { NONE = -1, ALL = -2 };

/* Registers of all cases, or of one case: ptxas needs seconds for all. */
static void ask_ptxas(struct explanation *x, int of)
{
    const int end = of == ALL ? ptxgen_program_case_count(x->program) : of + 1;
    int n = 0;
    for (int c = of == ALL ? 0 : of; c < end; c++) {
        n += ptxas_resources(ptxgen_program_case_ptx(x->program, c), x->resource + n, KERNELS_MAX - n);
    }
    x->options.resource_count = n;
    x->options.resource_source = n ? "ptxas" : NULL;
}

/* text: given back; NULL: a call failed. */
static int print_text(ptxgen_session *s, char *text)
{
    if (!text) {
        return fail_call(s, ptxgen_diagnostic_count(s) ? PTXGEN_USAGE : PTXGEN_NO_MEMORY, "explaining");
    }
    int status = write_file("-", text, strlen(text));
    ptxgen_free(text);
    return status;
}

static int print_explanation(struct explanation *x)
{
    return print_text(x->job.session, ptxgen_explain(x->job.session, x->plan, &x->options));
}

/* Sizes, params, GPU and plan; *native: the options of what is planned. */
static int plan_problem(struct explanation *x, int64_t *size, struct options *native)
{
    x->options.size = size;
    x->options.gpu = native->gpu;
    x->options.form = native->json ? PTXGEN_FORM_JSON : PTXGEN_FORM_TEXT;
    x->options.all = native->all;
    x->options.resource = x->resource;
    int status = parse_sizes(x->job.options, x->job.problem, size);
    if (status == EXIT_OK && all_sizes_known(x)) {
        status = check_shapes(x);
    }
    status = status ? status : job_params(&x->job);
    status = status ? status : find_gpu(x);
    x->options.param = x->job.param;
    if (x->gpu && !native->arch && !native->plan) {
        native->arch = ptxgen_gpu_arch(ptxgen_gpu_describe(x->gpu));
    }
    char *tuning = x->gpu ? usual_tuning(native) : NULL;
    native->tuning = tuning ? tuning : native->tuning;
    native->gpu = x->gpu && !native->gpu ? x->options.device : native->gpu;
    /* The plan covers every size; the explanation is of these. */
    status = status ? status : make_plan(x->job.session, native, x->job.problem, NULL, &x->plan);
    free(tuning);
    native->tuning = x->job.options->tuning;
    return status;
}

/* Numbers of ranks from "2,8,16"; how many, or -1. */
static int numbers_of_ranks(const char *text, int *ranks, int most)
{
    int n = 0;
    for (char *end; n < most; text = end + 1) {
        const long number = strtol(text, &end, 10);
        if (end == text || number < 1 || number > RANKS_MAX || (*end && *end != ',')) {
            return -1;
        }
        ranks[n++] = (int)number;
        if (!*end) {
            return n;
        }
    }
    return -1;
}

static int explain_ranks(struct explanation *x)
{
    const struct options *o = x->job.options;
    int ranks[ROWS_MAX];
    const int n = numbers_of_ranks(o->ranks, ranks, ROWS_MAX);
    if (n < 0) {
        return fail(EXIT_USAGE, "--ranks %s: expected up to %d numbers from 1 to %d, as in --ranks 2,4,8", o->ranks,
                    ROWS_MAX, RANKS_MAX);
    }
    if (o->html) {
        return fail(EXIT_USAGE, "--ranks prints a table, or with --json an object: leave out --html");
    }
    return print_text(x->job.session, ptxgen_dist_explain(x->job.session, x->plan, o->shard, &x->options, ranks, n));
}

/* The case whose code is asked for: NONE where nothing is shown of it, ALL for forms that show every case. */
static int case_shown(struct explanation *x, const struct options *native, int stages)
{
    if (native->html) {
        return ALL;
    }
    if (stages || (!x->gpu && !ptxas_there())) {
        return NONE;
    }
    return x->gpu || native->json || native->all ? ALL : ptxgen_plan_case(x->job.session, x->plan, &x->options);
}

static int explain_problem(struct explanation *x, int64_t *size)
{
    struct options native = *x->job.options;
    ptxgen_session *s = x->job.session;
    ptxgen_compile_options options;
    int status = plan_problem(x, size, &native);
    if (status != EXIT_OK) {
        return status;
    }
    if (native.ranks) {
        return explain_ranks(x);
    }
    const int stages = ptxgen_stage_count(x->job.problem);
    const int before = ptxgen_diagnostic_count(s), of = case_shown(x, &native, stages);
    if (of == NONE) {
        return ptxgen_diagnostic_count(s) > before ? print_text(s, NULL) : print_explanation(x);
    }
    compile_options(x->job.options, &options);
    ptxgen_status made = ptxgen_compile(s, x->plan, &options, &x->program);
    if (made != PTXGEN_OK) {
        return fail_call(s, made, "compiling");
    }
    if (x->gpu && !stages) {
        status = ask_gpu(x);
    } else {
        ask_ptxas(x, of);
    }
    if (status == EXIT_OK && native.html) {
        const struct explaining page = {
            &native, native.operands.item[0], native.arch, s, x->job.problem, stages, x->plan, &x->options
        };
        return explain_page(&page, native.html);
    }
    return status ? status : print_explanation(x);
}

static int explain_spec(const struct options *o)
{
    struct explanation x = { .job = { .options = o }, .options = PTXGEN_EXPLAIN_OPTIONS_INIT };
    if (ptxgen_session_create(&x.job.session) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = load_problem(x.job.session, o, o->operands.item[0], &x.job.problem);
    if (status == EXIT_OK) {
        int64_t *size = calloc((size_t)ptxgen_problem_size_count(x.job.problem) + 1, sizeof *size);
        status = size ? explain_problem(&x, size) : fail(EXIT_DEVICE, "out of memory");
        free(size);
    }
    resources_finish(x.resource, x.options.resource_count);
    ptxgen_loaded_destroy(x.loaded);
    ptxgen_gpu_close(x.gpu);
    ptxgen_program_destroy(x.program);
    job_finish(&x.job);
    ptxgen_session_destroy(x.job.session);
    return status;
}

int cmd_explain(const struct options *o)
{
    if (o->operands.n != 1) {
        return fail(EXIT_USAGE, "'explain' takes one spec, or one message like PTXG-3002");
    }
    int code = code_number(o->operands.item[0]);
    if (code >= 0) {
        return explain_code(code);
    }
    return explain_spec(o);
}
