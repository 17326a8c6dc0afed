/* SPDX-License-Identifier: Apache-2.0 */
/* root.c - the tree of a stage: its own keys, and what it mentions of the whole. */
#include "stages_impl.h"

struct ynode *node_scalar(struct arena *a, const char *text, struct span at)
{
    struct ynode *n = arena_new(a, struct ynode, 1);
    *n = (struct ynode){ .kind = Y_SCALAR, .at = at, .text = text, .length = (uint32_t)strlen(text), .plain = true };
    uint32_t *where = arena_new(a, uint32_t, n->length + 1); /* none of the text is the user's */
    for (uint32_t i = 0; i <= n->length; i++)
        where[i] = i < n->length ? at.begin : at.end;
    n->where = where;
    return n;
}

struct ynode *node_mapping(struct arena *a, struct span at, int capacity)
{
    struct ynode *n = arena_new(a, struct ynode, 1);
    *n = (struct ynode){ .kind = Y_MAPPING, .at = at, .pair = arena_new(a, struct ypair, capacity + 1) };
    return n;
}

void node_put(struct ynode *mapping, struct ynode *key, struct ynode *value)
{
    mapping->pair[mapping->count++] = (struct ypair){ key, value };
}

static void put_named(struct arena *a, struct ynode *mapping, const char *key, struct ynode *value)
{
    if (value && (value->kind == Y_SCALAR || value->count))
        node_put(mapping, node_scalar(a, key, value->at), value);
}

/* f32 -> f32[]: one element. */
static struct ynode *scalar_as_input(struct arena *a, struct ynode *type)
{
    if (strchr(type->text, '['))
        return type;
    struct ynode *n = arena_new(a, struct ynode, 1);
    *n = *node_scalar(a, arena_printf(a, "%s[]", type->text), type->at);
    return n;
}

struct ynode *type_as_input(struct arena *a, struct ynode *output)
{
    struct ynode *type = output->kind == Y_MAPPING ? (struct ynode *)(uintptr_t)ynode_get(output, "type") : output;
    if (!type || type->kind == Y_SEQUENCE)
        return NULL;
    if (type->kind == Y_SCALAR)
        return scalar_as_input(a, type);
    const struct ynode *shape = ynode_get(output, "shape");
    struct ynode *n = node_mapping(a, type->at, 2), *none = arena_new(a, struct ynode, 1);
    *none = (struct ynode){ .kind = Y_SEQUENCE, .at = type->at };
    node_put(n, node_scalar(a, "type", type->at), type);
    node_put(n, node_scalar(a, "shape", type->at), shape ? (struct ynode *)(uintptr_t)shape : none);
    return n;
}

/* ---- what a stage gets of the whole ------------------------------------------------------------------------------ */

static const struct ynode *of_whole(const struct stages_builder *sb, const char *key)
{
    return schema_get(sb->b->root, ST_STAGES, key);
}

/* The lets of the whole that are mentioned, by the stage or by one another; their names join `used`. */
static void take_lets(const struct stages_builder *sb, struct names *used, bool *taken)
{
    const struct ynode *lets = of_whole(sb, "let");
    for (bool more = lets != NULL; more;) {
        more = false;
        for (int i = 0; i < lets->count; i++)
            if (!taken[i] && names_find(used, lets->pair[i].key->text) >= 0) {
                taken[i] = more = true;
                names_collect(used, lets->pair[i].value);
            }
    }
}

/* The operators of the whole that the stage mentions, and its own, which hide them; what they mention joins `used`. */
static struct ynode *operators_of(const struct stages_builder *sb, const struct ynode *own, struct names *used)
{
    const struct ynode *all = of_whole(sb, "operators");
    const int count = all ? all->count : 0;
    struct ynode *n = node_mapping(sb->b->a, sb->b->root->at, count + (own ? own->count : 0));
    for (int i = 0; i < count; i++)
        if (names_find(used, all->pair[i].key->text) >= 0 && !(own && ynode_get(own, all->pair[i].key->text))) {
            node_put(n, all->pair[i].key, all->pair[i].value);
            names_collect(used, all->pair[i].value);
        }
    for (int i = 0; own && own->kind == Y_MAPPING && i < own->count; i++)
        node_put(n, own->pair[i].key, own->pair[i].value);
    return n;
}

static void operators_check(const struct stages_builder *sb, const struct names *used)
{
    const struct ynode *all = of_whole(sb, "operators");
    for (int i = 0; all && i < all->count; i++)
        if (names_find(used, all->pair[i].key->text) < 0)
            diag_warning(sb->b->d, D_UNUSED, all->pair[i].key->at, "nothing uses the operator '%s'",
                         all->pair[i].key->text);
}

void lets_check(const struct stages_builder *sb)
{
    const struct ynode *lets = of_whole(sb, "let");
    struct names used = { .arena = sb->b->a };
    bool *taken = arena_new(sb->b->a, bool, lets ? lets->count + 1 : 1);
    names_collect(&used, sb->stages);
    operators_check(sb, &used);
    if (of_whole(sb, "iterate"))
        names_collect(&used, of_whole(sb, "iterate"));
    take_lets(sb, &used, taken);
    for (int i = 0; lets && i < lets->count; i++)
        if (!taken[i])
            diag_warning(sb->b->d, D_UNUSED, lets->pair[i].key->at, "nothing uses the let '%s'",
                         lets->pair[i].key->text);
}

static struct ynode *lets_of(const struct stages_builder *sb, const struct ynode *own, const bool *taken)
{
    const struct ynode *lets = of_whole(sb, "let");
    const int count = lets ? lets->count : 0;
    struct ynode *n = node_mapping(sb->b->a, sb->b->root->at, count + (own ? own->count : 0));
    for (int i = 0; i < count; i++)
        if (taken[i])
            node_put(n, lets->pair[i].key, lets->pair[i].value);
    for (int i = 0; own && own->kind == Y_MAPPING && i < own->count; i++)
        node_put(n, own->pair[i].key, own->pair[i].value);
    return n;
}

/* The arrays that are mentioned, or those of the stage's own list; their dimensions join `used`. */
static struct ynode *inputs_of(struct stages_builder *sb, const struct ynode *list, struct names *used, struct span at)
{
    struct ynode *n = node_mapping(sb->b->a, at, sb->nmade);
    for (int i = 0; list && i < list->count; i++) {
        const struct ynode *item = list->item[i];
        const int m = item->kind == Y_SCALAR ? made_find(sb, item->text) : -1;
        if (m < 0) {
            diag_error(sb->b->d, D_BAD_STAGES, item->at, "no input, and no output of an earlier stage, has this name");
            continue;
        }
        names_add(used, sb->made[m].name, item->at);
    }
    bool any = false;
    for (int i = 0; i < sb->nmade; i++)
        any |= names_find(used, sb->made[i].name) >= 0;
    for (int i = 0; i < sb->nmade; i++) {
        struct made *m = &sb->made[i];
        const bool only = !any && sb->nmade == 1; /* what is meant need not be said */
        if ((!only && names_find(used, m->name) < 0) || !m->type)
            continue;
        m->read = true;
        node_put(n, node_scalar(sb->b->a, m->name, m->at), m->type);
        names_collect(used, m->type);
    }
    return n;
}

static struct ynode *params_of(const struct stages_builder *sb, const struct names *used)
{
    const struct ynode *params = of_whole(sb, "params"), *iterate = of_whole(sb, "iterate");
    struct ynode *n = node_mapping(sb->b->a, sb->b->root->at, params ? params->count + 1 : 1);
    for (int i = 0; params && i < params->count; i++)
        if (names_find(used, params->pair[i].key->text) >= 0) {
            const int p = param_find(sb->b, params->pair[i].key->text);
            if (p >= 0)
                sb->b->param_slot[p].used = true;
            node_put(n, params->pair[i].key, params->pair[i].value);
        }
    if (iterate && names_find(used, "step") >= 0 && !sb->step_taken)
        node_put(n, node_scalar(sb->b->a, "step", iterate->at), node_scalar(sb->b->a, "i64", iterate->at));
    return n;
}

/* The outputs of a stage and their dimensions, of which some are of no input. */
static void outputs_collect(struct names *has, const struct ynode *outputs)
{
    for (int i = 0; outputs && outputs->kind == Y_MAPPING && i < outputs->count; i++) {
        const struct ynode *key = outputs->pair[i].key, *value = outputs->pair[i].value;
        const struct ynode *type = value->kind == Y_MAPPING ? ynode_get(value, "type") : value;
        names_add(has, key->text, key->at);
        if (type)
            names_collect(has, type);
        if (value->kind == Y_MAPPING && ynode_get(value, "shape"))
            names_collect(has, ynode_get(value, "shape"));
    }
}

/* Facts of the whole about what the stage has. */
void facts_check(const struct stages_builder *sb)
{
    const struct ynode *facts = of_whole(sb, "assume");
    const int all = sb->nmade + sb->b->nsizes;
    const char **name = arena_new(sb->b->a, const char *, all + 1);
    for (int i = 0; i < all; i++)
        name[i] = i < sb->nmade ? sb->made[i].name : sb->b->size[i - sb->nmade].name;
    for (int f = 0; facts && f < facts->count; f++) {
        const struct ynode *key = facts->pair[f].key;
        bool there = false;
        for (int i = 0; i < all; i++)
            there |= !strcmp(name[i], key->text);
        if (!there) {
            struct diag *m =
                diag_error(sb->b->d, D_BAD_ASSUME, key->at, "no dimension or array is called '%s'", key->text);
            diag_suggest(sb->b->d, m, key->text, name, all);
        }
    }
}

static struct ynode *facts_of(const struct stages_builder *sb, const struct ynode *inputs, const struct ynode *stage)
{
    const struct ynode *facts = of_whole(sb, "assume"), *own = ynode_get(stage, "assume");
    struct names has = { .arena = sb->b->a };
    struct ynode *n = node_mapping(sb->b->a, sb->b->root->at, (facts ? facts->count : 0) + (own ? own->count : 0));
    for (int i = 0; i < inputs->count; i++)
        names_add(&has, inputs->pair[i].key->text, inputs->pair[i].key->at);
    names_collect(&has, inputs);
    outputs_collect(&has, ynode_get(stage, "outputs"));
    for (int i = 0; facts && i < facts->count; i++)
        if (names_find(&has, facts->pair[i].key->text) >= 0)
            node_put(n, facts->pair[i].key, facts->pair[i].value);
    for (int i = 0; own && own->kind == Y_MAPPING && i < own->count; i++)
        node_put(n, own->pair[i].key, own->pair[i].value);
    return n;
}

static bool later_is_read(const struct stages_builder *sb, int number, const struct names *used)
{
    for (int s = number; s < sb->stages->count; s++) {
        const struct ynode *later = sb->stages->pair[s].value, *outputs = ynode_get(later, "outputs");
        if (s == number + 1 && kept_is_second(later)) /* both parts of one stage: the name is that of a result, too */
            continue;
        for (int o = 0; s > number && outputs && outputs->kind == Y_MAPPING && o < outputs->count; o++) {
            const int i = names_find(used, outputs->pair[o].key->text);
            if (i < 0 || made_find(sb, outputs->pair[o].key->text) >= 0)
                continue;
            struct diag *m = diag_error(sb->b->d, D_BAD_STAGES, used->at[i],
                                        "'%s' is written by stage '%s', which "
                                        "comes later",
                                        used->name[i], sb->stages->pair[s].key->text);
            diag_hint(sb->b->d, m,
                      "a stage reads inputs and what earlier stages write; the value of the step before is "
                      "an input that iterate feeds");
            return true;
        }
    }
    return false;
}

/* ---- the trees --------------------------------------------------------------------------------------------------- */

static bool is_of_whole(const char *key)
{
    static const char *const keys[] = { "name",   "ptxgen", "params", "inputs",   "let",
                                        "assume", "stages", "fuse",   "contract", "operators" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i], key))
            return true;
    return false;
}

static bool own_keys_fit(const struct stages_builder *sb, const struct ynode *own)
{
    static const char *const keys[] = { "name", "ptxgen", "params", "stages", "contract" };
    bool fit = true;
    for (int i = 0; i < own->count; i++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (!strcmp(own->pair[i].key->text, keys[k])) {
                diag_error(sb->b->d, D_BAD_STAGES, own->pair[i].key->at,
                           "a stage has no '%s': that of the whole is for all stages", keys[k]);
                fit = false;
            }
    const struct ynode *inputs = ynode_get(own, "inputs");
    if (inputs && inputs->kind != Y_SEQUENCE) {
        struct diag *m = diag_error(sb->b->d, D_BAD_STAGES, inputs->at, "the inputs of a stage are a list of names");
        diag_hint(sb->b->d, m, "without the list, a stage has the arrays that it mentions");
        fit = false;
    }
    return fit;
}

const struct ynode *stage_root(struct stages_builder *sb, int number)
{
    struct arena *a = sb->b->a;
    const struct ynode *name = sb->stages->pair[number].key, *own = sb->stages->pair[number].value;
    const struct ynode *level = of_whole(sb, "determinism"), *contract = of_whole(sb, "contract");
    const struct ynode *lets = of_whole(sb, "let");
    struct names used = { .arena = a };
    bool *taken = arena_new(a, bool, lets ? lets->count + 1 : 1);
    if (!node_is(sb->b, own, Y_MAPPING, "a stage, as {kind: …, outputs: …}") || !own_keys_fit(sb, own))
        return NULL;
    struct ynode *root = node_mapping(a, own->at, own->count + 10);
    names_collect(&used, own);
    take_lets(sb, &used, taken);
    struct ynode *operators = operators_of(sb, ynode_get(own, "operators"), &used);
    if (later_is_read(sb, number, &used))
        return NULL;
    struct ynode *inputs = inputs_of(sb, ynode_get(own, "inputs"), &used, name->at);
    node_put(root, node_scalar(a, "name", name->at),
             node_scalar(a, arena_printf(a, "%s_%s", sb->out->name, name->text), name->at));
    for (int i = 0; i < own->count; i++)
        if (!is_of_whole(own->pair[i].key->text))
            node_put(root, own->pair[i].key, own->pair[i].value);
    node_put(root, node_scalar(a, "inputs", name->at), inputs);
    put_named(a, root, "params", params_of(sb, &used));
    put_named(a, root, "operators", operators);
    put_named(a, root, "let", lets_of(sb, ynode_get(own, "let"), taken));
    put_named(a, root, "assume", facts_of(sb, inputs, own));
    if (level && !ynode_get(own, "determinism"))
        put_named(a, root, "determinism", (struct ynode *)(uintptr_t)level);
    if (contract && !strcmp(contract->text, "true")) /* other texts have been refused */
        put_named(a, root, "contract", (struct ynode *)(uintptr_t)contract);
    return root;
}

const struct ynode *until_root(struct stages_builder *sb, const char *name, struct ynode *condition)
{
    struct arena *a = sb->b->a;
    struct names used = { .arena = a };
    names_collect(&used, condition);
    struct ynode *root = node_mapping(a, condition->at, 8), *outputs = node_mapping(a, condition->at, 1),
                 *done = node_mapping(a, condition->at, 2), *inputs = inputs_of(sb, NULL, &used, condition->at);
    /* The space has one element: that of an input that is there for its shape. */
    node_put(inputs, node_scalar(a, "ptxgen_one", condition->at), node_scalar(a, "u8[1]", condition->at));
    put_named(a, done, "type", node_scalar(a, "bool[1]", condition->at));
    put_named(a, done, "value", condition);
    put_named(a, outputs, "ptxgen_until", done);
    put_named(a, root, "name", node_scalar(a, arena_printf(a, "%s_%s", sb->out->name, name), condition->at));
    put_named(a, root, "kind", node_scalar(a, "map", condition->at));
    put_named(a, root, "inputs", inputs);
    put_named(a, root, "params", params_of(sb, &used));
    put_named(a, root, "outputs", outputs);
    return root;
}
