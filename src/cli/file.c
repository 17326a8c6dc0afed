/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - whole files in, and files out that are either complete or not there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

char *read_file(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        return NULL;
    }
    size_t capacity = 1 << 16, n = 0;
    char *text = malloc(capacity);
    while (text) {
        n += fread(text + n, 1, capacity - n - 1, f);
        if (n < capacity - 1) {
            break;
        }
        char *grown = realloc(text, capacity *= 2);
        if (!grown) {
            free(text);
        }
        text = grown;
    }
    int error = !text ? ENOMEM : ferror(f) ? (errno ? errno : EIO) : 0;
    fclose(f);
    if (error) {
        free(text);
        errno = error;
        return NULL;
    }
    text[n] = 0;
    *length = n;
    return text;
}

bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
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

int write_file(const char *path, const void *data, size_t length)
{
    if (!strcmp(path, "-")) {
        return write_stdout(data, length);
    }
    struct stat st;
    bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode); /* a device or pipe is not replaced */
    size_t n = strlen(path) + 16;
    char *temporary = malloc(n);
    if (!temporary) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    snprintf(temporary, n, "%s%s", path, special ? "" : ".XXXXXX");
    FILE *f = NULL;
    int fd = -1, error = 0;
    if (special) {
        f = fopen(path, "wb");
        error = !f ? errno : fwrite(data, 1, length, f) != length ? EIO : 0;
        error = f && fclose(f) != 0 && !error ? errno : error;
    } else if ((fd = mkstemp(temporary)) < 0) {
        error = errno;
    } else {
        mode_t mask = umask(0);
        umask(mask);
        error = write_all(fd, data, length);
        error = !error && fchmod(fd, 0666 & ~mask) != 0 ? errno : error;
        error = close(fd) != 0 && !error ? errno : error;
        error = !error && rename(temporary, path) != 0 ? errno : error;
        if (error) {
            unlink(temporary);
        }
    }
    free(temporary);
    return error ? fail(EXIT_WRONG, "cannot write %s: %s", path, strerror(error)) : EXIT_OK;
}
