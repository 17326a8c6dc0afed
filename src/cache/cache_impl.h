/* SPDX-License-Identifier: Apache-2.0 */
/* cache_impl.h - names of files in the cache's directory. */
#ifndef PTXGEN_CACHE_IMPL_H
#define PTXGEN_CACHE_IMPL_H

#include "cache.h"

#define CACHE_SUFFIX     ".ptxgen"
#define CACHE_UNFINISHED ".XXXXXX" /* after the suffix, while it is written */

/* Bytes that a file's name may add to the directory's. */
enum { NAME_ROOM = 2 * SHA256_BYTES + 32 };

#endif
