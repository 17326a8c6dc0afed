/* SPDX-License-Identifier: Apache-2.0 */
/* keyed.h - launches of specs whose first input is a key: spread evenly, a few most, all the same, out of range, and five
 * alone in every other stretch. */
#ifndef PTXGEN_KEYED_H
#define PTXGEN_KEYED_H

#include <criterion/criterion.h>

#include "support/harness.h"

enum keys { EVEN, SKEWED, CONSTANT, OUTSIDE, STRETCHES, KEYS };
enum { KEYED_PLACES = 37 };

static inline int32_t key_of(enum keys keys, int64_t i, uint64_t r)
{
    const double u = (double)(r >> 11) * 0x1p-53;
    switch (keys) {
    case EVEN: return (int32_t)(u * (KEYED_PLACES + 5)) - 2;
    case SKEWED: return (int32_t)(u * u * u * u * u * u * u * u * KEYED_PLACES);
    case CONSTANT: return KEYED_PLACES - 1;
    case STRETCHES: return i % 1600 < 700 ? key_of(EVEN, i, r) : (int32_t)(u * 5) * 9 - 1;
    default: return r % 3 == 0 ? INT32_MIN : r % 3 == 1 ? INT32_MAX : KEYED_PLACES;
    }
}

static inline void keyed_launch(struct harness *h, const char *what, int round)
{
    static const int64_t sizes[] = { 0, 1, 31, 700, 2 * 64 * 8 * 3 + 5 }, many = 20 * 64 * 8 + 5;
    static const char *const modes[] = { "seed:%d,race,uninit", "seed:%d,weak,sms:1", "seed:%d,stale,late,sms:1" };
    char mode[32];
    const enum keys keys = (enum keys)(round / 5 % KEYS);
    const int64_t n = keys == STRETCHES && round % 5 == 4 ? many : sizes[round % 5]; /* several tiles of a block */
    uint64_t seed = (uint64_t)round;
    const int64_t size[] = { n, KEYED_PLACES };
    harness_data_at(h, size, (uint64_t)round, round % 3, round % 2);
    for (int64_t i = 0; i < n; i++)
        ((int32_t *)h->input[0])[i] = key_of(keys, i, harness_random(&seed));
    snprintf(mode, sizeof mode, modes[round % 3], round);
    cr_expect(harness_check(h, mode), "%s, n = %d, keys %d, --simt=%s: %s", what, (int)n, (int)keys, mode, h->text);
}

/* A spec of a key and of x, an array of this type. */
struct keyed {
    const char *name, *type, *rest;
};

/* Number i of them, by turns for two architectures. */
static inline void keyed_open(struct harness *h, const char *kind, const struct keyed *specs, int i,
                              const char *const *set)
{
    char text[1536];
    snprintf(text, sizeof text, "kind: %s\ninputs: {key: 'i32[n]', x: '%s[n]'}\n%s", kind, specs[i].type,
             specs[i].rest);
    cr_assert(harness_open(h, "t", text, i % 2 ? "sm_90" : "sm_75", set), "%s: %s", specs[i].name, h->text);
}

static inline void keyed_launches(struct harness *h, const char *name)
{
    for (int round = 0; round < 5 * KEYS; round++)
        keyed_launch(h, name, round);
    harness_close(h);
}

#endif
