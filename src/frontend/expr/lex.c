/* SPDX-License-Identifier: Apache-2.0 */
/* lex.c - text of an expression to tokens.
 *
 * Numbers are decimal; names are ASCII identifiers; the words and, or, not are the same tokens as &&, ||, !.  A byte
 * that begins no token gets a message that says what to write instead where that is known (`=`, `?`, `**`, …).
 */
#include "frontend/frontend_impl.h"

#include <math.h>
#include <stdlib.h>

static const char *const keywords[] = { "if", "then", "else", "and", "or", "not", "true", "false", "inf", "nan" };

/* Longest first, so that the first prefix that matches is the token. */
static const struct {
    const char *text, *means;
} operators[] = {
    { "||", "or" }, { "&&", "and" }, { "==", "==" }, { "!=", "!=" }, { "<=", "<=" }, { ">=", ">=" }, { "<<", "<<" },
    { ">>", ">>" }, { "!", "not" },  { "<", "<" },   { ">", ">" },   { "|", "|" },   { "^", "^" },   { "&", "&" },
    { "+", "+" },   { "-", "-" },    { "*", "*" },   { "/", "/" },   { "%", "%" },   { "~", "~" },   { ".", "." },
    { "(", "(" },   { ")", ")" },    { "[", "[" },   { "]", "]" },   { ",", "," },
};

/* What people write out of habit from other languages. */
static const struct {
    const char *text, *hint;
} habits[] = {
    { "**", "write pow(x, y)" },
    { "?", "write if C then A else B" },
    { ":", "write if C then A else B" },
    { "=", "equality is ==" },
    { "#", "a comment belongs on a line of its own" },
    { ";", "an expression has no statements; name parts of it under let" },
    { "'", "expressions have no texts" },
    { "\"", "expressions have no texts" },
};

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool name_is_keyword(const char *name)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (!strcmp(name, keywords[i]))
            return true;
    return false;
}

bool name_is_identifier(const char *name)
{
    if (!is_letter(*name))
        return false;
    for (const char *c = name; *c; c++)
        if (!is_letter(*c) && !is_digit(*c))
            return false;
    return true;
}

struct source source_of(const struct ynode *scalar)
{
    return (struct source){ .text = scalar->text, .length = scalar->length, .node = scalar };
}

struct source source_row(const char *text, uint32_t length, struct span at)
{
    return (struct source){ .text = text, .length = length, .fixed = at };
}

struct span source_span(const struct source *s, uint32_t from, uint32_t to)
{
    return s->node ? ynode_span(s->node, from, to) : s->fixed;
}

static char peek(const struct lexer *l, uint32_t ahead)
{
    return l->at + ahead < l->source.length ? l->source.text[l->at + ahead] : '\0';
}

static struct token bad(struct lexer *l, struct token t, enum diag_code code, const char *hint, const char *text)
{
    t.kind = TOK_BAD;
    t.to = l->at;
    if (l->diags) {
        struct diag *m = diag_error(l->diags, code, source_span(&l->source, t.from, t.to), "%s", text);
        if (hint)
            diag_hint(l->diags, m, "%s", hint);
    }
    return t;
}

/* The integer in decimal digits [from, to); false when it needs more than 64 bits. */
static bool read_integer(const char *text, uint32_t from, uint32_t to, uint64_t *out)
{
    uint64_t x = 0;
    for (uint32_t i = from; i < to; i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (x > (UINT64_MAX - digit) / 10)
            return false;
        x = x * 10 + digit;
    }
    *out = x;
    return true;
}

static void skip_digits(struct lexer *l)
{
    while (is_digit(peek(l, 0)))
        l->at++;
}

static struct token lex_number(struct lexer *l, struct token t)
{
    t.kind = TOK_INT;
    skip_digits(l);
    if (peek(l, 0) == '.') {
        t.kind = TOK_FLOAT;
        l->at++;
        if (!is_digit(peek(l, 0)))
            return bad(l, t, D_BAD_NUMBER, "write 1.0", "a decimal point needs digits on both sides");
        skip_digits(l);
    }
    if (peek(l, 0) == 'e' || peek(l, 0) == 'E') {
        uint32_t sign = peek(l, 1) == '+' || peek(l, 1) == '-';
        if (is_digit(peek(l, 1 + sign))) {
            t.kind = TOK_FLOAT;
            l->at += 1 + sign;
            skip_digits(l);
        }
    }
    if (is_letter(peek(l, 0))) {
        while (is_letter(peek(l, 0)) || is_digit(peek(l, 0)))
            l->at++;
        return bad(l, t, D_BAD_NUMBER, "numbers are decimal and have no suffix; a conversion is written f64(1.5)",
                   "a number runs into letters");
    }
    t.to = l->at;
    if (t.kind == TOK_INT && !read_integer(l->source.text, t.from, t.to, &t.integer))
        return bad(l, t, D_BAD_NUMBER, NULL, "the integer does not fit 64 bits");
    if (t.kind == TOK_FLOAT)
        t.number = strtod(arena_strndup(l->arena, l->source.text + t.from, t.to - t.from), NULL);
    if (isinf(t.number))
        return bad(l, t, D_LITERAL_RANGE, "infinity is written inf", "no type has a number as large as this");
    return t;
}

static struct token lex_name(struct lexer *l, struct token t)
{
    while (is_letter(peek(l, 0)) || is_digit(peek(l, 0)))
        l->at++;
    t.to = l->at;
    t.text = arena_strndup(l->arena, l->source.text + t.from, t.to - t.from);
    t.kind = name_is_keyword(t.text) ? TOK_KEYWORD : TOK_NAME;
    if (t.kind == TOK_KEYWORD && (!strcmp(t.text, "and") || !strcmp(t.text, "or") || !strcmp(t.text, "not")))
        t.kind = TOK_OP;
    return t;
}

static bool starts_with(const struct lexer *l, const char *text)
{
    size_t n = strlen(text);
    return l->source.length - l->at >= n && !memcmp(l->source.text + l->at, text, n);
}

static struct token lex_unknown(struct lexer *l, struct token t)
{
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (starts_with(l, habits[i].text)) {
            l->at += (uint32_t)strlen(habits[i].text);
            return bad(l, t, D_BAD_CHARACTER, habits[i].hint,
                       arena_printf(l->arena, "'%s' is not an operator of the language", habits[i].text));
        }
    l->at++;
    while (((unsigned char)peek(l, 0) & 0xc0) == 0x80) /* the rest of a UTF-8 character */
        l->at++;
    return bad(l, t, D_BAD_CHARACTER, NULL, "this character begins nothing in an expression");
}

struct token lex_next(struct lexer *l)
{
    while (is_space(peek(l, 0)))
        l->at++;
    struct token t = { .kind = TOK_END, .from = l->at, .to = l->at };
    if (l->at >= l->source.length)
        return t;
    char c = peek(l, 0);
    if (is_digit(c))
        return lex_number(l, t);
    if (is_letter(c))
        return lex_name(l, t);
    if (starts_with(l, "**"))
        return lex_unknown(l, t);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (starts_with(l, operators[i].text)) {
            l->at += (uint32_t)strlen(operators[i].text);
            t.kind = TOK_OP;
            t.to = l->at;
            t.text = operators[i].means;
            return t;
        }
    return lex_unknown(l, t);
}
