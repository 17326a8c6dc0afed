/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_text.c - the modules of a program as one PTX file.
 *
 *   header   .version (the newest that a module asks for), .target and .address_size
 *   body     of every module: its items (declarations, variables, functions) in order
 *
 * Modules are compiled apart from each other, so they may bring the same helper twice, or different things by one name.
 * An item that an earlier module has brought, word for word, is left out; an item whose name is taken by another one is
 * renamed, with all its uses in that module.  What uses a renamed item is not the same as its like in another module,
 * so it is renamed too.  Entry points have unique names already.
 */
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* A statement at module level: text[begin..end), and the name that it gives to something (length 0: none). */
struct item {
    const char *begin, *end;
    const char *name;
    size_t name_length;
    int module;
    bool renamed; /* its name is taken by something else */
    bool dropped; /* an earlier module has brought the same */
};

struct items {
    struct item *item;
    int count, capacity;
    bool failed;
};

static bool name_begin(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' || c == '.';
}
static bool name_char(char c) { return (name_begin(c) && c != '.') || (c >= '0' && c <= '9'); }
static bool space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* ---- tokens --------------------------------------------------------------------------------------- */

/* After the token at s: a comment, a string, a run of blanks, a name (directives with their dot), a number, or one
 * character. */
static const char *token_end(const char *s)
{
    if (s[0] == '/' && s[1] == '/') {
        while (*s != '\0' && *s != '\n')
            s++;
        return s;
    }
    if (s[0] == '/' && s[1] == '*') {
        const char *end = strstr(s + 2, "*/");
        return end != NULL ? end + 2 : s + strlen(s);
    }
    if (*s == '"') {
        for (s++; *s != '\0' && *s != '"'; s++)
            s += s[0] == '\\' && s[1] != '\0';
        return *s != '\0' ? s + 1 : s;
    }
    if (space(*s)) {
        while (space(*s))
            s++;
        return s;
    }
    const bool word = name_begin(*s) || (*s >= '0' && *s <= '9');
    s++;
    while (word && name_char(*s))
        s++;
    return s;
}

static bool blank_token(const char *s) { return space(*s) || (s[0] == '/' && (s[1] == '/' || s[1] == '*')); }
static bool is(const char *s, const char *end, const char *word)
{
    return (size_t)(end - s) == strlen(word) && memcmp(s, word, (size_t)(end - s)) == 0;
}

/* Directives that end with their line. */
static bool line_directive(const char *s, const char *end)
{
    return is(s, end, ".version") || is(s, end, ".target") || is(s, end, ".address_size") || is(s, end, ".file");
}

/* The end of the statement at s, and the name it defines: the first name after .func's result, or the last before '(',
 * '[',
 * '=' or the end of a variable. Parentheses at the front are the result of a function. */
static const char *statement_end(const char *s, struct item *item)
{
    const char *first_end = token_end(s);
    int depth = 0, parens = 0;
    bool body = false, done = false;
    item->name_length = 0;
    if (line_directive(s, first_end))
        return s + strcspn(s, "\n");
    for (const char *end; *s != '\0'; s = end) {
        end = token_end(s);
        if (*s == '{') {
            depth++;
            body = body || item->name_length > 0;
        } else if (*s == '}') {
            if (--depth == 0)
                return end + (*end == ';');
        } else if (*s == ';' && depth == 0) {
            return end;
        } else if (*s == '(' || *s == ')') {
            parens += *s == '(' ? 1 : -1;
            done = done || item->name_length > 0;
        } else if (*s == '[' || *s == '=') {
            done = done || parens == 0;
        } else if (!done && depth == 0 && parens == 0 && name_begin(*s) && *s != '.') {
            item->name = s;
            item->name_length = (size_t)(end - s);
        }
    }
    return s;
}

/* ---- items ---------------------------------------------------------------------------------------- */

static void add_item(struct items *all, struct item item)
{
    if (all->count == all->capacity) {
        const int capacity = all->capacity ? 2 * all->capacity : 64;
        struct item *grown = realloc(all->item, sizeof *grown * (size_t)capacity);
        if (grown == NULL) {
            all->failed = true;
            return;
        }
        all->item = grown;
        all->capacity = capacity;
    }
    all->item[all->count++] = item;
}

static bool same(const char *a, size_t na, const char *b, size_t nb) { return na == nb && memcmp(a, b, na) == 0; }
static size_t length_of(const struct item *i) { return (size_t)(i->end - i->begin); }

/* What earlier modules have brought decides. The directives of the header are left out. */
static void take_item(struct items *all, struct item item)
{
    const char *end = token_end(item.begin);
    if (is(item.begin, end, ".version") || is(item.begin, end, ".target") || is(item.begin, end, ".address_size"))
        return;
    for (int i = 0; i < all->count && all->item[i].module != item.module && !item.dropped; i++) {
        const struct item *other = &all->item[i];
        item.dropped = !other->renamed && same(other->begin, length_of(other), item.begin, length_of(&item));
        if (item.name_length > 0 && same(other->name, other->name_length, item.name, item.name_length))
            item.renamed = !item.dropped;
    }
    add_item(all, item);
}

static void read_module(struct items *all, const char *text, int module)
{
    for (const char *s = text; *s != '\0';) {
        if (blank_token(s)) {
            s = token_end(s);
            continue;
        }
        struct item item = { .begin = s, .module = module };
        item.end = statement_end(s, &item);
        take_item(all, item);
        s = item.end;
    }
}

/* Must the name at s be renamed in this module? */
static bool renamed_name(const struct items *all, int module, const char *s, size_t length)
{
    for (int i = 0; i < all->count; i++)
        if (all->item[i].renamed && all->item[i].module == module &&
            same(all->item[i].name, all->item[i].name_length, s, length))
            return true;
    return false;
}

static bool uses_renamed(const struct items *all, const struct item *item)
{
    for (const char *s = item->begin, *end; s < item->end; s = end) {
        end = token_end(s);
        if (name_begin(*s) && renamed_name(all, item->module, s, (size_t)(end - s)))
            return true;
    }
    return false;
}

/* Renames spread to what would otherwise be taken from another module. */
static void spread_renames(struct items *all)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < all->count; i++) {
            struct item *item = &all->item[i];
            if (item->dropped && uses_renamed(all, item)) {
                item->dropped = false;
                item->renamed = item->name_length > 0;
                changed = true;
            }
        }
    }
}

static void print_item(const struct items *all, const struct item *item, struct str *out)
{
    if (!uses_renamed(all, item)) {
        str_addn(out, item->begin, length_of(item));
        return;
    }
    for (const char *s = item->begin, *end; s < item->end; s = end) {
        end = token_end(s);
        if (end > item->end)
            end = item->end;
        str_addn(out, s, (size_t)(end - s));
        if (name_begin(*s) && renamed_name(all, item->module, s, (size_t)(end - s)))
            str_printf(out, "_m%d", item->module);
    }
}

/* ---- the file ------------------------------------------------------------------------------------- */

/* The word after a directive of the header, or "" */
static size_t header_word(const char *text, const char *directive, const char **word)
{
    const char *s = strstr(text, directive);
    *word = s == NULL ? "" : s + strlen(directive) + strspn(s + strlen(directive), " \t");
    return strcspn(*word, "\r\n");
}

/* ".version 8.0": the newest of all modules. */
static int newest_version(const struct program *p)
{
    int newest = p->ptx_version;
    for (int m = 0; m < p->nmodules; m++) {
        const char *word;
        if (p->module[m].ptx == NULL || header_word(p->module[m].ptx, ".version", &word) < 3)
            continue;
        const int version = 10 * (word[0] - '0') + (word[2] - '0');
        if (version > newest)
            newest = version;
    }
    return newest;
}

static void print_header(const struct program *p, struct str *out)
{
    const char *target = p->arch;
    size_t length = strlen(target);
    if (p->nmodules > 0 && p->module[0].ptx != NULL)
        length = header_word(p->module[0].ptx, ".target", &target);
    const int version = newest_version(p);
    str_printf(out, "// %s: %s\n", p->name, p->kind);
    for (int c = 0; c < p->ncases; c++)
        str_printf(out, "//   case %s: %s\n", p->cases[c].name, p->cases[c].strategy);
    str_printf(out, "\n.version %d.%d\n.target %.*s\n.address_size 64\n", version / 10, version % 10, (int)length,
               target);
}

void program_ptx(const struct program *p, struct str *out)
{
    struct items all = { 0 };
    for (int m = 0; m < p->nmodules; m++)
        if (p->module[m].ptx != NULL)
            read_module(&all, p->module[m].ptx, m);
    spread_renames(&all);
    print_header(p, out);
    for (int i = 0; i < all.count; i++) {
        if (all.item[i].dropped)
            continue;
        str_addc(out, '\n');
        print_item(&all, &all.item[i], out);
        str_addc(out, '\n');
    }
    out->failed = out->failed || all.failed;
    free(all.item);
}
