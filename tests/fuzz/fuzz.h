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

#endif
