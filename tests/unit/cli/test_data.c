/* SPDX-License-Identifier: Apache-2.0 */
/* test_data.c - generated data has the documented bits; numbers and sizes are read as documented. */
#include <criterion/criterion.h>
#include <stdarg.h>

#include "cli/data/data.c"
#include "cli/sizes.c"

int fail(int status, const char *format, ...)
{
    (void)format;
    return status;
}

Test(data, bits_never_change)
{
    uint64_t key = data_key(1, "x");
    cr_expect_eq(key, UINT64_C(0xf1ce047ace24bab8));
    cr_expect_eq(data_bits(key, 0), UINT64_C(0x465f1fff9e12c6b7));
    cr_expect_eq(data_bits(key, 1), UINT64_C(0x60630a3caa4e3f54));
    cr_expect_neq(data_key(1, "y"), key);
    cr_expect_neq(data_key(2, "x"), key);
}

static const ptxgen_type all_types[] = { PTXGEN_BOOL, PTXGEN_I8,  PTXGEN_I16, PTXGEN_I32, PTXGEN_I64,
                                         PTXGEN_U8,   PTXGEN_U16, PTXGEN_U32, PTXGEN_U64, PTXGEN_F16,
                                         PTXGEN_BF16, PTXGEN_F32, PTXGEN_F64 };

Test(data, first_values)
{
    static const double expected[][2] = { { 0, 1 },
                                          { -69, 30 },
                                          { -69, 30 },
                                          { -69, 30 },
                                          { -69, 30 },
                                          { 31, 130 },
                                          { 31, 130 },
                                          { 31, 130 },
                                          { 31, 130 },
                                          { -0x1.61p-1, 0x1.33p-2 },
                                          { -0x1.64p-1, 0x1.3p-2 },
                                          { -0x1.60e208p-1, 0x1.33dc58p-2 },
                                          { -0x1.60e2072aea8acp-1, 0x1.33dc5cc511244p-2 } };
    uint64_t key = data_key(7, "x");
    for (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++) {
        for (uint64_t k = 0; k < 2; k++) {
            ptxgen_value v = data_random(all_types[i], data_bits(key, k));
            double x = type_is_float(all_types[i]) ? v.f : (double)v.i;
            cr_expect(x == expected[i][k], "%s[%d] is %.17g", ptxgen_type_name(all_types[i]), (int)k, x);
        }
    }
}

/* In range, exactly representable, both ends and the middle are met. */
Test(data, distribution)
{
    for (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++) {
        ptxgen_type t = all_types[i];
        double low = type_is_float(t)    ? -1
                     : type_is_signed(t) ? -100
                                         : 0,
               high = type_is_float(t) || t == PTXGEN_BOOL ? 1 : low + 200;
        double sum = 0, min = INFINITY, max = -INFINITY;
        enum { N = 20000 };
        for (uint64_t k = 0; k < N; k++) {
            char image[8];
            ptxgen_value v = data_random(t, data_bits(data_key(3, "x"), k));
            ptxgen_value_store(t, image, v);
            cr_assert_eq(ptxgen_value_load(t, image).u, v.u, "%s: not representable", ptxgen_type_name(t));
            double x = type_is_float(t) ? v.f : (double)v.i;
            sum += x;
            min = fmin(min, x);
            max = fmax(max, x);
        }
        cr_expect(min >= low && (type_is_float(t) ? max < high : max <= high), "%s: %g … %g", ptxgen_type_name(t), min,
                  max);
        cr_expect(min < low + 0.02 * (high - low) && max > high - 0.02 * (high - low), "%s: %g … %g",
                  ptxgen_type_name(t), min, max);
        cr_expect(fabs(sum / N - (low + high) / 2) < 0.02 * (high - low), "%s: mean %g", ptxgen_type_name(t), sum / N);
    }
}

static struct array vector(ptxgen_type *t, int64_t n, int role, char *data)
{
    static const char *const name[] = { "" };
    static const size_t offset[] = { 0 };
    struct array a = { .elements = n, .data = data };
    a.info = (ptxgen_array_info){ .name = "x",
                                  .rank = 1,
                                  .size_index = { -1 },
                                  .size_add = { n },
                                  .field_count = 1,
                                  .field_name = name,
                                  .field_type = t,
                                  .field_offset = offset,
                                  .element_size = ptxgen_type_size(*t),
                                  .role = role };
    return a;
}

Test(data, forms)
{
    int32_t x[5];
    ptxgen_type t = PTXGEN_I32;
    struct array a = vector(&t, 5, 0, (char *)x);
    cr_assert_eq(data_fill(&a, "iota", 0), EXIT_OK);
    cr_expect(x[0] == 0 && x[4] == 4);
    cr_assert_eq(data_fill(&a, "const:-7", 0), EXIT_OK);
    cr_expect(x[0] == -7 && x[4] == -7);
    cr_expect_eq(data_fill(&a, "const:1.5", 0), EXIT_USAGE);
    cr_expect_eq(data_fill(&a, "random:abc", 0), EXIT_USAGE);
    cr_expect(data_is_file("x.npy") && !data_is_file("random:3") && !data_is_file("iota") &&
              data_is_file("randomly.npy"));
}

Test(data, offsets_ascend)
{
    int32_t x[100];
    ptxgen_type t = PTXGEN_I32;
    struct array a = vector(&t, 100, 1, (char *)x);
    cr_assert_eq(data_fill(&a, "random:9", 1000), EXIT_OK);
    cr_expect(x[0] == 0 && x[99] == 1000);
    for (int i = 1; i < 100; i++) {
        cr_expect(x[i - 1] <= x[i]);
    }
}

Test(sizes, counts)
{
    static const struct {
        const char *text;
        int64_t value; /* -1: refused */
    } rows[] = {
        { "0", 0 },
        { "1000000", 1000000 },
        { "1e6", 1000000 },
        { "1.5e3", 1500 },
        { "2^20", 1 << 20 },
        { "2^0", 1 },
        { "1Mi", 1 << 20 },
        { "3k", 3000 },
        { "2Ki", 2048 },
        { "1G", 1000000000 },
        { "", -1 },
        { "x", -1 },
        { "-1", -1 },
        { "1.5", -1 },
        { "2^64", -1 },
        { "1e30", -1 },
        { "1e", -1 },
        { "2^", -1 },
        { "1e6x", -1 },
        { "1 ", -1 },
        { "0^0", 1 },
        { "1^1000000000000", 1 },
        { "9223372036854775807", INT64_MAX },
        { "9223372036854775808", -1 },
        { "1.50e1", 15 },
        { "0e999999999999", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t x = -2;
        const char *wrong = parse_count(rows[i].text, &x);
        cr_expect(rows[i].value < 0 ? wrong != NULL : !wrong && x == rows[i].value, "'%s' gives %lld%s", rows[i].text,
                  (long long)x, wrong ? " and a message" : "");
    }
}

Test(sizes, values)
{
    ptxgen_value v;
    cr_expect(!parse_value("-128", PTXGEN_I8, &v) && v.i == -128);
    cr_expect(parse_value("128", PTXGEN_I8, &v) != NULL);
    cr_expect(parse_value("-1", PTXGEN_U8, &v) != NULL);
    cr_expect(!parse_value("18446744073709551615", PTXGEN_U64, &v) && v.u == UINT64_MAX);
    cr_expect(!parse_value("-9223372036854775808", PTXGEN_I64, &v) && v.i == INT64_MIN);
    cr_expect(!parse_value("0.1", PTXGEN_F32, &v) && v.f == 0.1f, "rounded to its type");
    cr_expect(!parse_value("inf", PTXGEN_F32, &v) && isinf(v.f));
    cr_expect(parse_value("1e39", PTXGEN_F32, &v) != NULL);
    cr_expect(!parse_value("true", PTXGEN_BOOL, &v) && v.i == 1);
    cr_expect(parse_value("2", PTXGEN_BOOL, &v) != NULL);
    cr_expect(parse_value("abc", PTXGEN_F32, &v) != NULL && parse_value("1x", PTXGEN_I32, &v) != NULL);
}

Test(sizes, values_print_shortest)
{
    static const struct {
        ptxgen_type type;
        double x;
        const char *text;
    } rows[] = { { PTXGEN_F32, 0.1f, "0.1" },
                 { PTXGEN_F64, 0.1, "0.1" },
                 { PTXGEN_F16, 0.0999755859375, "0.1" },
                 { PTXGEN_F32, 16777216, "16777216" },
                 { PTXGEN_F64, 1.0 / 3, "0.3333333333333333" },
                 { PTXGEN_F32, INFINITY, "inf" },
                 { PTXGEN_F32, NAN, "nan" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text;
        size_t n;
        FILE *to = open_memstream(&text, &n);
        print_value(to, rows[i].type, (ptxgen_value){ .f = rows[i].x });
        fclose(to);
        cr_expect_str_eq(text, rows[i].text);
        free(text);
    }
}
