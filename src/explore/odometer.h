/* SPDX-License-Identifier: Apache-2.0 */
/* odometer.h - all settings of some tunables, one after the other; and what has been learned of them.
 *
 * A setting is illegal for what a few of its tunables have together, whatever the others have.  Once that is known, the
 * odometer goes on from where the last of these tunables changes, which is backjumping (Gaschnig 1979); and settings
 * further on that have the same values of them are recognised (nogoods, Dechter 1990).
 */
#ifndef PTXGEN_ODOMETER_H
#define PTXGEN_ODOMETER_H

#include "variants.h"

struct tunable_axis {
    enum tunable_id tunable;
    bool still; /* does not turn: somebody else multiplies by its values */
    int n, at;
    int value[CANDIDATES_MAX];
};

/* Values that no plan has together: of the axes whose bits are set. */
struct nogood {
    unsigned axes;
    int at[TN_COUNT];
};

enum { NOGOODS_MAX = 64 };

/* Axis 0 turns last. */
struct odometer {
    int naxes;
    struct tunable_axis axis[TN_COUNT];
    int nnogoods; /* ever: the last ones are kept */
    struct nogood nogood[NOGOODS_MAX];
};

/* No axes: code that adds some begins here. */
void odometer_clear(struct odometer *o);
/* How many settings there are; go to setting number 0 … . */
int64_t odometer_settings(const struct odometer *o);
void odometer_go_to(struct odometer *o, int64_t number);
/* The next setting; false after the last. */
bool odometer_turn(struct odometer *o);
/* On to the last setting with the same values of the first `axes` axes; how many it was until there, with this one. */
int64_t odometer_pass(struct odometer *o, int axes);

/* So many of the first axes have some settings for each of `parts` parts (0 for fewer than two); the number of theirs. */
int odometer_deal(const struct odometer *o, int parts);
int64_t odometer_number(const struct odometer *o, int axes);

/* This setting is illegal for the values of these tunables, bits 1 << TN_x (0: that is not known).  Gives the number of
 * axes, counted from the first, whose values make every setting with the same ones illegal; 0: not known. */
int odometer_learn(struct odometer *o, unsigned tunables);
/* The same for what is already known of this setting; 0: nothing. */
int odometer_illegal(const struct odometer *o);

#endif
