/* SPDX-License-Identifier: Apache-2.0 */
/* bed.c - where the arrays of one sample lie on the device, for several launches at once.
 *
 * One region holds the inputs, one all copies of the outputs, so that poisoning is one fill and reading back one copy.
 * With `exact` (a sanitizer looks on, or the host executor) each array is an allocation of exactly its size; as
 * allocating is slow there, those that are done with wait for the next array of the same size.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu_tests.h"

enum { MARGIN = 256, SPARES = 24 };

struct region {
    char *base;
    size_t size, used;
};

struct spare {
    void *p;
    size_t bytes;
};

struct bed {
    struct sample *x;
    int shift, copies, in_place;
    bool exact;
    struct region inputs, outputs;
    char *in[ARRAYS_MAX], *out[COPIES_MAX][ARRAYS_MAX];
    struct spare spare[SPARES];
    int oldest;
    char *mirror; /* the outputs' region on the host, or exact arrays one after the other */
    size_t mirror_size;
    const void *in_argument[COPIES_MAX][ARRAYS_MAX];
    void *out_argument[COPIES_MAX][ARRAYS_MAX];
};

/* ---- memory on the device or the host -------------------------------------------------------- */
static char *get(struct suite *t, size_t bytes)
{
    void *p = NULL;

    if (t->gpu == NULL)
        return aligned_alloc(256, (bytes + 256) / 256 * 256);
    begin_context_work();
    ptxgen_status status = ptxgen_gpu_alloc(t->s, t->gpu, bytes, &p);
    end_context_work();
    return status == PTXGEN_OK ? p : NULL;
}

static void give(struct suite *t, void *p)
{
    if (p == NULL)
        return;
    begin_context_work();
    if (t->gpu)
        ptxgen_gpu_free(t->gpu, p);
    else
        free(p);
    end_context_work();
}

static bool put(struct suite *t, void *to, const void *from, size_t bytes)
{
    begin_context_work();
    bool ok = t->gpu == NULL || ptxgen_gpu_write(t->s, t->gpu, to, from, bytes) == PTXGEN_OK;
    if (t->gpu == NULL)
        memcpy(to, from, bytes);
    end_context_work();
    return ok;
}

static bool take(struct suite *t, void *to, const void *from, size_t bytes)
{
    if (t->gpu)
        return ptxgen_gpu_read(t->s, t->gpu, to, from, bytes) == PTXGEN_OK;
    memcpy(to, from, bytes);
    return true;
}

static bool poison(struct suite *t, void *p, size_t bytes)
{
    if (t->gpu)
        return ptxgen_gpu_fill(t->s, t->gpu, p, POISON, bytes, t->stream[0]) == PTXGEN_OK;
    memset(p, POISON, bytes);
    return true;
}

/* An allocation of exactly this size, one that is left if there is one. */
static char *get_exact(struct suite *t, struct bed *b, size_t bytes)
{
    for (int i = 0; i < SPARES; i++)
        if (b->spare[i].p && b->spare[i].bytes == bytes) {
            char *p = b->spare[i].p;

            b->spare[i].p = NULL;
            return p;
        }
    return get(t, bytes);
}

static void give_exact(struct suite *t, struct bed *b, void *p, size_t bytes)
{
    struct spare *s = &b->spare[b->oldest++ % SPARES];

    give(t, s->p);
    *s = (struct spare){ p, bytes };
}

/* At least this much; what was in it is gone. */
static bool region_need(struct suite *t, struct region *r, size_t bytes)
{
    r->used = 0;
    if (r->size >= bytes)
        return true;
    give(t, r->base);
    r->base = get(t, 2 * bytes);
    r->size = r->base ? 2 * bytes : 0;
    return r->base != NULL;
}

/* ---- layout ---------------------------------------------------------------------------------- */
static size_t lead_bytes(const struct bed *b, const ptxgen_array_info *a) { return (size_t)b->shift * a->element_size; }

/* What an array takes of a region: its lead, itself, a margin behind it, up to where the next may begin. */
static size_t room(const struct bed *b, const ptxgen_array_info *a)
{
    return (lead_bytes(b, a) + array_bytes(a, b->x->size) + MARGIN + 255) / 256 * 256;
}

static size_t exact_bytes(const struct bed *b, const ptxgen_array_info *a)
{
    return lead_bytes(b, a) + array_bytes(a, b->x->size);
}

/* Where array `a` begins: in the region, or in an allocation of its own. */
static char *place(struct suite *t, struct bed *b, struct region *r, const ptxgen_array_info *a)
{
    char *at;

    if (b->exact) {
        at = get_exact(t, b, exact_bytes(b, a));
    } else {
        at = r->base + r->used;
        r->used += room(b, a);
    }
    return at ? at + lead_bytes(b, a) : NULL;
}

static void drop(struct suite *t, struct bed *b, char *array, const ptxgen_array_info *a)
{
    if (array)
        give_exact(t, b, array - lead_bytes(b, a), exact_bytes(b, a));
}

static void drop_exact(struct suite *t, struct bed *b)
{
    if (b->x == NULL || !b->exact)
        return;
    for (int i = 0; i < ARRAYS_MAX; i++)
        drop(t, b, b->in[i], &b->x->input[i]);
    for (int c = 0; c < COPIES_MAX; c++)
        for (int o = 0; o < ARRAYS_MAX; o++)
            drop(t, b, b->out[c][o], &b->x->output[o]);
}

bool bed_create(struct suite *t)
{
    t->bed = calloc(1, sizeof *t->bed);
    if (t->bed)
        t->bed->exact = t->sanitize || t->gpu == NULL;
    return t->bed != NULL;
}

void bed_clear(struct suite *t)
{
    struct bed *b = t->bed;

    drop_exact(t, b);
    memset(b->in, 0, sizeof b->in);
    memset(b->out, 0, sizeof b->out);
    b->x = NULL;
}

void bed_destroy(struct suite *t)
{
    if (t->bed == NULL)
        return;
    bed_clear(t);
    for (int i = 0; i < SPARES; i++)
        give(t, t->bed->spare[i].p);
    give(t, t->bed->inputs.base);
    give(t, t->bed->outputs.base);
    free(t->bed->mirror);
    free(t->bed);
    t->bed = NULL;
}

/* Memory for all arrays; false: there is not that much. */
static bool reserve(struct suite *t, struct bed *b)
{
    size_t inputs = 0, outputs = 0;

    for (int i = 0; i < b->x->ninputs; i++)
        inputs += room(b, &b->x->input[i]);
    for (int o = 0; o < b->x->noutputs; o++)
        outputs += room(b, &b->x->output[o]) * (size_t)b->copies;
    if (b->mirror_size < outputs + inputs) {
        free(b->mirror);
        b->mirror_size = 2 * (outputs + inputs);
        b->mirror = malloc(b->mirror_size);
        if (b->mirror == NULL)
            b->mirror_size = 0;
    }
    return b->mirror_size > 0 &&
           (b->exact || (region_need(t, &b->inputs, inputs) && region_need(t, &b->outputs, outputs)));
}

bool bed_lay(struct suite *t, struct sample *x, int shift, int copies, int in_place)
{
    struct bed *b = t->bed;

    bed_clear(t);
    b->x = x;
    b->shift = shift;
    b->copies = b->exact ? 1 : copies;
    b->in_place = in_place;
    if (!reserve(t, b))
        return false;
    for (int i = 0; i < x->ninputs; i++) {
        b->in[i] = place(t, b, &b->inputs, &x->input[i]);
        if (!b->in[i] || !put(t, b->in[i], x->in[i], array_bytes(&x->input[i], x->size)))
            return false;
    }
    for (int c = 0; c < b->copies; c++) {
        for (int o = 0; o < x->noutputs; o++)
            if ((b->out_argument[c][o] = b->out[c][o] = place(t, b, &b->outputs, &x->output[o])) == NULL)
                return false;
        for (int i = 0; i < x->ninputs; i++)
            b->in_argument[c][i] = i == in_place ? b->out[c][0] : b->in[i];
    }
    return true;
}

ptxgen_arguments bed_arguments(const struct bed *b, int copy)
{
    return (ptxgen_arguments){ b->x->size, b->in_argument[copy], b->out_argument[copy], b->x->param };
}

/* ---- filling and reading --------------------------------------------------------------------- */
bool bed_poison(struct suite *t)
{
    struct bed *b = t->bed;
    bool ok = b->exact || poison(t, b->outputs.base, b->outputs.used);

    for (int o = 0; o < b->x->noutputs && ok && b->exact; o++)
        ok = poison(t, b->out[0][o] - lead_bytes(b, &b->x->output[o]), exact_bytes(b, &b->x->output[o]));
    ok = ok && (t->gpu == NULL || ptxgen_stream_wait(t->s, t->gpu, t->stream[0]) == PTXGEN_OK);
    for (int c = 0; c < b->copies && ok && b->in_place >= 0; c++)
        ok = put(t, b->out[c][0], b->x->in[b->in_place], array_bytes(&b->x->output[0], b->x->size));
    return ok;
}

/* Where the bytes before an output begin in the mirror. */
static char *mirrored(const struct bed *b, int copy, int o)
{
    char *at = b->mirror;

    if (!b->exact)
        return at + (b->out[copy][o] - lead_bytes(b, &b->x->output[o]) - b->outputs.base);
    for (int i = 0; i < o; i++)
        at += room(b, &b->x->output[i]);
    return at;
}

bool bed_fetch(struct suite *t)
{
    struct bed *b = t->bed;
    bool ok = b->exact || take(t, b->mirror, b->outputs.base, b->outputs.used);

    for (int o = 0; o < b->x->noutputs && ok && b->exact; o++) {
        size_t lead = lead_bytes(b, &b->x->output[o]), bytes = array_bytes(&b->x->output[o], b->x->size);

        memset(mirrored(b, 0, o), POISON, room(b, &b->x->output[o]));
        ok = take(t, mirrored(b, 0, o), b->out[0][o] - lead, lead + bytes);
    }
    return ok;
}

/* ---- checking -------------------------------------------------------------------------------- */
static bool is_poison(const char *p, size_t n, size_t *at)
{
    for (*at = 0; *at < n; ++*at)
        if ((unsigned char)p[*at] != POISON)
            return false;
    return true;
}

static bool check_around(const struct bed *b, int copy, int o, char *why, size_t length)
{
    const ptxgen_array_info *a = &b->x->output[o];
    const size_t lead = lead_bytes(b, a), bytes = array_bytes(a, b->x->size);
    const char *before = mirrored(b, copy, o), *behind = before + lead + bytes;
    size_t at;

    if (!is_poison(before, lead, &at))
        snprintf(why, length, "%s: wrote %zu bytes before the array", a->name, lead - at);
    else if (!is_poison(behind, room(b, a) - lead - bytes, &at))
        snprintf(why, length, "%s: wrote %zu bytes behind the array", a->name, at + 1);
    else
        return true;
    return false;
}

static bool check_bits(void **keep, const void *got, size_t bytes)
{
    if (*keep)
        return memcmp(*keep, got, bytes) == 0;
    *keep = malloc(bytes + 1);
    if (*keep)
        memcpy(*keep, got, bytes);
    return true;
}

bool bed_check(struct suite *t, int copy, void **keep, char *why, size_t length)
{
    const struct bed *b = t->bed;

    for (int o = 0; o < b->x->noutputs; o++) {
        const ptxgen_array_info *a = &b->x->output[o];
        const char *got = mirrored(b, copy, o) + lead_bytes(b, a);
        const bool known = keep && keep[o]; /* equal to what has been compared */

        if (!check_around(b, copy, o, why, length) || (!known && !sample_check(b->x, o, got, why, length)))
            return false;
        if (keep && !check_bits(&keep[o], got, array_bytes(a, b->x->size))) {
            if (sample_check(b->x, o, got, why, length))
                snprintf(why, length, "%s: other bits than the first time", a->name);
            return false;
        }
    }
    return true;
}

bool bed_check_inputs(struct suite *t, char *why, size_t length)
{
    const struct bed *b = t->bed;

    for (int i = 0; i < b->x->ninputs; i++) {
        const size_t bytes = array_bytes(&b->x->input[i], b->x->size);

        if (!take(t, b->mirror, b->in[i], bytes) || memcmp(b->mirror, b->x->in[i], bytes) != 0) {
            snprintf(why, length, "%s: a launch wrote to this input", b->x->input[i].name);
            return false;
        }
    }
    return true;
}
