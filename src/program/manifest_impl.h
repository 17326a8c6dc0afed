/* SPDX-License-Identifier: Apache-2.0 */
/* manifest_impl.h - the parts that the manifest of a program shares with that of a program of stages. */
#ifndef PTXGEN_MANIFEST_IMPL_H
#define PTXGEN_MANIFEST_IMPL_H

#include "program.h"

/* "key": [ */
void manifest_list(struct json *j, const char *key);
/* Members of the object that is open; p names the sizes. */
void manifest_sizes(struct json *j, const struct program *p);
void manifest_array(struct json *j, const struct program *p, const struct prog_array *a);
void manifest_arrays(struct json *j, const struct program *p, const char *key, const struct prog_array *a, int count);
void manifest_params(struct json *j, const struct program *p);
/* The object of a whole program. */
void manifest_program(struct json *j, const struct program *p);

#endif
