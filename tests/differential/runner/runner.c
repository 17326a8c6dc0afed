/* SPDX-License-Identifier: Apache-2.0 */
/* runner.c - runs a file of cases and compares what comes with what the file expects.
 *
 *     runner [--gpu [--device N]] [--timeout SECONDS] [--only ID] [--verbose] FILE
 *
 * A child process takes cases in turn; one that dies or hangs costs the case that it was at, and another takes the
 * rest. One line per failing case, last line "N passed, M failed".
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner.h"

enum { PORTION = 100, LOST = 9 };

struct options {
    bool gpu, verbose;
    int device, timeout;
    const char *only, *path;
};

struct totals {
    int passed, failed, unfit;
};

/* ---- the child ------------------------------------------------------------------------------- */
static bool open_device(const struct options *o, struct device *d)
{
    d->gpu = NULL;
    if (ptxgen_session_create(&d->s) != PTXGEN_OK)
        return false;
    return !o->gpu || ptxgen_gpu_open(d->s, o->device, &d->gpu) == PTXGEN_OK;
}

static void report(FILE *to, char kind, int i, const char *why)
{
    fprintf(to, "%c %d ", kind, i);
    for (; *why; why++)
        fputc(*why == '\n' ? ' ' : *why, to);
    fputc('\n', to);
    fflush(to);
}

static void take_cases(const struct options *o, const struct cases *all, int from, int to, FILE *out)
{
    struct one_case *c = calloc(1, sizeof *c);
    struct device d;
    char why[2 * WHY];
    bool lost = false;

    if (c == NULL || !open_device(o, &d)) {
        report(out, 'X', from, "the device cannot be opened");
        _exit(LOST);
    }
    for (int i = from; i < to; i++) {
        if (!case_read(all, i, c)) {
            report(out, 'F', i, "the case cannot be read");
            continue;
        }
        if (o->only && strcmp(o->only, c->id) != 0)
            continue;
        report(out, 'B', i, c->id);
        why[0] = '\0';
        const enum verdict v = execute(&d, c, why, &lost);
        report(out, v == PASSED ? 'P' : v == FAILED ? 'F' : 'R', i, why);
        if (lost)
            _exit(LOST);
    }
    _exit(0);
}

/* ---- the parent ------------------------------------------------------------------------------ */
/* What the child says: the case that it is at, or -1 between cases. */
struct progress {
    int at, next;
    bool broken;
    char id[128];
};

static void hear(const struct options *o, char *line, struct progress *p, struct totals *t)
{
    char *text;
    const char kind = line[0];
    const int i = (int)strtol(line + 1, &text, 10);

    line[strcspn(line, "\n")] = '\0';
    text += *text == ' ';
    if (kind == 'B') {
        p->at = i;
        snprintf(p->id, sizeof p->id, "%s", text);
        return;
    }
    p->at = -1;
    p->next = i + 1;
    p->broken = kind == 'X';
    t->passed += kind == 'P' || kind == 'R';
    t->unfit += kind == 'R';
    t->failed += kind == 'F' || kind == 'X';
    if (kind == 'F' || kind == 'X')
        printf("FAIL %s: %s\n", p->id, text);
    else if (o->verbose)
        printf("%s %s %s\n", kind == 'P' ? "ok" : "unfit", p->id, text);
    fflush(stdout);
}

/* Lines until the child ends; false: nothing came for too long. */
static bool listen_to(const struct options *o, int fd, struct progress *p, struct totals *t)
{
    static char buffer[4 * WHY];
    size_t have = 0;

    for (;;) {
        struct pollfd poller = { fd, POLLIN, 0 };

        if (poll(&poller, 1, o->timeout * 1000) <= 0)
            return false;
        const ssize_t n = read(fd, buffer + have, sizeof buffer - 1 - have);
        if (n <= 0)
            return true;
        have += (size_t)n;
        buffer[have] = '\0';
        for (char *end; (end = strchr(buffer, '\n')) != NULL;) {
            const size_t length = (size_t)(end + 1 - buffer);

            *end = '\0';
            hear(o, buffer, p, t);
            memmove(buffer, buffer + length, have - length + 1);
            have -= length;
        }
    }
}

/* One child, from case `from` on; returns where to go on. */
static int portion(const struct options *o, const struct cases *all, int from, struct totals *t)
{
    const int to = from + PORTION < all->count ? from + PORTION : all->count;
    struct progress p = { -1, from, false, "" };
    int pipes[2], status = 0;

    if (pipe(pipes) != 0)
        return -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        close(pipes[0]);
        take_cases(o, all, from, to, fdopen(pipes[1], "w"));
    }
    close(pipes[1]);
    const bool ended = child > 0 && listen_to(o, pipes[0], &p, t);
    if (child > 0 && !ended)
        kill(child, SIGKILL);
    if (child > 0)
        waitpid(child, &status, 0);
    close(pipes[0]);
    if (child < 0 || p.broken)
        return -1;
    if (p.at < 0)
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? to : p.next > from ? p.next : from + 1;
    t->failed++;
    printf("FAIL %s: %s\n", p.id, ended ? WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "died" : "hung");
    return p.at + 1;
}

static bool read_options(int argc, char **argv, struct options *o)
{
    *o = (struct options){ false, false, 0, 240, NULL, NULL };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--gpu") == 0)
            o->gpu = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            o->verbose = true;
        else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            o->device = atoi(argv[++i]);
        else if (strcmp(argv[i], "--timeout") == 0 && i + 1 < argc)
            o->timeout = atoi(argv[++i]);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            o->only = argv[++i];
        else if (argv[i][0] != '-' && o->path == NULL)
            o->path = argv[i];
        else
            return false;
    return o->path != NULL;
}

int main(int argc, char **argv)
{
    struct options o;
    struct cases all;
    struct totals t = { 0, 0, 0 };

    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: %s [--gpu [--device N]] [--timeout SECONDS] [--only ID] [--verbose] FILE\n", argv[0]);
        return 2;
    }
    if (!cases_open(o.path, &all)) {
        fprintf(stderr, "%s: cannot be read\n", o.path);
        return 2;
    }
    for (int next = 0; next >= 0 && next < all.count;)
        next = portion(&o, &all, next, &t);
    if (o.verbose)
        printf("%d of those that passed were pins that do not fit\n", t.unfit);
    printf("%d passed, %d failed\n", t.passed, t.failed);
    return t.failed != 0;
}
