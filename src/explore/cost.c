/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - see cost.h.
 *
 * The model, docs/model.md: a launch costs what an empty kernel costs.  A pass over the arrays takes what the busiest of
 * memory, caches, arithmetic and spills takes (traffic.c), or what its rounds of loads wait for: latency x bandwidth
 * bytes must be in flight (Little), which resident blocks x threads x loads of a thread supply.  Before and after it
 * lies the latency of the first loads and of what the strategy does with a tile, one thing after the other.
 */
#include "cost.h"

#include "lower/reduce/bins.h"
#include "lower/access.h"

#include <math.h>
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

double point_count(const struct problem *p, const int64_t *size)
{
    double points = 1;
    for (int d = 0; d < p->rank; d++)
        points *= (double)problem_extent(p, &p->space[d].extent, size);
    return points < 0 ? 0 : points;
}

struct roofline roofline_of(const struct problem *p, const int64_t *size, const struct gpu_model *m)
{
    struct roofline r;
    access_bytes(p, size, &r.read, &r.written);
    r.points = point_count(p, size);
    r.memory = memory_seconds(m, (double)r.read, (double)r.written);
    r.arithmetic = r.points * work_of(p, size, m->sm).least / (m->flops / 2);
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
        const struct prog_array *a = problem_array(p, i);
        const int64_t n = problem_elements(p, a, size);
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

/* Loads of a thread that are in flight at once: what it holds of a tile, or its points; of the tiles of a ring, all but
 * the one at hand. */
static double loads_of_thread(const struct plan_case *c)
{
    static const enum tunable_id factor[] = { TN_ITEMS, TN_VECTOR, TN_POINTS_X, TN_POINTS_Y, TN_POINTS_Z };
    double n = 1;
    for (size_t i = 0; i < sizeof factor / sizeof *factor; i++)
        if (c->strategy->tunables & 1u << factor[i] && c->tunable[factor[i]] > 0)
            n *= c->tunable[factor[i]];
    const int ring =
        c->tunable[TN_STAGES] > c->tunable[TN_COPY_STAGES] ? c->tunable[TN_STAGES] : c->tunable[TN_COPY_STAGES];
    return ring > 1 ? n * (ring - 1) : n;
}

/* Part of the lanes that have a column. */
static double lanes_used(const struct plan_case *c, const struct problem *p, const int64_t *size)
{
    const struct prog_dim *last = &p->space[p->rank - 1].extent;
    if (!(c->strategy->tunables & WITH_ROWS))
        return 1;
    const double n = (double)problem_extent(p, last, size),
                 columns = (double)(c->tunable[TN_THREADS] * c->tunable[TN_VECTOR]) / c->tunable[TN_ROWS];
    return n > 0 && columns >= 1 ? n / (ceil(n / columns) * columns) : 1;
}

static double bytes_of_point(const struct problem *p)
{
    double bytes = 0;
    for (int i = 0; i < p->ninputs; i++)
        bytes += p->input[i].role == ROLE_ELEMENT ? p->input[i].array.stride : 0;
    return bytes;
}

/* A cluster's blocks combine, too; a segment's only block or warp waits for no other. */
static struct chain chain_of(const struct plan_case *c)
{
    struct chain chain = c->strategy->chain;
    if (c->tunable[TN_CLUSTER] > 1) {
        chain.combines = chain.combines > 2 ? chain.combines : 2;
        chain.waits = 1;
    }
    if (c->tunable[TN_PARTS] == 1) {
        chain.combines = 1;
        chain.waits = 0;
    }
    if (c->strategy->tunables & WITH_ACROSS && chain.how == CHAIN_GATHERS && !c->tunable[TN_SMEM_TRANSPOSE])
        chain.combines = 2; /* tiles in lines */
    if (c->tunable[TN_LANES] && chain.how == CHAIN_CARRIES)
        chain = (struct chain){ .how = CHAIN_ONCE };
    return chain;
}

/* Seconds: a load from memory, one from L2, and what a bulk copy takes longer.  The cycles of a shuffle, of its moves, and of an operation that waits
 * for the one before. */
static const double memory_latency = 0.7e-6, l2_latency = 0.27e-6, bulk_latency = 0.4e-6;
enum { SHUFFLE_CYCLES = 25, WORD_CYCLES = 2, OPERATION_CYCLES = 5, BARRIER_CYCLES = 60, WAIT_LOADS = 3 };

/* The threads of a block combine in a tree. */
static double combine_seconds(const struct problem *p, const struct gpu_model *m, double slots, int threads)
{
    int levels = 0;
    for (int t = 1; t < threads; t *= 2)
        levels++;
    return (levels * (SHUFFLE_CYCLES + WORD_CYCLES * state_words(p, NULL) + OPERATION_CYCLES * slots) +
            BARRIER_CYCLES) /
           m->clock;
}

/* A search halves what is left; a good first guess saves half of that. */
static double search_loads(const struct problem *p, const int64_t *size)
{
    const int64_t n = p->offsets < 0 ? 1 : problem_elements(p, &p->input[p->offsets].array, size);
    double loads = 0;
    for (int64_t left = n / 4; left > 1; left /= 4)
        loads++;
    return loads;
}

/* What a pass over the arrays takes, by what does it.  The longest hides the others, but for a quarter. */
enum part { PART_MEMORY, PART_L2, PART_L1, PART_ARITHMETIC, PART_SPILLS, PARTS };
static const double not_hidden = 0.25;
static const char *const part_name[] = { "memory", "L2", "L1", "arithmetic", "spills" };
struct demand {
    double part[PARTS], bytes; /* seconds; bytes that memory moves */
    double written;            /* of these */
    double slots;              /* issue slots of a point */
    bool cached;               /* what it moves is in L2 */
};

/* Issue slots of finding where a segment between offsets ends, in all lanes that share its tile. */
enum { END_SLOTS = 300 };

/* One launch of a kernel that passes over the arrays. */
struct pass {
    const struct plan_case *c;
    int64_t grid;
    int kernel, threads, local, blocks; /* blocks of a multiprocessor */
};

/* Is it the kernel that maps with the results? */
static bool maps(const struct pass *w) { return w->c->mapper && w->kernel == w->c->mapper && !w->c->maps; }

/* … what the kernel before has left, which is little? */
static bool maps_rest(const struct pass *w) { return w->c->maps && w->c->mapper && w->kernel == w->c->mapper; }

/* Is it one that goes over the bins alone? */
static bool over_bins(const struct problem *p, const struct pass *w) { return p->nby && w->kernel != BINS_ADD; }

static struct demand demand_of(const struct problem *p, const struct pass *w, const int64_t *size,
                               const struct gpu_model *m, bool warm)
{
    const struct plan_case *c = w->c;
    const struct traffic t = traffic_of(p, size, m, c, w->kernel);
    const double sectors = m->l2_rate * 0.6 / 32, far_sectors = m->read / 116; /* gathers that an H200 does */
    struct demand d = { .bytes = t.read + t.written, .written = t.written, .slots = work_of(p, size, m->sm).slots };
    d.cached = warm && d.bytes <= (double)m->l2;
    d.part[PART_MEMORY] =
        d.cached ? d.bytes / m->l2_rate : memory_seconds(m, t.read, t.written) + t.memory_sectors / far_sectors;
    d.part[PART_L2] = t.l2 / m->l2_rate + t.l2_sectors / sectors;
    d.part[PART_L1] = t.l1_cycles / (m->clock * m->sms);
    const double ends = p->offsets < 0 ? 0 : (double)problem_elements(p, &p->input[p->offsets].array, size);
    const int times = c->tunable[TN_STEPS] > 1 ? c->tunable[TN_STEPS] : 1;
    if (!over_bins(p, w))
        d.part[PART_ARITHMETIC] = (point_count(p, size) * d.slots * times + ends * END_SLOTS) / (m->flops / 2);
    return d;
}

/* Every tile of a thread writes and reads its spills once: in L1 as far as they fit.  Where large arguments are reduced,
 * local memory is for these, which are rare. */
static double spill_seconds(const struct problem *p, const int64_t *size, const struct gpu_model *m,
                            const struct pass *w)
{
    enum { L1 = 128 << 10, CYCLE_BYTES = 128 };
    if (work_of(p, size, 0).periodic)
        return 0;
    const double moved = 2.0 * w->local * point_count(p, size) / loads_of_thread(w->c),
                 held = (double)w->blocks * w->threads * w->local;
    return moved / (held <= L1                       ? CYCLE_BYTES * m->clock * m->sms
                    : held * m->sms <= (double)m->l2 ? m->l2_rate
                                                     : m->copy);
}

/* Blocks that gather totals end a search early: a batch of their threads takes what is left. */
static const double batched = 0.7;

/* From the first load of a tile to its last word, but for the loads themselves. */
static double tile_seconds(const struct problem *p, const int64_t *size, const struct gpu_model *m,
                           const struct pass *w, const struct chain *chain, double slots, double latency)
{
    const double gathered = chain->how == CHAIN_GATHERS ? (double)w->grid / w->threads : 0;
    return chain->combines * combine_seconds(p, m, slots, w->threads) +
           chain->waits * (WAIT_LOADS + gathered) * l2_latency + (p->offsets < 0 ? 0 : chain->loads) * latency +
           chain->searches * search_loads(p, size) * (chain->how == CHAIN_GATHERS ? batched : 1) * l2_latency;
}

static double pass_seconds(const struct plan *plan, const int64_t *size, const struct gpu_model *m,
                           const struct pass *w, bool warm, struct prediction *out)
{
    const struct problem *p = strategy_problem(w->c->strategy, plan->problem);
    const struct chain chain = maps(w) || over_bins(p, w) ? (struct chain){ .how = CHAIN_ONCE } : chain_of(w->c);
    struct demand d = demand_of(p, w, size, m, warm);
    d.part[PART_SPILLS] = spill_seconds(p, size, m, w);
    const bool bulk = w->c->tunable[TN_STAGES] > 0 || w->c->tunable[TN_COPY_STAGES] > 0;
    const double latency = (d.cached ? l2_latency : memory_latency) + (bulk ? bulk_latency : 0),
                 per_tile = tile_seconds(p, size, m, w, &chain, d.slots, latency);
    const double most = (double)w->blocks * m->sms, held = (double)w->grid < most ? (double)w->grid : most;
    /* A block has no more in flight than it moves. */
    const double share = d.bytes / (double)w->grid,
                 tile = w->threads * loads_of_thread(w->c) * bytes_of_point(p) * lanes_used(w->c, p, size),
                 flight = held * (tile < share ? tile : share), rounds = flight > 0 ? d.bytes / flight : 1;
    const double waits = (rounds > 1 ? rounds - 1 : 0) *
                         (latency + (chain.how == CHAIN_CARRIES || (double)w->grid > held ? per_tile : 0));
    int largest = 0;
    double all = 0;
    for (int i = 0; i < PARTS; i++) {
        largest = d.part[i] > d.part[largest] ? i : largest;
        all += d.part[i];
    }
    const double through = d.part[largest] + (all - d.part[largest]) * not_hidden, wanted = latency * m->read,
                 busy = through > waits ? through : waits, part = rounds > 1 && flight < wanted ? flight / wanted : 1;
    out->in_flight = part < out->in_flight ? part : out->in_flight;
    if (!warm) {
        out->read += d.bytes - d.written;
        out->written += d.written;
    }
    out->bound = latency + per_tile > busy || (waits > through && part >= 1) ? "latency"
                 : waits > through                                           ? "loads in flight"
                                                                             : part_name[largest];
    return latency + per_tile + busy;
}

/* From the end of a kernel to the first instruction of the next in a stream. */
static const double follow_seconds = 0.9e-6;

/* A launch of one step, `repeat` times; few blocks behind many combine what these left. */
static double initial_bytes(const struct problem *p, const int64_t *size)
{
    double bytes = 0;
    for (int o = 0; o < p->noutputs; o++) {
        const int64_t n = p->output[o].initial[0] ? problem_elements(p, &p->output[o].array, size) : 0;
        bytes += n > 0 ? (double)n * p->output[o].array.stride : 0;
    }
    return bytes;
}

static void add_launch(const struct plan *plan, const int64_t *size, const struct gpu_model *m, const struct pass *w,
                       int64_t repeat, int64_t *widest, struct prediction *out)
{
    if (w->c->filler && w->kernel == w->c->filler) {
        const double fill = memory_seconds(m, 0, initial_bytes(plan->problem, size));
        out->launches++;
        out->seconds += fill > l2_latency ? fill : l2_latency;
        out->graph_seconds += fill > l2_latency ? fill : l2_latency;
        return;
    }
    const bool table = over_bins(strategy_problem(w->c->strategy, plan->problem), w),
               many = w->grid > *widest / 4 + (*widest % 4 > 0),
               first = out->passes <= 0 || table || maps(w) || (many && !maps_rest(w));
    *widest = first && !table && w->grid > *widest ? w->grid : *widest;
    out->launches += (int)repeat;
    out->passes += first && !table ? (double)repeat : 0;
    out->graph_seconds += (double)repeat * (first ? pass_seconds(plan, size, m, w, true, out) : l2_latency);
    out->seconds += (double)repeat * (first ? pass_seconds(plan, size, m, w, false, out) : l2_latency);
}

struct prediction predict(const struct plan *plan, const int64_t *size, const union value *param,
                          const struct gpu_model *m, const struct resources *r)
{
    struct launch_site site;
    site_init(&site, plan, size, param, m);
    struct prediction out = { .case_index = case_at(plan, &site), .in_flight = 1, .bound = "launch" };
    if (out.case_index < 0)
        return out;
    const struct plan_case *c = &plan->cases[out.case_index];
    struct pass of[PROG_ARG_MAX];
    int64_t widest = 0;
    for (int k = 0; k < c->code.nkernels; k++) {
        const ptxgen_kernel_resources *known = resources_find(r, c->code.kernel[k].name);
        const int threads = c->code.kernel[k].threads;
        const struct occupancy o =
            occupancy_of(&plan->device, threads, known ? known->registers : 0, known ? known->shared : 0);
        of[k] = (struct pass){ c, 0, k, threads, known ? known->local : 0, o.blocks > 0 ? o.blocks : 1 };
        site.resident[k] = of[k].blocks;
    }
    for (int i = 0; i < c->code.nsteps; i++) {
        const struct prog_step *step = &c->code.step[i];
        const int64_t repeat = formula_eval(&step->repeat, &site.env);
        const int64_t grid = formula_eval(&step->grid, &site.env);
        if (grid < 1 || repeat < 1)
            continue;
        of[step->kernel].grid = out.grid[step->kernel] = grid;
        add_launch(plan, size, m, &of[step->kernel], repeat, &widest, &out);
    }
    /* Launches are issued while those before are at work, neither steadily: the later of both, on average. */
    const double issue = out.launches * m->launch;
    if (issue > out.seconds)
        out.bound = "launch";
    out.seconds = hypot(issue, out.launches * follow_seconds + out.seconds);
    out.graph_seconds += out.launches * m->graph_node;
    return out;
}
