/* SPDX-License-Identifier: Apache-2.0 */
/* test_spec_files.c - the specs that the project shows: those of the language's page, and those of specs/. */
#include "support/spec_fixture.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    cr_assert(file && text, "%s", path);
    cr_assert_gt(fread(text, 1, (1 << 16) - 1, file), 0);
    fclose(file);
    return text;
}

/* The examples of the language reference are true. */
Test(spec_files, examples_of_the_reference)
{
    char *text = read_all(PTXGEN_SOURCE_DIR "/docs/spec-language.md");
    int built = 0;
    for (char *at = text; (at = strstr(at, "```yaml\n")) != NULL;) {
        char *begin = at + 8, *end = strstr(begin, "```");
        cr_assert(end != NULL);
        *end = '\0';
        at = end + 1;
        if (strncmp(begin, "kind:", 5) != 0)
            continue; /* a part of a spec */
        SPEC_BEGIN(f);
        struct frontend_spec built_as;
        const bool good = frontend_build(&f.s, "t.yaml", begin, strlen(begin), "t", &built_as);
        diags_render_text(&f.s.diags, &f.text, false);
        cr_expect(good && !f.s.diags.first, "%s\n%s", begin, spec_text(&f));
        spec_end(&f);
        built++;
    }
    cr_expect_geq(built, 4);
    free(text);
}

/* The specs that come with the project: no error, no warning, and a doc each. */
Test(spec_files, specs_build)
{
    glob_t specs;
    cr_assert_eq(glob(PTXGEN_SOURCE_DIR "/specs/*.yaml", 0, NULL, &specs), 0);
    cr_expect_geq(specs.gl_pathc, 24);
    for (size_t i = 0; i < specs.gl_pathc; i++) {
        SPEC_BEGIN(f);
        char *text = read_all(specs.gl_pathv[i]);
        spec_build(&f, text);
        cr_expect(f.p && !f.s.diags.first, "%s\n%s", specs.gl_pathv[i], spec_text(&f));
        cr_expect(!f.p || (f.p->doc && strlen(f.p->doc) > 10), "%s has no doc", specs.gl_pathv[i]);
        free(text);
        spec_end(&f);
    }
    globfree(&specs);
}
