/* SPDX-License-Identifier: Apache-2.0 */
/* laws.h - do the operators of a problem obey the laws that spreading work over threads relies on?
 *
 * A law is judged at two levels.  Bits: in the declared types, with wrapping, rounding, NaN and the sign of zero.
 * Ideal: over the integers and the real numbers, that is, wherever no operation leaves the range of its type and none
 * has to round.  What holds ideally may be relied upon (a float sum); what does not hold even there is a mistake in the
 * spec.
 *
 * States are those that can occur: what the map makes of elements, and combinations of these.  The identity is none of
 * them; its law says that adding it would change nothing.
 */
#ifndef PTXGEN_LAWS_H
#define PTXGEN_LAWS_H

#include "frontend/problem/problem.h"

enum law {
    LAW_ASSOCIATIVE, /* (ab)c = a(bc) */
    LAW_COMMUTATIVE, /* ab = ba */
    LAW_IDENTITY,    /* ea = a = ae */
    LAW_IDEMPOTENT,  /* aa = a */
    LAW_COUNT
};

enum law_verdict {
    LAW_PROVED,       /* bit for bit */
    LAW_PROVED_IDEAL, /* over the integers or reals; the example, if there is one, shows how bits differ */
    LAW_REFUTED,      /* also over the integers or reals; there is an example */
    LAW_UNKNOWN,      /* neither; the example, if there is one, shows how bits differ */
    LAW_ABSENT,       /* there is no identity to judge */
};

struct law_finding {
    enum law_verdict verdict;
    bool expected;       /* declared in the spec, or assumed without being declared (associativity) */
    int field;           /* of the state: where the example's two sides differ */
    const char *example; /* "a = 3, b = 1, c = 1: (ab)c = 1, a(bc) = 3", or NULL */
    const char
        *cause; /* what makes the bits differ: "overflow", "rounding", "NaN", …; NULL without example or when refuted */
    const char *method; /* how the verdict was found */
};

/* Texts live in the session's arena. */
struct law_report {
    const char *name;     /* of the reduction or scan */
    const char *operator; /* of the built-in, or "user"; with `starts`, that it begins anew */
    bool integers;        /* the ideal numbers are integers alone */
    const char *
        identity; /* one that was found for an operator without, or with a wrong one: "0", "{n: 0, mean: 0}"; or NULL */
    bool prover;  /* there was one */
    struct law_finding law[LAW_COUNT];
};

struct laws_options {
    const char *prover; /* path of libz3, "off", or NULL: where the system's loader finds it */
    int time_limit;     /* of a question to the prover, in milliseconds of a processor; 0: default */
};

/* Is the prover that is named there?  Also where none is named. */
bool laws_prover_opens(struct arena *a, const struct laws_options *o);

/* The problem with all operators of p as reductions, p's own ones first: those that elements of outputs meet with, or those
 * of gathers. */
const struct problem *laws_subject(struct arena *a, const struct problem *p);

/* One report for every reduction or scan of p, into report[0 .. p->nreductions).  Refuted laws are also errors among
 * the session's messages when they are expected. */
void laws_check(struct ptxgen_session *s, const struct problem *p, const struct laws_options *o,
                struct law_report *report);

/* The errors alone, for reports that were kept. */
void laws_complain(struct ptxgen_session *s, const struct problem *p, const struct law_report *report);

const char *law_name(enum law law);
const char *law_verdict_text(enum law_verdict v, bool integers);

/* All that a report of reduction number i depends on, as text. */
void laws_key(const struct problem *p, int i, struct str *out);
/* A report to text and back; false when the text is none. */
void laws_write(const struct law_report *r, struct str *out);
bool laws_read(struct arena *a, const char *text, struct law_report *out);

/* The problem with operators that are proved commutative, bit for bit, marked so; p itself where there is nothing to
 * add. */
const struct problem *laws_apply(struct ptxgen_session *s, const struct problem *p, const struct law_report *report);

#endif
