/* SPDX-License-Identifier: Apache-2.0 */
/* cache_key.c - what names an entry: the hash of a kind and of all parts, each behind its length. */
#include "cache.h"

#include <string.h>

static void cache_key_data(struct cache_keying *k, const void *data, size_t length)
{
    const uint64_t n = length;

    sha256_add(&k->hash, &n, sizeof n);
    sha256_add(&k->hash, data, length);
}

void cache_key_number(struct cache_keying *k, int64_t number) { cache_key_data(k, &number, sizeof number); }

void cache_key_text(struct cache_keying *k, const char *text)
{
    cache_key_number(k, text != NULL);
    if (text)
        cache_key_data(k, text, strlen(text));
}

void cache_key_begin(struct cache_keying *k, const char *kind)
{
    sha256_begin(&k->hash);
    cache_key_text(k, kind);
}

void cache_key_end(struct cache_keying *k, struct cache_key *out) { sha256_end(&k->hash, out->digest); }
