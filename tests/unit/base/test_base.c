/* SPDX-License-Identifier: Apache-2.0 */
/* test_base.c - scalar types, the arena, text and JSON. */
#include "base/arena.h"
#include "base/str.h"
#include "base/types.h"
#include "base/utf8.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* ---- types ---------------------------------------------------------------------------------------- */

Test(types, rows)
{
    cr_expect_eq(ty_by_name("f32", 3), TY_F32);
    cr_expect_eq(ty_by_name("bf16x", 4), TY_BF16);
    cr_expect_eq(ty_by_name("f3", 2), TY_NONE);
    for (int t = 0; t < TY_COUNT; t++) {
        const char *name = ty_name((enum ty)t);
        cr_expect_eq(ty_by_name(name, (int)strlen(name)), (enum ty)t);
        cr_expect(ty_bits((enum ty)t) == 8 * ty_bytes((enum ty)t) || t == TY_BOOL);
    }
}

/* Every f16 and bf16 but the NaNs is exactly representable as a double, and comes back. */
Test(types, narrow_floats_come_back)
{
    for (int h = 0; h < 65536; h++) {
        const double a = f16_to_double((uint16_t)h), b = bf16_to_double((uint16_t)h);
        cr_assert(isnan(a) ? isnan(f16_to_double(f16_from_double(a))) : f16_from_double(a) == h, "f16 %04x", h);
        cr_assert(isnan(b) ? isnan(bf16_to_double(bf16_from_double(b))) : bf16_from_double(b) == h, "bf16 %04x", h);
    }
}

/* Between two neighbours: just below the middle goes down, just above up, the middle to the even one. */
static void check_rounding(uint16_t (*from)(double), double (*to)(uint16_t), int low)
{
    const double a = to((uint16_t)low), b = to((uint16_t)(low + 1)), middle = (a + b) / 2;
    const uint16_t even = (uint16_t)(low & 1 ? low + 1 : low);
    cr_assert(from(middle) == even && from(nextafter(middle, a)) == low && from(nextafter(middle, b)) == low + 1,
              "%04x", low);
    cr_assert(from(-middle) == (even | 0x8000), "-%04x", low);
}

Test(types, narrow_floats_round_to_nearest_even)
{
    for (int h = 0; h < 0x7bff; h++)
        check_rounding(f16_from_double, f16_to_double, h);
    for (int h = 0; h < 0x7f7f; h++)
        check_rounding(bf16_from_double, bf16_to_double, h);
}

static const struct {
    double x;
    uint16_t f16, bf16;
} narrow[] = {
    { 0.0, 0, 0 },
    { -0.0, 0x8000, 0x8000 },
    { 1.0, 0x3c00, 0x3f80 },
    { 65504.0, 0x7bff, 0x4780 },
    { 65519.999, 0x7bff, 0x4780 },
    { 65520.0, 0x7c00, 0x4780 },
    { 3.3895313892515355e38, 0x7c00, 0x7f7f },
    { 3.4e38, 0x7c00, 0x7f80 },
    { 1e308, 0x7c00, 0x7f80 },
    { -INFINITY, 0xfc00, 0xff80 },
    { 5.960464477539063e-8, 0x0001, 0x3380 },
    { 2.9802322387695312e-8, 0x0000, 0x3300 },
    { 2.980232238769532e-8, 0x0001, 0x3300 },
    { 9.183549615799121e-41, 0, 0x0001 },
    { 4.59177480789956e-41, 0, 0x0000 },
    { 4.6e-41, 0, 0x0001 },
    { 5e-324, 0, 0 },
    /* between 1 and 1 + 2^-10, above the middle by less than a float resolves */
    { 1.0 + 0x1p-11 + 0x1p-50, 0x3c01, 0x3f80 },
    { 1.0 + 0x1p-8 + 0x1p-50, 0x3c04, 0x3f81 },
};

Test(types, narrow_floats_at_the_edges)
{
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
        cr_expect_eq(f16_from_double(narrow[i].x), narrow[i].f16, "row %zu: %04x", i, f16_from_double(narrow[i].x));
        cr_expect_eq(bf16_from_double(narrow[i].x), narrow[i].bf16, "row %zu: %04x", i, bf16_from_double(narrow[i].x));
    }
    cr_expect(isnan(f16_to_double(f16_from_double(NAN))) && isnan(bf16_to_double(bf16_from_double(-NAN))));
    cr_expect_eq(f16_from_double(-NAN) >> 15, 1);
}

Test(types, memory_images)
{
    const struct {
        enum ty type;
        unsigned char bytes[8];
        union value value;
    } rows[] = {
        { TY_BOOL, { 7 }, { .i = 1 } },
        { TY_I8, { 0xff }, { .i = -1 } },
        { TY_U8, { 0xff }, { .i = 255 } },
        { TY_I16, { 0, 0x80 }, { .i = -32768 } },
        { TY_U32, { 0xff, 0xff, 0xff, 0xff }, { .i = 4294967295 } },
        { TY_I64, { 0, 0, 0, 0, 0, 0, 0, 0x80 }, { .i = INT64_MIN } },
        { TY_U64, { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, { .u = UINT64_MAX } },
        { TY_F16, { 0, 0xc0 }, { .f = -2 } },
        { TY_BF16, { 0x80, 0x3f }, { .f = 1 } },
        { TY_F32, { 0, 0, 0x80, 0x3f }, { .f = 1 } },
        { TY_F64, { 0, 0, 0, 0, 0, 0, 0xf0, 0x3f }, { .f = 1 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const union value v = value_load(rows[i].type, rows[i].bytes);
        cr_expect_eq(v.u, rows[i].value.u, "%s", ty_name(rows[i].type));
        unsigned char memory[9] = { 0, 0, 0, 0, 0, 0, 0, 0, 0xa5 };
        value_store(rows[i].type, memory, v);
        cr_expect(rows[i].type == TY_BOOL ? memory[0] == 1 : memcmp(memory, rows[i].bytes, 8) == 0, "%s",
                  ty_name(rows[i].type));
        cr_expect_eq(memory[8], 0xa5);
    }
}

/* ---- arena ---------------------------------------------------------------------------------------- */

Test(arena, allocations_are_zeroed_aligned_and_apart)
{
    struct arena a;
    jmp_buf oom;
    arena_init(&a);
    a.oom = &oom;
    cr_assert_eq(setjmp(oom), 0);
    char *block[300];
    for (int i = 0; i < 300; i++) {
        const size_t bytes = (size_t)(i * i);
        block[i] = arena_alloc(&a, bytes);
        cr_assert_eq((uintptr_t)block[i] % 16, 0);
        for (size_t b = 0; b < bytes; b++)
            cr_assert_eq(block[i][b], 0);
        memset(block[i], i + 1, bytes);
    }
    for (int i = 0; i < 300; i++)
        for (int b = 0; b < i * i; b++)
            cr_assert_eq(block[i][b], (char)(i + 1));
    cr_expect_str_eq(arena_printf(&a, "%s-%d", "x", 7), "x-7");
    cr_expect_str_eq(arena_strndup(&a, "abc", 2), "ab");
    int *list = NULL, count = 0, capacity = 0;
    for (int i = 0; i < 100; i++)
        ARENA_PUSH(&a, list, count, capacity, i);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(list[i], i);
    arena_finish(&a);
    cr_expect_eq(a.total, 0);
    cr_expect_not_null(arena_alloc(&a, 1));
    arena_finish(&a);
}

Test(arena, exhaustion_jumps_to_the_handler)
{
    struct arena a;
    jmp_buf oom;
    arena_init(&a);
    a.oom = &oom;
    if (setjmp(oom) == 0) {
        arena_alloc(&a, SIZE_MAX - 100);
        cr_assert_fail("that much memory cannot be there");
    }
    arena_finish(&a);
}

/* ---- text ----------------------------------------------------------------------------------------- */

static const struct {
    double x;
    const char *text;
} numbers[] = {
    { 0.1, "0.1" },        { 1, "1" },
    { 100, "100" },        { -0.0, "-0" },
    { 1e20, "1e+20" },     { 1.0 / 3, "0.3333333333333333" },
    { 5e-324, "5e-324" },  { INFINITY, "inf" },
    { -INFINITY, "-inf" }, { NAN, "nan" },
    { 1e15, "1e+15" },     { 123456789, "123456789" },
    { 2.5, "2.5" },        { 1.7976931348623157e308, "1.7976931348623157e+308" },
};

static void check_numbers(void)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct str s = { 0 };
        str_double(&s, numbers[i].x);
        cr_expect_str_eq(s.text, numbers[i].text);
        str_finish(&s);
    }
}

Test(str, doubles_are_short_and_read_back)
{
    check_numbers();
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL)
        check_numbers(); /* with a decimal comma */
}

Test(str, grows_and_is_taken)
{
    struct str s = { 0 };
    char *empty = str_take(&s);
    cr_expect_str_eq(empty, "");
    free(empty);
    for (int i = 0; i < 1000; i++)
        str_printf(&s, "%d,", i);
    str_addn(&s, "a\0b", 3);
    cr_expect_eq(s.length, 10 * 2 + 90 * 3 + 900 * 4 + 3);
    cr_expect_eq(s.text[s.length], '\0');
    str_finish(&s);
    cr_expect_null(s.text);
}

static const char *const names[] = { "add", "mul", "min", "max", "logsumexp", "welford", "argmax" };
static const struct {
    const char *name, *nearest;
} near[] = {
    { "ad", "add" },
    { "sdd", "add" },
    { "ADD", "add" },
    { "welfrod", "welford" },
    { "logsumxp", "logsumexp" },
    { "sum", NULL },
    { "argmix", "argmax" },
    { "x", NULL },
    { "", NULL },
    { "completely different", NULL },
};

Test(str, near_names)
{
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        const char *found = str_nearest(near[i].name, names, 7);
        cr_expect(near[i].nearest == NULL ? found == NULL || strcmp(near[i].name, "sum") == 0
                                          : found && strcmp(found, near[i].nearest) == 0,
                  "%s: %s", near[i].name, found ? found : "none");
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void write_sample(struct json *j)
{
    json_object(j);
    json_key(j, "a");
    json_array(j);
    json_int(j, INT64_MIN);
    json_uint(j, UINT64_MAX);
    json_double(j, 0.5);
    json_double(j, -INFINITY);
    json_end(j);
    json_key(j, "b\"");
    json_object(j);
    json_end(j);
    json_key(j, "c");
    json_array(j);
    json_object(j);
    json_key(j, "d");
    json_null(j);
    json_end(j);
    json_bool(j, true);
    json_end(j);
    json_key(j, "e");
    json_string(j, "\xc3\xa4\xff\n\t\\\x1f");
    json_end(j);
}

Test(json, compact_and_pretty)
{
    struct str s = { 0 };
    struct json j;
    json_init(&j, &s, false);
    write_sample(&j);
    cr_expect_str_eq(
        s.text,
        "{\"a\":[-9223372036854775808,18446744073709551615,0.5,\"-inf\"],\"b\\\"\":{},\"c\":[{\"d\":null},true],"
        "\"e\":\"\xc3\xa4\xef\xbf\xbd\\n\\u0009\\\\\\u001f\"}");
    str_finish(&s);
    json_init(&j, &s, true);
    write_sample(&j);
    cr_expect_str_eq(s.text,
                     "{\n  \"a\": [-9223372036854775808, 18446744073709551615, 0.5, \"-inf\"],\n  \"b\\\"\": {},\n  "
                     "\"c\": [\n    {\n"
                     "      \"d\": null\n    }, true\n  ],\n  \"e\": \"\xc3\xa4\xef\xbf\xbd\\n\\u0009\\\\\\u001f\"\n}");
    str_finish(&s);
}

Test(utf8, refuses_what_is_no_character)
{
    static const char *const bad[] = {
        "\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff"
    };
    uint32_t code;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect_eq(utf8_decode(bad[i], strlen(bad[i]), &code), 0, "row %zu", i);
    cr_expect(utf8_decode("\xf0\x9f\x98\x80", 4, &code) == 4 && code == 0x1f600);
}
