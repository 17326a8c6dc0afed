/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program: options in, one command, an exit status out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "progress.h"

static int run_command(int argc, char **argv, struct options *o)
{
    message_style(o);
    int status = options_parse(o, argc, argv);
    message_style(o);
    if (status != EXIT_OK) {
        return status;
    }
    if (o->help) {
        options_help(stdout, o->named ? o->command : NULL);
        return EXIT_OK;
    }
    if (o->version) {
        printf("ptxgen %s\n", ptxgen_version());
        return EXIT_OK;
    }
    if (argc < 2) {
        options_help(stderr, NULL);
        return EXIT_USAGE;
    }
    if (o->cache) {
        setenv("PTXGEN_CACHE", o->cache, 1);
    }
    if (progress_shown()) {
        interrupt_says("interrupted: no file is half written\n");
    }
    return o->command->run(o);
}

int main(int argc, char **argv)
{
    struct options o = { 0 };
    int status = run_command(argc, argv, &o);
    options_finish(&o);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == EXIT_OK) {
        status = fail(EXIT_WRONG, "cannot write standard output: %s", strerror(errno));
    }
    return status;
}
