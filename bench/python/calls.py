#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""calls.py [--json FILE] [--native LIBRARY] [overhead] [first] - what a call from Python costs, beside PyTorch, CuPy, JAX and Triton.

overhead  microseconds of the processor for a call with 1024 elements: the median of batches, each of which starts with an idle GPU and
          is too short to fill the queue of launches; "C": launches by the C library alone, of native.c; "ptxgen.torch.op": the same
          function as an operator of PyTorch, called by itself, and alone in a function that torch.compile compiled
first     milliseconds of the first call in a process whose library and context are ready: nothing in any cache, then from the cache

A part that fails says so, and the others go on; the exit status is 1 then.  Without arguments: all of them.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

N, BATCH, BATCHES = 1024, 200, 60
SUM = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n"
SCAN = "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\n"
MAP = "kind: stencil\ninputs: {x: 'f32[n]'}\noutputs: {y: {type: 'f32[n]', value: x * x + 1}}\n"
HERE = os.path.dirname(os.path.abspath(__file__))
rows, failed, FILE, NATIVE = [], [], [], []

def row(part, name, library, value, unit, note=""):
    rows.append({"part": part, "what": name, "library": library, "value": value, "unit": unit, "note": note})
    print(f"{part:9} {name:28} {library:22} {value:10.3f} {unit}  {note}", flush=True)
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

# ---- overhead ---------------------------------------------------------------------------------------------------------------------
def overhead(call, synchronise):
    for _ in range(BATCH):
        call()
    times = []
    for _ in range(BATCHES):
        synchronise()
        begin = time.perf_counter()
        for _ in range(BATCH):
            call()
        times.append((time.perf_counter() - begin) / BATCH * 1e6)
    synchronise()
    return statistics.median(times), "us", f"least {min(times):.3f}"

def torch_overheads():
    import ptxgen
    import torch

    x, y, one = torch.ones(N, device="cuda"), torch.empty(N, device="cuda"), torch.empty((), device="cuda")
    wait = torch.cuda.synchronize
    fsum, fscan, fmap = map(ptxgen.compile, (SUM, SCAN, MAP))
    print(f"          torch {torch.__version__}, exchange table of DLPack: {hasattr(torch.Tensor, '__dlpack_c_exchange_api__')}")
    calls = {("sum", "new"): (lambda: fsum(x), lambda: torch.sum(x)), ("sum", "out="): (lambda: fsum(x, out=one), lambda: torch.sum(x, 0, out=one)),
             ("scan", "new"): (lambda: fscan(x), lambda: torch.cumsum(x, 0)),
             ("scan", "out="): (lambda: fscan(x, out=y), lambda: torch.cumsum(x, 0, out=y)),
             ("map", "new"): (lambda: fmap(x), lambda: torch.addcmul(x, x, x)),
             ("map", "out="): (lambda: fmap(x, out=y), lambda: torch.addcmul(x, x, x, out=y))}
    for (what, form), (ours, theirs) in calls.items():
        attempt("overhead", f"{what}, {form}, torch tensors", "ptxgen", lambda ours=ours: overhead(ours, wait))
        attempt("overhead", f"{what}, {form}, torch tensors", "torch", lambda theirs=theirs: overhead(theirs, wait))
    functions = {"sum": fsum, "map": fmap}
    for what, f in functions.items():
        attempt("overhead", f"{what}, new, torch tensors", "ptxgen.torch.op", lambda f=f: overhead_of_operator(f, x, wait))
    for path in NATIVE:
        for what, f, out in (("sum", fsum, one), ("scan", fscan, y), ("map", fmap, y)):
            attempt("overhead", f"{what}, out=, torch tensors", "C", lambda f=f, out=out, path=path: native_overhead(path, f, x, out, wait))
    for what, theirs in (("sum", lambda x: x.sum()), ("map", lambda x: x * x + 1)):
        attempt("overhead", f"{what}, torch.compile", "torch", lambda theirs=theirs: overhead_of_compiled(theirs, x, wait))
        attempt("overhead", f"{what}, torch.compile", "ptxgen.torch.op", lambda f=functions[what]: overhead_of_compiled_operator(f, x, wait))

def native_overhead(path, f, x, out, wait):
    from examples import native_call, native_library

    call, times = native_call(native_library(path), f, {"x": x}, (out,), "native_host_seconds"), []
    for _ in range(BATCHES):
        wait()
        times.append(call(BATCH) * 1e6)
    return statistics.median(times), "us", f"least {min(times):.3f}"

def operator(f):
    import ptxgen.torch

    return ptxgen.torch.op(f)

def overhead_of_operator(f, x, wait):
    return overhead(lambda op=operator(f): op(x), wait)

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
        attempt("overhead", f"{what}, {form}, CuPy arrays", "ptxgen", lambda ours=ours: overhead(ours, wait))
        for name, call in theirs.items():
            attempt("overhead", f"{what}, {form}, CuPy arrays", f"cupy {name}", lambda call=call: overhead(call, wait))

def jax_overheads():
    import jax
    import ptxgen

    x, f, theirs = jax.numpy.ones(N), ptxgen.compile(SUM), jax.jit(lambda x: x.sum())
    wait = lambda: jax.block_until_ready(jax.numpy.zeros(1) + 1)
    print(f"          jax {jax.__version__} on {jax.default_backend()}")
    for library, call in (("ptxgen", f), ("jax.jit", theirs)):
        attempt("overhead", "sum, new, JAX arrays", library, lambda call=call: overhead(lambda: call(x), wait))
        attempt("overhead", "the same until it is there", library, lambda call=call: overhead(lambda: call(x).block_until_ready(), wait))

def triton_overheads():
    import torch
    import triton
    from with_triton import square

    x, y = torch.ones(N, device="cuda"), torch.empty(N, device="cuda")
    attempt("overhead", "map, out=, torch tensors", f"triton {triton.__version__}",
            lambda: overhead(lambda: square[(1,)](x, y, N, BLOCK=1024), torch.cuda.synchronize))

# ---- first calls --------------------------------------------------------------------------------------------------------------------
# What is ready before the clock starts, and what is timed.
FIRST = {
    "ptxgen": ("import torch, ptxgen; x = torch.ones(1 << 20, device='cuda'); torch.cuda.synchronize()",
               "f = ptxgen.compile(SPEC); f.prepare(x); ready = time.perf_counter(); f(x); torch.cuda.synchronize(); "
               "print('OF WHICH', round((time.perf_counter() - ready) * 1e3, 2), 'after prepare()')"),
    "triton (an elementwise kernel)": (f"import torch, triton, sys; sys.path.insert(0, {HERE!r}); x = torch.ones(1 << 20, device='cuda'); "
                                       "y = torch.empty_like(x); torch.cuda.synchronize()",
                                       "from with_triton import square; square[(1024,)](x, y, 1 << 20, BLOCK=1024); "
                                       "torch.cuda.synchronize()"),
    "cupy ReductionKernel": ("import cupy; x = cupy.ones(1 << 20, 'f4'); wait = cupy.cuda.Device().synchronize; wait()",
                             "cupy.ReductionKernel('float32 x', 'float32 y', 'x', 'a + b', 'y = a', '0', 'total')(x); wait()"),
    "torch.compile": ("import torch; x = torch.ones(1 << 20, device='cuda'); torch.cuda.synchronize()",
                      "torch.compile(lambda x: (x * x).sum())(x); torch.cuda.synchronize()"),
}

def first_call(prepare, action, spec, folder):
    code = f"import time\nSPEC = {spec!r}\n{prepare}\nbegin = time.perf_counter()\n{action}\nprint('MS', (time.perf_counter() - begin) * 1e3)\n"
    names = ("PTXGEN_CACHE", "CUDA_CACHE_PATH", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    environment = {**os.environ, **{name: os.path.join(folder, name) for name in names}, "TMPDIR": folder}
    for name in names:
        os.makedirs(environment[name], exist_ok=True)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("MS ")]
    if not found:
        if "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr:
            raise ImportError(done.stderr.strip().splitlines()[-1])
        raise RuntimeError(done.stderr[-2000:])
    more = [line for line in done.stdout.splitlines() if line.startswith("OF WHICH")]
    return float(found[0].split()[1]), " ".join(more).lower()

def first_calls():
    def both(name, library, spec):
        prepare, action = FIRST[library]
        cold, warm = [], []
        for _ in range(3 if spec == SUM else 1):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(first_call(prepare, action, spec, folder))
                warm.append(first_call(prepare, action, spec, folder))
        for form, times in (("cold", cold), ("from the cache", warm)):
            middle = sorted(times)[len(times) // 2]
            row("first", f"{name}, {form}", library, middle[0], "ms", middle[1])

    for name, spec in (("sum", SUM), ("scan", SCAN)):
        attempt("first", name, "ptxgen", lambda name=name, spec=spec: both(name, "ptxgen", spec))
    for library in list(FIRST)[1:]:
        attempt("first", "a kernel", library, lambda library=library: both("a kernel", library, ""))

PARTS = {"overhead": (torch_overheads, triton_overheads, cupy_overheads, jax_overheads), "first": (first_calls,)}

def main():
    arguments = sys.argv[1:]
    for option, to in (("--json", FILE), ("--native", NATIVE)):
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
