/* SPDX-License-Identifier: Apache-2.0 */
/* stencil.c - what stencils read and how far; see stencil.h. */
#include "stencil.h"

#include "lower/access.h"
#include "lower/lower_impl.h"

void stencil_each_read(const struct problem *p, void (*f)(const struct expr *e, void *user), void *user)
{
    for (int i = 0; i < p->nreads; i++)
        f(p->read[i].e, user);
}

struct input_reach {
    int input;
    struct reach reach;
};

static void extend(const struct expr *e, void *user)
{
    struct input_reach *r = user;
    if (e->kind != EX_INPUT || e->which != r->input)
        return;
    for (int d = 0; d < e->noffsets; d++) {
        r->reach.lo[d] = e->offset[d] < r->reach.lo[d] ? e->offset[d] : r->reach.lo[d];
        r->reach.hi[d] = e->offset[d] > r->reach.hi[d] ? e->offset[d] : r->reach.hi[d];
    }
}

struct reach stencil_input_reach(const struct problem *p, int input)
{
    struct input_reach r = { .input = input };
    stencil_each_read(p, extend, &r);
    return r.reach;
}

struct reach stencil_space_reach(const struct problem *p)
{
    struct reach all = { { 0 }, { 0 } };
    for (int i = 0; i < p->ninputs; i++) {
        const struct input *in = &p->input[i];
        const struct reach r = stencil_input_reach(p, i);
        for (int d = 0; in->role == ROLE_ELEMENT && d < in->array.rank; d++) {
            const int axis = in->axis[d];
            all.lo[axis] = r.lo[d] < all.lo[axis] ? r.lo[d] : all.lo[axis];
            all.hi[axis] = r.hi[d] > all.hi[axis] ? r.hi[d] : all.hi[axis];
        }
    }
    return all;
}

int stencil_joined_input(const struct problem *p)
{
    for (int i = 0; i < p->ninputs; i++) {
        const struct input *in = &p->input[i];
        if (in->role == ROLE_ELEMENT && in->array.rank && in->axis[0] == 0 && stencil_input_reach(p, i).lo[0] < 0)
            return i;
    }
    return -1;
}

bool stencil_bounded_by(const struct problem *p, enum boundary_mode mode)
{
    for (int i = 0; i < p->ninputs; i++)
        for (int d = 0; p->input[i].role == ROLE_ELEMENT && d < p->input[i].array.rank; d++)
            if (p->input[i].boundary[d].mode == mode)
                return true;
    return false;
}

int stencil_feeds(const struct problem *p, int input)
{
    for (int f = 0; f < p->nfeedback; f++)
        if (p->feedback[f].input == input)
            return f;
    return -1;
}

int stencil_fed(const struct problem *p, int output)
{
    for (int f = 0; f < p->nfeedback; f++)
        if (p->feedback[f].output == output)
            return f;
    return -1;
}

int stencil_roles(const struct problem *p, enum stencil_role role[STENCIL_ROLES])
{
    const bool finishes = problem_writes(p, AT_TOTAL), param = p->iterated && p->steps_param >= 0;
    int n = 0;
    if (!finishes || param || (p->iterated && p->steps > 1))
        role[n++] = STENCIL_STEP;
    if (finishes)
        role[n++] = STENCIL_LAST;
    if (!finishes && (param || (p->iterated && p->steps == 0)))
        role[n++] = STENCIL_COPY;
    return n;
}

int stencil_points(const struct plan_case *c, int rank, int axis)
{
    static const enum tunable_id points[] = { TN_POINTS_X, TN_POINTS_Y, TN_POINTS_Z };
    const int n = c->tunable[points[rank - 1 - axis]];
    return n > 0 ? n : 1;
}

int stencil_threads(const struct plan_case *c, int rank, int axis)
{
    const int x = c->tunable[TN_BLOCK_X], y = rank > 2 ? c->tunable[TN_BLOCK_Y] : c->tunable[TN_THREADS] / x;
    if (axis == rank - 1)
        return rank == 1 ? c->tunable[TN_THREADS] : x;
    return axis == rank - 2 ? y : c->tunable[TN_THREADS] / (x * y);
}

int stencil_box(const struct plan_case *c, int rank, int axis)
{
    return stencil_threads(c, rank, axis) * stencil_points(c, rank, axis);
}

bool stencil_skewed(const struct plan_case *c) { return c->shift[0] || c->shift[1]; }

/* Either way round is the same modulo the vector; the shorter one keeps windows narrow. */
int stencil_skew(const struct plan_case *c, int rank, const int *at)
{
    const int vector = stencil_points(c, rank, rank - 1);
    int columns = 0;
    for (int d = 0; d < rank - 1; d++) {
        const int shift = c->shift[d] % vector;
        columns += (2 * shift < vector ? -shift : vector - shift) * at[d];
    }
    return columns;
}

struct skews stencil_skews(const struct plan_case *c, int rank)
{
    struct skews s = { 0, 0 };
    for (int z = 0; z < (rank > 2 ? stencil_points(c, rank, 0) : 1); z++)
        for (int y = 0; y < (rank > 1 ? stencil_points(c, rank, rank - 2) : 1); y++) {
            const int at[] = { rank > 2 ? z : y, y }, columns = stencil_skew(c, rank, at);
            s.lo = columns < s.lo ? columns : s.lo;
            s.hi = columns > s.hi ? columns : s.hi;
        }
    return s;
}

int stencil_lead(const struct plan_case *c, int rank)
{
    const int vector = stencil_points(c, rank, rank - 1);
    return (stencil_skews(c, rank).hi + vector - 1) / vector * vector;
}

bool stencil_streams(const struct plan_case *c) { return c->strategy->plan == stencil_stream_plan; }

/* A point's reads of one input at one place of a plane: bit i stands for the offset lo + i along axis 0. */
struct column {
    const struct problem *p;
    int input;
    const struct expr *like;
    int64_t lo;
    uint64_t read;
};

static void column_read(const struct expr *e, void *user)
{
    struct column *c = user;
    if (e->kind != EX_INPUT || e->which != c->input || e->field != c->like->field)
        return;
    for (int d = 1; d < c->p->rank; d++)
        if ((e->noffsets ? e->offset[d] : 0) != (c->like->noffsets ? c->like->offset[d] : 0))
            return;
    c->read |= UINT64_C(1) << ((e->noffsets ? e->offset[0] : 0) - c->lo);
}

struct oldest {
    const struct problem *p;
    int64_t lo, at; /* of the space's reach; found so far */
};

/* What another read of the column had at the place before stays in registers; the others are loaded at their place. */
static void oldest_load(const struct expr *e, void *user)
{
    struct oldest *o = user;
    if (e->kind != EX_INPUT || !stencil_staged(o->p, e->which))
        return;
    struct column c = { .p = o->p, .input = e->which, .like = e, .lo = o->lo };
    stencil_each_read(o->p, column_read, &c);
    const int64_t at = e->noffsets ? e->offset[0] : 0;
    if (!(c.read >> (at - o->lo) & 2) && at < o->at)
        o->at = at;
}

struct own {
    int input;
    bool read;
};

static void own_read(const struct expr *e, void *user)
{
    struct own *o = user;
    bool centre = e->kind == EX_INPUT && e->which == o->input;
    for (int d = 0; d < e->noffsets; d++)
        centre &= e->offset[d] == 0;
    o->read |= centre;
}

/* Points that are not computed keep their own value, which is loaded for that alone where no expression reads it. */
static bool loads_to_keep(const struct problem *p)
{
    for (int f = 0; stencil_skips(p) && f < p->nfeedback; f++) {
        struct own o = { .input = p->feedback[f].input };
        stencil_each_read(p, own_read, &o);
        if (!o.read)
            return true;
    }
    return false;
}

static int multiple(int64_t x, int of) { return (int)((x + of - 1) / of * of); }

struct ring_shape stencil_ring(const struct problem *p, const struct plan_case *c, int input)
{
    const struct reach all = stencil_space_reach(p);
    const int last = p->rank - 1, points = stencil_points(c, p->rank, last);
    struct ring_shape s = { .reach = stencil_input_reach(p, input), .lo = all.lo[0], .hi = all.hi[0] };
    struct oldest o = { .p = p, .lo = all.lo[0], .at = all.hi[0] };
    stencil_each_read(p, oldest_load, &o);
    if (loads_to_keep(p) && o.at > 0)
        o.at = 0;
    if (!stencil_keeps(p, c))
        o.at = s.lo;
    s.partial = stencil_partial(p, c);
    const int kept = s.partial ? 1 : (int)(s.hi - o.at + 1), planes = s.partial ? 1 : (int)(s.hi - s.lo);
    s.before = multiple(-s.reach.lo[last], points);
    s.after = multiple(s.reach.hi[last], points);
    s.pitch = s.before + stencil_threads(c, p->rank, last) * points + s.after;
    s.rows =
        p->rank < 3
            ? 1
            : (int)(stencil_threads(c, p->rank, 1) * stencil_points(c, p->rank, 1) + s.reach.hi[1] - s.reach.lo[1]);
    s.depth = c->tunable[TN_STAGES];
    s.depth = s.depth > kept ? s.depth : kept + 1;
    s.depth = s.depth > planes ? s.depth : planes;
    s.ahead = s.depth - kept;
    return s;
}

int stencil_ring_vector(const struct problem *p, const struct plan_case *c, int input, bool asynchronous)
{
    const struct prog_array *a = &p->input[input].array;
    const int points = stencil_points(c, p->rank, p->rank - 1), bytes = a->stride * points;
    const bool whole = bytes == 4 || bytes == 8 || bytes == 16;
    return asynchronous && !*a->field[0].name && c->aligned && whole ? points : 1;
}

int stencil_ring_copies(const struct problem *p, const struct plan_case *c, int input, bool asynchronous)
{
    const struct ring_shape s = stencil_ring(p, c, input);
    const int vector = stencil_ring_vector(p, c, input, asynchronous), threads = c->tunable[TN_THREADS];
    const int parts = s.pitch / vector * s.rows, ends = vector > 1 ? (s.before + s.after) * s.rows : 0;
    return (parts + threads - 1) / threads + (ends + threads - 1) / threads;
}

bool stencil_one_tree(const struct problem *p) { return p->nreductions && state_determinism(p) != DET_ANY; }

bool stencil_linear(const struct problem *p) { return !state_commutative(p); }

bool stencil_staged(const struct problem *p, int input)
{
    const struct reach r = stencil_input_reach(p, input);
    bool near = false;
    for (int d = 0; d < p->rank; d++)
        near |= r.lo[d] < 0 || r.hi[d] > 0;
    return near && access_input_direct(p, input);
}

static bool byte(enum ty t) { return t == TY_I8 || t == TY_U8; }

/* Bits are what the low eight ones of the operands make of them; those that a shift to the right drops are of one byte. */
static bool packs_operator(const struct expr *e)
{
    const bool constant[] = { e->arg[0]->kind == EX_CONST, e->arg[1]->kind == EX_CONST };
    switch (e->op) {
    case BIN_ADD:
    case BIN_SUB:
    case BIN_AND:
    case BIN_OR:
    case BIN_XOR: return true;
    case BIN_MUL: return constant[0] || constant[1];
    case BIN_SHL:
    case BIN_SHR: return constant[1];
    default: return false;
    }
}

/* let: which lets do. */
static bool packs(const struct problem *p, const bool *let, const struct expr *e)
{
    if (!byte(e->type))
        return false;
    switch (e->kind) {
    case EX_CONST: return true;
    case EX_INPUT: return access_input_direct(p, e->which) && *p->input[e->which].array.field[0].name == 0;
    case EX_LET: return let[e->which];
    case EX_CAST: return packs(p, let, e->arg[0]);
    case EX_UNARY: return e->op == UN_NEG && packs(p, let, e->arg[0]);
    case EX_BINARY: break;
    default: return false;
    }
    return packs_operator(e) && packs(p, let, e->arg[0]) && packs(p, let, e->arg[1]);
}

bool stencil_packs(const struct problem *p)
{
    bool let[LET_VALUES_MAX];
    int elements = 0;
    for (int i = 0; i < p->nlets; i++)
        let[i] = packs(p, let, p->let[i].value);
    for (int o = 0; o < p->noutputs; o++) {
        const struct output *out = &p->output[o];
        if (output_moment(out) != AT_POINT)
            continue;
        elements++;
        if (!access_output_direct(p, o) || *out->array.field[0].name || !packs(p, let, out->value[0]))
            return false;
    }
    return elements > 0;
}
