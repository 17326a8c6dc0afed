/* SPDX-License-Identifier: Apache-2.0 */
/* emit_fixture.h - emit kernels for the GPU in a test: PTX, IR, the error, and whether ptxas takes it. */
#ifndef PTXGEN_TEST_EMIT_FIXTURE_H
#define PTXGEN_TEST_EMIT_FIXTURE_H

#include <criterion/criterion.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "llvmgen/expr/expr_emit.h"
#include "llvmgen/ptx.h"

/* Emits whole kernels, from kb_kernel_begin() to kb_kernel_end(). */
typedef void (*emitter)(kb *k, const void *arg);

struct emission_options {
    const char *arch; /* NULL: sm_90 */
    int ptx;          /* 0: by policy */
    bool ir;
    struct llvmgen_options gen;
};

struct emitted {
    bool ok;
    char *text;      /* PTX, or IR when asked for */
    char error[512]; /* the diagnostic, with its code in front */
    int points, shared;
};

static inline struct emitted emit_with(struct emission_options o, emitter f, const void *arg)
{
    struct emitted r = { 0 };
    struct device d;
    struct ptxgen_session s;
    jmp_buf oom;
    size_t length = 0;
    if (setjmp(oom))
        cr_assert(false, "out of memory");
    cr_assert(device_by_name(o.arch ? o.arch : "sm_90", o.ptx, &d), "no device %s", o.arch);
    arena_init(&s.arena);
    s.arena.oom = &oom;
    diags_init(&s.diags, &s.arena);
    struct codegen *cg = codegen_begin(&d, &o.gen, "test");
    cr_assert(cg != NULL);
    kb *k = codegen_builder(cg);
    f(k, arg);
    r.points = kb_points(k);
    r.shared = kb_shared_bytes(k);
    r.text = o.ir ? codegen_ir(cg) : codegen_ptx(cg, &length);
    cr_assert(o.ir || !r.text || strlen(r.text) == length);
    r.ok = codegen_end(cg, &s);
    cr_assert_eq(r.ok, s.diags.errors == 0);
    if (!r.ok)
        snprintf(r.error, sizeof r.error, "%d %s", (int)s.diags.first->code, s.diags.first->text);
    arena_finish(&s.arena);
    return r;
}

static inline int occurrences(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; at && (at = strstr(at, what)) != NULL; at += strlen(what))
        n++;
    return n;
}

/* The assembler's path; empty where there is no toolkit. */
#ifndef PTXGEN_PTXAS
#define PTXGEN_PTXAS ""
#endif

/* What ptxas has to say, "" when it is content or absent. CUDA 13 has no sm_70 and sm_72, but assembles their PTX for
 * sm_75. */
static inline const char *assemble(const char *ptx, const char *arch)
{
    static char said[2048];
    char file[] = "/tmp/ptxgen-test-XXXXXX", command[1024];
    said[0] = '\0';
    if (access(PTXGEN_PTXAS, X_OK) != 0)
        return said;
    const int fd = mkstemp(file);
    cr_assert(fd >= 0);
    FILE *f = fdopen(fd, "w");
    fputs(ptx, f);
    fclose(f);
    const bool old = strcmp(arch, "sm_70") == 0 || strcmp(arch, "sm_72") == 0;
    snprintf(command, sizeof command, "'%s' -O1 -arch=%s %s -o /dev/null 2>&1", PTXGEN_PTXAS, old ? "sm_75" : arch,
             file);
    FILE *p = popen(command, "r");
    const size_t n = p ? fread(said, 1, sizeof said - 1, p) : 0;
    said[n] = '\0';
    if (p && pclose(p) == 0)
        said[0] = '\0';
    unlink(file);
    return said;
}

#endif
