#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""index_peers.py PTXGEN [--specs DIR] [--peers FILE] [--only TEXT] [--log2 N] [--samples N] [--csv FILE]

Elements that go to, or come from, computed places: counts and sums by unsorted keys, a sparse matrix by a vector, the
nearest centroid, cross-entropy with labels.  ptxgen stands beside PyTorch (cuSPARSE for the matrix) and, for counts, CUB's
DeviceHistogram, all in one run, over the same data: batches of calls between two events on arrays that together exceed
the second-level cache.  The limit is a copy that moves as many bytes as the inputs and outputs have.  PTXGEN is checked
against its reference on short arrays, the peers against PyTorch in float64.  --log2 shortens every problem, for a first try.
"""
import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile

import row_peers

HERE = row_peers.HERE
HOW = ("uniform", "skewed", "few", "runs", "constant")
COUNTED = 2048  # elements of the arrays on which ptxgen is checked


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("ptxgen")
    parser.add_argument("--specs", default=os.path.join(HERE, "../.."), help="the folder that has specs/ and bench/")
    parser.add_argument("--peers", default=os.path.join(HERE, "../../lib/libpeers.so"), help="what build-peers made")
    parser.add_argument("--only", default="")
    parser.add_argument("--log2", type=int, default=26)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--csv", default="")
    return parser.parse_args()


# ---- data --------------------------------------------------------------------------------------------------------------------------------


def keys(torch, n, k, how):
    """uniform; skewed: the eighth power of a uniform number; few: eight of the keys; runs: 32 times the same; constant"""
    u = torch.rand(n, device="cuda")
    if how == "runs":
        u = u[: (n + 31) // 32].repeat_interleave(32)[:n]
    made = {"skewed": lambda: u**8, "few": lambda: torch.floor(u * 8) / 8, "constant": lambda: u * 0}
    u = made.get(how, lambda: u)()
    return (u * k).int().clamp(max=k - 1)


# ---- the problems: each gives its inputs by name, its sizes, and the peers that take them as arguments -----------------------------------


def counts(torch, o, n, k, how):
    key = keys(torch, n, k, how)
    found = {"torch": lambda key: torch.bincount(key, minlength=k)}
    if os.path.exists(o.peers):
        call = ctypes.CDLL(o.peers).peer_histogram
        bytes_, out = ctypes.c_size_t(0), torch.empty(k, dtype=torch.int32, device="cuda")
        pointer = lambda t: ctypes.c_void_p(t.data_ptr())
        call(None, ctypes.byref(bytes_), pointer(key), n, pointer(out), k, None)
        temp = torch.empty(bytes_.value, dtype=torch.uint8, device="cuda")

        def cub(key):
            if call(pointer(temp), ctypes.byref(bytes_), pointer(key), n, pointer(out), k, None):
                raise RuntimeError("DeviceHistogram failed")
            return out
        found["CUB"] = cub
    return {"key": key}, {"k": k}, found, lambda key: torch.bincount(key, minlength=k), 4 * k


def sums(torch, _, n, k, how):
    key, x = keys(torch, n, k, how), torch.rand(n, device="cuda")
    total = lambda key, x, dtype: torch.zeros(k, dtype=dtype, device="cuda").index_add_(0, key, x.to(dtype))
    return {"key": key, "x": x}, {"k": k}, {"torch": lambda key, x: total(key, x, torch.float32)}, \
        lambda key, x: total(key, x, torch.float64), 4 * k


def spmv(torch, _, n, each, how):
    rows = n // each
    column = torch.randint(rows, (n,), dtype=torch.int32, device="cuda")
    if how == "banded":
        column = (torch.arange(n, device="cuda") // each + column % 64).clamp(max=rows - 1).int()
    value, x = torch.rand(n, device="cuda"), torch.rand(rows, device="cuda")
    offsets = torch.arange(rows + 1, dtype=torch.int32, device="cuda") * each
    matrix = torch.sparse_csr_tensor(offsets, column, value, (rows, rows))
    wide = lambda value, column, offsets, x: (value.double() * x.double()[column.long()]).view(rows, each).sum(1)
    return {"value": value, "column": column, "rows": offsets, "x": x}, {}, \
        {"cuSPARSE": lambda value, column, offsets, x: matrix @ x}, wide, 4 * rows


def nearest(torch, _, n, k, f):
    n = min(n, 494025) if f == 34 else n >> 6  # k-means of Rodinia, or 2^20 points
    x = torch.randn(n, f, device="cuda")
    c = x[:k].clone()
    return {"x": x, "c": c}, {}, \
        {"torch": lambda x, c: torch.addmm((c * c).sum(1), x, c.T, alpha=-2).argmin(1)}, None, 4 * n


def cross_entropy(torch, _, n, width, __):
    m = n // width
    x, label = torch.randn(m, width, device="cuda"), torch.randint(width, (m,), dtype=torch.int32, device="cuda")
    wide, loss = label.long(), torch.nn.functional.cross_entropy
    return {"x": x, "label": label}, {}, {"torch": lambda x, label: loss(x, wide, reduction="none")}, \
        lambda x, label: loss(x.double(), wide, reduction="none"), 4 * m


PROBLEMS = [  # name, spec, what makes it, its two arguments
    *(("counts", "specs/counts_by_key.yaml", counts, k, how) for k in (16, 256, 4096, 32768)
      for how in HOW),
    *(("sums", "specs/sums_by_key.yaml", sums, k, how) for k in (16, 256, 4096) for how in HOW),
    *(("spmv", "specs/spmv.yaml", spmv, 16, how) for how in ("banded", "random")),
    *(("nearest", "specs/kmeans_assign.yaml", nearest, k, f) for k, f in ((5, 34), (64, 16))),
    *(("cross_entropy", "bench/specs/cross_entropy.yaml", cross_entropy, width, "") for width in (128, 1024, 16384, 131072)),
]


# ---- running -----------------------------------------------------------------------------------------------------------------------------


def ours(o, spec, given, sizes, folder):
    """(microseconds, case), or (None, message)."""
    import numpy
    full = [o.ptxgen, "bench", os.path.join(o.specs, spec), "--json", "--no-verify", "--no-graph", f"--samples={o.samples}"]
    for name, array in given.items():
        path = os.path.join(folder, name + ".npy")
        numpy.save(path, array.cpu().numpy())
        full.append(f"--input={name}={path}")
    full += [f"--size={name}={value}" for name, value in sizes.items()]
    made = subprocess.run(full, capture_output=True, text=True, check=False)
    if made.returncode:
        return None, made.stderr.strip()
    said = json.loads(made.stdout)
    return said["results"][0]["median"], said.get("case", "")


def checked(o, torch, make, spec, first, second, folder):
    """Whether ptxgen agrees with its reference on short arrays of this kind."""
    import numpy
    given, sizes = make(torch, o, 64 * COUNTED, first, second)[:2]
    line = [o.ptxgen, "run", os.path.join(o.specs, spec), "--device=cuda", "--verify"]
    for name, array in given.items():
        path = os.path.join(folder, name + ".npy")
        numpy.save(path, array.cpu().numpy())
        line.append(f"--input={name}={path}")
    line += [f"--size={name}={value}" for name, value in sizes.items()]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def peers(o, torch, given, found, wide, moved):
    """(microseconds of a copy, {implementation: microseconds})"""
    arrays = list(given.values())
    bytes_ = moved + sum(a.numel() * a.element_size() for a in arrays)
    count = max(1, math.ceil((256 << 20) / bytes_))
    copies = [[a.clone() for a in arrays] for _ in range(count)]
    source = [torch.empty(bytes_ // 2, dtype=torch.uint8, device="cuda") for _ in range(max(2, count))]
    into = torch.empty_like(source[0])
    times = {}
    for name, call in found.items():
        def each(given_, call=call):
            return call(*given_)
        if wide:
            want = wide(*arrays).double()
            error = float(((each(arrays).double() - want).abs() / want.abs().clamp(min=1)).max())
            if not error <= 1e-3:
                print(f"# {name} is off by {error}", file=sys.stderr)
        times[name] = row_peers.timed(torch, each, copies, o.samples)
    return row_peers.timed(torch, into.copy_, source, o.samples), times


def main():
    o = options()
    import torch
    lines = ["problem,first,second,implementation,us,share"]
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, spec, make, first, second in PROBLEMS:
            if o.only not in name:
                continue
            given, sizes, found, wide, moved = make(torch, o, 1 << o.log2, first, second)
            copy, times = peers(o, torch, given, found, wide, moved)
            us, case = ours(o, spec, given, sizes, folder)
            tried = checked(o, torch, make, spec, first, second, folder)
            if us is None or tried.returncode:
                print(f"{name} {first} {second}: {case if us is None else tried.stderr}", file=sys.stderr)
                status = 1
            rows = {"copy": copy, f"ptxgen {case if us else ''}": us or math.nan, **times}
            for who, t in rows.items():
                lines.append(f"{name},{first},{second},{who},{t:.2f},{copy / t:.3f}")
                print(f"{name:14} {first:<7} {second!s:9} {who:32} {t:10.2f} us {100 * copy / t:6.1f} %", flush=True)
            del given, found, wide
            torch.cuda.empty_cache()
    if o.csv:
        with open(o.csv, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
