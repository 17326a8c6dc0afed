/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c - the values that a window of points reads: how many there are, and whether registers hold them.
 *
 * Blocks that stream load the values of a place before they compute it, and keep in registers what the next place reads
 * too.  Where the registers of a thread do not hold that, the points of the window are computed side by side, operation
 * by operation, and a value is loaded where the first point needs it: it lives until the last point has passed it.
 * Where what places share does not fit either, every place loads all of its values from the ring.
 *
 * Windows load all of their values first, so that the loads are under way together; they are made to fit.
 */
#include "stencil_plan.h"

#include <string.h>

enum { BOX_MAX = 1 << 14 };

/* The box that the points of a window and all their reads of one input lie in, and which of its cells are read. */
struct cells {
    const struct problem *p;
    const struct plan_case *c; /* whose rows may skew; NULL: none do */
    int input, field;
    int points[SPACE_MAX];
    struct reach reach; /* with the skew */
    bool read[BOX_MAX];
};

static int64_t box_size(const struct cells *c, int from)
{
    int64_t n = 1;
    for (int d = from; d < c->p->rank; d++)
        n *= c->points[d] + c->reach.hi[d] - c->reach.lo[d];
    return n;
}

static void mark(const struct expr *e, void *user)
{
    struct cells *c = user;
    const int rank = c->p->rank;
    int points = 1;
    if (e->kind != EX_INPUT || e->which != c->input || e->field != c->field)
        return;
    for (int d = 0; d < rank; d++)
        points *= c->points[d];
    for (int i = 0; i < points; i++) {
        int64_t number = 0;
        int at[SPACE_MAX] = { 0 };
        for (int d = rank - 1, rest = i; d >= 0; rest /= c->points[d], d--)
            at[d] = rest % c->points[d];
        at[rank - 1] += c->c ? stencil_skew(c->c, rank, at) : 0;
        for (int d = 0; d < rank; d++) {
            const int64_t offset = (e->noffsets ? e->offset[d] : 0) - c->reach.lo[d];
            number = number * (c->points[d] + c->reach.hi[d] - c->reach.lo[d]) + at[d] + offset;
        }
        c->read[number] = true;
    }
}

/* Values of a window, and of these the ones that a window one place on reads too; the words that bytes lie in. */
struct values {
    int64_t all, shared, words;
};

/* Words of four bytes that what is read lies in; those of a row begin where its own vectors do. */
static int64_t words_of(const struct cells *c)
{
    enum { WORD = 4 };
    const int rank = c->p->rank;
    const int64_t size = box_size(c, 0), width = box_size(c, rank - 1);
    int64_t n = 0;
    for (int64_t row = 0; row < size / width; row++) {
        int at[SPACE_MAX] = { 0 };
        int64_t rest = row, word = INT64_MIN;
        for (int d = rank - 2; d >= 0; d--) {
            const int64_t extent = c->points[d] + c->reach.hi[d] - c->reach.lo[d];
            at[d] = (int)(rest % extent + c->reach.lo[d]);
            rest /= extent;
        }
        const int64_t skew = c->c ? stencil_skew(c->c, rank, at) : 0;
        for (int64_t i = 0; i < width; i++) {
            const int64_t x = i + c->reach.lo[rank - 1] - skew, in = (x - (x % WORD + WORD) % WORD) / WORD;
            n += c->read[row * width + i] && in != word;
            word = c->read[row * width + i] ? in : word;
        }
    }
    return n;
}

/* Registers that a value takes: bytes that are not computed with in packed words lie beside the word they came in. */
static int registers_of(const struct problem *p, enum ty t)
{
    return ty_bytes(t) > 4 || (ty_bytes(t) == 1 && !stencil_packs(p)) ? 2 : 1;
}

/* c: NULL, or the case whose rows skew. */
static struct values count(const struct problem *p, const int *points, bool registers, const struct plan_case *plan)
{
    struct values n = { 0 };
    struct cells c = { .p = p, .c = plan };
    const struct skews skew = plan ? stencil_skews(plan, p->rank) : (struct skews){ 0, 0 };
    memcpy(c.points, points, sizeof c.points);
    for (c.input = 0; c.input < p->ninputs; c.input++)
        for (c.field = 0; access_input_direct(p, c.input) && c.field < p->input[c.input].array.nfields; c.field++) {
            c.reach = stencil_input_reach(p, c.input);
            c.reach.lo[p->rank - 1] += skew.lo;
            c.reach.hi[p->rank - 1] += skew.hi;
            const int64_t box = box_size(&c, 0), plane = box_size(&c, 1);
            const int words = registers ? registers_of(p, p->input[c.input].array.field[c.field].type) : 1;
            if (box > BOX_MAX)
                return (struct values){ box, box, box };
            memset(c.read, 0, sizeof *c.read * (size_t)box);
            stencil_each_read(p, mark, &c);
            n.words += words_of(&c);
            for (int64_t k = 0; k < box; k++) {
                n.all += c.read[k] ? words : 0;
                n.shared += c.read[k] && k + plane < box && c.read[k + plane] ? words : 0;
            }
        }
    return n;
}

int64_t stencil_window_cells(const struct problem *p, const struct shape *s)
{
    const int by_x[] = { s->points_x, s->points_y, s->points_z };
    int points[SPACE_MAX] = { 0 };
    for (int d = 0; d < p->rank; d++)
        points[d] = by_x[p->rank - 1 - d];
    return count(p, points, false, NULL).all;
}

static void points_of(const struct problem *p, const struct plan_case *c, int points[SPACE_MAX])
{
    for (int d = 0; d < p->rank; d++)
        points[d] = stencil_points(c, p->rank, d);
}

int64_t stencil_case_cells(const struct problem *p, const struct plan_case *c)
{
    int points[SPACE_MAX] = { 0 };
    points_of(p, c, points);
    return count(p, points, false, NULL).all;
}

int64_t stencil_case_loads(const struct problem *p, const struct plan_case *c)
{
    int points[SPACE_MAX] = { 0 };
    points_of(p, c, points);
    const struct values v = count(p, points, false, NULL);
    const bool once =
        stencil_streams(c) && (stencil_keeps(p, c) || stencil_partial(p, c)); /* for all planes that read it */
    return once ? v.all - v.shared : v.all;
}

int64_t stencil_case_words(const struct problem *p, const struct plan_case *c)
{
    int points[SPACE_MAX] = { 0 };
    points_of(p, c, points);
    return count(p, points, false, c).words;
}

/* Registers of a thread.  The warps of a multiprocessor's blocks are spread over four register files. */
static int thread_registers(const struct plan_case *c)
{
    enum { FILES = 4, OF_WARP = (1 << 14) / 32, MOST = 255 };
    const int blocks = c->tunable[TN_MIN_BLOCKS] > 1 ? c->tunable[TN_MIN_BLOCKS] : 1;
    const int warps = (c->tunable[TN_THREADS] / 32 * blocks + FILES - 1) / FILES;
    const int all = OF_WARP / (warps > 0 ? warps : 1) / 8 * 8;
    return all < MOST ? all : MOST;
}

bool stencil_halves(const struct problem *p)
{
    for (int i = 0; i < p->ninputs; i++)
        for (int f = 0; access_input_direct(p, i) && f < p->input[i].array.nfields; f++)
            if (ty_is_float(p->input[i].array.field[f].type) && ty_bytes(p->input[i].array.field[f].type) == 2)
                return true;
    return false;
}

static bool narrow_values(const struct problem *p)
{
    bool narrow = !stencil_packs(p);
    for (int i = 0; i < p->ninputs; i++)
        for (int f = 0; access_input_direct(p, i) && f < p->input[i].array.nfields; f++)
            narrow &= ty_bytes(p->input[i].array.field[f].type) <= 2;
    return narrow;
}

bool stencil_narrow(const struct problem *p) { return p->rank > 2 && narrow_values(p); }

bool stencil_flat_halves(const struct problem *p) { return p->rank == 2 && stencil_halves(p) && narrow_values(p); }

static void count_read(const struct expr *e, void *user) { *(int *)user += e->kind == EX_INPUT; }

int stencil_reads(const struct problem *p)
{
    int reads = 0;
    stencil_each_read(p, count_read, &reads);
    return reads;
}

/* Narrow values stay in the words that they came in, but where rows begin at boundaries of their own.  Natural
 * registers of 4 x 2 x 2 points, f16 and i8, ptxas 13: 13 points 96, 104; 27 117, 140; 25 130, 150; such rows 124, 128;
 * 205, over 255; 198, 224. */
static bool narrow_fits(const struct problem *p, const struct plan_case *c, const int *points, int scattered)
{
    enum { OTHERS = 42, BYTES = 32 };
    const int64_t cells = count(p, points, false, NULL).all;
    const int64_t values = !stencil_skewed(c) ? cells / 2 : stencil_halves(p) ? cells : cells * 3 / 2 + BYTES;
    return values + OTHERS + scattered <= thread_registers(c);
}

bool stencil_roomy(const struct problem *p, const struct plan_case *c)
{
    /* by what ptxas 13 spills */
    enum { OTHERS = 42, SCATTERED = 42, CROWD = 105, READS = 19, MANY = 40, NEAR = 2, HALVES = 160, CONSTANTS = 32 };
    const struct reach r = stencil_space_reach(p);
    const int reads = stencil_reads(p);
    int points[SPACE_MAX] = { 1, 1, 1 };
    bool far = false;
    for (int d = 0; d < p->rank; d++) {
        points[d] = stencil_points(c, p->rank, d);
        far |= r.hi[d] > NEAR || r.lo[d] < -NEAR;
    }
    if (stencil_packs(p) && points[p->rank - 1] % 4 == 0) /* measured: set_min_blocks() */
        return true;
    const int scattered = far || reads > READS ? SCATTERED : 0;
    if (c->aligned && !stencil_skewed(c) && stencil_flat_halves(p) && c->tunable[TN_MIN_BLOCKS] == 0)
        return true; /* ptxas finds room: set_min_blocks() */
    if (stencil_narrow(p) && c->aligned)
        return narrow_fits(p, c, points, reads > MANY ? CROWD : scattered);
    const int64_t values = count(p, points, true, c).all;
    const int all = thread_registers(c), room = stencil_halves(p) && all > HALVES ? HALVES : all;
    return values + OTHERS + scattered + (stencil_skewed(c) && stencil_bounded_by(p, BOUND_CONSTANT) ? CONSTANTS : 0) <=
           room;
}

bool stencil_beside(const struct problem *p)
{
    for (int i = 0; i < p->ninputs; i++)
        if (p->input[i].role == ROLE_ELEMENT && !stencil_staged(p, i))
            return true;
    return false;
}

/* Those that are left to the values of a place in a block that streams.  Beside values there are addresses, the place,
 * and what the assembler moves: of 128 registers, 82 values are held, and 90 are not.  Another array takes more: ptxas 13
 * spilled of 96 registers what it did not of 80, where nothing is kept. */
static int64_t left(const struct problem *p, const struct plan_case *c, struct values *of)
{
    enum { OTHERS = 42, ANOTHER = 16, TIGHT = 128 };
    int points[SPACE_MAX] = { 1, 1, 1 };
    for (int d = 1; d < p->rank; d++)
        points[d] = stencil_points(c, p->rank, d);
    *of = count(p, points, true, NULL);
    const int all = thread_registers(c);
    return all - OTHERS - (stencil_beside(p) && all < TIGHT ? ANOTHER : 0);
}

bool stencil_crowded(const struct problem *p, const struct plan_case *c)
{
    struct values v;
    const int64_t room = left(p, c, &v);
    return room < v.all;
}

bool stencil_full(const struct problem *p, const struct plan_case *c)
{
    enum { SPARE = 10 };
    struct values v;
    const int64_t room = left(p, c, &v);
    return room >= v.all && room < v.all + SPARE;
}

static void count_wide(const struct expr *e, void *user)
{
    *(int *)user += e->kind == EX_CONST && ty_bytes(e->type) > 4;
}

bool stencil_tight(const struct problem *p, const struct plan_case *c)
{
    struct values v;
    const int64_t room = left(p, c, &v);
    int constants = 0; /* that are no part of an instruction */
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; output_moment(&p->output[o]) == AT_POINT && f < p->output[o].array.nfields; f++)
            expr_walk(p->output[o].value[f], count_wide, &constants);
    return room < v.all + constants;
}

/* Of vectors, with less room partial sums are faster.  H200, us, 4 x 2 points and 128 registers: stars of radius 3 (64 values) 194, by
 * partial sums 198, with an array beside them 364, 298, of radius 4 (80) 303, 239; 25 points (84) 206, 189. */
bool stencil_keeps(const struct problem *p, const struct plan_case *c)
{
    enum { SPARE = 16 };
    struct values v;
    const int64_t room = left(p, c, &v);
    int64_t results = 0;
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; output_moment(&p->output[o]) == AT_POINT && f < p->output[o].array.nfields; f++)
            results += ty_bytes(p->output[o].array.field[f].type) > 4 ? 2 : 1;
    for (int d = 1; d < p->rank; d++)
        results *= stencil_points(c, p->rank, d);
    const int spare = c->tunable[TN_POINTS_X] == 1 ? 0 : stencil_beside(p) ? 2 * SPARE : SPARE;
    return room >= v.all || room >= v.shared + results + spare;
}
