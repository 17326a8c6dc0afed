/* SPDX-License-Identifier: Apache-2.0 */
/* kb_flow.c - control flow of device programs: scopes on a stack, and which threads may be where.
 *
 * Every scope knows how different the threads inside may be (`uni`, from its condition; a loop's from the conditions it
 * is left by) and how different an operation inside lets them be (`need`).  A barrier is checked against the scopes
 * that are open; a break after it in the same loop is checked against the barrier, which the next iteration meets
 * again.
 */
#include "kb_impl.h"

#include <string.h>

kb_val kb_assume_uniform(kb_val v, kb_uni u)
{
    v.uni = u;
    return v;
}

unsigned kb_place(const kb *k) { return k->depth ? k->flow[k->depth - 1].place : 0; }

bool kb_reaches(const kb *k, unsigned place)
{
    if (place == 0)
        return true;
    for (int i = 0; i < k->depth; i++)
        if (k->flow[i].place == place)
            return true;
    return false;
}

const struct kb_flow *kb_team_of(const kb *k)
{
    for (int i = k->depth - 1; i >= 0; i--)
        if (k->flow[i].team)
            return &k->flow[i];
    return NULL;
}

/* Scopes up to number `team` need only keep warps together. */
static void require(kb *k, kb_uni least, const char *what, int team)
{
    for (int i = 0; i < k->depth; i++) {
        struct kb_flow *f = &k->flow[i];
        const kb_uni need = i <= team ? kb_uni_max(least, KB_UNI_WARP) : least;
        if (f->uni > need)
            kb_misuse(k, "%s inside the divergent scope opened at %s:%d", what, kb_file_name(f->file), f->line);
        if (need < f->need) {
            f->need = need;
            f->need_what = what;
        }
    }
}

void kb_require(kb *k, kb_uni need, const char *what) { require(k, need, what, -1); }

void kb_require_team(kb *k, kb_uni need, const char *what)
{
    const struct kb_flow *team = kb_team_of(k);
    require(k, need, what, team ? (int)(team - k->flow) : -1);
}

static struct kb_flow *push(kb *k, kb_uni uni, const char *file, int line)
{
    kb_ready(k);
    if (k->depth == KB_FLOW_MAX) {
        kb_misuse(k, "%s:%d: scopes nested deeper than %d", kb_file_name(file), line, KB_FLOW_MAX);
        k->depth--; /* reuse the innermost: the kernel is lost, but nothing is overrun */
    }
    struct kb_flow *f = &k->flow[k->depth++];
    *f = (struct kb_flow){ .uni = uni, .need = KB_DIVERGENT, .place = ++k->places, .file = file, .line = line };
    return f;
}

/* The innermost open scope must be the one being closed. */
static struct kb_flow *top(kb *k, int depth)
{
    if (k->depth != depth) {
        const struct kb_flow *f = &k->flow[k->depth > 0 ? k->depth - 1 : 0];
        kb_misuse(k, "%s:%d: scope left open (break, return or goto inside it?)", kb_file_name(f->file), f->line);
        k->depth = depth;
    }
    return &k->flow[depth - 1];
}

/* ---- if ---------------------------------------------------------------------------------------------------------- */

kb_scope kb_if_begin(kb *k, kb_val cond, const char *file, int line)
{
    int64_t known;
    if (cond.ty != TY_BOOL) {
        kb_misuse(k, "%s:%d: condition is not bool", kb_file_name(file), line);
        cond = kb_imm(k, TY_BOOL, 1);
    }
    if (kb_is_const(cond, &known)) {
        push(k, KB_UNI_GRID, file, line);
        return (kb_scope){ known ? KB_THEN : KB_ELSE, k->depth };
    }
    struct kb_flow *f = push(k, cond.uni, file, line);
    f->after = kb_block_after(k, "endif");
    f->next = kb_block_after(k, "else");
    LLVMBasicBlockRef then = kb_block_after(k, "then");
    LLVMBuildCondBr(k->b, cond.ir, then, f->next);
    LLVMPositionBuilderAtEnd(k->b, then);
    return (kb_scope){ KB_THEN, k->depth };
}

kb_scope kb_team_begin(kb *k, int warps, int id, const char *file, int line)
{
    enum { BARRIERS = 16 };
    if (warps < 1 || warps * KB_WARP > k->threads || id < 1 || id >= BARRIERS || kb_team_of(k))
        kb_misuse(k, "%s:%d: a team of %d warps of %d threads, barrier %d", kb_file_name(file), line, warps, k->threads,
                  id);
    const bool all = warps * KB_WARP >= k->threads;
    kb_scope s = kb_if_begin(k, all ? kb_imm(k, TY_BOOL, 1) : kb_lt(k, kb_warp(k), warps), file, line);
    struct kb_flow *f = &k->flow[k->depth - 1];
    f->team = id;
    f->team_threads = warps * KB_WARP;
    return s;
}

void kb_if_next(kb *k, kb_scope *s)
{
    struct kb_flow *f = top(k, s->depth);
    f->team = 0;
    if (f->after) {
        LLVMBuildBr(k->b, f->after);
        LLVMPositionBuilderAtEnd(k->b, s->arm == KB_THEN ? f->next : f->after);
        if (s->arm == KB_THEN) {
            f->place = ++k->places; /* what the first arm emitted is not visible in the second */
            s->arm = KB_ELSE;
            return;
        }
    }
    k->depth--;
    s->arm = KB_DONE;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

kb_scope kb_loop_begin(kb *k, const char *file, int line)
{
    struct kb_flow *f = push(k, KB_UNI_GRID, file, line);
    f->next = kb_block_after(k, "endloop");
    f->head = kb_block_after(k, "loop");
    LLVMBuildBr(k->b, f->head);
    LLVMPositionBuilderAtEnd(k->b, f->head);
    return (kb_scope){ KB_THEN, k->depth };
}

void kb_loop_end(kb *k, kb_scope *s)
{
    struct kb_flow *f = top(k, s->depth);
    LLVMBuildBr(k->b, f->head);
    LLVMPositionBuilderAtEnd(k->b, f->next);
    k->depth--;
    s->arm = KB_DONE;
}

void kb_break_if(kb *k, kb_val cond)
{
    int at = k->depth - 1;
    kb_uni uni = cond.uni;
    while (at >= 0 && !k->flow[at].head)
        uni = kb_uni_max(uni, k->flow[at--].uni);
    if (at < 0) {
        kb_misuse(k, "kb_break_if outside a loop");
        return;
    }
    struct kb_flow *f = &k->flow[at];
    f->uni = kb_uni_max(f->uni, uni);
    if (f->uni > f->need)
        kb_misuse(k, "%s inside a loop that threads leave at different times, opened at %s:%d", f->need_what,
                  kb_file_name(f->file), f->line);
    LLVMBasicBlockRef stay = kb_block_after(k, "stay");
    LLVMBuildCondBr(k->b, cond.ir, f->next, stay);
    LLVMPositionBuilderAtEnd(k->b, stay);
}

static kb_val lift(kb *k, kb_val like, kb_arg x) { return x.v.ir ? x.v : kb_imm(k, like.ty, x.imm); }

kb_val kb_for_begin(kb *k, kb_val from, kb_arg to_, kb_arg step_, const char *file, int line)
{
    const kb_val to = lift(k, from, to_), step = lift(k, from, step_);
    kb_var counter = kb_var_v(k, from, "i");
    kb_loop_begin(k, file, line);
    struct kb_flow *f = &k->flow[k->depth - 1];
    f->counter = counter;
    f->step = step;
    kb_val i = kb_get_v(k, counter);
    i.uni = kb_uni_max(from.uni, step.uni);
    f->index = i;
    kb_break_if(k, kb_bin(k, KB_GE, i, kb_arg_v(to)));
    return i;
}

/* The loop is found by its index: the macro has no room for its depth. */
kb_val kb_for_end(kb *k, kb_val i)
{
    int depth = k->depth;
    while (depth > 1 && k->flow[depth - 1].index.ir != i.ir)
        depth--;
    if (depth < 1) {
        kb_misuse(k, "end of a loop that is not open");
        return (kb_val){ NULL, TY_BOOL, KB_UNI_GRID };
    }
    struct kb_flow *f = top(k, depth);
    kb_set_v(k, f->counter, kb_bin(k, KB_ADD, i, kb_arg_v(f->step)));
    kb_loop_end(k, &(kb_scope){ KB_THEN, k->depth });
    return (kb_val){ NULL, TY_BOOL, KB_UNI_GRID };
}

/* ---- variables ----------------------------------------------------------------------------------------------------- */

/* Slots live in the entry block, where the sroa pass turns them into values.  That pass takes time for each load and
 * store: within a block, what a variable holds is known here, and a store that nothing reads goes. */
static struct kb_known *known(kb *k, kb_var v)
{
    struct kb_known *at = &k->known[v.number % KB_KNOWN];
    LLVMBasicBlockRef here = LLVMGetInsertBlock(k->b);
    if (at->slot != v.slot || at->block != here)
        *at = (struct kb_known){ .slot = v.slot, .block = here };
    return at;
}

static void assign(kb *k, kb_var v, LLVMValueRef x)
{
    struct kb_known *at = known(k, v);
    if (at->store)
        LLVMInstructionEraseFromParent(at->store);
    at->value = x;
    at->store = LLVMBuildStore(k->b, x, v.slot);
}

kb_var kb_var_v(kb *k, kb_val init, const char *name)
{
    kb_ready(k);
    kb_var v = { LLVMBuildAlloca(k->entry, k->ty[init.ty], name), init.ty, KB_DIVERGENT, k->nvars++ };
    assign(k, v, init.ir);
    return v;
}

kb_val kb_get_v(kb *k, kb_var v)
{
    kb_ready(k);
    struct kb_known *at = known(k, v);
    if (!at->value)
        at->value = LLVMBuildLoad2(k->b, k->ty[v.ty], v.slot, "");
    return kb_make(at->value, v.ty, v.uni);
}

/* A variable whose `uni` was lowered keeps that promise only if every assignment does. */
void kb_set_v(kb *k, kb_var v, kb_val x)
{
    if (x.ty != v.ty) {
        kb_misuse(k, "value of type %s assigned to a variable of type %s", ty_name(x.ty), ty_name(v.ty));
        return;
    }
    if (v.uni < KB_DIVERGENT) {
        kb_require_team(k, v.uni, "assignment to a uniform variable");
        if (x.uni > v.uni)
            kb_misuse(k, "divergent value assigned to a uniform variable");
    }
    assign(k, v, x.ir);
}
