/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_impl.h - what the files behind yaml_doc.h share.
 *
 *   yaml_doc.c      libyaml's events to a tree; attempts until one goes through
 *   yaml_recover.c  what a failure means in this language, and the repair that lets the next attempt go on
 *   yaml_text.c     the text itself: encoding, tabs, comments, offsets of decoded scalars
 */
#ifndef PTXGEN_YAML_IMPL_H
#define PTXGEN_YAML_IMPL_H

#include "yaml_doc.h"

enum { YAML_TEXT_MAX = 1 << 20, YAML_DEPTH_MAX = 64, YAML_NODE_MAX = 100000, YAML_REPAIR_MAX = 40 };
enum { YAML_REREAD_MAX = 4 << 20 }; /* bytes that all attempts together may read */

/* A message that waits: attempts may be repeated, and messages are given in the order of the text. */
struct finding {
    bool warning;
    bool kept; /* of a repair, or of the text as a whole: holds for all attempts */
    enum diag_code code;
    struct span at;
    const char *text, *hint;
    struct span note_at; /* place of the note, when there is one */
    const char *note;
    struct finding *next; /* newest first */
};

/* Source bytes that YAML misreads. In the copy that libyaml sees they are a word, and the node that begins there gets
 * the source bytes as its text, as if they had been quoted. */
struct repair {
    struct span at;
    struct repair *next;
};

/* A failure of libyaml, in byte offsets. */
struct yaml_failure {
    const char *problem; /* libyaml's words, never NULL */
    const char *context; /* "" for none */
    uint32_t at, context_at;
};

struct yaml_reader {
    struct diags *d;
    const char *source; /* what the user wrote */
    char *text;         /* the same with repairs */
    uint32_t length;
    struct finding *findings;
    struct repair *repairs;
    int nrepairs;
    bool incomplete; /* a repair dropped something: no tree is returned */
    /* State of the attempt when it fails. */
    int flow;           /* open flow collections */
    struct span last;   /* the last complete node */
    bool last_is_value; /* and whether it was a value of a mapping or an item of a sequence */
};

struct finding *yaml_found(struct yaml_reader *r, enum diag_code code, struct span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* yaml_recover.c */
/* Explains the failure; true when it was repaired and another attempt is worth it. */
bool yaml_explain_failure(struct yaml_reader *r, const struct yaml_failure *f);
/* A node with a tag, an anchor, or that is an alias: `at` is all of it. */
void yaml_explain_sigil(struct yaml_reader *r, struct span at);
/* A plain scalar inside {} or []: true when it was cut at a comma of its own, and repaired. */
bool yaml_explain_cut(struct yaml_reader *r, struct span at);

/* yaml_text.c */
/* False when the bytes are no text that YAML accepts. *begin: first byte after a byte order mark. */
bool yaml_check_text(struct yaml_reader *r, uint32_t *begin);
/* Byte offset of every character, with one more entry for the end; NULL when all characters are one byte. */
const uint32_t *yaml_character_offsets(struct yaml_reader *r, uint32_t begin);
/* Tabs outside of quotes, block scalars and comments. opaque: which bytes are inside a quoted or block scalar (NULL:
 * look at indentation only). */
void yaml_check_tabs(struct yaml_reader *r, const unsigned char *opaque);
void yaml_check_comment_behind(struct yaml_reader *r, const struct ynode *scalar);
/* Source offset of every decoded byte and of the end. style: '|', '>', '\'', '"' or 0 for plain. */
const uint32_t *yaml_offsets(struct yaml_reader *r, struct span at, char style, const char *decoded, uint32_t length);
uint32_t yaml_line_end(const struct yaml_reader *r, uint32_t at); /* the line break or the end of the text */
uint32_t yaml_line_begin(const struct yaml_reader *r, uint32_t at);

#endif
