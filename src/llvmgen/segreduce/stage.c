/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - see stage.h. */
#include "stage.h"

enum { VECTOR_BYTES = 16, WORDS_AT_ONCE = 64 };

static kb_ptr typed(kb_ptr p, enum ty ty)
{
    p.ty = ty;
    return p;
}

void staged_init(struct stages *s, struct gen *g, int count, int elements, bool lines)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    *s = (struct stages){ .g = g, .count = count, .lines = lines };
    for (int i = 0; i < g->p->ninputs; i++) {
        if (!access_input_direct(g->p, i))
            continue;
        struct staged *a = &s->array[s->arrays++];
        *a = (struct staged){ .input = i, .bytes = elements * g->p->input[i].array.stride + (lines ? STAGED_LINE : 0) };
        a->memory = kb_advance(k, kb_shared_v(k, TY_U8, warps * count * a->bytes, "tiles"),
                               kb_mul(k, kb_warp(k), count * a->bytes));
    }
}

int staged_stride(const struct stages *s, int i) { return s->g->p->input[s->array[i].input].array.stride; }

/* Of a stage, from the warp's first one on. */
static kb_val stage_offset(const struct stages *s, int i, kb_val stage)
{
    return s->count == 1 ? kb_imm(s->g->k, TY_I32, 0) : kb_mul(s->g->k, stage, s->array[i].bytes);
}

kb_ptr staged_memory(const struct stages *s, int i, kb_val stage)
{
    return kb_advance(s->g->k, s->array[i].memory, stage_offset(s, i, stage));
}

kb_ptr staged_source(const struct stages *s, int i, kb_val first)
{
    kb *k = s->g->k;
    return kb_advance(k, typed(gen_input(s->g, s->array[i].input), TY_U8), kb_mul(k, first, staged_stride(s, i)));
}

kb_val staged_skew(const struct stages *s, int i, kb_val first)
{
    kb *k = s->g->k;
    if (!s->lines)
        return kb_imm(k, TY_I32, 0);
    return kb_and(k, kb_cast(k, kb_mul(k, first, staged_stride(s, i)), TY_I32), STAGED_LINE - 1);
}

void staged_copy_words(const struct stages *s, kb_ptr into, kb_ptr source, enum ty ty, int n, int items, kb_val from,
                       kb_val to)
{
    kb *k = s->g->k;
    const int bytes = n * ty_bytes(ty);
    kb_for(k, base, from, to, KB_WARP * bytes * items) {
        kb_val at[WORDS_AT_ONCE], x[WORDS_AT_ONCE][GEN_VECTOR_MAX];
        for (int i = 0; i < items; i++) {
            at[i] = kb_add(k, base, kb_mul(k, kb_add(k, kb_lane(k), i * KB_WARP), bytes));
            const kb_ptr there = kb_advance(k, source, kb_min(k, at[i], kb_sub(k, to, bytes)));
            kb_load_n(k, typed(there, ty), kb_imm(k, TY_I32, 0), n, bytes, x[i]);
        }
        for (int i = 0; i < items; i++) {
            kb_if(k, kb_lt(k, at[i], to)) {
                kb_store_n(k, typed(kb_advance(k, into, at[i]), ty), kb_imm(k, TY_I32, 0), n, bytes, x[i]);
            }
        }
    }
}

void staged_copy(const struct stages *s, int i, kb_val stage, kb_val first, kb_val elements)
{
    kb *k = s->g->k;
    const kb_val zero = kb_imm(k, TY_I32, 0);
    const int stride = staged_stride(s, i);
    const kb_val bytes = kb_mul(k, elements, stride), whole = kb_and(k, bytes, -VECTOR_BYTES);
    const kb_ptr into = staged_memory(s, i, stage), source = staged_source(s, i, first);
    if (s->g->c->aligned) {
        const int all = s->array[i].bytes / (VECTOR_BYTES * KB_WARP), most = all < WORDS_AT_ONCE ? all : WORDS_AT_ONCE;
        staged_copy_words(s, into, source, TY_U32, 4, most > 0 ? most : 1, zero, whole);
        staged_copy_words(s, into, source, TY_U8, 1, 1, whole, bytes);
    } else {
        staged_copy_words(s, into, source,
                          stride % 4 == 0   ? TY_U32
                          : stride % 2 == 0 ? TY_U16
                                            : TY_U8,
                          1, 8, zero, bytes);
    }
}

void staged_load(const struct stages *s, kb_val stage, kb_val first, kb_val at, int n, struct direct *out)
{
    kb *k = s->g->k;
    for (int i = 0, slot = 0; i < s->arrays; i++) {
        const struct prog_array *a = &s->g->p->input[s->array[i].input].array;
        const kb_val begin = kb_add(k, stage_offset(s, i, stage), staged_skew(s, i, first));
        const kb_val byte = kb_add(k, begin, kb_mul(k, at, a->stride));
        const kb_ptr p = typed(kb_advance(k, s->array[i].memory, byte), gen_input(s->g, s->array[i].input).ty);
        for (int u = 0; u < n; u++)
            for (int f = 0; f < a->nfields; f++)
                out[u].v[slot + f] = gen_load_field(s->g, a, p, kb_imm(k, TY_I32, u), f);
        slot += a->nfields;
    }
}
