/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - the default command: a spec in, products out.
 *
 * All products are made in memory first, so that an error leaves no file behind.  The steps that other commands share
 * (load a problem, make a plan) are here too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "ptxgen/launch.h"
#include "ptxgen/stages.h"

struct product {
    char *path, *text;
    size_t length;
};
enum { PRODUCTS_MAX = 256 };
struct products {
    int n;
    struct product item[PRODUCTS_MAX];
};

/* What --emit knows, and the file that it becomes: NAME + suffix. */
enum emit {
    EMIT_PTX,
    EMIT_CUBIN,
    EMIT_LL,
    EMIT_PLAN,
    EMIT_PROBLEM,
    EMIT_DOT,
    EMIT_MANIFEST,
    EMIT_HEADER,
    EMIT_TVM_FFI,
    EMIT_EXPLAIN,
    EMIT_COUNT
};
static const char *const emit_name[EMIT_COUNT] = { "ptx", "cubin",    "ll",     "plan",    "problem",
                                                   "dot", "manifest", "header", "tvm-ffi", "explain" };
static const char *const emit_suffix[EMIT_COUNT] = { ".ptx", ".cubin", ".ll", ".plan",      ".problem",
                                                     ".dot", ".json",  ".h",  "_tvm_ffi.c", ".txt" };

static ptxgen_status read_problem(ptxgen_session *s, const char *path, ptxgen_problem **out)
{
    size_t length;
    if (strcmp(path, "-") != 0) {
        return ptxgen_problem_from_file(s, path, out);
    }
    char *text = read_file(path, &length);
    ptxgen_status status = text ? ptxgen_problem_from_string(s, text, length, "stdin", out) : PTXGEN_IO;
    free(text);
    return status;
}

ptxgen_status problem_of(ptxgen_session *s, const struct options *o, const char *path, ptxgen_problem **out)
{
    ptxgen_status status = read_problem(s, path, out);
    return status == PTXGEN_OK && o->stage ? choose_stage(o->stage, path, out) : status;
}

int load_problem(ptxgen_session *s, const struct options *o, const char *path, ptxgen_problem **out)
{
    ptxgen_laws_options options = PTXGEN_LAWS_OPTIONS_INIT;
    ptxgen_laws *laws;
    ptxgen_status status = problem_of(s, o, path, out);
    if (status == PTXGEN_USAGE && o->stage) {
        return EXIT_USAGE; /* told */
    }
    laws_options(o, &options);
    if (status == PTXGEN_OK && o->laws) {
        warn_cache();
        status = ptxgen_laws_check(s, *out, &options, &laws);
        status = status == PTXGEN_OK ? ptxgen_laws_apply(s, *out, laws, out) : status;
    }
    if (status != PTXGEN_OK) {
        return fail_call(s, status, path);
    }
    show_diagnostics(s); /* warnings */
    return EXIT_OK;
}

void laws_options(const struct options *o, ptxgen_laws_options *out) { out->prover = o->prover; }

void compile_options(const struct options *o, ptxgen_compile_options *out)
{
    *out = (ptxgen_compile_options)PTXGEN_COMPILE_OPTIONS_INIT;
    out->math_library = o->math_library;
}

static int plan_from_file(ptxgen_session *s, const struct options *o, const ptxgen_problem *p, ptxgen_plan **out)
{
    size_t length;
    if (o->arch || o->ptx || o->set.n || o->variant) {
        return fail(EXIT_USAGE, "--plan says everything: leave out --arch, --ptx, --set and --variant");
    }
    char *text = read_file(o->plan, &length);
    if (!text) {
        return fail(EXIT_WRONG, "cannot read %s: %s", o->plan, strerror(errno));
    }
    ptxgen_status status = ptxgen_plan_from_string(s, p, text, length, o->plan, out);
    free(text);
    return status == PTXGEN_OK ? EXIT_OK : fail_call(s, status, o->plan);
}

int plan_settings(const struct options *o, ptxgen_setting *setting, char *names, size_t capacity)
{
    if (o->set.n > SETTINGS_MAX) {
        return fail(EXIT_USAGE, "too many --set");
    }
    for (int i = 0; i < o->set.n; i++) {
        int length;
        const char *value = setting_value(o->set.item[i], &length);
        if (!value || (size_t)length >= capacity) {
            return fail(EXIT_USAGE, "--set %s: expected TUNABLE=VALUE", o->set.item[i]);
        }
        memcpy(names, o->set.item[i], (size_t)length);
        names[length] = 0;
        setting[i] = (ptxgen_setting){ names, value };
        names += length + 1;
        capacity -= (size_t)length + 1;
    }
    return EXIT_OK;
}

int make_plan(ptxgen_session *s, const struct options *o, const ptxgen_problem *p, const int64_t *size,
              ptxgen_plan **out)
{
    ptxgen_plan_options options = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_setting setting[SETTINGS_MAX];
    char names[4096];
    int64_t ptx = 0;
    if (o->plan) {
        return plan_from_file(s, o, p, out);
    }
    if (o->ptx && (parse_count(o->ptx, &ptx) || ptx < 10 || ptx > 999)) {
        return fail(EXIT_USAGE, "--ptx=%s: expected a number like 80 for PTX 8.0", o->ptx);
    }
    int status = plan_settings(o, setting, names, sizeof names);
    status = status ? status : choose_arch(s, o, &options.arch);
    if (status != EXIT_OK) {
        return status;
    }
    options.gpu = o->gpu;
    options.variant = o->variant;
    options.tuning = o->tuning;
    options.ptx = (int)ptx;
    options.setting_count = o->set.n;
    options.setting = setting;
    options.size = size;
    ptxgen_status made = ptxgen_plan_create(s, p, &options, out);
    return made == PTXGEN_OK ? EXIT_OK : fail_call(s, made, "planning");
}

/* dir may be NULL; malloc. */
static char *join(const char *dir, const char *name, const char *middle, const char *suffix)
{
    size_t n = (dir ? strlen(dir) : 0) + strlen(name) + strlen(middle) + strlen(suffix) + 3;
    char *path = malloc(n);
    if (path) {
        bool slash = dir && dir[0] && dir[strlen(dir) - 1] != '/';
        snprintf(path, n, "%s%s%s%s%s%s", dir ? dir : "", slash ? "/" : "", name, middle[0] ? "." : "", middle, suffix);
    }
    return path;
}

/* Takes text and path. */
static int add(struct products *out, char *path, char *text, size_t length)
{
    if (!path || !text || out->n == PRODUCTS_MAX) {
        free(path);
        ptxgen_free(text);
        return fail(EXIT_DEVICE, out->n == PRODUCTS_MAX ? "too many products" : "out of memory");
    }
    out->item[out->n++] = (struct product){ path, text, length };
    return EXIT_OK;
}

/* What is made from what. */
struct making {
    const struct options *o; /* --arch: one of them */
    const char *archs;       /* --with=cubin: all of them */
    ptxgen_session *s;
    ptxgen_problem *p;
    ptxgen_plan *plan;
    ptxgen_program *program;
    int64_t *size;
    const char *directory; /* NULL: the current one */
    const char *file;      /* the one product's file, or NULL */
    char *arch;
};

static int add_text(struct products *out, char *path, char *text)
{
    return add(out, path, text, text ? strlen(text) : 0);
}

/* Assembled from `ptx`. Takes path. */
static int add_cubin(struct products *out, char *path, const char *ptx)
{
    size_t length = 0;
    char *cubin = NULL;
    int status = ptx ? cubin_assemble(ptx, NULL, &cubin, &length) : EXIT_OK;
    if (status != EXIT_OK) {
        free(path);
        return status;
    }
    return add(out, path, cubin, length);
}

static int add_cases(const struct making *m, enum emit kind, struct products *out)
{
    const int cases = ptxgen_program_case_count(m->program);
    struct cubin *cubin = calloc((size_t)cases, sizeof *cubin);
    int status = !cubin               ? fail(EXIT_DEVICE, "out of memory")
                 : kind == EMIT_CUBIN ? cubins_assemble(m->program, NULL, false, cubin)
                                      : EXIT_OK;
    for (int i = 0; i < cases && cubin; i++) {
        char *path =
            join(m->directory, ptxgen_problem_name(m->p), ptxgen_program_case_name(m->program, i), emit_suffix[kind]);
        if (status != EXIT_OK) {
            free(path);
            free(cubin[i].code);
        } else if (kind == EMIT_CUBIN) {
            status = add(out, path, cubin[i].code, cubin[i].length);
        } else {
            status = add_text(out, path, strdup(ptxgen_program_case_ptx(m->program, i)));
        }
    }
    free(cubin);
    return status;
}

/* Machine code into the program, for one architecture. */
static int add_machine_code(const struct making *m, const char *arch)
{
    const int cases = ptxgen_program_case_count(m->program);
    struct cubin *cubin = calloc((size_t)cases, sizeof *cubin);
    int status =
        cubin ? cubins_assemble(m->program, arch, m->archs != NULL, cubin) : fail(EXIT_DEVICE, "out of memory");
    for (int i = 0; i < cases && cubin; i++) {
        if (status == EXIT_OK &&
            ptxgen_program_add_code(m->program, i, arch, cubin[i].code, cubin[i].length) != PTXGEN_OK) {
            status = fail(EXIT_WRONG, "--arch=%s: expected architectures, as sm_90,sm_120", m->archs);
        }
        free(cubin[i].code);
    }
    free(cubin);
    return status;
}

/* For each architecture of --arch. */
static int add_machine_codes(const struct making *m)
{
    int status = EXIT_OK;
    char *list = strdup(m->archs), *rest = list;
    if (!list) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    for (char *arch; (arch = strsep(&rest, ",")) && status == EXIT_OK;) {
        status = add_machine_code(m, arch);
    }
    free(list);
    return status;
}

/* The code of all cases into the disk cache, after the products are made: they hold no code that nobody asked for. */
static int keep_code(const struct making *m)
{
    char target[32];
    if (!ptxas_there()) {
        return fail(EXIT_DEVICE, "--keep needs ptxas of a CUDA toolkit: other assemblers use more registers");
    }
    if (!warn_cache()) {
        return fail(EXIT_WRONG, "--keep needs the disk cache; --cache=DIR names its directory");
    }
    int status = m->archs || !ptx_target(ptxgen_program_case_ptx(m->program, 0), target, sizeof target)
                     ? EXIT_OK
                     : add_machine_code(m, target);
    return status != EXIT_OK ? status
           : ptxgen_program_keep_code(m->program, NULL) == PTXGEN_OK
               ? EXIT_OK
               : fail(EXIT_WRONG, "the disk cache could not keep all of the code");
}

static char *make_text(const struct making *m, enum emit kind)
{
    ptxgen_compile_options options;
    compile_options(m->o, &options);
    switch (kind) {
    case EMIT_PTX:
    case EMIT_CUBIN: return ptxgen_program_ptx(m->program);
    case EMIT_LL: return ptxgen_plan_ir(m->s, m->plan, &options);
    case EMIT_PLAN: return ptxgen_plan_text(m->plan);
    case EMIT_PROBLEM: return ptxgen_problem_text(m->p);
    case EMIT_DOT: return ptxgen_problem_dot(m->p);
    case EMIT_MANIFEST: return ptxgen_program_manifest(m->program);
    case EMIT_HEADER: return ptxgen_program_header(m->program);
    case EMIT_TVM_FFI: return ptxgen_program_tvm_ffi(m->program);
    case EMIT_EXPLAIN: return ptxgen_plan_explain(m->s, m->plan, m->size);
    default: return NULL;
    }
}

static int make_product(const struct making *m, enum emit kind, struct products *out)
{
    if ((kind == EMIT_PTX || kind == EMIT_CUBIN) && m->o->split) {
        return add_cases(m, kind, out);
    }
    char *text = make_text(m, kind);
    if (!text && ptxgen_diagnostic_count(m->s) > 0) {
        return fail_call(m->s, PTXGEN_INVALID, emit_name[kind]);
    }
    char *path = m->file ? strdup(m->file) : join(m->directory, ptxgen_problem_name(m->p), "", emit_suffix[kind]);
    if (kind == EMIT_CUBIN) {
        int status = add_cubin(out, path, text);
        ptxgen_free(text);
        return status;
    }
    return add_text(out, path, text);
}

/* --emit values, comma-separated or repeated, as a set; the default is PTX and manifest. */
static int wanted(const struct options *o, unsigned *set)
{
    *set = 0;
    for (int i = 0; i < o->emit.n; i++) {
        for (const char *at = o->emit.item[i];; at++) {
            size_t n = strcspn(at, ",");
            int kind = 0;
            while (kind < EMIT_COUNT && (strlen(emit_name[kind]) != n || strncmp(emit_name[kind], at, n) != 0)) {
                kind++;
            }
            if (kind == EMIT_COUNT) {
                const char *near = nearest(at, (int)n, emit_name, EMIT_COUNT);
                return fail(EXIT_USAGE, "--emit=%.*s: %s%s", (int)n, at,
                            near ? "did you mean "
                                 : "expected ptx, cubin, ll, plan, problem, dot, manifest, header, tvm-ffi or explain",
                            near ? near : "");
            }
            *set |= 1u << kind;
            at += n;
            if (!*at) {
                break;
            }
        }
    }
    return EXIT_OK;
}

/* Of several architectures the plan and the PTX are for the first. */
static int choose_archs(struct making *m, struct options *one, unsigned set)
{
    const size_t first = one->arch ? strcspn(one->arch, ",") : 0;
    if (one->with && (strcmp(one->with, "cubin") != 0 || !(set >> EMIT_HEADER & 1))) {
        return fail(EXIT_USAGE, "--with=%s: expected --emit=header --with=cubin", one->with);
    }
    if (one->with && (!one->arch || !strcmp(one->arch, "native"))) {
        return fail(EXIT_USAGE, "--with=cubin: name the architectures, as in --arch=sm_90,sm_120");
    }
    if (!one->with && one->arch && one->arch[first]) {
        return fail(EXIT_USAGE, "--arch=%s: several architectures go with --emit=header --with=cubin", one->arch);
    }
    m->archs = one->with ? one->arch : NULL;
    if (m->archs) {
        one->arch = m->arch = strndup(one->arch, first);
    }
    return m->archs && !m->arch ? fail(EXIT_DEVICE, "out of memory") : EXIT_OK;
}

static bool many(unsigned set) { return (set & (set - 1)) != 0; }

/* Where products go: a directory, one file, or the current directory. */
static int destination(struct making *m, unsigned *set)
{
    const char *out = m->o->out;
    bool directory = out && (is_directory(out) || (out[0] && out[strlen(out) - 1] == '/'));
    if (!*set) {
        *set = out && !directory && !m->o->split ? 1u << EMIT_PTX : 1u << EMIT_PTX | 1u << EMIT_MANIFEST;
    }
    if (!out) {
        return EXIT_OK;
    }
    if (!many(*set) && !m->o->split && !directory) {
        m->file = out;
        return EXIT_OK;
    }
    if (!strcmp(out, "-")) {
        return fail(EXIT_USAGE, "-o -: several products cannot share standard output; give a directory");
    }
    struct stat st;
    const char *slash = strrchr(out, '/'), *dot = strrchr(slash ? slash : out, '.');
    if (!directory && (stat(out, &st) == 0 || (dot && dot > out && dot[-1] != '/' && dot[-1] != '.'))) {
        return fail(
            EXIT_USAGE,
            "-o %s: several products need a directory: -o DIRECTORY/ for all of them, or a command for each file", out);
    }
    m->directory = out;
    return EXIT_OK;
}

static int make_all(struct making *m, unsigned set, struct products *out)
{
    const unsigned need_plan = ~(1u << EMIT_PROBLEM | 1u << EMIT_DOT),
                   need_program =
                       1u << EMIT_PTX | 1u << EMIT_CUBIN | 1u << EMIT_MANIFEST | 1u << EMIT_HEADER | 1u << EMIT_TVM_FFI;
    int status = set & need_plan || m->o->keep ? make_plan(m->s, m->o, m->p, m->size, &m->plan) : EXIT_OK;
    if (status == EXIT_OK && (set & need_program || m->o->keep)) {
        ptxgen_compile_options options;
        compile_options(m->o, &options);
        ptxgen_status made = m->o->keep ? ptxgen_compile_cached(m->s, m->p, m->plan, &options, NULL, &m->program)
                                        : ptxgen_compile(m->s, m->plan, &options, &m->program);
        status = made == PTXGEN_OK ? EXIT_OK : fail_call(m->s, made, "compiling");
        status = status == EXIT_OK && m->archs ? add_machine_codes(m) : status;
    }
    for (int kind = 0; kind < EMIT_COUNT && status == EXIT_OK; kind++) {
        status = set >> kind & 1 ? make_product(m, (enum emit)kind, out) : EXIT_OK;
    }
    return status == EXIT_OK && m->o->keep ? keep_code(m) : status;
}

static int compile(struct making *m, struct options *one, struct products *products)
{
    unsigned set;
    int status = wanted(m->o, &set);
    status = status ? status : choose_archs(m, one, set);
    status = status ? status : load_problem(m->s, m->o, m->o->operands.item[0], &m->p);
    if (status != EXIT_OK) {
        return status;
    }
    m->size = calloc((size_t)ptxgen_problem_size_count(m->p) + 1, sizeof *m->size);
    status = m->size ? parse_sizes(m->o, m->p, m->size) : fail(EXIT_DEVICE, "out of memory");
    if (status != EXIT_OK) {
        return status;
    }
    status = destination(m, &set);
    status = status ? status : make_all(m, set, products);
    if (status == EXIT_OK && m->directory && !is_directory(m->directory) && mkdir(m->directory, 0777) != 0) {
        status = fail(EXIT_WRONG, "cannot make the directory %s: %s", m->directory, strerror(errno));
    }
    for (int i = 0; i < products->n && status == EXIT_OK; i++) {
        status = write_file(products->item[i].path, products->item[i].text, products->item[i].length);
    }
    return status;
}

int cmd_compile(const struct options *o)
{
    if (o->operands.n != 1) {
        return fail(EXIT_USAGE,
                    o->operands.n ? "one spec at a time: unexpected '%s'" : "no spec is named: ptxgen SPEC.yaml%s",
                    o->operands.n ? o->operands.item[1] : "");
    }
    struct options one = *o;
    struct making m = { .o = &one };
    struct products *products = calloc(1, sizeof *products);
    if (!products || ptxgen_session_create(&m.s) != PTXGEN_OK) {
        free(products);
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = compile(&m, &one, products);
    for (int i = 0; i < products->n; i++) {
        free(products->item[i].path);
        ptxgen_free(products->item[i].text);
    }
    free(products);
    free(m.size);
    free(m.arch);
    ptxgen_program_destroy(m.program);
    ptxgen_session_destroy(m.s);
    return status;
}
