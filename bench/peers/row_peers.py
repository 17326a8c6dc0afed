#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""row_peers.py PTXGEN [--specs DIR] [--only TEXT] [--elements N] [--rows N,N,…] [--samples N] [--csv FILE]

Rows that are reduced, then mapped (softmax, norms): ptxgen beside PyTorch and, for softmax, Triton with one program per
row and the best of 1 to 32 warps.  All are timed in one run: batches of calls between two events, on copies of the arrays
that rotate through more than the second-level cache.  The share is the time of a copy of the same bytes over that of
the implementation.  PTXGEN is checked against its reference on a few rows before it is timed, the others against a float64
evaluation.  `--only softmax_f32` takes the problems whose name contains the text.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
POOL_BYTES = 1 << 30
BATCH_SECONDS = 400e-6
PROBLEMS = {  # name: (spec, dtype)
    "softmax_f32": ("bench/specs/softmax_f32.yaml", "float32"),
    "softmax_bf16": ("bench/specs/softmax_bf16.yaml", "bfloat16"),
    "layer_norm_f32": ("specs/layer_norm.yaml", "float32"),
    "rms_norm_f32": ("specs/rms_norm.yaml", "float32"),
    "l2_norm_f32": ("specs/l2_norm.yaml", "float32"),
}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("ptxgen")
    parser.add_argument("--specs", default=os.path.join(HERE, "../.."), help="the folder that has specs/ and bench/")
    parser.add_argument("--only", default="")
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--rows", default="128,256,512,1000,1024,2048,4096,8192,16384")
    parser.add_argument("--samples", type=int, default=21)
    parser.add_argument("--csv", default="")
    parser.add_argument("--set", action="append", default=[], metavar="TUNABLE=VALUE", help="for ptxgen")
    return parser.parse_args()


def ours(o, spec, m, n):
    """(microseconds, case), or None and the message."""
    common = [o.ptxgen, "bench", os.path.join(o.specs, spec), f"--size=n={n}"] + [f"--set={s}" for s in o.set]
    few = subprocess.run([o.ptxgen, "run", common[2], "--device=cuda", "--verify", "--size=m=37"] + common[3:],
                         capture_output=True, text=True, check=False)
    if few.returncode:
        return None, few.stderr.strip().splitlines()[-1:]
    made = subprocess.run(common + [f"--size=m={m}", "--json", "--no-verify", "--no-graph", f"--samples={o.samples}"],
                          capture_output=True, text=True, check=False)
    if made.returncode:
        return None, made.stderr.strip().splitlines()[-1:]
    said = json.loads(made.stdout)
    return said["results"][0]["median"], said.get("case", "")


def torch_row(torch, problem, n):
    f = torch.nn.functional
    weight, bias = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    return {
        "softmax_f32": lambda x: torch.softmax(x, -1),
        "softmax_bf16": lambda x: torch.softmax(x, -1),
        "layer_norm_f32": lambda x: f.layer_norm(x, (n,), weight, bias, 1e-5),
        "rms_norm_f32": lambda x: f.rms_norm(x, (n,), weight, 1e-5) if hasattr(f, "rms_norm") else
        x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight,
        "l2_norm_f32": lambda x: f.normalize(x, dim=-1),
    }[problem]


def triton_rows(torch, n):
    """{warps: function}"""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return {}

    @triton.jit
    def kernel(x, y, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        row = tl.program_id(0).to(tl.int64) * n
        v = tl.load(x + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(y + row + at, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=at < n)

    def run(warps):
        def call(x):
            y = torch.empty_like(x)
            kernel[(x.shape[0],)](x, y, n, BLOCK=triton.next_power_of_2(n), num_warps=warps)
            return y
        return call

    return {warps: run(warps) for warps in (1, 2, 4, 8, 16, 32)}


def timed(torch, call, copies, samples):
    def batch(count, start):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for i in range(count):
            call(copies[(start + i) % len(copies)])
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / count

    batch(3, 0)
    count = max(1, math.ceil(BATCH_SECONDS * 1e6 / max(batch(3, 3), 0.5)))
    return statistics.median(batch(count, i * count) for i in range(samples))


def right(torch, problem, call, x):
    if not problem.startswith("softmax"):
        return True
    got, want = call(x[:64]).double(), torch.softmax(x[:64].double(), -1)
    return bool(((got - want).abs() <= want * (2**-7 if x.dtype == torch.bfloat16 else 1e-5) + 1e-12).all())


def peers(o, torch, problem, m, n):
    """(microseconds of a copy, {implementation: microseconds})"""
    dtype = getattr(torch, PROBLEMS[problem][1])
    each = m * n * torch.empty(0, dtype=dtype).element_size()
    copies = [torch.randn(m, n, device="cuda").to(dtype) for _ in range(max(2, math.ceil(POOL_BYTES / each)))]
    into = torch.empty_like(copies[0])
    times = {}
    candidates = {"torch": torch_row(torch, problem, n)}
    if problem.startswith("softmax"):
        candidates.update({f"triton {w} warps": f for w, f in triton_rows(torch, n).items()})
    for name, call in candidates.items():
        try:
            times[name] = timed(torch, call, copies, o.samples) if right(torch, problem, call, copies[0]) else math.nan
        except Exception as error:  # pylint: disable=broad-except # as where a kernel needs too many registers
            print(f"# {problem} n={n} {name}: {error}", file=sys.stderr)
    best = min((t, name) for name, t in times.items() if name.startswith("triton")) if len(times) > 1 else None
    kept = {name: t for name, t in times.items() if not name.startswith("triton")}
    if best:
        kept[best[1]] = best[0]
    return timed(torch, into.copy_, copies, o.samples), kept


def main():
    o = options()
    import torch
    lines = ["problem,n,m,implementation,us,share"]
    for problem, (spec, _) in PROBLEMS.items():
        if o.only not in problem:
            continue
        for n in [int(r) for r in o.rows.split(",")]:
            m = max(1, o.elements // n)
            copy, rows = peers(o, torch, problem, m, n)
            torch.cuda.empty_cache()
            us, case = ours(o, spec, m, n)
            rows = {"copy": copy, f"ptxgen {case}": us if us else math.nan, **rows}
            for name, t in rows.items():
                lines.append(f"{problem},{n},{m},{name},{t:.2f},{copy / t:.3f}")
                print(f"{problem:16} n={n:<7} {name:32} {t:9.2f} us {100 * copy / t:6.1f} %", flush=True)
    if o.csv:
        with open(o.csv, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
