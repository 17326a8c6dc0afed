/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_root.c - the trees of stages that others have become part of.
 *
 *   map in its reader         the reader's, where a let has the name and the value of each output of the map
 *   reduction in its writer   the writer's, with the `reductions` and outputs of the reduction
 *   map in its writer         the writer's, with the outputs of the map, whose values have those of the writer in them
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

/* The name that has a value in each of the two, and not the same one; NULL: there is none. */
static const char *two_values(const struct ynode *x, const struct ynode *y)
{
    for (int i = 0; x && y && i < y->count; i++) {
        const struct ynode *other = ynode_get(x, y->pair[i].key->text);
        if (other && other != y->pair[i].value)
            return y->pair[i].key->text;
    }
    return NULL;
}

/* The let or operator that is another one in each of the two trees; NULL: there is none. */
static const char *two_meanings(const struct ynode *x, const struct ynode *y)
{
    const char *let = two_values(ynode_get(x, "let"), ynode_get(y, "let"));
    return let ? let : two_values(ynode_get(x, "operators"), ynode_get(y, "operators"));
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
    *clash = two_meanings(map->root, reader->root);
    return *clash ? NULL : pairs_of_both(a, pairs_of_both(a, theirs, made, NULL), own, NULL);
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

/* The pairs that both have under the key, if any. */
static void put_both(struct arena *a, struct ynode *root, const char *key, const struct part *first,
                     const struct part *second, const struct problem *but)
{
    struct ynode *both = pairs_of_both(a, ynode_get(first->root, key), ynode_get(second->root, key), but);
    if (both && both->count)
        node_put(root, node_scalar(a, key, both->at), both);
}

/* What a writer has with a part that adds outputs. */
static void put_more(const struct stages_builder *sb, struct ynode *root, const struct part *writer,
                     const struct part *part, struct ynode *outputs)
{
    static const char *const both[] = { "operators", "let", "params", "assume" };
    struct arena *a = sb->b->a;
    struct ynode *inputs = inputs_of_both(sb, writer, part);
    node_put(root, node_scalar(a, "inputs", inputs->at), inputs);
    node_put(root, node_scalar(a, "outputs", outputs->at),
             pairs_of_both(a, ynode_get(writer->root, "outputs"), outputs, NULL));
    for (int i = 0; i < 4; i++)
        put_both(a, root, both[i], writer, part, NULL);
}

static bool is_merged(const char *key)
{
    static const char *const keys[] = { "inputs", "params", "let", "assume", "operators" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i], key))
            return true;
    return false;
}

/* What of a stage's tree does not change, with each map that goes without saying as long as there is one input. */
static struct ynode *own_keys(struct arena *a, const struct part *part, const char *but)
{
    const struct ynode *own = part->problem->kind == KIND_STENCIL ? part->root : with_map(a, part->root, part->problem);
    struct ynode *root = node_mapping(a, own->at, own->count + 6);
    for (int i = 0; i < own->count; i++) {
        const char *key = own->pair[i].key->text;
        struct ynode *value = own->pair[i].value;
        if (!is_merged(key) && strcmp(key, but) != 0)
            node_put(root, own->pair[i].key,
                     !strcmp(key, "reductions") || !strcmp(key, "scans") ? with_maps(a, value, part->problem) : value);
    }
    return root;
}

const struct ynode *fused_root(struct stages_builder *sb, const struct part *reader, const struct part *map,
                               const char **clash)
{
    struct arena *a = sb->b->a;
    struct ynode *root = own_keys(a, reader, ""), *lets = lets_of_both(a, map, reader, clash);
    if (!lets)
        return NULL;
    struct ynode *inputs = inputs_of_both(sb, map, reader);
    node_put(root, node_scalar(a, "inputs", inputs->at), inputs);
    node_put(root, node_scalar(a, "let", lets->at), lets);
    put_both(a, root, "operators", reader, map, NULL);
    put_both(a, root, "params", reader, map, NULL);
    put_both(a, root, "assume", reader, map, map->problem);
    return root;
}

/* ---- a reduction in its writer ----------------------------------------------------------------------------------- */

/* The result, converted to the output's type: its value where it has none. */
static struct ynode *with_value(struct arena *a, const struct ynode *output, const struct prog_array *array)
{
    if (output->kind == Y_MAPPING && (ynode_get(output, "value") || !ynode_get(output, "type")))
        return writable(output);
    struct ynode *n = node_mapping(a, output->at, 2),
                 *type = output->kind == Y_MAPPING ? writable(ynode_get(output, "type")) : writable(output);
    node_put(n, node_scalar(a, "type", output->at), type);
    node_put(n, node_scalar(a, "value", output->at),
             converted(a, array->field[0].type, node_scalar(a, "r", output->at)));
    return n;
}

/* `map` and `operator` of a reduction, as its one entry r. */
static struct ynode *as_entry(struct arena *a, const struct ynode *root)
{
    static const char *const keys[] = { "map", "operator", "accumulator" };
    struct ynode *all = node_mapping(a, root->at, 1), *entry = node_mapping(a, root->at, 3);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct ynode *value = ynode_get(root, keys[i]);
        if (value)
            node_put(entry, node_scalar(a, keys[i], value->at), writable(value));
    }
    node_put(all, node_scalar(a, "r", root->at), entry);
    return all;
}

const struct ynode *joined_root(struct stages_builder *sb, const struct part *writer, const struct part *reduction,
                                const char **clash)
{
    struct arena *a = sb->b->a;
    const struct ynode *more = with_map(a, reduction->root, reduction->problem),
                       *entries = ynode_get(more, "reductions"), *outputs = ynode_get(more, "outputs");
    struct ynode *root = node_mapping(a, writer->root->at, writer->root->count + 6),
                 *added = node_mapping(a, outputs->at, outputs->count);
    *clash = two_meanings(writer->root, reduction->root);
    if (*clash)
        return NULL;
    for (int i = 0; i < outputs->count; i++)
        node_put(added, outputs->pair[i].key,
                 entries ? outputs->pair[i].value
                         : with_value(a, outputs->pair[i].value, &reduction->problem->output[i].array));
    entries = entries ? with_maps(a, entries, reduction->problem) : as_entry(a, more);
    for (int i = 0; i < writer->root->count; i++) {
        const char *key = writer->root->pair[i].key->text;
        if (!is_merged(key) && strcmp(key, "reductions") && strcmp(key, "outputs"))
            node_put(root, writer->root->pair[i].key, writer->root->pair[i].value);
    }
    node_put(root, node_scalar(a, "reductions", entries->at),
             pairs_of_both(a, ynode_get(writer->root, "reductions"), entries, NULL));
    put_more(sb, root, writer, reduction, added);
    return root;
}

/* ---- a map in the reduction whose results it reads ---------------------------------------------------------------- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool is_part(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

/* What output `number` of the writer is, as text; NULL: another thing than a value. */
static const char *text_of_output(struct arena *a, const struct part *writer, int number)
{
    const struct output *o = &writer->problem->output[number];
    const struct ynode *output = ynode_get(ynode_get(writer->root, "outputs"), o->array.name);
    const struct ynode *value = ynode_get(with_value(a, output, &o->array), "value");
    return value && value->kind == Y_SCALAR ? arena_printf(a, "%s(%s)", ty_name(o->array.field[0].type), value->text)
                                            : NULL;
}

enum { TEXT_MAX = 2000 }; /* of a value in which those of others stand, maybe several times */

/* The text with the values of the writer's outputs in place of their names. */
static struct ynode *with_results(struct arena *a, const struct ynode *value, const struct part *writer)
{
    const char *done = "", *at = value->text;
    while (*at) {
        const char *from = at;
        int number = -1;
        if (!is_letter(*at))
            at++;
        else
            while (is_part(*at))
                at++;
        const bool field = from > value->text && (from[-1] == '.' || is_part(from[-1]));
        for (int i = 0; !field && i < writer->problem->noutputs; i++)
            if (strlen(writer->problem->output[i].array.name) == (size_t)(at - from) &&
                !strncmp(writer->problem->output[i].array.name, from, (size_t)(at - from)))
                number = i;
        const char *text = number >= 0 ? text_of_output(a, writer, number) : NULL;
        done = text ? arena_printf(a, "%s%s", done, text) : arena_printf(a, "%s%.*s", done, (int)(at - from), from);
    }
    return node_scalar(a, done, value->at);
}

const struct ynode *valued_root(struct stages_builder *sb, const struct part *writer, const struct part *map,
                                const char **clash)
{
    struct arena *a = sb->b->a;
    const struct ynode *outputs = ynode_get(map->root, "outputs");
    struct ynode *root = own_keys(a, writer, "outputs"), *added = node_mapping(a, outputs->at, outputs->count);
    *clash = two_meanings(writer->root, map->root);
    if (*clash)
        return NULL;
    for (int i = 0; i < outputs->count; i++) {
        const struct ynode *output = outputs->pair[i].value;
        struct ynode *own = node_mapping(a, output->at, output->count);
        for (int k = 0; k < output->count; k++) {
            const bool value = !strcmp(output->pair[k].key->text, "value");
            struct ynode *node = output->pair[k].value;
            node_put(own, output->pair[k].key, value ? with_results(a, node, writer) : node);
        }
        if (strlen(ynode_get(own, "value")->text) > TEXT_MAX)
            return NULL;
        node_put(added, outputs->pair[i].key, own);
    }
    put_more(sb, root, writer, map, added);
    return root;
}
