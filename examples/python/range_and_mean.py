# SPDX-License-Identifier: Apache-2.0
"""Several results of one pass: the range of an array and its mean."""
from arrays import array

import ptxgen
from ptxgen import ops

range_and_mean = ptxgen.reduce({"x": "f32[n]"}, reductions={"low": "min", "high": "max", "sum": "add"}, outputs={
    "range": ("f32", lambda low, high: high - low), "mean": ("f32", lambda sum, n: sum / ops.f32(n))})

if __name__ == "__main__":
    print(*range_and_mean(array([1, 2, 6])))  # 5.0 3.0
