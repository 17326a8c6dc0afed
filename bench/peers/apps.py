#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apps.py PTXGEN [--specs DIR] [--only TEXT] [--samples N] [--csv FILE] [--dry]

Applications (specs/apps) beside PyTorch and CuPy, and SRAD beside kernels by hand that are split as Rodinia splits them: the median, the
10th and the 90th percentile of a run in microseconds, and the ratio to ptxgen's median (above 1: ptxgen is faster).  Both sides read the
same arrays; results are compared before anything is timed, and those that differ have the ratio `differs`.  ptxgen is timed by `ptxgen
bench`, which rotates its inputs, the peers between two events.  Programs that repeat do so for a given number of steps, and ptxgen
evaluates its `until` after each; the peers do not ask.  `heat` is timed until nothing moves by 1e-4, and `heat_fixed` for as many steps.

--dry: small arrays, ptxgen on the host executor, NumPy in place of CuPy (and PyTorch on the CPU, where it is installed), no times.
"""
import argparse
import csv
import importlib
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BATCH_US = 2000
RODINIA = r"""
extern "C" __global__ void coefficients(const float *img, float *dn, float *ds, float *dw, float *de, float *c, int m, int n, const float *q0p)
{
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= m || j >= n) return;
    size_t at = (size_t)i * n + j;
    float x = img[at], q0 = *q0p, north = img[i ? at - n : at] - x, south = img[i < m - 1 ? at + n : at] - x;
    float west = img[j ? at - 1 : at] - x, east = img[j < n - 1 ? at + 1 : at] - x;
    float g2 = (north * north + south * south + west * west + east * east) / (x * x), l = (north + south + west + east) / x;
    float den = 1 + 0.25f * l, q = (0.5f * g2 - 0.0625f * (l * l)) / (den * den);
    dn[at] = north, ds[at] = south, dw[at] = west, de[at] = east;
    c[at] = fminf(fmaxf(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0), 1);
}
extern "C" __global__ void update(float *img, const float *dn, const float *ds, const float *dw, const float *de, const float *c, int m, int n, float rate)
{
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= m || j >= n) return;
    size_t at = (size_t)i * n + j;
    float south = c[i < m - 1 ? at + n : at], east = c[j < n - 1 ? at + 1 : at];
    img[at] += rate * (c[at] * dn[at] + south * ds[at] + c[at] * dw[at] + east * de[at]);
}
"""


# ---- the algorithms of the peers: xp is numpy or cupy ------------------------------------------------------------------------------------


def kmeans(xp, given, p):
    x, c = given["x"], given["c"]
    one_hot = xp.arange(len(c))[:, None]
    for _ in range(p["steps"]):
        member = (-2 * (x @ c.T) + (c * c).sum(1)).argmin(1)
        own = (member == one_hot).astype(x.dtype)
        many = own.sum(1)[:, None]
        c = xp.where(many > 0, own @ x / xp.maximum(many, 1), c)
    return {"next": c}


def kmeans_torch(torch, given, p):
    x, c = given["x"], given["c"]
    for _ in range(p["steps"]):
        member = torch.addmm((c * c).sum(1), x, c.T, alpha=-2).argmin(1)
        many = torch.bincount(member, minlength=len(c))[:, None]
        c = torch.where(many > 0, torch.zeros_like(c).index_add_(0, member, x) / many.clamp(min=1), c)
    return {"next": c}


def backpropagation(xp, given, p):
    """PyTorch and NumPy write this alike."""
    x, w1, w2, target = (given[name] for name in ("x", "w1", "w2", "target"))
    for _ in range(p["steps"]):
        y1 = 1 / (1 + xp.exp(-(x @ w1)))
        y2 = 1 / (1 + xp.exp(-(y1 @ w2)))
        d2 = y2 * (1 - y2) * (target - y2)
        d1 = y1 * (1 - y1) * (w2 @ d2)
        w1, w2 = w1 + p["rate"] * x[:, None] * d1, w2 + p["rate"] * y1[:, None] * d2
    return {"next1": w1, "next2": w2}


def shifted(xp, u, axis, by):
    """u[by] along an axis, clamped."""
    take = (lambda a, b: u[a:b]) if axis == 0 else (lambda a, b: u[:, a:b])
    n = u.shape[axis]
    parts = (take(1, n), take(n - 1, n)) if by > 0 else (take(0, 1), take(0, n - 1))
    return xp.cat(parts, axis) if hasattr(xp, "cat") else xp.concatenate(parts, axis)


def sides(xp, u):
    return [shifted(xp, u, axis, by) - u for axis, by in ((0, -1), (0, 1), (1, -1), (1, 1))]


def srad(xp, given, p):
    img = given["img"]
    wide = {"dtype": xp.float64}
    for _ in range(p["steps"]):
        mean, square = img.mean(**wide), (img * img).mean(**wide)
        q0 = (square - mean * mean) / (mean * mean)
        q0 = q0.to(img.dtype) if hasattr(q0, "to") else q0.astype(img.dtype)
        north, south, west, east = sides(xp, img)
        g2, l = (north * north + south * south + west * west + east * east) / (img * img), (north + south + west + east) / img
        q = (0.5 * g2 - 0.0625 * (l * l)) / (1 + 0.25 * l) ** 2
        c = (1 / (1 + (q - q0) / (q0 * (1 + q0)))).clip(0, 1)
        img = img + 0.25 * p["lambda"] * (c * north + shifted(xp, c, 0, 1) * south + c * west + shifted(xp, c, 1, 1) * east)
    return {"next": img}


def srad_by_hand(cupy, given, p):
    module = srad_by_hand.module = getattr(srad_by_hand, "module", None) or cupy.RawModule(code=RODINIA)
    img = given["img"].copy()
    (m, n), parts = img.shape, [cupy.empty_like(img) for _ in range(5)]
    grid = ((n + 15) // 16, (m + 15) // 16)
    for _ in range(p["steps"]):
        mean, square = img.mean(dtype="f8"), (img * img).mean(dtype="f8")
        q0 = ((square - mean * mean) / (mean * mean)).astype("f4")
        module.get_function("coefficients")(grid, (16, 16), (img, *parts, cupy.int32(m), cupy.int32(n), q0))
        module.get_function("update")(grid, (16, 16), (img, *parts, cupy.int32(m), cupy.int32(n), cupy.float32(0.25 * p["lambda"])))
    return {"next": img}


def heat(xp, given, p):
    u, moved, step = given["u"], 1, 0
    while step < p["steps"] and moved >= p["eps"]:
        new = u + 0.2 * sum(sides(xp, u))
        moved = float(abs(new - u).max()) if p["eps"] > 0 else 1
        u, step = new, step + 1
    return {"next": u, "taken": step}


def sort(xp, given, _):
    return {"sorted": xp.sort(given["key"].reshape(-1))}


def sort_torch(torch, given, _):
    return {"sorted": torch.sort(given["key"].reshape(-1)).values}


# ---- the problems ------------------------------------------------------------------------------------------------------------------------


def points(r, s):
    x = r.standard_normal((s["n"], s["f"]), dtype="f4") + 4 * r.integers(0, 2, (s["n"], s["f"])).astype("f4")
    return {"x": x, "c": x[: s["k"]].copy()}


def net(r, s):
    shapes = {"x": (s["n"],), "w1": (s["n"], s["h"]), "w2": (s["h"], s["o"]), "target": (s["o"],)}
    return {name: (r.random(shape, dtype="f4") - 0.5) / (1 if len(shape) == 1 else 64) for name, shape in shapes.items()}


def speckled(r, s):
    return {"img": 100 * (1 + 0.2 * r.random((s["m"], s["n"]), dtype="f4"))}


def hot(r, s):
    return {"u": r.random((s["m"], s["n"]), dtype="f4")}


def keys(r, s):
    """31 bits, so that PyTorch, which sorts no unsigned numbers, has the same order."""
    shape = (s["b"], s["t"]) if "b" in s else (s["n"],)
    return {"key": r.integers(0, 1 << 31, shape, dtype="u4")}


def keys_and_digits(r, s):
    return {**keys(r, s), "value": (r.integers(0, 1, s["d"]) + range(s["d"])).astype("i4")}


def square(n):
    return {"m": n, "n": n}


SORTED = {"numpy": sort, "cupy": sort, "torch": sort_torch}
GRID = {"numpy": srad, "cupy": srad, "torch": srad, "by hand": srad_by_hand}
# name, spec, input, sizes, those of --dry, params, results that are compared and their relative error (0: equal), algorithms
PROBLEMS = [
    *(("kmeans", "kmeans", points, sizes, {"n": 300, "f": 4, "k": 3}, {"steps": 10, "eps": 0}, {"next": 1e-3},
       {"numpy": kmeans, "cupy": kmeans, "torch": kmeans_torch})
      for sizes in ({"n": 494025, "f": 34, "k": 5}, {"n": 1 << 20, "f": 16, "k": 64})),
    *(("backpropagation", "backpropagation", net, {"n": n, "h": 16, "o": 1}, {"n": 70, "h": 16, "o": 1}, {"steps": 1, "rate": 0.3},
       {"next1": 1e-4, "next2": 1e-4}, {"numpy": backpropagation, "cupy": backpropagation, "torch": backpropagation})
      for n in (65536, 1 << 20)),
    *(("srad", "srad", speckled, square(n), {"m": 24, "n": 20}, {"steps": 100, "lambda": 0.5}, {"next": 1e-3}, GRID)
      for n in (512, 1024, 2047, 4095, 8191, 16383)),
    *(("heat", "heat", hot, square(n), {"m": 20, "n": 16}, {"steps": 100000, "eps": 1e-4}, {"next": 1e-3},
       {"numpy": heat, "cupy": heat, "torch": heat}) for n in (1024, 4096)),
    *((spec, spec, given, sizes, small, {}, {"sorted": 0}, SORTED)
      for spec, given, sizes, small in (
          ("radix_sort", keys, {"n": 1 << 26}, {"n": 500}),
          ("radix_sort4", keys_and_digits, {"b": 1 << 14, "t": 1 << 12, "d": 16}, {"b": 5, "t": 32, "d": 16}),
          ("radix_sort8", keys, {"b": 1 << 18, "t": 256, "d": 256, "j": 256}, {"b": 5, "t": 32, "d": 256, "j": 32}))),
]


# ---- running -----------------------------------------------------------------------------------------------------------------------------


def options(arguments=None):
    parser = argparse.ArgumentParser(description="Applications beside PyTorch and CuPy.")
    parser.add_argument("ptxgen")
    parser.add_argument("--specs", type=pathlib.Path, default=HERE.parent.parent / "specs" / "apps", help="the folder of the applications")
    parser.add_argument("--only", default="", metavar="TEXT", help="problems whose name contains the text")
    parser.add_argument("--samples", type=int, default=21)
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--dry", action="store_true", help="small, on the CPU, without times")
    return parser.parse_args(arguments)


def spread(times):
    """Median, 10th and 90th percentile."""
    ordered = sorted(times)
    at = lambda share: ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
    return statistics.median(ordered), at(0.1), at(0.9)


def without_until(text):
    return re.sub(r", until: [^}]*", "", text)


def agrees(numpy, got, want, error):
    got, want = numpy.asarray(got).reshape(-1), numpy.asarray(want).reshape(-1)
    if got.shape != want.shape:
        return False
    if not error:
        return bool((got == want).all())
    return bool(numpy.abs(got.astype("f8") - want).max() <= error * numpy.abs(want).max())


class Ours:
    """The command ptxgen, on arrays in files."""

    def __init__(self, o, folder, numpy):
        self.o, self.folder, self.numpy = o, folder, numpy

    def call(self, verb, spec, given, sizes, params, more):
        command = [self.o.ptxgen, verb, str(spec), f"--device={'cpu' if self.o.dry else 'cuda'}", *more]
        command += [f"--size={name}={n}" for name, n in sizes.items()] + [f"--param={name}={value}" for name, value in params.items()]
        command += [f"--input={name}={self.folder / name}.npy" for name in given]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
        return done.stdout

    def results(self, spec, given, sizes, params, names):
        for name, array in given.items():
            self.numpy.save(self.folder / f"{name}.npy", array)
        self.call("run", spec, given, sizes, params, [f"--output={name}={self.folder / name}.out.npy" for name in names])
        return {name: self.numpy.load(self.folder / f"{name}.out.npy") for name in names}

    def time(self, spec, given, sizes, params):
        text = self.call("bench", spec, given, sizes, params, ["--json", "--no-verify", "--no-graph", f"--samples={self.o.samples}"])
        row = json.loads(text)["results"][0]
        return row["median"], row["p10"], row["p90"]


def peer_modules(dry):
    """{name: (module, array of NumPy to its own, back)}; "by hand" is CuPy with kernels of ours."""
    found = {}
    for name in ("numpy", "torch") if dry else ("torch", "cupy"):
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            print(f"# {name} is not here: {error}", file=sys.stderr)
            continue
        if name == "torch":
            place = "cpu" if dry else "cuda"
            found[name] = (module, lambda a, t=module: t.from_numpy(a.view("i4") if a.dtype == "u4" else a).to(place), lambda a: a.cpu().numpy())
        else:
            found[name] = (module, module.asarray, lambda a, x=module: x.asnumpy(a) if hasattr(x, "asnumpy") else a)
    if "cupy" in found:
        found["by hand"] = found["cupy"]
    return found


def timed(module, call, samples):
    """(median, p10, p90) of a call in microseconds, between events of the library."""
    torch = hasattr(module, "Tensor")
    event = (lambda: module.cuda.Event(enable_timing=True)) if torch else module.cuda.Event

    def batch(count):
        begin, end = event(), event()
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return (begin.elapsed_time(end) if torch else module.cuda.get_elapsed_time(begin, end)) * 1e3 / count

    batch(1)
    count = max(1, round(BATCH_US / max(batch(1), 1)))
    return spread([batch(count) for _ in range(samples)])


def measure(o, ours, modules, problem):
    """Rows (implementation, times or None, ratio or None, whether the results agree) of a problem."""
    numpy = ours.numpy
    name, spec, make, sizes, small, params, compared, algorithms = problem
    sizes = small if o.dry else sizes
    given = make(numpy.random.default_rng(1), sizes)
    path = o.specs / f"{spec}.yaml"
    got = ours.results(path, given, sizes, params, list(compared))
    base, rows, taken = None if o.dry else ours.time(path, given, sizes, params), [], None
    rows.append(("ptxgen", base, None, True))
    for library, (module, take, back) in modules.items():
        if library not in algorithms:
            continue
        theirs = {key: take(array) for key, array in given.items()}
        call = lambda f=algorithms[library], m=module, g=theirs: f(m, g, params)
        result = call()
        taken = result.get("taken", taken)
        good = all(agrees(numpy, got[key], back(result[key]), error) for key, error in compared.items())
        times = None if o.dry else timed(module, call, o.samples)
        rows.append((library, times, times and times[0] / base[0], good))
        del theirs, call, result
    if name == "heat" and taken:
        fixed = ours.folder / "heat_fixed.yaml"
        fixed.write_text(without_until(path.read_text()))
        same = ours.results(fixed, given, sizes, {**params, "steps": taken}, list(compared))
        times = None if o.dry else ours.time(fixed, given, sizes, {**params, "steps": taken})
        rows.append((f"ptxgen, {taken} steps", times, times and times[0] / base[0], agrees(numpy, same["next"], got["next"], 1e-6)))
        # As many steps again, with a decision after every eighth: the share of a decision.
        seldom = ours.folder / "heat_seldom.yaml"
        seldom.write_text(path.read_text().replace("until: moved < eps", "until: moved < eps, check_every: 8"))
        same = ours.results(seldom, given, sizes, {**params, "steps": taken}, list(compared))
        times = None if o.dry else ours.time(seldom, given, sizes, {**params, "steps": taken})
        rows.append((f"ptxgen, {taken} steps, decides after 8", times, times and times[0] / base[0], agrees(numpy, same["next"], got["next"], 1e-6)))
    return " ".join(f"{k}={v}" for k, v in sizes.items()), rows


def main():
    o = options()
    numpy = importlib.import_module("numpy")
    modules, table, failed = peer_modules(o.dry), [], 0
    problems = {problem[1] if o.dry else i: problem for i, problem in enumerate(PROBLEMS) if o.only in problem[0]}
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(o, pathlib.Path(folder), numpy)
        for problem in problems.values():
            try:
                sizes, rows = measure(o, ours, modules, problem)
            except Exception as error:  # pylint: disable=broad-except # the other problems go on
                print(f"{problem[0]} {problem[3]}: FAILED: {error}", flush=True)
                failed += 1
                continue
            for library, times, ratio, good in rows:
                failed += not good
                said = f"{ratio:.2f}" if ratio else ""
                table.append([problem[1], sizes, library, *(f"{t:.2f}" for t in times or ()), said if good else "differs"])
                print(f"{problem[1]:16} {sizes:28} {library:22}", *(f"{t:12.2f}" for t in times or ()), said if good else "differs", flush=True)
    if o.csv:
        with open(o.csv, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["application", "sizes", "implementation", "median_us", "p10_us", "p90_us", "ratio"], *table])
    return 1 if failed or not table else 0


if __name__ == "__main__":
    sys.exit(main())
