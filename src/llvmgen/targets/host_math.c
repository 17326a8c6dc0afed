/* SPDX-License-Identifier: Apache-2.0 */
/* host_math.c - what host code may call besides the executor: math, narrow-float conversions, memory.
 *
 * The conversions are compiler library calls whose half and bfloat values travel in the low 16 bits of a vector
 * register, on x86-64 and aarch64 alike.  Not every C compiler that builds this file knows these types, but a float
 * travels in the same register, so they appear here as floats whose low 16 bits count.  (x86-64 psABI 3.2.3,
 * AAPCS64 6.8.2.)
 */
#include <math.h>
#include <string.h>

#include "base/types.h"
#include "host_jit.h"

/* ---- functions that C11 lacks ---------------------------------------------------------------- */
static double host_rsqrt(double x) { return 1.0 / sqrt(x); }
static float host_rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
static double host_exp10(double x) { return pow(10.0, x); }
static float host_exp10f(float x) { return (float)pow(10.0, (double)x); }

/* Nearest integer, ties to even: the default rounding mode, which nothing here changes. */
static double host_roundeven(double x) { return nearbyint(x); }
static float host_roundevenf(float x) { return nearbyintf(x); }

/* ---- narrow floats --------------------------------------------------------------------------- */
static float narrow_out(uint16_t bits)
{
    const uint32_t word = bits;
    float f;
    memcpy(&f, &word, sizeof f);
    return f;
}

static uint16_t narrow_in(float f)
{
    uint32_t word;
    memcpy(&word, &f, sizeof word);
    return (uint16_t)word;
}

static float truncsfhf2(float x) { return narrow_out(f16_from_double(x)); }
static float truncdfhf2(double x) { return narrow_out(f16_from_double(x)); }
static float truncsfbf2(float x) { return narrow_out(bf16_from_double(x)); }
static float truncdfbf2(double x) { return narrow_out(bf16_from_double(x)); }
static float extendhfsf2(float h) { return (float)f16_to_double(narrow_in(h)); }
static double extendhfdf2(float h) { return f16_to_double(narrow_in(h)); }

/* ---- the table ------------------------------------------------------------------------------- */
/* Function pointers of all types as data, the way dlsym() gives them. */
#define SYMBOL(name, function)                                                                                         \
    {                                                                                                                  \
        name, (void *)(uintptr_t)(function)                                                                            \
    }
#define C_MATH(name) SYMBOL(#name, name), SYMBOL(#name "f", name##f)

static const struct host_symbol symbols[] = {
    C_MATH(sqrt),
    C_MATH(cbrt),
    C_MATH(exp),
    C_MATH(exp2),
    C_MATH(expm1),
    C_MATH(log),
    C_MATH(log2),
    C_MATH(log10),
    C_MATH(log1p),
    C_MATH(sin),
    C_MATH(cos),
    C_MATH(tan),
    C_MATH(asin),
    C_MATH(acos),
    C_MATH(atan),
    C_MATH(atan2),
    C_MATH(sinh),
    C_MATH(cosh),
    C_MATH(tanh),
    C_MATH(erf),
    C_MATH(pow),
    C_MATH(fma),
    C_MATH(hypot),
    C_MATH(floor),
    C_MATH(ceil),
    C_MATH(trunc),
    C_MATH(rint),
    C_MATH(nearbyint),
    C_MATH(fmod),
    C_MATH(fmin),
    C_MATH(fmax),
    C_MATH(ldexp),
    SYMBOL("rsqrt", host_rsqrt),
    SYMBOL("rsqrtf", host_rsqrtf),
    SYMBOL("exp10", host_exp10),
    SYMBOL("exp10f", host_exp10f),
    SYMBOL("roundeven", host_roundeven),
    SYMBOL("roundevenf", host_roundevenf),
    SYMBOL("__truncsfhf2", truncsfhf2),
    SYMBOL("__gnu_f2h_ieee", truncsfhf2),
    SYMBOL("__truncdfhf2", truncdfhf2),
    SYMBOL("__truncsfbf2", truncsfbf2),
    SYMBOL("__truncdfbf2", truncdfbf2),
    SYMBOL("__extendhfsf2", extendhfsf2),
    SYMBOL("__gnu_h2f_ieee", extendhfsf2),
    SYMBOL("__extendhfdf2", extendhfdf2),
    SYMBOL("memcpy", memcpy),
    SYMBOL("memmove", memmove),
    SYMBOL("memset", memset),
};

const struct host_symbol *host_math_symbols(int *count)
{
    *count = (int)(sizeof symbols / sizeof *symbols);
    return symbols;
}
