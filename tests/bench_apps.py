#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_apps.py PTXGEN FAKE_DRIVER [DRIVER_CALLS] - what bench/peers/apps.py does without a GPU: its arguments, its statistics, its checks, a
whole run with stand-ins for CuPy and the driver, and all of its problems in small, where the peers' algorithms (on NumPy, and by the C++
compiler) must agree with ptxgen on the host executor.
"""
import argparse
import contextlib
import csv
import importlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import types
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
PTXGEN, DRIVER = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
CALLS = sys.argv.pop(1) if sys.argv[1:] and not sys.argv[1][:1].isupper() else ""
CALLS = CALLS and os.path.abspath(CALLS)
SCRIPT = ROOT / "bench" / "peers" / "apps.py"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))
apps, hand, problems, checks = (importlib.import_module(name) for name in ("apps", "apps_by_hand", "apps_problems", "apps_checks"))
APPS = sorted(path.stem for path in (ROOT / "specs" / "apps").glob("*.yaml"))


def problem_of(spec):
    return next(p for p in problems.PROBLEMS if p.spec == spec)


class Clock:
    """A library whose events are of a clock of the test's own."""
    now = 0.0

    class Event:
        def record(self):
            self.at = Clock.now

        def synchronize(self):
            pass
    event = Event

    @staticmethod
    def between(begin, end):
        return end.at - begin.at


class Parts(unittest.TestCase):
    def test_options(self):
        o = apps.options(["p", "--only", "srad", "--samples", "5", "--csv", "t.csv"])
        self.assertEqual((o.ptxgen, o.only, o.samples, o.csv.name, o.dry), ("p", "srad", 5, "t.csv", False))
        self.assertTrue((o.specs / "kmeans.yaml").exists())

    def test_spread(self):
        self.assertEqual(apps.spread([3, 1, 2]), (2, 1, 3))
        self.assertEqual(apps.spread(list(range(101))), (50, 10, 90))

    def test_fixed_steps(self):
        text = (ROOT / "specs/apps/heat.yaml").read_text()
        self.assertIn("until", text)
        self.assertEqual(apps.without_until(text), text.replace(", until: moved < eps", ""))

    def test_agrees(self):
        a = numpy.array([[1, 2], [3, 100]], "f4")
        self.assertTrue(apps.agrees(numpy, a, a.reshape(-1) + numpy.float32(0.05), 1e-3))
        self.assertFalse(apps.agrees(numpy, a, a + 1, 1e-3))
        self.assertFalse(apps.agrees(numpy, a, a[:1], 1e-3))
        self.assertFalse(apps.agrees(numpy, a * numpy.nan, a, 1e-3))
        self.assertFalse(apps.agrees(numpy, numpy.array([1, 2], "u4"), numpy.array([1, 3], "i4"), 0))

    def test_timed(self):
        """Calls of half a millisecond, and of a second: these are few."""
        for milliseconds, samples, calls in ((0.5, 7, 2 + 7 * 4), (1000.0, 7, 2 + 3)):
            done = []

            def call():
                done.append(0)
                Clock.now += milliseconds
            self.assertEqual(apps.timed(Clock, call, samples), (milliseconds * 1e3,) * 3)
            self.assertEqual(len(done), calls)

    def test_patience(self):
        with self.assertRaises(TimeoutError), apps.patience(0.05):
            while True:
                pass

    def test_new_process(self):
        """For what does not end, and after an error on the device."""
        said, before, problem = [], (os.execv, apps.HANGS, apps.measure, apps.libraries), problem_of("options")

        def spoil():
            raise RuntimeError("an illegal address")
        bad = types.SimpleNamespace(wait=spoil)
        self.assertTrue(apps.spoiled({"a": hand.Host(numpy), "b": bad}))
        self.assertFalse(apps.spoiled({"a": hand.Host(numpy)}))
        try:
            os.execv = lambda _, arguments: said.append(arguments)
            apps.HANGS, apps.measure, apps.libraries = 0.1, lambda *_: apps.time.sleep(0.3) or [], lambda *_: {"b": bad}
            with apps.tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
                apps.run(apps.options(["p", "--dry", "--began=5", "--seconds=1e12"]), numpy, [problem], pathlib.Path(folder))
                apps.run(apps.options(["p", "--dry", "--seconds=1e12", "--skip=" + said[0][-1][7:]]), numpy, [problem], pathlib.Path(folder))
        finally:
            os.execv, apps.HANGS, apps.measure, apps.libraries = before
        self.assertEqual([arguments[-2:] for arguments in said], [["--began=5.0", f"--skip=options {problem.label()}"]] * 2)
        self.assertIn("FAILED: no end after 0.1 seconds", out.getvalue())
        self.assertIn("0 rows, 1 failed", out.getvalue())

    def test_limit(self):
        """Copies of 8 bytes in 2 us, and an instruction a microsecond: a stage takes the longer of both."""
        limits = apps.Limits.__new__(apps.Limits)
        limits.copies, limits.rate = [(4, 1.0), (8, 2.0)], 1.0
        limits.survey = types.SimpleNamespace(copy_us=lambda times, size: size / 4)
        self.assertEqual(limits.of([(16, 1), (8, 7)], 3), 3 * (4 + 7))
        first, move, keep = problems.kmeans_work({"n": 1000, "f": 10, "k": 4})
        self.assertEqual((first[0], move[0], keep[0]), (44160, 44320, 640))

    def test_every_application_has_a_row(self):
        self.assertEqual(sorted({p.spec for p in problems.PROBLEMS}), APPS)
        self.assertTrue(all(set(p.peers) - {"numpy", "scipy"} for p in problems.PROBLEMS))

    def test_slow_checks_need_a_device(self):
        ours = types.SimpleNamespace(results=lambda *_: {})
        large, small = ([p for p in problems.PROBLEMS if p.spec == "srad"][k] for k in (-1, 0))
        self.assertEqual(apps.checked(large, numpy, numpy, ours, "", {}, large.sizes, {}, ())[1], "unchecked: CuPy is not here")
        with self.assertRaises(KeyError):  # goes on to the check, which finds no image
            apps.checked(small, numpy, numpy, ours, "", {}, small.sizes, small.params, ())
        with self.assertRaises(AttributeError):  # of another library, which has nothing
            apps.checked(large, numpy, types.SimpleNamespace(), ours, "", {}, large.sizes, large.params, ())

    def test_labels_are_different(self):
        labels = [(p.spec, p.label()) for p in problems.PROBLEMS]
        self.assertEqual(len(set(labels)), len(labels))

    def test_wrong_results_are_told(self):
        """Of a peer, and of ptxgen: a spec whose rate is another."""
        with apps.tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            o, libs = apps.options([PTXGEN, "--dry", "--specs", folder]), {"numpy": hand.Host(numpy)}
            text = (ROOT / "specs/apps/backpropagation.yaml").read_text()
            problem = problem_of("backpropagation")
            peers = {"numpy": problem.peers["numpy"], "numpy wrong": lambda lib, given, p: problem.peers["numpy"](lib, given, {**p, "rate": 0.6})}
            broken = {"numpy broken": lambda lib, given, p: 1 / 0}
            problem = problems.dataclasses.replace(problem, peers={**peers, **broken})
            for spec, ours, theirs in ((text, "agrees", ["agrees", "differs"]), (text.replace("w1 + rate", "w1 + 2 * rate"), "next1 is off", ["differs", "agrees"])):
                pathlib.Path(folder, "backpropagation.yaml").write_text(spec)
                rows = apps.measure(o, apps.Ours(o, pathlib.Path(folder), numpy), libs, None, problem)
                self.assertTrue(rows[0]["result"].startswith(ours), rows[0])
                self.assertEqual(rows[1]["result"], theirs[0])
                self.assertIn("failed: ZeroDivisionError", rows[3]["result"])


class Checks(unittest.TestCase):
    """Each check accepts a right result and refuses one that is a little off."""

    def test_all(self):
        o = argparse.Namespace(dry=True, ptxgen=PTXGEN)
        for problem in {p.spec: p for p in problems.PROBLEMS}.values():
            with self.subTest(problem.spec), apps.tempfile.TemporaryDirectory() as folder:
                params = {**problem.params, **problem.small_params, **problem.check_params}
                given, ours = problem.make(numpy.random.default_rng(1), problem.small, params), apps.Ours(o, pathlib.Path(folder), numpy)
                ours.write(given)
                got = ours.results(ROOT / "specs" / "apps" / f"{problem.spec}.yaml", given, problem.small, params, [*problem.compared, *problem.more])
                worst = problem.check(numpy, given, params, got)
                worst.pop("taken", None)
                self.assertLessEqual(max(worst.values()), 1)
                self.assertEqual(set(worst), set(got))
                for name, array in got.items():
                    wrong = array.copy()
                    at = wrong.reshape(-1)
                    at[0] = at[0] + 5 if array.dtype.kind in "iu" else at[0] + 0.02 * abs(array).max()
                    self.assertGreater(problem.check(numpy, given, params, {**got, name: wrong})[name], 1, name)


# Arrays of NumPy under CuPy's names, and kernels by the C++ compiler; a captured call has run, and its replay does nothing.
CUPY = """
import numpy, apps_by_hand
float32, float64 = numpy.float32, numpy.float64
asnumpy = lambda a: a
argsort = lambda a, axis=-1: numpy.argsort(a, axis, kind="stable")
def __getattr__(name):
    return getattr(numpy, name)
class RawModule:
    def __init__(self, code, options):
        constants = dict(o[2:].split("=") for o in options)
        self.launch = apps_by_hand.Host(numpy).kernels(**constants)
    def get_function(self, name):
        return lambda grid, block, args: self.launch(name, grid, block, *args)
class get_default_memory_pool:
    def free_all_blocks(self):
        pass
class Nothing:
    def __init__(self, **_):
        self.at = 0
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
    def done(self, *_):
        pass
    record = synchronize = begin_capture = launch = done
    def end_capture(self):
        return Nothing()
class cuda:
    Stream = Event = get_current_stream = Nothing
    class runtime:
        deviceSynchronize = staticmethod(lambda: None)
    get_elapsed_time = staticmethod(lambda a, b: 1.5)
"""


class Run(unittest.TestCase):
    """A whole run: results by the host executor, times by a driver that only records."""

    def start(self, folder, *arguments):
        out, before = io.StringIO(), sys.argv
        sys.argv = ["apps.py", str(folder / "ptxgen"), "--samples", "3", "--csv", str(folder / "t.csv"), *arguments]
        try:
            with contextlib.redirect_stdout(out):
                status = apps.main()
        finally:
            sys.argv = before
        with open(folder / "t.csv", encoding="utf8", newline="") as file:
            return status, out.getvalue(), list(csv.DictReader(file))

    def test_run(self):
        small = [problems.dataclasses.replace(p, sizes=p.small, params={**p.params, **p.small_params}) for p in map(problem_of, ("heat", "kmeans"))]
        broken = problems.dataclasses.replace(problem_of("options"), make=lambda *_: 1 / 0)
        kept, problems.PROBLEMS = problems.PROBLEMS, [broken, *small]
        environment = dict(os.environ)
        try:
            with apps.tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                (folder / "cupy.py").write_text(CUPY)
                (folder / "ptxgen").write_text(f'#!/bin/sh\n[ "$1" = run ] && exec {PTXGEN} "$@" --device=cpu\nexec {PTXGEN} "$@"\n')
                (folder / "launch").write_text(
                    '#!/bin/sh\necho \'{"host_cost": [{"name": "ptxgen_launch of ten stages", "median_us": 7.25, "p90_us": 8}, {"name": "x"}],'
                    ' "first_result": [{"name": "k-means, empty caches", "result_ms": 61.5}]}\' >"$2"\n')
                for program in ("ptxgen", "launch"):
                    (folder / program).chmod(0o755)
                (folder / "libcuda.so.1").symlink_to(DRIVER)
                sys.path.insert(0, str(folder))
                os.environ.update(PTXGEN_LIBCUDA=DRIVER, LD_LIBRARY_PATH=str(folder), PYTHONPATH=str(SCRIPT.parent), FAKE_CUDA_STEPS="7")
                more = ["--driver-calls", CALLS] if CALLS else []
                status, said, rows = self.start(folder, "--launch", str(folder / "launch"), *more)
                self.assertEqual(status, 1)
                self.assertIn("options o=1024 n=1001: FAILED: ZeroDivisionError", said)
                by_name = {(row["application"], row["implementation"]): row for row in rows}
                self.assertEqual({row["result"] for row in rows}, {"agrees"}, said)
                for name in ("ptxgen", "cupy", "by hand"):
                    self.assertGreater(float(by_name["kmeans", name]["median"]), 0)
                self.assertEqual(by_name["kmeans", "cupy"]["median"], "1500.00")
                self.assertGreater(float(by_name["kmeans", "ptxgen"]["limit"]), 0)
                self.assertEqual(by_name["heat", "ptxgen"]["steps"], by_name["heat", "ptxgen fixed"]["steps"])
                self.assertGreater(int(by_name["heat", "ptxgen"]["steps"]), 1)
                self.assertEqual(by_name["launch", "ptxgen_launch of ten stages"]["median"], "7.25")
                self.assertEqual((by_name["launch", "k-means, empty caches"]["median"], by_name["launch", "k-means, empty caches"]["unit"]), ("61.50", "ms"))
                if CALLS:
                    self.assertEqual(float(by_name["heat", "copies to the host"]["median"]), 0)
                    # A driver without while nodes: the host reads after each step.
                    os.environ["FAKE_CUDA_VERSION"] = "12030"
                    ours = apps.Ours(apps.options([str(folder / "ptxgen"), *more]), folder, numpy)
                    given = small[0].make(numpy.random.default_rng(1), small[0].sizes, small[0].params)
                    ours.write(given)
                    self.assertGreater(ours.copies_to_host(ROOT / "specs/apps/heat.yaml", given, small[0].sizes, small[0].params), 10)
                # The second start has only the broken one to do, and none where there is no time.
                again = self.start(folder)
                self.assertEqual((again[0], again[2]), (1, rows))
                self.assertNotIn("kmeans", again[1])
                self.assertIn("1 problems are left", self.start(folder, "--seconds", "-1")[1])
        finally:
            problems.PROBLEMS = kept
            os.environ.clear()
            os.environ.update(environment)


class Page(unittest.TestCase):
    """scripts/apps: the figures of docs/apps.md from a table."""

    @classmethod
    def setUpClass(cls):
        loader = importlib.machinery.SourceFileLoader("apps_page", str(ROOT / "scripts" / "apps"))
        cls.page = importlib.util.module_from_spec(importlib.util.spec_from_loader("apps_page", loader))
        loader.exec_module(cls.page)

    @staticmethod
    def row(application, sizes, implementation, median, result="agrees", **more):
        return {**dict.fromkeys(apps.FIELDS, ""), "date": "2026-01-02", "device": "D", "steps": "10", "unit": "us", "application": application, "sizes": sizes,
                "implementation": implementation, "median": median, "result": result, **more}

    def test_same_columns(self):
        self.assertEqual(self.page.FIELDS, apps.FIELDS)

    def test_all_problems_have_a_line(self):
        text = self.page.page([self.row(p.spec, p.label(), "ptxgen", "12.34", limit="11") for p in problems.PROBLEMS])
        lines = [line for line in text.splitlines() if line.endswith("| 12.3 | 11.0 |  |  |  |")]
        self.assertEqual(len(set(lines)), len(problems.PROBLEMS))
        self.assertIn("**D**, 2026-01-02, microseconds", text)
        self.assertIn("| k-means, 2^20 points of 16 numbers, 64 centroids, 10 steps |", text)
        self.assertIn("| sort of 2^26 keys, four bits a step |", text)

    def test_cells(self):
        where = ("heat", "m=8 n=8")
        rows = [self.row(*where, "ptxgen", "99.96"), self.row(*where, "torch", "50", "differs"), self.row(*where, "torch compiled", "70.04"),
                self.row(*where, "torch graph", "", "failed: x"), self.row(*where, "cupy", "5", "differs"), self.row(*where, "ptxgen fixed", "97"),
                self.row(*where, "copies to the host", "0.00", unit="copies")]
        text = self.page.page(rows)
        self.assertIn("| heat on 8² until 1e-4, 10 steps | 100.0 | 70.0 (compiled) | 5.0 (differs) |  |\n| as many steps without `until` | 97.0 |", text)
        self.assertIn("nothing is copied to the host", text)
        self.assertIn("3 times something is copied", self.page.page(rows[:-1] + [{**rows[-1], "median": "3.00"}]))

    def test_add(self):
        """A newer run replaces an application at its sizes, and nothing else."""
        with apps.tempfile.TemporaryDirectory() as folder:
            self.page.TABLE, file = os.path.join(folder, "table.csv"), os.path.join(folder, "new.csv")
            new = self.row("heat", "m=8 n=8", "ptxgen", "3")
            with open(file, "w", encoding="utf8", newline="") as f:
                out = csv.DictWriter(f, apps.FIELDS)
                out.writeheader()
                out.writerow(new)
            old = [self.row("heat", "m=8 n=8", "ptxgen", "1"), self.row("heat", "m=8 n=8", "cupy", "1"), self.row("heat", "m=9 n=9", "ptxgen", "2")]
            self.assertEqual(self.page.add(old, [file]), [new, old[2]])
            self.assertEqual(self.page.read(self.page.TABLE), [new, old[2]])

    def test_launches(self):
        rows = [self.row("launch", "", name, "7.26") for name in apps.LAUNCHES]
        self.assertIn("A launch of ten stages takes 7.3 us of the host", self.page.page(rows))
        self.assertIn("a new process, which has a CUDA context, takes 7 ms with empty caches", self.page.page(rows))


class Dry(unittest.TestCase):
    def test_all(self):
        done = subprocess.run([sys.executable, SCRIPT, PTXGEN, "--dry"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for problem in problems.PROBLEMS:
            for name in set(problem.peers) & ({"numpy", "by hand"} if hand.Host.has_compiler() else {"numpy"}):
                self.assertRegex(done.stdout, rf"(?m)^{problem.spec} .* {name} .*agrees$")
        for name in ("ptxgen", "ptxgen fixed", "ptxgen check_every 8"):
            self.assertRegex(done.stdout, rf"(?m)^heat .* {name} .*agrees$")
        self.assertNotRegex(done.stdout, "differs|off by|failed:|FAILED")


if __name__ == "__main__":
    unittest.main()
