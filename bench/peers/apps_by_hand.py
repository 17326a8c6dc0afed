# SPDX-License-Identifier: Apache-2.0
"""apps_by_hand.py - peers of apps.py that launch the kernels of apps_by_hand.cuh.

CUB's sort is in the bundle's lib/libpeers.so (sort.cu).

A peer allocates first, and gives a call that launches everything once and returns the results, and whether this call can be captured in
a CUDA graph: it cannot where the host decides between two steps.  `Cuda` launches through CuPy; `Host` does on the CPU what a dry run needs.
"""
import ctypes
import functools
import importlib
import pathlib
import re
import shutil
import subprocess
import tempfile
import weakref

HERE = pathlib.Path(__file__).resolve().parent
SOURCE, PEERS = HERE / "apps_by_hand.cuh", HERE.parent.parent / "lib" / "libpeers.so"


class Cuda:
    def __init__(self, cupy, numpy):
        self.xp, self.numpy = cupy, numpy

    @staticmethod
    def sparse():
        return importlib.import_module("cupyx.scipy.sparse"), importlib.import_module("cupyx.scipy.sparse.linalg")

    @functools.cache
    def kernels(self, **constants):
        module = self.xp.RawModule(code=SOURCE.read_text(), options=tuple(f"-D{name}={value}" for name, value in constants.items()))
        functions = {}

        def launch(name, grid, block, *args):
            if name not in functions:
                functions[name] = module.get_function(name)
            functions[name](grid, block, args)
        return launch

    def captured(self, call):
        """The call from a CUDA graph; its results lie where the first call has put them."""
        stream = self.xp.cuda.Stream(non_blocking=True)
        self.xp.cuda.get_current_stream().synchronize()
        with stream:
            result = call()
            stream.synchronize()
            stream.begin_capture()
            try:
                call()
            finally:
                graph = stream.end_capture()

        def replay(kept=(call, result)):  # the graph holds no array
            graph.launch()
            return kept[1]
        return replay


    def take(self, array):
        return self.xp.asarray(array)

    def back(self, array):
        return self.xp.asnumpy(array)

    def free(self):
        self.xp.get_default_memory_pool().free_all_blocks()

    def wait(self):
        self.xp.cuda.runtime.deviceSynchronize()

    def event(self):
        return self.xp.cuda.Event()

    def between(self, begin, end):
        return self.xp.cuda.get_elapsed_time(begin, end)


class Host:
    """The same kernels by the C++ compiler, on arrays of NumPy."""

    def __init__(self, numpy):
        self.xp = self.numpy = numpy
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="apps-by-hand-"))
        weakref.finalize(self, shutil.rmtree, self.folder, True)

    @staticmethod
    def has_compiler():
        return shutil.which("c++") is not None

    @staticmethod
    def sparse():
        return importlib.import_module("scipy.sparse"), importlib.import_module("scipy.sparse.linalg")

    @functools.cache
    def kernels(self, **constants):
        text = SOURCE.read_text()
        names = re.findall(r"__global__ void (\w+)\(", text)
        library = self.folder / ("-".join(f"{k}{v}" for k, v in constants.items()) + ".so")
        text = '#include "apps_on_host.h"\n' + text + "".join(
            f'\nextern "C" void run_{name}(const int *shape, void **args) {{ on_host({name}, shape, args); }}' for name in names)
        command = ["c++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-I{HERE}", "-x", "c++", "-", "-o", str(library)]
        subprocess.run(command + [f"-D{name}={value}" for name, value in constants.items()], input=text, text=True, check=True)
        loaded = ctypes.CDLL(str(library))

        def launch(name, grid, block, *args):
            values = [ctypes.c_void_p(a.ctypes.data) if a.ndim else a for a in args]
            kept = [self.numpy.array(a) if not isinstance(a, ctypes.c_void_p) else a for a in values]
            at = [a.ctypes.data if not isinstance(a, ctypes.c_void_p) else ctypes.addressof(a) for a in kept]
            shape = (ctypes.c_int * 4)(*((*grid, 1)[:2]), *((*block, 1)[:2]))
            loaded[f"run_{name}"](shape, (ctypes.c_void_p * len(at))(*at))
        return launch

    @staticmethod
    def captured(call):
        return call

    @staticmethod
    def take(array):
        return array

    back = take

    def free(self):
        pass

    wait = free


def cover(count, block):
    return ((count + block - 1) // block,)


def tiles(shape, width, height):
    return ((shape[1] + width - 1) // width, (shape[0] + height - 1) // height)


def srad(lib, given, p):
    xp, i32, run = lib.xp, lib.numpy.int32, lib.kernels()
    source, img, total = given["img"], xp.empty_like(given["img"]), xp.empty(2, "f8")
    (m, n), parts = img.shape, [xp.empty_like(img) for _ in range(5)]
    grid, size, rate = tiles(img.shape, 16, 16), (i32(m), i32(n)), lib.numpy.float32(0.25 * p["lambda"])
    blocks = (min(1024, cover(m * n, 256)[0]),)

    def call():
        xp.copyto(img, source)
        total.fill(0)
        for _ in range(p["steps"]):
            run("srad_statistics", blocks, (256,), img, lib.numpy.int64(m * n), total)
            run("srad_coefficients", grid, (16, 16), img, *parts, *size, total)
            run("srad_update", grid, (16, 16), img, *parts, *size, rate, total)
        return {"next": img}
    return call, True


def until(lib, name, source, more, constants, p):
    """Steps of a stencil until nothing moves by eps: the host reads one number after each step."""
    xp, i32, run = lib.xp, lib.numpy.int32, lib.kernels()
    buffers, moved = [xp.empty_like(source) for _ in range(2)], xp.zeros(1, "f4")
    (m, n), grid = source.shape, tiles(source.shape, 32, 8)

    def call():
        old, step = source, 0
        while step < p["steps"]:
            new = buffers[step % 2]
            moved.fill(0)
            run(name, grid, (32, 8), old, *more, new, i32(m), i32(n), *constants, moved)
            old, step = new, step + 1
            if p["eps"] > 0 and float(moved[0]) < p["eps"]:
                break
        return {"next": old, "taken": step}
    return call, p["eps"] <= 0


def heat(lib, given, p):
    return until(lib, "heat_step", given["u"], (), (), p)


def hotspot(lib, given, p):
    f32 = lib.numpy.float32
    constants = (f32(p["step_div_cap"]), f32(1 / p["rx"]), f32(1 / p["ry"]), f32(1 / p["rz"]), f32(p["amb"]))
    return until(lib, "hotspot_step", given["temp"], (given["power"],), constants, p)


def backpropagation(lib, given, p):
    """One step; 16 hidden."""
    xp, i32, run, rate = lib.xp, lib.numpy.int32, lib.kernels(), lib.numpy.float32(p["rate"])
    x, w1, w2, target = (given[name] for name in ("x", "w1", "w2", "target"))
    n, blocks = i32(len(x)), min(1024, cover(len(x), 16)[0])
    partial, d1, next1, next2 = xp.empty((blocks, 16), "f4"), xp.empty(16, "f4"), xp.empty_like(w1), xp.empty_like(w2)

    def call():
        run("net_forward", (blocks,), (16, 16), x, w1, partial, n)
        run("net_middle", (1,), (16, 16), partial, i32(blocks), w2, target, next2, d1, i32(len(target)), rate)
        run("net_adjust", cover(len(x) * 16, 256), (256,), x, w1, d1, next1, n, rate)
        return {"next1": next1, "next2": next2}
    return call, True


def kmeans(lib, given, p):
    x, source = given["x"], given["c"]
    xp, (k, f) = lib.xp, source.shape
    run, n = lib.kernels(F=f, K=k), len(x)
    c, member, total, many = xp.empty_like(source), xp.empty(n, "i4"), xp.zeros((k, f), "f4"), xp.zeros(k, "i4")
    blocks = (min(528, cover(n * f, 512)[0]),)

    def call():
        xp.copyto(c, source)
        for _ in range(p["steps"]):
            run("kmeans_assign", cover(n, 128), (128,), x, c, member, lib.numpy.int32(n))
            run("kmeans_sums", blocks, (512,), x, member, total, many, lib.numpy.int64(n * f))
            run("kmeans_means", (1,), (256,), total, many, c)
        return {"next": c, "member": member}
    return call, True


def nbody(lib, given, p):
    run, n = lib.kernels(), len(given["x"])
    sets = [[lib.xp.empty(n, "f4") for _ in "xyzuvw"] for _ in range(2)]

    def call():
        old = [given[name] for name in "xyzuvw"]
        for step in range(p["steps"]):
            new = sets[step % 2]
            run("nbody_step", cover(n, 256), (256,), given["mass"], *old, *new, lib.numpy.int32(n), lib.numpy.float32(p["dt"]),
                lib.numpy.float32(p["soft"]))
            old = new
        return {f"{name}_next": array for name, array in zip("xyzuvw", old)}
    return call, True


def nearest4(lib, given, _):
    q, p = given["q"], given["p"]
    m, n, run = len(q), len(p), lib.kernels(F=q.shape[1])
    out = [lib.xp.empty(m, "i4") for _ in range(4)] + [lib.xp.empty(m, "f4")]

    def call():
        run("nearest4_search", cover(m, 4), (256,), q, p, lib.numpy.int32(m), lib.numpy.int32(n), *out)
        return dict(zip(("n0", "n1", "n2", "n3", "distance"), out))
    return call, True


def tpacf(lib, given, _):
    xp, i32, run, (s, m) = lib.xp, lib.numpy.int32, lib.kernels(), given["x"].shape
    pairs, mixed, w = xp.empty((32, 2), "i8"), xp.empty(32, "i8"), xp.empty(32, "f8")

    def call():
        pairs.fill(0)
        mixed.fill(0)
        run("tpacf_pairs", (*cover(m, 256), s), (256,), given["x"], given["y"], given["z"], given["edge"], i32(m), pairs, mixed)
        run("tpacf_estimate", (1,), (32,), pairs, mixed, w, i32(m), i32(s))
        return {"pairs": pairs, "mixed": mixed, "w": w}
    return call, True


def mri_q(lib, given, _):
    i32, run, n = lib.numpy.int32, lib.kernels(), len(given["x"])
    qr, qi = lib.xp.empty(n, "f4"), lib.xp.empty(n, "f4")
    arrays = [given[name] for name in ("re", "im", "kx", "ky", "kz", "x", "y", "z")]

    def call():
        run("mri_sums", cover(n, 256), (256,), *arrays, qr, qi, i32(len(given["re"])), i32(n))
        return {"qr": qr, "qi": qi}
    return call, True


def options(lib, given, p):
    o, run = len(given["spot"]), lib.kernels(NODES=2 * p["steps"] + 1)
    price, arrays = lib.xp.empty(o, "f4"), [given[name] for name in ("spot", "strike", "rate", "vol", "years")]

    def call():
        run("options_price", (o,), (256,), *arrays, price, lib.numpy.int32(p["steps"]))
        return {"price": price}
    return call, True


def components(lib, given, _):
    i32, run, label = lib.numpy.int32, lib.kernels(), given["label"]
    parent, v, e = lib.xp.empty_like(label), i32(len(label)), i32(len(given["from"]))

    def call():
        run("components_begin", cover(int(v), 256), (256,), label, parent, v)
        run("components_join", cover(int(e), 256), (256,), given["from"], given["to"], parent, e)
        run("components_end", cover(int(v), 256), (256,), parent, v)
        return {"next": parent}
    return call, True


def cub_sort(lib, given, _):
    if not PEERS.exists():
        raise ModuleNotFoundError(PEERS)
    call_cub = ctypes.CDLL(str(PEERS)).peer_sort_keys
    call_cub.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_void_p]
    key, size, out = given["key"], ctypes.c_size_t(), lib.xp.empty_like(given["key"])
    sort = lambda at: call_cub(at, ctypes.byref(size), key.data.ptr, out.data.ptr, key.size, lib.xp.cuda.get_current_stream().ptr)
    temporary = lib.xp.empty(size.value if sort(None) == 0 else 0, "u1")

    def call():
        if sort(temporary.data.ptr) != 0:
            raise RuntimeError("CUB refuses")
        return {"sorted": out}
    return call, True
