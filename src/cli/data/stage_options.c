/* SPDX-License-Identifier: Apache-2.0 */
/* stage_options.c - the options of a program, for one of its stages: a command on a program does one stage after the other. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ptxgen/stages.h"

int64_t *stage_sizes(const ptxgen_problem *whole, const int64_t *size, const ptxgen_problem *stage)
{
    int64_t *of = calloc((size_t)ptxgen_problem_size_count(stage) + 1, sizeof *of);
    for (int i = 0; of && i < ptxgen_problem_size_count(stage); i++) {
        int k = 0;
        while (strcmp(ptxgen_problem_size_name(whole, k), ptxgen_problem_size_name(stage, i)) != 0) {
            k++;
        }
        of[i] = size[k];
    }
    return of;
}

void name_stages(const ptxgen_problem *p, char *out, size_t room)
{
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < ptxgen_stage_count(p) && n < room; i++) {
        n += (size_t)snprintf(out + n, room - n, "%s%s", i ? ", " : "", ptxgen_stage_name(p, i));
    }
    for (int i = 0; ptxgen_fused_name(p, i) && n < room; i++) {
        n += (size_t)snprintf(out + n, room - n, "%s%s", i ? ", " : "; part of these are ", ptxgen_fused_name(p, i));
    }
}

const char *nearest_stage(const ptxgen_problem *p, const char *name, int length)
{
    const char *names[256];
    int n = 0;
    for (int i = 0; i < ptxgen_stage_count(p) && n < 256; i++) {
        names[n++] = ptxgen_stage_name(p, i);
    }
    for (int i = 0; ptxgen_fused_name(p, i) && n < 256; i++) {
        names[n++] = ptxgen_fused_name(p, i);
    }
    return nearest(name, length, names, n);
}

ptxgen_status choose_stage(const char *name, const char *path, ptxgen_problem **p)
{
    const ptxgen_problem *found = NULL;
    char names[600];
    for (int i = 0; i < ptxgen_stage_count(*p) && !found; i++) {
        found = strcmp(ptxgen_stage_name(*p, i), name) != 0 ? NULL : ptxgen_stage_problem(*p, i);
    }
    for (int i = 0; !found && ptxgen_fused_name(*p, i); i++) {
        if (!strcmp(ptxgen_fused_name(*p, i), name)) {
            found = ptxgen_fused_problem(*p, i);
            say("note", "in the program, stage %s is part of %s; here it is a spec of its own", name,
                ptxgen_fused_into(*p, i));
        }
    }
    if (found) {
        *p = (ptxgen_problem *)(uintptr_t)found;
        return PTXGEN_OK;
    }
    const char *near = nearest_stage(*p, name, (int)strlen(name));
    name_stages(*p, names, sizeof names);
    if (!names[0]) {
        fail(EXIT_USAGE, "--stage=%s: %s has no stages", name, path);
    } else {
        fail(EXIT_USAGE, "--stage=%s: the stages of %s that run are %s%s%s%s", name, path, names,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    return PTXGEN_USAGE;
}

bool stage_is_condition(const ptxgen_problem *whole, int stage)
{
    ptxgen_array_info info;
    const ptxgen_problem *p = ptxgen_stage_problem(whole, stage);
    return ptxgen_problem_output_count(p) == 1 && ptxgen_problem_output(p, 0, &info) == PTXGEN_OK &&
           !strcmp(info.name, "ptxgen_until");
}

char *stage_journal(const char *path, const char *stage)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    const char *end = dot && dot > name ? dot : path + strlen(path);
    const size_t room = strlen(path) + strlen(stage) + 2;
    char *text = malloc(room);
    if (text) {
        snprintf(text, room, "%.*s.%s%s", (int)(end - path), path, stage, end);
    }
    return text;
}

/* A text into a list, "NAME=VALUE" or what is given. */
static bool add(struct stage_options *x, struct list *to, const char *name, const char *value)
{
    char *text = NULL;
    size_t length;
    FILE *print = open_memstream(&text, &length);
    if (!print) {
        return false;
    }
    fprintf(print, "%s%s%s", name, value ? "=" : "", value ? value : "");
    fclose(print);
    x->texts.item[x->texts.n++] = text;
    to->item[to->n++] = text;
    return true;
}

static bool has_param(const ptxgen_problem *p, const char *item)
{
    int length;
    ptxgen_param_info info;
    bool has = setting_value(item, &length) == NULL; /* is refused for what it is */
    for (int i = 0; i < ptxgen_problem_param_count(p) && !has; i++) {
        ptxgen_problem_param(p, i, &info);
        has = strlen(info.name) == (size_t)length && !memcmp(info.name, item, (size_t)length);
    }
    return has;
}

/* The stage that `STAGE:NAME=VALUE` is about, or -1. */
static int stage_of(const ptxgen_problem *whole, const char *item)
{
    int i = ptxgen_stage_count(whole) - 1;
    for (; i >= 0; i--) {
        const size_t n = strlen(ptxgen_stage_name(whole, i));
        if (!strncmp(item, ptxgen_stage_name(whole, i), n) && item[n] == ':') {
            return i;
        }
    }
    return i;
}

/* The message about a setting of no stage that runs. */
static int no_stage(const ptxgen_problem *whole, const char *item)
{
    char stages[600];
    const int length = (int)strcspn(item, ":=");
    const char *near = nearest_stage(whole, item, length);
    name_stages(whole, stages, sizeof stages);
    if (item[length] != ':') {
        return fail(EXIT_USAGE, "--set %s: a tunable is of one stage: --set STAGE:%s, of %s", item, item, stages);
    }
    for (int i = 0; ptxgen_fused_name(whole, i); i++) {
        if (strlen(ptxgen_fused_name(whole, i)) == (size_t)length &&
            !memcmp(ptxgen_fused_name(whole, i), item, (size_t)length)) {
            return fail(EXIT_USAGE, "--set %s: stage %.*s is part of %s: --set %s%s", item, length, item,
                        ptxgen_fused_into(whole, i), ptxgen_fused_into(whole, i), item + length);
        }
    }
    return fail(EXIT_USAGE, "--set %s: no stage is called '%.*s'; those that run are %s%s%s%s", item, length, item,
                stages, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int take_settings(const struct options *o, const ptxgen_problem *whole, int stage, struct stage_options *x)
{
    for (int i = 0; i < o->set.n; i++) {
        const int of = stage_of(whole, o->set.item[i]);
        if (of < 0) {
            return no_stage(whole, o->set.item[i]);
        }
        if (of == stage && !add(x, &x->of.set, strchr(o->set.item[i], ':') + 1, NULL)) {
            return fail(EXIT_DEVICE, "out of memory");
        }
    }
    return EXIT_OK;
}

int stage_options(const struct options *o, const ptxgen_problem *whole, const int64_t *size, int stage, bool given,
                  struct stage_options *out)
{
    const ptxgen_problem *p = ptxgen_stage_problem(whole, stage);
    const int nsizes = ptxgen_problem_size_count(p), ninputs = ptxgen_problem_input_count(p);
    const size_t most = (size_t)(nsizes + ninputs + o->param.n + o->set.n) + 1;
    struct list *lists[] = {
        &out->of.size, &out->of.param, &out->of.set, &out->of.input, &out->of.output, &out->texts
    };
    int64_t *own = stage_sizes(whole, size, p);
    bool fine = own != NULL;
    *out = (struct stage_options){ .of = *o };
    out->of.stage = ptxgen_stage_name(whole, stage);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        *lists[i] = (struct list){ 0, calloc(most, sizeof(char *)) };
        fine = fine && lists[i]->item;
    }
    for (int i = 0; fine && i < nsizes; i++) {
        char value[24];
        snprintf(value, sizeof value, "%lld", (long long)own[i]);
        fine = own[i] < 0 || add(out, &out->of.size, ptxgen_problem_size_name(p, i), value);
    }
    for (int i = 0; fine && given && i < ninputs; i++) {
        ptxgen_array_info info;
        ptxgen_problem_input(p, i, &info);
        fine = add(out, &out->of.input, info.name, "const:0");
    }
    for (int i = 0; fine && i < o->param.n; i++) {
        fine = !has_param(p, o->param.item[i]) || add(out, &out->of.param, o->param.item[i], NULL);
    }
    free(own);
    return fine ? take_settings(o, whole, stage, out) : fail(EXIT_DEVICE, "out of memory");
}

void stage_options_finish(struct stage_options *x)
{
    struct list *lists[] = { &x->of.size, &x->of.param, &x->of.set, &x->of.input, &x->of.output, &x->texts };
    for (int i = 0; i < x->texts.n; i++) {
        free((char *)x->texts.item[i]);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        free(lists[i]->item);
    }
}
