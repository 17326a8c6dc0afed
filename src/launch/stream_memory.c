/* SPDX-License-Identifier: Apache-2.0 */
/* stream_memory.c - the memory that a loaded program keeps for each stream it is launched on.
 *
 * Launches on one stream follow each other, so they can share one control region; launches on different streams may
 * overlap, so they cannot.
 *
 * A block that is too small is replaced by one of at least twice the size.  The old memory is kept: a graph that
 * captured it may still be replayed, and freeing would wait for the device.  Doubling keeps the sum of all outgrown
 * memory below the memory in use.  All zeros is a valid state of any control region, so a new one needs no copy.
 *
 * Streams are told apart by the driver's id, which is never used twice, unlike the handle.  So a graph that was captured
 * on a destroyed stream keeps its memory to itself.  While a stream is being captured, the driver refuses to give the id,
 * and asking would spoil the capture.  The handle is used instead; the newest block of this handle is the one that
 * ptxgen_prepare() made.  Both queries are look-ups inside the driver (bench/launch measures them).  Only a launch that
 * uses kept memory makes them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/session.h"
#include "launch_stages.h"

struct retired {
    struct retired *next;
    cu_pointer memory;
    size_t bytes;
};

/* ---- which stream ---------------------------------------------------------------------------- */
static cu_stream per_thread_stream(void)
{
    return (cu_stream)(uintptr_t)2; /* CU_STREAM_PER_THREAD: one handle, a stream per thread */
}

/* What a block is found by. */
struct stream_name {
    bool by_handle; /* the id cannot be known now */
    uint64_t id;
    cu_stream handle;
    const void *thread; /* for the per-thread default stream: its thread */
};

static bool name_stream(const struct driver *cu, cu_stream stream, struct stream_name *out, struct fault *f)
{
    static _Thread_local char here;
    unsigned long long id = 0;
    int capture = CU_CAPTURE_NONE;

    if (cu->StreamGetId && !CU(f, cu, StreamIsCapturing(stream, &capture)))
        return false;
    *out = (struct stream_name){ .handle = stream, .thread = stream == per_thread_stream() ? &here : NULL };
    out->by_handle = cu->StreamGetId == NULL || capture != CU_CAPTURE_NONE;
    if (!out->by_handle && !CU(f, cu, StreamGetId(stream, &id)))
        return false;
    out->id = id;
    return true;
}

static bool is_block_of(const struct control_block *b, const struct stream_name *name)
{
    return b->thread == name->thread && (name->by_handle ? b->handle == name->handle : b->id == name->id);
}

/* The link that points to the stream's block, or the list's end. Call with blocks_lock held. */
static struct control_block **find_block(struct ptxgen_loaded *l, const struct stream_name *name)
{
    struct control_block **at = &l->blocks;

    while (*at && !is_block_of(*at, name))
        at = &(*at)->next;
    return at;
}

/* The block of the stream; with `add` a new one, in front of older ones of the same handle. NULL: there is none, or out
 * of memory for an empty one. */
static struct control_block *block_of(struct ptxgen_loaded *l, const struct stream_name *name, bool add)
{
    struct control_block *b;

    pthread_mutex_lock(&l->blocks_lock);
    b = *find_block(l, name);
    if (b == NULL && add && (b = calloc(1, sizeof *b)) != NULL) {
        b->id = name->id;
        b->handle = name->handle;
        b->thread = name->thread;
        pthread_mutex_init(&b->lock, NULL);
        b->next = l->blocks;
        l->blocks = b;
    }
    pthread_mutex_unlock(&l->blocks_lock);
    return b;
}

/* ---- memory ---------------------------------------------------------------------------------- */
/* The first use of the driver's pool in a process takes 6 ms (H200), more than all else of a first launch from the cache. */
static bool pooled(const struct ptxgen_loaded *l, size_t bytes)
{
    enum { SMALL = 1 << 20 };
    return l->gpu->pools && bytes > SMALL;
}

static bool allocate(struct ptxgen_loaded *l, cu_stream stream, size_t bytes, cu_pointer *out, struct fault *f)
{
    const struct driver *cu = &l->gpu->cu;

    if (pooled(l, bytes))
        return CU(f, cu, MemAllocAsync(out, bytes, stream));
    const int before = driver_capture_mode(cu, CU_CAPTURE_RELAXED);
    const bool ok = CU(f, cu, MemAlloc(out, bytes));
    driver_capture_mode(cu, before);
    return ok;
}

static void free_memory(struct ptxgen_loaded *l, cu_pointer memory, size_t bytes, bool ordered, cu_stream stream)
{
    if (memory == 0)
        return;
    if (ordered && pooled(l, bytes)) {
        l->gpu->cu.MemFreeAsync(memory, stream);
        return;
    }
    const int before = driver_capture_mode(&l->gpu->cu, CU_CAPTURE_RELAXED);
    l->gpu->cu.MemFree(memory);
    driver_capture_mode(&l->gpu->cu, before);
}

/* Remember memory that is not used for new launches any more. */
static bool retire(struct control_block *b, cu_pointer memory, size_t bytes, struct fault *f)
{
    struct retired *r;

    if (memory == 0)
        return true;
    r = malloc(sizeof *r);
    if (r == NULL)
        return fault_set(f, PTXGEN_NO_MEMORY, D_LAUNCH_ARGUMENT, "out of host memory");
    r->memory = memory;
    r->bytes = bytes;
    r->next = b->retired;
    b->retired = r;
    return true;
}

/* *memory gets room for `need` bytes. */
static bool grow(struct ptxgen_loaded *l, struct control_block *b, cu_stream stream, size_t need, bool zero,
                 cu_pointer *memory, size_t *bytes, struct fault *f)
{
    size_t size = need > 2 * *bytes ? need : 2 * *bytes;
    cu_pointer fresh = 0;

    if (need <= *bytes)
        return true;
    size = (size + 4095) / 4096 * 4096;
    if (!load_outside_capture(l, stream, "memory would be allocated", f) || !allocate(l, stream, size, &fresh, f))
        return false;
    if ((zero && !CU(f, &l->gpu->cu, MemsetD8Async(fresh, 0, size, stream))) || !retire(b, *memory, *bytes, f)) {
        free_memory(l, fresh, size, false, stream);
        return false;
    }
    *memory = fresh;
    *bytes = size;
    return true;
}

bool control_acquire(struct ptxgen_loaded *l, cu_stream stream, size_t control, size_t scratch,
                     struct control_block **out, struct fault *f)
{
    struct control_block *b;
    struct stream_name name;

    if (!name_stream(&l->gpu->cu, stream, &name, f))
        return false;
    b = block_of(l, &name, !name.by_handle || l->gpu->cu.StreamGetId == NULL);
    if (b == NULL && !load_outside_capture(l, stream, "memory would be allocated", f))
        return false;
    if (b == NULL)
        return fault_set(f, PTXGEN_NO_MEMORY, D_LAUNCH_ARGUMENT, "out of host memory");
    pthread_mutex_lock(&b->lock);
    if (grow(l, b, stream, control, true, &b->control, &b->control_bytes, f) &&
        grow(l, b, stream, scratch, false, &b->scratch, &b->scratch_bytes, f)) {
        *out = b;
        return true;
    }
    pthread_mutex_unlock(&b->lock);
    return false;
}

void control_release(struct control_block *b) { pthread_mutex_unlock(&b->lock); }

/* ---- giving it back -------------------------------------------------------------------------- */
static void free_block(struct ptxgen_loaded *l, struct control_block *b, bool ordered, cu_stream stream)
{
    struct retired *next;

    kept_free(l, b->kept, ordered ? &stream : NULL);
    free_memory(l, b->control, b->control_bytes, ordered, stream);
    free_memory(l, b->scratch, b->scratch_bytes, ordered, stream);
    for (struct retired *r = b->retired; r; r = next) {
        next = r->next;
        free_memory(l, r->memory, r->bytes, ordered, stream);
        free(r);
    }
    pthread_mutex_destroy(&b->lock);
    free(b);
}

void control_destroy(struct ptxgen_loaded *l)
{
    struct control_block *next;

    for (struct control_block *b = l->blocks; b; b = next) {
        next = b->next;
        free_block(l, b, false, NULL);
    }
    l->blocks = NULL;
}

static bool reset(struct ptxgen_loaded *l, cu_stream stream, struct fault *f)
{
    struct control_block *b;
    struct stream_name name;
    bool ok = true;

    if (!name_stream(&l->gpu->cu, stream, &name, f))
        return false;
    b = block_of(l, &name, false);
    if (b == NULL)
        return true;
    pthread_mutex_lock(&b->lock);
    if (b->control_bytes)
        ok = CU(f, &l->gpu->cu, MemsetD8Async(b->control, 0, b->control_bytes, stream));
    if (b->kept)
        ok = kept_reset(l, b->kept, f) && ok;
    pthread_mutex_unlock(&b->lock);
    return ok;
}

/* Of a spec with stages: the same of each. */
static bool each_stage(ptxgen_session *s, ptxgen_loaded *l, ptxgen_stream stream,
                       ptxgen_status (*call)(ptxgen_session *s, ptxgen_loaded *l, ptxgen_stream stream))
{
    bool ok = true;

    for (int i = 0; l->stages && ok && i < l->stages->p->nstages; i++)
        ok = call(s, l->stages->stage[i], stream) == PTXGEN_OK;
    return ok;
}

ptxgen_status ptxgen_stream_reset(ptxgen_session *s, ptxgen_loaded *loaded, ptxgen_stream stream)
{
    NEED(PTXGEN_USAGE, s, loaded);
    struct fault f;
    if (!each_stage(s, loaded, stream, ptxgen_stream_reset))
        return PTXGEN_NO_DEVICE;
    bool pushed, ok = gpu_enter(loaded->gpu, &pushed, &f);

    if (ok) {
        ok = reset(loaded, stream, &f);
        gpu_leave(loaded->gpu, pushed);
    }
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

static struct control_block *unlink_block(struct ptxgen_loaded *l, const struct stream_name *name)
{
    struct control_block **at, *b;

    pthread_mutex_lock(&l->blocks_lock);
    at = find_block(l, name);
    b = *at;
    if (b)
        *at = b->next;
    pthread_mutex_unlock(&l->blocks_lock);
    return b;
}

ptxgen_status ptxgen_stream_release(ptxgen_session *s, ptxgen_loaded *loaded, ptxgen_stream stream)
{
    NEED(PTXGEN_USAGE, s, loaded);
    struct control_block *b;
    struct fault f;
    struct stream_name name;
    if (!each_stage(s, loaded, stream, ptxgen_stream_release))
        return PTXGEN_NO_DEVICE;
    bool pushed, ok = gpu_enter(loaded->gpu, &pushed, &f);

    if (ok) {
        ok = load_outside_capture(loaded, stream, "memory would be given up", &f) &&
             name_stream(&loaded->gpu->cu, stream, &name, &f);
        b = ok ? unlink_block(loaded, &name) : NULL;
        if (b)
            free_block(loaded, b, true, stream);
        gpu_leave(loaded->gpu, pushed);
    }
    return ok ? PTXGEN_OK : fault_report(s, &f);
}
