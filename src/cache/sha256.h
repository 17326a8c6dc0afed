/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - the hash that names cache entries and tells a damaged one. */
#ifndef PTXGEN_SHA256_H
#define PTXGEN_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t length;                   /* bytes so far */
    unsigned char block[SHA256_BLOCK]; /* its first length % SHA256_BLOCK bytes are filled */
};

void sha256_begin(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t length);
void sha256_end(struct sha256 *h, unsigned char digest[SHA256_BYTES]);

#endif
