/* SPDX-License-Identifier: Apache-2.0 */
/* xla_ffi.h - the binary interface through which XLA calls functions of others, as far as jax.c uses it: what all versions
 * 0.x of it have in common.  Every structure begins with its size in bytes. */
#ifndef PTXGEN_PY_XLA_FFI_H
#define PTXGEN_PY_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

enum { XLA_METADATA = 1 };                    /* extensions */
enum { XLA_INITIALIZE = 2, XLA_EXECUTE = 3 }; /* stages */
enum { XLA_BUFFER = 1, XLA_STRING = 4 };      /* kinds of arguments, results; of attributes */
enum { XLA_INVALID_ARGUMENT = 3, XLA_INTERNAL = 13 };
enum { XLA_CAPTURABLE = 1 }; /* calls always launch the same, which a command buffer may keep */

struct xla_extension {
    size_t bytes;
    int type;
    struct xla_extension *next;
};
struct xla_version {
    size_t bytes;
    struct xla_extension *extension;
    int major, minor;
};
struct xla_metadata {
    size_t bytes;
    struct xla_version version;
    uint32_t traits;
};
struct xla_metadata_extension {
    struct xla_extension base;
    struct xla_metadata *metadata;
};
struct xla_new_error {
    size_t bytes;
    struct xla_extension *extension;
    const char *message; /* copied */
    int code;
};
struct xla_error_end {
    size_t bytes;
    struct xla_extension *extension;
    void *error;
};
struct xla_stream {
    size_t bytes;
    struct xla_extension *extension;
    void *context, *stream;
};
struct xla_api {
    size_t bytes;
    struct xla_extension *extension;
    struct xla_version version;
    void *internal;
    void *(*error_create)(struct xla_new_error *);
    void *error_message;
    void (*error_destroy)(struct xla_error_end *);
    void *handler_register;
    void *(*stream_get)(struct xla_stream *);
};
struct xla_buffer {
    size_t bytes;
    struct xla_extension *extension;
    int type;
    void *data;
    int64_t rank;
    const int64_t *shape;
};
struct xla_list { /* of arguments, or of results */
    size_t bytes;
    struct xla_extension *extension;
    int64_t count;
    const int *kind;
    void *const *value;
};
struct xla_text {
    const char *text;
    size_t length;
};
struct xla_attributes {
    size_t bytes;
    struct xla_extension *extension;
    int64_t count;
    const int *kind;
    struct xla_text *const *name;
    void *const *value;
};
struct xla_frame {
    size_t bytes;
    struct xla_extension *extension;
    const struct xla_api *api;
    void *context;
    int stage;
    struct xla_list arguments, results;
    struct xla_attributes attributes;
};

#endif
