/* SPDX-License-Identifier: Apache-2.0 */
/* kb_tuple.c - the scalar operation on every field of a tuple. */
#include "kb_impl.h"

/* Two tuples of one operation have one shape. */
static int fields(kb *k, int a, int b)
{
    if (a != b)
        kb_misuse(k, "tuples of %d and %d fields", a, b);
    return a < b ? a : b;
}

kb_tup kb_select_t(kb *k, kb_val c, kb_tup a, kb_tup b)
{
    const int n = fields(k, a.n, b.n);
    for (int i = 0; i < n; i++)
        a.e[i] = kb_select_v(k, c, a.e[i], b.e[i]);
    return a;
}

kb_tvar kb_var_t(kb *k, kb_tup init, const char *name)
{
    kb_tvar v = { .n = init.n };
    for (int i = 0; i < init.n; i++)
        v.e[i] = kb_var_v(k, init.e[i], name);
    return v;
}

kb_tup kb_get_t(kb *k, kb_tvar v)
{
    kb_tup x = { .n = v.n };
    for (int i = 0; i < v.n; i++)
        x.e[i] = kb_get_v(k, v.e[i]);
    return x;
}

void kb_set_t(kb *k, kb_tvar v, kb_tup x)
{
    const int n = fields(k, v.n, x.n);
    for (int i = 0; i < n; i++)
        kb_set_v(k, v.e[i], x.e[i]);
}

kb_tup kb_load_t(kb *k, kb_arr p, kb_val i)
{
    kb_tup x = { .n = p.n };
    for (int f = 0; f < p.n; f++)
        x.e[f] = kb_load_v(k, p.e[f], i);
    return x;
}

void kb_store_t(kb *k, kb_arr p, kb_val i, kb_tup x)
{
    const int n = fields(k, p.n, x.n);
    for (int f = 0; f < n; f++)
        kb_store_v(k, p.e[f], i, x.e[f]);
}

kb_tup kb_shfl_t(kb *k, int mode, kb_tup x, kb_val arg, int width)
{
    for (int i = 0; i < x.n; i++)
        x.e[i] = kb_shfl_v(k, mode, x.e[i], arg, width);
    return x;
}
