/* SPDX-License-Identifier: Apache-2.0 */
/* options_show.c - help, the reference of commands and options, and what shells offer, from the tables of options.c. */
#include <string.h>

#include "options.h"

static void help_options(FILE *to, int bits)
{
    for (int i = 0; i < option_count; i++) {
        const struct option *t = &option_table[i];
        if (t->commands & bits) {
            char left[64];
            snprintf(left, sizeof left, "%c%c%s--%s%s%s", t->letter ? '-' : ' ', t->letter ? t->letter : ' ',
                     t->letter ? ", " : "  ", t->name, t->argument ? "=" : "", t->argument ? t->argument : "");
            fprintf(to, "  %-30s %s\n", left, t->help);
        }
    }
}

void options_help(FILE *to, const struct command *c)
{
    if (c) {
        fprintf(to, "usage: ptxgen %s%s%s [OPTION]...\n\n%s.\n%s%s\n", c->name, c->operands[0] ? " " : "", c->operands,
                c->summary, c->details, c->details[0] ? "\n" : "");
        fputs("options:\n", to);
        help_options(to, command_bit(c));
        return;
    }
    fputs("usage: ptxgen SPEC.yaml [OPTION]...\n       ptxgen COMMAND [ARGUMENT]... [OPTION]...\n\n"
          "Generates GPU code (PTX) for reductions, scans, stencils and maps from YAML specs.\n\ncommands:\n",
          to);
    for (int i = 0; i < command_count; i++) {
        fprintf(to, "  %-10s %s\n", command_table[i].name, command_table[i].summary);
    }
    fputs("\noptions of 'ptxgen SPEC.yaml':\n", to);
    help_options(to, C_COMPILE);
    fputs("\n'ptxgen COMMAND --help' lists the options of a command.\n\n"
          "exit status: 0 success; 1 the spec or data is wrong; 2 usage; 3 no device, driver or memory;\n"
          "             4 --verify found a difference; 70 internal error\n",
          to);
}

/* A cell of a table: | ends one, and it is one line. */
static void cell(FILE *to, const char *text)
{
    for (; *text; text++) {
        fputs(*text == '|' ? "\\|" : (char[]){ *text == '\n' ? ' ' : *text, 0 }, to);
    }
}

/* Of the commands that take an option. */
static void names_of_commands(FILE *to, int bits)
{
    const char *before = "";
    for (int i = 0; bits != C_ALL && i < command_count; i++) {
        if (bits & command_bit(&command_table[i])) {
            fprintf(to, "%s%s", before, command_table[i].name);
            before = ", ";
        }
    }
    fputs(bits == C_ALL ? "all" : "", to);
}

void options_reference(FILE *to)
{
    fputs("\n## Commands\n\n| command | what it does |\n|---|---|\n", to);
    for (int i = 0; i < command_count; i++) {
        const struct command *c = &command_table[i];
        fprintf(to, "| `%s%s", c->name, *c->operands ? " " : "");
        cell(to, c->operands);
        fprintf(to, "` | %c%s.%s", c->summary[0] - 'a' + 'A', c->summary + 1, *c->details ? " " : "");
        cell(to, c->details);
        fputs(" |\n", to);
    }
    fputs("\n## Options\n\n| option | commands | meaning |\n|---|---|---|\n", to);
    for (int i = 0; i < option_count; i++) {
        const struct option *t = &option_table[i];
        fputs("| ", to);
        if (t->letter) {
            fprintf(to, "`-%c`, ", t->letter);
        }
        fprintf(to, "`--%s%s", t->name, t->argument ? "=" : "");
        cell(to, t->argument ? t->argument : "");
        fputs("` | ", to);
        names_of_commands(to, t->commands);
        fputs(" | ", to);
        cell(to, t->help);
        fputs(" |\n", to);
    }
}

/* Text of the manual page: what would be a hyphen is a minus, and lines are one. */
static void manual_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        fputs(*text == '-' ? "\\-" : (char[]){ *text == '\n' ? ' ' : *text, 0 }, to);
    }
}

void options_manual(FILE *to)
{
    fputs(".SH COMMANDS\n", to);
    for (int i = 0; i < command_count; i++) {
        const struct command *c = &command_table[i];
        fprintf(to, ".TP\n.BI \"%s \" \"%s\"\n%c", c->name, c->operands, c->summary[0] - 'a' + 'A');
        manual_text(to, c->summary + 1);
        fputs(".\n", to);
        manual_text(to, c->details);
        fputs(*c->details ? "\n" : "", to);
    }
    fputs(".SH OPTIONS\n", to);
    for (int i = 0; i < option_count; i++) {
        const struct option *t = &option_table[i];
        fputs(".TP\n.BI \"", to);
        if (t->letter) {
            fprintf(to, "\\-%c, ", t->letter);
        }
        fputs("\\-\\-", to);
        manual_text(to, t->name);
        fprintf(to, "%s\" \"%s\"\n", t->argument ? "=" : "", t->argument ? t->argument : "");
        manual_text(to, t->help);
        fputs("\n(", to);
        names_of_commands(to, t->commands);
        fputs(")\n", to);
    }
}

int cmd_help(const struct options *o)
{
    const struct command *c = o->operands.n ? command_by_name(o->operands.item[0]) : NULL;
    if (o->operands.n > 1) {
        return fail(EXIT_USAGE, "help on one command: unexpected '%s'", o->operands.item[1]);
    }
    if (o->operands.n && !c) {
        return unknown_command(o->operands.item[0]);
    }
    options_help(stdout, c);
    return EXIT_OK;
}

/* ---- what a shell offers ---- */
/* The values of an option, where its argument is no list of them. */
static const char *option_words(const struct option *row)
{
    static const char *const words[][2] = {
        { "emit", "ptx|cubin|ll|plan|problem|dot|manifest|header|tvm-ffi|explain" },
        { "with", "cubin" },
        { "device", "auto|cpu|cuda" },
        { "arch", "native|sm_70|sm_75|sm_80|sm_86|sm_87|sm_89|sm_90|sm_90a|sm_100|sm_103|sm_120|sm_121" },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!strcmp(words[i][0], row->name)) {
            return words[i][1];
        }
    }
    return row->argument;
}

/* The words a|b that begin with the rest of `current`, from its character `from` on. */
static void offer_words(const char *current, int from, const char *words, const char *help)
{
    int n;
    for (const char *word; (word = next_word(&words, &n)) != NULL;) {
        if (!strncmp(word, current + from, strlen(current + from))) {
            printf("%.*s%.*s\t%s\n", from, current, n, word, help);
        }
    }
}

static void offer_options(const char *current, int bits)
{
    for (int i = 0; i < option_count; i++) {
        const struct option *t = &option_table[i];
        char text[64];
        snprintf(text, sizeof text, "--%s%s", t->name, t->argument ? "=" : "");
        if (t->commands & bits && !strncmp(text, current, strlen(current))) {
            printf("%s\t%s\n", text, t->help);
        }
    }
}

static void offer_commands(const char *current)
{
    for (int i = 0; i < command_count; i++) {
        offer_words(current, 0, command_table[i].name, command_table[i].summary);
    }
}

int cmd_complete(const struct options *o)
{
    const int n = o->operands.n;
    const char *const *word = o->operands.item;
    if (n == 0) {
        return EXIT_OK;
    }
    const int where = first_operand(n - 1, word);
    const struct command *c = where < n - 1 ? command_by_name(word[where]) : NULL;
    const char *current = word[n - 1], *before = n > 1 ? word[n - 2] : "", *equals = strchr(current, '=');
    const char *comma = strrchr(current, ',');
    int length, from = comma ? (int)(comma - current) + 1 : 0, bits = command_bit(c ? c : &command_table[0]);
    const struct option *row = before[0] == '-' ? find_option(before, bits, &length) : NULL;
    if (row && (row->kind == O_FLAG || attached_value(before, length))) {
        row = NULL;
    }
    if (!row && current[0] == '-' && equals) {
        row = find_option(current, bits, &length);
        from = comma ? from : (int)(equals - current) + 1;
    }
    if (row) {
        offer_words(current, from, option_words(row), row->help);
    } else if (current[0] == '-') {
        offer_options(current, bits);
    } else if (!c || !strcmp(c->name, "help")) {
        offer_commands(current);
    } else {
        offer_words(current, 0, c->operands, c->summary);
    }
    return EXIT_OK;
}
