/* SPDX-License-Identifier: Apache-2.0 */
/* test_stage_options.c - options of one stage of a program: variants and settings, and what names no stage. */
#include <stdio.h>

#include "stages_fixture.h"

TestSuite(stage_options, .init = begin_stages, .fini = end_stages);

static int last_variant(const ptxgen_variant *v, void *user)
{
    char *last = user;
    if (!v->why_not)
        snprintf(last, 200, "%s", v->id);
    return 0;
}

/* The plan is that of the stage alone under the same pin, and the other stages keep theirs. */
Test(stage_options, a_variant_is_of_one_stage)
{
    char last[200] = "";
    ptxgen_plan *usual, *pinned;
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_variant_options all = PTXGEN_VARIANT_OPTIONS_INIT;
    read_spec(relax);
    all.draw = 3;
    cr_assert_eq(ptxgen_variants(s, p, &all, last_variant, last), PTXGEN_OK, "%s", message_of(s));
    cr_assert(!strncmp(last, "until:", 6), "%s", last);
    o.variant = last;
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &usual), PTXGEN_OK);
    cr_assert_eq(ptxgen_plan_create(s, p, &o, &pinned), PTXGEN_OK, "%s", message_of(s));
    char *before = ptxgen_plan_text(usual), *after = ptxgen_plan_text(pinned), *at = strstr(before, "# stage until");
    cr_assert(at && !strncmp(before, after, (size_t)(at - before)));
    cr_expect(strcmp(before, after) != 0, "%s", last);
    ptxgen_free(before);
    ptxgen_free(after);
    o.variant = "nowhere:default";
    cr_expect_eq(ptxgen_plan_create(s, p, &o, &pinned), PTXGEN_USAGE);
    cr_expect(strstr(message_of(s), "nowhere:default: no stage is called 'nowhere'; those that run are mean, "), "%s",
              message_of(s));
}

/* A setting of one stage is in the plan of that stage alone. */
Test(stage_options, a_setting_is_of_one_stage)
{
    ptxgen_plan *usual, *pinned;
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_setting setting[] = { { "move:threads", "64" } };
    read_spec(relax);
    o.setting = setting;
    o.setting_count = 1;
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &usual), PTXGEN_OK);
    cr_assert_eq(ptxgen_plan_create(s, p, &o, &pinned), PTXGEN_OK, "%s", message_of(s));
    for (int i = 0; i < ptxgen_stage_count(p); i++) {
        char *before = ptxgen_plan_text(ptxgen_stage_plan(usual, i)),
             *after = ptxgen_plan_text(ptxgen_stage_plan(pinned, i));
        const bool own = !strcmp(ptxgen_stage_name(p, i), "move");
        cr_expect_eq(strcmp(before, after) != 0, own, "%s", after);
        cr_expect(!own || strstr(after, "threads: 64,"), "%s", after);
        ptxgen_free(before);
        ptxgen_free(after);
    }
    cr_expect_null(ptxgen_stage_plan(usual, ptxgen_stage_count(p)));
    cr_expect_null(ptxgen_stage_plan(ptxgen_stage_plan(usual, 0), 0));
    setting[0].name = "threads";
    cr_expect_eq(ptxgen_plan_create(s, p, &o, &pinned), PTXGEN_USAGE);
    cr_expect(strstr(message_of(s), "a tunable is of one stage: write STAGE:threads"), "%s", message_of(s));
    setting[0].name = "moev:threads";
    cr_expect_eq(ptxgen_plan_create(s, p, &o, &pinned), PTXGEN_USAGE);
    cr_expect(strstr(message_of(s), "moev:threads: no stage is called 'moev'; those that run are ") &&
                  strstr(message_of(s), "did you mean 'move'?"),
              "%s", message_of(s));
    setting[0].name = "far:threads";
    cr_expect_eq(ptxgen_plan_create(s, p, &o, &pinned), PTXGEN_USAGE);
    cr_expect(strstr(message_of(s), "stage 'far' is part of 'move'"), "%s", message_of(s));
    setting[0] = (ptxgen_setting){ "move:nothing", "3" };
    cr_expect_eq(ptxgen_plan_create(s, p, &o, &pinned), PTXGEN_USAGE);
    cr_expect(strstr(message_of(s), "no tunable 'nothing'"), "%s", message_of(s));
}
