/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c - scalars of the YAML tree read as names, integers, booleans, expressions. */
#include "frontend/frontend_impl.h"

bool node_is(struct builder *b, const struct ynode *n, enum ynode_kind kind, const char *what)
{
    if (n->kind == kind)
        return true;
    diag_error(b->d, D_WRONG_SORT, n->at, "%s is expected here", what);
    return false;
}

bool node_name(struct builder *b, const struct ynode *n, const char *what)
{
    if (!node_is(b, n, Y_SCALAR, "a name"))
        return false;
    if (name_is_identifier(n->text) && !name_is_keyword(n->text))
        return true;
    if (name_is_keyword(n->text))
        diag_error(b->d, D_BAD_NAME, n->at, "'%s' is a word of the language and cannot name %s", n->text, what);
    else
        diag_error(b->d, D_BAD_NAME, n->at,
                   "'%s' cannot name %s: a name is letters, digits and _, not beginning with a digit", n->text, what);
    return false;
}

bool node_integer(struct builder *b, const struct ynode *n, int64_t lo, int64_t hi, int64_t *out)
{
    if (!node_is(b, n, Y_SCALAR, "an integer"))
        return false;
    const char *c = n->text;
    bool negative = *c == '-', good;
    int64_t x = 0;
    c += negative;
    good = *c >= '0' && *c <= '9' && (*c != '0' || !c[1]);
    for (; good && *c; c++)
        good = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(x, 10, &x) &&
               !__builtin_sub_overflow(x, (int64_t)(*c - '0'), &x);
    good = good && (negative || !__builtin_sub_overflow((int64_t)0, x, &x));
    if (!good) {
        struct diag *m = diag_error(b->d, D_BAD_INTEGER, n->at, "'%s' is not an integer", n->text);
        diag_hint(b->d, m, "an integer is written in decimal digits, without leading zeros, '_' or ':'");
        return false;
    }
    if (x < lo || x > hi) {
        diag_error(b->d, D_BAD_INTEGER, n->at, "%s is out of range here", n->text);
        return false;
    }
    *out = x;
    return true;
}

bool node_bool(struct builder *b, const struct ynode *n, bool otherwise)
{
    if (!n)
        return otherwise;
    bool is_true = !strcmp(n->text, "true");
    if (!is_true && strcmp(n->text, "false")) {
        struct diag *m = diag_error(b->d, D_BAD_BOOLEAN, n->at, "'%s' is not a truth value", n->text);
        diag_hint(b->d, m, "write true or false");
    }
    return is_true;
}

struct ast *node_expr(struct builder *b, const struct ynode *n)
{
    if (n->kind != Y_SCALAR) {
        struct diag *m = diag_error(b->d, D_WRONG_SORT, n->at, "an expression is expected here");
        diag_hint(b->d, m, "an expression with ': ', or that begins with [ or {, needs quotes");
        return NULL;
    }
    if (*n->text == '[') {
        struct diag *m =
            diag_error(b->d, D_WRONG_SORT, n->at, "an expression is expected here, and this is a list in quotes");
        diag_hint(b->d, m, "without quotes around it: %s; an item that has a comma has quotes of its own", n->text);
        return NULL;
    }
    yaml_warn_comment(b->d, n);
    struct source source = source_of(n);
    return expr_parse(b->a, b->d, &source);
}

bool lets_fit(struct builder *b, const struct ynode *lets)
{
    if (lets->count <= LETS_MAX)
        return true;
    diag_error(b->d, D_LIMIT, lets->at, "there are %d lets; at most %d are possible", lets->count, LETS_MAX);
    return false;
}

void warn_hidden(struct builder *b, const char *name, struct span at, const char *what)
{
    int input = input_find(b, name), param = param_find(b, name);
    if (input < 0 && param < 0)
        return;
    struct diag *m = diag_warning(b->d, D_HIDES, at, "here '%s' is %s and hides the %s of that name", name, what,
                                  input >= 0 ? "input" : "param");
    diag_note(b->d, m, input >= 0 ? b->input[input].at : b->param_slot[param].at, "it is declared here");
}
