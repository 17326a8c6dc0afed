/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_root.c - the tree of a stage that a map has become part of: the reader's, where a let has the name and the value of
 * each output of the map.
 */
#include "stages_impl.h"

static struct ynode *writable(const struct ynode *n) { return (struct ynode *)(uintptr_t)n; }

/* f32(VALUE): what would have been stored.  Each byte of the value keeps its place. */
static struct ynode *converted(struct arena *a, enum ty type, const struct ynode *value)
{
    struct ynode *n = node_scalar(a, arena_printf(a, "%s(%s)", ty_name(type), value->text), value->at);
    const uint32_t before = (uint32_t)strlen(ty_name(type)) + 1;
    uint32_t *where = arena_new(a, uint32_t, n->length + 1);
    for (uint32_t i = 0; i <= n->length; i++)
        where[i] = ynode_span(value, i < before ? 0 : i - before, value->length).begin;
    n->where = where;
    return n;
}

static bool is_output(const struct problem *map, const char *name)
{
    for (int i = 0; i < map->noutputs; i++)
        if (!strcmp(map->output[i].array.name, name))
            return true;
    return false;
}

/* The arrays of both, in the order of the whole. */
static struct ynode *inputs_of_both(const struct stages_builder *sb, const struct part *map, const struct part *reader)
{
    const struct ynode *own = ynode_get(reader->root, "inputs"), *more = ynode_get(map->root, "inputs");
    struct ynode *n = node_mapping(sb->b->a, own->at, sb->nmade);
    for (int i = 0; i < sb->nmade; i++) {
        const char *name = sb->made[i].name;
        const struct ynode *type = ynode_get(own, name);
        type = type ? type : ynode_get(more, name);
        if (type && !is_output(map->problem, name))
            node_put(n, node_scalar(sb->b->a, name, sb->made[i].at), writable(type));
    }
    return n;
}

/* The pairs of both; those of `first` where both have a key.  `but`: without its outputs; may be NULL. */
static struct ynode *pairs_of_both(struct arena *a, const struct ynode *first, const struct ynode *second,
                                   const struct problem *but)
{
    const struct ynode *const from[] = { first, second };
    const struct ynode *some = first ? first : second;
    struct ynode *n =
        some ? node_mapping(a, some->at, (first ? first->count : 0) + (second ? second->count : 0)) : NULL;
    for (int k = 0; k < 2; k++)
        for (int i = 0; from[k] && i < from[k]->count; i++) {
            const struct ypair *pair = &from[k]->pair[i];
            if (!ynode_get(n, pair->key->text) && !(but && is_output(but, pair->key->text)))
                node_put(n, pair->key, pair->value);
        }
    return n;
}

/* The lets of the map, then those that its outputs become, then the reader's.  NULL: a name has two values. */
static struct ynode *lets_of_both(struct arena *a, const struct part *map, const struct part *reader,
                                  const char **clash)
{
    const struct ynode *theirs = ynode_get(map->root, "let"), *own = ynode_get(reader->root, "let"),
                       *outputs = ynode_get(map->root, "outputs");
    struct ynode *made = node_mapping(a, outputs->at, outputs->count);
    for (int i = 0; i < map->problem->noutputs; i++) {
        const struct ypair *pair = &outputs->pair[i];
        node_put(made, pair->key,
                 converted(a, map->problem->output[i].array.field[0].type, ynode_get(pair->value, "value")));
    }
    for (int i = 0; theirs && own && i < own->count; i++) {
        const struct ynode *other = ynode_get(theirs, own->pair[i].key->text);
        if (other && other != own->pair[i].value) {
            *clash = own->pair[i].key->text;
            return NULL;
        }
    }
    return pairs_of_both(a, pairs_of_both(a, theirs, made, NULL), own, NULL);
}

/* The entry with a map, where it has none and the problem reads a single input. */
static struct ynode *with_map(struct arena *a, const struct ynode *entry, const struct problem *p)
{
    const char *only = NULL;
    int n = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (p->input[i].role == ROLE_ELEMENT) {
            only = p->input[i].array.name;
            n++;
        }
    if (n != 1 || entry->kind != Y_MAPPING || ynode_get(entry, "map") || !ynode_get(entry, "operator"))
        return writable(entry);
    struct ynode *more = node_mapping(a, entry->at, entry->count + 1);
    for (int i = 0; i < entry->count; i++)
        node_put(more, entry->pair[i].key, entry->pair[i].value);
    node_put(more, node_scalar(a, "map", entry->at), node_scalar(a, only, entry->at));
    return more;
}

static struct ynode *with_maps(struct arena *a, const struct ynode *entries, const struct problem *p)
{
    struct ynode *n = node_mapping(a, entries->at, entries->count);
    for (int i = 0; i < entries->count; i++)
        node_put(n, entries->pair[i].key, with_map(a, entries->pair[i].value, p));
    return n;
}

static bool is_merged(const char *key)
{
    static const char *const keys[] = { "inputs", "params", "let", "assume" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i], key))
            return true;
    return false;
}

const struct ynode *fused_root(struct stages_builder *sb, const struct part *map, const struct part *reader,
                               const char **clash)
{
    struct arena *a = sb->b->a;
    const struct ynode *own =
        reader->problem->kind == KIND_STENCIL ? reader->root : with_map(a, reader->root, reader->problem);
    struct ynode *root = node_mapping(a, own->at, own->count + 4), *lets = lets_of_both(a, map, reader, clash);
    if (!lets)
        return NULL;
    for (int i = 0; i < own->count; i++) {
        const char *key = own->pair[i].key->text;
        struct ynode *value = own->pair[i].value;
        if (!is_merged(key))
            node_put(root, own->pair[i].key,
                     !strcmp(key, "reductions") || !strcmp(key, "scans") ? with_maps(a, value, reader->problem)
                                                                         : value);
    }
    struct ynode *inputs = inputs_of_both(sb, map, reader);
    struct ynode *params = pairs_of_both(a, ynode_get(reader->root, "params"), ynode_get(map->root, "params"), NULL);
    struct ynode *facts =
        pairs_of_both(a, ynode_get(reader->root, "assume"), ynode_get(map->root, "assume"), map->problem);
    node_put(root, node_scalar(a, "inputs", inputs->at), inputs);
    node_put(root, node_scalar(a, "let", lets->at), lets);
    if (params)
        node_put(root, node_scalar(a, "params", params->at), params);
    if (facts)
        node_put(root, node_scalar(a, "assume", facts->at), facts);
    return root;
}
