/* SPDX-License-Identifier: Apache-2.0 */
/* variant_sweep.c - every variant that can be pinned is right, or refused: at awkward sizes, wherever arrays begin.
 *
 *     variant_sweep SPECS [--part I/N] [--seed S] [--jobs J] [--only TEXT]
 *
 * For each spec of the folder and each strategy that fits: the strategy with each value of each of its tunables, the
 * others as they are by default, and DRAWN variants of all tunables at random.  Each runs on the host executor, which
 * checks addresses, at sizes drawn from the seed, and is compared with the oracle.  A variant whose plan is refused, or
 * that no case takes at a size, is not a failure; a difference, a finding, a signal or a hang is.
 *
 * `--part I/N`: variants whose number, with the seed, hashes to I modulo N.  A failure prints the spec, the variant,
 * the sizes and the modes.  The last line counts.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/harness.h"
#include "api/api_impl.h"
#include "explore/cost.h"

/* THREADS_MAX: of a launch.  The host executor takes some 10 to 60 microseconds for each. */
enum { THREADS_MAX = 1 << 18 };
enum { SPECS_MAX = 512, RUNS = 5, DRAWN = 24, SECONDS_MAX = 240, SHOWN_MAX = 1536, JOBS_MAX = 64 };

/* What a child tells its parent, in memory that both see; `now` is what it was at when it died. */
struct told {
    long ran, refused, failed;
    char now[SHOWN_MAX];
};

struct sweep {
    const char *folder, *only;
    uint64_t seed;
    int part, parts, jobs;
    const char *spec;
    const char *text;
    struct told *told;
};

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static int pick(uint64_t *state, const int *of, int n) { return of[harness_random(state) % (uint64_t)n]; }

/* Small ones in all dimensions, or one dimension of a few tiles beside tiny ones; never many elements in all. */
static void draw_sizes(struct harness *h, int run, uint64_t *state, int64_t *size)
{
    static const int tiny[] = { 1, 2, 3, 4, 5, 7, 8, 9 }, small[] = { 1, 3, 5, 6, 15, 16, 17, 31, 32, 33, 34, 63, 65 },
                     middle[] = { 64, 96, 100, 127, 128, 129, 255, 256, 257, 500, 1000, 1024, 1025 },
                     large[] = { 2047, 2048, 2052, 4095, 4097, 5000, 8191, 8192, 10007 };
    const int n = ptxgen_problem_size_count(h->problem);
    const int from = (int)(harness_random(state) % (uint64_t)n); /* which is the long one */
    for (int i = 0; i < n; i++)
        size[i] = run == 0 && n < 3 ? pick(state, small, 13) : pick(state, tiny, run > 2 ? 3 : 8);
    if (run == 1 || (run == 0 && n > 2))
        size[from] = pick(state, small, 13);
    else if (run == 2)
        size[from] = pick(state, middle, 13);
    else if (run > 2)
        size[from] = pick(state, large, n > 1 ? 5 : 9);
    if (run == 2 && n == 2)
        size[1 - from] = pick(state, small, 9);
}

static int64_t threads_at(const struct plan *plan, const int64_t *size, const union value *param,
                          const struct gpu_model *m)
{
    const struct prediction at = predict(plan, size, param, m, NULL);
    int64_t sum = 0;
    for (int k = 0; at.case_index >= 0 && k < plan->cases[at.case_index].code.nkernels; k++)
        sum += at.grid[k] * plan->cases[at.case_index].code.kernel[k].threads;
    return sum;
}

/* Halve the longest dimension until the launch has at most THREADS_MAX threads: a variant may have a cluster of eight
 * large blocks for each of two thousand rows of one element. */
static void bound_sizes(const struct harness *h, int64_t *size)
{
    struct gpu_model m;
    const int n = ptxgen_problem_size_count(h->problem);
    if (!gpu_model_find("H200", 90, NULL, &m))
        return;
    while (threads_at(h->plan->plan, size, (const union value *)h->param, &m) > THREADS_MAX) {
        int longest = 0;
        for (int i = 1; i < n; i++)
            longest = size[i] > size[longest] ? i : longest;
        if (size[longest] < 2)
            return;
        size[longest] /= 2;
    }
}

/* ---- one variant ------------------------------------------------------------------------------------------------- */

static void report(const struct sweep *w, const char *what)
{
    printf("FAIL %s: %s\n", w->told->now, what);
    fflush(stdout);
    w->told->failed++;
}

/* Does the oracle refuse these sizes, too? */
static bool refused_by_all(struct harness *h)
{
    ptxgen_arguments args = { h->size, (const void *const *)h->input, h->expected, h->param };
    ptxgen_diagnostics_clear(h->s);
    return ptxgen_evaluate(h->s, h->problem, &args) != PTXGEN_OK;
}

static void run_at(const struct sweep *w, struct harness *h, const char *variant, int run, uint64_t seed)
{
    static const char *const modes[] = { "seed:1,race,uninit,sms:2", "seed:0,sms:1", "seed:3,race,sms:1",
                                         "seed:2,sms:1", "seed:0,race,sms:3" };
    const uint64_t number = seed;
    int64_t size[8];
    draw_sizes(h, run, &seed, size);
    bound_sizes(h, size);
    const int skew = (int)(harness_random(&seed) % 5 % 4), skew2 = (int)(harness_random(&seed) % 4 == 0);
    int n = snprintf(w->told->now, SHOWN_MAX, "%s --variant=%s", w->spec, variant);
    for (int i = 0; i < ptxgen_problem_size_count(h->problem); i++)
        n += snprintf(w->told->now + n, (size_t)(SHOWN_MAX - n), " --size %s=%lld",
                      ptxgen_problem_size_name(h->problem, i), (long long)size[i]);
    snprintf(w->told->now + n, (size_t)(SHOWN_MAX - n), " --simt=%s (begin %d + %d * array, data %llu)", modes[run],
             skew, skew2, (unsigned long long)number);
    harness_data_at(h, size, number, skew, skew2);
    if (harness_check(h, modes[run]))
        w->told->ran++;
    else if (strstr(h->text, "no case of ") || refused_by_all(h))
        w->told->refused++;
    else
        report(w, h->text);
}

static void try_variant(const struct sweep *w, const char *variant, uint64_t number)
{
    uint64_t state = w->seed ^ number * 0x9E3779B97F4A7C15u;
    if ((int)(harness_random(&state) % (uint64_t)w->parts) != w->part)
        return;
    const ptxgen_plan_options o = { .struct_size = sizeof(ptxgen_plan_options), .arch = "sm_90", .variant = variant };
    struct harness h = { 0 };
    snprintf(w->told->now, SHOWN_MAX, "%s --variant=%s (planning)", w->spec, variant);
    if (ptxgen_session_create(&h.s) != PTXGEN_OK ||
        ptxgen_problem_from_string(h.s, w->text, strlen(w->text), w->spec, &h.problem) != PTXGEN_OK) {
        harness_fail(&h, "problem");
        report(w, h.text);
    } else if (ptxgen_plan_create(h.s, h.problem, &o, &h.plan) == PTXGEN_INTERNAL) {
        harness_fail(&h, "plan");
        report(w, h.text);
    } else if (!h.plan) {
        w->told->refused++;
    } else if (ptxgen_host_create(h.s, h.plan, NULL, &h.host) != PTXGEN_OK) {
        harness_fail(&h, "code");
        report(w, h.text);
    } else {
        for (int run = 0; run < RUNS; run++)
            run_at(w, &h, variant, run, harness_random(&state) % 1000000);
    }
    harness_close(&h);
}

/* ---- variants of a strategy -------------------------------------------------------------------------------------- */

struct drawing {
    const struct sweep *w;
    uint64_t number;
};

static int drawn(const ptxgen_variant *v, void *user)
{
    struct drawing *d = user;
    try_variant(d->w, v->id, d->number++);
    return 0;
}

static void try_strategy(const struct sweep *w, const struct strategy *row, int spec_number)
{
    uint64_t number = (uint64_t)spec_number << 32 | (uint64_t)(row - strategy_row(0)) << 16;
    ptxgen_session *s;
    ptxgen_problem *problem;
    if (ptxgen_session_create(&s) != PTXGEN_OK ||
        ptxgen_problem_from_string(s, w->text, strlen(w->text), w->spec, &problem) != PTXGEN_OK) {
        report(w, "the spec is not read");
        return;
    }
    try_variant(w, row->name, number++);
    for (int t = 0; t < TN_COUNT; t++) {
        const int *value, n = row->tunables >> t & 1 ? tunable_values((enum tunable_id)t, &value) : 0;
        for (int i = 0; i < n; i++) {
            char id[256];
            snprintf(id, sizeof id, "%s@%s=%d", row->name, tunable_name((enum tunable_id)t), value[i]);
            try_variant(w, id, number++);
        }
    }
    const ptxgen_setting only = { "strategy", row->name };
    const ptxgen_plan_options plan = {
        .struct_size = sizeof(ptxgen_plan_options), .arch = "sm_90", .setting_count = 1, .setting = &only
    };
    const ptxgen_variant_options o = {
        .struct_size = sizeof(ptxgen_variant_options), .plan = &plan, .draw = DRAWN, .seed = w->seed
    };
    struct drawing d = { w, number };
    if (ptxgen_variants(s, problem, &o, drawn, &d) == PTXGEN_INTERNAL)
        report(w, "variants cannot be listed");
    ptxgen_session_destroy(s);
}

/* ---- all specs, in children -------------------------------------------------------------------------------------- */

static bool fits(const char *text, const char *name, const struct strategy *row)
{
    const ptxgen_setting only = { "strategy", row->name };
    const ptxgen_plan_options o = {
        .struct_size = sizeof(ptxgen_plan_options), .arch = "sm_90", .setting_count = 1, .setting = &only
    };
    ptxgen_session *s;
    ptxgen_problem *problem;
    ptxgen_plan *plan = NULL;
    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return false;
    if (ptxgen_problem_from_string(s, text, strlen(text), name, &problem) == PTXGEN_OK)
        ptxgen_plan_create(s, problem, &o, &plan);
    ptxgen_session_destroy(s);
    return plan != NULL;
}

struct slot {
    pid_t pid;
    struct told *told;
};

static void gather(struct slot *slot, int status, struct told *sum)
{
    sum->ran += slot->told->ran;
    sum->refused += slot->told->refused;
    sum->failed += slot->told->failed;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        printf("FAIL %s: %s %d\n", slot->told->now, WIFSIGNALED(status) ? "signal" : "exit status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        sum->failed++;
    }
    slot->pid = 0;
}

static struct slot *free_slot(struct slot *slot, int jobs, struct told *sum)
{
    for (int i = 0; i < jobs; i++)
        if (!slot[i].pid)
            return &slot[i];
    int status;
    const pid_t pid = wait(&status);
    for (int i = 0; i < jobs; i++)
        if (slot[i].pid == pid) {
            gather(&slot[i], status, sum);
            return &slot[i];
        }
    return &slot[0];
}

static void start(struct slot *slot, struct sweep w, const struct strategy *row, int spec_number)
{
    memset(slot->told, 0, sizeof *slot->told);
    fflush(stdout);
    slot->pid = fork();
    if (slot->pid)
        return;
    alarm(SECONDS_MAX * 10);
    w.told = slot->told;
    try_strategy(&w, row, spec_number);
    fflush(stdout);
    _exit(0);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int specs_of(const char *folder, char **name)
{
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (n < SPECS_MAX && strstr(e->d_name, ".yaml"))
            name[n++] = strdup(e->d_name);
    if (dir)
        closedir(dir);
    qsort(name, (size_t)n, sizeof *name, by_name);
    return n;
}

static void sweep(struct sweep *w, struct told *sum)
{
    static char *name[SPECS_MAX];
    struct slot slot[JOBS_MAX] = { 0 };
    for (int i = 0; i < w->jobs; i++)
        slot[i].told = mmap(NULL, sizeof *slot->told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const int n = specs_of(w->folder, name);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", w->folder, name[i]);
        char *text = harness_read(path);
        w->spec = name[i];
        w->text = text;
        for (int r = 0; text && r < strategy_count(); r++) {
            snprintf(path, sizeof path, "%s %s", name[i], strategy_row(r)->name);
            if ((!w->only || strstr(path, w->only)) && fits(text, name[i], strategy_row(r)))
                start(free_slot(slot, w->jobs, sum), *w, strategy_row(r), i);
        }
        free(text);
    }
    for (int left = w->jobs; left--;) {
        int busy = 0;
        for (int i = 0; i < w->jobs; i++)
            busy += slot[i].pid != 0;
        if (busy) {
            int status;
            const pid_t pid = wait(&status);
            for (int i = 0; i < w->jobs; i++)
                if (slot[i].pid == pid)
                    gather(&slot[i], status, sum);
        }
    }
}

int main(int argc, char **argv)
{
    struct sweep w = { .folder = argc > 1 ? argv[1] : "specs", .seed = 1, .parts = 1, .jobs = 2 };
    struct told sum = { 0 };
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--part"))
            sscanf(argv[i + 1], "%d/%d", &w.part, &w.parts);
        else if (!strcmp(argv[i], "--seed"))
            w.seed = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--jobs"))
            w.jobs = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--only"))
            w.only = argv[i + 1];
    }
    w.jobs = w.jobs < 1 ? 1 : w.jobs > JOBS_MAX ? JOBS_MAX : w.jobs;
    w.parts = w.parts < 1 ? 1 : w.parts;
    printf("variant_sweep %s --part %d/%d --seed %llu\n", w.folder, w.part, w.parts, (unsigned long long)w.seed);
    sweep(&w, &sum);
    printf("%ld refused\n%ld passed, %ld failed\n", sum.refused, sum.ran, sum.failed);
    return sum.failed != 0 || sum.ran == 0;
}
