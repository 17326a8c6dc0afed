/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - what is going on, on a terminal; and what an interrupt leaves.
 *
 * A step that takes over a second shows its name, its time, and the time left, in a line of standard error that goes
 * away when the step ends.  Where standard error is no terminal, nothing is shown.
 */
#ifndef PTXGEN_CLI_PROGRESS_H
#define PTXGEN_CLI_PROGRESS_H

#include <stdbool.h>

bool progress_shown(void);
/* A step begins, which will take so many seconds; 0: not known.  Steps do not overlap. */
void progress_begin(const char *what, double seconds);
/* So much of the step is done, from 0 to 1.  From any thread; no step: nothing happens. */
void progress_at(double part);
void progress_end(void);
/* Seconds of a clock. */
double progress_now(void);

/* From now on Ctrl-C ends the program with this text, which stays where it is.  NULL: as the system has it. */
void interrupt_says(const char *text);
/* From now on the first Ctrl-C is only noted, where interrupted() asks for it; the second ends the program. */
void interrupt_notes(void);
bool interrupted(void);

#endif
