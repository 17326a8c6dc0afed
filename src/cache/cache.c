/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - entries of the disk cache: found, read, written.
 *
 * File: a header of HEADER_BYTES (magic, length and hash of the content), then the content.  The name is the key in
 * hexadecimal with SUFFIX.
 */
#define _GNU_SOURCE
#include "base/os.h"
#include "cache_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONTENT_MAX = 1 << 28 };
static const uint64_t default_limit = (uint64_t)256 << 20;

struct header {
    char magic[8];
    uint64_t length;
    unsigned char digest[SHA256_BYTES];
};
static const char magic[8] = { 'p', 't', 'x', 'g', 'c', 'a', '1', '\n' };

/* ---- where ----------------------------------------------------------------------------------- */
/* base + rest as the cache's path; false when it is too long. */
static bool use_path(struct cache *c, const char *base, const char *rest)
{
    return (size_t)snprintf(c->path, sizeof c->path, "%s%s", base, rest) < sizeof c->path - NAME_ROOM;
}

/* The same below a directory of the environment, which counts when it is an absolute path. */
static bool use_variable(struct cache *c, const char *name, const char *rest)
{
    const char *base = secure_getenv(name);

    return base && base[0] == '/' && use_path(c, base, rest);
}

void cache_locate(struct cache *c, const char *place)
{
    const char *said = place ? place : secure_getenv("PTXGEN_CACHE");
    bool off = said && strcmp(said, "off") == 0, found;

    *c = (struct cache){ .limit = default_limit };
    if (said && *said && !off)
        found = use_path(c, said, "");
    else
        found = use_variable(c, "XDG_CACHE_HOME", "/ptxgen") || use_variable(c, "HOME", "/.cache/ptxgen");
    c->enabled = found && !off;
    if (!found)
        c->path[0] = 0;
}

/* DIRECTORY/KEY.SUFFIX */
static void entry_path(const struct cache *c, const struct cache_key *key, char path[CACHE_PATH_MAX])
{
    size_t n = (size_t)snprintf(path, CACHE_PATH_MAX, "%s/", c->path);

    for (int i = 0; i < SHA256_BYTES; i++)
        n += (size_t)snprintf(path + n, CACHE_PATH_MAX - n, "%02x", key->digest[i]);
    snprintf(path + n, CACHE_PATH_MAX - n, "%s", CACHE_SUFFIX);
}

/* ---- reading --------------------------------------------------------------------------------- */
void cache_content(const void *data, size_t length, struct cache_key *out)
{
    struct sha256 h;

    sha256_begin(&h);
    sha256_add(&h, data, length);
    sha256_end(&h, out->digest);
}

/* Code is run from these files: only one's own are believed, and root's. */
static bool is_trusted(const struct stat *st)
{
    return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == 0) && !(st->st_mode & S_IWOTH);
}

static bool read_content(int fd, struct str *out, struct cache_key *content)
{
    struct header h;
    char *text;

    if (!os_read(fd, &h, sizeof h) || memcmp(h.magic, magic, sizeof magic) != 0 || h.length > CONTENT_MAX)
        return false;
    text = malloc((size_t)h.length + 1);
    if (text == NULL || !os_read(fd, text, (size_t)h.length)) {
        free(text);
        return false;
    }
    cache_content(text, (size_t)h.length, content);
    if (memcmp(content->digest, h.digest, sizeof h.digest) != 0) {
        free(text);
        return false;
    }
    text[h.length] = 0;
    str_finish(out);
    *out = (struct str){ .text = text, .length = (size_t)h.length, .capacity = (size_t)h.length + 1 };
    return true;
}

bool cache_get(const struct cache *c, const struct cache_key *key, struct str *out, struct cache_key *content)
{
    struct cache_key unasked;
    char path[CACHE_PATH_MAX];
    struct stat st;
    bool ok;
    int fd;

    if (!c->enabled)
        return false;
    entry_path(c, key, path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe of this name has no writer to wait for */
    if (fd < 0)
        return false;
    ok = fstat(fd, &st) == 0 && is_trusted(&st);
    if (ok && !read_content(fd, out, content ? content : &unasked)) {
        unlink(path);
        ok = false;
    }
    if (ok)
        futimens(fd, NULL); /* it was used; where that is refused it ages */
    close(fd);
    return ok;
}

/* ---- writing --------------------------------------------------------------------------------- */
/* The directory and those above it that are missing. */
static bool make_directory(const struct cache *c)
{
    char path[CACHE_PATH_MAX];

    if (mkdir(c->path, 0700) == 0 || errno == EEXIST)
        return true;
    memcpy(path, c->path, sizeof path);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return mkdir(c->path, 0700) == 0 || errno == EEXIST;
}

void cache_put(const struct cache *c, const struct cache_key *key, const void *data, size_t length)
{
    struct header h = { .length = length };
    struct cache_key content;
    char path[CACHE_PATH_MAX], temporary[CACHE_PATH_MAX + 16];
    bool ok;
    int fd;

    if (!c->enabled || length > CONTENT_MAX || length + sizeof h > c->limit / 2 || !make_directory(c))
        return;
    entry_path(c, key, path);
    snprintf(temporary, sizeof temporary, "%s" CACHE_UNFINISHED, path);
    fd = mkostemp(temporary, O_CLOEXEC); /* with mode 0600 */
    if (fd < 0)
        return;
    memcpy(h.magic, magic, sizeof magic);
    cache_content(data, length, &content);
    memcpy(h.digest, content.digest, sizeof h.digest);
    ok = os_write(fd, &h, sizeof h) && os_write(fd, data, length);
    ok = close(fd) == 0 && ok;
    if (!ok || rename(temporary, path) != 0)
        unlink(temporary);
    cache_trim(c, c->limit);
}

void cache_drop(const struct cache *c, const struct cache_key *key)
{
    char path[CACHE_PATH_MAX];

    if (!c->enabled)
        return;
    entry_path(c, key, path);
    unlink(path);
}
