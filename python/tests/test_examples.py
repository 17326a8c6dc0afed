# SPDX-License-Identifier: Apache-2.0
"""Each example prints what its comments say, agrees with NumPy on random data, and the page says how long its counterparts are."""
import contextlib
import io
import pathlib
import re
import runpy
import sys
import types
import unittest
from unittest import mock

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples/python"
RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal(3000).astype("f4")
ROWS = X.reshape(30, 100)
INTEGERS = RANDOM.integers(-20, 20, 3000).astype("i4")
OFFSETS = np.sort(np.append(RANDOM.integers(0, 3000, 40), [0, 3000])).astype("i4")
FLAGS = RANDOM.random(3000) < 0.01


def segments(x):
    best = end = 0
    for value in x.tolist():
        end = max(end + value, 0)
        best = max(best, end)
    return best


def plate(u, steps):
    for _ in range(steps):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u = new
    return u


def exponentials(x):
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


# Arguments by name, and the results that NumPy gives.
CASES = {
    "total": ({"x": X}, [X.sum()]),
    "max_segment_sum": ({"x": INTEGERS}, [segments(INTEGERS)]),
    "ragged_sums": ({"x": X, "rows": OFFSETS}, [[X[a:b].sum() for a, b in zip(OFFSETS, OFFSETS[1:])]]),
    "cumulative_sum": ({"x": ROWS}, [ROWS.cumsum(0), ROWS.sum(0)]),
    "softmax": ({"x": ROWS}, [exponentials(ROWS)]),
    "jacobi": ({"u": ROWS, "steps": 7}, [plate(ROWS, 7)]),
    "histogram": ({"x": X.view("u1")}, [np.bincount(X.view("u1"), minlength=256)]),
    "selection": ({"x": INTEGERS, "threshold": 3}, [INTEGERS[INTEGERS > 3], (INTEGERS > 3).sum()]),
    "running_maximum": ({"x": X, "begins": FLAGS}, [np.concatenate([np.maximum.accumulate(part) for part in np.split(X, np.flatnonzero(FLAGS)) if len(part)])]),
    "range_and_mean": ({"x": X}, [np.ptp(X), X.mean()]),
}


def numbers(text):
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?", text)]


class Examples(unittest.TestCase):
    def setUp(self):
        for patch in (mock.patch.object(sys, "path", [str(FOLDER), *sys.path]), mock.patch.object(sys, "argv", ["example"]), mock.patch.dict(sys.modules)):
            patch.start()
            self.addCleanup(patch.stop)

    def run_one(self, name):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            return runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__"), printed.getvalue()

    def test_what_they_print(self):
        self.assertEqual(set(CASES), {path.stem for path in FOLDER.glob("*.py")} - {"arrays", "tutorial"})
        for name in CASES:
            with self.subTest(name):
                said = "".join(re.findall(r"print\(.*\)  # (.*)", (FOLDER / f"{name}.py").read_text(encoding="utf-8")))
                np.testing.assert_allclose(numbers(self.run_one(name)[1]), numbers(said), rtol=1e-5)

    def test_beside_numpy(self):
        for name, (args, wanted) in CASES.items():
            made = self.run_one(name)[0][name](**args)
            made = made if isinstance(made, tuple) else (made,)
            with self.subTest(name):
                self.assertEqual(len(made), len(wanted))
                for got, want in zip(made, wanted):
                    np.testing.assert_allclose(got[:len(want)] if np.ndim(want) else got, want, rtol=1e-4, atol=1e-4)
        y, g = exponentials(ROWS), ROWS[::-1].copy()
        np.testing.assert_allclose(self.run_one("softmax")[0]["gradient"](ROWS, g), y * (g - (g * y).sum(1, keepdims=True)), rtol=1e-4, atol=1e-5)

    def test_other_libraries(self):
        """`python3 total.py cupy` asks CuPy for its arrays."""
        for library, function in (("cupy", "asarray"), ("torch", "from_numpy")):
            module = types.ModuleType(library)
            tensor = mock.Mock(cuda=lambda: "on the GPU")
            setattr(module, function, lambda x, tensor=tensor: tensor if x.dtype == "i4" else None)
            with mock.patch.dict(sys.modules, {library: module}), mock.patch.object(sys, "argv", ["example", library]):
                made = runpy.run_path(str(FOLDER / "arrays.py"))["array"]([1], "i4")
                self.assertEqual(made, "on the GPU" if library == "torch" else tensor)
        with mock.patch.object(sys, "argv", ["example", "nothing"]), self.assertRaisesRegex(SystemExit, "usage"):
            runpy.run_path(str(FOLDER / "arrays.py"))["array"]([1])

    def test_tutorial(self):
        """Every cell prints what stands behind `#>`."""
        cells = re.split(r"^# %%$", (FOLDER / "tutorial.py").read_text(encoding="utf-8"), flags=re.M)
        known, shown = {}, 0
        for cell in cells[1:]:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(cell, "tutorial.py", "exec"), known)  # pylint: disable=exec-used
            said = [line.removeprefix("#>").removeprefix(" ") for line in cell.splitlines() if line.startswith("#>")]
            self.assertEqual([line.rstrip() for line in printed.getvalue().rstrip("\n").splitlines()], said)
            shown += len(said)
        self.assertGreater(shown, 15)

    def test_counterparts(self):
        """Those in CuPy, with NumPy in its place.  A wrong one differs; bench/python/examples.py compares all on a GPU."""
        with mock.patch.dict(sys.modules, {"cupy": np}):
            cupy = runpy.run_path(str(ROOT / "bench/python/with_cupy.py"))
        self.assertEqual(set(CASES) - set(cupy), {"max_segment_sum", "running_maximum"})
        for name in set(CASES) & set(cupy):
            args, wanted = CASES[name]
            made = cupy[name](**args)
            with self.subTest(name):
                for got, want in zip(made if isinstance(made, tuple) else (made,), wanted, strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)

    def test_the_table(self):
        """Its lines of code are those that the benchmark counts."""
        bench = runpy.run_path(str(ROOT / "bench/python/examples.py"))
        paths = {name: ROOT / f"bench/python/with_{peer}.py" for peer, name in bench["PEERS"].items()}
        head, body = re.search(r"^\| example \|(.*)\|\n[|-]+\n((?:\| .*\n)*)", (ROOT / "docs/python.md").read_text(encoding="utf-8"), re.M).groups()
        rows = [row.strip("| ").split(" | ") for row in body.splitlines()]
        self.assertEqual([re.match(r"\[(\w+)]\(\.\./examples/python/\1\.py\), ", row[0])[1] for row in rows], list(CASES))
        for name, (_, *cells) in zip(CASES, rows):
            for library, cell in zip(map(str.strip, head.split("|")), cells, strict=True):
                if library != "C":
                    lines = bench["lines_of"](paths.get(library, FOLDER / f"{name}.py"), name)
                    with self.subTest(name, library=library):
                        self.assertEqual(cell.split(";")[0], str(lines or "-"))


if __name__ == "__main__":
    unittest.main()
