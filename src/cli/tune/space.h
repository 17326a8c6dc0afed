/* SPDX-License-Identifier: Apache-2.0 */
/* space.h - the variants of a spec, counted and gathered; and compiled on all cores. */
#ifndef PTXGEN_CLI_SPACE_H
#define PTXGEN_CLI_SPACE_H

#include "cli.h"

struct compiled {
    ptxgen_program *program; /* NULL: not compiled, or failed */
    char *failure;           /* malloc; NULL */
    double seconds;          /* of a core, for planning and compiling */
    size_t bytes;            /* of PTX */
    uint64_t code;           /* hash of everything that a launch depends on */
    int same_as;             /* an earlier variant with the same code, or -1 */
};

struct variant_item {
    char *id, *strategy, *why_not;
    int ntunables;
    char **name;
    int *value;
    double predicted;
    struct compiled compiled;
};

struct space {
    int n, capacity;
    struct variant_item *item;
};

/* Which variants: those of the options (--set, --strategy, --arch, --size), and of them these. */
struct selection {
    bool illegal;   /* also combinations that are not legal, which strategies that do not fit always are */
    bool main_only; /* as in ptxgen_variant_options */
    int64_t draw;   /* 0: all */
    uint64_t seed;
};
/* Those of the selection that are not in the space yet go to its end; why_not tells strategies that do not fit.
 * space_finish() also after failure. */
int space_gather(ptxgen_session *s, const struct options *o, const ptxgen_problem *p, const int64_t *size,
                 const struct selection *selection, struct space *sp);
/* Those that differ from item i in one tunable, as far as they are not in the space yet. */
int space_gather_beside(ptxgen_session *s, const struct options *o, const ptxgen_problem *p, const int64_t *size, int i,
                        bool illegal, struct space *sp);
/* A variant by its id, whether legal or not; its number, or -1: out of memory. */
int space_add(struct space *sp, const char *id);
void space_finish(struct space *sp);

/* How many variants the strategies have. */
enum { STRATEGIES_MAX = 64 };
struct census {
    int n;
    struct {
        char *strategy, *why_not;
        int64_t legal, illegal;
    } row[STRATEGIES_MAX];
};
/* Counted on all cores; path: of the spec. census_finish() also after failure. */
int space_count(ptxgen_session *s, const struct options *o, const char *path, const int64_t *size,
                const struct selection *selection, struct census *out);
int64_t census_legal(const struct census *c);
void census_finish(struct census *c);

/* Compiles n items (index NULL: the first n) that are legal; keep: their programs stay, else only the figures do. With
 * known sizes what a launch of aligned arrays at these takes, else a variant takes all. */
struct compiling {
    const struct options *options;
    const char *path, *arch; /* of the spec; architecture */
    const int64_t *size;     /* all of them, or NULL */
    int multiprocessors;     /* 0: not known */
    bool keep;
};
void space_compile(struct space *sp, const int *index, int n, const struct compiling *how);
/* The pin of a variant as such a compilation makes it. */
ptxgen_plan_options space_pin(const struct compiling *how, const char *id);
/* Fills same_as of all that are compiled. */
void space_duplicates(struct space *sp);

#endif
