/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.c - numbers as users write them: 1000000, 1e6, 2^20, 1Mi; scalars of a type; and back to text. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool type_is_float(ptxgen_type t) { return t >= PTXGEN_F16; }
bool type_is_signed(ptxgen_type t) { return t >= PTXGEN_I8 && t <= PTXGEN_I64; }

int64_t array_dim(const ptxgen_array_info *a, int d, const int64_t *size)
{
    int64_t extent = a->size_add[d];
    if (a->size_index[d] >= 0 && __builtin_add_overflow(extent, size[a->size_index[d]], &extent)) {
        return -1; /* no array has it */
    }
    return extent;
}

/* x * base^exponent, or false when it does not fit. */
static bool scale(int64_t *x, int64_t base, int64_t exponent)
{
    for (; exponent > 0 && *x != 0; exponent--) {
        if (__builtin_mul_overflow(*x, base, x)) {
            return false;
        }
    }
    return exponent >= 0;
}

bool read_digits(const char **at, int64_t *out)
{
    const char *begin = *at;
    for (*out = 0; **at >= '0' && **at <= '9'; ++*at) {
        if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, **at - '0', out)) {
            return false;
        }
    }
    return *at > begin;
}

/* k M G T, with i for powers of 1024. */
static bool suffix(const char **at, int64_t *x)
{
    static const char letters[] = "kMGT";
    const char *found = **at ? strchr(letters, **at == 'K' ? 'k' : **at) : NULL;
    if (!found) {
        return true;
    }
    ++*at;
    bool binary = **at == 'i';
    *at += binary;
    return scale(x, binary ? 1024 : 1000, found - letters + 1);
}

/* 1.5e6: decimals are fine where the result is an integer. */
static bool exponent(const char **at, int64_t *x)
{
    int64_t power = 0, decimals = 0;
    if (**at == '.') {
        for (++*at; **at >= '0' && **at <= '9'; ++*at, decimals++) {
            if (__builtin_mul_overflow(*x, 10, x) || __builtin_add_overflow(*x, **at - '0', x)) {
                return false;
            }
        }
    }
    if (**at == 'e' || **at == 'E') {
        ++*at;
        *at += **at == '+';
        if (!read_digits(at, &power)) {
            return false;
        }
    }
    for (; decimals > power; decimals--) {
        if (*x % 10 != 0) {
            return false;
        }
        *x /= 10;
    }
    return scale(x, 10, power - decimals);
}

const char *parse_count(const char *text, int64_t *out)
{
    static const char help[] = "expected an integer from 0 on, like 1000000, 1e6, 2^20 or 1Mi";
    const char *at = text;
    int64_t power;
    bool fine = read_digits(&at, out);
    if (fine && *at == '^') {
        int64_t base = *out;
        at++;
        fine = read_digits(&at, &power);
        *out = 1;
        fine = fine && scale(out, base, base < 2 && power > 1 ? 1 : power);
    } else if (fine && strchr(".eE", *at) && *at) {
        fine = exponent(&at, out);
    } else if (fine) {
        fine = suffix(&at, out);
    }
    return fine && *at == 0 ? NULL : help;
}

static const char *parse_integer(const char *text, ptxgen_type type, ptxgen_value *out)
{
    bool negative = text[0] == '-';
    int bits = 8 * (int)ptxgen_type_size(type);
    uint64_t limit = type_is_signed(type) ? UINT64_MAX >> (65 - bits) : UINT64_MAX >> (64 - bits);
    int64_t count = 0;
    uint64_t magnitude;
    const char *wrong = parse_count(text + negative, &count);
    if (wrong) { /* the largest unsigned values, and the lowest signed ones */
        char *end;
        errno = 0;
        magnitude = strtoull(text + negative, &end, 10);
        if (errno || *end || end == text + negative || text[negative] == '-' || text[negative] == '+') {
            return "expected an integer";
        }
    } else {
        magnitude = (uint64_t)count;
    }
    if (magnitude > limit + (negative && type_is_signed(type)) || (negative && magnitude && !type_is_signed(type))) {
        return "out of range of its type";
    }
    out->u = negative ? 0 - magnitude : magnitude;
    return NULL;
}

const char *parse_value(const char *text, ptxgen_type type, ptxgen_value *out)
{
    if (type == PTXGEN_BOOL) {
        bool yes = !strcmp(text, "true") || !strcmp(text, "1"), no = !strcmp(text, "false") || !strcmp(text, "0");
        out->i = yes;
        return yes || no ? NULL : "expected true or false";
    }
    if (!type_is_float(type)) {
        return parse_integer(text, type, out);
    }
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end || strchr(" \t\n", text[0])) {
        return "expected a number";
    }
    char image[8];
    ptxgen_value_store(type, image, (ptxgen_value){ .f = x });
    *out = ptxgen_value_load(type, image);
    return isinf(out->f) && !isinf(x) ? "out of range of its type" : NULL;
}

/* The same value when read back? */
static bool reads_back(const char *text, ptxgen_type type, double x)
{
    char image[8];
    ptxgen_value_store(type, image, (ptxgen_value){ .f = strtod(text, NULL) });
    return ptxgen_value_load(type, image).f == x;
}

void print_value(FILE *to, ptxgen_type type, ptxgen_value v)
{
    char text[40];
    if (type == PTXGEN_BOOL) {
        fputs(v.i ? "true" : "false", to);
    } else if (!type_is_float(type)) {
        fprintf(to, type_is_signed(type) ? "%lld" : "%llu", (long long)v.i);
    } else if (isnan(v.f)) {
        fputs("nan", to);
    } else if (v.f == floor(v.f) && fabs(v.f) < 1e15) {
        fprintf(to, "%.0f", v.f);
    } else {
        for (int precision = 1; precision <= 17; precision++) {
            snprintf(text, sizeof text, "%.*g", precision, v.f);
            if (reads_back(text, type, v.f)) {
                break;
            }
        }
        fputs(text, to);
    }
}
