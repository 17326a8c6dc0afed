/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - the little that writers and messages need to know of UTF-8. */
#ifndef PTXGEN_UTF8_H
#define PTXGEN_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at text[0..length), length >= 1, and its code point; 0 when the bytes are not UTF-8
 * (overlong forms, surrogates and values above U+10FFFF included). */
int utf8_decode(const char *text, size_t length, uint32_t *code);

/* Cells that a character takes on a terminal: 0 combining, 2 wide, else 1. */
int utf8_width(uint32_t code);

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

#endif
