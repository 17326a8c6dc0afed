# SPDX-License-Identifier: Apache-2.0
"""PyTorch, CuPy, JAX and Numba on a real GPU: results, streams, graphs, errors.  Runs where PTXGEN_TEST_GPU is set; a library that is not
there is skipped, and named."""
import contextlib
import importlib.util
import os
import pathlib
import re
import shutil
import tempfile
import threading
import time
import unittest

import numpy as np

import ptxgen
from test_gradients import FIXED, SPECS
from test_process import growth

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = (1, 7, 1000, 4099, (1 << 20) + 3)
RANDOM = np.random.default_rng(7)
LATE = 200_000_000  # cycles of a kernel that does nothing: some 0.1 s
# What the table under "Gradients" of docs/python.md names, row by row.
GRADIENTS = {name: SPECS[name] for name in (
    "map", "broadcast",
    "rows", "own sums", "softmax", "layer norm",
    "cumulative", "from the right", "recurrence", "runs",
    "constant edge", "heat", "burgers", "clamp", "interior",
    "steps")}


def spec(name, **options):
    return ptxgen.load(ROOT / f"specs/{name}.yaml", **options)


def library(name):
    """A module, or the test is skipped."""
    if "PTXGEN_TEST_GPU" not in os.environ:
        raise unittest.SkipTest("PTXGEN_TEST_GPU is not set")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise unittest.SkipTest(f"{name}: {error}") from None


def numbers(n, kind="i4"):
    return RANDOM.integers(-10, 10, n).astype(kind)


class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.torch = library("torch")

    def tensor(self, x):
        return self.torch.from_numpy(x).cuda()

    def late(self):
        """Keeps the current stream busy for a while."""
        self.torch.cuda._sleep(LATE)

    def test_results(self):
        torch = self.torch
        for n in SIZES:
            x = numbers(n)
            made = spec("mss")(self.tensor(x))
            self.assertEqual((type(made), made.dtype, made.shape, made.device.type), (torch.Tensor, torch.int32, (), "cuda"))
            self.assertEqual(made.item(), self.kadane(x))
            made, total = spec("scan_sum")(self.tensor(x.astype("f4")))
            np.testing.assert_array_equal(made.cpu().numpy(), np.cumsum(x))
            self.assertEqual(total.item(), x.sum())

    @staticmethod
    def kadane(x):
        best = sums = 0
        for value in x.tolist():
            sums = max(sums + value, 0)
            best = max(best, sums)
        return best

    def test_new_tensors(self):
        """Of many sizes in turn, freed and made again, on streams, and on a device that is not the current one."""
        torch, f = self.torch, ptxgen.map({"x": "f32[m, n]"}, outputs={"y": ("f32[m, n]", lambda x: x * x + 1)})
        for i in range(60):
            device, shape = f"cuda:{i // 7 % torch.cuda.device_count()}", ((3, 5), (1, 1000), (0, 4), (64, 1), (7, 7), (1, 1))[i % 6]
            x = torch.randn(shape, device=device)
            with torch.cuda.stream(torch.cuda.Stream(device)) if i % 5 == 0 else contextlib.nullcontext():
                torch.cuda.current_stream(device).wait_stream(torch.cuda.default_stream(device))
                made, given = f(x), torch.empty_like(x)
                f(x, out=given)
                self.assertTrue(torch.equal(made, given))
                torch.testing.assert_close(made, x * x + 1)
            self.assertEqual((type(made), made.shape, made.device, made.requires_grad, made.is_contiguous()), (torch.Tensor, x.shape, x.device, False, True))
        before = torch.cuda.memory_allocated()
        for _ in range(100):
            f(x)
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_types(self):
        torch = self.torch
        for kind, type_ in (("f16", torch.float16), ("bf16", torch.bfloat16), ("f32", torch.float32), ("f64", torch.float64),
                            ("i8", torch.int8), ("i16", torch.int16), ("i32", torch.int32), ("i64", torch.int64), ("u8", torch.uint8)):
            with self.subTest(kind):
                f = ptxgen.scan({"x": f"{kind}[n]"}, "max", outputs={"y": f"{kind}[n]"})
                x = torch.randint(0, 100, (1000,), device="cuda").to(type_)
                made = f(x)
                self.assertEqual(made.dtype, type_)
                self.assertTrue(torch.equal(made.double(), torch.cummax(x.double(), 0).values))
        flags = torch.rand(1000, device="cuda") > 0.999
        self.assertEqual(ptxgen.reduce({"x": "bool[n]"}, "or", outputs={"any": "bool"})(flags).item(), bool(flags.any()))

    def test_rows_and_views(self):
        torch, f = self.torch, spec("row_sum")
        x = self.tensor(numbers(60 * 70, "f4").reshape(60, 70))
        self.assertTrue(torch.equal(f(x), x.sum(1)))
        for begin in range(5):  # addresses of all alignments
            part = x.flatten()[begin:begin + 1000]
            self.assertEqual(spec("sum")(part).item(), part.sum().item())
        for wrong in (x.t(), x[:, ::2]):
            with self.assertRaisesRegex(ptxgen.UsageError, "does not lie in row-major order"):
                f(wrong)

    def test_conjugates(self):
        torch, f = self.torch, spec("complex_product")
        z = torch.tensor([1 + 2j, 3 - 1j, 2j], device="cuda", dtype=torch.complex64)
        for _ in range(3):
            np.testing.assert_array_equal(f(z).cpu(), [z.prod().real.item(), z.prod().imag.item()])
        with self.assertRaisesRegex(ptxgen.UsageError, "resolve_conj"):
            f(z.conj())
        np.testing.assert_array_equal(f(z.conj().resolve_conj()).cpu(), [z.prod().real.item(), -z.prod().imag.item()])

    def test_calls_on_the_current_stream_that_wait_for_nothing(self):
        torch, f = self.torch, spec("scan_sum")
        x = torch.ones(1 << 20, device="cuda")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            f(x)
        torch.cuda.synchronize()
        for words in ({}, {"stream": None}, {"stream": stream}, {"stream": stream.cuda_stream}):
            with torch.cuda.stream(stream):
                self.late()
                x.fill_(3)  # seen only by what comes after on this stream
            out = torch.empty_like(x), torch.empty((), device="cuda")
            begin = time.perf_counter()
            with torch.cuda.stream(None if words.get("stream") else stream):
                made = f(x, out=out, **words)
            self.assertLess(time.perf_counter() - begin, 0.03)
            torch.cuda.synchronize()
            self.assertEqual(made.total.item(), 3 << 20)
            x.fill_(1)
            torch.cuda.synchronize()

    def test_graphs(self):
        torch, f = self.torch, spec("scan_sum")
        x = torch.ones(1 << 20, device="cuda")
        out = (torch.empty_like(x), torch.empty((), device="cuda"))
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        f.prepare(x, out=out, stream=stream)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            f(x, out=out)
            new = f(x)
        for value in (2, 5):
            x.fill_(value)
            graph.replay()
            torch.cuda.synchronize()
            self.assertEqual((out[1].item(), new.total.item(), out[0][-1].item()), (value << 20,) * 3)

    def test_a_capture_without_preparation_is_refused(self):
        torch, x = self.torch, self.torch.ones(1000, device="cuda")
        f, graph, stream = spec("sum"), torch.cuda.CUDAGraph(), torch.cuda.Stream()
        out = torch.empty((), device="cuda")
        with self.assertRaisesRegex(ptxgen.UsageError, r"f.prepare\(\)"), torch.cuda.graph(graph, stream=stream):
            x.add_(1)
            f(x, out=out)
        torch.cuda.synchronize()
        self.assertEqual(f(x).item(), x.sum().item())

    def test_errors(self):
        torch, f = self.torch, spec("dot")
        x = torch.ones(10, device="cuda")
        for y, pattern in ((x.cpu(), "'y' is on the host"), (x.double(), "'y' has elements of type f64"), (x[:5], "'y' has 5 elements")):
            with self.assertRaisesRegex(ptxgen.UsageError, pattern):
                f(x, y)
        self.assertEqual(f(x.cpu(), x.cpu()).device.type, "cpu")

    def test_tensors_that_require_gradients_are_read(self):
        x = self.torch.ones(10, device="cuda").requires_grad_()
        made = spec("dot")(x, x)
        self.assertEqual((made.item(), made.requires_grad), (10, False))

    def test_verify_and_tune(self):
        f, x = spec("scan_sum"), self.torch.randn(100000, device="cuda")
        self.assertEqual(f.verify(x), 100001)
        with tempfile.TemporaryDirectory() as folder:
            rows = f.tune(x, limit=6, samples=3, file=os.path.join(folder, "tuning.yaml"))
            self.assertGreater(len(rows), 1)
            self.assertEqual(f.verify(x), 100001)

    def test_programs_are_verified(self):
        self.assertEqual(spec("apps/heat").verify(self.torch.rand(20, 30, device="cuda"), steps=5), 5 * 602)

    def test_programs_are_tuned(self):
        f, u = spec("apps/heat"), self.torch.rand(200, 300, device="cuda")
        with tempfile.TemporaryDirectory() as folder:
            rows = f.tune(u, steps=20, limit=4, samples=3, file=os.path.join(folder, "tuning.yaml"))
            self.assertTrue(all(row[0] == "default" or row[0].startswith("sweep:") for row in rows), rows)
            self.assertGreater(len(rows), 1)
            self.assertEqual(f.verify(u, steps=5), 5 * (200 * 300 + 2))

    def test_threads(self):
        torch, f, wrong = self.torch, spec("scan_sum"), []

        def run(value):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                x = torch.full((10000,), float(value), device="cuda")
                for _ in range(200):
                    made = f(x)
                stream.synchronize()
                if made.total.item() != value * 10000:
                    wrong.append(value)

        threads = [threading.Thread(target=run, args=(value,)) for value in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_hundred_thousand_calls(self):
        torch, f = self.torch, spec("sum")
        x = torch.ones(1000, device="cuda")
        f(x)
        before = torch.cuda.memory_allocated()
        self.assertLess(growth(lambda: f(x), 100000), 4 << 20)
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def operators(self, *names):
        """Specs of GRADIENTS as operators of PyTorch, with their arguments."""
        register = importlib.import_module("ptxgen.torch").op
        for name in names:
            text, shapes = GRADIENTS[name]
            f = ptxgen.compile(text)
            yield name, register(f, wrt=list(shapes)), tuple(
                self.tensor(np.asarray(RANDOM.uniform(0.5, 1.5, shapes[x]))).requires_grad_() if x in shapes else self.tensor(FIXED[x]) for x in f.inputs)

    def test_gradcheck(self):
        for name, op, args in self.operators(*GRADIENTS):
            def function(*args, op=op, inside=name == "interior"):
                return op(*args)[1:-1, 1:-1] if inside else op(*args)  # nothing writes the points at the edge

            with self.subTest(name):
                self.assertTrue(self.torch.autograd.gradcheck(function, args, nondet_tol=1e-9))

    def test_opcheck_and_compile(self):
        torch = self.torch
        for name, op, args in self.operators("own sums", "softmax", "recurrence", "burgers"):
            with self.subTest(name):
                torch.library.opcheck(op, args)

                def loss(*args, op=op):
                    return (op(*args) ** 2).sum()

                wanted = torch.autograd.grad(loss(*args), args)
                made = torch.autograd.grad(torch.compile(loss, fullgraph=True, backend="aot_eager")(*args), args)  # one graph, or an error
                for got, want in zip(made, wanted):
                    torch.testing.assert_close(got, want)

    def test_inductor(self):
        """torch.compile as users call it: one graph, and the results and gradients of eager calls; the second shape makes sizes dynamic."""
        torch, register = self.torch, importlib.import_module("ptxgen.torch").op
        if not importlib.util.find_spec("triton"):
            self.skipTest("triton is not here")
        if not any(map(shutil.which, filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")))):
            self.skipTest("no C compiler is here, and triton needs one")
        for name, shapes in (("sum", ((1000,), (777,))), ("softmax", ((64, 1000), (33, 77)))):
            def loss(x, op=register(spec(name))):
                return (op(x * 2) ** 2).sum()

            compiled = torch.compile(loss, backend="inductor", fullgraph=True)
            for shape in shapes:
                with self.subTest(name, shape=shape):
                    x = torch.randint(-3, 4, shape, device="cuda").float().requires_grad_()
                    made, wanted = compiled(x), loss(x)
                    torch.testing.assert_close(made, wanted)
                    torch.testing.assert_close(*(torch.autograd.grad(y, x)[0] for y in (made, wanted)))

    def test_arrays_of_our_own(self):
        torch, x = self.torch, self.torch.arange(1000, dtype=self.torch.float32, device="cuda")

        class Interface:
            __cuda_array_interface__ = x.__cuda_array_interface__

        f = ptxgen.scan({"x": "f32[n]"}, "add", outputs={"y": "f32[n]"})
        torch.cuda.synchronize()
        made = f(Interface())
        self.assertIsInstance(made, ptxgen.Array)
        self.assertTrue(torch.equal(torch.from_dlpack(made), torch.cumsum(x, 0)))
        self.assertTrue(torch.equal(torch.as_tensor(made, device="cuda"), torch.cumsum(x, 0)))

    def test_what_the_page_shows(self):
        """Without the examples of libraries that are not here; that of tvm-ffi needs a file that is compiled by hand."""
        for block in re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/python.md").read_text(encoding="utf-8"), re.M | re.S):
            libraries = re.findall(r"^import (\w+)$", block, re.M)
            if "tvm_ffi" in libraries or not all(map(importlib.util.find_spec, libraries)):
                continue
            previous = os.getcwd()
            os.chdir(ROOT)
            try:
                exec(compile(block, "docs/python.md", "exec"), {})
            finally:
                os.chdir(previous)
            self.torch.cuda.synchronize()


class Cupy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cupy = library("cupy")

    def test_results(self):
        cupy = self.cupy
        for n in SIZES:
            x = numbers(n, "f4")
            made = spec("scan_sum")(cupy.asarray(x))
            self.assertIsInstance(made[0], cupy.ndarray)
            np.testing.assert_array_equal(made[0].get(), np.cumsum(x))
            out = cupy.zeros_like(made[0]), cupy.zeros((), "f4")
            spec("scan_sum")(cupy.asarray(x), out=out)
            np.testing.assert_array_equal(out[0].get(), np.cumsum(x))
        for wrong in (cupy.ones(10, "f4")[::2], cupy.ones(10, "f8")):
            with self.assertRaises(ptxgen.UsageError):
                spec("scan_sum")(wrong)
        z = np.array([1 + 2j, 3 - 1j, 2j], "c8")
        np.testing.assert_array_equal(spec("complex_product")(cupy.asarray(z)).get(), [np.prod(z).real, np.prod(z).imag])

    def test_streams_and_graphs(self):
        cupy, f = self.cupy, spec("scan_sum")
        x = cupy.ones(1 << 20, "f4")
        out = cupy.empty_like(x), cupy.empty((), "f4")
        stream = cupy.cuda.Stream(non_blocking=True)
        f.prepare(x, out=out, stream=stream)
        x *= 2  # loads CuPy's kernel
        x.fill(1)
        cupy.cuda.Device().synchronize()
        with stream:
            stream.begin_capture()
            x *= 2
            f(x, out=out)
            graph = stream.end_capture()
            for i in range(1, 4):
                graph.launch(stream)
                stream.synchronize()
                self.assertEqual(out[1].item(), (1 << i) << 20)
            x.fill(1)
            self.assertEqual(f(x).total.item(), 1 << 20)

    def test_a_hundred_thousand_calls(self):
        f, x = spec("sum"), self.cupy.ones(1000, "f4")
        self.assertLess(growth(lambda: f(x), 100000), 4 << 20)


class Jax(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.jax = library("jax")

    def test_results(self):
        jax, f = self.jax, spec("scan_sum")
        for n in SIZES:
            x = numbers(n, "f4")
            array = jax.numpy.asarray(x) * 1
            made, total = f(array)
            self.assertIsInstance(made, jax.Array)
            self.assertEqual(made.devices(), array.devices())
            np.testing.assert_array_equal(np.asarray(made), np.cumsum(x))
            self.assertEqual(float(total), x.sum())
        with self.assertRaisesRegex(ptxgen.UsageError, "read-only"):
            f(array, out=(array, total))


class Numba(unittest.TestCase):
    def test_results(self):
        cuda = library("numba.cuda")
        x = numbers(1000, "f4")
        made = spec("scan_sum")(cuda.to_device(x))[0]
        np.testing.assert_array_equal(cuda.as_cuda_array(made).copy_to_host(), np.cumsum(x))


class Mixed(unittest.TestCase):
    def test_arrays_of_two_libraries(self):
        torch, cupy = library("torch"), library("cupy")
        x, y = torch.ones(1000, device="cuda"), cupy.ones(1000, "f4")
        cupy.cuda.Device().synchronize()
        made = spec("dot")(x, y)
        self.assertIsInstance(made, torch.Tensor)
        self.assertEqual(made.item(), 1000)
        torch.cuda.synchronize()
        self.assertIsInstance(spec("dot")(y, x), cupy.ndarray)


if __name__ == "__main__":
    unittest.main()
