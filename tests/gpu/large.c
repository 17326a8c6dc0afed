/* SPDX-License-Identifier: Apache-2.0 */
/* large.c - sizes where 32-bit arithmetic would wrap.
 *
 * The sequential reference would take minutes, so the data is constant but for a few planted elements beyond the places
 * where an index, a byte offset or a signed number wraps, and the result is known.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu_tests.h"

struct plant {
    int64_t at;
    union {
        int8_t i8;
        float f32;
    } value;
};
struct large {
    const char *spec; /* of the benchmark's */
    int64_t n;
    int element_bytes;
    unsigned char fill;
    struct plant plant[3];
    /* expected outputs */
    int out_bytes[2];
    union {
        int32_t i32;
        int64_t i64;
        float f32;
    } expected[2];
};

#define GIANT ((int64_t)1 << 31)

static const struct large rows[] = {
    /* ones, and three elements that are worth more: n - 3 + 100 + 50 + 25, modulo 2^32 */
    { "sum_i8",
      GIANT + 12345,
      1,
      1,
      { { 0, { .i8 = 100 } }, { GIANT, { .i8 = 50 } }, { GIANT + 12344, { .i8 = 25 } } },
      { 4, 0 },
      { { .i32 = (int32_t)(uint32_t)(GIANT + 12345 - 3 + 175) }, { 0 } } },
    { "sum_i8",
      2 * GIANT + 7,
      1,
      1,
      { { 5, { .i8 = 3 } }, { 2 * GIANT, { .i8 = 50 } }, { 2 * GIANT + 6, { .i8 = 25 } } },
      { 4, 0 },
      { { .i32 = (int32_t)(uint32_t)(2 * GIANT + 7 - 3 + 78) }, { 0 } } },
    /* zeros, and the least element beyond 2^32 bytes; one as small before it must not win, one behind it must */
    { "max",
      GIANT / 2 + 333,
      4,
      0,
      { { 7, { .f32 = 1.0f } }, { GIANT / 2, { .f32 = 2.0f } }, { GIANT / 2 + 332, { .f32 = 3.0f } } },
      { 4, 0 },
      { { .f32 = 3.0f }, { 0 } } },
    { "argmin",
      GIANT / 2 + 333,
      4,
      0,
      { { 7, { .f32 = -1.0f } }, { GIANT / 2 + 100, { .f32 = -2.0f } }, { GIANT / 2 + 332, { .f32 = -2.0f } } },
      { 4, 8 },
      { { .f32 = -2.0f }, { .i64 = GIANT / 2 + 100 } } },
    { "argmin",
      GIANT + 333,
      4,
      0,
      { { 7, { .f32 = -1.0f } }, { GIANT + 100, { .f32 = -2.0f } }, { GIANT + 332, { .f32 = -2.0f } } },
      { 4, 8 },
      { { .f32 = -2.0f }, { .i64 = GIANT + 100 } } },
};

static bool fill(struct suite *t, const struct large *row, char *x)
{
    bool ok = ptxgen_gpu_fill(t->s, t->gpu, x, row->fill, (size_t)row->n * (size_t)row->element_bytes, t->stream[0]) ==
                  PTXGEN_OK &&
              ptxgen_stream_wait(t->s, t->gpu, t->stream[0]) == PTXGEN_OK;

    for (int i = 0; i < 3 && ok; i++)
        ok = ptxgen_gpu_write(t->s, t->gpu, x + row->plant[i].at * row->element_bytes, &row->plant[i].value,
                              (size_t)row->element_bytes) == PTXGEN_OK;
    return ok;
}

static bool run(struct suite *t, const struct large *row, ptxgen_loaded *loaded, char *x, char *y)
{
    const void *in[] = { x };
    void *out[] = { y, y + 256 };
    ptxgen_arguments args = { &row->n, in, out, NULL };
    char got[2][8];
    bool ok = ptxgen_gpu_fill(t->s, t->gpu, y, 0xa5, 512, t->stream[0]) == PTXGEN_OK &&
              ptxgen_launch(t->s, loaded, &args, t->stream[0], NULL) == PTXGEN_OK &&
              ptxgen_stream_wait(t->s, t->gpu, t->stream[0]) == PTXGEN_OK;

    for (int o = 0; o < 2 && ok; o++)
        ok = ptxgen_gpu_read(t->s, t->gpu, got[o], out[o], (size_t)row->out_bytes[o]) == PTXGEN_OK &&
             memcmp(got[o], &row->expected[o], (size_t)row->out_bytes[o]) == 0;
    return ok;
}

void run_large(struct suite *t, const char *specs)
{
    run_closed(t, specs);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptxgen_program *program = NULL;
        ptxgen_loaded *loaded = NULL;
        void *x = NULL, *y = NULL;
        char path[512];
        bool ok;

        snprintf(path, sizeof path, "%s/%s.yaml", specs, rows[i].spec);
        ok = load_spec(t, path, NULL, &program, &loaded) &&
             ptxgen_gpu_alloc(t->s, t->gpu, (size_t)rows[i].n * (size_t)rows[i].element_bytes, &x) == PTXGEN_OK &&
             ptxgen_gpu_alloc(t->s, t->gpu, 512, &y) == PTXGEN_OK && fill(t, &rows[i], x) &&
             run(t, &rows[i], loaded, x, y);

        if (ok)
            note_outcome(t, "large arrays", OUTCOME_PASSED);
        else
            note_failure(t, "large/%s n=%lld", rows[i].spec, (long long)rows[i].n);
        ptxgen_gpu_free(t->gpu, x);
        ptxgen_gpu_free(t->gpu, y);
        ptxgen_loaded_destroy(loaded);
        ptxgen_program_destroy(program);
    }
}
