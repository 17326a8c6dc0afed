/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what the fuzz targets share.
 *
 * Every target takes any bytes as one kind of text or file that comes from outside, and goes on to whoever uses what
 * was read.  A broken promise traps, which a fuzzer reports like a crash.
 */
#ifndef PTXGEN_FUZZ_H
#define PTXGEN_FUZZ_H

#include "ptxgen/ptxgen.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static inline void promise(int holds)
{
    if (!holds)
        __builtin_trap();
}

/* The bytes as a text, NUL-terminated, in memory of exactly that size; free(). */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    promise(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    return text;
}

static inline int fuzz_lines(const uint8_t *data, size_t size)
{
    int lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n' || data[i] == '\r';
    return lines;
}

/* A refusal comes with an error, and each message with words, and a place in the text (placed: all of them do). */
static inline void fuzz_messages(const ptxgen_session *s, const uint8_t *data, size_t size, int placed)
{
    int errors = 0;
    for (int i = 0; i < ptxgen_diagnostic_count(s); i++) {
        ptxgen_diagnostic d;
        promise(ptxgen_diagnostic_get(s, i, &d) == PTXGEN_OK);
        promise(d.message && d.message[0]);
        errors += d.severity == PTXGEN_ERROR;
        /* "\r\n", NEL and the like: a line may end in more than one byte, never in less. */
        promise(!placed || (d.line >= 1 && d.column >= 1));
        promise(d.line <= fuzz_lines(data, size));
    }
    promise(errors > 0);
}

/* Messages can be rendered in both forms whatever the text held. */
static inline void fuzz_render(const ptxgen_session *s)
{
    char *text = ptxgen_diagnostics_text(s, 0), *json = ptxgen_diagnostics_json(s);
    promise(text && json && json[0] == '{');
    ptxgen_free(text);
    ptxgen_free(json);
}

/* A spec of specs/; NULL: there is none of this name. */
static inline ptxgen_problem *fuzz_spec(ptxgen_session *s, const char *name)
{
    char path[512];
    ptxgen_problem *problem = NULL;
    snprintf(path, sizeof path, "%s/specs/%s.yaml", PTXGEN_SOURCE_DIR, name);
    if (ptxgen_problem_from_file(s, path, &problem) != PTXGEN_OK)
        problem = NULL;
    ptxgen_diagnostics_clear(s);
    return problem;
}

/* One number of the text becomes another that is likely to matter: texts of plans and the like are mostly numbers, and
 * a fuzzer that changes bytes seldom finds its way past the parser.  The new size; 0: there is no number. */
static inline size_t fuzz_number(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static const char *const number[] = { "0",     "1",     "2",   "3",          "4",          "5",
                                          "7",     "8",     "16",  "31",         "32",         "33",
                                          "64",    "96",    "128", "256",        "512",        "1024",
                                          "1025",  "65536", "-1",  "2147483647", "4294967296", "9223372036854775807",
                                          "1e300", "0.5",   "nan", "true",       "n" };
    const char *with = number[seed / 7 % (sizeof number / sizeof *number)];
    const size_t length = strlen(with), from = size ? seed % size : 0;
    for (size_t k = 0; k < size; k++) {
        const size_t begin = (from + k) % size;
        size_t end = begin;
        while (end < size && data[end] >= '0' && data[end] <= '9')
            end++;
        if (end == begin || (begin > 0 && data[begin - 1] >= '0' && data[begin - 1] <= '9'))
            continue;
        if (size - (end - begin) + length > most)
            return 0;
        memmove(data + begin + length, data + end, size - end);
        memcpy(data + begin, with, length);
        return size - (end - begin) + length;
    }
    return 0;
}

/* For LLVMFuzzerCustomMutator(): mostly that. */
static inline size_t fuzz_mutate(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    const size_t changed = seed % 4 ? fuzz_number(data, size, most, seed / 4) : 0;
    return changed ? changed : LLVMFuzzerMutate(data, size, most);
}

#endif
