/* SPDX-License-Identifier: Apache-2.0 */
/* access.c - see access.h. */
#include "access.h"

#include <string.h>

static bool follows_space(const struct problem *p, int rank, const int *axis)
{
    if (rank != p->rank)
        return false;
    for (int d = 0; d < rank; d++)
        if (axis[d] != d)
            return false;
    return true;
}

static bool in_order(const struct problem *p, int input)
{
    const struct input *in = &p->input[input];
    return in->role == ROLE_ELEMENT && follows_space(p, in->array.rank, in->axis);
}

bool access_input_direct(const struct problem *p, int input)
{
    int fields = p->input[input].array.nfields;
    for (int i = 0; i < input; i++)
        fields += in_order(p, i) ? p->input[i].array.nfields : 0;
    return in_order(p, input) && fields <= DIRECT_FIELDS_MAX;
}

bool access_output_whole(const struct problem *p, int output)
{
    const struct output *out = &p->output[output];
    for (int d = 0; d < out->array.rank && !output_is_placed(out); d++) {
        const struct prog_dim *e = &p->space[out->axis[d]].extent;
        if (e->size != out->array.dim[d].size || e->add != out->array.dim[d].add)
            return false;
    }
    return true;
}

bool access_output_direct(const struct problem *p, int output)
{
    const struct output *out = &p->output[output];
    const bool of_points = out->role == OUT_ELEMENT || out->role == OUT_MAPPED;
    return of_points && follows_space(p, out->array.rank, out->axis) && access_output_whole(p, output);
}

int access_structure_bytes(const struct prog_array *a)
{
    const int bytes = ty_bytes(a->field[0].type);
    bool plain =
        *a->field[0].name && a->stride == a->nfields * bytes && a->stride <= 16 && (a->stride & (a->stride - 1)) == 0;
    for (int i = 0; plain && i < a->nfields; i++)
        plain = a->field[i].type == a->field[0].type && a->field[i].offset == i * bytes;
    return plain ? a->stride : 0;
}

bool access_output_in_segments(const struct problem *p, const struct output *o)
{
    int kept = 0;
    for (int d = 0; d < p->rank; d++) {
        if (p->space[d].reduced)
            continue;
        const struct prog_dim *e = &p->space[d].extent;
        if (kept >= o->array.rank || o->axis[kept] != d || o->array.dim[kept].size != e->size ||
            o->array.dim[kept].add != e->add)
            return false;
        kept++;
    }
    return kept == o->array.rank;
}

bool access_output_vector(const struct problem *p, int output)
{
    return access_output_direct(p, output) && !*p->output[output].array.field[0].name;
}

const struct prog_array *access_direct(const struct problem *p, int i)
{
    const bool direct = i < p->ninputs ? access_input_direct(p, i) : access_output_direct(p, i - p->ninputs);
    return direct ? problem_array(p, i) : NULL;
}

int access_direct_fields(const struct problem *p)
{
    int n = 0;
    for (int i = 0; i < p->ninputs; i++)
        n += access_input_direct(p, i) ? p->input[i].array.nfields : 0;
    return n;
}

int access_tile_pitch(int n, int bytes)
{
    enum { WORD = 4 };
    const int unit = bytes < WORD ? WORD / bytes : 1;
    return ((n + unit - 1) / unit | 1) * unit;
}

int access_widest(const struct problem *p)
{
    int bytes = 1;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = access_direct(p, i);
        for (int f = 0; a && f < a->nfields; f++)
            bytes = ty_bytes(a->field[f].type) > bytes ? ty_bytes(a->field[f].type) : bytes;
    }
    return bytes;
}

bool access_any_direct(const struct problem *p)
{
    bool any = false;
    for (int i = 0; i < p->ninputs + p->noutputs; i++)
        any |= access_direct(p, i) != NULL;
    return any;
}

bool access_beside(const struct problem *p)
{
    bool any = false;
    for (int i = 0; i < p->ninputs; i++)
        any |= p->input[i].neighbours && access_input_direct(p, i);
    return any;
}

int access_vector_width(const struct problem *p)
{
    int stride = 0;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = access_direct(p, i);
        if (a && a->stride > stride)
            stride = a->stride;
    }
    if (stride == 0)
        return 1;
    int v = 16;
    while (v > 1 && v * stride > 16)
        v /= 2;
    return v;
}

struct formula access_size(const struct problem *p, int size)
{
    const struct dimension *d = &p->size[size];
    if (size < p->nsizes)
        return f_size(size);
    struct formula n = d->times == 1 ? f_size(d->part[0]) : f_mul(d->times, f_size(d->part[0]));
    for (int k = 1; k < d->nparts; k++)
        n = f_mul(n, f_size(d->part[k]));
    return n;
}

struct formula access_extent(const struct problem *p, const struct prog_dim *d)
{
    if (d->size < 0)
        return f_const(d->add);
    return d->add ? f_add(access_size(p, d->size), d->add) : access_size(p, d->size);
}

struct formula access_elements(const struct problem *p, const struct prog_array *a)
{
    struct formula n = f_const(1);
    for (int d = 0; d < a->rank; d++) {
        const struct formula extent = access_extent(p, &a->dim[d]);
        n = d == 0 ? extent : f_mul(n, extent);
    }
    return n;
}

static struct prog_array points(const struct problem *p)
{
    struct prog_array a = { .stride = 1, .rank = p->rank };
    for (int d = 0; d < p->rank; d++)
        a.dim[d] = p->space[d].extent;
    return a;
}

struct formula access_count(const struct problem *p)
{
    const struct prog_array all = points(p);
    return access_elements(p, &all);
}

/* ---- where vectors begin ----------------------------------------------------------------------------------------- */

/* The direct arrays whose elements have one size: their vectors begin at multiples of the same `bytes`. */
struct vector_class {
    int stride, bytes;
    bool halves; /* structures may begin between multiples of their size */
    uint64_t pointers;
};

/* A stride that is no power of two shares no common boundary with the others: only aligned pointers will do. */
static bool power_of_two(int x) { return (x & (x - 1)) == 0; }

struct alignment {
    int vector, n;
    bool zero; /* only arrays that begin at a boundary will do */
    struct vector_class of[PROBLEM_ARGS_MAX];
};

static void classify(struct alignment *al, const struct prog_array *a, int pointer)
{
    const int bytes = al->vector * a->stride;
    int c = 0;
    while (c < al->n && al->of[c].stride != a->stride)
        c++;
    if (c == al->n)
        al->of[al->n++] =
            (struct vector_class){ .stride = a->stride,
                                   .bytes = power_of_two(bytes) && bytes < ACCESS_BYTES ? bytes : ACCESS_BYTES };
    al->of[c].halves |= a->nfields > 1;
    al->of[c].pointers |= f_pointer(pointer);
    al->zero |= !power_of_two(a->stride);
}

static struct alignment alignment_of(const struct problem *p, int vector, bool zero)
{
    struct alignment al = { .vector = vector, .zero = zero };
    for (int i = 0; i < p->ninputs + p->noutputs; i++)
        if (access_direct(p, i))
            classify(&al, access_direct(p, i), i);
    al.zero |= al.n > 4; /* the guard of so many different sizes would be long */
    return al;
}

/* Elements from the boundary before to where the class's arrays begin. */
static struct formula misplaced(const struct vector_class *v)
{
    const struct formula address = f_misalign(v->pointers & -v->pointers);
    return f_div(f_mod(address, v->bytes), v->stride);
}

static void require(struct formula *guard, struct formula bits, int bytes)
{
    *guard = f_and(*guard, f_eq(f_mod(bits, bytes), 0));
}

struct formula access_begin_at(const uint64_t set[ACCESS_BYTES + 1])
{
    struct formula all = { 0 };
    for (int bytes = 2; bytes <= ACCESS_BYTES; bytes *= 2)
        if (set[bytes])
            require(&all, f_misalign(set[bytes]), bytes);
    return all;
}

bool access_aligned_guard(const struct problem *p, int vector, bool always_zero, struct formula *guard)
{
    const struct alignment al = alignment_of(p, vector, always_zero);
    uint64_t set[ACCESS_BYTES + 1] = { 0 };
    struct formula all = { 0 };
    if (vector <= 1)
        return false;
    for (int c = 0; c < al.n && al.zero; c++)
        set[al.of[c].bytes] |= al.of[c].pointers;
    if (al.zero)
        all = access_begin_at(set);
    for (int c = 0; c < al.n && !al.zero; c++) {
        const struct vector_class *v = &al.of[c];
        if (v->halves)
            require(&all, f_misalign(v->pointers), v->stride);
        if (v->pointers & (v->pointers - 1))
            require(&all, f_apart(v->pointers), v->bytes);
        if (c > 0)
            all = f_and(all, f_eq(misplaced(v), misplaced(&al.of[0])));
    }
    if (all.n)
        *guard = all;
    return all.n != 0;
}

struct formula access_head(const struct problem *p, int vector)
{
    const struct alignment al = alignment_of(p, vector, false);
    if (vector <= 1 || al.n == 0 || al.zero)
        return f_const(0);
    /* (vector - misplaced) mod vector, and never more than there are elements. */
    struct formula head = f_mod(f_sub(vector, misplaced(&al.of[0])), vector);
    return f_min(head, access_count(p));
}

/* No more than the type holds. */
static void add_bytes(int64_t *sum, int64_t elements, int stride)
{
    int64_t bytes;
    if (elements > 0 &&
        (__builtin_mul_overflow(elements, (int64_t)stride, &bytes) || __builtin_add_overflow(*sum, bytes, sum)))
        *sum = INT64_MAX;
}

void access_bytes(const struct problem *p, const int64_t *size, int64_t *read, int64_t *written)
{
    *read = *written = 0;
    for (int i = 0; i < p->ninputs; i++) {
        const int64_t n = problem_elements(p, &p->input[i].array, size);
        add_bytes(read, n, p->input[i].array.stride);
    }
    const struct prog_array all = points(p);
    const int64_t most = problem_elements(p, &all, size);
    for (int o = 0; o < p->noutputs; o++) {
        const int64_t n = problem_elements(p, &p->output[o].array, size);
        add_bytes(written, output_is_placed(&p->output[o]) && most < n ? most : n, p->output[o].array.stride);
    }
}

int state_fields(const struct problem *p, enum ty *types)
{
    int n = 0;
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++, n++)
            if (types)
                types[n] = p->reduction[r].op->field[f];
    return n;
}

int state_first(const struct problem *p, int reduction)
{
    int n = 0;
    for (int r = 0; r < reduction; r++)
        n += p->reduction[r].op->nfields;
    return n;
}

int kept_bytes(const struct problem *p)
{
    int bytes = 0;
    for (int o = 0; o < p->noutputs; o++)
        if (p->output[o].role == OUT_KEPT && !*p->output[o].array.field[0].name && p->output[o].array.stride > bytes)
            bytes = p->output[o].array.stride;
    return bytes;
}

int state_bytes(const struct problem *p)
{
    enum ty type[STATE_FIELDS_MAX];
    int bytes = 0;
    for (int f = 0, n = state_fields(p, type); f < n; f++)
        bytes += ty_bytes(type[f]);
    return bytes;
}

int state_words(const struct problem *p, int *offset)
{
    enum ty type[STATE_FIELDS_MAX];
    return fields_words(type, state_fields(p, type), offset);
}

int fields_words(const enum ty *type, int n, int *offset)
{
    int bytes = 0;
    for (int f = 0; f < n; f++) {
        const int unit = ty_bytes(type[f]) < 4 ? ty_bytes(type[f]) : 4;
        bytes = (bytes + unit - 1) / unit * unit;
        if (offset)
            offset[f] = bytes;
        bytes += ty_bytes(type[f]);
    }
    return (bytes + 3) / 4;
}

static bool every(const struct problem *p, bool (*holds)(const struct op *op))
{
    for (int r = 0; r < p->nreductions; r++)
        if (!holds(p->reduction[r].op))
            return false;
    return true;
}

static bool op_commutes(const struct op *op) { return op->commutative; }
static bool op_exact(const struct op *op) { return op->exact; }
static bool op_pad(const struct op *op) { return op->pad[0] != NULL; }
static bool op_pad_end(const struct op *op) { return op_pad(op) || (op->builtin && op->identity[0] != NULL); }

bool state_commutative(const struct problem *p) { return every(p, op_commutes); }
bool state_pad(const struct problem *p) { return every(p, op_pad); }
bool state_pad_end(const struct problem *p) { return every(p, op_pad_end); }
enum determinism state_determinism(const struct problem *p) { return every(p, op_exact) ? DET_ANY : p->determinism; }

bool reduction_sums_bytes(const struct problem *p, const struct reduction *r)
{
    const struct expr *e = r->map[0];
    if (!r->op->builtin || strcmp(r->op->name, "add") || r->op->nfields != 1 || !ty_is_int(r->op->field[0]))
        return false;
    if (e->kind == EX_CAST && e->type == r->op->field[0])
        e = e->arg[0];
    if (e->kind != EX_INPUT || e->noffsets || (e->type != TY_I8 && e->type != TY_U8))
        return false;
    return access_input_direct(p, e->which) && *p->input[e->which].array.field[0].name == 0;
}

bool state_sums_bytes(const struct problem *p)
{
    for (int r = 0; r < p->nreductions; r++)
        if (!reduction_sums_bytes(p, &p->reduction[r]))
            return false;
    return p->kind == KIND_REDUCE && p->nreductions > 0;
}
