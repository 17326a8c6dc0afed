/* SPDX-License-Identifier: Apache-2.0 */
/* mention.c - which names a part of a spec uses. */
#include "stages_impl.h"

int names_find(const struct names *of, const char *name)
{
    for (int i = 0; i < of->n; i++)
        if (!strcmp(of->name[i], name))
            return i;
    return -1;
}

void names_add(struct names *of, const char *name, struct span at)
{
    int n = of->n;
    if (names_find(of, name) >= 0)
        return;
    ARENA_PUSH(of->arena, of->at, n, of->cap_at, at);
    ARENA_PUSH(of->arena, of->name, of->n, of->cap, name);
}

static void collect_scalar(struct names *of, const struct ynode *n)
{
    struct lexer l = { .arena = of->arena, .source = source_of(n) };
    bool field = false; /* after a dot */
    for (struct token t = lex_next(&l); t.kind != TOK_END; t = lex_next(&l)) {
        if (t.kind == TOK_NAME && !field)
            names_add(of, t.text, ynode_span(n, t.from, t.to));
        field = t.kind == TOK_OP && !strcmp(t.text, ".");
    }
}

/* The lets of an operator are names of its own. */
static bool collect_operator(struct names *of, const struct ynode *n)
{
    const struct ynode *lets = n->kind == Y_MAPPING && ynode_get(n, "combine") ? ynode_get(n, "let") : NULL;
    struct names all = { .arena = of->arena };
    if (!lets || lets->kind != Y_MAPPING)
        return false;
    for (int i = 0; i < n->count; i++)
        names_collect(&all, n->pair[i].value);
    for (int i = 0; i < all.n; i++)
        if (!ynode_get(lets, all.name[i]))
            names_add(of, all.name[i], all.at[i]);
    return true;
}

void names_collect(struct names *of, const struct ynode *n)
{
    if (collect_operator(of, n))
        return;
    if (n->kind == Y_SCALAR)
        collect_scalar(of, n);
    for (int i = 0; n->kind == Y_SEQUENCE && i < n->count; i++)
        names_collect(of, n->item[i]);
    for (int i = 0; n->kind == Y_MAPPING && i < n->count; i++) {
        const struct ynode *value = n->pair[i].value;
        for (int k = 0; !strcmp(n->pair[i].key->text, "feedback") && value->kind == Y_MAPPING && k < value->count; k++)
            names_add(of, value->pair[k].key->text, value->pair[k].key->at);
        names_collect(of, value);
    }
}
