# SPDX-License-Identifier: Apache-2.0
"""Specs from Python functions compute what specs by hand compute, and are the same text language."""
import fractions
import functools
import math
import pathlib
import types
import unittest

import numpy as np

import ptxgen
from ptxgen import _values as values, ops

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(7)


def spec(name):
    return ptxgen.load(ROOT / f"specs/{name}.yaml", arch="sm_90")


@ptxgen.operator(identity={"best": 0, "left": 0, "right": 0, "total": 0}, commutative=False)
def segments(a: {"best": "i32", "left": "i32", "right": "i32", "total": "i32"}, b):
    return {"best": ops.max(ops.max(a.best, b.best), a.right + b.left), "left": ops.max(a.left, a.total + b.left),
            "right": ops.max(b.right, a.right + b.total), "total": a.total + b.total}


def mss_map(x):
    return {"best": ops.max(x, 0), "left": ops.max(x, 0), "right": ops.max(x, 0), "total": x}


class Same(unittest.TestCase):
    """Beside the spec of the same name in specs/: the same code, and the same results."""

    def check(self, f, by_hand, *args, **words):
        self.assertEqual(f.ptx("sm_90"), spec(by_hand).ptx("sm_90"))
        made, wanted = f(*args, **words), spec(by_hand)(*args, **words)
        for x, y in zip(made, wanted) if isinstance(made, tuple) else [(made, wanted)]:
            np.testing.assert_array_equal(x, y)

    def test_reductions(self):
        x, y = RANDOM.standard_normal((2, 1000), "f4")
        self.check(ptxgen.reduce({"x": "f32[n]", "y": "f32[n]"}, "add", name="dot", map=lambda x, y: x * y, outputs={"dot": "f32"}), "dot", x, y)
        stats = ptxgen.reduce({"x": "f32[n]"}, name="stats", outputs={
            "lo": "f32", "hi": "f32", "sum": "f32", "mean": ("f32", lambda sum, n: sum / ops.f32(n))},
            reductions={"lo": "min", "hi": "max", "sum": {"map": lambda x: x, "operator": "add"}})
        self.check(stats, "stats", x)
        self.check(ptxgen.reduce({"x": "f32[m, n]"}, "add", over="n", name="row_sum", outputs={"sum": "f32[m]"}), "row_sum", x.reshape(10, 100))
        both = ptxgen.reduce({"x": "f32[n]", "y": "f32[n]"}, "max", map=lambda x, y: x * y + x, name="saxpy_max",
                             outputs={"largest": "f32", "values": ("f32[n]", lambda x, y: x * y + x)})
        self.check(both, "saxpy_max", x, y)
        affine = ptxgen.reduce({"slope": "f32[n]", "offset": "f32[n]"}, "affine", params={"start": "f32"}, name="affine",
                               map=lambda slope, offset: {"a": slope, "b": offset},
                               outputs={"end": ("f32", lambda r, start: r.a * start + r.b)})
        self.check(affine, "affine", x / 4, y, start=0.5)

    def test_an_operator_of_ones_own(self):
        x = RANDOM.integers(-10, 10, 5000, "i4")
        f = ptxgen.reduce({"x": "i32[n]"}, segments, map=mss_map, outputs={"mss": ("i32", lambda r: r.best)}, name="mss")
        self.assertEqual(f(x), spec("mss")(x))  # ops.max(x, 0) is written three times, and traced as three
        self.assertEqual(f.ptx("sm_90"), spec("mss").ptx("sm_90"))
        g = ptxgen.scan({"x": "i32[n]"}, segments, map=mss_map, outputs={"best": ("i32[n]", lambda s: s.best)}, name="scan_mss")
        np.testing.assert_array_equal(g(x), spec("scan_mss")(x))

    def test_an_operator_with_a_name(self):
        @ptxgen.operator(identity={"first": -np.inf, "second": -np.inf})
        def two(a: {"first": "f32", "second": "f32"}, b):
            return {"first": ops.max(a.first, b.first), "second": ops.max(ops.min(a.first, b.first), ops.max(a.second, b.second))}
        x, off = RANDOM.standard_normal(200, "f4"), np.array([-3, 0, 1, 7], "i4")
        f = ptxgen.stencil({"x": "f32[n]", "off": "i32[p]"}, operators={"two": two}, let={"best": "gather(x, off, k, two, k, -inf)"},
                           outputs={"y": ("f32[n]", "best.second")})
        np.testing.assert_array_equal(f(x, off), np.sort(x[np.clip(np.arange(200)[:, None] + off, 0, 199)])[:, -2])
        g = ptxgen.reduce({"x": "f32[n]"}, "two", operators={"two": two}, map={"first": "x", "second": "-inf"}, outputs={"y": ("f32", "r.second")})
        self.assertEqual(g(x), np.sort(x)[-2])
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "gather"):
            ptxgen.vjp(f)

    def test_scans(self):
        x = RANDOM.standard_normal(1000, "f4")
        f = ptxgen.scan({"x": "f32[n]"}, "add", mode="exclusive", direction="reverse", outputs={"after": "f32[n]"})
        np.testing.assert_allclose(f(x), (np.cumsum(x[::-1]) - x[::-1])[::-1], rtol=0, atol=1e-3)

    def test_stencils(self):
        u = RANDOM.standard_normal((40, 50), "f4")
        f = ptxgen.stencil({"u": "f32[m, n]"}, params={"steps": {"type": "i32", "value": 1}}, boundary="interior", name="jacobi2d",
                           iterate={"steps": "steps", "feedback": {"u": "out"}},
                           outputs={"out": ("f32[m, n]", lambda u: 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]))})
        self.check(f, "jacobi2d", u, steps=3)
        residual = ptxgen.stencil({"u": "f32[n]"}, outputs={"out": ("f32[n]", lambda u: 0.5 * (u[-1] + u[1])), "change": "f32"},
                                  reductions={"change": {"map": lambda out, u: abs(out - u), "operator": "max"}})
        made = residual(u[0])
        self.assertEqual(made.change, np.max(np.abs(made.out - u[0])))

    def test_maps(self):
        x = RANDOM.standard_normal(100, "f4")
        f = ptxgen.map({"x": "f32[n]"}, params={"k": "f32"}, outputs={
            "y": ("f32[n]", lambda x, k: ops.where(x > 0, x * k, -x)), "i": ("i64[n]", lambda n: n - 1 - ops.index(n))})
        made = f(x, k=2)
        self.assertIn("kind: map", f.yaml)
        self.assertTrue(repr(f).startswith("<ptxgen.Function map"), repr(f))
        np.testing.assert_array_equal(made.y, np.where(x > 0, x * 2, -x))
        np.testing.assert_array_equal(made.i, np.arange(99, -1, -1))


class Text(unittest.TestCase):
    def test_yaml(self):
        f = ptxgen.reduce({"x": "f32[n]"}, "add", map=lambda x: x * x, outputs={"norm": ("f32", lambda r: ops.sqrt(r))})
        self.assertEqual(f.yaml, """kind: reduce
inputs:
  x: f32[n]
operator: add
map: x * x
outputs:
  norm: {type: f32, value: sqrt(r)}
""")
        self.assertEqual(ptxgen.compile(f.yaml)(np.array([3, 4], "f4")), 5)

    def test_what_is_used_twice_becomes_a_let(self):
        def deep(x):
            for _ in range(40):  # 2 ** 40 times x, written out
                x = x + x
            return x

        f = ptxgen.map({"x": "f64[n]"}, outputs={"y": ("f64[n]", deep)})
        self.assertLess(len(f.yaml), 2000)
        self.assertEqual(f(np.ones(1))[0], 2.0 ** 40)

        def square(t1):
            more = t1 + 1
            return more * more

        g = ptxgen.reduce({"t1": "f32[n]"}, "add", map=square, outputs={"sum": "f32"})  # the let has a name that is free
        self.assertIn("let:\n  t2: t1 + 1\n", g.yaml)
        self.assertEqual(g(np.array([1, 2], "f4")), 13)

        @ptxgen.operator(identity=0)
        def odd(a: "i32", b):
            both = a ^ b
            return (both | 1) & both

        self.assertEqual(odd.spec["let"], {"t1": "a ^ b"})
        self.assertEqual(odd.spec["combine"], "(t1 | 1) & t1")
        self.assertEqual(odd(6, 3), 5)

    def test_precedence(self):
        """Every pair of operators, grouped either way, against Python's own arithmetic."""
        symbols = ["+", "-", "*", "&", "|", "^", "<<"]
        cases = [f"(x {p} y) {q} z" for p in symbols for q in symbols] + [f"x {p} (y {q} z)" for p in symbols for q in symbols]
        cases += ["-(x + y)", "-x * y", "~(x & y) + z", "ops.where((x < y) & (y > z), x, z)", "ops.i64((x < y) == (y < z))", "x - (y - z)", "-(-x)", "7 - x", "2 << y", "1 - (2 - z)"]
        for begin in range(0, len(cases), 30):
            part = cases[begin:begin + 30]
            outputs = {f"o{i}": ("i64[n]", eval(f"lambda x, y, z: {case}", {"ops": ops})) for i, case in enumerate(part)}
            made = ptxgen.map({"x": "i64[n]", "y": "i64[n]", "z": "i64[n]"}, outputs=outputs)(*np.array([[5], [3], [2]]))
            host = type("Host", (), {"where": staticmethod(lambda c, x, y: x if c else y), "i64": int})
            for case, got in zip(part, made):
                self.assertEqual(got[0], eval(case, {"x": 5, "y": 3, "z": 2, "ops": host}), case)

    def test_numbers(self):
        f = ptxgen.map({"x": "f64[n]"}, outputs={
            "a": ("f64[n]", lambda x: x + 1e-300), "b": ("f64[n]", lambda x: x - -2.5e17), "c": ("f64[n]", lambda x: x * float("inf"))})
        made = f(np.array([1.0]))
        self.assertEqual((made.a[0], made.b[0], made.c[0]), (1.0 + 1e-300, 1 + 2.5e17, np.inf))

    def test_every_function_of_the_language_is_there(self):
        text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
        table = text[text.index("\n## Functions\n"):text.index("\n## Operators\n")]
        said = {line.split("`")[1].split("(")[0] for line in table.splitlines() if line.startswith("| `")}
        table = text[text.index("\n## Types\n"):text.index("\n## Functions\n")]
        said |= {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
        self.assertEqual(said, set(ops.NAMES))


class Written(unittest.TestCase):
    """What a user would write, beside what a spec would say."""

    def test_opposites(self):
        f = ptxgen.map({"x": "f32[n]", "keep": "bool[n]"}, outputs={"y": ("f32[n]", lambda x, keep: ops.where(~(x > 0) & ~keep, x, 0))})
        np.testing.assert_array_equal(f(np.array([1, -2, -3], "f4"), np.array([False, True, False])), [0, 0, -3])
        bits = ptxgen.map({"x": "i32[n]"}, outputs={"y": ("i32[n]", lambda x: ~x)})
        np.testing.assert_array_equal(bits(np.array([5], "i4")), [-6])

    def test_what_else_is_a_condition(self):
        """Fields, params, elements at places, what and, or and operators of bool give, and what reductions of a stencil's outputs see."""
        pairs = np.array([(True, 1), (False, 2)], np.dtype([("k", "?"), ("v", "f4")], align=True))
        inputs = {"x": {"type": {"k": "bool", "v": "f32"}, "shape": ["n"]}, "keep": "bool[m]", "i": "i32[n]"}
        f = ptxgen.map(inputs, params={"on": {"type": "bool", "value": True}}, let={"off": lambda on: ~on},
                       outputs={"y": ("f32[n]", lambda x, keep, i, on, off: ops.where(~x.k & ~ops.at(keep, i) & ~ops.at(x, i).k & on & ~off, x.v, 0))})
        np.testing.assert_array_equal(f(pairs, np.array([True, False]), np.array([0, 1], "i4")), [0, 2])
        x = np.array([True, False])
        for operator, both in (("and", False), ("or", True), (ptxgen.operator(lambda a, b: ~(~a | ~b), state="bool", identity=True), False)):
            one = ptxgen.reduce({"x": "bool[n]"}, operator, outputs={"r_": ("bool", lambda r: ~r)})
            several = ptxgen.reduce({"x": "bool[n]"}, reductions={"some": {"map": lambda x: ~x, "operator": operator}},
                                    outputs={"y": ("bool", lambda some: ~some)})
            running = ptxgen.scan({"x": "f32[n]"}, operator, map=lambda x: x > 0, outputs={"y": ("bool[n]", lambda s: ~s), "t": ("bool", lambda total: ~total)})
            self.assertEqual((one(x), several(x)), (not both, not both))
            self.assertEqual([y.tolist() for y in running(x.astype("f4"))], [[False, not both], not both])
        bits = ptxgen.reduce({"x": "i32[n]"}, "and", outputs={"y": ("i32", lambda r: ~r)})
        self.assertEqual(bits(np.array([7, 13], "i4")), ~5)
        none = ptxgen.stencil({"u": "f32[n]"}, outputs={"high": ("bool[n]", lambda u: u > 1), "none": "bool"},
                              reductions={"none": {"map": lambda high: ~high, "operator": "and"}})
        self.assertEqual([none(np.array([0, u], "f4")).none for u in (1, 2)], [True, False])

    def test_scalars_of_numpy(self):
        f = ptxgen.map({"x": "f32[n]"}, outputs={"y": ("f32[n]", lambda x: ops.where((x > np.float32(.5)) & np.True_, x * np.int64(3), np.float64(2)))})
        np.testing.assert_array_equal(f(np.array([1, 0], "f4")), [3, 2])
        f = ptxgen.map({"x": "f32[n]"}, outputs={"y": ("f32[n]", lambda x: ops.where(np.True_ & (np.float32(.5) < x), np.int64(3) * x, np.float64(2) - x))})
        np.testing.assert_array_equal(f(np.array([1, 0], "f4")), [3, 2])

    def test_what_says_that_it_is_a_number(self):
        class Seven:
            def __index__(self):
                return 7

        f = ptxgen.map({"x": "f64[n]"}, outputs={"y": ("f64[n]", lambda x: x * Seven() + fractions.Fraction(1, 2) - np.longdouble(1) + np.array(2))})
        np.testing.assert_array_equal(f(np.array([1.0])), [8.5])
        for wrong in (1j, np.complex64(1), np.array([1.0]), np.str_("1"), None, 10 ** 400):
            with self.assertRaises((TypeError, ptxgen.SpecError), msg=repr(wrong)):
                ptxgen.map({"x": "f32[n]"}, outputs={"y": ("f32[n]", lambda x, wrong=wrong: x * wrong)})
            with self.assertRaises((TypeError, ptxgen.SpecError), msg=repr(wrong)):
                ptxgen.map({"x": "f32[n]"}, outputs={"y": ("f32[n]", lambda x, wrong=wrong: wrong * x)})

    def test_powers(self):
        """Squares, cubes and fourth powers are products, of integers too; other powers are pow()."""
        x = np.arange(-4, 5, dtype="i4")
        f = ptxgen.map({"x": "i32[n]"}, outputs={f"p{n}": ("i32[n]", lambda x, by=by: (x + 1) ** by) for n, by in ((2, 2), (3, np.int32(3)), (4, 4))})
        for n, made in zip((2, 3, 4), f(x)):
            np.testing.assert_array_equal(made, (x + 1) ** n)
        self.assertNotIn("pow", f.yaml)
        f = ptxgen.map({"x": "f64[n]"}, outputs={"y": ("f64[n]", lambda x: x ** 1.5 + 2 ** x + x ** x + x ** 2.0)})
        self.assertEqual(f(np.array([4.0])), 8 + 16 + 256 + 16)
        self.assertEqual(f.yaml.count("pow("), 4)

    def test_defaults_stay(self):
        functions = [ptxgen.map({"x": "i32[n]"}, outputs={"y": ("i32[n]", lambda x, i=i: x * i)}) for i in (2, 5)]
        functions += [ptxgen.map({"x": "i32[n]"}, outputs={"y": ("i32[n]", f)}) for f in (lambda *, x, k=3: x * k, functools.partial(lambda x, k: x * k, k=4))]
        self.assertEqual([f(np.array([7], "i4"))[0] for f in functions], [14, 35, 21, 28])
        operators = [ptxgen.operator(lambda a, b, k=k: a + b + k, state="i32", identity=-k) for k in (1, 2)]
        self.assertEqual([ptxgen.reduce({"x": "i32[n]"}, operator, outputs={"y": "i32"})(np.array([7, 8], "i4")) for operator in operators], [16, 17])
        with self.assertRaisesRegex(TypeError, "'k' has a default, and is the name of a value here"):
            ptxgen.map({"x": "i32[n]"}, params={"k": "i32"}, outputs={"y": ("i32[n]", lambda x, k=3: x * k)})

    def test_computed_places(self):
        f = ptxgen.map({"x": "i32[k]", "i": "i32[n]"}, outputs={"y": ("i32[n]", lambda x, i: ops.at(x, i))})
        np.testing.assert_array_equal(f(np.array([3, 4, 5], "i4"), np.array([2, 0], "i4")), [5, 3])
        f = ptxgen.map({"x": "i32[k, l]", "i": "i32[n]"}, outputs={"y": ("i32[n]", lambda x, i: ops.at(x, i + 1, 0) + ops.at(x, 0, i))})
        np.testing.assert_array_equal(f(np.array([[3, 4], [5, 6]], "i4"), np.array([0], "i4")), [8])
        for wrong in (lambda x: ops.at(x + 1, 0), lambda x: ops.at("x", 0), lambda x: ops.at(x)):
            with self.assertRaisesRegex(TypeError, "an index per dimension"):
                ptxgen.map({"x": "f32[n]"}, outputs={"y": ("f32[n]", wrong)})
        with self.assertRaisesRegex(AttributeError, r"'at\(x, x\)' has no field 'q'"):
            ptxgen.map({"x": "i32[n]"}, outputs={"y": ("f32[n]", lambda x: ops.at(x, x).q)})

    def test_annotations_that_are_texts(self):
        scope = {"ptxgen": ptxgen, "STATE": {"p": "f32"}, "f32": ops.f32, "ops": types.SimpleNamespace(Pair={"p": "f32"})}
        exec(compile("from __future__ import annotations\n"  # pylint: disable=exec-used
                     "@ptxgen.operator(identity=0)\ndef add(a: 'f32', b): return a + b\n"
                     "@ptxgen.operator(identity=0)\ndef bare(a: f32, b): return a + b\n"
                     "@ptxgen.operator(identity={'p': 0})\ndef adds(a: {'p': 'f32'}, b): return {'p': a.p + b.p}\n"
                     "@ptxgen.operator(identity={'p': 0})\ndef named(a: STATE, b): return {'p': a.p + b.p}\n"
                     "@ptxgen.operator(identity={'p': 0})\ndef dotted(a: ops.Pair, b): return {'p': a.p + b.p}\n"
                     "@ptxgen.operator(identity={'p': 0})\ndef made(a: dict(p='f32'), b): return {'p': a.p + b.p}\n"
                     "def closed(kind):\n"
                     "    @ptxgen.operator(identity=0)\n    def inner(a: kind, b):\n        kind\n        return a + b\n"
                     "    return inner\n", "text", "exec"), scope)
        self.assertEqual([scope[name].spec["state"] for name in ("add", "bare")] + [scope["closed"]("f32").spec["state"]], ["f32"] * 3)
        self.assertEqual([scope[name].spec["state"] for name in ("adds", "named", "dotted", "made")], [{"p": "f32"}] * 4)
        for wrong in ("'Elsewhere'", "'f33'", "'f32[n]'", "float"):
            with self.assertRaisesRegex(TypeError, "state"):
                exec(f"@ptxgen.operator\ndef local(a: {wrong}, b): return a + b", scope)  # pylint: disable=exec-used

    def test_any_mapping(self):
        view = types.MappingProxyType
        f = ptxgen.compile(view({"kind": "reduce", "inputs": view({"x": "i32[n]"}), "operator": "add", "outputs": {"s": "i32"}}))
        self.assertEqual(f(np.array([3, 4], "i4")), 7)
        f = ptxgen.reduce(view({"x": "f32[n]"}), reductions=view({"s": view({"map": lambda twice: view({"max": twice, "sum": 1.0}), "operator": "logsumexp"})}),
                          outputs=view({"most": view({"type": "f32", "value": lambda s: s.max})}), params=view({}), let=view({"twice": lambda x: x + x}))
        self.assertEqual(f(np.array([3, 4], "f4")), 8)

    def test_what_has_no_form_in_a_spec(self):
        """The text of an object would be its address."""
        f = ptxgen.map({"x": "f32[n]"}, outputs={"y": ("f32[n]", ops.expression("x + 1"))})
        self.assertEqual(f(np.array([1], "f4")), [2])
        for wrong in (object(), None, np.ones(2), len):
            with self.assertRaisesRegex(TypeError, "has no form in a spec"):
                ptxgen.compile({"kind": "map", "inputs": {"x": "f32[n]"}, "outputs": {"y": {"type": "f32[n]", "value": wrong}}})

    def test_sizes_that_are_too_large(self):
        with self.assertRaisesRegex(ptxgen.UsageError, "size 'n' does not fit 64 bits"):
            spec("dot").explain(n=1 << 70)
        for wrong in (lambda n: spec("dot").explain(n=n), lambda n: ptxgen.load(ROOT / "specs/dot.yaml", sizes={"n": n})):
            with self.assertRaisesRegex(ptxgen.UsageError, "size 'n' is negative"):
                wrong(-1)

    def test_codes(self):
        self.assertEqual(ptxgen.explain_code("PTXG-2010"), ptxgen.explain_code(2010))
        for wrong in ("2010", "PTXG-", "PTXG-2x", "PTXG- 2010", "PTXG-" + "9" * 30, -1, 1 << 70, (1 << 32) + 2010):
            with self.assertRaisesRegex(ptxgen.UsageError, "PTXG-2010"):
                ptxgen.explain_code(wrong)


class Refused(unittest.TestCase):
    def test_with_what_to_write(self):
        def tried(function, operator="add"):
            return ptxgen.reduce({"x": "f32[n]"}, operator, map=function, outputs={"r": "f32"})

        for function, operator, says in ((lambda x: x // 2, "add", "no //"), (lambda x: x, lambda a, b: a + b, "@ptxgen.operator"),
                                         (lambda x: x[x], "add", r"ops.at\(x, i\)"), (lambda x: divmod(x, 2)[0], "add", "no //"),
                                         (math.sqrt, "add", "nothing called|ops.sqrt"), (lambda x: math.sqrt(x), "add", "ops.sqrt"),
                                         (lambda x: max(x, 0), "add", "ops.min and ops.max for"), (lambda x: np.arctan2(x, 1), "add", "numpy.arctan2 .*: write ops.atan2$"),
                                         (lambda x: np.maximum(0, x), "add", "write ops.max$"), (lambda x: np.add.reduce(x), "add", "numpy.add .* with the functions of ops"),
                                         (lambda x: np.add(x, 1, where=False), "add", "numpy.add"), (lambda x: np.gcd(x, 2), "add", "numpy.gcd"),
                                         (ops.sqrt, "add", r"lambda x: ops.sqrt\(x\)"), (lambda x: [1, 2][x], "add", "ops.i32"), (lambda x: x, max, "'max'")):
            with self.assertRaisesRegex(TypeError, says):
                tried(function, operator)
        seen = []
        tried(lambda x: seen.append(x * 2) or x)
        self.assertEqual(repr(seen[0]), "<ptxgen value x * 2>")

    def test_declarations(self):
        for inputs, outputs, says in ((["x"], {"y": "f32"}, "inputs are a dict .* not \\['x'\\]"), ({"x": "f32[n]"}, "f32", "outputs are a dict"),
                                      ({"x": "f32[n]"}, {"y": lambda x: x}, "output 'y' is a type"), ({"x": "f32[n]"}, {"y": ("f32", abs, 1)}, "a pair of a type and a function")):
            with self.assertRaisesRegex(TypeError, says):
                ptxgen.reduce(inputs, "add", outputs=outputs)

    def test_names_of_numpy(self):
        """Each is one of NumPy's, and what it stands for is there."""
        for name, ours in [*values.FUNCTIONS.items(), *((name, "where") for name in values.OPERATORS)]:
            self.assertIsInstance(getattr(np, name), np.ufunc)
            self.assertIn(ours, dir(ops))

    def test_more_operations_than_a_spec_may_have(self):
        for count in (600, 3000):
            with self.assertRaisesRegex(ptxgen.SpecError, "512"):
                ptxgen.map({"u": "f32[n]"}, outputs={"y": ("f32[n]", lambda u, count=count: sum(u[i] for i in range(count)))})

    def test_python_that_needs_a_value(self):
        for wrong in (lambda x: 1 if x > 0 else 0, lambda x: x[0][1] if x.a.b[0] + 1 else 0, lambda x: (x + 1)[0], lambda x: (x + 1).a,
                      lambda x: sum(x), lambda x: x + "1", lambda z: z):
            with self.assertRaises((TypeError, AttributeError)):
                ptxgen.map({"x": "f32[n]"}, outputs={"y": ("f32[n]", wrong)})
        with self.assertRaisesRegex(TypeError, "there is nothing called 'z' here; there is x, n"):
            ptxgen.map({"x": "f32[n]"}, outputs={"y": ("f32[n]", lambda z: z)})
        with self.assertRaisesRegex(TypeError, "is no operator"):
            ptxgen.operator(lambda a, b: a)
        with self.assertRaisesRegex(AttributeError, "no function 'nothing'"):
            ops.nothing

    def test_errors_are_located_in_the_text(self):
        with self.assertRaises(ptxgen.SpecError) as caught:
            ptxgen.map({"x": "f32[n]"}, outputs={"y": ("f32[n]", lambda x: x & x)})
        self.assertIn("x & x", caught.exception.__notes__[-1])

    def test_an_operator_that_is_none_is_refuted(self):
        @ptxgen.operator(identity=0)
        def minus(a: "i32", b):
            return a - b

        with self.assertRaisesRegex(ptxgen.SpecError, "associative"):
            ptxgen.reduce({"x": "i32[n]"}, minus, outputs={"r": "i32"}).check("off")


if __name__ == "__main__":
    unittest.main()
