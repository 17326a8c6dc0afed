/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npy.c - any bytes as an .npy file: refused in words, or a shape and a type that arrays are compared with. */
#include "fuzz.h"

#include "cli/cli.h"

static void compare(const struct npy *f, const char *spec)
{
    ptxgen_session *s = NULL;
    ptxgen_array_info info;
    char buffer[256] = "";
    promise(ptxgen_session_create(&s) == PTXGEN_OK);
    ptxgen_problem *problem = fuzz_spec(s, spec);
    promise(problem && ptxgen_problem_input(problem, 0, &info) == PTXGEN_OK);
    const char *wrong = npy_matches(f, &info, buffer, sizeof buffer);
    promise(!wrong || (wrong[0] && strlen(wrong) < sizeof buffer));
    promise(wrong || f->element_size == info.element_size);
    ptxgen_session_destroy(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy f;
    char *text = fuzz_text(data, size);
    const char *wrong = npy_parse(text, size, &f);
    promise(!wrong || wrong[0]);
    if (!wrong) {
        size_t bytes = f.element_size;
        promise(f.rank >= 0 && f.rank <= NPY_RANK_MAX && f.nfields <= NPY_FIELD_MAX && f.data <= size);
        for (int d = 0; d < f.rank; d++)
            promise(f.shape[d] >= 0 && !__builtin_mul_overflow(bytes, (size_t)f.shape[d], &bytes));
        promise(bytes == f.bytes);
        compare(&f, "sum");
        compare(&f, "complex_product");
    }
    free(text);
    return 0;
}
