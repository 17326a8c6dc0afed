/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_doc.h - YAML text to a tree in which every node knows its place.  The only door to libyaml.
 *
 * Decoded scalars (quoted, folded, block) keep an offset map, so that a byte of an expression has a place in the
 * source. Errors: YAML syntax, duplicate keys, tags, anchors/aliases, tabs, several documents, and what YAML eats (a
 * value that begins with !, *, &, {, [, @ …), each as its own diagnostic.  A value that YAML misreads is reported, and
 * stands in the tree with the text that the user wrote, so that it causes no second message.  Limits: 1 MiB of text,
 * depth 64, 100 000 nodes.
 */
#ifndef PTXGEN_YAML_DOC_H
#define PTXGEN_YAML_DOC_H

#include "base/diag.h"

enum ynode_kind { Y_SCALAR, Y_SEQUENCE, Y_MAPPING };

struct ypair;
struct ynode {
    enum ynode_kind kind;
    struct span at; /* of the whole node */
    /* Y_SCALAR */
    const char *text; /* decoded, NUL-terminated */
    uint32_t length;
    bool plain;            /* not quoted, not a block scalar */
    const uint32_t *where; /* length+1 source offsets, one per decoded byte; NULL: at.begin + i */
    /* Y_SEQUENCE, Y_MAPPING */
    int count;
    struct ynode **item; /* sequence */
    struct ypair *pair;  /* mapping, in order of the text */
};
struct ypair {
    struct ynode *key; /* always a scalar */
    struct ynode *value;
};

/* The root node, or NULL when there is none (messages say why).  Reports all errors it can; a tree may be returned
 * although errors were counted. `text` is borrowed by the diagnostics. */
struct ynode *yaml_parse(struct diags *d, const char *text, size_t length);

const struct ynode *ynode_get(const struct ynode *mapping, const char *key); /* value or NULL */
/* The source span of decoded bytes [from, to) of a scalar. */
struct span ynode_span(const struct ynode *scalar, uint32_t from, uint32_t to);

/* For scalars that are expressions: warns when a comment right after one, `x # y`, looks like a part of it. */
void yaml_warn_comment(struct diags *d, const struct ynode *scalar);

#endif
