/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tuning.c - any bytes as a tuning file: refused with a place, or its entries, taken as if they were for the sum
 * of specs/, are planned, and merged into a file that reads back. */
#include "fuzz.h"

#include "api/api_impl.h"
#include "explore/tuning_file.h"

static void plan_with(ptxgen_session *s, const struct problem *p, struct tuning_file *file)
{
    struct plan_options o = { 0 };
    struct device device;
    promise(device_by_name("sm_90", 0, &device));
    for (int i = 0; i < file->n; i++) {
        file->entry[i].problem = tuning_key(s, p);
        file->entry[i].arch = "sm_90";
    }
    tuning_select(s, file, p, &device, NULL, &o);
    promise(plan_create(s, p, &device, &o) != NULL);
}

static void read_text(ptxgen_session *s, const ptxgen_problem *problem, const char *text, const uint8_t *data,
                      size_t size)
{
    struct tuning_file file;
    jmp_buf oom;
    s->arena.oom = &oom;
    if (setjmp(oom))
        __builtin_trap();
    if (tuning_read(s, "fuzz", text, size, &file)) {
        plan_with(s, problem->problem, &file);
        return;
    }
    fuzz_messages(s, data, size, 1);
}

static void merge(ptxgen_session *s, const ptxgen_problem *problem, const char *text)
{
    const int64_t size[] = { 4096 };
    const ptxgen_tuning_entry entry = { "H200", "sm_90", "default", size, 1e-6, 2e-6, 3 };
    char *merged = ptxgen_tuning_merge(s, problem, text, &entry);
    char *again = merged ? ptxgen_tuning_merge(s, problem, merged, &entry) : NULL;
    promise(!merged || (again && !strcmp(merged, again)));
    ptxgen_free(again);
    ptxgen_free(merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ptxgen_session *s = NULL;
    char *text = fuzz_text(data, size);
    promise(ptxgen_session_create(&s) == PTXGEN_OK);
    ptxgen_problem *problem = fuzz_spec(s, "sum");
    promise(problem != NULL);
    read_text(s, problem, text, data, size);
    fuzz_render(s);
    merge(s, problem, text);
    ptxgen_session_destroy(s);
    free(text);
    return 0;
}
