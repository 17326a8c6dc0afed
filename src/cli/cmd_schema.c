/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_schema.c - the JSON Schema of the spec language, and the commands that are announced but not there. */
#include <string.h>

#include "cli.h"

int cmd_schema(const struct options *o)
{
    if (o->operands.n) {
        return fail(EXIT_USAGE, "unexpected '%s'", o->operands.item[0]);
    }
    char *text = ptxgen_schema();
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
