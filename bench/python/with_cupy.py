# SPDX-License-Identifier: Apache-2.0
"""The examples in CuPy.  Its reductions combine elements in any order, and its scans add or multiply: the largest sum of a segment and
running maxima would be kernels in CUDA C++."""
import cupy

def total(x):
    return x.sum()

def ragged_sums(x, rows):
    sums = cupy.zeros(len(x) + 1)  # f64, because differences of sums lose digits
    cupy.cumsum(x, dtype="f8", out=sums[1:])
    return sums[rows[1:]] - sums[rows[:-1]]

def cumulative_sum(x):
    return cupy.cumsum(x, axis=0), x.sum(axis=0)

def softmax(x):
    e = cupy.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def jacobi(u, steps):
    u, new = u.copy(), u.copy()
    for _ in range(steps):
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, new = new, u
    return u

def histogram(x):
    return cupy.bincount(x, minlength=256)

def selection(x, threshold):
    kept = x[x > threshold]
    return kept, len(kept)

def range_and_mean(x):
    return x.max() - x.min(), x.mean()
