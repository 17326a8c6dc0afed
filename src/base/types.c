/* SPDX-License-Identifier: Apache-2.0 */
/* types.c - see types.h.
 *
 * Narrow floats.  A binary format is its number of exponent and mantissa bits; one routine rounds a double into any of
 * them, one widens.  Rounding goes straight from the double: a detour through float would round twice.
 */
#include "types.h"

#include <math.h>
#include <string.h>

struct row {
    const char *name;
    int bits, bytes;
    char kind;
    const char *npy;
};

static const struct row rows[TY_COUNT] = {
#define X(id, name, bits, bytes, kind, npy) { name, bits, bytes, kind, npy },
    TY_TABLE(X)
#undef X
};

static const struct row *row_of(enum ty t)
{
    static const struct row none = { "none", 0, 0, '?', "" };
    return t >= 0 && t < TY_COUNT ? &rows[t] : &none;
}

const char *ty_name(enum ty t) { return row_of(t)->name; }
int ty_bits(enum ty t) { return row_of(t)->bits; }
int ty_bytes(enum ty t) { return row_of(t)->bytes; }
char ty_kind(enum ty t) { return row_of(t)->kind; }
const char *ty_npy(enum ty t) { return row_of(t)->npy; }

enum ty ty_by_name(const char *name, int length)
{
    for (int t = 0; t < TY_COUNT; t++)
        if ((int)strlen(rows[t].name) == length && memcmp(rows[t].name, name, (size_t)length) == 0)
            return (enum ty)t;
    return TY_NONE;
}

/* ---- narrow floats ------------------------------------------------------------------------------------------------- */

struct format {
    int exponent_bits, mantissa_bits;
};
static const struct format f16 = { 5, 10 }, bf16 = { 8, 7 };

static int bias_of(struct format f) { return (1 << (f.exponent_bits - 1)) - 1; }
static uint32_t infinity_of(struct format f) { return ((1u << f.exponent_bits) - 1) << f.mantissa_bits; }

static uint64_t double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x >> shift, rounded to nearest, ties to even; 1 <= shift <= 63. */
static uint64_t shift_round(uint64_t x, int shift)
{
    const uint64_t half = UINT64_C(1) << (shift - 1), rest = x & (2 * half - 1), quotient = x >> shift;
    return quotient + (rest > half || (rest == half && (quotient & 1)));
}

/* The encoding of |x| for finite x. A carry out of the mantissa runs into the exponent field, which is what rounding up
 * to the next power of two, to the first normal number, or to infinity means. */
static uint32_t narrow_finite(struct format f, uint64_t magnitude)
{
    const int exponent = (int)(magnitude >> 52) - 1023 + bias_of(f);
    if (magnitude >> 52 == 0)
        return 0; /* a subnormal double is below half of any narrow subnormal */
    const uint64_t mantissa = (magnitude & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int shift = 52 - f.mantissa_bits;
    if (exponent >= (1 << f.exponent_bits) - 1)
        return infinity_of(f);
    if (exponent > 0)
        return (uint32_t)(((uint64_t)(exponent - 1) << f.mantissa_bits) + shift_round(mantissa, shift));
    shift += 1 - exponent;
    return shift > 53 ? 0 : (uint32_t)shift_round(mantissa, shift);
}

static uint16_t narrow(struct format f, double x)
{
    const uint64_t bits = double_bits(x), magnitude = bits & ~(UINT64_C(1) << 63);
    const uint32_t sign = (uint32_t)(bits >> 63) << 15;
    if (isnan(x)) {
        const uint32_t quiet = 1u << (f.mantissa_bits - 1);
        const uint64_t payload = (magnitude & ((UINT64_C(1) << 52) - 1)) >> (52 - f.mantissa_bits);
        return (uint16_t)(sign | infinity_of(f) | quiet | (uint32_t)payload);
    }
    return (uint16_t)(sign | (isinf(x) ? infinity_of(f) : narrow_finite(f, magnitude)));
}

static double widen(struct format f, uint16_t h)
{
    const int exponent = (h & 0x7fff) >> f.mantissa_bits, mantissa = h & ((1 << f.mantissa_bits) - 1);
    const uint64_t sign = (uint64_t)(h >> 15) << 63;
    if (exponent == (1 << f.exponent_bits) - 1)
        return double_of(sign | UINT64_C(0x7ff) << 52 | (uint64_t)mantissa << (52 - f.mantissa_bits));
    const double magnitude = exponent == 0
                                 ? ldexp(mantissa, 1 - bias_of(f) - f.mantissa_bits)
                                 : ldexp(mantissa | 1 << f.mantissa_bits, exponent - bias_of(f) - f.mantissa_bits);
    return double_of(sign | double_bits(magnitude));
}

uint16_t f16_from_double(double x) { return narrow(f16, x); }
double f16_to_double(uint16_t h) { return widen(f16, h); }
uint16_t bf16_from_double(double x) { return narrow(bf16, x); }
double bf16_to_double(uint16_t h) { return widen(bf16, h); }

/* ---- memory images ------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define INTEGER_TYPES(X)                                                            \
    X(I8, int8_t, i) X(I16, int16_t, i) X(I32, int32_t, i) X(I64, int64_t, i)       \
    X(U8, uint8_t, u) X(U16, uint16_t, u) X(U32, uint32_t, u) X(U64, uint64_t, u)
/* clang-format on */

union value value_load(enum ty t, const void *p)
{
    union value v = { 0 };
    uint16_t half;
    float single;
    switch (t) {
#define X(id, type, member)                                                                                            \
    case TY_##id: {                                                                                                    \
        type x;                                                                                                        \
        memcpy(&x, p, sizeof x);                                                                                       \
        v.member = x;                                                                                                  \
        break;                                                                                                         \
    }
        INTEGER_TYPES(X)
#undef X
    case TY_BOOL: v.i = *(const unsigned char *)p != 0; break;
    case TY_F16:
        memcpy(&half, p, sizeof half);
        v.f = f16_to_double(half);
        break;
    case TY_BF16:
        memcpy(&half, p, sizeof half);
        v.f = bf16_to_double(half);
        break;
    case TY_F32:
        memcpy(&single, p, sizeof single);
        v.f = single;
        break;
    case TY_F64: memcpy(&v.f, p, sizeof v.f); break;
    default: break;
    }
    return v;
}

void value_store(enum ty t, void *p, union value v)
{
    uint16_t half;
    float single;
    switch (t) {
#define X(id, type, member)                                                                                            \
    case TY_##id: {                                                                                                    \
        const type x = (type)v.member;                                                                                 \
        memcpy(p, &x, sizeof x);                                                                                       \
        break;                                                                                                         \
    }
        INTEGER_TYPES(X)
#undef X
    case TY_BOOL: *(unsigned char *)p = v.i != 0; break;
    case TY_F16:
        half = f16_from_double(v.f);
        memcpy(p, &half, sizeof half);
        break;
    case TY_BF16:
        half = bf16_from_double(v.f);
        memcpy(p, &half, sizeof half);
        break;
    case TY_F32:
        single = (float)v.f;
        memcpy(p, &single, sizeof single);
        break;
    case TY_F64: memcpy(p, &v.f, sizeof v.f); break;
    default: break;
    }
}
