/* SPDX-License-Identifier: Apache-2.0 */
/* cache_files.c - the cache's directory as a whole: counting, clearing, and keeping it small.
 *
 * Only files that are named like entries, or like what an unfinished writer leaves, are looked at: the directory may be
 * one that the user named by mistake.
 */
#define _GNU_SOURCE
#include "cache_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { UNFINISHED_SECONDS = 3600 }; /* nobody writes for so long */

enum file_kind { FILE_OTHER, FILE_ENTRY, FILE_UNFINISHED };

static enum file_kind kind_of(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef"), suffix = strlen(CACHE_SUFFIX);

    if (digits != 2 * SHA256_BYTES || strncmp(name + digits, CACHE_SUFFIX, suffix) != 0)
        return FILE_OTHER;
    name += digits + suffix;
    return *name == 0                                                 ? FILE_ENTRY
           : strlen(name) == strlen(CACHE_UNFINISHED) && *name == '.' ? FILE_UNFINISHED
                                                                      : FILE_OTHER;
}

struct file {
    char name[NAME_ROOM];
    struct timespec used;
    uint64_t bytes;
};
struct listing {
    int n, capacity;
    struct file *file;
    uint64_t bytes;
};

static void add(struct listing *l, const char *name, const struct stat *st)
{
    if (l->n == l->capacity) {
        int capacity = l->capacity ? 2 * l->capacity : 64;
        struct file *grown = realloc(l->file, sizeof *grown * (size_t)capacity);

        if (grown == NULL)
            return; /* what is not listed is not deleted now */
        l->file = grown;
        l->capacity = capacity;
    }
    memcpy(l->file[l->n].name, name, strlen(name) + 1); /* kind_of() knows its length */
    l->file[l->n].used = st->st_mtim;
    l->file[l->n++].bytes = (uint64_t)st->st_size;
    l->bytes += (uint64_t)st->st_size;
}

/* All entries; those of unfinished writers that are surely gone are deleted on the way. */
static void list(DIR *d, struct listing *out)
{
    const time_t now = time(NULL);

    *out = (struct listing){ 0 };
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        enum file_kind kind = kind_of(e->d_name);
        struct stat st;

        if (kind == FILE_OTHER || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (kind == FILE_ENTRY)
            add(out, e->d_name, &st);
        else if (now - st.st_mtime > UNFINISHED_SECONDS)
            unlinkat(dirfd(d), e->d_name, 0);
    }
}

static int older_first(const void *a, const void *b)
{
    const struct timespec *x = &((const struct file *)a)->used, *y = &((const struct file *)b)->used;

    return x->tv_sec != y->tv_sec ? (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec)
                                  : (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

void cache_count(const struct cache *c, struct cache_stats *out)
{
    DIR *d = c->path[0] ? opendir(c->path) : NULL;
    struct listing l;

    *out = (struct cache_stats){ 0 };
    if (d == NULL)
        return;
    list(d, &l);
    out->entries = l.n;
    out->bytes = (int64_t)l.bytes;
    free(l.file);
    closedir(d);
}

void cache_trim(const struct cache *c, uint64_t bytes)
{
    DIR *d = c->path[0] ? opendir(c->path) : NULL;
    struct listing l;

    if (d == NULL)
        return;
    list(d, &l);
    if (l.bytes > bytes) {
        qsort(l.file, (size_t)l.n, sizeof *l.file, older_first);
        /* A quarter more, so that not every new entry has to make room again. */
        for (int i = 0; i < l.n && l.bytes > bytes - bytes / 4; i++) {
            unlinkat(dirfd(d), l.file[i].name, 0);
            l.bytes -= l.file[i].bytes;
        }
    }
    free(l.file);
    closedir(d);
}

bool cache_clear(const struct cache *c)
{
    DIR *d = c->path[0] ? opendir(c->path) : NULL;
    int failure = 0;

    if (d == NULL)
        return c->path[0] == 0 || errno == ENOENT;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (kind_of(e->d_name) != FILE_OTHER && unlinkat(dirfd(d), e->d_name, 0) != 0 && errno != ENOENT)
            failure = errno;
    closedir(d);
    errno = failure;
    return failure == 0;
}
