/* SPDX-License-Identifier: Apache-2.0 */
/* formula_values.c - what formulas gave in an earlier launch.
 *
 * Formulas depend on sizes, integer params, the low bits of addresses, and the device.  A launch evaluates the same ones
 * in the same order whenever these are the same, so their values are kept in this order, and read back by the next such
 * launch: 0.1 us where the plan of segments between offsets takes 2.3.
 *
 * A loaded program keeps the values of a few launches.  Nobody waits for them: a thread that finds another one at them
 * evaluates its formulas itself, or leaves its values unkept.
 */
#include <string.h>

#include "launch_impl.h"

enum { ADDRESS_BITS = 4 }; /* of an address: those that formulas read */

static bool take(struct values_kept *kept)
{
    return !atomic_exchange_explicit(&kept->taken, true, memory_order_acquire);
}

static void give_back(struct values_kept *kept) { atomic_store_explicit(&kept->taken, false, memory_order_release); }

/* False: there are too many words. */
static bool fill_key(struct launch_values *t, const struct program *p, const struct formula_env *env)
{
    const int pointers = p->ninputs + p->noutputs, each = 64 / ADDRESS_BITS;
    int n = p->nsizes;

    if (n + p->nparams + (pointers + each - 1) / each > VALUES_KEY_MAX)
        return false;
    if (n)
        memcpy(t->key, env->size, (size_t)n * sizeof *t->key);
    for (int i = 0; i < p->nparams; i++)
        if (ty_is_int(p->param[i].type))
            t->key[n++] = env->param[i];
    for (int i = 0; i < pointers;) {
        uint64_t word = 0;
        for (const int end = pointers - i < each ? pointers : i + each; i < end; i++)
            word = word << ADDRESS_BITS | (uintptr_t)env->pointer[i] % (1u << ADDRESS_BITS);
        t->key[n++] = (int64_t)word;
    }
    t->nkey = n;
    return true;
}

static bool is_of(const struct launch_values *there, const struct launch_values *t)
{
    return there->nkey == t->nkey && memcmp(there->key, t->key, (size_t)t->nkey * sizeof *t->key) == 0;
}

void values_open(struct launch_values *t, struct values_kept *kept, const struct program *p,
                 const struct formula_env *env)
{
    t->kept = kept && fill_key(t, p, env) ? kept : NULL;
    t->at = 0;
    t->known = false;
    if (t->kept == NULL || !take(kept))
        return;
    for (int i = 0; i < VALUES_KEPT && !t->known; i++) {
        const int n = (kept->found + i) % VALUES_KEPT;
        if ((t->known = is_of(&kept->values[n], t))) {
            memcpy(t->value, kept->values[n].value, (size_t)kept->values[n].at * sizeof *t->value);
            kept->found = n;
        }
    }
    give_back(kept);
}

int64_t values_put(struct launch_values *t, int64_t value)
{
    if (t->at < VALUES_MAX)
        t->value[t->at] = value;
    t->at++;
    return value;
}

void values_keep(const struct launch_values *t)
{
    if (t->kept == NULL || t->known || t->at > VALUES_MAX || !take(t->kept))
        return;
    t->kept->values[t->kept->next] = *t;
    t->kept->next = (t->kept->next + 1) % VALUES_KEPT;
    give_back(t->kept);
}
