/* SPDX-License-Identifier: Apache-2.0 */
/* windows.c - planning of windows of several points: their shapes, what they hold, and the cases by alignment.
 *
 *   stencil.multi_write  windows of several points, rows read and written in vectors.  Where rows are no multiples of a
 * vector, each row of a window begins at a vector boundary of its own: a case for each way in which boundaries move
 * from row to row.  What is aligned to nothing goes by columns, a point wide, so that a warp's accesses stay together.
 * Arrays that fill at most half a block's width go by columns too; a launch then gives their threads to more rows.
 */
#include "lower/work.h"
#include "lower/lower_impl.h"
#include "stencil_plan.h"
#include "taps.h"

#include <string.h>

enum { WINDOW_CELLS = 110, FEW_HALVES = 60 /* that ptxas leaves room for, if it is left to itself */ };

/* ---- fits -------------------------------------------------------------------------------------------------------- */

bool stencil_multi_write_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const struct misfit m[] = { { p->dynamic, "gather() reads neighbours whose offsets come at launch" },
                                { stencil_linear(p),
                                  "a reduction is not commutative, so threads take points in order" },
                                { 0 } };
    return plan_takes(why, m);
}

/* ---- values and registers ---------------------------------------------------------------------------------------- */

/* Registers that the values of a window take. */
static int64_t value_registers(struct planner *pl, const struct shape *s)
{
    const struct problem *p = pl->plan->problem;
    const bool two = (stencil_narrow(p) || stencil_flat_halves(p)) && s->points_x > 1;
    const int each = stencil_packs(p) && s->points_x % 4 == 0 ? 4 : two ? 2 : 1;
    return stencil_window_cells(p, s) / each;
}

/* Words of a window whose bytes are computed with in packed form; 0: they are not. */
static int64_t packed_words(const struct problem *p, const struct plan_case *c)
{
    return stencil_packs(p) && c->tunable[TN_POINTS_X] % 4 == 0 ? stencil_case_words(p, c) : 0;
}

/* H200, us: 8 x 2 x 4 bytes at 512^3, 6 blocks 85, 5 90, 4 99; elsewhere, and with a second array, 6 spill.  On skewed rows, and for longer
 * offsets or many, the assembler finds what it needs: held to 128 registers it spilled of windows that take 108. */
static int64_t packed_blocks(struct planner *pl, const struct plan_case *c)
{
    enum { FEW = 9 };
    const struct problem *p = pl->plan->problem;
    const struct reach r = stencil_space_reach(p);
    const bool near = r.lo[0] >= -1 && r.hi[0] <= 1 && stencil_reads(p) <= FEW;
    return stencil_skewed(c) || !near ? 0 : pl->plan->device.sm != 90 ? 4 : p->ninputs > 1 ? 5 : 6;
}

/* Blocks per multiprocessor whose registers the values of their windows leave room for. For one array in two dimensions
 * the assembler finds that itself. */
static void set_min_blocks(struct planner *pl, struct plan_case *c, struct shape s)
{
    enum { OTHERS = 64, MOST = 255, HALVES = 6 };
    const struct problem *p = pl->plan->problem;
    const struct device *d = &pl->plan->device;
    int words = 1;
    if (p->rank < 2 || (stencil_flat_halves(p) && stencil_window_cells(p, &s) > WINDOW_CELLS))
        return; /* of 160 values of two bytes ptxas 13 took 96 registers, and spilled 64 and 32 bytes of 6 and 5 blocks */
    if (p->rank == 2 && p->ninputs == 1) {
        if (stencil_halves(p) && stencil_window_cells(p, &s) > FEW_HALVES)
            plan_set(c, TN_MIN_BLOCKS, HALVES, "left to itself, ptxas 13 held 80 values of two bytes to 64 registers");
        return;
    }
    for (int i = 0; i < p->ninputs; i++)
        for (int f = 0; f < p->input[i].array.nfields; f++)
            words = ty_bytes(p->input[i].array.field[f].type) > 4 ? 2 : words;
    const int64_t need = OTHERS + words * value_registers(pl, &s), registers = need > MOST ? MOST : need;
    int64_t blocks = d->registers_per_sm / (registers * c->tunable[TN_THREADS]);
    blocks = blocks < 1 ? 1 : blocks;
    if (packed_words(p, c)) /* of sums that share their parts ptxas spilled under bounds, and took less without */
        blocks = stencil_shares_sums(p) ? 0 : packed_blocks(pl, c);
    plan_set(c, TN_MIN_BLOCKS, (int)blocks, "registers of the device, over the values of a window");
}

/* The most words of a window whose bytes are computed with in packed form.  Halves at several columns of a word that many
 * points read are kept, too: ptxas 13 spilled of 50 words on skewed rows and of 64 on others, and not of 40 and 48. */
static int most_words(const struct problem *p, const struct plan_case *c)
{
    enum { MOST = 64, FAR = 80, CROWDED = 48, CROWDED_SKEWED = 40, MANY = 19 };
    const struct reach r = stencil_space_reach(p);
    const bool far = r.lo[0] < -1 || r.hi[0] > 1;
    if (p->rank < 3 || stencil_reads(p) <= MANY)
        return p->rank > 2 && far && !stencil_skewed(c) ? FAR : MOST;
    return stencil_skewed(c) ? CROWDED_SKEWED : CROWDED;
}

/* Smaller windows where the values would not fit into registers, or the code of all points is large. */
static void fit_registers(struct planner *pl, struct plan_case *c, struct shape *s)
{
    enum { MOST = 2048 };
    const struct problem *p = pl->plan->problem;
    const int operations = work_is_heavy(p) ? work_operations(p) : 0;
    stencil_set_shape(c, *s);
    if (stencil_shares_sums(p) && s->points_x % 4 == 0) /* values of a plane at a time */
        return;
    while ((value_registers(pl, s) > WINDOW_CELLS || packed_words(p, c) > most_words(p, c) ||
            operations * s->points_x * s->points_y * s->points_z > MOST) &&
           s->points_z * s->points_y > 1) {
        int *most = s->points_z > s->points_y ? &s->points_z : &s->points_y;
        *most /= 2;
        stencil_set_shape(c, *s);
    }
}

/* Fewer blocks, then smaller windows, where the values of skewed rows, or of many reads, would not fit. */
static void make_room(struct planner *pl, struct plan_case *c, struct shape s)
{
    static const enum tunable_id set[] = { TN_MIN_BLOCKS, TN_POINTS_X, TN_POINTS_Y, TN_POINTS_Z };
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        if (c->overridden[set[i]])
            return;
    while (!stencil_roomy(pl->plan->problem, c)) {
        int *most = s.points_z > s.points_y ? &s.points_z : s.points_y > 1 ? &s.points_y : &s.points_x;
        if (c->tunable[TN_MIN_BLOCKS] > 1)
            plan_set(c, TN_MIN_BLOCKS, c->tunable[TN_MIN_BLOCKS] - 1, "registers, over the values of a window");
        else if (*most > 1)
            stencil_set_shape(c, (*most /= 2, s));
        else
            return;
    }
}

/* Where points have many reads and a thread more registers than four blocks leave it, ptxas takes less than it may: of 25 points at 398 x 767 x
 * 768 88, and of 63 at 320 x 159 x 512 168, where bounds of 3 and 2 blocks let it take 140 and 213.  H200, us, without and
 * with such bounds: 1453 and 1767, 339 and 421. */
static void leave_few_blocks(struct planner *pl, struct plan_case *c)
{
    enum { FEW = 4, READS = 19 };
    if (pl->plan->problem->rank > 2 && stencil_reads(pl->plan->problem) > READS && c->tunable[TN_MIN_BLOCKS] < FEW &&
        c->tunable[TN_THREADS] == 128)
        plan_set(c, TN_MIN_BLOCKS, 0, "the assembler takes fewer registers than a bound would leave it");
}

/* ---- alignment --------------------------------------------------------------------------------------------------- */

int stencil_vector(const struct problem *p)
{
    enum { MOST = 8 };
    const int vector = access_vector_width(p);
    return vector < MOST ? vector : MOST;
}

/* Every direct array begins at a boundary of `points` elements and has extents of 31 bits; and `guard`. */
static struct formula bases_aligned(const struct problem *p, int points, struct formula guard)
{
    uint64_t at[ACCESS_BYTES + 1] = { 0 };
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = access_direct(p, i);
        const bool structure = a && *a->field[0].name != 0;
        if (!a || (structure && !access_structure_bytes(a)))
            continue;
        const int wanted = structure ? a->stride : points * a->stride;
        at[wanted < ACCESS_BYTES ? wanted : ACCESS_BYTES] |= f_pointer(i);
    }
    guard = f_and(guard, access_begin_at(at));
    for (int d = 0; d < p->rank && guard.n && p->rank > 1; d++)
        if (p->space[d].extent.size >= 0)
            guard = f_and(guard, f_le(stencil_extent(p, d), INT32_MAX));
    return guard;
}

/* Rows are whole vectors of `points` elements. */
static struct formula rows_whole(const struct problem *p, int points)
{
    if (p->rank < 2 || points < 2)
        return (struct formula){ 0 };
    return f_eq(f_mod(stencil_extent(p, p->rank - 1), points), 0);
}

struct formula stencil_rows_aligned(const struct problem *p, int points)
{
    return bases_aligned(p, points, rows_whole(p, points));
}

/* Rows, and planes, begin so many elements later than the one before, modulo `points`. */
static struct formula rows_shifted(const struct problem *p, int points, const int *shift)
{
    struct formula length = stencil_extent(p, p->rank - 1), guard = { 0 };
    for (int d = p->rank - 2; d >= 0; d--) {
        guard = f_and(guard, f_eq(f_mod(length, points), shift[d]));
        length = f_mul(length, stencil_extent(p, d));
    }
    return bases_aligned(p, points, guard);
}

/* Can such rows be, as far as extents are known?  Even rows make even planes. */
static bool shift_possible(const struct planner *pl, int points, const int *shift)
{
    const struct problem *p = pl->plan->problem;
    int64_t length = 1;
    if (p->rank > 2 && shift[1] % 2 == 0 && shift[0] % 2)
        return false;
    for (int d = p->rank - 2; d >= 0; d--) {
        int64_t lo, hi;
        plan_extent_range(pl, &p->space[d + 1].extent, &lo, &hi);
        if (lo != hi)
            return true;
        length = length * (lo % points) % points;
        if (length != shift[d])
            return false;
    }
    return true;
}

static void count_slow(const struct expr *e, void *user)
{
    *(int *)user += (e->kind == EX_CALL && e->op != FN_FMA) || (e->kind == EX_BINARY && e->op == BIN_DIV);
}

static bool slow(const struct problem *p)
{
    int n = 0;
    for (int o = 0; o < p->noutputs; o++)
        for (int i = 0; output_moment(&p->output[o]) == AT_POINT && i < p->output[o].array.nfields; i++)
            expr_walk(p->output[o].value[i], count_slow, &n);
    for (int i = 0; i < p->nlets; i++)
        expr_walk(p->let[i].value, count_slow, &n);
    return n > 0;
}

/* Which rows of tuning.def the problem looks at: bytes in packed words; longer offsets; many points; divisions and
 * functions, which want more points at once; elements that are no vectors, or of another number. */
static const char *kind(const struct planner *pl, bool shifted)
{
    enum { FEW = 40 };
    static const struct shape one = { .points_x = 1, .points_y = 1, .points_z = 1 };
    const struct problem *p = pl->plan->problem;
    const struct reach r = stencil_space_reach(p);
    const bool near = r.lo[0] >= -1 && r.hi[0] <= 1;
    const int vector = stencil_vector(p);
    if (stencil_shares_sums(p))
        return !stencil_by_dots(p) ? "sums" : stencil_reads(p) > FEW ? "dots" : "few dots";
    if (p->rank > 2)
        return stencil_narrow(p)   ? ""
               : !near && !shifted ? (stencil_packs(p) ? "far packed" : "far")
               : stencil_packs(p)  ? "packed"
                                   : "";
    if (shifted && stencil_packs(p))
        return "packed";
    if (vector != 4)
        return vector == 1 ? "single" : "other";
    if (near)
        return slow(p) ? "slow" : "";
    return stencil_window_cells(p, &one) > 16 ? "many" : "";
}

static void window_case(struct planner *pl, const struct strategy *row, const char *name, struct formula guard,
                        int vector, bool aligned, const int *shift)
{
    const struct problem *p = pl->plan->problem;
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    const bool sums = stencil_shares_sums(p), whole = sums && shift && !shift[0] && !shift[1];
    const char *what = shift && !whole ? "shifted" : vector > 1 ? "vectors" : "columns";
    struct shape s = stencil_tuned(&pl->s->arena, p, &pl->plan->device, row->name, what, kind(pl, shift != NULL));
    if (vector > 1)
        s.points_x = (stencil_narrow(p) || sums) && vector > 4 ? 4 : vector;
    c->aligned = aligned;
    for (int d = 0; shift && d < SPACE_MAX - 1; d++)
        c->shift[d] = shift[d];
    fit_registers(pl, c, &s);
    set_min_blocks(pl, c, s);
    make_room(pl, c, s);
    if (vector > 1) {
        leave_few_blocks(pl, c);
        stencil_keep_wide(pl, c);
    }
}

/* Bytes in the plane whose points read many, which four columns share.  H200, us, 13 points and an array at 8189 x 16381, 2047 x 8191,
 * 1000 x 999: 266, 42, 11.4; one column of 16 rows 338, 54, 13.5. */
static bool bytes_of_many(const struct problem *p)
{
    enum { READS = 9 };
    for (int i = 0; i < p->ninputs; i++)
        if (p->input[i].role == ROLE_ELEMENT && p->input[i].array.stride != 1)
            return false; /* not measured */
    return p->rank == 2 && p->noutputs == 1 && p->output[0].array.stride == 1 && stencil_reads(p) >= READS;
}

/* Windows of one column, of two, or of four for bytes, whose outputs in another order leave through shared memory. */
static void turned_case(struct planner *pl, const struct strategy *row, const char *name, int columns)
{
    struct shape s = stencil_turned_shape(pl, row);
    struct formula guard = { 0 };
    s.points_x = columns;
    if (columns == 1 && bytes_of_many(pl->plan->problem)) {
        s.points_x = 4;
        s.points_y = 8;
    }
    if (columns > 1 && !stencil_turns_by_pairs(pl, &s, &guard))
        return;
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    fit_registers(pl, c, &s);
    make_room(pl, c, s);
    if (columns > 1 && stencil_halves(pl->plan->problem) && stencil_window_cells(pl->plan->problem, &s) > FEW_HALVES)
        plan_set(c, TN_MIN_BLOCKS, 2,
                 "left to itself, ptxas 13 held 72 values of two bytes to 80 registers, and spilled");
    c->turns = true;
    c->turns = stencil_turns_fit(pl->plan->problem, c);
    if (columns > 1 && !c->turns) { /* tiles of one column may */
        plan_case_drop(pl);
        return;
    }
    stencil_keep_turned(pl, c);
}

/* May rows be multiples of four elements and none of the vector? */
static bool longer(const struct planner *pl, int vector)
{
    const struct problem *p = pl->plan->problem;
    int64_t lo, hi;
    plan_extent_range(pl, &p->space[p->rank - 1].extent, &lo, &hi);
    return vector > 4 && (lo != hi || lo % vector != 0);
}

/* A case for each way in which rows can begin, but for that all begin at boundaries; that too where vectors are longer
 * than these. */
static void shifted_cases(struct planner *pl, const struct strategy *row, int vector, bool straight)
{
    const struct problem *p = pl->plan->problem;
    for (int i = straight ? 0 : 1; i < (p->rank > 2 ? vector * vector : vector); i++) {
        const int y = i % vector, z = i / vector, shift[] = { p->rank > 2 ? z : y, p->rank > 2 ? y : 0 };
        if ((y == 0 && i > 0) || !shift_possible(pl, vector, shift))
            continue;
        const char *name =
            p->rank > 2 ? arena_printf(&pl->s->arena, "shift%d_%d", y, z) : arena_printf(&pl->s->arena, "shift%d", y);
        window_case(pl, row, name, rows_shifted(p, vector, shift), vector, true, shift);
    }
}

/* Does it write structures that one access takes whole? */
static bool structures(const struct problem *p)
{
    for (int o = 0; o < p->noutputs; o++)
        if (access_output_direct(p, o) && access_structure_bytes(&p->output[o].array))
            return true;
    return false;
}

/* Rows that begin anywhere are told apart modulo SHIFTS elements, so that wider windows would not know where theirs do. */
enum { SHIFTS = 4 };
static bool divides_shifts(const struct planner *pl, int vector)
{
    const int shifts = vector < SHIFTS ? vector : SHIFTS;
    return shifts % plan_setting(pl, TN_POINTS_X, shifts) == 0;
}

void stencil_multi_write_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int vector = stencil_vector(p);
    const struct formula guard = stencil_rows_aligned(p, vector);
    if (stencil_turn(p) >= 0) {
        turned_case(pl, row, "turned_pairs", 2);
        turned_case(pl, row, "turned", 1);
        window_case(pl, row, "columns", (struct formula){ 0 }, 1, false, NULL);
        return;
    }
    if (guard.n > 0 && (vector > 1 || structures(p)))
        window_case(pl, row, "vectors", guard, vector, true, NULL);
    if (vector > 1 && guard.n > 0 && stencil_one_tree(p))
        window_case(pl, row, "vectors_unaligned", rows_whole(p, vector), vector, false, NULL);
    else if (vector > 1 && guard.n > 0 && p->rank > 1 && (!work_is_heavy(p) || stencil_shares_sums(p)) &&
             divides_shifts(pl, vector))
        shifted_cases(pl, row, vector < SHIFTS ? vector : SHIFTS, longer(pl, vector));
    window_case(pl, row, "columns", (struct formula){ 0 }, 1, false, NULL);
}

bool stencil_multi_write_build(struct planner *pl, struct plan_case *c) { return stencil_global_build(pl, c); }
