/* SPDX-License-Identifier: Apache-2.0 */
/* plan_read.c - a plan back from its text, for experiments and tuning.
 *
 * Strategy, tunables, alignment and guard of each case are taken from the text; kernels, buffers and steps are then
 * built as the planner builds them, and the formulas that the text gives (grids, bytes, dynamic shared memory) take
 * their place.  A kernel, buffer or step that does not fit the tunables is an error, and so is a key that nobody reads,
 * so that a plan cannot say one thing and do another.
 *
 * The text may come from anywhere: what the later stages rely on is checked here, each with its place in the text.
 */
#include "lower_impl.h"
#include "results.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/yaml/yaml_doc.h"

enum { NAME_MAX = 64, SHIFT_MAX = 15 /* elements of the longest vector, less one */ };

struct reader {
    struct ptxgen_session *s;
    /* without the spec's own pins; their strategy stands where the case does that is read */
    struct problem problem, binned;
    struct planner pl;
    bool ok;
};

static void wrong(struct reader *r, const struct ynode *at, const char *what)
{
    diag_error(&r->s->diags, D_BAD_PLAN, at ? at->at : span_none(), "%s", what);
    r->ok = false;
}

/* Keys that have no meaning here, a list that NULL ends. */
static void check_keys(struct reader *r, const struct ynode *mapping, const char *const *known)
{
    int n = 0;
    while (known[n])
        n++;
    if (!mapping || mapping->kind != Y_MAPPING) {
        wrong(r, mapping, "expected a mapping, KEY: VALUE");
        return;
    }
    for (int i = 0; i < mapping->count; i++) {
        const struct ynode *key = mapping->pair[i].key;
        int k = 0;
        while (k < n && strcmp(key->text, known[k]))
            k++;
        if (k == n) {
            struct diag *m = diag_error(&r->s->diags, D_BAD_PLAN, key->at, "unknown key '%s'", key->text);
            diag_suggest(&r->s->diags, m, key->text, known, n);
            r->ok = false;
        }
    }
}

/* A scalar's text, or NULL after a message when it is required. */
static const char *scalar(struct reader *r, const struct ynode *mapping, const char *key, bool required)
{
    const struct ynode *v = mapping && mapping->kind == Y_MAPPING ? ynode_get(mapping, key) : NULL;
    if (v && v->kind == Y_SCALAR && strlen(v->text) == v->length)
        return v->text;
    if (required || v)
        wrong(r, v ? v : mapping, arena_printf(&r->s->arena, "'%s' must be given, as a scalar", key));
    return NULL;
}

/* A whole number from 0 to `most`. */
static int number(struct reader *r, const struct ynode *mapping, const char *key, int otherwise, int most)
{
    const char *text = scalar(r, mapping, key, false);
    char *end;
    if (!text)
        return otherwise;
    const long x = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || x > most) {
        wrong(r, ynode_get(mapping, key), arena_printf(&r->s->arena, "'%s' must be a number from 0 to %d", key, most));
        return otherwise;
    }
    return (int)x;
}

/* Names become entry points of kernels, and identifiers in headers. */
static bool is_name(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    return n > 0 && n <= NAME_MAX && !text[n] && !isdigit((unsigned char)text[0]);
}

static bool flag(struct reader *r, const struct ynode *mapping, const char *key)
{
    const char *text = scalar(r, mapping, key, false);
    if (text && strcmp(text, "true") && strcmp(text, "false"))
        wrong(r, ynode_get(mapping, key), arena_printf(&r->s->arena, "'%s' must be true or false", key));
    return text && !strcmp(text, "true");
}

static void formula(struct reader *r, const struct ynode *mapping, const char *key, const struct prog_case *c,
                    struct formula *out)
{
    const char *text = scalar(r, mapping, key, false);
    if (!text)
        return;
    const struct formula_names names = plan_names(&r->s->arena, r->pl.plan, c);
    int at = 0;
    const char *message = formula_parse(text, &names, out, &at);
    if (message) {
        const struct ynode *v = ynode_get(mapping, key);
        diag_error(&r->s->diags, D_BAD_PLAN, ynode_span(v, (uint32_t)at, (uint32_t)at + 1), "%s", message);
        r->ok = false;
    }
}

/* A list that is there or not. */
static const struct ynode *list(struct reader *r, const struct ynode *mapping, const char *key)
{
    const struct ynode *v = ynode_get(mapping, key);
    if (v && v->kind != Y_SEQUENCE) {
        wrong(r, v, arena_printf(&r->s->arena, "'%s' must be a list", key));
        return NULL;
    }
    return v;
}

/* A tunable that the text leaves out has the least value of its range, as one that a case does not use. */
static void read_tunables(struct reader *r, struct plan_case *c, const struct ynode *y)
{
    for (int t = 0; t < TN_COUNT; t++)
        if (c->strategy->tunables & 1u << t)
            c->tunable[t] = tunable_least((enum tunable_id)t);
    if (y && y->kind != Y_MAPPING)
        wrong(r, y, "'tunables' must be a mapping, NAME: VALUE");
    for (int i = 0; y && y->kind == Y_MAPPING && i < y->count; i++) {
        const struct ynode *key = y->pair[i].key, *value = y->pair[i].value;
        const char *text = scalar(r, y, key->text, true);
        const struct tunable set = { key->text, text, value->at };
        enum tunable_id t;
        int x;
        if (!text || !tunable_given(&r->s->diags, c->strategy, &set, &t, &x)) {
            r->ok = false;
            continue;
        }
        c->tunable[t] = x;
        c->overridden[t] = true;
        c->tunable_from[t] = "plan";
    }
}

/* A list has an entry for each of `n`, or is not there at all. */
static bool counted(struct reader *r, const struct ynode *y, int n, const char *what)
{
    if (y && y->count != n)
        wrong(r, y,
              arena_printf(&r->s->arena, "the strategy has %d %s with these tunables, not %d", n, what, y->count));
    return y && y->count == n;
}

/* Is the entry's `key` the name? */
static bool named(struct reader *r, const struct ynode *y, const char *key, const char *name)
{
    const char *text = scalar(r, y, key, true);
    if (text && strcmp(text, name))
        wrong(r, ynode_get(y, key), arena_printf(&r->s->arena, "expected '%s', which the tunables give", name));
    return text && !strcmp(text, name);
}

static void same(struct reader *r, const struct ynode *y, const char *key, int value)
{
    if (number(r, y, key, value, 1 << 20) != value)
        wrong(r, ynode_get(y, key), arena_printf(&r->s->arena, "'%s' differs from the tunables, %d", key, value));
}

static void compare_kernels(struct reader *r, const struct plan_case *c, const struct ynode *y)
{
    static const char *const keys[] = { "name", "threads", "cluster", NULL };
    for (int i = 0; counted(r, y, c->code.nkernels, "kernels") && i < y->count; i++) {
        const struct prog_kernel *k = &c->code.kernel[i];
        check_keys(r, y->item[i], keys);
        named(r, y->item[i], "name", k->name);
        same(r, y->item[i], "threads", k->threads);
        same(r, y->item[i], "cluster", k->cluster);
    }
}

/* Steps that are listed are those of a plan that needs no other buffers than it lists. */
static void read_buffers(struct reader *r, struct plan_case *c, const struct ynode *y, const struct ynode *steps)
{
    static const char *const keys[] = { "name", "region", "bytes", NULL };
    if (!y && steps && c->code.nbuffers)
        wrong(r, steps,
              arena_printf(&r->s->arena, "the strategy has %d buffers with these tunables, and the plan lists none",
                           c->code.nbuffers));
    for (int i = 0; counted(r, y, c->code.nbuffers, "buffers") && i < y->count; i++) {
        struct prog_buffer *b = &c->code.buffer[i];
        check_keys(r, y->item[i], keys);
        named(r, y->item[i], "name", b->name);
        named(r, y->item[i], "region", b->region == REGION_CONTROL ? "control" : "scratch");
        formula(r, y->item[i], "bytes", &c->code, &b->bytes);
    }
}

static void read_step(struct reader *r, struct plan_case *c, struct prog_step *s, const struct ynode *y)
{
    static const char *const keys[] = { "launch", "grid", "shared", "dependent", NULL };
    check_keys(r, y, keys);
    named(r, y, "launch", c->code.kernel[s->kernel].name);
    formula(r, y, "grid", &c->code, &s->grid);
    formula(r, y, "shared", &c->code, &s->shared);
    if (y->kind == Y_MAPPING && ynode_get(y, "dependent"))
        s->dependent = flag(r, y, "dependent");
}

static void read_steps(struct reader *r, struct plan_case *c, const struct ynode *y)
{
    for (int i = 0; counted(r, y, c->code.nsteps, "steps") && i < y->count; i++)
        read_step(r, c, &c->code.step[i], y->item[i]);
}

/* The case's name, which no case before has; NULL after a message. */
static const char *case_name(struct reader *r, const struct ynode *y)
{
    const char *name = scalar(r, y, "name", true);
    if (name && !is_name(name)) {
        wrong(r, ynode_get(y, "name"), "a case's name is of up to 64 letters, digits and _");
        return NULL;
    }
    for (int i = 0; name && i < r->pl.plan->ncases; i++)
        if (!strcmp(name, r->pl.plan->cases[i].code.name)) {
            wrong(r, ynode_get(y, "name"), "a case before has this name");
            return NULL;
        }
    return name;
}

/* The strategy, which must fit the problem; NULL after a message. */
static const struct strategy *case_strategy(struct reader *r, const struct ynode *y)
{
    const char *name = scalar(r, y, "strategy", true), *why = NULL;
    const struct strategy *row = name ? strategy_by_name(name) : NULL;
    if (!name)
        return NULL;
    const struct problem *p = row ? strategy_problem(row, &r->problem) : NULL;
    if (!p) {
        wrong(r, ynode_get(y, "strategy"), "no such strategy for this kind of problem");
        return NULL;
    }
    if (!strategy_fits(row, p, &r->pl.plan->device, &r->s->arena, &why)) {
        wrong(r, ynode_get(y, "strategy"), arena_printf(&r->s->arena, "%s does not fit: %s", row->name, why));
        return NULL;
    }
    return row;
}

static void read_case(struct reader *r, const struct ynode *y)
{
    static const char *const keys[] = { "name",   "strategy", "guard",   "tunables", "aligned", "turns",
                                        "shift0", "shift1",   "kernels", "buffers",  "steps",   NULL };
    check_keys(r, y, keys);
    const char *name = r->ok ? case_name(r, y) : NULL;
    const struct strategy *row = name ? case_strategy(r, y) : NULL;
    if (!row)
        return;
    const struct ynode *at = ynode_get(y, "strategy");
    r->problem.at = r->problem.strategy_at = r->binned.at = r->binned.strategy_at = at->at; /* of messages */
    struct plan_case *c = plan_case_add(&r->pl, row, name, (struct formula){ 0 });
    formula(r, y, "guard", NULL, &c->code.guard);
    read_tunables(r, c, ynode_get(y, "tunables"));
    c->aligned = flag(r, y, "aligned");
    c->turns = flag(r, y, "turns");
    c->shift[0] = number(r, y, "shift0", 0, SHIFT_MAX);
    c->shift[1] = number(r, y, "shift1", 0, SHIFT_MAX);
    if (!r->ok || !plan_case_build(&r->pl, c)) {
        r->ok = false;
        return;
    }
    compare_kernels(r, c, list(r, y, "kernels"));
    const struct ynode *steps = list(r, y, "steps");
    read_buffers(r, c, list(r, y, "buffers"), steps);
    read_steps(r, c, steps);
    r->ok = r->ok && plan_case_valid(&r->pl, c);
}

/* Messages are shown, and stand in headers and manifests. */
static bool one_line(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            return false;
    return true;
}

static void read_checks(struct reader *r, const struct ynode *y)
{
    static const char *const keys[] = { "condition", "message", NULL };
    for (int i = 0; r->ok && y && i < y->count; i++) {
        struct formula condition = { 0 };
        check_keys(r, y->item[i], keys);
        const char *message = scalar(r, y->item[i], "message", true);
        formula(r, y->item[i], "condition", NULL, &condition);
        if (message && !one_line(message))
            wrong(r, ynode_get(y->item[i], "message"), "a message is one line of text");
        if (r->pl.plan->nchecks == PLAN_CHECKS_MAX)
            wrong(r, y, arena_printf(&r->s->arena, "more than %d checks", PLAN_CHECKS_MAX));
        if (r->ok && message)
            plan_check(&r->pl, condition, message);
        plan_drop_repeated_checks(r->pl.plan, 0); /* those of the problem are there already */
    }
}

/* Whose plan this is, and for which target. */
static void read_head(struct reader *r, const struct ynode *root)
{
    static const char *const keys[] = { "ptxgen_plan", "problem", "arch", "ptx", "checks", "cases", NULL };
    struct arena *a = &r->s->arena;
    check_keys(r, root, keys);
    if (!r->ok)
        return;
    const char *version = scalar(r, root, "ptxgen_plan", true), *problem = scalar(r, root, "problem", true),
               *arch = scalar(r, root, "arch", true);
    if (version && strcmp(version, "2")) /* in version 1 other strategies had some of the names */
        wrong(r, ynode_get(root, "ptxgen_plan"), "this reads plans of version 2; --emit=plan makes the plan anew");
    if (problem && strcmp(problem, r->problem.name))
        wrong(r, ynode_get(root, "problem"),
              arena_printf(a, "the plan is for '%s', the problem is '%s'", problem, r->problem.name));
    if (arch && !device_by_name(arch, number(r, root, "ptx", 0, INT16_MAX), &r->pl.plan->device))
        wrong(r, ynode_get(root, "arch"), "unknown architecture, or a PTX version that it does not have");
}

static void read_cases(struct reader *r, const struct ynode *root)
{
    const struct ynode *cases = list(r, root, "cases");
    if (!cases || cases->count < 1 || cases->count > PLAN_CASES_MAX)
        wrong(r, cases ? cases : root, arena_printf(&r->s->arena, "'cases' must be a list of 1 to %d", PLAN_CASES_MAX));
    for (int i = 0; r->ok && i < cases->count; i++)
        read_case(r, cases->item[i]);
}

const struct plan *plan_read(struct ptxgen_session *s, const struct problem *p, const char *file, const char *text,
                             size_t length)
{
    const struct diag_source spec = diags_source(&s->diags, file, text, length);
    const int errors = s->diags.errors;
    const struct ynode *root = yaml_parse(&s->diags, text, length);
    struct reader *r = arena_new(&s->arena, struct reader, 1);
    struct plan *plan = plan_new(s, &r->problem);
    *r = (struct reader){ .s = s, .problem = *p, .pl = { .s = s, .plan = plan }, .ok = root != NULL };
    problem_unpin(&r->problem, &r->binned);
    plan->origin = PLAN_READ;
    if (r->ok)
        read_head(r, root);
    if (r->ok) {
        plan_launch_checks(&r->pl);
        read_checks(r, list(r, root, "checks"));
    }
    if (r->ok)
        read_cases(r, root);
    plan->problem = p;
    diags_source(&s->diags, spec.file, spec.text, spec.length);
    return r->ok && s->diags.errors == errors ? plan : NULL;
}
