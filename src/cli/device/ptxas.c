/* SPDX-License-Identifier: Apache-2.0 */
/* ptxas.c - NVIDIA's tools, where a CUDA toolkit is installed: ptxas makes machine code and counts registers, cuobjdump
 * or nvdisasm show it.  They are child processes that read and write files, so texts pass through a directory that only
 * this process sees.  Without ptxas, nvJitLink makes the machine code.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "parallel.h"

extern char **environ;
enum { PATH_ROOM = 4096 };

static bool runnable(char *path, const char *directory, size_t length, const char *below, const char *tool)
{
    return length > 0 && snprintf(path, PATH_ROOM, "%.*s%s/%s", (int)length, directory, below, tool) < PATH_ROOM &&
           access(path, X_OK) == 0;
}

/* The first of PATH, CUDA_HOME, CUDA_PATH and the usual places. */
static bool find_tool(const char *tool, char *path)
{
    const char *at = getenv("PATH"), *home = getenv("CUDA_HOME"), *other = getenv("CUDA_PATH");
    for (; at && *at; at += at[strcspn(at, ":")] ? strcspn(at, ":") + 1 : strcspn(at, ":")) {
        if (runnable(path, at, strcspn(at, ":"), "", tool)) {
            return true;
        }
    }
    return (home && runnable(path, home, strlen(home), "/bin", tool)) ||
           (other && runnable(path, other, strlen(other), "/bin", tool)) ||
           runnable(path, "/usr/local/cuda", 15, "/bin", tool) || runnable(path, "/opt/cuda", 9, "/bin", tool);
}

/* What PTXGEN_PTXAS names ("off": none), or that of the toolkit. */
static bool find_ptxas(char *path)
{
    const char *chosen = getenv("PTXGEN_PTXAS");
    if (chosen && *chosen) {
        return strcmp(chosen, "off") != 0 && snprintf(path, PATH_ROOM, "%s", chosen) < PATH_ROOM &&
               access(path, X_OK) == 0;
    }
    return find_tool("ptxas", path);
}

bool ptx_target(const char *ptx, char *arch, size_t capacity)
{
    const char *at = strstr(ptx, ".target ");
    size_t n = at ? strcspn(at + 8, " ,\n") : 0;
    if (n == 0 || n >= capacity) {
        return false;
    }
    memcpy(arch, at + 8, n);
    arch[n] = 0;
    return true;
}

/* Runs a program to its end: 0 when it succeeds, else an errno or -1.  `out`: what becomes of its standard output and
 * error; NULL: they go where ours go. */
static int run_tool(char *const *argv, const char *out)
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int status = 0;
    posix_spawn_file_actions_init(&files);
    if (out) {
        posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    }
    int error = posix_spawn(&child, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    while (!error && waitpid(child, &status, 0) < 0) {
        error = errno == EINTR ? 0 : errno;
    }
    return error ? error : WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* A PTX text on its way through the tools. */
struct assembly {
    char directory[PATH_ROOM / 2], source[PATH_ROOM], result[PATH_ROOM], log[PATH_ROOM], arch[32];
};

static int assembly_begin(struct assembly *a, const char *ptx, const char *arch)
{
    const char *tmp = getenv("TMPDIR");
    if (arch) {
        snprintf(a->arch, sizeof a->arch, "%s", arch);
    } else if (!ptx_target(ptx, a->arch, sizeof a->arch)) {
        return fail(EXIT_INTERNAL, "the PTX names no target");
    }
    int n = snprintf(a->directory, sizeof a->directory, "%s/ptxgen-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n >= (int)sizeof a->directory || !mkdtemp(a->directory)) {
        a->directory[0] = 0;
        return fail(EXIT_WRONG, "cannot make a temporary directory: %s", strerror(errno));
    }
    snprintf(a->source, sizeof a->source, "%s/program.ptx", a->directory);
    snprintf(a->result, sizeof a->result, "%s/program.cubin", a->directory);
    snprintf(a->log, sizeof a->log, "%s/log", a->directory);
    return write_file(a->source, ptx, strlen(ptx));
}

static void assembly_end(struct assembly *a)
{
    if (a->directory[0]) {
        unlink(a->source);
        unlink(a->result);
        unlink(a->log);
        rmdir(a->directory);
    }
}

/* ptxas on a->source; verbose: it writes about registers into a->log. */
static int assemble(struct assembly *a, char *ptxas, bool verbose)
{
    char target[64], to[] = "-o", verbosely[] = "-v";
    snprintf(target, sizeof target, "-arch=%s", a->arch);
    char *const argv[] = { ptxas, target, a->source, to, a->result, verbose ? verbosely : NULL, NULL };
    return run_tool(argv, verbose ? a->log : NULL);
}

static int assemble_by_ptxas(char *ptxas, const char *ptx, const char *arch, char **out, size_t *length)
{
    struct assembly a = { .directory = "" };
    int status = assembly_begin(&a, ptx, arch), error = status ? 0 : assemble(&a, ptxas, false);
    if (error) {
        status = error > 0 ? fail(EXIT_WRONG, "cannot run %s: %s", ptxas, strerror(error))
                           : fail(EXIT_WRONG, "%s could not assemble the PTX for %s", ptxas, a.arch);
    }
    *out = status ? NULL : read_file(a.result, length);
    if (status == EXIT_OK && !*out) {
        status = fail(EXIT_WRONG, "cannot read what %s wrote: %s", ptxas, strerror(errno));
    }
    assembly_end(&a);
    return status;
}

int cubin_assemble(const char *ptx, const char *arch, char **out, size_t *length)
{
    char ptxas[PATH_ROOM], target[32];
    int status = EXIT_OK;
    if (!arch && !ptx_target(ptx, target, sizeof target)) {
        return fail(EXIT_INTERNAL, "the PTX names no target");
    }
    if (find_ptxas(ptxas)) {
        return assemble_by_ptxas(ptxas, ptx, arch, out, length);
    }
    if (nvjitlink_assemble(ptx, arch ? arch : target, out, length, &status)) {
        return status;
    }
    return fail(EXIT_DEVICE,
                "machine code needs ptxas of a CUDA toolkit, which is neither in PATH nor in CUDA_HOME, or "
                "the library nvJitLink; the driver makes machine code of the PTX as well");
}

/* Machine code as a compressed fat binary, which the driver loads as well: a quarter to a third of the bytes.  It stays
 * as it is where the toolkit has no fatbinary, or one that cannot. */
static void compress(const char *arch, struct cubin *cubin)
{
    char tool[PATH_ROOM], image[PATH_ROOM + 64], to[] = "--create", words[] = "-64", all[] = "--compress-all";
    struct assembly a = { .directory = "" };
    size_t length = 0;
    char *const argv[] = { tool, to, a.result, words, all, image, NULL };
    if (find_tool("fatbinary", tool) && assembly_begin(&a, "", arch) == EXIT_OK &&
        write_file(a.source, cubin->code, cubin->length) == EXIT_OK) {
        snprintf(image, sizeof image, "--image3=kind=elf,sm=%s,file=%s", arch + strcspn(arch, "0123456789"), a.source);
        char *packed = run_tool(argv, a.log) == 0 ? read_file(a.result, &length) : NULL;
        if (packed && length > 0 && length < cubin->length) {
            free(cubin->code);
            *cubin = (struct cubin){ packed, length };
        } else {
            free(packed);
        }
    }
    assembly_end(&a);
}

struct assembling {
    const ptxgen_program *program;
    const char *arch;
    bool packed;
    struct cubin *cubin;
    _Atomic int status;
};

static void assemble_case(int i, void *user)
{
    struct assembling *a = user;
    if (a->status == EXIT_OK) {
        int status =
            cubin_assemble(ptxgen_program_case_ptx(a->program, i), a->arch, &a->cubin[i].code, &a->cubin[i].length);
        if (status != EXIT_OK) {
            a->status = status;
        } else if (a->packed) {
            compress(a->arch, &a->cubin[i]);
        }
    }
}

static void assemble_later_case(int i, void *user) { assemble_case(i + 1, user); }

/* The first one alone: what is missing is said once. */
int cubins_assemble(const ptxgen_program *program, const char *arch, bool packed, struct cubin *cubin)
{
    struct assembling a = { program, arch, packed, cubin, EXIT_OK };
    assemble_case(0, &a);
    parallel_for(ptxgen_program_case_count(program) - 1, core_count(), assemble_later_case, &a);
    return a.status;
}

/* What one of the tools says about the machine code; NULL; free(). */
static char *shown_by(const char *name, const char *option, const struct assembly *a)
{
    char tool[PATH_ROOM], flag[16];
    size_t length;
    char *const argv[] = { tool, flag, (char *)a->result, NULL };
    snprintf(flag, sizeof flag, "%s", option);
    return find_tool(name, tool) && run_tool(argv, a->log) == 0 ? read_file(a->log, &length) : NULL;
}

/* cuobjdump asks nvdisasm, which may be missing beside it; and nvdisasm may be there alone. */
char *sass_of(const char *ptx)
{
    char ptxas[PATH_ROOM];
    struct assembly a = { .directory = "" };
    char *text = NULL;
    if (find_ptxas(ptxas) && assembly_begin(&a, ptx, NULL) == EXIT_OK && assemble(&a, ptxas, true) == 0) {
        text = shown_by("cuobjdump", "-sass", &a);
        text = text ? text : shown_by("nvdisasm", "-c", &a);
    }
    assembly_end(&a);
    return text;
}

/* ---- what ptxas -v says ---- */

/* "… 21520 bytes smem": the number before the words, or 0. */
static int number_before(const char *line, const char *words)
{
    const char *end = strchr(line, '\n'), *at = strstr(line, words);
    if (!at || (end && at > end)) {
        return 0;
    }
    while (at > line && at[-1] == ' ') {
        at--;
    }
    while (at > line && at[-1] >= '0' && at[-1] <= '9') {
        at--;
    }
    return atoi(at);
}

/* "Compiling entry function 'NAME'" … "N bytes stack frame" … "Used N registers, … N bytes smem", entry by entry. */
static int parse_resources(char *log, ptxgen_kernel_resources *out, int capacity)
{
    int n = 0;
    for (char *line = log; line && n <= capacity; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char *name = strstr(line, "Compiling entry function '"), *end = strchr(line, '\n');
        if (name && (!end || name < end)) {
            name += strlen("Compiling entry function '");
            if (n == capacity) {
                break;
            }
            out[n++] = (ptxgen_kernel_resources){ .kernel = strndup(name, strcspn(name, "'\n")) };
        } else if (n > 0) {
            int local = number_before(line, " bytes stack frame"), registers = number_before(line, " registers"),
                shared = number_before(line, " bytes smem");
            out[n - 1].local = local ? local : out[n - 1].local;
            out[n - 1].registers = registers ? registers : out[n - 1].registers;
            out[n - 1].shared = shared ? shared : out[n - 1].shared;
        }
    }
    return n;
}

bool ptxas_there(void)
{
    char ptxas[PATH_ROOM];
    return find_ptxas(ptxas);
}

int ptxas_resources(const char *ptx, ptxgen_kernel_resources *out, int capacity)
{
    char ptxas[PATH_ROOM];
    struct assembly a = { .directory = "" };
    size_t length;
    char *log = find_ptxas(ptxas) && assembly_begin(&a, ptx, NULL) == EXIT_OK && assemble(&a, ptxas, true) == 0
                    ? read_file(a.log, &length)
                    : NULL;
    int n = log ? parse_resources(log, out, capacity) : 0;
    free(log);
    assembly_end(&a);
    return n;
}

void resources_finish(ptxgen_kernel_resources *of, int count)
{
    for (int i = 0; i < count; i++) {
        free((char *)of[i].kernel);
    }
}
