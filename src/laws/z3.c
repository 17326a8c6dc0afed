/* SPDX-License-Identifier: Apache-2.0 */
/* z3.c - the prover: libz3, opened at run time, spoken to in SMT-LIB 2.
 *
 * Terms are written as one definition each, in the order in which they were made, so the text is as long as the graph
 * is large.
 *
 * A question is put in a child process, because some of the prover's algorithms look neither at its limits nor at the
 * clock, and what does not answer in time is ended from outside.  The limit that it does look at, in its own units of
 * work, comes first, so that the same question has the same answer.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "terms.h"

#define Z3_TABLE(X)                                                                                                    \
    X(config_new, "Z3_mk_config", void *, (void))                                                                      \
    X(context_new, "Z3_mk_context", void *, (void *))                                                                  \
    X(on_error, "Z3_set_error_handler", void, (void *, void (*)(void *, int)))                                         \
    X(eval, "Z3_eval_smtlib2_string", const char *, (void *, const char *))

struct z3 {
    void *library;
    int time_limit; /* milliseconds */
#define X(name, symbol, result, params) result(*name) params;
    Z3_TABLE(X)
#undef X
};

enum { EFFORT = 8000000, TIME_LIMIT = 1000 };

/* The default handler ends the process; errors are in the answer's text anyway. */
static void ignore_error(void *context, int code)
{
    (void)context;
    (void)code;
}

static bool find_symbols(struct z3 *z)
{
#define X(name, symbol, result, params)                                                                                \
    *(void **)&z->name = dlsym(z->library, symbol);                                                                    \
    if (!z->name)                                                                                                      \
        return false;
    Z3_TABLE(X)
#undef X
    return true;
}

struct z3 *z3_open(struct arena *a, const struct laws_options *o)
{
    static const char *const usual[] = { "libz3.so.4", "libz3.so" };
    struct z3 *z = arena_new(a, struct z3, 1);
    if (o->prover && !strcmp(o->prover, "off"))
        return NULL;
    if (o->prover)
        z->library = dlopen(o->prover, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (int i = 0; !o->prover && !z->library && i < 2; i++)
        z->library = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    z->time_limit = o->time_limit > 0 ? o->time_limit : TIME_LIMIT;
    if (z->library && find_symbols(z))
        return z;
    z3_close(z);
    return NULL;
}

bool laws_prover_opens(struct arena *a, const struct laws_options *o)
{
    struct z3 *z = o->prover && strcmp(o->prover, "off") != 0 ? z3_open(a, o) : NULL;
    const bool opens = z || !o->prover || !strcmp(o->prover, "off");
    z3_close(z);
    return opens;
}

void z3_close(struct z3 *z)
{
    if (z && z->library)
        dlclose(z->library);
    if (z)
        z->library = NULL;
}

/* ---- questions ---- */

static const char *sort_name(enum level level, enum ty t, char *buffer)
{
    if (t == TY_BOOL)
        return "Bool";
    if (level == LEVEL_IDEAL)
        return ty_is_float(t) ? "Real" : "Int";
    const int exponent = t == TY_F16 ? 5 : t == TY_F64 ? 11 : 8;
    struct str s = { 0 };
    if (ty_is_float(t))
        str_printf(&s, "(_ FloatingPoint %d %d)", exponent, ty_bits(t) - exponent);
    else
        str_printf(&s, "(_ BitVec %d)", ty_bits(t));
    strcpy(buffer, s.text ? s.text : "");
    str_finish(&s);
    return buffer;
}

struct writer {
    struct terms *t;
    struct str *out;
    bool *written; /* by id */
    const char **declared;
    int ndeclared, cap_declared;
};

static void reference(const struct writer *w, term x)
{
    if (x->kind == TERM_LITERAL)
        str_add(w->out, x->op);
    else
        str_printf(w->out, "t%d", x->id);
}

static void declare_function(struct writer *w, term x)
{
    char sort[48];
    for (int i = 0; i < w->ndeclared; i++)
        if (!strcmp(w->declared[i], x->op))
            return;
    ARENA_PUSH(w->t->a, w->declared, w->ndeclared, w->cap_declared, x->op);
    str_printf(w->out, "(declare-fun |%s| (", x->op);
    for (int i = 0; i < x->nargs; i++)
        str_printf(w->out, "%s ", sort_name(w->t->level, x->arg[i]->type, sort));
    str_printf(w->out, ") %s)\n", sort_name(w->t->level, x->type, sort));
}

/* Definitions of x and of all that it is made of.  The depth is that of the spec's expressions. */
static void define(struct writer *w, term x)
{
    char sort[48];
    if (x->kind == TERM_LITERAL || w->written[x->id])
        return;
    w->written[x->id] = true;
    for (int i = 0; i < x->nargs; i++)
        define(w, x->arg[i]);
    if (x->kind == TERM_FUNCTION)
        declare_function(w, x);
    if (x->kind == TERM_VARIABLE) {
        str_printf(w->out, "(declare-fun t%d () %s)\n", x->id, sort_name(w->t->level, x->type, sort));
        return;
    }
    str_printf(w->out, x->kind == TERM_FUNCTION ? "(define-fun t%d () %s (|%s|" : "(define-fun t%d () %s (%s", x->id,
               sort_name(w->t->level, x->type, sort), x->op);
    for (int i = 0; i < x->nargs; i++) {
        str_addc(w->out, ' ');
        reference(w, x->arg[i]);
    }
    str_add(w->out, "))\n");
}

static void assert_term(struct writer *w, term x)
{
    define(w, x);
    str_add(w->out, "(assert ");
    reference(w, x);
    str_add(w->out, ")\n");
}

/* ---- answers ---- */

static void blanks(const char **at)
{
    while (**at == ' ' || **at == '\n' || **at == '(')
        ++*at;
}

static uint64_t digits(const char *text, int base) { return strtoull(text, NULL, base); }

/* "#x0f", "#b01": the number, and how many bits. */
static uint64_t bit_text(const char **at, int *bits)
{
    const bool hex = (*at)[1] == 'x';
    const char *from = *at + 2;
    *at = from + strspn(from, "0123456789abcdef");
    *bits = (int)(*at - from) * (hex ? 4 : 1);
    return digits(from, hex ? 16 : 2);
}

static bool special_float(const char *at, double *out)
{
    static const struct {
        const char *text;
        double value;
    } row[] = { { "NaN", NAN }, { "+oo", HUGE_VAL }, { "-oo", -HUGE_VAL }, { "+zero", 0 }, { "-zero", -0.0 } };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!strncmp(at, row[i].text, strlen(row[i].text))) {
            *out = row[i].value;
            return true;
        }
    return false;
}

/* "(fp #b0 #b01 #b1)", "(_ NaN 8 24)" */
static bool read_float(const char *at, enum ty t, union value *out)
{
    uint64_t image = 0;
    int bits;
    if (!strncmp(at, "(_ ", 3))
        return special_float(at + 3, &out->f);
    if (strncmp(at, "(fp ", 4) != 0)
        return false;
    at += 4;
    for (int part = 0; part < 3; part++) {
        at += strspn(at, " ");
        if (*at != '#')
            return false;
        const uint64_t x = bit_text(&at, &bits);
        image = image << bits | x;
    }
    *out = value_load(t, &image);
    return true;
}

/* "5", "(- 5)", "1.5", "(/ 1.0 3.0)", "(- (/ 1.0 3.0))" */
static bool read_number(const char *at, enum ty t, union value *out)
{
    bool negative = false, ratio = false;
    for (; *at == '(' || *at == ' ' || *at == '-' || *at == '/'; at++) {
        negative ^= *at == '-';
        ratio |= *at == '/';
    }
    if (*at < '0' || *at > '9')
        return false;
    if (ty_is_float(t)) {
        char *end;
        double x = strtod(at, &end);
        if (ratio)
            x /= strtod(end, NULL);
        out->f = ref_round(t, negative ? -x : x);
        return isfinite(out->f);
    }
    const size_t length = strspn(at, "0123456789");
    if (length > 20 || (length == 20 && strncmp(at, "18446744073709551615", 20) > 0))
        return false;
    const uint64_t magnitude = digits(at, 10);
    out->u = negative ? -magnitude : magnitude;
    const union value wrapped = ref_cast(TY_U64, t, *out);
    const bool fits = negative ? wrapped.u == out->u && (!magnitude || (ty_is_signed(t) && wrapped.i < 0))
                               : wrapped.u == magnitude && !(ty_is_signed(t) && wrapped.i < 0);
    return fits;
}

static bool read_value(const char *at, enum level level, enum ty t, union value *out)
{
    int bits;
    if (t == TY_BOOL) {
        out->i = *at == 't';
        return *at == 't' || *at == 'f';
    }
    if (level == LEVEL_IDEAL)
        return read_number(at, t, out);
    if (ty_is_float(t))
        return read_float(at, t, out);
    if (*at != '#')
        return false;
    *out = ref_cast(TY_U64, t, (union value){ .u = bit_text(&at, &bits) });
    return true;
}

/* "((t12 VALUE))" */
static bool read_answer(const char *text, enum level level, enum ty t, union value *out)
{
    blanks(&text);
    text += strcspn(text, " ");
    text += strspn(text, " \n");
    return read_value(text, level, t, out);
}

static void read_model(struct z3 *z, void *context, enum level level, const term *ask, int nask, union value *model,
                       bool *given)
{
    for (int i = 0; i < nask; i++) {
        struct str question = { 0 };
        model[i] = (union value){ 0 };
        if (ask[i]->kind == TERM_LITERAL)
            str_printf(&question, "(get-value (%s))", ask[i]->op);
        else
            str_printf(&question, "(get-value (t%d))", ask[i]->id);
        const char *answer = question.failed ? "" : z->eval(context, question.text);
        if (ask[i]->kind == TERM_LITERAL) /* is repeated, in whatever words it has */
            given[i] = read_value(ask[i]->op, level, ask[i]->type, &model[i]);
        else
            given[i] = read_answer(answer, level, ask[i]->type, &model[i]);
        str_finish(&question);
    }
}

/* ---- the child ---- */

/* What comes back: the answer, then the model. */
struct reply {
    enum answer answer;
    int n;
};

/* A child that may still compute: its own time counts, so that a busy machine gives the same answers as an idle one. */
struct patience {
    pid_t child;
    int cpu_limit;     /* milliseconds */
    uint64_t deadline; /* nanoseconds on the clock on the wall, far beyond */
};

static bool is_patient(const struct patience *p)
{
    clockid_t clock;
    struct timespec used;
    if (os_nanoseconds() > p->deadline)
        return false;
    if (clock_getcpuclockid(p->child, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return true; /* it has ended: what it wrote is in the pipe */
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000 <= p->cpu_limit;
}

static bool receive_all(int from, void *data, size_t n, const struct patience *p)
{
    char *at = data;
    while (n > 0) {
        struct pollfd ready = { .fd = from, .events = POLLIN };
        if (poll(&ready, 1, 20) <= 0) {
            if (!is_patient(p))
                return false;
            continue;
        }
        const ssize_t got = read(from, at, n);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        at += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

static void answer_in_child(struct z3 *z, int to, const char *text, enum level level, const term *ask, int nask,
                            union value *model, bool *given)
{
    void *context = z->context_new(z->config_new());
    struct reply reply = { ANSWER_UNKNOWN, 0 };
    z->on_error(context, ignore_error);
    const char *said = z->eval(context, text);
    if (said && !strcmp(said, "unsat\n"))
        reply.answer = ANSWER_NO;
    if (said && !strcmp(said, "sat\n")) {
        reply = (struct reply){ ANSWER_YES, nask };
        read_model(z, context, level, ask, nask, model, given);
    }
    if (os_write(to, &reply, sizeof reply) && os_write(to, model, sizeof *model * (size_t)reply.n))
        os_write(to, given, sizeof *given * (size_t)reply.n);
}

static enum answer put_question(struct z3 *z, const char *text, enum level level, const term *ask, int nask,
                                union value *model, bool *given)
{
    struct reply reply = { ANSWER_UNKNOWN, 0 };
    int pipe_end[2], status;
    if (pipe(pipe_end) != 0)
        return ANSWER_UNKNOWN;
    const pid_t child = fork();
    if (child == 0) {
        answer_in_child(z, pipe_end[1], text, level, ask, nask, model, given);
        _exit(0);
    }
    close(pipe_end[1]);
    if (child > 0) {
        const struct patience p = { child, z->time_limit, os_nanoseconds() + 20 * (uint64_t)z->time_limit * 1000000 };
        bool good = receive_all(pipe_end[0], &reply, sizeof reply, &p);
        good = good && receive_all(pipe_end[0], model, sizeof *model * (size_t)reply.n, &p);
        good = good && receive_all(pipe_end[0], given, sizeof *given * (size_t)reply.n, &p);
        if (!good)
            reply.answer = ANSWER_UNKNOWN;
        kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(pipe_end[0]);
    return reply.answer;
}

enum answer z3_ask(struct z3 *z, struct terms *t, const term *fact, int nfacts, bool clean, const term *ask, int nask,
                   union value *model, bool *given)
{
    struct str text = { 0 };
    struct writer w = { .t = t, .out = &text, .written = arena_new(t->a, bool, t->n + 1) };
    if (t->lost)
        return ANSWER_UNKNOWN;
    str_printf(&text, "(set-option :rlimit %d)\n", EFFORT);
    for (int i = 0; i < t->nfacts; i++)
        assert_term(&w, t->fact[i]);
    for (int i = 0; clean && i < t->nclean; i++)
        assert_term(&w, t->clean[i]);
    for (int i = 0; i < nfacts; i++)
        assert_term(&w, fact[i]);
    for (int i = 0; i < nask; i++)
        define(&w, ask[i]);
    str_add(&text, "(check-sat)\n");
    const enum answer answer =
        text.failed ? ANSWER_UNKNOWN : put_question(z, text.text, t->level, ask, nask, model, given);
    str_finish(&text);
    return answer;
}
