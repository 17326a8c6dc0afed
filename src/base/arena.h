/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - one region of memory per session, freed at once.
 *
 * Allocation never returns NULL: when memory is exhausted it jumps to the handler that the public entry point has
 * set (`oom`), which then reports PTXGEN_NO_MEMORY.  Nothing but arena memory may be held across such a call
 * in frontend/ and lower/; what owns other resources (llvmgen, launch) does not use the arena while it holds them.
 */
#ifndef PTXGEN_ARENA_H
#define PTXGEN_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    struct arena_chunk *spare;  /* of before a reset, zeroed */
    char *at, *end;             /* free part of the newest chunk */
    size_t total;               /* bytes held from malloc */
    jmp_buf *oom;               /* never NULL while allocating */
};

void arena_init(struct arena *a);
void arena_finish(struct arena *a);               /* frees all; the arena may be used again */
void arena_reset(struct arena *a);                /* the same, but keeps the memory for what comes */
void *arena_alloc(struct arena *a, size_t bytes); /* zeroed, aligned to 16 */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t length);
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *format, va_list ap);

/* A typed array: arena_new(a, struct expr, 3). */
#define arena_new(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (size_t)(n)))

/* Append to an arena array that grows by doubling: ARENA_PUSH(a, p->items, p->nitems, p->cap_items, item). */
#define ARENA_PUSH(a, array, count, capacity, item)                                                                    \
    do {                                                                                                               \
        if ((count) == (capacity)) {                                                                                   \
            (array) = arena_grow((a), (array), sizeof *(array) * (size_t)(count),                                      \
                                 sizeof *(array) * (size_t)((capacity) = (capacity) ? 2 * (capacity) : 8));            \
        }                                                                                                              \
        (array)[(count)++] = (item);                                                                                   \
    } while (0)
void *arena_grow(struct arena *a, const void *old, size_t old_bytes, size_t new_bytes);

#endif
