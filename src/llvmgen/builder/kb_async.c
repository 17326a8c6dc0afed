/* SPDX-License-Identifier: Apache-2.0 */
/* kb_async.c - asynchronous copies between global and shared memory, and the mbarriers that they report to.
 *
 * Checks what can be checked while generating (architecture, spaces, types) and numbers the ordering points; addresses
 * are computed here, so that targets get pointers to what is meant.
 */
#include "kb_impl.h"

#include "llvmgen/targets/caps.h"

bool kb_has_bulk(const kb *k) { return cap_has(CAP_BULK_COPY, k->options.sm, k->options.ptx); }
bool kb_has_copy(const kb *k) { return cap_has(CAP_COPY_ASYNC, k->options.sm, k->options.ptx); }

static bool able(kb *k, enum cap c)
{
    const bool has = cap_has(c, k->options.sm, k->options.ptx);
    kb_ready(k);
    if (!has)
        kb_misuse(k, "sm_%d with PTX %d.%d has no %s", k->options.sm, k->options.ptx / 10, k->options.ptx % 10,
                  cap_text(c));
    return has;
}

static bool in_space(kb *k, kb_ptr p, enum kb_space space)
{
    if (p.space != space)
        kb_misuse(k, "'%s' is not in %s memory", p.name ? p.name : "?", space == KB_SHARED ? "shared" : "global");
    return p.space == space;
}

static bool is_i32(kb *k, kb_val v, const char *what)
{
    if (v.ty != TY_I32)
        kb_misuse(k, "%s of type %s", what, ty_name(v.ty));
    return v.ty == TY_I32;
}

/* ---- mbarriers --------------------------------------------------------------------------------------------------- */

kb_ptr kb_mbarriers(kb *k, int count, const char *name)
{
    able(k, CAP_BULK_COPY);
    return kb_shared_v(k, TY_U64, count, name);
}

static bool mbarrier(kb *k, kb_ptr bars)
{
    if (bars.ty != TY_U64)
        kb_misuse(k, "'%s' is no mbarrier", bars.name ? bars.name : "?");
    return able(k, CAP_BULK_COPY) && in_space(k, bars, KB_SHARED) && bars.ty == TY_U64;
}

void kb_mbar_init(kb *k, kb_ptr bars, kb_val i, int arrivals)
{
    if (mbarrier(k, bars))
        k->target->mbar_init(k, kb_advance(k, bars, i).ir, arrivals, bars.name);
}

void kb_mbar_ready_at(kb *k, const char *file, int line)
{
    if (able(k, CAP_BULK_COPY) && !kb_omit(k, "mbarrier initialisation fence", file, line))
        k->target->mbar_ready(k);
}

void kb_mbar_arrive_at(kb *k, kb_ptr bars, kb_val i, const char *file, int line)
{
    kb_warp_sync_at(k, file, line);
    if (!mbarrier(k, bars) || kb_omit(k, "mbarrier arrive", file, line))
        return;
    kb_if(k, kb_eq(k, kb_lane(k), 0)) {
        k->target->mbar_arrive(k, kb_advance(k, bars, i).ir, NULL, bars.name);
    }
}

/* What is left out is the announcement: without the arrival nothing would go on. */
void kb_mbar_expect_at(kb *k, kb_ptr bars, kb_val i, kb_val bytes, const char *file, int line)
{
    if (!mbarrier(k, bars) || !is_i32(k, bytes, "number of bytes"))
        return;
    const bool announce = !kb_omit(k, "mbarrier expect", file, line);
    k->target->mbar_arrive(k, kb_advance(k, bars, i).ir, announce ? bytes.ir : NULL, bars.name);
}

void kb_mbar_wait_at(kb *k, kb_ptr bars, kb_val i, kb_val parity, const char *file, int line)
{
    if (mbarrier(k, bars) && is_i32(k, parity, "parity") && !kb_omit(k, "mbarrier wait", file, line))
        k->target->mbar_wait(k, kb_advance(k, bars, i).ir, parity.ir, bars.name);
}

/* ---- bulk copies ------------------------------------------------------------------------------------------------- */

void kb_bulk_load(kb *k, kb_ptr to, kb_ptr from, kb_val bytes, kb_ptr bars, kb_val i)
{
    const struct kb_copy c = { to.ir, from.ir, to.name, from.name, NULL };
    if (mbarrier(k, bars) && in_space(k, to, KB_SHARED) && in_space(k, from, KB_GLOBAL) &&
        is_i32(k, bytes, "number of bytes"))
        k->target->bulk_load(k, &c, bytes.ir, kb_advance(k, bars, i).ir);
}

void kb_prefetch(kb *k, kb_ptr p, int64_t bytes)
{
    if (able(k, CAP_BULK_COPY) && in_space(k, p, KB_GLOBAL))
        k->target->prefetch(k, p.ir, bytes, p.name);
}

void kb_bulk_store(kb *k, kb_ptr to, kb_ptr from, kb_val bytes)
{
    const struct kb_copy c = { to.ir, from.ir, to.name, from.name, NULL };
    if (able(k, CAP_BULK_COPY) && in_space(k, from, KB_SHARED) && in_space(k, to, KB_GLOBAL) &&
        is_i32(k, bytes, "number of bytes"))
        k->target->bulk_store(k, &c, bytes.ir);
}

void kb_bulk_commit(kb *k)
{
    if (able(k, CAP_BULK_COPY))
        k->target->bulk_commit(k);
}

void kb_bulk_wait_at(kb *k, int pending, bool read, const char *file, int line)
{
    if (able(k, CAP_BULK_COPY) && !kb_omit(k, "bulk wait", file, line))
        k->target->bulk_wait(k, pending, read);
}

void kb_proxy_fence_at(kb *k, const char *file, int line)
{
    if (able(k, CAP_BULK_COPY) && !kb_omit(k, "proxy fence", file, line))
        k->target->proxy_fence(k);
}

/* ---- threads' own copies ----------------------------------------------------------------------------------------- */

void kb_copy(kb *k, int bytes, kb_ptr to, kb_val j, kb_ptr from, kb_val i)
{
    kb_copy_or_zero(k, bytes, to, j, from, i, (kb_val){ 0 });
}

void kb_copy_or_zero(kb *k, int bytes, kb_ptr to, kb_val j, kb_ptr from, kb_val i, kb_val exists)
{
    if (bytes != 4 && bytes != 8 && bytes != 16)
        kb_misuse(k, "a copy of %d bytes", bytes);
    if (!able(k, CAP_COPY_ASYNC) || !in_space(k, to, KB_SHARED) || !in_space(k, from, KB_GLOBAL))
        return;
    const struct kb_copy c = { kb_advance(k, to, j).ir, kb_advance(k, from, i).ir, to.name, from.name, exists.ir };
    k->target->copy(k, &c, bytes);
}

void kb_copy_commit(kb *k)
{
    if (able(k, CAP_COPY_ASYNC))
        k->target->copy_commit(k);
}

void kb_copy_wait_at(kb *k, int pending, const char *file, int line)
{
    if (able(k, CAP_COPY_ASYNC) && !kb_omit(k, "copy wait", file, line))
        k->target->copy_wait(k, pending);
}
