/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - one self-contained page: no scripts, nothing from elsewhere, light and dark as the reader's system asks.
 *
 * It is well-formed XML behind the document type, so that any parser can check it.  The PTX has an outline: the kernels
 * and the sections that the emitters named, which stand as comments at their labels.
 */
#include <string.h>

#include "html.h"

static const char style[] =
    ":root{--paper:#fdfdfc;--ink:#1c2126;--soft:#5c6670;--line:#d9dde1;--shade:#f1f3f4;--mark:#0b6e4f;--least:#8aa4b8;-"
    "-predicted:#c98b2b;--measured:#0b6e4f}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#14181b;--ink:#e4e8ea;--soft:#98a3ab;--line:#343c42;--shade:#"
    "1d2327;--mark:#5ccf9f;--least:#59778c;"
    "--predicted:#d9a552;--measured:#5ccf9f}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 "
    "system-ui,sans-serif}\n"
    "main{max-width:72rem;margin:0 auto;padding:1.5rem}h1{font-size:1.7rem;margin:0}h2{margin:2.2rem 0 "
    ".6rem;font-size:1.25rem;border-bottom:1px solid var(--line)}\n"
    "h3{margin:.2rem 0;font-size:1rem}p{margin:.4rem 0}header p{color:var(--soft)}nav "
    "a{margin-right:1rem}a{color:var(--mark)}\n"
    "table{border-collapse:collapse;width:100%;margin:.5rem "
    "0;font-size:.92em}th{text-align:left;color:var(--soft);font-weight:600}\n"
    "td,th{padding:.25rem .9rem .25rem 0;border-bottom:1px solid "
    "var(--line);vertical-align:top}td.number,th.number{text-align:right}\n"
    "tr.chosen td:first-child{color:var(--mark);font-weight:700}tr.unfit{color:var(--soft)}\n"
    "article{border:1px solid var(--line);border-radius:.4rem;padding:.7rem 1rem;margin:.8rem "
    "0;overflow-x:auto}article.taken{border-color:var(--mark);border-width:2px}\n"
    "p code{overflow-wrap:anywhere}"
    "code,pre{font:12.5px/1.45 "
    "ui-monospace,Menlo,Consolas,monospace}pre{margin:0;padding:.8rem;background:var(--shade);overflow:auto;max-height:"
    "38rem;border-radius:.4rem}\n"
    "summary{cursor:pointer;color:var(--soft)}.wide{width:60%}.bar{height:.9rem;border-radius:.2rem}.least{background:"
    "var(--least)}\n"
    ".predicted{background:var(--predicted)}.measured{background:var(--measured)}.split{display:grid;grid-template-"
    "columns:15rem 1fr;gap:1rem}\n"
    ".outline{max-height:38rem;overflow:auto;font-size:.85em;margin:0;padding:0;list-style:none}.outline "
    ".inner{padding-left:1rem}.outline a{text-decoration:none}\n"
    "@media(max-width:50rem){.split{grid-template-columns:1fr}.outline{max-height:10rem}}\n"
    "svg{width:100%;height:auto;background:var(--shade);border-radius:.4rem}svg text{fill:var(--ink);font:11px "
    "system-ui,sans-serif}\n"
    "svg .axis{stroke:var(--line)}svg .standing{stroke:var(--predicted);stroke-dasharray:5 4}svg "
    "circle{fill-opacity:.65}pre :target{background:var(--predicted)}\n";

void html_escape(FILE *to, const char *text, size_t length)
{
    for (size_t i = 0; i < length && text[i]; i++) {
        unsigned char c = (unsigned char)text[i];
        switch (c) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(c < 32 && c != '\n' && c != '\t' ? ' ' : c, to);
        }
    }
}

static void section(FILE *to, const char *id, const char *title, const char *text)
{
    if (text) {
        fprintf(to, "<section id=\"%s\"><h2>%s</h2>\n<pre>", id, title);
        html_escape(to, text, strlen(text));
        fputs("</pre></section>\n", to);
    }
}

/* ---- PTX with an outline ---- */

/* What a line of PTX opens: "NAME" of ".entry NAME(", with level 0; "tiles.loop" of "// %tiles.loop", with level 1;
 * else NULL. */
static const char *opens(const char *line, size_t length, size_t *name_length, int *level)
{
    static const char entry[] = ".entry ", label[] = "// %";
    for (size_t i = 0; i + sizeof label < length; i++) {
        bool kernel = i + sizeof entry < length && !strncmp(line + i, entry, sizeof entry - 1);
        bool named = !strncmp(line + i, label, sizeof label - 1) && strncmp(line + i, "// %bb.", 7) != 0;
        if (kernel || named) {
            const char *name = line + i + (kernel ? sizeof entry - 1 : sizeof label - 1);
            *name_length = strcspn(name, kernel ? "(" : " \n");
            *level = kernel ? 0 : 1;
            return name;
        }
    }
    return NULL;
}

/* Calls f for every line. */
static void each_line(const char *text, void (*f)(FILE *to, int number, const char *line, size_t length), FILE *to)
{
    for (int number = 1; *text; number++) {
        size_t length = strcspn(text, "\n");
        f(to, number, text, length);
        text += length + (text[length] == '\n');
    }
}

static void outline_line(FILE *to, int number, const char *line, size_t length)
{
    size_t n;
    int level;
    const char *name = opens(line, length, &n, &level);
    if (name) {
        fprintf(to, "<li%s><a href=\"#ptx%d\">", level ? " class=\"inner\"" : "", number);
        html_escape(to, name, n);
        fputs("</a></li>\n", to);
    }
}

static void code_line(FILE *to, int number, const char *line, size_t length)
{
    size_t n;
    int level;
    bool anchor = opens(line, length, &n, &level) != NULL;
    if (anchor) {
        fprintf(to, "<span id=\"ptx%d\">", number);
    }
    html_escape(to, line, length);
    fputs(anchor ? "</span>\n" : "\n", to);
}

static void ptx_section(FILE *to, const char *ptx)
{
    fputs("<section id=\"ptx\"><h2>PTX</h2>\n<div class=\"split\"><ul class=\"outline\">\n", to);
    each_line(ptx, outline_line, to);
    fputs("</ul><pre>", to);
    each_line(ptx, code_line, to);
    fputs("</pre></div></section>\n", to);
}

/* ---- the page ---- */
static void link_to(FILE *to, const char *id, const char *title, bool there)
{
    if (there) {
        fprintf(to, "<a href=\"#%s\">%s</a>\n", id, title);
    }
}

void page_write(FILE *to, const struct page *p)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>",
          to);
    html_escape(to, p->name, strlen(p->name));
    fprintf(to, " on %s</title>\n<style>\n%s</style></head>\n<body><main>\n<header><h1>", p->arch, style);
    html_escape(to, p->name, strlen(p->name));
    fprintf(to, "</h1><p>on %s, explained by ptxgen %s</p></header>\n<nav>\n", p->arch, p->version);
    link_to(to, "spec", "Spec", true);
    link_to(to, "decision", "Decision", true);
    link_to(to, "cases", "Cases", true);
    link_to(to, "cost", "Cost", true);
    link_to(to, "variants", "Variants", p->plot != NULL);
    link_to(to, "plan", "Plan", true);
    link_to(to, "ir", "IR", p->ir != NULL);
    link_to(to, "ptx", "PTX", true);
    link_to(to, "sass", "SASS", p->sass != NULL);
    fputs("</nav>\n", to);
    section(to, "spec", "Spec", p->spec);
    fputs(p->sections, to);
    if (p->plot) {
        fprintf(to, "<section id=\"variants\"><h2>Variants</h2>\n%s</section>\n", p->plot);
    }
    section(to, "plan", "Plan", p->plan);
    section(to, "ir", "LLVM IR", p->ir);
    ptx_section(to, p->ptx);
    section(to, "sass", "SASS", p->sass);
    fputs("</main></body></html>\n", to);
}
