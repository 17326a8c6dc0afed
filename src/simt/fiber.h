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

/* Equal stacks.  Those that are given back serve the next launch of any executor: fresh pages cost more than a small launch. */
struct fiber_stacks {
    char *base;
    int count;
    bool deep;             /* too much of a stack was used to keep them */
    unsigned registered[]; /* valgrind's numbers of the stacks */
};
/* At least `count` stacks, or NULL: out of memory. */
struct fiber_stacks *fiber_stacks_take(int count);
/* Gives them to other executors, and returns NULL; or returns those of which others would keep too much memory: the caller
 * keeps them for its next launch. */
struct fiber_stacks *fiber_stacks_give(struct fiber_stacks *s);
void fiber_stacks_free(struct fiber_stacks *s); /* or NULL */

/* A frame on stack i below this address is deep.  Then call fiber_stack_overflown(). */
const char *fiber_stack_limit(const struct fiber_stacks *s, int i);
/* Has a deep frame (nearly) overflowed stack i? */
bool fiber_stack_overflown(struct fiber_stacks *s, int i, const char *frame);

/* Makes f start in entry() on stack i at the next switch.  entry never returns. */
void fiber_start(struct fiber *f, const struct fiber_stacks *s, int i, void (*entry)(void));
/* f, on stack i, will not continue.  Before another fiber starts on the stack, or the stacks are freed. */
void fiber_leave(const struct fiber *f, const struct fiber_stacks *s, int i);

#endif
