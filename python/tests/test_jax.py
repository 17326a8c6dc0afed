# SPDX-License-Identifier: Apache-2.0
"""ptxgen.jax beside a stand-in for the entry points of JAX that it uses.  The stand-in calls the handlers as XLA does: through call frames
of XLA's binary interface, with buffers of its own, on the host executor and beside the driver that records."""
import contextlib
import ctypes
import importlib
import pathlib
import subprocess
import sys
import types
import unittest
from unittest import mock

import numpy as np

import ptxgen

import stand_ins

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(3)
TYPES = {"?": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "u1": 6, "u2": 7, "u4": 8, "u8": 9, "f2": 10, "f4": 11, "f8": 12, "c8": 15}
c_int, c_int64, c_size, c_pointer, c_text = ctypes.c_int, ctypes.c_int64, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
driver = stand_ins.driver()


def structure(name, *fields):
    """A structure of XLA's, which begins with its size and a pointer to extensions."""
    made = type(name, (ctypes.Structure,), {"_fields_": [("size", c_size), ("extension", c_pointer), *fields]})
    made.of = classmethod(lambda cls, **values: cls(size=ctypes.sizeof(cls), **values))
    return made


Version = structure("Version", ("major", c_int), ("minor", c_int))
NewError = structure("NewError", ("message", c_text), ("code", c_int))
EndError = structure("EndError", ("error", c_pointer))
Stream = structure("Stream", ("context", c_pointer), ("stream", c_pointer))
create_error = ctypes.CFUNCTYPE(c_pointer, ctypes.POINTER(NewError))
end_error = ctypes.CFUNCTYPE(None, ctypes.POINTER(EndError))
get_stream = ctypes.CFUNCTYPE(c_pointer, ctypes.POINTER(Stream))
Api = structure("Api", ("version", Version), ("internal", c_pointer), ("create", create_error), ("message", c_pointer), ("end", end_error),
                ("register", c_pointer), ("stream", get_stream))
Buffer = structure("Buffer", ("type", c_int), ("data", c_pointer), ("rank", c_int64), ("shape", ctypes.POINTER(c_int64)))
Items = structure("Items", ("count", c_int64), ("kinds", ctypes.POINTER(c_int)), ("values", ctypes.POINTER(c_pointer)))
Attributes = structure("Attributes", ("count", c_int64), ("kinds", ctypes.POINTER(c_int)), ("names", ctypes.POINTER(c_pointer)),
                       ("values", ctypes.POINTER(c_pointer)))
Frame = structure("Frame", ("api", ctypes.POINTER(Api)), ("context", c_pointer), ("stage", c_int), ("arguments", Items), ("results", Items),
                  ("attributes", Attributes), ("future", c_pointer))


class Metadata(ctypes.Structure):
    _fields_ = [("size", c_size), ("version", Version), ("traits", ctypes.c_uint32)]


class Extension(ctypes.Structure):
    _fields_ = [("size", c_size), ("type", c_int), ("next", c_pointer), ("metadata", ctypes.POINTER(Metadata))]


class Span(ctypes.Structure):
    _fields_ = [("text", c_text), ("length", c_size)]


class XlaError(Exception):
    pass


class Xla:
    """A runtime: what it knows of handlers, and calls of them."""

    def __init__(self, minor=1):
        self.targets, self.errors, self.now, self.log = {}, {}, types.SimpleNamespace(stream=0x510, platform="cpu", memory=True), []
        self.functions = create_error(self.create), end_error(lambda end: self.errors.pop(end.contents.error) and None), get_stream(self.stream)
        self.api = Api.of(version=Version.of(major=0, minor=minor), create=self.functions[0], end=self.functions[1], stream=self.functions[2])

    def create(self, new):
        self.errors[len(self.errors) + 1] = new.contents.code, new.contents.message.decode()
        return len(self.errors)

    def stream(self, asked):
        if self.now.stream is None:
            self.errors[77] = 13, "no stream"
            return 77
        asked.contents.stream = self.now.stream
        return None

    def register(self, name, stages, platform):
        for handler in stages.values():
            metadata = Metadata(ctypes.sizeof(Metadata), Version.of(major=9, minor=9), 9)
            extension = Extension(ctypes.sizeof(Extension), 1, None, ctypes.pointer(metadata))
            other = Extension(ctypes.sizeof(Extension), 5, ctypes.addressof(extension), None)
            frame = Frame.of(api=ctypes.pointer(self.api), stage=3, extension=ctypes.addressof(other))
            assert not self.entry(handler)(ctypes.byref(frame))
            assert (metadata.version.major, metadata.version.minor) == (0, self.api.version.minor)
            assert metadata.traits == (platform == "CUDA" and name == "ptxgen")
        assert (name, platform) not in self.targets
        self.targets[name, platform] = stages

    @staticmethod
    def entry(capsule):
        return ctypes.CFUNCTYPE(c_pointer, ctypes.POINTER(Frame))(stand_ins.capsule_pointer(capsule, b"xla._CUSTOM_CALL_TARGET"))

    @staticmethod
    def items(arrays):
        buffers = [Buffer.of(type=TYPES.get(x.dtype.str[1:].replace("b1", "?"), 0), data=x.ctypes.data, rank=x.ndim,
                             shape=(c_int64 * max(x.ndim, 1))(*x.shape)) for x in arrays]
        n = max(len(arrays), 1)
        made = Items.of(count=len(arrays), kinds=(c_int * n)(*[1] * len(arrays)), values=(c_pointer * n)(*map(ctypes.addressof, buffers)))
        made.buffers = buffers
        return made

    def call(self, target, arguments, results, attributes, stages=("initialize", "execute")):
        names = [Span(name.encode(), len(name)) for name in sorted(attributes)]
        values = [Span(attributes[name].encode(), len(attributes[name])) for name in sorted(attributes)]
        n = len(names)
        texts = Attributes.of(count=n, kinds=(c_int * n)(*[4] * n), names=(c_pointer * n)(*map(ctypes.addressof, names)),
                              values=(c_pointer * n)(*map(ctypes.addressof, values)))
        handlers = self.targets[target, self.now.platform]
        for stage in stages:
            if stage in handlers:
                taken, made = self.items(arguments), self.items(results)  # these live until the call is over
                frame = Frame.of(api=ctypes.pointer(self.api), stage={"initialize": 2, "execute": 3}[stage], arguments=taken, results=made, attributes=texts)
                error = self.entry(handlers[stage])(ctypes.byref(frame))
                if error:
                    raise XlaError(*self.errors.pop(error))
                assert not self.errors


def room(shape, dtype):
    """Zeros at an address as XLA's, which are multiples of 256."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 256, "u1")
    at = -memory.ctypes.data % 256
    return memory[at:at + size].view(dtype).reshape(shape)


def stand_in(xla, old=False):
    """As JAX is now; old: as 0.4.35."""
    jax = types.ModuleType("jax")

    class custom_vjp:
        def __init__(self, function):
            self.function, jax.last = function, self

        def defvjp(self, forward, backward):
            self.forward, self.backward = forward, backward

        def __call__(self, *args):
            return self.function(*args)

    def run(target, results, arguments, attributes):
        given = [room(x.shape, x.dtype) for x in arguments]
        for to, x in zip(given, arguments):
            to[...] = x
        made = [room(x.shape if xla.now.memory or i + 1 < len(results) else (0,), x.dtype) for i, x in enumerate(results)]
        xla.log.append((target, attributes, given, made))
        xla.call(target, given, made, attributes)
        return made

    def ffi_call(target, results, *, vmap_method=None):
        assert vmap_method == "sequential"
        return lambda *arguments, **attributes: run(target, results, arguments, attributes)

    def old_ffi_call(target, results, *args, vectorized=False, **attributes):  # pylint: disable=unused-argument
        return run(target, results, args, attributes)

    ffi = types.ModuleType("jax.extend.ffi" if old else "jax.ffi")
    ffi.register_ffi_target = lambda name, fn, platform="cpu": xla.register(name, fn, platform)
    ffi.ffi_call = old_ffi_call if old else ffi_call
    jax.numpy, jax.custom_vjp = np, custom_vjp
    jax.ShapeDtypeStruct = lambda shape, dtype: types.SimpleNamespace(shape=shape, dtype=np.dtype(dtype))
    jax.default_backend = lambda: "gpu" if xla.now.platform == "CUDA" else "cpu"
    jax.local_devices = lambda: [types.SimpleNamespace(local_hardware_id=0)]
    if old:
        extend = types.ModuleType("jax.extend")
        extend.ffi = ffi
        return {"jax": jax, "jax.extend": extend, "jax.extend.ffi": ffi}
    jax.ffi = ffi
    return {"jax": jax, "jax.ffi": ffi}


def spec(name, **options):
    return ptxgen.load(ROOT / f"specs/{name}.yaml", **options)


class Case(unittest.TestCase):
    def begin(self, old=False, minor=1):
        self.xla = Xla(minor)
        modules = stand_in(self.xla, old)
        self.jax = modules["jax"]
        sys.modules.pop("ptxgen.jax", None)
        with mock.patch.dict(sys.modules, modules):
            self.op = importlib.import_module("ptxgen.jax").op

    def setUp(self):
        self.begin()
        self.addCleanup(lambda: (sys.modules.pop("ptxgen.jax", None), hasattr(ptxgen, "jax") and delattr(ptxgen, "jax")))


class Host(Case):
    def test_results(self):
        x, y = (RANDOM.standard_normal(50).astype("f4") for _ in range(2))
        rows = RANDOM.standard_normal((3, 40)).astype("f4")
        keys = RANDOM.integers(0, 7, 100).astype("i4")
        for old, minor in ((False, 1), (True, 0), (False, 7)):
            self.begin(old, minor)
            for name, args, words in (("row_softmax", [rows], {}), ("scan_sum", [x], {}), ("half_sum", [x.astype("f2")], {}),
                                      ("segment_mean", [x, np.array([0, 3, 50], "i4")], {}), ("counts_by_key", [keys], {"k": 7}),
                                      ("saxpy", [x, y], {"a": 2.5}), ("scan_affine", [x, y], {})):
                f = spec(name)
                wanted, made = f(*args, **words), self.op(f)(*args, **words)
                self.assertEqual(isinstance(wanted, tuple), isinstance(made, tuple), name)
                for got, want in zip(made, wanted) if isinstance(made, tuple) else [(made, wanted)]:
                    np.testing.assert_array_equal(got, want, err_msg=name)

    def test_records(self):
        """Keys follow from the contents: other params and sizes are other records, and equal ones are one."""
        x, y = np.ones(5, "f4"), np.ones(5, "f4")
        for f, args, a in ((spec("saxpy"), (x, y), 1.0), (spec("saxpy"), (x, y), 1.0), (spec("saxpy"), (x, y), 2.0), (spec("saxpy"), (x[1:], y[1:]), 1.0),
                           (spec("saxpy", arch="sm_90"), (x, y), 1.0)):
            np.testing.assert_array_equal(self.op(f)(*args, a=a), args[0] * a + 1)
        keys = [attributes["call"] for _, attributes, _, _ in self.xla.log]
        self.assertEqual([keys.index(key) for key in keys], [0, 0, 2, 3, 4])

    def test_gradients(self):
        x, w, g = (RANDOM.standard_normal(shape).astype("f4") for shape in ((3, 40), (40,), (3, 40)))
        for name, args, grad, words in (("softmax", (x,), g, {}), ("rms_norm", (x, w), g, {"eps": 0.5}), ("scan_sum", (w,), (g[0].copy(), np.array(2, "f4")), {}),
                                        ("sum", (w,), np.array(2, "f4"), {})):
            f = spec(name)
            back = ptxgen.vjp(f)
            every = {**dict(zip(f.inputs, args)), **{f"grad_{out}": y for out, y in zip(f.outputs, grad if isinstance(grad, tuple) else (grad,))}}
            wanted = back(**{key: every[key] for key in back.inputs}, **({} if name == "sum" else words), **({"n": 40} if name == "sum" else {}))
            self.op(f)(*args, **words)
            made, kept = self.jax.last.forward(*args)
            self.assertEqual(isinstance(made, tuple), len(f.outputs) > 1)
            for got, want in zip(self.jax.last.backward(kept, grad), wanted if isinstance(wanted, tuple) else (wanted,)):
                np.testing.assert_array_equal(got, want, err_msg=name)

    def test_no_gradient(self):
        self.op(spec("max_norm"))(np.array([[1, -4]], "f4"))
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "operator max has no gradient"):
            self.jax.last.forward(np.array([[1, -4]], "f4"))
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "operator max has no gradient"):
            self.op(spec("max_norm"), wrt=["x"])

    def test_refusals_while_tracing(self):
        x, y = np.ones(5, "f4"), np.ones(6, "f4")
        saxpy, counts = self.op(spec("saxpy")), self.op(spec("counts_by_key"))
        for call, kind, text in ((lambda: saxpy(x, a=1.0), TypeError, "takes 2 arrays, x, y, and was given 1"),
                                 (lambda: saxpy(x, x), TypeError, "misses param 'a'"),
                                 (lambda: saxpy(x, x, a=1.0, b=2), TypeError, "no keyword 'b'; it takes a"),
                                 (lambda: saxpy(x, x, a=1.0, x=x), TypeError, "no keyword 'x'"),
                                 (lambda: saxpy(x, x, a="1"), TypeError, "param 'a' is f32, which '1' is not"),
                                 (lambda: saxpy(x, y, a=1.0), ptxgen.UsageError, "array 'y' has 6 elements in dimension 0; the other arrays ask for 5"),
                                 (lambda: saxpy(x, x.astype("f8"), a=1.0), ptxgen.UsageError, r"array 'y' is float64\[5\]; the spec says f32\[n\]"),
                                 (lambda: saxpy(x, x.reshape(1, 5), a=1.0), ptxgen.UsageError, r"array 'y' is float32\[1, 5\]"),
                                 (lambda: counts(np.ones(3, "i4")), TypeError, "misses size 'k'")):
            with self.assertRaisesRegex(kind, text):
                call()
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "array of structures"):
            self.op(spec("complex_product"))

    def test_refusals_while_running(self):
        """What does not fit the record comes back as an error of XLA's, with a message."""
        x = np.ones(5, "f4")
        self.op(spec("saxpy"))(x, x, a=1.0)
        target, attributes, given, made = self.xla.log[0]
        for arguments, results, call, code, text in (
                ([given[0], np.ones(5)], made, attributes["call"], 3, "array 'y' has elements of type f64; the spec says f32"),
                ([given[0], room((6,), "f4")], made, attributes["call"], 3, "array 'y' has 6 elements in dimension 0; the traced call asks for 5"),
                ([given[0], room((5, 1), "f4")], made, attributes["call"], 3, "array 'y' has 2 dimensions; the spec says 1"),
                (given[:1], made, attributes["call"], 3, "'saxpy' was called with 1 inputs and 1 outputs"),
                ([given[0], room((1,) * 9, "f4")], made, attributes["call"], 3, "more than 7 dimensions"),
                (given, [room((4,), "f4"), made[1]], attributes["call"], 3, "array 'z' has 4 elements"),
                (given, made, "saxpy-0", 3, "this process has not traced the call 'saxpy-0' of ptxgen")):
            with self.assertRaises(XlaError) as caught:
                self.xla.call(target, arguments, results, {"call": call})
            self.assertEqual(caught.exception.args[0], code)
            self.assertIn(text, caught.exception.args[1])
        with self.assertRaises(XlaError) as caught:
            self.xla.call(target, given, made, {"other": "x"})
        self.assertIn("no attribute 'call'", caught.exception.args[1])
        self.xla.call(target, given, made, attributes)

    def test_only_on_request(self):
        done = subprocess.run([sys.executable, "-c", "import ptxgen, sys; sys.exit(any('jax' in name for name in sys.modules))"], check=False)
        self.assertEqual(done.returncode, 0)


@unittest.skipUnless(driver, "PTXGEN_LIBCUDA names no fake driver")
class Gpu(Case):
    def setUp(self):
        super().setUp()
        driver.devices, driver.capturing, driver.capture_spoiled = 2, 0, 0
        self.xla.now.platform = "CUDA"
        self.x = np.ones(100000, "f4")

    def tearDown(self):
        driver.capturing, driver.fail, driver.devices = 0, None, 1

    @contextlib.contextmanager
    def calls(self):
        """The names of the driver's functions that are called, in order."""
        names = []
        driver.forget()
        yield names
        names += [call.name.decode() for call in driver.calls("cu")]

    def test_stream_and_memory(self):
        op = self.op(spec("scan_sum"))
        op(self.x)
        memory = self.xla.log[0][3][-1]
        self.assertGreater(memory.size, 0)
        with self.calls() as names:
            op(self.x)
        self.assertEqual(sorted(set(names)), sorted({"cuMemsetD8Async", *(name for name in names if name.startswith("cuLaunchKernel"))}))
        self.assertEqual({call.stream for call in driver.calls("cu")}, {0x510})
        memory = self.xla.log[1][3][-1]
        filled = driver.calls("cuMemsetD8Async")[0]
        self.assertEqual(filled.a, memory.ctypes.data)
        self.assertLessEqual(filled.b, memory.size)

    def test_a_command_buffer(self):
        op = self.op(spec("scan_sum"))
        with mock.patch.object(self.xla, "call"):
            op(self.x)  # traced, and not run
        target, attributes, given, made = self.xla.log[0]
        self.xla.call(target, given, made, attributes, ["initialize"])
        driver.capturing = 1
        self.xla.now.stream = 0x520  # XLA captures on another stream
        with self.calls() as names:
            self.xla.call(target, given, made, attributes, ["execute"])
        self.assertTrue(any(name.startswith("cuLaunchKernel") for name in names))
        self.assertEqual(driver.capture_spoiled, 0)
        self.assertEqual({call.stream for call in driver.calls("cu")}, {0x520})

    def test_without_a_workspace(self):
        """A program for another device: the call works in memory that is kept for the stream."""
        op = self.op(spec("scan_sum"))
        self.xla.now.memory = False
        with self.calls() as names:
            op(self.x)
        self.assertTrue(any(name.startswith("cuMemAlloc") for name in names))
        with self.calls() as names:
            op(self.x)
        self.assertFalse(any(name.startswith("cuMemAlloc") for name in names))

    def test_another_device(self):
        op = self.op(spec("scan_sum"))
        op(self.x)
        here = {call.context for call in driver.calls("cuLaunchKernel")}
        driver.forget()
        self.xla.now.stream = 0x10510
        op(self.x)
        there = {call.context for call in driver.calls("cuLaunchKernel")}
        self.assertEqual((len(here), len(there), here & there), (1, 1, set()))

    def test_loops_that_the_host_ends(self):
        self.assertEqual(self.op.__globals__["Call"](spec("apps/kmeans"), None).target, "ptxgen_waits")
        self.assertEqual(self.op.__globals__["Call"](spec("sum"), None).target, "ptxgen")

    def test_faults(self):
        op = self.op(spec("scan_sum"))
        op(self.x)
        self.xla.now.stream = None
        with self.assertRaisesRegex(XlaError, "XLA gives no stream"):
            op(self.x)
        self.xla.now.stream = 0x510
        driver.fail, driver.fail_result = b"cuStreamGetCtx", 400
        with self.assertRaisesRegex(XlaError, "cuStreamGetCtx.*failed"):
            op(self.x)
        driver.fail = b"cuMemsetD8Async"
        with self.assertRaisesRegex(XlaError, "cuMemsetD8Async.*failed"):
            op(self.x)
        driver.fail = None
        op(self.x)

    def test_many_calls(self):
        from test_process import growth
        op = self.op(spec("scan_sum"))
        with mock.patch.object(self.xla, "call"):
            op(self.x)
        target, attributes, given, made = self.xla.log[0]
        self.assertLess(growth(lambda: self.xla.call(target, given, made, attributes, ["execute"]), 20000), 1 << 19)


if __name__ == "__main__":
    unittest.main()
