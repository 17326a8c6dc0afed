# SPDX-License-Identifier: Apache-2.0
"""Gradients of specs that are drawn at random, beside differences.  GRADIENTS_SEED and GRADIENTS_COUNT draw others: each failure names its own."""
import os
import random
import unittest

import numpy as np

import ptxgen
from test_gradients import called, differences, results

SPACE = ["l", "m", "n"]
RESULTS = {"add": ["{}"], "logsumexp": ["(log({}.sum) + {}.max)"], "welford": ["{}.mean", "{}.m2"], "affine": ["{}.a", "{}.b"]}


class Draw:
    def __init__(self, seed):
        self.r = r = random.Random(seed)
        self.space = SPACE[:r.randint(1, 3)]
        self.sizes = {d: r.randint(1, 4) for d in self.space}
        self.inputs = {"x": self.space, **{name: [d for d in r.sample(self.space, len(self.space)) if r.random() < 0.6] for name in "yz" if r.random() < 0.6}}
        self.kind = r.choice(["stencil", "reduce", "scan"])
        self.leaves, self.outside = [*self.inputs, "1.5", "k"], r.choice([0, 1.5])
        if self.kind == "stencil" or r.random() < 0.3:
            self.leaves += [f"{x}[{', '.join(str(r.randint(-2, 2)) for _ in dims)}]" for x, dims in self.inputs.items() for _ in range(2) if dims]

    def expression(self, leaves, depth=3):
        r = self.r
        if depth == 0 or r.random() < 0.15:
            return r.choice(leaves)
        forms = ["({} + {})", "({} - 0.5 * {})", "({} * {})", "({} / (2 + {} * x))", "sin({} - {})", "select({} > 0.9 * x, {}, x)", "max({}, {} * x)"]
        return r.choice(forms).format(self.expression(leaves, depth - 1), self.expression(leaves, depth - 1))

    def boundary(self):
        return self.r.choice(["clamp", "wrap", {"constant": self.outside}, {"constant": self.outside}])

    def spec(self):
        r, full = self.r, f"f64[{', '.join(self.space)}]"
        spec = {"kind": self.kind, "inputs": {x: f"f64[{', '.join(dims)}]" for x, dims in self.inputs.items()}, "params": {"k": {"type": "f64", "value": 0.7}}}
        if len(self.space) > 1:
            spec["space"] = self.space
        spec["boundary"] = self.boundary() if r.random() < 0.6 else {x: {d: self.boundary() for d in dims} for x, dims in self.inputs.items() if dims}
        if self.kind == "stencil":
            return {**spec, "outputs": {f"o{i}": {"type": full, "value": "x * " + self.expression(self.leaves)} for i in range(r.randint(1, 2))}}
        over = r.sample(self.space, r.randint(1, len(self.space) if self.kind == "reduce" else 1))
        kept = [d for d in self.space if d not in over]
        entries, names, totals = {}, [], []
        for name in ("r0", "r1")[:r.randint(1, 2)]:
            operator = r.choice(["add", "logsumexp", "welford"] if self.kind == "reduce" else ["add", "affine"])
            parts = ["x * " + self.expression(self.leaves) for _ in "ab"]
            entries[name] = {"operator": operator, "map": dict(zip("ab", parts)) if operator == "affine" else parts[0]}
            names += [form.replace("{}", name) for form in RESULTS[operator]]
            totals += [form.replace("{}", f"{name}.total" if self.kind == "scan" else name) for form in RESULTS[operator]]
        alone = [x for x, dims in self.inputs.items() if set(dims) <= set(kept)] + ["k"]
        spec.update({"over": over, "reductions" if self.kind == "reduce" else "scans": entries})
        if self.kind == "scan":
            spec.update({"mode": r.choice(["inclusive", "exclusive"]), "direction": r.choice(["forward", "reverse"])})
        last = " * ".join([r.choice(totals), r.choice(totals + alone)])
        return {**spec, "outputs": {"p": {"type": full, "value": "x * " + self.expression(self.leaves + 2 * names)},
                                    "q": {"type": f"f64[{', '.join(kept)}]" if kept else "f64", "value": last}}}


class Random(unittest.TestCase):
    def test_beside_differences(self):
        first, count, compared = int(os.environ.get("GRADIENTS_SEED", 1)), int(os.environ.get("GRADIENTS_COUNT", 12)), 0
        for seed in range(first, first + count):
            draw, numbers = Draw(seed), np.random.default_rng(seed)
            f = ptxgen.compile(draw.spec())
            try:
                g = ptxgen.vjp(f)
            except ptxgen.UnsupportedError as error:
                self.assertRegex(str(error), "where another input wraps around")
                continue
            args = {x: np.asarray(numbers.uniform(0.5, 1.5, [draw.sizes[d] for d in dims])) for x, dims in draw.inputs.items()}
            cotangents = {name: numbers.standard_normal(made.shape) for name, made in results(f, args).items()}
            for name, made in called(g, args, cotangents).items():
                wanted = differences(f, args, cotangents, name.removeprefix("grad_"))
                np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5 * max(1, np.abs(wanted).max()), err_msg=f"seed {seed}\n{f.yaml}\n{g.yaml}")
                compared += 1
        self.assertGreater(compared, count // 2)


if __name__ == "__main__":
    unittest.main()
