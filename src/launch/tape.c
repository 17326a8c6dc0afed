/* SPDX-License-Identifier: Apache-2.0 */
/* tape.c - what formulas gave in an earlier launch.
 *
 * Formulas depend on sizes, integer params, the low bits of addresses, and the device.  A launch evaluates the same ones
 * in the same order whenever these are the same, so their values are kept in this order, and read back by the next such
 * launch: 0.1 us where the plan of segments between offsets takes 2.3.
 *
 * A loaded program keeps the values of one launch.  Nobody waits for them: a thread that finds another one at them
 * evaluates its formulas itself, or leaves its values unkept.
 */
#include <string.h>

#include "launch_impl.h"

enum { ADDRESS_BITS = 4 }; /* of an address: those that formulas read */

static bool take(struct tape_kept *kept) { return !atomic_exchange_explicit(&kept->taken, true, memory_order_acquire); }

static void give_back(struct tape_kept *kept) { atomic_store_explicit(&kept->taken, false, memory_order_release); }

/* False: there are too many words. */
static bool fill_key(struct tape *t, const struct program *p, const struct formula_env *env)
{
    const int pointers = p->ninputs + p->noutputs, each = 64 / ADDRESS_BITS;
    int n = p->nsizes;

    if (n + p->nparams + (pointers + each - 1) / each > TAPE_KEY_MAX)
        return false;
    if (n)
        memcpy(t->key, env->size, (size_t)n * sizeof *t->key);
    for (int i = 0; i < p->nparams; i++)
        if (ty_is_int(p->param[i].type))
            t->key[n++] = env->param[i];
    for (int i = 0; i < pointers; i++) {
        const uint64_t bits = (uintptr_t)env->pointer[i] % (1u << ADDRESS_BITS);
        const uint64_t before = i % each ? (uint64_t)t->key[n] << ADDRESS_BITS : 0;
        t->key[n] = (int64_t)(before | bits);
        n += i % each == each - 1 || i + 1 == pointers;
    }
    t->nkey = n;
    return true;
}

void tape_open(struct tape *t, struct tape_kept *kept, const struct program *p, const struct formula_env *env)
{
    const struct tape *there = &kept->tape;

    t->kept = fill_key(t, p, env) ? kept : NULL;
    t->at = 0;
    t->plays = false;
    if (t->kept == NULL || !take(kept))
        return;
    t->plays = there->nkey == t->nkey && memcmp(there->key, t->key, (size_t)t->nkey * sizeof *t->key) == 0;
    if (t->plays)
        memcpy(t->value, there->value, (size_t)there->at * sizeof *t->value);
    give_back(kept);
}

int64_t tape_formula(struct tape *t, const struct formula *f, const struct formula_env *env)
{
    return t->plays ? t->value[t->at++] : tape_put(t, formula_eval(f, env));
}

int64_t tape_put(struct tape *t, int64_t value)
{
    if (t->at < TAPE_VALUES_MAX)
        t->value[t->at] = value;
    t->at++;
    return value;
}

void tape_keep(const struct tape *t)
{
    if (t->kept == NULL || t->plays || t->at > TAPE_VALUES_MAX || !take(t->kept))
        return;
    t->kept->tape = *t;
    give_back(t->kept);
}
