/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - see utf8.h. */
#include "utf8.h"

int utf8_decode(const char *text, size_t length, uint32_t *code)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *s = (const unsigned char *)text;
    const int n = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;
    if (n == 0 || (size_t)n > length)
        return 0;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if ((n > 1 && c < least[n]) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
        return 0;
    *code = c;
    return n;
}

struct range {
    uint32_t first, last;
    int width;
};

int utf8_width(uint32_t code)
{
    /* The blocks that occur in practice, from Unicode's East Asian Width W and F and general category Mn. */
    static const struct range ranges[] = {
        { 0x0300, 0x036f, 0 },   { 0x1100, 0x115f, 2 },   { 0x200b, 0x200f, 0 },   { 0x20d0, 0x20ff, 0 },
        { 0x2e80, 0xa4cf, 2 },   { 0xac00, 0xd7a3, 2 },   { 0xf900, 0xfaff, 2 },   { 0xfe00, 0xfe0f, 0 },
        { 0xfe20, 0xfe2f, 0 },   { 0xfe30, 0xfe6f, 2 },   { 0xff00, 0xff60, 2 },   { 0xffe0, 0xffe6, 2 },
        { 0x1f300, 0x1f64f, 2 }, { 0x1f900, 0x1f9ff, 2 }, { 0x20000, 0x3fffd, 2 },
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return ranges[i].width;
    return 1;
}
