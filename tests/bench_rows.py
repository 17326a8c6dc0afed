#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_rows.py PTXGEN FAKE_DRIVER - what bench/peers/row_peers.py and index_peers.py do without a GPU: a dry run of every problem
in small, a whole run with a stand-in for PyTorch (on NumPy, without its clock) and for the driver, and the page of their cells.
"""
import contextlib
import csv
import importlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import types
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
PTXGEN, DRIVER = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench" / "peers"))
torch_peers, row_peers, index_peers = (importlib.import_module(name) for name in ("torch_peers", "row_peers", "index_peers"))


class Tensor(numpy.ndarray):
    """An array of NumPy with the methods of PyTorch that the peers call."""
    is_cuda = False
    numel, element_size, contiguous, t = (lambda a: a.size), (lambda a: a.itemsize), (lambda a: a.copy()), (lambda a: a.T)
    is_floating_point = lambda a: a.dtype.kind == "f"
    double, long, abs, to = (lambda a: a.astype("f8")), (lambda a: a.astype("i8")), (lambda a: numpy.abs(a)), (lambda a, how: a.astype(how) if how in ("f4", "f8") else a)
    clone = lambda a: numpy.ndarray.copy(a)
    device = "cpu"
    amax = lambda a, dim, keepdim: a.max(dim, keepdims=keepdim)
    diff = lambda a: numpy.diff(a)
    clamp = lambda a, **least: numpy.maximum(a, least["min"])
    copy_ = lambda a, other: a.__setitem__(..., other)

    def index_add_(self, _, key, x):
        numpy.add.at(self, key, x)
        return self


def tensor(a):
    return numpy.asarray(a).view(Tensor)


def softmax(x, axis=-1):
    e = numpy.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normal(x, axis):
    return (x - x.mean(axis, keepdims=True)) / x.std(axis, keepdims=True)


def stand_in():
    """A module that can be imported as torch.  Each event is half a second after the one before."""
    torch, random = types.ModuleType("torch"), numpy.random.default_rng(5)
    clock = [0]

    class Event:
        def __init__(self, **_):
            self.at = 0

        def record(self):
            clock[0] += 1
            self.at = clock[0]

        synchronize = lambda _: None
        elapsed_time = lambda self, other: 500 * (other.at - self.at)

    class Graph:
        replay = lambda _: None
    torch.float32, torch.bfloat16, torch.int32, torch.uint8 = (numpy.dtype(t) for t in ("f4", "f4", "i4", "u1"))  # as NumPy has no bfloat16
    torch.cuda = types.SimpleNamespace(Event=Event, Stream=contextlib.nullcontext, stream=contextlib.nullcontext, graph=contextlib.nullcontext, CUDAGraph=Graph,
                                       synchronize=lambda: None, empty_cache=lambda: None)
    torch._dynamo = types.SimpleNamespace(reset=lambda: None)
    torch.compile = lambda call, dynamic: call
    torch.from_numpy, torch.randn = tensor, lambda *shape, device: tensor(random.standard_normal(shape[0] if isinstance(shape[0], tuple) else shape, "f4"))
    torch.empty = torch.zeros = lambda shape, dtype="f4", device="": tensor(numpy.zeros(shape, dtype))
    torch.empty_like, torch.neg, torch.exp, torch.where = numpy.empty_like, numpy.negative, numpy.exp, lambda c, a, b: tensor(numpy.where(c, a, b))
    torch.bincount = lambda key, minlength: tensor(numpy.bincount(key, minlength=minlength))
    torch.softmax, torch.log_softmax = softmax, lambda x, _: numpy.log(softmax(x))
    torch.rsqrt, torch.var_mean = (lambda x: 1 / numpy.sqrt(x)), lambda x, axis, correction: (x.var(axis), x.mean(axis))
    torch.addmm = lambda c, x, y, alpha: c + alpha * (x @ y)
    torch.repeat_interleave = lambda many: tensor(numpy.repeat(numpy.arange(len(many)), many))
    torch.segment_reduce = lambda x, how, offsets, unsafe: tensor({"max": numpy.maximum, "sum": numpy.add}[how].reduceat(x, offsets[:-1]))
    torch.sparse_csr_tensor = lambda rows, column, value, shape: Matrix(rows, column, value)
    torch.nn = types.SimpleNamespace(functional=types.SimpleNamespace(
        layer_norm=lambda x, _, weight, bias, eps: normal(x, -1) * weight + bias,
        rms_norm=lambda x, _, weight, eps: x / numpy.sqrt((x * x).mean(-1, keepdims=True)) * weight,
        normalize=lambda x, dim: x / numpy.sqrt((x * x).sum(dim, keepdims=True)),
        batch_norm=lambda x, mean, variance, training, eps: normal(x, 0),
        cross_entropy=lambda x, label, reduction: -numpy.log(softmax(x))[numpy.arange(len(label)), label]))
    return torch


class Matrix:
    def __init__(self, rows, column, value):
        self.rows, self.column, self.value = rows, column, value

    def __matmul__(self, x):
        return tensor(numpy.add.reduceat(self.value * x[self.column], self.rows[:-1]))


def run(problems, *arguments):
    """Status, what was printed, rows."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        path = os.path.join(folder, "t.csv")
        status = torch_peers.run(torch_peers.options("", [Scripts.program, "--csv", path, *arguments]), problems)
        with open(path, encoding="utf8", newline="") as file:
            return status, out.getvalue(), list(csv.DictReader(file))


def first_of_each(problems):
    return list({(p.name, p.graph): p for p in reversed(problems)}.values())


class Scripts(unittest.TestCase):
    program = PTXGEN
    all = first_of_each(row_peers.problems() + index_peers.problems("no library"))

    def test_dry(self):
        status, said, rows = run(self.all, "--dry", "--log2=14")
        self.assertEqual((status, rows), (0, []), said)
        self.assertEqual(said.count("ptxgen agree"), len(self.all))

    def test_run(self):
        """Results by the host executor; a spec that is not there is a failure, and the others go on."""
        broken = torch_peers.Problem("broken", lambda n: row_peers.mapped(n, 16, "no.yaml", "softmax", "float32"))
        slow = torch_peers.POOL_BYTES
        environment = dict(os.environ)
        with tempfile.TemporaryDirectory() as folder:
            wrapper = pathlib.Path(folder, "ptxgen")
            wrapper.write_text(f'#!/bin/sh\n[ "$1" = run ] && exec {PTXGEN} "$@" --device=cpu\nexec {PTXGEN} "$@"\n')
            wrapper.chmod(0o755)
            try:
                Scripts.program = str(wrapper)
                sys.modules["torch"], torch_peers.POOL_BYTES = stand_in(), 1 << 16
                os.environ.update(PTXGEN_LIBCUDA=DRIVER)
                status, said, rows = run([broken, *self.all], "--log2=14", "--samples=3", "--compile=9", "--commit=abc")
            finally:
                Scripts.program = PTXGEN
                del sys.modules["torch"]
                torch_peers.POOL_BYTES = slow
                os.environ.clear()
                os.environ.update(environment)
        self.assertEqual((status, said.count("FAILED"), said.count("as far off")), (1, 1, 0), said)
        by_cell = {(row["problem"], row["mode"], row["implementation"]): row for row in rows}
        self.assertEqual(len([row for row in rows if row["implementation"] == "ptxgen"]), len(self.all))
        self.assertEqual(by_cell["softmax_f32", "stream", "torch.compile"]["us"], "500000.000")
        self.assertEqual(by_cell["softmax_f32", "graph", "torch"]["us"], f"{500000 / torch_peers.GRAPH_CALLS:.3f}")
        self.assertEqual(by_cell["spmv_random", "stream", "cusparse"]["commit"], "abc")
        self.assertNotIn(("broken", "stream", "ptxgen"), by_cell)
        self.assertNotIn(("counts_few", "stream", "torch.compile"), by_cell)

    def test_a_graph_has_inputs_and_results_for_each_call(self):
        """Otherwise all would stay in the L2 cache, and ptxgen's do not."""
        results = torch_peers.replayed(stand_in(), lambda x: x + 1, [{"x": tensor(numpy.full(3, i))} for i in range(4)])()
        self.assertEqual([r[0] for r in results], [1, 2, 3, 4])

    def test_wrong_peers_are_left_out(self):
        """But not PyTorch's own, of which a line says so; and of Triton's only the best."""
        torch, case = stand_in(), row_peers.mapped(256, 16, "", "softmax", "float32")
        exact = {"torch": lambda x: x, "triton 1 warps": lambda x: x * 1.01, "triton 2 warps": lambda x: x}
        case.peers = lambda torch, arrays: exact if arrays["x"].dtype == "f8" else {**exact, "torch": lambda x: x * 1.1, "broken": lambda x: x / "a"}
        with contextlib.redirect_stderr(io.StringIO()) as said:
            times = torch_peers.peers(torch_peers.options("", ["p", "--dry"]), torch, torch_peers.Problem("p", None), case)
        self.assertEqual(list(times), ["torch", "triton 2 warps"])
        self.assertEqual(said.getvalue().count("times as far off"), 2)
        self.assertIn("broken: ", said.getvalue())
        case.peers = lambda torch, arrays: {"torch": lambda x: x / "a"}
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(torch_peers.peers(torch_peers.options("", ["p", "--dry"]), torch, torch_peers.Problem("p", None), case), {})
        self.assertIn("not compared: ", said.getvalue())
        self.assertEqual(torch_peers.best_of_triton({"triton 1 warps": (3, 3, 3), "a": (1, 1, 1), "triton 2 warps": (2, 2, 2)}),
                         {"a": (1, 1, 1), "triton 2 warps": (2, 2, 2)})

    def test_no_time_is_left(self):
        self.assertIn("2 problems are left", run(self.all[:2], "--dry", "--seconds=-1")[1])

    def test_rows_can_be_chosen(self):
        self.assertEqual({p.arguments[0] for p in row_peers.problems("7,9")}, {7, 9})

    def test_keys(self):
        for how in index_peers.HOW:
            made = index_peers.keys(4096, 100, how)
            self.assertTrue(made.dtype == "i4" and made.min() >= 0 and made.max() < 100, how)
        self.assertEqual(len(set(index_peers.keys(4096, 100, "few"))), 8)


class Page(unittest.TestCase):
    """scripts/performance: what it does with the cells of these scripts."""

    @classmethod
    def setUpClass(cls):
        loader = importlib.machinery.SourceFileLoader("performance_page", str(ROOT / "scripts" / "performance"))
        cls.page = importlib.util.module_from_spec(importlib.util.spec_from_loader("performance_page", loader))
        loader.exec_module(cls.page)

    def rows(self, us="100"):
        """A cell for each problem of the scripts, of ptxgen and of PyTorch."""
        for p in row_peers.problems() + index_peers.problems():
            case = p.make(1 << 20, *p.arguments)
            for who, times in ("ptxgen", 1), ("torch", 1.5):
                yield {"date": "", "commit": "", "problem": p.name, "mode": "graph" if p.graph else "stream", "n": case.n, "segment": case.segment,
                       "extent": case.extent, "implementation": who, "us": float(us) * times, "p10": us, "p90": us, "limit_us": "90"}

    def test_same_columns(self):
        self.assertEqual(self.page.FIELDS, torch_peers.FIELDS)

    def test_all_problems_are_in_a_table(self):
        self.assertEqual(self.page.SCRIPTED, {p.name for p in row_peers.problems() + index_peers.problems()})

    def test_add_and_page(self):
        """Cells go to the file of their kind; the page has them, and the lines that it may have."""
        with tempfile.TemporaryDirectory() as folder:
            kept, new = self.page.ROWS, os.path.join(folder, "new.csv")
            before, self.page.TABLE = self.page.TABLE, os.path.join(folder, "table.csv")
            try:
                self.page.ROWS = os.path.join(folder, "rows.csv")
                with open(before, encoding="utf8") as old, open(self.page.TABLE, "w", encoding="utf8") as copy:
                    copy.write(old.read())
                with open(new, "w", encoding="utf8", newline="") as file:
                    out = csv.DictWriter(file, torch_peers.FIELDS)
                    out.writeheader()
                    out.writerows(self.rows())
                self.page.add("2026-01-02", "abc", [new])
                plain, scripted = self.page.read_table(self.page.TABLE), self.page.read_table(self.page.ROWS)
            finally:
                self.page.TABLE, self.page.ROWS = before, kept
        self.assertEqual(plain, self.page.read_table(before))
        self.assertEqual({(r["date"], r["commit"]) for r in scripted}, {("2026-01-02", "abc")})
        cells = {}
        for r in plain + scripted:
            cells.setdefault(self.page.key(r), []).append(r)
        short, self.page.short = self.page.short, lambda _: (0, [])  # reasons are for times that were measured
        text = self.page.page({k: self.page.Cell(v) for k, v in cells.items()}, plain + scripted)
        self.page.short = short
        for heading, _, _ in self.page.BY_SCRIPT:
            self.assertIn(f"## {heading} (limit: a copy)", text)
        self.assertIn("| counts_uniform | 100 · 1.11 · 1.50 |", text)
        self.assertIn("| transpose_at 1023x1023 | 100 · 1.11 · 1.50 |", text)
        self.assertLessEqual(text.count("\n"), 166)  # and at most 200 with the reasons


if __name__ == "__main__":
    unittest.main(verbosity=1)
