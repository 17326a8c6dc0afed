# SPDX-License-Identifier: Apache-2.0
"""Cumulative sums along the columns of a matrix, and what each column adds up to, in one pass."""
from arrays import array

import ptxgen

cumulative_sum = ptxgen.scan({"x": "f32[m, n]"}, "add", over="m", outputs={"sums": "f32[m, n]", "columns": ("f32[n]", lambda total: total)})

if __name__ == "__main__":
    print(*cumulative_sum(array([[1, 2], [3, 4]])), sep="\n")  # [[1. 2.] [4. 6.]] and [4. 6.]
