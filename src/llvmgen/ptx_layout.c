/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_layout.c - PTX as short as it can be said without saying anything else.
 *
 * A quarter of what LLVM prints is blanks and comments: columns, loops' nests, marks around each inline assembly.  The
 * driver reads all of it at every load, and headers carry it.  Names of blocks stay, for people.
 */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "llvmgen/ptx.h"

/* What stays of a line's comments: the name of a block, "// %tiles.loop"; of the first one it says nothing. */
static const char *kept_comment(const char *line, size_t length)
{
    const char *name = NULL, *end = line + length;
    for (const char *at = line; (at = memmem(at, (size_t)(end - at), "// %", 4)); at += 4)
        name = at;
    const bool first = name && end - name == 9 && strncmp(name, "// %entry", 9) == 0;
    return name && !first && strncmp(name, "// %bb.", 7) != 0 ? name : NULL;
}

/* The statement without the blanks before it and after its words and commas; labels without "__BB". `to` may be `line`. */
static char *add_statement(char *to, const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const bool blank = i == 0 ? line[i] == '\t' || line[i] == ' '
                                  : line[i] == ' ' && ((i + 1 < length && line[i + 1] == '\t') || line[i - 1] == ',');
        if (line[i] == '$' && length - i > 6 && memcmp(line + i, "$L__BB", 6) == 0) {
            *to++ = '$';
            *to++ = 'L';
            i += 5;
        } else if (!blank) {
            *to++ = line[i] == '\t' ? ' ' : line[i];
        }
    }
    return to;
}

/* A line without its newline.  Never longer than before, so that it may be written where it is. */
static char *add_line(char *to, const char *line, size_t length)
{
    const char *comment = memmem(line, length, "//", 2), *name = comment ? kept_comment(line, length) : NULL;
    const size_t named = name ? (size_t)(line + length - name) : 0;
    size_t statement = comment ? (size_t)(comment - line) : length;
    while (statement > 0 && (line[statement - 1] == ' ' || line[statement - 1] == '\t'))
        statement--;
    if (comment && statement == 0 && !name)
        return to;
    to = add_statement(to, line, statement);
    if (name && statement > 0)
        *to++ = ' ';
    memmove(to, name ? name : "", named);
    to += named;
    *to++ = '\n';
    return to;
}

size_t ptx_lay_out(char *text, size_t length)
{
    char *to = text, *end = text + length;
    for (char *line = text, *newline; (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1)
        to = add_line(to, line, (size_t)(newline - line));
    *to = '\0';
    return (size_t)(to - text);
}
