/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - what the library says about itself: the JSON Schema of the spec language, and the reference. */
#include <string.h>

#include "cli.h"

/* Prints a text of the library and frees it. */
static int print_text(char *text)
{
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

int cmd_schema(const struct options *o)
{
    return o->operands.n ? fail(EXIT_USAGE, "unexpected '%s'", o->operands.item[0]) : print_text(ptxgen_schema());
}

/* The library knows all but the command line. */
int cmd_reference(const struct options *o)
{
    const bool manual = o->operands.n == 1 && !strcmp(o->operands.item[0], "manual");
    if (o->operands.n && !manual) {
        return fail(EXIT_USAGE, "unexpected '%s'", o->operands.item[0]);
    }
    const int status = manual ? EXIT_OK : print_text(ptxgen_reference());
    if (status == EXIT_OK) {
        (manual ? options_manual : options_reference)(stdout);
    }
    return status;
}
