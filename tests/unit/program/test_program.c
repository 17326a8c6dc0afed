/* SPDX-License-Identifier: Apache-2.0 */
/* test_program.c - programs as data: choice of a case, workspace, and the three text forms. */
#include "program/ptx_versions.h"
#include "support/program_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TestSuite(program, .init = fill_demo);

/* ---- data --------------------------------------------------------------------------------------------------------- */

Test(program, life)
{
    struct program *p = program_create();
    cr_assert(p != NULL && p->arena != NULL);
    program_destroy(p);
    program_destroy(NULL);
}

Test(program, elements)
{
    const struct {
        int64_t n, elements;
    } rows[] = { { 1, 0 }, { 5, 12 }, { 0, -1 }, { INT64_MAX, -1 }, { INT64_MIN, -1 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_eq(prog_array_elements(&inputs[1], &rows[i].n), rows[i].elements, "row %zu", i);
    cr_expect_eq(prog_array_elements(&outputs[0], NULL), 1);
}

Test(program, selection)
{
    const int64_t param[] = { 0, 3 };
    const struct {
        int64_t n;
        int case_index;
    } rows[] = { { 1, -1 }, { 2, 0 }, { 1024, 0 }, { 1025, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *why = "unset";
        const struct formula_env env = environment(&rows[i].n, param);
        cr_expect_eq(program_select(&demo, &env, &why), rows[i].case_index, "row %zu", i);
        cr_expect(rows[i].n == 1 ? why == checks[0].message : why == NULL, "row %zu", i);
    }
    const int64_t n = 100;
    struct formula_env env = environment(&n, param);
    const void *const misaligned[] = { (void *)17, (void *)32, (void *)64 };
    const char *why = "unset";
    env.pointer = misaligned;
    cr_expect(program_select(&demo, &env, &why) == -1 && why == NULL);
    char text[300], cut[20];
    program_refusal(&demo, &env, text, sizeof text);
    cr_expect_str_eq(text,
                     "no case of 'demo' covers these arguments; it was compiled for reduce.one_block, "
                     "reduce.last_block alone: case 'small' needs misalign(x) == 0 (misalign(x) = 1); case 'large' "
                     "needs n > 1024 (n = 100)");
    program_refusal(&demo, &env, cut, sizeof cut);
    cr_expect(strlen(cut) == sizeof cut - 1 && strncmp(cut, text, sizeof cut - 1) == 0);
}

/* small: counter at 0.  large: counter at 256, then the slots of states and epochs; scratch from its beginning. */
Test(program, workspace)
{
    const int64_t n = 5000, param[] = { 0, 3 };
    const struct formula_env env = environment(&n, param);
    int64_t control, scratch, offset[5];
    program_workspace(&demo, 0, &env, &control, &scratch, offset);
    cr_expect(control == 256 && scratch == 0 && offset[0] == 0);
    program_workspace(&demo, 1, &env, &control, &scratch, offset);
    /* states: 5 * 320 = 1600 bytes, P = 2048, slot 0 of 2; epochs: 500 bytes, P = 512, slot 1 */
    cr_expect_eq(offset[0], 256);
    cr_expect_eq(offset[1], 512 + 2 * (2048 - 256));
    cr_expect_eq(offset[4], 512 + 2 * (512 - 256) + 512);
    cr_expect_eq(control, offset[1] + 2048);
    cr_expect_eq(offset[2], 0);
    cr_expect_eq(offset[3], 1280); /* 132 * 2 * 4 = 1056 */
    cr_expect_eq(scratch, 1536);
    int64_t most_control, most_scratch;
    program_workspace(&demo, -1, &env, &most_control, &most_scratch, NULL);
    cr_expect(most_control == control && most_scratch == scratch);
}

Test(program, workspace_that_overflows)
{
    const int64_t n = INT64_MAX, param[] = { 0, 3 };
    const struct formula_env env = environment(&n, param);
    int64_t control, scratch, offset[5];
    program_workspace(&demo, 1, &env, &control, &scratch, offset);
    cr_expect_eq(control, -1);
    cr_expect_eq(scratch, 1536);
}

/* Whatever the sizes, two control buffers share no byte, unless they are the same one. */
Test(program, control_buffers_never_meet)
{
    struct place {
        int64_t begin, end;
        int case_index, buffer;
    } place[1000];
    int places = 0;
    const int64_t param[] = { 0, 3 };
    for (int64_t n = 1; n < INT64_C(1) << 40; n = 3 * n + 1)
        for (int c = 0; c < demo.ncases; c++) {
            const struct formula_env env = environment(&n, param);
            int64_t control, scratch, offset[5];
            program_workspace(&demo, c, &env, &control, &scratch, offset);
            for (int b = 0; b < cases[c].nbuffers; b++)
                if (cases[c].buffer[b].region == REGION_CONTROL) {
                    const int64_t end = offset[b] + formula_eval(&cases[c].buffer[b].bytes, &env);
                    cr_expect(end <= control && offset[b] % 256 == 0);
                    place[places++] = (struct place){ offset[b], end, c, b };
                }
        }
    for (int i = 0; i < places; i++)
        for (int j = 0; j < i; j++)
            if (place[i].case_index != place[j].case_index || place[i].buffer != place[j].buffer)
                cr_assert(place[i].end <= place[j].begin || place[j].end <= place[i].begin, "%d.%d and %d.%d",
                          place[i].case_index, place[i].buffer, place[j].case_index, place[j].buffer);
}

Test(program, names)
{
    struct formula_names names = program_names(&demo, 1);
    struct str s = { 0 };
    formula_print(&large_steps[0].grid, &names, &s);
    cr_expect_str_eq(s.text, "min(cdiv(n, 1024), sms * resident(demo_main))");
    str_finish(&s);
    program_names_finish(&names);
    names = program_names(&demo, -1);
    cr_expect_eq(names.nkernels, 0);
    program_names_finish(&names);
}

/* ---- PTX ---------------------------------------------------------------------------------------------------------- */

static const char *count_of(const char *text, const char *part, int expected)
{
    int n = 0;
    for (const char *s = strstr(text, part); s != NULL; s = strstr(s + 1, part))
        n++;
    return n == expected ? NULL : text;
}
#define EXPECT_TIMES(text, part, n)                                                                                    \
    cr_expect_null(count_of((text), (part), (n)), "not %d times %s in\n%s", (n), (part), (text))

Test(program, ptx_has_one_header)
{
    struct str s = { 0 };
    program_ptx(&demo, &s);
    EXPECT_TIMES(s.text, ".version", 1);
    EXPECT_TIMES(s.text, ".version 8.1\n.target sm_90\n.address_size 64\n", 1);
    EXPECT_TIMES(s.text, ".visible .entry", 3);
    EXPECT_TIMES(s.text, "\tret; // \"why?\\\"\n}", 1);
    str_finish(&s);
}

#define HEADER ".version 8.0\n.target sm_90\n.address_size 64\n"

Test(program, ptx_of_modules_that_share_names)
{
    struct prog_module clashing[] = {
        { (char *)HEADER
          ".extern .func  (.param .b32 r) vprintf (.param .b64 a);\n.shared .align 4 .b8 smem[128];\n"
          ".global .align 4 .b8 table[2] = {1, 2};\n.func  (.param .b32 r) f(.param .b32 a) { ret; }\n"
          ".func g() { call f; }\n.visible .entry a() { mov.u64 %r1, smem; ld.global.u8 %r2, [table+1]; call g; }\n",
          0, NULL },
        { (char *)HEADER ".extern .func  (.param .b32 r) vprintf (.param .b64 a);\n.shared .align 4 .b8 smem[256];\n"
                         ".global .align 4 .b8 table[2] = {1, 2};\n.func  (.param .b32 r) f(.param .b32 a) { exit; }\n"
                         ".func g() { call f; }\n.visible .entry b() { mov.u64 %r1, smem; ld.global.u8 %r2, [table+1]; "
                         "call g; // smem\n }\n",
          0, NULL },
        { (char *)HEADER ".shared .align 4 .b8 smem[256];\n.visible .entry c() { mov.u64 %r1, smem; }\n", 0, NULL },
    };
    struct program p = demo;
    p.module = clashing;
    p.nmodules = 3;
    struct str s = { 0 };
    program_ptx(&p, &s);
    EXPECT_TIMES(s.text, "vprintf", 1);
    EXPECT_TIMES(s.text, "table[2]", 1);
    EXPECT_TIMES(s.text, "smem[128];", 1);
    EXPECT_TIMES(s.text, "smem_m1[256];", 1);
    EXPECT_TIMES(s.text, "smem_m2[256];", 1);
    EXPECT_TIMES(s.text,
                 ".visible .entry b() { mov.u64 %r1, smem_m1; ld.global.u8 %r2, [table+1]; call g_m1; // smem\n }", 1);
    EXPECT_TIMES(s.text, "f_m1(.param .b32 a) { exit; }", 1);
    EXPECT_TIMES(s.text, ".func g_m1() { call f_m1; }", 1); /* g is the same text, but not the same function */
    str_finish(&s);
}

Test(program, ptx_versions)
{
    cr_expect_eq(ptx_oldest_cuda(80), 12000);
    cr_expect_eq(ptx_oldest_cuda(78), 11080);
    cr_expect_eq(ptx_oldest_cuda(79), 12000);
    cr_expect_eq(ptx_oldest_cuda(999), 0);
}

/* ---- manifest ----------------------------------------------------------------------------------------------------- */

/* A JSON value at s: what follows it, or NULL. */
static const char *json_value(const char *s);
static const char *blanks(const char *s) { return s + strspn(s, " \n\t\r"); }

static const char *json_text(const char *s)
{
    for (s++; *s != '"'; s++)
        if ((unsigned char)*s < 0x20 || (*s == '\\' && strchr("\"\\/bfnrtu", *++s) == NULL))
            return NULL;
    return s + 1;
}

static const char *json_members(const char *s, char close, bool keys)
{
    s = blanks(s + 1);
    if (*s == close)
        return s + 1;
    for (;; s = blanks(s + 1)) {
        if (keys && (*s != '"' || (s = json_text(s)) == NULL || *(s = blanks(s)) != ':'))
            return NULL;
        s = json_value(blanks(s + keys));
        if (s == NULL)
            return NULL;
        s = blanks(s);
        if (*s == close)
            return s + 1;
        if (*s != ',')
            return NULL;
    }
}

static const char *json_value(const char *s)
{
    static const char *const words[] = { "true", "false", "null" };
    char *end;
    if (*s == '{' || *s == '[')
        return json_members(s, *s == '{' ? '}' : ']', *s == '{');
    if (*s == '"')
        return json_text(s);
    for (int i = 0; i < 3; i++)
        if (strncmp(s, words[i], strlen(words[i])) == 0)
            return s + strlen(words[i]);
    strtod(s, &end);
    return end > s ? end : NULL;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
}

Test(program, manifest)
{
    struct str s = { 0 };
    program_manifest(&demo, &s);
    const char *end = json_value(s.text);
    cr_assert(end != NULL && strcmp(end, "\n") == 0, "%s", s.text);
    EXPECT_TIMES(s.text, "\"cuda\": \"12.0\"", 1);
    EXPECT_TIMES(s.text, "\"postfix\": [\"n\", 1024, \"<=\", \"misalign(x)\", 0, \"==\", \"and\"]", 1);
    EXPECT_TIMES(s.text, "\"default\": 0.1", 1);
    EXPECT_TIMES(s.text, "\"slot\": 1", 1);
    EXPECT_TIMES(s.text, "\"of\": \"counter\"", 3);
    EXPECT_TIMES(s.text, "\"fixed\": 512", 1);
    str_finish(&s);
}

Test(program, manifest_follows_its_schema)
{
    const char *python = "python3";
    if (system("python3 -c 'import jsonschema' >/dev/null 2>&1") != 0) {
        python = "/usr/bin/python3"; /* Debian's, which has Debian's packages */
        if (system("/usr/bin/python3 -c 'import jsonschema' >/dev/null 2>&1") != 0)
            cr_skip_test("python3 with jsonschema is not installed");
    }
    char path[] = "/tmp/ptxgen_manifest_XXXXXX", command[512];
    struct str s = { 0 };
    close(mkstemp(path));
    program_manifest(&demo, &s);
    write_file(path, s.text);
    str_finish(&s);
    snprintf(command, sizeof command,
             "%s -c \"import json, jsonschema; jsonschema.validate(json.load(open('%s')), "
             "json.load(open('%s/docs/manifest.schema.json')))\"",
             python, path, PTXGEN_SOURCE_DIR);
    cr_expect_eq(system(command), 0);
    unlink(path);
}

/* ---- the generated header ----------------------------------------------------------------------------------------- */

static const char *cuda_include(void)
{
    static char path[512];
    const char *home = getenv("CUDA_HOME");
    snprintf(path, sizeof path, "%s/include", home != NULL ? home : "/usr/local/cuda");
    char file[600];
    snprintf(file, sizeof file, "%s/cuda.h", path);
    return access(file, R_OK) == 0 ? path : NULL;
}

/* What the driver is asked for, with a header of the program above: see header_driver.c. */
static const char expected[] =
    "old driver: 222, demo needs a driver for CUDA 12.0 or newer\n"
    "load 99 bytes, //\n.vers\nload 6514 bytes, .version\n"
    "function demo_small of 1\nfunction demo_main of 2\nattribute 8 of demo_main: 231424\nfunction demo_tail of "
    "2\nattribute 14 of demo_tail: 1\n"
    "occupancy of demo_main, 256 threads, 2048 bytes\noccupancy of demo_tail, 32 threads, 0 bytes\n"
    "workspace 256 7680\n"
    /* small: control is zeroed once */
    "fill 0 at 0, 256 bytes\n"
    "launch demo_small<1,1,1;128,1,1;0> 1000 2000 3000 3dcccccd 0\n"
    "launch demo_small<1,1,1;128,1,1;0> 1000 2000 3000 3dcccccd 0\n"
    /* large: needs more control, which is zeroed anew; two repeats; the tail in clusters, dependent */
    "occupancy of demo_main, 256 threads, 2048 bytes\noccupancy of demo_tail, 32 threads, 0 bytes\n"
    "fill 0 at 0, 6144 bytes\n"
    "launch demo_main<5,1,1;256,1,1;2048> 1000 2000 3000 3dcccccd 100 1800 5\n"
    "launch demo_main<5,1,1;256,1,1;2048> 1000 2000 3000 3dcccccd 100 1800 5\n"
    "launch demo_tail<4;32;0> [6 1] [4 4] 1000 2000 3000 3dcccccd 100\n"
    /* once more: its control is intact */
    "occupancy of demo_main, 256 threads, 2048 bytes\noccupancy of demo_tail, 32 threads, 0 bytes\n"
    "launch demo_main<5,1,1;256,1,1;2048> 1000 2000 3000 3dcccccd 100 1800 5\n"
    "launch demo_main<5,1,1;256,1,1;2048> 1000 2000 3000 3dcccccd 100 1800 5\n"
    "launch demo_tail<4;32;0> [6 1] [4 4] 1000 2000 3000 3dcccccd 100\n"
    "launch demo_small<1,1,1;128,1,1;0> 1000 2000 3000 3dcccccd 0\n"
    "refused 1: n must be 2 or more: \"add\" has no identity\n"
    "refused 1: a size is negative or too large\n"
    "refused 1: array 'x' is null or misaligned\n"
    "occupancy of demo_main, 256 threads, 2048 bytes\noccupancy of demo_tail, 32 threads, 0 bytes\n"
    "refused 1: the workspace is too small or not aligned to 256 bytes\n"
    "refused 1: array 'x' is null or misaligned\n"
    "unload 1\nunload 2\n";

#define WARNINGS "-Wall -Wextra -Werror"
static void run_header(const char *directory, const char *compiler, const char *wanted)
{
    char command[2048], output[8192];
    snprintf(command, sizeof command,
             "%s -isystem %s -DGENERATED='\"%s/demo.h\"' "
             "%s/tests/support/header_driver.c -o %s/driver && %s/driver",
             compiler, cuda_include(), directory, PTXGEN_SOURCE_DIR, directory, directory);
    FILE *pipe = popen(command, "r");
    cr_assert_not_null(pipe);
    output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
    cr_assert_eq(pclose(pipe), 0, "%s", command);
    if (wanted == expected)
        cr_expect_str_eq(output, expected, "%s:\n%s", compiler, output);
    else
        cr_expect(strstr(output, wanted), "%s:\n%s", compiler, output);
}

/* What users read comes before the code: calls with the real arguments, costs, cases, declarations. */
Test(program, header_begins_with_its_api)
{
    static const char *const order[] = {
        "demo_workspace_bytes(&program, n, scale, memset, &bytes);",
        "demo_launch(&program, stream, n, x, y, x_, scale, memset, workspace, bytes);",
        "Cost: 6613 bytes of PTX",
        "2 cases",
        "small (reduce.one_block): n <= 1024 and misalign(x) == 0\n",
        "refused with these messages",
        "n must be 2 or more",
        "ptxgen_pointer(CUdeviceptr address)",
        "/* Launch in `stream` and return at once: x[n], y[n - 1][3], x_. */\nstatic inline CUresult demo_launch(",
        "int64_t n, const float *x, const demo_y_element *y, float *x_, float scale, int32_t memset,",
        "here ends what users call",
        "ptxgen_start(",
        "demo_ptx_0",
    };
    struct str s = { 0 };
    program_header(&demo, &s);
    const char *at = s.text;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        at = strstr(at, order[i]);
        cr_assert_not_null(at, "missing, or not in this order: %s", order[i]);
    }
    str_finish(&s);
}

Test(program, header_compiles_and_launches)
{
    if (cuda_include() == NULL || system("cc --version >/dev/null 2>&1") != 0)
        cr_skip_test("cuda.h or a compiler is not installed");
    char directory[] = "/tmp/ptxgen_header_XXXXXX", path[64];
    cr_assert_not_null(mkdtemp(directory));
    struct str s = { 0 };
    program_header(&demo, &s);
    snprintf(path, sizeof path, "%s/demo.h", directory);
    write_file(path, s.text);
    str_finish(&s);
    static const char *const compilers[] = {
        "cc -std=c99 " WARNINGS " -Wpedantic",
        "c++ -std=c++11 -x c++ " WARNINGS " -Wpedantic",
        "clang-22 " WARNINGS " -Wpedantic",
        "clang++-22 -x c++ " WARNINGS " -Wpedantic",
        "/usr/local/cuda/bin/nvcc --Werror all-warnings -x cu -Xcompiler -Wall,-Wextra",
    };
    for (size_t i = 0; i < sizeof compilers / sizeof compilers[0]; i++) {
        char there[128];
        snprintf(there, sizeof there, "command -v %.*s >/dev/null", (int)strcspn(compilers[i], " "), compilers[i]);
        if (system(there) == 0)
            run_header(directory, compilers[i], expected);
    }
    /* Of sm_90, newer and older: what fits the device is loaded, and compiled where the driver does not take it. */
    const size_t length = sizeof "for sm_90, long";
    cr_assert(program_add_code(&demo, 0, 90, "for sm_90, long", length));
    cr_assert(program_add_code(&demo, 0, 100, "for sm_100, long", length));
    cr_assert(program_add_code(&demo, 0, 80, "for sm_80, longer", length));
    cr_assert(program_add_code(&demo, 1, 90, "no", 3));
    program_header(&demo, &s);
    cr_expect(strstr(s.text, "which is loaded where it fits: sm_100, sm_90, sm_80, 51 bytes"));
    write_file(path, s.text);
    str_finish(&s);
    run_header(directory, compilers[0],
               "\nmachine code for sm_90, long\nmachine code no\nload 6514 bytes, .version\n"
               "function demo_small of 11\nfunction demo_main of 1\n");
    snprintf(path, sizeof path, "rm -r %s", directory);
    cr_expect_eq(system(path), 0);
    for (int m = 0; m < demo.nmodules; m++)
        for (struct prog_code *next; demo.module[m].code; demo.module[m].code = next) {
            next = demo.module[m].code->next;
            free(demo.module[m].code);
        }
}
