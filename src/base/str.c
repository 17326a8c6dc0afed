/* SPDX-License-Identifier: Apache-2.0 */
/* str.c - see str.h. */
#include "str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void str_finish(struct str *s)
{
    free(s->text);
    memset(s, 0, sizeof *s);
}

/* Room for `more` bytes and the terminator. */
static bool reserve(struct str *s, size_t more)
{
    if (s->failed || more >= SIZE_MAX / 2 - s->length) {
        s->failed = true;
        return false;
    }
    if (s->length + more < s->capacity)
        return true;
    size_t capacity = s->capacity ? s->capacity : 128;
    while (capacity <= s->length + more)
        capacity *= 2;
    char *text = realloc(s->text, capacity);
    if (text == NULL) {
        s->failed = true;
        return false;
    }
    s->text = text;
    s->capacity = capacity;
    return true;
}

void str_addn(struct str *s, const char *text, size_t length)
{
    if (!reserve(s, length))
        return;
    if (length > 0)
        memcpy(s->text + s->length, text, length);
    s->length += length;
    s->text[s->length] = '\0';
}

void str_add(struct str *s, const char *text) { str_addn(s, text, strlen(text)); }
void str_addc(struct str *s, char c) { str_addn(s, &c, 1); }

void str_vprintf(struct str *s, const char *format, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    const int length = vsnprintf(NULL, 0, format, ap);
    if (length < 0)
        s->failed = true;
    else if (reserve(s, (size_t)length)) {
        vsnprintf(s->text + s->length, (size_t)length + 1, format, again);
        s->length += (size_t)length;
    }
    va_end(again);
}

void str_printf(struct str *s, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    str_vprintf(s, format, ap);
    va_end(ap);
}

char *str_take(struct str *s)
{
    str_addn(s, "", 0);
    char *text = s->text;
    if (s->failed) {
        free(text);
        text = NULL;
    }
    memset(s, 0, sizeof *s);
    return text;
}

/* Whatever the locale's decimal point is, it is what stands between digits and is none of the number's own characters. */
static void add_with_point(struct str *s, const char *number)
{
    bool in_point = false;
    for (const char *c = number; *c != '\0'; c++) {
        const bool own = strchr("0123456789+-e", *c) != NULL;
        if (own)
            str_addc(s, *c);
        else if (!in_point)
            str_addc(s, '.');
        in_point = !own;
    }
}

void str_double(struct str *s, double x)
{
    char number[64];
    if (isnan(x)) {
        str_add(s, "nan");
        return;
    }
    if (isinf(x)) {
        str_add(s, x < 0 ? "-inf" : "inf");
        return;
    }
    if (fabs(x) < 1e15 && x == trunc(x)) {
        str_printf(s, "%.0f", x);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, x);
        if (strtod(number, NULL) == x)
            break;
    }
    add_with_point(s, number);
}

/* ---- near names ----------------------------------------------------------------------------------- */

enum { NEAR_MAX = 64 };

static char fold(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static int least(int a, int b) { return a < b ? a : b; }

/* Edits (insert, delete, replace, swap of neighbours; case is free) from a to b: the optimal string alignment distance. */
static int edits(const char *a, int na, const char *b, int nb)
{
    int row[3][NEAR_MAX + 1];
    for (int j = 0; j <= nb; j++)
        row[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            const int replace = last[j - 1] + (fold(a[i - 1]) != fold(b[j - 1]));
            now[j] = least(replace, least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]))
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return row[na % 3][nb];
}

const char *str_nearest(const char *name, const char *const *names, int count)
{
    const size_t length = strlen(name);
    if (length > NEAR_MAX)
        return NULL;
    const char *nearest = NULL;
    int best = ((int)length + 1) / 3; /* more edits than that make another word */
    for (int i = 0; i < count; i++) {
        const size_t other = strlen(names[i]);
        if (other > NEAR_MAX)
            continue;
        const int d = edits(name, (int)length, names[i], (int)other);
        if (d < best || (d == best && nearest == NULL)) {
            nearest = names[i];
            best = d;
        }
    }
    return nearest;
}
