/* SPDX-License-Identifier: Apache-2.0 */
/* kb_thread.c - the numbers of a thread, and what threads do together.
 *
 * Special registers are read once, in the entry block.  Everything that involves several threads is first checked
 * against the open scopes: block-wide operations need block-uniform ones, warp operations warp-uniform ones.
 */
#include "kb_impl.h"

#include "llvmgen/targets/caps.h"

/* ---- registers --------------------------------------------------------------------------------------------------- */

static kb_val special(kb *k, enum kb_sreg which, kb_uni uni, const char *name)
{
    if (!k->sreg[which].ir) {
        LLVMBuilderRef saved = kb_enter_entry(k);
        k->sreg[which] = kb_name(kb_make(k->target->sreg(k, which), TY_I32, uni), name);
        kb_leave_entry(k, saved);
    }
    return k->sreg[which];
}

kb_val kb_tid(kb *k) { return special(k, KB_SREG_TID, KB_DIVERGENT, "tid"); }
kb_val kb_block(kb *k) { return special(k, KB_SREG_BLOCK, KB_UNI_BLOCK, "block"); }
kb_val kb_blocks(kb *k) { return special(k, KB_SREG_BLOCKS, KB_UNI_GRID, "blocks"); }

static void need_clusters(kb *k)
{
    if (!cap_has(CAP_CLUSTER, k->options.sm, k->options.ptx))
        kb_misuse(k, "clusters need sm_90 and PTX 7.8");
}
kb_val kb_cluster_rank(kb *k)
{
    need_clusters(k);
    return special(k, KB_SREG_CLUSTER_RANK, KB_UNI_BLOCK, "cluster_rank");
}

kb_val kb_lane(kb *k)
{
    if (k->threads <= KB_WARP)
        return kb_tid(k);
    if (!k->lane.ir) {
        const kb_val tid = kb_tid(k);
        LLVMBuilderRef saved = kb_enter_entry(k);
        k->lane = kb_name(kb_and(k, tid, KB_WARP - 1), "lane");
        kb_leave_entry(k, saved);
    }
    return k->lane;
}

/* Blocks are one-dimensional, so the threads of a warp have consecutive numbers. */
kb_val kb_warp(kb *k)
{
    if (k->threads <= KB_WARP)
        return kb_imm(k, TY_I32, 0);
    if (!k->warp.ir) {
        const kb_val tid = kb_tid(k);
        LLVMBuilderRef saved = kb_enter_entry(k);
        k->warp =
            kb_name(kb_make(LLVMBuildLShr(k->b, tid.ir, kb_imm(k, TY_I32, 5).ir, ""), TY_I32, KB_UNI_WARP), "warp");
        kb_leave_entry(k, saved);
    }
    return k->warp;
}

/* ---- synchronisation --------------------------------------------------------------------------------------------- */

void kb_barrier_at(kb *k, const char *file, int line)
{
    const struct kb_flow *team = kb_team_of(k);
    kb_require_team(k, KB_UNI_BLOCK, "barrier");
    kb_ready(k);
    if (kb_omit(k, "barrier", file, line))
        return;
    if (team)
        k->target->team_barrier(k, team->team, team->team_threads);
    else
        k->target->barrier(k);
}

void kb_warp_sync_at(kb *k, const char *file, int line)
{
    kb_require(k, KB_UNI_WARP, "warp sync");
    kb_ready(k);
    if (!kb_omit(k, "warp sync", file, line))
        k->target->warp_sync(k);
}

void kb_fence_at(kb *k, enum kb_order o, enum kb_scope_of s, const char *file, int line)
{
    static const char *const what[] = { [KB_WEAK] = "weak fence",
                                        [KB_RELAXED] = "relaxed fence",
                                        [KB_ACQUIRE] = "acquire fence",
                                        [KB_RELEASE] = "release fence",
                                        [KB_ACQ_REL] = "acquire-release fence" };
    kb_ready(k);
    if (o == KB_WEAK || o == KB_RELAXED)
        kb_misuse(k, "%s:%d: a fence without an order", kb_file_name(file), line);
    else if (!kb_omit(k, what[o], file, line))
        k->target->fence(k, o, s);
}

void kb_backoff(kb *k, int nanoseconds)
{
    kb_ready(k);
    k->target->backoff(k, nanoseconds);
}

bool kb_checks_places(const kb *k) { return k->target->placed; }

void kb_placed(kb *k, kb_ptr p, int bytes, int rank, const kb_val *index)
{
    LLVMValueRef at[3];
    if (!k->target->placed)
        return;
    kb_ready(k);
    for (int d = 0; d < 3; d++)
        at[d] = d < rank ? index[d].ir : kb_imm(k, TY_I64, 0).ir;
    k->target->placed(k, p.ir, bytes, rank, at, p.name);
}

/* ---- warp operations --------------------------------------------------------------------------------------------- */

static kb_val vote(kb *k, enum kb_vote mode, kb_val pred, enum ty result)
{
    kb_require(k, KB_UNI_WARP, "vote");
    kb_ready(k);
    if (pred.ty != (mode == KB_VOTE_MATCH ? TY_I32 : TY_BOOL)) {
        kb_misuse(k, "vote on type %s", ty_name(pred.ty));
        return kb_imm(k, result, 0);
    }
    return kb_make(k->target->vote(k, mode, pred.ir), result, mode == KB_VOTE_MATCH ? KB_DIVERGENT : KB_UNI_WARP);
}
kb_val kb_any(kb *k, kb_val pred) { return vote(k, KB_VOTE_ANY, pred, TY_BOOL); }
kb_val kb_all(kb *k, kb_val pred) { return vote(k, KB_VOTE_ALL, pred, TY_BOOL); }
kb_val kb_all_here(kb *k, kb_val pred)
{
    kb_ready(k);
    return kb_make(k->target->vote(k, KB_VOTE_HERE, pred.ir), TY_BOOL, KB_DIVERGENT);
}
kb_val kb_ballot(kb *k, kb_val pred) { return vote(k, KB_VOTE_BALLOT, pred, TY_U32); }
kb_val kb_match(kb *k, kb_val word) { return vote(k, KB_VOTE_MATCH, word, TY_U32); }

bool kb_has_redux(const kb *k) { return k->target->redux && cap_has(CAP_REDUX, k->options.sm, k->options.ptx); }

kb_val kb_redux(kb *k, enum kb_rmw op, kb_val x)
{
    kb_require(k, KB_UNI_WARP, "warp reduction");
    kb_ready(k);
    if (!kb_has_redux(k) || !ty_is_int(x.ty) || ty_bits(x.ty) != 32 || op > KB_RMW_XOR) {
        kb_misuse(k, "no warp reduction %d of type %s on sm_%d", (int)op, ty_name(x.ty), k->options.sm);
        return x;
    }
    return kb_make(k->target->redux(k, op, x.ir, ty_is_signed(x.ty)), x.ty, KB_UNI_WARP);
}

/* A value's bits as one or two 32-bit words, and back. */
static int to_words(kb *k, kb_val x, LLVMValueRef word[2])
{
    const int bits = ty_bits(x.ty);
    LLVMTypeRef i32 = k->ty[TY_U32];
    if (bits == 64) {
        LLVMValueRef both = LLVMBuildBitCast(k->b, x.ir, LLVMVectorType(i32, 2), "");
        for (unsigned i = 0; i < 2; i++)
            word[i] = LLVMBuildExtractElement(k->b, both, LLVMConstInt(i32, i, false), "");
        return 2;
    }
    word[0] = LLVMBuildBitCast(k->b, x.ir, kb_int_ty(k, bits), "");
    if (bits < 32)
        word[0] = LLVMBuildZExt(k->b, word[0], i32, "");
    return 1;
}

static LLVMValueRef from_words(kb *k, enum ty ty, LLVMValueRef word[2])
{
    const int bits = ty_bits(ty);
    LLVMTypeRef i32 = k->ty[TY_U32];
    LLVMValueRef x = word[0];
    if (bits == 64) {
        x = LLVMGetPoison(LLVMVectorType(i32, 2));
        for (unsigned i = 0; i < 2; i++)
            x = LLVMBuildInsertElement(k->b, x, word[i], LLVMConstInt(i32, i, false), "");
    } else if (bits < 32) {
        x = LLVMBuildTrunc(k->b, x, kb_int_ty(k, bits), "");
    }
    return LLVMBuildBitCast(k->b, x, k->ty[ty], "");
}

kb_val kb_shfl_v(kb *k, int mode, kb_val x, kb_val arg, int width)
{
    LLVMValueRef word[2];
    kb_require(k, KB_UNI_WARP, "shuffle");
    kb_ready(k);
    if (width < 1 || width > KB_WARP || (width & (width - 1)) != 0 || !ty_is_int(arg.ty) || ty_bits(arg.ty) != 32) {
        kb_misuse(k, "shuffle of width %d by %s", width, ty_name(arg.ty));
        return x;
    }
    const int n = to_words(k, x, word);
    for (int i = 0; i < n; i++)
        word[i] = k->target->shfl(k, mode, word[i], arg.ir, width);
    /* all lanes read the same lane, or the same value from wherever they read */
    const bool same = (mode == KB_SHFL_IDX && width == KB_WARP && arg.uni <= KB_UNI_WARP) || x.uni <= KB_UNI_WARP;
    return kb_make(from_words(k, x.ty, word), x.ty, same ? KB_UNI_WARP : KB_DIVERGENT);
}

/* ---- clusters and dependent launch ------------------------------------------------------------------------------- */

kb_ptr kb_cluster_map(kb *k, kb_ptr shared, kb_val rank)
{
    need_clusters(k);
    kb_ready(k);
    if (shared.space != KB_SHARED || rank.ty != TY_I32) {
        kb_misuse(k, "only shared memory has a counterpart in another block");
        return shared;
    }
    shared.ir = k->target->cluster_map(k, shared.ir, rank.ir);
    shared.space = KB_CLUSTER_SHARED;
    shared.uni = kb_uni_max(shared.uni, rank.uni);
    return shared;
}

/* Arrive and wait are one ordering point: half of a cluster barrier would only hang. */
void kb_cluster_arrive_at(kb *k, const char *file, int line)
{
    need_clusters(k);
    kb_require(k, KB_UNI_BLOCK, "cluster arrive");
    kb_ready(k);
    k->arrive_omitted = kb_omit(k, "cluster barrier", file, line);
    if (!k->arrive_omitted)
        k->target->cluster_arrive(k);
}

void kb_cluster_wait_at(kb *k, const char *file, int line)
{
    (void)file;
    (void)line;
    need_clusters(k);
    kb_require(k, KB_UNI_BLOCK, "cluster wait");
    kb_ready(k);
    if (!k->arrive_omitted)
        k->target->cluster_wait(k);
}

void kb_dependency_wait_at(kb *k, const char *file, int line)
{
    kb_ready(k);
    k->dependent = true;
    if (!cap_has(CAP_DEPENDENT_LAUNCH, k->options.sm, k->options.ptx))
        kb_misuse(k, "%s:%d: dependent launch needs sm_90 and PTX 7.8", kb_file_name(file), line);
    else if (!kb_omit(k, "dependency wait", file, line))
        k->target->dependency_wait(k);
}

void kb_exchange(kb *k, kb_val table)
{
    k->dependent = true;
    kb_if(k, kb_ne(k, table, 0)) {
        kb_ready(k);
        k->target->exchange(k, table.ir);
        kb_barrier(k);
    }
}

kb_val kb_halo_number(kb *k, kb_val window)
{
    kb_ready(k);
    return kb_make(k->target->halo_number(k, window.ir), TY_U32, KB_DIVERGENT);
}

void kb_halo_send(kb *k, kb_val to, kb_val word, kb_val number)
{
    kb_ready(k);
    k->target->halo_send(k, to.ir, word.ir, number.ir);
}

void kb_halo_wait(kb *k, kb_val window, kb_val from, kb_val number)
{
    kb_ready(k);
    k->target->halo_wait(k, window.ir, from.ir, number.ir);
}

kb_val kb_halo_read(kb *k, kb_val from)
{
    kb_ready(k);
    return kb_make(k->target->halo_read(k, from.ir), TY_U32, KB_DIVERGENT);
}

kb_val kb_halo_peek(kb *k, kb_val from, kb_val number, kb_val *word)
{
    kb_ready(k);
    const kb_val both = kb_make(k->target->halo_peek(k, from.ir, number.ir), TY_U64, KB_DIVERGENT);
    *word = kb_cast(k, both, TY_U32);
    return kb_eq(k, kb_cast(k, kb_shr(k, both, 32), TY_U32), number);
}

void kb_halo_done(kb *k, kb_val window, kb_val number, kb_val amount, kb_val total)
{
    kb_ready(k);
    k->target->halo_done(k, window.ir, number.ir, amount.ir, total.ir);
}

void kb_dependency_launch(kb *k)
{
    kb_ready(k);
    if (!cap_has(CAP_DEPENDENT_LAUNCH, k->options.sm, k->options.ptx))
        kb_misuse(k, "dependent launch needs sm_90 and PTX 7.8");
    else
        k->target->dependency_launch(k);
}
