/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - results as text and JSON, and output files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ptxgen/stages.h"

enum { SMALL = 32, EDGE = 4 }; /* arrays up to SMALL elements are shown whole, of others EDGE at both ends */

static bool is_structure(const ptxgen_array_info *a) { return a->field_count > 1 || a->field_name[0][0]; }

static void print_scalar(FILE *to, const struct array *a, int64_t i, int f, bool json)
{
    ptxgen_type t = a->info.field_type[f];
    ptxgen_value v = ptxgen_value_load(t, a->data + (size_t)i * a->info.element_size + a->info.field_offset[f]);
    if (json && type_is_float(t) && !isfinite(v.f)) {
        json_number(to, v.f);
    } else {
        print_value(to, t, v);
    }
}

static void print_element(FILE *to, const struct array *a, int64_t i, bool json)
{
    if (!is_structure(&a->info)) {
        print_scalar(to, a, i, 0, json);
        return;
    }
    fputc('{', to);
    for (int f = 0; f < a->info.field_count; f++) {
        fprintf(to, json ? "%s\"%s\": " : "%s%s: ", f ? ", " : "", a->info.field_name[f]);
        print_scalar(to, a, i, f, json);
    }
    fputc('}', to);
}

/* Dimension d and below, from element *at on. */
static void print_nested(FILE *to, const struct job *j, const struct array *a, int d, int64_t *at, bool json)
{
    if (d == a->info.rank) {
        print_element(to, a, (*at)++, json);
        return;
    }
    int64_t n = array_dim(&a->info, d, j->size);
    fputc('[', to);
    for (int64_t i = 0; i < n; i++) {
        if (i) {
            fputs(d + 1 < a->info.rank && !json ? ",\n " : ", ", to);
        }
        print_nested(to, j, a, d + 1, at, json);
    }
    fputc(']', to);
}

static void print_type(FILE *to, const struct job *j, const ptxgen_array_info *a)
{
    fputs(is_structure(a) ? "struct" : ptxgen_type_name(a->field_type[0]), to);
    for (int d = 0; d < a->rank; d++) {
        fprintf(to, "%s%lld%s", d ? ", " : "[", (long long)array_dim(a, d, j->size), d + 1 == a->rank ? "]" : "");
    }
}

/* Least and largest number and the count of NaN, for arrays that are not shown whole. */
struct summary {
    ptxgen_value min, max;
    int64_t nans;
};

static bool below(ptxgen_type t, ptxgen_value a, ptxgen_value b)
{
    return type_is_float(t) ? a.f < b.f : type_is_signed(t) ? a.i < b.i : a.u < b.u;
}

static struct summary summarise(const struct array *a, int f)
{
    ptxgen_type t = a->info.field_type[f];
    struct summary s = { { 0 }, { 0 }, 0 };
    bool any = false;
    for (int64_t i = 0; i < a->elements; i++) {
        ptxgen_value v = ptxgen_value_load(t, a->data + (size_t)i * a->info.element_size + a->info.field_offset[f]);
        if (type_is_float(t) && isnan(v.f)) {
            s.nans++;
            continue;
        }
        s.min = !any || below(t, v, s.min) ? v : s.min;
        s.max = !any || below(t, s.max, v) ? v : s.max;
        any = true;
    }
    return s;
}

static void print_summary(FILE *to, const struct array *a)
{
    for (int64_t i = 0; i < EDGE; i++) {
        print_element(to, a, i, false);
        fputs(", ", to);
    }
    fputs("...", to);
    for (int64_t i = a->elements - EDGE; i < a->elements; i++) {
        fputs(", ", to);
        print_element(to, a, i, false);
    }
    for (int f = 0; f < a->info.field_count; f++) {
        struct summary s = summarise(a, f);
        fprintf(to, "\n  %s%smin ", a->info.field_name[f], a->info.field_name[f][0] ? ": " : "");
        print_value(to, a->info.field_type[f], s.min);
        fputs(", max ", to);
        print_value(to, a->info.field_type[f], s.max);
        if (s.nans) {
            fprintf(to, ", %lld nan", (long long)s.nans);
        }
    }
}

static void text_output(const struct job *j, const struct array *a)
{
    int64_t at = 0;
    bool whole = a->elements <= SMALL || (a->source && !strcmp(a->source, "-"));
    printf("%s", a->info.name);
    if (a->info.rank > 0) {
        fputs(": ", stdout);
        print_type(stdout, j, &a->info);
    }
    fputs(" = ", stdout);
    if (whole) {
        print_nested(stdout, j, a, 0, &at, false);
    } else {
        print_summary(stdout, a);
    }
    putchar('\n');
}

static void print_index(FILE *to, const ptxgen_array_info *a, const int64_t *size, int64_t element)
{
    int64_t index[6] = { 0 };
    for (int d = a->rank - 1; d >= 0; d--) {
        int64_t n = array_dim(a, d, size);
        index[d] = element % n;
        element /= n;
    }
    for (int d = 0; d < a->rank; d++) {
        fprintf(to, "%s%lld%s", d ? ", " : "[", (long long)index[d], d + 1 == a->rank ? "]" : "");
    }
}

/* Text for a message; the caller frees. */
static char *describe_difference(const struct job *j, const struct array *a, const struct verdict *v)
{
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    if (!to) {
        return NULL;
    }
    ptxgen_type t = a->info.field_type[v->field];
    fprintf(to, "%s", a->info.name);
    print_index(to, &a->info, j->size, v->first);
    fprintf(to, "%s%s is ", a->info.field_name[v->field][0] ? "." : "", a->info.field_name[v->field]);
    print_value(to, t, v->got);
    fputs(", the reference is ", to);
    print_value(to, t, v->expected);
    fprintf(to, " (allowed difference %.3g); %lld of %lld values differ", v->bound, (long long)v->different,
            (long long)v->compared);
    fclose(to);
    return text;
}

void report_difference(const struct job *j, const struct array *a, const struct verdict *v)
{
    char *text = describe_difference(j, a, v);
    say("error", "verification failed: %s", text ? text : a->info.name);
    free(text);
}

static void text_verdict(const struct verdict *v)
{
    if (v->different == 0) {
        printf("verified: %lld value%s agree%s with the reference", (long long)v->compared, v->compared == 1 ? "" : "s",
               v->compared == 1 ? "s" : "");
        if (v->worst > 0) {
            printf(" (largest difference: %.2g of the bound)", v->worst);
        }
        if (v->unknown) {
            printf("; %lld could not be decided (no error bound)", (long long)v->unknown);
        }
        putchar('\n');
    }
}

static bool goes_to_file(const struct array *a) { return a->source && strcmp(a->source, "-") != 0; }

void report_random(FILE *to, const struct job *j)
{
    for (int i = 0; j->options->input.n == 0 && i < j->ninputs; i++) {
        fprintf(to, "%s%s%s", i ? ", " : "random data, as no --input is given: ", j->input[i].info.name,
                i + 1 == j->ninputs ? " = random:1\n" : "");
    }
}

void report_text(const struct job *j, const struct verdict *verdict)
{
    report_random(stdout, j);
    for (int i = 0; i < j->noutputs; i++) {
        if (!goes_to_file(&j->output[i])) {
            text_output(j, &j->output[i]);
        }
    }
    if (verdict) {
        text_verdict(&verdict[j->noutputs]);
    }
}

static void json_output(const struct job *j, const struct array *a)
{
    int64_t at = 0;
    json_text(stdout, a->info.name);
    fputs(": {\"type\": ", stdout);
    json_text(stdout, is_structure(&a->info) ? "struct" : ptxgen_type_name(a->info.field_type[0]));
    fputs(", \"shape\": [", stdout);
    for (int d = 0; d < a->info.rank; d++) {
        printf("%s%lld", d ? ", " : "", (long long)array_dim(&a->info, d, j->size));
    }
    putchar(']');
    if (goes_to_file(a)) {
        fputs(", \"file\": ", stdout);
        json_text(stdout, a->source);
    } else if (a->elements <= SMALL || a->source) {
        fputs(", \"value\": ", stdout);
        print_nested(stdout, j, a, 0, &at, true);
    } else if (!is_structure(&a->info)) {
        struct summary s = summarise(a, 0);
        ptxgen_type t = a->info.field_type[0];
        fputs(", \"min\": ", stdout);
        type_is_float(t) ? json_number(stdout, s.min.f) : print_value(stdout, t, s.min);
        fputs(", \"max\": ", stdout);
        type_is_float(t) ? json_number(stdout, s.max.f) : print_value(stdout, t, s.max);
        printf(", \"nans\": %lld", (long long)s.nans);
    }
}

static void json_counts(const struct verdict *v)
{
    printf("\"verified\": %s, \"compared\": %lld, \"undecided\": %lld, \"different\": %lld, "
           "\"largest_difference_per_bound\": %.3g",
           v->different ? "false" : "true", (long long)v->compared, (long long)v->unknown, (long long)v->different,
           v->worst);
}

static void json_verdict(const struct job *j, const struct array *a, const struct verdict *v)
{
    fputs(", ", stdout);
    json_counts(v);
    char *text = v->different ? describe_difference(j, a, v) : NULL;
    if (text) {
        fputs(", \"first_difference\": ", stdout);
        json_text(stdout, text);
    }
    free(text);
}

void report_json_head(const struct job *j, const char *case_name)
{
    fputs("{\"name\": ", stdout);
    json_text(stdout, ptxgen_problem_name(j->problem));
    fputs(", \"device\": ", stdout);
    json_text(stdout, j->device);
    if (case_name) {
        fputs(", \"case\": ", stdout);
        json_text(stdout, case_name);
    }
    fputs(", \"sizes\": {", stdout);
    for (int i = 0; i < j->nsizes; i++) {
        fputs(i ? ", " : "", stdout);
        json_text(stdout, ptxgen_problem_size_name(j->problem, i));
        printf(": %lld", (long long)j->size[i]);
    }
    printf("}, \"inputs_given\": %s, \"inputs\": {", j->options->input.n ? "true" : "false");
    for (int i = 0; i < j->ninputs; i++) {
        fputs(i ? ", " : "", stdout);
        json_text(stdout, j->input[i].info.name);
        fputs(": ", stdout);
        json_text(stdout, input_source(&j->input[i]));
    }
    putchar('}');
}

void report_json(const struct job *j, const struct verdict *verdict)
{
    report_json_head(j, j->case_name);
    fputs(", \"outputs\": {", stdout);
    for (int i = 0; i < j->noutputs; i++) {
        fputs(i ? ", " : "", stdout);
        json_output(j, &j->output[i]);
        if (verdict) {
            json_verdict(j, &j->output[i], &verdict[i]);
        }
        putchar('}');
    }
    putchar('}');
    if (verdict && ptxgen_stage_count(j->problem)) { /* more than the outputs: arrays between stages, and each step */
        fputs(", \"all_stages\": {", stdout);
        json_counts(&verdict[j->noutputs]);
        putchar('}');
    }
    fputs("}\n", stdout);
}

static int write_npy(const struct job *j, const struct array *a)
{
    size_t n;
    char *header = npy_header(&a->info, j->size, &n);
    char *all = header ? malloc(n + a->bytes) : NULL;
    int status = all ? EXIT_OK : fail(EXIT_DEVICE, "out of memory");
    if (all) {
        memcpy(all, header, n);
        memcpy(all + n, a->data, a->bytes);
        status = write_file(a->source, all, n + a->bytes);
    }
    free(header);
    free(all);
    return status;
}

int report_files(const struct job *j)
{
    int status = EXIT_OK;
    for (int i = 0; i < j->noutputs && status == EXIT_OK; i++) {
        status = goes_to_file(&j->output[i]) ? write_npy(j, &j->output[i]) : EXIT_OK;
    }
    return status;
}
