/* SPDX-License-Identifier: Apache-2.0 */
/* stencils.c - time steps of stencils on several devices: parts of one size, and one problem on more devices. */
#include "ranks.h"

#define FIVE "0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])"
#define SEVEN                                                                                                          \
    "0.125 * (u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]) + 0.25 * u[0, 0, 0]"
/* Time steps; and one of them, of the points that have a row before and after them, for by_hand.c. */
#define STEPS(type, value)                                                                                             \
    "kind: stencil\ninputs: {u: '" type "'}\nparams: {steps: {type: i32, value: 1}}\nboundary: clamp\n"                \
    "outputs: {v: {type: '" type "', value: '" value "'}}\niterate: {steps: steps, feedback: {u: v}}\n"
#define INSIDE(type, value)                                                                                            \
    "kind: stencil\ninputs: {u: '" type "'}\nboundary: {u: {n: interior}}\n"                                           \
    "outputs: {v: {type: '" type "', value: '" value "'}}\n"
#define PLANE "f32[n, m]"
#define SPACE "f32[n, m, l]"

/* Microseconds of a step. */
static double step_of(struct world *w, struct trial t, enum way way, const char *spec, bool graph)
{
    t.way = way;
    t.spec = spec;
    return measure_one(w, &t, graph) / (double)t.steps;
}

static void planes(struct world *w)
{
    static const int64_t rows[] = { 512, 2048, 4096 };
    puts(
        "\n5 points, 16384 columns, f32, us per step: rows per device, steps per launch, mode, alone, of all ranks, by "
        "hand over NCCL; efficiency of both last ones");
    for (int k = 0; k < 3; k++)
        for (int graph = 1; graph >= 0; graph--)
            for (int64_t steps = 1; steps <= 16; steps += 15) {
                const struct trial t = { .label = steps == 1 ? "5 points 1 step" : "5 points 16 steps",
                                         .size = { rows[k], 16384 },
                                         .elements = rows[k] * 16384,
                                         .maps = true,
                                         .steps = steps };
                const double alone = step_of(w, t, ALONE, STEPS(PLANE, FIVE), graph);
                const double dist = step_of(w, t, DIST, STEPS(PLANE, FIVE), graph);
                const double hand = step_of(w, t, HAND, INSIDE(PLANE, FIVE), graph);
                printf("%-5lld %-3lld %-6s %9.2f %9.2f %9.2f   %.3f %.3f\n", (long long)rows[k], (long long)steps,
                       graph ? "graph" : "stream", alone, dist, hand, alone / dist, alone / hand);
                fflush(stdout);
            }
}

/* One device has `planes` planes of side * side points; each of several has `part` planes. */
static void spaces(struct world *w, const char *label, int64_t planes, int64_t part, int64_t side)
{
    for (int64_t steps = 1; steps <= 16; steps += 15) {
        struct trial t = { .label = label,
                           .size = { planes, side, side },
                           .elements = planes * side * side,
                           .maps = true,
                           .steps = steps };
        const double one = step_of(w, t, ALONE, STEPS(SPACE, SEVEN), true);
        t.size[0] = part;
        t.elements = part * side * side;
        const double dist = step_of(w, t, DIST, STEPS(SPACE, SEVEN), true);
        const double hand = step_of(w, t, HAND, INSIDE(SPACE, SEVEN), true);
        const double times = (double)part * w->ranks / (double)planes;
        printf("%-22s %-3lld %9.2f %9.2f %9.2f   %.3f %.3f\n", label, (long long)steps, one, dist, hand,
               times * one / dist, times * one / hand);
        fflush(stdout);
    }
}

void measure_stencils(struct world *w)
{
    planes(w);
    puts("\n7 points, f32, us per step, in a graph: steps per launch, one device, of all ranks, by hand over NCCL; "
         "how many devices' work both last ones do");
    spaces(w, "512^3 per device", 512, 512, 512);
    spaces(w, "1024^3 in all", 1024, 1024 / w->ranks, 1024);
}
