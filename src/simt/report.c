/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - findings as text: what, kernel, block, thread, the named value, and how to see it again. */
#include "base/session.h"
#include "simt_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *report_what(int what)
{
    switch (what) {
    case SIMT_OK: return "ok";
    case SIMT_DEADLOCK: return "deadlock";
    case SIMT_DIVERGENCE: return "divergence";
    case SIMT_RACE: return "race";
    case SIMT_BOUNDS: return "out of bounds";
    case SIMT_UNINIT: return "uninitialised read";
    case SIMT_CRASH: return "crash";
    case SIMT_TWICE: return "two elements at one place";
    case SIMT_NO_MEMORY: return "no memory";
    case SIMT_STOPPED: return "ended from outside";
    default: return NULL; /* the text says what was refused */
    }
}

/* printf at the end of the report's text; what does not fit is cut off. */
static void append_list(struct simt_report *r, const char *format, va_list ap)
{
    const size_t used = strlen(r->text);
    vsnprintf(r->text + used, sizeof r->text - used, format, ap);
}

static void append(struct simt_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(struct simt_report *r, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    append_list(r, format, ap);
    va_end(ap);
}

static void append_modes(struct exec *x)
{
    char modes[128];
    report_modes(&x->options, modes, sizeof modes);
    append(x->report, " (%s)", modes);
}

void report_plain(struct simt_report *r, int what, const char *format, ...)
{
    r->what = what;
    r->text[0] = '\0';
    if (report_what(what))
        append(r, "%s: ", report_what(what));
    va_list ap;
    va_start(ap, format);
    append_list(r, format, ap);
    va_end(ap);
}

void finding(struct exec *x, int what, const char *format, ...)
{
    const struct block *b = x->block;
    report_plain(x->report, what, "kernel %s, block %d, thread %d ", b->grid->kernel, b->number,
                 (int)(x->thread - b->thread));
    va_list ap;
    va_start(ap, format);
    append_list(x->report, format, ap);
    va_end(ap);
    append_modes(x);
    exec_stop(x);
}

const char *lanes_text(uint32_t lanes, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int first = 0; first < WARP_LANES; first++) {
        if (!(lanes >> first & 1))
            continue;
        int last = first;
        while (last + 1 < WARP_LANES && lanes >> (last + 1) & 1)
            last++;
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, last > first ? "%s%d-%d" : "%s%d", used ? ", " : "",
                                     first, last);
        first = last;
    }
    return text;
}

/* ---- nothing can run ------------------------------------------------------------------------- */
/* Lanes of warp i wait at an mbarrier whose phase nobody completes. */
static bool describe_mbar(struct exec *x, const struct block *b, int i)
{
    char text[128];
    const uint32_t lanes = b->warp[i].at_mbar;
    const struct thread *t = &b->thread[i * WARP_LANES + __builtin_ctz(lanes)];
    const struct mbar *m = t->at_mbar;
    report_plain(x->report, SIMT_DEADLOCK,
                 "kernel %s, block %d: lanes %s of warp %d wait for parity %u of mbarrier '%s' (shared byte %lld)",
                 b->grid->kernel, b->number, lanes_text(lanes, text, sizeof text), i, (unsigned)t->parity, m->name,
                 (long long)(m->at - b->shared));
    append(x->report, ", which has completed %u phases and needs %u more arrivals and %lld bytes", (unsigned)m->phase,
           (unsigned)m->pending, (long long)m->bytes);
    return true;
}

/* Describes what warp i of the block waits for beyond its lanes and the block's barrier; false if for nothing. */
static bool describe_warp(struct exec *x, const struct block *b, int i)
{
    char text[128];
    const struct warp *w = &b->warp[i];
    if (w->at_mbar)
        return describe_mbar(x, b, i);
    if (w->at_team) {
        report_plain(x->report, SIMT_DIVERGENCE,
                     "kernel %s, block %d: warp %d and %u of %u threads wait at the team's barrier %s", b->grid->kernel,
                     b->number, i, (unsigned)b->team[w->team].arrived, (unsigned)b->team[w->team].threads,
                     b->team[w->team].site);
        return true;
    }
    if (!(w->at_cluster | w->at_dependency))
        return false;
    report_plain(x->report, SIMT_DEADLOCK, "kernel %s, block %d: lanes %s of warp %d wait for %s", b->grid->kernel,
                 b->number, lanes_text(w->at_cluster | w->at_dependency, text, sizeof text), i,
                 w->at_cluster ? "the cluster's barrier, where others never arrive" : "the previous kernel");
    return true;
}

/* Describes the first thing in the block that waits in vain; false when all its threads have ended. */
static bool describe_block(struct exec *x, const struct block *b)
{
    char text[128];
    if (!b->grid || b->live == 0)
        return false;
    const int nwarps = b->grid->threads / WARP_LANES;
    for (int i = 0; i < nwarps; i++) {
        const struct warp *w = &b->warp[i];
        if (!w->arrived)
            continue;
        report_plain(x->report, SIMT_DIVERGENCE, "kernel %s, block %d: lanes %s of warp %d wait in a warp operation",
                     b->grid->kernel, b->number, lanes_text(w->arrived, text, sizeof text), i);
        append(x->report, " that lanes %s never reach", lanes_text(~w->arrived, text, sizeof text));
        return true;
    }
    if (b->arrived) {
        report_plain(x->report, SIMT_DIVERGENCE,
                     "kernel %s, block %d: %d of %d threads wait at the barrier %s that the others never reach",
                     b->grid->kernel, b->number, b->arrived, b->live, b->site);
        return true;
    }
    for (int i = 0; i < nwarps; i++)
        if (describe_warp(x, b, i))
            return true;
    return false;
}

void report_stuck(struct exec *x)
{
    for (int s = 0; s < x->nslots; s++)
        if (describe_block(x, &x->blocks[s])) {
            append_modes(x);
            return;
        }
    report_plain(x->report, SIMT_DEADLOCK, "blocks remain that never start");
    append_modes(x);
}

ptxgen_status simt_status(struct ptxgen_session *s, const struct simt_report *r)
{
    switch (r->what) {
    case SIMT_OK: return PTXGEN_OK;
    case SIMT_TWICE:
        diag_hint(&s->diags, diag_error(&s->diags, D_RUN_DATA, span_none(), "%s", r->text),
                  "an output with `at` says how elements meet: combine: add, or another operator");
        return PTXGEN_INVALID;
    case SIMT_CHECK: diag_error(&s->diags, D_RUN_DATA, span_none(), "%s", r->text); return PTXGEN_INVALID;
    case SIMT_NO_MEMORY: return PTXGEN_NO_MEMORY;
    case SIMT_STOPPED: return PTXGEN_STOPPED;
    default: diag_error(&s->diags, D_RUN_FINDING, span_none(), "%s", r->text); return PTXGEN_FINDING;
    }
}
