/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_exact.c - instructions that ptxas (12.4 and 13.0) computes wrongly, replaced in the text, after everything that
 * could make them.
 *
 *     abs(x) of an integer          ptxas takes the result of abs for not negative and drops what depends on its sign;
 *                                   the least number's is negative (seen: rem after abs.s32, shr after abs.s16)
 *     -x of 16 bits                 ptxas negates x, extended to 32 bits, and takes the result for extended: the least
 *                                   number becomes 32768 (seen: div, shr, cvt, setp after neg.s16)
 *     p ? -0.0 : -1.0 of f32        ptxas converts an integer 0 or -1, and loses the sign of zero
 */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "base/str.h"
#include "llvmgen/ptx.h"

/* $d is the result's register, $s the operand's; they differ.  -x is ~(x - 1), which nothing takes for a negation. */
static const struct rule {
    const char *from, *to;
} rules[] = {
    { "\tneg.s16 \t", "\tadd.s16 \t$d, $s, -1;\n\tnot.b16 \t$d, $d;" },
    { "\tabs.s16 \t", "\tadd.s16 \t$d, $s, -1;\n\tnot.b16 \t$d, $d;\n\tmax.s16 \t$d, $d, $s;" },
    { "\tabs.s32 \t", "\tadd.s32 \t$d, $s, -1;\n\tnot.b32 \t$d, $d;\n\tmax.s32 \t$d, $d, $s;" },
    { "\tabs.s64 \t", "\tadd.s64 \t$d, $s, -1;\n\tnot.b64 \t$d, $d;\n\tmax.s64 \t$d, $d, $s;" },
};

#define SELECT "\tselp.f32 \t"

/* `line` of the form "OP D, S;" by the rule; false where it has another form. */
static bool apply(struct str *out, const struct rule *rule, const char *line, size_t length)
{
    const char *d = line + strlen(rule->from), *comma = memchr(d, ',', length - strlen(rule->from));
    const char *s = comma ? comma + 2 : NULL, *end = comma ? memchr(s, ';', (size_t)(line + length - s)) : NULL;
    if (!end)
        return false;
    for (const char *t = rule->to; *t; t++)
        if (*t != '$')
            str_addc(out, *t);
        else if (*++t == 'd')
            str_addn(out, d, (size_t)(comma - d));
        else
            str_addn(out, s, (size_t)(end - s));
    str_addn(out, end + 1, (size_t)(line + length - end - 1));
    return true;
}

/* The same selection of the constants' bits. */
static void select_bits(struct str *out, const char *line, size_t length)
{
    str_add(out, "\tselp.b32 \t");
    for (const char *c = line + strlen(SELECT); c < line + length; c++)
        str_addc(out, *c == 'f' && c[-1] == '0' && c[-2] == ' ' ? 'x' : *c);
}

static bool begins(const char *line, size_t length, const char *with)
{
    return length > strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

static bool holds(const char *line, size_t length, const char *what)
{
    return memmem(line, length, what, strlen(what)) != NULL;
}

static void add_line(struct str *out, const char *line, size_t length)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (begins(line, length, rules[i].from) && apply(out, &rules[i], line, length))
            return;
    if (begins(line, length, SELECT) && holds(line, length, "0f80000000") && holds(line, length, "0fBF800000"))
        select_bits(out, line, length);
    else
        str_addn(out, line, length);
}

char *ptx_keep_exact(const char *text, size_t length, size_t *out_length)
{
    struct str out = { 0 };
    for (const char *line = text, *end = text + length, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline ? newline + 1 : end;
        add_line(&out, line, (size_t)(next - line));
    }
    *out_length = out.length;
    return str_take(&out);
}
