/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c - scalars of the YAML tree read as names, integers, booleans, expressions. */
#include "frontend/frontend_impl.h"

/* What the language has in place of what others have. */
#define ELEMENTWISE "a value per element is a map: kind: map, and a value for each output"
#define PRODUCT     "a large matrix product is for a BLAS, such as cuBLAS; a small one is a map: sum(f, a * b)"
#define WEIGHTS                                                                                                        \
    "weights are numbers or params in the value: 0.25 * x[-1] + 0.5 * x + 0.25 * x[1]; or an input w: f32[p] beside "  \
    "off: i32[p] in gather(x, off, k, add, k * w)"
#define NORMALISE                                                                                                      \
    "normalising is a reduce whose output per element uses the result: operator: logsumexp, over: n, and "             \
    "y: {type: \"f32[m, n]\", value: exp(x - r.max) / r.sum}"
#define BINS "a histogram is a reduce by an index: map: 1, operator: add, by: x, and outputs: {many: \"u32[256]\"}"
static const struct {
    const char *place, *words, *hint;
} ways_out[] = {
    { "kind", "elementwise pointwise transform", ELEMENTWISE },
    { "kind", "softmax log_softmax layernorm layer_norm rmsnorm rms_norm normalize normalise norm", NORMALISE },
    { "kind", "matmul gemm", PRODUCT },
    { "kind", "convolution conv", "a convolution is a stencil; " WEIGHTS },
    { "kind", "filter select compact partition where nonzero",
      "a map keeps some elements: y: {type: \"f32[n]\", where: x > 0, value: x}, many: {type: i64, count: y}" },
    { "kind", "unique", "a map keeps the first of equal neighbours: where: \"index(n) == 0 or x != x[-1]\"" },
    { "kind", "run_length rle reduce_by_key",
      "runs of equal keys are segments of a scan: segments: {starts: \"key != key[-1]\"}, and where: last" },
    { "kind", "sort argsort",
      "sorting is stages that count digits and write keys at: places, as specs/apps/radix_sort.yaml" },
    { "kind", "histogram bincount", BINS },
    { "kind", "scatter",
      "a map may say where each value goes, and how values meet there: kind: map, and hist: {type: \"u32[256]\", "
      "at: x, value: 1, combine: add, initial: 0}" },
    { "kind", "gather lookup take", "a map reads at computed places: value: \"at(x, i)\"" },
    { "kind", "transpose", "a map may say where each value goes: at: [index(n), index(m)]" },
    { "kind", "cumsum prefix_sum", "running sums are a scan: kind: scan, operator: add" },
    { "kind", "sum add max min", "one result of all elements is a reduce: kind: reduce, map: x, operator: add" },
    { "operator", "mean average",
      "the output divides the sum: operator: add, and mean: {type: f32, value: r / f32(n)}" },
    { "operator", "count", "the number of elements is the sum of ones: map: 1, operator: add" },
    { "a spec", "weights", WEIGHTS },
    { "a spec", "keys",
      "by: KEY combines equal keys wherever they are; equal keys that follow each other are a segment" },
    { "a spec", "key bins group_by", BINS },
    { "iterate", "until check_every",
      "a loop inside a stage has a fixed number of steps; a loop until a condition is the iterate of the program, "
      "beside "
      "`stages`" },
    { "segments", "keys",
      "sort by key and give offsets, where each run of equal keys begins, and the end; a scan also takes flags, which "
      "are 1 where the key is another than before" },
};

static bool among(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; n && (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return true;
    return false;
}

const char *way_out(const char *place, const char *word)
{
    for (size_t i = 0; i < sizeof ways_out / sizeof *ways_out; i++)
        if (!strcmp(ways_out[i].place, place) && among(ways_out[i].words, word))
            return ways_out[i].hint;
    return strcmp(place, "operator") && strcmp(place, "a spec") ? NULL : way_out("kind", word);
}

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
