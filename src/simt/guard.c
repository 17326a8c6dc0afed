/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c - a run in a child process, for kernels that may crash.
 *
 * The child works on copies of the arrays, each between two pages that fault and as near to the upper one as its
 * alignment allows, so that even accesses that no check sees are noticed.  Arrays that overlap stay together.  The
 * copies are shared memory; the report and the control memory come back through a pipe.  A fault's handler runs on a
 * stack of its own (the fault may be a fiber's overflow) and sends a report that names the thread.
 */
#define _GNU_SOURCE
#include "base/os.h"
#include "simt_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALTERNATE_STACK = 64 * 1024, ALIGNMENT = 16 /* of pointers, as formulas see it */ };

/* A range of the caller's memory and its copy. */
struct region {
    char *at, *copy;
    size_t bytes;
    char *map;
    size_t map_bytes;
};

struct guarded {
    const struct simt_code *code;
    const struct run_args *args;
    struct simt_control *control;
    const struct simt_options *options;
    struct simt_report *report;
    int narrays, nregions;
    struct region *region;
    const void **pointer; /* inputs, then outputs, in the copies */
};

/* ---- copies ---------------------------------------------------------------------------------- */
static char *original(const struct guarded *g, int i)
{
    const int inputs = g->code->program->ninputs;
    return i < inputs ? (char *)(uintptr_t)g->args->input[i] : (char *)g->args->output[i - inputs];
}

/* Adds a range, joined with all that it overlaps. */
static void add_region(struct guarded *g, char *at, size_t bytes)
{
    for (int i = 0; i < g->nregions; i++) {
        struct region *r = &g->region[i];
        if (at >= r->at + r->bytes || r->at >= at + bytes)
            continue;
        char *low = at < r->at ? at : r->at;
        char *high = at + bytes > r->at + r->bytes ? at + bytes : r->at + r->bytes;
        *r = g->region[--g->nregions];
        add_region(g, low, (size_t)(high - low));
        return;
    }
    g->region[g->nregions++] = (struct region){ .at = at, .bytes = bytes };
}

static bool copy_region(struct region *r)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t inner = (r->bytes + ALIGNMENT + page - 1) / page * page;
    void *map = mmap(NULL, inner + 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    r->map = map;
    r->map_bytes = inner + 2 * page;
    mprotect(r->map, page, PROT_NONE);
    mprotect(r->map + page + inner, page, PROT_NONE);
    char *last = r->map + page + inner - r->bytes;
    r->copy = last - ((uintptr_t)last - (uintptr_t)r->at) % ALIGNMENT;
    memcpy(r->copy, r->at, r->bytes);
    return true;
}

static const void *copy_of(const struct guarded *g, const char *at, size_t bytes)
{
    for (int i = 0; bytes && i < g->nregions; i++) {
        const struct region *r = &g->region[i];
        if (at >= r->at && at < r->at + r->bytes)
            return r->copy + (at - r->at);
    }
    return at;
}

static bool copy_arrays(struct guarded *g)
{
    const struct program *p = g->code->program;
    g->narrays = p->ninputs + p->noutputs;
    g->region = calloc((size_t)g->narrays + 1, sizeof *g->region);
    g->pointer = calloc((size_t)g->narrays + 1, sizeof *g->pointer);
    if (!g->region || !g->pointer)
        return false;
    for (int i = 0; i < g->narrays; i++) {
        const size_t bytes = simt_array_bytes(p, i, g->args->size);
        if (bytes && original(g, i))
            add_region(g, original(g, i), bytes);
    }
    for (int i = 0; i < g->nregions; i++)
        if (!copy_region(&g->region[i]))
            return false;
    for (int i = 0; i < g->narrays; i++)
        g->pointer[i] = copy_of(g, original(g, i), simt_array_bytes(p, i, g->args->size));
    return true;
}

static void return_outputs(const struct guarded *g)
{
    const struct program *p = g->code->program;
    for (int i = p->ninputs; i < g->narrays; i++)
        if (g->pointer[i] != original(g, i))
            memcpy(original(g, i), g->pointer[i], simt_array_bytes(p, i, g->args->size));
}

static void free_copies(struct guarded *g)
{
    for (int i = 0; g->region && i < g->nregions; i++)
        if (g->region[i].map)
            munmap(g->region[i].map, g->region[i].map_bytes);
    free(g->region);
    free(g->pointer);
}

/* ---- child ----------------------------------------------------------------------------------- */
/* A fault while a kernel runs: says where. Others are reported by the parent, from the signal alone. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    const struct exec *x = simt_current;
    if (x && x->block) {
        const struct block *b = x->block;
        static struct simt_report report;
        report_plain(&report, SIMT_CRASH, "kernel %s, block %d, thread %d: signal %d at address %p", b->grid->kernel,
                     b->number, (int)(x->thread - b->thread), number, info->si_addr);
        os_write(x->crash_fd, &report, sizeof report);
    }
    _exit(1);
}

static void catch_faults(void)
{
    static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    static char stack[ALTERNATE_STACK];
    sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

static struct run_args on_copies(const struct guarded *g)
{
    struct run_args args = *g->args;
    args.input = g->pointer;
    args.output = (void *const *)(uintptr_t)(g->pointer + g->code->program->ninputs);
    return args;
}

/* Runs, sends report and control memory, and ends the process. */
static void child(const struct guarded *g, int fd)
{
    const struct run_args args = on_copies(g);
    g->control->exec.crash_fd = fd;
    catch_faults();
    simt_run_code(g->code, &args, g->control, g->options, g->report);
    const int64_t bytes = g->report->what == SIMT_OK ? g->control->bytes : 0;
    const bool sent = os_write(fd, g->report, sizeof *g->report) && os_write(fd, &bytes, sizeof bytes) &&
                      os_write(fd, g->control->memory, (size_t)bytes);
    _exit(sent ? 0 : 1);
}

/* ---- parent ---------------------------------------------------------------------------------- */
/* The child's control memory becomes ours; what a failed run left is void. */
static void receive(const struct guarded *g, int fd)
{
    int64_t bytes = 0;
    if (!os_read(fd, g->report, sizeof *g->report)) {
        report_plain(g->report, SIMT_CRASH, "the run ended without a report");
        g->control->dirty = true;
        return;
    }
    const bool good = g->report->what == SIMT_OK && os_read(fd, &bytes, sizeof bytes) &&
                      simt_control_reserve(g->control, bytes) && os_read(fd, g->control->memory, (size_t)bytes);
    g->control->dirty = !good;
}

static void run_child(const struct guarded *g)
{
    int ends[2];
    if (pipe(ends) != 0) {
        report_plain(g->report, SIMT_NO_MEMORY, "no pipe to a child process");
        return;
    }
    const struct run_args args = on_copies(g);
    simt_ask_entries(g->code, &args, g->control, g->options);
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(g, ends[1]);
    }
    close(ends[1]);
    if (pid > 0) {
        int status;
        receive(g, ends[0]);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (WIFSIGNALED(status))
            report_plain(g->report, SIMT_CRASH, "the run was ended by signal %d", WTERMSIG(status));
    } else {
        report_plain(g->report, SIMT_NO_MEMORY, "no child process");
    }
    close(ends[0]);
}

int simt_run_guarded(const struct simt_code *code, const struct run_args *args, struct simt_control *control,
                     const struct simt_options *o, struct simt_report *out)
{
    struct simt_control *own = control ? NULL : simt_control_create();
    struct guarded g = { .code = code, .args = args, .control = control ? control : own, .options = o, .report = out };
    *out = (struct simt_report){ .what = SIMT_OK };
    if (g.control && copy_arrays(&g)) {
        run_child(&g);
        return_outputs(&g);
    } else {
        report_plain(out, SIMT_NO_MEMORY, "out of memory for guarded copies");
    }
    free_copies(&g);
    simt_control_destroy(own);
    return out->what;
}
