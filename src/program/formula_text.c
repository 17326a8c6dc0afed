/* SPDX-License-Identifier: Apache-2.0 */
/* formula_text.c - formulas as text and as JSON.
 *
 * Infix, loosest first: or; and; not; comparisons, which do not chain; + -; * / %; numbers, names, calls.  Printing
 * puts parentheses only where reading back would give another tree, so that parse(print(f)) is f step by step.
 */
#include "formula.h"

#include <string.h>

enum level { LEVEL_OR = 1, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_CALL };
enum { NESTING_MAX = 64 };

static const char *const op_text[FO_COUNT] = {
#define X(id, text, arity, what) text,
    FORMULA_OPS(X)
#undef X
};

static enum level level_of(enum formula_op op)
{
    switch (op) {
    case FO_OR: return LEVEL_OR;
    case FO_AND: return LEVEL_AND;
    case FO_NOT: return LEVEL_NOT;
    case FO_LT:
    case FO_LE:
    case FO_EQ:
    case FO_NE:
    case FO_GE:
    case FO_GT: return LEVEL_COMPARE;
    case FO_ADD:
    case FO_SUB: return LEVEL_SUM;
    case FO_MUL:
    case FO_DIV:
    case FO_MOD: return LEVEL_PRODUCT;
    default: return LEVEL_CALL;
    }
}

/* The names that a kind of leaf refers to; NULL for leaves without one. */
static const char *const *names_of(enum formula_op op, const struct formula_names *n, int *count)
{
    static const struct formula_names none = { 0 };
    if (n == NULL)
        n = &none;
    switch (op) {
    case FO_SIZE: *count = n->nsizes; return n->size;
    case FO_PARAM: *count = n->nparams; return n->param;
    case FO_RESIDENT: *count = n->nkernels; return n->kernel;
    case FO_MISALIGN:
    case FO_APART: *count = n->npointers; return n->pointer;
    default: *count = 0; return NULL;
    }
}

/* Words that a size cannot be written as. */
static bool reserved(const char *name)
{
    for (int op = 0; op < FO_COUNT; op++)
        if (op_text[op] != NULL && strcmp(op_text[op], name) == 0)
            return true;
    return strcmp(name, "true") == 0 || strcmp(name, "size") == 0;
}

/* ---- printing ------------------------------------------------------------------------------------- */

static void print_name(enum formula_op op, int64_t number, const struct formula_names *names, struct str *out)
{
    int count;
    const char *const *name = names_of(op, names, &count);
    if (number >= 0 && number < count && name != NULL)
        str_add(out, name[number]);
    else
        str_printf(out, "%lld", (long long)number);
}

static bool is_set(enum formula_op op) { return op == FO_MISALIGN || op == FO_APART; }

static void print_set(const struct formula_step *s, const struct formula_names *names, struct str *out)
{
    const char *separator = "";
    for (uint64_t set = (uint64_t)s->imm; set; set &= set - 1) {
        str_add(out, separator);
        print_name(s->op, __builtin_ctzll(set), names, out);
        separator = ", ";
    }
}

static void print_leaf(const struct formula_step *s, const struct formula_names *names, struct str *out)
{
    int count;
    const char *const *name = names_of(s->op, names, &count);
    if (s->op == FO_CONST) {
        str_printf(out, "%lld", (long long)s->imm);
    } else if (s->op == FO_SIZE && name != NULL && s->imm >= 0 && s->imm < count && !reserved(name[s->imm])) {
        str_add(out, name[s->imm]);
    } else {
        str_add(out, s->op == FO_SIZE ? "size" : op_text[s->op]);
        if (s->op == FO_SMS || s->op == FO_SM_ARCH || s->op == FO_SMEM)
            return;
        str_addc(out, '(');
        if (is_set(s->op))
            print_set(s, names, out);
        else
            print_name(s->op, s->imm, names, out);
        str_addc(out, ')');
    }
}

/* First step of the subtree that ends with step `last`. */
static int subtree(const struct formula *f, int last)
{
    for (int missing = 1; missing > 0; last--)
        missing += f->step[last].op < FO_ADD ? -1 : f->step[last].op == FO_NOT ? 0 : 1;
    return last + 1;
}

/* The subtree that ends with step `last`, in parentheses when it binds looser than `level`. */
static void print_tree(const struct formula *f, int last, enum level level, const struct formula_names *names,
                       struct str *out)
{
    const enum formula_op op = f->step[last].op;
    const enum level own = level_of(op);
    if (op < FO_ADD) {
        print_leaf(&f->step[last], names, out);
        return;
    }
    if (own < level)
        str_addc(out, '(');
    if (op == FO_NOT) {
        str_add(out, "not ");
        print_tree(f, last - 1, LEVEL_NOT, names, out);
    } else {
        const int left = subtree(f, last - 1) - 1;
        const bool call = own == LEVEL_CALL;
        if (call)
            str_printf(out, "%s(", op_text[op]);
        print_tree(f, left, call ? LEVEL_OR : own == LEVEL_COMPARE ? LEVEL_SUM : own, names, out);
        if (call)
            str_add(out, ", ");
        else
            str_printf(out, " %s ", op_text[op]);
        print_tree(f, last - 1, call ? LEVEL_OR : (enum level)(own + 1), names, out);
        if (call)
            str_addc(out, ')');
    }
    if (own < level)
        str_addc(out, ')');
}

void formula_print(const struct formula *f, const struct formula_names *names, struct str *out)
{
    if (f->n == 0)
        str_add(out, "true");
    else if (f->n < 0)
        str_add(out, "too long");
    else
        print_tree(f, f->n - 1, LEVEL_OR, names, out);
}

/* Steps first … last alone. */
static struct formula part_of(const struct formula *f, int first, int last)
{
    struct formula part = { .n = last - first + 1 };
    memcpy(part.step, &f->step[first], sizeof part.step[0] * (size_t)part.n);
    return part;
}

static bool repeats(const struct formula *f, int i)
{
    for (int k = 0; k < i; k++)
        if (f->step[k].op == f->step[i].op && f->step[k].imm == f->step[i].imm)
            return true;
    return false;
}

/* " (n = 500, sms = 4)": what the leaves of f are, each once. */
static void print_seen(const struct formula *f, const struct formula_names *names, const struct formula_env *env,
                       struct str *out)
{
    const char *before = " (";
    for (int i = 0; i < f->n; i++) {
        if (f->step[i].op >= FO_ADD || f->step[i].op == FO_CONST || repeats(f, i))
            continue;
        const struct formula leaf = part_of(f, i, i);
        str_add(out, before);
        print_leaf(&f->step[i], names, out);
        str_printf(out, " = %lld", (long long)formula_eval(&leaf, env));
        before = ", ";
    }
    if (*before == ',')
        str_addc(out, ')');
}

void formula_print_unmet(const struct formula *f, const struct formula_names *names, const struct formula_env *env,
                         struct str *out)
{
    if (formula_eval(f, env))
        return;
    if (f->n < 1) { /* it outgrew its room, and holds for nobody */
        formula_print(f, names, out);
        return;
    }
    if (f->step[f->n - 1].op != FO_AND) {
        print_tree(f, f->n - 1, LEVEL_AND, names, out);
        print_seen(f, names, env, out);
        return;
    }
    const int second = subtree(f, f->n - 2);
    const struct formula left = part_of(f, 0, second - 1), right = part_of(f, second, f->n - 2);
    formula_print_unmet(&left, names, env, out);
    if (!formula_eval(&left, env) && !formula_eval(&right, env))
        str_add(out, " and ");
    formula_print_unmet(&right, names, env, out);
}

void formula_json_text(const struct formula *f, const struct formula_names *names, struct json *j)
{
    struct str text = { 0 };
    if (f->n == 0) {
        json_null(j);
        return;
    }
    formula_print(f, names, &text);
    json_stringn(j, text.text != NULL ? text.text : "", text.length);
    j->out->failed = j->out->failed || text.failed;
    str_finish(&text);
}

void formula_json(const struct formula *f, const struct formula_names *names, struct json *j)
{
    json_array(j);
    for (int i = 0; i < f->n; i++) {
        const struct formula_step *s = &f->step[i];
        struct str text = { 0 };
        if (s->op == FO_CONST) {
            json_int(j, s->imm);
        } else if (s->op >= FO_ADD) {
            json_string(j, op_text[s->op]);
        } else {
            print_leaf(s, names, &text);
            if (text.failed)
                j->out->failed = true;
            else
                json_stringn(j, text.text, text.length);
        }
        str_finish(&text);
    }
    json_end(j);
}

/* ---- parsing -------------------------------------------------------------------------------------- */

struct parser {
    const char *text;
    int at; /* of the token */
    int end;
    const struct formula_names *names;
    struct formula *out;
    const char *error;
    int error_at, nesting;
};

static bool word_begin(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool digit(char c) { return c >= '0' && c <= '9'; }

static void next(struct parser *p)
{
    p->at = p->end;
    while (p->text[p->at] == ' ' || p->text[p->at] == '\t' || p->text[p->at] == '\n')
        p->at++;
    const char *s = p->text + p->at;
    int n = 0;
    if (word_begin(*s) || digit(*s))
        while (word_begin(s[n]) || digit(s[n]))
            n++;
    else if (*s != '\0')
        n = strchr("<>=!", *s) != NULL && s[1] == '=' ? 2 : 1;
    p->end = p->at + n;
}

static bool is(const struct parser *p, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(p->end - p->at) == n && memcmp(p->text + p->at, word, n) == 0;
}

static void fail(struct parser *p, int at, const char *message)
{
    if (p->error == NULL) {
        p->error = message;
        p->error_at = at;
    }
}

static void expect(struct parser *p, const char *token, const char *message)
{
    if (is(p, token))
        next(p);
    else
        fail(p, p->at, message);
}

static void emit(struct parser *p, struct formula_step s)
{
    if (p->out->n == FORMULA_MAX)
        fail(p, p->at, "the formula is too long");
    else
        p->out->step[p->out->n++] = s;
}

/* A run of digits, as a magnitude of at most `limit`. */
static uint64_t parse_digits(struct parser *p, uint64_t limit)
{
    uint64_t x = 0;
    for (int i = p->at; i < p->end; i++) {
        const unsigned d = (unsigned)(p->text[i] - '0');
        if (!digit(p->text[i])) {
            fail(p, p->at, "malformed number");
            break;
        }
        if (x > (limit - d) / 10) {
            fail(p, p->at, "the number is too large");
            break;
        }
        x = 10 * x + d;
    }
    next(p);
    return x;
}

/* A name of the kind that `op` refers to, or its number. */
static int64_t parse_name(struct parser *p, enum formula_op op)
{
    int count;
    const char *const *name = names_of(op, p->names, &count);
    const int at = p->at;
    if (digit(p->text[at])) {
        const uint64_t number = parse_digits(p, INT32_MAX);
        if (p->names != NULL && number >= (uint64_t)count)
            fail(p, at, "there is no such number");
        return (int64_t)number;
    }
    for (int i = 0; name != NULL && i < count; i++)
        if (is(p, name[i])) {
            next(p);
            return i;
        }
    fail(p, p->at,
         op == FO_SIZE       ? "unknown size"
         : op == FO_PARAM    ? "unknown param"
         : op == FO_RESIDENT ? "unknown kernel"
                             : "unknown array");
    return 0;
}

/* Arrays with commas between them, as a set. */
static int64_t parse_set(struct parser *p, enum formula_op op)
{
    uint64_t set = 0;
    for (;;) {
        const int at = p->at;
        const int64_t pointer = parse_name(p, op);
        if (pointer >= 64)
            fail(p, at, "there is no such number");
        if (p->error != NULL)
            return 0;
        set |= f_pointer(pointer);
        if (!is(p, ","))
            return (int64_t)set;
        next(p);
    }
}

static void parse_level(struct parser *p, enum level level);

/* `op` is the word that was just read; reads the rest of its call. */
static void parse_call(struct parser *p, enum formula_op op)
{
    struct formula_step s = { .op = op };
    if (op == FO_SMS || op == FO_SM_ARCH || op == FO_SMEM) {
        emit(p, s);
        return;
    }
    expect(p, "(", "expected '('");
    if (op >= FO_ADD) {
        parse_level(p, LEVEL_OR);
        expect(p, ",", "expected ','");
        parse_level(p, LEVEL_OR);
    } else {
        s.imm = is_set(op) ? parse_set(p, op) : parse_name(p, op);
    }
    emit(p, s);
    expect(p, ")", "expected ')'");
}

static void parse_word(struct parser *p)
{
    for (int op = 0; op < FO_COUNT; op++)
        if (op_text[op] != NULL && level_of((enum formula_op)op) == LEVEL_CALL && is(p, op_text[op])) {
            next(p);
            parse_call(p, (enum formula_op)op);
            return;
        }
    if (is(p, "size")) {
        next(p);
        parse_call(p, FO_SIZE);
    } else {
        emit(p, (struct formula_step){ .op = FO_SIZE, .imm = parse_name(p, FO_SIZE) });
    }
}

static void parse_primary(struct parser *p)
{
    const bool negative = is(p, "-");
    if (negative)
        next(p);
    if (digit(p->text[p->at])) {
        const uint64_t x = parse_digits(p, (uint64_t)INT64_MAX + negative);
        emit(p, (struct formula_step){ .op = FO_CONST, .imm = negative ? (int64_t)(0 - x) : (int64_t)x });
    } else if (negative) {
        fail(p, p->at, "expected a number after '-'");
    } else if (is(p, "(")) {
        next(p);
        parse_level(p, LEVEL_OR);
        expect(p, ")", "expected ')'");
    } else if (word_begin(p->text[p->at])) {
        parse_word(p);
    } else {
        fail(p, p->at, "expected a number, a name or '('");
    }
}

/* The binary operator at the token that belongs to `level`, or FO_COUNT. */
static enum formula_op operator_at(const struct parser *p, enum level level)
{
    for (int op = FO_ADD; op < FO_COUNT; op++)
        if (op != FO_NOT && level_of((enum formula_op)op) == level && is(p, op_text[op]))
            return (enum formula_op)op;
    return FO_COUNT;
}

static void parse_operators(struct parser *p, enum level level)
{
    parse_level(p, (enum level)(level + 1));
    for (int count = 0;; count++) {
        const enum formula_op op = operator_at(p, level);
        if (op == FO_COUNT || p->error != NULL)
            return;
        if (level == LEVEL_COMPARE && count > 0)
            fail(p, p->at, "comparisons do not chain");
        next(p);
        parse_level(p, (enum level)(level + 1));
        emit(p, (struct formula_step){ .op = op });
    }
}

static void parse_level(struct parser *p, enum level level)
{
    if (++p->nesting > NESTING_MAX * LEVEL_CALL)
        fail(p, p->at, "too deeply nested");
    if (p->error != NULL) {
        /* The first error ends everything. */
    } else if (level == LEVEL_CALL) {
        parse_primary(p);
    } else if (level == LEVEL_NOT && is(p, "not")) {
        next(p);
        parse_level(p, LEVEL_NOT);
        emit(p, (struct formula_step){ .op = FO_NOT });
    } else if (level == LEVEL_NOT) {
        parse_level(p, LEVEL_COMPARE);
    } else {
        parse_operators(p, level);
    }
    p->nesting--;
}

const char *formula_parse(const char *text, const struct formula_names *names, struct formula *out, int *at)
{
    struct parser p = { .text = text, .names = names, .out = out };
    memset(out, 0, sizeof *out);
    next(&p);
    if (is(&p, "true")) {
        next(&p);
        if (text[p.at] == '\0')
            return NULL;
        fail(&p, p.at, "'true' stands alone");
    } else {
        parse_level(&p, LEVEL_OR);
        if (text[p.at] != '\0')
            fail(&p, p.at, "expected an operator or the end");
        if (formula_depth(out) > FORMULA_STACK)
            fail(&p, 0, "too deeply nested");
    }
    if (p.error != NULL && at != NULL)
        *at = p.error_at;
    return p.error;
}
