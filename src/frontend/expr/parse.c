/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - a Pratt parser from tokens to struct ast.
 *
 * Every operator has a binding power; parse(power) reads one operand and then every operator that binds tighter than
 * `power` (Pratt, "Top Down Operator Precedence", 1973).  `if` and `not` are prefix operators with low power: their
 * operand reaches as far right as it can.  The depth of both the recursion and the resulting tree is bounded, because
 * every later stage walks the tree recursively.
 */
#include "frontend/frontend_impl.h"

#include <stdio.h>

enum power { P_NONE = 0, P_OR, P_AND, P_NOT, P_COMPARE, P_BOR, P_BXOR, P_BAND, P_SHIFT, P_SUM, P_PRODUCT, P_UNARY };

/* All binary operators; BIN_LAND and BIN_LOR are spelled as words. */
static const struct binary_row {
    const char *text;
    enum binary op;
    enum power power;
} binary_rows[] = {
    { "or", BIN_LOR, P_OR },     { "and", BIN_LAND, P_AND },  { "==", BIN_EQ, P_COMPARE }, { "!=", BIN_NE, P_COMPARE },
    { "<", BIN_LT, P_COMPARE },  { "<=", BIN_LE, P_COMPARE }, { ">", BIN_GT, P_COMPARE },  { ">=", BIN_GE, P_COMPARE },
    { "|", BIN_OR, P_BOR },      { "^", BIN_XOR, P_BXOR },    { "&", BIN_AND, P_BAND },    { "<<", BIN_SHL, P_SHIFT },
    { ">>", BIN_SHR, P_SHIFT },  { "+", BIN_ADD, P_SUM },     { "-", BIN_SUB, P_SUM },     { "*", BIN_MUL, P_PRODUCT },
    { "/", BIN_DIV, P_PRODUCT }, { "%", BIN_REM, P_PRODUCT },
};

struct parser {
    struct lexer lex;
    struct token now;
    uint32_t end; /* of the last token taken */
    int nesting;
    bool failed;
};

const char *binary_text(enum binary op)
{
    for (size_t i = 0; i < sizeof binary_rows / sizeof *binary_rows; i++)
        if (binary_rows[i].op == op)
            return binary_rows[i].text;
    return "?";
}

const char *unary_text(enum unary op)
{
    switch (op) {
    case UN_NEG: return "-";
    case UN_NOT: return "not";
    case UN_COMPL: return "~";
    }
    return "?";
}

static struct ast *parse(struct parser *p, enum power power);

static void advance(struct parser *p)
{
    p->end = p->now.to;
    p->now = lex_next(&p->lex);
    if (p->now.kind == TOK_BAD)
        p->failed = true; /* the lexer has reported it */
}

static struct span span_from(const struct parser *p, uint32_t from)
{
    return source_span(&p->lex.source, from, p->end);
}
static struct span span_now(const struct parser *p) { return source_span(&p->lex.source, p->now.from, p->now.to); }

static bool is(const struct parser *p, enum token_kind kind, const char *text)
{
    return p->now.kind == kind && !strcmp(p->now.text, text);
}

static struct ast *fail(struct parser *p, const char *expected)
{
    if (p->failed)
        return NULL;
    p->failed = true;
    if (p->now.kind == TOK_END)
        diag_error(p->lex.diags, D_SYNTAX, span_now(p), "the expression ends where %s is expected", expected);
    else
        diag_error(p->lex.diags, D_SYNTAX, span_now(p), "expected %s, found '%.*s'", expected,
                   (int)(p->now.to - p->now.from), p->lex.source.text + p->now.from);
    return NULL;
}

static bool expect(struct parser *p, enum token_kind kind, const char *text)
{
    if (!is(p, kind, text)) {
        char quoted[16];
        snprintf(quoted, sizeof quoted, "'%s'", text);
        fail(p, quoted);
        return false;
    }
    advance(p);
    return true;
}

static struct ast *node(struct parser *p, enum ast_kind kind, uint32_t from)
{
    struct ast *e = arena_new(p->lex.arena, struct ast, 1);
    e->kind = kind;
    e->depth = 1;
    e->peeked = T_UNKNOWN;
    e->at = e->op_at = span_from(p, from);
    return e;
}

/* Adds an operand; NULL operands mean that the parse has failed already. */
static bool add(struct parser *p, struct ast *e, struct ast *operand)
{
    if (!operand)
        return false;
    ARENA_PUSH(p->lex.arena, e->arg, e->nargs, e->cap_args, operand);
    if (operand->depth >= e->depth)
        e->depth = operand->depth + 1;
    if (e->depth <= AST_DEPTH_MAX)
        return true;
    if (!p->failed)
        diag_error(p->lex.diags, D_TOO_DEEP, operand->at, "the expression is more than %d operators deep",
                   AST_DEPTH_MAX);
    p->failed = true;
    return false;
}

static void bad_offset(struct parser *p, const struct ast *base, uint32_t from)
{
    struct diag *m = diag_error(p->lex.diags, D_BAD_OFFSET, source_span(&p->lex.source, from, p->now.to),
                                "an offset is a constant integer of at most %d", INT16_MAX);
    diag_hint(
        p->lex.diags, m,
        "offsets count from the element: the one before it is x[-1], not x[i-1]; the element at an index is at(%s, %s)",
        base->kind == AST_NAME ? base->name : "x", p->now.kind == TOK_NAME ? p->now.text : "i");
}

static struct ast *parse_offsets(struct parser *p, struct ast *base, uint32_t from)
{
    struct ast *e = node(p, AST_OFFSET, from);
    advance(p);
    do {
        if (e->noffsets)
            advance(p);
        uint32_t at = p->now.from;
        bool negative = is(p, TOK_OP, "-");
        if (negative || is(p, TOK_OP, "+"))
            advance(p);
        if (p->now.kind != TOK_INT || p->now.integer > INT16_MAX) {
            if (!p->failed)
                bad_offset(p, base, at);
            p->failed = true;
            return NULL;
        }
        if (e->noffsets <= OFFSET_MAX)
            e->offset[e->noffsets++] = negative ? -(int32_t)p->now.integer : (int32_t)p->now.integer;
        advance(p);
    } while (is(p, TOK_OP, ","));
    if (!expect(p, TOK_OP, "]") || !add(p, e, base))
        return NULL;
    e->at = span_from(p, from);
    return e;
}

/* The operators of gather(x, off, k, OPERATOR, EXPR) are names, but two of them are words of the language. */
static struct ast *parse_argument(struct parser *p, const struct ast *call)
{
    const bool takes = !strcmp(call->name, "gather") && call->nargs == 3;
    const bool spelled = p->now.kind == TOK_OP && p->lex.source.text[p->now.from] == p->now.text[0];
    if (!takes || !spelled || (!is(p, TOK_OP, "and") && !is(p, TOK_OP, "or")))
        return parse(p, P_NONE);
    const struct token t = p->now;
    advance(p);
    struct ast *e = node(p, AST_NAME, t.from);
    e->name = t.text;
    return e;
}

static struct ast *parse_call(struct parser *p, const struct token *name)
{
    struct ast *e = node(p, AST_CALL, name->from);
    e->name = name->text;
    advance(p);
    if (!is(p, TOK_OP, ")"))
        for (;;) {
            if (!add(p, e, parse_argument(p, e)))
                return NULL;
            if (!is(p, TOK_OP, ","))
                break;
            advance(p);
        }
    if (!is(p, TOK_OP, ")"))
        return fail(p, "',' or ')'");
    advance(p);
    e->at = span_from(p, name->from);
    return e;
}

static struct ast *parse_if(struct parser *p)
{
    uint32_t from = p->now.from;
    advance(p);
    struct ast *e = node(p, AST_IF, from);
    static const char *const word[] = { "then", "else" };
    for (int i = 0; i < 3; i++) {
        if (!add(p, e, parse(p, P_NONE)))
            return NULL;
        if (i < 2 && !expect(p, TOK_KEYWORD, word[i]))
            return NULL;
    }
    e->at = span_from(p, from);
    return e;
}

static struct ast *parse_prefix(struct parser *p, enum unary op, enum power power)
{
    uint32_t from = p->now.from;
    advance(p);
    struct ast *e = node(p, AST_UNARY, from);
    e->op = (int)op;
    if (!add(p, e, parse(p, power)))
        return NULL;
    e->at = span_from(p, from);
    return e;
}

static struct ast *parse_word(struct parser *p)
{
    struct token t = p->now;
    if (!strcmp(t.text, "if"))
        return parse_if(p);
    bool is_bool = !strcmp(t.text, "true") || !strcmp(t.text, "false");
    bool is_float = !strcmp(t.text, "inf") || !strcmp(t.text, "nan");
    if (!is_bool && !is_float)
        return fail(p, "an operand");
    advance(p);
    struct ast *e = node(p, is_bool ? AST_BOOL : AST_FLOAT, t.from);
    e->op = !strcmp(t.text, "true");
    e->number = !strcmp(t.text, "inf") ? __builtin_inf() : __builtin_nan("");
    return e;
}

static struct ast *parse_parenthesis(struct parser *p)
{
    advance(p);
    struct ast *e = parse(p, P_NONE);
    return e && expect(p, TOK_OP, ")") ? e : NULL;
}

static struct ast *parse_operand(struct parser *p)
{
    struct token t = p->now;
    struct ast *e;
    switch (t.kind) {
    case TOK_INT:
    case TOK_FLOAT:
        advance(p);
        e = node(p, t.kind == TOK_INT ? AST_INT : AST_FLOAT, t.from);
        e->integer = t.integer;
        e->number = t.number;
        return e;
    case TOK_NAME:
        advance(p);
        if (is(p, TOK_OP, "("))
            return parse_call(p, &t);
        e = node(p, AST_NAME, t.from);
        e->name = t.text;
        return e;
    case TOK_KEYWORD: return parse_word(p);
    case TOK_OP:
        if (!strcmp(t.text, "("))
            return parse_parenthesis(p);
        if (!strcmp(t.text, "-"))
            return parse_prefix(p, UN_NEG, P_UNARY);
        if (!strcmp(t.text, "~"))
            return parse_prefix(p, UN_COMPL, P_UNARY);
        if (!strcmp(t.text, "not"))
            return parse_prefix(p, UN_NOT, P_NOT);
        return fail(p, "an operand");
    case TOK_END:
    case TOK_BAD: break;
    }
    return fail(p, "an operand");
}

/* Fields and offsets after an operand. */
static struct ast *parse_postfix(struct parser *p, struct ast *e, uint32_t from)
{
    while (e && p->now.kind == TOK_OP) {
        if (is(p, TOK_OP, "[")) {
            e = parse_offsets(p, e, from);
        } else if (is(p, TOK_OP, ".")) {
            advance(p);
            if (p->now.kind != TOK_NAME)
                return fail(p, "the name of a field");
            struct ast *field = node(p, AST_FIELD, from);
            field->name = p->now.text;
            field->op_at = span_now(p);
            advance(p);
            field->at = span_from(p, from);
            e = add(p, field, e) ? field : NULL;
        } else {
            break;
        }
    }
    return e;
}

static const struct binary_row *binary_now(const struct parser *p)
{
    if (p->now.kind != TOK_OP)
        return NULL;
    for (size_t i = 0; i < sizeof binary_rows / sizeof *binary_rows; i++)
        if (!strcmp(binary_rows[i].text, p->now.text))
            return &binary_rows[i];
    return NULL;
}

/* Operators to the right of `left` that bind tighter than `power`. */
static struct ast *parse_binary(struct parser *p, struct ast *left, enum power power, uint32_t from)
{
    const struct binary_row *row;
    bool compared = false;
    while (left && (row = binary_now(p)) && row->power > power) {
        struct span op_at = span_now(p);
        if (row->power == P_COMPARE && compared) {
            struct diag *m = diag_error(p->lex.diags, D_CHAINED_COMPARISON, op_at, "comparisons do not chain");
            diag_hint(p->lex.diags, m, "write a < b and b < c");
            p->failed = true;
            return NULL;
        }
        compared = row->power == P_COMPARE;
        advance(p);
        struct ast *e = node(p, AST_BINARY, from);
        e->op = (int)row->op;
        if (!add(p, e, left) || !add(p, e, parse(p, row->power)))
            return NULL;
        e->at = span_from(p, from);
        e->op_at = op_at;
        left = e;
    }
    return left;
}

static struct ast *parse(struct parser *p, enum power power)
{
    if (++p->nesting > NEST_MAX) {
        if (!p->failed)
            diag_error(p->lex.diags, D_TOO_DEEP, span_now(p), "the expression is nested more than %d deep", NEST_MAX);
        p->failed = true;
    }
    struct ast *e = NULL;
    if (!p->failed) {
        uint32_t from = p->now.from;
        e = parse_binary(p, parse_postfix(p, parse_operand(p), from), power, from);
    }
    p->nesting--;
    return p->failed ? NULL : e;
}

struct ast *expr_parse(struct arena *a, struct diags *d, const struct source *source)
{
    struct parser p = { .lex = { .arena = a, .diags = d, .source = *source } };
    advance(&p);
    struct ast *e = parse(&p, P_NONE);
    if (e && p.now.kind != TOK_END)
        return fail(&p, "an operator or the end");
    return p.failed ? NULL : e;
}
