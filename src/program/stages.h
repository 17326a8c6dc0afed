/* SPDX-License-Identifier: Apache-2.0 */
/* stages.h - a program of several stages, as plain data, and the walk over it.
 *
 * A stage is an ordinary program of its own.  What belongs to all stages is here: which arrays, sizes and params of the
 * whole each stage gets, how long an array between stages lives, and the loop.  The oracle, the host executor and the
 * GPU launcher walk the stages with the same function and bring what differs.
 *
 *   array      an input or output of the whole, or one that lies between stages, in scratch memory
 *   feedback   an output that is an input of the next step
 *   twin       a second memory of an output that is fed back, where a step still reads the old values as it writes
 */
#ifndef PTXGEN_PROGRAM_STAGES_H
#define PTXGEN_PROGRAM_STAGES_H

#include "program.h"

enum { STAGES_MAX = 32, STAGE_ARRAYS_MAX = 128, STAGE_ARGS_MAX = 64 };

enum stage_place { PLACE_INPUT, PLACE_OUTPUT, PLACE_BETWEEN };
struct stage_array {
    struct prog_array array; /* its sizes are those of the whole */
    enum stage_place place;
    int index;       /* of the inputs or outputs of the whole */
    int first, last; /* the stages that write it and read it last; of what lives through the loop, all stages */
};

/* Numbers of the whole's, for each of the stage's. */
struct prog_stage {
    const char *name;
    int nsizes, nparams, ninputs, noutputs;
    const int *size, *param, *input, *output; /* param: -1: the number of the step.  input, output: arrays */
};

struct stage_feedback {
    int input, output; /* arrays */
    bool twin;
};

struct prog_stages {
    const struct program *shape; /* of the whole: names, arrays and params; no cases */
    int nstages, narrays, nfeedback;
    const struct prog_stage *stage;
    const struct stage_array *array;
    const struct stage_feedback *feedback;
    int64_t steps;   /* 1 without a loop */
    int steps_param; /* >= 0: the param that gives them */
    int until;       /* array of one bool, which the last stage writes: the loop ends where it holds; -1: none */
    int check_every; /* that stage runs, and the bool is read, after this many steps, and twice as many, ... */
};

/* Where arrays between stages and twins lie: those that live at the same time do not overlap. */
struct stages_layout {
    int64_t bytes;                        /* of all */
    int64_t offset[2 * STAGE_ARRAYS_MAX]; /* of arrays, then of twins by their number of feedback */
};
/* False: a shape is negative, or bytes overflow. */
bool stages_place(const struct prog_stages *p, const int64_t *size, struct stages_layout *out);

/* What a walk does with a stage, between steps and after them.  False ends the walk. */
struct stages_doer {
    void *user;
    bool (*run)(void *user, int stage, const struct run_args *args);
    bool (*copy)(void *user, void *to, const void *from, int64_t bytes);
    bool (*holds)(void *user, const void *flag, bool *holds);
    bool all; /* the condition's stage runs in steps that nobody checks, too: it is prepared */
};
/* Is the condition read after step `step` of so many?  After the last of all there is nothing to decide. */
bool stages_checks(const struct prog_stages *p, int64_t step, int64_t steps);
/* How many steps; negative: *why says what is wrong (a string of the program's life). */
int64_t stages_steps(const struct prog_stages *p, const union value *param, const char **why);
/* All stages in their order, for all steps.  memory: layout->bytes, aligned to 256.  False: doer said so. */
bool stages_walk(const struct prog_stages *p, const struct run_args *args, const struct stages_layout *layout,
                 void *memory, const struct stages_doer *doer);
/* Parts of a walk whose number of steps only the device knows.  Step 0 reads the inputs of the whole, and those after it
 * what the step before has written: even steps write home, odd ones the twins. */
bool stages_step(const struct prog_stages *p, const struct run_args *args, const struct stages_layout *layout,
                 void *memory, int64_t step, const struct stages_doer *doer);
/* What must follow where an odd step was the last. */
bool stages_twins_home(const struct prog_stages *p, const struct run_args *args, const struct stages_layout *layout,
                       void *memory, const struct stages_doer *doer);

/* The data inside a public program object with stages, and the programs of these; NULL: it has none. */
struct ptxgen_program;
const struct prog_stages *ptxgen_program_stages(const struct ptxgen_program *program,
                                                struct ptxgen_program *const **stage);

/* Files of code, from the program of each stage: one PTX text, and JSON (docs/stages.md). */
void stages_ptx(const struct prog_stages *p, const struct program *const *stage, struct str *out);
void stages_manifest(const struct prog_stages *p, const struct program *const *stage, struct str *out);
void stages_header(const struct prog_stages *p, const struct program *const *stage, struct str *out);
void stages_tvm_ffi(const struct prog_stages *p, const struct program *const *stage, struct str *out);

#endif
