/* SPDX-License-Identifier: Apache-2.0 */
/* tune_choose.c - which variants are tried next.
 *
 * Three fifths of the limit are a random selection, in which strategies take turns so that those with many tunables do
 * not crowd out the others; a strategy that is far behind after some tries gets no more.  The rest are neighbours of
 * the fastest: variants of the same strategy that differ in one tunable.
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
    return s->tried >= ENOUGH && best > 0 && (s->best == 0 || s->best > far_behind * best) && t->limit < t->space.n;
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

static int choose_neighbours(struct tuner *t, int most)
{
    int leader[LEADERS] = { 0 }, n = leaders(t, leader), chosen = 0;
    for (int k = 0; k < n; k++) {
        for (int i = 1; i < t->space.n && chosen < most; i++) {
            if (untried(t, i) && neighbours(&t->space.item[i], &t->space.item[leader[k]])) {
                t->trial[i].chosen = true;
                chosen++;
            }
        }
    }
    return chosen;
}

int tune_choose(struct tuner *t, int most)
{
    int left = (int)t->limit - t->measured, chosen = 0, best = tune_best(t);
    most = most < left ? most : left;
    if (untried(t, 0) && most > 0) { /* everything is compared with the default */
        t->trial[0].chosen = true;
        return 1;
    }
    if (t->measured >= t->limit * 3 / 5 && t->limit < t->space.n) {
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
