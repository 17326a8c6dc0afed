# SPDX-License-Identifier: Apache-2.0
"""Calls on the host executor: buffers and NumPy arrays, errors, results; and what is no call."""
import array
import ctypes
import pathlib
import pickle
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import numpy as np

import ptxgen

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUM = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n"
SCALED = """kind: reduce
inputs: {x: 'f32[n]'}
params: {scale: {type: f32, value: 2}, bias: i8}
map: scale * x + f32(bias)
operator: add
outputs: {sum: f32}
"""
NO_STREAMS = ("x", b"x", 1.5, True, False, [1], (0, 1), array.array("f", [1]), object())


def spec(name, **options):
    return ptxgen.load(ROOT / f"specs/{name}.yaml", **options)


class Boundaries(unittest.TestCase):
    def test_two_constants(self):
        """Beyond two edges at once the last dimension's constant counts; beyond one, that one's, for stencils, scans and reductions alike."""
        x = np.arange(1.0, 7).reshape(2, 3)
        for kind, outputs in (("map", "{y: {type: 'f64[l, m]', value: 'x[1, 1]'}}"), ("scan", "{y: {type: 'f64[l, m]', value: 'x[1, 1]'}, t: 'f64[m]'}"),
                              ("reduce", "{y: {type: 'f64[l, m]', value: 'x[1, 1]'}, t: 'f64[m]'}")):
            more = "" if kind == "map" else "over: l\noperator: add\nmap: 'x[1, 1]'\n"
            f = ptxgen.compile(f"kind: {kind}\ninputs: {{x: 'f64[l, m]'}}\nboundary: {{x: {{l: {{constant: 5}}, m: {{constant: 7}}}}}}\n{more}outputs: {outputs}")
            f.verify(x)
            made = f(x)
            np.testing.assert_array_equal(made if kind == "map" else made.y, [[5, 6, 7], [5, 5, 7]])


class Arrays(unittest.TestCase):
    def test_import_brings_no_library_of_arrays(self):
        done = subprocess.run([sys.executable, "-c", "import ptxgen, sys; sys.exit('numpy' in sys.modules)"], check=False)
        self.assertEqual(done.returncode, 0)

    def test_buffers_give_arrays_of_our_own(self):
        f = ptxgen.compile(SUM)
        for x in (array.array("f", [1, 2, 3]), memoryview(array.array("f", [1, 2, 3])), (ctypes.c_float * 3)(1, 2, 3)):
            made = f(x)
            self.assertIsInstance(made, ptxgen.Array)
            self.assertEqual(made.tolist(), 6)
        self.assertEqual((made.shape, made.format), ((), "f"))
        self.assertEqual(repr(made), "<ptxgen.Array f () on the host: 6.0>")
        self.assertFalse(hasattr(made, "__cuda_array_interface__"))

    def test_our_own_arrays_are_inputs_and_show_themselves_through_dlpack(self):
        scan = spec("scan_sum")
        made = scan(array.array("f", [1, 2, 3]))[0]
        self.assertEqual(made.tolist(), [1, 3, 6])
        self.assertEqual(ptxgen.compile(SUM)(made).tolist(), 10)
        np.testing.assert_array_equal(np.from_dlpack(made), [1, 3, 6])
        self.assertEqual(made.__dlpack_device__(), (1, 0))

    def test_our_own_single_values_are_numbers(self):
        made = ptxgen.compile(SUM)(array.array("f", [0.5, 2]))
        self.assertEqual((float(made), int(made), bool(made), repr(made)), (2.5, 2, True, "<ptxgen.Array f () on the host: 2.5>"))
        self.assertFalse(ptxgen.compile(SUM)(array.array("f", [0.5, -0.5])))
        count = ptxgen.compile(SUM.replace("f32", "u8"))(b"*")  # the buffer b"*" is no text of a number
        self.assertEqual((int(count), float(count), range(100)[count]), (42, 42.0, 42))
        with self.assertRaises(TypeError):
            range(3)[made]
        y, total = spec("scan_sum")(array.array("f", [1, 2]))
        self.assertEqual((repr(y), f"{float(total):g}"), ("<ptxgen.Array f (2,) on the host: [1.0, 3.0]>", "3"))
        for convert in (float, int, bool):
            with self.assertRaisesRegex(TypeError, r"is no single value; tolist\(\)"):
                convert(y)
        half = ptxgen.compile(SUM.replace("f32", "bf16"))(array.array("H", [0x3f80]))
        self.assertEqual(repr(half), "<ptxgen.Array H () on the host>")  # 1.0, and not 16256
        with self.assertRaisesRegex(TypeError, "bits of a bf16"):
            float(half)
        self.assertEqual(repr(spec("scan_sum")(array.array("f", [0] * 100)).y), "<ptxgen.Array f (100,) on the host>")

    def test_our_own_arrays_are_not_copied_for_others(self):
        made = ptxgen.compile(SUM)(array.array("f", [1, 2]))
        self.assertTrue(made.__dlpack__(copy=False, dl_device=(1, 0), max_version=(1, 0)))
        for words in ({"copy": True}, {"dl_device": (2, 0)}, {"dl_device": (1, 1)}):
            with self.assertRaisesRegex(BufferError, "where it lies"):
                made.__dlpack__(**words)
        with self.assertRaises(TypeError):
            made.__dlpack__(dl_device=1)

    def test_numpy_gives_numpy_and_out_is_filled(self):
        f, x = spec("scan_sum"), np.arange(1000, dtype="f4")
        made, total = f(x)
        self.assertIsInstance(made, np.ndarray)
        self.assertEqual(total, 499500)
        np.testing.assert_array_equal(made, np.cumsum(x, dtype=made.dtype))
        out = np.zeros_like(made)
        self.assertIs(f(x, out=(out, total))[0], out)
        np.testing.assert_array_equal(out, made)
        out[:] = 0
        f(x, out={"total": total, "y": out} if "y" in f.outputs else dict(zip(f.outputs, (out, total))))
        np.testing.assert_array_equal(out, made)

    def test_several_outputs_have_names(self):
        x = np.array([3, 1, 2], "f4")
        made = spec("stats")(x)
        self.assertEqual((made.lo, made.hi, made.sum, made.mean), (1, 3, 6, 2))
        self.assertEqual(len(made), 4)

    def test_structures_and_complex_numbers(self):
        z = np.array([1 + 2j, 3 - 1j, 2j], "c8")
        made = spec("complex_product")(z)
        self.assertEqual(made.dtype.names, ("re", "im"))
        self.assertEqual(complex(made["re"], made["im"]), np.prod(z))
        self.assertEqual(spec("complex_product")(z.view("f4").reshape(3, 2)), made)

    def test_fields_in_another_order(self):
        """Their names say what they are, if they are the spec's names."""
        f, pairs = spec("complex_product"), [(1, 2), (3, 4)]
        for names in ("re", "im"), ("x", "y"), ("x", "im"):
            self.assertEqual(f(np.array(pairs, [(name, "f4") for name in names])).tolist(), (-5, 10))
        for names in ("im", "re"), ("im", "x"), ("x", "re"):
            with self.assertRaisesRegex(ptxgen.UsageError, "fields are not those of the spec"):
                f(np.array(pairs, [(name, "f4") for name in names]))

    def test_dlpack_of_others_on_the_host(self):
        class Plain:
            """An array that has DLPack and nothing else."""

            def __init__(self, x):
                self.x = x

            def __dlpack__(self, **words):
                return self.x.__dlpack__(**words)

            def __dlpack_device__(self):
                return (1, 0)

        class Standard(Plain):
            def __array_namespace__(self):
                return np

        x = np.array([1, 2, 3], "f4")
        self.assertIsInstance(ptxgen.compile(SUM)(Plain(x)), ptxgen.Array)
        made = ptxgen.compile(SUM)(Standard(x))
        self.assertIsInstance(made, np.ndarray)
        self.assertEqual(made, 6)

    def test_empty_arrays(self):
        self.assertEqual(ptxgen.compile(SUM)(np.zeros(0, "f4")), 0)


class Arguments(unittest.TestCase):
    def refused(self, pattern, f, *args, error=ptxgen.UsageError, **words):
        with self.assertRaisesRegex(error, pattern):
            f(*args, **words)

    def test_params_are_keywords_with_defaults(self):
        f, x = ptxgen.compile(SCALED), np.array([1, 2], "f4")
        self.assertEqual(f.params, {"scale": "f32", "bias": "i8"})
        self.assertEqual(f(x, bias=1), 8)
        self.assertEqual(f(x, bias=np.int64(-1), scale=0.5), -0.5)
        self.refused("misses param 'bias', which has no default", f, x, error=TypeError)
        self.refused("param 'bias' is i8, which 200 is not", f, x, bias=200)
        self.refused("", f, x, bias=1.5, error=TypeError)
        self.refused("takes 1 input, and was given 2; params are keywords", f, x, 1, error=TypeError)
        self.refused("has no argument 'skale'; it takes 'x, scale, bias, n, out and stream|has no argument 'skale'", f, x, bias=1,
                     skale=1, error=TypeError)

    def test_sizes_are_inferred_and_checked(self):
        f = spec("dot")
        x, y = array.array("f", [1, 2]), array.array("f", [1, 2, 3])
        self.refused("'y' has 3 elements in dimension 0; x asks for 2", f, x, y)
        self.refused("'x' has 2 elements in dimension 0; the keyword asks for 3", f, x, y, n=3)
        self.refused("size 'n' is negative", f, x, x, n=-1)
        self.refused("'x' has 2 dimensions; the spec says 1", f, np.zeros((2, 2), "f4"), x)
        self.refused("'dot' has 1 dimensions; the spec says 0", f, x, x, out=np.zeros(2, "f4"))
        self.assertEqual(f(x, x, n=2).tolist(), 5)

    def test_sizes_that_were_given_before(self):
        x = array.array("f", [1, 2])
        f = spec("dot", sizes={"n": 3})
        self.refused("'x' has 2 elements in dimension 0; sizes= asks for 3", f, x, x)
        self.refused("size 'n' is 2; sizes= asks for 3", f, x, x, n=2)
        self.assertEqual(spec("dot", sizes={"n": 2})(x, x).tolist(), 5)
        text = "kind: map\ninputs: {x: 'u8[n]'}\noutputs: {hist: {type: 'u32[k]', at: x, value: 1, combine: add, initial: 0}}\n"
        self.assertEqual(ptxgen.compile(text, sizes={"k": 3})(np.array([2, 0, 2], "u1")).tolist(), [1, 0, 2])

    def test_types_and_layout_are_checked(self):
        f, x = spec("dot"), array.array("f", [1, 2])
        self.refused("'y' has elements of type f64; the spec says f32", f, x, array.array("d", [1, 2]))
        self.refused("'y' has elements of type i32", f, x, array.array("i", [1, 2]))
        self.refused("'x' does not lie in row-major order", f, np.zeros(4, "f4")[::2], x)
        self.refused("the other byte order", f, np.zeros(2, ">f4"), x)
        self.refused("'y' is no array", f, x, [1, 2], error=TypeError)
        fixed = np.zeros((), "f4")
        fixed.flags.writeable = False
        self.refused("output 'dot' is read-only", f, x, x, out=fixed)

    def test_names_are_checked(self):
        f, x = spec("dot"), array.array("f", [1, 2])
        self.refused("has no argument 'z'", f, x, z=x, error=TypeError)
        self.refused("misses input 'y'", f, x, error=TypeError)
        self.refused("got input 'x' twice", f, x, x=x, error=TypeError)
        self.assertEqual(f(y=x, x=x).tolist(), 5)
        self.refused("the first that misses one is 'dot'", f, x, x, out=(x, x))

    def test_streams(self):
        """They mean nothing here, but what is no stream is refused as on a GPU."""
        f, x = spec("dot"), array.array("f", [1, 2])
        for stream in (None, 0, 1, 0x50):
            self.assertEqual(f(x, x, stream=stream).tolist(), 5)
        for call in (f, f.prepare, f.verify):
            for wrong in NO_STREAMS:
                self.refused("stream is .*, and no stream", call, x, x, stream=wrong, error=TypeError)

    def test_outputs_that_continue_are_given(self):
        text = "kind: map\ninputs: {x: 'u8[n]'}\noutputs: {hist: {type: 'u32[k]', at: x, value: 1, combine: add%s}}\n"
        x, hist = np.array([2, 0, 2, 9], "u1"), np.array([10, 10, 10], "u4")
        self.refused("combined with what it holds: give out=", ptxgen.compile(text % ""), x, k=3)
        ptxgen.compile(text % "")(x, out=hist)
        self.assertEqual(hist.tolist(), [11, 10, 12])
        self.assertEqual(ptxgen.compile(text % "").verify(x, out=hist), 3)
        self.assertEqual(hist.tolist(), [12, 10, 14])
        self.assertEqual(ptxgen.compile(text % ", initial: 0")(x, k=3).tolist(), [1, 0, 2])


class Errors(unittest.TestCase):
    def test_a_wrong_spec_is_located(self):
        with self.assertRaises(ptxgen.SpecError) as caught:
            ptxgen.compile("kind: reduce\ninputs: {x: 'f33[n]'}\noperator: add\noutputs: {s: f32}\n", "wrong")
        error = caught.exception
        first = error.diagnostics[0]
        self.assertIsInstance(first, ptxgen.Diagnostic)
        self.assertEqual((first.severity, first.line, first.code), ("error", 2, 2010))
        self.assertTrue(first.place.startswith("wrong:2:"), first.place)
        self.assertTrue(str(error).startswith(first.place))
        self.assertIn("inputs: {x: 'f33[n]'}", "\n".join(error.__notes__))  # the line, with a caret below
        self.assertIn("^", "\n".join(error.__notes__))
        self.assertIsInstance(error, ValueError)

    def test_options_that_do_not_exist(self):
        x = np.ones(3, "f4")
        for options in ({"arch": "sm_17"}, {"arch": ""}, {"gpu": "bla"}, {"arch": "sm_90", "gpu": "bla"}):
            with self.assertRaisesRegex(ptxgen.UsageError, "unknown (architecture|GPU)"):
                spec("dot", **options)
        self.assertIn(".target sm_90", spec("dot", gpu="H200").ptx())
        with self.assertRaises(ptxgen.Error):
            spec("dot", variant="reduce.none")(x, x)
        with self.assertRaisesRegex(ptxgen.UsageError, "there is no size 'm'"):
            spec("dot").explain(m=3)
        with self.assertRaises(FileNotFoundError):
            ptxgen.load("no such file")

    def test_every_error_has_messages_as_data(self):
        kinds = (ptxgen.Error, *ptxgen.Error.__subclasses__())
        self.assertEqual({kind.__name__ for kind in kinds}, {name for name in ptxgen.__all__ if name.endswith("Error")})
        for error in [kind("no") for kind in kinds] + [ptxgen._errors.make(99, "no", "", ())]:
            for same in (error, pickle.loads(pickle.dumps(error))):
                one, = same.diagnostics
                self.assertEqual((one.severity, one.code, one.file, one.line, one.message, one.hint, str(same)), ("error", 0, None, 0, "no", None, "no"), type(error))
        f, x = spec("dot"), np.ones(3, "f4")
        for wrong in (lambda: f(x, x[:2]), lambda: f(x, x.astype("f8")), lambda: f(x, x, out=x), lambda: f.explain(m=3), lambda: f.tune(x, x), lambda: ptxgen.compile("dot.yaml"),
                      lambda: ptxgen.explain_code(9999), lambda: ptxgen.vjp(spec("max_norm")), lambda: spec("dot", arch="sm_17"), lambda: spec("dot", tuning=ROOT).explain()):
            with self.assertRaises(ptxgen.Error) as caught:
                wrong()
            first = caught.exception.diagnostics[0]
            self.assertEqual((type(first), first.severity, str(first)), (ptxgen.Diagnostic, "error", str(caught.exception)))
            self.assertRegex(repr(first), f"<Diagnostic {'PTXG-....' if first.code else 'error'}")

    def test_codes_are_explained(self):
        self.assertIn("type", ptxgen.explain_code(2010))
        with self.assertRaises(ptxgen.UsageError):
            ptxgen.explain_code(9999)


class Work(unittest.TestCase):
    def test_a_dict_is_a_spec(self):
        f = ptxgen.compile({"kind": "reduce", "inputs": {"x": "i32[n]"}, "operator": "max", "outputs": {"most": "i32"}})
        self.assertEqual(f(array.array("i", [3, 9, -1])).tolist(), 9)

    def test_what_a_function_says_of_itself(self):
        f = spec("dot")
        self.assertEqual(f.name, "dot")
        self.assertEqual((f.inputs, f.outputs), ({"x": "f32[n]", "y": "f32[n]"}, {"dot": "f32"}))
        self.assertEqual((f.sizes, f.params, f.diagnostics), (("n",), {}, ()))
        self.assertEqual(repr(f), "<ptxgen.Function dot(x: f32[n], y: f32[n]) -> dot: f32>")
        self.assertIn("<table", f._repr_html_())
        tree = xml.etree.ElementTree.fromstring(spec("dot", sizes={"n": 1000000}, arch="sm_90")._repr_html_())
        bars = {name for e in tree.iter("div") for name in e.get("class", "").split()} - {"ptxgen"}
        self.assertIn("bar", bars)
        for name in ("bar", "bar.least", "bar.predicted", "wide"):  # without these the bars are not seen
            self.assertIn(f".{name}{{", tree.find("style").text)
        self.assertIn("operator: add", f.yaml)

    def test_code(self):
        f = spec("dot")
        self.assertIn(".target sm_75", f.ptx("sm_75"))
        self.assertIn(".visible .entry", f.ptx("sm_90"))
        self.assertEqual([i["name"] for i in f.manifest["inputs"]], ["x", "y"])
        self.assertEqual(spec("dot", arch="sm_100").manifest["target"]["arch"], "sm_100")

    def test_explain(self):
        f = spec("dot")
        self.assertIn("reduce.block", f.explain(n=1000))
        self.assertIn("H200", f.explain(gpu="H200", arch="sm_90", n=1 << 28))

    def test_variants_can_be_pinned(self):
        f, x = spec("dot"), np.ones(1000, "f4")
        rows = f.variants(5, n=1000)
        self.assertEqual(len([row for row in rows if row[2] is None]), 5)
        self.assertEqual(rows, f.variants(5, n=1000))
        self.assertNotEqual(rows, f.variants(5, seed=2, n=1000))
        self.assertEqual(spec("dot", variant=rows[-1][0])(x, x), 1000)

    def test_laws(self):
        rows = {row["law"]: row["verdict"] for row in spec("mss").check(prover="off")}
        self.assertIn("associative", rows)
        with self.assertRaises(ptxgen.SpecError) as caught:
            ptxgen.compile(SUM.replace("operator: add", "operator: {state: f32, combine: a - b, identity: 0}")).check("off")
        self.assertIn("associative", str(caught.exception))

    def test_verify(self):
        x = np.random.default_rng(7).standard_normal(10000, "f4")
        self.assertEqual(spec("scan_sum").verify(x), 10001)
        self.assertEqual(spec("dot").verify(x, x), 1)

    def test_programs_are_verified_and_have_variants(self):
        f, u = spec("apps/heat"), np.random.default_rng(7).random((20, 30), "f4")
        step = f.verify(u, steps=1)
        self.assertEqual((step, f.verify(u, steps=5)), (20 * 30 + 2, 5 * step))  # the plate, how far it moved, and the condition
        rows = f.variants(4, m=20, n=30)
        self.assertEqual({row[0].partition(":")[0] for row in rows}, {"sweep", "until"})
        chosen = next(row[0] for row in reversed(rows) if row[0].startswith("sweep:") and row[2] is None)
        pinned = spec("apps/heat", variant=chosen)
        self.assertEqual(pinned.verify(u, steps=3), 3 * step)
        kernels = [[stage["program"]["cases"] for stage in g.manifest["stages"]] for g in (f, pinned)]
        self.assertNotEqual(kernels[0][0], kernels[1][0])
        self.assertEqual(kernels[0][1], kernels[1][1])
        with self.assertRaisesRegex(ptxgen.UsageError, "no stage is called 'nowhere'; those that run are sweep, until"):
            spec("apps/heat", variant="nowhere:default")(u)
        with self.assertRaisesRegex(ptxgen.UsageError, "the arrays are on the host"):
            f.tune(u)
        with self.assertRaisesRegex(ptxgen.UsageError, "a tunable is of one stage: write STAGE:threads"):
            spec("apps/heat", settings={"threads": 64})(u)
        self.assertEqual(spec("apps/heat", settings={"sweep:threads": 64}).verify(u, steps=3), 3 * step)
        self.assertIn('id="sweep-verdict"', f._repr_html_())

    def test_tuning_needs_a_gpu(self):
        with self.assertRaisesRegex(ptxgen.UsageError, "the arrays are on the host"):
            ptxgen.compile(SUM).tune(np.ones(3, "f4"))

    def test_the_schema(self):
        self.assertIn("$schema", ptxgen.schema())


if __name__ == "__main__":
    unittest.main()
