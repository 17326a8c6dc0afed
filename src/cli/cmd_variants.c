/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_variants.c - the space of variants as text or JSON; with --compile also how long each takes to compile, and
 * whether it does. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parallel.h"
#include "space.h"

struct listing {
    const struct options *o;
    ptxgen_session *s;
    ptxgen_problem *p;
    int64_t *size;
    const char *arch;
    struct space space;
    double wall; /* of compiling all */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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

static void show_text(const struct listing *l)
{
    struct totals t = count(&l->space);
    for (int i = 0; i < l->space.n; i++) {
        text_item(l, &l->space.item[i]);
    }
    printf("%d variant%s", t.legal, t.legal == 1 ? "" : "s");
    if (l->o->compile) {
        printf(", %d failed, %d of the same code as another; compiled in %.2f s, %.2f ms each on one core", t.failed,
               t.same, l->wall, t.legal ? t.seconds / t.legal * 1e3 : 0);
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
    fputs("{\"name\": ", stdout);
    json_text(stdout, ptxgen_problem_name(l->p));
    fputs(", \"arch\": ", stdout);
    json_text(stdout, l->arch ? l->arch : "sm_80");
    printf(", \"legal\": %d", t.legal);
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

static int list(struct listing *l)
{
    int status = parse_sizes(l->o, l->p, l->size);
    status =
        status ? status : space_gather(l->s, l->o, l->p, l->size, l->o->all ? SPACE_ALL : SPACE_STRATEGIES, &l->space);
    status = status ? status : choose_arch(l->s, l->o, &l->arch);
    if (status != EXIT_OK) {
        return status;
    }
    if (l->o->compile) {
        const struct compiling how = { .options = l->o, .path = l->o->operands.item[0], .arch = l->arch };
        double begin = now();
        space_compile(&l->space, NULL, l->space.n, &how);
        l->wall = now() - begin;
        space_duplicates(&l->space);
    }
    (l->o->json ? show_json : show_text)(l);
    return l->o->compile && count(&l->space).failed ? EXIT_INTERNAL : EXIT_OK;
}

int cmd_variants(const struct options *o)
{
    if (o->operands.n != 1) {
        return fail(EXIT_USAGE, "the variants of one spec");
    }
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
    space_finish(&l.space);
    ptxgen_session_destroy(l.s);
    return status;
}
