/* SPDX-License-Identifier: Apache-2.0 */
/* fiber.c - context switch and stacks.
 *
 * Stacks are 512 KiB of reserved address space, of which a kernel without big local arrays touches one or two pages.
 * They begin at different places within their top page ("colour") and are an odd number of pages apart: stacks at equal
 * distances would otherwise compete for the same few sets of the caches.
 *
 * A guard page per stack would cost more than a small launch (a mapping each).  Instead the executor compares the stack
 * pointer with fiber_stack_limit() in every call of a kernel; what an overflow has hit until then is the unused page
 * between two stacks or a stack that will not run again.
 *
 * Fibers never return, and a finding leaves stacks in the middle of a kernel: AddressSanitizer is told to forget the frames
 * above the last stack pointer (of the whole stack it would take longer than a launch).  Valgrind learns which ranges are stacks.
 */
#define _GNU_SOURCE
#include "fiber.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif
#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#endif

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

/* Memory is taken where a stack is used; a thread with 64 elements of eight logsumexp each took over 256 KB. */
enum { GAP = 4096, STACK = 512 * 1024, STRIDE = GAP + STACK, COLOUR = 64, COLOURS = 48 };
enum { RESERVE = 8 * 1024 }; /* for the executor's own functions and the C library */
/* Sets of at most so many stacks are kept, whose threads have used no more than so much of each. */
enum { KEPT_SETS = 4, KEPT = 4096, SHALLOW = 32 * 1024 };

/* ---- the switch ------------------------------------------------------------------------------ */
#if defined(FIBER_UCONTEXT)
/* No assembly. */
#elif defined(__x86_64__)
/* System V: rbx, rbp, r12-r15 survive calls. The return address is on the stack already. */
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden ptxgen_fiber_swap\n"
        ".globl ptxgen_fiber_swap\n"
        ".type ptxgen_fiber_swap, @function\n"
        "ptxgen_fiber_swap:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size ptxgen_fiber_swap, .-ptxgen_fiber_swap\n");
enum {
    SAVED_WORDS = 8,
    ENTRY_WORD = 6
}; /* six registers, entry as return address, and a zero above it to end backtraces */
#elif defined(__aarch64__)
/* AAPCS64: x19-x28, the frame pointer, the link register and d8-d15 survive calls. */
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden ptxgen_fiber_swap\n"
        ".globl ptxgen_fiber_swap\n"
        ".type ptxgen_fiber_swap, %function\n"
        "ptxgen_fiber_swap:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size ptxgen_fiber_swap, .-ptxgen_fiber_swap\n");
enum { SAVED_WORDS = 20, ENTRY_WORD = 11 }; /* the link register is the entry */
#endif

#ifndef FIBER_UCONTEXT
void ptxgen_fiber_swap(void **save_sp, void *load_sp);

void fiber_switch(struct fiber *from, struct fiber *to) { ptxgen_fiber_swap(&from->sp, to->sp); }

/* NOLINTNEXTLINE(readability-non-const-parameter) */
static void prepare(struct fiber *f, char *low, char *top, void (*entry)(void))
{
    (void)low;
    uintptr_t *word = (uintptr_t *)(void *)top - SAVED_WORDS;
    for (int i = 0; i < SAVED_WORDS; i++)
        word[i] = 0;
    word[ENTRY_WORD] = (uintptr_t)entry;
    f->sp = word;
}
#else
void fiber_switch(struct fiber *from, struct fiber *to) { swapcontext(&from->context, &to->context); }

/* NOLINTNEXTLINE(readability-non-const-parameter) */
static void prepare(struct fiber *f, char *low, char *top, void (*entry)(void))
{
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = low;
    f->context.uc_stack.ss_size = (size_t)(top - low);
    f->context.uc_link = NULL;
    makecontext(&f->context, entry, 0);
}
#endif

void fiber_start(struct fiber *f, const struct fiber_stacks *s, int i, void (*entry)(void))
{
    char *low = s->base + (size_t)i * STRIDE + GAP;
    prepare(f, low, low + STACK - (i * 5 % COLOURS) * COLOUR, entry);
}

const char *fiber_stack_limit(const struct fiber_stacks *s, int i)
{
    return s->base + (size_t)i * STRIDE + GAP + STACK - SHALLOW;
}

/* ---- stacks ---------------------------------------------------------------------------------- */
static struct fiber_stacks *create(int count)
{
    struct fiber_stacks *s = calloc(1, sizeof *s + sizeof *s->registered * (size_t)count);
    void *base =
        mmap(NULL, (size_t)count * STRIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!s || base == MAP_FAILED) {
        if (base != MAP_FAILED)
            munmap(base, (size_t)count * STRIDE);
        free(s);
        return NULL;
    }
    s->base = base;
    s->count = count;
    mprotect(s->base, GAP, PROT_NONE); /* below the lowest lies what is not ours */
#ifdef VALGRIND_STACK_REGISTER
    for (int i = 0; i < count; i++) {
        char *low = s->base + (size_t)i * STRIDE + GAP;
        s->registered[i] = VALGRIND_STACK_REGISTER(low, low + STACK);
    }
#endif
    return s;
}

void fiber_stacks_free(struct fiber_stacks *s)
{
    if (!s)
        return;
#ifdef VALGRIND_STACK_DEREGISTER
    for (int i = 0; i < s->count; i++)
        VALGRIND_STACK_DEREGISTER(s->registered[i]);
#endif
    munmap(s->base, (size_t)s->count * STRIDE);
    free(s);
}

/* Given back, newest first: without a lock, as a process may be forked at any time. */
static struct fiber_stacks *_Atomic kept[KEPT_SETS];

struct fiber_stacks *fiber_stacks_take(int count)
{
    for (int i = 0; i < KEPT_SETS; i++) {
        struct fiber_stacks *s = atomic_exchange(&kept[i], NULL);
        if (s && s->count >= count)
            return s;
        fiber_stacks_free(s ? atomic_exchange(&kept[i], s) : NULL); /* too few: back, in place of what came meanwhile */
    }
    return create(count);
}

struct fiber_stacks *fiber_stacks_give(struct fiber_stacks *s)
{
    if (s->deep || s->count > KEPT)
        return s;
    for (int i = 0; s && i < KEPT_SETS; i++)
        s = atomic_exchange(&kept[i], s);
    fiber_stacks_free(s);
    return NULL;
}

bool fiber_stack_overflown(struct fiber_stacks *s, int i, const char *frame)
{
    const char *low = s->base + (size_t)i * STRIDE + GAP;
    s->deep = s->deep || frame < low + STACK - SHALLOW;
    return frame < low + RESERVE;
}

void fiber_leave(const struct fiber *f, const struct fiber_stacks *s, int i)
{
#ifdef FIBER_ASAN
    const char *low = s->base + (size_t)i * STRIDE + GAP, *used = low;
#ifndef FIBER_UCONTEXT
    used = f->sp;
#endif
    __asan_unpoison_memory_region(used, (size_t)(low + STACK - used));
#endif
    (void)f, (void)s, (void)i;
}
