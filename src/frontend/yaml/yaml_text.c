/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_text.c - what is to be known about the text itself: encoding, tabs, comments, and which source byte a decoded
 * byte of a scalar comes from.
 */
#include "base/utf8.h"
#include "yaml_impl.h"

#include <string.h>

static bool line_break(char c) { return c == '\n' || c == '\r'; }
static bool blank(char c) { return c == ' ' || c == '\t'; }

uint32_t yaml_line_end(const struct yaml_reader *r, uint32_t at)
{
    while (at < r->length && !line_break(r->source[at]))
        at++;
    return at;
}

uint32_t yaml_line_begin(const struct yaml_reader *r, uint32_t at)
{
    while (at > 0 && !line_break(r->source[at - 1]))
        at--;
    return at;
}

/* ---- encoding ------------------------------------------------------------------------------------- */

/* The characters that YAML calls printable, and line ends. */
static bool allowed(uint32_t c)
{
    if (c < 0x20)
        return c == '\t' || c == '\n' || c == '\r';
    return c < 0x7f || c == 0x85 || (c >= 0xa0 && c != 0xfeff && c != 0xfffe && c != 0xffff);
}

bool yaml_check_text(struct yaml_reader *r, uint32_t *begin)
{
    *begin = r->length >= 3 && memcmp(r->source, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    for (uint32_t i = *begin; i < r->length;) {
        uint32_t c = 0;
        const int n = utf8_decode(r->source + i, r->length - i, &c);
        const struct span at = { i, i + (n ? (uint32_t)n : 1) };
        if (n == 0) {
            yaml_found(r, D_YAML_ENCODING, at, "byte 0x%02x is not valid UTF-8", (unsigned char)r->source[i])->hint =
                "save the file as UTF-8";
            return false;
        }
        if (!allowed(c)) {
            yaml_found(r, D_YAML_CONTROL, at, c == 0 ? "NUL byte" : "control character U+%04X", (unsigned)c)->hint =
                "delete it; editors may not show it";
            return false;
        }
        i = at.end;
    }
    return true;
}

const uint32_t *yaml_character_offsets(struct yaml_reader *r, uint32_t begin)
{
    bool ascii = true;
    for (uint32_t i = begin; i < r->length && ascii; i++)
        ascii = (unsigned char)r->source[i] < 0x80;
    if (ascii)
        return NULL;
    uint32_t *offset = arena_new(r->d->arena, uint32_t, r->length - begin + 1), count = 0;
    for (uint32_t i = begin; i < r->length; i++)
        if (((unsigned char)r->source[i] & 0xc0) != 0x80)
            offset[count++] = i;
    for (; count <= r->length - begin; count++)
        offset[count] = r->length;
    return offset;
}

/* ---- tabs and comments ---------------------------------------------------------------------------- */

void yaml_check_tabs(struct yaml_reader *r, const unsigned char *opaque)
{
    for (uint32_t i = 0; i < r->length; i = yaml_line_end(r, i) + 1) {
        const uint32_t end = yaml_line_end(r, i);
        bool indentation = true;
        for (uint32_t at = i; at < end; at++) {
            const char c = r->source[at];
            if (opaque != NULL && opaque[at])
                indentation = false;
            else if (c == '#' && (at == i || blank(r->source[at - 1])))
                break;
            else if (c == '\t' && (indentation || opaque != NULL)) {
                yaml_found(r, D_YAML_TAB, (struct span){ at, at + 1 },
                           indentation ? "tab in the indentation" : "tab between values")
                    ->hint = "use blanks";
                break;
            } else if (!blank(c))
                indentation = false;
        }
    }
}

/* Ends in the middle of an expression: at an operator, a comma, or with a parenthesis open. */
static bool unfinished(const char *text, uint32_t length)
{
    int open = 0;
    for (uint32_t i = 0; i < length; i++)
        open += (strchr("([{", text[i]) != NULL) - (strchr(")]}", text[i]) != NULL);
    return open > 0 || (length > 0 && strchr("+-*/%&|^<>=!~,", text[length - 1]) != NULL);
}

/* The comment on the line of the end of a plain scalar; empty when there is none. */
static struct span comment_behind(const char *source, uint32_t length, uint32_t at)
{
    uint32_t begin = at;
    while (begin < length && blank(source[begin]))
        begin++;
    uint32_t end = begin;
    if (begin > at && begin < length && source[begin] == '#')
        while (end < length && !line_break(source[end]))
            end++;
    return (struct span){ begin, end };
}

void yaml_check_comment_behind(struct yaml_reader *r, const struct ynode *scalar)
{
    if (!scalar->plain || !unfinished(scalar->text, scalar->length))
        return;
    const struct span comment = comment_behind(r->source, r->length, scalar->at.end);
    if (comment.end == comment.begin)
        return;
    struct finding *f =
        yaml_found(r, D_YAML_COMMENT, comment, "YAML takes this as a comment, and '%s' is unfinished", scalar->text);
    f->warning = true;
}

void yaml_warn_comment(struct diags *d, const struct ynode *scalar)
{
    if (scalar->kind != Y_SCALAR || !scalar->plain || d->source == NULL || unfinished(scalar->text, scalar->length))
        return;
    const struct span c = comment_behind(d->source, (uint32_t)d->length, scalar->at.end);
    if (c.end == c.begin || c.begin != scalar->at.end + 1)
        return;
    /* One operand, or an operand and an operator: more than one word in a row is prose. */
    uint32_t i = c.begin + 1;
    while (i < c.end && blank(d->source[i]))
        i++;
    const uint32_t word = i;
    while (i < c.end && (d->source[i] == '_' || d->source[i] == '.' || (d->source[i] >= '0' && d->source[i] <= '9') ||
                         (d->source[i] >= 'a' && d->source[i] <= 'z') || (d->source[i] >= 'A' && d->source[i] <= 'Z')))
        i++;
    const bool operand = i > word;
    while (i < c.end && blank(d->source[i]))
        i++;
    if (operand && (i == c.end || strchr("+-*/%&|^<>=()[]", d->source[i]) != NULL))
        diag_hint(d, diag_warning(d, D_YAML_COMMENT, c, "YAML takes this as a comment, not as part of the expression"),
                  "if it is a comment, put two blanks before the '#'");
}

/* ---- offsets of decoded bytes --------------------------------------------------------------------- */

/* Walks source and decoded text side by side. */
struct walk {
    const struct yaml_reader *r;
    uint32_t at, end; /* in the source */
    const char *decoded;
    uint32_t done, length; /* decoded bytes */
    uint32_t *where;
};

static void take(struct walk *w, uint32_t decoded_bytes, uint32_t from)
{
    while (decoded_bytes-- > 0 && w->done < w->length)
        w->where[w->done++] = from;
}

/* End of the run of blanks and line breaks at `at`, and how many breaks it has. */
static uint32_t whitespace(const struct walk *w, uint32_t at, int *breaks)
{
    const char *s = w->r->source;
    *breaks = 0;
    while (at < w->end && (blank(s[at]) || line_break(s[at]))) {
        *breaks += line_break(s[at]) && !(s[at] == '\n' && at > 0 && s[at - 1] == '\r');
        at++;
    }
    return at;
}

/* Source bytes of the escape at `at`. */
static uint32_t escape_bytes(const char *s, uint32_t at)
{
    switch (s[at + 1]) {
    case 'x': return 4;
    case 'u': return 6;
    case 'U': return 10;
    default: return 2;
    }
}

static uint32_t character_bytes(const struct walk *w)
{
    uint32_t code;
    const int n = utf8_decode(w->decoded + w->done, w->length - w->done, &code);
    return n > 0 ? (uint32_t)n : 1;
}

/* Plain and quoted scalars: escapes, doubled quotes, and line breaks that are folded. */
static void walk_flow(struct walk *w, char style)
{
    const char *s = w->r->source;
    while (w->done < w->length && w->at < w->end) {
        int breaks;
        const uint32_t behind = whitespace(w, w->at, &breaks);
        if (breaks > 0) {
            take(w, breaks == 1 ? 1 : (uint32_t)breaks - 1, w->at);
            w->at = behind;
        } else if (style == '"' && s[w->at] == '\\' && w->at + 1 < w->end && line_break(s[w->at + 1])) {
            const uint32_t next = whitespace(w, w->at + 1, &breaks);
            take(w, (uint32_t)breaks - 1, w->at);
            w->at = next;
        } else if (style == '"' && s[w->at] == '\\') {
            take(w, character_bytes(w), w->at);
            w->at += escape_bytes(s, w->at);
        } else {
            take(w, 1, w->at);
            w->at += style == '\'' && s[w->at] == '\'' ? 2 : 1;
        }
    }
}

static uint32_t indentation(const struct walk *w, uint32_t at)
{
    uint32_t n = 0;
    while (at + n < w->end && w->r->source[at + n] == ' ')
        n++;
    return n;
}

/* Blanks that every line of the block has before its text: as deep as its first line that is not blank. */
static uint32_t block_indentation(const struct walk *w)
{
    for (uint32_t at = w->at; at < w->end;) {
        const uint32_t n = indentation(w, at);
        if (at + n < w->end && !line_break(w->r->source[at + n]))
            return n;
        at = yaml_line_end(w->r, at) + 1;
    }
    return 0;
}

/* The header of a block scalar may give the indentation, relative to the line of the key. */
static uint32_t declared_indentation(const struct walk *w, uint32_t header)
{
    const char *s = w->r->source;
    for (uint32_t i = header + 1; i < w->end && (s[i] == '+' || s[i] == '-' || (s[i] >= '1' && s[i] <= '9')); i++)
        if (s[i] != '+' && s[i] != '-')
            return indentation(w, yaml_line_begin(w->r, header)) + (uint32_t)(s[i] - '0');
    return 0;
}

/* Literal and folded blocks, line by line; a break is a newline or, folded, a blank. */
static void walk_block(struct walk *w)
{
    const char *s = w->r->source;
    const uint32_t header = w->at;
    w->at = yaml_line_end(w->r, w->at);
    w->at += w->at + 1 < w->end && s[w->at] == '\r' && s[w->at + 1] == '\n' ? 2 : 1;
    const uint32_t declared = declared_indentation(w, header), indent = declared ? declared : block_indentation(w);
    while (w->done < w->length && w->at < w->end) {
        const uint32_t have = indentation(w, w->at), end = yaml_line_end(w->r, w->at);
        w->at += have < indent ? have : indent;
        while (w->at < end && w->done < w->length) {
            take(w, 1, w->at);
            w->at++;
        }
        if (w->done == w->length)
            return;
        w->at = end + (end + 1 < w->end && s[end] == '\r' && s[end + 1] == '\n' ? 2 : 1);
        /* A folded break is a blank; before blank lines and around deeper lines it is as many newlines as are left. */
        const bool fold = w->decoded[w->done] == ' ' && !line_break(s[end - 1]);
        if (w->decoded[w->done] == '\n' || fold)
            take(w, 1, end);
    }
}

const uint32_t *yaml_offsets(struct yaml_reader *r, struct span at, char style, const char *decoded, uint32_t length)
{
    const bool quoted = style == '"' || style == '\'';
    struct walk w = { .r = r, .at = at.begin + quoted, .end = at.end - quoted, .decoded = decoded, .length = length };
    w.where = arena_new(r->d->arena, uint32_t, length + 1);
    if (style == '|' || style == '>')
        walk_block(&w);
    else
        walk_flow(&w, style);
    const uint32_t last = w.at < w.end ? w.at : w.end;
    take(&w, w.length - w.done, last);
    w.where[length] = last;
    return w.where;
}
