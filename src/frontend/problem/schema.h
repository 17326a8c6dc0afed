/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - the rows of schema.def as data, for the checker and the JSON Schema. */
#ifndef PTXGEN_SCHEMA_H
#define PTXGEN_SCHEMA_H

#include "frontend/frontend_impl.h"

enum schema_value_id {
#define VALUE(id, sorts, what, json) V_##id,
#include "schema.def"
#undef VALUE
    V_COUNT
};

struct schema_value {
    const char *sorts; /* of S scalar, Q sequence, M mapping */
    const char *what;
    const char *json;
};
struct schema_key {
    enum schema_table table;
    const char *key;
    unsigned kinds;
    bool required;
    enum schema_value_id value;
    const char *doc;
};

extern const struct schema_value schema_values[];
extern const struct schema_key schema_keys[];
extern const int schema_key_count;

#endif
