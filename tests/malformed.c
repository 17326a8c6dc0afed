/* SPDX-License-Identifier: Apache-2.0 */
/* malformed.c - broken specs at the command line: a place, the right exit status, and nothing left behind.
 *
 *     malformed PTXGEN SPECS COUNT     runs COUNT mutants of the specs in the folder SPECS
 *     malformed PTXGEN SPECS =NUMBER   prints one mutant
 *
 * Mutant k is one to four edits of spec k mod N, drawn from a generator seeded with k: the same on every machine.  Many
 * edits leave a valid spec, which must then compile to a whole file; every other must end with status 1 and a message
 * that names file, line and column, and leave no output.  Anything else (a signal, another status, a hang) is a
 * failure.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 16, SPECS_MAX = 512, SECONDS_MAX = 20 };

struct text {
    size_t length;
    char byte[TEXT_MAX];
};

/* ---- a generator that is the same everywhere (splitmix64) ----------------------------------------- */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static size_t below(uint64_t *state, size_t n) { return n ? (size_t)(random_next(state) % n) : 0; }

/* ---- edits ---------------------------------------------------------------------------------------- */
/* Replaces bytes [at, at + old) by `count` bytes; left out when the text would become too long. */
static void edit_bytes(struct text *t, size_t at, size_t old, const char *with, size_t count)
{
    if (t->length - old + count > TEXT_MAX)
        return;
    char *copy = malloc(count + 1); /* `with` may point into the text */
    memcpy(copy, with, count);
    memmove(t->byte + at + count, t->byte + at + old, t->length - at - old);
    memcpy(t->byte + at, copy, count);
    t->length = t->length - old + count;
    free(copy);
}

/* The line around a random place: its first byte and its length with the line end. */
static size_t pick_line(const struct text *t, uint64_t *r, size_t *length)
{
    size_t at = below(r, t->length), end = at;
    while (at > 0 && t->byte[at - 1] != '\n')
        at--;
    while (end < t->length && t->byte[end] != '\n')
        end++;
    *length = end - at + (end < t->length);
    return at;
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t pick_word(const struct text *t, uint64_t *r, size_t *length)
{
    size_t at = below(r, t->length), end;
    while (at < t->length && !in_word(t->byte[at]))
        at++;
    for (end = at; end < t->length && in_word(t->byte[end]); end++)
        ;
    while (at > 0 && at < t->length && in_word(t->byte[at - 1]))
        at--;
    *length = end - at;
    return at;
}

static void delete_line(struct text *t, uint64_t *r)
{
    size_t length, at = pick_line(t, r, &length);
    edit_bytes(t, at, length, "", 0);
}
static void copy_line(struct text *t, uint64_t *r)
{
    size_t length, from = pick_line(t, r, &length), unused, to = pick_line(t, r, &unused);
    edit_bytes(t, to, 0, t->byte + from, length);
}
static void indent_line(struct text *t, uint64_t *r)
{
    size_t length, at = pick_line(t, r, &length);
    bool outward = below(r, 2) && length > 2 && t->byte[at] == ' ';
    edit_bytes(t, at, outward ? 2 : 0, "   ", outward ? 0 : 1 + below(r, 3));
}
static void change_byte(struct text *t, uint64_t *r)
{
    static const char odd[] = "{}[]()<>:;,.!?*&|^%@#'\"`~-+=/\\\t \n0123456789abxyz_\x7f\xc3\xff";
    size_t at = below(r, t->length);
    edit_bytes(t, at, below(r, 2) && at < t->length, odd + below(r, sizeof odd), 1);
}
static void delete_bytes(struct text *t, uint64_t *r)
{
    size_t at = below(r, t->length), n = 1 + below(r, 12);
    edit_bytes(t, at, n < t->length - at ? n : t->length - at, "", 0);
}
static void swap_word(struct text *t, uint64_t *r)
{
    size_t from_length, to_length, from = pick_word(t, r, &from_length), to = pick_word(t, r, &to_length);
    edit_bytes(t, to, to_length, t->byte + from, from_length);
}
static void misspell(struct text *t, uint64_t *r)
{
    size_t length, at = pick_word(t, r, &length);
    if (length < 2)
        return;
    at += below(r, length - 1);
    const char turned[2] = { t->byte[at + 1], t->byte[at] };
    edit_bytes(t, at, 2, turned, 2);
}
static void foreign_word(struct text *t, uint64_t *r)
{
    static const char *const word[] = {
        "f16",
        "i64",
        "bool",
        "u8[n]",
        "f32[n, n]",
        "f32[]",
        "0",
        "-1",
        "99999999999999999999",
        "1e999",
        "nan",
        "null",
        "~",
        "yes",
        "true",
        "add",
        "argmax",
        "welford",
        "combine",
        "identity",
        "index(n)",
        "x[1]",
        "x[-1, 2]",
        "a.b.c",
        "r",
        "[]",
        "{}",
        "''",
        "|",
        ">",
        "&a",
        "*a",
        "!!str x",
        "- ",
        "? ",
        "((((",
        "1 +",
        "if x",
        "kind",
        "scan",
        "stencil",
        "over",
        "segments: {flags: x}",
        "\n",
        "\n  ",
        "\n---\n",
        "%YAML 3.0",
        "# c",
        "\xe2\x88\x9e",
    };
    size_t length, at = pick_word(t, r, &length);
    const char *w = word[below(r, sizeof word / sizeof *word)];
    edit_bytes(t, at, below(r, 3) ? length : 0, w, strlen(w));
}
static void truncate_text(struct text *t, uint64_t *r) { t->length = below(r, t->length); }

static struct text mutant(const struct text *spec, int specs, uint64_t number)
{
    static void (*const edit[])(struct text *, uint64_t *) = {
        delete_line,  copy_line, indent_line,  change_byte,  change_byte,   delete_bytes,
        delete_bytes, swap_word, foreign_word, foreign_word, truncate_text, misspell,
    };
    struct text t = spec[number % (unsigned)specs];
    uint64_t r = number;
    for (size_t edits = 1 + below(&r, 4); edits > 0; edits--)
        edit[below(&r, sizeof edit / sizeof *edit)](&t, &r);
    return t;
}

/* ---- files ---------------------------------------------------------------------------------------- */
static bool read_text(const char *path, struct text *t)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    t->length = fread(t->byte, 1, TEXT_MAX, f);
    return fclose(f) == 0;
}

static bool write_text(const char *path, const struct text *t)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    bool ok = fwrite(t->byte, 1, t->length, f) == t->length;
    return fclose(f) == 0 && ok;
}

static int is_yaml(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 5 && strcmp(e->d_name + n - 5, ".yaml") == 0;
}

static int read_specs(const char *folder, struct text *spec)
{
    struct dirent **entry;
    int n = scandir(folder, &entry, is_yaml, alphasort), count = 0;
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, entry[i]->d_name) > 0 && count < SPECS_MAX &&
            read_text(path, &spec[count]))
            count += spec[count].length > 0;
        free(path);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    return count;
}

static int not_ours(const struct dirent *e)
{
    return e->d_name[0] != '.' && strcmp(e->d_name, "mutant.yaml") != 0 && strcmp(e->d_name, "messages") != 0;
}

/* Removes what the run wrote into the current folder; gives the number of files and the size of the largest. */
static int clear_products(off_t *largest)
{
    struct dirent **entry;
    int n = scandir(".", &entry, not_ours, alphasort);
    *largest = 0;
    for (int i = 0; i < n; i++) {
        struct stat st;
        if (stat(entry[i]->d_name, &st) == 0 && st.st_size > *largest)
            *largest = st.st_size;
        unlink(entry[i]->d_name);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    return n;
}

/* ---- one run -------------------------------------------------------------------------------------- */
static int run_ptxgen(const char *ptxgen)
{
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit seconds = { SECONDS_MAX, SECONDS_MAX }, none = { 0, 0 };
        setrlimit(RLIMIT_CPU, &seconds);
        setrlimit(RLIMIT_CORE, &none);
        int out = open("messages", O_WRONLY | O_CREAT | O_TRUNC, 0600), in = open("/dev/null", O_RDONLY);
        if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
            _exit(126);
        execl(ptxgen, ptxgen, "mutant.yaml", "-o", "product.ptx", (char *)NULL);
        _exit(127);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return -1;
    return status;
}

/* "mutant.yaml:LINE:COLUMN: error: ..." somewhere in the messages. */
static bool has_place(const struct text *messages)
{
    const char *at = messages->byte, *end = at + messages->length;
    while ((at = memmem(at, (size_t)(end - at), "mutant.yaml:", 12)) != NULL) {
        int line = 0, column = 0, used = 0;
        char head[80] = { 0 };
        at += 12;
        memcpy(head, at, (size_t)(end - at) < sizeof head - 1 ? (size_t)(end - at) : sizeof head - 1);
        if (sscanf(head, "%d:%d: error:%n", &line, &column, &used) == 2 && used > 0 && line > 0 && column > 0)
            return true;
    }
    return false;
}

/* What was wrong with the run, or NULL; *accepted tells a valid mutant. */
static const char *judge(int status, struct text *messages, bool *accepted)
{
    off_t largest;
    int products = clear_products(&largest);
    *accepted = false;
    if (status == -1 || !WIFEXITED(status))
        return "ended by a signal";
    if (!read_text("messages", messages))
        return "no messages file";
    switch (WEXITSTATUS(status)) {
    case 0: *accepted = true; return products >= 1 && largest > 0 ? NULL : "status 0 without a product";
    case 1:
        if (products > 0)
            return "refused, but left a product";
        return has_place(messages) ? NULL : "refused without a place";
    default: return "neither status 0 nor 1";
    }
}

struct tally {
    _Atomic unsigned accepted, refused, failed;
};

/* Runs mutants first, first + step, … below count in a folder of its own. */
static void work(const char *ptxgen, const struct text *spec, int specs, uint64_t first, uint64_t step, uint64_t count,
                 struct tally *tally)
{
    static struct text t, messages;
    char folder[] = "/tmp/ptxgen-malformed-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0)
        _exit(1);
    for (uint64_t k = first; k < count; k += step) {
        t = mutant(spec, specs, k);
        bool accepted;
        int status = write_text("mutant.yaml", &t) ? run_ptxgen(ptxgen) : -1;
        const char *wrong = judge(status, &messages, &accepted);
        if (wrong) {
            tally->failed++;
            printf("mutant =%llu (wait status %#x): %s\n%.*s\n", (unsigned long long)k, (unsigned)status, wrong,
                   (int)(messages.length < 600 ? messages.length : 600), messages.byte);
            fflush(stdout);
        } else if (accepted) {
            tally->accepted++;
        } else {
            tally->refused++;
        }
    }
    unlink("mutant.yaml");
    unlink("messages");
    _exit(chdir("/") != 0 || rmdir(folder) != 0);
}

static int run_all(const char *ptxgen, const struct text *spec, int specs, uint64_t count)
{
    struct tally *tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *program = realpath(ptxgen, NULL);
    if (tally == MAP_FAILED || !program) {
        perror(ptxgen);
        return 1;
    }
    long workers = sysconf(_SC_NPROCESSORS_ONLN);
    for (long w = 0; w < workers; w++)
        if (fork() == 0)
            work(program, spec, specs, (uint64_t)w, (uint64_t)workers, count, tally);
    while (wait(NULL) > 0)
        ;
    unsigned done = tally->accepted + tally->refused + tally->failed;
    printf("%u mutants of %d specs: %u refused, %u valid, %u failures\n", done, specs, tally->refused, tally->accepted,
           tally->failed);
    free(program);
    return tally->failed > 0 || done != count;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: malformed PTXGEN SPECS COUNT|=NUMBER\n");
        return 2;
    }
    struct text *spec = calloc(SPECS_MAX, sizeof *spec);
    int specs = spec ? read_specs(argv[2], spec) : 0;
    if (specs == 0) {
        fprintf(stderr, "no specs in %s\n", argv[2]);
        return 1;
    }
    int result = 0;
    if (argv[3][0] == '=') {
        struct text *t = malloc(sizeof *t);
        *t = mutant(spec, specs, strtoull(argv[3] + 1, NULL, 10));
        fwrite(t->byte, 1, t->length, stdout);
        free(t);
    } else {
        setvbuf(stdout, NULL, _IOLBF, 0);
        result = run_all(argv[1], spec, specs, strtoull(argv[3], NULL, 10));
    }
    free(spec);
    return result;
}
