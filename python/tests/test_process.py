# SPDX-License-Identifier: Apache-2.0
"""Calls and the process around them: memory, threads, signals, other interpreters."""
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import ptxgen

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUM = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n"
SCAN = "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\n"
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


def growth(action, count):
    """Bytes by which the process grows in `count` repetitions, after as many as it takes to fill caches."""
    for _ in range(count // 10):
        action()
    before = resident()
    for _ in range(count):
        action()
    return resident() - before


class Memory(unittest.TestCase):
    LIMIT = 1 << 18  # 13 bytes a call; test_device.py has five times as many

    def test_the_measure_sees_growth(self):
        kept = []
        self.assertGreater(growth(lambda: kept.append(bytearray(64)), 20000), self.LIMIT)

    def test_calls(self):
        f, x = ptxgen.compile(SUM), np.ones(8, "f4")
        out = np.empty((), "f4")
        self.assertLess(growth(lambda: f(x), 20000), self.LIMIT)
        self.assertLess(growth(lambda: f(x, out=out), 20000), self.LIMIT)

    def test_calls_that_fail(self):
        f, x = ptxgen.compile(SUM), np.ones(8)

        def fail():
            try:
                f(x)
            except ptxgen.UsageError:
                pass

        self.assertLess(growth(fail, 20000), self.LIMIT)

    def test_functions(self):
        def make():
            ptxgen.compile(SUM).explain(n=3)
            try:
                ptxgen.compile("kind: reduce\n")
            except ptxgen.SpecError:
                pass

        self.assertLess(growth(make, 500), 4 * self.LIMIT)

    def test_references(self):
        f, x = ptxgen.compile(SCAN), np.ones(8, "f4")
        out = np.empty_like(x)
        before = sys.getrefcount(x), sys.getrefcount(f), sys.getrefcount(out)
        for _ in range(10):
            f(x)
            f(x=x, out=out)
            f.verify(x)
        self.assertEqual((sys.getrefcount(x), sys.getrefcount(f), sys.getrefcount(out)), before)


class Threads(unittest.TestCase):
    def test_other_threads_run_during_a_run(self):
        f, x = ptxgen.compile(SUM), np.ones(1 << 22, "f4")
        f(x)
        started, count, during = threading.Event(), 0, []

        def run():
            started.set()
            begin = count
            f(x)
            during.append(count - begin)

        thread = threading.Thread(target=run)
        thread.start()
        started.wait()
        while thread.is_alive():
            count += 1
            time.sleep(0)
        thread.join()
        self.assertGreater(during[0], 50)  # none, or one, with the GIL held

    def test_one_function_in_many_threads(self):
        f, wrong = ptxgen.compile(SCAN), []

        def run(seed):
            for i in range(50):
                x = np.full(100 + i, seed, "f4")
                if not np.array_equal(f(x), np.cumsum(x)):
                    wrong.append((seed, i))

        threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def interrupted(self, f, *args, **words):
        """Seconds from the signal to the exception, of a run that takes much longer."""
        self.addCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sent = []
        timer = threading.Timer(0.3, lambda: (sent.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT)))
        with self.assertRaises(KeyboardInterrupt):
            timer.start()
            f(*args, **words)
        timer.join()
        return time.monotonic() - sent[0]

    def test_an_interrupt_ends_a_long_run(self):
        f, x = ptxgen.compile(SCAN), np.ones(1 << 25, "f4")
        f(x[:100])
        self.assertLess(self.interrupted(f, x), 2)
        np.testing.assert_array_equal(f(x[:1 << 18]), np.arange(1, (1 << 18) + 1))  # what the run left half done is no harm

    def test_an_interrupt_ends_a_long_loop(self):
        f = ptxgen.load(ROOT / "specs/apps/heat.yaml")
        u = np.random.default_rng(1).random((40, 40)).astype("f4")
        want = f(u, steps=3)
        self.assertLess(self.interrupted(f, u, steps=10000, eps=0.0), 2)
        np.testing.assert_array_equal(f(u, steps=3).next, want.next)

    def test_a_handler_that_goes_on(self):
        f, x, seen = ptxgen.compile(SUM), np.ones(1 << 24, "f4"), []
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, lambda *_: seen.append(time.monotonic())))
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        try:
            self.assertEqual(f(x), 1 << 24)
            done = time.monotonic()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertGreater(len([t for t in seen if t < done - 0.02]), 1)

    def test_interrupts_between_runs(self):
        f, x = ptxgen.compile(SUM), np.ones(1 << 22, "f4")
        f(x)
        self.addCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore it
        timer = threading.Timer(0.005, signal.raise_signal, (signal.SIGINT,))
        with self.assertRaises(KeyboardInterrupt):
            timer.start()
            for _ in range(2000):
                f(x)
        timer.join()
        self.assertEqual(f(x), 1 << 22)


class Interpreters(unittest.TestCase):
    def test_others_than_the_main_one_are_refused(self):
        code = ("import sys\n"
                "try:\n    import _interpreters as some\nexcept ImportError:\n    import _xxsubinterpreters as some\n"
                "try:\n    done = some.run_string(some.create(), 'import ptxgen')\n"
                "except Exception as error:\n    done = error\n"
                "print(done)\nimport ptxgen\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "main interpreter|does not support loading in subinterpreters")


if __name__ == "__main__":
    unittest.main()
