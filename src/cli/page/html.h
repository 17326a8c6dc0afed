/* SPDX-License-Identifier: Apache-2.0 */
/* html.h - the page of `ptxgen explain --html`. */
#ifndef PTXGEN_CLI_HTML_H
#define PTXGEN_CLI_HTML_H

#include "cli.h"

/* The code of a spec, or of a stage; texts that are NULL are left out. */
struct page_code {
    const char *stage; /* its name; NULL: the spec has none */
    char *plan, *ir, *ptx, *sass;
    char *plot; /* HTML */
};
/* What the page shows. */
struct page {
    const char *name, *arch, *version;
    const char *sections; /* of the explanation, HTML */
    const char *spec;
    int parts; /* 1, or as many as there are stages */
    struct page_code *code;
};
void page_write(FILE *to, const struct page *p);

/* A point of the scatter plot. */
struct plot_point {
    const char *id, *strategy;
    double us;
    bool standing; /* the default: a line across the plot */
};
/* Inline SVG: a column per strategy, time on a logarithmic axis.  what: where the times come from. */
void plot_write(FILE *to, const struct plot_point *point, int n, const char *what);

void html_escape(FILE *to, const char *text, size_t length);

#endif
