/* SPDX-License-Identifier: Apache-2.0 */
/* test_launch_cache.c - the driver's code in the disk cache. */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "launch_fixture.h"

static char directory[64];

static void setup_cache(void)
{
    setup();
    snprintf(directory, sizeof directory, "%s", "/tmp/ptxgen-test-cubin-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    setenv("PTXGEN_CACHE", directory, 1);
}

static void teardown_cache(void)
{
    struct cache c;

    cache_locate(&c, directory);
    cache_clear(&c);
    rmdir(directory);
    teardown();
}
TestSuite(launch_cache, .init = setup_cache, .fini = teardown_cache);

static int64_t entries(void)
{
    struct cache_stats stats;
    struct cache c;

    cache_locate(&c, directory);
    cache_count(&c, &stats);
    return stats.entries;
}

/* Open, launch the small case, close: compilations by the linker, loads of cubins, loads of PTX. */
static void start_and_count(int links, int cubins, int texts, const char *what)
{
    int loads = 0, cubin_loads = 0;

    fake->ncalls = 0;
    open_all();
    cr_assert_eq(launch(10, NULL, NULL), PTXGEN_OK, "%s: %s", what, last_message());
    for (int i = 0; i < fake->ncalls; i++)
        if (strcmp(fake->call[i].name, "cuModuleLoadDataEx") == 0) {
            loads++;
            cubin_loads += (int)fake->call[i].b;
        }
    cr_expect_eq(calls_of("cuLinkCreate"), links, "%s: %d compilations", what, calls_of("cuLinkCreate"));
    cr_expect_eq(cubin_loads, cubins, "%s: %d cubins were loaded", what, cubin_loads);
    cr_expect_eq(loads - cubin_loads, texts, "%s: %d texts were loaded", what, loads - cubin_loads);
    close_all();
}

Test(launch_cache, the_second_start_compiles_nothing)
{
    start_and_count(1, 1, 0, "first");
    cr_expect_eq(entries(), 1, "only the case that was taken");
    start_and_count(0, 1, 0, "second");
    setenv("PTXGEN_CACHE", "off", 1);
    start_and_count(0, 0, 1, "off");
}

Test(launch_cache, another_text_architecture_or_driver_is_another_entry)
{
    static char other[] = "other code";

    start_and_count(1, 1, 0, "first");
    fake->version = 12080;
    start_and_count(1, 1, 0, "another driver");
    fake->sm = 100;
    start_and_count(1, 1, 0, "another architecture");
    module[0] = (struct prog_module){ other, sizeof other - 1 };
    start_and_count(1, 1, 0, "another text");
    cr_expect_eq(entries(), 4);
    start_and_count(0, 1, 0, "the same again");
}

Test(launch_cache, a_cubin_that_the_driver_refuses_is_replaced)
{
    struct cache c;
    struct cache_keying k;
    struct cache_key key;

    start_and_count(1, 1, 0, "first");
    cache_locate(&c, directory);
    cache_key_begin(&k, "cubin 1");
    cache_key_number(&k, fake->sm);
    cache_key_number(&k, fake->version);
    cache_key_data(&k, module[0].ptx, module[0].length);
    cache_key_end(&k, &key);
    cache_put(&c, &key, "cubin gone bad", 15);
    start_and_count(1, 2, 0, "refused");
    start_and_count(0, 1, 0, "replaced");
}

Test(launch_cache, where_the_linker_fails_the_text_is_loaded)
{
    fake->fail = "cuLinkCreate";
    fake->fail_result = 801;
    start_and_count(1, 0, 1, "no linker");
    fake->fail = "cuLinkComplete";
    start_and_count(1, 0, 1, "no cubin");
    cr_expect_eq(entries(), 0);
}

Test(launch_cache, the_drivers_log_is_quoted_as_without_a_cache)
{
    static char bad[] = "bad code";

    module[0] = (struct prog_module){ bad, sizeof bad - 1 };
    open_all();
    cr_expect_eq(launch(10, NULL, NULL), PTXGEN_INTERNAL);
    cr_expect(strstr(last_message(), "ptxas line 7: a log"), "%s", last_message());
    close_all();
}
