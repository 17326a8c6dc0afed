# SPDX-License-Identifier: Apache-2.0
"""What a call refuses because it would compute something else than was meant, and what a function says of its arguments."""
import array
import copy
import gc
import inspect
import pathlib
import pickle
import re
import subprocess
import sys
import threading
import unittest
import weakref

import numpy as np

import ptxgen

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(11)


def spec(name, **options):
    return ptxgen.load(ROOT / f"specs/{name}.yaml", **options)


def floats(*shape):
    return RANDOM.uniform(0.5, 1.5, shape).astype("f4")


class Case(unittest.TestCase):
    def refused(self, pattern, f, *args, error=ptxgen.UsageError, **words):
        with self.assertRaisesRegex(error, pattern):
            f(*args, **words)


class Memory(Case):
    def test_outputs_apart_from_each_other(self):
        x, out = floats(50), np.zeros((), "f4")
        self.refused("outputs 'lo' and 'hi' share memory", spec("stats"), x, out=(out,) * 4)
        y = np.zeros(52, "f4")
        self.refused("outputs 'y' and 'total' share memory", spec("scan_sum"), x, out=(y[:50], y[49:50].reshape(())))
        made = spec("scan_sum")(x, out=(y[:50], y[50:51].reshape(())))
        self.assertEqual(made.total, made.y[-1])

    def test_in_place_where_each_element_is_its_own(self):
        for name, *more in (("scan_sum", ()), ("softmax",), ("saxpy", floats(60))):
            f = spec(name)
            x = floats(5, 12) if name == "softmax" else floats(60)
            words = {"a": 2.0} if name == "saxpy" else {}
            others = [y for y in more if isinstance(y, np.ndarray)]
            want = f(x.copy(), *others, **words)
            want = want if isinstance(want, np.ndarray) else want[0]
            with self.subTest(name):
                f(x, *others, out=(x, np.zeros((), "f4")) if name == "scan_sum" else x, **words)
                np.testing.assert_array_equal(x, want)

    def test_in_place_is_refused_elsewhere(self):
        x, u = floats(60), floats(8, 8)
        shares = "output '{}' shares memory with input '{}'"
        self.refused(shares.format("out", "u"), spec("jacobi2d"), u, out=u)  # neighbours
        self.refused(shares.format("y", "x"), spec("transpose_at"), u, out=u)  # computed places
        self.refused(shares.format("y", "x"), spec("scan_differences"), x, out=x)
        self.refused(shares.format("sum", "x"), spec("row_sum"), u, out=u[0])  # rows that follow are read later
        self.refused(shares.format("y", "x"), spec("scan_sum"), x[:50], out=(x[1:51], np.zeros((), "f4")))  # shifted
        self.refused(shares.format("next", "u"), spec("apps/heat"), u, out=(u, np.zeros((), "f4")))  # stages
        heat = spec("apps/heat")(u, steps=3, out=(np.empty_like(u), np.zeros((), "f4")))
        np.testing.assert_array_equal(heat[0], spec("apps/heat")(u, steps=3)[0])

    def test_empty_arrays_share_nothing(self):
        x = floats(3)
        spec("scan_differences")(x[:0], out=x[:0])

    def test_addresses(self):
        image = np.zeros(41, "u1")
        odd = image[1:].view("f4")
        self.refused("'x' begins at an address that is no multiple of 4, .* give a copy", spec("sum"), odd)
        self.refused("'z' begins at an address", spec("saxpy"), floats(10), floats(10), a=1.0, out=odd)
        self.assertEqual(spec("sum")(image[4:40].view("f4")), 0)  # a multiple of 4 and not of 16

    def test_sizes_that_no_memory_has(self):
        f = spec("counts_by_key")
        for k in (1 << 62, (1 << 62) + 1, 1 << 61, (1 << 63) - 1):  # 4 k bytes: some are few, modulo 2^64
            with self.assertRaises(MemoryError):
                f(array.array("i", [0, 1]), k=k)
        self.refused("size 'k' is a whole number below 2.63, which", f, array.array("i", [0]), k=1 << 63, error=OverflowError)
        self.refused("size 'k' is a whole number.*, which 1.5 is not", f, array.array("i", [0]), k=1.5, error=TypeError)


class Kinds(Case):
    def test_masks_are_not_dropped(self):
        self.refused("'x' has a mask", spec("sum"), np.ma.array([1, 2, 3], mask=[0, 1, 0], dtype="f4"))

    def test_looking_for_masks_imports_nothing(self):  # NumPy 2 imports numpy.ma when it is asked for; that takes 40 ms
        code = ("import sys, numpy, ptxgen; vars(numpy).pop('ma', None); sys.modules.pop('numpy.ma', None); asked = []; "
                "numpy.__getattr__ = asked.append; ptxgen.compile('kind: reduce\\ninputs: {x: \"f32[n]\"}\\noperator: add\\noutputs: {s: f32}\\n')"
                "(numpy.ones(3, 'f4')); print(asked)")
        self.assertEqual(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout, "[]\n")

    def test_byte_order(self):
        self.refused("'x' has the other byte order", spec("sum"), np.zeros(3, ">f4"))

    def test_strides(self):
        x = floats(6, 4)
        for wrong in (x.T, x[:, ::-1], x[::2], x[:, :2], np.asfortranarray(x), np.broadcast_to(x[0], (6, 4))):
            self.refused("'x' does not lie in row-major order without gaps; give a copy", spec("row_sum"), wrong)
        np.testing.assert_array_equal(spec("row_sum")(x[1:3]), spec("row_sum")(x[1:3].copy()))
        np.testing.assert_array_equal(spec("row_sum")(x[:1, :][::-1]), spec("row_sum")(x[:1]))  # one row: its stride says nothing

    def test_what_is_no_array(self):
        for wrong in ([1.0], 3.0, None, "abc", {"x": 1}):
            self.refused("'x' is no array, but an object of <class '.*numpy.asarray", spec("sum"), wrong, error=TypeError)
        for wrong in (np.array(["a"]), np.array([object()]), np.zeros(3, np.longdouble)):
            self.refused("'x' has elements of the format '.*', which is no type of specs", spec("sum"), wrong)
        self.refused("'x' has elements of type bool; the spec says f32", spec("sum"), np.zeros(3, "?"))
        self.refused("'x' has 0 dimensions; the spec says 1", spec("sum"), np.float32(3))

    def test_params(self):
        x = floats(3)
        for wrong in ("1", None, [1]):
            self.refused("param 'a' is f32, which .* is not", spec("saxpy"), x, x, a=wrong, error=TypeError)

    def test_params_that_are_conditions(self):
        f = ptxgen.compile("kind: map\ninputs: {x: 'f32[n]'}\nparams: {on: bool}\noutputs: {y: {type: 'f32[n]', value: 'select(on, x, 0)'}}\n")
        x = floats(3)
        for on in (True, False, 1, 0, np.True_, np.array(False), 2.5):
            np.testing.assert_array_equal(f(x, on=on), x * bool(on))
        for wrong in ("no", "", None, [], np.array([True])):
            self.refused("param 'on' is bool, which .* is not", f, x, on=wrong, error=TypeError)

    def test_numbers_of_many_digits(self):
        with self.assertRaises(OverflowError) as caught:
            spec("saxpy")(floats(3), floats(3), a=10 ** 4000)
        self.assertLess(len(str(caught.exception)), 200)

    def test_names_of_outputs(self):
        out = np.zeros((), "f4")
        self.refused(r"sum\(\) has no output 'total', which out= names", spec("sum"), floats(3), out={"sum": out, "total": out}, error=TypeError)

    def test_subclasses_of_many_kinds_at_once(self):
        """More types than are remembered, among them those of the results' memory."""
        f, x = spec("stats"), floats(9)
        want = tuple(f(x))
        for i in range(20):
            kinds = [type(f"Kind{i}_{k}", (np.ndarray,), {}) for k in range(5)]
            out = [np.zeros((), "f4").view(kind) for kind in kinds[:4]]
            f(x.view(kinds[4]), out=out)
            self.assertEqual(tuple(map(float, out)), tuple(map(float, want)))

    def test_a_list_of_outputs_that_changes(self):
        f, x = spec("sum"), np.ones(1 << 20, "f4")
        out = [np.zeros((), "f4")]
        kept, before = out[0], sys.getrefcount(out[0])
        thread = threading.Thread(target=f, args=(x,), kwargs={"out": out})
        thread.start()
        out.clear()
        thread.join()
        self.assertIn(float(kept), (0.0, float(1 << 20)))
        self.assertEqual(sys.getrefcount(kept), before - 1)


class Says(Case):
    def test_signatures(self):
        for name, said in (("saxpy", "(x: 'f32[n]', y: 'f32[n]', *, a: 'f32', n=None, out=None, stream=None) -> 'f32[n]'"),
                           ("layer_norm", "(x: 'f32[m, n]', weight: 'f32[n]', bias: 'f32[n]', *, eps: 'f32' = 1e-05, m=None, n=None, out=None, stream=None) "
                                          "-> 'y: f32[m, n], mean: f32[m]'"),
                           ("apps/components", "(label: 'i32[v]', from_: 'i32[e]', to: 'i32[e]', /, *, steps: 'i32' = 1000000, v=None, e=None, out=None, "
                                               "stream=None) -> 'i32[v]'"),
                           ("apps/srad", "(img: 'f32[m, n]', *, steps: 'i32' = 100, m=None, n=None, out=None, stream=None, **words) -> 'f32[m, n]'")):
            self.assertEqual(str(inspect.signature(spec(name))), said)
        self.assertIn("*inputs, out=None", str(inspect.signature(spec("sum").prepare)))
        for path in sorted(ROOT.glob("specs/**/*.yaml")):  # each has one, and calls may bind to it
            f = ptxgen.load(path)
            inspect.signature(f).bind(*f.inputs, **{name: 1 for name in f.params})

    def test_reprs(self):
        self.assertEqual(repr(spec("saxpy")), "<ptxgen.Function saxpy(x: f32[n], y: f32[n], *, a: f32) -> z: f32[n]>")
        self.assertEqual(repr(spec("counts_by_key")), "<ptxgen.Function counts_by_key(key: i32[n], *, k) -> many: i32[k]>")
        self.assertIn("*, steps: i32 = 100, eps: f32 = 0.0001)", repr(spec("apps/kmeans")))

    def test_help_names_every_public_method(self):
        for name in dir(ptxgen.Function):
            if not name.startswith("_"):
                self.assertTrue(inspect.getdoc(getattr(ptxgen.Function, name)), name)
        for name in ptxgen.__all__:
            self.assertTrue(inspect.getdoc(getattr(ptxgen, name)), name)

    def test_errors_are_where_users_find_them(self):
        for name in ptxgen.__all__:
            item = getattr(ptxgen, name)
            if isinstance(item, type):
                self.assertIn(item.__module__, ("ptxgen", "ptxgen._specs"), name)
        self.assertEqual(ptxgen.SpecError.__module__, "ptxgen")

    def test_options_of_wrong_types(self):
        text = spec("sum").yaml
        for words, said in (({"arch": 90}, "arch is a text, and not 90"), ({"sizes": [3]}, "sizes is a dict from names to numbers"),
                            ({"settings": {"items": 1.5}}, "settings is a dict from names to texts or numbers"), ({"cache": 1}, "cache is a text")):
            self.refused(said, ptxgen.compile, text, error=TypeError, **words)
        self.assertEqual(ptxgen.compile(text, settings={"items": 4}, cache=pathlib.Path("off"), sizes={"n": 8})._choice,
                         {"settings": {"items": "4"}, "cache": "off", "sizes": {"n": 8}})
        self.refused("a spec is a text or a dict, and not 'bytes'", ptxgen.compile, text.encode(), error=TypeError)
        self.refused("'specs/sum.yaml' is the name of a file", ptxgen.compile, "specs/sum.yaml")

    @unittest.skipUnless((ROOT / "setup.py").exists(), "the sources are elsewhere")  # as in what scripts/python-bundle makes
    def test_a_version(self):
        text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        self.assertEqual(ptxgen.__version__, re.search(r"project\(ptxgen VERSION ([0-9.]+)", text)[1])


class Copies(unittest.TestCase):
    def test_functions(self):
        f, x = spec("saxpy", arch="sm_80", settings={}), floats(5)
        for made in (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f)):
            self.assertEqual((made.yaml, made.name, made._choice), (f.yaml, f.name, f._choice))
            np.testing.assert_array_equal(made(x, x, a=2), f(x, x, a=2))

    def test_results_outlive_their_function(self):
        f = ptxgen.compile("kind: reduce\ninputs: {x: 'f32[n]'}\nreductions: {a_name_of_its_own: {operator: add}, top: {operator: max}}\n"
                           "outputs: {a_name_of_its_own: f32, top: f32}\n")
        made, want = f(np.array([1, 2], "f4")), "ptxgen.Results(a_name_of_its_own=array(3., dtype=float32), top=array(2., dtype=float32))"
        del f
        gc.collect()
        others = [bytes(64 * i) for i in range(1000)] + [spec("stats") for _ in range(20)]
        self.assertEqual(repr(made), want)
        self.assertTrue(others)

    def test_results(self):
        made = spec("scan_sum")(floats(4))
        for other in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
            self.assertIs(type(other), type(made))
            np.testing.assert_array_equal(other.y, made.y)
        self.assertIs(type(spec("scan_sum")(floats(4))), type(made))

    def test_errors(self):
        with self.assertRaises(ptxgen.SpecError) as caught:
            ptxgen.compile("kind: none\n")
        other = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(other), list(map(str, other.diagnostics))), (str(caught.exception), list(map(str, caught.exception.diagnostics))))

    def test_arrays_are_refused(self):
        with self.assertRaisesRegex(TypeError, "cannot pickle 'ptxgen.Array' object"):
            pickle.dumps(spec("sum")(array.array("f", [1])))

    def test_weak_references(self):
        f = spec("sum")
        gone = weakref.ref(f)
        self.assertIs(gone(), f)
        del f
        self.assertIsNone(gone())


if __name__ == "__main__":
    unittest.main()
