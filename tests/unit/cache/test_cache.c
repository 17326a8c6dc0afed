/* SPDX-License-Identifier: Apache-2.0 */
/* test_cache.c - the disk cache: where it is, hits and misses, damage, size, concurrent processes, SHA-256. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache.h"

static char directory[64];
static struct cache cache;

static void setup(void)
{
    snprintf(directory, sizeof directory, "%s", "/tmp/ptxgen-test-cache-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    cache_locate(&cache, directory);
}

static void teardown(void)
{
    cache_clear(&cache);
    rmdir(directory);
}
TestSuite(cache, .init = setup, .fini = teardown);

static struct cache_key key_of(const char *text)
{
    struct cache_keying k;
    struct cache_key key;

    cache_key_begin(&k, "test");
    cache_key_text(&k, text);
    cache_key_end(&k, &key);
    return key;
}

static bool put(const char *name, const char *content)
{
    struct cache_key key = key_of(name);

    cache_put(&cache, &key, content, strlen(content));
    return true;
}

/* Is the entry there, with this content? */
static bool has(const char *name, const char *content)
{
    struct cache_key key = key_of(name);
    struct str got = { 0 };
    bool same = cache_get(&cache, &key, &got, NULL) && got.length == strlen(content) && strcmp(got.text, content) == 0;

    str_finish(&got);
    return same;
}

static int64_t entries(void)
{
    struct cache_stats stats;

    cache_count(&cache, &stats);
    return stats.entries;
}

/* The only file in the directory. */
static void only_file(char path[400])
{
    DIR *d = opendir(directory);

    path[0] = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            snprintf(path, 400, "%s/%s", directory, e->d_name);
    closedir(d);
    cr_assert(path[0]);
}

/* ---- SHA-256 --------------------------------------------------------------------------------- */
static void hex_digest(const char *text, size_t repeat, size_t step, char hex[65])
{
    unsigned char digest[SHA256_BYTES];
    size_t n = strlen(text) * repeat;
    char *all = malloc(n + 1);
    struct sha256 h;

    all[0] = 0;
    for (size_t i = 0; i < repeat; i++)
        memcpy(all + i * strlen(text), text, strlen(text));
    sha256_begin(&h);
    for (size_t i = 0; i < n; i += step)
        sha256_add(&h, all + i, n - i < step ? n - i : step);
    sha256_end(&h, digest);
    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    free(all);
}

Test(cache, the_hash_is_sha256)
{
    /* The examples of FIPS 180-2, and lengths around the end of a block (checked with sha256sum). */
    static const struct {
        const char *text;
        size_t repeat;
        const char *hex;
    } rows[] = {
        { "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
        { "a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
        { "a", 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
        { "a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
    };
    static const size_t steps[] = { 1, 3, 64, 1000 };
    char hex[65];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            hex_digest(rows[i].text, rows[i].repeat, steps[s], hex);
            cr_expect_str_eq(hex, rows[i].hex, "row %zu in steps of %zu", i, steps[s]);
        }
}

/* ---- where ----------------------------------------------------------------------------------- */
Test(cache, the_environment_says_where)
{
    static const struct {
        const char *place, *said, *xdg, *home;
        bool enabled;
        const char *path;
    } rows[] = {
        { NULL, NULL, "/x", "/h", true, "/x/ptxgen" },
        { NULL, NULL, NULL, "/h", true, "/h/.cache/ptxgen" },
        { NULL, NULL, "relative", "/h", true, "/h/.cache/ptxgen" },
        { NULL, NULL, NULL, NULL, false, "" },
        { NULL, "", "/x", "/h", true, "/x/ptxgen" },
        { NULL, "off", "/x", "/h", false, "/x/ptxgen" },
        { NULL, "/c", "/x", "/h", true, "/c" },
        { "off", "/c", "/x", "/h", false, "/x/ptxgen" },
        { "/p", "off", "/x", "/h", true, "/p" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name[] = { "PTXGEN_CACHE", "XDG_CACHE_HOME", "HOME" };
        const char *value[] = { rows[i].said, rows[i].xdg, rows[i].home };
        struct cache c;

        for (int k = 0; k < 3; k++)
            value[k] ? setenv(name[k], value[k], 1) : unsetenv(name[k]);
        cache_locate(&c, rows[i].place);
        cr_expect_eq(c.enabled, rows[i].enabled, "row %zu", i);
        cr_expect_str_eq(c.path, rows[i].path, "row %zu", i);
    }
}

Test(cache, a_path_that_is_too_long_is_no_place)
{
    char *path = malloc(CACHE_PATH_MAX + 1);
    struct cache c;

    memset(path, 'x', CACHE_PATH_MAX);
    path[0] = '/';
    path[CACHE_PATH_MAX] = 0;
    cache_locate(&c, path);
    cr_expect_not(c.enabled);
    cr_expect_str_eq(c.path, "");
    free(path);
}

/* ---- hits and misses ------------------------------------------------------------------------- */
Test(cache, what_was_put_is_found_under_its_own_key)
{
    cr_expect_not(has("a", "first"));
    put("a", "first");
    put("b", "");
    cr_expect(has("a", "first"));
    cr_expect(has("b", ""));
    cr_expect_not(has("c", "first"));
    put("a", "second");
    cr_expect(has("a", "second"));
    cr_expect_eq(entries(), 2);
}

Test(cache, keys_tell_their_parts_apart)
{
    struct cache_keying k;
    struct cache_key key[4];
    const char *const parts[4][2] = { { "ab", "c" }, { "a", "bc" }, { "abc", NULL }, { "abc", "" } };

    for (int i = 0; i < 4; i++) {
        cache_key_begin(&k, "parts");
        cache_key_text(&k, parts[i][0]);
        cache_key_text(&k, parts[i][1]);
        cache_key_end(&k, &key[i]);
        for (int j = 0; j < i; j++)
            cr_expect_neq(memcmp(&key[i], &key[j], sizeof key[i]), 0, "%d and %d", i, j);
    }
}

Test(cache, missing_directories_are_made_and_are_private)
{
    struct stat st;
    char inner[120], outer[100];

    snprintf(outer, sizeof outer, "%s/one", directory);
    snprintf(inner, sizeof inner, "%s/two", outer);
    cache_locate(&cache, inner);
    put("a", "content");
    cr_expect(has("a", "content"));
    cr_assert_eq(stat(inner, &st), 0);
    cr_expect_eq(st.st_mode & 0777, 0700);
    cache_clear(&cache);
    rmdir(inner);
    rmdir(outer);
}

Test(cache, off_neither_reads_nor_writes)
{
    put("a", "content");
    cache.enabled = false;
    cr_expect_not(has("a", "content"));
    put("b", "content");
    cr_expect_eq(entries(), 1);
}

/* ---- damage ---------------------------------------------------------------------------------- */
Test(cache, damaged_entries_are_misses_and_are_replaced)
{
    static const struct {
        long at, length; /* one byte changed, or the file cut */
    } rows[] = { { 0, -1 }, { 10, -1 }, { 20, -1 }, { 48, -1 }, { 52, -1 }, { -1, 0 }, { -1, 20 }, { -1, 50 } };
    char path[400];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put("a", "content");
        only_file(path);
        if (rows[i].at >= 0) {
            FILE *f = fopen(path, "r+b");
            int c;

            fseek(f, rows[i].at, SEEK_SET);
            c = fgetc(f);
            fseek(f, rows[i].at, SEEK_SET);
            fputc(c ^ 0x40, f);
            fclose(f);
        } else {
            cr_assert_eq(truncate(path, rows[i].length), 0);
        }
        cr_expect_not(has("a", "content"), "row %zu", i);
        cr_expect_eq(entries(), 0, "row %zu: it is deleted", i);
        put("a", "content");
        cr_expect(has("a", "content"), "row %zu: it is replaced", i);
    }
}

Test(cache, what_others_may_write_is_not_believed)
{
    char path[400];

    put("a", "content");
    only_file(path);
    cr_assert_eq(chmod(path, 0602), 0);
    cr_expect_not(has("a", "content"));
    cr_assert_eq(chmod(path, 0600), 0);
    cr_expect(has("a", "content"));
}

Test(cache, a_directory_that_cannot_be_written_only_misses)
{
    put("a", "content");
    cr_assert_eq(chmod(directory, 0500), 0);
    put("b", "content");
    cr_expect(has("a", "content"), "what is there is still read");
    if (geteuid() != 0) /* root may write everywhere */
        cr_expect_not(has("b", "content"));
    cr_assert_eq(chmod(directory, 0700), 0);
    cache_locate(&cache, "/proc/self/cmdline/cache");
    put("c", "content");
    cr_expect_not(has("c", "content"));
    cache_locate(&cache, directory);
}

/* ---- size ------------------------------------------------------------------------------------ */
static void set_age(const char *name, int seconds)
{
    char path[400] = "";
    struct cache_key key = key_of(name);
    struct timespec t[2] = { { .tv_sec = time(NULL) - seconds }, { .tv_sec = time(NULL) - seconds } };
    size_t n = (size_t)snprintf(path, sizeof path, "%s/", directory);

    for (int i = 0; i < SHA256_BYTES; i++)
        n += (size_t)snprintf(path + n, sizeof path - n, "%02x", key.digest[i]);
    snprintf(path + n, sizeof path - n, ".ptxgen");
    cr_assert_eq(utimensat(AT_FDCWD, path, t, 0), 0, "%s", path);
}

Test(cache, the_least_recently_used_go_first)
{
    char content[901];
    const char *names[] = { "a", "b", "c", "d" };

    memset(content, 'x', 900);
    content[900] = 0;
    for (int i = 0; i < 4; i++) {
        put(names[i], content);
        set_age(names[i], 1000 - i);
    }
    cr_expect(has("a", content), "used: now the youngest");
    cache.limit = 4000;
    put("e", content); /* 5 * 948 > 4000: down to 3000, three are left */
    cr_expect_eq(entries(), 3);
    cr_expect(has("a", content));
    cr_expect(has("d", content));
    cr_expect(has("e", content));
    cache.limit = 1000;
    put("f", content);
    cr_expect_not(has("f", content), "what would fill half of the cache is not kept");
}

Test(cache, only_files_of_the_cache_are_deleted)
{
    char mine[200], old[200], name[80];

    snprintf(mine, sizeof mine, "%s/notes.ptxgen", directory);
    memset(name, 'a', 64);
    name[64] = 0;
    snprintf(old, sizeof old, "%s/%s.ptxgen.abcdef", directory, name);
    for (int i = 0; i < 2; i++)
        fclose(fopen(i ? old : mine, "w"));
    put("a", "content");
    cr_expect_eq(entries(), 1);
    cr_expect_eq(access(old, F_OK), 0, "it may still be written");
    cr_expect(cache_clear(&cache));
    cr_expect_eq(entries(), 0);
    cr_expect_eq(access(mine, F_OK), 0);
    cr_expect_neq(access(old, F_OK), 0);
    unlink(mine);
}

/* ---- processes ------------------------------------------------------------------------------- */
Test(cache, processes_share_it)
{
    enum { PROCESSES = 4, ROUNDS = 200 };
    pid_t child[PROCESSES];
    char content[3000];

    memset(content, 'y', sizeof content - 1);
    content[sizeof content - 1] = 0;
    cache.limit = 20000; /* some are always being deleted */
    for (int p = 0; p < PROCESSES; p++) {
        child[p] = fork();
        for (int i = 0; child[p] == 0 && i < ROUNDS; i++) {
            char name[16];
            struct str got = { 0 };
            struct cache_key key;

            snprintf(name, sizeof name, "%d", i % 10);
            key = key_of(name);
            if (cache_get(&cache, &key, &got, NULL) && strcmp(got.text, content) != 0)
                _exit(1);
            str_finish(&got);
            put(name, content);
        }
        if (child[p] == 0)
            _exit(0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status = 0;

        waitpid(child[p], &status, 0);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d read another content", p);
    }
    cr_expect_gt(entries(), 0);
}

/* Wherever a writer is killed: entries are whole, and what was begun is no entry and goes with the others. */
Test(cache, a_writer_may_be_killed_at_any_moment)
{
    enum { KILLS = 40, NAMES = 16, BYTES = 60000 };
    char *content = malloc(BYTES);
    int written = 0;

    memset(content, 'z', BYTES - 1);
    content[BYTES - 1] = 0;
    for (int k = 0; k < KILLS; k++) {
        const pid_t child = fork();
        char name[16];
        int whole = 0;

        for (int i = 0; child == 0; i++) {
            snprintf(name, sizeof name, "%d", i % NAMES);
            put(name, content);
        }
        usleep((useconds_t)(200 + rand() % 3000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        const int64_t named = entries();
        for (int i = 0; i < NAMES; i++) {
            snprintf(name, sizeof name, "%d", i);
            whole += has(name, content);
        }
        cr_expect_eq(whole, named, "kill %d: of %d entries %d are whole", k, (int)named, whole);
        written += whole;
        cr_expect(cache_clear(&cache));
        cr_expect_eq(rmdir(directory), 0, "kill %d: something is left", k);
        mkdir(directory, 0700);
    }
    cr_expect_gt(written, 0);
    free(content);
}

/* A pipe that nobody writes into is no entry, and nobody waits for one. */
Test(cache, a_pipe_is_no_entry, .timeout = 10)
{
    char path[256];
    struct cache_key key = key_of("piped");
    size_t n = (size_t)snprintf(path, sizeof path, "%s/", directory);

    for (int i = 0; i < SHA256_BYTES; i++)
        n += (size_t)snprintf(path + n, sizeof path - n, "%02x", key.digest[i]);
    snprintf(path + n, sizeof path - n, ".ptxgen");
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_not(has("piped", ""));
    unlink(path);
}
