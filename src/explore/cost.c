/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - see cost.h.
 *
 * The model: a launch costs what an empty kernel costs.  Memory moves the bytes of all arrays once per pass, at the
 * rate of reading, writing or copying; it needs latency x bandwidth bytes in flight (Little), which resident blocks x
 * threads x loads of a thread must supply.  Arithmetic issues one f32 operation per lane and cycle, which is half of a
 * GPU's FLOP/s.
 */
#include "cost.h"

#include "lower/access.h"

#include <string.h>

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
    formula_print_unmet(&plan->cases[c].code.guard, names, &site.env, unmet);
    return formula_eval(&plan->cases[c].code.guard, &site.env) != 0;
}

static int case_at(const struct plan *plan, const struct launch_site *site)
{
    for (int c = 0; c < plan->ncases; c++)
        if (formula_eval(&plan->cases[c].code.guard, &site->env))
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
    struct prediction out = { .case_index = case_at(plan, &site), .in_flight = 1 };
    if (out.case_index < 0)
        return out;
    const struct plan_case *c = &plan->cases[out.case_index];
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
