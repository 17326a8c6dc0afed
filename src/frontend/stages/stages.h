/* SPDX-License-Identifier: Apache-2.0 */
/* stages.h - a spec with the key `stages`: several problems that hand arrays to each other, perhaps in a loop.
 *
 * Each stage is an ordinary problem.  Its tree is made of the user's nodes: the stage's own keys, and those inputs,
 * params, lets and facts of the whole that it mentions.  So every message has its place in the user's text.
 */
#ifndef PTXGEN_STAGES_H
#define PTXGEN_STAGES_H

#include "frontend/problem/problem.h"
#include "program/stages.h"

/* What has become of a map: part of another stage, or why not. */
struct stage_fusion {
    const char *stage, *into, *why; /* one of into and why is NULL */
    const struct problem *problem;  /* as the user wrote the stage */
};

struct stages {
    const char *name, *doc;
    enum determinism determinism;
    struct prog_stages data;
    const struct problem *problem[STAGES_MAX];
    int nfusions;
    struct stage_fusion fusion[STAGES_MAX]; /* in the order of the program */
};

/* One of the two. */
struct frontend_spec {
    const struct problem *problem;
    const struct stages *stages;
};

/* Either form, from YAML text.  False when there were errors (all are in s->diags).  default_name: as of
 * problem_build(). */
bool frontend_build(struct ptxgen_session *s, const char *file, const char *text, size_t length,
                    const char *default_name, struct frontend_spec *out);

/* Canonical text: the loop, then the problem of each stage. */
void stages_print(const struct stages *s, struct str *out);
/* Is an array part of a picture?  Not what only the condition of the loop has: its flag, and what gives it a shape. */
bool stages_draws(const struct prog_stages *p, int array);
/* Is a stage this condition? */
bool stages_is_condition(const struct prog_stages *p, int stage);
/* The extents of an array, as in "[m, n+1]"; nothing for a scalar. */
void stages_print_extents(const struct prog_stages *p, const struct prog_array *a, struct str *out);
/* For Graphviz; a problem is drawn as one stage. */
void stages_dot(const struct stages *s, struct str *out);
void problem_dot(const struct problem *p, const struct program *shape, struct str *out);

#endif
