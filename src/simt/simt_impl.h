/* SPDX-License-Identifier: Apache-2.0 */
/* simt_impl.h - the executor's data, shared by the files of this folder and its tests.
 *
 *   run      the steps of a case, one after the other, or dependent launches together
 *   grid     one launch: blocks 0 … nblocks-1, started in order as slots become free
 *   cluster  unit of residency: one block, or as many as the kernel's clusters have
 *   block    lives in a slot; owns the slot's threads, warps, shared memory and store buffer
 *   warp     unit of scheduling: its ready lanes run one after the other until all wait
 *   thread   a fiber
 *
 * Memory depends on slots, never on the number of blocks.  Fibers switch to each other directly; the context that
 * called exec_run() is switched to when nothing is left to run or a finding stops the launch.
 *
 * Time: `now` counts writes that became visible.  An acquire makes a thread see everything up to now; barriers pass
 * that on to the other threads (`acquired` of thread, warp, block).  See weak.c and stale.c.
 */
#ifndef PTXGEN_SIMT_IMPL_H
#define PTXGEN_SIMT_IMPL_H

#include "fiber.h"
#include "llvmgen/llvmgen.h"
#include "simt.h"
#include "simt_rt.h"

enum {
    WARP_LANES = 32,
    CLUSTER_MAX = 16,
    PENDING_MAX = 64,  /* stores in a block's buffer */
    ACCESS_MAX = 32,   /* bytes of the widest access */
    HISTORY_BITS = 12, /* words whose old values are remembered: 2^this */
    VERSIONS = 4,      /* old values per word */
    EXTENT_HITS = 8,
    CHAIN_MAX = 4, /* dependent launches in flight together */
    TEAM_BARRIERS = 16,
    WARPS_MAX = 32,
    MBAR_MAX = 128,                   /* mbarriers of a block */
    KNOWN_MAX = WARPS_MAX + MBAR_MAX, /* see struct thread */
    ASYNC_THREAD = 0xc000,            /* stands for the copies that report to mbarrier 0; 1 more: to mbarrier 1 … */
};

/* ---- memory that kernels may touch ----------------------------------------------------------- */
enum extent_kind { EXTENT_INPUT, EXTENT_OUTPUT, EXTENT_CONTROL, EXTENT_SCRATCH };
/* The element of the space that was written there. */
struct writer {
    bool came;
    int64_t index[3];
};
struct extent {
    char *at;
    size_t bytes;
    enum extent_kind kind;
    const char *name;
    uint8_t *written;               /* a bit per byte, or NULL: all has a value */
    struct writer *writer;          /* per element of an output at computed places, from the first one on */
    const struct prog_array *array; /* of an output */
};

/* ---- threads --------------------------------------------------------------------------------- */
struct thread {
    struct fiber fiber;
    const char *stack_limit;
    uint64_t acquired;       /* sees all writes up to this time */
    uint32_t arrives, waits; /* phases of the cluster barrier */
    /* What mbarriers and barriers of teams have ordered before this thread: of warp w all with an epoch below known[w],
     * of the copies that report to mbarrier m those of phases below known[WARPS_MAX + m].  With `race`, while the block
     * is `partly` ordered. */
    uint32_t *known;
    struct mbar *at_mbar;            /* waits there … */
    uint32_t parity;                 /* … for this */
    uint32_t bulk_group, copy_group; /* commits so far */
    int copies;                      /* the list of its copies under way: 1 + place among all, 0: none */
    uint16_t proxy_fences;
    uint16_t read_fences; /* and those that order its reads before copies alone: arrivals of its warp at mbarriers */
};

struct warp {
    struct block *block;
    uint32_t ready;      /* lanes that can run; the warp is queued unless it is the current one */
    uint32_t exited;     /* lanes that have ended */
    uint32_t arrived;    /* lanes at the collective */
    uint32_t at_barrier; /* lanes at the block's barrier */
    uint32_t at_cluster; /* lanes waiting for the cluster */
    uint32_t at_team;    /* lanes at the team's barrier, */
    uint32_t team;       /* which has this number */
    uint32_t at_mbar;    /* lanes waiting at mbarriers */
    uint32_t at_dependency;
    bool queued;
    uint32_t op;    /* of the collective: kind, mode, width */
    uint32_t phase; /* of collectives: which half of value[] is being filled */
    uint32_t value[2][WARP_LANES];
    uint32_t result[2];
    uint32_t epoch; /* 1 + warp syncs so far */
    uint64_t acquired, acquiring;
};

/* Who touched a byte of shared memory, and when in terms of barriers. */
struct access {
    uint16_t thread;      /* in the cluster */
    uint16_t strong : 1;  /* atomic or ordered: races only with what is not */
    uint16_t fences : 15; /* of the thread before: of a read its read_fences */
    uint32_t block_epoch, warp_epoch, cluster_phase;
};
struct shadow {
    struct access write, read, other; /* two readers, of different warps if there are such */
};

/* A store that has not reached memory. */
struct pending {
    _Alignas(ACCESS_MAX) char data[ACCESS_MAX];
    char *at;
    uint32_t bytes;
    uint16_t thread;
    bool released; /* by a fence of its thread at block scope */
    uint32_t block_epoch, warp_epoch;
};

/* A barrier in shared memory: phases of `arrivals` arrivals and of as many bytes as were announced. */
struct mbar {
    char *at;
    const char *name;
    uint32_t arrivals, pending, phase; /* pending: arrivals to come; phase: how many are complete */
    int64_t bytes;                     /* announced and not landed */
    uint16_t thread;                   /* that initialised it, … */
    bool ready;                        /* … and has said so to the copying hardware */
    uint64_t acquired, acquiring;
    uint32_t released[KNOWN_MAX], complete[KNOWN_MAX]; /* by arrivals so far; when the last phase was complete */
};

/* An asynchronous copy that is under way. */
enum { BUSY_LINE = 4 };
enum copy_kind { COPY_BULK_LOAD, COPY_BULK_STORE, COPY_OWN };
struct copy {
    enum copy_kind kind;
    bool read; /* the source is in `data`, and may change */
    uint16_t thread;
    uint32_t group; /* of the thread's; not bulk loads */
    struct block *block;
    struct mbar *mbar; /* bulk loads */
    const char *name;  /* of the shared array */
    char *to, *from, *data;
    uint32_t bytes;
    int before, after; /* in the list of its thread: 1 + place among all copies, 0: none */
};

struct team_barrier {
    uint32_t arrived, threads;
    const char *site;
    uint64_t acquiring;
};

struct block {
    struct grid *grid;
    struct cluster *cluster;
    int slot, number, rank; /* rank: in the cluster */
    int live;               /* threads that have not ended */
    int arrived;            /* at the barrier */
    const char *site;       /* of the barrier */
    bool waited;            /* some thread is past the dependency wait */
    bool triggered;
    bool met;       /* some thread is past a cluster barrier: the other blocks have started */
    uint32_t epoch; /* 1 + barriers so far */
    uint64_t since; /* time from which on invariant loads may see memory */
    uint64_t acquired, acquiring;
    struct thread *thread;
    struct warp *warp;
    char *shared;
    struct shadow *shadow; /* per byte of shared memory, with `race` */
    uint8_t *initialised;  /* per byte of shared memory, with `uninit` */
    uint16_t *busy;        /* per BUSY_LINE bytes of shared memory, with `late`: copies under way that touch them */
    struct pending *pending;
    int npending;
    uint64_t pending_filter; /* words that may be pending */
    struct team_barrier team[TEAM_BARRIERS];
    struct mbar *mbar; /* MBAR_MAX */
    int nmbars;
    int ncopies; /* under way */
    bool partly; /* mbarriers or barriers of teams order some threads and not others */
};

struct cluster {
    struct block *block[CLUSTER_MAX];
    int nblocks, live, arrived;
    uint32_t phase;
};

/* ---- launches -------------------------------------------------------------------------------- */
struct grid {
    const char *kernel;
    host_kernel entry;
    int64_t nblocks, started, finished, triggered;
    int threads, cluster, shared_bytes;
    bool dependent; /* must wait before it touches global memory; `previous` may still run */
    struct grid *previous;
    union {
        int64_t i;
        void *p;
        float f;
        double d;
    } value[PROG_ARG_MAX];
    void *argument[PROG_ARG_MAX]; /* pointers to value[] */
};

struct version {
    uint64_t value, until;
};
struct word_history {
    uintptr_t word; /* address / 8 */
    int count;      /* oldest first */
    struct version old[VERSIONS];
};

struct exec {
    struct simt_options options;
    struct simt_report *report;
    int crash_fd; /* in a guarded child: where the signal handler writes its report */
    uint64_t random;
    /* current thread */
    struct thread *thread;
    struct warp *warp;
    struct block *block;
    int lane;
    uint32_t fuel; /* accesses until the next forced switch */
    bool leave;    /* the current warp goes to the end of the queue */
    struct fiber main;
    /* slots: parts of one allocation */
    void *memory;
    size_t memory_bytes;
    int nslots, slot_threads, slot_shared;
    struct fiber_stacks *stacks;
    struct thread *threads;
    struct warp *warps;
    struct block *blocks;
    struct cluster *clusters;
    char *shared;
    struct shadow *shadows;
    uint8_t *initialised;
    uint16_t *busy;
    struct pending *pendings;
    uint32_t *known;
    struct mbar *mbars;
    int *free_slot, nfree;
    /* scheduler: a ring of warps */
    struct warp **queue;
    int queue_size, queue_head, queue_count;
    struct grid *grid;
    int ngrids;
    /* the watcher */
    double watched_at; /* when it was called last */
    bool pause;        /* the next switch is to main, which calls it */
    /* progress */
    uint64_t idle, idle_limit, accesses, votes;
    char *watched; /* target of the last read-modify-write, and its value before */
    uint32_t watched_bytes;
    char watched_value[8];
    /* memory */
    struct extent *extent;
    const int64_t *size; /* of the launch */
    int nextents;
    struct extent *hit[EXTENT_HITS];
    struct copy *copy; /* under way, of all blocks */
    int ncopies, cap_copies;
    uint64_t now;
    struct word_history *history;
    uint64_t *seen; /* per word of history and slot */
    _Alignas(ACCESS_MAX) char old_value[2 * ACCESS_MAX];
    /* words that blocks have waited for: a set; 0: free */
    uint64_t *came;
    size_t ncame, cap_came; /* cap: a power of two, or 0 */
};

/* The executor of this OS thread while it runs one, else NULL.  Initial-exec: one instruction to reach. */
extern _Thread_local struct exec *simt_current __attribute__((tls_model("initial-exec")));

/* ---- exec.c: scheduler ----------------------------------------------------------------------- */
/* Run the grids to completion, each beginning when its predecessors allow.  False: x->report has a finding. */
bool exec_run(struct exec *x, struct grid *grids, int n);
void exec_free(struct exec *x);
uint32_t exec_random(struct exec *x, uint32_t n); /* 0 … n-1 */
void exec_ready(struct exec *x, struct warp *w, uint32_t lanes);
void exec_suspend(struct exec *x);    /* the current thread waits; somebody will make it ready */
void exec_interleave(struct exec *x); /* a place where other threads may come in between */
void exec_preempt(struct exec *x);    /* out of fuel */
void exec_poll(struct exec *x, const char *name,
               bool leave); /* the current thread may be spinning; leave: others first */
static inline void exec_progress(struct exec *x) { x->idle = 0, x->accesses = 0, x->votes = 0; }
/* A warp operation is progress, but not when warps do nothing else: those that wait may vote on it again and again. */
static inline void exec_vote(struct exec *x)
{
    enum { VOTES = 1 << 18 };
    if (x->votes < VOTES)
        x->votes++, x->idle = 0, x->accesses = 0;
}
void exec_stop(struct exec *x);    /* leaves the launch for good; x->report is set */
void exec_trigger(struct exec *x); /* the current block lets dependents start */

/* Lanes of a warp as text: "0, 5-31". */
const char *lanes_text(uint32_t lanes, char *text, size_t size);

enum access_kind { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_RMW = 3 };

/* ---- memory.c -------------------------------------------------------------------------------- */
/* The extent that holds the bytes, or NULL; remembered by the name of the access (NULL is a name, too). */
struct extent *extent_of(struct exec *x, const char *at, uint32_t bytes, const char *name);

/* Checks of an access to global memory. */
void global_access(struct exec *x, char *at, uint32_t bytes, const char *name, enum access_kind kind);

/* ---- async.c --------------------------------------------------------------------------------- */
void async_block_starts(struct exec *x, struct block *b);
void async_thread_exits(struct exec *x);
void async_block_ends(struct exec *x);
void async_reset(struct exec *x);                  /* forgets all copies */
bool async_land(struct exec *x);                   /* some copy lands; false: none is under way */
void async_drift(struct exec *x, uint32_t one_in); /* perhaps */
/* A finding when the bytes take part in a copy that is under way. */
void async_access(struct exec *x, const struct block *owner, const char *at, uint32_t bytes, const char *name,
                  bool writes);
/* The block's threads begin to be ordered by more than barriers of the block and warp syncs. */
void order_partly(struct exec *x, struct block *b);
/* The lanes of these warps (bits) have met: each knows what any does, and all accesses so far. */
void order_meet(struct exec *x, struct block *b, uint32_t warps);

/* ---- collective.c, cluster.c ----------------------------------------------------------------- */
void barrier_thread_exits(struct exec *x);
void cluster_thread_exits(struct exec *x);

/* ---- shared.c: race and initialisation of shared memory -------------------------------------- */
void shared_block_starts(struct exec *x, struct block *b);
void shared_access(struct exec *x, char *at, uint32_t bytes, uint32_t how, const char *name, enum access_kind kind);
/* A copy of the current thread that reports to mbarrier m will write these bytes of its block, or has written them. */
void shared_copy_starts(struct exec *x, char *at, uint32_t bytes, int mbar, const char *name);
void shared_copy_ends(struct exec *x, struct block *b, char *at, uint32_t bytes);
/* A copy of the current thread reads the bytes: the writer must have fenced. */
void shared_copy_reads(struct exec *x, char *at, uint32_t bytes, const char *name);

/* ---- halo.c ---------------------------------------------------------------------------------- */
void halo_reset(struct exec *x); /* nothing has been waited for */

/* ---- weak.c: store buffers ------------------------------------------------------------------- */
char *weak_load(struct exec *x, char *at, uint32_t bytes);
char *weak_store(struct exec *x, char *at, uint32_t bytes);
void weak_settle(struct exec *x, char *at, uint32_t bytes); /* own stores to these bytes reach memory */
void weak_release(struct exec *x, enum simt_scope scope);   /* what the current thread may release reaches memory */
void weak_flush(struct exec *x, struct block *b);
void weak_leak(struct exec *x); /* some store of some block reaches memory */

/* ---- stale.c: old values --------------------------------------------------------------------- */
void stale_written(struct exec *x, const struct block *by, const char *at, uint32_t bytes); /* about to be */
char *stale_load(struct exec *x, char *at, uint32_t bytes, bool invariant);
void stale_acquire(struct exec *x, enum simt_scope scope);

/* ---- report.c -------------------------------------------------------------------------------- */
/* Sets the report, naming kernel, block and thread, and stops the launch: the current thread never continues. */
void finding(struct exec *x, int what, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The launch cannot go on: says which threads wait for what. Called outside any thread. */
void report_stuck(struct exec *x);
/* A message without a thread. */
void report_plain(struct simt_report *r, int what, const char *format, ...) __attribute__((format(printf, 3, 4)));
void report_modes(const struct simt_options *o, char *text, size_t size);

/* ---- run.c: steps ---------------------------------------------------------------------------- */
struct simt_control {
    char *memory;
    int64_t bytes;
    bool dirty; /* an aborted launch left it undefined */
    struct exec exec;
};

/* Entry points of a program's kernels. */
struct simt_code {
    const struct program *program;
    host_kernel (*entry)(void *user, int case_index, int kernel);
    void *user;
};
/* Asks for the entries of all that the run would launch: those that are asked for in a child process are lost with it. */
void simt_ask_entries(const struct simt_code *code, const struct run_args *args, struct simt_control *control,
                      const struct simt_options *o);
int simt_run_code(const struct simt_code *code, const struct run_args *args, struct simt_control *control,
                  const struct simt_options *o, struct simt_report *out);

/* ---- guard.c --------------------------------------------------------------------------------- */
/* simt_run_code() in a child process, on copies of the arrays that end at pages that fault. */
int simt_run_guarded(const struct simt_code *code, const struct run_args *args, struct simt_control *control,
                     const struct simt_options *o, struct simt_report *out);
/* Bytes of input i, or of output i - ninputs; 0 for what has no valid shape. */
size_t simt_array_bytes(const struct program *p, int i, const int64_t *size);
/* Bytes of control memory that the program may need at these sizes. */
bool simt_control_reserve(struct simt_control *c, int64_t bytes);

#endif
