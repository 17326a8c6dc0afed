# SPDX-License-Identifier: Apache-2.0
"""Every spec of specs/ and specs/apps on NumPy's arrays, against Python that shares nothing with ptxgen: the evaluator that is written from the
language's page (tests/differential), and the algorithms of the applications (tests/stages)."""
import functools
import math
import pathlib
import random
import re
import sys
import unittest

import numpy as np

import ptxgen

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/differential", "tests/stages"):
    sys.path.append(str(ROOT / folder))

import yaml  # noqa: E402  Debian's python3-yaml

import apps  # noqa: E402
from arith import UNKNOWN, Span  # noqa: E402
from evaluate import KEEP, Refused, evaluate  # noqa: E402
from gen_data import elements, offsets  # noqa: E402
from spec import Array, dimension_names, pack  # noqa: E402

KINDS = {"bool": "?", "bf16": "u2"}
# Products under operators of one's own, whose rounding no rule bounds: their inputs are -1, 0 and 1, and floats hold the results.
PRODUCTS = {"affine", "complex_product", "matrix2x2", "polynomial", "scan_affine", "scan_complex", "scan_matrix4x4"}


@functools.lru_cache(maxsize=None)  # one compilation for all sizes
def load(path):
    return ptxgen.load(path)


def dtype(type_):
    """NumPy's type for one of the language's, or for a tuple of fields."""
    if isinstance(type_, str):
        return np.dtype(KINDS.get(type_) or f"{type_[0]}{int(type_[1:]) // 8}")
    return np.dtype([(name, dtype(kind)) for name, kind in type_], align=True)


def read(path):
    """The spec as plain data, all texts but numbers in `assume`."""
    spec = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    spec["assume"] = {name: {key: int(x) for key, x in facts.items()} for name, facts in spec.get("assume", {}).items()}
    return spec


class Problem:
    """A spec, and inputs drawn for it."""

    def __init__(self, path, ranges):
        self.f, self.spec, self.random = load(path), read(path), random.Random(f"{path.stem} {ranges}")
        names = dimension_names(self.spec)
        low, high = (3, 9) if path.stem in PRODUCTS and ranges != NONE else ranges[min(len(names), len(ranges)) - 1]
        self.sizes = {name: self.random.randrange(low, high) for name in names}
        self.inputs = [Array(name, entry) for name, entry in self.spec["inputs"].items()]
        self.outputs = [Array(name, entry) for name, entry in self.spec["outputs"].items()]
        self.data = {a.name: self.draw(a, path.stem) for a in self.inputs}
        self.params = {name: 2.0 if "f" in kind else 2 for name, kind in self.f.params.items()}

    def draw(self, a, name):
        count = a.count(self.sizes)
        if self.spec.get("segments", {}).get("offsets") == a.name:
            return offsets(self.random, count, min(self.sizes.values()))
        if name in PRODUCTS:
            one = [tuple(float(self.random.randrange(-1, 2)) for _ in a.fields()) for _ in range(count)]
            return one if isinstance(a.type, tuple) else [x for x, in one]
        return elements(self.random, a.type, count, "small")

    def arrays(self):
        return [np.frombuffer(bytearray(pack(a, self.data[a.name])), dtype(a.type)).reshape(a.extents(self.sizes)) for a in self.inputs]

    def run(self):
        made = self.f(*self.arrays(), **self.params, **self.sizes)
        return [m.reshape(-1) for m in (made if len(self.outputs) > 1 else (made,))]

    def expected(self):
        if self.f.name == "histogram":  # the evaluator gives the literal 1 a type before the accumulator does
            return {"many": np.bincount(self.data["x"], minlength=256).tolist()}
        if self.f.name == "matrix2x2" and self.sizes["n"]:  # it has no bound for these sums of products
            product = functools.reduce(np.matmul, np.array([self.data[f"m{i}"] for i in ("00", "01", "10", "11")]).T.reshape(-1, 2, 2))
            return {"product": [tuple(product.reshape(-1))]}
        return evaluate(self.spec, self.sizes, self.params, self.data)


def values(array, type_):
    """One list of numbers per field."""
    fields = [array] if isinstance(type_, str) else [array[name] for name, _ in type_]
    kinds = [type_] if isinstance(type_, str) else [kind for _, kind in type_]
    return [((x.astype("u4") << 16).view("f4") if kind == "bf16" else x).tolist() for x, kind in zip(fields, kinds)]


def agrees(got, want):
    if isinstance(want, Span):
        return want.lo <= got <= want.hi
    return got == want or got != got and want != want


NONE = [(0, 1)]
NEED_ELEMENTS = {"argmax_label", "embedding", "scan_matrix4x4", "scan_permuted"}  # at(), and a strategy that the spec names


class Specs(unittest.TestCase):
    def compare(self, problem, name):
        try:
            want = problem.expected()
        except Refused:
            with self.assertRaises(ptxgen.Error):
                problem.run()
            return 0, 0
        if name in NEED_ELEMENTS and 0 in problem.sizes.values():
            with self.assertRaisesRegex(ptxgen.SpecError, "needs that . is at least 1|needs n >= 1"):
                problem.run()
            return 0, 0
        compared = left = 0
        for a, made in zip(problem.outputs, problem.run()):
            self.assertEqual(len(made), len(want[a.name]), f"{name}.{a.name}")
            for k, column in enumerate(values(made, a.type)):
                for i, (got, whole) in enumerate(zip(column, want[a.name])):
                    one = whole[k] if isinstance(whole, tuple) else whole
                    if one is UNKNOWN or one is KEEP:
                        left += 1
                        continue
                    compared += 1
                    self.assertTrue(agrees(got, one), f"{name}.{a.name}[{i}] is {got!r} and not {one!r}, at {problem.sizes}")
        return compared, left

    def check(self, ranges, least, open_at_most=0.1):
        """ranges: of the sizes of a spec of one, two, … sizes. What stays as it was, or has no bound, is left open."""
        total = open_ = 0
        for path in sorted(ROOT.glob("specs/*.yaml")):
            with self.subTest(path.stem):
                compared, left = self.compare(Problem(path, ranges), path.stem)
                total += compared
                open_ += left
                self.assertTrue(compared or ranges == NONE, "nothing was compared")
        self.assertGreater(total, least)
        self.assertLess(open_, open_at_most * total)

    def test_small(self):
        self.check([(3, 20)], 15000)

    def test_larger(self):
        self.check([(1000, 3000), (20, 60), (6, 14)], 100000)

    def test_empty(self):
        """Constant dimensions, and results of nothing."""
        self.check(NONE, 500)


class Applications(unittest.TestCase):
    def test_all(self):
        paths = sorted(ROOT.glob("specs/apps/*.yaml"))
        self.assertEqual({path.stem for path in paths}, set(apps.APPS))
        for path in paths:
            sizes, given, params, algorithm, bound = apps.APPS[path.stem]
            f = ptxgen.load(path)
            arrays = {name: np.array(given[name], dtype(re.match(r"\w+", what)[0])) for name, what in f.inputs.items()}
            with self.subTest(path.stem):
                made = f(*arrays.values(), **params, **sizes)
                made = dict(zip(f.outputs, made if len(f.outputs) > 1 else (made,)))
                expected, _ = algorithm(given, params)
                scale = max(abs(x) for column in expected.values() for x in column)
                for name, want in expected.items():
                    worst = np.abs(made[name].reshape(-1).astype("f8") - np.array(want, "f8")).max()
                    self.assertLessEqual(worst, bound * scale if isinstance(want[0], float) else 0, name)
                    self.assertTrue(math.isfinite(worst))


if __name__ == "__main__":
    unittest.main()
