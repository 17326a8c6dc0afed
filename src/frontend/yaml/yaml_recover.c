/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_recover.c - what a failure of YAML's parser means to somebody who writes a spec.
 *
 * libyaml stops at the first thing that is no YAML.  Most such things are expressions that YAML reads in its own way,
 * so the explanation looks at the value around the failure.  The value is then treated as if it had been quoted (struct
 * repair) and the text is read again; so one run reports every such mistake, and the tree that results has what the
 * user meant.
 */
#include "yaml_impl.h"

#include <string.h>

static bool blank(char c) { return c == ' ' || c == '\t'; }
static bool at_line_end(const struct yaml_reader *r, uint32_t at)
{
    return at >= r->length || r->source[at] == '\n' || r->source[at] == '\r';
}
static bool word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- repairs -------------------------------------------------------------------------------------- */

/* Where a value that begins at `begin` was meant to end: in flow style before the comma or bracket that closes it, else
 * at the end of the line or its comment. */
static uint32_t meant_end(const struct yaml_reader *r, uint32_t begin)
{
    int depth = 0;
    uint32_t at = begin;
    for (; !at_line_end(r, at); at++) {
        const char c = r->source[at];
        if (c == '#' && at > begin && blank(r->source[at - 1]))
            break;
        if (strchr("([{", c) != NULL)
            depth++;
        else if (strchr(")]}", c) != NULL && r->flow > 0 && depth == 0)
            break;
        else if (strchr(")]}", c) != NULL)
            depth--;
        else if (c == ',' && r->flow > 0 && depth == 0)
            break;
    }
    while (at > begin && blank(r->source[at - 1]))
        at--;
    return at;
}

/* From now on the bytes read as one word (or, dropped, as nothing). False when that would change nothing. */
static bool repair(struct yaml_reader *r, struct span at, bool drop)
{
    bool changes = false;
    for (uint32_t i = at.begin; i < at.end; i++) {
        changes = changes || r->text[i] != (drop ? ' ' : 'x');
        r->text[i] = drop ? ' ' : 'x';
    }
    if (!changes || ++r->nrepairs > YAML_REPAIR_MAX || (uint64_t)r->nrepairs * r->length > YAML_REREAD_MAX)
        return false;
    if (drop) {
        r->incomplete = true;
        return true;
    }
    struct repair *p = arena_new(r->d->arena, struct repair, 1);
    *p = (struct repair){ at, r->repairs };
    r->repairs = p;
    return true;
}

static bool quote(struct yaml_reader *r, struct span at) { return repair(r, at, false); }

/* A message about text that a repair takes care of. */
static struct finding *kept(struct finding *f)
{
    f->kept = true;
    return f;
}

static const char *quoted_hint(struct yaml_reader *r, struct span at)
{
    const int n = (int)(at.end - at.begin);
    if (n > 60 || memchr(r->source + at.begin, '"', (size_t)n) != NULL)
        return "quote the value";
    return arena_printf(r->d->arena, "quote the value: \"%.*s\"", n, r->source + at.begin);
}

/* ---- a value that begins with a character of YAML's own ------------------------------------------- */

struct sigil {
    char first;
    enum diag_code code;
    const char *message;
    const char *hint; /* NULL: quote it */
};

static const struct sigil sigils[] = {
    { '!', D_YAML_BANG, "YAML reads a value that begins with '!' as a tag",
      "write 'not' for the logical operator, or quote the value" },
    { '*', D_YAML_STAR, "YAML reads a value that begins with '*' as an alias", NULL },
    { '&', D_YAML_AMPERSAND, "YAML reads a value that begins with '&' as an anchor", NULL },
    { '[', D_YAML_BRACKET, "YAML reads a value that begins with '[' as a list, and nothing may follow it", NULL },
    { '{', D_YAML_BRACE, "YAML reads a value that begins with '{' as a mapping, and nothing may follow it", NULL },
    { '@', D_YAML_RESERVED, "a YAML value cannot begin with '@'", NULL },
    { '`', D_YAML_RESERVED, "a YAML value cannot begin with a back quote", NULL },
    { '%', D_YAML_PERCENT, "a YAML value cannot begin with '%'", NULL },
    { '-', D_YAML_DASH, "YAML reads a value that begins with '- ' as a list item",
      "write the dash at its operand, '-x', or quote the value" },
    { '|', D_YAML_BLOCK, "YAML reads a value that begins with '|' as a block of text", NULL },
    { '>', D_YAML_BLOCK, "YAML reads a value that begins with '>' as a block of text", NULL },
    { '"', D_YAML_BEHIND_QUOTE, "nothing may follow a quoted value",
      "put the whole value into the quotes, or remove them" },
    { '\'', D_YAML_BEHIND_QUOTE, "nothing may follow a quoted value",
      "put the whole value into the quotes, or remove them" },
};

static const struct sigil *sigil_of(char c)
{
    for (size_t i = 0; i < sizeof sigils / sizeof sigils[0]; i++)
        if (sigils[i].first == c)
            return &sigils[i];
    return NULL;
}

/* Does the text have the counterpart of an anchor or alias, "*name" for "&name"? Then it is meant as such. */
static bool has_counterpart(const struct yaml_reader *r, uint32_t at)
{
    const char other = r->source[at] == '&' ? '*' : '&';
    uint32_t length = 0;
    while (at + 1 + length < r->length && word(r->source[at + 1 + length]))
        length++;
    for (uint32_t i = 0; length > 0 && i + length < r->length; i++)
        if (r->source[i] == other && memcmp(r->source + i + 1, r->source + at + 1, length) == 0 &&
            (i + 1 + length == r->length || !word(r->source[i + 1 + length])))
            return true;
    return false;
}

static struct finding *explain_sigil(struct yaml_reader *r, struct span at)
{
    const char c = r->source[at.begin];
    if ((c == '&' || c == '*') && has_counterpart(r, at.begin)) {
        struct finding *f = yaml_found(r, D_YAML_ANCHOR, at, "specs have no YAML %s", c == '&' ? "anchors" : "aliases");
        f->hint = "repeat the value, or name an expression under 'let'";
        return f;
    }
    if (c == '!' && at.begin + 1 < r->length && r->source[at.begin + 1] == '!') {
        struct finding *f = yaml_found(r, D_YAML_TAG, at, "specs have no YAML tags");
        f->hint = "remove the tag; types of values follow from the spec";
        return f;
    }
    const struct sigil *row = sigil_of(c);
    if (row == NULL)
        return NULL;
    struct finding *f = yaml_found(r, row->code, at, "%s", row->message);
    f->hint = row->hint != NULL ? row->hint : quoted_hint(r, at);
    return f;
}

void yaml_explain_sigil(struct yaml_reader *r, struct span at) { explain_sigil(r, at); }

static bool repair_sigil(struct yaml_reader *r, uint32_t begin)
{
    const struct span at = { begin, meant_end(r, begin) };
    struct finding *f = at.begin < at.end ? explain_sigil(r, at) : NULL;
    return f != NULL && quote(r, kept(f)->at);
}

/* ---- flow style ----------------------------------------------------------------------------------- */

static bool repair_flow_value(struct yaml_reader *r, uint32_t begin)
{
    const struct span at = { begin, meant_end(r, begin) };
    if (at.begin == at.end)
        return false;
    struct finding *f =
        kept(yaml_found(r, D_YAML_FLOW_QUOTES, at, "inside of {} and [] a value with commas or brackets needs quotes"));
    f->hint = quoted_hint(r, at);
    return quote(r, at);
}

bool yaml_explain_cut(struct yaml_reader *r, struct span at)
{
    int open = 0;
    for (uint32_t i = at.begin; i < at.end; i++)
        open += (r->text[i] == '(') - (r->text[i] == ')');
    return open > 0 && repair_flow_value(r, at.begin);
}

/* ---- lines ---------------------------------------------------------------------------------------- */

/* "key:value" at the beginning of the line of `at`: the offset of the colon, or 0. */
static uint32_t colon_without_blank(const struct yaml_reader *r, uint32_t at)
{
    uint32_t i = yaml_line_begin(r, at);
    while (!at_line_end(r, i) && (blank(r->source[i]) || (r->source[i] == '-' && blank(r->source[i + 1]))))
        i++;
    const uint32_t key = i;
    while (!at_line_end(r, i) && word(r->source[i]))
        i++;
    const bool found =
        i > key && !at_line_end(r, i) && r->source[i] == ':' && !at_line_end(r, i + 1) && !blank(r->source[i + 1]);
    return found ? i : 0;
}

static struct span line_of(const struct yaml_reader *r, uint32_t at)
{
    struct span s = { yaml_line_begin(r, at), yaml_line_end(r, at) };
    while (s.begin < s.end && blank(r->source[s.begin]))
        s.begin++;
    while (s.end > s.begin && blank(r->source[s.end - 1]))
        s.end--;
    return s;
}

static bool drop_line(struct yaml_reader *r, struct finding *f, uint32_t at)
{
    return kept(f) && repair(r, line_of(r, at), true);
}

static bool missing_blank(struct yaml_reader *r, uint32_t colon)
{
    struct finding *f =
        yaml_found(r, D_YAML_SPACE, (struct span){ colon, colon + 1 }, "':' needs a blank after it to end a key");
    return drop_line(r, f, colon);
}

static bool line_without_colon(struct yaml_reader *r, uint32_t at)
{
    const uint32_t colon = colon_without_blank(r, at);
    if (colon > 0)
        return missing_blank(r, colon);
    struct finding *f = yaml_found(r, D_YAML_NO_COLON, line_of(r, at), "expected 'key: value'; this line has no ': '");
    f->hint = "a value goes on in lines that are indented further than its key";
    return drop_line(r, f, at);
}

/* ':' where no key can be. */
static bool unexpected_colon(struct yaml_reader *r, uint32_t at)
{
    const bool same_line = yaml_line_begin(r, r->last.begin) == yaml_line_begin(r, at);
    const uint32_t colon = colon_without_blank(r, r->last.begin);
    if (!same_line && colon > 0)
        return missing_blank(r, colon);
    if (!same_line || !r->last_is_value) {
        struct finding *f =
            yaml_found(r, D_YAML_INDENT, line_of(r, at), "this line is indented below a key that has a value already");
        f->note_at = r->last;
        f->note = "this value begins here, and goes on in deeper lines";
        f->hint = "indent it like the key above, or move that value to a line of its own";
        return false;
    }
    const struct span value = { r->last.begin, meant_end(r, r->last.begin) };
    struct finding *f =
        kept(yaml_found(r, D_YAML_COLON, (struct span){ at, at + 1 }, "': ' cannot stand inside of a value"));
    f->hint = memchr(r->source + value.begin, '?', at - value.begin) != NULL
                  ? "write 'if C then A else B' or 'select(C, A, B)'"
                  : quoted_hint(r, value);
    return quote(r, value);
}

/* Something after a complete value, where the next key, a comma or a bracket was expected. */
static bool unexpected_rest(struct yaml_reader *r, const struct yaml_failure *f)
{
    const uint32_t line = yaml_line_begin(r, f->at);
    const bool behind = r->last.begin < r->last.end && yaml_line_begin(r, r->last.end - 1) == line;
    const bool one_line = behind && yaml_line_begin(r, r->last.begin) == line;
    if ((one_line || (behind && r->flow == 0)) && r->last_is_value && f->at < r->length) {
        if (r->source[f->at] == ':')
            return unexpected_colon(r, f->at);
        if (sigil_of(r->source[r->last.begin]) != NULL)
            return repair_sigil(r, r->last.begin);
        if (r->flow > 0)
            return repair_flow_value(r, r->last.begin);
    }
    if (r->flow > 0) {
        const bool mapping = r->source[f->context_at] == '{';
        struct finding *open = yaml_found(r, D_YAML_FLOW_OPEN, (struct span){ f->context_at, f->context_at + 1 },
                                          "this '%c' is not closed", mapping ? '{' : '[');
        if (f->at < r->length) {
            open->note_at = (struct span){ f->at, f->at + 1 };
            open->note = mapping ? "expected ',' or '}' here" : "expected ',' or ']' here";
        }
        return false;
    }
    const bool closing = f->at < r->length && strchr("]}", r->source[f->at]) != NULL;
    if (closing) {
        struct finding *stray =
            yaml_found(r, D_YAML_SYNTAX, (struct span){ f->at, f->at + 1 }, "'%c' closes nothing", r->source[f->at]);
        return drop_line(r, stray, f->at);
    }
    struct finding *indent =
        yaml_found(r, D_YAML_INDENT, line_of(r, f->at), "the indentation of this line matches no mapping above");
    indent->note_at = (struct span){ f->context_at, f->context_at + 1 };
    indent->note = "the mapping begins in this column";
    return false;
}

/* ---- all failures --------------------------------------------------------------------------------- */

static bool says(const char *text, const char *part) { return strstr(text, part) != NULL; }

static bool generic(struct yaml_reader *r, const struct yaml_failure *f)
{
    const struct span at = { f->at, f->at < r->length ? f->at + 1 : f->at };
    struct finding *x =
        yaml_found(r, D_YAML_SYNTAX, at, "malformed YAML: %s%s%s", f->context, *f->context ? ", " : "", f->problem);
    x->hint = "a value that YAML misreads can be quoted";
    return false;
}

/* A token cannot begin here. */
static bool bad_token(struct yaml_reader *r, const struct yaml_failure *f, uint32_t at)
{
    if (at < r->length && r->source[at] == '\t') {
        const struct finding *before = r->findings;
        yaml_check_tabs(r, NULL);
        if (r->findings == before)
            yaml_found(r, D_YAML_TAB, (struct span){ at, at + 1 }, "tab between values")->hint = "use blanks";
        return false;
    }
    return at < r->length && sigil_of(r->source[at]) != NULL ? repair_sigil(r, at) : generic(r, f);
}

static bool explain_failure(struct yaml_reader *r, const struct yaml_failure *f)
{
    if (says(f->problem, "mapping values are not allowed"))
        return unexpected_colon(r, f->at);
    if (says(f->problem, "could not find expected ':'"))
        return line_without_colon(r, f->context_at);
    if (says(f->problem, "did not find expected key") || says(f->problem, "did not find expected '-'") ||
        says(f->problem, "did not find expected ','"))
        return unexpected_rest(r, f);
    if (says(f->problem, "expected <document start>")) {
        yaml_found(r, D_YAML_DOCUMENTS, line_of(r, f->at), "text after the end of the document");
        return false;
    }
    if (says(f->context, "quoted scalar")) {
        const bool open = says(f->problem, "unexpected");
        const uint32_t at = open ? f->context_at : f->at;
        yaml_found(r, open ? D_YAML_QUOTE_OPEN : D_YAML_ESCAPE, (struct span){ at, at + 1 },
                   open ? "this quote is not closed" : "unknown escape");
        return false;
    }
    if (says(f->context, "directive") || says(f->problem, "incompatible YAML document")) {
        yaml_found(r, D_YAML_DIRECTIVE, line_of(r, f->context_at), "YAML directives are not used");
        return false;
    }
    if (says(f->context, "block scalar") || says(f->context, "tag") || says(f->context, "alias") ||
        says(f->context, "anchor"))
        return bad_token(r, f, f->context_at);
    return bad_token(r, f, f->at);
}

/* A repair may find nothing to mend and say nothing; a refusal without a message helps nobody. */
bool yaml_explain_failure(struct yaml_reader *r, const struct yaml_failure *f)
{
    const struct finding *before = r->findings;
    const bool again = explain_failure(r, f);
    return again || r->findings != before ? again : generic(r, f);
}
