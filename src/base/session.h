/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - what every stage needs: memory and a place for messages.  One per compilation thread. */
#ifndef PTXGEN_SESSION_H
#define PTXGEN_SESSION_H

#include "arena.h"
#include "diag.h"
#include "ptxgen/ptxgen.h"

struct ptxgen_session {
    struct arena arena;
    struct diags diags;
    ptxgen_log_function *log;
    ptxgen_log_level log_most;
    void *log_user;
    const struct span *blamed; /* NULL, or what of a spec the oracle's message is about */
    _Atomic int holders;       /* besides the caller: readers of what lies in the arena, beyond the caller's destroy */
};

/* Report from outside the stages, where memory may be exhausted: then the message is lost. s NULL: nowhere. */
void session_report(struct ptxgen_session *s, enum diag_code code, const char *text);

/* LACKS(s, p, out): is one of the required parameters p and out NULL?  Says which, where s is not.  NEED(PTXGEN_USAGE,
 * s, p, out) returns then. */
#define LACKS(s, ...)                                                                                                  \
    session_lacks((s), __func__, #__VA_ARGS__, (const void *const[]){ __VA_ARGS__ },                                   \
                  sizeof((const void *const[]){ __VA_ARGS__ }) / sizeof(void *))
#define NEED(refusal, ...)                                                                                             \
    do {                                                                                                               \
        if (LACKS(__VA_ARGS__))                                                                                        \
            return refusal;                                                                                            \
    } while (0)
bool session_says_lacks(struct ptxgen_session *s, const char *function, const char *names, size_t missing);
static inline bool session_lacks(struct ptxgen_session *s, const char *function, const char *names,
                                 const void *const *given, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (given[i] == NULL)
            return session_says_lacks(s, function, names, i);
    return false;
}
/* What a caller finds behind `out` after a failure. */
#define CLEAR(out) ((out) ? (void)(*(out) = NULL) : (void)0)

/* TAKE(s, options, &to): the caller's options, of whatever size, or the defaults for NULL.  False after a message. */
#define TAKE(s, options, to) session_take((s), #options, (options), (to), sizeof *(to))
bool session_take(struct ptxgen_session *s, const char *what, const void *given, void *to, size_t size);

/* Tell the caller's log, with the time since `since` (a session_now()) unless that is 0. */
double session_now(void);
void session_log(struct ptxgen_session *s, ptxgen_log_level level, double since, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Work with memory of its own, which is freed behind it, also when memory runs out on the way, here or in the session's
 * arena: then the session's handler is called as always. */
void session_scratch(struct ptxgen_session *s, void (*work)(struct arena *scratch, void *user), void *user);

#endif
