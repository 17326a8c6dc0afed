/* SPDX-License-Identifier: Apache-2.0 */
/* fiber.h - stacks of their own and a switch between them: one per GPU thread.
 *
 * The switch saves what a C function must preserve and nothing else (no signal mask): about 8 ns on x86-64 and
 * aarch64.  Elsewhere ucontext does the same, slower.
 */
#ifndef PTXGEN_FIBER_H
#define PTXGEN_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(FIBER_UCONTEXT)
#define FIBER_UCONTEXT 1
#endif
#ifdef FIBER_UCONTEXT
#include <ucontext.h>
#endif

struct fiber {
#ifdef FIBER_UCONTEXT
    ucontext_t context;
#else
    void *sp; /* where the registers of a suspended fiber lie */
#endif
};

/* Continue `to`; return when somebody switches to `from`. */
void fiber_switch(struct fiber *from, struct fiber *to);

/* A pool of equal stacks, kept between launches: fresh pages cost more than a small launch. */
struct fiber_stacks {
    char *base;
    int count;
    unsigned *registered; /* valgrind's numbers of the stacks */
};
/* Grows the pool to `count` stacks; contents are lost when it grows. False: out of memory. */
bool fiber_stacks_reserve(struct fiber_stacks *s, int count);
void fiber_stacks_free(struct fiber_stacks *s);
/* For AddressSanitizer: frames that nobody returned from are gone.  Of all stacks at once, as a call maps their shadow anew. */
void fiber_stacks_clean(const struct fiber_stacks *s);

/* A frame on stack i that reaches below this has (nearly) overflowed it. */
const char *fiber_stack_limit(const struct fiber_stacks *s, int i);

/* Makes f start in entry() on stack i at the next switch.  entry never returns. */
void fiber_start(struct fiber *f, const struct fiber_stacks *s, int i, void (*entry)(void));

#endif
