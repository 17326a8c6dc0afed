/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that host code calls: all that targets/host.c can name are there, and the conversions are the library's
 * own. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "kernels/once.h"
#include "frontend/expr/expr.h"
#include "llvmgen/targets/host_jit.h"

static void *symbol(const char *name)
{
    int n;
    const struct host_symbol *table = host_math_symbols(&n);
    for (int i = 0; i < n; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].address;
    return NULL;
}

Test(host_math, every_float_function_has_a_symbol)
{
    static const struct {
        enum fn fn;
        char types;
    } rows[] = {
#define FN(id, name, arity, types, what) { FN_##id, types },
#include "frontend/expr/functions.def"
#undef FN
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].types != 'F' || rows[i].fn == FN_ISNAN || rows[i].fn == FN_ISINF || rows[i].fn == FN_ROUND)
            continue; /* the code generator does these */
        char single[32];
        snprintf(single, sizeof single, "%sf", fn_name(rows[i].fn));
        cr_expect(symbol(fn_name(rows[i].fn)), "%s", fn_name(rows[i].fn));
        cr_expect(symbol(single), "%s", single);
    }
    cr_expect(symbol("fmod") && symbol("fmodf"));
}

/* A narrow float in the low bits of a register, as the compiler's calls pass it. */
static float narrow(uint16_t bits)
{
    const uint32_t word = bits;
    float f;
    memcpy(&f, &word, sizeof f);
    return f;
}

static uint16_t bits_of(float f)
{
    uint32_t word;
    memcpy(&word, &f, sizeof word);
    return (uint16_t)word;
}

Test(host_math, conversions_agree_with_the_types)
{
    float (*const extend)(float) = (float (*)(float))(uintptr_t)symbol("__extendhfsf2");
    float (*const truncate)(float) = (float (*)(float))(uintptr_t)symbol("__truncsfhf2");
    float (*const brain)(float) = (float (*)(float))(uintptr_t)symbol("__truncsfbf2");
    cr_assert(extend && truncate && brain);
    for (uint32_t h = 0; h < 0x7c00; h++) {
        const float f = extend(narrow((uint16_t)h));
        cr_assert_eq((double)f, f16_to_double((uint16_t)h));
        cr_assert_eq(bits_of(truncate(f)), h);
        cr_assert_eq(bits_of(brain(f)), bf16_from_double((double)f));
    }
    cr_expect_eq(bits_of(truncate(65520.0f)), 0x7c00);
    cr_expect_eq(bits_of(brain(1.00390625f)), 0x3f80); /* half way: to even */
}

/* The last element of an array is followed by memory that cannot be read: no code takes a scalar for a vector. */
Test(host_math, scalars_at_the_end_of_memory)
{
    static const char *const type[] = { "f32", "f64", "f16", "i32" };
    for (int i = 0; i < 4; i++) {
        char spec[200];
        snprintf(spec, sizeof spec,
                 "kind: map\ninputs: {x: '%s[m, n]', v: '%s[n]'}\n"
                 "outputs: {y: {type: '%s[m, n]', value: if x > v then v else x}}\n",
                 type[i], type[i], type[i]);
        run_once(spec, NULL, (int64_t[]){ 1, 4 }, 0, "guard", NULL);
    }
}
