/* SPDX-License-Identifier: Apache-2.0 */
/* derive.c - the stages of a split problem, by copying its structures with other numbers in them. */
#include "derive_impl.h"

#include <string.h>

bool dist_reduced(const struct problem *p, int axis) { return p->kind == KIND_STENCIL || p->space[axis].reduced; }
enum { PARAMS_MORE = 6, PARAM_STEPS = 4 };

/* ---- states in memory -------------------------------------------------------------------------------------------- */

/* An array of the states of all reductions with the bins and the kept dimensions, after one of `count` states where that
 * is >= 0. */
static struct prog_array states(struct derive *d, int count)
{
    const struct problem *p = d->from;
    struct prog_field *field = arena_new(d->a, struct prog_field, STATE_FIELDS_MAX);
    struct prog_array array = { .name = "dist_states", .field = field };
    int offset = 0, align = 1;
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++) {
            const int bytes = ty_bytes(p->reduction[r].op->field[f]), i = array.nfields++;
            offset = (offset + bytes - 1) / bytes * bytes;
            field[i] = (struct prog_field){ arena_printf(d->a, "f%d", i), p->reduction[r].op->field[f], offset };
            offset += bytes;
            align = bytes > align ? bytes : align;
        }
    if (array.nfields == 1)
        field->name = "";
    array.stride = (offset + align - 1) / align * align;
    if (count >= 0)
        array.dim[array.rank++] = (struct prog_dim){ count, 0 };
    for (int i = 0; i < p->nby; i++)
        array.dim[array.rank++] = p->bin[i];
    for (int i = 0; i < p->rank; i++)
        if (!dist_reduced(p, i))
            array.dim[array.rank++] = p->space[i].extent;
    d->sp->state_bytes = array.stride;
    return array;
}

/* The axes of an array of states: in a fold, all of the space in order; else the kept ones, after that of the blocks in
 * rows, and none for bins. */
static void state_axes(struct derive *d, int rank, int *axis)
{
    const int more = d->rows ? 1 : 0;
    for (int n = 0; n < rank; n++)
        axis[n] = d->folds ? n : -1;
    if (d->rows)
        axis[0] = 0;
    for (int i = 0, n = more; i < d->from->rank && !d->folds && !d->from->nby; i++)
        if (!dist_reduced(d->from, i))
            axis[n++] = i + more;
}

/* The number of the size that says how many states an array of a stage on a part has; -1: one. */
static int blocks(const struct derive *d) { return d->rows ? d->sp->size : -1; }

/* count: as of states(). */
static struct output state_output(struct derive *d, int count)
{
    const enum output_role role = d->folds && count >= 0 ? OUT_ELEMENT : OUT_SEGMENT;
    struct output o = { .array = states(d, count), .role = role, .at = d->from->at };
    const struct expr like = { .at = d->from->at };
    state_axes(d, o.array.rank, o.axis);
    for (int i = 0; i < o.array.rank && d->folds && count < 0; i++)
        o.axis[i]++; /* without that of the states */
    for (int r = 0, i = 0; r < d->from->nreductions; r++)
        for (int f = 0; f < d->from->reduction[r].op->nfields; f++, i++) {
            struct expr *e = derive_node(d, &like, EX_STATE, r);
            e->type = d->from->reduction[r].op->field[f];
            e->field = f;
            o.value[i] = e;
        }
    return o;
}

static struct input state_input(struct derive *d, int count)
{
    struct input in = { .array = states(d, count), .role = ROLE_ELEMENT, .used = true, .at = d->from->at };
    state_axes(d, in.array.rank, in.axis);
    return in;
}

/* Field i of all states, as input `which` has them. */
static const struct expr *state_field(struct derive *d, int which, int i, enum ty type)
{
    const struct expr like = { .at = d->from->at, .type = type };
    struct expr *e = derive_node(d, &like, EX_INPUT, which);
    e->field = i;
    return e;
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

/* The sizes: on a part, nothing is known of the one that is split. */
static const struct dimension *sizes(struct derive *d)
{
    struct dimension *to = arena_new(d->a, struct dimension, d->from->nsizes + 1);
    memcpy(to, d->from->size, sizeof *to * (size_t)d->from->nsizes);
    if (!d->folds) {
        to[d->sp->size].min = 0;
        to[d->sp->size].multiple_of = 1;
    }
    to[d->from->nsizes] =
        (struct dimension){ .name = "dist_count", .max = INT64_MAX, .multiple_of = 1, .at = d->from->at };
    return to;
}

static const struct prog_param *params(struct derive *d)
{
    static const char *const more[PARAMS_MORE] = { "dist_first",   "dist_total", "dist_own_first",
                                                   "dist_own_end", "dist_steps", "dist_stride" };
    struct prog_param *to = arena_new(d->a, struct prog_param, d->from->nparams + PARAMS_MORE);
    if (d->from->nparams)
        memcpy(to, d->from->param, sizeof *to * (size_t)d->from->nparams);
    for (int i = 0; i < PARAMS_MORE; i++)
        to[d->from->nparams + i] = (struct prog_param){ more[i], TY_I64, false, { 0 } };
    return to;
}

/* Elements that only others' neighbours are contribute the pad, as the identity may win against NaN; and the identity where
 * a state of such elements alone is shown. */
static void mask(struct derive *d, struct problem *p)
{
    const struct expr like = { .type = TY_I64, .at = d->from->at };
    const struct expr *at = derive_expr(d, derive_node(d, &like, EX_INDEX, d->sp->axis));
    const struct expr *edge[2];
    const bool shown = p->exclusive || p->nby > 0;
    for (int i = 0; i < 2; i++) {
        struct expr *e = derive_node(d, &like, EX_BINARY, 0);
        e->type = TY_BOOL;
        e->op = i ? BIN_LT : BIN_GE;
        e->nargs = 2;
        e->arg[0] = at;
        e->arg[1] = derive_node(d, &like, EX_PARAM, d->from->nparams + 2 + i);
        edge[i] = e;
    }
    struct expr *own = derive_node(d, edge[0], EX_BINARY, 0);
    own->op = BIN_LAND;
    own->nargs = 2;
    memcpy(own->arg, edge, sizeof edge);
    for (int r = 0; r < p->nreductions; r++) {
        struct reduction *red = &((struct reduction *)(uintptr_t)p->reduction)[r];
        for (int f = 0; f < red->op->nfields; f++) {
            struct expr *e = derive_node(d, red->map[f], EX_IF, 0);
            e->nargs = 3;
            e->arg[0] = own;
            e->arg[1] = red->map[f];
            e->arg[2] = red->op->pad[f] && !shown ? red->op->pad[f] : red->op->identity[f];
            red->map[f] = e;
        }
    }
}

/* What is beyond the part along the split dimension is of this mode. */
static const struct input *with_ghosts(struct derive *d, enum boundary_mode mode)
{
    struct input *in = arena_new(d->a, struct input, d->from->ninputs + 1);
    memcpy(in, d->from->input, sizeof *in * (size_t)d->from->ninputs);
    for (int i = 0; i < d->from->ninputs; i++)
        for (int k = 0; k < in[i].array.rank; k++)
            if (in[i].axis[k] == d->sp->axis && !d->sp->interior)
                in[i].boundary[k].mode = mode;
    return in;
}

static void unpinned(struct problem *p)
{
    p->strategy = NULL;
    p->strategy_at = span_none();
    p->ntunables = 0;
}

/* The problem on a part, with the outputs of these moments. */
static struct problem *on_part(struct derive *d, struct dist_derived *to, bool at_point, bool at_total)
{
    struct problem *p = arena_new(d->a, struct problem, 1);
    struct output *out = arena_new(d->a, struct output, d->from->noutputs + 1);
    struct read *read = arena_new(d->a, struct read, d->from->nreads + 1);
    *p = *d->from;
    to->problem = p;
    p->size = sizes(d);
    p->param = params(d);
    p->nparams += PARAMS_MORE;
    derive_named(d, p);
    p->reduction = derive_reductions(d);
    p->output = out;
    if (d->sp->before + d->sp->after > 0) {
        p->input = with_ghosts(d, BOUND_CLAMP);
        if (p->nreductions)
            mask(d, p);
        p->steps = 1;
        p->steps_param = -1;
    }
    derive_all(d, d->from->by, p->by, p->nby);
    p->noutputs = 0;
    for (int i = 0; i < d->from->noutputs; i++)
        if (output_moment(&d->from->output[i]) == AT_POINT ? at_point : at_total) {
            to->output[p->noutputs] = i;
            out[p->noutputs++] = derive_output(d, &d->from->output[i]);
        }
    p->read = read;
    for (int i = 0; i < d->from->nreads; i++)
        read[i] = (struct read){ derive_expr(d, d->from->read[i].e), d->from->read[i].uses };
    for (int i = 0; i < p->ninputs; i++)
        to->input[i] = i;
    if (d->rows)
        derive_as_rows(d, p);
    return p;
}

/* Elements that are left out keep what the outputs hold, and not what is fed back, as the user's `interior` wants. */
static bool has_inner(const struct derive *d)
{
    bool good = d->from->kind == KIND_STENCIL && !d->sp->interior;
    for (int i = 0; i < d->from->ninputs; i++)
        for (int k = 0; k < d->from->input[i].array.rank && d->from->nfeedback; k++)
            good &= !d->from->input[i].neighbours || d->from->input[i].boundary[k].mode != BOUND_INTERIOR;
    return good;
}

static void make_inner(struct derive *d, struct dist_derived *to, bool joined)
{
    struct problem *p = on_part(d, to, true, true);
    p->input = joined ? d->from->input : with_ghosts(d, BOUND_INTERIOR);
    p->iterated = false;
    p->nfeedback = 0;
    if (joined)
        derive_joined(d, p);
}

/* Several steps need ghosts for all of them.  Beyond the ends of the whole there are none: what is there follows from the
 * boundary in each step.  Where that is the other end, it has ghosts, whose positions are not those of the whole. */
static void make_steps(struct derive *d, struct dist_derived *to, bool joined)
{
    struct problem *p = on_part(d, to, true, true);
    p->input = d->from->input;
    p->steps_param = d->from->nparams + PARAM_STEPS;
    if (joined)
        derive_joined(d, p);
}

static void make_partial(struct derive *d, struct dist_derived *to)
{
    d->swapped = d->from->reverse;
    struct problem *p = on_part(d, to, d->from->kind != KIND_SCAN, false);
    d->swapped = false;
    for (int r = 0; r < p->nreductions; r++)
        memset(((struct reduction *)(uintptr_t)p->reduction)[r].init, 0, sizeof p->reduction[r].init);
    to->output[p->noutputs] = -1;
    ((struct output *)(uintptr_t)p->output)[p->noutputs++] = state_output(d, blocks(d));
    if (p->kind == KIND_SCAN) {
        unpinned(p);
        p->kind = KIND_REDUCE;
    }
    p->exclusive = p->reverse = false;
}

/* The scan with the carry, which is one more input, in place of `init`. */
static void make_next(struct derive *d, struct dist_derived *to)
{
    struct problem *p = on_part(d, to, true, false);
    unpinned(p); /* a pin for rows that are scanned alone need not fit */
    struct input *in = arena_new(d->a, struct input, p->ninputs + 1);
    memcpy(in, p->input, sizeof *in * (size_t)p->ninputs);
    in[p->ninputs] = state_input(d, blocks(d));
    to->input[p->ninputs] = -1;
    p->input = in;
    for (int r = 0, i = 0; r < p->nreductions; r++) {
        struct reduction *red = &((struct reduction *)(uintptr_t)p->reduction)[r];
        for (int f = 0; f < red->op->nfields; f++, i++)
            red->init[f] = state_field(d, p->ninputs, i, red->op->field[f]);
    }
    p->ninputs++;
}

/* Has the array the split dimension?  Then a rank has only its part, which no result reads. */
static bool is_split(const struct derive *d, const struct prog_array *a)
{
    bool split = false;
    for (int k = 0; k < a->rank; k++)
        split |= a->dim[k].size == d->sp->size;
    return split;
}

/* The space of a fold: the states, then the bins and the kept axes; and the inputs that results may read. */
static void fold_space(struct derive *d, struct problem *p, struct dist_derived *to)
{
    struct input *in = arena_new(d->a, struct input, d->from->ninputs + 1);
    in[0] = state_input(d, d->from->nsizes);
    to->input[0] = -1;
    p->ninputs = p->rank = 1;
    p->space[0] = (struct axis){ { d->from->nsizes, 0 }, true };
    p->nby = 0;
    for (int i = 0; i < d->from->nby; i++)
        p->space[p->rank++] = (struct axis){ d->from->bin[i], false };
    for (int i = 0; i < d->from->rank; i++) {
        d->axis[i] = dist_reduced(d->from, i) ? -1 : p->rank;
        if (!dist_reduced(d->from, i))
            p->space[p->rank++] = d->from->space[i];
    }
    for (int i = 0; i < d->from->ninputs; i++) {
        const struct input *from = &d->from->input[i];
        bool kept = from->role == ROLE_ELEMENT;
        for (int k = 0; k < from->array.rank; k++)
            kept &= from->axis[k] >= 0 && d->axis[from->axis[k]] >= 0;
        d->input[i] = kept ? p->ninputs : -1;
        const bool table = from->placed && !is_split(d, &from->array);
        d->table[i] = kept || table ? p->ninputs : -1;
        if (!kept && !table)
            continue;
        to->input[p->ninputs] = i;
        in[p->ninputs] = *from;
        in[p->ninputs].role = kept ? ROLE_ELEMENT : ROLE_TABLE;
        for (int k = 0; k < from->array.rank; k++)
            in[p->ninputs].axis[k] = kept ? d->axis[from->axis[k]] : -1;
        p->ninputs++;
    }
    p->input = in;
}

static void fold_outputs(struct derive *d, struct problem *p, struct dist_derived *to, enum dist_stage stage)
{
    struct output *out = arena_new(d->a, struct output, d->from->noutputs + 1);
    p->output = out;
    p->noutputs = 0;
    if (stage != STAGE_TOTAL) {
        to->output[p->noutputs] = -1;
        out[p->noutputs++] = state_output(d, stage == STAGE_CARRIES ? d->from->nsizes : -1);
    }
    for (int i = 0; i < d->from->noutputs && stage != STAGE_CARRY; i++)
        if (output_moment(&d->from->output[i]) == AT_TOTAL) {
            struct output o = derive_output(d, &d->from->output[i]);
            for (int k = 0; k < o.array.rank; k++)
                o.axis[k] = d->from->nby ? 1 + k : d->axis[o.axis[k]];
            to->output[p->noutputs] = i;
            out[p->noutputs++] = o;
        }
}

/* A fold of one block, of states that are whole words, can exchange them itself.  Consecutive parts have few states, so one
 * block is what would be chosen. */
static void fold_exchanges(const struct derive *d, struct problem *p)
{
    static const struct tunable one_block = { .name = "cluster", .value = "1" };
    struct prog_param *param = arena_new(d->a, struct prog_param, p->nparams + 1);
    p->exchanges = p->rank == 1 && !d->sp->block && d->sp->state_bytes % 4 == 0;
    if (!p->exchanges)
        return;
    if (p->nparams)
        memcpy(param, p->param, sizeof *param * (size_t)p->nparams);
    param[p->nparams++] = (struct prog_param){ "dist_exchange", TY_I64, false, { 0 } };
    p->param = param;
    p->strategy = "reduce.block";
    p->ntunables = 1;
    p->tunable = &one_block;
}

/* CARRIES is a scan in the user's direction; the others go through the states in the order in which they lie. */
static void make_fold(struct derive *d, enum dist_stage stage)
{
    struct dist_derived *to = &d->sp->stage[stage];
    struct problem *p = arena_new(d->a, struct problem, 1);
    *p = *d->from;
    d->folds = to->folds = true;
    d->scans = stage == STAGE_CARRIES;
    to->problem = p;
    p->kind = d->scans ? KIND_SCAN : KIND_REDUCE;
    p->exclusive = false;
    p->reverse = d->scans && d->from->reverse;
    p->determinism = p->determinism == DET_ANY ? DET_RUN : p->determinism; /* all ranks get the same bits */
    p->size = sizes(d);
    p->nsizes++;
    unpinned(p);
    fold_space(d, p, to);
    fold_exchanges(d, p);
    derive_named(d, p);
    struct reduction *red = derive_reductions(d);
    p->reduction = red;
    for (int r = 0, i = 0; r < p->nreductions; r++)
        for (int f = 0; f < red[r].op->nfields; f++, i++)
            red[r].map[f] = state_field(d, 0, i, red[r].op->field[f]);
    fold_outputs(d, p, to, stage);
    d->folds = d->scans = false;
}

/* What `assume` promises of the user's arrays, as the stage has them; of states it promises nothing. */
static void align(struct derive *d, const struct dist_derived *to)
{
    struct problem *p = (struct problem *)(uintptr_t)to->problem;
    unsigned char *alignment = arena_new(d->a, unsigned char, p->ninputs + p->noutputs + 1);
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const int user = i < p->ninputs ? to->input[i] : to->output[i - p->ninputs];
        alignment[i] = user < 0 ? 1 : d->from->alignment[user + (i < p->ninputs ? 0 : d->from->ninputs)];
    }
    p->alignment = alignment;
}

static void make_local(struct derive *d, bool scan)
{
    struct dist_split *sp = d->sp;
    if (!sp->combined || scan)
        on_part(d, &sp->stage[STAGE_LOCAL], true, !sp->combined);
    if (!sp->combined && sp->before + sp->after > 0 && has_inner(d))
        make_inner(d, &sp->stage[STAGE_INNER], false);
    if (sp->stage[STAGE_INNER].problem && dist_joins(sp))
        make_inner(d, &sp->stage[STAGE_JOINED], true);
    if (!sp->combined && d->from->iterated && sp->before + sp->after > 0 && sp->wraps == sp->only_wraps &&
        !(sp->wraps && sp->indexed))
        make_steps(d, &sp->stage[STAGE_STEPS], false);
    if (dist_joins_steps(sp, d->a))
        make_steps(d, &sp->stage[STAGE_JOINED_STEPS], true);
}

/* The stages of all whole blocks of a rank, and for scans what makes their carries. */
static void make_rows(struct derive *d, bool scan)
{
    struct dist_derived *stage = d->sp->stage;
    d->rows = true;
    if (d->sp->combined)
        make_partial(d, &stage[STAGE_PARTIAL_ROWS]);
    else
        on_part(d, &stage[STAGE_LOCAL_ROWS], true, true);
    if (scan)
        make_next(d, &stage[STAGE_NEXT_ROWS]);
    d->rows = false;
    if (d->from->kind == KIND_SCAN && d->sp->combined)
        make_fold(d, STAGE_CARRIES);
}

static void make_stages(struct derive *d)
{
    struct dist_split *sp = d->sp;
    const bool scan = sp->combined && d->from->kind == KIND_SCAN && problem_writes(d->from, AT_POINT);
    make_local(d, scan);
    if (sp->rows)
        make_rows(d, scan);
    if (sp->combined)
        make_partial(d, &sp->stage[STAGE_PARTIAL]);
    if (scan)
        make_next(d, &sp->stage[STAGE_NEXT]);
    if (sp->combined && !sp->stage[STAGE_CARRIES].problem) {
        if (problem_writes(d->from, AT_TOTAL))
            make_fold(d, STAGE_TOTAL);
        if (scan)
            make_fold(d, STAGE_CARRY);
    }
    for (int i = 0; i < DIST_STAGES; i++)
        if (sp->stage[i].problem)
            align(d, &sp->stage[i]);
}

/* ---- the split --------------------------------------------------------------------------------------------------- */

/* The axis that is split, or -1 after a message. */
static int axis_of(struct ptxgen_session *s, const struct problem *p, const char *split)
{
    const char *names[SPACE_MAX];
    int n = 0;
    if (p->njoined) {
        diag_error(&s->diags, D_DISTRIBUTED, p->at,
                   "not yet: more than %d dimensions split over ranks, where '%s' are one dimension", SPACE_MAX,
                   p->size[p->nsizes].name);
        return -1;
    }
    for (int i = 0; i < p->rank; i++) {
        const struct prog_dim extent = p->space[i].extent;
        if (extent.size < 0)
            continue;
        names[n++] = p->size[extent.size].name;
        if (!split || !strcmp(split, names[n - 1]))
            return i;
    }
    struct diag *m = diag_error(&s->diags, D_DISTRIBUTED, p->at, "there is no dimension %s%s to split among the ranks",
                                split ? "called " : "with a size", split ? split : "");
    if (split)
        diag_suggest(&s->diags, m, split, names, n);
    return -1;
}

const struct dist_split *dist_derive(struct ptxgen_session *s, const struct problem *p, const char *split,
                                     int64_t block)
{
    struct dist_split *sp = arena_new(&s->arena, struct dist_split, 1);
    struct derive d = { .a = &s->arena, .sp = sp, .from = p };
    const int axis = axis_of(s, p, split);
    if (axis < 0)
        return NULL;
    sp->problem = p;
    sp->axis = axis;
    sp->block = block;
    sp->size = p->space[axis].extent.size;
    sp->combined = p->kind == KIND_STENCIL ? p->nreductions > 0 : p->space[axis].reduced;
    if (!dist_supported(s, sp))
        return NULL;
    sp->rows = dist_has_rows(sp);
    make_stages(&d);
    return sp;
}
