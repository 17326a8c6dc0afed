/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the table of options, for parsing (options.c), and for help, the reference and completion
 * (options_show.c). */
#ifndef PTXGEN_CLI_OPTIONS_H
#define PTXGEN_CLI_OPTIONS_H

#include <stddef.h>

#include "cli.h"

enum {
    C_COMPILE = 1,
    C_CHECK = 2,
    C_EXPLAIN = 4,
    C_RUN = 8,
    C_SCHEMA = 16,
    C_DEVICES = 32,
    C_BENCH = 64,
    C_CACHE = 128,
    C_VARIANTS = 256,
    C_TUNE = 512,
    C_REFERENCE = 1024,
    C_NEW = 2048,
    C_HELP = 4096,
    C_COMPLETE = 8192,
    C_ALL = 16383
};
enum { C_PIN = C_COMPILE | C_EXPLAIN | C_RUN | C_BENCH, C_PLAN = C_PIN | C_VARIANTS | C_TUNE };

enum option_kind { O_FLAG, O_TEXT, O_LIST };
struct option {
    const char *name;
    char letter;
    enum option_kind kind;
    size_t place;
    int commands;
    const char *argument, *help;
};
enum { OPTIONS_MAX = 64 };
extern const struct option option_table[];
extern const int option_count;

int command_bit(const struct command *c);
/* The row of an option as written, -x or --name or --name=value, of these commands; *length: of its name. */
const struct option *find_option(const char *text, int bits, int *length);
/* The value in the same argument, or NULL. */
const char *attached_value(const char *text, int length);
/* The number of the first word that is neither an option nor the value of one; n: there is none. */
int first_operand(int n, const char *const *word);
/* The next of the words a|b|C that are in small letters; NULL: no more. *at moves on. */
const char *next_word(const char **at, int *length);

#endif
