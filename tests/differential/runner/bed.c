/* SPDX-License-Identifier: Apache-2.0 */
/* bed.c - the arrays of one run: each between guards, in one image that is copied to the device and back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

enum { GUARD = 512, POISON = 0xa5 };

struct bed {
    struct device *d;
    const struct run *run;
    int ninputs, noutputs;
    ptxgen_array_info info[2 * NAMES_MAX];
    const struct array *array[2 * NAMES_MAX]; /* inputs, then outputs */
    size_t at[2 * NAMES_MAX], bytes;
    char *before, *after; /* images on the host */
    char *place;          /* where they are used: memory of the device, or `after` */
    const void *in[NAMES_MAX];
    void *out[NAMES_MAX];
};

static const struct array *find(const struct array *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

/* The library's arrays, and ours of the same names and sizes in bytes. */
static bool match(struct bed *b, const ptxgen_problem *p, const int64_t *size, char *why)
{
    b->ninputs = ptxgen_problem_input_count(p);
    b->noutputs = ptxgen_problem_output_count(p);
    for (int k = 0; k < b->ninputs + b->noutputs; k++) {
        const bool in = k < b->ninputs;
        ptxgen_array_info *info = &b->info[k];

        if (in)
            ptxgen_problem_input(p, k, info);
        else
            ptxgen_problem_output(p, k - b->ninputs, info);
        b->array[k] =
            in ? find(b->run->input, b->run->ninputs, info->name) : find(b->run->output, b->run->noutputs, info->name);
        int64_t elements = ptxgen_array_elements(info, size);
        if (elements < 0)
            elements = 0;
        if (b->array[k] == NULL || b->array[k]->data.length != (size_t)elements * info->element_size) {
            snprintf(why, WHY, "%s has %lld elements of %zu bytes, and %zu bytes are expected", info->name,
                     (long long)elements, info->element_size, b->array[k] ? b->array[k]->data.length : 0);
            return false;
        }
    }
    return true;
}

static void lay(struct bed *b, unsigned more_shift)
{
    for (int k = 0; k < b->ninputs + b->noutputs; k++) {
        const size_t shift = b->array[k]->shift + more_shift * b->info[k].element_size;

        b->at[k] = b->bytes + GUARD + shift;
        b->bytes = (b->at[k] + b->array[k]->data.length + GUARD + 255) / 256 * 256;
    }
}

static bool images(struct bed *b)
{
    void *p = NULL;

    b->before = aligned_alloc(256, b->bytes + 256);
    b->after = aligned_alloc(256, b->bytes + 256);
    if (b->before == NULL || b->after == NULL)
        return false;
    memset(b->before, POISON, b->bytes);
    for (int k = 0; k < b->ninputs; k++)
        memcpy(b->before + b->at[k], b->array[k]->data.at, b->array[k]->data.length);
    if (b->d->gpu && ptxgen_gpu_alloc(b->d->s, b->d->gpu, b->bytes + 256, &p) != PTXGEN_OK)
        return false;
    b->place = b->d->gpu ? p : b->after;
    for (int k = 0; k < b->ninputs + b->noutputs; k++)
        if (k < b->ninputs)
            b->in[k] = b->place + b->at[k];
        else
            b->out[k - b->ninputs] = b->place + b->at[k];
    return true;
}

bool bed_reset(struct bed *b)
{
    if (b->d->gpu)
        return ptxgen_gpu_write(b->d->s, b->d->gpu, b->place, b->before, b->bytes) == PTXGEN_OK;
    memcpy(b->after, b->before, b->bytes);
    return true;
}

struct bed *bed_create(struct device *d, const ptxgen_problem *p, const struct run *run, const int64_t *size,
                       unsigned more_shift, char *why)
{
    struct bed *b = calloc(1, sizeof *b);

    if (b == NULL)
        return NULL;
    b->d = d;
    b->run = run;
    if (!match(b, p, size, why)) {
        free(b);
        return NULL;
    }
    lay(b, more_shift);
    if (!images(b) || !bed_reset(b)) {
        snprintf(why, WHY, "no memory");
        bed_destroy(b);
        return NULL;
    }
    return b;
}

void bed_destroy(struct bed *b)
{
    if (b == NULL)
        return;
    if (b->d->gpu)
        ptxgen_gpu_free(b->d->gpu, b->place);
    free(b->before);
    free(b->after);
    free(b);
}

const void *const *bed_inputs(const struct bed *b) { return b->in; }
void *const *bed_outputs(const struct bed *b) { return b->out; }

/* ---- comparison ------------------------------------------------------------------------------ */
static bool is_float(ptxgen_type t) { return t >= PTXGEN_F16; }

static bool equal_values(ptxgen_type t, const char *got, const char *expected, bool zeros_alike)
{
    const ptxgen_value g = ptxgen_value_load(t, got), e = ptxgen_value_load(t, expected);

    if (memcmp(got, expected, ptxgen_type_size(t)) == 0)
        return true;
    return is_float(t) && ((isnan(g.f) && isnan(e.f)) || (zeros_alike && g.f == 0 && e.f == 0));
}

/* One component; `range` moves on. */
static bool agrees(enum agreement how, ptxgen_type t, const char *got, const char *expected, const char **range)
{
    double ends[2], v;

    switch (how) {
    case AGREE_ANY: return true;
    case AGREE_KEEP:
        for (size_t i = 0; i < ptxgen_type_size(t); i++)
            if ((unsigned char)got[i] != POISON)
                return false;
        return true;
    case AGREE_RANGE:
        memcpy(ends, *range, sizeof ends);
        *range += sizeof ends;
        v = ptxgen_value_load(t, got).f;
        return v >= ends[0] && v <= ends[1];
    default: return equal_values(t, got, expected, how == AGREE_ZERO);
    }
}

static void show(ptxgen_type t, const char *p, char *out, size_t size)
{
    const ptxgen_value v = ptxgen_value_load(t, p);

    if (is_float(t))
        snprintf(out, size, "%.17g", v.f);
    else if (t >= PTXGEN_U8)
        snprintf(out, size, "%llu", (unsigned long long)v.u);
    else
        snprintf(out, size, "%lld", (long long)v.i);
}

static void describe(const ptxgen_array_info *info, size_t i, int f, enum agreement how, const char *got,
                     const char *expected, const char *range, char *why)
{
    char g[64], e[64], bounds[96] = "";
    double ends[2];

    show(info->field_type[f], got, g, sizeof g);
    show(info->field_type[f], expected, e, sizeof e);
    if (how == AGREE_RANGE) {
        memcpy(ends, range - sizeof ends, sizeof ends);
        snprintf(bounds, sizeof bounds, " in [%.17g, %.17g]", ends[0], ends[1]);
    }
    snprintf(why, WHY, "%s%s%s[%zu] is %s, expected %s%s", info->name, info->field_name[f][0] ? "." : "",
             info->field_name[f], i, g, how == AGREE_KEEP ? "what was there" : e, bounds);
}

static bool check_output(const struct bed *b, int k, char *why)
{
    const ptxgen_array_info *info = &b->info[k];
    const struct array *a = b->array[k];
    const char *range = a->range.at, *got = b->after + b->at[k];
    const size_t n = a->data.length / info->element_size;
    size_t wrong = 0, component = 0;

    for (size_t i = 0; i < n; i++)
        for (int f = 0; f < info->field_count; f++, component++) {
            const size_t at = i * info->element_size + info->field_offset[f];
            const enum agreement how = (enum agreement)a->mask.at[component];

            if (!agrees(how, info->field_type[f], got + at, a->data.at + at, &range) && wrong++ == 0)
                describe(info, i, f, how, got + at, a->data.at + at, range, why);
        }
    if (wrong > 1)
        snprintf(why + strlen(why), WHY - strlen(why), "; %zu of %zu are wrong", wrong, component);
    return wrong == 0;
}

/* Nothing but the outputs has changed. */
static bool check_rest(struct bed *b, char *why)
{
    for (int k = b->ninputs; k < b->ninputs + b->noutputs; k++)
        memset(b->after + b->at[k], POISON, b->array[k]->data.length);
    if (memcmp(b->after, b->before, b->bytes) == 0)
        return true;
    size_t i = 0, last = b->bytes - 1;
    while (b->after[i] == b->before[i])
        i++;
    while (b->after[last] == b->before[last])
        last--;
    for (int k = 0; k < b->ninputs + b->noutputs; k++)
        if (i < b->at[k] + b->array[k]->data.length + GUARD) {
            snprintf(why, WHY, "written to byte %lld of %s, which has %zu bytes%s: 0x%02x; the last such byte is %lld",
                     (long long)i - (long long)b->at[k], b->info[k].name, b->array[k]->data.length,
                     k < b->ninputs ? " (an input)" : "", (unsigned char)b->after[i],
                     (long long)last - (long long)b->at[k]);
            break;
        }
    return false;
}

bool bed_check(struct bed *b, char *why)
{
    bool ok = true;
    char *outputs;

    if (b->d->gpu && ptxgen_gpu_read(b->d->s, b->d->gpu, b->after, b->place, b->bytes) != PTXGEN_OK) {
        snprintf(why, WHY, "the arrays could not be read back");
        return false;
    }
    for (int k = b->ninputs; k < b->ninputs + b->noutputs && ok; k++)
        ok = check_output(b, k, why);
    outputs = ok ? malloc(b->bytes) : NULL;
    if (outputs == NULL)
        return ok;
    memcpy(outputs, b->after, b->bytes);
    ok = check_rest(b, why);
    memcpy(b->after, outputs, b->bytes);
    free(outputs);
    return ok;
}

bool bed_same(const struct bed *a, const struct bed *b, char *why)
{
    for (int k = a->ninputs; k < a->ninputs + a->noutputs; k++) {
        const ptxgen_array_info *info = &a->info[k];
        const size_t n = a->array[k]->data.length / info->element_size;

        for (size_t i = 0; i < n; i++)
            for (int f = 0; f < info->field_count; f++) {
                const size_t at = i * info->element_size + info->field_offset[f];

                if (!equal_values(info->field_type[f], a->after + a->at[k] + at, b->after + b->at[k] + at, false)) {
                    snprintf(why, WHY, "other bits the second time: ");
                    describe(info, i, f, AGREE_BITS, b->after + b->at[k] + at, a->after + a->at[k] + at, NULL,
                             why + strlen(why) < why + WHY - 300 ? why + strlen(why) : why);
                    return false;
                }
            }
    }
    return true;
}
