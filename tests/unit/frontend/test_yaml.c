/* SPDX-License-Identifier: Apache-2.0 */
/* test_yaml.c - YAML to a located tree: what is misread has its own message at its own place, all of them in one run,
 * and decoded scalars know where their bytes come from.
 */
#include "frontend/yaml/yaml_doc.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct arena arena;
    struct diags diags;
    jmp_buf oom;
};

#define BEGIN(f)                                                                                                       \
    struct fixture f;                                                                                                  \
    arena_init(&f.arena);                                                                                              \
    diags_init(&f.diags, &f.arena)

static struct ynode *parse(struct fixture *f, const char *text, size_t length)
{
    struct ynode *root;
    if (setjmp(f->oom) != 0)
        cr_assert_fail("out of memory");
    f->arena.oom = &f->oom;
    diags_source(&f->diags, "t.yaml", text, length);
    root = yaml_parse(&f->diags, text, length);
    f->arena.oom = NULL; /* nobody to go back to */
    return root;
}

enum { PLACES = 4 };
struct bad {
    const char *text;
    struct {
        int code, line, column;
    } at[PLACES]; /* in the order of the text; code 0 ends */
    bool tree;    /* a tree is returned all the same */
};

static const struct bad bad[] = {
    /* values that begin with a character of YAML's own */
    { "map: !x\n", { { 1002, 1, 6 } }, true },
    { "map: !flag and y\n", { { 1002, 1, 6 } }, true },
    { "map: !(x)\nkind: scan\n", { { 1002, 1, 6 } }, true },
    { "a: {b: !x}\n", { { 1002, 1, 8 } }, true },
    { "map: *x\n", { { 1003, 1, 6 } }, true },
    { "map: *x + y\nq: r\n", { { 1003, 1, 6 } }, true },
    { "map: *\n", { { 1003, 1, 6 } }, true },
    { "a: {b: *x + y, c: d}\n", { { 1003, 1, 8 } }, true },
    { "map: &x y\n", { { 1004, 1, 6 } }, true },
    { "map: & y\n", { { 1004, 1, 6 } }, true },
    { "map: [a] + b\nq: r\n", { { 1005, 1, 6 } }, true },
    { "map: {a} + b\nq: r\n", { { 1006, 1, 6 } }, true },
    { "map: @x\n", { { 1007, 1, 6 } }, true },
    { "map: `x`\n", { { 1007, 1, 6 } }, true },
    { "a: {b: @x, c: d}\n", { { 1007, 1, 8 } }, true },
    { "map: %x\n", { { 1008, 1, 6 } }, true },
    { "map: - x\n", { { 1009, 1, 6 } }, true },
    { "a: {b: - x}\n", { { 1009, 1, 8 } }, true },
    { "map: |x\n", { { 1010, 1, 6 } }, true },
    { "map: > 3\n", { { 1010, 1, 6 } }, true },
    { "map: \"x\" + y\nq: r\n", { { 1011, 1, 6 } }, true },
    { "map: 'x' + y\nq: r\n", { { 1011, 1, 6 } }, true },
    { "map: x ? a : b\n", { { 1012, 1, 12 } }, true },
    { "a: b: c\n", { { 1012, 1, 5 } }, true },
    { "a: {b: c: d}\n", { { 1012, 1, 9 } }, true },
    { "map: max(x, # first\n  y)\n", { { 1013, 1, 13 }, { 1025, 2, 3 } }, false },
    { "map: x + # y\nq: r\n", { { 1013, 1, 10 } }, true },
    { "map: !!str x\n", { { 1014, 1, 6 } }, true },
    { "a: !!map {b: c}\n", { { 1014, 1, 4 } }, true },
    { "a: &n b\nc: *n\n", { { 1015, 1, 4 }, { 1015, 2, 4 } }, true },
    { "a: &n {b: c}\n", { { 1015, 1, 4 } }, true },
    /* keys and structure */
    { "a: b\nc: d\na: e\n", { { 1016, 3, 1 } }, true },
    { "a: {x: 1, x: 2, x: 3}\n", { { 1016, 1, 11 }, { 1016, 1, 17 } }, true },
    { "\ta: b\n", { { 1017, 1, 1 } }, false },
    { "a:\n\tb: c\n\td: e\n", { { 1017, 2, 1 }, { 1017, 3, 1 } }, false },
    { "a:\tb\n", { { 1017, 1, 3 } }, true },
    { "-\tb\n", { { 1017, 1, 2 } }, false },
    { "a: b\n---\nc: d\n", { { 1018, 2, 1 } }, true },
    { "a: b\n...\nc: d\n", { { 1018, 3, 1 } }, false },
    { "{a: b}\nc: d\n", { { 1018, 2, 1 } }, false },
    { "", { { 1019, 1, 1 } }, false },
    { "# nothing\n", { { 1019, 2, 1 } }, false },
    { "---\n...\n", { { 1019, 2, 1 } }, false },
    { "- a\n", { { 1020, 1, 1 } }, false },
    { "hello\n", { { 1020, 1, 1 } }, false },
    { "map:x\n", { { 1020, 1, 1 } }, false },
    { "o: {type: f32[m, n], value: x}\n", { { 1021, 1, 11 } }, true },
    { "o: {map: max(x, y), b: c}\n", { { 1021, 1, 10 } }, true },
    { "o: {x: f32[n], y: f32[n]}\n", { { 1021, 1, 8 }, { 1021, 1, 19 } }, true },
    { "o: {y: x[-1] + x[1], z: 2}\n", { { 1021, 1, 8 } }, true },
    { "o: [a, b\nq: r\n", { { 1022, 1, 4 } }, false },
    { "o: [x\n", { { 1022, 1, 4 } }, false },
    { "a: 'x\nb: c\n", { { 1023, 1, 4 } }, false },
    { "a: \"x", { { 1023, 1, 4 } }, false },
    { "a: \"\\q\"\n", { { 1024, 1, 5 } }, false },
    { "a:\n  b: c\n d: e\n", { { 1025, 3, 2 } }, false },
    { "a: b\n  c: d\n", { { 1025, 2, 3 } }, false },
    { "kind: reduce\nmap:x\nq: r\n", { { 1026, 2, 4 } }, false },
    { "map:x\nq: r\n", { { 1026, 1, 4 } }, false },
    { "a: {b:c}\n", { { 1026, 1, 6 } }, true },
    { "a: b\nhello\nc: d\n", { { 1027, 2, 1 } }, false },
    { "? [a]\n: b\nc: d\n", { { 1028, 1, 3 } }, true },
    { "[a]: b\n", { { 1028, 1, 1 } }, true },
    { "a: b\xff\n", { { 1029, 1, 5 } }, false },
    { "a: \xc3\xa4 \xc3\n", { { 1029, 1, 6 } }, false },
    { "a: \x01\n", { { 1030, 1, 4 } }, false },
    { "%foo\n---\na: b\n", { { 1032, 1, 1 } }, false },
    { "a: b\n}\n", { { 1001, 2, 1 } }, false },
    { "a: ]\n", { { 1001, 1, 4 } }, false },
    /* everything in one run, in the order of the text */
    { "map: *x + 1\nlet:\n  y: @a\no: {t: f32[n], v: !q}\nmap: 2\n",
      { { 1003, 1, 6 }, { 1007, 3, 6 }, { 1021, 4, 8 }, { 1002, 4, 19 } },
      true },
    { "a: `b\nc: d ? e : f\ng: [h\n", { { 1007, 1, 4 }, { 1012, 2, 10 }, { 1022, 3, 4 } }, false },
    /* characters, not bytes */
    { "\xc3\xa4: '\xe2\x82\xac' + x\n", { { 1011, 1, 4 } }, true },
    { "\xef\xbb\xbf"
      "a: @x\n",
      { { 1007, 1, 5 } },
      true },
};

Test(yaml, every_mistake_has_its_message_and_place)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        BEGIN(f);
        const struct bad *row = &bad[i];
        const struct ynode *root = parse(&f, row->text, strlen(row->text));
        const struct diag *m = f.diags.first;
        int k = 0;
        for (; k < PLACES && row->at[k].code != 0; k++, m = m->next) {
            cr_assert_not_null(m, "%zu: message %d is missing\n%s", i, k, row->text);
            int line, column;
            diags_position(&f.diags, m->at.begin, &line, &column);
            cr_expect(m->code == (enum diag_code)row->at[k].code && line == row->at[k].line &&
                          column == row->at[k].column,
                      "row %zu: %d at %d:%d (%s) instead of %d at %d:%d\n%s", i, (int)m->code, line, column, m->text,
                      row->at[k].code, row->at[k].line, row->at[k].column, row->text);
        }
        if (m != NULL && k < PLACES)
            cr_expect_fail("row %zu: one message too many: %s\n%s", i, m->text, row->text);
        cr_expect((root != NULL) == row->tree, "row %zu: tree: %d\n%s", i, root != NULL, row->text);
        arena_finish(&f.arena);
    }
}

static const char *const good[] = {
    "kind: reduce\ninputs:\n  x: f32[n]\n  y: f32[n]\nmap: x * y  # products\noperator: add\noutputs:\n  dot: f32\n",
    "a: {x: 1, y: [m, n]}\nb: 'it''s # no comment'\n",
    "%YAML 1.2\n---\na: b\n...\n",
    "a: |\n  x\t+ y\n# \tcomment\nb: \"\t\"\n",
    "a: -x\nb: ~x\nc: x*y & z | w ^ !q\nd: x#y\n",
    "\xef\xbb\xbf"
    "a: b\r\nc: d\r\n",
    "a:\nb: {}\nc: []\nd: {x: (a), y: b}\n",
};

Test(yaml, accepts_what_is_well_formed)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        BEGIN(f);
        const struct ynode *root = parse(&f, good[i], strlen(good[i]));
        cr_expect(root != NULL && f.diags.first == NULL, "row %zu: %s", i,
                  f.diags.first ? f.diags.first->text : "no tree");
        arena_finish(&f.arena);
    }
}

/* A misread value stands in the tree as it was written. */
static const struct {
    const char *text, *value;
} meant[] = {
    { "v: !flag and y\n", "!flag and y" }, { "v: *x + y # c\nq: r\n", "*x + y" },
    { "v: {a} + b\nq: r\n", "{a} + b" },   { "v: @x  \n", "@x" },
    { "v: x ? a : b\n", "x ? a : b" },     { "o: 1\nv: \"x\" + y\n", "\"x\" + y" },
};

Test(yaml, misread_values_keep_their_text)
{
    for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++) {
        BEGIN(f);
        const struct ynode *root = parse(&f, meant[i].text, strlen(meant[i].text));
        cr_assert_not_null(root);
        const struct ynode *v = ynode_get(root, "v");
        cr_assert_not_null(v);
        cr_expect_str_eq(v->text, meant[i].value);
        arena_finish(&f.arena);
    }
}

/* `sub` of the decoded text of `v` is where `source_sub` (NULL: the same) stands in the source. */
static const struct {
    const char *text, *decoded, *sub, *source_sub;
} offsets[] = {
    { "v: x + yy\n", "x + yy", "yy", NULL },
    { "v: 'it''s yy'\n", "it's yy", "yy", NULL },
    { "v: \"a\\tb yy\"\n", "a\tb yy", "yy", NULL },
    { "v: \"\\u20ac \\x41 yy\"\n", "\xe2\x82\xac A yy", "yy", NULL },
    { "v: \"\\u20ac \\x41 yy\"\n", "\xe2\x82\xac A yy", "A", "\\x41" },
    { "v: \"a \\\n   b yy\"\n", "a b yy", "yy", NULL },
    { "v: \"a\n\n   b yy\"\n", "a\nb yy", "yy", NULL },
    { "v: a\n  b\n\n  c + yy\n", "a b\nc + yy", "yy", NULL },
    { "v: |\n  a\n  b + yy\n", "a\nb + yy\n", "yy", NULL },
    { "v: |2\n    a\n  yy\n", "  a\nyy\n", "yy", NULL },
    { "v: |-\r\n  a\r\n\r\n  b + yy\r\n", "a\n\nb + yy", "yy", NULL },
    { "v: >\n  a\n  b\n  c + yy\n", "a b c + yy\n", "yy", NULL },
    { "v: >\n  a\n\n  b\n    d\n  yy\n", "a\nb\n  d\nyy\n", "yy", NULL },
    { "v: >-\n\n  a\n  yy\n", "\na yy", "yy", NULL },
    { "v: >+\n  a\n  yy\n\n\n", "a yy\n\n\n", "yy", NULL },
    { "\xc3\xa4: \xe2\x82\xac\nv: '\xc3\xbc'' yy'\n", "\xc3\xbc' yy", "yy", NULL },
};

Test(yaml, decoded_bytes_know_their_place)
{
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        BEGIN(f);
        const struct ynode *root = parse(&f, offsets[i].text, strlen(offsets[i].text));
        cr_assert_not_null(root, "row %zu", i);
        const struct ynode *v = ynode_get(root, "v");
        cr_assert_str_eq(v->text, offsets[i].decoded, "row %zu", i);
        const char *sub = offsets[i].sub, *source = offsets[i].source_sub ? offsets[i].source_sub : sub;
        const uint32_t from = (uint32_t)(strstr(v->text, sub) - v->text), to = from + (uint32_t)strlen(sub);
        const struct span at = ynode_span(v, from, to);
        const uint32_t begin = (uint32_t)(strstr(offsets[i].text, source) - offsets[i].text);
        cr_expect(at.begin == begin && at.end == begin + strlen(source), "row %zu: [%u,%u) instead of %u", i, at.begin,
                  at.end, begin);
        for (uint32_t b = 0; v->where != NULL && b < v->length; b++)
            cr_expect(v->where[b] <= v->where[b + 1] && v->where[b] < strlen(offsets[i].text), "row %zu byte %u", i, b);
        arena_finish(&f.arena);
    }
}

Test(yaml, spans_of_collections)
{
    static const char text[] = "a:\n  b: c\n  d: [e, f]\n\n# behind\ng: h\n";
    BEGIN(f);
    const struct ynode *root = parse(&f, text, strlen(text)), *a = ynode_get(root, "a"), *d = ynode_get(a, "d");
    cr_expect_eq(a->at.begin, strstr(text, "b: c") - text);
    cr_expect_eq(a->at.end, strchr(text, ']') + 1 - text);
    cr_expect_eq(d->at.begin, strchr(text, '[') - text);
    cr_expect_eq(d->count, 2);
    cr_expect_null(ynode_get(root, "b"));
    arena_finish(&f.arena);
}

static const struct {
    const char *text;
    bool warns;
} comments[] = {
    { "v: x # y\n", true },   { "v: x # y + 1\n", true },
    { "v: x  # y\n", false }, { "v: x # the products of all\n", false },
    { "v: x\n", false },      { "v: 'x' # y\n", false },
};

Test(yaml, comments_that_look_like_expressions)
{
    for (size_t i = 0; i < sizeof comments / sizeof comments[0]; i++) {
        BEGIN(f);
        yaml_warn_comment(&f.diags, ynode_get(parse(&f, comments[i].text, strlen(comments[i].text)), "v"));
        cr_expect_eq(f.diags.warnings, comments[i].warns, "row %zu", i);
        arena_finish(&f.arena);
    }
}

/* A text of `count` times `part` between head and tail; freed by the caller. */
static char *repeated(const char *head, const char *part, int count, const char *tail)
{
    struct str s = { 0 };
    str_add(&s, head);
    for (int i = 0; i < count; i++)
        str_add(&s, part);
    str_add(&s, tail);
    return str_take(&s);
}

Test(yaml, limits)
{
    const struct {
        const char *head, *part;
        int count;
        bool refused;
    } rows[] = {
        { "a: ", "[", 70, true },       { "a: [", "x,", 110000, true },
        { "a: [", "x,", 90000, false }, { "a: '", "0123456789", 104900, true },
        { "a: [", "[],", 1000, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        BEGIN(f);
        char *text = repeated(rows[i].head, rows[i].part, rows[i].count, rows[i].head[3] == '\'' ? "'" : "]");
        const struct ynode *root = parse(&f, text, strlen(text));
        cr_expect_eq(root == NULL, rows[i].refused, "row %zu", i);
        cr_expect(!rows[i].refused || f.diags.first->code == D_YAML_LIMIT, "row %zu", i);
        free(text);
        arena_finish(&f.arena);
    }
}

Test(yaml, nul_bytes)
{
    BEGIN(f);
    cr_expect_null(parse(&f, "a: b\0c\n", 7));
    cr_assert_eq(f.diags.errors, 1);
    cr_expect_eq(f.diags.first->code, D_YAML_CONTROL);
    cr_expect_eq(f.diags.first->at.begin, 4);
    arena_finish(&f.arena);
}

/* Every prefix and every single-byte change of a spec gives a tree or a message, and never both nothing. */
Test(yaml, mutilated_texts_are_explained)
{
    static const char text[] =
        "kind: scan # c\nin: {x: 'f32[n]', y: [a, \"b\\n\"]}\nmap: |\n  x +\n  y\nq: >-\n a\n b\nr:\n- s\n- t: u\n";
    static const char bytes[] = "!*&[]{}@%-|>\"':,#?\t\n \x01\xff";
    char copy[sizeof text];
    for (size_t i = 0; i < sizeof text - 1; i++)
        for (size_t b = 0; b < sizeof bytes; b++) {
            BEGIN(f);
            const size_t length = b == sizeof bytes - 1 ? i : sizeof text - 1;
            memcpy(copy, text, sizeof text);
            copy[i] = bytes[b];
            const struct ynode *root = parse(&f, copy, length);
            cr_expect(root != NULL || f.diags.errors > 0, "byte %zu, %02x", i, bytes[b]);
            arena_finish(&f.arena);
        }
}
