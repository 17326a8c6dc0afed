/* SPDX-License-Identifier: Apache-2.0 */
/* fiber_check.c - what the switch between stacks must preserve: integer and floating-point registers that survive
 * calls, and where each stack goes on.  A program without libraries, so that it also runs under an emulator of another
 * processor (fiber.sh).
 *
 * Several fibers compute a sequence each whose state does not fit the caller-saved registers, and switch after every
 * step; any register that one loses shows in its result.
 */
#include "simt/fiber.h"

#include <stdint.h>
#include <stdio.h>

enum { FIBERS = 7, STEPS = 1000 };

static struct fiber scheduler, fibers[FIBERS];
static int running;
static uint64_t integers[FIBERS];
static double reals[FIBERS];
static int done;

/* The same sequence with or without a switch in each step.  Named variables, so that the compiler keeps them in
 * registers. */
static inline __attribute__((always_inline)) void sequence(int seed, int yield, uint64_t *integer, double *real)
{
    uint64_t a = (uint64_t)seed + 1, b = a * 3, c = a * 5, d = a * 7, e = a * 11, f = a * 13, g = a * 17, h = a * 19;
    double p = seed + 0.25, q = p + 1, r = p + 2, s = p + 3, t = p + 4, u = p + 5, v = p + 6, w = p + 7;
    for (int step = 0; step < STEPS; step++) {
        a = (a ^ (b >> 7)) * 0xbf58476d1ce4e5b9u, b += c ^ (a << 3), c = c * 5 + d, d ^= e + (uint64_t)step;
        e = e * 9 + f, f ^= g << 1, g += h, h = (h ^ a) * 0x9e3779b97f4a7c15u;
        p = p * 0.5 + q * 0.25 + step, q = q * 0.75 + r, r = r * 0.125 + s, s = s * 0.5 + t * 0.0625;
        t = t * 0.25 + u, u = u * 0.5 - v, v = v * 0.375 + w, w = w * 0.5 + p * 0.03125;
        if (yield)
            fiber_switch(&fibers[seed], &scheduler);
    }
    *integer = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
    *real = p + q + r + s + t + u + v + w;
}

static void entry(void)
{
    const int me = running;
    sequence(me, 1, &integers[me], &reals[me]);
    done++;
    for (;;)
        fiber_switch(&fibers[me], &scheduler);
}

int main(void)
{
    struct fiber_stacks *stacks = fiber_stacks_take(FIBERS);
    int failed = 0;
    if (!stacks)
        return 2;
    for (int i = 0; i < FIBERS; i++)
        fiber_start(&fibers[i], stacks, i, entry);
    for (int round = 0; round <= STEPS; round++)
        for (running = 0; running < FIBERS; running++)
            fiber_switch(&scheduler, &fibers[running]);
    for (int i = 0; i < FIBERS; i++) {
        uint64_t integer;
        double real;
        sequence(i, 0, &integer, &real);
        if (integer != integers[i] || real != reals[i]) {
            printf("fiber %d: %llx and %a, not %llx and %a\n", i, (unsigned long long)integers[i], reals[i],
                   (unsigned long long)integer, real);
            failed++;
        }
    }
    failed += done != FIBERS;
    fiber_stacks_free(fiber_stacks_give(stacks));
    return failed != 0;
}
