/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - see session.h. */
#include "session.h"

#include "os.h"

#include <stdio.h>
#include <string.h>

void session_report(struct ptxgen_session *s, enum diag_code code, const char *text)
{
    jmp_buf exhausted, *outer;
    const char *file;

    if (!s)
        return;
    outer = s->arena.oom;
    file = s->diags.file;
    s->diags.file = NULL; /* it is not about the spec that was read last */
    s->arena.oom = &exhausted;
    if (!setjmp(exhausted))
        diag_error(&s->diags, code, span_none(), "%s", text);
    s->arena.oom = outer;
    s->diags.file = file;
}

bool session_says_lacks(struct ptxgen_session *s, const char *function, const char *names, size_t missing)
{
    char text[200];
    for (size_t i = 0; i < missing; i++) {
        names += strcspn(names, ",");
        names += strspn(names, ", ");
    }
    snprintf(text, sizeof text, "%s: %.*s is NULL", function, (int)strcspn(names, ", "), names);
    session_report(s, D_BAD_ARGUMENT, text);
    return true;
}

bool session_take(struct ptxgen_session *s, const char *what, const void *given, void *to, size_t size)
{
    enum { SIZE_MOST = 4096 }; /* of a structure that is none yet: its bytes may be anything */
    size_t has = size;
    char text[200];
    memset(to, 0, size);
    memcpy(to, &size, sizeof size);
    if (!given)
        return true;
    memcpy(&has, given, sizeof has);
    bool fits = has >= sizeof has && has <= SIZE_MOST;
    if (!fits)
        snprintf(text, sizeof text, "%s: struct_size is %zu: start from the _INIT of the structure", what, has);
    for (size_t i = size; fits && i < has; i++)
        if (((const char *)given)[i]) {
            fits = false;
            snprintf(text, sizeof text, "%s: a field is set that this library does not know", what);
        }
    if (fits)
        memcpy((char *)to + sizeof has, (const char *)given + sizeof has, (has < size ? has : size) - sizeof has);
    else
        session_report(s, D_BAD_ARGUMENT, text);
    return fits;
}

double session_now(void) { return 1e-9 * (double)os_nanoseconds(); }

void session_log(struct ptxgen_session *s, ptxgen_log_level level, double since, const char *format, ...)
{
    char text[1000];
    va_list ap;
    if (!s->log || level > s->log_most)
        return;
    va_start(ap, format);
    size_t n = (size_t)vsnprintf(text, sizeof text - 30, format, ap);
    va_end(ap);
    n = n < sizeof text - 31 ? n : sizeof text - 31;
    if (since > 0)
        snprintf(text + n, sizeof text - n, " in %.3f ms", 1e3 * (session_now() - since));
    s->log(level, text, s->log_user);
}

void session_scratch(struct ptxgen_session *s, void (*work)(struct arena *scratch, void *user), void *user)
{
    struct arena scratch;
    jmp_buf exhausted, *outer = s->arena.oom;
    arena_init(&scratch);
    if (setjmp(exhausted)) {
        arena_finish(&scratch);
        s->arena.oom = outer;
        longjmp(*outer, 1);
    }
    scratch.oom = s->arena.oom = &exhausted;
    work(&scratch, user);
    s->arena.oom = outer;
    arena_finish(&scratch);
}
