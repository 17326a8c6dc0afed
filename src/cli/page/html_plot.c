/* SPDX-License-Identifier: Apache-2.0 */
/* html_plot.c - the times of variants as a scatter plot: inline SVG, a column per strategy, a logarithmic axis. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "html.h"

enum { WIDTH = 960, HEIGHT = 420, LEFT = 90, RIGHT = 20, TOP = 20, BOTTOM = 60, COLUMNS_MAX = 32, TALLEST = 20 };
static const char *const colour[] = { "#3b7dd8", "#0b9e6f", "#c9702b", "#a353c9",
                                      "#c93b5b", "#7d8a2b", "#2b9ec9", "#8a6a4a" };
enum { COLOURS = sizeof colour / sizeof *colour };

struct plot {
    const struct plot_point *point;
    int n, ncolumns;
    const char *column[COLUMNS_MAX];
    double low, high; /* log10 of microseconds */
};

static int column_of(const struct plot *p, const char *strategy)
{
    int c = 0;
    while (c < p->ncolumns && strcmp(p->column[c], strategy) != 0) {
        c++;
    }
    return c;
}

static double y_of(const struct plot *p, double us)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (p->high - fmin(log10(us), p->high)) / (p->high - p->low);
}

/* Columns in order of appearance, and the range, a little wider than the times; those that are far slower than the best
 * stand at its upper end. */
static void measure(struct plot *p)
{
    p->low = INFINITY;
    p->high = -INFINITY;
    for (int i = 0; i < p->n; i++) {
        const struct plot_point *x = &p->point[i];
        p->low = fmin(p->low, log10(x->us));
        p->high = fmax(p->high, log10(x->us));
        int c = x->standing ? 0 : column_of(p, x->strategy);
        if (!x->standing && c == p->ncolumns && c < COLUMNS_MAX) {
            p->column[p->ncolumns++] = x->strategy;
        }
    }
    p->high = fmin(p->high, p->low + log10(TALLEST));
    double margin = 0.05 * (p->high - p->low) + 0.02;
    p->low -= margin;
    p->high += margin;
}

/* Lines at 1, 2 and 5 times powers of ten. */
static void axis(FILE *to, const struct plot *p)
{
    static const double part[] = { 1, 2, 5 };
    for (int e = (int)floor(p->low); e <= (int)ceil(p->high); e++) {
        for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
            double us = part[k] * pow(10, e);
            if (log10(us) < p->low || log10(us) > p->high) {
                continue;
            }
            fprintf(to, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT,
                    y_of(p, us), y_of(p, us));
            fprintf(to, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g µs</text>\n", LEFT - 6, y_of(p, us) + 4, us);
        }
    }
}

/* Points of a column are spread across it in their order. */
static void points(FILE *to, const struct plot *p)
{
    double wide = (double)(WIDTH - LEFT - RIGHT) / (p->ncolumns ? p->ncolumns : 1);
    int count[COLUMNS_MAX + 1] = { 0 }, at[COLUMNS_MAX + 1] = { 0 };
    for (int i = 0; i < p->n; i++) {
        count[column_of(p, p->point[i].strategy)] += !p->point[i].standing;
    }
    for (int i = 0; i < p->n; i++) {
        const struct plot_point *x = &p->point[i];
        int c = column_of(p, x->strategy);
        if (x->standing || c == p->ncolumns) {
            continue;
        }
        double place = LEFT + wide * (c + 0.1 + 0.8 * (at[c]++ + 0.5) / count[c]);
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>", place, y_of(p, x->us),
                colour[c % COLOURS]);
        html_escape(to, x->id, strlen(x->id));
        fprintf(to, ": %.3f µs</title></circle>\n", x->us);
    }
    for (int c = 0; c < p->ncolumns; c++) {
        double middle = LEFT + wide * (c + 0.5);
        fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", middle, HEIGHT - BOTTOM + 20);
        html_escape(to, p->column[c], strlen(p->column[c]));
        fprintf(to, "</text><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d variants</text>\n", middle,
                HEIGHT - BOTTOM + 36, count[c]);
    }
}

/* What is taken: a line across, and a mark in the column of its strategy, if that is known. */
static void standing(FILE *to, const struct plot *p)
{
    double wide = (double)(WIDTH - LEFT - RIGHT) / (p->ncolumns ? p->ncolumns : 1);
    for (int i = 0; i < p->n; i++) {
        if (p->point[i].standing) {
            double y = y_of(p, p->point[i].us);
            int c = column_of(p, p->point[i].strategy);
            if (c < p->ncolumns) {
                double x = LEFT + wide * (c + 0.5);
                fprintf(to, "<path class=\"mark\" d=\"M%.1f %.1fl8 8l-8 8l-8 -8z\"/>", x, y - 8);
            }
            fprintf(to, "<line class=\"standing\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT,
                    y, y);
            fprintf(to, "<text x=\"%d\" y=\"%.1f\">%s: %.2f µs</text>\n", LEFT + 4, y - 5,
                    c < p->ncolumns ? "chosen" : "the default", p->point[i].us);
        }
    }
}

void plot_write(FILE *to, const struct plot_point *point, int n, const char *what)
{
    struct plot p = { .point = point, .n = n };
    int best = 0, ties = 0;
    for (int i = 1; i < n; i++) {
        best = point[i].us < point[best].us ? i : best;
    }
    for (int i = 0; i < n; i++) {
        ties += point[i].us <= 1.001 * point[best].us;
    }
    measure(&p);
    fprintf(to, "<p>%d variants, %s. ", n, what);
    if (ties == 1) {
        fputs("The fastest: <code>", to);
        html_escape(to, point[best].id, strlen(point[best].id));
        fprintf(to, "</code>, %.3f µs.</p>\n", point[best].us);
    } else {
        fprintf(to, "%d of them are within 0.1 %% of the least time, %.3f µs.</p>\n", ties, point[best].us);
    }
    fprintf(to, "<div class=\"plot\"><svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH, HEIGHT);
    fputs("<title>times of variants</title>\n", to);
    axis(to, &p);
    points(to, &p);
    standing(to, &p);
    fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">strategy; its variants side by side</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6);
    fprintf(to, "<text transform=\"translate(14 %d) rotate(-90)\" text-anchor=\"middle\">time of a launch</text>\n",
            (HEIGHT - BOTTOM + TOP) / 2);
    fputs("</svg></div>\n", to);
}
