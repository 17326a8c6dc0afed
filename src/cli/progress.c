/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - see progress.h.  A thread waits for a second and then rewrites the line. */
#define _GNU_SOURCE
#include "progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- progress ---- */
static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool running, done, visible;
    const char *what;
    double begin, expected;
    _Atomic double part;
} step = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

double progress_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool progress_shown(void) { return isatty(STDERR_FILENO); }

static void show(void)
{
    double spent = progress_now() - step.begin, part = step.part;
    double left = part > 0 ? spent / part * (1 - part) : step.expected - spent;
    fprintf(stderr, "\r\033[K%s: %.0f s", step.what, spent);
    if (part > 0 || step.expected > 0) {
        fprintf(stderr, ", about %.0f s left", left > 0 ? left : 0);
    }
    fflush(stderr);
    step.visible = true;
}

static void *watch(void *user)
{
    struct timespec until;
    (void)user;
    clock_gettime(CLOCK_REALTIME, &until);
    pthread_mutex_lock(&step.lock);
    for (until.tv_sec++; !step.done;) {
        if (pthread_cond_timedwait(&step.ended, &step.lock, &until) != 0 && !step.done) {
            show();
            until.tv_sec++;
        }
    }
    pthread_mutex_unlock(&step.lock);
    return NULL;
}

void progress_begin(const char *what, double seconds)
{
    if (step.running || !progress_shown()) {
        return;
    }
    step.what = what;
    step.expected = seconds;
    step.part = 0;
    step.done = step.visible = false;
    step.begin = progress_now();
    step.running = pthread_create(&step.thread, NULL, watch, NULL) == 0;
}

void progress_at(double part) { step.part = part; }

void progress_end(void)
{
    if (!step.running) {
        return;
    }
    pthread_mutex_lock(&step.lock);
    step.done = true;
    pthread_cond_signal(&step.ended);
    pthread_mutex_unlock(&step.lock);
    pthread_join(step.thread, NULL);
    step.running = false;
    if (step.visible) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}

/* ---- interrupts ---- */
static const char *volatile last_words;
static volatile sig_atomic_t notes, noted, terminal;

static void say_now(const char *text)
{
    const char *begin = terminal ? "\r\033[Kptxgen: " : "ptxgen: ";
    if (write(STDERR_FILENO, begin, strlen(begin)) < 0 || write(STDERR_FILENO, text, strlen(text)) < 0) {
        return; /* nobody hears */
    }
}

static void on_interrupt(int number)
{
    if (notes && !noted) {
        noted = 1;
        say_now("stopping after what is under way; Ctrl-C again stops at once\n");
        return;
    }
    if (last_words) {
        say_now(last_words);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void listen(void)
{
    terminal = progress_shown();
    struct sigaction old, now = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
        sigaction(SIGINT, &now, NULL);
    }
}

void interrupt_says(const char *text)
{
    last_words = text;
    listen();
}

void interrupt_notes(void)
{
    notes = 1;
    listen();
}

bool interrupted(void) { return noted; }
