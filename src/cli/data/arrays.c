/* SPDX-License-Identifier: Apache-2.0 */
/* arrays.c - what a run works on: sizes from options and files, params, inputs with their elements, outputs of zeros.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "progress.h"
#include "stages.h"

static int unknown_name(const char *option, const char *kind, const char *item, int length, const char *const *names,
                        int count)
{
    const char *near = nearest(item, length, names, count);
    char list[160] = "";
    for (int i = 0, n = 0; i < count && !near && n < (int)sizeof list - 1; i++) {
        n += snprintf(list + n, sizeof list - (size_t)n, "%s%s", i ? ", " : "; it has ", names[i]);
    }
    return fail(EXIT_USAGE, "--%s %s: the spec has no %s '%.*s'%s%s%s%s", option, item, kind, length, item, list,
                near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* The number of the name that a "name=value" item begins with, or -1 after a message. */
static int find_name(const char *option, const char *kind, const char *item, const char *const *names, int count)
{
    int length;
    if (!setting_value(item, &length)) {
        fail(EXIT_USAGE, "--%s %s: expected NAME=VALUE", option, item);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        if (strlen(names[i]) == (size_t)length && !strncmp(names[i], item, (size_t)length)) {
            return i;
        }
    }
    unknown_name(option, kind, item, length, names, count);
    return -1;
}

static const char *value_of(const char *item)
{
    int length;
    return setting_value(item, &length);
}

int parse_sizes(const struct options *o, const ptxgen_problem *p, int64_t *size)
{
    int n = ptxgen_problem_size_count(p);
    const char *names[256];
    for (int i = 0; i < n && i < 256; i++) {
        names[i] = ptxgen_problem_size_name(p, i);
        size[i] = -1;
    }
    for (int k = 0; k < o->size.n; k++) {
        int i = find_name("size", "size", o->size.item[k], names, n < 256 ? n : 256);
        if (i < 0) {
            return EXIT_USAGE;
        }
        const char *wrong = parse_count(value_of(o->size.item[k]), &size[i]);
        if (wrong) {
            return fail(EXIT_USAGE, "--size %s: %s", o->size.item[k], wrong);
        }
    }
    return EXIT_OK;
}

/* Which DATA or FILE each array gets. */
static int assign(const char *option, const char *kind, const struct list *items, struct array *arrays, int count)
{
    const char **names = calloc((size_t)count + 1, sizeof *names);
    if (!names) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = EXIT_OK;
    for (int i = 0; i < count; i++) {
        names[i] = arrays[i].info.name;
    }
    for (int k = 0; k < items->n && status == EXIT_OK; k++) {
        int i = find_name(option, kind, items->item[k], names, count);
        if (i < 0) {
            status = EXIT_USAGE;
        } else if (arrays[i].source) {
            status = fail(EXIT_USAGE, "--%s %s is given twice", option, arrays[i].info.name);
        } else {
            arrays[i].source = value_of(items->item[k]);
        }
    }
    free(names);
    return status;
}

const char *input_source(const struct array *a) { return a->source ? a->source : "random:1"; }

/* All inputs have DATA, or none: with some given, another one was forgotten. */
static int all_or_none(const struct job *j)
{
    for (int i = 0; j->options->input.n && i < j->ninputs; i++) {
        const char *name = j->input[i].info.name;
        if (!j->input[i].source) {
            return fail(EXIT_USAGE,
                        "%s: the input '%s' has no data: give --input %s=FILE.npy, or %s=random:SEED, iota or const:V "
                        "(without any --input all inputs are random:1)",
                        j->options->operands.item[0], name, name, name);
        }
    }
    return EXIT_OK;
}

/* More than this machine can hold, where the system would promise it all the same.  Four times what it says it has:
 * virtual machines that grow on demand say less. */
static bool beyond_memory(size_t bytes)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 && bytes / 4 / (size_t)page > (size_t)pages;
}

/* The header, as far as its own length says: a file may have no end.  NULL, or what is wrong. */
static const char *read_header(FILE *from, struct npy *out)
{
    size_t end = 0;
    char *text = malloc(NPY_PREFIX + NPY_HEADER_MAX);
    if (!text) {
        return "out of memory";
    }
    size_t have = read_part(from, text, NPY_PREFIX);
    const char *wrong = npy_header_end(text, have, &end);
    if (!wrong) {
        have += read_part(from, text + have, end - have);
        wrong = npy_parse(text, have, out);
    }
    free(text);
    return wrong;
}

static const char *read_elements(FILE *from, struct npy *f)
{
    if (beyond_memory(f->bytes) || !(f->elements = malloc(f->bytes + 1))) {
        return "its elements do not fit memory";
    }
    return read_part(from, f->elements, f->bytes) < f->bytes ? "it is shorter than its shape says" : NULL;
}

/* A file's shape gives sizes, or must agree with them. */
static int sizes_from_file(struct job *j, const struct array *a)
{
    if (a->file->rank != a->info.rank) {
        return fail(EXIT_WRONG, "input '%s': %s has %d dimensions, the spec says %d", a->info.name, a->source,
                    a->file->rank, a->info.rank);
    }
    for (int d = 0; d < a->info.rank; d++) {
        int64_t have = a->file->shape[d];
        int which = a->info.size_index[d];
        if (which >= 0 && j->size[which] < 0) {
            j->size[which] = have - a->info.size_add[d];
        }
        int64_t want = array_dim(&a->info, d, j->size);
        if (have != want) {
            return fail(EXIT_WRONG, "input '%s': dimension %d of %s is %lld, but %s%s%lld", a->info.name, d, a->source,
                        (long long)have, which < 0 ? "the spec says " : ptxgen_problem_size_name(j->problem, which),
                        which < 0 ? "" : " is already ", (long long)want);
        }
    }
    return EXIT_OK;
}

/* Nothing is read of a file that is for another type or other sizes; and no more than it says it has. */
static int load_file(struct job *j, struct array *a)
{
    char buffer[256];
    FILE *from = fopen(a->source, "rb");
    if (!from || !(a->file = calloc(1, sizeof *a->file))) {
        const int reason = from ? ENOMEM : errno;
        if (from) {
            fclose(from);
        }
        return fail(EXIT_WRONG, "input '%s': cannot read %s: %s (a file, or random[:SEED], iota, const:V)",
                    a->info.name, a->source, strerror(reason));
    }
    const char *wrong = read_header(from, a->file);
    wrong = wrong ? wrong : npy_matches(a->file, &a->info, buffer, sizeof buffer);
    int status = wrong ? EXIT_OK : sizes_from_file(j, a);
    wrong = wrong || status ? wrong : read_elements(from, a->file);
    const bool failed = ferror(from) != 0;
    fclose(from);
    if (failed) {
        return fail(EXIT_WRONG, "input '%s': cannot read %s: %s", a->info.name, a->source, strerror(EIO));
    }
    return wrong ? fail(EXIT_WRONG, "input '%s': %s: %s", a->info.name, a->source, wrong) : status;
}

static int find_sizes(struct job *j)
{
    int status = parse_sizes(j->options, j->problem, j->size);
    for (int i = 0; i < j->ninputs && status == EXIT_OK; i++) {
        struct array *a = &j->input[i];
        if (a->source && data_is_file(a->source)) {
            status = load_file(j, a);
        }
    }
    for (int i = 0; i < j->nsizes && status == EXIT_OK; i++) {
        if (j->size[i] < 0) {
            const char *name = ptxgen_problem_size_name(j->problem, i);
            status = fail(EXIT_USAGE, "the size '%s' is not known: give --size %s=N, or an input file", name, name);
        }
    }
    return status;
}

enum { PARAMS_MAX = 256 }; /* far beyond what the language allows */

/* all: every param needs a value; else what has none is left. */
static int find_params(struct job *j, bool all)
{
    const char *names[PARAMS_MAX];
    bool given[PARAMS_MAX] = { false };
    ptxgen_param_info info[PARAMS_MAX];
    if (j->nparams > PARAMS_MAX) {
        return fail(EXIT_INTERNAL, "more than %d params", PARAMS_MAX);
    }
    for (int i = 0; i < j->nparams; i++) {
        ptxgen_problem_param(j->problem, i, &info[i]);
        names[i] = info[i].name;
        if (all || info[i].has_default) {
            j->param[i] = info[i].default_value;
        }
    }
    for (int k = 0; k < j->options->param.n; k++) {
        const char *item = j->options->param.item[k];
        int i = find_name("param", "param", item, names, j->nparams);
        if (i < 0) {
            return EXIT_USAGE;
        }
        const char *wrong = parse_value(value_of(item), info[i].type, &j->param[i]);
        if (wrong) {
            return fail(EXIT_USAGE, "--param %s: %s (%s)", item, wrong, ptxgen_type_name(info[i].type));
        }
        given[i] = true;
    }
    for (int i = 0; i < j->nparams; i++) {
        if (all && !given[i] && !info[i].has_default) {
            return fail(EXIT_USAGE, "the param '%s' has no value: give --param %s=VALUE (%s)", names[i], names[i],
                        ptxgen_type_name(info[i].type));
        }
    }
    return EXIT_OK;
}

int shape_of(const ptxgen_array_info *a, const int64_t *size, int64_t *elements, size_t *bytes)
{
    *elements = ptxgen_array_elements(a, size);
    if (*elements < 0 || __builtin_mul_overflow((size_t)*elements, a->element_size, bytes) || *bytes > INT64_MAX) {
        return fail(EXIT_WRONG, "the shape of '%s' is negative or too large at these sizes [PTXG-5002]", a->name);
    }
    return EXIT_OK;
}

/* Zeros, `shift` elements past an address that is aligned to 256 bytes. */
static int allocate(struct job *j, struct array *a, int64_t shift)
{
    size_t skip, bytes;
    int status = shape_of(&a->info, j->size, &a->elements, &a->bytes);
    if (status != EXIT_OK) {
        return status;
    }
    if (__builtin_mul_overflow((size_t)shift, a->info.element_size, &skip) ||
        __builtin_add_overflow(a->bytes, skip, &bytes) || bytes > SIZE_MAX - 512 || beyond_memory(bytes) ||
        !(a->block = aligned_alloc(256, (bytes + 511) / 256 * 256))) {
        return fail(EXIT_DEVICE, "not enough memory for '%s' (%zu bytes)", a->info.name, a->bytes);
    }
    a->data = a->block + skip;
    memset(a->data, 0, a->bytes);
    return EXIT_OK;
}

/* Elements of the dimension that segment offsets cut: that of the first one-dimensional per-element input. */
static int64_t offsets_end(const struct job *j)
{
    for (int i = 0; i < j->ninputs; i++) {
        if (j->input[i].info.role == PTXGEN_ROLE_ELEMENTS && j->input[i].info.rank == 1) {
            return j->input[i].elements;
        }
    }
    for (int i = 0; i < j->ninputs; i++) { /* of stages, one may read as a table what another one has in segments */
        if (j->input[i].info.role != PTXGEN_ROLE_SEGMENT_OFFSETS && j->input[i].info.rank == 1) {
            return j->input[i].elements;
        }
    }
    return 0;
}

static int check_offsets(const struct array *a, int64_t end)
{
    int64_t before = 0;
    for (int64_t i = 0; i < a->elements; i++) {
        int64_t at = ptxgen_value_load(a->info.field_type[0], a->data + (size_t)i * a->info.element_size).i;
        if (at < before || at > end) {
            return fail(
                EXIT_WRONG,
                "input '%s': offset %lld is %lld, after %lld: offsets must ascend from 0 or more to at most %lld",
                a->info.name, (long long)i, (long long)at, (long long)before, (long long)end);
        }
        before = at;
    }
    return EXIT_OK;
}

static int fill_input(const struct job *j, struct array *a)
{
    int64_t end = offsets_end(j);
    int status = EXIT_OK;
    if (a->file) {
        memcpy(a->data, a->file->elements, a->bytes);
        free(a->file->elements);
        a->file->elements = NULL;
    } else {
        status = data_fill(a, input_source(a), end);
    }
    return status == EXIT_OK && a->info.role == PTXGEN_ROLE_SEGMENT_OFFSETS ? check_offsets(a, end) : status;
}

static int make_arrays(struct job *j)
{
    int64_t shift = 0;
    const char *wrong = j->options->unaligned ? parse_count(j->options->unaligned, &shift) : NULL;
    if (wrong || shift > 1024) {
        return fail(EXIT_USAGE, "--unaligned %s: %s", j->options->unaligned, wrong ? wrong : "at most 1024");
    }
    int status = EXIT_OK;
    for (int i = 0; i < j->ninputs && status == EXIT_OK; i++) {
        status = allocate(j, &j->input[i], shift);
    }
    progress_begin("filling the inputs", 0);
    for (int i = 0; i < j->ninputs && status == EXIT_OK; i++) {
        progress_at((double)i / j->ninputs);
        status = fill_input(j, &j->input[i]);
    }
    progress_end();
    for (int i = 0; i < j->noutputs && status == EXIT_OK; i++) {
        status = allocate(j, &j->output[i], shift);
    }
    return status;
}

static bool reserve(struct job *j)
{
    if (j->size) {
        return true;
    }
    j->nsizes = ptxgen_problem_size_count(j->problem);
    j->ninputs = ptxgen_problem_input_count(j->problem);
    j->noutputs = ptxgen_problem_output_count(j->problem);
    j->nparams = ptxgen_problem_param_count(j->problem);
    j->size = calloc((size_t)j->nsizes + 1, sizeof *j->size);
    j->input = calloc((size_t)j->ninputs + 1, sizeof *j->input);
    j->output = calloc((size_t)j->noutputs + 1, sizeof *j->output);
    j->param = calloc((size_t)j->nparams + 1, sizeof *j->param);
    void **input = calloc((size_t)j->ninputs + 1, sizeof *input),
         **output = calloc((size_t)j->noutputs + 1, sizeof *output);
    j->args = (ptxgen_arguments){ j->size, (const void *const *)input, output, j->param };
    return j->size && j->input && j->output && j->param && input && output;
}

int job_params(struct job *j)
{
    if (!reserve(j)) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    for (int i = 0; i < j->nparams; i++) {
        j->param[i].i = 1;
    }
    return find_params(j, false);
}

int job_prepare(struct job *j)
{
    if (!reserve(j)) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    for (int i = 0; i < j->ninputs; i++) {
        ptxgen_problem_input(j->problem, i, &j->input[i].info);
    }
    for (int i = 0; i < j->noutputs; i++) {
        ptxgen_problem_output(j->problem, i, &j->output[i].info);
    }
    int status = assign("input", "input", &j->options->input, j->input, j->ninputs);
    status = status ? status : all_or_none(j);
    status = status ? status : assign("output", "output", &j->options->output, j->output, j->noutputs);
    status = status ? status : find_params(j, true);
    status = status ? status : find_sizes(j);
    status = status ? status : make_arrays(j);
    for (int i = 0; i < j->ninputs; i++) {
        ((void **)j->args.input)[i] = j->input[i].data;
    }
    for (int i = 0; i < j->noutputs; i++) {
        ((void **)j->args.output)[i] = j->output[i].data;
    }
    return status;
}

static void free_array(struct array *a)
{
    if (a->file) {
        free(a->file->elements);
    }
    free(a->file);
    free(a->block);
    free(a->bound);
    free(a->expected);
}

void job_finish(struct job *j)
{
    for (int i = 0; j->input && i < j->ninputs; i++) {
        free_array(&j->input[i]);
    }
    for (int i = 0; j->output && i < j->noutputs; i++) {
        free_array(&j->output[i]);
    }
    free(j->size);
    free(j->input);
    free(j->output);
    free(j->param);
    stages_checks_free(j->checks);
    free((void *)j->args.input);
    free((void *)j->args.output);
}
