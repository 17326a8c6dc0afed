/* SPDX-License-Identifier: Apache-2.0 */
/* llvm_room.c - is there memory to compile with?
 *
 * LLVM ends the process where an allocation fails, in C++ code that nobody can be called back from safely.  What can be
 * known before is the limit that a process was given (`ulimit -v`): when too little of it is left, compiling is
 * refused. Where the system itself runs out there is no such warning.
 */
#include "llvm_room.h"

#include "llvm_open.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* For the largest spec, with some to spare; a thread has a stack and an arena of its own besides. */
enum { ROOM_MIB = 128, THREAD_MIB = 96 };

/* Bytes of address space that the process has; 0: the system does not say. */
static uint64_t used(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    const bool told = f && fscanf(f, "%lu", &pages) == 1;
    if (f)
        fclose(f);
    return told ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t left_mib(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    const uint64_t have = used();
    return limit.rlim_cur > have ? (limit.rlim_cur - have) >> 20 : 0;
}

bool llvm_room(struct ptxgen_session *s)
{
    const char *failure = llvm_open(); /* first, because LLVM takes room too */
    const uint64_t left = left_mib();
    if (left < ROOM_MIB)
        diag_error(&s->diags, D_NO_ROOM, span_none(),
                   "%d MiB are left of the process's address space, compiling needs %d", (int)left, ROOM_MIB);
    else if (failure)
        diag_error(&s->diags, D_NO_LLVM, span_none(), "LLVM cannot be loaded: %s", failure);
    return left >= ROOM_MIB && !failure;
}

bool llvm_room_for(int threads) { return left_mib() / THREAD_MIB > (uint64_t)threads + 1; }
