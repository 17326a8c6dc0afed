/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - the public API: numbers of callers, checked where they come in.  Tunables are checked in lower/. */
#include <math.h>

#include "api_impl.h"
#include "frontend/problem/problem.h"

enum { SETTINGS_MAX = 4096, MULTIPROCESSORS_MAX = 1 << 20, SECONDS_MAX = 1000 };

static bool refuse(ptxgen_session *s, const char *what, int64_t value)
{
    diag_error(&s->diags, D_BAD_ARGUMENT, span_none(), "%s: %lld is out of range", what, (long long)value);
    return false;
}

bool api_fit_number(ptxgen_session *s, const char *what, int64_t value, int64_t least, int64_t most)
{
    return (value >= least && value <= most) || refuse(s, what, value);
}

bool api_fit_count(ptxgen_session *s, const char *what, int64_t count, int64_t most, const void *list)
{
    return api_fit_number(s, what, count, 0, list ? most : 0);
}

bool api_fit_given(ptxgen_session *s, const char *what, const void *given)
{
    if (!given)
        diag_error(&s->diags, D_BAD_ARGUMENT, span_none(), "%s is NULL", what);
    return given;
}

bool api_fit_seconds(ptxgen_session *s, const char *what, double seconds)
{
    if (isfinite(seconds) && seconds >= 0 && seconds <= SECONDS_MAX)
        return true;
    diag_error(&s->diags, D_BAD_ARGUMENT, span_none(), "%s: %g is no time in seconds", what, seconds);
    return false;
}

bool api_fit_sizes(ptxgen_session *s, const struct problem *p, const int64_t *size, int64_t least)
{
    bool ok = true;
    for (int i = 0; size && i < p->nsizes; i++)
        ok = ok && api_fit_number(s, p->size[i].name, size[i], least, INT64_MAX);
    return ok;
}

bool api_fit_plan_options(ptxgen_session *s, const struct problem *p, const ptxgen_plan_options *o)
{
    bool ok = api_fit_count(s, "setting_count", o->setting_count, SETTINGS_MAX, o->setting) &&
              api_fit_number(s, "ptx", o->ptx, 0, 999) &&
              api_fit_number(s, "multiprocessors", o->multiprocessors, 0, MULTIPROCESSORS_MAX) &&
              api_fit_sizes(s, p, o->size, -1);
    for (int i = 0; ok && i < o->setting_count; i++)
        ok = (o->setting[i].name && o->setting[i].value) || refuse(s, "setting without a name or a value", i);
    return ok;
}
