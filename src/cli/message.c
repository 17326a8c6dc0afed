/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - messages on standard error, as text or JSON, and the exit statuses that go with them. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static struct {
    bool json, colour;
} style;

void message_style(const struct options *o)
{
    const char *no_color = getenv("NO_COLOR");
    style.json = o->diagnostics && !strcmp(o->diagnostics, "json");
    if (o->color && strcmp(o->color, "auto") != 0) {
        style.colour = !strcmp(o->color, "always");
    } else {
        style.colour = isatty(STDERR_FILENO) && !(no_color && no_color[0]);
    }
}

void json_text(FILE *to, const char *s)
{
    fputc('"', to);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            fprintf(to, "\\%c", c);
        } else if (c < 32) {
            fprintf(to, "\\u%04x", c);
        } else {
            fputc(c, to);
        }
    }
    fputc('"', to);
}

void json_number(FILE *to, double x)
{
    if (isnan(x)) {
        fputs("\"nan\"", to);
    } else if (isinf(x)) {
        fputs(x < 0 ? "\"-inf\"" : "\"inf\"", to);
    } else {
        print_value(to, PTXGEN_F64, (ptxgen_value){ .f = x });
    }
}

static void vsay(const char *severity, const char *format, va_list ap)
{
    char text[2048];
    vsnprintf(text, sizeof text, format, ap);
    if (style.json) {
        fprintf(stderr, "{\"diagnostics\":[{\"severity\":\"%s\",\"message\":", severity);
        json_text(stderr, text);
        fputs("}]}\n", stderr);
        return;
    }
    const char *on = !strcmp(severity, "error")     ? "\033[1;31m"
                     : !strcmp(severity, "warning") ? "\033[1;35m"
                                                    : "\033[1;36m";
    fprintf(stderr, "ptxgen: %s%s:%s %s\n", style.colour ? on : "", severity, style.colour ? "\033[0m" : "", text);
}

void say(const char *severity, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsay(severity, format, ap);
    va_end(ap);
}

int fail(int status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsay("error", format, ap);
    va_end(ap);
    if (status == EXIT_USAGE && !style.json) {
        fputs("'ptxgen --help' and 'ptxgen COMMAND --help' show the usage\n", stderr);
    }
    return status;
}

void show_diagnostics(ptxgen_session *s)
{
    if (ptxgen_diagnostic_count(s) == 0) {
        return;
    }
    char *text = style.json ? ptxgen_diagnostics_json(s) : ptxgen_diagnostics_text(s, style.colour);
    fputs(text ? text : "ptxgen: error: out of memory\n", stderr);
    if (text && text[0] && text[strlen(text) - 1] != '\n') {
        fputc('\n', stderr);
    }
    ptxgen_free(text);
    ptxgen_diagnostics_clear(s);
}

static int exit_of(ptxgen_status status)
{
    switch (status) {
    case PTXGEN_OK: return EXIT_OK;
    case PTXGEN_USAGE: return EXIT_USAGE;
    case PTXGEN_INVALID:
    case PTXGEN_UNSUPPORTED:
    case PTXGEN_IO: return EXIT_WRONG;
    case PTXGEN_NO_DEVICE:
    case PTXGEN_RANKS:
    case PTXGEN_NO_MEMORY: return EXIT_DEVICE;
    case PTXGEN_MISMATCH: return EXIT_DIFFERENT;
    case PTXGEN_STOPPED:
    case PTXGEN_FINDING:
    case PTXGEN_INTERNAL: return EXIT_INTERNAL;
    }
    return EXIT_INTERNAL;
}

int fail_call(ptxgen_session *s, ptxgen_status status, const char *what)
{
    if (status != PTXGEN_OK && (!s || ptxgen_diagnostic_count(s) == 0)) {
        say("error", "%s: %s", what, ptxgen_status_text(status));
    } else {
        show_diagnostics(s);
    }
    return exit_of(status);
}
