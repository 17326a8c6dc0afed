/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cuda_log.h - the log that fake_cuda.c writes for a whole process: a part of that file. */
#ifndef PTXGEN_FAKE_CUDA_LOG_H
#define PTXGEN_FAKE_CUDA_LOG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda.h"

static FILE *log_file;
static struct {
    uint64_t begin, bytes;
} allocated[FAKE_CALLS];
static int nallocated;

static void log_allocation(uint64_t begin, uint64_t bytes)
{
    if (!log_file)
        return;
    pthread_mutex_lock(&lock);
    allocated[nallocated].begin = begin;
    allocated[nallocated++].bytes = bytes;
    pthread_mutex_unlock(&lock);
}

static const char *log_place(uint64_t address)
{
    static _Thread_local char text[4][40];
    static _Thread_local int turn;
    char *out = text[turn++ % 4];
    for (int i = nallocated - 1; i >= 0; i--)
        if (address >= allocated[i].begin && address - allocated[i].begin < allocated[i].bytes) {
            snprintf(out, sizeof text[0], "m%d+%llu", i, (unsigned long long)(address - allocated[i].begin));
            return out;
        }
    snprintf(out, sizeof text[0], "%llx", (unsigned long long)address);
    return out;
}

void fake_do_launch(const struct fake_call *c)
{
    const struct fake_kernel *k = fake.kernel;
    if (fake.runs)
        fake.runs(c);
    if (!log_file)
        return;
    while (strcmp(k->name, c->kernel) != 0)
        k++;
    flockfile(log_file); /* threads of several devices launch at once; a line is one launch's */
    fprintf(log_file, "launch %s %u %u %u cluster %u dependent %d:", c->kernel, c->grid, c->block, c->shared,
            c->cluster, c->programmatic);
    for (int i = 0; i < k->nparams; i++)
        fprintf(log_file, " %s", k->bytes[i] == 8 ? log_place(c->param[i]) : "-");
    for (int i = 0; i < k->nparams; i++)
        if (k->bytes[i] != 8)
            fprintf(log_file, " %llx", (unsigned long long)c->param[i]);
    fputc('\n', log_file);
    funlockfile(log_file);
}

/* The kernel of that name, or a new one. */
static struct fake_kernel *kernel_of(const char *name, size_t length)
{
    if (length >= FAKE_NAME)
        return NULL;
    for (int i = 0; i < FAKE_KERNELS; i++) {
        struct fake_kernel *k = &fake.kernel[i];

        if (!k->name[0])
            memcpy(k->name, name, length);
        if (strlen(k->name) == length && strncmp(k->name, name, length) == 0)
            return k;
    }
    return NULL;
}

/* Kernels and the bytes of their parameters, as PTX says them. */
static void learn_kernels(const char *ptx)
{
    for (const char *at = strstr(ptx, ".entry "); at; at = strstr(at, ".entry ")) {
        const char *end = strchr(at, '{'), *p = at;
        struct fake_kernel *k;

        at += strlen(".entry ");
        k = kernel_of(at, strcspn(at, "( "));
        if (!k)
            continue;
        struct fake_kernel learned = { .nparams = 0 };
        memcpy(learned.name, k->name, sizeof learned.name);
        while ((p = strstr(p, ".param .")) && p < end) {
            p += strlen(".param .");
            const bool is_array = strncmp(p, "align", 5) == 0; /* ".align 2 .b8 name[2]": a number of 16 bits */
            const int bytes = is_array ? atoi(p + strcspn(p, "[") + 1) : atoi(p + strcspn(p, "123456789")) / 8;
            learned.bytes[learned.nparams++] = bytes <= 8 ? bytes : 0;
        }
        if (memcmp(k, &learned, sizeof learned) != 0) /* threads may read what is known */
            *k = learned;
    }
}

#endif
