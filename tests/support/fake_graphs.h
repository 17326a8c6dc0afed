/* SPDX-License-Identifier: Apache-2.0 */
/* fake_graphs.h - what the two files of the fake driver share. */
#ifndef PTXGEN_FAKE_GRAPHS_H
#define PTXGEN_FAKE_GRAPHS_H

#include <stdbool.h>

#include "fake_cuda.h"
#include "launch/cuda_abi.h"

extern struct fake_cuda fake;
/* Would this call of the thread spoil a capture of another thread? */
bool fake_spoils_capture(void);
bool fake_captures(const void *stream);
/* Is the stream captured?  Then the call is this node, else NULL. */
struct fake_node *fake_capture(const void *stream, const char *what, const struct fake_call *call);
/* What a node does when its graph runs, or a call that is not captured. */
void fake_do_launch(const struct fake_call *c);
void fake_do_copy(const struct fake_call *c);
void fake_do_copy_2d(const struct fake_call *c);
void fake_do_fill(const struct fake_call *c);
/* The byte by which a loop ends. */
bool fake_holds(uint64_t flag);
struct fake_call *fake_record(const char *name, const void *stream, uint64_t a, uint64_t b);
int fake_result(const char *name);
int fake_count(const char *name, int change);

/* One definition per row of the table, under the exported symbol. */
#define ENTRY(symbol, ...)                                                                                             \
    int symbol(__VA_ARGS__);                                                                                           \
    int symbol(__VA_ARGS__)
#define GIVE_BACK(symbol, name, type)                                                                                  \
    ENTRY(symbol, type what)                                                                                           \
    {                                                                                                                  \
        (void)what;                                                                                                    \
        return fake_count(name, -1);                                                                                   \
    }

#endif
