/* SPDX-License-Identifier: Apache-2.0 */
/* single.c - a stencil or map whose loop ends on a condition, or whose expressions read `step`, is a program of one
 * stage; so is, before kept.c splits it, a scan or reduce whose results say which elements are kept.
 *
 * The tree of that program is made of the user's nodes: what belongs to the whole stays at the top, all else is the stage.
 */
#include "stages_impl.h"

/* Is `step` read, and not a name of the user's own? */
static bool reads_step(struct arena *a, const struct ynode *root)
{
    static const char *const tables[] = { "inputs", "params", "let", "outputs", "reductions", "scans" };
    struct names used = { .arena = a }, dims = { .arena = a };
    for (int i = 0; i < root->count; i++)
        if (strcmp(root->pair[i].key->text, "name") != 0 && strcmp(root->pair[i].key->text, "doc") != 0)
            names_collect(&used, root->pair[i].value);
    bool reads = names_find(&used, "step") >= 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const struct ynode *names = ynode_get(root, tables[i]);
        reads &= !names || names->kind != Y_MAPPING || !ynode_get(names, "step");
    }
    const struct ynode *inputs = ynode_get(root, "inputs"), *outputs = ynode_get(root, "outputs");
    if (inputs)
        names_collect(&dims, inputs);
    for (int i = 0; outputs && outputs->kind == Y_MAPPING && i < outputs->count; i++) {
        const struct ynode *output = outputs->pair[i].value;
        const struct ynode *type = output->kind == Y_MAPPING ? ynode_get(output, "type") : output;
        const struct ynode *shape = output->kind == Y_MAPPING ? ynode_get(output, "shape") : NULL;
        if (type)
            names_collect(&dims, type);
        if (shape)
            names_collect(&dims, shape);
    }
    return reads && names_find(&dims, "step") < 0;
}

/* Such an output does not write all elements, which the next step would read. */
static bool writes_some(const struct ynode *root)
{
    const struct ynode *outputs = ynode_get(root, "outputs");
    bool some = false;
    for (int i = 0; outputs && outputs->kind == Y_MAPPING && i < outputs->count; i++) {
        const struct ynode *output = outputs->pair[i].value;
        some |= output->kind == Y_MAPPING && (ynode_get(output, "at") || ynode_get(output, "where"));
    }
    return some;
}

static bool ends_or_counts(struct arena *a, const struct ynode *root)
{
    const struct ynode *kind = ynode_get(root, "kind"), *iterate = ynode_get(root, "iterate");
    const bool loops = kind && kind->kind == Y_SCALAR && (!strcmp(kind->text, "stencil") || !strcmp(kind->text, "map"));
    return loops && iterate && iterate->kind == Y_MAPPING &&
           (ynode_get(iterate, "until") || ynode_get(iterate, "check_every") ||
            (reads_step(a, root) && !writes_some(root)));
}

/* loop: `iterate` is that of the whole. */
static bool belongs_to_whole(const char *key, bool loop)
{
    static const char *const keys[] = { "name",   "doc",         "ptxgen",   "params", "inputs",
                                        "assume", "determinism", "contract", "iterate" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i], key))
            return loop || strcmp(key, "iterate") != 0;
    return false;
}

static struct ynode *names_of(struct arena *a, const struct ynode *mapping)
{
    struct ynode *n = arena_new(a, struct ynode, 1);
    *n = (struct ynode){ .kind = Y_SEQUENCE, .at = mapping->at };
    n->item = arena_new(a, struct ynode *, mapping->count + 1);
    for (int i = 0; mapping->kind == Y_MAPPING && i < mapping->count; i++)
        n->item[n->count++] = mapping->pair[i].key;
    return n;
}

static bool has_interior(const struct ynode *n)
{
    bool has = n && n->kind == Y_SCALAR && !strcmp(n->text, "interior");
    for (int i = 0; n && n->kind == Y_MAPPING && i < n->count; i++)
        has |= has_interior(n->pair[i].value);
    return has;
}

/* With interior, a point that is not computed keeps what is fed back.  The stage knows that of a loop of its own, with
 * one step. */
static struct ynode *one_step(struct arena *a, const struct ynode *iterate)
{
    struct ynode *own = node_mapping(a, iterate->at, 2);
    node_put(own, node_scalar(a, "steps", iterate->at), node_scalar(a, "1", iterate->at));
    for (int i = 0; i < iterate->count; i++)
        if (!strcmp(iterate->pair[i].key->text, "feedback"))
            node_put(own, iterate->pair[i].key, iterate->pair[i].value);
    return own;
}

const struct ynode *single_as_stages(struct ptxgen_session *s, const struct ynode *root)
{
    struct arena *a = &s->arena;
    const struct ynode *inputs = ynode_get(root, "inputs"), *outputs = ynode_get(root, "outputs");
    const bool loop = ends_or_counts(a, root), kept = !loop && needs_stages(a, root);
    if ((!loop && !kept) || !inputs || !outputs)
        return root;
    struct ynode *whole = node_mapping(a, root->at, root->count + 2), *stages = node_mapping(a, root->at, 1),
                 *stage = node_mapping(a, root->at, root->count + 2);
    for (int i = 0; i < root->count; i++)
        node_put(belongs_to_whole(root->pair[i].key->text, !kept) ? whole : stage, root->pair[i].key,
                 root->pair[i].value);
    node_put(stage, node_scalar(a, "inputs", inputs->at), names_of(a, inputs));
    const struct ynode *iterate = ynode_get(root, "iterate");
    if (!kept && ynode_get(iterate, "feedback") && has_interior(ynode_get(root, "boundary")))
        node_put(stage, node_scalar(a, "iterate", root->at), one_step(a, iterate));
    node_put(stages, node_scalar(a, kept ? ynode_get(root, "kind")->text : "loop", root->at), stage);
    node_put(whole, node_scalar(a, "stages", root->at), stages);
    node_put(whole, node_scalar(a, "outputs", outputs->at), names_of(a, outputs));
    return whole;
}
