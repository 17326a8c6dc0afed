#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""row_peers.py PTXGEN - rows that are reduced, then mapped (softmax, norms, cross-entropy), beside PyTorch and Triton.

Triton has one program per row, and the best of those numbers of warps with which a thread has 4 to 64 elements.  torch_peers.py says
how the times are measured, and which options there are.
"""
import math
import sys

import torch_peers
from torch_peers import Case, Problem

SHORT = 16384  # longer rows take Triton's compiler long: only softmax has them
EPS = 1e-5
FORMULAS = {  # what PyTorch's users write, for float32 and float64 alike
    "softmax": lambda torch, _: lambda x: torch.softmax(x, -1),
    "log_softmax": lambda torch, _: lambda x: torch.log_softmax(x, -1),
    "layer_norm": lambda torch, _: lambda x, weight, bias: torch.nn.functional.layer_norm(x, weight.shape, weight, bias, EPS),
    "rms_norm": lambda torch, _: lambda x, weight: torch.nn.functional.rms_norm(x, weight.shape, weight, EPS),
    "l2_norm": lambda torch, _: lambda x: torch.nn.functional.normalize(x, dim=-1),
    "max_norm": lambda torch, _: lambda x: x / x.abs().amax(-1, keepdim=True),
}


def triton_calls(torch, formula, n):
    """{implementation: call}"""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return {}

    @triton.jit
    def kernel(x, y, weight, bias, first, mask, n, OP: tl.constexpr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        row = tl.program_id(0).to(tl.int64)
        begin = row * n
        inside = at < n
        if OP == "softmax_ragged":
            begin = tl.load(first + row).to(tl.int64)
            inside = at < tl.load(first + row + 1) - begin
        v = tl.load(x + begin + at, mask=inside, other=0).to(tl.float32)
        if OP == "max_norm":
            v = v / tl.max(tl.abs(v), axis=0)
        elif OP == "l2_norm":
            v = v / tl.sqrt(tl.sum(v * v, axis=0))
        elif OP == "rms_norm":
            v = v * tl.rsqrt(tl.sum(v * v, axis=0) / n + 1e-5) * tl.load(weight + at, mask=inside, other=0)
        elif OP == "layer_norm":
            v = tl.where(inside, v - tl.sum(v, axis=0) / n, 0)
            v = v * tl.rsqrt(tl.sum(v * v, axis=0) / n + 1e-5) * tl.load(weight + at, mask=inside, other=0)
            v = v + tl.load(bias + at, mask=inside, other=0)
        else:
            shown = inside
            if OP == "softmax_ragged":
                shown = inside & (tl.load(mask + begin + at, mask=inside, other=0) != 0)
            v = tl.where(shown, v, -float("inf"))
            most = tl.max(v, axis=0)
            total = tl.sum(tl.exp(v - most), axis=0)
            if OP == "cross_entropy":
                tl.store(y + row, most + tl.log(total) - tl.load(x + begin + tl.load(first + row)))
            elif OP == "log_softmax":
                v = v - most - tl.log(total)
            else:
                v = tl.where(shown, tl.exp(v - most) / total, 0)
        if OP != "cross_entropy":
            tl.store(y + begin + at, v.to(y.dtype.element_ty), mask=inside)

    block = triton.next_power_of_2(n)

    def of(warps):
        def call(x, weight=None, bias=None, label=None, first=None, mask=None):
            rows = first.numel() - 1 if first is not None else x.shape[0]
            y = torch.empty_like(x) if label is None else torch.empty(rows, device=x.device)
            where = label if first is None else first
            kernel[(rows,)](x, y, x if weight is None else weight, x if bias is None else bias, x if where is None else where,
                            x if mask is None else mask.view(torch.uint8), n, OP=formula, BLOCK=block, num_warps=warps)
            return y
        return call

    warps = [w for w in (1, 2, 4, 8, 16, 32) if 4 <= block // (32 * w) <= 64] or [1 if block < 128 else 32]
    return {f"triton {w} warps": of(w) for w in warps} if n <= SHORT or formula == "softmax" else {}


def case(spec, n, row, formula, call, given, sizes=None, written=None, length=None):
    """Of rows in array x.  call: of torch and the arrays; length: of the longest row."""
    m = max(1, n // row)
    bytes_ = 2 if given["x"][0] == "bfloat16" else 4
    return Case(spec, {"m": m, "n": row} if sizes is None else sizes, given, m * row * bytes_ if written is None else written,
                lambda torch, arrays: {"torch": call(torch, arrays), **triton_calls(torch, formula, length or row)}, m * row, row)


def mapped(n, row, spec, formula, dtype, *columns):
    """columns: the inputs that have an element for each column."""
    given = {"x": (dtype, (max(1, n // row), row)), **{name: (dtype, (row,)) for name in columns}}
    return case(spec, n, row, formula, FORMULAS[formula], given)


def cross_entropy(n, row):
    import numpy
    m = max(1, n // row)
    given = {"x": ("float32", (m, row)), "label": numpy.random.default_rng(1).integers(row, size=m, dtype="i4")}

    def call(torch, arrays):
        wide = arrays["label"].long()
        return lambda x, label: torch.nn.functional.cross_entropy(x, wide, reduction="none")
    return case("bench/specs/cross_entropy.yaml", n, row, "cross_entropy", call, given, written=4 * m)


def ragged(n, row):
    """Rows of random lengths, `row` in the mean; an eighth of the elements is masked."""
    import numpy
    random, m = numpy.random.default_rng(2), max(1, n // row)
    length = numpy.full(m, row)
    length[:m // 2] = random.integers(1, 2 * row, size=m // 2)
    length[m - m // 2:] = 2 * row - length[:m // 2]  # as many elements as m rows have
    random.shuffle(length)
    first = numpy.concatenate([[0], numpy.cumsum(length)]).astype("i4")
    given = {"x": ("float32", (m * row,)), "mask": random.random(m * row, dtype="f4") < 0.875, "first": first}

    def call(torch, arrays):
        row_of = torch.repeat_interleave(arrays["first"].diff())

        def softmax(x, mask, first):
            part = lambda x, how: torch.segment_reduce(x, how, offsets=first, unsafe=True)
            spread = lambda x: x[row_of]
            e = torch.where(mask, torch.exp(x - spread(part(torch.where(mask, x, -math.inf), "max"))), 0)
            return e / spread(part(e, "sum").clamp(min=1e-30))
        return softmax
    made = case("specs/softmax_segments.yaml", n, row, "softmax_ragged", call, given, {"n": m * row, "k": m + 1}, length=int(length.max()))
    made.compiled = False  # neither reductions of segments nor offsets are joined
    return made


def columns(n, column):
    """Of m rows; PyTorch's batch norm without a weight is the same."""
    m = max(1, n // column)

    def peers(torch, _):
        def formula(x):
            variance, mean = torch.var_mean(x, 0, correction=0)
            return (x - mean) * torch.rsqrt(variance)
        return {"torch": formula, "torch batch_norm": lambda x: torch.nn.functional.batch_norm(x, None, None, training=True, eps=0)}
    return Case("specs/standard_columns.yaml", {"m": column, "n": m}, {"x": ("float32", (column, m))}, 4 * m * column, peers, m * column, column)


def channels(n, column):
    """Of images of 64 x 64 points, or fewer in a try in small."""
    points = max(1, min(4096, n // column))
    b = max(1, n // (column * points))
    return Case("bench/specs/softmax_channels.yaml", {"b": b, "c": column, "n": points}, {"x": ("float32", (b, column, points))}, 4 * b * column * points,
                lambda torch, _: {"torch": lambda x: torch.softmax(x, 1)}, b * column * points, column)


ROWS, FEW, CLUSTERS = (128, 1000, 1024, 4096, 16384, 65536, 262144), (128, 1024, 4096, 16384, 65536), (128, 1024, 16384, 262144)
PROBLEMS = [  # name, what makes it, further arguments, lengths of rows, from a graph
    ("softmax_f32", mapped, ("bench/specs/softmax_f32.yaml", "softmax", "float32"), ROWS, False),
    ("softmax_f32", mapped, ("bench/specs/softmax_f32.yaml", "softmax", "float32"), CLUSTERS, True),
    ("softmax_bf16", mapped, ("bench/specs/softmax_bf16.yaml", "softmax", "bfloat16"), ROWS, False),
    ("log_softmax_bf16", mapped, ("specs/log_softmax.yaml", "log_softmax", "bfloat16"), FEW, False),
    ("softmax_ragged", ragged, (), FEW, False),
    ("cross_entropy", cross_entropy, (), FEW, False),
    ("layer_norm", mapped, ("specs/layer_norm.yaml", "layer_norm", "float32", "weight", "bias"), FEW, False),
    ("rms_norm", mapped, ("specs/rms_norm.yaml", "rms_norm", "float32", "weight"), FEW, False),
    ("l2_norm", mapped, ("specs/l2_norm.yaml", "l2_norm", "float32"), FEW, False),
    ("max_norm", mapped, ("specs/max_norm.yaml", "max_norm", "float32"), FEW, False),
    ("standard_columns", columns, (), FEW, False),
    ("softmax_channels", channels, (), (128, 1024, 4096), False),
]


def problems(rows=""):
    return [Problem(name, make, (row, *more), graph) for name, make, more, lengths, graph in PROBLEMS
            for row in ([int(r) for r in rows.split(",")] if rows else lengths)]


if __name__ == "__main__":
    options = torch_peers.options(__doc__)
    sys.exit(torch_peers.run(options, problems(options.rows)))
