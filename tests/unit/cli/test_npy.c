/* SPDX-License-Identifier: Apache-2.0 */
/* test_npy.c - .npy headers in and out, good and bad. */
#define _GNU_SOURCE /* memmem */
#include <criterion/criterion.h>

#include "cli/data/npy.c"
#include "cli/sizes.c"

static char file[4096];

/* A file of the version with this dictionary and that many bytes of data. */
static size_t make(int version, const char *dict, size_t data)
{
    size_t n = strlen(dict), begin = version == 1 ? 10 : 12;
    memset(file, 0, sizeof file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)version;
    file[8] = (char)(n & 255);
    file[9] = (char)(n >> 8);
    memcpy(file + begin, dict, n);
    return begin + n + data;
}

Test(npy, versions)
{
    for (int version = 1; version <= 3; version++) {
        struct npy f;
        size_t n = make(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", 48);
        cr_assert_null(npy_parse(file, n, &f), "version %d", version);
        cr_expect(f.rank == 2 && f.shape[0] == 3 && f.shape[1] == 4 && f.element_size == 4 && f.nfields == 0);
        cr_expect(f.data + 48 == n && f.bytes == 48);
        cr_expect_str_eq(f.descr[0], "<f4");
    }
}

Test(npy, rejects)
{
    static const struct {
        int version;
        const char *dict, *message;
        size_t data;
    } rows[] = {
        { 4, "{}", "version", 0 },
        { 1, "{'descr': '<f4', 'fortran_order': False}", "lacks", 0 },
        { 1, "[1]", "dictionary", 0 },
        { 1, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}", "True nor False", 4 },
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807)}", "large", 0 },
        { 1, "{'descr': '<f4', 'shape': (2,), 'shape': (3,)}", "twice", 24 },
        { 1, "{'shape': (2,), 'shape': (3,), 'shape': (3,)}", "twice", 24 },
        { 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}", "Fortran", 24 },
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", "tuple", 12 },
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807)}", "large",
          0 },
        { 1, "{'descr': 'O', 'fortran_order': False, 'shape': ()}", "simple", 8 },
        { 1, "{'descr': '<f4', 'colour': 1}", "unknown key", 8 },
        { 1, "{'descr': [('a', '<f4'), 5], 'fortran_order': False, 'shape': ()}", "pairs", 8 },
        { 1, "{'descr': '<f4", "simple", 8 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct npy f;
        const char *wrong = npy_parse(file, make(rows[i].version, rows[i].dict, rows[i].data), &f);
        cr_expect(wrong && strstr(wrong, rows[i].message), "%s: %s", rows[i].dict, wrong ? wrong : "accepted");
    }
    struct npy f;
    cr_expect_str_eq(npy_parse(file, 5, &f), "it is not an .npy file");
    size_t n = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4);
    cr_assert_null(npy_parse(file, n, &f));
    cr_expect_eq(f.rank, 0);
    cr_expect_not_null(npy_parse(file, 40, &f), "header cut off");
    cr_expect_eq(f.bytes, 0);
    make(2, "{", 0);
    file[11] = 0x7f; /* a header of 2 GiB */
    cr_expect_str_eq(npy_parse(file, sizeof file, &f), "its header is too long");
}

/* One-dimensional Fortran order is no order. */
Test(npy, fortran_vector)
{
    struct npy f;
    cr_expect_null(npy_parse(file, make(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3,)}", 12), &f));
}

static ptxgen_array_info plain(ptxgen_type *t)
{
    static const char *const name[] = { "" };
    static const size_t offset[] = { 0 };
    return (ptxgen_array_info){ .name = "x",
                                .rank = 1,
                                .size_index = { -1 },
                                .size_add = { 2 },
                                .field_count = 1,
                                .field_name = name,
                                .field_type = t,
                                .field_offset = offset,
                                .element_size = ptxgen_type_size(*t) };
}

Test(npy, types)
{
    static const struct {
        const char *descr;
        ptxgen_type type;
        const char *message; /* NULL: fits */
    } rows[] = {
        { "<f4", PTXGEN_F32, NULL },         { "=f4", PTXGEN_F32, NULL },
        { ">f4", PTXGEN_F32, "big-endian" }, { "<f8", PTXGEN_F32, "spec says f32" },
        { "|b1", PTXGEN_BOOL, NULL },        { "|i1", PTXGEN_I8, NULL },
        { "<u2", PTXGEN_BF16, NULL },        { "|V2", PTXGEN_BF16, NULL },
        { "<f2", PTXGEN_F16, NULL },         { "|V2", PTXGEN_F16, "V2" },
        { "<i4", PTXGEN_U32, "spec says" },  { "<i8", PTXGEN_I64, NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char dict[128], buffer[256];
        struct npy f;
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}", rows[i].descr);
        ptxgen_type t = rows[i].type;
        ptxgen_array_info a = plain(&t);
        cr_assert_null(npy_parse(file, make(1, dict, 16), &f));
        const char *wrong = npy_matches(&f, &a, buffer, sizeof buffer);
        bool fine = rows[i].message ? wrong && strstr(wrong, rows[i].message) : !wrong;
        cr_expect(fine, "%s as %s: %s", rows[i].descr, ptxgen_type_name(t), wrong ? wrong : "accepted");
    }
}

/* An aligned structure with padding: what is written reads back and fits. */
Test(npy, structures)
{
    static const char *const name[] = { "key", "value" };
    static const ptxgen_type type[] = { PTXGEN_I16, PTXGEN_F64 };
    static const size_t offset[] = { 0, 8 };
    ptxgen_array_info a = { .name = "x",
                            .rank = 2,
                            .size_index = { 0, -1 },
                            .size_add = { -1, 3 },
                            .field_count = 2,
                            .field_name = name,
                            .field_type = type,
                            .field_offset = offset,
                            .element_size = 16 };
    int64_t size[] = { 5 };
    size_t n;
    char buffer[256], *header = npy_header(&a, size, &n);
    struct npy f;
    cr_assert_not_null(header);
    cr_expect_eq(n % 64, 0);
    static const char fields[] = "[('key', '<i2'), ('', '|V6'), ('value', '<f8')]";
    cr_expect_not_null(memmem(header + 10, n - 10, fields, sizeof fields - 1));
    memcpy(file, header, n);
    cr_assert_null(npy_parse(file, n + 4 * 3 * 16, &f));
    cr_expect(f.rank == 2 && f.shape[0] == 4 && f.shape[1] == 3 && f.element_size == 16 && f.nfields == 2);
    cr_expect_null(npy_matches(&f, &a, buffer, sizeof buffer));
    f.offset[1] = 2;
    cr_expect_not_null(npy_matches(&f, &a, buffer, sizeof buffer), "a packed structure is refused");
    free(header);
}

Test(npy, scalars_have_no_dimension)
{
    ptxgen_type t = PTXGEN_F32;
    ptxgen_array_info a = plain(&t);
    a.rank = 0;
    size_t n;
    char *header = npy_header(&a, NULL, &n);
    static const char shape[] = "'shape': ()";
    cr_expect_not_null(memmem(header + 10, n - 10, shape, sizeof shape - 1));
    free(header);
}
