/* SPDX-License-Identifier: Apache-2.0 */
/* stages_print.c - a spec with stages as canonical text, `--emit=problem`. */
#include "stages.h"

#include "base/str.h"

#include <string.h>

static void names(const struct prog_stages *p, const char *what, const int *array, int count, struct str *out)
{
    str_printf(out, "# %s:", what);
    for (int i = 0; i < count; i++)
        str_printf(out, " %s", p->array[array[i]].array.name);
    str_add(out, "\n");
}

static void fused(const struct stages *s, const char *stage, struct str *out)
{
    bool any = false;
    for (int i = 0; i < s->nfusions; i++)
        if (s->fusion[i].into && !strcmp(s->fusion[i].into, stage)) {
            str_printf(out, any ? " %s" : "# with: %s", s->fusion[i].stage);
            any = true;
        }
    str_add(out, any ? "\n" : "");
}

void stages_print(const struct stages *s, struct str *out)
{
    const struct prog_stages *p = &s->data;
    str_printf(out, "# stages of %s", s->name);
    if (p->steps_param >= 0)
        str_printf(out, ", %s times", p->shape->param[p->steps_param].name);
    else if (p->steps != 1)
        str_printf(out, ", %lld times", (long long)p->steps);
    str_add(out, p->until >= 0 ? ", or until the last stage says so" : "");
    if (p->check_every > 1)
        str_printf(out, ", which runs in every %dth step", p->check_every);
    str_add(out, "\n");
    for (int i = 0; i < p->nfeedback; i++)
        str_printf(out, "# feedback: %s -> %s%s\n", p->array[p->feedback[i].output].array.name,
                   p->array[p->feedback[i].input].array.name, p->feedback[i].twin ? ", in two memories" : "");
    for (int i = 0; i < s->nfusions; i++)
        if (s->fusion[i].why)
            str_printf(out, "# apart: %s, %s\n", s->fusion[i].stage, s->fusion[i].why);
    for (int i = 0; i < p->nstages; i++) {
        str_printf(out, "---\n# stage %s\n", p->stage[i].name);
        names(p, "reads", p->stage[i].input, p->stage[i].ninputs, out);
        names(p, "writes", p->stage[i].output, p->stage[i].noutputs, out);
        fused(s, p->stage[i].name, out);
        problem_print(s->problem[i], out);
    }
}
