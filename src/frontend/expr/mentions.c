/* SPDX-License-Identifier: Apache-2.0 */
/* mentions.c - what the expressions of a spec do with each name, as far as their tokens tell: roles of inputs and the
 * iteration space follow from that, before expressions are typed. */
#include "frontend/frontend_impl.h"

void mention(struct builder *b, const char *name, unsigned as)
{
    int i = 0;
    while (i < b->nmentions && strcmp(b->mention[i].name, name) != 0)
        i++;
    if (i == b->nmentions)
        ARENA_PUSH(b->a, b->mention, b->nmentions, b->cap_mentions, ((struct mention){ name, 0 }));
    b->mention[i].as |= as;
}

unsigned mentioned(const struct builder *b, const char *name)
{
    for (int i = 0; i < b->nmentions; i++)
        if (!strcmp(b->mention[i].name, name))
            return b->mention[i].as;
    return 0;
}

/* Would other languages go over the dimension that is the first argument? */
static bool folds_elsewhere(const char *function)
{
    static const char *const names[] = { "min", "max", "argmin", "argmax", "mean", "prod", "amin", "amax" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], function))
            return true;
    return false;
}

/* A name as the tokens before it, the nearest first, show it. */
static unsigned mentioned_as(const char *const *before)
{
    if (!strcmp(before[0], "("))
        return !strcmp(before[1], "at")       ? AS_TABLE
               : !strcmp(before[1], "gather") ? AS_GATHERED | AS_VALUE
               : sum_is(before[1])            ? AS_SUMMED | AS_VALUE
               : folds_elsewhere(before[1])   ? AS_FOLDED | AS_VALUE
                                              : AS_VALUE;
    const bool second = !strcmp(before[0], ",") && !strcmp(before[2], "(");
    return second && !strcmp(before[3], "gather") ? AS_OFFSETS : AS_VALUE;
}

static void collect_mentions(struct builder *b, const struct ynode *n)
{
    for (int i = 0; n->kind != Y_SCALAR && i < n->count; i++)
        collect_mentions(b, n->kind == Y_MAPPING ? n->pair[i].value : n->item[i]);
    if (n->kind != Y_SCALAR)
        return;
    struct lexer l = { .arena = b->a, .source = source_of(n) };
    const char *before[] = { "", "", "", "" };
    for (struct token t = lex_next(&l); t.kind != TOK_END; t = lex_next(&l)) {
        if (t.kind == TOK_NAME && strcmp(before[0], ".") != 0)
            mention(b, t.text, mentioned_as(before));
        memmove(&before[1], before, sizeof before - sizeof *before);
        before[0] = t.kind == TOK_NAME || t.kind == TOK_OP ? t.text : "";
    }
}

void find_mentions(struct builder *b)
{
    static const char *const places[] = { "by", "let", "map", "outputs", "reductions", "scans", "segments" };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct ynode *n = ynode_get(b->root, places[i]);
        if (n)
            collect_mentions(b, n);
    }
    const struct ynode *iterate = schema_get(b->root, ST_TOP, "iterate");
    const struct ynode *fed = iterate ? schema_get(iterate, ST_ITERATE, "feedback") : NULL;
    for (int i = 0; fed && i < fed->count; i++)
        mention(b, fed->pair[i].key->text, AS_VALUE);
}
