/* SPDX-License-Identifier: Apache-2.0 */
/* laws.c - the public API: the laws of a problem's operators, and where verdicts are kept. */
#include <stdlib.h>
#include <string.h>

#include "api_impl.h"
#include "cache/cache.h"
#include "ptxgen/stages.h"
#include "laws/laws.h"
#include "source_id.h"

struct ptxgen_laws {
    int nreductions;
    const struct law_report *report;
};

_Static_assert((int)PTXGEN_IDEMPOTENT == LAW_IDEMPOTENT && (int)PTXGEN_NO_IDENTITY == LAW_ABSENT,
               "public laws are those of laws.h");

static bool report_key(const struct problem *p, int i, const struct laws_options *o, struct cache_key *out)
{
    struct cache_keying k;
    struct str text = { 0 };
    laws_key(p, i, &text);
    cache_key_begin(&k, "laws");
    cache_key_text(&k, ptxgen_version());
    cache_key_text(&k, PTXGEN_SOURCE_ID);
    cache_key_text(&k, text.text);
    cache_key_text(&k, o->prover);
    cache_key_number(&k, o->time_limit);
    cache_key_end(&k, out);
    const bool good = !text.failed;
    str_finish(&text);
    return good;
}

/* All reports from the cache, or false. */
static bool reports_kept(ptxgen_session *s, const struct cache *cache, const struct problem *p,
                         const struct laws_options *o, struct law_report *report)
{
    bool all = cache->enabled;
    for (int i = 0; i < p->nreductions && all; i++) {
        struct cache_key key;
        struct str entry = { 0 };
        all = report_key(p, i, o, &key) && cache_get(cache, &key, &entry, NULL);
        char *text = str_take(&entry);
        const char *mine = all && text ? arena_strdup(&s->arena, text) : "";
        free(text);
        all = all && laws_read(&s->arena, mine, &report[i]);
    }
    return all;
}

static void keep_reports(const struct cache *cache, const struct problem *p, const struct laws_options *o,
                         const struct law_report *report)
{
    /* Without a prover more may be said another time. */
    for (int i = 0; i < p->nreductions && cache->enabled && report[i].prover; i++) {
        struct cache_key key;
        struct str entry = { 0 };
        laws_write(&report[i], &entry);
        if (!entry.failed && report_key(p, i, o, &key))
            cache_put(cache, &key, entry.text, entry.length);
        str_finish(&entry);
    }
}

static bool any_refuted(const struct problem *p, const struct law_report *report)
{
    for (int i = 0; i < p->nreductions; i++)
        for (int law = 0; law < LAW_COUNT; law++)
            if (report[i].law[law].expected && report[i].law[law].verdict == LAW_REFUTED)
                return true;
    return false;
}

/* A prover that is named must be one. */
static ptxgen_status fit_options(ptxgen_session *s, const struct laws_options *o)
{
    ptxgen_status status = PTXGEN_OK;
    WITH_MEMORY(s, {
        if (!api_fit_number(s, "time_limit_ms", o->time_limit, 0, INT32_MAX)) {
            status = PTXGEN_USAGE;
        } else if (!laws_prover_opens(&s->arena, o)) {
            diag_error(&s->diags, D_FILE, span_none(), "%s is no prover that can be opened", o->prover);
            status = PTXGEN_IO;
        }
    });
    return status;
}

/* stage: before the names of `more`. */
static bool append(ptxgen_session *s, ptxgen_laws *to, const ptxgen_laws *more, const char *stage)
{
    const int n = to->nreductions + more->nreductions;
    struct law_report *both = api_alloc(s, sizeof *both * (size_t)(n + 1));
    for (int k = 0; both && k < n; k++)
        both[k] = k < to->nreductions ? to->report[k] : more->report[k - to->nreductions];
    for (int k = to->nreductions; both && k < n; k++)
        WITH_MEMORY_OR(s, false, both[k].name = arena_printf(&s->arena, "%s.%s", stage, both[k].name));
    if (both)
        *to = (ptxgen_laws){ n, both };
    return both != NULL;
}

/* The reports of all stages, one after the other. */
static ptxgen_status check_stages(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_laws_options *options,
                                  ptxgen_laws **out)
{
    const int count = ptxgen_stage_count(p);
    ptxgen_status status = PTXGEN_OK;
    ptxgen_laws *all = api_alloc(s, sizeof *all);
    if (!all)
        return PTXGEN_NO_MEMORY;
    for (int i = 0; i < count; i++) {
        ptxgen_laws *own;
        const ptxgen_status one = ptxgen_laws_check(s, ptxgen_stage_problem(p, i), options, &own);
        status = one == PTXGEN_OK ? status : one;
        if (!own)
            return one;
        if (!append(s, all, own, ptxgen_stage_name(p, i)))
            return PTXGEN_NO_MEMORY;
    }
    *out = all;
    return status;
}

ptxgen_status ptxgen_laws_check(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_laws_options *options,
                                ptxgen_laws **out)
{
    ptxgen_laws_options from;
    CLEAR(out);
    if (LACKS(s, s, p, out) || !TAKE(s, options, &from))
        return PTXGEN_USAGE;
    if (p->stages)
        return check_stages(s, p, &from, out);
    const struct laws_options o = { .prover = from.prover, .time_limit = from.time_limit_ms };
    const struct problem *problem = NULL;
    struct law_report *report = NULL;
    struct cache cache;
    cache_locate(&cache, from.cache);
    const ptxgen_status fits = fit_options(s, &o);
    if (fits != PTXGEN_OK)
        return fits;
    WITH_MEMORY(s, {
        problem = laws_subject(&s->arena, p->problem);
        report = arena_new(&s->arena, struct law_report, problem->nreductions + 1);
        if (reports_kept(s, &cache, problem, &o, report)) {
            laws_complain(s, problem, report);
        } else {
            laws_check(s, problem, &o, report);
            keep_reports(&cache, problem, &o, report);
        }
        *out = arena_new(&s->arena, ptxgen_laws, 1);
        (*out)->nreductions = problem->nreductions;
        (*out)->report = report;
    });
    return any_refuted(problem, report) ? PTXGEN_INVALID : PTXGEN_OK;
}

int ptxgen_laws_count(const ptxgen_laws *laws) { return laws ? laws->nreductions * LAW_COUNT : 0; }

ptxgen_status ptxgen_laws_get(const ptxgen_laws *laws, int i, ptxgen_law_info *out)
{
    if (!out || i < 0 || i >= ptxgen_laws_count(laws))
        return PTXGEN_USAGE;
    const struct law_report *r = &laws->report[i / LAW_COUNT];
    const enum law law = (enum law)(i % LAW_COUNT);
    const struct law_finding *f = &r->law[law];
    *out = (ptxgen_law_info){ .reduction = r->name,
                              .operator_name = r->operator,
                              .law =(ptxgen_law) law,
                              .law_name = law_name(law),
                              .verdict = (ptxgen_verdict)f->verdict,
                              .verdict_text = law_verdict_text(f->verdict, r->integers),
                              .expected = f->expected,
                              .example = f->example,
                              .cause = f->cause,
                              .method = f->method ? f->method : "",
                              .identity = law == LAW_IDENTITY ? r->identity : NULL };
    return PTXGEN_OK;
}

static ptxgen_status apply_stages(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_laws *laws,
                                  ptxgen_problem **out)
{
    ptxgen_problem *whole = api_alloc(s, sizeof *whole);
    ptxgen_problem **stage = api_alloc(s, sizeof *stage * (size_t)ptxgen_stage_count(p));
    ptxgen_status status = whole && stage ? PTXGEN_OK : PTXGEN_NO_MEMORY;
    ptxgen_laws own = { 0, laws->report };
    if (status != PTXGEN_OK)
        return status;
    *whole = *p;
    whole->stage = stage;
    for (int i = 0; i < ptxgen_stage_count(p) && status == PTXGEN_OK; i++) {
        WITH_MEMORY(s, own.nreductions = laws_subject(&s->arena, p->stage[i]->problem)->nreductions;);
        status = ptxgen_laws_apply(s, p->stage[i], &own, &whole->stage[i]);
        own.report += own.nreductions;
    }
    *out = status == PTXGEN_OK ? whole : NULL;
    return status;
}

ptxgen_status ptxgen_laws_apply(ptxgen_session *s, ptxgen_problem *p, const ptxgen_laws *laws, ptxgen_problem **out)
{
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, s, p, laws, out);
    if (p->stages)
        return apply_stages(s, p, laws, out);
    WITH_MEMORY(s, {
        const struct problem *better = laws_apply(s, p->problem, laws->report);
        *out = p;
        if (better != p->problem) {
            *out = arena_new(&s->arena, ptxgen_problem, 1);
            **out = *p;
            (*out)->problem = better;
        }
    });
    return PTXGEN_OK;
}
