/* SPDX-License-Identifier: Apache-2.0 */
/* space.h - the variants of a spec, gathered; and compiled on all cores. */
#ifndef PTXGEN_CLI_SPACE_H
#define PTXGEN_CLI_SPACE_H

#include "cli.h"

struct compiled {
    ptxgen_program *program; /* NULL: not compiled, or failed */
    char *failure;           /* malloc; NULL */
    double seconds;          /* of planning and compiling */
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

/* Which of those that do not fit are in it. */
enum space_part { SPACE_LEGAL, SPACE_STRATEGIES /* whole strategies */, SPACE_ALL };
struct space {
    enum space_part part;
    int n, capacity;
    struct variant_item *item;
};

/* All variants, restricted by --set, --arch, --size.  space_finish() also after failure. */
int space_gather(ptxgen_session *s, const struct options *o, const ptxgen_problem *p, const int64_t *size,
                 enum space_part part, struct space *out);
void space_finish(struct space *sp);

/* What is chosen without pins, as item 0 with the id "default". */
int space_add_default(struct space *sp);

/* Compiles n items (index NULL: the first n) that are legal; keep: their programs stay, else only the figures do. Sizes
 * are not given to the planner: a variant takes all. */
struct compiling {
    const struct options *options;
    const char *path, *arch; /* of the spec; architecture */
    bool keep;
};
void space_compile(struct space *sp, const int *index, int n, const struct compiling *how);
/* Fills same_as of all that are compiled. */
void space_duplicates(struct space *sp);

#endif
