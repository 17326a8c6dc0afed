/* SPDX-License-Identifier: Apache-2.0 */
/* reads.c - what a stencil reads, collected once: planning and emitters ask for it over and over, and lets that use
 * lets have far more paths than text.
 */
#include "frontend/frontend_impl.h"

enum { BUCKETS = 1024 };

struct collected {
    struct arena *a;
    struct read *read;
    int n, capacity;
    int capacity_next;
    int *next; /* in the same bucket, or -1 */
    int bucket[BUCKETS];
    int let_uses[LET_VALUES_MAX];
    int times; /* what is walked stands for so many copies */
};

/* A gather reads all fields of neighbours, whichever field of the state it is. */
static int field_of(const struct expr *e) { return e->kind == EX_GATHER ? 0 : e->field; }

static bool same(const struct expr *a, const struct expr *b)
{
    if (a->kind != b->kind || a->which != b->which || a->which2 != b->which2 || field_of(a) != field_of(b) ||
        a->noffsets != b->noffsets)
        return false;
    return !memcmp(a->offset, b->offset, sizeof *a->offset * (size_t)a->noffsets);
}

static unsigned hash(const struct expr *e)
{
    unsigned h = (unsigned)e->which * 31 + (unsigned)field_of(e);
    for (int d = 0; d < e->noffsets; d++)
        h = h * 1009 + (unsigned)e->offset[d];
    return h % BUCKETS;
}

static void more(int *uses, int times) { *uses = *uses + times < USES_MAX ? *uses + times : USES_MAX; }

static void add(struct collected *c, const struct expr *e)
{
    int *head = &c->bucket[hash(e)];
    for (int i = *head; i >= 0; i = c->next[i])
        if (same(c->read[i].e, e)) {
            more(&c->read[i].uses, c->times);
            return;
        }
    int n = c->n;
    ARENA_PUSH(c->a, c->next, n, c->capacity_next, *head);
    *head = c->n;
    ARENA_PUSH(c->a, c->read, c->n, c->capacity, ((struct read){ e, c->times }));
}

static void collect(const struct expr *e, void *user)
{
    struct collected *c = user;
    if (e->kind == EX_INPUT || e->kind == EX_GATHER)
        add(c, e);
    else if (e->kind == EX_LET)
        more(&c->let_uses[e->which], c->times);
}

void build_reads(struct builder *b)
{
    struct problem *p = b->p;
    struct collected *c = arena_new(b->a, struct collected, 1);
    c->a = b->a;
    c->times = 1;
    memset(c->bucket, -1, sizeof c->bucket);
    for (int o = 0; o < p->noutputs; o++)
        if (output_moment(&p->output[o]) == AT_POINT)
            output_walk(&p->output[o], collect, c);
    for (int r = 0; r < p->nreductions; r++)
        for (int i = 0; i < p->reduction[r].op->nfields; i++)
            expr_walk(p->reduction[r].map[i], collect, c);
    for (int i = p->nlets; i-- > 0;) /* uses of a let are in lets after it */
        if ((c->times = c->let_uses[i]) > 0)
            expr_walk(p->let[i].value, collect, c);
    p->nreads = c->n;
    p->read = c->read;
}
