/* SPDX-License-Identifier: Apache-2.0 */
/* test_diag.c - messages as text and as JSON: carets below the right characters, whatever stands before them. */
#include "base/diag.h"

#include <criterion/criterion.h>
#include <string.h>

static struct arena arena;
static jmp_buf oom;
static struct diags diags;

static void start(const char *text)
{
    arena_init(&arena);
    arena.oom = &oom;
    if (setjmp(oom) != 0)
        cr_assert_fail("out of memory");
    diags_init(&diags, &arena);
    diags_source(&diags, "a.yaml", text, text == NULL ? 0 : strlen(text));
}

static const struct {
    const char *text;
    uint32_t begin, end;
    const char *rendered;
} rows[] = {
    { "map: x + y\n", 9, 10, "a.yaml:1:10: error: bad [PTXG-9001]\n    1 | map: x + y\n      |          ^\n" },
    { "a\nmap: xyz\n", 7, 10, "a.yaml:2:6: error: bad [PTXG-9001]\n    2 | map: xyz\n      |      ^~~\n" },
    /* tabs go to multiples of eight */
    { "a:\tx\n", 3, 4, "a.yaml:1:4: error: bad [PTXG-9001]\n    1 | a:      x\n      |         ^\n" },
    { "\t\tx", 1, 2, "a.yaml:1:2: error: bad [PTXG-9001]\n    1 |                 x\n      |         ^~~~~~~~\n" },
    /* two bytes, one cell; three bytes, two cells; a combining character */
    { "\xc3\xa4 = x\n", 5, 6, "a.yaml:1:5: error: bad [PTXG-9001]\n    1 | \xc3\xa4 = x\n      |     ^\n" },
    { "\xe6\xbc\xa2 = x\n", 6, 7, "a.yaml:1:5: error: bad [PTXG-9001]\n    1 | \xe6\xbc\xa2 = x\n      |      ^\n" },
    { "\xe6\xbc\xa2\xe6\xbc\xa2", 0, 6,
      "a.yaml:1:1: error: bad [PTXG-9001]\n    1 | \xe6\xbc\xa2\xe6\xbc\xa2\n      | ^~~~\n" },
    { "a\xcc\x88 x", 4, 5, "a.yaml:1:4: error: bad [PTXG-9001]\n    1 | a\xcc\x88 x\n      |   ^\n" },
    /* what must not reach a terminal */
    { "a\x1b[31m\xff x", 8, 9,
      "a.yaml:1:9: error: bad [PTXG-9001]\n    1 | a\xef\xbf\xbd[31m\xef\xbf\xbd x\n      |         ^\n" },
    { "a\xe2\x80\xae x", 5, 6, "a.yaml:1:4: error: bad [PTXG-9001]\n    1 | a\xef\xbf\xbd x\n      |    ^\n" },
    /* line ends, more than one line, the end of the text, no place */
    { "ab\r\ncd\r\n", 0, 6, "a.yaml:1:1: error: bad [PTXG-9001]\n    1 | ab\n      | ^~\n" },
    { "ab\n", 2, 2, "a.yaml:1:3: error: bad [PTXG-9001]\n    1 | ab\n      |   ^\n" },
    { "ab\n", 3, 3, "a.yaml:2:1: error: bad [PTXG-9001]\n    2 | \n      | ^\n" },
    { "", 0, 0, "a.yaml:1:1: error: bad [PTXG-9001]\n    1 | \n      | ^\n" },
    { "ab", 99, 100, "a.yaml:1:3: error: bad [PTXG-9001]\n    1 | ab\n      |   ^\n" },
    { "ab", SPAN_NONE, SPAN_NONE, "a.yaml: error: bad [PTXG-9001]\n" },
    { NULL, 3, 4, "a.yaml: error: bad [PTXG-9001]\n" },
};

Test(diag, carets)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct str s = { 0 };
        start(rows[i].text);
        diag_error(&diags, D_INTERNAL, (struct span){ rows[i].begin, rows[i].end }, "bad");
        diags_render_text(&diags, &s, false);
        cr_expect_str_eq(s.text, rows[i].rendered, "row %zu:\n%s", i, s.text);
        str_finish(&s);
        arena_finish(&arena);
    }
}

Test(diag, long_lines_show_a_window)
{
    char line[2001];
    memset(line, 'a', 2000);
    line[2000] = '\0';
    line[1000] = 'X';
    start(line);
    diag_error(&diags, D_INTERNAL, (struct span){ 1000, 1001 }, "bad");
    struct str s = { 0 };
    diags_render_text(&diags, &s, false);
    const char *source = strstr(s.text, "    1 | "), *carets = strstr(s.text, "      | ");
    cr_assert(source != NULL && carets != NULL);
    cr_expect_eq(strchr(source, 'X') - source, strchr(carets, '^') - carets);
    cr_expect(s.length < 500);
    cr_expect_eq(strncmp(source + 8, "...", 3), 0);
    str_finish(&s);
    arena_finish(&arena);
}

static void sample(void)
{
    start("one: 1\ntwo: 2\n");
    struct diag *m = diag_error(&diags, D_YAML_DUPLICATE, (struct span){ 7, 10 }, "the key %s", "two\x1b");
    diag_hint(&diags, m, "remove it");
    diag_note(&diags, m, (struct span){ 0, 3 }, "first");
    diag_note(&diags, m, span_none(), "second");
    static const char *const names[] = { "one", "two" };
    diag_suggest(&diags, diag_warning(&diags, D_NO_STRATEGY, span_none(), "w"), "tow", names, 2);
}

Test(diag, hints_and_notes)
{
    struct str s = { 0 };
    sample();
    diags_render_text(&diags, &s, false);
    cr_expect_str_eq(
        s.text,
        "a.yaml:2:1: error: the key two\xef\xbf\xbd [PTXG-1016]\n    2 | two: 2\n      | ^~~\n      hint: remove it\n"
        "a.yaml:1:1: note: first\n    1 | one: 1\n      | ^~~\na.yaml: note: second\n"
        "a.yaml: warning: w [PTXG-3002]\n      hint: did you mean 'two'?\n");
    str_finish(&s);
    diags_render_text(&diags, &s, true);
    cr_expect_not_null(strstr(s.text, "\033[1;31merror:\033[0m"));
    str_finish(&s);
    arena_finish(&arena);
}

Test(diag, json)
{
    struct str s = { 0 };
    sample();
    diags_render_json(&diags, &s);
    static const char *const parts[] = {
        "\"severity\": \"error\"", "\"code\": \"PTXG-1016\"",
        "\"file\": \"a.yaml\"",    "\"line\": 2",
        "\"column\": 1",           "\"end_line\": 2",
        "\"end_column\": 4",       "\"offset\": 7",
        "\"length\": 3",           "\"message\": \"the key two\\u001b\"",
        "\"hint\": \"remove it\"", "\"message\": \"second\"",
        "\"line\": null",          "\"errors\": 1",
        "\"warnings\": 1",         "\"hint\": \"did you mean 'two'?\"",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_expect_not_null(strstr(s.text, parts[i]), "%s is not in %s", parts[i], s.text);
    str_finish(&s);
    arena_finish(&arena);
}

Test(diag, every_message_keeps_its_own_source)
{
    struct str s = { 0 };
    start("spec\n");
    diag_error(&diags, D_INTERNAL, (struct span){ 0, 4 }, "in the spec");
    diags_source(&diags, "p.plan", "plan", 4);
    diag_error(&diags, D_BAD_PLAN, (struct span){ 1, 2 }, "in the plan");
    diags_render_text(&diags, &s, false);
    cr_expect_not_null(strstr(s.text, "a.yaml:1:1: error: in the spec [PTXG-9001]\n    1 | spec\n"));
    cr_expect_not_null(strstr(s.text, "p.plan:1:2: error: in the plan [PTXG-3004]\n    1 | plan\n"));
    str_finish(&s);
    arena_finish(&arena);
}

Test(diag, errors_past_the_limit_are_counted)
{
    struct str s = { 0 };
    start("x");
    diags.limit = 3;
    for (int i = 0; i < 5; i++)
        diag_hint(&diags, diag_error(&diags, D_INTERNAL, span_none(), "e%d", i), "hint");
    diag_warning(&diags, D_INTERNAL, span_none(), "w");
    cr_expect_eq(diags.errors, 5);
    diags_render_text(&diags, &s, false);
    cr_expect_null(strstr(s.text, "e3"));
    cr_expect_not_null(strstr(s.text, "warning: w"));
    cr_expect_not_null(strstr(s.text, "2 more errors are not shown"));
    str_finish(&s);
    arena_finish(&arena);
}

Test(diag, every_code_is_explained_once)
{
    static const int numbers[] = {
#define DIAG(id, number, title, explanation) number,
#include "base/diag.def"
#undef DIAG
    };
    const char *title, *explanation;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        cr_expect(diag_explain(numbers[i], &title, &explanation) && strlen(title) > 5 && strlen(explanation) > 20, "%d",
                  numbers[i]);
        cr_expect(i == 0 || numbers[i] > numbers[i - 1], "%d is out of order", numbers[i]);
    }
    cr_expect_not(diag_explain(1, &title, &explanation));
}
