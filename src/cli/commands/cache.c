/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the disk cache of compiled code: where it is, what is in it, away with it. */
#include <errno.h>
#include <string.h>

#include "cli.h"
#include "ptxgen/launch.h"

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
