/* SPDX-License-Identifier: Apache-2.0 */
/* kept.c - a `where` that needs a result is a stage of its own.
 *
 * A place among the kept elements is a prefix sum over conditions.  Where these read the state of a scan, or the result
 * of a reduce, they are known only after the first pass.  So the spec, or the stage, is split:
 *
 *   first    all keys but `where`, `from` and `count`; per such output the condition (bool) and the value, per element
 *   second   a scan without operator that selects by the conditions; a value that is an input or an index is read there
 *
 * The trees are made of the user's nodes, so messages have their places.
 */
#include "stages_impl.h"

static const char condition_prefix[] = "ptxgen_where_", value_prefix[] = KEPT_VALUE;

static struct ynode *writable(const struct ynode *n) { return (struct ynode *)(uintptr_t)n; }

static const char *text_of(const struct ynode *n) { return n && n->kind == Y_SCALAR ? n->text : ""; }

static const struct ynode *mapping_of(const struct ynode *n, const char *key)
{
    const struct ynode *m = n && n->kind == Y_MAPPING ? ynode_get(n, key) : NULL;
    return m && m->kind == Y_MAPPING ? m : NULL;
}

static void add_keys(struct names *to, const struct ynode *mapping)
{
    for (int i = 0; mapping && i < mapping->count; i++)
        names_add(to, mapping->pair[i].key->text, mapping->pair[i].key->at);
}

/* ---- which specs these are --------------------------------------------------------------------------------------- */

/* A spec or stage, and what is known of its names. */
struct splitting {
    struct arena *a;
    const struct ynode *whole, *own; /* whole: the spec that has the stage; the same without stages */
    struct names results;            /* of its operators: they hide whatever else has their names, as in `value` */
    struct ynode *stage[2];
};

static bool is_scan(const struct splitting *s) { return !strcmp(text_of(ynode_get(s->own, "kind")), "scan"); }

static bool is_kept(const struct ynode *output)
{
    return output->kind == Y_MAPPING && ynode_get(output, "where") && !ynode_get(output, "at");
}

static void collect_names(struct splitting *s)
{
    s->results.arena = s->a;
    add_keys(&s->results, mapping_of(s->own, is_scan(s) ? "scans" : "reductions"));
    if (ynode_get(s->own, "operator"))
        names_add(&s->results, is_scan(s) ? "s" : "r", s->own->at);
}

static bool mentions_result(const struct splitting *s, const struct ynode *n)
{
    struct names used = { .arena = s->a };
    bool does = false;
    names_collect(&used, n);
    for (int i = 0; i < used.n; i++)
        does |= names_find(&s->results, used.name[i]) >= 0;
    return does;
}

static bool needs_splitting(const struct splitting *s)
{
    const struct ynode *outputs = mapping_of(s->own, "outputs"), *segments = mapping_of(s->own, "segments");
    const bool given = segments && (ynode_get(segments, "flags") || ynode_get(segments, "offsets"));
    const bool scan = is_scan(s), reduce = !strcmp(text_of(ynode_get(s->own, "kind")), "reduce");
    bool needs = false;
    if ((!scan && !reduce) || ynode_get(s->own, "by"))
        return false;
    for (int i = 0; outputs && i < outputs->count; i++) {
        const struct ynode *output = outputs->pair[i].value;
        needs |= is_kept(output) && (reduce || given || mentions_result(s, ynode_get(output, "where")));
    }
    return needs;
}

/* ---- the first stage --------------------------------------------------------------------------------------------- */

/* The dimensions of an output, as the user wrote them. */
static const char *shape_of(const struct splitting *s, const struct ynode *output)
{
    const struct ynode *shape = ynode_get(output, "shape");
    const char *text = strchr(text_of(ynode_get(output, "type")), '[');
    if (text || !shape || shape->kind != Y_SEQUENCE)
        return text ? text : "";
    const char *all = "[";
    for (int i = 0; i < shape->count; i++)
        all = arena_printf(s->a, "%s%s%s", all, i ? ", " : "", text_of(shape->item[i]));
    return arena_printf(s->a, "%s]", all);
}

static struct ynode *scalar_at(const struct splitting *s, const char *text, const struct ynode *at)
{
    return node_scalar(s->a, text, at->at);
}

/* The number of the first output with the same condition and shape: they share an array, and a count. */
static int condition_of(const struct splitting *s, const struct ynode *outputs, int number)
{
    const struct ynode *own = outputs->pair[number].value, *where = ynode_get(own, "where");
    for (int i = 0; i < number; i++) {
        const struct ynode *other = outputs->pair[i].value;
        if (is_kept(other) && *text_of(where) && !strcmp(text_of(ynode_get(other, "where")), text_of(where)) &&
            !strcmp(shape_of(s, other), shape_of(s, own)))
            return i;
    }
    return number;
}

/* Between offsets, what belongs to no segment is not written; so all conditions are false first. */
static struct ynode *first_condition(const struct splitting *s, const struct ynode *key, const struct ynode *output)
{
    const struct ynode *segments = mapping_of(s->own, "segments");
    struct ynode *n = node_mapping(s->a, key->at, 4);
    const char *shape = shape_of(s, output), *dim = shape + strspn(shape, "[ ");
    node_put(n, scalar_at(s, "type", key), scalar_at(s, arena_printf(s->a, "bool%s", shape), key));
    node_put(n, scalar_at(s, "value", key), writable(ynode_get(output, "where")));
    if (segments && ynode_get(segments, "offsets")) {
        const char *index = arena_printf(s->a, "index(%.*s)", (int)strcspn(dim, " ,]"), dim);
        node_put(n, scalar_at(s, "at", key), scalar_at(s, index, key));
        node_put(n, scalar_at(s, "initial", key), scalar_at(s, "false", key));
    }
    return n;
}

static struct ynode *first_value(const struct splitting *s, const struct ynode *key, const struct ynode *output)
{
    struct ynode *n = node_mapping(s->a, key->at, 3);
    static const char *const keys[] = { "type", "shape", "value" };
    for (int k = 0; k < 3; k++)
        if (ynode_get(output, keys[k]))
            node_put(n, scalar_at(s, keys[k], key), writable(ynode_get(output, keys[k])));
    return n;
}

/* A value that the second stage reads by itself: an input, or index(…). */
static bool reads_itself(const struct splitting *s, const struct ynode *output)
{
    const struct ynode *value = ynode_get(output, "value");
    const char *text = text_of(value);
    const size_t n = strlen(text),
                 inner = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    const bool index = !strncmp(text, "index(", 6) && strcspn(text, ")") == n - 1,
               hidden = (mapping_of(s->own, "let") && ynode_get(mapping_of(s->own, "let"), text)) ||
                        (mapping_of(s->whole, "let") && ynode_get(mapping_of(s->whole, "let"), text));
    return index || (n && inner == n && !hidden && mapping_of(s->whole, "inputs") &&
                     ynode_get(mapping_of(s->whole, "inputs"), text) && names_find(&s->results, text) < 0);
}

static struct ynode *first_outputs(const struct splitting *s, const struct ynode *outputs)
{
    struct ynode *n = node_mapping(s->a, outputs->at, 2 * outputs->count);
    for (int i = 0; i < outputs->count; i++) {
        struct ynode *key = outputs->pair[i].key, *output = outputs->pair[i].value;
        if (output_counts(output))
            continue;
        if (!is_kept(output)) {
            node_put(n, key, output);
            continue;
        }
        if (condition_of(s, outputs, i) == i) {
            struct ynode *name = scalar_at(s, arena_printf(s->a, "%s%s", condition_prefix, key->text), key);
            node_put(n, name, first_condition(s, key, output));
        }
        if (!reads_itself(s, output))
            node_put(n, scalar_at(s, arena_printf(s->a, "%s%s", value_prefix, key->text), key),
                     first_value(s, key, output));
    }
    return n;
}

static struct ynode *first_stage(const struct splitting *s)
{
    struct ynode *n = node_mapping(s->a, s->own->at, s->own->count);
    for (int i = 0; i < s->own->count; i++) {
        const struct ypair *pair = &s->own->pair[i];
        node_put(n, pair->key, strcmp(pair->key->text, "outputs") ? pair->value : first_outputs(s, pair->value));
    }
    return n;
}

/* ---- the second -------------------------------------------------------------------------------------------------- */

static struct ynode *second_value(const struct splitting *s, const struct ynode *key, const struct ynode *output)
{
    const struct ynode *type = ynode_get(output, "type");
    const char *from = arena_printf(s->a, "%s%s", value_prefix, key->text);
    if (reads_itself(s, output))
        return writable(ynode_get(output, "value"));
    if (!type || type->kind != Y_MAPPING)
        return scalar_at(s, from, key);
    struct ynode *fields = node_mapping(s->a, type->at, type->count);
    for (int f = 0; f < type->count; f++) {
        struct ynode *name = type->pair[f].key;
        node_put(fields, name, scalar_at(s, arena_printf(s->a, "%s.%s", from, name->text), name));
    }
    return fields;
}

static struct ynode *second_outputs(const struct splitting *s, const struct ynode *outputs)
{
    struct ynode *n = node_mapping(s->a, outputs->at, outputs->count);
    for (int i = 0; i < outputs->count; i++) {
        struct ynode *key = outputs->pair[i].key, *output = outputs->pair[i].value;
        if (output_counts(output))
            node_put(n, key, output);
        if (output_counts(output) || !is_kept(output))
            continue;
        const char *condition = outputs->pair[condition_of(s, outputs, i)].key->text;
        struct ynode *kept = node_mapping(s->a, output->at, output->count + 1);
        for (int k = 0; k < output->count; k++) {
            struct ynode *name = output->pair[k].key;
            if (!strcmp(name->text, "where"))
                node_put(kept, name, scalar_at(s, arena_printf(s->a, "%s%s", condition_prefix, condition), name));
            else if (strcmp(name->text, "value") != 0)
                node_put(kept, name, output->pair[k].value);
        }
        node_put(kept, scalar_at(s, "value", key), second_value(s, key, output));
        node_put(n, key, kept);
    }
    return n;
}

/* All dimensions of an output with `where`, which has them all in their order; `over` takes only those with names. */
static struct ynode *all_dimensions(const struct splitting *s, const struct ynode *outputs, bool constants)
{
    struct ynode *n = arena_new(s->a, struct ynode, 1);
    const char *shape = "";
    for (int i = 0; i < outputs->count && !*shape; i++)
        if (is_kept(outputs->pair[i].value))
            shape = shape_of(s, outputs->pair[i].value);
    *n = (struct ynode){ .kind = Y_SEQUENCE,
                         .at = outputs->at,
                         .item = arena_new(s->a, struct ynode *, strlen(shape) + 1) };
    while (*shape && *shape != ']') {
        shape += strspn(shape, "[ ,");
        const size_t length = strcspn(shape, " ,]");
        if (length && (constants || *shape < '0' || *shape > '9'))
            n->item[n->count++] = scalar_at(s, arena_printf(s->a, "%.*s", (int)length, shape), outputs);
        shape += length + strspn(shape + length, " ");
    }
    return n;
}

static bool reads_an_input(const struct splitting *s, const struct ynode *outputs)
{
    bool reads = false;
    for (int i = 0; i < outputs->count; i++)
        reads |= is_kept(outputs->pair[i].value) && reads_itself(s, outputs->pair[i].value);
    return reads;
}

static struct ynode *second_stage(const struct splitting *s)
{
    static const char *const same[] = { "over", "direction", "space", "fuse" };
    const struct ynode *outputs = ynode_get(s->own, "outputs");
    struct ynode *n = node_mapping(s->a, s->own->at, 8);
    node_put(n, scalar_at(s, "kind", s->own), scalar_at(s, "scan", s->own));
    for (int k = 0; k < 4; k++)
        if (ynode_get(s->own, same[k]))
            node_put(n, scalar_at(s, same[k], s->own), writable(ynode_get(s->own, same[k])));
    if (!is_scan(s) && !ynode_get(s->own, "over"))
        node_put(n, scalar_at(s, "over", outputs), all_dimensions(s, outputs, false));
    if (!ynode_get(s->own, "space") && reads_an_input(s, outputs)) /* whose dimensions may have another order */
        node_put(n, scalar_at(s, "space", outputs), all_dimensions(s, outputs, true));
    node_put(n, scalar_at(s, "outputs", outputs), second_outputs(s, outputs));
    return n;
}

static bool split(struct splitting *s)
{
    collect_names(s);
    if (!needs_splitting(s))
        return false;
    s->stage[0] = first_stage(s);
    s->stage[1] = second_stage(s);
    return true;
}

bool needs_stages(struct arena *a, const struct ynode *root)
{
    struct splitting s = { .a = a, .whole = root, .own = root };
    collect_names(&s);
    return needs_splitting(&s);
}

/* ---- all stages of a spec ---------------------------------------------------------------------------------------- */

static const char *second_name(struct arena *a, const struct ynode *stages, const char *first)
{
    const char *name = arena_printf(a, "%s_kept", first);
    while (ynode_get(stages, name))
        name = arena_printf(a, "%s_", name);
    return name;
}

const struct ynode *kept_as_stages(struct arena *a, const struct ynode *root)
{
    const struct ynode *stages = mapping_of(root, "stages");
    if (!stages)
        return root;
    struct ynode *more = node_mapping(a, stages->at, 2 * stages->count),
                 *whole = node_mapping(a, root->at, root->count);
    for (int i = 0; i < stages->count; i++) {
        const struct ypair *pair = &stages->pair[i];
        struct splitting s = { .a = a, .whole = root, .own = pair->value };
        const bool two = pair->value->kind == Y_MAPPING && split(&s);
        node_put(more, pair->key, two ? s.stage[0] : pair->value);
        if (two)
            node_put(more, node_scalar(a, second_name(a, stages, pair->key->text), pair->key->at), s.stage[1]);
    }
    for (int i = 0; i < root->count && more->count > stages->count; i++)
        node_put(whole, root->pair[i].key, root->pair[i].value == stages ? more : root->pair[i].value);
    return whole->count ? whole : root;
}

bool kept_is_second(const struct ynode *own)
{
    const struct ynode *outputs = mapping_of(own, "outputs");
    bool is = false;
    for (int i = 0; outputs && i < outputs->count; i++)
        is |= is_kept(outputs->pair[i].value) &&
              !strncmp(text_of(ynode_get(outputs->pair[i].value, "where")), condition_prefix, strlen(condition_prefix));
    return is;
}

/* ---- what the first stage must be -------------------------------------------------------------------------------- */

/* Conditions lie in memory as the elements are walked. */
bool kept_fits(struct builder *b, const struct problem *p)
{
    bool fits = true;
    for (int o = 0; p && o < p->noutputs; o++) {
        const struct output *out = &p->output[o];
        bool in_order = out->array.rank == p->rank;
        if (strncmp(out->array.name, condition_prefix, strlen(condition_prefix)) != 0 || out->index[0])
            continue;
        for (int d = 0; in_order && d < p->rank; d++)
            in_order = out->axis[d] == d;
        if (!in_order)
            diag_error(b->d, D_BAD_WHERE, out->at,
                       "an output with 'where' has all dimensions in their order, as all elements may be kept");
        fits &= in_order;
    }
    return fits;
}
