#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""calls.py [--json FILE] [--native LIBRARY] [--driver-calls LIBRARY] [--batches N] [overhead] [first] - what a call from Python costs, beside
PyTorch, CuPy, JAX and Triton.

overhead  microseconds of the processor for a call with 1024 elements: the median of batches, and the least; each batch starts with an
          idle GPU and is too short to fill the queue of launches.  Calls of one kind are measured in turn, batch by batch.  By native.c:
          "C": launches by the C library alone; "driver": launches of an empty kernel by cuLaunchKernel, and by cuLaunchKernelEx as a
          dependent launch.  "pdl=1": the map as a dependent launch; "alternating": of two sizes in turn; "ptxgen.torch.op": the same
          function as an operator of PyTorch, called by itself, and alone in a function that torch.compile compiled
first     milliseconds of the first call in a process whose library and context are ready: nothing in any cache, then from the cache.
          With libdriver_calls.so, another run of each says which calls of the driver took how long.  "PTX compiler loaded": the driver's
          library for that is there before the clock starts, which shows what its loading takes

--batches 1 measures nothing of use, and leaves the caches of all libraries filled.

A part that fails says so, and the others go on; the exit status is 1 then.  Without arguments: all of them.
"""
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

N, BATCH = 1024, 200
SUM = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n"
SCAN = "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\n"
MAP = "kind: stencil\ninputs: {x: 'f32[n]'}\noutputs: {y: {type: 'f32[n]', value: x * x + 1}}\n"
HERE = os.path.dirname(os.path.abspath(__file__))
rows, failed, FILE, NATIVE, DRIVER_CALLS, BATCHES = [], [], [], [], [], []

def row(part, name, library, value, unit, least=None, note=""):
    rows.append({"part": part, "what": name, "library": library, "value": value, "least": least, "unit": unit, "note": note})
    print(f"{part:9} {name:44} {library:22} {value:10.3f} {unit}  {'' if least is None else f'least {least:.3f}  '}{note}", flush=True)
    for path in FILE:  # now: what comes later may take too long
        with open(path, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)

def attempt(part, name, library, action):
    """A measurement in a try of its own: a library that is not there is no failure, anything else is."""
    try:
        result = action()
        if result is not None:
            row(part, name, library, *result)
    except ImportError as error:
        print(f"{part:9} {name:28} {library:22} not here: {error}", flush=True)
    except Exception as error:  # pylint: disable=broad-except
        failed.append(f"{part} {name} {library}")
        print(f"{part:9} {name:28} {library:22} failed: {type(error).__name__}: {error}\n{traceback.format_exc()}", flush=True)

def batches_asked():
    return int(BATCHES[0]) if BATCHES else 100

# ---- overhead ---------------------------------------------------------------------------------------------------------------------
def looped(call):
    """A batch of calls: microseconds of one."""
    def batch():
        begin = time.perf_counter()
        for _ in range(BATCH):
            call()
        return (time.perf_counter() - begin) / BATCH * 1e6
    return batch

def in_turn(name, wait, batches, notes=None):
    """Rows of batches that take turns, so that what changes the processor's clock meets all of them."""
    times = {}

    def begin(library):
        batches[library]()
        times[library] = []

    for library in batches:
        attempt("overhead", name, library, lambda library=library: begin(library))
    for _ in range(batches_asked()):
        for library, values in times.items():
            wait()
            values.append(batches[library]())
    wait()
    for library, values in times.items():
        row("overhead", name, library, statistics.median(values), "us", min(values), (notes or {}).get(library, ""))

def overhead(call, wait):
    batch, times = looped(call), []
    batch()
    for _ in range(batches_asked()):
        wait()
        times.append(batch())
    wait()
    return statistics.median(times), "us", min(times)

def torch_overheads():
    import ptxgen
    import torch

    x, y, one, short = torch.ones(N, device="cuda"), torch.empty(N, device="cuda"), torch.empty((), device="cuda"), torch.ones(N // 2, device="cuda")
    wait = torch.cuda.synchronize
    fsum, fscan, fmap = map(ptxgen.compile, (SUM, SCAN, MAP))
    dependent = ptxgen.compile(MAP, settings={"pdl": 1})
    print(f"          torch {torch.__version__}, exchange table of DLPack: {hasattr(torch.Tensor, '__dlpack_c_exchange_api__')}")
    turns = {}
    for what, f, given, theirs, filled in (
            ("sum", fsum, one, lambda: torch.sum(x), lambda: torch.sum(x, 0, out=one)),
            ("scan", fscan, y, lambda: torch.cumsum(x, 0), lambda: torch.cumsum(x, 0, out=y)),
            ("map", fmap, y, lambda: torch.addcmul(x, x, x), lambda: torch.addcmul(x, x, x, out=y))):
        turns[what, "new"] = {"ptxgen": lambda f=f: f(x), "torch": theirs}
        turns[what, "out="] = {"ptxgen": lambda f=f, given=given: f(x, out=given), "torch": filled}
        turns[what, "new"]["ptxgen, alternating"] = lambda f=f, turn=itertools.cycle((x, short)): f(next(turn))
    turns["map", "new"] |= {"torch, x * x + 1": lambda: x * x + 1, "ptxgen, pdl=1": lambda: dependent(x)}
    turns["map", "out="]["ptxgen, pdl=1"] = lambda: dependent(x, out=y)
    for what, f in (("sum", fsum), ("map", fmap)):
        attempt("overhead", what, "ptxgen.torch.op", lambda f=f, what=what: turns[what, "new"].update({"ptxgen.torch.op": lambda op=operator(f): op(x)}))
    for (what, form), calls in turns.items():
        batches = {library: looped(call) for library, call in calls.items()}
        for path in NATIVE:
            batches.update(native_batches(path, {"sum": fsum, "scan": fscan, "map": fmap}[what], x, one if what == "sum" else y))
        in_turn(f"{what}, {form}, torch tensors", wait, batches)
    for what, theirs in (("sum", lambda x: x.sum()), ("map", lambda x: x * x + 1)):
        attempt("overhead", f"{what}, torch.compile", "torch", lambda theirs=theirs: overhead_of_compiled(theirs, x, wait))
        attempt("overhead", f"{what}, torch.compile", "ptxgen.torch.op", lambda f=fsum if what == "sum" else fmap: overhead_of_compiled_operator(f, x, wait))

def native_batches(path, f, x, out):
    """Of launches by native.c: of f on these tensors, and of an empty kernel."""
    from examples import native_call, native_library

    made = {}
    for name, entry in (("C", "native_host_seconds"), ("driver", "native_empty_seconds"), ("driver, dependent", "native_dependent_seconds")):
        call = native_call(native_library(path), f, {"x": x}, (out,), entry)
        made[name] = lambda call=call: call(BATCH) * 1e6
    return made

def operator(f):
    import ptxgen.torch

    return ptxgen.torch.op(f)

def overhead_of_compiled(function, x, wait):
    import torch

    torch.compiler.reset()  # no other function's graphs and guards
    return overhead(lambda f=torch.compile(function): f(x), wait)

def overhead_of_compiled_operator(f, x, wait):
    return overhead_of_compiled(lambda x, op=operator(f): op(x), x, wait)

def cupy_overheads():
    import cupy
    import ptxgen

    x, y, one = cupy.ones(N, "f4"), cupy.empty(N, "f4"), cupy.empty((), "f4")
    wait = cupy.cuda.Device().synchronize
    fsum, fscan, fmap = map(ptxgen.compile, (SUM, SCAN, MAP))
    elementwise = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x * x + 1", "square")
    reduction = cupy.ReductionKernel("float32 x", "float32 y", "x", "a + b", "y = a", "0", "total")
    print(f"          cupy {cupy.__version__}, exchange table of DLPack: {hasattr(cupy.ndarray, '__dlpack_c_exchange_api__')}")
    calls = {("sum", "new"): (lambda: fsum(x), {"ReductionKernel": lambda: reduction(x), "cupy.sum": lambda: cupy.sum(x)}),
             ("sum", "out="): (lambda: fsum(x, out=one), {"ReductionKernel": lambda: reduction(x, one)}),
             ("scan", "new"): (lambda: fscan(x), {"cupy.cumsum": lambda: cupy.cumsum(x)}),
             ("scan", "out="): (lambda: fscan(x, out=y), {"cupy.cumsum": lambda: cupy.cumsum(x, out=y)}),
             ("map", "new"): (lambda: fmap(x), {"ElementwiseKernel": lambda: elementwise(x)}),
             ("map", "out="): (lambda: fmap(x, out=y), {"ElementwiseKernel": lambda: elementwise(x, y)})}
    for (what, form), (ours, theirs) in calls.items():
        in_turn(f"{what}, {form}, CuPy arrays", wait, {"ptxgen": looped(ours), **{f"cupy {name}": looped(call) for name, call in theirs.items()}})

def jax_overheads():
    import jax
    import ptxgen
    import ptxgen.jax

    x, f, theirs = jax.numpy.ones(N), ptxgen.compile(SUM), jax.jit(lambda x: x.sum())
    calls = {"ptxgen": f, "jax.jit": theirs, "jax.jit of ptxgen.jax.op": jax.jit(ptxgen.jax.op(f))}
    wait = lambda: jax.block_until_ready(jax.numpy.zeros(1) + 1)
    print(f"          jax {jax.__version__} on {jax.default_backend()}")
    in_turn("sum, JAX arrays, until the call returns", wait, {library: looped(lambda call=call: call(x)) for library, call in calls.items()},
            {library: "its work is done" if library == "ptxgen" else "its work may go on" for library in calls})
    in_turn("sum, JAX arrays, until the result is there", wait, {library: looped(lambda call=call: call(x).block_until_ready()) for library, call in calls.items()})

def triton_overheads():
    import torch
    import triton
    from with_triton import square

    x, y = torch.ones(N, device="cuda"), torch.empty(N, device="cuda")
    in_turn("map, out=, torch tensors", torch.cuda.synchronize, {f"triton {triton.__version__}": looped(lambda: square[(1,)](x, y, N, BLOCK=1024))})

# ---- first calls --------------------------------------------------------------------------------------------------------------------
# What is ready before the clock starts, and what is timed.
FIRST = {
    "ptxgen": ("import torch, ptxgen; x = torch.ones(1 << 20, device='cuda'); torch.cuda.synchronize()",
               "f = ptxgen.compile(SPEC); f.prepare(x); ready = time.perf_counter(); f(x); torch.cuda.synchronize(); "
               "print('OF WHICH', round((time.perf_counter() - ready) * 1e3, 2), 'after prepare()')"),
    "ptxgen, PTX compiler loaded": ("import contextlib, ctypes, torch, ptxgen; x = torch.ones(1 << 20, device='cuda'); torch.cuda.synchronize()\n"
                                    "with contextlib.suppress(OSError): ctypes.CDLL('libnvidia-ptxjitcompiler.so.1')",
                                    "f = ptxgen.compile(SPEC); f(x); torch.cuda.synchronize()"),
    "triton (an elementwise kernel)": (f"import torch, triton, sys; sys.path.insert(0, {HERE!r}); x = torch.ones(1 << 20, device='cuda'); "
                                       "y = torch.empty_like(x); torch.cuda.synchronize()",
                                       "from with_triton import square; square[(1024,)](x, y, 1 << 20, BLOCK=1024); "
                                       "torch.cuda.synchronize()"),
    "cupy ReductionKernel": ("import cupy; x = cupy.ones(1 << 20, 'f4'); wait = cupy.cuda.Device().synchronize; wait()",
                             "cupy.ReductionKernel('float32 x', 'float32 y', 'x', 'a + b', 'y = a', '0', 'total')(x); wait()"),
    "jax.jit": ("import jax; x = jax.block_until_ready(jax.numpy.ones(1 << 20))",
                "jax.jit(lambda x: (x * x).sum())(x).block_until_ready()"),
    "torch.compile": ("import torch; x = torch.ones(1 << 20, device='cuda'); torch.cuda.synchronize()",
                      "torch.compile(lambda x: (x * x).sum())(x); torch.cuda.synchronize()"),
}

class First:
    """A process that prepares, waits for its turn, and takes the time of a first call.  Its caches are in a folder."""

    def __init__(self, name, library, spec, folder, **environment):
        prepare, action = FIRST[library]
        self.name, self.library, self.files = name, library, tempfile.TemporaryFile("w+", encoding="utf-8")
        code = (f"import sys, time\nSPEC = {spec!r}\n{prepare}\nprint('READY', flush=True)\nsys.stdin.readline()\nbegin = time.perf_counter()\n{action}\n"
                "print('MS', (time.perf_counter() - begin) * 1e3)\n")
        caches = {name: os.path.join(folder, name) for name in ("PTXGEN_CACHE", "CUDA_CACHE_PATH", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
        for path in caches.values():
            os.makedirs(path, exist_ok=True)
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.files, text=True,
                                        env={**os.environ, "TMPDIR": folder, **caches, **environment})

    def ready(self):
        while (line := self.process.stdout.readline()) and line != "READY\n":
            pass

    def take(self):
        """(milliseconds, what it says besides)"""
        try:
            said = self.process.communicate("go\n" if self.process.poll() is None else None, timeout=120)[0]
        finally:
            self.process.kill()  # where it took too long
        self.files.seek(0)
        errors = self.files.read()
        found = re.search(r"^MS ([\d.]+)$", said or "", re.M)
        if found is None and ("ModuleNotFoundError" in errors or "ImportError" in errors):
            raise ImportError(errors.strip().splitlines()[-1])
        if found is None:
            raise RuntimeError(errors[-2000:])
        return float(found[1]), " ".join([*(line.lower() for line in said.splitlines() if line.startswith("OF WHICH")), *of_the_driver(errors)])

def of_the_driver(errors):
    """What libdriver_calls.so wrote: milliseconds by call, the longest first."""
    times = {}
    for found in re.finditer(r"^\d+ +[\d.]+ +([\d.]+) ms (cu\w+)$", errors, re.M):
        times[found[2]] = times.get(found[2], 0) + float(found[1])
    return [f"{name} {ms:.2f}" for name, ms in sorted(times.items(), key=lambda item: -item[1])]

def first_calls():
    """All processes of a kind prepare at the same time; then each has the machine to itself."""
    wanted = [(name, "ptxgen", spec, {}) for name, spec in (("sum", SUM), ("scan", SCAN)) for _ in range(3)]
    wanted += [(f"{name}, the driver's calls", "ptxgen", spec, {"PTXGEN_LIBCUDA": path, "DRIVER_CALLS_FROM": "0.02"}) for name, spec in (("sum", SUM), ("scan", SCAN))
               for path in DRIVER_CALLS]
    wanted += [(name, "ptxgen, PTX compiler loaded", spec, {}) for name, spec in (("sum", SUM), ("scan", SCAN))]
    wanted += [("a kernel", library, "", {}) for library in list(FIRST)[2:]]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for form in ("cold", "from the cache"):
            made = [First(name, library, spec, os.path.join(folder, str(i)), **more) for i, (name, library, spec, more) in enumerate(wanted)]
            taken = {(first.name, first.library): [] for first in made}
            for first in made:
                first.ready()
            for first in made:
                attempt("first", first.name, first.library, lambda first=first: taken[first.name, first.library].append(first.take()))
            for (name, library), times in ((key, sorted(times)) for key, times in taken.items() if times):
                ms, said = times[len(times) // 2]
                row("first", f"{name}, {form}", library, ms, "ms", times[0][0], said)

PARTS = {"overhead": (torch_overheads, triton_overheads, cupy_overheads, jax_overheads), "first": (first_calls,)}

def main():
    arguments = sys.argv[1:]
    for option, to in (("--json", FILE), ("--native", NATIVE), ("--driver-calls", DRIVER_CALLS), ("--batches", BATCHES)):
        if option in arguments:
            at = arguments.index(option)
            to.append(arguments[at + 1])
            del arguments[at:at + 2]
    if set(arguments) - set(PARTS):
        sys.exit(__doc__)
    for name in arguments or PARTS:
        for part in PARTS[name]:
            attempt(name, part.__name__, "", part)
    if failed:
        print("failed: " + "; ".join(failed))
    return 1 if failed else 0

if __name__ == "__main__":
    sys.exit(main())
