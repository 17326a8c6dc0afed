/* SPDX-License-Identifier: Apache-2.0 */
/* diag.h - located messages, collected as data; the command line renders them.
 *
 * Every message has a code, PTXG-nnnn, that is a row of diag.def with a longer explanation
 * (`ptxgen explain PTXG-nnnn`).  Spans are byte ranges of the source text, so that carets can point anywhere into
 * an expression; line and column are computed when rendering.
 */
#ifndef PTXGEN_DIAG_H
#define PTXGEN_DIAG_H

#include "arena.h"
#include "str.h"

struct span {
    uint32_t begin, end; /* bytes of the source text; begin == end == SPAN_NONE: no place */
};
#define SPAN_NONE UINT32_MAX
static inline struct span span_none(void) { return (struct span){ SPAN_NONE, SPAN_NONE }; }

enum severity { SEV_NOTE, SEV_WARNING, SEV_ERROR };

/* Codes: the rows of diag.def as D_<id>, numbered by the row. */
enum diag_code {
#define DIAG(id, number, title, explanation) D_##id = number,
#include "diag.def"
#undef DIAG
};

struct diag_note {
    struct span at;
    const char *text;
    struct diag_note *next;
};

/* A text that spans refer to, and the name that is shown for it. */
struct diag_source {
    const char *file;
    const char *text; /* may be NULL */
    size_t length;
};

struct diag {
    enum severity severity;
    enum diag_code code;
    struct span at;
    struct diag_source source; /* what diags_source() had set when it was reported */
    const char *text;          /* one line, no full stop */
    const char *hint;          /* "did you mean 'add'?" or NULL */
    struct diag_note *notes;
    struct diag *next;
};

struct diags {
    struct arena *arena;
    const char *file;   /* name shown before line:column, "<string>" for text in memory */
    const char *source; /* the text that spans refer to; may be NULL */
    size_t length;
    struct diag *first, *last;
    int errors, warnings;
    int limit; /* errors after this many are counted, not kept (default 100) */
};

void diags_init(struct diags *d, struct arena *a);
void diags_clear(struct diags *d); /* forgets the messages; the source stays */
/* From now on spans are of this text, which is borrowed.  What it was before, for those who read a second text. */
struct diag_source diags_source(struct diags *d, const char *file, const char *text, size_t length);

/* Report.  The returned message may be given a hint and notes; never NULL. */
struct diag *diag_error(struct diags *d, enum diag_code code, struct span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
struct diag *diag_warning(struct diags *d, enum diag_code code, struct span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void diag_hint(struct diags *d, struct diag *m, const char *format, ...) __attribute__((format(printf, 3, 4)));
void diag_note(struct diags *d, struct diag *m, struct span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds "did you mean 'x'?" when one of the names is near. */
void diag_suggest(struct diags *d, struct diag *m, const char *name, const char *const *names, int count);

/* 1-based line, and column in characters (UTF-8), of a byte of the source. */
void diags_position(const struct diags *d, uint32_t at, int *line, int *column);
void diag_position(const struct diag_source *source, uint32_t at, int *line, int *column);

/* "file:line:col: error: text [PTXG-nnnn]", the source line, a caret line, hint and notes.  colour: ANSI escapes. */
void diags_render_text(const struct diags *d, struct str *out, bool colour);
/* {"diagnostics":[{"severity","code","file","line","column","end_line","end_column","offset","length","message","hint","notes":[…]}],
 *  "errors","warnings"}; line, column, offset and length are null where there is no place. */
void diags_render_json(const struct diags *d, struct str *out);

/* Row of diag.def, for `explain PTXG-nnnn`; false when there is no such number. */
bool diag_explain(int number, const char **title, const char **explanation);

#endif
