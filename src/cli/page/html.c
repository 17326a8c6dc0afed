/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - one self-contained page: no scripts, nothing from elsewhere, light and dark as the reader's system asks.
 *
 * It is well-formed XML after the document type, so that any parser can check it.  The PTX has an outline: the kernels
 * and the sections that the emitters named, which stand as comments at their labels.
 */
#include <string.h>

#include "html.h"

enum { SECTION_BYTES = 36 << 10 }; /* of text: pages are opened on phones, too */

static const char style[] =
    ":root{--paper:#fdfdfc;--ink:#1c2126;--soft:#5c6670;--line:#d9dde1;--shade:#f1f3f4;--mark:#0b6e4f;--least:#8aa4b8;"
    "--predicted:#c98b2b;--word:#8a3fa8}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#14181b;--ink:#e4e8ea;--soft:#98a3ab;--line:#343c42;"
    "--shade:#1d2327;--mark:#5ccf9f;--least:#59778c;--predicted:#d9a552;--word:#cf9be4}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 "
    "system-ui,sans-serif}\n"
    "main{max-width:72rem;margin:0 auto;padding:1.5rem}h1{font-size:1.7rem;margin:0}"
    "h2,h3{margin:2.2rem 0 .6rem;font-size:1.25rem;border-bottom:1px solid var(--line)}h2.stage{font-size:1.5rem}\n"
    "p{margin:.4rem 0;overflow-wrap:anywhere}header p,small{color:var(--soft)}"
    "nav a{margin-right:1rem}a{color:var(--mark)}.verdict p:nth-of-type(-n+2){font-size:1.15rem;font-weight:600}\n"
    "table{border-collapse:collapse;width:100%;margin:.5rem 0;font-size:.92em}"
    "td{padding:.25rem .9rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}"
    "td:first-child,td.number{white-space:nowrap}td.number{text-align:right}\n"
    "tr.chosen td:first-child{color:var(--mark);font-weight:700}tr.unfit{color:var(--soft)}"
    "details{margin:.4rem 0}summary{cursor:pointer;overflow-wrap:anywhere}"
    "details.taken{border:2px solid var(--mark);border-radius:.4rem;padding:.5rem}.cases pre{white-space:pre-wrap}\n"
    "code,pre{font:12.5px/1.45 ui-monospace,Menlo,Consolas,monospace}"
    "pre{margin:0;padding:.8rem;background:var(--shade);overflow:auto;max-height:38rem;border-radius:.4rem}\n"
    "pre b{color:var(--word);font-weight:400}pre i{color:var(--mark)}pre :target{background:var(--predicted)}\n"
    ".wide{width:60%}.bar{height:.9rem;border-radius:.2rem}.least{background:var(--least)}"
    ".predicted{background:var(--predicted)}.measured{background:var(--mark)}"
    ".split{display:grid;grid-template-columns:15rem 1fr;gap:1rem}\n"
    ".outline{max-height:38rem;overflow:auto;font-size:.85em;margin:0;padding:0;list-style:none}"
    ".outline .inner{padding-left:1rem}.outline a{text-decoration:none}\n"
    ".flow{display:flex;align-items:center;gap:2.5rem}.flow ul{list-style:none;margin:0;padding:0;position:relative}"
    ".flow li{border:1px solid var(--line);border-radius:.4rem;padding:.4rem .8rem;margin:.4rem 0;text-align:center}"
    ".flow .kernels li{border:2px solid var(--mark)}.flow "
    "ul+ul::before{content:'\\2192';position:absolute;left:-1.9rem;"
    "top:50%;margin-top:-1.1rem;font-size:1.4rem}\n"
    "svg{width:100%;height:auto;min-width:34rem;background:var(--shade);border-radius:.4rem}.plot{overflow-x:auto}"
    "svg text{fill:var(--ink);font:11px system-ui,sans-serif}svg .axis{stroke:var(--line)}"
    "svg .standing{stroke:var(--predicted);stroke-dasharray:5 4}svg .mark{fill:var(--predicted);stroke:var(--ink)}"
    "svg circle{fill-opacity:.65}svg rect{fill:var(--paper);stroke:var(--line)}svg .stage{stroke:var(--mark);"
    "stroke-width:2}svg .edge{fill:none;stroke:var(--soft)}svg .between,svg .again{stroke-dasharray:5 4}\n"
    "@media(max-width:50rem){main{padding:.8rem}.split{grid-template-columns:minmax(0,1fr)}.outline{max-height:10rem}"
    ".flow{flex-direction:column}.flow ul+ul::before{content:'\\2193';left:50%;top:-1.6rem}"
    ".reasons td{display:block}.reasons td:first-child{border:0}.wide{width:40%}}\n";

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

/* A line of code: the comment that `comment` begins, and what it begins with: an opcode, a directive or a key. */
static void coloured(FILE *to, const char *line, size_t length, const char *comment)
{
    size_t word = strspn(line, " \t"), end, at = 0, mark = strlen(comment);
    word = word < length ? word : length;
    while (at < length && strncmp(line + at, comment, at + mark <= length ? mark : length + 1) != 0) {
        at++;
    }
    end = word + strcspn(line + word, " \t\n:;");
    end = end < at ? end : at;
    html_escape(to, line, word < end ? word : end);
    if (word < end) {
        fputs("<b>", to);
        html_escape(to, line + word, end - word);
        fputs("</b>", to);
        html_escape(to, line + end, at - end);
    } else {
        html_escape(to, line + end, at > end ? at - end : 0);
    }
    if (at < length) {
        fputs("<i>", to);
        html_escape(to, line + at, length - at);
        fputs("</i>", to);
    }
}

/* What is printed: where, of which stage, and how much of a text. */
struct printing {
    FILE *to;
    const char *stage, *dash; /* what goes before ids: a name and a dash, or nothing */
    size_t room;
};

static void open_section(const struct printing *p, const char *id, const char *title)
{
    fprintf(p->to, "<section id=\"%s%s%s\"><h2>%s%s%s</h2>\n", p->stage, p->dash, id, p->stage, *p->stage ? ": " : "",
            title);
}

static void section(const struct printing *p, const char *id, const char *title, const char *text, const char *comment)
{
    size_t written = 0;
    if (!text) {
        return;
    }
    open_section(p, id, title);
    fputs("<pre>", p->to);
    while (*text && written < p->room) {
        size_t length = strcspn(text, "\n");
        coloured(p->to, text, length, comment);
        fputc('\n', p->to);
        text += length + (text[length] == '\n');
        written += length + 1;
    }
    fprintf(p->to, "%s</pre></section>\n", *text ? "… the rest is left out" : "");
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

/* Calls f for every line, as far as there is room. */
static void each_line(const char *text,
                      void (*f)(const struct printing *p, int number, const char *line, size_t length),
                      const struct printing *p)
{
    const char *end = text + p->room;
    for (int number = 1; *text && text < end; number++) {
        size_t length = strcspn(text, "\n");
        f(p, number, text, length);
        text += length + (text[length] == '\n');
    }
}

static void outline_line(const struct printing *p, int number, const char *line, size_t length)
{
    size_t n;
    int level;
    const char *name = opens(line, length, &n, &level);
    if (name) {
        fprintf(p->to, "<li%s><a href=\"#%s%sptx%d\">", level ? " class=\"inner\"" : "", p->stage, p->dash, number);
        html_escape(p->to, name, n);
        fputs("</a></li>\n", p->to);
    }
}

static void code_line(const struct printing *p, int number, const char *line, size_t length)
{
    size_t n;
    int level;
    bool anchor = opens(line, length, &n, &level) != NULL;
    if (anchor) {
        fprintf(p->to, "<span id=\"%s%sptx%d\">", p->stage, p->dash, number);
    }
    coloured(p->to, line, length, "//");
    fputs(anchor ? "</span>\n" : "\n", p->to);
}

static void ptx_section(const struct printing *p, const char *ptx)
{
    open_section(p, "ptx", "PTX");
    fputs("<div class=\"split\"><ul class=\"outline\">\n", p->to);
    each_line(ptx, outline_line, p);
    fputs("</ul><pre>", p->to);
    each_line(ptx, code_line, p);
    fprintf(p->to, "%s</pre></div></section>\n", strlen(ptx) > p->room ? "… the rest is left out" : "");
}

static void plot_section(const struct printing *p, const char *plot)
{
    if (plot) {
        open_section(p, "variants", "Variants");
        fprintf(p->to, "%s</section>\n", plot);
    }
}

static void code_sections(const struct printing *p, const struct page_code *c)
{
    section(p, "plan", "Plan", c->plan, "#");
    section(p, "ir", "LLVM IR", c->ir, ";");
    ptx_section(p, c->ptx);
    section(p, "sass", "SASS", c->sass, "/*");
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
    const struct page_code *c = p->code;
    struct printing print = { to, "", "", SECTION_BYTES / (size_t)p->parts };
    link_to(to, "verdict", "Verdict", true);
    link_to(to, "stages", "Stages", c->stage);
    for (int i = 0; c->stage && i < p->parts; i++) {
        fprintf(to, "<a href=\"#%s-stage\">%s</a>\n", c[i].stage, c[i].stage);
    }
    link_to(to, "decision", "Decision", !c->stage);
    link_to(to, "cases", "Cases", !c->stage);
    link_to(to, "variants", "Variants", !c->stage && c->plot);
    link_to(to, "spec", "Spec", true);
    link_to(to, "plan", "Plan", !c->stage);
    link_to(to, "ir", "IR", !c->stage && c->ir);
    link_to(to, "ptx", "PTX", !c->stage);
    link_to(to, "sass", "SASS", !c->stage && c->sass);
    fputs("</nav>\n", to);
    fputs(p->sections, to);
    if (!c->stage) {
        plot_section(&print, c->plot);
    }
    section(&(struct printing){ to, "", "", SECTION_BYTES }, "spec", "Spec", p->spec, "#");
    for (int i = 0; i < p->parts; i++) {
        if (c[i].stage) {
            print.stage = c[i].stage;
            print.dash = "-";
            plot_section(&print, c[i].plot);
        }
        code_sections(&print, &c[i]);
    }
    fputs("</main></body></html>\n", to);
}
