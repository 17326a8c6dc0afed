/* SPDX-License-Identifier: Apache-2.0 */
/* os.h - time, and whole reads and writes.  All of it may be called in a signal's handler. */
#ifndef PTXGEN_OS_H
#define PTXGEN_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* On a clock that never goes back. */
uint64_t os_nanoseconds(void);

/* All of it, however often the call is interrupted; false: an error, or the end. */
bool os_read(int fd, void *data, size_t bytes);
bool os_write(int fd, const void *data, size_t bytes);

#endif
