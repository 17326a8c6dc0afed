/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c - .npy files: versions 1 to 3 in, version 1 out.
 *
 * A file is a magic string, a version, and a Python dictionary literal with 'descr', 'fortran_order' and 'shape',
 * padded with blanks; then the elements.  A plain type has a string as descr, a structure a list of (name, type) pairs
 * in which padding has an empty name. Source: the format's description in NumPy's numpy/lib/format.py.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static void blanks(const char **at) { *at += strspn(*at, " \t\n"); }

static bool accept(const char **at, char c)
{
    blanks(at);
    bool there = **at == c;
    *at += there;
    return there;
}

/* A quoted string without escapes. */
static bool quoted(const char **at, char *out, size_t capacity)
{
    blanks(at);
    char quote = **at;
    if (quote != '\'' && quote != '"') {
        return false;
    }
    const char *end = strchr(*at + 1, quote);
    size_t n = end ? (size_t)(end - *at - 1) : capacity;
    if (n >= capacity) {
        return false;
    }
    memcpy(out, *at + 1, n);
    out[n] = 0;
    *at = end + 1;
    return true;
}

static bool integer(const char **at, int64_t *out)
{
    blanks(at);
    return read_digits(at, out);
}

/* Bytes of "<f4", "|V2", …; 0 when it is no such text. */
static size_t descr_size(const char *descr)
{
    const char *at = descr + 2;
    int64_t n;
    bool fine = strlen(descr) > 2 && strchr("<>|=", descr[0]) && integer(&at, &n) && *at == 0 && n > 0 && n < 1 << 20;
    return fine ? (size_t)n : 0;
}

/* [('re', '<f4'), ('', '|V4'), …] after the opening bracket. */
static const char *structure(const char **at, struct npy *out)
{
    while (!accept(at, ']')) {
        char name[64], descr[16];
        if (!accept(at, '(') || !quoted(at, name, sizeof name) || !accept(at, ',') ||
            !quoted(at, descr, sizeof descr) || !accept(at, ')') || descr_size(descr) == 0) {
            return "its structured type is not a list of (name, type) pairs";
        }
        if (name[0]) {
            if (out->nfields == NPY_FIELD_MAX) {
                return "its structured type has too many fields";
            }
            strcpy(out->field[out->nfields], name);
            strcpy(out->descr[out->nfields], descr);
            out->offset[out->nfields++] = out->element_size;
        }
        out->element_size += descr_size(descr);
        accept(at, ',');
    }
    return NULL;
}

static const char *shape(const char **at, struct npy *out)
{
    if (!accept(at, '(')) {
        return "its shape is not a tuple";
    }
    while (!accept(at, ')')) {
        if (out->rank == NPY_RANK_MAX || !integer(at, &out->shape[out->rank])) {
            return "its shape is not a tuple of at most 8 numbers";
        }
        if (out->shape[out->rank++] > NPY_EXTENT_MAX) {
            return "its shape is too large";
        }
        accept(at, ',');
    }
    return NULL;
}

static const char *const keys[] = { "descr", "shape", "fortran_order" };
enum { KEYS = sizeof keys / sizeof *keys };

/* The value of a key; its number. */
static const char *entry(const char **at, int key, struct npy *out)
{
    switch (key) {
    case 0:
        if (accept(at, '[')) {
            return structure(at, out);
        }
        if (!quoted(at, out->descr[0], sizeof out->descr[0]) || !(out->element_size = descr_size(out->descr[0]))) {
            return "its type is not a simple one";
        }
        return NULL;
    case 1: return shape(at, out);
    default:
        blanks(at);
        out->fortran = !strncmp(*at, "True", 4);
        bool fine = out->fortran || !strncmp(*at, "False", 5);
        *at += !fine ? 0 : out->fortran ? 4 : 5;
        return fine ? NULL : "fortran_order is neither True nor False";
    }
}

static const char *dictionary(const char *at, struct npy *out)
{
    char name[32];
    unsigned seen = 0;
    if (!accept(&at, '{')) {
        return "its header is not a dictionary";
    }
    while (!accept(&at, '}')) {
        int key = 0;
        if (!quoted(&at, name, sizeof name) || !accept(&at, ':')) {
            return "its header is not a dictionary";
        }
        while (key < KEYS && strcmp(name, keys[key]) != 0) {
            key++;
        }
        if (key == KEYS || seen >> key & 1) {
            return key == KEYS ? "its header has an unknown key" : "its header has a key twice";
        }
        seen |= 1u << key;
        const char *wrong = entry(&at, key, out);
        if (wrong) {
            return wrong;
        }
        accept(&at, ',');
    }
    return seen == (1u << KEYS) - 1 && out->element_size ? NULL : "its header lacks descr, fortran_order or shape";
}

static const char *check_extent(struct npy *f)
{
    f->bytes = f->element_size;
    for (int d = 0; d < f->rank; d++) {
        if (__builtin_mul_overflow(f->bytes, (size_t)f->shape[d], &f->bytes) || f->bytes > INT64_MAX) {
            return "its shape is too large";
        }
    }
    return f->fortran && f->rank > 1 ? "it is in Fortran order; save numpy.ascontiguousarray() of it" : NULL;
}

const char *npy_header_end(const char *text, size_t length, size_t *end)
{
    const unsigned char *b = (const unsigned char *)text;
    if (length < NPY_PREFIX || memcmp(b, "\x93NUMPY", 6) != 0) {
        return "it is not an .npy file";
    }
    if (b[6] < 1 || b[6] > 3) {
        return "its .npy version is not 1, 2 or 3";
    }
    bool small = b[6] == 1;
    size_t header = b[8] | (size_t)b[9] << 8 | (small ? 0 : (size_t)b[10] << 16 | (size_t)b[11] << 24);
    *end = (small ? 10 : 12) + header;
    return header > NPY_HEADER_MAX ? "its header is too long" : *end < NPY_PREFIX ? "its header is cut off" : NULL;
}

const char *npy_parse(const char *text, size_t length, struct npy *out)
{
    *out = (struct npy){ 0 };
    const char *wrong = npy_header_end(text, length, &out->data);
    if (wrong || out->data > length) {
        return wrong ? wrong : "its header is cut off";
    }
    size_t begin = text[6] == 1 ? 10 : 12, header = out->data - begin;
    char *dict = malloc(header + 1);
    if (!dict) {
        return "out of memory";
    }
    memcpy(dict, text + begin, header);
    dict[header] = 0;
    wrong = dictionary(dict, out);
    free(dict);
    return wrong ? wrong : check_extent(out);
}

static const char *type_descr(ptxgen_type t)
{
    static const char *const descr[] = {
        [PTXGEN_BOOL] = "|b1", [PTXGEN_I8] = "|i1",  [PTXGEN_I16] = "<i2", [PTXGEN_I32] = "<i4", [PTXGEN_I64] = "<i8",
        [PTXGEN_U8] = "|u1",   [PTXGEN_U16] = "<u2", [PTXGEN_U32] = "<u4", [PTXGEN_U64] = "<u8", [PTXGEN_F16] = "<f2",
        [PTXGEN_BF16] = "<u2", [PTXGEN_F32] = "<f4", [PTXGEN_F64] = "<f8",
    };
    return descr[t];
}

static bool descr_fits(const char *descr, ptxgen_type t)
{
    const char *wanted = type_descr(t);
    bool order = descr[0] == wanted[0] || descr[0] == '=' || (wanted[2] == '1' && descr[0] == '<') ||
                 (wanted[0] == '<' && descr[0] == '|');
    return (order && descr[0] != '|' && !strcmp(descr + 1, wanted + 1)) || !strcmp(descr, wanted) ||
           (t == PTXGEN_BF16 && !strcmp(descr, "|V2"));
}

static const char *mismatch(char *buffer, size_t capacity, const char *field, const char *descr, ptxgen_type t)
{
    const char *dot = field[0] ? "." : "";
    if (descr[0] == '>') {
        snprintf(buffer, capacity, "its type%s%s is %s, big-endian; save it as %s", dot, field, descr, type_descr(t));
    } else {
        snprintf(buffer, capacity, "its type%s%s is %s, but the spec says %s (%s)", dot, field, descr,
                 ptxgen_type_name(t), type_descr(t));
    }
    return buffer;
}

const char *npy_matches(const struct npy *f, const ptxgen_array_info *a, char *buffer, size_t capacity)
{
    bool structured = a->field_count > 1 || a->field_name[0][0];
    if (structured != (f->nfields > 0) || (structured && f->nfields != a->field_count)) {
        snprintf(buffer, capacity,
                 structured ? "it has %d named fields, but the spec's structure has %d"
                            : "it has %d named fields, but the spec has a scalar type",
                 f->nfields, a->field_count);
        return buffer;
    }
    for (int i = 0; i < a->field_count; i++) {
        if (!descr_fits(f->descr[i], a->field_type[i])) {
            return mismatch(buffer, capacity, a->field_name[i], f->descr[i], a->field_type[i]);
        }
        if (structured && (strcmp(f->field[i], a->field_name[i]) != 0 || f->offset[i] != a->field_offset[i])) {
            snprintf(buffer, capacity,
                     "its field %d is '%s' at byte %zu, but the spec's is '%s' at byte %zu (use an aligned dtype)", i,
                     f->field[i], f->offset[i], a->field_name[i], a->field_offset[i]);
            return buffer;
        }
    }
    if (f->element_size != a->element_size) {
        snprintf(buffer, capacity, "its elements have %zu bytes, the spec's %zu (use an aligned dtype)",
                 f->element_size, a->element_size);
        return buffer;
    }
    return NULL;
}

static void print_descr(FILE *to, const ptxgen_array_info *a)
{
    if (a->field_count == 1 && !a->field_name[0][0]) {
        fprintf(to, "'%s'", type_descr(a->field_type[0]));
        return;
    }
    size_t at = 0;
    fputc('[', to);
    for (int i = 0; i <= a->field_count; i++) {
        size_t next = i < a->field_count ? a->field_offset[i] : a->element_size;
        if (next > at) {
            fprintf(to, "%s('', '|V%zu')", at ? ", " : "", next - at);
        }
        if (i < a->field_count) {
            fprintf(to, "%s('%s', '%s')", next ? ", " : "", a->field_name[i], type_descr(a->field_type[i]));
            at = next + ptxgen_type_size(a->field_type[i]);
        }
    }
    fputc(']', to);
}

/* The dictionary, without its padding; malloc. */
static char *print_dictionary(const ptxgen_array_info *a, const int64_t *size, size_t *length)
{
    char *dict = NULL;
    FILE *to = open_memstream(&dict, length);
    if (!to) {
        return NULL;
    }
    fputs("{'descr': ", to);
    print_descr(to, a);
    fputs(", 'fortran_order': False, 'shape': (", to);
    for (int d = 0; d < a->rank; d++) {
        fprintf(to, "%s%lld", d ? ", " : "", (long long)array_dim(a, d, size));
    }
    fputs(a->rank == 1 ? ",), }" : "), }", to);
    bool failed = ferror(to);
    if (fclose(to) != 0 || failed) {
        free(dict);
        return NULL;
    }
    return dict;
}

char *npy_header(const ptxgen_array_info *a, const int64_t *size, size_t *length)
{
    static const unsigned char magic[] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0 }; /* version 1.0 */
    size_t n;
    char *dict = print_dictionary(a, size, &n);
    size_t total = (10 + n + 1 + 63) / 64 * 64; /* the elements begin at a multiple of 64 */
    char *header = dict ? malloc(total) : NULL;
    if (header) {
        memset(header, ' ', total);
        memcpy(header, magic, sizeof magic);
        header[8] = (char)((total - 10) & 255);
        header[9] = (char)((total - 10) >> 8);
        memcpy(header + 10, dict, n);
        header[total - 1] = '\n';
    }
    free(dict);
    *length = total;
    return header;
}
