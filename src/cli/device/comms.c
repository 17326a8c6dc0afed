/* SPDX-License-Identifier: Apache-2.0 */
/* comms.c - see comms.h.  No header of NCCL is needed: these functions are as old as NCCL 2.0. */
#define _GNU_SOURCE
#include "comms.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct comms {
    void *library;
    int n; /* communicators that there are */
    void **comm;
    int (*CommInitAll)(void **, int, const int *);
    int (*CommDestroy)(void *);
    int (*CommAbort)(void *);
    const char *(*GetErrorString)(int);
};

static bool find_functions(struct comms *c, char *why, size_t room)
{
    const struct {
        const char *name;
        void *slot;
    } function[] = {
        { "ncclCommInitAll", &c->CommInitAll },
        { "ncclCommDestroy", &c->CommDestroy },
        { "ncclCommAbort", &c->CommAbort },
        { "ncclGetErrorString", &c->GetErrorString },
    };
    for (size_t i = 0; i < sizeof function / sizeof *function; i++) {
        void *symbol = dlsym(c->library, function[i].name);
        if (!symbol) {
            snprintf(why, room, "NCCL is too old, or it is another library: it has no %s", function[i].name);
            return false;
        }
        memcpy(function[i].slot, &symbol, sizeof symbol);
    }
    return true;
}

static bool open_library(struct comms *c, char *why, size_t room)
{
    const char *chosen = secure_getenv("PTXGEN_LIBNCCL"); /* as the library does */
    const char *name = chosen && *chosen ? chosen : "libnccl.so.2";
    c->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!c->library)
        snprintf(why, room, "several GPUs need NCCL, which cannot be opened: %s (PTXGEN_LIBNCCL names another file)",
                 dlerror());
    return c->library && find_functions(c, why, room);
}

struct comms *comms_open(int n, const int *device, char *why, size_t room)
{
    struct comms *c = calloc(1, sizeof *c);
    snprintf(why, room, "out of memory");
    if (c && (c->comm = calloc((size_t)n, sizeof *c->comm)) && open_library(c, why, room)) {
        const int result = c->CommInitAll(c->comm, n, device);
        if (result == 0) {
            c->n = n;
            return c;
        }
        snprintf(why, room,
                 "NCCL cannot connect these GPUs: ncclCommInitAll: %s; with the environment variable "
                 "NCCL_DEBUG=WARN, NCCL says more",
                 c->GetErrorString(result));
    }
    comms_close(c);
    return NULL;
}

void *comms_at(const struct comms *c, int rank) { return c->comm[rank]; }

void comms_abort(struct comms *c)
{
    for (int r = 0; c && r < c->n; r++)
        c->CommAbort(c->comm[r]);
    if (c)
        c->n = 0;
}

void comms_close(struct comms *c)
{
    if (!c)
        return;
    for (int r = 0; r < c->n; r++)
        c->CommDestroy(c->comm[r]);
    free(c->comm);
    free(c); /* the library stays: its threads may still run */
}
