#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apps.py PTXGEN [--specs DIR] [--only TEXT] [--samples N] [--csv FILE] [--seconds N] [--launch PROGRAM] [--driver-calls LIBRARY] [--dry]

Applications (specs/apps) beside what else a user could take: PyTorch, with and without its compiler, CuPy, cuSPARSE, and kernels by hand
that are split as Rodinia and Parboil split them.  A row has the median, the 10th and the 90th percentile of a run in microseconds.  Both
sides read the same arrays.  The result of ptxgen is checked at the size that is timed (apps_checks.py), and those of the peers are compared
with it, before anything is timed: `differs` is a row whose result is another.  A row with `failed` says why a peer did not run.

ptxgen is timed by `ptxgen bench`, which rotates its inputs, the peers between two events, those by hand from a CUDA graph where the host
decides nothing.  The limit is the sum over stages and steps of what a copy of as many bytes takes in this run, or of what the arithmetic
takes, whichever is longer.  Programs that repeat until nothing moves are timed for as many fixed steps, too, and with a decision after every
eighth step.  --driver-calls (libdriver_calls.so) counts the copies to the host in such a loop, --launch (launch_bench) adds the host's part.

A second start with the same --csv goes on with the problems that it lacks; --seconds ends a start early.  Where a peer has spoiled the
process, or does not end, the run goes on in a new process, without that problem.
--dry: small arrays, ptxgen on the host executor, NumPy in place of CuPy, kernels by hand by the C++ compiler, no times.
"""
import argparse
import contextlib
import csv
import importlib
import importlib.machinery
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "survey")]
BATCH_US, BUDGET_US, PATIENCE, HANGS = 2000, 1.5e6, 90, 200  # of a sample, of all samples of a peer; seconds for a peer or a call of ptxgen, and for a problem
COUNTED = 1 << 27  # bytes; a larger grid copies as often
FIELDS = ["date", "commit", "device", "application", "sizes", "implementation", "steps", "median", "p10", "p90", "unit", "limit", "result"]
LIBRARY = {"by hand": "cupy", "cusparse": "cupy", "cub": "cupy", "cugraph": "cupy", "scipy": "numpy"}
LAUNCHES = {"ptxgen_launch of ten stages": "host_cost", "cuGraphLaunch of ten stages": "host_cost", "ptxgen_launch of a loop with until": "host_cost",
            "k-means, empty caches": "first_result", "k-means, filled caches": "first_result"}


def options(arguments=None):
    parser = argparse.ArgumentParser(description="Applications beside PyTorch, CuPy and kernels by hand.")
    parser.add_argument("ptxgen")
    parser.add_argument("--specs", type=pathlib.Path, default=HERE.parent.parent / "specs" / "apps", help="the folder of the applications")
    parser.add_argument("--only", default="", metavar="TEXT", help="problems whose `name sizes` contains the text")
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=450, help="no problem is begun later")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--launch", help="launch_bench, whose figures become rows")
    parser.add_argument("--driver-calls", help="libdriver_calls.so")
    parser.add_argument("--began", type=float, default=time.time(), help=argparse.SUPPRESS)
    parser.add_argument("--skip", action="append", default=[], help=argparse.SUPPRESS)
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


@contextlib.contextmanager
def patience(seconds):
    """An exception in a peer that takes longer, where Python runs."""
    def late(*_):
        raise TimeoutError(f"more than {seconds} seconds")
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Process:
    """The process of the run, which a new one replaces where this one cannot go on."""

    def __init__(self, o, folder):
        self.o, self.folder = o, folder

    def replace(self, skip):
        shutil.rmtree(self.folder, ignore_errors=True)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.argv, f"--began={self.o.began}", f"--skip={skip}"])

    @contextlib.contextmanager
    def watched(self, label):
        """For what waits in a library, where patience() does nothing."""
        def late():
            print(f"{label}: FAILED: no end after {HANGS} seconds", flush=True)
            self.replace(label)
        timer = threading.Timer(HANGS, late)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class Ours:
    """The command ptxgen, on arrays in files."""

    def __init__(self, o, folder, numpy):
        self.o, self.folder, self.numpy = o, folder, numpy

    def call(self, verb, spec, given, sizes, params, more, **environment):
        command = [self.o.ptxgen, verb, str(spec), f"--device={'cpu' if self.o.dry else 'cuda'}", *more]
        command += [f"--size={name}={n}" for name, n in sizes.items()] + [f"--param={name}={value}" for name, value in params.items()]
        command += [f"--input={name}={self.folder / name}.npy" for name in given if name[0] != "_"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE, env={**os.environ, **environment})
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
        return done

    def write(self, given):
        for name, array in given.items():
            self.numpy.save(self.folder / f"{name}.npy", array)

    def results(self, spec, given, sizes, params, names):
        self.call("run", spec, given, sizes, params, [f"--output={name}={self.folder / name}.out.npy" for name in names])
        return {name: self.numpy.load(self.folder / f"{name}.out.npy") for name in names}

    def time(self, spec, given, sizes, params):
        done = self.call("bench", spec, given, sizes, params, ["--json", "--no-verify", "--no-graph", f"--samples={self.o.samples}"])
        row = json.loads(done.stdout)["results"][0]
        return row["median"], row["p10"], row["p90"]

    def copies_to_host(self, spec, given, sizes, params):
        """How often a bench copies to the host."""
        done = self.call("bench", spec, given, sizes, params, ["--json", "--no-verify", "--no-graph", "--samples=3"],
                         PTXGEN_LIBCUDA=os.path.abspath(self.o.driver_calls), DRIVER_CALLS_FROM="0")
        if "cuLaunchKernel" not in done.stderr:
            raise RuntimeError("the library counts nothing")
        return len(re.findall(r"cuMemcpyDtoH\w*$", done.stderr, re.M))


# ---- libraries ---------------------------------------------------------------------------------------------------------------------------


class Torch:
    def __init__(self, torch, numpy, dry):
        self.xp, self.numpy, self.dry, self.place = torch, numpy, dry, "cpu" if dry else "cuda"

    def take(self, array):
        return self.xp.from_numpy(array.view("i4") if array.dtype == "u4" else array).to(self.place)

    def compiled(self, function):
        return function if self.dry else self.xp.compile(function, dynamic=False)

    def captured(self, call):
        """Side streams first, as PyTorch asks for; then the call is a graph's, and its results stay in place."""
        if self.dry:
            return call
        cuda, side = self.xp.cuda, self.xp.cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(2):
                call()
        cuda.current_stream().wait_stream(side)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            result = call()

        def replay():
            graph.replay()
            return result
        return replay

    @staticmethod
    def back(array):
        return array.cpu().numpy()

    def free(self):
        """Compiled functions, too: each problem has its own."""
        if hasattr(self.xp, "compiler"):
            self.xp.compiler.reset()
        if not self.dry:
            self.xp.cuda.empty_cache()

    def wait(self):
        if not self.dry:
            self.xp.cuda.synchronize()

    def event(self):
        return self.xp.cuda.Event(enable_timing=True)

    @staticmethod
    def between(begin, end):
        return begin.elapsed_time(end)


def libraries(dry, numpy):
    """{name: library}: those that are here."""
    hand = importlib.import_module("apps_by_hand")
    found = {"numpy": hand.Host(numpy)} if dry else {}
    for name in ("torch",) if dry else ("torch", "cupy"):
        try:
            module = importlib.import_module(name)
            if not dry:
                module.cuda.Stream()  # on a device
        except Exception as error:  # pylint: disable=broad-except # a library that cannot start is one that is missing
            print(f"# {name} is not here: {error}", flush=True)
            continue
        found[name] = Torch(module, numpy, dry) if name == "torch" else hand.Cuda(module, numpy)
    return found


def spoiled(libs):
    """After an error on the device all later calls of a process fail."""
    for lib in libs.values():
        try:
            lib.wait()
        except Exception:  # pylint: disable=broad-except # of its own kind in each library
            return True
    return False


def timed(lib, call, samples):
    """(median, p10, p90) of a call in microseconds, between events of the library."""
    def batch(count):
        begin, end = lib.event(), lib.event()
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return lib.between(begin, end) * 1e3 / count

    batch(1)
    one = max(batch(1), 1)
    count = max(1, round(BATCH_US / one))
    return spread([batch(count) for _ in range(max(3, min(samples, int(BUDGET_US / (count * one)))))])


# ---- the limit ---------------------------------------------------------------------------------------------------------------------------


class Limits:
    """What this device copies, and how many instructions of f32 it issues in a microsecond."""

    def __init__(self, ours, folder):
        loader = importlib.machinery.SourceFileLoader("survey", str(HERE.parent / "survey" / "survey"))
        self.survey = importlib.util.module_from_spec(importlib.util.spec_from_loader("survey", loader))
        loader.exec_module(self.survey)
        spec = folder / "copy.yaml"
        spec.write_text(self.survey.COPY)
        self.copies = [(8 << e, ours.time(spec, {}, {"n": 1 << e}, {})[0]) for e in self.survey.COPY_SIZES]
        target = json.loads(ours.call("explain", spec, {}, {"n": 1 << 20}, {}, ["--json", "--arch=native"]).stdout)["target"]
        self.device, self.rate = target["gpu"], target["flops_per_second"] * 1e-6 / 2

    def of(self, work, steps):
        return steps * sum(max(self.survey.copy_us(self.copies, size), issued / self.rate) for size, issued in work)


# ---- a problem ---------------------------------------------------------------------------------------------------------------------------


def checked(problem, numpy, xp, ours, path, given, sizes, params, names):
    """(results, 'agrees' or what is off, steps until nothing moves or None)."""
    if xp is numpy and math.prod(sizes.values()) > 1 << 25 and problem.slow_check:
        return ours.results(path, given, sizes, params, names), "unchecked: CuPy is not here", None
    got = ours.results(path, given, sizes, params, names)
    shorter = {**params, **problem.check_params}
    judged = got if shorter == params else ours.results(path, given, sizes, shorter, names)
    worst = problem.check(xp, given, shorter, judged)
    taken = worst.pop("taken", None)
    wrong = [f"{name} is off by {error:.3g} of what is allowed" for name, error in worst.items() if not error <= 1]
    return got, "; ".join(wrong) or "agrees", taken


def beside(o, numpy, lib, prepare, given, params, compared, got):
    """(times or None, result) of a peer."""
    theirs = {name: lib.take(array) for name, array in given.items() if name[0] != "_"}
    call, fixed = prepare(lib, theirs, params)
    if fixed:
        call = lib.captured(call)
    result = call()
    good = all(agrees(numpy, lib.back(result[name]), got[name], error) for name, error in compared.items())
    return None if o.dry else timed(lib, call, o.samples), "agrees" if good else "differs"


def fixed_rows(o, ours, path, given, sizes, params, got):
    """As many steps without a condition, and with a decision after every eighth: the share of a decision.  And what a condition copies."""
    text, spec = path.read_text(), ours.folder / "changed.yaml"
    for name, changed in (("ptxgen check_every 8", text.replace("until: moved < eps", "until: moved < eps, check_every: 8")), ("ptxgen fixed", without_until(text))):
        spec.write_text(changed)
        same = ours.results(spec, given, sizes, params, ["next"])
        times = None if o.dry else ours.time(spec, given, sizes, params)
        yield name, times, "agrees" if agrees(ours.numpy, same["next"], got["next"], 1e-3) else "differs", {}
    if o.driver_calls and not o.dry and got["next"].nbytes <= COUNTED:
        copies = ours.copies_to_host(path, given, sizes, params) - ours.copies_to_host(spec, given, sizes, params)
        yield "copies to the host", (copies,), "agrees", {"unit": "copies"}


def measure(o, ours, libs, limits, problem):
    """Rows {implementation, steps, median, p10, p90, unit, limit, result} of a problem."""
    numpy, params = ours.numpy, {**problem.params, **(problem.small_params if o.dry else {})}
    sizes, path = problem.small if o.dry else problem.sizes, o.specs / f"{problem.spec}.yaml"
    given = problem.make(numpy.random.default_rng(1), sizes, params)
    ours.write(given)
    names = [*problem.compared, *problem.more]
    xp = libs["cupy"].xp if "cupy" in libs else numpy
    got, result, taken = checked(problem, numpy, xp, ours, path, given, sizes, params, names)
    steps = taken or params.get("steps", 1)
    rows = []

    def add(implementation, times, said, **more):
        times = dict(zip(("median", "p10", "p90"), (f"{t:.2f}" for t in times or ())))
        rows.append({"implementation": implementation, "steps": steps, "unit": "us", "limit": "", **times, "result": said, **more})
    for lib in libs.values():
        lib.free()
    limit = f"{limits.of(problem.work(sizes), steps):.2f}" if limits and problem.work else ""
    add("ptxgen", None if o.dry else ours.time(path, given, sizes, params), result, limit=limit)
    for name, prepare in problem.peers.items():
        lib = libs.get(LIBRARY.get(name, name.split()[0])) or (libs.get("numpy") if name == "by hand" and o.dry else None)
        if not lib:
            continue
        try:
            with patience(PATIENCE):
                add(name, *beside(o, numpy, lib, prepare, given, params, problem.compared, got))
        except ModuleNotFoundError as error:
            print(f"# {name} is not here: {error}", flush=True)
        except Exception as error:  # pylint: disable=broad-except # the other peers go on
            add(name, None, f"failed: {type(error).__name__}: {str(error).strip().splitlines()[0][:150] if str(error).strip() else ''}")
        lib.free()
    if taken:
        for name, times, said, more in fixed_rows(o, ours, path, given, sizes, {**params, "steps": taken}, got):
            add(name, times, said, **more)
    return rows


def launch_rows(o, folder):
    """The host's part of launches, and the first result of a new process."""
    file = folder / "launch.json"
    subprocess.run([o.launch, "--json", str(file), "--specs", str(o.specs.parent)], check=False, timeout=2 * PATIENCE, stdout=subprocess.DEVNULL)
    said = json.loads(file.read_text())
    for name, part in LAUNCHES.items():
        for row in said[part]:
            if row["name"] == name:
                host = part == "host_cost"
                median, high = (row["median_us"], row["p90_us"]) if host else (row["result_ms"], "")
                yield {"implementation": name, "steps": 1, "median": f"{median:.2f}", "p90": high and f"{high:.2f}", "unit": "us" if host else "ms", "result": "agrees"}


# ---- all of them -------------------------------------------------------------------------------------------------------------------------


class Table:
    """Rows, printed and kept in a file as they come."""

    def __init__(self, o, common):
        self.o, self.common, self.failed, self.rows = o, common, 0, 0
        self.before = set()
        if o.csv and o.csv.exists():
            with open(o.csv, encoding="utf-8", newline="") as file:
                self.before = {(row["application"], row["sizes"]) for row in csv.DictReader(file)}

    def has(self, application, sizes):
        return (application, sizes) in self.before

    def add(self, application, sizes, rows):
        rows = [{**dict.fromkeys(FIELDS, ""), **self.common, "application": application, "sizes": sizes, **row} for row in rows]
        for row in rows:
            self.rows += 1
            self.failed += row["result"] != "agrees" and (self.o.dry or row["implementation"].startswith("ptxgen"))
            print(f"{application:18} {sizes:28} {row['implementation']:22}", *(f"{row[name]:>12}" for name in ("median", "p10", "p90", "limit")), row["result"], flush=True)
        if self.o.csv:
            new = not self.o.csv.exists()
            with open(self.o.csv, "a", encoding="utf-8", newline="") as file:
                out = csv.DictWriter(file, FIELDS, lineterminator="\n")
                if new:
                    out.writeheader()
                out.writerows(rows)


def chosen(o, problems):
    """In a dry run, which has small sizes, one of those that are alike: the one with the most peers."""
    wanted = [p for p in problems if o.only in f"{p.spec} {p.label()}"]
    alike = {(p.spec, str(p.small_params)): p for p in sorted(wanted, key=lambda p: len(p.peers))}
    return [p for p in wanted if not o.dry or alike[p.spec, str(p.small_params)] is p]


def run(o, numpy, problems, folder):
    libs, ours, process = libraries(o.dry, numpy), Ours(o, folder, numpy), Process(o, folder)
    limits = None if o.dry else Limits(ours, folder)
    table = Table(o, {"date": time.strftime("%Y-%m-%d"), "commit": o.commit, "device": limits.device if limits else "host executor"})
    left = 0
    for i, problem in enumerate(problems):
        label, spent = f"{problem.spec} {problem.label()}", time.time() - o.began
        if table.has(problem.spec, problem.label()) or label in o.skip:
            continue
        if spent > o.seconds:
            left += 1
            continue
        print(f"# {i + 1} of {len(problems)}, {spent:.0f} s: {label}", flush=True)
        try:
            with process.watched(label):
                table.add(problem.spec, problem.label(), measure(o, ours, libs, limits, problem))
        except Exception as error:  # pylint: disable=broad-except # the other problems go on
            print(f"{label}: FAILED: {type(error).__name__}: {error}", flush=True)
            table.failed += 1
        if spoiled(libs):
            process.replace(label)
    if o.launch and not o.dry and not left and o.only in "launch" and not table.has("launch", ""):
        try:
            table.add("launch", "", launch_rows(o, folder))
        except Exception as error:  # pylint: disable=broad-except
            print(f"launch: FAILED: {error}", flush=True)
            table.failed += 1
    if left:
        print(f"# {left} problems are left: start again", flush=True)
    print(f"# {table.rows} rows, {table.failed + len(o.skip)} failed, {time.time() - o.began:.0f} s", flush=True)
    return 1 if table.failed or o.skip or left or not (table.rows or table.before) else 0


def main():
    o = options()
    try:
        numpy = importlib.import_module("numpy")
    except ImportError as error:
        sys.exit(f"apps.py: NumPy makes the inputs and reads the results: {error}")
    problems = chosen(o, importlib.import_module("apps_problems").PROBLEMS)
    with tempfile.TemporaryDirectory(prefix="apps-") as folder:
        try:
            return run(o, numpy, problems, pathlib.Path(folder))
        except RuntimeError as error:  # not of a problem: there is no device
            sys.exit(f"apps.py: {error}")


if __name__ == "__main__":
    sys.exit(main())
