# SPDX-License-Identifier: Apache-2.0
"""Gradients: beside differences of the function itself in f64, beside formulas by hand, and refusals that name the reason."""
import pathlib
import re
import unittest

import numpy as np

import ptxgen
from ptxgen._vjp import Backward

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(11)
ROWS = "inputs: {x: 'f64[m, n]'}\nover: n\nkind: reduce\n"

# A name, a spec, and the shapes of what is differentiated; sizes and params are the same for all.
SPECS = {
    "sum": ("kind: reduce\ninputs: {x: 'f64[n]'}\noperator: add\noutputs: {s: f64}", {"x": (7,)}),
    "dot": ("kind: reduce\ninputs: {x: 'f64[n]', y: 'f64[n]'}\nmap: x * y\noperator: add\noutputs: {s: f64}", {"x": (7,), "y": (7,)}),
    "rows": (ROWS + "map: exp(x) * x\noperator: add\noutputs: {s: 'f64[m]'}", {"x": (3, 5)}),
    "matvec": ("kind: reduce\ninputs: {x: 'f64[m, n]', v: 'f64[n]'}\nover: n\nmap: x * v\noperator: add\noutputs: {y: 'f64[m]'}",
               {"x": (3, 5), "v": (5,)}),
    "norm": ("kind: reduce\ninputs: {x: 'f64[m, n]', scale: 'f64[m]'}\nover: n\nmap: x * x\noperator: add\n"
             "outputs: {norm: {type: 'f64[m]', value: sqrt(r) * scale}, scaled: {type: 'f64[m, n]', value: sin(x) * scale}}", {"x": (3, 5), "scale": (3,)}),
    "cosine": ("kind: reduce\ninputs: {x: 'f64[n]', y: 'f64[n]'}\nreductions: {xy: {map: x * y, operator: add}, xx: {map: x * x, operator: add},\n"
               "  yy: {map: y * y, operator: add}}\noutputs: {c: {type: f64, value: xy * rsqrt(xx * yy)}}", {"x": (6,), "y": (6,)}),
    "own sums": ("kind: reduce\ninputs: {x: 'f64[n]', w: 'f64[n]'}\nmap: {s: x * w, w: w}\noperator: {state: {s: f64, w: f64}, identity: {s: 0, w: 0},\n"
                 "  combine: {s: a.s + b.s, w: a.w + b.w}}\noutputs: {mean: {type: f64, value: r.s / r.w}}", {"x": (6,), "w": (6,)}),
    "contracted": ("contract: true\nkind: reduce\ninputs: {x: 'f64[n]', w: 'f64[n]'}\nmap: x * w + x * x\noperator: add\noutputs: {s: {type: f64, value: r * r - r}}",
                   {"x": (6,), "w": (6,)}),
    "softmax": (ROWS + "operator: logsumexp\noutputs: {y: {type: 'f64[m, n]', value: exp(x - r.max) / r.sum}}", {"x": (3, 5)}),
    "log softmax": (ROWS + "operator: logsumexp\noutputs: {y: {type: 'f64[m, n]', value: x - r.max - log(r.sum)}, l: 'f64[m]'}", {"x": (3, 5)}),
    "rms norm": ("kind: reduce\ninputs: {x: 'f64[m, n]', w: 'f64[n]'}\nparams: {k: {type: f64, value: 1e-5}}\nover: n\nmap: x * x\noperator: add\n"
                 "outputs: {y: {type: 'f64[m, n]', value: x * rsqrt(r / f64(n) + k) * w}}", {"x": (3, 5), "w": (5,)}),
    "layer norm": ("kind: reduce\ninputs: {x: 'f64[m, n]', w: 'f64[n]', b: 'f64[n]'}\nover: n\noperator: welford\nmap: x\n"
                   "outputs: {y: {type: 'f64[m, n]', value: (x - r.mean) * rsqrt(r.m2 / r.n + 1e-5) * w + b}, mean: 'f64[m]'}",
                   {"x": (3, 5), "w": (5,), "b": (5,)}),
    "columns": ("kind: reduce\ninputs: {x: 'f64[m, n]'}\nover: m\noperator: welford\nmap: x\noutputs: {v: {type: 'f64[n]', value: r.m2 / (r.n - 1)}}", {"x": (4, 3)}),
    "neighbours": ("kind: reduce\ninputs: {x: 'f64[m, n]'}\nover: n\nboundary: {constant: 2}\nmap: x * x[0, -1] / (3 + x[1, 0])\noperator: add\noutputs: {s: 'f64[m]'}", {"x": (3, 4)}),
    "map": ("kind: map\ninputs: {x: 'f64[n]', y: 'f64[n]'}\nparams: {k: {type: f64, value: 2}}\nlet: {d: x - k * y}\n"
            "outputs: {a: {type: 'f64[n]', value: tanh(d) * d}, b: {type: 'f64[n]', value: 'pow(x, y) + atan2(x, y) / hypot(x, 2) + max(x, 1) + abs(d) + clamp(x, y - 0.3, y + 0.2) * x + 3 * x % y + hypot(x, y)'}}",
            {"x": (6,), "y": (6,)}),
    "functions": ("kind: map\ninputs: {x: 'f64[n]'}\noutputs: {a: {type: 'f64[n]', value: 'rsqrt(x) + cbrt(x) + exp2(x) + exp10(x) + expm1(x) + log(x) + log2(x)'},\n"
                  "  b: {type: 'f64[n]', value: 'log10(x) + log1p(x) + cos(x) + tan(x) + asin(x / 4) + acos(x / 4) + atan(x)'},\n"
                  "  c: {type: 'f64[n]', value: 'sinh(x) + cosh(x) + erf(x) + fma(x, x, x) + x % 1 + (if x > 1 then x else -x) + clamp(x, 0.7, 1.1) + floor(x)'},\n"
                  "  d: {type: 'f64[n]', value: 'f64(f32(1)) * 2 / x - min(x * x, x)'}}", {"x": (6,)}),
    "broadcast": ("kind: map\ninputs: {x: 'f64[m, n]', r: 'f64[m]', c: 'f64[n]', s: 'f64[]'}\noutputs: {y: {type: 'f64[m, n]', value: x * r * s + c * c}}",
                  {"x": (3, 4), "r": (3,), "c": (4,), "s": ()}),
    "heat": ("kind: stencil\ninputs: {u: 'f64[m, n]'}\nboundary: wrap\noutputs: {y: {type: 'f64[m, n]', value: 'u + 0.2 * (u[-1, 0] + u[1, 0] + u[0, -2] - 3 * u)'}}",
             {"u": (4, 5)}),
    "zero edge": ("kind: stencil\ninputs: {u: 'f64[n]'}\nboundary: {constant: 0}\noutputs: {y: {type: 'f64[n]', value: '0.5 * u[-1] - 2 * u + 0.25 * u[2]'}}", {"u": (6,)}),
    "burgers": ("kind: stencil\ninputs: {u: 'f64[n]', k: 'f64[n]'}\nboundary: {u: wrap}\noutputs: {y: {type: 'f64[n]', value: 'u - k * u * (u[1] - u[-1]) / (1 + u[1] * u[1])'}}",
                {"u": (6,), "k": (6,)}),
    "constant edge": ("kind: stencil\ninputs: {u: 'f64[n]', k: 'f64[n]'}\nboundary: {u: {constant: 1.5}, k: mirror}\noutputs: {y: {type: 'f64[n]', value: 'sin(u[-1] * u[1]) / (2 + u)'}}",
                      {"u": (6,)}),
    "beyond the edge": ("kind: stencil\ninputs: {u: 'f64[n]'}\nboundary: {constant: 0}\noutputs: {y: {type: 'f64[n]', value: 'u[1] / u'}}", {"u": (5,)}),
    "clamp": ("kind: stencil\ninputs: {u: 'f64[m, n]'}\noutputs: {y: {type: 'f64[m, n]', value: 'u[-2, 0] * u[1, 1] + 3 * u[0, -1]'}}", {"u": (4, 3)}),
    "short clamp": ("kind: stencil\ninputs: {u: 'f64[n]'}\noutputs: {y: {type: 'f64[n]', value: 'u[-3] * u[2] + u'}}", {"u": (2,)}),
    "interior": ("kind: stencil\ninputs: {u: 'f64[m, n]', k: 'f64[n]'}\nboundary: interior\noutputs: {y: {type: 'f64[m, n]', value: 'k[1] * (u[-1, 0] + u[1, 0] * u[0, -1])'}}",
                 {"u": (4, 5), "k": (5,)}),
    "jacobi": ("kind: stencil\ninputs: {u: 'f64[m, n]'}\nparams: {steps: {type: i32, value: 3}}\nboundary: interior\niterate: {steps: steps, feedback: {u: y}}\n"
               "outputs: {y: {type: 'f64[m, n]', value: '0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + 2 * u[0, 1])'}}", {"u": (4, 5)}),
    "steps": ("kind: stencil\ninputs: {u: 'f64[n]', k: 'f64[n]'}\nboundary: {u: clamp, k: mirror}\niterate: {steps: 4, feedback: {u: y}}\n"
              "outputs: {y: {type: 'f64[n]', value: 'u + 0.1 * k[1] * (u[-1] - 2 * u) + k'}}", {"u": (6,)}),
    "cumulative": ("kind: scan\ninputs: {x: 'f64[m, n]'}\noperator: add\nmap: x * x\noutputs: {y: 'f64[m, n]', t: {type: 'f64[m]', value: sin(total)}}", {"x": (3, 5)}),
    "from the right": ("kind: scan\ninputs: {x: 'f64[m, n]', w: 'f64[n]'}\noperator: add\nmap: x * w\nover: m\nmode: exclusive\ndirection: reverse\n"
                       "outputs: {y: {type: 'f64[m, n]', value: exp(s) * x}, t: 'f64[n]'}", {"x": (3, 5), "w": (5,)}),
    "differences": ("kind: scan\ninputs: {x: 'f64[n]'}\nboundary: {constant: 0}\noperator: add\nmap: x * x[-1]\noutputs: {y: 'f64[n]'}", {"x": (6,)}),
    "runs": ("kind: scan\ninputs: {x: 'f64[n]', f: 'i32[n]'}\nsegments: {flags: f}\noperator: add\nmap: x\noutputs: {y: {type: 'f64[n]', value: s * s}}", {"x": (6,)}),
    "recurrence": ("kind: scan\ninputs: {a: 'f64[n]', b: 'f64[n]'}\nparams: {k: {type: f64, value: 2}}\noperator: affine\nmap: {a: a, b: b}\n"
                   "outputs: {y: {type: 'f64[n]', value: s.a * k + s.b}}", {"a": (6,), "b": (6,)}),
    "recurrences": ("kind: scan\ninputs: {a: 'f64[m, n]', b: 'f64[m, n]', d: 'f64[n]'}\noperator: affine\nmap: {a: tanh(a) * d, b: b * a}\nover: m\ndirection: reverse\n"
                    "outputs: {y: {type: 'f64[m, n]', value: s.b * s.b}, t: {type: 'f64[n]', value: total.b}}", {"a": (4, 3), "b": (4, 3), "d": (3,)}),
    "exclusive": ("kind: scan\ninputs: {a: 'f64[n]', b: 'f64[n]'}\noperator: affine\nmap: {a: a, b: b}\nmode: exclusive\noutputs: {y: {type: 'f64[n]', value: s.b + s.a}}",
                  {"a": (6,), "b": (6,)}),
    "what remains": ("kind: scan\ninputs: {a: 'f64[m, n]', b: 'f64[m, n]'}\noperator: affine\nmap: {a: a, b: b}\nover: [m, n]\nmode: exclusive\n"
                     "outputs: {y: {type: 'f64[m, n]', value: s.b * a}, t: {type: f64, value: total.b * total.b + total.a}}", {"a": (2, 3), "b": (2, 3)}),
}


def spec(name):
    return ptxgen.load(ROOT / f"specs/{name}.yaml")


FIXED = {"f": np.array([0, 0, 1, 0, 1, 0], "i4"), "k": np.linspace(1, 2, 6)}


def results(f, args):
    made = f(**args, **({"out": {"y": np.zeros((4, 5))}} if "interior" in f.yaml else {}))
    return dict(zip(f.outputs, made if isinstance(made, tuple) else (made,)))


def called(g, args, cotangents):
    every = {**args, **{f"grad_{name}": c for name, c in cotangents.items()}}
    made = g(**{name: every[name] for name in g.inputs})
    return dict(zip(g.outputs, made if isinstance(made, tuple) else (made,)))


def differences(f, args, cotangents, name, step=1e-6):
    made = np.zeros_like(args[name])
    for at in np.ndindex(made.shape):
        both = []
        for side in (step, -step):
            moved = args[name].copy()
            moved[at] += side
            both.append(sum(np.sum(c * results(f, {**args, name: moved})[out]) for out, c in cotangents.items()))
        made[at] = (both[0] - both[1]) / (2 * step)
    return made


class Differences(unittest.TestCase):
    def test_every_spec(self):
        for name, (text, shapes) in SPECS.items():
            with self.subTest(name):
                f = ptxgen.compile(text)
                args = {x: np.asarray(RANDOM.uniform(0.5, 1.5, shape)) for x, shape in shapes.items()}
                args.update({x: FIXED[x] for x in f.inputs if x not in args})
                cotangents = {out: RANDOM.standard_normal(made.shape) for out, made in results(f, args).items()}
                g = ptxgen.vjp(f, list(shapes))
                made = called(g, args, cotangents)
                self.assertEqual(list(made), [f"grad_{x}" for x in shapes])
                for x in shapes:
                    np.testing.assert_allclose(made[f"grad_{x}"], differences(f, args, cotangents, x), rtol=1e-6, atol=1e-7, err_msg=f"{x}\n{g.yaml}")


def gradient(f, **args):
    made = ptxgen.vjp(f, outputs=[name[5:] for name in args if name.startswith("grad_")])
    return made(**{name: args[name] for name in made.inputs})


class Formulas(unittest.TestCase):
    """The specs of this repository beside what stands in books, in f32."""

    def near(self, made, wanted):
        np.testing.assert_allclose(made, wanted, rtol=2e-5, atol=2e-5)

    def setUp(self):
        self.x, self.g = RANDOM.standard_normal((2, 20, 300)).astype("f4")

    def test_softmax(self):
        y = np.exp(self.x) / np.exp(self.x).sum(1, keepdims=True)
        self.near(gradient(spec("softmax"), x=self.x, grad_y=self.g), y * (self.g - (self.g * y).sum(1, keepdims=True)))
        far = np.array([[1000, -np.inf, 999]], "f4")  # no overflow, and nothing for what was masked
        self.near(gradient(spec("softmax"), x=far, grad_y=np.array([[1, 1, 0]], "f4")), [[0.19661, 0, -0.19661]])
        text = ptxgen.compile(ROWS.replace("f64", "f32") + "operator: logsumexp\noutputs: {y: {type: 'f32[m, n]', value: x - r.max - log(r.sum)}}")
        self.near(gradient(text, x=self.x, grad_y=self.g), self.g - y * self.g.sum(1, keepdims=True))

    def test_branches_that_are_not_taken(self):
        """Give nothing, also where they have no value or no derivative."""
        x = np.array([-2, -1, 0, 1, 4], "f8")
        for value, wanted in (("select(x > 0, sqrt(x), x)", [1, 1, 1, 0.5, 0.25]), ("if x > 0 then log(x) * sqrt(x) else 0", [0, 0, 0, 1, np.log(4) / 4 + 0.5]),
                              ("select(x == 0, 1, 1 / x)", [-0.25, -1, 0, -1, -1 / 16]), ("select(x > 0, exp(select(x > 2, log(x), x)), 0)", [0, 0, 0, np.e, 1]),
                              ("max(sqrt(x), 3) * x", [3, 3, 3, 3, 3]), ("select(x > 0, sqrt(x), 0) + select(x > 2, log(x), 0)", [0, 0, 0, 0.5, 0.5]),
                              ("select(x > 0, sqrt(x), 0) + select(x > 0, 0, sqrt(1 - x))", [-0.5 / 3 ** 0.5, -0.5 / 2 ** 0.5, -0.5, 0.5, 0.25])):
            f = ptxgen.compile({"kind": "map", "inputs": {"x": "f64[n]"}, "outputs": {"y": {"type": "f64[n]", "value": value}}})
            with self.subTest(value):
                np.testing.assert_allclose(gradient(f, x=x, grad_y=np.ones(5)), wanted)
        f = ptxgen.reduce({"x": "f64[m, n]"}, "add", over="n", map=lambda x: ptxgen.ops.where(x > 0, x * ptxgen.ops.log(x), 0), outputs={"s": "f64[m]"})
        np.testing.assert_allclose(gradient(f, x=x[None], grad_s=np.ones(1)), [[0, 0, 0, 1, np.log(4) + 1]])

    def test_half(self):
        """What is computed in f32 of f16 has its gradient in f32, rounded once."""
        f = ptxgen.compile("inputs: {x: 'f16[m, n]'}\nover: n\nkind: reduce\nmap: f32(x)\noperator: logsumexp\noutputs: {y: {type: 'f16[m, n]', value: f16(exp(f32(x) - r.max) / r.sum)}}")
        x, g = self.x.astype("f2"), self.g.astype("f2")
        y = np.exp(x.astype("f4")) / np.exp(x.astype("f4")).sum(1, keepdims=True)
        made = gradient(f, x=x, grad_y=g)
        self.assertEqual(made.dtype, "f2")
        np.testing.assert_allclose(made, y * (g - (g * y).sum(1, keepdims=True)), rtol=2e-3, atol=1e-6)

    def test_sums(self):
        x, y = self.x.reshape(-1), self.g.reshape(-1)
        made = gradient(spec("dot"), x=x, y=y, grad_dot=np.float32(3).reshape(()))
        self.near(made.grad_x, 3 * y)
        self.near(made.grad_y, 3 * x)
        self.near(gradient(spec("scan_sum"), x=x, grad_y=y, grad_total=np.float32(2).reshape(())), np.cumsum(y[::-1].astype("f8"))[::-1] + 2)

    def test_stencil(self):
        u = RANDOM.standard_normal((6, 7, 8)).astype("f4")  # this one is its own transposed
        self.near(gradient(spec("heat3d"), u=u, grad_out=u, k=0.1), spec("heat3d")(u, k=0.125))

    def test_recurrence(self):
        a, b, g = RANDOM.uniform(-1, 1, (3, 500)).astype("f4")
        z, y, grad_a, grad_b = np.float32(0), [np.float32(0.5)], [], []
        for i in range(500):
            y.append(a[i] * y[-1] + b[i])
        for i in reversed(range(500)):
            z = g[i] + (a[i + 1] * z if i < 499 else 0)
            grad_a.append(z * y[i])
            grad_b.append(z)
        made = ptxgen.vjp(spec("scan_affine"))(a, b, g, start=0.5)
        self.near(made.grad_a, grad_a[::-1])
        self.near(made.grad_b, grad_b[::-1])


class Specs(unittest.TestCase):
    def test_what_is_made_can_be_read(self):
        g = ptxgen.vjp(spec("row_softmax"))
        self.assertEqual(g.yaml, """kind: reduce
name: row_softmax_vjp
doc: What the inputs of row_softmax get from grad_ of its outputs.
inputs:
  x: f32[m, n]
  grad_normaliser: f32[m]
space: [m, n]
over: [n]
reductions:
  r: {map: {max: x, sum: f32(1.0)}, operator: logsumexp}
outputs:
  grad_x: {type: "f32[m, n]", value: grad_normaliser / r.sum * exp(x - r.max)}
""")
        self.assertEqual(repr(g), "<ptxgen.Function row_softmax_vjp(x: f32[m, n], grad_normaliser: f32[m]) -> grad_x: f32[m, n]>")
        self.assertEqual(list(ptxgen.vjp(spec("sum")).inputs), ["x", "grad_sum"])  # x for its shape
        self.assertIn("\ncontract: true\n", ptxgen.vjp(spec("contract")).yaml)
        same = {"kind": "map", "contract": True, "determinism": "run", "inputs": {"x": "f32[m, n]", "w": "f32[n]"},
                "outputs": {"y": {"type": "f32[m, n]", "value": "x * w + 1"}}}  # grad_w is a sum of products, which may not differ
        self.assertNotIn("contract", ptxgen.vjp(ptxgen.compile(same)).yaml)

    def test_all_specs(self):
        """Each is derived without a warning, or refused."""
        made = 0
        for path in sorted((ROOT / "specs").glob("*.yaml")):
            try:
                g = ptxgen.vjp(ptxgen.load(path))
            except ptxgen.UnsupportedError as error:
                self.assertRegex(str(error), ".{20}", path)
                continue
            made += 1
            self.assertEqual((path, g.diagnostics), (path, ()))
        self.assertGreaterEqual(made, 30)

    def test_a_part(self):
        f = spec("layer_norm")
        g = ptxgen.vjp(f, ["bias"], ["y"])
        self.assertEqual((list(g.inputs), list(g.outputs), g.params), (["grad_y"], ["grad_bias"], {}))
        named = ptxgen.vjp(ptxgen.compile("kind: map\ninputs: {ab: 'f32[n]', a: 'f32[n]'}\noutputs: {out: {type: 'f32[n]', value: ab * a}}\n"), "ab", "out")
        self.assertEqual(list(named.outputs), ["grad_ab"])  # and not the gradients by 'a' and 'b'
        with self.assertRaisesRegex(TypeError, "takes a function of ptxgen's"):
            ptxgen.vjp(f.yaml)
        self.assertIn(".target sm_90", ptxgen.vjp(ptxgen.compile(SPECS["sum"][0], arch="sm_90")).ptx())

    def test_refusals(self):
        for name, why, words in (("max_norm", "operator max has no gradient that follows from the spec", {}),
                                 ("mss", "no input is an array of floats", {}), ("polynomial", "operator of one's own that is no sum", {}),
                                 ("life", "no input", {}), ("wave1d", "'iterate' of several arrays", {}), ("hotspot2d", "'iterate' reads 'power' in each step", {}), ("gaussian5x5", "boundary reflect of 'x'", {}),
                                 ("segment_sum", "segments from offsets off", {}), ("sums_by_key", "what is computed by index", {}),
                                 ("matmul_naive", "'.' is read by at\\(\\), or in a sum", {}), ("scatter_add", "output 'y' is written", {}),
                                 ("bool_any", "output 'any' is no array of floats", {}), ("complex_product", "output 'product' has fields", {}),
                                 ("gather_sum", "gather", {}), ("dilation", "gather", {}), ("second_largest", "gather", {}), ("channel_mean", "dimensions that are one to the kernels, h\\*w", {}), ("sum", "'y' is no output", {"wrt": ["y"]}), ("affine", "operator affine", {})):
            with self.subTest(name), self.assertRaisesRegex(ptxgen.UnsupportedError, why):
                ptxgen.vjp(spec(name), **words)
        both = "kind: stencil\ninputs: {u: 'f64[n]', k: 'f64[n]'}\nboundary: {u: wrap, k: clamp}\noutputs: {y: {type: 'f64[n]', value: 'u[1] * k[1]'}}"
        apart = both.replace("u[1] * k[1]", "u[1] + u * k[1]")  # in one spec k would have two boundaries
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "'k' has the boundary clamp where another input wraps around"):
            ptxgen.vjp(ptxgen.compile(apart), ["u"])
        squares = "kind: map\ninputs: {u: 'f64[n]'}\niterate: {steps: 2, feedback: {u: y}}\noutputs: {y: {type: 'f64[n]', value: u * u}}"
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "a stencil that is not linear in 'u': its gradient needs the arrays of every step"):
            ptxgen.vjp(ptxgen.compile(squares))
        loose = "kind: map\ninputs: {x: 'f64[n]', y: 'f64[n]'}\noutputs: {z: {type: 'f64[n]', value: x + floor(y)}}"
        self.assertEqual(list(ptxgen.vjp(ptxgen.compile(loose)).outputs), ["grad_x"])
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "nothing depends on 'y'"):
            ptxgen.vjp(ptxgen.compile(loose), ["x", "y"])
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "no output depends on an array of floats"):
            ptxgen.vjp(ptxgen.compile(loose.replace("x + f", "f")))
        largest = ROWS + "operator: logsumexp\noutputs: {y: {type: 'f64[m]', value: r.max}}"
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "a maximum has no gradient"):
            ptxgen.vjp(ptxgen.compile(largest))
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "'k' has the boundary clamp where another input wraps around"):
            ptxgen.vjp(ptxgen.compile(both), ["u"])

    def test_programs_of_stages(self):
        back = ptxgen.vjp(ptxgen.load(ROOT / "specs/softmax.yaml"))
        for f, name in ((back, "softmax_vjp"), (ptxgen.load(ROOT / "specs/apps/heat.yaml"), "heat")):
            with self.assertRaisesRegex(ptxgen.UnsupportedError, f"^{name} is a program of stages"):
                ptxgen.vjp(f)

    def test_a_boundary_without_a_rule_is_refused(self):
        """A mode of the language that the gradients do not know, with and without a value, is refused by its name where it is read across an edge."""
        shift = "kind: stencil\ninputs: {u: 'f64[n]'}\nboundary: {constant: 0}\noutputs: {y: {type: 'f64[n]', value: 'u[1] * 2'}}"
        text = ptxgen.compile(shift)._problem
        known = re.search(r"boundary \[(constant [^\]]*)\]", text)[1]
        self.assertEqual(Backward(text, None, None).run()["inputs"], {"grad_y": "f64[n]"})
        for mode in ("antiperiodic", "tapered 0.5"):
            with self.subTest(mode), self.assertRaisesRegex(ptxgen.UnsupportedError, f"boundary {mode} of 'u': no rule is known for its transposed stencil"):
                Backward(text.replace(known, mode), None, None).run()
        beside = ptxgen.compile(shift.replace("[n]", "[m, n]").replace("{constant: 0}", "{u: {m: wrap, n: {constant: 0}}}").replace("u[1]", "u[1, 0]"))._problem
        self.assertIn(f"boundary [wrap, {known}]", beside)
        self.assertEqual(Backward(beside.replace(known, "antiperiodic"), None, None).run()["inputs"], {"grad_y": "f64[m, n]"})


if __name__ == "__main__":
    unittest.main()
