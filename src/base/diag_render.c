/* SPDX-License-Identifier: Apache-2.0 */
/* diag_render.c - messages as text for people and as JSON for tools.
 *
 *     dot.yaml:4:6: error: expected an operand [PTXG-2104]
 *        4 | map: x * * y
 *          |          ^
 *       hint: …
 *
 * The source line is laid out in terminal cells: tabs go to the next multiple of eight, wide characters take two, what
 * is no printable UTF-8 shows as U+FFFD (escape sequences of a hostile file must not reach the terminal).  Of a very
 * long line only a window around the caret is shown.
 */
#include "diag.h"
#include "utf8.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { TAB_CELLS = 8, WINDOW_CELLS = 140, WINDOW_BEFORE = 50 };

/* ---- places --------------------------------------------------------------------------------------- */

/* One step over a character or a byte that is none. */
static size_t character_bytes(const char *text, size_t length)
{
    uint32_t code;
    const int n = utf8_decode(text, length, &code);
    return n ? (size_t)n : 1;
}

static size_t line_begin(const struct diag_source *s, size_t at)
{
    while (at > 0 && s->text[at - 1] != '\n')
        at--;
    return at;
}

void diag_position(const struct diag_source *source, uint32_t at, int *line, int *column)
{
    *line = *column = 1;
    if (source->text == NULL)
        return;
    const size_t end = at < source->length ? at : source->length, begin = line_begin(source, end);
    for (size_t i = 0; i < begin; i++)
        *line += source->text[i] == '\n';
    for (size_t i = begin; i < end; i += character_bytes(source->text + i, source->length - i))
        ++*column;
}

void diags_position(const struct diags *d, uint32_t at, int *line, int *column)
{
    diag_position(&(struct diag_source){ d->file, d->source, d->length }, at, line, column);
}

static bool has_place(const struct diag_source *s, struct span at) { return at.begin != SPAN_NONE && s->text != NULL; }

/* ---- text ----------------------------------------------------------------------------------------- */

struct style {
    const char *severity[3], *place, *caret, *off;
};
static const struct style plain = { { "", "", "" }, "", "", "" };
static const struct style ansi = { { "\033[36m", "\033[1;35m", "\033[1;31m" }, "\033[1m", "\033[1;32m", "\033[0m" };
static const char *const severity_name[] = { "note", "warning", "error" };

/* One character of a source line: its bytes and the cells it takes when it begins in cell `cell`. */
struct glyph {
    size_t bytes;
    int cells;
    const char *shown; /* NULL: the bytes themselves */
};

static struct glyph glyph_at(const char *text, size_t length, int cell)
{
    uint32_t code;
    const int n = utf8_decode(text, length, &code);
    if (n > 0 && code == '\t')
        return (struct glyph){ 1, TAB_CELLS - cell % TAB_CELLS, "" };
    const bool control = n > 0 && (code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
                                   (code >= 0x2066 && code <= 0x2069));
    if (n == 0 || control)
        return (struct glyph){ n ? (size_t)n : 1, 1, UTF8_REPLACEMENT };
    return (struct glyph){ (size_t)n, utf8_width(code), NULL };
}

/* Cells of text[0..length). */
static int cells_of(const char *text, size_t length)
{
    int cells = 0;
    for (size_t i = 0; i < length;) {
        const struct glyph g = glyph_at(text + i, length - i, cells);
        cells += g.cells;
        i += g.bytes;
    }
    return cells;
}

static void spaces(struct str *out, int n)
{
    for (int i = 0; i < n; i++)
        str_addc(out, ' ');
}

/* The characters of a line whose cells lie in [from, to). */
static void add_cells(struct str *out, const char *text, size_t length, int from, int to)
{
    int cell = 0;
    for (size_t i = 0; i < length && cell < to;) {
        const struct glyph g = glyph_at(text + i, length - i, cell);
        if (cell >= from && cell + g.cells <= to) {
            if (g.shown == NULL)
                str_addn(out, text + i, g.bytes);
            else if (*g.shown != '\0')
                str_add(out, g.shown);
            else
                spaces(out, g.cells);
        } else if (cell + g.cells > from) {
            spaces(out, (cell + g.cells < to ? cell + g.cells : to) - (cell > from ? cell : from));
        }
        cell += g.cells;
        i += g.bytes;
    }
}

/* A message may quote the source, so it is shown with the same care. */
static void add_printable(struct str *out, const char *text) { add_cells(out, text, strlen(text), 0, INT_MAX); }

/* The source line of a span and the carets below it; a span over several lines is marked to the end of its first. */
static void add_excerpt(struct str *out, const struct diag_source *s, struct span at, int line,
                        const struct style *style)
{
    const size_t from = at.begin < s->length ? at.begin : s->length, begin = line_begin(s, from);
    const char *newline = memchr(s->text + from, '\n', s->length - from);
    size_t end = newline != NULL ? (size_t)(newline - s->text) : s->length;
    if (end > begin && end > from && s->text[end - 1] == '\r')
        end--;
    const size_t to = at.end < end ? at.end : end;
    const char *text = s->text + begin;
    const int caret = cells_of(text, from - begin), total = cells_of(text, end - begin);
    const int marked = to > from ? cells_of(text, to - begin) : caret;
    const int window = total > WINDOW_CELLS && caret > WINDOW_BEFORE ? caret - WINDOW_BEFORE : 0;
    const int stop = total - window > WINDOW_CELLS ? window + WINDOW_CELLS : total;

    str_printf(out, "%5d | %s", line, window > 0 ? "..." : "");
    add_cells(out, text, end - begin, window, stop);
    str_printf(out, "%s\n      | ", stop < total ? "..." : "");
    spaces(out, caret - window + (window > 0 ? 3 : 0));
    str_printf(out, "%s^", style->caret);
    for (int cell = caret + 1; cell < marked && cell < stop; cell++)
        str_addc(out, '~');
    str_printf(out, "%s\n", style->off);
}

static void add_message(struct str *out, const struct diag_source *s, struct span at, enum severity severity, int code,
                        const char *text, const struct style *style)
{
    int line = 0, column = 0;
    str_printf(out, "%s%s:", style->place, s->file != NULL ? s->file : "ptxgen"); /* NULL: about no file at all */
    if (has_place(s, at)) {
        diag_position(s, at.begin, &line, &column);
        str_printf(out, "%d:%d:", line, column);
    }
    str_printf(out, "%s %s%s:%s ", style->off, style->severity[severity], severity_name[severity], style->off);
    add_printable(out, text);
    if (code != 0)
        str_printf(out, " [PTXG-%04d]", code);
    str_addc(out, '\n');
    if (line > 0)
        add_excerpt(out, s, at, line, style);
}

void diags_render_text(const struct diags *d, struct str *out, bool colour)
{
    const struct style *style = colour ? &ansi : &plain;
    for (const struct diag *m = d->first; m != NULL; m = m->next) {
        add_message(out, &m->source, m->at, m->severity, m->code, m->text, style);
        if (m->hint != NULL) {
            str_printf(out, "      %shint:%s ", style->severity[SEV_NOTE], style->off);
            add_printable(out, m->hint);
            str_addc(out, '\n');
        }
        for (const struct diag_note *n = m->notes; n != NULL; n = n->next)
            add_message(out, &m->source, n->at, SEV_NOTE, 0, n->text, style);
    }
    if (d->errors > d->limit)
        str_printf(out, "%d more errors are not shown\n", d->errors - d->limit);
    if (d->warnings > d->limit)
        str_printf(out, "%d more warnings are not shown\n", d->warnings - d->limit);
}

/* ---- JSON ----------------------------------------------------------------------------------------- */

static void place_json(struct json *j, const struct diag_source *s, struct span at)
{
    static const char *const key[] = { "line", "column", "end_line", "end_column", "offset", "length" };
    const bool place = has_place(s, at);
    int value[6] = { 0 };
    if (place) {
        diag_position(s, at.begin, &value[0], &value[1]);
        diag_position(s, at.end, &value[2], &value[3]);
        value[4] = (int)at.begin;
        value[5] = (int)(at.end - at.begin);
    }
    json_key(j, "file");
    json_string(j, s->file);
    for (int i = 0; i < 6; i++) {
        json_key(j, key[i]);
        if (place)
            json_int(j, value[i]);
        else
            json_null(j);
    }
}

static void message_json(struct json *j, const struct diag *m)
{
    char code[16];
    snprintf(code, sizeof code, "PTXG-%04d", (int)m->code);
    json_object(j);
    json_put_text(j, "severity", severity_name[m->severity]);
    json_put_text(j, "code", code);
    place_json(j, &m->source, m->at);
    json_put_text(j, "message", m->text);
    json_put_text(j, "hint", m->hint);
    json_key(j, "notes");
    json_array(j);
    for (const struct diag_note *n = m->notes; n != NULL; n = n->next) {
        json_object(j);
        place_json(j, &m->source, n->at);
        json_put_text(j, "message", n->text);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

void diags_render_json(const struct diags *d, struct str *out)
{
    struct json j;
    json_init(&j, out, true);
    json_object(&j);
    json_key(&j, "diagnostics");
    json_array(&j);
    for (const struct diag *m = d->first; m != NULL; m = m->next)
        message_json(&j, m);
    json_end(&j);
    json_key(&j, "errors");
    json_int(&j, d->errors);
    json_key(&j, "warnings");
    json_int(&j, d->warnings);
    json_end(&j);
    str_addc(out, '\n');
}
