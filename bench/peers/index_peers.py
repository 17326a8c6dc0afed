#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""index_peers.py PTXGEN - elements that go to, or come from, computed places, beside PyTorch (cuSPARSE for the matrix) and CUB.

Counts, sums and variances by unsorted keys, a sparse matrix by a vector, a transposed copy, the nearest centroid.  torch_peers.py says how the
times are measured, and which options there are.
"""
import ctypes
import functools
import os
import sys

import torch_peers
from torch_peers import Case, Problem

HOW = ("uniform", "skewed", "few", "runs", "constant")


@functools.lru_cache(4)
def uniform(n):
    import numpy
    return numpy.random.default_rng(3).random(n, dtype="f4")


def keys(n, k, how):
    """uniform; skewed: the eighth power of a uniform number; few: eight of the keys; runs: 32 times the same; constant"""
    import numpy
    u = uniform(n)
    if how == "runs":
        u = numpy.repeat(u[:(n + 31) // 32], 32)[:n]
    made = {"skewed": lambda: u**8, "few": lambda: numpy.floor(u * 8) / 8, "constant": lambda: u * 0}
    return numpy.minimum((made.get(how, lambda: u)() * k).astype("i4"), k - 1)


def cub(torch, library, key, k):
    """DeviceHistogram."""
    call = ctypes.CDLL(library).peer_histogram
    pointer = lambda t: ctypes.c_void_p(t.data_ptr())
    bytes_, out = ctypes.c_size_t(0), torch.empty(k, dtype=torch.int32, device="cuda")
    call(None, ctypes.byref(bytes_), pointer(key), key.numel(), pointer(out), k, None)
    temp = torch.empty(bytes_.value, dtype=torch.uint8, device="cuda")

    def counts(key):
        if call(pointer(temp), ctypes.byref(bytes_), pointer(key), key.numel(), pointer(out), k, None):
            raise RuntimeError("DeviceHistogram failed")
        return out
    return counts


# ---- the problems ------------------------------------------------------------------------------------------------------------------------


def counts(n, k, how, library):
    def peers(torch, given):
        found = {"torch": lambda key: torch.bincount(key, minlength=k)}
        if given["key"].is_cuda and os.path.exists(library):
            found["cub"] = cub(torch, library, given["key"], k)
        return found
    return Case("specs/counts_by_key.yaml", {"n": n, "k": k}, {"key": keys(n, k, how)}, 4 * k, peers, n, k, compiled=False)


def sums(n, k, how):
    call = lambda torch, _: {"torch": lambda key, x: torch.zeros(k, dtype=x.dtype, device=x.device).index_add_(0, key, x)}
    return Case("specs/sums_by_key.yaml", {"n": n, "k": k}, {"key": keys(n, k, how), "x": ("float32", (n,))}, 4 * k, call, n, k, compiled=False)


def variances(n, k, how):
    def peers(torch, _):
        def variance(key, x):
            part = lambda v: torch.zeros(k, dtype=x.dtype, device=x.device).index_add_(0, key, v)
            many = part(x * 0 + 1).clamp(min=1)
            mean = part(x) / many
            return part(x * x) / many - mean * mean
        return {"torch": variance}
    return Case("bench/specs/variance_by_key.yaml", {"n": n, "k": k}, {"key": keys(n, k, how), "x": ("float32", (n,))}, 4 * k, peers, n, k)


def spmv(n, each, how):
    import numpy
    m = n // each
    column = (uniform(n) * (64 if how == "banded" else m)).astype("i4")
    column = numpy.minimum(column + (numpy.arange(n) // each if how == "banded" else 0), m - 1).astype("i4")
    rows = numpy.arange(m + 1, dtype="i4") * each

    def peers(torch, given):
        matrix = torch.sparse_csr_tensor(given["rows"], given["column"], given["value"], (m, m))
        return {"cusparse": lambda value, column, rows, x: matrix @ x}
    return Case("specs/spmv.yaml", {"z": n, "k": m + 1, "n": m}, {"value": ("float32", (n,)), "column": column, "rows": rows, "x": ("float32", (m,))},
                4 * m, peers, n, each, compiled=False)


def transposed(n, side):
    if n < side * side:  # a try in small
        side = max(3, int(n**0.5)) - (side & 1)
    return Case("specs/transpose_at.yaml", {"m": side, "n": side}, {"x": ("float32", (side, side))}, 4 * side * side,
                lambda torch, _: {"torch": lambda x: x.t().contiguous()}, side * side, extent=f"{side}x{side}")


def nearest(n, points, k, f):
    points = min(points, n >> 6)
    call = lambda torch, _: {"torch": lambda x, c: torch.addmm((c * c).sum(1), x, c.T, alpha=-2).argmin(1)}
    return Case("specs/kmeans_assign.yaml", {"n": points, "k": k, "f": f}, {"x": ("float32", (points, f)), "c": ("float32", (k, f))}, 4 * points, call,
                points, extent=f"{points}x{f}x{k}", compared=False)  # of near ties, one or the other


def problems(library=""):
    return [
        *(Problem(f"spmv_{how}", spmv, (16, how)) for how in ("banded", "random")),
        *(Problem("transpose_at", transposed, (side,)) for side in (8192, 8191)),
        *(Problem("nearest", nearest, sizes) for sizes in ((494025, 5, 34), (1 << 20, 64, 16))),
        *(Problem(f"counts_{how}", counts, (k, how, library)) for how in HOW for k in (16, 256, 4096, 32768, 65536, 131072)),
        *(Problem(f"sums_{how}", sums, (k, how)) for how in HOW for k in (16, 256, 4096, 65536)),
        *(Problem(f"variances_{how}", variances, (k, how)) for how in ("uniform", "skewed", "constant") for k in (16, 256, 4096, 65536)),
    ]


if __name__ == "__main__":
    options = torch_peers.options(__doc__)
    sys.exit(torch_peers.run(options, problems(options.peers)))
