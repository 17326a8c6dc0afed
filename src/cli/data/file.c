/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - whole files in, and files out that are either complete or not there. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

size_t read_part(FILE *from, void *to, size_t length)
{
    size_t n = 0;
    for (size_t got = 1; got > 0 && n < length; n += got) {
        got = fread((char *)to + n, 1, length - n, from);
    }
    return n;
}

enum { FILE_MAX = 64 << 20 }; /* of texts; a device may have no end */

static char *read_stream(FILE *f, size_t *length)
{
    size_t capacity = 1 << 16, n = 0;
    char *text = malloc(capacity);
    while (text) {
        n += fread(text + n, 1, capacity - n - 1, f);
        if (n < capacity - 1 || n > FILE_MAX) {
            break;
        }
        char *grown = realloc(text, capacity *= 2);
        if (!grown) {
            free(text);
        }
        text = grown;
    }
    int error = !text ? ENOMEM : ferror(f) ? (errno ? errno : EIO) : n > FILE_MAX ? EFBIG : 0;
    if (error) {
        free(text);
        errno = error;
        return NULL;
    }
    text[n] = 0;
    *length = n;
    return text;
}

/* Standard input can be read once, and every thread of a search reads its spec: the main thread read it before. */
static char *read_input(size_t *length)
{
    static char *text;
    static size_t n;
    if (!text && !(text = read_stream(stdin, &n))) {
        return NULL;
    }
    char *copy = malloc(n + 1);
    if (!copy) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(copy, text, n + 1);
    *length = n;
    return copy;
}

char *read_file(const char *path, size_t *length)
{
    if (!strcmp(path, "-")) {
        return read_input(length);
    }
    FILE *f = fopen(path, "rb");
    if (!f) {
        return NULL;
    }
    char *text = read_stream(f, length);
    int error = errno;
    fclose(f);
    errno = error;
    return text;
}

bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

void make_directories(const char *path)
{
    char *text = strdup(path);
    for (char *at = text ? strchr(text + 1, '/') : NULL; at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(text, 0777);
        *at = '/';
    }
    free(text);
}

static int write_stdout(const void *data, size_t length)
{
    if (fwrite(data, 1, length, stdout) != length || fflush(stdout) != 0) {
        return fail(EXIT_WRONG, "cannot write standard output: %s", strerror(errno));
    }
    return EXIT_OK;
}

/* Write and give it to the disk's care; 0 or errno. */
static int write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, data, length);
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        data += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Into what is there already: a device, a pipe, a link to a file that is not there yet. */
static int write_through(const char *path, const void *data, size_t length)
{
    FILE *f = fopen(path, "wb");
    int error = !f ? errno : fwrite(data, 1, length, f) != length ? EIO : 0;
    return f && fclose(f) != 0 && !error ? errno : error;
}

/* In place of the file, or of none (old NULL), whose owner and permissions stay. */
static int replace(const char *path, const struct stat *old, const void *data, size_t length)
{
    size_t n = strlen(path) + 16;
    char *temporary = malloc(n);
    if (!temporary) {
        return ENOMEM;
    }
    snprintf(temporary, n, "%s.XXXXXX", path);
    mode_t mask = umask(0);
    umask(mask);
    int fd = mkstemp(temporary), error = fd < 0 ? errno : write_all(fd, data, length);
    if (fd >= 0) {
        /* Where another's file may not be given back to them, it is the writer's from now on. */
        bool given =
            !old || (old->st_uid == geteuid() && old->st_gid == getegid()) || fchown(fd, old->st_uid, old->st_gid) == 0;
        mode_t mode = old ? old->st_mode & (given ? 0777 : 0700) : 0666 & ~mask;
        error = !error && fchmod(fd, mode) != 0 ? errno : error;
        error = close(fd) != 0 && !error ? errno : error;
        error = !error && rename(temporary, path) != 0 ? errno : error;
        if (error) {
            unlink(temporary);
        }
    }
    free(temporary);
    return error;
}

int write_file(const char *path, const void *data, size_t length)
{
    if (!strcmp(path, "-")) {
        return write_stdout(data, length);
    }
    struct stat st, link;
    bool linked = lstat(path, &link) == 0 && S_ISLNK(link.st_mode), there = stat(path, &st) == 0;
    char *target = linked && there ? realpath(path, NULL) : NULL; /* the link stays, what it leads to is replaced */
    sigset_t interrupt, before;                                   /* Ctrl-C waits until the file is whole */
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    int error;
    if (there ? !S_ISREG(st.st_mode) : linked) {
        error = write_through(path, data, length);
    } else if (linked && !target) {
        error = errno;
    } else {
        error = replace(target ? target : path, there ? &st : NULL, data, length);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(target);
    return error ? fail(EXIT_WRONG, "cannot write %s: %s", path, strerror(error)) : EXIT_OK;
}
