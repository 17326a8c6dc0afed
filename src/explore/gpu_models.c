/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_models.c - known GPUs: one row each, for rooflines.
 *
 * The H200 has been measured (docs/strategies.md, docs/design/measuring.md): 1 GiB read 4637 GB/s, written 4621, copied 4258 of
 * the 4800 that its data sheet promises; an empty kernel takes 2.6 us in a stream and 0.55 us in a graph.  The other
 * rows are data sheets (boost clock, memory bandwidth, dense f32), and of their bandwidth the same fractions are taken
 * to be within reach.
 */
#define _GNU_SOURCE
#include "lower/device.h"

#include <stdio.h>
#include <string.h>

static const struct known {
    const char *name;
    int sm, sms, l2_mb;
    double bandwidth, tflops; /* GB/s and f32 TFLOP/s of the data sheet */
    double read, write, copy; /* GB/s, where measured */
} known[] = {
    /* name          sm  sms  L2  GB/s  TFLOP/s  measured */
    { "V100", 70, 80, 6, 900, 15.7, 0, 0, 0 },
    { "Xavier", 72, 8, 1, 137, 1.4, 0, 0, 0 },
    { "T4", 75, 40, 4, 320, 8.1, 0, 0, 0 },
    { "A100", 80, 108, 40, 2039, 19.5, 0, 0, 0 },
    { "A30", 80, 56, 24, 933, 10.3, 0, 0, 0 },
    { "RTX 3090", 86, 82, 6, 936, 35.6, 0, 0, 0 },
    { "A10", 86, 72, 6, 600, 31.2, 0, 0, 0 },
    { "A40", 86, 84, 6, 696, 37.4, 0, 0, 0 },
    { "Orin", 87, 16, 4, 205, 5.3, 0, 0, 0 },
    { "RTX 4090", 89, 128, 72, 1008, 82.6, 0, 0, 0 },
    { "L4", 89, 58, 48, 300, 30.3, 0, 0, 0 },
    { "L40", 89, 142, 96, 864, 91.6, 0, 0, 0 },
    { "H200", 90, 132, 60, 4800, 66.9, 4637, 4621, 4258 },
    { "H100 PCIe", 90, 114, 50, 2039, 51.2, 0, 0, 0 },
    { "H100", 90, 132, 50, 3352, 66.9, 0, 0, 0 },
    { "B200", 100, 148, 126, 8000, 75.0, 0, 0, 0 },
    { "B300", 103, 148, 126, 8000, 75.0, 0, 0, 0 },
    { "Thor", 110, 20, 32, 273, 8.1, 0, 0, 0 },
    { "RTX 5090", 120, 170, 96, 1792, 104.8, 0, 0, 0 },
    { "RTX PRO 6000", 120, 188, 128, 1792, 125.0, 0, 0, 0 },
    { "GB10", 121, 48, 24, 273, 31.0, 0, 0, 0 },
};
enum { KNOWN = sizeof known / sizeof *known };

/* Of the H200's data sheet: what its row measures. */
static const double read_part = 4637.0 / 4800, write_part = 4621.0 / 4800, copy_part = 4258.0 / 4800;
static const double launch_seconds = 2.6e-6, graph_node_seconds = 0.55e-6;

static void rates(struct gpu_model *m, double bandwidth)
{
    m->read = bandwidth * read_part;
    m->write = bandwidth * write_part;
    m->copy = bandwidth * copy_part;
}

static void from_row(const struct known *r, struct gpu_model *m)
{
    *m = (struct gpu_model){ .sm = r->sm,
                             .sms = r->sms,
                             .l2 = (int64_t)r->l2_mb << 20,
                             .launch = launch_seconds,
                             .graph_node = graph_node_seconds,
                             .flops = r->tflops * 1e12,
                             .measured = r->read > 0 };
    snprintf(m->name, sizeof m->name, "%s", r->name);
    rates(m, r->bandwidth * 1e9);
    if (m->measured) {
        m->read = r->read * 1e9;
        m->write = r->write * 1e9;
        m->copy = r->copy * 1e9;
    }
}

/* Without blanks and hyphens: "RTX-4090" and "rtx4090" are "RTX 4090". */
static void squeeze(const char *name, char *out, size_t room)
{
    size_t n = 0;
    for (; *name && n + 1 < room; name++)
        if (!strchr(" -_", *name))
            out[n++] = *name;
    out[n] = 0;
}

/* Does the name hold the row's, and not as a part of a longer number? */
static bool named(const char *name, const struct known *r)
{
    char text[128], row[32];
    squeeze(name, text, sizeof text);
    squeeze(r->name, row, sizeof row);
    const char *at = strcasestr(text, row);
    const char after = at ? at[strlen(row)] : '0';
    return after < '0' || after > '9';
}

/* The longest row that the name holds: "NVIDIA L40S" is an L40, "NVIDIA H100 PCIe" no H100. */
static const struct known *by_name(const char *name)
{
    const struct known *best = NULL;
    for (int i = 0; i < KNOWN; i++)
        if (named(name, &known[i]) && (!best || strlen(known[i].name) > strlen(best->name)))
            best = &known[i];
    return best;
}

static const struct known *by_sm(int sm)
{
    for (int i = 0; i < KNOWN; i++)
        if (known[i].sm == sm)
            return &known[i];
    return NULL;
}

/* Double data rate; cores and clock unknown: the arithmetic of the architecture's row, by multiprocessors. */
static bool from_facts(const struct gpu_facts *f, struct gpu_model *m)
{
    const struct known *r = by_sm(f->sm);
    if (!r || f->memory_clock_khz <= 0 || f->bus_bits <= 0)
        return false;
    from_row(r, m);
    m->measured = false;
    m->flops *= (double)f->sms / r->sms;
    m->sms = f->sms;
    rates(m, 2e3 * f->memory_clock_khz * (f->bus_bits / 8.0));
    return true;
}

/* A multiprocessor of a data centre had 64 lanes before sm_90; it takes 32 bytes of L2 per cycle, nine tenths of them
 * in practice. */
static void derive(struct gpu_model *m)
{
    const int lanes = m->sm < 86 ? 64 : 128;
    m->clock = m->flops / (2.0 * lanes * m->sms);
    m->l2_rate = 0.9 * 32 * m->clock * m->sms;
}

bool gpu_model_find(const char *name, int sm, const struct gpu_facts *facts, struct gpu_model *out)
{
    const struct known *r = name ? by_name(name) : facts && facts->name ? by_name(facts->name) : NULL;
    if (name && !r)
        return false;
    if (r)
        from_row(r, out);
    else if (!facts || !from_facts(facts, out)) {
        if (facts || !(r = by_sm(sm)))
            return false;
        from_row(r, out);
    }
    derive(out);
    if (facts && facts->name) {
        snprintf(out->name, sizeof out->name, "%s", facts->name);
        out->sms = facts->sms;
        out->l2 = facts->l2;
    }
    return true;
}

void gpu_model_unknown(struct diags *d, const char *name)
{
    struct str text = { 0 };
    for (int i = 0; i < KNOWN; i++)
        str_printf(&text, "%s%s", i ? ", " : "", known[i].name);
    struct diag *m = diag_error(d, D_BAD_TARGET, span_none(), "unknown GPU '%s'", name);
    diag_hint(d, m, "known are %s", text.text);
    str_finish(&text);
}
