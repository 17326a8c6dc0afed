# SPDX-License-Identifier: Apache-2.0
"""ptxgen.torch beside a stand-in for the three entry points of torch.library that it uses: what is registered, in which order, with which
arguments, and what it computes when it is called as PyTorch calls it."""
import importlib
import pathlib
import re
import subprocess
import sys
import types
import unittest
from unittest import mock

import numpy as np

import ptxgen

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(5)
DTYPES = {"float16": "f2", "float32": "f4", "float64": "f8", "bool": "?", "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8", "int8": "i1",
          "int16": "i2", "int32": "i4", "int64": "i8"}


class Tensor(np.ndarray):
    """With the two methods that are called."""

    def contiguous(self):
        return np.ascontiguousarray(self)

    def new_empty(self, shape, dtype):
        return np.empty(shape, dtype).view(Tensor)


class Operator:
    """What custom_op gives."""

    def __init__(self, log, name, function, schema):
        self.log, self.name, self.function = log, name, function
        arguments, self.results = re.fullmatch(r"\((.*)\) -> (.*)", schema).groups()
        self.arguments = [re.fullmatch(r"(Tensor|SymInt|float\?|int\?|bool\?) (\w+)(=None)?", text).groups() for text in arguments.split(", ")]

    def fill(self, args, words):
        """All arguments in their order."""
        args = list(args) + [words.pop(name) if name in words else None for _, name, _ in self.arguments[len(args):]]
        assert not words and all(x is not None or default for x, (_, _, default) in zip(args, self.arguments))
        return args

    def __call__(self, *args, **words):
        args = self.fill(args, words)
        while args and args[-1] is None:  # the dispatcher leaves out what has its default
            args.pop()
        made = self.function(*args)
        assert isinstance(made, tuple) == (self.results != "Tensor")
        assert not isinstance(made, tuple) or self.results == f"({', '.join(['Tensor'] * len(made))})"
        return made

    def register_fake(self, function):
        self.log.append(("fake", self.name))
        self.fake = function

    def register_autograd(self, backward, *, setup_context):
        self.log.append(("autograd", self.name))
        self.backward, self.setup_context = backward, setup_context

    def gradient(self, args, grads):
        """Forward, then backward, as autograd does it."""
        args, ctx = self.fill(args, {}), types.SimpleNamespace()
        ctx.save_for_backward = lambda *tensors: setattr(ctx, "saved_tensors", tensors)
        self.setup_context(ctx=ctx, inputs=tuple(args), output=self.function(*args))
        made = self.backward(ctx, *(g.view(Tensor) for g in grads))
        assert isinstance(made, tuple) and len(made) == len(self.arguments)
        return made


def stand_in():
    log, torch = [], types.ModuleType("torch")
    for name, dtype in DTYPES.items():
        setattr(torch, name, dtype)

    def custom_op(name, function, /, *, mutates_args, schema):
        assert re.fullmatch(r"ptxgen::\w+", name) and mutates_args == ()
        log.append(("op", name, schema))
        torch.made[name] = Operator(log, name, function, schema)
        return torch.made[name]

    torch.library, torch.log, torch.made = types.SimpleNamespace(custom_op=custom_op), log, {}
    return torch


def spec(name):
    return ptxgen.load(ROOT / f"specs/{name}.yaml")


class Torch(unittest.TestCase):
    def setUp(self):
        self.torch = stand_in()
        with mock.patch.dict(sys.modules, {"torch": self.torch}):
            self.op = importlib.import_module("ptxgen.torch").op
        self.addCleanup(delattr, ptxgen, "torch")

    def test_order_and_schema(self):
        self.op(spec("scan_affine"), "recurrence")
        self.assertEqual(self.torch.log, [
            ("op", "ptxgen::recurrence", "(Tensor a, Tensor b, float? start=None) -> Tensor"), ("fake", "ptxgen::recurrence"),
            ("op", "ptxgen::recurrence_vjp", "(Tensor a, Tensor b, Tensor grad_y, float? start=None) -> (Tensor, Tensor)"),
            ("fake", "ptxgen::recurrence_vjp"), ("autograd", "ptxgen::recurrence")])

    def test_names(self):
        """PyTorch drops an operator whose name is taken, so functions from Python, all called after their kind, have names of their own."""
        functions = [ptxgen.reduce({"x": "f32[n]"}, operator, outputs={"r": "f32"}) for operator in ("add", "max", "add")]
        ops = [self.op(f) for f in functions]
        self.assertIs(ops[0], ops[2])
        for made in ops:
            self.assertRegex(made.name, r"^ptxgen::reduce_[0-9a-f]{12}$")
        self.assertEqual([float(made(np.array([3, 4], "f4"))) for made in ops], [7, 4, 7])
        self.assertEqual(len(self.torch.made), 3)  # add has a gradient
        self.assertIsNot(self.op(functions[0], "other"), ops[0])
        self.assertIsNot(self.op(ptxgen.reduce({"x": "f32[n]"}, "add", outputs={"r": "f32"}, sizes={"n": 2})), ops[0])

    def test_names_do_not_depend_on_the_order(self):
        """torch.compile keeps graphs by names, from process to process."""
        functions = {operator: ptxgen.reduce({"x": "f32[n]"}, operator, outputs={"r": "f32"}) for operator in ("add", "max", "min")}
        names = {operator: self.op(f).name for operator, f in functions.items()}
        with mock.patch.dict(sys.modules, {"torch": stand_in()}):
            sys.modules.pop("ptxgen.torch", None)
            op = importlib.import_module("ptxgen.torch").op
            self.assertEqual({operator: op(functions[operator]).name for operator in ("min", "max", "add")}, names)

    def test_names_that_are_taken(self):
        sums, mosts = (ptxgen.reduce({"x": "f32[n]"}, operator, name="all", outputs={"r": "f32"}) for operator in ("add", "max"))
        x = np.array([3, 4], "f4")
        self.assertEqual(self.op(sums).name, "ptxgen::all")
        self.assertRegex(self.op(mosts).name, r"^ptxgen::all_[0-9a-f]{12}$")
        self.assertEqual([float(self.op(f)(x)) for f in (sums, mosts, sums)], [7, 4, 7])
        with self.assertRaisesRegex(ptxgen.UsageError, "another function is 'ptxgen::all'"):
            self.op(mosts, "all")
        back = self.op(ptxgen.vjp(sums))  # whose name is that of the backward pass of `all`
        self.assertRegex(back.name, r"^ptxgen::all_vjp_[0-9a-f]{12}$")
        np.testing.assert_array_equal(self.op(sums).gradient((x,), (np.array(2, "f4"),))[0], [2, 2])
        with self.assertRaises(ptxgen.UnsupportedError):
            self.op(mosts, "later", wrt=["x"])
        self.assertEqual(self.op(sums, "later").name, "ptxgen::later")  # what was refused took no name

    def test_shapes_before_results(self):
        x = RANDOM.integers(0, 9, 100)
        for name, args in (("row_softmax", [np.ones((3, 4), "f4")]), ("scan_sum", [np.ones(5, "f4")]), ("scan_columns", [np.ones((3, 4), "f4")]), ("half_sum", [np.ones(9, "f2")]),
                           ("segment_mean", [np.ones(9, "f4"), np.array([0, 3, 9], "i4")]), ("histogram_at", [x.astype("u1")]),
                           ("counts_by_key", [x.astype("i4"), 7]), ("saxpy", [np.ones(3, "f4"), np.ones(3, "f4"), 2.0])):
            f = spec(name)
            op = self.op(f)
            with self.subTest(name):
                made, fake = op(*args), op.fake(*(x.view(Tensor) if isinstance(x, np.ndarray) else x for x in args))
                self.assertEqual(isinstance(made, tuple), isinstance(fake, tuple))
                for real, known in zip(made, fake) if isinstance(made, tuple) else [(made, fake)]:
                    self.assertEqual((real.shape, real.dtype), (known.shape, known.dtype))

        self.op(spec("rms_norm"))
        fake = self.torch.made["ptxgen::rms_norm_vjp"].fake(*(np.ones(shape, "f4").view(Tensor) for shape in ((3, 4), (4,), (3, 4))))
        self.assertEqual([x.shape for x in fake], [(3, 4), (4,)])

    def test_gradients(self):
        x, w, g = (RANDOM.standard_normal(shape).astype("f4") for shape in ((3, 40), (40,), (3, 40)))
        for name, args, grads, words in (("softmax", (x,), (g,), {}), ("rms_norm", (x, w, 0.5), (g,), {"eps": 0.5}),
                                         ("scan_sum", (w,), (g[0].copy(), np.array(2, "f4")), {}), ("sum", (w,), (np.array(2, "f4"),), {})):
            f, op = spec(name), self.op(spec(name))
            back = ptxgen.vjp(f)
            every = {**dict(zip(f.inputs, args)), **{f"grad_{out}": g for out, g in zip(f.outputs, grads)}}
            wanted = back(**{key: every[key] for key in back.inputs}, **words)
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            with self.subTest(name):
                made = op.gradient(args, grads)
                for got, want in zip(made, wanted):
                    np.testing.assert_array_equal(got, want)
                self.assertEqual(made[len(wanted):], (None,) * (len(made) - len(wanted)))
        column = np.asfortranarray(g)  # a gradient that does not lie in rows is copied
        np.testing.assert_array_equal(self.op(spec("softmax")).gradient((x,), (column,))[0], ptxgen.vjp(spec("softmax"))(x, g))

    def test_a_part(self):
        x, w, b, g = (RANDOM.standard_normal(shape).astype("f4") for shape in ((3, 40), (40,), (40,), (3, 40)))
        made = self.op(spec("layer_norm"), wrt=["bias"], outputs=["y"]).gradient((x, w, b), (g, np.zeros(3, "f4")))
        self.assertEqual([m is None for m in made], [True, True, False, True])
        np.testing.assert_allclose(made[2], g.sum(0), rtol=1e-5)

    def test_no_gradient(self):
        op = self.op(spec("max_norm"))
        x = np.array([[1, -4]], "f4")
        np.testing.assert_array_equal(op(x), [[0.25, -1]])
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "operator max has no gradient"):
            op.gradient((x,), (x,))
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "operator max has no gradient"):
            self.op(spec("max_norm"), wrt=["x"])
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "array of structures"):
            self.op(spec("complex_product"))

    def test_only_on_request(self):
        done = subprocess.run([sys.executable, "-c", "import ptxgen, sys; sys.exit(any('torch' in name for name in sys.modules))"], check=False)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
