#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_peers.py [--json FILE] [--samples N] [--problem NAME] [--size N] - PyTorch, CuPy and Triton on the benchmark's problems, where
importable.

The same sizes, random data, rotation of the input through 1 GiB, batches between events and medians as gpubench; the JSON has the
same form, so that plot.py takes both.  Results are compared with a float64 evaluation before they are timed.
"""
import json
import math
import statistics
import sys
import time

POOL_BYTES = 1 << 30
BATCH_SECONDS = 400e-6


# Rows, or columns, of this length.
SEGMENTS = {"segscan": [4**e for e in range(1, 14)] + [10**e for e in range(8)] + [3, 7, 33, 1023, 1025, 100003],
            "colscan": [1 << e for e in range(3, 24, 2)] + [33, 1000],
            "segsum": [4**e for e in range(14)] + [3, 7, 33, 100, 1000, 1023, 1025, 100003],
            "colsum": [1 << e for e in range(3, 24, 2)]}


def sizes(problem):
    if problem in SEGMENTS:
        return [1 << 20, 10**7, 1 << 26] if problem == "segscan" else [1 << 20, 1 << 26]
    return [1 << e for e in range(6, 31, 2)] if problem == "sum_f32" else [1 << 20, 1 << 24, 1 << 28]


def torch_implementations(torch):
    """{problem: {name: function(list of tensors) -> tensor or tuple}}"""
    rows = {
        "sum_f32": {"torch": lambda x: x[0].sum()},
        "dot": {"torch": lambda x: torch.dot(x[0], x[1])},
        "argmin": {"torch": lambda x: torch.min(x[0], dim=0)},
        "max": {"torch": lambda x: x[0].max()},
        "minmaxsum": {"torch": lambda x: (torch.aminmax(x[0]), x[0].sum())},
        "welford": {"torch": lambda x: torch.var_mean(x[0], correction=0)},
        "sum_i8": {"torch": lambda x: x[0].sum(dtype=torch.int32)},
        "sum_f16": {"torch": lambda x: x[0].sum(dtype=torch.float32)},
        "sum_bf16": {"torch": lambda x: x[0].sum(dtype=torch.float32)},
        "sum_f64": {"torch": lambda x: x[0].sum()},
        "segscan": {"torch": lambda x: torch.cumsum(x[0], dim=-1)},
        "colscan": {"torch": lambda x: torch.cumsum(x[0], dim=0)},
        "segsum": {"torch": lambda x: x[0].sum(dim=1)},
        "colsum": {"torch": lambda x: x[0].sum(dim=0)},
    }
    try:
        import cupy

        kernel = cupy.ReductionKernel("float32 x", "float32 y", "x", "a + b", "y = a", "0", "sum_f32")
        rows["sum_f32"]["cupy sum"] = lambda x: cupy.sum(cupy.asarray(x[0]))
        rows["sum_f32"]["cupy kernel"] = lambda x: kernel(cupy.asarray(x[0]))
        rows["dot"]["cupy"] = lambda x: cupy.dot(cupy.asarray(x[0]), cupy.asarray(x[1]))
        rows["argmin"]["cupy"] = lambda x: cupy.asarray(x[0]).argmin()
        rows["segscan"]["cupy"] = lambda x: cupy.cumsum(cupy.asarray(x[0]), axis=-1)
        rows["segsum"]["cupy"] = lambda x: cupy.asarray(x[0]).sum(axis=1)
        rows["colsum"]["cupy"] = lambda x: cupy.asarray(x[0]).sum(axis=0)
        rows["colscan"]["cupy"] = lambda x: cupy.cumsum(cupy.asarray(x[0]), axis=0)
    except ImportError:
        pass
    add_triton(torch, rows)
    return rows


def add_triton(torch, rows):
    """A two-stage sum: partials per program, then one program."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return

    @triton.jit
    def partial_sums(x, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at, mask=at < n, other=0.0), axis=0))

    def run(x):
        data, block = x[0], 8192
        while data.numel() > 1:
            count = triton.cdiv(data.numel(), block)
            out = torch.empty(count, device="cuda", dtype=torch.float32)
            partial_sums[(count,)](data, out, data.numel(), BLOCK=block, num_warps=8)
            data = out
        return data

    rows["sum_f32"]["triton"] = run


def make_pool(torch, problem, n):
    """Tensors that hold 1 GiB (or n elements), and their slices of n."""
    kind = {"sum_i8": torch.int8, "sum_f16": torch.float16, "sum_bf16": torch.bfloat16, "sum_f64": torch.float64}
    dtype = kind.get(problem, torch.float32)
    stride = max(n, 256 // torch.empty(0, dtype=dtype).element_size())
    count = max(1, POOL_BYTES // (stride * torch.empty(0, dtype=dtype).element_size()))
    pools = []
    for seed in range(2 if problem == "dot" else 1):
        generator = torch.Generator(device="cuda").manual_seed(seed + 1)
        if dtype == torch.int8:
            pools.append(torch.randint(-100, 101, (count * stride,), device="cuda", dtype=dtype, generator=generator))
        else:
            made = torch.empty(count * stride, device="cuda", dtype=dtype)
            pools.append(made.uniform_(-1, 1, generator=generator))
    return [[pool[i * stride:i * stride + n] for pool in pools] for i in range(min(count, 4096))]


def check(torch, problem, function, inputs):
    """Only the sums, dot and extrema have one number to compare; the rest must run."""
    got = function(inputs)
    x = inputs[0].double()
    if problem in SEGMENTS:
        along = 0 if problem.startswith("col") else 1
        fold = torch.sum if problem.endswith("sum") else torch.cumsum
        bound = 4e-7 * fold(x.abs(), dim=along)
        return bool(((torch.as_tensor(got, device="cuda") - fold(x, dim=along)).abs() <= bound).all())
    if problem.startswith("sum"):
        expected, bound = x.sum().item(), 4e-7 * x.abs().sum().item()
    elif problem == "dot":
        product = x * inputs[1].double()
        expected, bound = product.sum().item(), 4e-7 * product.abs().sum().item()
    elif problem == "max":
        expected, bound = x.max().item(), 0.0
    else:
        return True
    return abs(float(got) - expected) <= bound


def batch(torch, function, slices, start, count):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for i in range(count):
        function(slices[(start + i) % len(slices)])
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3 / count


def measure(torch, function, slices, samples):
    at = 0
    for _ in range(5):
        once = batch(torch, function, slices, at, 3)
        at += 3
    count = min(400, max(1, math.ceil(BATCH_SECONDS / once)))
    times = []
    for _ in range(samples):
        times.append(batch(torch, function, slices, at, count))
        at += count
    times.sort()
    return times[len(times) // 10], statistics.median(times), times[len(times) * 9 // 10], count


def run_size(torch, problem, implementations, n, segment, samples):
    rows = []
    used = n // segment * segment if segment else n
    slices = make_pool(torch, problem, used)
    if segment:
        shape = (segment, -1) if problem.startswith("col") else (-1, segment)
        slices = [[x.view(shape) for x in inputs] for inputs in slices]
    for name, function in implementations.items():
        label = f"{problem} n={used}" + (f"/{segment}" if segment else "") + f" {name}"
        if not check(torch, problem, function, slices[0]):
            print(f"{label}: WRONG")
            continue
        low, median, high, count = measure(torch, function, slices, samples)
        print(f"{label:40} {median * 1e6:10.2f} us")
        rows.append({"name": f"{problem}/stream/{used}/{name}", "run_type": "aggregate", "aggregate_name": "median",
                     "repetitions": samples, "iterations": count, "real_time": median * 1e6, "cpu_time": 0,
                     "time_unit": "us", "p10": low * 1e6, "p90": high * 1e6, "problem": problem, "mode": "stream",
                     "n": used, "segment": segment, "implementation": name, "is_limit": False, "verified": True})
    return rows


def run_all(torch, samples, only, only_size):
    rows = []
    for problem, implementations in torch_implementations(torch).items():
        if only and problem != only:
            continue
        for n in [only_size] if only_size else sizes(problem):
            for segment in [s for s in SEGMENTS.get(problem, [0]) if s <= n]:
                rows += run_size(torch, problem, implementations, n, segment, samples)
                torch.cuda.empty_cache()
    return rows


def main(arguments):
    options = dict(zip(arguments[::2], arguments[1::2]))
    try:
        import torch
    except ImportError:
        sys.exit("python_peers.py: no PyTorch here")
    if not torch.cuda.is_available():
        sys.exit("python_peers.py: PyTorch sees no GPU")
    context = {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "executable": "python_peers.py",
               "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    rows = run_all(torch, int(options.get("--samples", "25")), options.get("--problem"), int(options.get("--size", "0")))
    if "--json" in options:
        with open(options["--json"], "w", encoding="utf-8") as file:
            json.dump({"context": context, "benchmarks": rows}, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1:])
