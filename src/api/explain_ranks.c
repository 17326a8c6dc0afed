/* SPDX-License-Identifier: Apache-2.0 */
/* explain_ranks.c - what a launch on several ranks is expected to take, without any of them.
 *
 * The model: each rank's part takes what one GPU takes for a problem of that size.  A scan reads its part once more before.
 * Then come the exchanges, at the slowest link that they cross; those of a single time step are beside the part, and what
 * is left of them afterwards is STEP.  Of a program, the stages of one step follow each other.
 */
#include <stdio.h>
#include <string.h>

#include "api_impl.h"
#include "dist/dist.h"
#include "explore/explain.h"
#include "ptxgen/dist.h"

enum { RANKS_MAX = 1 << 16, MACHINE = 8, STEPS_MOST = 16 };

/* Seconds of a short exchange, and bytes per second that a rank sends. */
struct link {
    const char *name;
    double first, rate;
};
/* Measured on two H200s of a machine: docs/design/ranks-nccl.md.  Between machines: a link of 400 Gbit/s for each GPU, of
 * which nine tenths are used, by its data sheet. */
static const struct link alone = { "-", 0, 1 }, near = { "peers", 3.7e-6, 365e9 }, far = { "nccl", 15e-6, 45e9 };
static const double STEP = 1.9e-6;

struct scaling {
    int ranks;
    const struct link *link;
    int64_t part, bytes, exchanges; /* elements of the split dimension; sent by a rank with each exchange (of a program:
                                       with all); per launch */
    double seconds, exchange;       /* of a launch, of which exchanges */
};

struct asked {
    const struct plan *plan;
    const struct dist_split *split;
    const ptxgen_explain_options *o;
    struct gpu_model model;
    const union value *param;
    bool pieces; /* parts are cut at pieces: of a program, for any of its stages */
};
/* A problem, or the stages of a program. */
struct asked_all {
    const char *name, *split; /* split: NULL: nothing is */
    bool program, until;
    int n;
    struct asked *of;
    bool pieces;
    int64_t whole; /* elements of the split dimension */
};

static int64_t steps_of(const struct asked *x)
{
    const struct problem *p = x->plan->problem;
    if (!p->iterated)
        return 1;
    return p->steps_param < 0 ? p->steps : x->param ? x->param[p->steps_param].i : 1;
}

/* Ghosts of one step, that a rank between two others sends. */
static int64_t ghost_bytes(const struct asked *x)
{
    const struct problem *p = x->plan->problem;
    int64_t bytes = 0;
    for (int i = 0; i < p->ninputs; i++) {
        struct prog_array row = { .stride = p->input[i].array.stride };
        for (int d = 0; d < p->input[i].array.rank; d++)
            if (p->input[i].array.dim[d].size != x->split->size)
                row.dim[row.rank++] = p->input[i].array.dim[d];
        if (p->input[i].neighbours && row.rank < p->input[i].array.rank)
            bytes += prog_array_elements(&row, x->o->size) * row.stride;
    }
    return bytes * (x->split->before + x->split->after);
}

static struct scaling scale(const struct asked *x, int ranks)
{
    const struct problem *p = x->plan->problem;
    const struct dist_split *sp = x->split;
    const bool halo = sp->before + sp->after > 0 && !sp->alike;
    struct scaling r = { .ranks = ranks, .link = ranks == 1 ? &alone : ranks <= MACHINE ? &near : &far };
    int64_t size[PROBLEM_ARGS_MAX], first;
    memcpy(size, x->o->size, sizeof *size * (size_t)p->nsizes);
    if (!sp->alike)
        dist_share(x->pieces, size[sp->size], 0, ranks, &first, &size[sp->size]);
    r.part = sp->alike ? size[0] : size[sp->size];
    r.seconds = predict(x->plan, size, x->param, &x->model, &(struct resources){ 0 }).seconds;
    if (ranks == 1)
        return r;
    const int64_t steps = steps_of(x), together = steps > 1 && sp->stage[STAGE_STEPS].problem ? STEPS_MOST : 1;
    if (halo) {
        r.exchanges = (steps + together - 1) / together;
        r.bytes = ghost_bytes(x) * (steps < together ? steps : together);
    } else if (sp->combined) {
        r.exchanges = 1;
        r.bytes = dist_state_bytes(sp, x->o->size) * (ranks - 1);
    }
    if (sp->combined && p->kind == KIND_SCAN)
        r.seconds += x->model.launch + (double)roofline_of(p, size, &x->model).read / x->model.read;
    const double each = r.link->first + (double)r.bytes / r.link->rate;
    const bool beside = halo && together == 1 && !sp->combined;
    const double part = r.exchanges ? r.seconds / (double)r.exchanges : 0;
    r.exchange = (double)r.exchanges * (!beside ? each : each > part ? each - part + STEP : STEP);
    r.seconds += r.exchange;
    return r;
}

/* The stages one after the other. */
static struct scaling scale_all(const struct asked_all *all, int ranks)
{
    struct scaling sum = scale(&all->of[0], ranks);
    int64_t first;
    if (!all->program)
        return sum;
    sum.bytes *= sum.exchanges;
    for (int i = 1; i < all->n; i++) {
        const struct scaling r = scale(&all->of[i], ranks);
        sum.bytes += r.bytes * r.exchanges;
        sum.exchanges += r.exchanges;
        sum.seconds += r.seconds;
        sum.exchange += r.exchange;
    }
    dist_share(all->pieces, all->whole, 0, ranks, &first, &sum.part);
    return sum;
}

static const char NOTE[] =
    "Expected, not measured: parts by the model of one GPU; exchanges within a machine of 8 GPUs by what two H200s "
    "take "
    "(3.7 us, 365 GB/s), between machines by a link of 400 Gbit/s for each GPU (15 us, 45 GB/s).\n";

/* "-" where there is nothing to do, on one rank or on several. */
static const char *ratio(double one, double several, char *out, size_t room)
{
    if (!(several > 0))
        return "-";
    snprintf(out, room, "%.2f", one / several);
    return out;
}

static void text(const struct asked_all *x, const struct scaling *r, int n, struct str *out)
{
    char faster[32], efficiency[32];
    str_printf(out, "%s on several GPUs (%s), split along %s%s\n", x->name, x->of[0].model.name,
               x->split ? x->split : "nothing: each rank computes all of it",
               x->program ? "; all stages of a step together" : "");
    str_add(out,
            " ranks          part   link  exchanges  bytes sent   exchange us         us   times one  efficiency\n");
    for (int i = 0; i < n; i++)
        str_printf(out, "%6d %13lld %6s %10lld %11lld %13.2f %10.2f %11s %11s\n", r[i].ranks, (long long)r[i].part,
                   r[i].link->name, (long long)r[i].exchanges, (long long)r[i].bytes, r[i].exchange * 1e6,
                   r[i].seconds * 1e6, ratio(r[0].seconds, r[i].seconds, faster, sizeof faster),
                   ratio(r[0].seconds, r[i].seconds * r[i].ranks, efficiency, sizeof efficiency));
    str_add(out, NOTE);
    if (x->until)
        str_add(out, "What ranks tell each other about `until` after a step is not counted.\n");
}

static void json(const struct asked_all *x, const struct scaling *r, int n, struct str *out)
{
    struct json j;
    json_init(&j, out, true);
    json_object(&j);
    json_key(&j, "name");
    json_string(&j, x->name);
    json_key(&j, "gpu");
    json_string(&j, x->of[0].model.name);
    json_key(&j, "split");
    json_string(&j, x->split);
    json_key(&j, "scaling");
    json_array(&j);
    for (int i = 0; i < n; i++) {
        json_object(&j);
        json_key(&j, "ranks");
        json_int(&j, r[i].ranks);
        json_key(&j, "part");
        json_int(&j, r[i].part);
        json_key(&j, "link");
        json_string(&j, r[i].link->name);
        json_key(&j, "exchanges");
        json_int(&j, r[i].exchanges);
        json_key(&j, "bytes");
        json_int(&j, r[i].bytes);
        json_key(&j, "exchange_us");
        json_double(&j, r[i].exchange * 1e6);
        json_key(&j, "us");
        json_double(&j, r[i].seconds * 1e6);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    str_addc(out, '\n');
}

/* Of one problem, without its split; false after a message. */
static bool ask(ptxgen_session *s, const struct plan *plan, const ptxgen_explain_options *o, struct asked *x)
{
    bool known;
    *x = (struct asked){ .plan = plan, .o = o };
    if (!o->size || !sizes_known(plan->problem, o->size)) {
        session_report(s, D_LAUNCH_ARGUMENT, "what ranks take depends on the sizes: give all of them");
        return false;
    }
    if (!explain_model(s, plan, o, &x->model, &known))
        return false;
    if (!known) {
        gpu_model_unknown(&s->diags, plan->device.arch);
        return false;
    }
    union value *param = arena_new(&s->arena, union value, plan->problem->nparams + 1);
    for (int i = 0; o->param && i < plan->problem->nparams; i++)
        param[i].u = o->param[i].u;
    x->param = o->param ? param : NULL;
    return true;
}

static bool ask_problem(ptxgen_session *s, const struct plan *plan, const char *split, const ptxgen_explain_options *o,
                        struct asked_all *all)
{
    struct asked *x = all->of = arena_new(&s->arena, struct asked, 1);
    if (!ask(s, plan, o, x))
        return false;
    x->split = dist_derive(s, plan->problem, split, 0);
    all->n = 1;
    all->name = plan->problem->name;
    if (x->split) {
        x->pieces = x->split->pieces;
        all->split = x->split->alike ? NULL : plan->problem->size[x->split->size].name;
    }
    return x->split != NULL;
}

static bool ask_program(ptxgen_session *s, const ptxgen_plan *plan, const char *split, const ptxgen_explain_options *o,
                        struct asked_all *all)
{
    const struct prog_stages *p = &plan->stages->data;
    struct ptxgen_dist *d = arena_new(&s->arena, struct ptxgen_dist, 1);
    ptxgen_explain_options *own = arena_new(&s->arena, ptxgen_explain_options, p->nstages);
    all->of = arena_new(&s->arena, struct asked, p->nstages);
    for (all->n = 0; all->n < p->nstages; all->n++) {
        own[all->n] = explain_stage_options(s, &p->stage[all->n], *o);
        if (!ask(s, plan->stage[all->n]->plan, &own[all->n], &all->of[all->n]))
            return false;
    }
    if (!dist_derive_program(s, d, plan->stages, split))
        return false;
    for (int i = 0; i < p->nstages; i++) {
        all->of[i].split = d->of[i]->split;
        all->of[i].pieces = d->pieces;
    }
    all->name = plan->stages->name;
    all->split = p->shape->size[d->size];
    all->whole = o->size[d->size];
    all->pieces = d->pieces;
    all->program = true;
    all->until = p->until >= 0;
    return true;
}

char *ptxgen_dist_explain(ptxgen_session *s, const ptxgen_plan *plan, const char *split,
                          const ptxgen_explain_options *options, const int *ranks, int count)
{
    ptxgen_explain_options o;
    struct asked_all x = { 0 };
    struct str out = { 0 };
    bool good = false;
    if (LACKS(s, s, plan, options, ranks) || !TAKE(s, options, &o))
        return NULL;
    WITH_MEMORY_OR(s, NULL, {
        good = api_fit_number(s, "count", count, 1, RANKS_MAX) &&
               (plan->stages ? ask_program(s, plan, split, &o, &x) : ask_problem(s, plan->plan, split, &o, &x));
        struct scaling *r = arena_new(&s->arena, struct scaling, good ? count + 1 : 1);
        r[0] = good ? scale_all(&x, 1) : r[0];
        for (int i = 0; i < count && good; i++)
            good = api_fit_number(s, "ranks", ranks[i], 1, RANKS_MAX) && (r[i + 1] = scale_all(&x, ranks[i]), true);
        if (good)
            (o.form == PTXGEN_FORM_JSON ? json : text)(&x, r, count + 1, &out);
    });
    if (!good)
        str_finish(&out);
    return good ? str_take(&out) : NULL;
}
