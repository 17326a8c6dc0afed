/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the commands and options, as two tables, and parsing by them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

/* In the order of the C_ bits. */
const struct command command_table[] = {
    { "compile", "SPEC.yaml", "generate PTX and its manifest (the default command)",
      "Writes NAME.ptx and NAME.json in the current directory, or what --emit asks for.", cmd_compile },
    { "check", "SPEC.yaml...", "diagnose specs and judge their operators",
      "Reports errors and warnings, and judges the operators: associative, commutative, identity, idempotent. A law\n"
      "that fails only by overflow, rounding or special values is a note. A law that fails in exact arithmetic is an\n"
      "error where it is declared or relied upon.",
      cmd_check },
    { "explain", "SPEC.yaml | PTXG-nnnn", "say what was chosen and why, or what a message means",
      "Prints the chosen strategies and the reasons, or the explanation of a message's code.", cmd_explain },
    { "run", "SPEC.yaml", "generate, run on data, and show or verify the results",
      "DATA is FILE.npy, random[:SEED], iota or const:V, for all inputs; without any --input they are random:1.\n"
      "Sizes and seeds may be written 1000000, 1e6, 2^20, 1Mi.",
      cmd_run },
    { "schema", "", "print the JSON Schema of the spec language", "", cmd_schema },
    { "devices", "", "list the devices that a run can use", "", cmd_devices },
    { "bench", "SPEC.yaml", "measure on a GPU",
      "Times launches back to back in a stream and from a graph, with inputs that rotate through more memory than the\n"
      "L2 cache holds: median, 10th and 90th percentile, bytes per second. Sizes and data as in 'ptxgen run'.",
      cmd_bench },
    { "cache", "path|stats|clear", "the disk cache of compiled code",
      "Holds the code of programs that ran on a GPU. PTXGEN_CACHE names its directory, or is off.", cmd_cache },
    { "variants", "SPEC.yaml", "list every variant with its id",
      "A variant is a strategy with a value for each of its tunables; --variant=ID pins one. Counts the variants of "
      "each\n"
      "strategy and lists up to --limit variants. --set restricts them, also to several values: --set threads=128,256.",
      cmd_variants },
    { "tune", "SPEC.yaml", "search for the fastest variant",
      "Compiles variants, checks the results of each, measures them, drops the slow ones early, and writes the "
      "fastest\n"
      "into a tuning file that 'ptxgen run' and ptxgen_jit() use. Sizes and data as in 'ptxgen run'. After an\n"
      "interruption, the same command continues.",
      cmd_tune },
    { "reference", "[manual]", "print the reference: all tables, as Markdown",
      "With the word manual, print the commands and options as sections of the manual page.", cmd_reference },
    { "new", "reduce|scan|stencil|map|stages", "print a commented spec to begin with",
      "Prints the spec, or writes it into the file of -o, which must not exist.", cmd_new },
    { "help", "[COMMAND]", "show the commands, or the options of one", "", cmd_help },
    { "complete", "[WORD]...", "print what a shell offers for the last word",
      "For the completions of bash, zsh and fish: a candidate per line, a tab, and what it means.", cmd_complete },
};
const int command_count = sizeof command_table / sizeof *command_table;

#define AT(field) offsetof(struct options, field)
const struct option option_table[] = {
    { "output", 'o', O_TEXT, AT(out), C_COMPILE | C_NEW, "FILE",
      "where to write; - is standard output; a directory for several products" },
    { "emit", 0, O_LIST, AT(emit), C_COMPILE, "KIND",
      "ptx, cubin, ll, plan, problem, dot, manifest, header, tvm-ffi or explain; may be repeated" },
    { "split", 0, O_FLAG, AT(split), C_COMPILE, NULL, "a PTX file (or cubin) per case" },
    { "with", 0, O_TEXT, AT(with), C_COMPILE, "cubin",
      "--emit=header: machine code too, for each of --arch=sm_NN,...; the PTX is for the first" },
    { "keep", 0, O_FLAG, AT(keep), C_COMPILE, NULL,
      "keep the code of all cases in the disk cache, machine code by ptxas too: processes on a GPU load it" },
    { "arch", 0, O_TEXT, AT(arch), C_PLAN, "sm_NN",
      "target architecture, or native: the GPU's own (default: sm_80; on a GPU native)" },
    { "ptx", 0, O_TEXT, AT(ptx), C_PLAN, "NN", "PTX version, 80 for 8.0 (default: the lowest that is needed)" },
    { "set", 0, O_LIST, AT(set), C_PLAN, "TUNABLE=VALUE",
      "pin a tunable, or the strategy; of a program STAGE:TUNABLE=VALUE" },
    { "plan", 0, O_TEXT, AT(plan), C_PIN, "FILE", "use this plan (from --emit=plan) instead of choosing" },
    { "variant", 0, O_TEXT, AT(variant), C_PIN, "ID",
      "use this variant (from 'ptxgen variants') instead of choosing; of a program STAGE:ID" },
    { "tuning", 0, O_TEXT, AT(tuning), C_PIN | C_TUNE, "FILE|off",
      "the tuning file (default on a GPU: PTXGEN_TUNING, then XDG_DATA_HOME/ptxgen/tuning.yaml)" },
    { "stage", 0, O_TEXT, AT(stage), C_PLAN | C_CHECK, "NAME",
      "one stage of a spec with stages, as a spec of its own: its inputs are arrays of the program and of earlier "
      "stages" },
    { "journal", 0, O_TEXT, AT(journal), C_TUNE | C_EXPLAIN, "FILE",
      "tune: results, from which a later run continues (default: in the cache); explain: those that a page shows; of a "
      "program a.journal stands for a.STAGE.journal of each stage" },
    { "limit", 0, O_TEXT, AT(limit), C_TUNE | C_VARIANTS, "N",
      "tune: variants to measure (default 500; on the host 20); variants: how many to show, drawn at random where "
      "there "
      "are more, or all (default 100)" },
    { "strategy", 0, O_TEXT, AT(strategy), C_TUNE | C_VARIANTS, "NAME,...",
      "only these strategies; the same as --set strategy=" },
    { "main", 0, O_FLAG, AT(main), C_VARIANTS, NULL,
      "vary only the tunables that matter most; the others keep their usual values" },
    { "budget", 0, O_TEXT, AT(budget), C_TUNE, "SECONDS", "stop taking new variants after this time" },
    { "seed", 0, O_TEXT, AT(seed), C_TUNE | C_VARIANTS, "N", "of the random selection (default 1)" },
    { "reference", 0, O_TEXT, AT(reference), C_TUNE, "oracle|default",
      "what results are checked against (default: the oracle up to 2^27 elements, then the default's results)" },
    { "emit-def", 0, O_TEXT, AT(emit_def), C_TUNE, "FILE",
      "append a row for src/lower/tuning.def; - is standard output" },
    { "export", 0, O_TEXT, AT(export), C_TUNE, "t1|t4",
      "also write NAME.t1.json (the space) or NAME.t4.json (the results)" },
    { "compile", 0, O_FLAG, AT(compile), C_VARIANTS, NULL,
      "compile those shown: times, failures, variants of the same code; with --size what that size takes" },
    { "all", 0, O_FLAG, AT(all), C_VARIANTS | C_EXPLAIN, NULL,
      "variants: also illegal combinations of tunables; explain: also what does not apply, and all evidence" },
    { "jobs", 'j', O_TEXT, AT(jobs), C_VARIANTS | C_TUNE, "N", "threads that compile (default: as many as cores)" },
    { "math-library", 0, O_TEXT, AT(math_library), C_PLAN, "FILE", "libdevice or libclc bitcode (default: searched)" },
    { "size", 0, O_LIST, AT(size), C_PLAN, "NAME=N", "a size: of the run; when only compiling, fixed in the code" },
    { "input", 0, O_LIST, AT(input), C_RUN | C_BENCH | C_EXPLAIN | C_TUNE, "NAME=DATA", "elements of an input" },
    { "param", 0, O_LIST, AT(param), C_RUN | C_BENCH | C_EXPLAIN | C_TUNE, "NAME=VALUE", "value of a param" },
    { "output", 0, O_LIST, AT(output), C_RUN, "NAME=FILE", "write an output as .npy; - prints all of it" },
    { "device", 0, O_TEXT, AT(device), C_RUN | C_BENCH | C_EXPLAIN | C_TUNE, "DEVICE",
      "auto (default), cpu, cuda or cuda:N" },
    { "devices", 0, O_TEXT, AT(devices), C_RUN, "N,N,...",
      "share the run among these GPUs of this machine, through NCCL" },
    { "distributed", 0, O_FLAG, AT(distributed), C_RUN, NULL,
      "share the run among the ranks that mpirun starts, on the host executor" },
    { "ranks", 0, O_TEXT, AT(ranks), C_EXPLAIN, "N,N,...", "print only the predicted times on N GPUs" },
    { "shard", 0, O_TEXT, AT(shard), C_RUN | C_EXPLAIN, "NAME",
      "with --devices, --distributed or --ranks, the dimension that is split (default: the first)" },
    { "shard-block", 0, O_TEXT, AT(shard_block), C_RUN, "N",
      "with --devices or --distributed, blocks of N elements are dealt to the ranks in turn (default: consecutive "
      "parts)" },
    { "gpu", 0, O_TEXT, AT(gpu), C_EXPLAIN | C_VARIANTS, "NAME",
      "a known GPU that times are predicted for, as in H200 (default: this machine's, or a usual one)" },
    { "laws", 0, O_FLAG, AT(laws), C_PLAN, NULL, "judge the operators, and use commutativity that is proved" },
    { "no-laws", 0, O_FLAG, AT(no_laws), C_CHECK, NULL, "leave the laws of operators alone" },
    { "prover", 0, O_TEXT, AT(prover), C_CHECK | C_PLAN, "FILE|off",
      "libz3 in an unusual place; off: no proofs by libz3" },
    { "samples", 0, O_TEXT, AT(samples), C_BENCH | C_TUNE, "N", "measurements per row (default 31)" },
    { "no-graph", 0, O_FLAG, AT(no_graph), C_BENCH, NULL, "in a stream only" },
    { "no-verify", 0, O_FLAG, AT(no_verify), C_BENCH, NULL, "do not compare with the sequential reference" },
    { "cache", 0, O_TEXT, AT(cache), C_PLAN | C_CACHE | C_CHECK, "DIR|off", "the disk cache, instead of PTXGEN_CACHE" },
    { "verify", 0, O_FLAG, AT(verify), C_RUN, NULL,
      "compare with the sequential reference; exit status 4 on a difference" },
    { "json", 0, O_FLAG, AT(json), C_RUN | C_DEVICES | C_BENCH | C_CACHE | C_EXPLAIN | C_VARIANTS | C_TUNE | C_CHECK,
      NULL, "print results as JSON" },
    { "simt", 0, O_TEXT, AT(simt), C_RUN, "MODES", "modes of the host executor: seed:N,race,weak,..." },
    { "unaligned", 0, O_TEXT, AT(unaligned), C_RUN | C_BENCH | C_TUNE, "N",
      "place every array N elements past an aligned address (for tests)" },
    { "html", 0, O_TEXT, AT(html), C_EXPLAIN, "FILE",
      "write a self-contained page: spec, decision, plan, code, variants" },
    { "diagnostics", 0, O_TEXT, AT(diagnostics), C_ALL, "text|json", "form of messages on standard error" },
    { "color", 0, O_TEXT, AT(color), C_ALL, "auto|always|never", "colour of messages; auto respects NO_COLOR" },
    { "help", 'h', O_FLAG, AT(help), C_ALL, NULL, "show this help" },
    { "version", 'V', O_FLAG, AT(version), C_ALL, NULL, "show the version" },
};
const int option_count = sizeof option_table / sizeof *option_table;
_Static_assert(sizeof option_table / sizeof *option_table <= OPTIONS_MAX, "names have room");

int command_bit(const struct command *c) { return 1 << (c - command_table); }

const char *setting_value(const char *item, int *name_length)
{
    const char *equals = strchr(item, '=');
    *name_length = equals ? (int)(equals - item) : (int)strlen(item);
    return equals ? equals + 1 : NULL;
}

/* Edit distance, given up beyond 3. */
static int distance(const char *a, int n, const char *b)
{
    int m = (int)strlen(b), row[64];
    if (n > 63 || m > 63) {
        return 4;
    }
    for (int j = 0; j <= m; j++) {
        row[j] = j;
    }
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int above = row[j], replace = diagonal + (a[i - 1] != b[j - 1]);
            int insert = (row[j - 1] < above ? row[j - 1] : above) + 1;
            row[j] = replace < insert ? replace : insert;
            diagonal = above;
        }
    }
    return row[m];
}

const char *nearest(const char *name, int length, const char *const *names, int count)
{
    int best = length < 3 ? length : 3; /* something must be left of the name */
    const char *found = NULL;
    for (int i = 0; i < count; i++) {
        int d = distance(name, length, names[i]);
        if (d < best) {
            best = d;
            found = names[i];
        }
    }
    return found;
}

static int append(struct list *l, const char *item)
{
    const char **grown = realloc(l->item, sizeof *grown * (size_t)(l->n + 1));
    if (!grown) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    l->item = grown;
    l->item[l->n++] = item;
    return EXIT_OK;
}

void options_finish(struct options *o)
{
    struct list *all[] = { &o->operands, &o->emit, &o->set, &o->input, &o->size, &o->param, &o->output };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->item);
        *all[i] = (struct list){ 0, NULL };
    }
}

const struct option *find_option(const char *text, int bits, int *length)
{
    bool is_long = text[1] == '-';
    *length = is_long ? (int)strcspn(text + 2, "=") : 1;
    for (int k = 0; k < option_count; k++) {
        const struct option *t = &option_table[k];
        bool same = is_long ? strlen(t->name) == (size_t)*length && !strncmp(t->name, text + 2, (size_t)*length)
                            : t->letter == text[1];
        if (same && t->commands & bits) {
            return t;
        }
    }
    return NULL;
}

const char *attached_value(const char *text, int length)
{
    const char *at = text[1] == '-' ? text + 2 + length + (text[2 + length] == '=') : text + 2;
    return (text[1] == '-' ? text[2 + length] : text[2]) ? at : NULL;
}

static int unknown_option(const struct options *o, const char *text, int length)
{
    const char *names[OPTIONS_MAX];
    int n = 0;
    for (int i = 0; i < option_count; i++) {
        if (option_table[i].commands & command_bit(o->command)) {
            names[n++] = option_table[i].name;
        }
    }
    const char *near = nearest(text, length, names, n);
    return fail(EXIT_USAGE, "'%s' has no option --%.*s%s%s%s", o->command->name, length, text,
                near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

const char *next_word(const char **at, int *length)
{
    while (*at && **at) {
        const char *word = *at;
        *length = (int)strcspn(word, "|");
        *at = word + *length + (word[*length] == '|');
        if (word[0] >= 'a' && word[0] <= 'z' && !memchr(word, '=', (size_t)*length)) {
            return word;
        }
    }
    return NULL;
}

/* An argument such as text|json, without a part in capitals, is a choice. */
static int check_choice(const struct option *row, const char *value)
{
    const char *at = row->argument, *word;
    bool choice = strchr(at, '|') && strcspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(at);
    int n;
    while (choice && (word = next_word(&at, &n)) != NULL) {
        choice = strlen(value) != (size_t)n || strncmp(word, value, (size_t)n) != 0;
    }
    return choice ? fail(EXIT_USAGE, "--%s=%s: expected %s", row->name, value, row->argument) : EXIT_OK;
}

static int store(struct options *o, const struct option *row, const char *value)
{
    void *place = (char *)o + row->place;
    switch (row->kind) {
    case O_FLAG: *(bool *)place = true; return EXIT_OK;
    case O_TEXT: *(const char **)place = value; return check_choice(row, value);
    case O_LIST: return append(place, value);
    }
    return EXIT_INTERNAL;
}

/* One option at argv[*i], which moves on to the last argument used. */
static int parse_option(struct options *o, int argc, char **argv, int *i)
{
    const char *text = argv[*i];
    int length;
    const struct option *row = find_option(text, command_bit(o->command), &length);
    if (!row) {
        return text[1] == '-' ? unknown_option(o, text + 2, length)
                              : fail(EXIT_USAGE, "'%s' has no option -%c", o->command->name, text[1]);
    }
    const char *attached = attached_value(text, length);
    if (row->kind == O_FLAG) {
        return attached ? fail(EXIT_USAGE, "--%s takes no value", row->name) : store(o, row, NULL);
    }
    if (!attached && *i + 1 >= argc) {
        return fail(EXIT_USAGE, "--%s needs a value: %s", row->name, row->argument);
    }
    return store(o, row, attached ? attached : argv[++*i]);
}

const struct command *command_by_name(const char *name)
{
    for (int i = 0; i < command_count; i++) {
        if (!strcmp(name, command_table[i].name)) {
            return &command_table[i];
        }
    }
    return NULL;
}

int unknown_command(const char *name)
{
    const char *names[OPTIONS_MAX];
    for (int i = 0; i < command_count; i++) {
        names[i] = command_table[i].name;
    }
    const char *near = nearest(name, (int)strlen(name), names, command_count);
    return fail(EXIT_USAGE, "'%s' is neither a command nor a file%s%s%s", name, near ? "; did you mean '" : "",
                near ? near : "", near ? "'?" : "");
}

int first_operand(int n, const char *const *word)
{
    for (int i = 0; i < n; i++) {
        int length;
        if (word[i][0] != '-' || !word[i][1]) {
            return i;
        }
        if (!strcmp(word[i], "--")) {
            break;
        }
        const struct option *row = find_option(word[i], C_ALL, &length);
        i += row && row->kind != O_FLAG && !attached_value(word[i], length);
    }
    return n;
}

/* A word that cannot be meant as a file: small letters alone, and no such file. */
static bool is_command_word(const char *word)
{
    return *word && strspn(word, "abcdefghijklmnopqrstuvwxyz") == strlen(word) && access(word, F_OK) != 0;
}

int options_parse(struct options *o, int argc, char **argv)
{
    int where = argc > 0 ? 1 + first_operand(argc - 1, (const char *const *)argv + 1) : 0, status = EXIT_OK;
    const struct command *found = where < argc ? command_by_name(argv[where]) : NULL;
    *o = (struct options){ .command = found ? found : &command_table[0], .named = found != NULL };
    if (!found && where < argc && is_command_word(argv[where])) {
        return unknown_command(argv[where]);
    }
    bool only_operands = false;
    for (int i = 1; i < argc && status == EXIT_OK; i++) {
        if (found && i == where) {
            continue;
        }
        if (!only_operands && !strcmp(argv[i], "--")) {
            only_operands = true;
        } else if (!only_operands && argv[i][0] == '-' && argv[i][1]) {
            status = parse_option(o, argc, argv, &i);
        } else {
            status = append(&o->operands, argv[i]);
        }
    }
    return status;
}
