/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c - the arrays of a run on a GPU, in one or several copies.
 *
 * Every array is one block with room for all its copies, each at the misalignment of the host's.
 */
#include <stdlib.h>

#include "copies.h"

static const struct array *array_of(const struct job *j, int i)
{
    return i < j->ninputs ? &j->input[i] : &j->output[i - j->ninputs];
}

static size_t stride_of(const struct array *a) { return (a->bytes + (size_t)(a->data - a->block) + 255) / 256 * 256; }

size_t copies_bytes(const struct job *j)
{
    size_t bytes = 0;
    for (int i = 0; i < j->ninputs + j->noutputs; i++) {
        bytes += stride_of(array_of(j, i));
    }
    return bytes;
}

void copies_finish(struct copies *c)
{
    for (int i = 0; c->block && i < c->n; i++) {
        ptxgen_gpu_free(c->gpu, c->block[i]);
    }
    free(c->block);
    free(c->data);
}

void **copies_at(struct copies *c, const struct job *j, int64_t k)
{
    for (int i = 0; i < c->n; i++) {
        const struct array *a = array_of(j, i);
        c->data[i] = (char *)c->block[i] + (size_t)(k % c->count) * stride_of(a) + (a->data - a->block);
    }
    return c->data;
}

/* The host's elements into every copy of array i. */
static ptxgen_status fill(const struct job *j, struct copies *c, int i)
{
    const struct array *a = array_of(j, i);
    char *first = copies_at(c, j, 0)[i];
    ptxgen_status status = a->bytes ? ptxgen_gpu_write(j->session, c->gpu, first, a->data, a->bytes) : PTXGEN_OK;
    for (int64_t k = 1; k < c->count && status == PTXGEN_OK; k++) {
        status = ptxgen_gpu_copy(j->session, c->gpu, first + (size_t)k * stride_of(a), first, a->bytes, NULL);
    }
    return status;
}

ptxgen_status copies_create(const struct job *j, ptxgen_gpu *gpu, int64_t count, struct copies *c)
{
    *c = (struct copies){ .gpu = gpu, .n = j->ninputs + j->noutputs, .count = count };
    c->block = calloc((size_t)c->n + 1, sizeof *c->block);
    c->data = calloc((size_t)c->n + 1, sizeof *c->data);
    ptxgen_status status = c->block && c->data ? PTXGEN_OK : PTXGEN_NO_MEMORY;
    for (int i = 0; i < c->n && status == PTXGEN_OK; i++) {
        status = ptxgen_gpu_alloc(j->session, gpu, stride_of(array_of(j, i)) * (size_t)count, &c->block[i]);
    }
    for (int i = 0; i < c->n && status == PTXGEN_OK; i++) {
        status = fill(j, c, i);
    }
    return status == PTXGEN_OK ? ptxgen_stream_wait(j->session, gpu, NULL) : status;
}

ptxgen_status copies_read(const struct job *j, struct copies *c)
{
    void **data = copies_at(c, j, 0);
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < j->noutputs && status == PTXGEN_OK; i++) {
        const struct array *a = &j->output[i];
        status = a->bytes ? ptxgen_gpu_read(j->session, c->gpu, a->data, data[j->ninputs + i], a->bytes) : PTXGEN_OK;
    }
    return status;
}
