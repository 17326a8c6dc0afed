/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the disk cache of compiled code: where it is, what is in it, away with it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "ptxgen/launch.h"

/* 0, or why no file can be made in the directory, which may still be missing: then the nearest one above it counts. */
static int unusable(char *path)
{
    struct stat st;
    while (stat(path, &st) != 0) {
        char *slash = strrchr(path, '/');
        if (errno != ENOENT) {
            return errno;
        }
        if (!slash) {
            return access(".", W_OK | X_OK) == 0 ? 0 : errno;
        }
        slash[slash == path] = 0;
    }
    return !S_ISDIR(st.st_mode) ? ENOTDIR : access(path, W_OK | X_OK) != 0 ? errno : 0;
}

bool warn_cache(void)
{
    static bool asked, usable;
    ptxgen_cache_info info;
    char *path = NULL;
    ptxgen_cache_query(NULL, &info);
    if (!asked && info.enabled && (path = strdup(info.path)) != NULL) {
        int error = unusable(path);
        usable = !error;
        if (error) {
            say("warning",
                "the cache directory %s cannot be used (%s): nothing is kept; --cache=DIR names another, "
                "--cache=off none",
                info.path, strerror(error));
        }
    }
    asked = true;
    free(path);
    return usable;
}

static int show_path(const ptxgen_cache_info *info)
{
    puts(info->path);
    return EXIT_OK;
}

static int show_stats(const struct options *o, const ptxgen_cache_info *info)
{
    if (o->json) {
        printf("{\"path\": ");
        json_text(stdout, info->path);
        printf(", \"enabled\": %s, \"entries\": %lld, \"bytes\": %lld, \"limit\": %lld}\n",
               info->enabled ? "true" : "false", (long long)info->entries, (long long)info->bytes,
               (long long)info->limit);
        return EXIT_OK;
    }
    printf("%s%s\n%lld entr%s, %.1f MiB of at most %.0f\n", info->path, info->enabled ? "" : " (off)",
           (long long)info->entries, info->entries == 1 ? "y" : "ies", (double)info->bytes / 0x1p20,
           (double)info->limit / 0x1p20);
    return EXIT_OK;
}

static int clear(const ptxgen_cache_info *info)
{
    if (!info->enabled) {
        puts("the cache is off: nothing is cleared");
        return EXIT_OK;
    }
    return ptxgen_cache_clear(NULL) == PTXGEN_OK ? EXIT_OK
                                                 : fail(EXIT_WRONG, "cannot clear the cache: %s", strerror(errno));
}

int cmd_cache(const struct options *o)
{
    const char *what = o->operands.n == 1 ? o->operands.item[0] : "";
    ptxgen_cache_info info;
    ptxgen_cache_query(NULL, &info);
    if (!info.path[0]) {
        return fail(EXIT_WRONG, "no place for a cache: neither PTXGEN_CACHE, XDG_CACHE_HOME nor HOME names one");
    }
    if (!strcmp(what, "path")) {
        return show_path(&info);
    }
    if (!strcmp(what, "stats")) {
        return show_stats(o, &info);
    }
    if (!strcmp(what, "clear")) {
        return clear(&info);
    }
    return fail(EXIT_USAGE, "expected path, stats or clear");
}
