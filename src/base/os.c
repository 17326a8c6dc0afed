/* SPDX-License-Identifier: Apache-2.0 */
/* os.c - time, and whole reads and writes; see os.h. */
#define _GNU_SOURCE
#include "base/os.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

uint64_t os_nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

bool os_read(int fd, void *data, size_t bytes)
{
    for (char *at = data; bytes > 0;) {
        const ssize_t n = read(fd, at, bytes);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool os_write(int fd, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        const ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}
