/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - what every access goes through.
 *
 * In order: maybe switch to another thread; check that the access is allowed and sensible; answer with the address at
 * which it takes place, which a weak-memory mode may choose.  The checks of global memory:
 *
 *   bounds   inside one array or workspace buffer; no writes to inputs
 *   uninit   outputs and scratch have no content before they are written
 *   late     a dependent kernel touches nothing that earlier kernels write before it has waited
 */
#include "simt_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- special registers ----------------------------------------------------------------------- */
uint32_t simt_tid(void)
{
    const struct exec *x = simt_current;
    return (uint32_t)(x->thread - x->block->thread);
}
uint32_t simt_block(void) { return (uint32_t)simt_current->block->number; }
uint32_t simt_blocks(void) { return (uint32_t)simt_current->block->grid->nblocks; }
void *simt_shared(void) { return simt_current->block->shared; }

/* ---- extents --------------------------------------------------------------------------------- */
static bool inside(const struct extent *e, const char *at, uint32_t bytes)
{
    const uintptr_t offset = (uintptr_t)at - (uintptr_t)e->at;
    return offset <= e->bytes && bytes <= e->bytes - offset;
}

struct extent *extent_of(struct exec *x, const char *at, uint32_t bytes, const char *name)
{
    struct extent **hit = &x->hit[(uintptr_t)name / 8 % EXTENT_HITS];
    if (*hit && inside(*hit, at, bytes))
        return *hit;
    for (int i = 0; i < x->nextents; i++)
        if (inside(&x->extent[i], at, bytes))
            return *hit = &x->extent[i];
    return NULL;
}

/* The extent that begins or ends nearest to the address, for the report. */
static const struct extent *nearest(const struct exec *x, const char *at, int64_t *distance)
{
    const struct extent *best = NULL;
    int64_t best_size = INT64_MAX;
    for (int i = 0; i < x->nextents; i++) {
        const struct extent *e = &x->extent[i];
        const int64_t from_start = (int64_t)((uintptr_t)at - (uintptr_t)e->at);
        const int64_t off = from_start < 0 ? -from_start : from_start - (int64_t)e->bytes;
        if (off < best_size) {
            best_size = off;
            best = e;
            *distance = from_start;
        }
    }
    return best;
}

static void report_bounds(struct exec *x, const char *at, uint32_t bytes, const char *name, const char *verb)
{
    int64_t offset = 0;
    const struct extent *e = nearest(x, at, &offset);
    if (e)
        finding(x, SIMT_BOUNDS,
                "%s %u bytes of '%s' outside of every array; nearest is '%s' of %zu bytes, at byte %lld", verb,
                (unsigned)bytes, name, e->name, e->bytes, (long long)offset);
    else
        finding(x, SIMT_BOUNDS, "%s %u bytes of '%s', but the launch has no arrays", verb, (unsigned)bytes, name);
}

/* ---- initialisation of global memory --------------------------------------------------------- */
static void check_written(struct exec *x, const struct extent *e, const char *at, uint32_t bytes, const char *name)
{
    const size_t first = (size_t)(at - e->at);
    for (size_t i = first; i < first + bytes; i++)
        if (!(e->written[i / 8] >> i % 8 & 1))
            finding(x, SIMT_UNINIT, "reads '%s' (byte %zu of '%s') before anything was written there", name, i,
                    e->name);
}

static void mark_written(const struct extent *e, const char *at, uint32_t bytes)
{
    const size_t first = (size_t)(at - e->at);
    for (size_t i = first; i < first + bytes; i++)
        e->written[i / 8] |= (uint8_t)(1 << i % 8);
}

/* ---- one access ------------------------------------------------------------------------------ */
static const char *verb_of(enum access_kind kind)
{
    return kind == ACCESS_READ ? "reads" : kind == ACCESS_WRITE ? "writes" : "updates";
}

void global_access(struct exec *x, char *at, uint32_t bytes, const char *name, enum access_kind kind)
{
    const struct block *b = x->block;
    const struct extent *e = extent_of(x, at, bytes, name);
    if (!e) {
        if (x->options.bounds)
            report_bounds(x, at, bytes, name, verb_of(kind));
        return;
    }
    const bool input = e->kind == EXTENT_INPUT;
    if (input && kind != ACCESS_READ && x->options.bounds)
        finding(x, SIMT_BOUNDS, "writes '%s', which lies in the input '%s'", name, e->name);
    if (x->options.late && b->grid->dependent && !b->waited && !(input && kind == ACCESS_READ))
        finding(x, SIMT_RACE, "%s '%s' before it has waited for the previous kernel", verb_of(kind), name);
    if (e->written && kind != ACCESS_WRITE)
        check_written(x, e, at, bytes, name);
    if (e->written && kind != ACCESS_READ)
        mark_written(e, at, bytes);
}

/* Checks common to all accesses. Ordered ones let other threads come first. */
static void check(struct exec *x, char *at, uint32_t bytes, uint32_t how, const char *name, enum access_kind kind)
{
    const char *frame = __builtin_frame_address(0);
    if (frame < x->thread->stack_limit && fiber_stack_overflown(x->stacks, (int)(x->thread - x->threads), frame))
        finding(x, SIMT_CRASH, "has overflowed its stack: the kernel's local arrays are too large");
    const uintptr_t misaligned = (uintptr_t)at & ((UINT32_C(1) << (how >> SIMT_ALIGN_SHIFT & 15)) - 1);
    if (misaligned)
        finding(x, SIMT_BOUNDS, "%s %u bytes of '%s' at an address that is not a multiple of %u", verb_of(kind),
                (unsigned)bytes, name, 1U << (how >> SIMT_ALIGN_SHIFT & 15));
    if ((how & SIMT_SPACE) != SIMT_GLOBAL)
        shared_access(x, at, bytes, how, name, kind);
    else
        global_access(x, at, bytes, name, kind);
}

static enum simt_order order_of(uint32_t how) { return (enum simt_order)((how & SIMT_ORDER) >> SIMT_ORDER_SHIFT); }

void *simt_load(void *at, uint32_t bytes, uint32_t how, const char *name)
{
    struct exec *x = simt_current;
    const enum simt_order order = order_of(how);
    name = name ? name : "?";
    if (--x->fuel == 0)
        exec_preempt(x);
    if (order != SIMT_WEAK)
        exec_poll(x, name, false);
    check(x, at, bytes, how, name, ACCESS_READ);
    if (order == SIMT_ACQUIRE)
        stale_acquire(x, SIMT_SCOPE_DEVICE);
    if ((how & SIMT_SPACE) != SIMT_GLOBAL)
        return at;
    char *from = x->options.weak ? weak_load(x, at, bytes) : at;
    if (x->options.stale && from == at)
        from = stale_load(x, at, bytes, how & SIMT_INVARIANT);
    return from;
}

void *simt_store(void *at, uint32_t bytes, uint32_t how, const char *name)
{
    struct exec *x = simt_current;
    const enum simt_order order = order_of(how);
    name = name ? name : "?";
    if (--x->fuel == 0)
        exec_preempt(x);
    if (order != SIMT_WEAK)
        exec_interleave(x);
    check(x, at, bytes, how, name, ACCESS_WRITE);
    exec_progress(x);
    if (x->options.weak && order == SIMT_RELEASE)
        weak_release(x, SIMT_SCOPE_DEVICE);
    if ((how & SIMT_SPACE) != SIMT_GLOBAL)
        return at;
    if (x->options.weak && order != SIMT_RELEASE)
        return weak_store(x, at, bytes);
    if (x->options.weak)
        weak_settle(x, at, bytes);
    stale_written(x, x->block, at, bytes);
    return at;
}

/* A read-modify-write is relaxed: it acts on memory at once, but orders nothing else. */
void *simt_rmw(void *at, uint32_t bytes, uint32_t how, const char *name)
{
    struct exec *x = simt_current;
    name = name ? name : "?";
    exec_poll(x, name, false);
    check(x, at, bytes, how, name, ACCESS_RMW);
    if ((how & SIMT_SPACE) == SIMT_GLOBAL) {
        if (x->options.weak)
            weak_settle(x, at, bytes);
        stale_written(x, x->block, at, bytes);
    }
    if (bytes <= sizeof x->watched_value) {
        x->watched = at;
        x->watched_bytes = bytes;
        memcpy(x->watched_value, at, bytes);
    }
    return at;
}

/* ---- parts of words -------------------------------------------------------------------------- */
enum { PART_WORD = 4 };

/* What the arrays have of a word, in place of what the caller has. */
static void part_load(struct exec *x, char *word, bool shared, const char *name, char *value)
{
    for (uint32_t i = 0; i < PART_WORD; i++)
        if (shared || extent_of(x, word + i, 1, name))
            value[i] = word[i];
}

static void part_store(struct exec *x, char *word, bool shared, const char *name, const char *value)
{
    for (uint32_t i = 0; i < PART_WORD; i++) {
        const struct extent *e = shared ? NULL : extent_of(x, word + i, 1, name);
        if (shared || (e && e->kind != EXTENT_INPUT))
            word[i] = value[i];
    }
}

/* The word is read, and is written back where it is still the same: otherwise once more, unless the element itself is
 * another.  Bounds and what has been written are those of the element; races in shared memory those of the word. */
uint32_t simt_cas_part(void *at, uint32_t bytes, uint32_t how, const char *name, uint32_t expected, uint32_t desired)
{
    struct exec *x = simt_current;
    const bool shared = (how & SIMT_SPACE) != SIMT_GLOBAL;
    const uint32_t place = (uint32_t)((uintptr_t)at % PART_WORD);
    char *word = (char *)at - place, before[PART_WORD] = { 0 }, now[PART_WORD] = { 0 };
    const uint32_t wide = (how & ~(15U << SIMT_ALIGN_SHIFT)) | 2U << SIMT_ALIGN_SHIFT;
    part_load(x, word, shared, name, before);
    for (;;) {
        memcpy(before + place, &expected, bytes);
        simt_rmw(shared ? word : at, shared ? PART_WORD : bytes, shared ? wide : how, name);
        if (!shared && x->options.weak)
            weak_settle(x, word, PART_WORD);
        if (!shared)
            stale_written(x, x->block, word, PART_WORD);
        part_load(x, word, shared, name, now);
        if (!memcmp(before, now, PART_WORD))
            break;
        uint32_t held = 0;
        memcpy(&held, now + place, bytes);
        if (held != expected)
            return held;
        memcpy(before, now, PART_WORD); /* a neighbour came in between */
    }
    memcpy(before + place, &desired, bytes);
    part_store(x, word, shared, name, before);
    return expected;
}

enum { INDICES_TEXT = 128 };
static const char *index_text(uint32_t rank, const int64_t *index, char text[INDICES_TEXT])
{
    for (uint32_t d = 0, used = 0; d < rank; d++)
        used += (uint32_t)snprintf(text + used, INDICES_TEXT - used, "%s%lld", d ? ", " : "", (long long)index[d]);
    return text;
}

/* The indices of an element by its number. */
static const char *place_text(const struct exec *x, const struct prog_array *a, size_t place, char text[INDICES_TEXT])
{
    int64_t index[PROG_RANK_MAX], left = (int64_t)place;
    for (int d = a->rank; d-- > 0;) {
        const int64_t extent = a->dim[d].add + (a->dim[d].size < 0 ? 0 : x->size[a->dim[d].size]);
        index[d] = d ? left % extent : left;
        left /= extent;
    }
    return index_text((uint32_t)a->rank, index, text);
}

void simt_placed(void *at, uint32_t bytes, uint32_t rank, int64_t i, int64_t j, int64_t l, const char *name)
{
    struct exec *x = simt_current;
    struct extent *e = extent_of(x, at, bytes, name);
    const struct writer own = { true, { i, j, l } };
    char first[INDICES_TEXT], second[INDICES_TEXT], there[INDICES_TEXT];
    if (!e || e->kind != EXTENT_OUTPUT)
        return; /* the store tells */
    e->writer = e->writer ? e->writer : calloc(e->bytes / bytes + 1, sizeof *e->writer);
    if (!e->writer)
        finding(x, SIMT_NO_MEMORY, "has no memory left to remember who writes '%s'", name);
    const size_t place = (size_t)((char *)at - e->at) / bytes;
    struct writer *w = &e->writer[place];
    if (w->came && memcmp(w->index, own.index, sizeof own.index) != 0)
        finding(x, SIMT_TWICE, "writes the element [%s] to place [%s] of '%s', where the element [%s] lies",
                index_text(rank, own.index, second), place_text(x, e->array, place, there), name,
                index_text(rank, w->index, first));
    *w = own;
}

void simt_fence(uint32_t order, uint32_t scope)
{
    struct exec *x = simt_current;
    exec_interleave(x);
    if (x->options.weak && (order == SIMT_RELEASE || order == SIMT_ACQ_REL))
        weak_release(x, (enum simt_scope)scope);
    if (order == SIMT_ACQUIRE || order == SIMT_ACQ_REL)
        stale_acquire(x, (enum simt_scope)scope);
}

void simt_backoff(uint32_t nanoseconds)
{
    (void)nanoseconds;
    exec_poll(simt_current, NULL, true);
}
