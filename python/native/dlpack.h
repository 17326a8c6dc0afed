/* SPDX-License-Identifier: Apache-2.0 */
/* dlpack.h - the binary interface of DLPack 1.3: tensors of other libraries in memory, and the table of functions through
 * which a library exchanges them without Python calls. */
#ifndef PTXGEN_PY_DLPACK_H
#define PTXGEN_PY_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_COMPLEX, DL_BOOL };
enum { DL_READ_ONLY = 1 };

struct dl_device {
    int32_t type, id;
};
struct dl_type {
    uint8_t code, bits;
    uint16_t lanes;
};
struct dl_tensor {
    void *data;
    struct dl_device device;
    int32_t ndim;
    struct dl_type type;
    int64_t *shape, *strides; /* in elements; strides NULL: row-major */
    uint64_t byte_offset;
};
struct dl_managed { /* in a capsule "dltensor" */
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
};
struct dl_version {
    uint32_t major, minor;
};
struct dl_versioned { /* in a capsule "dltensor_versioned" */
    struct dl_version version;
    void *context;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    struct dl_tensor tensor;
};

/* In a capsule "dlpack_exchange_api", the attribute __dlpack_c_exchange_api__ of a type.  Functions give 0, or -1 with a
 * Python exception. */
struct dl_exchange {
    struct dl_version version;
    struct dl_exchange *older;
    int (*allocate)(struct dl_tensor *like, struct dl_versioned **out, void *context,
                    void (*set_error)(void *context, const char *kind, const char *message));
    int (*take_managed)(void *object, struct dl_versioned **out);
    int (*give)(struct dl_versioned *tensor, void **object);
    int (*view)(void *object, struct dl_tensor *out); /* may be NULL */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
};

#endif
