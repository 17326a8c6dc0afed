/* SPDX-License-Identifier: Apache-2.0 */
/* laws_text.c - verdicts in words: names, messages, and the text in which a report is kept. */
#include <stdlib.h>
#include <string.h>

#include "laws.h"

/* Changed with every change of what is tried, proved or said, so that kept reports of another version are not found. */
#define LAWS_VERSION "laws 2"

const char *law_name(enum law law)
{
    static const char *const name[LAW_COUNT] = { "associative", "commutative", "identity", "idempotent" };
    return name[law];
}

const char *law_verdict_text(enum law_verdict v, bool integers)
{
    switch (v) {
    case LAW_PROVED: return "proved";
    case LAW_PROVED_IDEAL: return integers ? "proved over the integers" : "proved over the reals";
    case LAW_REFUTED: return "refuted";
    case LAW_UNKNOWN: return "unknown";
    default: return "none";
    }
}

/* ---- messages ---- */

static void complain(struct ptxgen_session *s, const struct problem *p, const struct reduction *red,
                     const struct law_report *r, enum law law)
{
    static const enum diag_code code[LAW_COUNT] = { D_NOT_ASSOCIATIVE, D_NOT_COMMUTATIVE, D_NOT_IDENTITY,
                                                    D_NOT_ASSOCIATIVE };
    const struct law_finding *f = &r->law[law];
    const struct op *op = red->op;
    const bool user = !op->builtin;
    const struct expr *at = law == LAW_IDENTITY ? op->identity[f->field] : op->combine[f->field];
    const char *what = law == LAW_IDENTITY      ? "the identity changes a state"
                       : law == LAW_COMMUTATIVE ? "the operator is not commutative"
                                                : "the operator is not associative";
    struct diag *m =
        diag_error(&s->diags, code[law], user ? at->at : red->at, "%s%s%s: %s", what, p->nreductions > 1 ? " in " : "",
                   p->nreductions > 1 ? red->name : "", f->example ? f->example : "");
    if (law == LAW_IDENTITY && r->identity)
        diag_hint(&s->diags, m, "the identity is %s", r->identity);
    else if (law == LAW_COMMUTATIVE)
        diag_hint(&s->diags, m, "declare 'commutative: false'");
}

void laws_complain(struct ptxgen_session *s, const struct problem *p, const struct law_report *report)
{
    for (int i = 0; i < p->nreductions; i++)
        for (int law = 0; law < LAW_COUNT; law++)
            if (report[i].law[law].expected && report[i].law[law].verdict == LAW_REFUTED)
                complain(s, p, &p->reduction[i], &report[i], (enum law)law);
}

/* ---- keeping ---- */

void laws_key(const struct problem *p, int i, struct str *out)
{
    struct problem plain = *p;
    plain.name = "";
    plain.strategy = NULL;
    plain.ntunables = 0;
    str_printf(out, LAWS_VERSION " of %d\n", i);
    problem_print(&plain, out);
}

/* One line per law: verdict, expected, field, and the texts, separated by tabs; '-' for none. */
void laws_write(const struct law_report *r, struct str *out)
{
    str_printf(out, LAWS_VERSION "\n%s\t%s\t%d\t%s\n", r->name, r->operator, r->integers,
               r->identity ? r->identity : "-");
    for (int i = 0; i < LAW_COUNT; i++) {
        const struct law_finding *f = &r->law[i];
        str_printf(out, "%d\t%d\t%d\t%s\t%s\t%s\n", f->verdict, f->expected, f->field, f->example ? f->example : "-",
                   f->cause ? f->cause : "-", f->method);
    }
}

static const char *word(struct arena *a, const char **at)
{
    const size_t n = strcspn(*at, "\t\n");
    const char *from = *at;
    *at += n + (from[n] != '\0');
    return n == 1 && *from == '-' ? NULL : arena_strndup(a, from, n);
}

static int small(struct arena *a, const char **at, int most)
{
    const char *text = word(a, at);
    const int x = text ? atoi(text) : 0;
    return x < 0 || x > most ? 0 : x;
}

bool laws_read(struct arena *a, const char *text, struct law_report *out)
{
    const char *at = text;
    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    if (strncmp(text, LAWS_VERSION "\n", sizeof LAWS_VERSION) != 0 || lines != 2 + LAW_COUNT)
        return false;
    word(a, &at);
    *out = (struct law_report){ .name = word(a, &at), .operator= word(a, &at) };
    out->integers = small(a, &at, 1);
    out->identity = word(a, &at);
    for (int i = 0; i < LAW_COUNT; i++) {
        struct law_finding *f = &out->law[i];
        f->verdict = (enum law_verdict)small(a, &at, LAW_ABSENT);
        f->expected = small(a, &at, 1);
        f->field = small(a, &at, STATE_FIELDS_MAX - 1);
        f->example = word(a, &at);
        f->cause = word(a, &at);
        f->method = word(a, &at);
    }
    return out->name && out->operator;
}
