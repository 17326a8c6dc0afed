/* SPDX-License-Identifier: Apache-2.0 */
/* places.c - see places.h. */
#include "places.h"

static void store_alone(const struct places *p, int output)
{
    for (int i = 0; i < p->n; i++)
        kb_if(p->g->k, p->inside(p->of, i)) {
            struct point pt;
            p->point(p->of, &pt, i);
            output_store(&pt, output);
        }
}

static void store_together(const struct places *p, int output)
{
    kb_val x[PLACES_AT_ONCE_MAX];
    for (int i = 0; i < p->n; i += p->at_once) {
        for (int j = 0; j < p->at_once; j++) {
            struct point pt;
            p->point(p->of, &pt, i + j);
            x[j] = output_value(&pt, output, 0);
        }
        p->store(p->of, output, i, x);
    }
}

static void keep(const struct places *p, int output)
{
    for (int i = 0; i < p->n; i++) {
        kb_val x[STATE_FIELDS_MAX];
        struct point pt;
        p->point(p->of, &pt, i);
        for (int f = 0; f < p->g->p->output[output].array.nfields; f++)
            x[f] = output_value(&pt, output, f);
        p->keep(p->of, output, i, x);
    }
}

void places_store(const struct places *p)
{
    for (int o = 0; o < p->g->p->noutputs; o++) {
        if (output_moment(&p->g->p->output[o]) != AT_POINT)
            continue;
        switch (p->way(p->of, o)) {
        case STORE_ALONE: store_alone(p, o); break;
        case STORE_TOGETHER: store_together(p, o); break;
        case STORE_KEPT: keep(p, o); break;
        case STORE_DONE: break;
        case STORE_PACKED: p->store(p->of, o, 0, NULL); break;
        }
    }
}
