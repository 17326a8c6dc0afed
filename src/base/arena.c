/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - see arena.h.  A list of chunks; a chunk is a calloc block that is handed out front to back. */
#include "arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, CHUNK_BYTES = 64 * 1024 };

struct arena_chunk {
    alignas(ALIGNMENT) struct arena_chunk *next;
    size_t bytes; /* after this header */
};

void arena_init(struct arena *a) { memset(a, 0, sizeof *a); }

static void free_chunks(struct arena_chunk *c)
{
    while (c != NULL) {
        struct arena_chunk *next = c->next;
        free(c);
        c = next;
    }
}

void arena_finish(struct arena *a)
{
    free_chunks(a->chunks);
    free_chunks(a->spare);
    a->chunks = a->spare = NULL;
    a->at = a->end = NULL;
    a->total = 0;
}

void arena_reset(struct arena *a)
{
    while (a->chunks != NULL) {
        struct arena_chunk *c = a->chunks;
        a->chunks = c->next;
        char *begin = (char *)(c + 1), *end = begin + c->bytes;
        memset(begin, 0, (size_t)((end == a->end ? a->at : end) - begin)); /* of the current one what was handed out */
        c->next = a->spare;
        a->spare = c;
    }
    a->at = a->end = NULL;
}

/* A spare chunk of exactly so many bytes, or NULL. */
static struct arena_chunk *take_spare(struct arena *a, size_t bytes)
{
    for (struct arena_chunk **at = &a->spare; *at != NULL; at = &(*at)->next)
        if ((*at)->bytes == bytes) {
            struct arena_chunk *c = *at;
            *at = c->next;
            return c;
        }
    return NULL;
}

static _Noreturn void out_of_memory(struct arena *a)
{
    assert(a->oom != NULL);
    longjmp(*a->oom, 1);
}

static struct arena_chunk *add_chunk(struct arena *a, size_t bytes)
{
    struct arena_chunk *c = take_spare(a, bytes);
    if (c == NULL) {
        c = calloc(1, sizeof *c + bytes);
        if (c == NULL)
            out_of_memory(a);
        c->bytes = bytes;
        a->total += sizeof *c + bytes;
    }
    c->next = a->chunks;
    a->chunks = c;
    return c;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    if (bytes > PTRDIFF_MAX / 2) /* no object is that large; the sums below cannot overflow */
        out_of_memory(a);
    bytes = bytes > 0 ? (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1) : ALIGNMENT;
    if (bytes > (size_t)(a->end - a->at)) {
        if (bytes > CHUNK_BYTES / 4) /* a chunk of its own leaves the rest of the current one in use */
            return (char *)add_chunk(a, bytes) + sizeof(struct arena_chunk);
        struct arena_chunk *c = add_chunk(a, CHUNK_BYTES);
        a->at = (char *)c + sizeof *c;
        a->end = a->at + c->bytes;
    }
    void *p = a->at;
    a->at += bytes;
    return p;
}

void *arena_grow(struct arena *a, const void *old, size_t old_bytes, size_t new_bytes)
{
    void *p = arena_alloc(a, new_bytes);
    if (old_bytes > 0)
        memcpy(p, old, old_bytes);
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t length)
{
    char *copy = arena_alloc(a, length + 1);
    if (length > 0)
        memcpy(copy, s, length);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }

char *arena_vprintf(struct arena *a, const char *format, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    const int length = vsnprintf(NULL, 0, format, ap);
    char *text = arena_alloc(a, length < 0 ? 1 : (size_t)length + 1);
    if (length > 0)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char *text = arena_vprintf(a, format, ap);
    va_end(ap);
    return text;
}
