/* SPDX-License-Identifier: Apache-2.0 */
/* casefile.c - a file of cases, mapped; texts and arrays stay in it. The format is described in casefile.py. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner.h"

struct cursor {
    const char *at, *end;
    bool bad;
};

static uint64_t take_number(struct cursor *c, size_t bytes)
{
    uint64_t v = 0;

    if ((size_t)(c->end - c->at) < bytes) {
        c->bad = true;
        return 0;
    }
    memcpy(&v, c->at, bytes);
    c->at += bytes;
    return v;
}

static struct text take_text(struct cursor *c)
{
    const uint64_t length = take_number(c, 8);
    const struct text t = { c->at, (size_t)length };

    if (c->bad || (uint64_t)(c->end - c->at) < length) {
        c->bad = true;
        return (struct text){ "", 0 };
    }
    c->at += length;
    return t;
}

static void take_word(struct cursor *c, char *out, size_t size)
{
    const struct text t = take_text(c);

    if (t.length >= size) {
        c->bad = true;
        return;
    }
    memcpy(out, t.at, t.length);
    out[t.length] = '\0';
}

static int take_count(struct cursor *c, int most)
{
    const uint64_t n = take_number(c, 4);

    if (n > (uint64_t)most)
        c->bad = true;
    return c->bad ? 0 : (int)n;
}

static int take_settings(struct cursor *c, struct setting *out)
{
    const int n = take_count(c, NAMES_MAX);

    for (int i = 0; i < n; i++) {
        take_word(c, out[i].name, sizeof out[i].name);
        take_word(c, out[i].value, sizeof out[i].value);
    }
    return n;
}

static int take_arrays(struct cursor *c, struct array *out)
{
    const int n = take_count(c, NAMES_MAX);

    for (int i = 0; i < n; i++) {
        take_word(c, out[i].name, sizeof out[i].name);
        out[i].shift = (unsigned)take_number(c, 4);
        out[i].data = take_text(c);
        out[i].mask = take_text(c);
        out[i].range = take_text(c);
    }
    return n;
}

static void take_run(struct cursor *c, struct run *r)
{
    take_word(c, r->modes, sizeof r->modes);
    take_word(c, r->again, sizeof r->again);
    r->refused = (unsigned)take_number(c, 4);
    r->same_bits = (unsigned)take_number(c, 4);
    r->nsizes = take_settings(c, r->size);
    r->nparams = take_settings(c, r->param);
    r->ninputs = take_arrays(c, r->input);
    r->noutputs = take_arrays(c, r->output);
}

bool case_read(const struct cases *all, int i, struct one_case *out)
{
    struct cursor c = { all->at[i], all->base + all->length, false };

    take_word(&c, out->id, sizeof out->id);
    out->spec = take_text(&c);
    out->nsettings = take_settings(&c, out->setting);
    out->nruns = take_count(&c, RUNS_MAX);
    for (int r = 0; r < out->nruns; r++)
        take_run(&c, &out->run[r]);
    return !c.bad;
}

const char *case_setting(const struct one_case *c, const char *name)
{
    for (int i = 0; i < c->nsettings; i++)
        if (strcmp(c->setting[i].name, name) == 0)
            return c->setting[i].value;
    return NULL;
}

static bool index_cases(struct cases *out)
{
    struct cursor c = { out->base, out->base + out->length, false };

    while (c.at < c.end) {
        const char **more = realloc(out->at, sizeof *more * (size_t)(out->count + 1));
        const struct text body = take_text(&c);

        if (more)
            out->at = more;
        if (more == NULL || c.bad)
            return false;
        out->at[out->count++] = body.at;
    }
    return true;
}

bool cases_open(const char *path, struct cases *out)
{
    const int fd = open(path, O_RDONLY);
    struct stat st;

    *out = (struct cases){ NULL, 0, 0, NULL };
    if (fd < 0 || fstat(fd, &st) != 0)
        return false;
    out->length = (size_t)st.st_size;
    if (out->length > 0)
        out->base = mmap(NULL, out->length, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    return out->length == 0 || (out->base != MAP_FAILED && index_cases(out));
}
