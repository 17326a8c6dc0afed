/* SPDX-License-Identifier: Apache-2.0 */
/* cubin.c - machine code by NVIDIA's assembler: ptxas of an installed CUDA toolkit, as a child process; else by
 * nvJitLink.
 *
 * ptxas reads and writes files, so both texts pass through a directory that only this process sees.
 */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

extern char **environ;
enum { PATH_ROOM = 4096 };

static bool runnable(char *path, const char *directory, size_t length, const char *below)
{
    return length > 0 && snprintf(path, PATH_ROOM, "%.*s%s/ptxas", (int)length, directory, below) < PATH_ROOM &&
           access(path, X_OK) == 0;
}

/* What PTXGEN_PTXAS names ("off": none), or the first of PATH, CUDA_HOME, CUDA_PATH and the usual places. */
static bool find_ptxas(char *path)
{
    const char *at = getenv("PATH"), *home = getenv("CUDA_HOME"), *other = getenv("CUDA_PATH");
    const char *chosen = getenv("PTXGEN_PTXAS");
    if (chosen && *chosen) {
        return strcmp(chosen, "off") != 0 && snprintf(path, PATH_ROOM, "%s", chosen) < PATH_ROOM &&
               access(path, X_OK) == 0;
    }
    for (; at && *at; at += at[strcspn(at, ":")] ? strcspn(at, ":") + 1 : strcspn(at, ":")) {
        if (runnable(path, at, strcspn(at, ":"), "")) {
            return true;
        }
    }
    return (home && runnable(path, home, strlen(home), "/bin")) ||
           (other && runnable(path, other, strlen(other), "/bin")) || runnable(path, "/usr/local/cuda", 15, "/bin") ||
           runnable(path, "/opt/cuda", 9, "/bin");
}

/* The architecture that the PTX names in `.target sm_NN`. */
static bool target_of(const char *ptx, char *arch, size_t capacity)
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

/* Its messages go where ours go. */
static int run_ptxas(const char *ptxas, const char *arch, const char *in, const char *out)
{
    char name[] = "ptxas", target[64], to[] = "-o", source[PATH_ROOM], result[PATH_ROOM];
    pid_t child;
    int status = 0;
    snprintf(target, sizeof target, "-arch=%s", arch);
    snprintf(source, sizeof source, "%s", in);
    snprintf(result, sizeof result, "%s", out);
    char *const argv[] = { name, target, source, to, result, NULL };
    int error = posix_spawn(&child, ptxas, NULL, NULL, argv, environ);
    if (error) {
        return fail(EXIT_WRONG, "cannot start %s: %s", ptxas, strerror(error));
    }
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return fail(EXIT_WRONG, "%s: %s", ptxas, strerror(errno));
        }
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return fail(EXIT_WRONG, "%s could not assemble the PTX for %s", ptxas, arch);
    }
    return EXIT_OK;
}

static int assemble_in(const char *directory, const char *ptxas, const char *arch, const char *ptx, char **out,
                       size_t *length)
{
    char source[PATH_ROOM], result[PATH_ROOM];
    snprintf(source, sizeof source, "%s/program.ptx", directory);
    snprintf(result, sizeof result, "%s/program.cubin", directory);
    int status = write_file(source, ptx, strlen(ptx));
    status = status ? status : run_ptxas(ptxas, arch, source, result);
    *out = status ? NULL : read_file(result, length);
    if (status == EXIT_OK && !*out) {
        status = fail(EXIT_WRONG, "cannot read what %s wrote: %s", ptxas, strerror(errno));
    }
    unlink(source);
    unlink(result);
    return status;
}

static int assemble_by_ptxas(const char *ptxas, const char *arch, const char *ptx, char **out, size_t *length)
{
    char directory[PATH_ROOM / 2];
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(directory, sizeof directory, "%s/ptxgen-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n >= (int)sizeof directory || !mkdtemp(directory)) {
        return fail(EXIT_WRONG, "cannot make a temporary directory: %s", strerror(errno));
    }
    int status = assemble_in(directory, ptxas, arch, ptx, out, length);
    rmdir(directory);
    return status;
}

int cubin_assemble(const char *ptx, char **out, size_t *length)
{
    char ptxas[PATH_ROOM], arch[32];
    int status = EXIT_OK;
    if (!target_of(ptx, arch, sizeof arch)) {
        return fail(EXIT_INTERNAL, "the PTX names no target");
    }
    if (find_ptxas(ptxas)) {
        return assemble_by_ptxas(ptxas, arch, ptx, out, length);
    }
    if (nvjitlink_assemble(ptx, arch, out, length, &status)) {
        return status;
    }
    return fail(EXIT_DEVICE,
                "--emit=cubin needs ptxas of a CUDA toolkit, which is neither in PATH nor in CUDA_HOME, or "
                "the library nvJitLink; the driver makes machine code of the PTX as well");
}
