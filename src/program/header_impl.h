/* SPDX-License-Identifier: Apache-2.0 */
/* header_impl.h - what the files behind program_header() share.
 *
 *   header.c            the file: embedded PTX, load and unload, the typed functions
 *   header_api.c        what its users read: the comment, types and declarations at its top
 *   header_arguments.c  arguments of the typed functions
 *   header_case.c       per case: guard, workspace, steps, as C
 *   header_support.c    functions that all generated headers share
 *   header_stages.c     the file for several stages; header_walk.c: what all of these share
 */
#ifndef PTXGEN_HEADER_IMPL_H
#define PTXGEN_HEADER_IMPL_H

#include "stages.h"

/* Output of one header. Generated functions see `handle`, and the launch's sizes, params and pointers as `v`. */
struct header {
    const struct program *p;
    struct str *out;
    const char *name;                     /* of the program */
    struct str *argument;                 /* names of sizes, inputs, outputs, params */
    const struct prog_stages *stages;     /* or NULL: of a whole, whose modules and cases are those of all stages */
    const struct program *const *program; /* of each stage */
};
struct header header_of_stage(const struct header *h, int stage);

/* Like printf(), with the program's name for each @ of the format. */
void header_emit(const struct header *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A formula as a C expression of type int64_t. in_guard: kernels' occupancies are not known yet. */
void header_formula(const struct header *h, const struct formula *f, bool in_guard);
void header_condition(const struct header *h, const struct formula *f); /* "if (…)" */
/* The formula as the spec would write it, for a comment; of case c, or of the checks where c is negative. */
void header_comment(const struct header *h, int c, const struct formula *f);
/* Does the formula look at pointers, or at occupancies? */
bool header_uses(const struct formula *f, enum formula_op op);
int header_kernel_number(const struct program *p, int c, int kernel); /* in the handle */
int header_kernel_count(const struct program *p);
const char *header_c_type(enum ty t);

void header_api(const struct header *h); /* header_api.c */

/* header_arguments.c: pointers are numbered inputs first, then outputs. */
const struct prog_array *header_array_of(const struct program *p, int pointer);
/* Fills `argument`: as in the spec where C and C++ allow it, each once.  False: memory is exhausted. */
bool header_name_arguments(struct header *h);
void header_forget_arguments(struct header *h);
void header_structures(const struct header *h);                       /* element types of arrays of structures */
void header_defaults(const struct header *h);                         /* of params, as macros */
void header_parameters(const struct header *h, bool pointers);        /* sizes, arrays, params, each after a comma */
void header_names(const struct header *h, bool pointers);             /* their names alone, as a call has them */
void header_collect_arguments(const struct header *h, bool pointers); /* the same into `values` */

void header_case(const struct header *h, int c);
void header_refuse(const struct header *h);
void header_checks(const struct header *h);          /* of sizes and pointers */
void header_code(const struct header *h);            /* all that is not for users */
void header_typed_functions(const struct header *h); /* upon NAME_measure and NAME_start */
void header_values(const struct header *h);          /* what a launch is given */
void header_walk(struct str *out);
void header_support(struct str *out);

#endif
