/* SPDX-License-Identifier: Apache-2.0 */
/* types.h - the scalar types of the language, one row each. */
#ifndef PTXGEN_TYPES_H
#define PTXGEN_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* kind: 'b' bool, 's' signed, 'u' unsigned, 'f' float.  bytes: in memory, also the alignment. */
/* clang-format off */
#define TY_TABLE(X)                          \
    /* id    name    bits  bytes kind npy */ \
    X(BOOL, "bool",  1,    1,    'b', "|b1") \
    X(I8,   "i8",    8,    1,    's', "|i1") \
    X(I16,  "i16",   16,   2,    's', "<i2") \
    X(I32,  "i32",   32,   4,    's', "<i4") \
    X(I64,  "i64",   64,   8,    's', "<i8") \
    X(U8,   "u8",    8,    1,    'u', "|u1") \
    X(U16,  "u16",   16,   2,    'u', "<u2") \
    X(U32,  "u32",   32,   4,    'u', "<u4") \
    X(U64,  "u64",   64,   8,    'u', "<u8") \
    X(F16,  "f16",   16,   2,    'f', "<f2") \
    X(BF16, "bf16",  16,   2,    'f', "<u2") \
    X(F32,  "f32",   32,   4,    'f', "<f4") \
    X(F64,  "f64",   64,   8,    'f', "<f8")
/* clang-format on */

enum ty {
#define X(id, name, bits, bytes, kind, npy) TY_##id,
    TY_TABLE(X)
#undef X
        TY_COUNT,
    TY_NONE = -1
};

const char *ty_name(enum ty t);
int ty_bits(enum ty t);
int ty_bytes(enum ty t);
char ty_kind(enum ty t);
const char *ty_npy(enum ty t);                    /* .npy descriptor */
enum ty ty_by_name(const char *name, int length); /* TY_NONE when there is none */

static inline bool ty_is_float(enum ty t) { return ty_kind(t) == 'f'; }
static inline bool ty_is_signed(enum ty t) { return ty_kind(t) == 's'; }
static inline bool ty_is_int(enum ty t) { return ty_kind(t) == 's' || ty_kind(t) == 'u'; }

/* A scalar on the host: integers and bool in i (sign- or zero-extended from their type), floats in f
 * (exactly representable in their type). */
union value {
    int64_t i;
    uint64_t u;
    double f;
};

/* Memory image <-> value; p needs no alignment. */
union value value_load(enum ty t, const void *p);
void value_store(enum ty t, void *p, union value v);

/* Round to nearest even into the narrow formats and back; exact for what the format can hold. */
uint16_t f16_from_double(double x);
double f16_to_double(uint16_t h);
uint16_t bf16_from_double(double x);
double bf16_to_double(uint16_t h);

#endif
