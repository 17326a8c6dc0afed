#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples.py [--out DIR] [--native LIBRARY] [--dry] [--once] [NAME...] - examples/python beside PyTorch, CuPy, JAX, Triton and
cuda.compute.

The same arrays for all, in one run on one GPU.  A result that differs from ptxgen's fails.  Lines are counted in the sources: what
defines the function, with all that it uses, without imports, comments and blank lines.  Times are microseconds of the GPU between
events, medians of batches; of JAX, which has streams of its own, microseconds of the clock until a batch is done.  "C": launches by
the C library alone on the same arrays, in turn with the calls from Python.
DIR gets examples.csv, examples.md and examples.svg.  --dry: few elements and no GPU, with NumPy in place of CuPy; times mean nothing then.
--once: one sample of few calls, which fills the libraries' caches.
"""
import argparse
import ast
import csv
import ctypes
import importlib
import math
import pathlib
import statistics
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples/python"
PEERS = {"torch": "PyTorch", "cupy": "CuPy", "jax": "JAX", "triton": "Triton", "compute": "cuda.compute"}
SAMPLES, BATCH_SECONDS = [15], 4e-3

def example_arguments(torch, dry):
    """{example: (what is computed, arguments by name)}, made when they are asked for."""
    def floats(*shape):
        return torch.rand(shape, device=place)

    def integers(n, low=-9, high=10, dtype=torch.int32):
        return torch.randint(low, high, (n,), dtype=dtype, device=place)

    place, few = ("cpu", 12) if dry else ("cuda", 0)
    n, large, side = 1 << 26 - few, 1 << 28 - few, 1 << 13 - few // 2

    def ragged():
        cuts = torch.randint(0, n, ((n >> 10) - 1,), device=place).sort().values
        ends = torch.tensor([0, n], device=place)
        return {"x": floats(n), "rows": torch.cat((ends[:1], cuts, ends[1:])).int()}

    return {
        "total": (f"2^{large.bit_length() - 1} f32", lambda: {"x": floats(large)}),
        "max_segment_sum": (f"2^{n.bit_length() - 1} i32", lambda: {"x": integers(n)}),
        "ragged_sums": (f"2^{n.bit_length() - 1} f32, {n >> 10} rows", ragged),
        "cumulative_sum": (f"{side} x {side} f32", lambda: {"x": floats(side, side)}),
        "softmax": (f"{2 * side} x {side // 2} f32", lambda: {"x": floats(2 * side, side // 2)}),
        "jacobi": (f"{side} x {side} f32, 64 steps", lambda: {"u": floats(side, side), "steps": 64}),
        "histogram": (f"2^{large.bit_length() - 1} u8", lambda: {"x": integers(large, 0, 256, torch.uint8)}),
        "selection": (f"2^{n.bit_length() - 1} i32, half", lambda: {"x": integers(n), "threshold": 0}),
        "running_maximum": (f"2^{n.bit_length() - 1} f32", lambda: {"x": floats(n), "begins": floats(n) < 0.001}),
        "range_and_mean": (f"2^{n.bit_length() - 1} f32", lambda: {"x": floats(n)}),
    }

def names_of(node):
    targets = [node] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else getattr(node, "targets", [])
    return {getattr(target, "name", getattr(target, "id", None)) for target in targets}

def lines_of(path, name):
    """Lines of code that define `name` in a file, with what that uses; 0 where there is no such name."""
    text = path.read_text(encoding="utf-8")
    nodes = [node for node in ast.parse(text).body if names_of(node)]
    wanted, found = {name}, []
    while more := [node for node in nodes if node not in found and names_of(node) & wanted]:
        found += more
        wanted |= {part.id for node in more for part in ast.walk(node) if isinstance(part, ast.Name)}
    lines, used = text.splitlines(), set()
    for node in found:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        used |= {i for i in range(first, node.end_lineno + 1) if lines[i - 1].split("#")[0].strip()}
    return len(used)

# ---- times --------------------------------------------------------------------------------------------------------------------------
def seconds_of_clock(call, count, wait=lambda made: None):
    begin = time.perf_counter()
    for _ in range(count):
        made = call()
    wait(made)
    return (time.perf_counter() - begin) / count

def seconds_between(torch, call, count):
    if not torch.cuda.is_available():
        return seconds_of_clock(call, count)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3 / count

def measure(torch, *calls):
    """Median seconds of each, in turn: functions of a number of launches."""
    def once(call):
        call(2)
        return max(call(3), 1e-7)

    counts = [min(200, max(1, round(BATCH_SECONDS / once(call)))) for call in calls]
    times = [[call(count) for call, count in zip(calls, counts)] for _ in range(SAMPLES[0])]
    return [statistics.median(column) for column in zip(*times)]

def native_library(path):
    """native.c over the library of the package."""
    ctypes.CDLL(str(pathlib.Path(importlib.import_module("ptxgen").__file__).parent / "libptxgen.so.0"), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(path)
    library.native_open.restype = ctypes.c_void_p
    for entry in ("native_seconds", "native_host_seconds", "native_empty_seconds", "native_dependent_seconds"):
        getattr(library, entry).restype = ctypes.c_double
    return library

def native_call(library, f, args, out, entry="native_seconds"):
    """Seconds of the C library's launches on the memory of these arrays: of the GPU, or of the host."""
    arrays = [args[name] for name in f.inputs] + list(out)
    sizes = {}
    for array, declared in zip(arrays, [*f.inputs.values(), *f.outputs.values()]):
        dims = declared.partition("[")[2].rstrip("]").split(", ")
        sizes.update({name: extent for name, extent in zip(dims, array.shape) if name in f.sizes})
    numbers = [(ctypes.c_int64 * 16)(*given) for given in ([sizes[name] for name in f.sizes], [args[name] for name in f.params])]
    pointers = (ctypes.c_void_p * 64)(*(a.data_ptr() for a in arrays))
    opened = library.native_open(f.yaml.encode(), numbers[0], pointers, len(f.inputs), numbers[1])
    if not opened:
        raise RuntimeError("the C library refused the spec")

    def call(count, _kept=(numbers, pointers)):
        seconds = getattr(library, entry)(ctypes.c_void_p(opened), count)
        if seconds < 0:
            raise RuntimeError("a launch of the C library failed")
        return seconds
    return call

def numbers_of(torch, example, made, like=None):
    """Results as f64 tensors: of torch, CuPy, or plain numbers.  What follows a selection's kept elements is not looked at."""
    parts = [torch.as_tensor(part, device=like[0].device if like else None) for part in (made if isinstance(made, tuple) else (made,))]
    parts = [(part.view(torch.int32) if str(part.dtype) == "torch.uint32" else part).double() for part in parts]
    if example == "selection":
        parts[0] = parts[0][:int(parts[1])]
    return parts

def compare(torch, example, who, made, wanted):
    got = numbers_of(torch, example, made, wanted)
    if len(got) != len(wanted) or not all(x.numel() == y.numel() and torch.allclose(x.reshape(y.shape), y, rtol=1e-3, atol=1e-5 * float(y.abs().max()))
                                          for x, y in zip(got, wanted)):
        raise AssertionError(f"{example}: the results of {who} and the first ones of ptxgen differ")

class Table:
    def __init__(self, torch, native):
        self.torch, self.native, self.rows, self.failed, self.missing = torch, native, [], [], {}
        self.peers = {}
        for peer in PEERS:
            try:
                self.peers[peer] = importlib.import_module(f"with_{peer}")
            except Exception as error:  # pylint: disable=broad-except
                self.missing[peer] = f"{type(error).__name__}: {error}"

    def add(self, example, what, library, lines, seconds, note=""):
        self.rows.append({"example": example, "what": what, "library": library, "lines": lines or "", "us": f"{seconds * 1e6:.1f}" if seconds else "", "note": note})
        print(f"{example:16} {library:13} {lines or '-':>4} {f'{seconds * 1e6:.1f} us' if seconds else '-':>13}  {note}", flush=True)

    def ours(self, example, what, args):
        f = getattr(importlib.import_module(example), example)
        made = f(**args)
        out = tuple(made) if isinstance(made, tuple) else (made,)
        wanted = numbers_of(self.torch, example, made)
        given = out if len(out) > 1 else out[0]

        def python(count):
            return seconds_between(self.torch, lambda: f(**args, out=given), count)

        ours, *beside = measure(self.torch, python, *([native_call(self.native, f, args, out)] if self.native else []))
        self.add(example, what, "ptxgen", lines_of(EXAMPLES / f"{example}.py", example), ours)
        if beside:
            self.add(example, what, "C", 0, beside[0], f"Python takes {(ours / beside[0] - 1) * 100:+.1f} %")
        compare(self.torch, example, "repeated calls", out, wanted)
        return wanted

    def peer(self, example, name, module, args, wanted):
        torch, function = self.torch, getattr(module, example)
        if name == "jax":
            return self.peer_jax(example, function, args, wanted)
        if name in ("cupy", "compute"):
            cupy = importlib.import_module("cupy")
            args = {key: cupy.asarray(x) if isinstance(x, torch.Tensor) else x for key, x in args.items()}
        compare(torch, example, PEERS[name], function(**args), wanted)
        return measure(torch, lambda count: seconds_between(torch, lambda: function(**args), count))[0]

    def peer_jax(self, example, function, args, wanted):
        torch, jax = self.torch, importlib.import_module("jax")
        torch.cuda.synchronize()
        args = {key: jax.dlpack.from_dlpack(x) if isinstance(x, torch.Tensor) else x for key, x in args.items()}
        made = jax.block_until_ready(function(**args))
        compare(torch, example, PEERS["jax"], jax.tree.map(lambda part: torch.from_dlpack(part) if isinstance(part, jax.Array) else part, made), wanted)
        del made
        return measure(torch, lambda count: seconds_of_clock(lambda: function(**args), count, jax.block_until_ready))[0]

    def run(self, example, what, make):
        args = make()
        wanted = self.ours(example, what, args)
        for name, library in PEERS.items():
            lines, seconds, note = lines_of(HERE / f"with_{name}.py", example), None, "not here"
            try:
                if lines and name in self.peers:
                    seconds, note = self.peer(example, name, self.peers[name], args, wanted), ""
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc()
                self.failed.append(f"{example} {library}")
                note = "FAILED"
            if lines:
                self.add(example, what, library, lines, seconds, note)

def cell(row):
    """Lines; microseconds."""
    parts = [] if row is None else [str(row["lines"]), row["us"] or row["note"].replace("not here", "")]
    return "; ".join(filter(None, parts)) or "-"

def markdown(rows):
    """The table of docs/python.md."""
    libraries = ["ptxgen", "C", *PEERS.values()]
    lines = [f"| example | {' | '.join(libraries)} |", "|---" * (len(libraries) + 1) + "|"]
    for example in dict.fromkeys(row["example"] for row in rows):
        known = {row["library"]: row for row in rows if row["example"] == example}
        about = ast.get_docstring(ast.parse((EXAMPLES / f"{example}.py").read_text(encoding="utf-8")))
        lines.append(f"| [{example}](../examples/python/{example}.py), {known['ptxgen']['what']}. {about} | {' | '.join(cell(known.get(library)) for library in libraries)} |")
    return "\n".join(lines) + "\n"

def plot(rows):
    """Bars: how many times as long as ptxgen, on a scale of powers of two from 1/4 to 64."""
    colours = dict(zip(PEERS.values(), ("#c1440e", "#3465a4", "#2e8b57", "#75507b", "#c4a000")))
    out, y = [], 30
    for i, (name, colour) in enumerate(colours.items()):
        out.append(f'<rect x="{150 + 120 * i}" y="8" width="10" height="10" fill="{colour}"/><text x="{165 + 120 * i}" y="17">{name}</text>')
    for example in dict.fromkeys(row["example"] for row in rows):
        timed = {row["library"]: float(row["us"]) for row in rows if row["example"] == example and row["us"]}
        out.append(f'<text x="140" y="{y + 15}" text-anchor="end">{example}</text>')
        for library in [name for name in colours if name in timed]:
            ratio = timed[library] / timed["ptxgen"]
            width = 60 * max(-2, min(6, math.log2(ratio)))
            out.append(f'<rect x="{270 + min(0, width):.1f}" y="{y}" width="{abs(width):.1f}" height="9" fill="{colours[library]}"/>'
                       f'<text x="{274 + max(0, width):.1f}" y="{y + 9}">{ratio:.2f}</text>')
            y += 11
        y += 8
    line = f'<line x1="270" y1="24" x2="270" y2="{y}" stroke="#555"/><text x="270" y="{y + 14}" text-anchor="middle">1: the time of ptxgen</text>'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{y + 22}" font-family="sans-serif" font-size="11">'
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(out)}{line}</svg>\n')

def write(table, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "examples.csv").open("w", encoding="utf-8", newline="") as file:
        versions = ", ".join(f"{name} {getattr(sys.modules.get(name), '__version__', '-')}" for name in ("torch", "cupy", "jax", "triton"))
        gpu = table.torch.cuda.get_device_name() if table.torch.cuda.is_available() else "no GPU"
        file.write(f"# {gpu}, {time.strftime('%Y-%m-%d')}, {versions}\n")
        writer = csv.DictWriter(file, ["example", "what", "library", "lines", "us", "note"])
        writer.writeheader()
        writer.writerows(table.rows)
    (folder / "examples.md").write_text(markdown(table.rows), encoding="utf-8")
    (folder / "examples.svg").write_text(plot(table.rows), encoding="utf-8")

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--native")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--once", action="store_true")
    given = parser.parse_args()
    SAMPLES[0] = 1 if given.once else SAMPLES[0]
    sys.path[:0] = [str(EXAMPLES), str(HERE)]
    sys.argv[1:] = ["torch"]
    if given.dry:
        sys.modules["cupy"] = importlib.import_module("numpy")
    torch = importlib.import_module("torch")
    table = Table(torch, native_library(given.native) if given.native else None)
    for peer, why in table.missing.items():
        print(f"{PEERS[peer]} is not here: {why}")
    torch.manual_seed(1)
    for name, (what, make) in example_arguments(torch, given.dry).items():
        if not given.names or name in given.names:
            try:
                table.run(name, what, make)
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc()
                table.failed.append(name)
            torch.cuda.empty_cache()
            write(table, given.out)
    if table.failed:
        print("failed: " + "; ".join(table.failed))
    return 1 if table.failed else 0

if __name__ == "__main__":
    sys.exit(main())
