/* SPDX-License-Identifier: Apache-2.0 */
/* test_machine_code.c - machine code that is given to a program, and kept in the disk cache: what the driver gets. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "support/launch_fixture.h"

static char directory[64];
static ptxgen_session *s;

static void setup_code(void) { s = open_with_cache(directory); }
static void teardown_code(void) { close_with_cache(s, directory); }
TestSuite(machine_code, .init = setup_code, .fini = teardown_code);

static const char spec[] =
    "kind: reduce\ninputs: {x: 'f32[n]', y: 'f32[n]'}\nmap: x * y\noperator: add\noutputs: {dot: f32}\n";

/* What --keep does: the code of all cases for sm_90, with `code` as machine code for `arch`; what keeping it gives. */
static ptxgen_status keep(const char *code, const char *arch)
{
    const ptxgen_plan_options options = { sizeof options, .arch = "sm_90" };
    ptxgen_problem *problem;
    ptxgen_plan *plan;
    ptxgen_program *compiled;

    cr_assert_eq(ptxgen_problem_from_string(s, spec, sizeof spec - 1, "dot", &problem), PTXGEN_OK);
    cr_assert_eq(ptxgen_plan_create(s, problem, &options, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_compile_cached(s, problem, plan, NULL, NULL, &compiled), PTXGEN_OK);
    for (int i = 0; i < ptxgen_program_case_count(compiled); i++)
        cr_assert_eq(ptxgen_program_add_code(compiled, i, arch, code, strlen(code) + 1), PTXGEN_OK);
    const ptxgen_status status = ptxgen_program_keep_code(compiled, NULL);
    ptxgen_program_destroy(compiled);
    return status;
}

/* A start of its own: "compiled" where LLVM was asked, "kept" where the log says that there was machine code, and what
 * the driver was asked to load for a launch. */
static char seen[400];
static void hear(ptxgen_log_level level, const char *text, void *user)
{
    (void)level, (void)user;
    if (strstr(text, "compiled"))
        strcat(seen, "compiled ");
    if (strstr(text, "with machine code"))
        strcat(seen, "kept ");
}

static const char *start(void)
{
    const int64_t n = 1000;
    const void *in[] = { x_memory, x_memory };
    void *out[] = { y_memory };
    const ptxgen_arguments args = { .size = &n, .input = in, .output = out };
    const int before = fake->ncalls;

    seen[0] = 0;
    ptxgen_session_log(s, PTXGEN_LOG_INFO, hear, NULL);
    cr_assert_eq(ptxgen_jit_string(s, gpu, spec, sizeof spec - 1, "dot", NULL, &loaded), PTXGEN_OK);
    cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK);
    for (int i = before; i < fake->ncalls; i++)
        if (strcmp(fake->call[i].name, "cuModuleLoadDataEx") == 0) {
            const char *image = (const char *)(uintptr_t)fake->call[i].a;

            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%.30s ",
                     strstr(image, ".version") ? "PTX" : image);
        }
    ptxgen_loaded_destroy(loaded);
    return seen;
}

Test(machine_code, the_next_start_loads_what_was_kept)
{
    cr_expect_str_eq(start(), "compiled PTX ");
    cr_expect_str_eq(start(), "PTX ");
    cr_expect_eq(keep("ELF of an assembler", "sm_90"), PTXGEN_OK);
    cr_expect_str_eq(start(), "kept ELF of an assembler ");
    cr_expect_eq(keep("ELF of a newer one", "sm_90"), PTXGEN_OK);
    cr_expect_str_eq(start(), "kept ELF of a newer one ");
}

/* Machine code belongs to the PTX: entries of PTX may be gone. */
Test(machine_code, is_found_for_ptx_that_is_generated)
{
    char path[400];
    DIR *d = opendir(directory);

    cr_expect_str_eq(start(), "compiled PTX ");
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
    closedir(d);
    cr_expect_eq(keep("ELF", "sm_90"), PTXGEN_OK);
    cr_assert_eq(unlink(path), 0);
    cr_expect_str_eq(start(), "compiled ELF ");
}

Test(machine_code, of_another_architecture_is_not_looked_at)
{
    cr_expect_eq(keep("ELF", "sm_100"), PTXGEN_OK);
    cr_expect_eq(keep("ELF", "sm_80"), PTXGEN_OK);
    cr_expect_str_eq(start(), "PTX ");
}

Test(machine_code, that_the_driver_refuses_is_replaced)
{
    cr_expect_eq(keep("bad ELF", "sm_90"), PTXGEN_OK);
    cr_expect_str_eq(start(), "kept bad ELF PTX ");
    cr_expect_eq(keep("ELF", "sm_90"), PTXGEN_OK);
    cr_expect_str_eq(start(), "kept ELF ");
}

/* A changed byte in every entry that holds machine code: what was damaged goes. */
Test(machine_code, that_was_damaged_is_not_used)
{
    DIR *d = opendir(directory);
    int damaged = 0;

    cr_expect_eq(keep("ELF", "sm_90"), PTXGEN_OK);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        const int fd = e->d_name[0] == '.' ? -1 : openat(dirfd(d), e->d_name, O_RDWR);
        char all[64];

        if (fd >= 0 && read(fd, all, sizeof all) < 60) /* the header, and four bytes */
            damaged += pwrite(fd, "X", 1, 49) == 1;
        close(fd);
    }
    closedir(d);
    cr_assert_gt(damaged, 0);
    cr_expect_str_eq(start(), "PTX ");
    cr_expect_eq(keep("ELF", "sm_90"), PTXGEN_OK);
    cr_expect_str_eq(start(), "kept ELF ");
}

Test(machine_code, without_a_cache_nothing_is_kept)
{
    cr_expect_eq(keep("ELF", "sm_90"), PTXGEN_OK);
    setenv("PTXGEN_CACHE", "off", 1);
    cr_expect_eq(keep("ELF", "sm_90"), PTXGEN_OK);
    cr_expect_str_eq(start(), "compiled PTX ");
    setenv("PTXGEN_CACHE", "/proc/nowhere", 1);
    cr_expect_eq(keep("ELF", "sm_90"), PTXGEN_IO);
    setenv("PTXGEN_CACHE", directory, 1);
    cr_expect_eq(ptxgen_program_keep_code(NULL, NULL), PTXGEN_USAGE);
}

/* Of a program that is loaded directly: the newest that the device runs. */
Test(machine_code, that_a_program_has_is_loaded)
{
    static const struct {
        const char *arch[2], *loads;
    } rows[] = { { { "sm_90", "sm_95" }, "sm_90" }, { { "sm_80", "sm_90" }, "sm_90" }, { { "sm_80", "sm_89" }, NULL } };
    const ptxgen_plan_options options = { sizeof options, .arch = "sm_75" };
    ptxgen_problem *problem;
    ptxgen_plan *plan;
    ptxgen_program *compiled;

    cr_assert_eq(ptxgen_problem_from_string(s, spec, sizeof spec - 1, "dot", &problem), PTXGEN_OK);
    cr_assert_eq(ptxgen_plan_create(s, problem, &options, &plan), PTXGEN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptxgen_kernel_info info;
        const int before = fake->ncalls;
        const char *image = NULL;

        cr_assert_eq(ptxgen_compile(s, plan, NULL, &compiled), PTXGEN_OK);
        for (int k = 0; k < 2; k++)
            ptxgen_program_add_code(compiled, 0, rows[i].arch[k], rows[i].arch[k], strlen(rows[i].arch[k]) + 1);
        cr_assert_eq(ptxgen_load(s, gpu, compiled, &loaded), PTXGEN_OK);
        cr_expect_eq(ptxgen_kernel_query(s, loaded, 0, 0, &info), PTXGEN_OK);
        for (int c = before; c < fake->ncalls; c++)
            if (strcmp(fake->call[c].name, "cuModuleLoadDataEx") == 0)
                image = (const char *)(uintptr_t)fake->call[c].a;
        cr_assert_not_null(image);
        if (rows[i].loads)
            cr_expect_str_eq(image, rows[i].loads);
        else
            cr_expect(strstr(image, ".target sm_75"));
        ptxgen_loaded_destroy(loaded);
        ptxgen_program_destroy(compiled);
    }
}
