/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_doc.c - libyaml's events to a tree of located nodes.
 *
 *   check the text (encoding, size)
 *   repeat: one attempt = parse and build the tree
 *     until it goes through, or a failure cannot be repaired (yaml_recover.c)
 *   check what needs the whole tree (tabs); report all findings in the order of the text
 *
 * libyaml allocates with malloc, the tree with the arena, which leaves by longjmp when memory is exhausted: for the
 * time of an attempt that jump is caught, so that the parser is always deleted.
 */
#include "yaml_impl.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* One attempt. */
struct attempt {
    struct yaml_reader *r;
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event;
    uint32_t begin;            /* bytes of the byte order mark */
    const uint32_t *character; /* offsets of characters, or NULL */
    unsigned char *opaque;     /* per byte of the text: inside a quoted or block scalar */
    int nodes;
    bool again; /* a repair was made */
    bool failed;
};

struct finding *yaml_found(struct yaml_reader *r, enum diag_code code, struct span at, const char *format, ...)
{
    struct finding *f = arena_new(r->d->arena, struct finding, 1);
    va_list ap;
    va_start(ap, format);
    *f =
        (struct finding){ .code = code, .at = at, .text = arena_vprintf(r->d->arena, format, ap), .next = r->findings };
    va_end(ap);
    r->findings = f;
    return f;
}

/* ---- events --------------------------------------------------------------------------------------- */

static uint32_t offset_of(const struct attempt *a, size_t character)
{
    const size_t characters = a->r->length - a->begin;
    if (character > characters)
        character = characters;
    return a->character != NULL ? a->character[character] : a->begin + (uint32_t)character;
}

static struct span event_span(const struct attempt *a)
{
    return (struct span){ offset_of(a, a->event.start_mark.index), offset_of(a, a->event.end_mark.index) };
}

static void drop_event(struct attempt *a)
{
    if (a->has_event)
        yaml_event_delete(&a->event);
    a->has_event = false;
}

static void explain_failure(struct attempt *a)
{
    const yaml_parser_t *p = &a->parser;
    if (p->error == YAML_MEMORY_ERROR)
        longjmp(*a->r->d->arena->oom, 1);
    const struct yaml_failure f = { p->problem != NULL ? p->problem : "unreadable",
                                    p->context != NULL ? p->context : "", offset_of(a, p->problem_mark.index),
                                    offset_of(a, p->context_mark.index) };
    a->again = yaml_explain_failure(a->r, &f);
}

/* The next event; false, with the failure explained, when there is none. */
static bool advance(struct attempt *a)
{
    drop_event(a);
    if (a->failed)
        return false;
    a->has_event = yaml_parser_parse(&a->parser, &a->event);
    if (!a->has_event) {
        a->failed = true;
        explain_failure(a);
    }
    return a->has_event;
}

static void limit(struct attempt *a, struct span at, const char *what)
{
    yaml_found(a->r, D_YAML_LIMIT, at, "the spec has %s", what);
    a->failed = true;
}

/* ---- scalars -------------------------------------------------------------------------------------- */

static const struct repair *repair_at(const struct yaml_reader *r, uint32_t begin)
{
    for (const struct repair *p = r->repairs; p != NULL; p = p->next)
        if (p->at.begin == begin)
            return p;
    return NULL;
}

/* A scalar that is the source bytes themselves. */
static void raw_scalar(struct attempt *a, struct ynode *n, struct span at)
{
    n->at = at;
    n->length = at.end - at.begin;
    n->text = arena_strndup(a->r->d->arena, a->r->source + at.begin, n->length);
    n->plain = true;
}

static char style_of(yaml_scalar_style_t style)
{
    switch (style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE: return '\'';
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE: return '"';
    case YAML_LITERAL_SCALAR_STYLE: return '|';
    case YAML_FOLDED_SCALAR_STYLE: return '>';
    default: return 0;
    }
}

static void decoded_scalar(struct attempt *a, struct ynode *n, struct span at)
{
    struct yaml_reader *r = a->r;
    const char style = style_of(a->event.data.scalar.style);
    n->length = (uint32_t)a->event.data.scalar.length;
    n->text = arena_strndup(r->d->arena, (const char *)a->event.data.scalar.value, n->length);
    n->plain = style == 0;
    n->at = at;
    const bool same = n->plain && at.end - at.begin == n->length && memcmp(r->text + at.begin, n->text, n->length) == 0;
    if (!same)
        n->where = yaml_offsets(r, at, style, n->text, n->length);
    if (!n->plain)
        memset(a->opaque + at.begin, 1, at.end - at.begin);
    while (n->at.end > n->at.begin && strchr(" \t\r\n", r->source[n->at.end - 1]) != NULL)
        n->at.end--; /* a block scalar ends after its last line break */
}

static void read_scalar(struct attempt *a, struct ynode *n, struct span at)
{
    const struct repair *p = repair_at(a->r, at.begin);
    const bool sigil =
        a->event.type == YAML_ALIAS_EVENT || a->event.data.scalar.tag != NULL || a->event.data.scalar.anchor != NULL;
    if (p != NULL) {
        raw_scalar(a, n, p->at);
    } else if (sigil) {
        yaml_explain_sigil(a->r, at);
        raw_scalar(a, n, at);
    } else {
        decoded_scalar(a, n, at);
        if (a->r->flow > 0 && n->plain && yaml_explain_cut(a->r, at))
            a->again = a->failed = true;
        else if (a->r->flow == 0)
            yaml_check_comment_behind(a->r, n);
    }
}

/* ---- collections ---------------------------------------------------------------------------------- */

static struct ynode *read_node(struct attempt *a, int depth);

static void collection_sigils(struct attempt *a, struct span at, const unsigned char *tag, const unsigned char *anchor)
{
    if (tag != NULL)
        yaml_found(a->r, D_YAML_TAG, (struct span){ at.begin, at.begin + 1 }, "specs have no YAML tags")->hint =
            "remove the tag";
    if (anchor != NULL)
        yaml_found(a->r, D_YAML_ANCHOR, (struct span){ at.begin, at.begin + 1 }, "specs have no YAML anchors")->hint =
            "repeat the value, or name an expression under 'let'";
}

/* Ends a collection at its closing bracket, or (block style) at its last node. */
static void close_collection(struct attempt *a, struct ynode *n, bool flow, struct span last)
{
    if (flow) {
        a->r->flow--;
        n->at.end = event_span(a).end;
    } else if (last.begin != SPAN_NONE && last.end > n->at.begin) {
        n->at.end = last.end;
    }
}

static void read_sequence(struct attempt *a, struct ynode *n, int depth)
{
    const bool flow = a->event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    int capacity = 0;
    struct span last = span_none();
    collection_sigils(a, n->at, a->event.data.sequence_start.tag, a->event.data.sequence_start.anchor);
    n->kind = Y_SEQUENCE;
    a->r->flow += flow;
    while (advance(a) && a->event.type != YAML_SEQUENCE_END_EVENT) {
        struct ynode *item = read_node(a, depth + 1);
        if (item == NULL)
            return;
        a->r->last_is_value = true;
        last = item->at;
        ARENA_PUSH(a->r->d->arena, n->item, n->count, capacity, item);
    }
    if (!a->failed)
        close_collection(a, n, flow, last);
}

/* "b:c" without a blank, alone between commas of a flow mapping. */
static void check_flow_pair(struct attempt *a, const struct ynode *key, const struct ynode *value)
{
    const char *colon = key->plain ? memchr(key->text, ':', key->length) : NULL;
    if (colon == NULL || value->kind != Y_SCALAR || value->length != 0 || value->at.begin != value->at.end)
        return;
    const uint32_t at = (uint32_t)(colon - key->text);
    yaml_found(a->r, D_YAML_SPACE, ynode_span(key, at, at + 1), "':' needs a blank after it to end a key");
}

/* A key and its value, or false. A key that is no scalar is reported, and dropped with its value. */
static bool read_pair(struct attempt *a, int depth, struct ypair *pair)
{
    pair->key = read_node(a, depth);
    a->r->last_is_value = false;
    if (pair->key == NULL || !advance(a))
        return false;
    pair->value = read_node(a, depth);
    a->r->last_is_value = true;
    if (pair->value == NULL)
        return false;
    if (pair->key->kind != Y_SCALAR)
        yaml_found(a->r, D_YAML_KEY, pair->key->at, "a key must be a word")->hint = "write 'key: value'";
    else if (a->r->flow > 0)
        check_flow_pair(a, pair->key, pair->value);
    return true;
}

static void read_mapping(struct attempt *a, struct ynode *n, int depth)
{
    const bool flow = a->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
    int capacity = 0;
    struct span last = span_none();
    collection_sigils(a, n->at, a->event.data.mapping_start.tag, a->event.data.mapping_start.anchor);
    n->kind = Y_MAPPING;
    a->r->flow += flow;
    while (advance(a) && a->event.type != YAML_MAPPING_END_EVENT) {
        struct ypair pair;
        if (!read_pair(a, depth + 1, &pair))
            return;
        last = pair.value->at.end > pair.key->at.end ? pair.value->at : pair.key->at;
        if (pair.key->kind == Y_SCALAR)
            ARENA_PUSH(a->r->d->arena, n->pair, n->count, capacity, pair);
    }
    if (!a->failed)
        close_collection(a, n, flow, last);
}

/* The node of the current event, or NULL when the attempt has failed. */
static struct ynode *read_node(struct attempt *a, int depth)
{
    const struct span at = event_span(a);
    if (depth > YAML_DEPTH_MAX)
        limit(a, at, "more than 64 levels of nesting");
    else if (++a->nodes > YAML_NODE_MAX)
        limit(a, at, "more than 100000 values");
    if (a->failed)
        return NULL;
    struct ynode *n = arena_new(a->r->d->arena, struct ynode, 1);
    n->at = at;
    if (a->event.type == YAML_SEQUENCE_START_EVENT)
        read_sequence(a, n, depth);
    else if (a->event.type == YAML_MAPPING_START_EVENT)
        read_mapping(a, n, depth);
    else
        read_scalar(a, n, at);
    if (a->failed)
        return NULL;
    a->r->last = n->at;
    return n;
}

/* ---- documents ------------------------------------------------------------------------------------ */

static bool unsupported_directives(const struct attempt *a)
{
    return a->event.data.document_start.tag_directives.start != a->event.data.document_start.tag_directives.end;
}

/* stream start, document start, root, document end, stream end. */
static struct ynode *read_document(struct attempt *a)
{
    struct ynode *root = NULL;
    if (!advance(a) || !advance(a))
        return NULL;
    if (a->event.type == YAML_STREAM_END_EVENT) {
        yaml_found(a->r, D_YAML_EMPTY, (struct span){ a->r->length, a->r->length }, "the text has no spec")->hint =
            "'ptxgen explain PTXG-1019' shows the smallest one";
        return NULL;
    }
    if (unsupported_directives(a))
        yaml_found(a->r, D_YAML_DIRECTIVE, event_span(a), "YAML directives are not used");
    if (advance(a))
        root = read_node(a, 0);
    if (root == NULL || !advance(a) || !advance(a))
        return root;
    if (a->event.type == YAML_DOCUMENT_START_EVENT) {
        const struct span at = event_span(a);
        yaml_found(a->r, D_YAML_DOCUMENTS, at.end > at.begin ? at : (struct span){ at.begin, at.begin + 1 },
                   "a second document begins here; a file holds one spec");
    }
    return root;
}

/* One attempt; its findings stay in the reader. Returns by longjmp when memory is exhausted, with nothing held. */
static struct ynode *attempt(struct attempt *a)
{
    struct arena *arena = a->r->d->arena;
    jmp_buf *outer = arena->oom, here;
    if (!yaml_parser_initialize(&a->parser))
        longjmp(*outer, 1);
    if (setjmp(here) != 0) {
        drop_event(a);
        yaml_parser_delete(&a->parser);
        arena->oom = outer;
        longjmp(*outer, 1);
    }
    arena->oom = &here;
    yaml_parser_set_encoding(&a->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&a->parser, (const unsigned char *)a->r->text + a->begin, a->r->length - a->begin);
    struct ynode *root = read_document(a);
    drop_event(a);
    yaml_parser_delete(&a->parser);
    arena->oom = outer;
    return root;
}

static void forget_attempt(struct yaml_reader *r)
{
    for (struct finding **f = &r->findings; *f != NULL;)
        if ((*f)->kept)
            f = &(*f)->next;
        else
            *f = (*f)->next;
    r->flow = 0;
    r->last = (struct span){ 0, 0 };
    r->last_is_value = false;
}

/* ---- the whole tree ------------------------------------------------------------------------------- */

static int by_key(const void *x, const void *y)
{
    const struct ynode *a = (*(const struct ypair *const *)x)->key, *b = (*(const struct ypair *const *)y)->key;
    const int order = strcmp(a->text, b->text);
    return order != 0 ? order : (a->at.begin > b->at.begin) - (a->at.begin < b->at.begin);
}

/* Equal keys are neighbours when sorted; the first in the text counts. */
static void check_duplicates(struct yaml_reader *r, const struct ynode *n)
{
    const struct ypair **sorted = arena_new(r->d->arena, const struct ypair *, n->count);
    for (int i = 0; i < n->count; i++)
        sorted[i] = &n->pair[i];
    qsort(sorted, (size_t)n->count, sizeof *sorted, by_key);
    for (int i = 1, first = 0; i < n->count; i++) {
        if (strcmp(sorted[i]->key->text, sorted[first]->key->text) != 0) {
            first = i;
            continue;
        }
        struct finding *f =
            yaml_found(r, D_YAML_DUPLICATE, sorted[i]->key->at, "duplicate key '%s'", sorted[i]->key->text);
        f->note_at = sorted[first]->key->at;
        f->note = "the first one is here";
    }
}

static void check_tree(struct yaml_reader *r, const struct ynode *n)
{
    if (n->kind == Y_MAPPING)
        check_duplicates(r, n);
    for (int i = 0; i < n->count; i++)
        check_tree(r, n->kind == Y_MAPPING ? n->pair[i].value : n->item[i]);
}

static void check_root(struct yaml_reader *r, const struct ynode *root)
{
    if (root->kind == Y_MAPPING)
        return;
    const char *colon = root->kind == Y_SCALAR && root->plain ? strchr(root->text, ':') : NULL;
    struct finding *f =
        root->kind == Y_SCALAR && root->length == 0
            ? yaml_found(r, D_YAML_EMPTY, root->at, "the document is empty")
            : yaml_found(r, D_YAML_ROOT, root->at, "a spec is a mapping, 'key: value' per line, not a %s",
                         root->kind == Y_SCALAR ? "single value" : "list");
    if (colon != NULL)
        f->hint = "':' needs a blank after it to end a key";
}

static int by_place(const void *x, const void *y)
{
    const struct finding *a = *(const struct finding *const *)x, *b = *(const struct finding *const *)y;
    return (a->at.begin > b->at.begin) - (a->at.begin < b->at.begin);
}

static void report(struct yaml_reader *r)
{
    int n = 0;
    for (const struct finding *f = r->findings; f != NULL; f = f->next)
        n++;
    const struct finding **sorted = arena_new(r->d->arena, const struct finding *, n);
    int i = n;
    for (const struct finding *f = r->findings; f != NULL; f = f->next)
        sorted[--i] = f;
    qsort(sorted, (size_t)n, sizeof *sorted, by_place);
    for (i = 0; i < n; i++) {
        const struct finding *f = sorted[i];
        struct diag *m = f->warning ? diag_warning(r->d, f->code, f->at, "%s", f->text)
                                    : diag_error(r->d, f->code, f->at, "%s", f->text);
        m->hint = f->hint;
        if (f->note != NULL)
            diag_note(r->d, m, f->note_at, "%s", f->note);
    }
}

/* Attempts until the text goes through; NULL when it does not. */
static struct ynode *read_text(struct yaml_reader *r, uint32_t begin)
{
    struct attempt a = { .r = r, .begin = begin, .character = yaml_character_offsets(r, begin) };
    a.opaque = arena_alloc(r->d->arena, (size_t)r->length + 1);
    struct ynode *root;
    do {
        forget_attempt(r);
        a.again = a.failed = false;
        a.nodes = 0;
        memset(a.opaque, 0, r->length);
        root = attempt(&a);
    } while (a.again);
    if (root == NULL || a.failed)
        return NULL;
    yaml_check_tabs(r, a.opaque);
    check_tree(r, root);
    check_root(r, root);
    return r->incomplete || root->kind != Y_MAPPING ? NULL : root;
}

struct ynode *yaml_parse(struct diags *d, const char *text, size_t length)
{
    struct yaml_reader r = { .d = d, .source = text };
    if (length > YAML_TEXT_MAX) {
        diag_error(d, D_YAML_LIMIT, span_none(), "the text has %zu bytes; a spec may have 1 MiB", length);
        return NULL;
    }
    r.length = (uint32_t)length;
    r.text = arena_strndup(d->arena, text, length);
    uint32_t begin;
    struct ynode *root = yaml_check_text(&r, &begin) ? read_text(&r, begin) : NULL;
    report(&r);
    return root;
}

/* ---- looking into the tree ------------------------------------------------------------------------ */

const struct ynode *ynode_get(const struct ynode *mapping, const char *key)
{
    if (mapping->kind == Y_MAPPING)
        for (int i = 0; i < mapping->count; i++)
            if (strcmp(mapping->pair[i].key->text, key) == 0)
                return mapping->pair[i].value;
    return NULL;
}

struct span ynode_span(const struct ynode *scalar, uint32_t from, uint32_t to)
{
    to = to < scalar->length ? to : scalar->length;
    from = from < to ? from : to;
    if (scalar->where == NULL)
        return (struct span){ scalar->at.begin + from, scalar->at.begin + to };
    return (struct span){ scalar->where[from], scalar->where[to] };
}
