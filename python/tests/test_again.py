# SPDX-License-Identifier: Apache-2.0
"""Calls whose arrays look like those of the call before, and calls in which one thing is different (python/native/again.c); many calls."""
import collections
import sys
import threading
import unittest

import numpy as np

import ptxgen

import stand_ins
from test_device import DOT, SCAN, SUM, X, Case, driver, named
from test_process import refused, steady

COUNTS = "kind: reduce\ninputs: {key: 'i32[n]'}\nby: key\nmap: i32(1)\noperator: add\noutputs: {count: 'i32[k]'}\n"
TWO = "kind: reduce\ninputs: {x: 'f32[n]'}\nreductions: {sum: {operator: add}, most: {operator: max}}\noutputs: {sum: f32, most: f32}\n"


class Again(Case):

    def setUp(self):
        super().setUp()
        self.x, self.one = stand_ins.Exchange(X), stand_ins.Exchange(np.zeros((), "f4"))

    def tearDown(self):
        stand_ins.Exchange.current, driver.devices = 0x70, 1

    def test_other_memory_and_streams(self):
        f, y, other = named("again"), stand_ins.Exchange(X), stand_ins.Exchange(np.zeros((), "f4"))
        for words in ({"out": self.one}, {}):
            f(self.x, **words)
            driver.forget()
            for x, stream in ((self.x, 0x70), (y, 0x70), (y, 0x78), (self.x, 1)):
                stand_ins.Exchange.current = stream
                out = {"out": other} if words and x is y else words
                made = f(x, **out)
                launch = self.launched()
                self.assertEqual((launch.stream or 0, *launch.param[:2]), (stream if stream > 1 else 0, x.pointer, made.pointer))
                self.assertIs(out.get("out", made), made)

    def test_other_sizes_and_devices(self):
        f, driver.devices = ptxgen.compile(SCAN), 2
        for n, device in ((8, 0), (8, 0), (5, 0), (5, 0), (5, 1), (5, 1), (5, 0), (1, 0), (0, 0), (0, 0), (8, 0)):
            made = f(stand_ins.Exchange(X[:n], device))
            self.assertEqual((made.x.shape, made.device), ((n,), device))
        self.assertEqual(len({call.context for call in driver.calls()}), 2)

    def test_sizes_in_turn(self):
        """More than are remembered, with outputs of their own and in the place of an input."""
        f = ptxgen.compile(SCAN)
        arrays = [stand_ins.Exchange(np.zeros(n, "f4")) for n in (1, 2, 3, 5, 8, 13)]
        for i in range(60):
            x, out = arrays[i * i % 6], stand_ins.Exchange(np.zeros(arrays[i * i % 6].x.shape, "f4"))
            self.assertIs(f(x, out=out), out)
            self.assertIs(f(x, out=x), x)
            self.assertEqual(f(x).x.shape, x.x.shape)
            with self.assertRaisesRegex(ptxgen.UsageError, "'y' has . elements"):
                f(arrays[4], out=arrays[i % 4])
        self.assertEqual(len(driver.calls()), 180)

    def test_what_does_not_fit(self):
        f, moved, inside = named("again_refused"), stand_ins.Exchange(X), stand_ins.Exchange(np.zeros((), "f4"))
        moved.tensor.data += 2
        inside.tensor.data = self.x.pointer + 4
        cases = [((stand_ins.Exchange(X.astype("i4")),), {}, "'x' has elements of type i32"), ((moved,), {}, "'x' begins at an address"),
                 ((stand_ins.Exchange(X, strides=(2,)),), {}, "'x' does not lie in row-major order"),
                 ((stand_ins.Exchange(X[:4].reshape(2, 2)),), {}, "'x' has 2 dimensions"),
                 ((self.x,), {"out": inside}, "'sum' shares memory with input 'x'"), ((self.x,), {"out": X[:1]}, "'sum' is on the host"),
                 ((self.x,), {"out": stand_ins.Exchange(np.zeros(2, "f4"))}, "'sum' has 1 dimensions"),
                 ((self.x,), {"out": stand_ins.Exchange(np.zeros((), "f4"), 1)}, "'sum' is on GPU 1"), ((self.x,), {"n": 7}, "asks for 7")]
        for args, words, pattern in cases:
            for out in (words, {"out": self.one, **words}):
                with self.subTest(pattern, out=len(out)):
                    f(self.x, **{name: self.one for name in out if name == "out"})
                    with self.assertRaisesRegex(ptxgen.UsageError, pattern):
                        f(*args, **out)
        for args, words in (((), {}), ((self.x, self.x), {}), ((self.x,), {"other": self.one})):
            f(self.x, out=self.one)
            with self.assertRaises(TypeError):
                f(*args, **words)

    def test_threads(self):
        """The stand-in's functions are Python's code, in which other threads come between."""
        f, wrong, interval = named("again_threads"), [], sys.getswitchinterval()
        scan = ptxgen.compile(SCAN)

        def run(n):
            x, out = stand_ins.Exchange(X[:n]), stand_ins.Exchange(np.zeros((), "f4"))
            for i in range(150):
                made, same = scan(x), f(x, out=out)
                if made.x.shape != (n,) or same is not out:
                    wrong.append((n, i, made.x.shape))

        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=run, args=(n,)) for n in (8, 5, 8, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
        self.assertEqual(wrong, [])
        self.assertEqual(len([call for call in driver.calls() if call.kernel.startswith(b"again_threads")]), 600)

    def test_sizes_that_were_given(self):
        f, keys = ptxgen.compile(COUNTS), stand_ins.Exchange(np.zeros(8, "i4"))
        for k in (7, 7, 9):
            self.assertEqual(f(keys, k=k).x.shape, (k,))
            with self.assertRaisesRegex(ptxgen.UsageError, "size 'k' does not follow"):
                f(keys)
        out = stand_ins.Exchange(np.zeros(5, "i4"))
        for _ in range(2):
            self.assertIs(f(keys, out=out), out)

    def test_outputs_that_were_given(self):
        f, out, short = ptxgen.compile(SCAN), stand_ins.Exchange(X), stand_ins.Exchange(X[:5])
        f(self.x, out=out)
        f(short)
        with self.assertRaisesRegex(ptxgen.UsageError, "'y' has 8 elements in dimension 0; x asks for 5"):
            f(short, out=out)

    def test_in_place_and_several_outputs(self):
        f = ptxgen.compile(SCAN.replace("{y: 'f32[n]'}", "{y: 'f32[n]', t: {type: f32, value: total}}"))
        out = stand_ins.Exchange(X), self.one
        for given in (out, out, list(out), (self.x, self.one), out, {"y": out[0], "t": out[1]}):
            made = f(self.x, out=given)
            self.assertEqual(list(made), list(given.values() if isinstance(given, dict) else given))
        for given in (out[:1], (out[0], out[0])):
            with self.assertRaises(ptxgen.UsageError):
                f(self.x, out=given)
        self.assertEqual([made.x.shape for made in f(self.x)], [(8,), ()])

    def test_params(self):
        f = ptxgen.compile(SUM.format(name="again_params").replace("operator:", "params: {k: {type: i32, value: 5}}\nmap: x * f32(k)\noperator:"), arch="sm_90")
        for case in f.manifest["cases"]:
            for kernel in case["kernels"]:
                self.assertEqual([arg["kind"] for arg in kernel["args"]][2], "param")
                driver.expect(kernel["name"], 3)
        for words in ({}, {}, {"k": 7}, {"k": 7}, {}, {"out": self.one}, {"out": self.one, "k": 8}, {"out": self.one}):
            driver.forget()
            f(self.x, **words)
            self.assertEqual(driver.calls()[0].param[2] & 0xffffffff, words.get("k", 5))

    def test_marks_that_a_view_does_not_show(self):
        """A tensor that is to be conjugated when it is read has the memory of the other."""
        f = ptxgen.compile("kind: map\ninputs: {z: {type: {re: f32, im: f32}, shape: [n]}}\noutputs: {y: {type: 'f32[n]', value: z.im}}\n")
        z, out = stand_ins.Exchange(np.array([1 + 2j, 3j], "c8")), stand_ins.Exchange(np.zeros(2, "f4"))
        z.is_conj = lambda: False
        for _ in range(3):
            f(z, out=out)
        z.is_conj = lambda: True
        with self.assertRaisesRegex(ptxgen.UsageError, r"'z' is to be conjugated when it is read; give a copy, such as x.resolve_conj\(\)"):
            f(z, out=out)

    def test_other_kinds_of_arrays(self):
        f = named("again_kinds")
        f(self.x)
        for array in (stand_ins.Dlpack(X), stand_ins.Interface(X), self.x):
            driver.forget()
            f(array)
            self.assertEqual(self.launched().param[0], array.pointer)
        self.assertEqual(f(X), X.sum())


class Many(Case):
    def test_a_hundred_thousand_calls(self):
        """With out=, and 5000 of each other path."""
        f, two, dot, array, out = ptxgen.compile(SCAN), ptxgen.compile(TWO), ptxgen.compile(DOT), stand_ins.Interface(X), stand_ins.Interface(np.zeros(8, "f4"))
        table, dlpack, short = stand_ins.Exchange(X), stand_ins.Dlpack(X), stand_ins.Dlpack(X[:5])
        dlpack.streams = short.streams = collections.deque(maxlen=1)  # which would grow
        outs = [stand_ins.Interface(np.zeros((), "f4")) for _ in range(2)]
        live = driver.live
        steady(self, 100000, {"out=": lambda: f(array, out=out)})
        steady(self, 5000, {
            "a new result": lambda: f(array), "the table of functions": lambda: f(table), "DLPack": lambda: f(dlpack),
            "several new results": lambda: two(array), "several of out=": lambda: two(array, out=outs), "several by the table": lambda: two(table),
            "a result that others take": lambda: f(array).__dlpack__(stream=1), "prepare": lambda: f.prepare(array, out=out),
            "a shape": lambda: refused(ptxgen.UsageError, dot, dlpack, short), "a device": lambda: refused(ptxgen.UsageError, dot, dlpack, X),
            "a type": lambda: refused(ptxgen.UsageError, f, stand_ins.Interface(X.astype("f8"))),
            "a stream": lambda: refused(TypeError, f, array, stream="x")})
        self.addCleanup(setattr, driver, "fail", None)
        driver.fail, driver.fail_result = driver.calls()[-1].name, 719
        steady(self, 5000, {"a launch that fails": lambda: refused(ptxgen.Error, f, array), "one by the table": lambda: refused(ptxgen.Error, f, table)})
        self.assertLess(driver.live, live + 20)


if __name__ == "__main__":
    unittest.main()
