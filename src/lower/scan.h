/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - what planning and emission of scans share: how the scanned elements lie in memory.
 *
 * A scan has *segments*: one per combination of the kept axes, or one per pair of offsets, or a single one.  The elements of a
 * segment have *positions* 0, 1, … in the order of the scan, which for `direction: reverse` is against the order of memory.
 */
#ifndef PTXGEN_SCAN_H
#define PTXGEN_SCAN_H

#include "access.h"

bool scan_keeps(const struct problem *p);    /* an axis is not scanned */
/* Scanned axes are the last ones: a segment is a run of elements, and segments follow one another. */
bool scan_trailing(const struct problem *p);
bool scan_has_totals(const struct problem *p);
/* An operator reads inputs (that do not vary within a segment). */
bool scan_operator_reads(const struct problem *p);
/* Products of the extents of the scanned and of the kept axes. */
struct formula scan_length(const struct problem *p);
struct formula scan_segments(const struct problem *p);

#endif
