/* SPDX-License-Identifier: Apache-2.0 */
/* ticket.c - see ticket.h, and Note [Where the counter lies] in tile_state.c. */
#include "ticket.h"

static kb_ptr counter(struct gen *g, const struct tickets *l) { return gen_buffer(g, l->buffer, TY_U64); }

kb_val ticket_take(struct gen *g, const struct tickets *l)
{
    return kb_atomic(g->k, KB_RMW_ADD, counter(g, l), 0, kb_imm(g->k, TY_U64, 1));
}

kb_var ticket_take_early(struct gen *g, const struct tickets *l)
{
    kb *k = g->k;
    kb_var word = kb_var_new(k, kb_imm(k, TY_U64, 0), "ticket_word");
    kb_if(k, kb_thread0(k)) {
        kb_set(k, word, ticket_take(g, l));
    }
    return word;
}

kb_val ticket_number(struct gen *g, const struct tickets *l, kb_val word)
{
    kb *k = g->k;
    return l->bits == 32 ? kb_cast(k, word, TY_U32) : kb_cast(k, kb_and(k, word, ((int64_t)1 << l->bits) - 1), TY_U32);
}

kb_val ticket_launch(struct gen *g, const struct tickets *l, kb_val word) { return kb_shr(g->k, word, l->bits); }

kb_val ticket_tag(struct gen *g, const struct tickets *l, kb_val word)
{
    return kb_add(g->k, kb_cast(g->k, ticket_launch(g, l, word), TY_U32), 1);
}

void ticket_next_launch(struct gen *g, const struct tickets *l, kb_val launch)
{
    kb *k = g->k;
    const kb_val next = kb_add(k, launch, 1);
    if (kb_point(k, "next launch"))
        kb_store_relaxed(k, counter(g, l), 0, kb_shl(k, next, l->bits));
}

void ticket_last_begins_next(struct gen *g, const struct tickets *l, kb_val word, kb_val taken)
{
    kb *k = g->k;
    kb_if(k, kb_eq(k, ticket_number(g, l, word), kb_cast(k, kb_sub(k, taken, 1), TY_U32))) {
        ticket_next_launch(g, l, ticket_launch(g, l, word));
    }
}

kb_ptr ticket_slot(struct gen *g) { return kb_shared_v(g->k, TY_U64, 1, "ticket_slot"); }

void ticket_share(struct gen *g, kb_ptr slot, kb_val word) { kb_store(g->k, slot, 0, word); }

kb_val ticket_shared(struct gen *g, kb_ptr slot)
{
    return kb_assume_uniform(kb_load(g->k, slot, 0), KB_UNI_BLOCK); /* one word that all read */
}
