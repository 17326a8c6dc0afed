# SPDX-License-Identifier: Apache-2.0
"""Sums of rows of different lengths that lie one after the other: row i has the elements rows[i] to rows[i + 1] - 1."""
from arrays import array

import ptxgen

ragged_sums = ptxgen.reduce({"x": "f32[n]", "rows": "i32[k]"}, "add", segments={"offsets": "rows"}, map=lambda x: x, outputs={"sum": "f32[k-1]"})

if __name__ == "__main__":
    print(ragged_sums(array([1, 2, 3, 4, 5]), array([0, 2, 2, 5], "i4")))  # [ 3.  0. 12.]
