/* SPDX-License-Identifier: Apache-2.0 */
/* stages_impl.h - what the files of this folder share.
 *
 *   mention.c   the names that a tree of YAML uses
 *   root.c      the tree of a stage, of the user's nodes
 *   fuse.c      maps become part of the stages that read them; fuse_value.c: or of a reduction that writes;
 *               fuse_reduce.c: reductions, of those that write; fuse_apart.c: why not; fuse_root.c: the trees; same.c: the proof
 *   loop.c      iterate: steps, feedback, until
 *   stages.c    the order of the parts, and which array is whose
 *   single.c    a single spec with `until`
 *   unwritten.c warnings about elements that are read and not written
 *   kept.c      `where` that needs a result: a stage becomes two
 *   stages_print.c   as text
 */
#ifndef PTXGEN_STAGES_IMPL_H
#define PTXGEN_STAGES_IMPL_H

#include "frontend/frontend_impl.h"
#include "stages.h"

/* An array that a stage may read: an input of the whole, or what an earlier stage writes. */
struct made {
    const char *name;
    struct ynode *type; /* as the type of an input */
    struct span at;
    int array; /* number in prog_stages; -1: its stage has errors */
    bool read, leaves;
    bool gone; /* nobody stores it: what wrote it has become part of what reads it */
};

/* A stage as the user wrote it, and what has become of it. */
struct part {
    const char *name;
    const struct ynode *root;
    const struct problem *problem; /* NULL: it has errors */
    const struct problem *own;     /* before others became part of it */
    bool alone;                    /* `fuse: false` */
    int into;                      /* the part that it has become part of; -1: none */
    const char *apart;             /* why it has not */
};

struct stages_builder {
    struct builder *b; /* of the whole: its root, inputs, params and sizes */
    const struct ynode *stages;
    struct stages *out;
    struct made made[STAGE_ARRAYS_MAX];
    int nmade;
    struct part part[STAGES_MAX];
    int nparts;
    struct stage_array array[STAGE_ARRAYS_MAX];
    struct prog_stage stage[STAGES_MAX];
    struct stage_feedback feedback[STAGE_ARRAYS_MAX];
    bool step_taken; /* `step` is a name of the user, which is reported */
};

/* Names, each once, and where it first stands. */
struct names {
    struct arena *arena;
    const char **name;
    struct span *at;
    int n, cap, cap_at;
};
void names_add(struct names *of, const char *name, struct span at);
int names_find(const struct names *of, const char *name);
/* All names in the scalars of the tree, and the inputs that a loop of a stage feeds. */
void names_collect(struct names *of, const struct ynode *n);

/* Nodes of this folder's own. */
struct ynode *node_scalar(struct arena *a, const char *text, struct span at);
struct ynode *node_mapping(struct arena *a, struct span at, int capacity);
void node_put(struct ynode *mapping, struct ynode *key, struct ynode *value); /* below its capacity */
/* The type of an output as that of an input that reads it; NULL: there is none, which is reported elsewhere. */
struct ynode *type_as_input(struct arena *a, struct ynode *output);

/* The tree of a spec, or that of the program of one stage that it stands for: a stencil with `until`. */
const struct ynode *single_as_stages(struct ptxgen_session *s, const struct ynode *root);
/* Does a spec without stages have to become two, because of `where`? */
bool needs_stages(struct arena *a, const struct ynode *root);
/* The tree in which each stage that has to be two is two. */
const struct ynode *kept_as_stages(struct arena *a, const struct ynode *root);
bool kept_is_second(const struct ynode *own);
/* False after a message: an output of the first of two has not all dimensions in their order. */
bool kept_fits(struct builder *b, const struct problem *p);
/* The tree of stage `number`; NULL after a message. */
const struct ynode *stage_root(struct stages_builder *sb, int number);
/* After the stages: warns of lets and operators of the whole that nothing uses; reports facts about what is not there. */
void lets_check(const struct stages_builder *sb);
/* Warns of elements that no stage writes, and that are read. */
void unwritten_check(struct stages_builder *sb);
void facts_check(const struct stages_builder *sb);
/* The tree of a problem `name` that computes `done` from the condition. */
const struct ynode *until_root(struct stages_builder *sb, const char *name, struct ynode *condition);

int made_find(const struct stages_builder *sb, const char *name);
/* Adds a stage, with arrays `between` unless the whole has them as outputs.  False after a message. */
bool stage_add(struct stages_builder *sb, const char *name, const struct ynode *root, const struct problem *p);
struct fusing {
    struct stages_builder *sb;
    struct names whole;    /* what `outputs` and `iterate` of the whole mention */
    struct names repeated; /* what `iterate` mentions */
};
/* The text, with A for the array and B for the stage. */
const char *fuse_because(const struct fusing *f, const char *format, const char *name, const char *array);
/* How two parts become one: the tree of the whole with the part in it (NULL: both have a let or an operator of the name *clash), and the
 * proof that its problem is both. */
struct fuse_way {
    const struct ynode *(*root)(struct stages_builder *sb, const struct part *whole, const struct part *part,
                                const char **clash);
    bool (*is_both)(struct arena *a, const struct problem *whole, const struct problem *part,
                    const struct problem *both);
};
/* Part `number` becomes part of `to`; or why not. */
const char *fuse_into(const struct fusing *f, int number, int to, const struct fuse_way *way);
int problem_input(const struct problem *p, const char *name); /* -1: none */
/* Do the dimensions of an array follow the axes of the space, in their order? */
bool axes_in_order(const int *axis, int rank);
/* Why an output is not one plain value for each point of the space, in order; NULL: it is. */
const char *output_obstacle(const struct fusing *f, const struct problem *p, const struct output *o);
/* The last stage that writes what a stage reads; -1: none does. */
int last_writer(const struct stages_builder *sb, int reader);
/* The map `number` becomes values of the reduction `to`; or why not. */
const char *fuse_with_writer(struct fusing *f, int number, int to);
/* The tree of the reduction with the values of the map; NULL: both have a let of the name *clash. */
const struct ynode *valued_root(struct stages_builder *sb, const struct part *writer, const struct part *map,
                                const char **clash);
bool values_are_both(struct arena *a, const struct problem *writer, const struct problem *map,
                     const struct problem *both);
void join_reductions(struct fusing *f);
const struct ynode *joined_root(struct stages_builder *sb, const struct part *writer, const struct part *reduction,
                                const char **clash);
bool joining_is_both(struct arena *a, const struct problem *writer, const struct problem *reduction,
                     const struct problem *joined);

/* Why a map stays apart: why its reader does not take it, and why the stage that writes what it reads does not. */
const char *apart_from_writer(const struct fusing *f, int map, int writer, const char *why);
/* The reasons of stages that have none, and read elements that another stage writes. */
void tell_apart(struct fusing *f);

/* After the parts are there, all without errors. */
void fuse_maps(struct stages_builder *sb);
/* The tree of the reader with the map in it; NULL: both have a let of the name *clash. */
const struct ynode *fused_root(struct stages_builder *sb, const struct part *reader, const struct part *map,
                               const char **clash);
/* Does `fused` compute what the reader does, from the values that the map would have stored? */
bool fusion_is_both(struct arena *a, const struct problem *reader, const struct problem *map,
                    const struct problem *fused);
/* What is called like the loop's step is reported. */
void loop_keeps_step(struct stages_builder *sb);
void loop_build(struct stages_builder *sb);

#endif
