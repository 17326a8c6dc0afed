/* SPDX-License-Identifier: Apache-2.0 */
/* parallel.h - the same work on many items, on all cores. */
#ifndef PTXGEN_CLI_PARALLEL_H
#define PTXGEN_CLI_PARALLEL_H

/* Cores that this process may use. */
int core_count(void);

/* work(i, user) for 0 <= i < n, in any order, by up to `threads` threads at once; returns when all is done.  Runs in
 * the calling thread alone where no thread can be started. */
void parallel_for(int n, int threads, void (*work)(int i, void *user), void *user);

#endif
