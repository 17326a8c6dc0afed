/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c - from the tree of a spec with stages to struct stages.
 *
 *   the whole's name, inputs, params -> each stage, as a problem of its own -> outputs of the whole -> loop -> lifetimes
 *
 * As in problem.c, all mistakes of a file are found; the stages are handed out only when there were none.
 */
#include "stages_impl.h"

static const struct ynode *top(const struct stages_builder *sb, const char *key)
{
    return schema_get(sb->b->root, ST_STAGES, key);
}

int made_find(const struct stages_builder *sb, const char *name)
{
    for (int i = 0; i < sb->nmade; i++)
        if (!strcmp(sb->made[i].name, name))
            return i;
    return -1;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static int array_add(struct stages_builder *sb, const struct prog_array *a, enum stage_place place, int index,
                     int stage)
{
    struct prog_stages *p = &sb->out->data;
    sb->array[p->narrays] = (struct stage_array){ *a, place, index, stage, stage };
    return p->narrays++;
}

static bool room(struct stages_builder *sb, int more, struct span at)
{
    if (sb->nmade + more < STAGE_ARRAYS_MAX && sb->out->data.narrays + more < STAGE_ARRAYS_MAX)
        return true;
    diag_error(sb->b->d, D_LIMIT, at, "the stages have too many arrays together; at most %d are possible",
               STAGE_ARRAYS_MAX - 2);
    return false;
}

static void make_inputs(struct stages_builder *sb)
{
    const struct ynode *node = top(sb, "inputs");
    for (int i = 0; node && i < sb->b->ninputs && room(sb, 1, node->at); i++) {
        const struct ypair *pair = &node->pair[i];
        const int array = array_add(sb, &sb->b->input[i].array, PLACE_INPUT, i, -1);
        sb->made[sb->nmade++] = (struct made){ pair->key->text, pair->value, pair->key->at, array, false, true, false };
    }
}

/* Outputs of a stage, for the stages after it, also where the stage has errors: these cause no others then. */
static void make_outputs(struct stages_builder *sb, const struct ynode *own)
{
    const struct ynode *outputs = own->kind == Y_MAPPING ? ynode_get(own, "outputs") : NULL;
    for (int i = 0; outputs && outputs->kind == Y_MAPPING && i < outputs->count; i++) {
        struct ynode *key = outputs->pair[i].key;
        const bool param = param_find(sb->b, key->text) >= 0;
        if (param || made_find(sb, key->text) >= 0)
            diag_error(sb->b->d, D_DUPLICATE_NAME, key->at, "'%s' is %s already", key->text,
                       param ? "a param" : "an input, or an output of a stage,");
        else if (room(sb, 1, key->at))
            sb->made[sb->nmade++] =
                (struct made){ key->text, type_as_input(sb->b->a, outputs->pair[i].value), key->at, -1, false, false,
                               false };
    }
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static int size_of_whole(struct stages_builder *sb, const struct dimension *d)
{
    int i = size_find(sb->b, d->name);
    if (i >= 0)
        return i;
    i = sb->b->nsizes;
    ARENA_PUSH(sb->b->a, sb->b->size, sb->b->nsizes, sb->b->cap_sizes, *d);
    return i;
}

static int array_find(const struct stages_builder *sb, const char *name)
{
    for (int i = 0; i < sb->out->data.narrays; i++)
        if (!strcmp(sb->array[i].array.name, name))
            return i;
    return -1;
}

static void bind_arrays(struct stages_builder *sb, const struct problem *p, struct prog_stage *to, const int *size)
{
    int *input = arena_new(sb->b->a, int, p->ninputs + 1), *output = arena_new(sb->b->a, int, p->noutputs + 1);
    const int stage = sb->out->data.nstages;
    for (int i = 0; i < p->ninputs; i++) {
        input[i] = array_find(sb, p->input[i].array.name);
        if (input[i] >= 0) /* else the stage that writes it has errors, and no arrays */
            sb->array[input[i]].last = stage;
    }
    for (int i = 0; i < p->noutputs; i++) {
        struct prog_array a = *problem_array(p, p->ninputs + i);
        const int m = made_find(sb, a.name);
        for (int d = 0; d < a.rank; d++)
            a.dim[d].size = a.dim[d].size < 0 ? -1 : size[a.dim[d].size];
        output[i] = array_add(sb, &a, PLACE_BETWEEN, 0, stage);
        if (m >= 0)
            sb->made[m].array = output[i];
        if (a.continued)
            diag_hint(sb->b->d,
                      diag_error(sb->b->d, D_BAD_STAGES, p->output[i].at,
                                 "'%s' would continue what it holds, and nothing stands there before the stage",
                                 a.name),
                      "give it a value to begin with, as initial: 0");
    }
    to->input = input;
    to->output = output;
}

static void bind(struct stages_builder *sb, const struct problem *p, const char *name)
{
    struct prog_stage *to = &sb->stage[sb->out->data.nstages];
    int *size = arena_new(sb->b->a, int, p->nsizes + 1), *param = arena_new(sb->b->a, int, p->nparams + 1);
    for (int i = 0; i < p->nsizes; i++)
        size[i] = size_of_whole(sb, &p->size[i]);
    for (int i = 0; i < p->nparams; i++)
        param[i] = param_find(sb->b, p->param[i].name);
    *to = (struct prog_stage){ name, p->nsizes, p->nparams, p->ninputs, p->noutputs, size, param, NULL, NULL };
    bind_arrays(sb, p, to, size);
}

bool stage_add(struct stages_builder *sb, const char *name, const struct ynode *root, const struct problem *p)
{
    struct prog_stages *data = &sb->out->data;
    if (!p || !room(sb, p->noutputs, root->at) || data->nstages == STAGES_MAX)
        return false;
    bind(sb, p, name);
    sb->out->problem[data->nstages++] = p;
    return true;
}

/* Does the stage stay what it is? */
static bool stays_alone(struct stages_builder *sb, const struct ynode *own)
{
    const struct ynode *fuse = ynode_get(own, "fuse");
    return fuse && node_is(sb->b, fuse, Y_SCALAR, "true or false") && !node_bool(sb->b, fuse, true);
}

static void build_stages(struct stages_builder *sb)
{
    const bool all_alone = !node_bool(sb->b, top(sb, "fuse"), true);
    if (!sb->stages->count || sb->stages->count >= STAGES_MAX)
        diag_error(sb->b->d, D_LIMIT, sb->stages->at, "a spec has 1 to %d stages", STAGES_MAX - 1);
    for (int i = 0; i < sb->stages->count && i < STAGES_MAX - 1; i++) {
        const struct ypair *pair = &sb->stages->pair[i];
        const struct ynode *root = node_name(sb->b, pair->key, "a stage") ? stage_root(sb, i) : NULL;
        struct part *part = &sb->part[sb->nparts];
        make_outputs(sb, pair->value);
        const bool failed = i && !sb->part[sb->nparts ? sb->nparts - 1 : 0].problem;
        if (!root || (failed && kept_is_second(pair->value))) /* both are of one text, and one message is enough */
            continue;
        *part = (struct part){ .name = pair->key->text, .root = root, .into = -1 };
        part->alone = stays_alone(sb, pair->value) || all_alone;
        part->problem = builder_problem(builder_new(sb->b->s, root), part->name);
        part->own = part->problem = kept_fits(sb->b, part->problem) ? part->problem : NULL;
        sb->nparts++;
    }
}

/* The stages that run. */
static void add_stages(struct stages_builder *sb)
{
    for (int i = 0; i < sb->nparts; i++) {
        const struct part *part = &sb->part[i];
        for (int o = 0; part->into >= 0 && o < part->problem->noutputs; o++)
            sb->made[made_find(sb, part->problem->output[o].array.name)].gone = true;
        if (part->into < 0)
            stage_add(sb, part->name, part->root, part->problem);
    }
}

/* ---- what leaves the whole --------------------------------------------------------------------------------------- */

static void build_outputs(struct stages_builder *sb)
{
    const struct ynode *node = top(sb, "outputs");
    const char *names[STAGE_ARRAYS_MAX];
    int n = 0;
    for (int i = sb->b->ninputs; i < sb->nmade; i++)
        names[n++] = sb->made[i].name;
    for (int i = 0; node && i < node->count; i++) {
        const struct ynode *item = node->item[i];
        if (!node_is(sb->b, item, Y_SCALAR, "the name of an output of a stage"))
            continue;
        const int m = made_find(sb, item->text);
        if (m < sb->b->ninputs) {
            struct diag *d = diag_error(sb->b->d, D_BAD_STAGES, item->at, "no stage writes '%s'", item->text);
            diag_suggest(sb->b->d, d, item->text, names, n);
        } else if (sb->made[m].leaves) {
            diag_error(sb->b->d, D_BAD_STAGES, item->at, "'%s' stands here twice", item->text);
        } else if (sb->made[m].array >= 0) {
            sb->array[sb->made[m].array].place = PLACE_OUTPUT;
            sb->array[sb->made[m].array].index = i;
        }
        if (m >= 0)
            sb->made[m].leaves = true;
    }
    if (node && !node->count)
        diag_error(sb->b->d, D_BAD_STAGES, node->at, "nothing is written");
}

static void check_unused(struct stages_builder *sb)
{
    unwritten_check(sb);
    for (int i = 0; i < sb->nmade; i++)
        if (!sb->made[i].read && (i < sb->b->ninputs || !sb->made[i].leaves))
            diag_warning(sb->b->d, D_UNUSED, sb->made[i].at, "nothing uses '%s'", sb->made[i].name);
    for (int i = 0; i < sb->b->nparams; i++)
        if (!sb->b->param_slot[i].used) {
            sb->b->param[i].has_default = true;
            diag_warning(sb->b->d, D_UNUSED, sb->b->param_slot[i].at, "nothing uses the param '%s'",
                         sb->b->param[i].name);
        }
    lets_check(sb);
}

/* Names, arrays and params of the whole, as a program without cases. */
static const struct program *shape_of(struct stages_builder *sb)
{
    struct builder *b = sb->b;
    struct prog_stages *p = &sb->out->data;
    const char **size = arena_new(b->a, const char *, b->nsizes + 1);
    struct program *shape = arena_new(b->a, struct program, 1);
    *shape = (struct program){ .name = sb->out->name, .nsizes = b->nsizes, .size = size, .nparams = b->nparams };
    shape->param = b->param;
    shape->input = arena_new(b->a, struct prog_array, p->narrays + 1);
    shape->output = arena_new(b->a, struct prog_array, p->narrays + 1);
    for (int i = 0; i < b->nsizes; i++)
        size[i] = b->size[i].name;
    for (int i = 0; i < p->narrays; i++)
        if (sb->array[i].place == PLACE_INPUT)
            shape->input[shape->ninputs++] = sb->array[i].array;
        else if (sb->array[i].place == PLACE_OUTPUT) {
            shape->output[sb->array[i].index] = sb->array[i].array;
            shape->noutputs++;
        }
    return shape;
}

static void publish(struct stages_builder *sb)
{
    struct prog_stages *p = &sb->out->data;
    p->shape = shape_of(sb);
    p->stage = sb->stage;
    p->array = sb->array;
    p->feedback = sb->feedback;
    p->steps = sb->b->p->steps;
    p->steps_param = sb->b->p->steps_param;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static const struct stages *build(struct stages_builder *sb, const char *default_name)
{
    struct builder *b = sb->b;
    const int errors = b->d->errors;
    b->p->steps_param = -1;
    b->p->steps = 1;
    sb->out->data.until = -1;
    sb->out->data.check_every = 1;
    schema_check(b->d, ST_STAGES, b->root, K_ALL);
    build_header(b, default_name);
    sb->out->name = b->p->name;
    sb->out->doc = b->p->doc;
    sb->out->determinism = b->p->determinism;
    build_inputs(b);
    build_params(b);
    make_inputs(sb);
    loop_keeps_step(sb);
    if (sb->stages)
        build_stages(sb);
    if (b->d->errors == errors)
        fuse_maps(sb);
    add_stages(sb);
    build_outputs(sb);
    loop_build(sb);
    if (b->d->errors == errors)
        facts_check(sb);
    if (b->ninputs + sb->out->data.narrays && b->ninputs + b->nparams + b->nsizes > SPEC_ARGS_MAX)
        diag_error(b->d, D_LIMIT, b->root->at, "inputs, params and dimensions are more than %d", SPEC_ARGS_MAX);
    if (b->d->errors > errors)
        return NULL;
    check_unused(sb);
    publish(sb);
    return sb->out;
}

bool frontend_build(struct ptxgen_session *s, const char *file, const char *text, size_t length,
                    const char *default_name, struct frontend_spec *out)
{
    *out = (struct frontend_spec){ 0 };
    const int errors = s->diags.errors;
    const struct ynode *root = builder_root(s, file, text, length);
    if (!root) /* reported */
        return false;
    if (!ynode_get(root, "stages"))
        root = single_as_stages(s, root);
    root = kept_as_stages(&s->arena, root);
    if (ynode_get(root, "stages")) {
        struct stages_builder *sb = arena_new(&s->arena, struct stages_builder, 1);
        sb->b = builder_new(s, root);
        sb->stages = schema_get(root, ST_STAGES, "stages");
        sb->out = arena_new(&s->arena, struct stages, 1);
        out->stages = build(sb, default_name);
    } else {
        out->problem = builder_problem(builder_new(s, root), default_name);
    }
    return s->diags.errors == errors && (out->problem || out->stages);
}
