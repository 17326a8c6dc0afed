/* SPDX-License-Identifier: Apache-2.0 */
/* tuning_file.h - tuning files: which variant was the fastest for a problem, a device and sizes; and what planning makes of
 * them. */
#ifndef PTXGEN_TUNING_H
#define PTXGEN_TUNING_H

#include "lower/plan.h"
#include "lower/tuned.h"

/* One entry of a tuning file, as written. */
struct tuning_entry {
    const char *problem; /* key: 16 hexadecimal digits */
    const char *name, *gpu, *arch, *variant;
    int nsizes;
    const char *const *size_name;
    const int64_t *size;
    double us, default_us;
    int variants;
};
struct tuning_file {
    int n;
    struct tuning_entry *entry;
};

/* False after a diagnostic; `file` is its name in messages. Everything lives in the session. */
bool tuning_read(struct ptxgen_session *s, const char *file, const char *text, size_t length, struct tuning_file *out);
void tuning_print(const struct tuning_file *f, struct str *out);
/* Replaces the entry of the same problem, device and sizes, or comes after the others. */
void tuning_put(struct ptxgen_session *s, struct tuning_file *f, const struct tuning_entry *e);

/* What is computed, without names of problems and pins: FNV-1a of the canonical text, as hexadecimal digits. */
const char *tuning_key(struct ptxgen_session *s, const struct problem *p);

/* May a measurement choose how a problem is computed?  Not where the tree of combinations must follow from the sizes
 * and the spec alone. */
bool tuning_counts(const struct problem *p);

/* The entries that count for a problem on a device (gpu NULL: any of the architecture), as options of planning. Those
 * whose variants do not fit any more are left out with a warning; likewise all, where tuning_counts() says no. */
void tuning_select(struct ptxgen_session *s, const struct tuning_file *f, const struct problem *p,
                   const struct device *d, const char *gpu, struct plan_options *o);

#endif
