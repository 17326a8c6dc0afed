/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - iterate of a spec with stages: how often, what becomes what, and when it ends. */
#include "stages_impl.h"

static void feed(struct stages_builder *sb, const struct ynode *key, const struct ynode *value)
{
    struct prog_stages *p = &sb->out->data;
    if (!node_is(sb->b, value, Y_SCALAR, "the name of an output of a stage"))
        return;
    const int from = made_find(sb, key->text), to = made_find(sb, value->text);
    if (from < 0 || from >= sb->b->ninputs) {
        diag_error(sb->b->d, D_BAD_ITERATE, key->at, "no input is called '%s'", key->text);
        return;
    }
    if (to < sb->b->ninputs) {
        diag_error(sb->b->d, D_BAD_ITERATE, value->at, "no stage writes '%s'", value->text);
        return;
    }
    sb->made[to].read = true;
    const int input = sb->made[from].array, output = sb->made[to].array;
    if (output < 0) /* its stage has errors */
        return;
    if (!array_same(&sb->array[input].array, &sb->array[output].array))
        diag_error(sb->b->d, D_BAD_ITERATE, value->at, "'%s' and '%s' differ in type or shape", key->text, value->text);
    for (int i = 0; i < p->nfeedback; i++)
        if (sb->feedback[i].output == output)
            diag_error(sb->b->d, D_BAD_ITERATE, value->at, "'%s' is fed back twice", value->text);
    /* Old values are needed while or after the new ones are written. */
    const bool twin = sb->array[input].last >= sb->array[output].first;
    sb->feedback[p->nfeedback++] = (struct stage_feedback){ input, output, twin };
}

static void lives_through(struct stages_builder *sb)
{
    const struct prog_stages *p = &sb->out->data;
    for (int i = 0; i < p->nfeedback; i++) {
        sb->array[sb->feedback[i].output].first = 0;
        sb->array[sb->feedback[i].output].last = p->nstages - 1;
    }
}

static bool reads_scalars(const struct stages_builder *sb, const struct ynode *condition)
{
    struct names used = { .arena = sb->b->a };
    names_collect(&used, condition);
    for (int i = 0; i < used.n; i++) {
        const int m = made_find(sb, used.name[i]);
        if (m < 0 || sb->made[m].array < 0 || !sb->array[sb->made[m].array].array.rank)
            continue;
        struct diag *d = diag_error(sb->b->d, D_BAD_ITERATE, used.at[i], "'%s' has many elements", used.name[i]);
        diag_hint(sb->b->d, d, "a condition reads outputs with one element, as a reduce has them, and params");
        return false;
    }
    return true;
}

/* Kernels are called after their stages, so a stage of the user keeps the name. */
static const char *condition_name(const struct stages_builder *sb)
{
    const char *name = "until";
    for (int i = 0; i < sb->stages->count; i++)
        if (!strcmp(sb->stages->pair[i].key->text, name)) {
            name = arena_printf(sb->b->a, "%s_", name);
            i = -1;
        }
    return name;
}

/* The condition is a stage, the last one. */
static void until(struct stages_builder *sb, const struct ynode *node)
{
    struct prog_stages *p = &sb->out->data;
    struct prog_field *byte = arena_new(sb->b->a, struct prog_field, 1);
    *byte = (struct prog_field){ "", TY_U8, 0 };
    const struct prog_array one = {
        .name = "ptxgen_one", .nfields = 1, .field = byte, .stride = 1, .rank = 1, .dim = { { -1, 1 } }
    };
    if (!reads_scalars(sb, node))
        return;
    if (!sb->stages)
        return; /* reported */
    const char *name = condition_name(sb);
    const struct ynode *root = until_root(sb, name, (struct ynode *)(uintptr_t)node);
    for (int i = 0; i < sb->nmade; i++)
        if (sb->made[i].array < 0 && !sb->made[i].gone)
            return; /* it may read what has errors */
    sb->array[p->narrays++] = (struct stage_array){ one, PLACE_BETWEEN, 0, p->nstages, p->nstages };
    struct builder *b = builder_new(sb->b->s, root);
    b->quiet = true;
    if (stage_add(sb, name, root, builder_problem(b, name)))
        p->until = p->narrays - 1;
}

static void refuse_step(struct stages_builder *sb, struct span at, const char *what)
{
    diag_error(sb->b->d, D_DUPLICATE_NAME, at, "'step' is the number of the step of `iterate`; %s needs another name",
               what);
    sb->step_taken = true;
}

static void refuse_key(struct stages_builder *sb, const struct ynode *of, const char *table, const char *what)
{
    const struct ynode *names = of->kind == Y_MAPPING ? ynode_get(of, table) : NULL;
    for (int i = 0; names && names->kind == Y_MAPPING && i < names->count; i++)
        if (!strcmp(names->pair[i].key->text, "step"))
            refuse_step(sb, names->pair[i].key->at, what);
}

void loop_keeps_step(struct stages_builder *sb)
{
    static const char *const table[][2] = {
        { "inputs", "an input" },   { "params", "a param" },         { "let", "a let" },
        { "outputs", "an output" }, { "reductions", "a reduction" }, { "scans", "a scan" }
    };
    if (!schema_get(sb->b->root, ST_STAGES, "iterate"))
        return;
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        refuse_key(sb, sb->b->root, table[t][0], table[t][1]);
        for (int i = 0; sb->stages && i < sb->stages->count; i++)
            refuse_key(sb, sb->stages->pair[i].value, table[t][0], table[t][1]);
    }
    for (int i = 0; i < sb->b->nsizes; i++)
        if (!strcmp(sb->b->size[i].name, "step"))
            refuse_step(sb, sb->b->size[i].at, "a dimension");
}

static void check_every(struct stages_builder *sb, const struct ynode *node, const struct ynode *condition)
{
    int64_t every = 1;
    if (!condition)
        diag_error(sb->b->d, D_BAD_ITERATE, node->at,
                   "`check_every` says how often `until` is looked at, and there is no `until`");
    else if (node_integer(sb->b, node, 1, INT32_MAX, &every))
        sb->out->data.check_every = (int)every;
}

void loop_build(struct stages_builder *sb)
{
    const struct ynode *node = schema_get(sb->b->root, ST_STAGES, "iterate");
    if (!node)
        return;
    schema_check(sb->b->d, ST_LOOP, node, K_ALL);
    const struct ynode *steps = schema_get(node, ST_LOOP, "steps"), *feedback = schema_get(node, ST_LOOP, "feedback"),
                       *condition = schema_get(node, ST_LOOP, "until"),
                       *every = schema_get(node, ST_LOOP, "check_every");
    if (steps)
        build_steps(sb->b, steps);
    if (sb->b->p->steps_param >= 0)
        sb->b->param_slot[sb->b->p->steps_param].used = true;
    for (int i = 0; feedback && i < feedback->count; i++)
        feed(sb, feedback->pair[i].key, feedback->pair[i].value);
    if (condition)
        until(sb, condition);
    if (every)
        check_every(sb, every, condition);
    lives_through(sb);
}
