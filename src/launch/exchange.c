/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - windows: memory of each rank that the GPUs of the other ranks write to, and launches of the kernel that
 * does it (exchange_code.c).
 *
 *     head     which exchange was the last, addresses for the kernel, and what each rank has done
 *     halves   of even exchanges, then of odd ones: slots, and a flag for each piece of each message.  The slot of a message
 *              has room for its pieces, then for its words if it is not long.
 *     halos    each a struct halo_head and words, for kernels that exchange rows themselves
 *
 * All windows of a communicator's ranks are laid out alike.  In one process a rank has the others' memory by its address,
 * on devices with peer access; in other processes of the machine by a handle of the driver.
 */
#define _GNU_SOURCE
#include "exchange.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/session.h"
#include "launch_impl.h"

enum {
    ALIGNMENT = 256,
    PIECE_MIN = 4096,
    FLAGS_BYTES = 4 * EXCHANGE_PIECES,
    BLOCKS_MOST = 2 * EXCHANGE_PIECES,
    CLOSE_SECONDS = 2,
    HALOS_MAX = 64,
    WARP = 32
};

/* What follows it: for each rank, the address of what that rank knows of this one's last exchange, as 64 bits; then what
 * this rank knows of the others, as 32 bits each. */
struct window_head {
    uint32_t last, ticket, fault, ranks;
};

struct exchange {
    ptxgen_gpu *gpu;
    int rank, ranks, messages;
    size_t pieces, most, slot, half; /* of a message; bytes of the longest, of a slot, of a half */
    size_t slots;                    /* where the first half begins */
    size_t halo;                     /* bytes of the halos, after both halves */
    size_t head[HALOS_MAX];          /* where those begin that are used */
    int halos;
    double seconds;
    cu_pointer *window; /* of each rank */
    bool *opened;       /* by a handle */
    uint32_t *fault;    /* in host memory */
    cu_module module;
    cu_function any, words; /* kernels: for messages of any length, and if all are short */
};

/* ---- where things are -------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static size_t done_at(const struct exchange *x, int rank)
{
    return sizeof(struct window_head) + (size_t)x->ranks * sizeof(uint64_t) + (size_t)rank * sizeof(uint32_t);
}

static bool lay_out(struct exchange *x, size_t most)
{
    x->pieces = x->messages > 2 ? BLOCKS_MOST / (size_t)x->messages : EXCHANGE_PIECES;
    x->most = aligned(most);
    x->slot = x->most + 2 * (x->most < EXCHANGE_WORDS ? x->most : EXCHANGE_WORDS);
    x->slots = aligned(done_at(x, x->ranks));
    if (__builtin_mul_overflow(x->slot, (size_t)x->messages, &x->half) || x->half > SIZE_MAX / 4)
        return false;
    x->half = aligned(x->half + (size_t)x->messages * FLAGS_BYTES);
    return true;
}

static size_t window_bytes(const struct exchange *x) { return x->slots + 2 * x->half + x->halo; }

static size_t slot_at(const struct exchange *x, int message, size_t bytes)
{
    return x->slots + (size_t)message * x->slot + (bytes <= EXCHANGE_WORDS ? x->most : 0);
}

static size_t flag_at(const struct exchange *x, int message)
{
    return x->slots + (size_t)x->messages * x->slot + (size_t)message * FLAGS_BYTES;
}

/* Both ranks of a message cut it alike. */
static size_t piece_of(const struct exchange *x, size_t bytes)
{
    const size_t piece = aligned((bytes + x->pieces - 1) / x->pieces);
    return piece < PIECE_MIN ? PIECE_MIN : piece;
}

/* A longer message may have fewer of them. */
static size_t pieces_of(const struct exchange *x, size_t bytes)
{
    return (bytes + piece_of(x, bytes) - 1) / piece_of(x, bytes);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A hash of what the running system has as its number; 0: unknown. */
static uint64_t machine_number(void)
{
    char text[64] = "";
    uint64_t number = 0;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!f)
        return 0;
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    for (size_t i = 0; i < n; i++)
        number = number * 31 + (unsigned char)text[i];
    return number;
}

/* Two processes have the same one with a probability of 2^-64, also where they do not see each other's numbers. */
static uint64_t process_number(void)
{
    static _Atomic uint64_t number;
    uint64_t known = 0, fresh = 0;
    if (getrandom(&fresh, sizeof fresh, 0) != (ssize_t)sizeof fresh)
        return 0;
    return atomic_compare_exchange_strong(&number, &known, fresh) ? fresh : known;
}

static bool has_calls(const struct driver *cu)
{
    return cu->CtxEnablePeerAccess && cu->IpcGetHandle && cu->IpcOpen && cu->IpcClose && cu->MemHostAlloc &&
           cu->MemFreeHost;
}

static bool load_code(struct exchange *x, struct fault *f)
{
    const struct driver *cu = &x->gpu->cu;
    size_t bytes = 1;
    for (int i = 0; i < EXCHANGE_CODE_PARTS; i++)
        bytes += strlen(exchange_code[i]);
    char *const text = malloc(bytes), *end = text;
    if (!text)
        return false;
    for (int i = 0; i < EXCHANGE_CODE_PARTS; i++)
        end = stpcpy(end, exchange_code[i]);
    const bool ok = CU(f, cu, ModuleLoadDataEx(&x->module, text, 0, NULL, NULL)) &&
                    CU(f, cu, ModuleGetFunction(&x->any, x->module, "ptxgen_exchange")) &&
                    CU(f, cu, ModuleGetFunction(&x->words, x->module, "ptxgen_exchange_words"));
    free(text);
    return ok;
}

/* In the gpu's context. */
static bool make_window(struct exchange *x, struct exchange_card *card, struct fault *f)
{
    const struct driver *cu = &x->gpu->cu;
    struct cu_ipc_handle handle;
    void *fault = NULL;
    cu_pointer memory = 0;
    if (!load_code(x, f) || !CU(f, cu, MemHostAlloc(&fault, sizeof *x->fault, CU_HOST_PORTABLE_MAPPED)))
        return false;
    x->fault = fault;
    *x->fault = 0;
    if (!CU(f, cu, MemAlloc(&memory, window_bytes(x))))
        return false;
    x->window[x->rank] = memory;
    if (!CU(f, cu, MemsetD8Async(memory, 0, window_bytes(x), NULL)) || !CU(f, cu, StreamSynchronize(NULL)) ||
        !CU(f, cu, IpcGetHandle(&handle, memory)))
        return false;
    memcpy(card->handle, handle.bytes, sizeof card->handle);
    card->context = (uint64_t)(uintptr_t)x->gpu->context;
    card->memory = memory;
    card->machine = machine_number();
    card->process = process_number();
    card->ready = card->machine && card->process;
    return card->ready;
}

void exchange_open(ptxgen_gpu *gpu, int rank, int ranks, int messages, size_t most, size_t halo, double seconds,
                   struct exchange_card *card, struct exchange **out)
{
    struct exchange *x = calloc(1, sizeof *x);
    struct fault f;
    bool pushed, ok = false;
    *out = NULL;
    memset(card, 0, sizeof *card);
    if (!x)
        return;
    *x = (struct exchange){
        .gpu = gpu, .rank = rank, .ranks = ranks, .messages = messages, .halo = halo, .seconds = seconds
    };
    x->window = calloc((size_t)ranks, sizeof *x->window);
    x->opened = calloc((size_t)ranks, sizeof *x->opened);
    if (x->window && x->opened && has_calls(&gpu->cu) && lay_out(x, most) && gpu_enter(gpu, &pushed, &f)) {
        ok = make_window(x, card, &f);
        gpu_leave(gpu, pushed);
    }
    if (ok)
        *out = x;
    else
        exchange_close(x);
}

/* In the gpu's context. */
static bool reach(struct exchange *x, int rank, const struct exchange_card *card, const struct exchange_card *own)
{
    const struct driver *cu = &x->gpu->cu;
    struct cu_ipc_handle handle;
    if (!card->ready || card->machine != own->machine)
        return false;
    if (card->process == own->process) {
        const cu_context other = (cu_context)(uintptr_t)card->context;
        if (other == x->gpu->context)
            return false;
        const int result = cu->CtxEnablePeerAccess(other, 0);
        x->window[rank] = card->memory;
        return result == CU_OK || result == CU_PEER_ACCESS_ENABLED;
    }
    memcpy(handle.bytes, card->handle, sizeof handle.bytes);
    x->opened[rank] = cu->IpcOpen(&x->window[rank], handle, CU_IPC_PEER_ACCESS) == CU_OK;
    return x->opened[rank];
}

/* What the kernel reads of the window's head. */
static bool write_head(struct exchange *x)
{
    const size_t bytes = done_at(x, 0);
    char *host = calloc(1, bytes);
    if (!host)
        return false;
    ((struct window_head *)(void *)host)->ranks = (uint32_t)x->ranks;
    for (int r = 0; r < x->ranks; r++)
        ((uint64_t *)(void *)(host + sizeof(struct window_head)))[r] = x->window[r] + done_at(x, x->rank);
    const bool ok = x->gpu->cu.MemcpyHtoD(x->window[x->rank], host, bytes) == CU_OK;
    free(host);
    return ok;
}

bool exchange_reach(struct exchange *x, const struct exchange_card *cards)
{
    struct fault f;
    bool pushed, ok = gpu_enter(x->gpu, &pushed, &f);
    if (!ok)
        return false;
    for (int r = 0; r < x->ranks && ok; r++)
        ok = r == x->rank || reach(x, r, &cards[r], &cards[x->rank]);
    ok = ok && write_head(x);
    gpu_leave(x->gpu, pushed);
    return ok;
}

int64_t exchange_halo_bytes(int64_t words) { return (int64_t)aligned((size_t)(HALO_SLOTS + 2 * words)); }

bool exchange_halo(struct exchange *x, size_t at, int before, int after, uint64_t address[3])
{
    const int beside[2] = { before, after };
    const size_t begin = x->slots + 2 * x->half + at;
    struct halo_head head = { .one = 1, .host_fault = (uintptr_t)x->fault, .limit = (uint64_t)(1e9 * x->seconds) };
    struct fault f;
    bool pushed;
    if (x->halos == HALOS_MAX || x->ranks > HALO_RANKS || !gpu_enter(x->gpu, &pushed, &f))
        return false;
    address[0] = x->window[x->rank] + begin;
    for (int i = 0; i < 2; i++)
        address[1 + i] = beside[i] < 0 ? 0 : x->window[beside[i]] + begin;
    for (int r = 0, n = 0; r < x->ranks; r++)
        if (r != x->rank)
            head.told[n++] =
                x->window[r] + begin + offsetof(struct halo_head, done) + (size_t)x->rank * sizeof *head.done;
    const bool ok = x->gpu->cu.MemcpyHtoD(address[0], &head, sizeof head) == CU_OK;
    x->head[x->halos++] = begin;
    gpu_leave(x->gpu, pushed);
    return ok;
}

/* Copies, which other devices' memory takes as well; in the stream's order, so what this rank has sent before is there.  This
 * rank's own comes last: it may need room on the device. */
bool exchange_halo_fails(ptxgen_session *s, struct exchange *x, uint64_t here, ptxgen_stream stream)
{
    const struct driver *cu = &x->gpu->cu;
    struct fault f;
    int capturing = CU_CAPTURE_NONE;
    bool pushed, told = true, ok = gpu_enter(x->gpu, &pushed, &f);
    if (ok) {
        ok = CU(&f, cu, StreamIsCapturing(stream, &capturing));
        for (int i = 1; i <= x->ranks && ok && capturing == CU_CAPTURE_NONE; i++)
            told &= CU(&f, cu,
                       MemcpyDtoDAsync(x->window[(x->rank + i) % x->ranks] + (here - x->window[x->rank]) +
                                           offsetof(struct halo_head, fault),
                                       here + offsetof(struct halo_head, one), sizeof(uint32_t), stream));
        gpu_leave(x->gpu, pushed);
    }
    if (capturing == CU_CAPTURE_NONE)
        __atomic_store_n(x->fault, 1, __ATOMIC_RELAXED);
    if (!ok || !told)
        session_log(s, PTXGEN_LOG_INFO, 0, "the other ranks wait as long as they may: %s", f.text);
    return ok && told;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static bool is_short(const struct exchange_message *m)
{
    return m->send_bytes <= EXCHANGE_SHORT && m->get_bytes <= EXCHANGE_SHORT;
}

static struct exchange_row row_of(const struct exchange *x, const struct exchange_message *m, int i, bool all_short)
{
    const cu_pointer here = x->window[x->rank], there = x->window[m->to];
    struct exchange_row row = { .send_bytes = m->send_bytes,
                                .send = (uintptr_t)m->send,
                                .send_piece = piece_of(x, m->send_bytes),
                                .get_piece = piece_of(x, m->get_bytes) };
    if (m->to == x->rank && !all_short) {
        row.slot_there = (uintptr_t)m->get;
        return row;
    }
    row.slot_there = there + slot_at(x, i, m->send_bytes);
    row.flag_there = there + flag_at(x, i);
    row.done_there = here + done_at(x, m->to);
    row.get_bytes = m->get_bytes;
    row.get = (uintptr_t)m->get;
    row.slot_here = here + slot_at(x, i, m->get_bytes);
    row.flag_here = here + flag_at(x, i);
    return row;
}

static struct exchange_table table_of(const struct exchange *x)
{
    return (struct exchange_table){ .window = x->window[x->rank],
                                    .half = x->half,
                                    .fault = (uintptr_t)x->fault,
                                    .limit = (uint64_t)(1e9 * x->seconds),
                                    .longest = EXCHANGE_WORDS };
}

bool exchange_table(const struct exchange *x, const struct exchange_message *m, int n, struct exchange_table *table)
{
    bool good = n <= x->messages;
    *table = table_of(x);
    for (int i = 0; i < n && good; i++) {
        good = is_short(&m[i]) && m[i].send_bytes <= x->most && m[i].get_bytes <= x->most &&
               (m[i].send_bytes | m[i].get_bytes) % 4 == 0;
        if (good)
            table->row[i] = row_of(x, &m[i], i, true);
    }
    return good;
}

ptxgen_status exchange_launch(ptxgen_session *s, struct exchange *x, const struct exchange_message *m, int n,
                              ptxgen_stream stream)
{
    struct exchange_table table = table_of(x);
    void *params[] = { &table };
    struct fault f;
    size_t most = 1, pieces = 1;
    bool pushed, all_short = true, fits = true, ok = gpu_enter(x->gpu, &pushed, &f);
    for (int i = 0; i < n; i++) {
        const size_t bytes = m[i].send_bytes > m[i].get_bytes ? m[i].send_bytes : m[i].get_bytes;
        const size_t cut = pieces_of(x, m[i].send_bytes), other = pieces_of(x, m[i].get_bytes);
        most = bytes > most ? bytes : most;
        pieces = cut > pieces ? cut : pieces;
        pieces = other > pieces ? other : pieces;
        all_short &= is_short(&m[i]) && i < x->messages && bytes <= x->most;
        fits &= m[i].to == x->rank || (i < x->messages && bytes <= x->most);
    }
    if (ok && !fits) {
        gpu_leave(x->gpu, pushed);
        ok = fault_set(&f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT,
                       "an exchange of %d messages of up to %zu bytes was not prepared", n, most);
    }
    for (int i = 0; i < n && ok; i++)
        table.row[i] = row_of(x, &m[i], i, all_short);
    if (ok) {
        ok = CU(&f, &x->gpu->cu,
                LaunchKernel(all_short ? x->words : x->any, all_short ? 1 : (unsigned)pieces,
                             all_short ? 1 : (unsigned)n, 1, all_short ? (unsigned)n * WARP : EXCHANGE_THREADS, 1, 1, 0,
                             stream, params, NULL));
        gpu_leave(x->gpu, pushed);
    }
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

bool exchange_failed(const struct exchange *x) { return x && *(const volatile uint32_t *)x->fault; }

void exchange_late_at(const struct exchange *x, uint64_t *error, uint64_t *fault)
{
    *error = x->window[x->rank] + offsetof(struct window_head, fault);
    *fault = (uintptr_t)x->fault;
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

/* Have the others done all that this rank has?  In the gpu's context. */
static bool quiet(const struct exchange *x)
{
    const size_t bytes = done_at(x, x->ranks);
    char *host = malloc(bytes);
    bool done = host && x->gpu->cu.MemcpyDtoH(host, x->window[x->rank], bytes) == CU_OK;
    for (int r = 0; r < x->ranks && done; r++)
        done = *(const uint32_t *)(const void *)(host + done_at(x, r)) ==
               ((const struct window_head *)(const void *)host)->last;
    free(host);
    for (int i = 0; i < x->halos && done; i++) {
        struct halo_head h;
        done = x->gpu->cu.MemcpyDtoH(&h, x->window[x->rank] + x->head[i], sizeof h) == CU_OK;
        for (int r = 0; r < x->ranks && done; r++)
            done = r == x->rank || h.done[r] == h.last;
    }
    return done;
}

/* After a fault nobody knows what others have still to write. */
static bool wait_for_quiet(const struct exchange *x)
{
    bool done = quiet(x);
    for (int ms = 0; !done && !exchange_failed(x) && ms < 1000 * CLOSE_SECONDS; ms++) {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        done = quiet(x);
    }
    return done && !exchange_failed(x);
}

void exchange_close(struct exchange *x)
{
    struct fault f;
    bool pushed;
    if (!x)
        return;
    if (gpu_enter(x->gpu, &pushed, &f)) {
        const struct driver *cu = &x->gpu->cu;
        const cu_pointer own = x->window ? x->window[x->rank] : 0;
        const bool free_own = own && wait_for_quiet(x);
        for (int r = 0; r < x->ranks && x->opened; r++)
            if (x->opened[r])
                cu->IpcClose(x->window[r]);
        if (free_own)
            cu->MemFree(own);
        if (x->fault)
            cu->MemFreeHost(x->fault);
        if (x->module)
            cu->ModuleUnload(x->module);
        gpu_leave(x->gpu, pushed);
    }
    free(x->window);
    free(x->opened);
    free(x);
}
