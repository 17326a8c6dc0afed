/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - what the library says about itself: the JSON Schema of the spec language, and the reference. */
#include <string.h>

#include "cli.h"

/* Prints a text of the library and frees it. */
static int print_text(const struct options *o, char *(*make)(void))
{
    if (o->operands.n) {
        return fail(EXIT_USAGE, "unexpected '%s'", o->operands.item[0]);
    }
    char *text = make();
    if (!text) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = write_file("-", text, strlen(text));
    if (status == EXIT_OK && text[0] && text[strlen(text) - 1] != '\n') {
        putchar('\n');
    }
    ptxgen_free(text);
    return status;
}

int cmd_schema(const struct options *o) { return print_text(o, ptxgen_schema); }
/* The library knows all but the command line. */
int cmd_reference(const struct options *o)
{
    int status = print_text(o, ptxgen_reference);
    if (status == EXIT_OK) {
        options_reference(stdout);
    }
    return status;
}
