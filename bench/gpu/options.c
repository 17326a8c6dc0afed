/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - gpubench's command line. */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static int64_t parse_size(const char *text)
{
    char *end;
    long long x = strtoll(text, &end, 10);

    return *end == '^' ? (int64_t)1 << atoi(end + 1) : x;
}

/* "511x1023x1023": slowest first. */
static bool parse_extent(const char *text, struct extent *e)
{
    char *end;

    for (e->rank = 0; e->rank < 3; text = end + 1) {
        e->at[e->rank++] = strtoll(text, &end, 10);
        if (*end != 'x')
            return *end == 0 && e->rank > 1;
    }
    return false;
}

/* "LABEL:name=value,name=value", cut up in place. */
static bool parse_ours(char *text, struct ours *out)
{
    char *at = strchr(text, ':');

    *out = (struct ours){ .label = text };
    if (at == NULL)
        return true;
    *at++ = 0;
    for (char *part = strtok(at, ","); part; part = strtok(NULL, ",")) {
        char *equals = strchr(part, '=');

        if (equals == NULL || out->nsettings == SETTINGS_MAX)
            return false;
        *equals = 0;
        out->setting[out->nsettings++] = (ptxgen_setting){ part, equals + 1 };
    }
    return true;
}

static bool take_option(struct options *o, const char *name, char *value)
{
    const struct {
        const char *name;
        const char **to;
    } text[] = { { "--specs", &o->specs }, { "--peers", &o->peers }, { "--csv", &o->csv }, { "--commit", &o->commit } };

    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (strcmp(name, text[i].name) == 0) {
            *text[i].to = value;
            return true;
        }
    if (strcmp(name, "--problem") == 0 && o->nproblems < LIST_MAX)
        o->problem[o->nproblems++] = value;
    else if (strcmp(name, "--size") == 0 && o->nsizes < LIST_MAX)
        o->size[o->nsizes++] = parse_size(value);
    else if (strcmp(name, "--segment") == 0 && o->nsegments < LIST_MAX)
        o->segment[o->nsegments++] = parse_size(value);
    else if (strcmp(name, "--extent") == 0 && o->nextents < LIST_MAX)
        return parse_extent(value, &o->extent[o->nextents++]);
    else if (strcmp(name, "--samples") == 0)
        o->samples = atoi(value) < SAMPLES_MAX ? atoi(value) : SAMPLES_MAX;
    else if (strcmp(name, "--device") == 0)
        o->device = atoi(value);
    else if (strcmp(name, "--ours") == 0 && o->nours < LIST_MAX)
        return parse_ours(value, &o->ours[o->nours++]);
    else
        return false;
    return true;
}

/* The peers work on the runtime's device, the first: the one that was asked for becomes that, before the driver looks. */
static void hide_others(struct options *o)
{
    char number[16];

    snprintf(number, sizeof number, "%d", o->device);
    if (o->device > 0 && getenv("CUDA_VISIBLE_DEVICES") == NULL && setenv("CUDA_VISIBLE_DEVICES", number, 1) == 0)
        o->device = 0;
}

bool parse_options(int argc, char **argv, struct options *o)
{
    *o = (struct options){
        .specs = "bench/specs", .peers = "libpeers.so", .commit = "unknown", .samples = 25, .graph = true
    };
    o->ours[o->nours++].label = "ptxgen";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--no-graph") == 0)
            o->graph = false;
        else if (strcmp(argv[i], "--no-peers") == 0)
            o->alone = true;
        else if (strcmp(argv[i], "--quick") == 0)
            o->quick = true;
        else if (i + 1 >= argc || !take_option(o, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    if (o->samples < 3)
        o->samples = 3;
    hide_others(o);
    return true;
}
