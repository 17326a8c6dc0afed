/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - what a stage of scan.pipeline's ring holds: its arrays, where they begin, and what the planner and the kernels
 * must agree on. */
#include "lower/lower_impl.h"
#include "scan.h"

enum { UNIT = 16 };

bool scan_ring_keeps(const struct problem *p) { return scan_keeps_some(p) && !scan_keeps(p); }

bool scan_ring_beside(const struct problem *p) { return p->rank == 1 && access_beside(p); }

void scan_layout(const struct problem *p, int tile, struct scan_layout *l)
{
    bool taken[PROBLEM_ARGS_MAX] = { false };
    const int slack = scan_ring_keeps(p) || scan_ring_beside(p) ? UNIT : 0;
    l->bytes = 0;
    for (int i = 0; i < p->ninputs; i++) {
        const bool direct = access_input_direct(p, i);
        const int beside = p->input[i].neighbours && scan_ring_beside(p) ? UNIT : 0;
        l->input[i] = direct ? l->bytes + beside : -1;
        l->bytes += direct ? beside + tile * p->input[i].array.stride + slack : 0;
    }
    for (int o = 0; o < p->noutputs; o++) {
        l->output[o] = -1;
        if (output_moment(&p->output[o]) != AT_POINT)
            continue;
        const int stride = p->output[o].array.stride;
        for (int i = 0; i < p->ninputs && l->output[o] < 0; i++)
            if (l->input[i] >= 0 && !taken[i] && p->input[i].array.stride == stride) {
                l->output[o] = l->input[i];
                taken[i] = true;
            }
        if (l->output[o] < 0) {
            l->output[o] = l->bytes;
            l->bytes += tile * stride + slack;
        }
    }
}

/* One where states are large: a lane reads all words of its tiles at once. */
int scan_ahead_each(const struct problem *p) { return state_words(p, NULL) <= 8 ? 2 : 1; }
