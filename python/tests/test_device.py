# SPDX-License-Identifier: Apache-2.0
"""Calls with arrays on a GPU, beside a driver that records what it is asked: pointers, streams, capture, waiting, results.

tests/test_gpu.py has the real libraries on a real GPU."""
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import numpy as np

import ptxgen

import stand_ins
from test_host import NO_STREAMS

SUM = "kind: reduce\nname: {name}\ninputs: {{x: 'f32[n]'}}\noperator: add\noutputs: {{sum: f32}}\n"
DOT = "kind: reduce\ninputs: {x: 'f32[n]', y: 'f32[n]'}\nmap: x * y\noperator: add\noutputs: {dot: f32}\n"
SCAN = "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\n"
X = np.arange(8, dtype="f4")
WAITS = ("cuStreamSynchronize", "cuCtxSynchronize")
BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench/python/calls.py"
driver = stand_ins.driver()


def named(name):
    """A sum whose kernels have names of their own, and whose first two arguments are recorded: input and output."""
    f = ptxgen.compile(SUM.format(name=name), arch="sm_90")
    for case in f.manifest["cases"]:
        for kernel in case["kernels"]:
            kinds = [arg["kind"] for arg in kernel["args"]]
            if kinds[:2] == ["input", "output"]:
                driver.expect(kernel["name"], 2)
    return f


@unittest.skipUnless(driver, "PTXGEN_LIBCUDA names no fake driver")
class Case(unittest.TestCase):
    def setUp(self):
        driver.forget()

    def launched(self):
        """The one launch since the last look; nothing has waited."""
        for name in WAITS:
            self.assertEqual(driver.calls(name), [], name)
        launch, = driver.calls()
        driver.forget()
        return launch


class Arrays(Case):
    def check(self, f, array, on, kind, **words):
        """Pointers arrive as they are, on the stream, and the result is of the kind."""
        driver.forget()
        made = f(array, **words)
        launch = self.launched()
        self.assertEqual((launch.stream or 0, list(launch.param[:1])), (on, [array.pointer]))
        self.assertIsInstance(made, kind)
        return made, launch.param[1]

    def test_dlpack(self):
        array = stand_ins.Dlpack(X)
        made, at = self.check(named("dlpack"), array, 0, ptxgen.Array)
        self.assertEqual(array.streams, [1])  # the legacy default stream, on which the launch is
        self.assertEqual(made.__cuda_array_interface__["data"], (at, False))
        self.assertEqual((made.__dlpack_device__(), made.shape), ((2, 0), ()))
        with self.assertRaises(BufferError):
            memoryview(made)

    def test_dlpack_on_a_stream_that_is_given(self):
        array, f = stand_ins.Dlpack(X), named("given")

        class Stream:
            def __cuda_stream__(self):
                return (0, 0x60)

        self.check(f, array, 0, ptxgen.Array, stream=1)  # the legacy default stream's other name
        self.check(f, array, 0x50, ptxgen.Array, stream=0x50)
        self.check(f, array, 0x60, ptxgen.Array, stream=Stream())
        self.assertEqual(array.streams, [1, 0x50, 0x60])

    def test_what_is_no_stream(self):
        for array in (stand_ins.Dlpack(X), stand_ins.Interface(X), stand_ins.Exchange(X)):
            f = ptxgen.compile(SCAN)
            f(array)
            for wrong in NO_STREAMS:
                for call in (f, f.prepare):
                    with self.assertRaisesRegex(TypeError, "stream is .*, and no stream"):
                        call(array, stream=wrong)

    def test_the_standard_of_array_libraries(self):
        made, at = self.check(named("standard"), stand_ins.Standard(X), 0, stand_ins.Standard)
        self.assertEqual(made.pointer, at)

    def test_the_cuda_array_interface(self):
        array, f = stand_ins.Interface(X), named("interface")
        self.check(f, array, 0, ptxgen.Array)
        array.stream = 0x40
        self.check(f, array, 0x40, ptxgen.Array)
        self.check(f, array, 0x40, ptxgen.Array, stream=None, n=None)  # the defaults that inspect.signature() shows
        array.stream = 1
        made, _ = self.check(f, array, 0, ptxgen.Array)
        self.assertEqual(made.__cuda_array_interface__["stream"], 1)
        for convert in (float, int, bool):
            with self.assertRaisesRegex(TypeError, "on a GPU> shows its elements"):
                convert(made)

    def test_a_mask_of_the_interface_is_not_dropped(self):
        array = stand_ins.Interface(X)
        array.mask = stand_ins.Interface(np.zeros(8, "?"))
        with self.assertRaisesRegex(ptxgen.UsageError, "'x' has a mask"):
            ptxgen.compile(SCAN)(array)
        array.mask = None
        self.check(named("unmasked"), array, 0, ptxgen.Array)

    def test_the_table_of_functions(self):
        array = stand_ins.Exchange(X)
        made, at = self.check(named("exchange"), array, 0x70, stand_ins.Exchange)
        self.assertEqual((made.pointer, made.x.shape), (at, ()))
        self.assertEqual(stand_ins.Exchange.made, {})
        made = ptxgen.compile(SCAN)(array)
        self.assertEqual((made.x.shape, made.x.dtype), ((8,), "f4"))

    def test_a_table_that_fails(self):
        array, scan = stand_ins.Exchange(X), ptxgen.compile(SCAN)
        for name, result, pattern in (("give", -1, "gives no array for a result"), ("give", 0, "gives no array for a result"),
                                      ("view", -1, "library of 'x' does not say where"), ("current_stream", -1, "does not say which stream")):
            with self.subTest(name, result=result), unittest.mock.patch.object(stand_ins.Exchange, "fails", {name: result}):
                with self.assertRaisesRegex((RuntimeError, ptxgen.UsageError), pattern):
                    scan(array)
        self.assertEqual(scan(array).x.shape, (8,))

    def test_torch_and_cupy(self):
        for module in (stand_ins.torch(), stand_ins.cupy()):
            sys.modules[module.__name__] = module
            try:
                array = (module.Tensor if module.__name__ == "torch" else module.ndarray)(X)
                kind = type(array)
                made, at = self.check(named(module.__name__), array, module.stream, kind)
                self.assertEqual((made.pointer, made.x.shape, made.x.dtype), (at, (), "f4"))
                self.assertIn(array.streams, ([None], []))  # nothing to be ordered: the work is on the library's own stream
            finally:
                del sys.modules[module.__name__]

    def test_a_torch_with_the_table_of_functions(self):
        module = sys.modules["torch"] = stand_ins.torch_with_table()
        try:
            f, array, other = ptxgen.compile(SCAN), module.Tensor(X), module.Tensor(np.zeros((3,), "f4"))
            made = f(array)
            self.assertEqual([type(made), made.x.shape, made.device], [module.Tensor, (8,), 0])
            for x in (array, other, array, array):
                self.assertEqual(f(x).x.shape, x.x.shape)
            self.assertEqual([shape for shape, _, _ in module.asked], [(8,), (8,), (3,), (8,), (8,)])
            rows = ptxgen.compile(SCAN.replace("f32[n]", "f32[m, n, k]") + "over: n\n")(module.Tensor(np.zeros((2, 0, 5), "f4")))
            self.assertEqual((rows.x.shape, module.asked[-1]), ((2, 0, 5), ((2, 0, 5), (5, 5, 1), "f4")))
            named_sum = named("torch_with_table")
            named_sum(array)
            driver.forget()
            made = named_sum(array)
            self.assertEqual(driver.calls()[0].param[1], made.pointer)
            for fault in (MemoryError, "i4", "f8", "another device"):
                with self.subTest(fault):
                    module.fault = fault
                    made = named_sum(array)
                    self.assertEqual((type(made), made.x.dtype, made.device), (stand_ins.Exchange, "f4", 0))  # by the table
            module.fault, module.device, asked = None, 1, len(module.asked)
            self.assertEqual(type(f(array)), stand_ins.Exchange)
            self.assertEqual(len(module.asked), asked)  # nothing is done on the other device
        finally:
            module.fault, module.device = None, 0
            del sys.modules["torch"]

    def test_a_cupy_without_the_attributes(self):
        module = sys.modules["cupy"] = stand_ins.cupy()
        try:
            array = module.ndarray(X)
            del array._c_contiguous
            self.check(named("other_cupy"), array, 0x90, module.ndarray)
            self.assertEqual(array.streams, [-1])
            array._c_contiguous = False
            with self.assertRaisesRegex(ptxgen.UsageError, "does not lie in row-major order"):
                ptxgen.compile(SCAN)(array)
        finally:
            del sys.modules["cupy"]

    def test_jax(self):
        module = sys.modules["jax"] = stand_ins.jax()
        try:
            for name, space in (("jax", None), ("jaxlib", module.jaxlib), ("jax_f64", module.jaxlib)):
                with self.subTest(name):
                    if space:
                        sys.modules["jaxlib._jax"] = space
                    wide = name == "jax_f64"
                    f, array = ptxgen.compile(SCAN.replace("f32", "f64") if wide else SCAN), module.Array(X.astype("f8" if wide else "f4"))
                    f(array)
                    driver.forget()
                    made = f(array)
                    self.assertEqual([call.stream for call in driver.calls()], [module.stream])
                    self.assertEqual([call.stream for call in driver.calls("cuStreamSynchronize")], [module.stream])
                    self.assertEqual((array.streams, array.direct), ([module.stream] * 2, 2 if space else 0))
                    self.assertEqual((made.maker, made.ready), (space, module.stream) if space and not wide else (None, module.stream))
                    self.assertEqual(made.waited, 0)  # it is made while the GPU works
            with self.subTest("a result that cannot be made"):
                driver.forget()
                module.fault = ValueError("no room")
                with self.assertRaisesRegex(ValueError, "no room"):
                    ptxgen.compile(SCAN)(module.Array(X))
                module.fault = None
                self.assertEqual([call.stream for call in driver.calls("cuStreamSynchronize")], [module.stream])  # the input is read until then
            with self.subTest("work that fails"):
                f, array = ptxgen.compile(SCAN), module.Array(X)
                f(array)
                driver.fail, driver.fail_result = b"cuStreamSynchronize", 719
                with self.assertRaisesRegex(ptxgen.Error, "cuStreamSynchronize"):
                    f(array)
                driver.fail = None
            with self.subTest("devices are asked for once for arrays of one sharding"):
                arrays = [module.Array(X) for _ in range(4)]
                for array, sharding in zip(arrays, ("here", "here", "there", "here")):
                    array._sharding = sharding
                arrays[2].quiet = True
                driver.forget()
                f = ptxgen.compile(SCAN)
                for array in arrays:
                    f(array)
                self.assertEqual([array.asked for array in arrays], [1, 0, 1, 1])
                self.assertEqual([call.stream for call in driver.calls()], [module.stream] * 2 + [None, module.stream])
            with self.subTest("a device without such a stream"):
                driver.forget()
                array = module.Array(X)
                array.quiet = True
                ptxgen.compile(SCAN)(array)
                self.assertEqual(([call.stream for call in driver.calls()], array.streams), ([None], [1]))
            with self.subTest("a stream that is given"):
                driver.forget()
                array = module.Array(X)
                ptxgen.compile(SCAN)(array, stream=0x530)
                self.assertEqual(([call.stream for call in driver.calls()], array.streams), ([0x530], [0x530]))
        finally:
            del sys.modules["jax"]
            sys.modules.pop("jaxlib._jax", None)

    def test_outputs_that_are_given(self):
        f, array, out = named("out"), stand_ins.Interface(X), stand_ins.Interface(np.zeros((), "f4"))
        made, at = self.check(f, array, 0, stand_ins.Interface, out=out)
        self.assertIs(made, out)
        self.assertEqual(at, out.pointer)

    def test_what_does_not_fit_together(self):
        f, x = ptxgen.compile(DOT), stand_ins.Dlpack(X)
        for y, pattern in ((X, "'y' is on the host, and the arrays before are not"),
                           (stand_ins.Dlpack(X, 1), "'y' is on GPU 1, and the arrays before are on GPU 0"),
                           (stand_ins.Dlpack(X[:5]), "'y' has 5 elements in dimension 0; x asks for 8"),
                           (stand_ins.Dlpack(np.zeros(8)), "'y' has elements of type f64; the spec says f32"),
                           (stand_ins.Interface(np.zeros(8, ">f4")), "of no known form"),
                           (stand_ins.Dlpack(X[:4], strides=(2,)), "'y' does not lie in row-major order")):
            with self.subTest(pattern), self.assertRaisesRegex(ptxgen.UsageError, pattern):
                f(x, y)
        with self.assertRaisesRegex(ptxgen.UsageError, "GPU 77 is out of range"):
            f(stand_ins.Dlpack(X, 77), stand_ins.Dlpack(X, 77))
        with self.assertRaisesRegex(ptxgen.UsageError, "device 3 does not exist"):
            f(stand_ins.Dlpack(X, 3), stand_ins.Dlpack(X, 3))

    def test_results_give_their_memory_back(self):
        f, array = ptxgen.compile(SCAN), stand_ins.Dlpack(np.zeros(24, "f4"))
        f(array)
        live = driver.live
        for _ in range(100):
            f(array)
        self.assertEqual(driver.live, live)
        kept = [f(array) for _ in range(10)]
        self.assertEqual(driver.live, live + 9)
        del kept, f
        self.assertLess(driver.live, live + 9)  # the code of the function

    def test_memory_is_used_again_on_its_own_stream_alone(self):
        f, array = ptxgen.compile(SCAN), stand_ins.Dlpack(X)

        def address(stream):
            capsule = f(array, stream=stream).__dlpack__(stream=stream)
            return stand_ins.managed(capsule).tensor.data

        addresses = [address(stream) for stream in (0x510, 0x510, 0x520, 0x510)]
        self.assertEqual(addresses[0], addresses[1])
        self.assertNotEqual(addresses[0], addresses[2])
        self.assertEqual(addresses[0], addresses[3])

    def test_memory_that_others_may_use_is_freed(self):
        f, array = ptxgen.compile(SCAN), stand_ins.Dlpack(X)
        for show in (lambda made: made.__dlpack__(stream=0x10), lambda made: made.__dlpack__(stream=-1), lambda made: made.__cuda_array_interface__):
            driver.forget()
            addresses = []
            while not driver.calls("cuMemFree") and len(addresses) < 100:
                made = f(array)
                capsule = made.__dlpack__(stream=1)
                addresses.append(stand_ins.managed(capsule).tensor.data)
                show(made)
                del made, capsule
            self.assertEqual(len(addresses), len(set(addresses)))  # until then none is used again
            self.assertLess(len(addresses), 40)
        driver.forget()
        f(array).__dlpack__(stream=1)
        f(stand_ins.Dlpack(np.zeros(1 << 15, "f4"))).__dlpack__(stream=-1)  # much memory: at once
        self.assertEqual(len(driver.calls("cuMemFree")), 1)
        live = driver.live
        for _ in range(100):
            f(array).__dlpack__(stream=-1)
        self.assertEqual(driver.live, live)


class Streams(Case):
    def tearDown(self):
        driver.capturing = 0
        driver.fail = None

    def test_a_launch_in_a_capture(self):
        f, array, out = ptxgen.compile(SCAN), stand_ins.Interface(X), stand_ins.Interface(np.zeros(8, "f4"))
        driver.capturing = 1
        with self.assertRaisesRegex(ptxgen.UsageError, r"during a stream capture; call f.prepare\(\) before it begins"):
            f(array, out=out, stream=0x30)
        driver.capturing = 0
        f.prepare(array, stream=0x30)
        driver.forget()
        driver.capturing = 1
        f(array, out=out, stream=0x30)
        names = {call.name.decode() for call in driver.call[:driver.ncalls]}
        self.assertTrue(all(name.startswith("cuLaunch") for name in names), names)
        self.assertEqual(driver.capture_spoiled, 0)

    def test_prepare_launches_nothing_and_needs_no_arrays(self):
        f = ptxgen.compile(SCAN)
        f.prepare(n=8)
        self.assertEqual(driver.calls(), [])
        f(stand_ins.Interface(X))
        self.assertEqual(len(driver.calls("cuModuleLoad")), 1)

    def test_interfaces_of_two_streams(self):
        """The call is on the stream of the first; what the second's stream still writes comes first."""
        f, x, y = ptxgen.compile(DOT), stand_ins.Interface(X), stand_ins.Interface(X)
        for first, second, given, waits in ((0x20, 0x30, None, [0x30]), (0x20, 0x20, None, []), (0x20, None, None, []), (None, 0x30, None, [0x30]), (0x20, 0x30, 0x40, [0x20, 0x30])):
            x.stream, y.stream = first, second
            driver.forget()
            f(x, y, stream=given)
            self.assertEqual([call.stream for call in driver.calls("cuStreamSynchronize")], waits)
            self.assertEqual([call.stream for call in driver.calls()], [given or first])

    def test_a_consumer_on_another_stream_waits(self):
        made = ptxgen.compile(SCAN)(stand_ins.Dlpack(X), stream=0x20)
        made.__dlpack__(stream=0x20)
        made.__dlpack__(stream=-1)
        self.assertEqual(driver.calls("cuStreamSynchronize"), [])
        made.__dlpack__(stream=0x10)
        self.assertEqual([call.stream for call in driver.calls("cuStreamSynchronize")], [0x20])

    def test_faults_of_the_driver_are_exceptions(self):
        f, array = ptxgen.compile(SCAN), stand_ins.Interface(X)
        f(array)
        for name in (b"cuLaunchKernelEx", b"cuLaunchKernel"):
            driver.fail, driver.fail_result = name, 719
            try:
                f(array)
            except ptxgen.Error as error:
                self.assertIn("FAKE_ERROR", str(error))
                break
        else:
            self.fail("no launch failed")
        driver.fail = None
        f(array)

    def test_threads(self):
        f, wrong = ptxgen.compile(SCAN), []

        def run(stream):
            array = stand_ins.Interface(X)
            for _ in range(200):
                f(array, stream=stream)
            wrong.extend(call for call in driver.calls() if call.stream not in (0x100, 0x200, 0x300))

        threads = [threading.Thread(target=run, args=(stream,)) for stream in (0x100, 0x200, 0x300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(len(driver.calls()), 600)


class Tuning(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "deep", "tuning.yaml")
        self.f, self.array = ptxgen.compile(SCAN), stand_ins.Interface(X)

    def tearDown(self):
        self.folder.cleanup()

    def tune(self, **patches):
        """With variants that seem to take half the time of the usual plan."""
        seconds = ptxgen.Function._seconds

        def quicker(f, *args, **words):
            time, *more = seconds(f, *args, **words)
            return (time / 2 if "variant" in f._choice else time, *more)

        with unittest.mock.patch.multiple(ptxgen.Function, _seconds=quicker, **patches):
            return self.f.tune(self.array, limit=3, samples=1, file=self.path)

    def test_the_fastest_goes_into_the_file(self):
        checked = []
        rows = self.tune(verify=lambda f, *args: checked.append(f._choice["variant"]))
        self.assertEqual([len(rows), rows[-1][0]], [4, "default"])
        self.assertEqual(checked, [rows[0][0]])
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(rows[0][0], text)
        self.assertIn("Fake GPU 0", text)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["tuning.yaml"])
        driver.forget()
        self.f(self.array)
        self.assertGreater(len(driver.calls("cuModuleLoad")), 0)  # what was made before is not used any more

    def test_a_winner_that_computes_wrong_is_no_winner(self):
        with self.assertRaises(ptxgen.MismatchError):  # the driver runs nothing
            self.tune()
        self.assertFalse(os.path.exists(self.path))


class Programs(Case):
    def test_each_stage_is_tuned(self):
        f, seconds, checked = ptxgen.compile({"inputs": {"x": "f32[n]"}, "outputs": ["y"], "stages": {
            "total": {"kind": "reduce", "map": "x", "operator": "add", "determinism": "device", "outputs": {"sum": "f32"}},
            "most": {"kind": "reduce", "map": "x", "operator": "max", "outputs": {"top": "f32"}},
            "share": {"kind": "stencil", "outputs": {"y": {"type": "f32[n]", "value": "(x - sum) / top"}}}}}), ptxgen.Function._seconds, []

        def quicker(f, *args, **words):
            time, *more = seconds(f, *args, **words)
            return (time / 2 if "variant" in f._choice else time, *more)

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tuning.yaml")
            with unittest.mock.patch.multiple(ptxgen.Function, _seconds=quicker, verify=lambda f, *args: checked.append(f._choice["variant"])):
                rows = f.tune(stand_ins.Interface(X), limit=3, samples=1, file=path)
            with open(path, encoding="utf-8") as file:
                text = file.read()
        self.assertEqual([x.partition(":")[0] for x in checked], ["most", "share"])  # the tree of `total` is not to be tuned
        self.assertEqual([len(rows), rows[-1][0]], [7, "default"])
        for variant in checked:
            self.assertIn(f'variant: "{variant.partition(":")[2]}"', text)
        self.assertEqual(text.count("problem:"), 2)
        self.assertEqual(text.count(f"sizes: {{n: {len(X)}}}"), 2)

    def test_verifying_says_which_stage_differs(self):
        f = ptxgen.compile({"inputs": {"x": "f32[n]"}, "outputs": ["y"], "stages": {
            "total": {"kind": "reduce", "operator": "add", "outputs": {"sum": "f32"}},
            "share": {"kind": "stencil", "outputs": {"y": {"type": "f32[n]", "value": "x - sum"}}}}})
        with self.assertRaisesRegex(ptxgen.MismatchError, r"stage total, step 0: sum\[0\] is .*; the reference says 28"):  # the driver runs nothing
            f.verify(stand_ins.Interface(X))


class Benchmark(Case):
    TORCH = ("import types\nimport numpy, stand_ins\n__version__ = '0'\nones = lambda n, device: stand_ins.Dlpack(numpy.ones(n, 'f4'))\n"
             "compile = lambda f: f\ncuda = types.SimpleNamespace(synchronize=lambda: None)\n")

    def test_first_calls(self):
        """bench/python/calls.py, with a torch that has what it needs, in processes without caches and with."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "torch.py").write_text(self.TORCH, encoding="utf-8")
            path = os.pathsep.join([folder, os.path.dirname(stand_ins.__file__), *filter(None, sys.path)])
            done = subprocess.run([sys.executable, str(BENCH), "--json", f"{folder}/rows.json", "--driver-calls", os.environ["PTXGEN_LIBCUDA"], "first"],
                                  env={**os.environ, "PYTHONPATH": path, "DRIVER_CALLS_FROM": "9"}, capture_output=True, text=True, check=False)
            rows = json.loads(pathlib.Path(folder, "rows.json").read_text(encoding="utf-8"))
        wanted = [f"{name}{more}, {form}" for form in ("cold", "from the cache") for more in ("", ", the driver's calls") for name in ("sum", "scan")]
        self.assertEqual([row["what"] for row in rows if row["library"] == "ptxgen"], wanted, done.stdout + done.stderr)
        self.assertLess(rows[[row["what"] for row in rows].index("sum, from the cache")]["least"], rows[0]["least"])
        self.assertRegex(done.stdout, "triton .an elementwise kernel. +(not here|failed)")  # that torch serves ptxgen alone

    def test_what_the_driver_takes(self):
        lines = "7 1.00 0.50 ms cuMemAlloc_v2\nother\n7 2.00 20.25 ms cuModuleLoadDataEx\n7 3.00 0.25 ms cuMemAlloc_v2\n"
        self.assertEqual(runpy.run_path(str(BENCH))["of_the_driver"](lines), ["cuModuleLoadDataEx 20.25", "cuMemAlloc_v2 0.75"])


if __name__ == "__main__":
    unittest.main()
