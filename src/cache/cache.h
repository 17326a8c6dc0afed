/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - a directory of things that were expensive to make: the code of programs.
 *
 * An entry is a file named by the hash of everything that its content depends on (the key).  So an entry never becomes
 * wrong, only unused; entries are never changed, and there is nothing to lock: a file appears complete under its name
 * (written beside it and renamed) or not at all, two processes that make the same entry write the same bytes, and one
 * that is deleted while it is read stays readable.  The content carries its own hash; what does not match is deleted.
 *
 * A hit sets the file's time of modification, and when the sum of all sizes passes the limit the oldest files go.
 * Every failure is a miss: a cache that cannot be read or written costs time and nothing else.
 */
#ifndef PTXGEN_CACHE_H
#define PTXGEN_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "sha256.h"

enum { CACHE_PATH_MAX = 3072 };

struct cache {
    bool enabled;
    char path[CACHE_PATH_MAX]; /* of the directory, which need not exist; "" when there is no place for one */
    uint64_t limit;            /* bytes */
};

/* Where the cache is.  place: a directory, "off", or NULL: what the environment says, in this order:
 *     PTXGEN_CACHE=off | DIRECTORY;  $XDG_CACHE_HOME/ptxgen;  $HOME/.cache/ptxgen
 * Touches no file. */
void cache_locate(struct cache *c, const char *place);

struct cache_key {
    unsigned char digest[SHA256_BYTES];
};

/* The content of an entry, replacing what `out` holds; false when there is none. */
bool cache_get(const struct cache *c, const struct cache_key *key, struct str *out);
void cache_put(const struct cache *c, const struct cache_key *key, const void *data, size_t length);
/* Forget an entry that turned out to be of no use. */
void cache_drop(const struct cache *c, const struct cache_key *key);

struct cache_stats {
    int64_t entries, bytes;
};
void cache_count(const struct cache *c, struct cache_stats *out);
/* Delete all entries, and what unfinished writers left; false with errno when something could not be deleted. */
bool cache_clear(const struct cache *c);
/* Delete the oldest entries until at most `bytes` are left. */
void cache_trim(const struct cache *c, uint64_t bytes);

/* ---- keys: the parts' texts, told apart ---- */
struct cache_keying {
    struct sha256 hash;
};
void cache_key_begin(struct cache_keying *k, const char *kind);
void cache_key_text(struct cache_keying *k, const char *text); /* NULL is another key than "" */
void cache_key_number(struct cache_keying *k, int64_t number);
void cache_key_end(struct cache_keying *k, struct cache_key *out);

#endif
