/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c - which variants are tried next.
 *
 * A space of millions is not gathered; the space of a tuning holds a random selection, and grows where it is worth it.
 * First come the neighbours of what the default is at these sizes: variants of the same strategy that differ in one
 * tunable.  Up to three fifths of the limit are then drawn at random, three of four with their less important tunables
 * at their usual values; strategies take turns, so that those with many tunables do not crowd out the others, and one
 * that is far slower after some tries gets no more.  The rest are neighbours of the fastest.
 */
#include <stdlib.h>
#include <string.h>

#include "tune.h"

enum { ENOUGH = 12, LEADERS = 5 };
static const double far_behind = 2;

int tune_best(const struct tuner *t)
{
    int best = -1;
    for (int i = 0; i < t->space.n; i++) {
        const struct trial *x = &t->trial[i];
        if (x->outcome == OUT_OK && x->seconds > 0 && (best < 0 || x->seconds < t->trial[best].seconds)) {
            best = i;
        }
    }
    return best;
}

static bool untried(const struct tuner *t, int i) { return t->trial[i].outcome == OUT_NEW && !t->trial[i].chosen; }

/* How a strategy does so far. */
struct standing {
    int tried;
    double best;
};

static struct standing standing_of(const struct tuner *t, const char *strategy)
{
    struct standing s = { 0 };
    for (int i = 1; i < t->space.n; i++) {
        if (strcmp(t->space.item[i].strategy, strategy) == 0 &&
            (t->trial[i].outcome != OUT_NEW || t->trial[i].chosen)) {
            s.tried++;
            double x = t->trial[i].seconds;
            s.best = x > 0 && (s.best == 0 || x < s.best) ? x : s.best;
        }
    }
    return s;
}

static bool given_up(const struct tuner *t, const struct standing *s, double best)
{
    return s->tried >= ENOUGH && best > 0 && (s->best == 0 || s->best > far_behind * best) && t->limit < t->all;
}

/* The strategy with the fewest tries that still has untried variants; NULL: none. */
static const char *next_strategy(const struct tuner *t, double best)
{
    const char *found = NULL, *last = "";
    int fewest = 0;
    for (int i = 1; i < t->space.n; i++) {
        const char *name = t->space.item[i].strategy;
        if (!untried(t, i) || !strcmp(name, last)) {
            continue;
        }
        last = name;
        struct standing s = standing_of(t, name);
        if (!given_up(t, &s, best) && (!found || s.tried < fewest)) {
            found = name;
            fewest = s.tried;
        }
    }
    return found;
}

/* A random untried variant of a strategy. */
static int draw(const struct tuner *t, const char *strategy, uint64_t bits)
{
    int n = 0;
    for (int i = 1; i < t->space.n; i++) {
        n += untried(t, i) && !strcmp(t->space.item[i].strategy, strategy);
    }
    int k = (int)(bits % (uint64_t)n), i = 1;
    while (!untried(t, i) || strcmp(t->space.item[i].strategy, strategy) != 0 || k-- > 0) {
        i++;
    }
    return i;
}

static bool neighbours(const struct variant_item *a, const struct variant_item *b)
{
    int different = 0;
    if (strcmp(a->strategy, b->strategy) != 0) {
        return false;
    }
    for (int i = 0; i < a->ntunables; i++) {
        different += a->value[i] != b->value[i];
    }
    return different == 1;
}

/* The fastest few, fastest first. */
static int leaders(const struct tuner *t, int *leader)
{
    int n = 0;
    for (int i = 1; i < t->space.n; i++) {
        const struct trial *x = &t->trial[i];
        if ((x->outcome != OUT_OK && x->outcome != OUT_SLOW) || x->seconds <= 0) {
            continue;
        }
        int at = n < LEADERS ? n++ : LEADERS - 1;
        if (at == LEADERS - 1 && n == LEADERS && leader[at] != 0 && t->trial[leader[at]].seconds <= x->seconds) {
            continue;
        }
        while (at > 0 && t->trial[leader[at - 1]].seconds > x->seconds) {
            leader[at] = leader[at - 1];
            at--;
        }
        leader[at] = i;
    }
    return n;
}

/* Up to `most` untried neighbours of an item, which join the space. */
static int choose_beside(struct tuner *t, int leader, int most)
{
    int chosen = 0;
    if (!t->trial[leader].expanded && most > 0) {
        t->trial[leader].expanded = true;
        if (space_gather_beside(t->job.session, t->native, t->job.problem, t->job.size, leader, false, &t->space) ||
            tune_grow(t)) {
            return 0;
        }
    }
    for (int i = 1; i < t->space.n && chosen < most; i++) {
        if (untried(t, i) && neighbours(&t->space.item[i], &t->space.item[leader])) {
            t->trial[i].chosen = true;
            chosen++;
        }
    }
    return chosen;
}

static int choose_neighbours(struct tuner *t, int most)
{
    int leader[LEADERS] = { 0 }, n = leaders(t, leader), chosen = 0;
    for (int k = 0; k < n; k++) {
        chosen += choose_beside(t, leader[k], most - chosen);
    }
    return chosen;
}

/* The strategy and tunables of the default at these sizes: one that is a variant has neighbours. */
static int add_twin(struct tuner *t)
{
    const struct compiling how = tune_compiling(t);
    const ptxgen_plan_options pin = space_pin(&how, "default");
    ptxgen_plan *plan;
    ptxgen_status made = ptxgen_plan_create(t->job.session, t->job.problem, &pin, &plan);
    if (made != PTXGEN_OK) {
        return fail_call(t->job.session, made, "planning");
    }
    char *id = ptxgen_plan_variant(plan);
    t->twin = id && t->all > 0 ? space_add(&t->space, id) : 0;
    ptxgen_free(id);
    return t->twin < 0 || !id ? fail(EXIT_DEVICE, "out of memory") : EXIT_OK;
}

int tune_gather(struct tuner *t)
{
    const struct selection everything = { 0 };
    struct selection some = { .main_only = true, .draw = t->limit * 3, .seed = (uint64_t)t->seed };
    struct census census;
    int status = space_count(t->job.session, t->native, t->path, t->job.size, &everything, &census);
    t->all = census_legal(&census);
    census_finish(&census);
    status = status || space_add(&t->space, "default") == 0 ? status : fail(EXIT_DEVICE, "out of memory");
    status = status || t->options->set.n || t->options->strategy ? status : add_twin(t);
    if (t->all <= t->limit) {
        return status ? status
                      : space_gather(t->job.session, t->native, t->job.problem, t->job.size, &everything, &t->space);
    }
    status = status ? status : space_gather(t->job.session, t->native, t->job.problem, t->job.size, &some, &t->space);
    some.main_only = false;
    some.draw = t->limit;
    return status ? status : space_gather(t->job.session, t->native, t->job.problem, t->job.size, &some, &t->space);
}

int tune_choose(struct tuner *t, int most)
{
    int left = (int)t->limit - t->measured, chosen = 0, best = tune_best(t);
    most = most < left ? most : left;
    if (untried(t, 0) && most > 0) { /* everything is compared with the default */
        t->trial[0].chosen = true;
        return 1;
    }
    if (t->twin > 0 && t->limit < t->all) {
        t->trial[t->twin].chosen = untried(t, t->twin) && most > 0;
        chosen = t->trial[t->twin].chosen;
        chosen += choose_beside(t, t->twin, most - chosen);
    }
    if (chosen == 0 && t->measured >= t->limit * 3 / 5 && t->limit < t->all) {
        chosen = choose_neighbours(t, most);
    }
    uint64_t key = data_key((uint64_t)t->seed, "tune");
    while (chosen < most) {
        const char *strategy = next_strategy(t, best < 0 ? 0 : t->trial[best].seconds);
        if (!strategy) {
            break;
        }
        t->trial[draw(t, strategy, data_bits(key, (uint64_t)(t->measured + chosen)))].chosen = true;
        chosen++;
    }
    return chosen;
}
