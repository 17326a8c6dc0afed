/* SPDX-License-Identifier: Apache-2.0 */
/* fake_z3.c - a prover that misbehaves, opened in place of libz3 by the tests of laws.  FAKE_Z3 says how:
 *     hang    never answers          crash   ends with a signal
 *     lie     every question has a model, of which every value is 1          quit   ends the process
 */
#include <stdlib.h>
#include <string.h>

void *Z3_mk_config(void);
void *Z3_mk_context(void *config);
void Z3_set_error_handler(void *context, void (*handler)(void *, int));
const char *Z3_eval_smtlib2_string(void *context, const char *text);

static int nothing;

void *Z3_mk_config(void) { return &nothing; }
void *Z3_mk_context(void *config) { return config; }

void Z3_set_error_handler(void *context, void (*handler)(void *, int))
{
    (void)context;
    (void)handler;
}

const char *Z3_eval_smtlib2_string(void *context, const char *text)
{
    const char *how = getenv("FAKE_Z3");
    volatile int spinning = how && !strcmp(how, "hang");
    (void)context;
    while (spinning)
        ;
    if (how && !strcmp(how, "crash"))
        abort();
    if (how && !strcmp(how, "quit"))
        exit(0);
    return strstr(text, "check-sat") ? "sat\n" : "((t0 #x00000001))\n";
}
