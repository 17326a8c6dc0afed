/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - how a problem is computed: cases, each a strategy with its tunables, kernels, buffers and steps.
 *
 * A plan is complete: code generation and launching need nothing else but the problem.  Its text form
 * (`--emit=plan`) is YAML and can be read back (`--plan FILE`) for experiments and tuning.
 */
#ifndef PTXGEN_PLAN_H
#define PTXGEN_PLAN_H

#include "arguments.h"
#include "device.h"
#include "frontend/problem/problem.h"

/* Tunables: every strategy uses a subset.  Rows: id, name in specs and plans, lowest, highest, what, class, and the
 * values that are worth trying (besides the one that a plan has by itself). */
/* clang-format off */
#define TUNABLES(X)                                                                                                    \
    X(THREADS, "threads", 32, 1024, "threads per block",                                                               \
      TUNABLE_MAIN, 64, 128, 192, 256, 320, 384, 512, 1024)                                                            \
    X(ITEMS, "items", 1, 64, "load vectors per thread and tile",                                                       \
      TUNABLE_MAIN, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16)                                                             \
    X(VECTOR, "vector", 1, 16, "elements per load of a thread",                                                        \
      TUNABLE_MAIN, 1, 2, 4, 8, 16)                                                                                    \
    X(BLOCKS_PER_SM, "blocks_per_sm", 1, 64, "blocks per multiprocessor, for the grid",                                \
      TUNABLE_FREE, 1, 2, 3, 4, 6, 8)                                                                                  \
    X(MIN_BLOCKS, "min_blocks", 0, 32, "minnctapersm launch bound; 0: none",                                           \
      TUNABLE_FINE | TUNABLE_FREE, 0, 1, 2, 4)                                                                         \
    X(CLUSTER, "cluster", 1, 16, "blocks per cluster",                                                                 \
      TUNABLE_MAIN, 1, 2, 4, 8, 16)                                                                                    \
    X(PDL, "pdl", 0, 1, "programmatic dependent launch (sm_90)",                                                       \
      TUNABLE_FINE | TUNABLE_FREE, 0, 1)                                                                               \
    X(SMEM_TRANSPOSE, "smem_transpose", 0, 1, "ordered: stage through a warp-private shared transpose",                \
      TUNABLE_MAIN, 0, 1)                                                                                              \
    X(STAGES, "stages", 3, 8,                                                                                          \
      "scans: tiles in shared memory, one arrives, one waits for its prefix, one is copied back; stencils: planes",    \
      TUNABLE_MAIN, 3, 4, 5, 6, 8)                                                                                     \
    X(UPSWEEP_WARPS, "upsweep_warps", 1, 16, "scan.pipeline: warps that combine tiles before they are scanned", TUNABLE_MAIN, \
      2, 4, 6, 8)                                                                                                      \
    X(STRIPED, "striped", 0, 1,                                                                                        \
      "scans: vectors of neighbouring lanes lie side by side, and warps scan them one after the other",                \
      TUNABLE_MAIN, 0, 1)                                                                                              \
    X(COMBINE, "combine", 0, 5,                                                                                        \
      "how the threads of a block combine: shuffle, tree, shared_atomic_all, shared_atomic_leaders, redux, "           \
      "tree_leaders",                                                                                                  \
      TUNABLE_FINE, 0, 1, 2, 3, 4, 5)                                                                                  \
    X(OVER_BLOCKS, "over_blocks", 0, 1, "tiles go to blocks strided or tiled",                                         \
      TUNABLE_FINE, 0, 1)                                                                                              \
    X(OVER_THREADS, "over_threads", 0, 1, "vectors of a tile go to threads strided or tiled",                          \
      TUNABLE_FINE, 0, 1)                                                                                              \
    X(COPY_STAGES, "copy_stages", 0, 16, "stages of the ring of asynchronous copies that inputs come through; 0: none", \
      TUNABLE_MAIN, 0, 2, 3, 4)                                                                                        \
    X(EVICT_FIRST, "evict_first", 0, 1, "inputs and outputs with hints that they leave the caches first",              \
      TUNABLE_FREE, 0, 1)                                                                                              \
    X(BLOCK_X, "block_x", 1, 1024, "stencils: threads of a block along the last dimension",                            \
      TUNABLE_MAIN, 16, 32, 64, 128, 256)                                                                              \
    X(BLOCK_Y, "block_y", 1, 1024, "stencils of three dimensions: threads of a block along the second",                \
      TUNABLE_MAIN, 1, 2, 4, 8, 16)                                                                                    \
    X(POINTS_X, "points_x", 1, 32, "stencils: points of a thread along the last dimension",                            \
      TUNABLE_MAIN, 1, 2, 4, 8)                                                                                        \
    X(POINTS_Y, "points_y", 1, 256, "stencils: points of a thread along the second to last dimension",                 \
      TUNABLE_MAIN, 1, 2, 4, 8, 16)                                                                                    \
    X(STEPS, "steps", 1, 16, "stencils: time steps of a launch",                                                       \
      TUNABLE_MAIN, 1, 2, 3, 4, 6, 8, 16)                                                                              \
    X(POINTS_Z, "points_z", 1, 256, "stencils: points of a thread along the third to last dimension",                  \
      TUNABLE_MAIN, 1, 2, 4, 8)                                                                                        \
    X(MAX_GRID, "max_grid", 0, 65536, "upper bound of the grid; 0: none",                                              \
      TUNABLE_FINE | TUNABLE_FREE, 0, 256, 1024)                                                                       \
    X(LANES, "lanes", 0, 32,                                                                                           \
      "segments, tables: lanes that share one; a power of two; 0: one per vector, or the whole block",               \
      TUNABLE_MAIN, 0, 1, 2, 4, 8, 16, 32)                                                                             \
    X(SEGMENTS, "segments", 1, 8, "segments: how many a team reduces at once",                                         \
      TUNABLE_MAIN, 1, 2, 4, 8)                                                                                        \
    X(ROWS, "rows", 1, 1024, "columns: row groups of a block; a power of two",                                         \
      TUNABLE_MAIN, 1, 2, 4, 8, 16, 32, 64)                                                                            \
    X(MARKER_WARPS, "marker_warps", 0, 8, "scan.pipeline: warps that mark where segments begin",                       \
      TUNABLE_MAIN, 0, 1, 2, 4)                                                                                        \
    X(LOOKBACK_WARPS, "lookback_warps", 0, 8, "scan.pipeline: warps that look back for columns; 0: one looks ahead",   \
      TUNABLE_MAIN, 0, 4, 8)                                                                                           \
    X(QUEUE, "queue", 0, 1, "offsets: parts of long segments wait in a queue for all blocks that are free",            \
      TUNABLE_MAIN, 0, 1)                                                                                              \
    X(PARTS, "parts", 0, 1024, "segments of one size: blocks that share one; 0: as many as fill the device. Of bins: parts, each in blocks of its own", \
      TUNABLE_MAIN, 0, 1)                                                                                              \
    X(BINS, "bins", 0, 65536, "bins of a table in shared memory: what the strategy takes; 0: there is no such table",  \
      TUNABLE_MAIN, 0, 256, 1024, 4096, 12288)                                                                         \
    X(ACROSS, "across", 0, 1, "rows: tiles cut across them; 0: each row has tiles of its own",                         \
      TUNABLE_MAIN, 0, 1)
/* clang-format on */

/* Facts about a tunable, for code that lists and searches variants. */
enum tunable_class {
    TUNABLE_MAIN = 0,
    TUNABLE_FINE = 1, /* matters seldom: tried beside what is fast already */
    TUNABLE_FREE = 2  /* no strategy's check looks at it: what is legal with one value is with another, as far as the
                         device allows (plan_free_fits()) */
};

enum tunable_id {
#define X(id, ...) TN_##id,
    TUNABLES(X)
#undef X
        TN_COUNT
};

/* Sets of them. */
enum tunable_set {
#define X(id, ...) WITH_##id = (int)(1u << TN_##id),
    TUNABLES(X)
#undef X
        WITH_BASICS = WITH_THREADS | WITH_ITEMS | WITH_VECTOR | WITH_MIN_BLOCKS | WITH_PDL,
    WITH_BOX = WITH_THREADS | WITH_MIN_BLOCKS | WITH_PDL | WITH_BLOCK_X | WITH_BLOCK_Y,
    WITH_POINTS = WITH_POINTS_X | WITH_POINTS_Y | WITH_POINTS_Z,
    WITH_GRID = WITH_BLOCKS_PER_SM | WITH_MAX_GRID
};
_Static_assert(TN_COUNT <= 32, "sets of tunables are 32 bits");

/* Values of TN_COMBINE. */
enum {
    COMBINE_SHUFFLE,
    COMBINE_TREE,
    COMBINE_SHARED_ATOMIC_ALL,
    COMBINE_SHARED_ATOMIC_LEADERS,
    COMBINE_REDUX,
    COMBINE_TREE_LEADERS
};

const char *argument_name(enum prog_arg_kind kind, int id); /* of a value or buffer: arguments.h */
const char *tunable_name(enum tunable_id t);
int tunable_least(enum tunable_id t); /* of its range */
/* Its number, also by an old name; -1: there is none. */
int tunable_by_name(const char *name);

/* Old names of strategies and tunables are accepted for one version; a list of them ends with NULL. */
struct alias {
    const char *old, *now;
};
const char *name_now(const struct alias *alias, const char *name);
/* The value that a text of some length means: a number, or the name of a value where values have names; false when it
 * is neither, or out of range. */
bool tunable_value(enum tunable_id t, const char *text, size_t length, int *value);
void tunable_limits(enum tunable_id t, int *lo, int *hi);
int tunable_class(enum tunable_id t);
/* The values that are worth trying, ascending; how many. */
int tunable_values(enum tunable_id t, const int **value);

struct strategy;
struct plan_case;
/* Does the case have a value of it?  One of a strategy's cases may do without. */
bool tunable_used(const struct plan_case *c, enum tunable_id t);
/* What is given for a tunable, from wherever: its name must be one (of the strategy's, where there is a row) and the
 * value within its range.  False after a diagnostic at set->at; d NULL: without one. */
bool tunable_given(struct diags *d, const struct strategy *row, const struct tunable *set, enum tunable_id *t,
                   int *value);
/* Says that this is no value of it. */
void tunable_report(struct diags *d, enum tunable_id t, const struct tunable *set);

/* Columns of a thread of segreduce.column: side by side; or anywhere in a row, the last ones being the row's last elements;
 * or as far apart as a block has threads.  Of scan.pipeline: side by side, or a whole row. */
enum columns_of { COLUMNS_ALIGNED, COLUMNS_SHIFTED, COLUMNS_STRIPED, COLUMNS_WHOLE_ROW };

struct plan_case {
    struct prog_case code; /* what the launcher sees */
    const struct strategy *strategy;
    int tunable[TN_COUNT];              /* 0 where the strategy does not use it */
    bool overridden[TN_COUNT];          /* set by the user */
    const char *tunable_from[TN_COUNT]; /* "tuning.def: …", "spec", "--set" */
    bool aligned; /* the guard promises that vectors of all direct arrays are aligned after `head` elements */
    bool maps;    /* its kernels write the outputs AT_RESULT themselves, all, or all but what `mapper` does; else … */
    int mapper;   /* … where there are such outputs, the number of the kernel that writes them (results.h); 0: none */
    int filler;   /* where outputs have an initial value: the number of the kernel that writes it, launched first */
    bool tiled;   /* sums read tiles in shared memory (pairs.h) */
    bool turns;   /* outputs in another order leave through shared memory (stencil_turned(), scan_turn()) */
    /* Stencils, aligned: how many elements, modulo a vector, a step along this axis moves the boundaries.
     * Columns: the first one is an enum columns_of. */
    int shift[SPACE_MAX - 1];
};

/* Buffers "words", of blocks that hand over totals, and "states", of tiles: the word of the tickets has a line of its own
 * before these. */
enum { LAUNCH_LINE_BYTES = 128 };

/* How its strategies were found: by rank, until the cases took every launch; one by its name; in a text. */
enum plan_origin { PLAN_CHOSEN, PLAN_PINNED, PLAN_READ };

enum { PLAN_CASES_MAX = 48, PLAN_STEPS_MAX = 8 /* kernels and steps of a case */ };
struct plan {
    const struct problem *problem;
    struct device device;
    enum plan_origin origin;
    bool set; /* tunables by the user, beside the spec's own */
    int ncases;
    struct plan_case *cases;
    int nchecks;
    struct prog_check *check;
};

/* A variant that is taken where all sizes are near these: an entry of a tuning file. */
struct tuned {
    int nset;
    const struct tunable *set; /* strategy first */
    const int64_t *size;
};

struct plan_options {
    const char *strategy; /* pinned; NULL: the problem's pin, else chosen */
    int nset;
    const struct tunable *set; /* --set NAME=VALUE: names of TUNABLES, or "strategy" */
    const int64_t *size;       /* known sizes (-1: unknown) or NULL: no cases that these do not take */
    bool only_these; /* no cases but those that a launch at these sizes takes, of arrays aligned to 16 bytes */
    int sms;         /* multiprocessors of the device; 0: not known */
    int ntuned;
    const struct tuned *tuned; /* before the usual cases, unless something is pinned */
    unsigned *clash;           /* if not NULL, gets the tunables of plan_contradiction() */
};

/* What planning functions share. */
struct planner {
    struct ptxgen_session *s;
    struct plan *plan;
    const struct plan_options *options;
    struct prog_arg *arguments[PLAN_STEPS_MAX]; /* where those of a case's kernels gather; NULL: none have yet */
};

/* What the blocks of a strategy do one after the other, for predictions: combinations of a block's threads, waits for
 * words of other blocks; where there are offsets, loads that other loads wait for and searches in them.  How: once, once
 * with waits for every block before them, or all again with every tile. */
struct chain {
    int combines, waits, loads, searches;
    enum { CHAIN_ONCE, CHAIN_GATHERS, CHAIN_CARRIES } how;
};
#define CHAIN(combines, waits, loads, searches, how)                                                                   \
    {                                                                                                                  \
        combines, waits, loads, searches, CHAIN_##how                                                                  \
    }

/* A strategy: one row of strategies.def, in order of preference within its kind. */
struct strategy {
    const char *name; /* "reduce.last_block" */
    enum problem_kind kind;
    const char *reference; /* the paper or system it comes from */
    /* Does it fit?  When not, *why gets a sentence in the arena. */
    bool (*fits)(const struct problem *p, const struct device *d, struct arena *a, const char **why);
    /* Appends its cases to the plan: name, guard, tunables. */
    void (*plan)(struct planner *pl, const struct strategy *row);
    /* Fills kernels, buffers and steps of a case from its tunables; the same for chosen, pinned and read-back plans.
     * Returns false after a diagnostic when the tunables contradict each other. */
    bool (*build)(struct planner *pl, struct plan_case *c);
    /* The tunables it uses, as bits 1 << TN_x. */
    unsigned tunables;
    struct chain chain;
};
/* What its cases compute: the problem, or for those with tables of bins its form as a reduction; NULL: another kind. */
const struct problem *strategy_problem(const struct strategy *row, const struct problem *p);
/* Does the strategy serve this form?  Otherwise *why says why not. */
bool strategy_fits(const struct strategy *row, const struct problem *p, const struct device *d, struct arena *a,
                   const char **why);
int strategy_count(void);
const struct strategy *strategy_row(int i);
const struct strategy *strategy_by_name(const char *name);

/* Choose and plan; NULL with diagnostics when nothing fits. */
const struct plan *plan_create(struct ptxgen_session *s, const struct problem *p, const struct device *d,
                               const struct plan_options *o);
/* The text form, and back. Reading checks the plan against the problem; NULL with diagnostics (their source is the
 * plan's text). */
void plan_print(const struct plan *plan, struct str *out);
/* The part of it that the code of case c depends on, besides the problem: when the case is taken is not. */
void plan_print_case(const struct plan *plan, int c, struct str *out);
const struct plan *plan_read(struct ptxgen_session *s, const struct problem *p, const char *file, const char *text,
                             size_t length);
/* The program without code, on the heap: names, arrays, cases (deep copies).  NULL: memory is exhausted. */
struct program *program_from_plan(const struct plan *plan);
/* Which strategy was chosen, why the others were not, tunables and where they come from, what it costs and takes; as
 * text or JSON. False after a diagnostic when the options name an unknown GPU. */
bool plan_explain(struct ptxgen_session *s, const struct plan *plan, const ptxgen_explain_options *options,
                  struct str *out);

#endif
