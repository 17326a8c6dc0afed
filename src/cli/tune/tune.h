/* SPDX-License-Identifier: Apache-2.0 */
/* tune.h - what the files of `ptxgen tune` share.
 *
 *   commands/tune.c       options, and the order of things
 *   choose.c         which variants are tried next
 *   trial.c          one variant on a device: made ready, checked, timed
 *   tune_journal.c   what is known from earlier runs
 *   output.c         the report, the tuning file, exports
 *   program.c        a program of stages: one after the other
 */
#ifndef PTXGEN_CLI_TUNE_H
#define PTXGEN_CLI_TUNE_H

#include "data/compare.h"
#include "data/copies.h"
#include "progress.h"
#include "space.h"

/* What became of a variant. */
#define OUTCOMES(X)                                                                                                    \
    X(NEW, "new")         /* not tried */                                                                              \
    X(STARTED, "started") /* in the journal: its run ended the program */                                              \
    X(OK, "ok")           /* right, and measured to the end */                                                         \
    X(SLOW, "slow")       /* right, and dropped after its first samples */                                             \
    X(SAME, "same")       /* the same code as another one */                                                           \
    X(FAILED, "failed")   /* does not compile, load or run */                                                          \
    X(WRONG, "wrong")     /* its results are not those of the reference */                                             \
    X(BITS, "bits")       /* right, but not the default's bits, which the determinism of the spec asks for */
enum outcome {
#define X(id, name) OUT_##id,
    OUTCOMES(X)
#undef X
        OUT_COUNT
};
const char *outcome_name(enum outcome o);

/* One variant; number i belongs to item i of the space. */
struct trial {
    enum outcome outcome;
    double seconds; /* per launch, median of its samples; 0: none */
    int samples;
    char *why;          /* malloc; NULL */
    bool chosen, fresh; /* in a batch; measured by this run */
    bool expanded;      /* its neighbours are in the space */
    ptxgen_loaded *loaded;
    ptxgen_host *host;
};

struct tuner {
    int (*give)(struct job *j, void *giver); /* fills the inputs of the prepared job; NULL: they are filled */
    void *giver;
    const struct options *options, *native; /* native: with the architecture that is found */
    struct job job;
    const char *path, *arch; /* of the spec; architecture */
    bool on_host;
    ptxgen_gpu *gpu;
    struct subject subject;
    struct comparer comparer; /* with the default's results, once they are known to be right */
    struct space space;       /* what may be tried, and grows; item 0 is the default */
    int64_t all;              /* legal variants that there are */
    int twin;                 /* what the default is at these sizes, as a variant; 0: not one */
    struct trial *trial;
    int trials;           /* room */
    char **expected_bits; /* per output: the default's results, where determinism asks for its bits */
    bool by_oracle;
    int64_t limit, seed, samples;
    double begin, budget; /* seconds; 0: none */
    int measured;         /* in this run and before */
    FILE *journal;
    char *journal_path, *tuning; /* malloc; tuning: the file that is written, or NULL */
    int saved;                   /* 1 + the variant that the tuning file has by now */
};

/* The whole of tuning a spec, or a stage. */
int tune_spec(const struct options *o, int (*give)(struct job *j, void *giver), void *giver);
/* ---- program.c ---- */
/* whole: has a session and a problem with stages, no arrays. */
int tune_program(struct job *whole);
/* A trial for every item of the space. */
int tune_grow(struct tuner *t);
/* How variants are compiled for trials. */
struct compiling tune_compiling(const struct tuner *t);

/* ---- choose.c ---- */
/* Fills the space: the default, its twin, and all variants where the limit allows, else as many drawn at random as may
 * be wanted. */
int tune_gather(struct tuner *t);
/* Marks up to `most` untried variants as chosen, and gives their number: all of the space where the limit allows, else
 * first those beside the default, then a random selection that takes the strategies in turn, at last those beside the
 * fastest so far. */
int tune_choose(struct tuner *t, int most);
/* The fastest that is right and not dropped, whose time has the most samples; -1: none. */
int tune_best(const struct tuner *t);

/* ---- trial.c ---- */
/* Compiles and loads the chosen ones on all cores; what fails gets its outcome. */
void tune_ready(struct tuner *t);
/* Runs once and compares, then takes the first samples: OUT_OK, or another outcome. */
void tune_try(struct tuner *t, int i);
/* `samples` more samples of a variant that is still loaded; the median of these is its time. */
int tune_time(struct tuner *t, int i, int samples);
void tune_unload(struct tuner *t, int i);

/* ---- tune_journal.c ---- */
/* Reads what an earlier run of the same problem, device and sizes left, and opens the file for more: that of --journal,
 * else one beside the cache. */
int journal_open(struct tuner *t);
void journal_write(struct tuner *t, int i);

/* ---- output.c ---- */
int tune_report(struct tuner *t);
int tune_write_tuning(struct tuner *t, const char *path);
int tune_emit_row(struct tuner *t, const char *path);
int tune_export(struct tuner *t, const char *form);
void tune_progress(const struct tuner *t, int done, int all);

#endif
