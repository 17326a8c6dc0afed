/* SPDX-License-Identifier: Apache-2.0 */
/* data.c - the elements of an input that are not in a file: random[:SEED], iota, const:V.
 *
 * The generator is counter-based: word i of an input is mix(key + (i + 1) * 0x9e3779b97f4a7c15) with the output
 * function of SplitMix64, so every element can be had on its own, on every machine.  The key is the FNV-1a hash of the
 * input's name, mixed with the seed.  Word number: element * fields + field.  From a word w:
 *
 *   f64    (w >> 11) * 2^-52 - 1      f32   (w >> 40) * 2^-23 - 1
 *   f16    (w >> 53) * 2^-10 - 1      bf16  (w >> 56) * 2^-7 - 1         all exact, in [-1, 1)
 *   signed (w >> 32) * 201 >> 32, less 100     unsigned the same without     bool w >> 63
 *
 * Segment offsets are drawn from [0, n] and sorted, the first is 0 and the last is n; gather offsets are in [-2, 2].
 * Source: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014 (the mixing function).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t data_key(uint64_t seed, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    }
    return mix(hash + mix(seed));
}

uint64_t data_bits(uint64_t key, uint64_t counter) { return mix(key + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15)); }

ptxgen_value data_random(ptxgen_type t, uint64_t w)
{
    switch (t) {
    case PTXGEN_F64: return (ptxgen_value){ .f = (double)(w >> 11) * 0x1p-52 - 1 };
    case PTXGEN_F32: return (ptxgen_value){ .f = (double)(w >> 40) * 0x1p-23 - 1 };
    case PTXGEN_F16: return (ptxgen_value){ .f = (double)(w >> 53) * 0x1p-10 - 1 };
    case PTXGEN_BF16: return (ptxgen_value){ .f = (double)(w >> 56) * 0x1p-7 - 1 };
    case PTXGEN_BOOL: return (ptxgen_value){ .u = w >> 63 };
    default: return (ptxgen_value){ .i = (int64_t)((w >> 32) * 201 >> 32) - (type_is_signed(t) ? 100 : 0) };
    }
}

bool data_is_file(const char *data)
{
    bool generated =
        !strcmp(data, "iota") || !strcmp(data, "random") || !strncmp(data, "random:", 7) || !strncmp(data, "const:", 6);
    return !generated;
}

/* Call for every scalar of the array. */
static void each_scalar(struct array *a, ptxgen_value (*value)(const void *, ptxgen_type, uint64_t, uint64_t),
                        const void *user)
{
    uint64_t fields = (uint64_t)a->info.field_count;
    for (int64_t i = 0; i < a->elements; i++) {
        char *element = a->data + (size_t)i * a->info.element_size;
        for (uint64_t f = 0; f < fields; f++) {
            ptxgen_type t = a->info.field_type[f];
            ptxgen_value_store(t, element + a->info.field_offset[f],
                               value(user, t, (uint64_t)i, (uint64_t)i * fields + f));
        }
    }
}

static ptxgen_value random_value(const void *key, ptxgen_type t, uint64_t element, uint64_t word)
{
    (void)element;
    return data_random(t, data_bits(*(const uint64_t *)key, word));
}

static ptxgen_value iota_value(const void *user, ptxgen_type t, uint64_t element, uint64_t word)
{
    (void)user;
    (void)word;
    return type_is_float(t)   ? (ptxgen_value){ .f = (double)element }
           : t == PTXGEN_BOOL ? (ptxgen_value){ .u = element != 0 }
                              : (ptxgen_value){ .u = element };
}

static ptxgen_value gather_value(const void *key, ptxgen_type t, uint64_t element, uint64_t word)
{
    (void)element;
    (void)t;
    return (ptxgen_value){ .i = (int64_t)((data_bits(*(const uint64_t *)key, word) >> 32) * 5 >> 32) - 2 };
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int random_offsets(struct array *a, uint64_t key, int64_t end)
{
    int64_t *drawn = malloc(sizeof *drawn * (size_t)(a->elements + 1));
    if (!drawn) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    for (int64_t i = 0; i < a->elements; i++) {
        int64_t inner = (int64_t)(data_bits(key, (uint64_t)i) % ((uint64_t)end + 1));
        drawn[i] = i == 0 ? 0 : i == a->elements - 1 ? end : inner;
    }
    qsort(drawn, (size_t)a->elements, sizeof *drawn, ascending);
    for (int64_t i = 0; i < a->elements; i++) {
        ptxgen_value_store(a->info.field_type[0], a->data + (size_t)i * a->info.element_size,
                           (ptxgen_value){ .i = drawn[i] });
    }
    free(drawn);
    return EXIT_OK;
}

static int fill_random(struct array *a, const char *seed_text, int64_t offsets_end)
{
    int64_t seed = 1;
    const char *wrong = seed_text ? parse_count(seed_text, &seed) : NULL;
    if (wrong) {
        return fail(EXIT_USAGE, "--input %s=random:%s: the seed: %s", a->info.name, seed_text, wrong);
    }
    uint64_t key = data_key((uint64_t)seed, a->info.name);
    if (a->info.role == PTXGEN_ROLE_SEGMENT_OFFSETS) {
        return random_offsets(a, key, offsets_end);
    }
    each_scalar(a, a->info.role == PTXGEN_ROLE_GATHER_OFFSETS ? gather_value : random_value, &key);
    return EXIT_OK;
}

/* Every field gets the number, in its own type. */
static int fill_constant(struct array *a, const char *text)
{
    for (int f = 0; f < a->info.field_count; f++) {
        ptxgen_value v;
        const char *wrong = parse_value(text, a->info.field_type[f], &v);
        if (wrong) {
            return fail(EXIT_USAGE, "--input %s=const:%s: %s (%s)", a->info.name, text, wrong,
                        ptxgen_type_name(a->info.field_type[f]));
        }
        for (int64_t i = 0; i < a->elements; i++) {
            ptxgen_value_store(a->info.field_type[f],
                               a->data + (size_t)i * a->info.element_size + a->info.field_offset[f], v);
        }
    }
    return EXIT_OK;
}

int data_fill(struct array *a, const char *data, int64_t offsets_end)
{
    if (!strncmp(data, "const:", 6)) {
        return fill_constant(a, data + 6);
    }
    if (!strcmp(data, "iota")) {
        each_scalar(a, iota_value, NULL);
        return EXIT_OK;
    }
    return fill_random(a, data[6] == ':' ? data + 7 : NULL, offsets_end);
}
