#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_apps.py PTXGEN FAKE_DRIVER - what bench/peers/apps.py does without a GPU: its arguments, its statistics, a batch between events, and all of
its problems in small, where the algorithms of the peers (on NumPy) must agree with ptxgen on the host executor.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import types
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
PTXGEN, DRIVER = sys.argv.pop(1), sys.argv.pop(1)
SCRIPT = ROOT / "bench" / "peers" / "apps.py"
spec = importlib.util.spec_from_file_location("apps", SCRIPT)
apps = importlib.util.module_from_spec(spec)
spec.loader.exec_module(apps)


class Event:
    clock = 0.0

    def record(self):
        self.at = Event.clock

    def synchronize(self):
        pass


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
        """A call of half a millisecond, by a clock of the test's own."""
        calls = []

        def call():
            calls.append(0)
            Event.clock += 0.5
        cuda = types.SimpleNamespace(Event=Event, get_elapsed_time=lambda a, b: b.at - a.at)
        self.assertEqual(apps.timed(types.SimpleNamespace(cuda=cuda), call, 7), (500, 500, 500))
        self.assertEqual(len(calls), 2 + 7 * 4)

    def test_times_of_ptxgen(self):
        """As `ptxgen bench` says them, on a driver that only records."""
        os.environ["PTXGEN_LIBCUDA"] = DRIVER
        with apps.tempfile.TemporaryDirectory() as folder:
            o, sizes = apps.options([PTXGEN, "--samples", "3"]), {"n": 70, "h": 16, "o": 1}
            given = apps.net(numpy.random.default_rng(1), sizes)
            for name, array in given.items():
                numpy.save(pathlib.Path(folder, name), array)
            times = apps.Ours(o, pathlib.Path(folder), numpy).time(o.specs / "backpropagation.yaml", given, sizes, {"steps": 2})
            self.assertEqual(len(times), 3)
            self.assertGreater(min(times), 0)

    def test_wrong_results_are_told(self):
        with apps.tempfile.TemporaryDirectory() as folder:
            o = apps.options([PTXGEN, "--dry"])
            problem = list(next(p for p in apps.PROBLEMS if p[0] == "backpropagation"))
            problem[-1] = {"numpy": lambda xp, given, p: apps.backpropagation(xp, given, {"steps": 1, "rate": 0.6})}
            modules = {"numpy": (numpy, numpy.asarray, numpy.asarray)}
            _, rows = apps.measure(o, apps.Ours(o, pathlib.Path(folder), numpy), modules, problem)
            self.assertEqual([good for *_, good in rows], [True, False])


class Dry(unittest.TestCase):
    def test_all(self):
        done = subprocess.run([sys.executable, SCRIPT, PTXGEN, "--dry"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("kmeans", "backpropagation", "srad", "heat", "radix_sort ", "radix_sort4", "radix_sort8"):
            self.assertRegex(done.stdout, rf"(?m)^{name} .*numpy")
        self.assertRegex(done.stdout, r"(?m)^heat .*ptxgen, \d+ steps")
        self.assertNotIn("differs", done.stdout)


if __name__ == "__main__":
    unittest.main()
