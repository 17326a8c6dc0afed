/* SPDX-License-Identifier: Apache-2.0 */
/* variants.c - the space of variants as text or JSON: how many each strategy has, and all of them or some that are
 * drawn at random; with --compile also how long these take to compile, and whether they do. */
#include <stdlib.h>
#include <string.h>

#include "parallel.h"
#include "progress.h"
#include "ptxgen/stages.h"
#include "tune/space.h"

struct listing {
    const struct options *o;
    ptxgen_session *s;
    ptxgen_problem *p;
    int64_t *size;
    const char *arch;
    struct census census;
    struct space space;
    double wall; /* of compiling */
};

/* ---- text ---- */
static void text_item(const struct listing *l, const struct variant_item *v)
{
    const struct compiled *c = &v->compiled;
    fputs(v->id, stdout);
    if (v->why_not) {
        printf("  no: %s", v->why_not);
    } else if (v->predicted > 0) {
        printf("  %.2f us predicted", v->predicted * 1e6);
    }
    if (l->o->compile && !v->why_not) {
        if (c->failure) {
            printf("  FAILED: %s", c->failure);
        } else {
            printf("  %.1f ms, %zu bytes", c->seconds * 1e3, c->bytes);
        }
        if (c->same_as >= 0) {
            printf(", same code as %s", l->space.item[c->same_as].id);
        }
    }
    putchar('\n');
}

/* Of those that are shown. */
struct totals {
    int legal, failed, same;
    double seconds;
};

static struct totals count(const struct space *sp)
{
    struct totals t = { 0 };
    for (int i = 0; i < sp->n; i++) {
        const struct variant_item *v = &sp->item[i];
        t.legal += !v->why_not;
        t.failed += v->compiled.failure != NULL;
        t.same += v->compiled.same_as >= 0;
        t.seconds += v->compiled.seconds;
    }
    return t;
}

static void text_census(const struct census *c)
{
    int64_t illegal = 0;
    printf("%-24s %12s %12s\n", "strategy", "variants", "illegal");
    for (int i = 0; i < c->n; i++) {
        illegal += c->row[i].illegal;
        if (c->row[i].why_not) {
            printf("%-24s %12s  %s\n", c->row[i].strategy, "-", c->row[i].why_not);
        } else {
            printf("%-24s %12lld %12lld\n", c->row[i].strategy, (long long)c->row[i].legal,
                   (long long)c->row[i].illegal);
        }
    }
    printf("%-24s %12lld %12lld\n\n", "all", (long long)census_legal(c), (long long)illegal);
}

static void show_text(const struct listing *l)
{
    struct totals t = count(&l->space);
    int64_t all = census_legal(&l->census);
    text_census(&l->census);
    for (int i = 0; i < l->space.n; i++) {
        if (!l->space.item[i].why_not || l->space.item[i].ntunables > 0) { /* the strategies were told above */
            text_item(l, &l->space.item[i]);
        }
    }
    printf("%lld variant%s", (long long)all, all == 1 ? "" : "s");
    if (t.legal < all) {
        printf(", of which %d are shown, drawn at random; --limit=N shows N, --limit=all every one", t.legal);
    }
    if (l->o->compile) {
        printf("%s %d failed, %d of the same code as another; compiled in %.2f s, %.2f ms each on one core",
               t.legal < all ? ".\nOf these" : ",", t.failed, t.same, l->wall, t.legal ? t.seconds / t.legal * 1e3 : 0);
    }
    putchar('\n');
}

/* ---- JSON ---- */
static void json_item(const struct listing *l, const struct variant_item *v)
{
    const struct compiled *c = &v->compiled;
    fputs("\n  {\"id\": ", stdout);
    json_text(stdout, v->id);
    fputs(", \"strategy\": ", stdout);
    json_text(stdout, v->strategy);
    fputs(", \"tunables\": {", stdout);
    for (int i = 0; i < v->ntunables; i++) {
        printf("%s\"%s\": %d", i ? ", " : "", v->name[i], v->value[i]);
    }
    fputs("}, \"why_not\": ", stdout);
    v->why_not ? json_text(stdout, v->why_not) : (void)fputs("null", stdout);
    if (v->predicted > 0) {
        printf(", \"predicted_us\": %.3f", v->predicted * 1e6);
    }
    if (l->o->compile && !v->why_not) {
        printf(", \"compile_ms\": %.3f, \"ptx_bytes\": %zu, \"failure\": ", c->seconds * 1e3, c->bytes);
        c->failure ? json_text(stdout, c->failure) : (void)fputs("null", stdout);
        fputs(", \"same_code_as\": ", stdout);
        c->same_as >= 0 ? json_text(stdout, l->space.item[c->same_as].id) : (void)fputs("null", stdout);
    }
    putchar('}');
}

static void show_json(const struct listing *l)
{
    struct totals t = count(&l->space);
    const struct census *c = &l->census;
    fputs("{\"name\": ", stdout);
    json_text(stdout, ptxgen_problem_name(l->p));
    fputs(", \"arch\": ", stdout);
    json_text(stdout, l->arch ? l->arch : "sm_80");
    fputs(", \"strategies\": [", stdout);
    for (int i = 0; i < c->n; i++) {
        fputs(i ? ",\n  {\"strategy\": " : "\n  {\"strategy\": ", stdout);
        json_text(stdout, c->row[i].strategy);
        printf(", \"legal\": %lld, \"illegal\": %lld, \"why_not\": ", (long long)c->row[i].legal,
               (long long)c->row[i].illegal);
        c->row[i].why_not ? json_text(stdout, c->row[i].why_not) : (void)fputs("null", stdout);
        putchar('}');
    }
    printf("],\n \"legal\": %lld, \"shown\": %d", (long long)census_legal(c), t.legal);
    if (l->o->compile) {
        printf(", \"failed\": %d, \"compile_seconds\": %.3f, \"threads\": %d", t.failed, l->wall, core_count());
    }
    fputs(", \"variants\": [", stdout);
    for (int i = 0; i < l->space.n; i++) {
        fputs(i ? "," : "", stdout);
        json_item(l, &l->space.item[i]);
    }
    fputs("\n]}\n", stdout);
}

/* How many are drawn; 0: all are shown. */
static int parse_limit(const struct listing *l, int64_t *draw, uint64_t *seed)
{
    int64_t limit = 100, number = 1;
    const char *text = l->o->limit && strcmp(l->o->limit, "all") != 0 ? l->o->limit : NULL;
    const char *wrong = text ? parse_count(text, &limit) : NULL;
    if (wrong || limit < 1) {
        return fail(EXIT_USAGE, "--limit=%s: %s", l->o->limit, wrong ? wrong : "at least one");
    }
    wrong = l->o->seed ? parse_count(l->o->seed, &number) : NULL;
    *draw = (l->o->limit && !text) || census_legal(&l->census) <= limit ? 0 : limit;
    *seed = (uint64_t)number;
    return wrong ? fail(EXIT_USAGE, "--seed=%s: %s", l->o->seed, wrong) : EXIT_OK;
}

static void compile(struct listing *l)
{
    bool known = true;
    for (int i = 0; i < ptxgen_problem_size_count(l->p); i++) {
        known &= l->size[i] >= 0;
    }
    const struct compiling how = {
        .options = l->o, .path = l->o->operands.item[0], .arch = l->arch, .size = known ? l->size : NULL
    };
    double begin = progress_now();
    space_compile(&l->space, NULL, l->space.n, &how);
    l->wall = progress_now() - begin;
    space_duplicates(&l->space);
}

static int list(struct listing *l)
{
    struct selection selection = { .illegal = l->o->all, .main_only = l->o->main };
    int status = parse_sizes(l->o, l->p, l->size);
    status = status ? status : choose_arch(l->s, l->o, &l->arch);
    status = status ? status : space_count(l->s, l->o, l->o->operands.item[0], l->size, &selection, &l->census);
    status = status ? status : parse_limit(l, &selection.draw, &selection.seed);
    status = status ? status : space_gather(l->s, l->o, l->p, l->size, &selection, &l->space);
    if (status != EXIT_OK) {
        return status;
    }
    if (l->o->compile) {
        compile(l);
    }
    (l->o->json ? show_json : show_text)(l);
    return l->o->compile && count(&l->space).failed ? EXIT_INTERNAL : EXIT_OK;
}

static int list_spec(const struct options *o)
{
    struct listing l = { .o = o };
    if (ptxgen_session_create(&l.s) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = load_problem(l.s, o, o->operands.item[0], &l.p);
    if (status == EXIT_OK) {
        l.size = calloc((size_t)ptxgen_problem_size_count(l.p) + 1, sizeof *l.size);
        status = l.size ? list(&l) : fail(EXIT_DEVICE, "out of memory");
    }
    free(l.size);
    census_finish(&l.census);
    space_finish(&l.space);
    ptxgen_session_destroy(l.s);
    return status;
}

static int list_stage(const struct options *o, const ptxgen_problem *p, const int64_t *size, int stage)
{
    struct stage_options own;
    int status = stage_options(o, p, size, stage, false, &own);
    if (status == EXIT_OK && o->json) {
        fputs(stage ? ", " : "", stdout);
        json_text(stdout, ptxgen_stage_name(p, stage));
        fputs(": ", stdout);
    } else if (status == EXIT_OK) {
        const char *name = ptxgen_stage_name(p, stage);
        printf("%s# stage %s: --variant %s:ID takes one, --set %s:NAME=VALUE pins a tunable\n", stage ? "\n" : "", name,
               name, name);
    }
    status = status ? status : list_spec(&own.of);
    stage_options_finish(&own);
    return status;
}

/* The lists of all stages. */
static int list_stages(const struct options *o, const ptxgen_problem *p)
{
    int64_t *size = calloc((size_t)ptxgen_problem_size_count(p) + 1, sizeof *size);
    int status = size ? parse_sizes(o, p, size) : fail(EXIT_DEVICE, "out of memory");
    if (status == EXIT_OK && o->strategy) {
        status = fail(EXIT_USAGE, "--strategy: a strategy is of one stage: --set STAGE:strategy=%s", o->strategy);
    }
    if (status == EXIT_OK && o->json) {
        fputs("{\"name\": ", stdout);
        json_text(stdout, ptxgen_problem_name(p));
        fputs(", \"stages\": {", stdout);
    }
    for (int i = 0; i < ptxgen_stage_count(p) && status == EXIT_OK; i++) {
        if (!stage_is_condition(p, i)) {
            status = list_stage(o, p, size, i);
        }
    }
    if (status == EXIT_OK && o->json) {
        fputs("}}\n", stdout);
    }
    free(size);
    return status;
}

int cmd_variants(const struct options *o)
{
    ptxgen_session *s;
    ptxgen_problem *p;
    if (o->operands.n != 1) {
        return fail(EXIT_USAGE, "'variants' takes one spec: ptxgen variants SPEC.yaml");
    }
    if (ptxgen_session_create(&s) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = load_problem(s, o, o->operands.item[0], &p);
    if (status == EXIT_OK) {
        status = ptxgen_stage_count(p) ? list_stages(o, p) : list_spec(o);
    }
    ptxgen_session_destroy(s);
    return status;
}
