/* SPDX-License-Identifier: Apache-2.0 */
/* tvm_ffi.c - a C file that calls a generated header from the calling convention of tvm-ffi, which torch, JAX, CuPy and
 * others speak: `int __tvm_ffi_NAME(void *self, const any *args, int32_t count, any *result)`.
 *
 *     arguments   inputs, outputs, params; sizes follow from the shapes; params with a default may be missing or None
 *     tensors     as in DLPack: type, shape, order and device are checked, and refused with the argument's name
 *     stream      the caller's current one; a program and its workspace are kept for each device and stream
 *
 * What of the convention is used is declared in the file, so that it needs no header but cuda.h.
 */
#include "header_impl.h"

#include <stdlib.h>
#include <string.h>

/* What a program needs of it. */
enum need { ALWAYS, OF_PARAMS, OF_INTEGERS, OF_FLOATS, OF_HALVES };

/* In pieces, because a compiler need not accept string literals of more than 4095 characters, and warns of functions that nothing
 * calls. */
static const struct piece {
    enum need need;
    const char *text;
} support[] = {
    { ALWAYS,
      "/* ---- of tvm-ffi ------------------------------------------------------------------------------------ */\n"
      "typedef struct {\n"
      "    int32_t type; /* 0 none, 1 integer, 2 bool, 3 float, 7 pointer to a tensor, 70 object that holds a tensor "
      "*/\n"
      "    uint32_t zero;\n"
      "    union {\n"
      "        int64_t integer;\n"
      "        double real;\n"
      "        void *pointer;\n"
      "    } v;\n"
      "} ffi_any;\n"
      "enum { FFI_NONE = 0, FFI_INTEGER = 1, FFI_BOOL = 2, FFI_FLOAT = 3, FFI_TENSOR = 7, FFI_TENSOR_OBJECT = 70 };\n"
      "enum { FFI_OBJECT_BYTES = 24, ON_CUDA = 2, ON_CUDA_MANAGED = 13 };\n"
      "/* DLTensor of DLPack. */\n"
      "typedef struct {\n"
      "    char *data;\n"
      "    int32_t device_type, device, rank;\n"
      "    uint8_t code, bits;\n"
      "    uint16_t lanes;\n"
      "    const int64_t *shape, *strides; /* strides NULL: row-major */\n"
      "    uint64_t byte_offset;\n"
      "} ffi_tensor;\n"
      "extern void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);\n"
      "extern void *TVMFFIEnvGetStream(int32_t device_type, int32_t device);\n"
      "\n"
      "/* ---- arguments ------------------------------------------------------------------------------------- */\n"
      "enum { RANK_MAX = 8 };\n"
      "/* Dimensions are sizes, number `size` (-1: none), plus `add`. */\n"
      "struct array {\n"
      "    const char *name, *type;\n"
      "    int code, bits, rank, size[RANK_MAX];\n"
      "    int64_t add[RANK_MAX];\n"
      "};\n"
      "/* -1, after the caller's library knows what is wrong. */\n"
      "static int fails(const char *kind, const char *format, ...)\n"
      "{\n"
      "    char text[1400];\n"
      "    va_list list;\n"
      "    va_start(list, format);\n"
      "    vsnprintf(text, sizeof text, format, list);\n"
      "    va_end(list);\n"
      "    TVMFFIErrorSetRaisedFromCStr(kind, text);\n"
      "    return -1;\n"
      "}\n" },
    { ALWAYS,
      "/* A tensor of the right type on the GPU that all are on (-1: none yet). */\n"
      "static int take_tensor(const struct array *a, const ffi_any *given, int32_t *device, const ffi_tensor **out)\n"
      "{\n"
      "    const ffi_tensor *t = NULL;\n"
      "    if (given->type == FFI_TENSOR)\n"
      "        t = (const ffi_tensor *)given->v.pointer;\n"
      "    else if (given->type == FFI_TENSOR_OBJECT)\n"
      "        t = (const ffi_tensor *)(const void *)((const char *)given->v.pointer + FFI_OBJECT_BYTES);\n"
      "    if (!t)\n"
      "        return fails(\"TypeError\", PROGRAM \": '%s' must be a tensor\", a->name);\n"
      "    if (t->device_type != ON_CUDA && t->device_type != ON_CUDA_MANAGED)\n"
      "        return fails(\"ValueError\", PROGRAM \": '%s' is not in the memory of a CUDA device\", a->name);\n"
      "    if (*device >= 0 && t->device != *device)\n"
      "        return fails(\"ValueError\", PROGRAM \": '%s' is on device %d, and what comes before it on device %d\", "
      "a->name,\n"
      "                     (int)t->device, (int)*device);\n"
      "    if (t->code != a->code || t->bits != a->bits || t->lanes != 1)\n"
      "        return fails(\"TypeError\", PROGRAM \": the elements of '%s' must be %s\", a->name, a->type);\n"
      "    if (t->rank != a->rank)\n"
      "        return fails(\"ValueError\", PROGRAM \": '%s' has %d dimensions instead of %d\", a->name, (int)t->rank, "
      "a->rank);\n"
      "    *device = t->device;\n"
      "    *out = t;\n"
      "    return 0;\n"
      "}\n"
      "/* Sizes that are dimensions by themselves say more than those with a number added. */\n"
      "static void find_sizes(const struct array *a, const ffi_tensor *t, int with_add, int64_t *size)\n"
      "{\n"
      "    int d;\n"
      "    for (d = 0; d < a->rank; d++)\n"
      "        if (a->size[d] >= 0 && size[a->size[d]] < 0 && (a->add[d] == 0 || with_add))\n"
      "            size[a->size[d]] = t->shape[d] - a->add[d];\n"
      "}\n"
      "static int check_shape(const struct array *a, const ffi_tensor *t, const int64_t *size)\n"
      "{\n"
      "    int64_t step = 1, elements = 1;\n"
      "    int d;\n"
      "    for (d = 0; d < a->rank; d++) {\n"
      "        const int64_t want = (a->size[d] < 0 ? 0 : size[a->size[d]]) + a->add[d];\n"
      "        elements *= t->shape[d] != 0;\n"
      "        if (t->shape[d] != want)\n"
      "            return fails(\"ValueError\", PROGRAM \": dimension %d of '%s' has %lld elements instead of %lld\", "
      "d, "
      "a->name,\n"
      "                         (long long)t->shape[d], (long long)want);\n"
      "    }\n"
      "    for (d = a->rank - 1; d >= 0 && t->strides && elements; step *= t->shape[d--])\n"
      "        if (t->shape[d] != 1 && t->strides[d] != step)\n"
      "            return fails(\"ValueError\", PROGRAM \": '%s' must be contiguous, row by row\", a->name);\n"
      "    return 0;\n"
      "}\n" },
    { ALWAYS,
      "/* Each size follows from a dimension. */\n"
      "static int check_sizes(const char *const *name, int count, const int64_t *size)\n"
      "{\n"
      "    int i;\n"
      "    for (i = 0; i < count; i++)\n"
      "        if (size[i] < 0)\n"
      "            return fails(\"ValueError\", PROGRAM \": the size '%s' follows from no tensor, or is negative\", "
      "name[i]);\n"
      "    return 0;\n"
      "}\n"
      "static void *data_of(const ffi_tensor *t) { return t->data ? t->data + t->byte_offset : NULL; }\n" },
    { OF_PARAMS, "/* A param is missing where the default is taken. */\n"
                 "static int is_missing(const ffi_any *given) { return !given || given->type == FFI_NONE; }\n" },
    { OF_INTEGERS,
      "static int take_integer(const char *name, const ffi_any *given, int64_t least, int64_t most, int64_t *out)\n"
      "{\n"
      "    if (is_missing(given))\n"
      "        return fails(\"TypeError\", PROGRAM \": the param '%s' is missing\", name);\n"
      "    if (given->type != FFI_INTEGER && given->type != FFI_BOOL)\n"
      "        return fails(\"TypeError\", PROGRAM \": the param '%s' must be an integer\", name);\n"
      "    if (given->v.integer < least || given->v.integer > most)\n"
      "        return fails(\"ValueError\", PROGRAM \": the param '%s' is %lld, and must be %lld to %lld\", name,\n"
      "                     (long long)given->v.integer, (long long)least, (long long)most);\n"
      "    *out = given->v.integer;\n"
      "    return 0;\n"
      "}\n" },
    { OF_FLOATS, "static int take_float(const char *name, const ffi_any *given, double *out)\n"
                 "{\n"
                 "    if (is_missing(given))\n"
                 "        return fails(\"TypeError\", PROGRAM \": the param '%s' is missing\", name);\n"
                 "    if (given->type != FFI_FLOAT && given->type != FFI_INTEGER)\n"
                 "        return fails(\"TypeError\", PROGRAM \": the param '%s' must be a number\", name);\n"
                 "    *out = given->type == FFI_FLOAT ? given->v.real : (double)given->v.integer;\n"
                 "    return 0;\n"
                 "}\n" },
    { OF_HALVES, "/* Rounded to nearest even into 16 bits: 5 and 10 for f16, 8 and 7 for bf16. */\n"
                 "static uint16_t narrow(double value, int exponent_bits, int fraction_bits)\n"
                 "{\n"
                 "    const int bias = (1 << (exponent_bits - 1)) - 1;\n"
                 "    const uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits, sign = signbit(value) ? "
                 "0x8000u : 0;\n"
                 "    uint32_t bits;\n"
                 "    int exponent;\n"
                 "    if (value != value)\n"
                 "        return (uint16_t)(sign | infinity | 1u << (fraction_bits - 1));\n"
                 "    if (value == 0 || value - value != 0)\n"
                 "        return (uint16_t)(sign | (value == 0 ? 0 : infinity));\n"
                 "    frexp(value, &exponent); /* 0.5 to 1 */\n"
                 "    if (exponent > bias + 1)\n"
                 "        return (uint16_t)(sign | infinity);\n"
                 "    if (exponent < 2 - bias)\n"
                 "        exponent = 2 - bias;\n"
                 "    bits = (uint32_t)(exponent + bias - 2) << fraction_bits; /* a normal number has one more in its "
                 "fraction */\n"
                 "    bits += (uint32_t)nearbyint(ldexp(fabs(value), fraction_bits + 1 - exponent));\n"
                 "    return (uint16_t)(sign | (bits < infinity ? bits : infinity));\n"
                 "}\n\n" },
    { ALWAYS,
      "/* ---- programs -------------------------------------------------------------------------------------- */\n"
      "/* For a device and stream.  Memory that has become too small stays: captured graphs may use it. */\n"
      "struct kept {\n"
      "    struct kept *next;\n"
      "    int32_t device;\n"
      "    CUcontext context;\n"
      "    CUstream stream;\n"
      "    program_type program;\n"
      "    CUdeviceptr workspace;\n"
      "    size_t bytes;\n"
      "    int loaded;\n"
      "};\n"
      "static struct kept *first_kept;\n"
      "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n"
      "\n"
      "static int driver_fails(const char *what, CUresult result)\n"
      "{\n"
      "    const char *text = NULL;\n"
      "    cuGetErrorString(result, &text);\n"
      "    return fails(\"RuntimeError\", PROGRAM \": %s: %s\", what, text ? text : \"an error of the CUDA driver\");\n"
      "}\n"
      "static int program_fails(const program_type *program)\n"
      "{\n"
      "    return fails(\"RuntimeError\", PROGRAM \": %s\", program->message ? program->message : \"the launch "
      "failed\");\n"
      "}\n"
      "static int not_captured(CUstream stream, const char *what)\n"
      "{\n"
      "    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;\n"
      "    const CUresult result = cuStreamIsCapturing(stream, &status);\n"
      "    if (result != CUDA_SUCCESS)\n"
      "        return driver_fails(\"cuStreamIsCapturing\", result);\n"
      "    return status == CU_STREAM_CAPTURE_STATUS_NONE\n"
      "               ? 0\n"
      "               : fails(\"RuntimeError\", PROGRAM \": %s, which a capture does not allow: call it once before\", "
      "what);\n"
      "}\n"
      "/* The lock is held. */\n"
      "static int find_kept(int32_t device, CUstream stream, struct kept **out)\n"
      "{\n"
      "    struct kept *k = first_kept;\n"
      "    CUdevice ordinal;\n"
      "    CUresult result = cuInit(0);\n"
      "    while (k && (k->device != device || k->stream != stream))\n"
      "        k = k->next;\n"
      "    *out = k;\n"
      "    if (k)\n"
      "        return 0;\n"
      "    *out = k = (struct kept *)calloc(1, sizeof *k);\n"
      "    if (!k)\n"
      "        return fails(\"MemoryError\", PROGRAM \": out of memory\");\n"
      "    k->device = device;\n"
      "    k->stream = stream;\n"
      "    if (result == CUDA_SUCCESS)\n"
      "        result = cuDeviceGet(&ordinal, device);\n"
      "    if (result == CUDA_SUCCESS)\n"
      "        result = cuDevicePrimaryCtxRetain(&k->context, ordinal);\n"
      "    if (result == CUDA_SUCCESS) {\n"
      "        k->next = first_kept;\n"
      "        first_kept = k;\n"
      "        return 0;\n"
      "    }\n"
      "    free(k);\n"
      "    return driver_fails(\"the device cannot be opened\", result);\n"
      "}\n"
      "/* The context is current. */\n"
      "static int make_room(struct kept *k, size_t bytes)\n"
      "{\n"
      "    CUresult result = CUDA_SUCCESS;\n"
      "    if (bytes > k->bytes) {\n"
      "        if (not_captured(k->stream, \"memory would be allocated\"))\n"
      "            return -1;\n"
      "        result = cuMemAlloc(&k->workspace, bytes + bytes / 4);\n"
      "        k->bytes = result == CUDA_SUCCESS ? bytes + bytes / 4 : 0;\n"
      "    }\n"
      "    return result == CUDA_SUCCESS ? 0 : driver_fails(\"memory for the workspace\", result);\n"
      "}\n"
      "/* In a graph, a launch begins with a workspace of its own making; so does the launch after it. */\n"
      "static void reset_in_capture(struct kept *k, void (*reset)(program_type *program))\n"
      "{\n"
      "    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;\n"
      "    if (cuStreamIsCapturing(k->stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE)\n"
      "        reset(&k->program);\n"
      "}\n\n" },
};

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Type codes of DLPack. */
static int code_of(enum ty t)
{
    return t == TY_BOOL ? 6 : t == TY_BF16 ? 4 : ty_is_float(t) ? 2 : ty_is_signed(t) ? 0 : 1;
}

static bool is_plain(const struct prog_array *a) { return a->nfields == 1 && a->field[0].name[0] == '\0'; }

/* Fields of one type without gaps are a last dimension; others are bytes. */
static bool is_uniform(const struct prog_array *a)
{
    bool same = true;
    for (int f = 0; f < a->nfields; f++)
        same &= a->field[f].type == a->field[0].type;
    return same && a->stride == a->nfields * ty_bytes(a->field[0].type);
}

static void array_row(const struct header *h, const struct prog_array *a)
{
    const enum ty t = is_uniform(a) ? a->field[0].type : TY_U8;
    const int more = !is_plain(a);
    header_emit(h, "    { \"%s\", \"%s\", %d, %d, %d, {", a->name, ty_name(t), code_of(t),
                t == TY_BOOL ? 8 : ty_bits(t), a->rank + more);
    for (int d = 0; d < a->rank; d++)
        header_emit(h, " %d,", a->dim[d].size);
    str_add(h->out, more ? " -1 }, {" : a->rank ? " }, {" : " 0 }, {");
    for (int d = 0; d < a->rank; d++)
        header_emit(h, " %lld,", (long long)a->dim[d].add);
    if (more)
        header_emit(h, " %d", is_uniform(a) ? a->nfields : a->stride);
    str_add(h->out, a->rank || more ? " } },\n" : " 0 } },\n");
}

static void arrays_table(const struct header *h)
{
    const struct program *p = h->p;
    str_add(h->out, "/* Inputs, then outputs. */\nstatic const struct array arrays[] = {\n");
    for (int i = 0; i < p->ninputs + p->noutputs; i++)
        array_row(h, header_array_of(p, i));
    str_add(h->out, "};\nstatic const char *const sizes[] = {");
    for (int i = 0; i < p->nsizes; i++)
        header_emit(h, " \"%s\",", p->size[i]);
    str_add(h->out, " NULL };\n\n");
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static void limits(enum ty t, struct str *out)
{
    const int bits = ty_bits(t);
    if (t == TY_BOOL)
        str_add(out, "0, 1");
    else if (bits == 64)
        str_add(out, ty_is_signed(t) ? "INT64_MIN, INT64_MAX" : "0, INT64_MAX");
    else if (ty_is_signed(t))
        str_printf(out, "-INT64_C(%lld) - 1, INT64_C(%lld)", (1LL << (bits - 1)) - 1, (1LL << (bits - 1)) - 1);
    else
        str_printf(out, "0, INT64_C(%lld)", (1LL << bits) - 1);
}

static void take_param(const struct header *h, int i)
{
    const struct program *p = h->p;
    const struct prog_param *x = &p->param[i];
    const bool real = ty_is_float(x->type);
    const int at = p->ninputs + p->noutputs + i;
    if (x->has_default)
        header_emit(h, "    if (is_missing(count > %d ? &args[%d] : NULL))\n        p%d = @_DEFAULT_%s;\n    else ", at,
                    at, i, x->name);
    else
        str_add(h->out, "    ");
    header_emit(h, "if (%s(\"%s\", count > %d ? &args[%d] : NULL, ", real ? "take_float" : "take_integer", x->name, at,
                at);
    if (!real) {
        limits(x->type, h->out);
        str_add(h->out, ", ");
    }
    header_emit(h, "&%s))\n        return -1;\n    else\n        p%d = ", real ? "number" : "integer", i);
    if (x->type == TY_F16 || x->type == TY_BF16)
        header_emit(h, "narrow(number, %s);\n", x->type == TY_F16 ? "5, 10" : "8, 7");
    else
        header_emit(h, "(%s)%s;\n", header_c_type(x->type), real ? "number" : "integer");
}

/* What the header's functions are called with here, in the place of their arguments' names. */
static bool name_passed(struct header *h)
{
    const struct program *p = h->p;
    const int arrays = p->ninputs + p->noutputs, n = p->nsizes + arrays + p->nparams;
    h->argument = calloc((size_t)n + 1, sizeof *h->argument);
    for (int i = 0; h->argument && i < n; i++) {
        const int array = i - p->nsizes, param = array - arrays;
        struct str *name = &h->argument[i];
        str_printf(name,
                   array < 0   ? "size[%d]"
                   : param < 0 ? "data_of(t[%d])"
                               : "p%d",
                   array < 0   ? i
                   : param < 0 ? array
                               : param);
        h->out->failed |= name->failed;
    }
    h->out->failed |= h->argument == NULL;
    return h->argument != NULL;
}

static void launch_function(const struct header *h)
{
    str_add(h->out, "/* In the context and with the lock. */\nstatic int launch(struct kept *k, const int64_t *size, "
                    "const ffi_tensor *const *t");
    for (int i = 0; i < h->p->nparams; i++)
        header_emit(h, ", %s p%d", header_c_type(h->p->param[i].type), i);
    header_emit(h, ")\n{\n    size_t bytes = 0;\n    CUresult result;\n    (void)size;\n"
                   "    if (!k->loaded && not_captured(k->stream, \"code would be loaded\"))\n        return -1;\n"
                   "    if (!k->loaded && @_load(&k->program) != CUDA_SUCCESS)\n        return "
                   "program_fails(&k->program);\n    k->loaded = 1;\n    if (@_workspace_bytes(&k->program");
    header_names(h, false);
    header_emit(h, ", &bytes) != CUDA_SUCCESS)\n        return program_fails(&k->program);\n"
                   "    if (make_room(k, bytes > 256 ? bytes : 256))\n        return -1;\n"
                   "    reset_in_capture(k, @_reset);\n    result = @_launch(&k->program, k->stream");
    header_names(h, true);
    header_emit(h, ",\n        ptxgen_pointer(k->workspace), k->bytes);\n    reset_in_capture(k, @_reset);\n    return "
                   "result == CUDA_SUCCESS ? 0 : program_fails(&k->program);\n}\n\n");
}

static int needed(const struct program *p)
{
    int n = p->nparams;
    while (n > 0 && p->param[n - 1].has_default)
        n--;
    return p->ninputs + p->noutputs + n;
}

static void call_function(const struct header *h)
{
    const struct program *p = h->p;
    const int arrays = p->ninputs + p->noutputs;
    header_emit(h,
                "__attribute__((visibility(\"default\"))) int __tvm_ffi_@(void *self, const ffi_any *args, int32_t "
                "count, ffi_any *result);\nint __tvm_ffi_@(void *self, const ffi_any *args, int32_t count, ffi_any "
                "*result)\n{\n    const ffi_tensor *t[%d] = { NULL };\n    int64_t size[%d], integer = 0;\n    double "
                "number = 0;\n    int32_t device = -1;\n    struct kept *k;\n    CUcontext left;\n    CUresult "
                "entered;\n    int i, status "
                "= 0;\n",
                arrays + 1, p->nsizes + 1);
    for (int i = 0; i < p->nparams; i++)
        header_emit(h, "    %s p%d = 0;\n", header_c_type(p->param[i].type), i);
    header_emit(h,
                "    (void)self, (void)integer, (void)number;\n    if (count < %d || count > %d)\n        return "
                "fails(\"TypeError\", PROGRAM \" takes %d to %d arguments, and got %%d\", (int)count);\n",
                needed(p), arrays + p->nparams, needed(p), arrays + p->nparams);
    header_emit(h,
                "    for (i = 0; i <= %d; i++)\n        size[i] = -1;\n    for (i = 0; i < %d; i++)\n        if "
                "(take_tensor(&arrays[i], &args[i], &device, &t[i]))\n            return -1;\n    for (i = 0; i < 2 * "
                "%d; i++)\n        find_sizes(&arrays[i %% %d], t[i %% %d], i >= %d, size);\n    for (i = 0; i < %d; "
                "i++)\n        if (check_shape(&arrays[i], t[i], size))\n            return -1;\n    if "
                "(check_sizes(sizes, %d, size))\n        return -1;\n",
                p->nsizes, arrays, arrays, arrays, arrays, arrays, arrays, p->nsizes);
    for (int i = 0; i < p->nparams; i++)
        take_param(h, i);
    str_add(h->out, "    pthread_mutex_lock(&lock);\n    status = find_kept(device, (CUstream)TVMFFIEnvGetStream(ON_"
                    "CUDA, device), &k);\n    if (status == 0) {\n        entered = "
                    "cuCtxPushCurrent(k->context);\n        status = entered == CUDA_SUCCESS ? launch(k, size, t");
    for (int i = 0; i < p->nparams; i++)
        header_emit(h, ", p%d", i);
    str_add(h->out, ") : driver_fails(\"cuCtxPushCurrent\", entered);\n        if (entered == CUDA_SUCCESS)\n          "
                    "  cuCtxPopCurrent(&left);\n    }\n    pthread_mutex_unlock(&lock);\n    result->type = "
                    "FFI_NONE;\n    result->v.integer = 0;\n    return status;\n}\n");
}

static void introduction(const struct header *h)
{
    const struct program *p = h->p;
    header_emit(h, "/* @_tvm_ffi.c - generated by ptxgen; do not edit.\n *\n * A function of tvm-ffi:\n *\n *     @(");
    for (int i = 0; i < p->ninputs + p->noutputs; i++)
        header_emit(h, "%s%s", i ? ", " : "", header_array_of(p, i)->name);
    for (int i = 0; i < p->nparams; i++)
        header_emit(h, p->param[i].has_default ? ", %s=default" : ", %s", p->param[i].name);
    header_emit(h,
                ")\n *\n * Outputs are tensors that the caller has made.  Launches are enqueued on the caller's "
                "current stream.  Build it\n * beside @.h (--emit=header,tvm-ffi) into a shared library:\n *\n *     "
                "cc -shared -fPIC -O2 -I/usr/local/cuda/include @_tvm_ffi.c -o @.so $(tvm-ffi-config --ldflags "
                "--libs) -lcuda -lm\n *\n * and load that, in Python with tvm_ffi.load_module(\"@.so\").\n */\n");
    header_emit(h, "#include \"@.h\"\n\n#include <pthread.h>\n#include <stdarg.h>\n#include <stdio.h>\n\n#define "
                   "PROGRAM \"@\"\ntypedef @_program program_type;\n\n");
}

static bool needs(const struct program *p, enum need need)
{
    bool any = need == ALWAYS;
    for (int i = 0; i < p->nparams; i++) {
        const enum ty type = p->param[i].type;
        const bool half = type == TY_F16 || type == TY_BF16, real = ty_is_float(type);
        any |= need == OF_PARAMS || (need == OF_INTEGERS && !real) || (need == OF_FLOATS && real) ||
               (need == OF_HALVES && half);
    }
    return any;
}

void program_tvm_ffi(const struct program *p, struct str *out)
{
    struct header h = { .p = p, .out = out, .name = p->name };
    if (!name_passed(&h))
        return;
    introduction(&h);
    for (size_t i = 0; i < sizeof support / sizeof *support; i++)
        if (needs(p, support[i].need))
            str_add(out, support[i].text);
    arrays_table(&h);
    launch_function(&h);
    call_function(&h);
    header_forget_arguments(&h);
}

void stages_tvm_ffi(const struct prog_stages *p, const struct program *const *stage, struct str *out)
{
    (void)stage;
    program_tvm_ffi(p->shape, out);
}
