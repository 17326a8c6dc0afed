/* SPDX-License-Identifier: Apache-2.0 */
/* header.c - a program as one C header that needs <cuda.h> and nothing of ptxgen.
 *
 *   API            all that its users read: costs, cases, types, declarations (header_api.c)
 *   support        what all generated headers share (header_support.c)
 *   PTX            of every module, in string literals that are short enough for every compiler
 *   cases          header_case.c
 *   NAME_load, NAME_unload, NAME_workspace_bytes, NAME_reset, NAME_launch
 *
 * header_stages.c makes that of several stages, of the code of each.
 *
 * The contract is that of the launcher, but for the workspace, which is one piece of memory here: control at the front,
 * scratch at the end.  The handle knows how much of the front holds intact control state, and a launch zeroes it when
 * that is not enough, or when the workspace is another one.
 */
#include "header_impl.h"

#include "ptx_versions.h"

#include <stdarg.h>
#include <string.h>

enum { LITERAL_MAX = 2000 }; /* characters of PTX per string literal; escapes at most double them */

void header_emit(const struct header *h, const char *format, ...)
{
    struct str named = { 0 };
    for (const char *c = format; *c != '\0'; c++)
        *c == '@' ? str_add(&named, h->name) : str_addc(&named, *c);
    va_list args;
    va_start(args, format);
    str_vprintf(h->out, named.failed ? "" : named.text, args);
    va_end(args);
    h->out->failed = h->out->failed || named.failed;
    str_finish(&named);
}

static int larger(int a, int b) { return a > b ? a : b; }

static int most_buffers(const struct program *p)
{
    int most = 1;
    for (int c = 0; c < p->ncases; c++)
        most = larger(most, p->cases[c].nbuffers);
    return most;
}

void header_refuse(const struct header *h)
{
    header_emit(h, "static inline CUresult @_refuse(@_program *handle, CUresult result, const char *message)\n{\n    "
                   "handle->message = message;\n    return result;\n}\n\n");
}

/* ---- text as C literals --------------------------------------------------------------------------- */

static void literal_character(struct str *out, char c)
{
    if (c == '\n')
        str_add(out, "\\n");
    else if (c == '"' || c == '\\')
        str_printf(out, "\\%c", c);
    else if (c == '?')
        str_add(out, "\\?"); /* no trigraphs */
    else if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x7f)
        str_printf(out, "\\%03o", (unsigned char)c);
    else
        str_addc(out, c);
}

static void literal(struct str *out, const char *text)
{
    str_addc(out, '"');
    for (; *text != '\0'; text++)
        literal_character(out, *text);
    str_addc(out, '"');
}

/* Line by line, in array elements of at most LITERAL_MAX characters. */
static void module_text(const struct header *h, int m)
{
    const char *text = h->p->module[m].ptx != NULL ? h->p->module[m].ptx : "";
    int length = 0;
    header_emit(h, "static const char *const @_ptx_%d[] = {\n    \"", m);
    for (; *text != '\0'; text++) {
        literal_character(h->out, *text);
        if (++length >= LITERAL_MAX) {
            str_add(h->out, "\",\n    \"");
            length = 0;
        } else if (*text == '\n' && text[1] != '\0') {
            str_add(h->out, "\"\n    \"");
        }
    }
    str_add(h->out, "\",\n    NULL\n};\n\n");
}

/* Words, because the driver reads numbers in it. */
static void machine_code(const struct header *h, int m, int number, const struct prog_code *code)
{
    enum { LINE = 5 };
    header_emit(h, "static const uint64_t @_code_%d_%d[] = {", m, number);
    for (size_t i = 0; i < code->length; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, code->data + i, code->length - i < sizeof word ? code->length - i : sizeof word);
        header_emit(h, "%s0x%llx,", i / sizeof word % LINE ? " " : "\n    ", (unsigned long long)word);
    }
    str_add(h->out, "\n};\n\n");
}

static void machine_codes(const struct header *h)
{
    for (int m = 0; m < h->p->nmodules; m++) {
        int number = 0;
        for (const struct prog_code *code = h->p->module[m].code; code; code = code->next)
            machine_code(h, m, number++, code);
    }
}

/* ---- load and unload ------------------------------------------------------------------------------ */

static void load_checks(const struct header *h)
{
    const int cuda = ptx_oldest_cuda(h->p->ptx_version);
    int arch = 0;
    for (const char *c = h->p->arch; *c != '\0'; c++)
        arch = *c >= '0' && *c <= '9' ? 10 * arch + (*c - '0') : arch;
    if (cuda > 0)
        header_emit(h,
                    "    if (driver < %d)\n        return @_refuse(handle, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, \"@ "
                    "needs a driver for CUDA %d.%d or newer\");\n",
                    cuda, cuda / 1000, cuda % 1000 / 10);
    header_emit(h,
                "    if (handle->arch < %d)\n        return @_refuse(handle, CUDA_ERROR_NO_BINARY_FOR_GPU, \"@ needs a "
                "device of %s or newer\");\n",
                arch, h->p->arch);
}

static void load_kernel(const struct header *h, int c, int k)
{
    const struct prog_case *x = &h->p->cases[c];
    const int number = header_kernel_number(h->p, c, k);
    bool dynamic = false, nonportable = false;
    for (int i = 0; i < x->nsteps; i++)
        if (x->step[i].kernel == k) {
            dynamic = dynamic || x->step[i].shared.n != 0;
            nonportable = nonportable || x->step[i].nonportable_cluster;
        }
    header_emit(h,
                "    if (result == CUDA_SUCCESS)\n        result = cuModuleGetFunction(&handle->kernel[%d], "
                "handle->module[%d], \"%s\");\n",
                number, x->kernel[k].module, x->kernel[k].name);
    if (dynamic)
        header_emit(h,
                    "    if (result == CUDA_SUCCESS)\n        result = cuFuncSetAttribute(handle->kernel[%d], "
                    "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, handle->smem - %d);\n",
                    number, x->kernel[k].shared_static);
    if (nonportable)
        header_emit(
            h,
            "#if CUDA_VERSION >= 11080\n    if (result == CUDA_SUCCESS)\n        result = "
            "cuFuncSetAttribute(handle->kernel[%d], CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);\n#endif\n",
            number);
}

static void unload_function(const struct header *h)
{
    header_emit(h,
                "static inline void @_unload(@_program *handle)\n{\n    int m;\n    for (m = 0; m < %d; m++)\n        "
                "if (handle->module[m] != NULL)\n            cuModuleUnload(handle->module[m]);\n    memset(handle, 0, "
                "sizeof *handle);\n}\n\n",
                h->p->nmodules);
}

/* Machine code runs on devices of its architecture, and on later ones of the same generation: the newest comes first.
 * What the driver does not take is compiled. */
static void load_machine_code(const struct header *h)
{
    bool some = false;
    for (int m = 0; m < h->p->nmodules; m++) {
        int number = 0;
        for (const struct prog_code *code = h->p->module[m].code; code; code = code->next, some = true)
            header_emit(
                h,
                "    if (handle->module[%d] == NULL && handle->arch / 10 == %d && handle->arch >= %d &&\n        "
                "cuModuleLoadData(&handle->module[%d], @_code_%d_%d) != CUDA_SUCCESS)\n        "
                "handle->module[%d] = NULL;\n",
                m, code->arch / 10, code->arch, m, m, number++, m);
    }
    header_emit(h,
                "    for (m = 0; result == CUDA_SUCCESS && m < %d; m++)\n        %sresult = "
                "ptxgen_load_module(&handle->module[m], modules[m], handle->log, sizeof handle->log);\n",
                h->p->nmodules, some ? "if (handle->module[m] == NULL)\n            " : "");
}

static void load_function(const struct header *h)
{
    header_emit(h, "static inline CUresult @_load(@_program *handle)\n{\n    CUresult result;\n    CUdevice device;\n  "
                   "  int driver = 0, major = 0, minor = 0, m;\n    const char *const *const modules[] = { ");
    for (int m = 0; m < h->p->nmodules; m++)
        header_emit(h, "@_ptx_%d, ", m);
    str_add(h->out, "NULL };\n    memset(handle, 0, sizeof *handle);\n    result = cuCtxGetDevice(&device);\n"
                    "    if (result == CUDA_SUCCESS)\n        result = cuDriverGetVersion(&driver);\n"
                    "    if (result == CUDA_SUCCESS)\n        result = cuDeviceGetAttribute(&handle->sms, "
                    "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);\n"
                    "    if (result == CUDA_SUCCESS)\n        result = cuDeviceGetAttribute(&handle->smem, "
                    "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);\n"
                    "    if (result == CUDA_SUCCESS)\n        result = cuDeviceGetAttribute(&major, "
                    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);\n"
                    "    if (result == CUDA_SUCCESS)\n        result = cuDeviceGetAttribute(&minor, "
                    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);\n");
    header_emit(h, "    if (result != CUDA_SUCCESS)\n        return @_refuse(handle, result, \"there is no current "
                   "context\");\n    handle->arch = 10 * major + minor;\n");
    load_checks(h);
    load_machine_code(h);
    header_emit(h, "    if (result != CUDA_SUCCESS)\n        return @_refuse(handle, result, \"the driver could not "
                   "compile the PTX; see log\");\n");
    for (int c = 0; c < h->p->ncases; c++)
        for (int k = 0; k < h->p->cases[c].nkernels; k++)
            load_kernel(h, c, k);
    header_emit(h, "    return result == CUDA_SUCCESS ? result : @_refuse(handle, result, \"a kernel is not in its "
                   "module\");\n}\n\n");
}

/* ---- values, choice, workspace, launch ------------------------------------------------------------ */

/* Bytes of an array as a C expression, saturating; negative when an extent is. */
static void extent(const struct header *h, const struct prog_array *a, int pointer)
{
    header_emit(h, "    v->extent[%d] = %d;\n", pointer, a->stride);
    for (int d = 0; d < a->rank; d++) {
        if (a->dim[d].size < 0)
            header_emit(h, "    extent = %lld;\n", (long long)a->dim[d].add);
        else
            header_emit(h, "    extent = ptxgen_add(v->size[%d], %lld);\n", a->dim[d].size, (long long)a->dim[d].add);
        header_emit(h, "    ok = ok && extent >= 0;\n    v->extent[%d] = ptxgen_mul(v->extent[%d], extent);\n", pointer,
                    pointer);
    }
    header_emit(h, "    ok = ok && v->extent[%d] < INT64_MAX;\n", pointer);
}

static int alignment(const struct prog_array *a)
{
    int most = 1;
    for (int f = 0; f < a->nfields; f++)
        most = larger(most, ty_bytes(a->field[f].type));
    return most;
}

static bool has_dimensions(const struct program *p)
{
    bool has = false;
    for (int i = 0; i < p->ninputs + p->noutputs; i++)
        has = has || header_array_of(p, i)->rank > 0;
    return has;
}

void header_checks(const struct header *h)
{
    const struct program *p = h->p;
    const int pointers = p->ninputs + p->noutputs;
    header_emit(h, "static inline CUresult @_check(@_program *handle, struct @_values *v)\n{\n    int ok = 1;\n%s",
                has_dimensions(p) ? "    int64_t extent;\n" : "");
    for (int i = 0; i < p->nsizes; i++)
        header_emit(h, "    ok = ok && v->size[%d] >= 0;\n", i);
    for (int i = 0; i < pointers; i++)
        extent(h, header_array_of(p, i), i);
    header_emit(h, "    if (!ok)\n        return @_refuse(handle, CUDA_ERROR_INVALID_VALUE, \"a size is negative or "
                   "too large\");\n");
    for (int i = 0; i < p->nchecks; i++) {
        str_add(h->out, "    if (!(");
        header_formula(h, &p->check[i].condition, true);
        header_emit(h, "))\n        return @_refuse(handle, CUDA_ERROR_INVALID_VALUE, ");
        literal(h->out, p->check[i].message);
        str_add(h->out, ");\n");
    }
    str_add(h->out, "    return CUDA_SUCCESS;\n}\n\n");
    header_emit(h, "static inline CUresult @_check_pointers(@_program *handle, const struct @_values *v)\n{\n");
    for (int i = 0; i < pointers; i++)
        header_emit(h,
                    "    if ((v->extent[%d] > 0 && v->pointer[%d] == 0) || v->pointer[%d] %% %d != 0)\n        return "
                    "@_refuse(handle, CUDA_ERROR_INVALID_VALUE, \"array '%s' is null or misaligned\");\n",
                    i, i, i, alignment(header_array_of(p, i)), header_array_of(p, i)->name);
    str_add(h->out, "    (void)handle;\n    (void)v;\n    return CUDA_SUCCESS;\n}\n\n");
}

static void measure_case(const struct header *h, int c)
{
    const struct formula *guard = &h->p->cases[c].guard;
    str_add(h->out, "    if (result == CUDA_SUCCESS && ");
    if (header_uses(guard, FO_MISALIGN) || header_uses(guard, FO_APART))
        str_add(h->out, "1 /* depends on pointers */");
    else
        header_formula(h, guard, true);
    header_emit(h,
                ") {\n        result = @_measure_%d(handle, v);\n        @_place_%d(handle, v, offset, &control, "
                "&scratch);\n        bytes = ptxgen_max(bytes, ptxgen_add(control, scratch));\n    }\n",
                c, c);
}

static void workspace_function(const struct header *h)
{
    header_emit(h,
                "static inline CUresult @_measure(@_program *handle, struct @_values *v, size_t *workspace_bytes)\n{\n "
                "   int64_t offset[%d], control = 0, scratch = 0, bytes = 0;\n    CUresult result = @_check(handle, "
                "v);\n    if (result != CUDA_SUCCESS)\n        return result;\n",
                most_buffers(h->p));
    for (int c = 0; c < h->p->ncases; c++)
        measure_case(h, c);
    header_emit(h, "    (void)offset;\n    if (result != CUDA_SUCCESS || bytes == INT64_MAX)\n        return "
                   "@_refuse(handle, result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE, \"the workspace "
                   "cannot be measured\");\n    *workspace_bytes = (size_t)bytes;\n    return CUDA_SUCCESS;\n}\n\n");
}

void header_typed_functions(const struct header *h)
{
    header_emit(h, "static inline CUresult @_workspace_bytes(@_program *handle");
    header_parameters(h, false);
    str_add(h->out, ", size_t *workspace_bytes)\n{\n");
    header_collect_arguments(h, false);
    header_emit(h, "    return @_measure(handle, &values, workspace_bytes);\n}\n\n");
    header_emit(h, "static inline CUresult @_launch(@_program *handle, CUstream stream");
    header_parameters(h, true);
    str_add(h->out, ",\n    void *workspace, size_t workspace_bytes)\n{\n");
    header_collect_arguments(h, true);
    header_emit(h, "    return @_start(handle, stream, &values, workspace, workspace_bytes);\n}\n\n");
}

/* Zero the front of the workspace unless it holds the state of earlier launches. */
static void prepare_function(const struct header *h)
{
    header_emit(h,
                "static inline CUresult @_prepare(@_program *handle, CUstream stream, void *workspace, size_t "
                "workspace_bytes,\n    int64_t control, int64_t scratch)\n{\n    const int64_t bytes = workspace_bytes "
                "> INT64_MAX ? INT64_MAX : (int64_t)workspace_bytes / 256 * 256;\n    CUresult result = "
                "CUDA_SUCCESS;\n    if (ptxgen_add(control, scratch) > bytes || (uint64_t)(uintptr_t)workspace %% 256 "
                "!= 0)\n        return @_refuse(handle, CUDA_ERROR_INVALID_VALUE, \"the workspace is too small or not "
                "aligned to 256 bytes\");\n    if (workspace != handle->workspace || control > handle->intact) {\n     "
                "   if (control > 0)\n            result = cuMemsetD8Async((CUdeviceptr)(uintptr_t)workspace, 0, "
                "(size_t)control, stream);\n        handle->workspace = result == CUDA_SUCCESS ? workspace : NULL;\n   "
                "     handle->intact = control;\n    }\n    if (bytes - scratch < handle->intact)\n        "
                "handle->intact = 0; /* this launch's scratch overwrites it */\n    return result == CUDA_SUCCESS ? "
                "result : @_refuse(handle, result, \"zeroing the workspace failed\");\n}\n\n");
    header_emit(h, "static inline void @_reset(@_program *handle)\n{\n    handle->workspace = NULL;\n    "
                   "handle->intact = 0;\n}\n\n");
}

static void launch_case(const struct header *h, int c)
{
    const struct prog_case *k = &h->p->cases[c];
    str_add(h->out, "    ");
    header_condition(h, &k->guard);
    header_emit(h,
                " { /* %s */\n        result = @_measure_%d(handle, v);\n        if (result != CUDA_SUCCESS)\n         "
                "   return @_refuse(handle, result, \"measuring occupancy failed\");\n        @_place_%d(handle, v, "
                "offset, &control, &scratch);\n        result = @_prepare(handle, stream, workspace, workspace_bytes, "
                "control, scratch);\n        if (result != CUDA_SUCCESS)\n            return result;\n",
                k->name, c, c);
    for (int b = 0; b < k->nbuffers; b++)
        header_emit(h, "        buffer[%d] = base + (uint64_t)offset[%d]%s;\n", b, b,
                    k->buffer[b].region == REGION_SCRATCH ? " + (workspace_bytes / 256 * 256 - (uint64_t)scratch)"
                                                          : "");
    header_emit(h,
                "        result = @_run_%d(handle, stream, v, buffer);\n        if (result != CUDA_SUCCESS)\n          "
                "  @_reset(handle);\n        return result;\n    }\n",
                c);
}

static void launch_function(const struct header *h)
{
    header_emit(
        h,
        "static inline CUresult @_start(@_program *handle, CUstream stream, struct @_values *v, void *workspace,\n    "
        "size_t workspace_bytes)\n{\n    int64_t offset[%d], control = 0, scratch = 0;\n    uint64_t buffer[%d] = { 0 "
        "};\n    const uint64_t base = (uint64_t)(uintptr_t)workspace;\n    CUresult result = @_check(handle, v);\n",
        most_buffers(h->p), most_buffers(h->p));
    header_emit(h, "    if (result == CUDA_SUCCESS)\n        result = @_check_pointers(handle, v);\n    if (result != "
                   "CUDA_SUCCESS)\n        return result;\n");
    for (int c = 0; c < h->p->ncases; c++)
        launch_case(h, c);
    header_emit(h, "    (void)offset;\n    (void)buffer;\n    (void)base;\n    (void)control;\n    (void)scratch;\n    "
                   "return @_refuse(handle, CUDA_ERROR_NOT_SUPPORTED, \"no case covers these arguments\");\n}\n\n");
}

void header_code(const struct header *h)
{
    for (int m = 0; m < h->p->nmodules; m++)
        module_text(h, m);
    machine_codes(h);
    header_refuse(h);
    for (int c = 0; c < h->p->ncases; c++)
        header_case(h, c);
    unload_function(h);
    load_function(h);
    header_checks(h);
    workspace_function(h);
    prepare_function(h);
    launch_function(h);
}

static void write_header(const struct header *h)
{
    header_api(h);
    header_support(h->out);
    header_code(h);
    header_typed_functions(h);
    str_add(h->out, "#endif\n");
}

void program_header(const struct program *p, struct str *out)
{
    struct header h = { .p = p, .out = out, .name = p->name };
    if (header_name_arguments(&h))
        write_header(&h);
    header_forget_arguments(&h);
}
