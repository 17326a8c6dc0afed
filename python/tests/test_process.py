# SPDX-License-Identifier: Apache-2.0
"""Calls and the process around them: memory, threads, signals, other interpreters."""
import array
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import types
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


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "free_chunks", "fast_chunks", "maps", "mapped", "unused", "fast", "used", "free", "top")]


MALLINFO = getattr(ctypes.CDLL(None), "mallinfo2", None)  # glibc has it since 2.33
if MALLINFO:
    MALLINFO.restype = Mallinfo


def held():
    """Bytes that are in use, also where the process need not grow for them: C's, and 16 for each block of Python's, which are no smaller."""
    info = MALLINFO() if MALLINFO else Mallinfo()
    return info.used + info.mapped + 16 * sys.getallocatedblocks()


def growth(action, count, measure=resident):
    """Bytes by which the process grows in `count` repetitions, after as many as it takes to fill caches."""
    for _ in range(count // 10):
        action()
    before = measure()
    for _ in range(count):
        action()
    return measure() - before


def refused(error, f, *args, **words):
    """A call that fails."""
    try:
        f(*args, **words)
    except error:
        return
    raise AssertionError("the call was not refused")


LIMIT = 1 << 18  # 13 bytes in each of 20000 calls, or a page in each of 64


def steady(case, count, paths):
    """`count` calls of each path keep nothing: neither the least that an allocator gives, 16 bytes a call, nor pages that are no allocator's."""
    for name, action in paths.items():
        with case.subTest(name):
            kept, grown = growth(action, count, lambda: np.array([held(), resident()]))
            case.assertLess(kept, 8 * count)
            case.assertLess(grown, LIMIT)


class Memory(unittest.TestCase):
    def test_the_measures_see_growth(self):
        kept, c = [], ctypes.CDLL(None)
        self.assertGreater(growth(lambda: kept.append(bytearray(64)), 20000), LIMIT)
        self.assertGreater(growth(lambda: kept.append(object()), 2000, held), 16 * 2000 - 1)
        if MALLINFO:
            c.malloc.restype = ctypes.c_void_p
            self.assertGreater(growth(lambda: c.malloc(1), 2000, held), 16 * 2000 - 1)

    def test_calls(self):
        """2000 of each path on the host executor, where one takes a tenth of a millisecond; test_again.py has more."""
        f, scan, stats, x = ptxgen.compile(SUM), ptxgen.compile(SCAN), ptxgen.load(ROOT / "specs/stats.yaml"), np.ones(8, "f4")
        out, outs, buffer = np.empty((), "f4"), [np.empty((), "f4") for _ in range(4)], array.array("f", x)
        own, dlpack = scan(buffer), types.SimpleNamespace(__dlpack__=x.__dlpack__, __dlpack_device__=x.__dlpack_device__)
        steady(self, 2000, {
            "a new result": lambda: f(x), "out=": lambda: f(x, out=out), "several new results": lambda: stats(x), "several of out=": lambda: stats(x, out=outs),
            "a buffer": lambda: scan(buffer), "an array of our own": lambda: scan(own), "DLPack": lambda: scan(dlpack), "verify": lambda: f.verify(x)})

    def test_calls_that_fail(self):
        """10000 of each path, 100000 in all."""
        dot, stats, x, y = ptxgen.load(ROOT / "specs/dot.yaml"), ptxgen.load(ROOT / "specs/stats.yaml"), np.ones(8, "f4"), np.ones(8)
        dlpack, outs = types.SimpleNamespace(__dlpack__=y.__dlpack__, __dlpack_device__=y.__dlpack_device__), [np.empty((), "f4") for _ in range(4)]
        steady(self, 10000, {
            "a shape": lambda: refused(ptxgen.UsageError, dot, x, x[:3]), "a type": lambda: refused(ptxgen.UsageError, dot, x, y),
            "a buffer's type": lambda: refused(ptxgen.UsageError, dot, x, memoryview(y)), "DLPack's type": lambda: refused(ptxgen.UsageError, dot, x, dlpack),
            "no array": lambda: refused(TypeError, dot, x, 3), "an argument": lambda: refused(TypeError, dot, x, x, z=x),
            "a stream": lambda: refused(TypeError, dot, x, x, stream="x"), "outputs that share memory": lambda: refused(ptxgen.UsageError, stats, x, out=[outs[0]] * 4),
            "too few outputs": lambda: refused(ptxgen.UsageError, stats, x, out=outs[:3]), "no such output": lambda: refused(TypeError, stats, x, out={"lo": outs[0], "low": outs[1]})})

    def test_functions(self):
        def make():
            ptxgen.compile(SUM).explain(n=3)
            try:
                ptxgen.compile("kind: reduce\n")
            except ptxgen.SpecError:
                pass

        self.assertLess(growth(make, 500), 4 * LIMIT)

    def test_references(self):
        f, stats, x = ptxgen.compile(SCAN), ptxgen.load(ROOT / "specs/stats.yaml"), np.ones(8, "f4")
        out, outs = np.empty_like(x), [np.empty((), "f4") for _ in range(4)]
        used = [x, f, stats, out, *outs]
        before = [sys.getrefcount(one) for one in used]
        for _ in range(10):
            f(x)
            f(x=x, out=out)
            f.verify(x)
            stats(x, out=outs)
            stats(x, out=dict(zip(stats.outputs, outs)))
            refused(ptxgen.UsageError, stats, x, out=outs[:1] * 4)
            refused(ptxgen.UsageError, f, x, out=out[:5])
        self.assertEqual([sys.getrefcount(one) for one in used], before)


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
