/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - see compare.h.
 *
 * The comparison is a reduction like any other: the disjunction of x != y over words.  Before it is believed it has to
 * find a difference in the middle of each output, and none where there is none.
 */
#include <stdlib.h>
#include <string.h>

#include "compare.h"

enum { WORD = 4, SMALL = 1 << 16 };

static const char spec[] = "kind: reduce\ninputs: {x: 'u32[n]', y: 'u32[n]'}\nmap: x != y\noperator: or\n"
                           "outputs: {differ: bool}\n";

static void *output_at(struct comparer *c, int i)
{
    const struct job *j = c->subject->job;
    return copies_at(&c->subject->copies, j, 0)[j->ninputs + i];
}

static bool same_output(struct comparer *c, int i)
{
    const struct job *j = c->subject->job;
    const int64_t words = (int64_t)(j->output[i].bytes / WORD);
    const void *const input[] = { c->kept[i], output_at(c, i) };
    void *const output[] = { c->answer };
    const ptxgen_arguments args = { &words, input, output, NULL };
    char differ = 1;
    return ptxgen_launch(j->session, c->loaded, &args, c->subject->stream, NULL) == PTXGEN_OK &&
           ptxgen_stream_wait(j->session, c->subject->gpu, c->subject->stream) == PTXGEN_OK &&
           ptxgen_gpu_read(j->session, c->subject->gpu, &differ, c->answer, sizeof differ) == PTXGEN_OK && !differ;
}

bool comparer_same(struct comparer *c)
{
    bool same = c->loaded != NULL;
    if (same) {
        turn_begin(c->subject);
    }
    for (int i = 0; same && i < c->subject->job->noutputs; i++) {
        same = same_output(c, i);
    }
    if (c->loaded) {
        turn_end(c->subject);
    }
    return same;
}

static bool worth_it(const struct job *j)
{
    size_t bytes = 0;
    for (int i = 0; i < j->noutputs; i++) {
        bytes += j->output[i].bytes;
        if (j->output[i].bytes % WORD || j->output[i].bytes == 0) {
            return false;
        }
    }
    return bytes >= SMALL;
}

static bool copy_outputs(struct comparer *c)
{
    const struct job *j = c->subject->job;
    c->kept = calloc((size_t)j->noutputs + 1, sizeof *c->kept);
    bool fine = c->kept && ptxgen_gpu_alloc(j->session, c->subject->gpu, 1, &c->answer) == PTXGEN_OK;
    for (int i = 0; i < j->noutputs && fine; i++) {
        fine = ptxgen_gpu_alloc(j->session, c->subject->gpu, j->output[i].bytes, &c->kept[i]) == PTXGEN_OK &&
               ptxgen_gpu_copy(j->session, c->subject->gpu, c->kept[i], output_at(c, i), j->output[i].bytes,
                               c->subject->stream) == PTXGEN_OK;
    }
    return fine && ptxgen_stream_wait(j->session, c->subject->gpu, c->subject->stream) == PTXGEN_OK;
}

/* A bit in the middle of what is kept of output i changes, is found, and changes back. */
static bool finds_a_bit(struct comparer *c, int i)
{
    const struct job *j = c->subject->job;
    char *middle = (char *)c->kept[i] + j->output[i].bytes / WORD / 2 * WORD;
    uint32_t word, other;
    if (ptxgen_gpu_read(j->session, c->subject->gpu, &word, middle, WORD) != PTXGEN_OK) {
        return false;
    }
    other = word ^ 1;
    bool fine = ptxgen_gpu_write(j->session, c->subject->gpu, middle, &other, WORD) == PTXGEN_OK;
    fine = fine && !same_output(c, i);
    return ptxgen_gpu_write(j->session, c->subject->gpu, middle, &word, WORD) == PTXGEN_OK && fine;
}

void comparer_keep(struct comparer *c, struct subject *x)
{
    const struct job *j = x->job;
    *c = (struct comparer){ .subject = x };
    bool fine = worth_it(j) && ptxgen_jit_string(j->session, x->gpu, spec, strlen(spec), "the comparison", NULL,
                                                 &c->loaded) == PTXGEN_OK;
    fine = fine && copy_outputs(c);
    for (int i = 0; i < j->noutputs && fine; i++) {
        fine = finds_a_bit(c, i);
    }
    if (!fine || !comparer_same(c)) {
        comparer_finish(c);
    }
    ptxgen_diagnostics_clear(j->session);
}

void comparer_finish(struct comparer *c)
{
    if (c->loaded) {
        ptxgen_stream_release(NULL, c->loaded, c->subject->stream);
        ptxgen_loaded_destroy(c->loaded);
    }
    for (int i = 0; c->kept && i < c->subject->job->noutputs; i++) {
        ptxgen_gpu_free(c->subject->gpu, c->kept[i]);
    }
    if (c->answer) {
        ptxgen_gpu_free(c->subject->gpu, c->answer);
    }
    free(c->kept);
    *c = (struct comparer){ 0 };
}
