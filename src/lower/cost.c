/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - see cost.h.
 *
 * The model: a launch costs what an empty kernel costs.  Memory moves the bytes of all arrays once per pass, at the
 * rate of reading, writing or copying; it needs latency x bandwidth bytes in flight (Little), which resident blocks x
 * threads x loads of a thread must supply.  Arithmetic issues one f32 operation per lane and cycle, which is half of a
 * GPU's FLOP/s.
 */
#include "cost.h"

#include "access.h"

#include <string.h>

/* ---- operations per point ---------------------------------------------------------------------------------------- */

struct counting {
    const struct problem *p;
    const int64_t *size;
    const struct op *op; /* whose `let`s EX_OP_LET means */
    int sm;
    bool let_seen[LET_VALUES_MAX], op_let_seen[LET_VALUES_MAX];
    double times; /* neighbours of a gather */
    struct work work;
};

enum { SPECIAL_SLOTS = 8, WIDE_INTEGER_SLOTS = 2 };

/* Issue slots of an f64 operation: half rate on the architectures of data centres. */
static double f64_slots(int sm) { return sm == 70 || sm == 80 || sm == 90 || sm == 100 || sm == 103 ? 2 : 64; }

static void add_flops(struct counting *c, enum ty type, int flops, int instructions)
{
    c->work.flops += (int)(flops * c->times);
    c->work.slots += instructions * c->times * (type == TY_F64 ? f64_slots(c->sm) : 1);
}

static void add_special(struct counting *c, enum ty type)
{
    c->work.special += (int)c->times;
    c->work.slots += SPECIAL_SLOTS * c->times * (type == TY_F64 ? f64_slots(c->sm) : 1);
}

static void add_integer(struct counting *c, enum ty type)
{
    c->work.integer += (int)c->times;
    c->work.slots += c->times * (ty_bits(type) == 64 ? WIDE_INTEGER_SLOTS : 1);
}

static void count_arithmetic(struct counting *c, const struct expr *e)
{
    const enum ty type = e->arg[0]->type;
    if (e->kind == EX_CAST || e->kind == EX_IF || !ty_is_float(type))
        add_integer(c, type);
    else if (e->kind == EX_BINARY && (e->op == BIN_DIV || e->op == BIN_REM))
        add_special(c, type);
    else
        add_flops(c, type, 1, 1);
}

static void count_call(struct counting *c, const struct expr *e)
{
    const enum ty type = e->arg[e->nargs - 1]->type;
    switch ((enum fn)e->op) {
    case FN_FMA: add_flops(c, type, 2, 1); return;
    case FN_CLAMP: ty_is_float(type) ? add_flops(c, type, 2, 2) : (add_integer(c, type), add_integer(c, type)); return;
    case FN_MIN:
    case FN_MAX:
    case FN_ABS:
    case FN_SIGN:
    case FN_FLOOR:
    case FN_CEIL:
    case FN_ROUND:
    case FN_TRUNC:
    case FN_ISNAN:
    case FN_ISINF: ty_is_float(type) ? add_flops(c, type, 1, 1) : add_integer(c, type); return;
    case FN_SELECT:
    case FN_POPCOUNT:
    case FN_CLZ:
    case FN_CTZ: add_integer(c, type); return;
    default: add_special(c, type); return;
    }
}

static void count(struct counting *c, const struct expr *e);

/* The fold over the rows of an offsets input: as many neighbours as it has, one where that is not known yet. */
static void count_gather(struct counting *c, const struct expr *e)
{
    const struct prog_dim *rows = &c->p->input[e->which2].array.dim[0];
    const double outer = c->times, n = rows->size < 0                        ? (double)rows->add
                                       : c->size && c->size[rows->size] >= 0 ? (double)c->size[rows->size]
                                                                             : 1;
    c->times *= n;
    ty_is_float(e->type) ? add_flops(c, e->type, 1, 1) : add_integer(c, e->type);
    count(c, e->arg[0]);
    c->times = outer;
}

static void count_let(struct counting *c, bool *seen, const struct let *let)
{
    if (*seen)
        return;
    *seen = true;
    count(c, let->value);
}

static void count(struct counting *c, const struct expr *e)
{
    if (!e)
        return;
    switch (e->kind) {
    case EX_LET: count_let(c, &c->let_seen[e->which], &c->p->let[e->which]); return;
    case EX_OP_LET: count_let(c, &c->op_let_seen[e->which], &c->op->let[e->which]); return;
    case EX_GATHER: count_gather(c, e); return;
    case EX_CALL: count_call(c, e); break;
    case EX_UNARY:
    case EX_BINARY:
    case EX_CAST:
    case EX_IF: count_arithmetic(c, e); break;
    default: break;
    }
    for (int i = 0; i < e->nargs; i++)
        count(c, e->arg[i]);
}

int work_operations(const struct problem *p)
{
    const struct work w = work_of(p, NULL, 0);
    return w.flops + w.special + w.integer;
}

bool work_is_heavy(const struct problem *p)
{
    enum { HEAVY = 160 }; /* an H200 does some 66 in the time that 8 bytes take */
    return work_operations(p) > HEAVY;
}

struct work work_of(const struct problem *p, const int64_t *size, int sm)
{
    struct counting c = { .p = p, .size = size, .sm = sm, .times = 1 };
    for (int r = 0; r < p->nreductions; r++) {
        const struct reduction *red = &p->reduction[r];
        c.op = red->op;
        memset(c.op_let_seen, 0, sizeof c.op_let_seen);
        for (int f = 0; f < red->op->nfields; f++) {
            count(&c, red->map[f]);
            count(&c, red->op->combine[f]);
        }
    }
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; p->output[o].role == OUT_ELEMENT && f < p->output[o].array.nfields; f++)
            count(&c, p->output[o].value[f]);
    return c.work;
}

/* ---- the least time ---------------------------------------------------------------------------------------------- */

bool sizes_known(const struct problem *p, const int64_t *size)
{
    for (int i = 0; i < p->nsizes; i++)
        if (!size || size[i] < 0)
            return false;
    return true;
}

static double memory_seconds(const struct gpu_model *m, double read, double written)
{
    const double both = read < written ? read : written;
    return 2 * both / m->copy + (read - both) / m->read + (written - both) / m->write;
}

static double point_count(const struct problem *p, const int64_t *size)
{
    double points = 1;
    for (int d = 0; d < p->rank; d++)
        points *= (double)(p->space[d].extent.add + (p->space[d].extent.size < 0 ? 0 : size[p->space[d].extent.size]));
    return points < 0 ? 0 : points;
}

struct roofline roofline_of(const struct problem *p, const int64_t *size, const struct gpu_model *m)
{
    struct roofline r;
    access_bytes(p, size, &r.read, &r.written);
    r.points = point_count(p, size);
    r.memory = memory_seconds(m, (double)r.read, (double)r.written);
    r.arithmetic = r.points * work_of(p, size, m->sm).slots / (m->flops / 2);
    r.seconds = m->launch + (r.memory > r.arithmetic ? r.memory : r.arithmetic);
    return r;
}

/* ---- occupancy --------------------------------------------------------------------------------------------------- */

enum { WARP = 32, REGISTER_UNIT = 256, SHARED_UNIT = 1024 };

static void limit(struct occupancy *o, int blocks, const char *what)
{
    if (blocks < o->blocks) {
        o->blocks = blocks;
        o->limit = what;
    }
}

struct occupancy occupancy_of(const struct device *d, int threads, int registers, int shared)
{
    const int warps = (threads + WARP - 1) / WARP;
    struct occupancy o = { .blocks = d->blocks_per_sm, .limit = "blocks" };
    limit(&o, d->threads_per_sm / (warps * WARP), "threads");
    if (registers > 0) {
        const int per_warp = (registers * WARP + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
        limit(&o, d->registers_per_sm / per_warp / warps, "registers");
    }
    /* The system keeps a unit of every block's shared memory from sm_80 on. */
    const int held = (shared + 127) / 128 * 128 + (d->sm >= 80 ? SHARED_UNIT : 0);
    if (held > 0)
        limit(&o, d->shared_per_sm / held, "shared memory");
    o.warps = (double)(o.blocks * warps * WARP) / d->threads_per_sm;
    return o;
}

const ptxgen_kernel_resources *resources_find(const struct resources *r, const char *kernel)
{
    for (int i = 0; r && i < r->count; i++)
        if (!strcmp(r->of[i].kernel, kernel))
            return &r->of[i];
    return NULL;
}

/* ---- a plan at known sizes --------------------------------------------------------------------------------------- */

/* Arrays of a launch that are aligned and do not overlap. */
struct launch_site {
    struct formula_env env;
    const void *pointer[PROBLEM_ARGS_MAX];
    int64_t param[PROBLEM_ARGS_MAX];
    int resident[PROBLEM_ARGS_MAX];
};

static void site_init(struct launch_site *site, const struct plan *plan, const int64_t *size, const union value *param,
                      const struct gpu_model *m)
{
    const struct problem *p = plan->problem;
    memset(site, 0, sizeof *site);
    uintptr_t at = 1 << 20;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = i < p->ninputs ? &p->input[i].array : &p->output[i - p->ninputs].array;
        const int64_t n = prog_array_elements(a, size);
        site->pointer[i] = (const void *)at;
        at += ((uintptr_t)(n > 0 ? n * a->stride : 0) | 255) + 1;
    }
    for (int i = 0; i < p->nparams; i++)
        site->param[i] = param ? param[i].i : p->param[i].has_default ? p->param[i].value.i : 1;
    site->env = (struct formula_env){ .size = size,
                                      .param = site->param,
                                      .sms = m->sms,
                                      .arch = plan->device.sm,
                                      .smem = plan->device.shared_per_block,
                                      .resident = site->resident,
                                      .pointer = site->pointer };
}

bool case_takes(const struct plan *plan, int c, const int64_t *size, const union value *param,
                const struct gpu_model *m, const struct formula_names *names, struct str *unmet)
{
    struct launch_site site;
    site_init(&site, plan, size, param, m);
    formula_print_unmet(&plan->kase[c].code.guard, names, &site.env, unmet);
    return formula_eval(&plan->kase[c].code.guard, &site.env) != 0;
}

static int case_at(const struct plan *plan, const struct launch_site *site)
{
    for (int c = 0; c < plan->ncases; c++)
        if (formula_eval(&plan->kase[c].code.guard, &site->env))
            return c;
    return -1;
}

/* Loads of a thread that are in flight at once: what it holds of a tile, or its points. */
static double loads_of_thread(const struct plan_case *c)
{
    static const enum tunable_id factor[] = { TN_ITEMS, TN_VECTOR, TN_POINTS_X, TN_POINTS_Y, TN_POINTS_Z };
    double n = 1;
    for (size_t i = 0; i < sizeof factor / sizeof *factor; i++)
        if (c->strategy->tunables & 1u << factor[i] && c->tunable[factor[i]] > 0)
            n *= c->tunable[factor[i]];
    return n;
}

static double bytes_of_point(const struct problem *p)
{
    double bytes = 0;
    for (int i = 0; i < p->ninputs; i++)
        bytes += p->input[i].role == ROLE_ELEMENT && p->input[i].array.rank == p->rank ? p->input[i].array.stride : 0;
    return bytes;
}

/* Of the bytes in flight that memory wants: latency x bandwidth. */
static double in_flight(const struct plan *plan, const struct plan_case *c, int kernel, int64_t grid,
                        const struct occupancy *o, const struct gpu_model *m)
{
    const double latency = 0.7e-6,
                 held = (double)grid < (double)o->blocks * m->sms ? (double)grid : (double)o->blocks * m->sms;
    const double wanted = latency * m->read,
                 have = held * c->code.kernel[kernel].threads * loads_of_thread(c) * bytes_of_point(plan->problem);
    return have < wanted ? have / wanted : 1;
}

struct prediction predict(const struct plan *plan, const int64_t *size, const union value *param,
                          const struct gpu_model *m, const struct resources *r)
{
    struct launch_site site;
    site_init(&site, plan, size, param, m);
    struct prediction out = { .kase = case_at(plan, &site), .in_flight = 1 };
    if (out.kase < 0)
        return out;
    const struct plan_case *c = &plan->kase[out.kase];
    const struct roofline least = roofline_of(plan->problem, size, m);
    double busy = 0;
    int64_t widest = 0;
    struct occupancy held[PROG_ARG_MAX];
    for (int k = 0; k < c->code.nkernels; k++) {
        const ptxgen_kernel_resources *known = resources_find(r, c->code.kernel[k].name);
        held[k] = occupancy_of(&plan->device, c->code.kernel[k].threads, known ? known->registers : 0,
                               known ? known->shared : 0);
        site.resident[k] = held[k].blocks > 0 ? held[k].blocks : 1;
    }
    for (int i = 0; i < c->code.nsteps; i++) {
        const struct prog_step *step = &c->code.step[i];
        const int64_t repeat = formula_eval(&step->repeat, &site.env);
        const int64_t grid = step->kind == STEP_LAUNCH ? formula_eval(&step->grid, &site.env) : 0;
        if (grid < 1 || repeat < 1)
            continue;
        out.launches += (int)repeat;
        if (out.passes > 0 && grid <= (widest + 3) / 4) /* few blocks behind many combine what these left */
            continue;
        widest = grid > widest ? grid : widest;
        const double part = in_flight(plan, c, step->kernel, grid, &held[step->kernel], m);
        out.in_flight = part < out.in_flight ? part : out.in_flight;
        out.passes += (double)repeat;
        const double memory = least.memory / (part > 0 ? part : 1);
        busy += (double)repeat * (memory > least.arithmetic ? memory : least.arithmetic);
    }
    out.seconds = out.launches * m->launch + busy;
    return out;
}
