# SPDX-License-Identifier: Apache-2.0
"""Arrays on a GPU that is not there: NumPy's memory under the names and protocols of other libraries, and the fake driver's records.

The fake driver (tests/support/fake_cuda.c) takes host memory for a device's; PTXGEN_LIBCUDA names it before ptxgen is used."""
import ctypes
import functools
import os
import types

import numpy as np

c_int, c_unsigned, c_u64, c_pointer = ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_void_p


# ---- the driver -----------------------------------------------------------------------------------------------------------------
class Call(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kernel", ctypes.c_char_p), ("stream", c_pointer), ("context", c_pointer),
                ("a", c_u64), ("b", c_u64), ("grid", c_unsigned), ("block", c_unsigned), ("shared", c_unsigned), ("cluster", c_unsigned),
                ("programmatic", c_int), ("param", c_u64 * 48)]


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 160), ("nparams", c_int), ("bytes", c_int * 48)]


class Driver(ctypes.Structure):
    _fields_ = [(name, c_int) for name in ("version", "devices", "sm", "multiprocessors", "shared_optin", "pools", "shared_static",
                                           "registers", "local", "blocks", "capturing", "capture_spoiled")] + [
        ("next_handle", c_pointer), ("fail", ctypes.c_char_p), ("fail_result", c_int), ("kernel", Kernel * 4096), ("ncalls", c_int),
        ("call", Call * 4096), ("live", c_int), ("busy", c_int)]

    def calls(self, name="cuLaunchKernel"):
        """What was called of that name, or of names that begin with it, since forget()."""
        return [call for call in self.call[:min(self.ncalls, 4096)] if call.name.decode().startswith(name)]

    def forget(self):
        self.ncalls = 0

    def expect(self, kernel, pointers):
        """Record the first `pointers` arguments of a kernel that is not loaded yet."""
        at = next(i for i in range(4096) if self.kernel[i].name in (b"", kernel.encode()))
        self.kernel[at].name = kernel.encode()
        self.kernel[at].nparams = pointers
        self.kernel[at].bytes[:pointers] = [8] * pointers


def driver():
    """The fake driver, or None where another one is in use."""
    path = os.environ.get("PTXGEN_LIBCUDA", "")
    if "fake_cuda" not in path:
        return None
    library = ctypes.CDLL(path)
    if library.fake_cuda_python() != Driver.busy.offset + Driver.busy.size:
        raise RuntimeError("Driver has other fields than tests/support/fake_cuda.h")
    library.fake_cuda_state.restype = ctypes.POINTER(Driver)
    return library.fake_cuda_state().contents


# ---- DLPack ---------------------------------------------------------------------------------------------------------------------
class Tensor(ctypes.Structure):
    _fields_ = [("data", c_pointer), ("device_type", c_int), ("device_id", c_int), ("ndim", c_int), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", c_pointer), ("strides", c_pointer), ("offset", c_u64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", c_pointer), ("deleter", c_pointer)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", c_pointer), ("deleter", c_pointer), ("flags", c_u64),
                ("tensor", Tensor)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [c_pointer, ctypes.c_char_p, c_pointer]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = c_pointer, [ctypes.py_object, ctypes.c_char_p]
NAME, TABLE_NAME = b"dltensor", b"dlpack_exchange_api"  # capsules keep the address of their name alone
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


def managed(capsule):
    """What a capsule holds, as long as it lives."""
    return Managed.from_address(capsule_pointer(capsule, NAME))


class OnDevice:
    """Memory of NumPy's that says that it is on GPU `device`."""

    def __init__(self, x, device=0, strides=None):
        self.x, self.device = np.array(x, order="C", copy=strides is None), device
        self.extent = (ctypes.c_int64 * max(self.x.ndim, 1))(*self.x.shape)
        self.step = (ctypes.c_int64 * len(strides))(*strides) if strides else None
        self.pointer = self.x.ctypes.data
        self.tensor = Tensor(self.pointer, 2, device, self.x.ndim, CODES[self.x.dtype.kind], self.x.itemsize * 8, 1,
                             ctypes.addressof(self.extent), ctypes.addressof(self.step) if self.step else None, 0)


class Dlpack(OnDevice):
    """DLPack alone; streams: what consumers asked for."""

    def __init__(self, *args, **words):
        super().__init__(*args, **words)
        self.streams, self.managed = [], Managed(self.tensor)

    def __dlpack_device__(self):
        return (2, self.device)

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return new_capsule(ctypes.addressof(self.managed), NAME, None)


class Standard(Dlpack):
    """With a module of functions, as the array API standard has it."""

    def __array_namespace__(self):
        def from_dlpack(array):
            made = Standard(np.zeros(()))
            made.capsule = array.__dlpack__(stream=1)
            made.pointer = managed(made.capsule).tensor.data
            return made

        return types.SimpleNamespace(from_dlpack=from_dlpack)


class Interface(OnDevice):
    """The CUDA array interface alone."""

    stream = mask = None

    @property
    def __cuda_array_interface__(self):
        strides = tuple(s * self.x.itemsize for s in self.step) if self.step else None
        return {"shape": self.x.shape, "typestr": self.x.dtype.str, "data": (self.pointer, not self.x.flags.writeable), "version": 3,
                "strides": strides, "stream": self.stream, "mask": self.mask}


# ---- the table of functions of DLPack 1.3 ---------------------------------------------------------------------------------------
class Exchange(OnDevice):
    """A library that exchanges through C functions."""

    current, made = 0x70, {}  # made: by the address of what stands for an array until it is given
    fails = {}  # what functions of these names return, without an exception and without a result

    @classmethod
    def from_tensor(cls, tensor):
        shape = tuple((ctypes.c_int64 * tensor.ndim).from_address(tensor.shape)) if tensor.ndim else ()
        return cls(np.zeros(shape, {(2, 32): "f4", (0, 64): "i8", (0, 32): "i4"}[tensor.code, tensor.bits]), tensor.device_id)


def allocate(like, out, _context, _error):
    made = Exchange.from_tensor(like.contents)
    made.versioned = Versioned(1, 3, None, None, 0, made.tensor)
    out[0] = ctypes.addressof(made.versioned)
    Exchange.made[out[0]] = made
    return 0


def give(tensor, out):
    made = Exchange.made.pop(tensor)  # at once: other threads make and give, too
    if "give" not in Exchange.fails:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
        out[0] = id(made)
    return Exchange.fails.get("give", 0)


def view(instance, out):
    out[0] = ctypes.cast(instance, ctypes.py_object).value.tensor
    return Exchange.fails.get("view", 0)


def current_stream(_type, _device, out):
    out[0] = Exchange.current
    return Exchange.fails.get("current_stream", 0)


F = ctypes.PYFUNCTYPE
TABLE_TYPES = [("allocate", F(c_int, ctypes.POINTER(Tensor), ctypes.POINTER(c_pointer), c_pointer, c_pointer)), ("take", c_pointer),
               ("give", F(c_int, c_pointer, ctypes.POINTER(c_pointer))), ("view", F(c_int, c_pointer, ctypes.POINTER(Tensor))),
               ("current_stream", F(c_int, c_int, c_int, ctypes.POINTER(c_pointer)))]


class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", c_pointer), *TABLE_TYPES]


FUNCTIONS = [kind(function) if function else None for (_, kind), function in zip(TABLE_TYPES, (allocate, None, give, view, current_stream))]
TABLE = Table(1, 3, None, *FUNCTIONS)
Exchange.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(TABLE), TABLE_NAME, None)


# ---- modules of the names of torch and CuPy --------------------------------------------------------------------------------------
@functools.lru_cache
def torch():
    """As torch was before the table of functions."""
    module = types.ModuleType("torch")
    module.stream = 0x80

    class Tensor(Dlpack):  # pylint: disable=redefined-outer-name
        def data_ptr(self):
            return self.pointer

    Tensor.device = 0
    module.float32, module.int64 = "f4", "i8"
    module.Tensor = Tensor
    module.empty = lambda shape, dtype, device: Tensor(np.zeros(shape, dtype), device)
    module._C = types.SimpleNamespace(_cuda_getCurrentRawStream={0: module.stream}.get)
    module.utils = types.SimpleNamespace(dlpack=types.SimpleNamespace(to_dlpack=lambda tensor: tensor.__dlpack__()))
    return module


@functools.lru_cache
def torch_with_table():
    """As torch is since: with the table of functions, and what its compiler makes tensors with on the current device."""
    module = types.ModuleType("torch")
    module.device, module.asked, module.fault = 0, [], None

    class Tensor(Exchange):  # pylint: disable=redefined-outer-name
        pass

    def empty_strided(shape, strides, dtype):
        module.asked.append((shape, strides, dtype))
        if module.fault is MemoryError:
            raise MemoryError("none left")
        return Tensor(np.zeros(shape, module.fault if module.fault in ("i4", "f8") else dtype), 1 if module.fault == "another device" else module.device)

    module.Tensor, module.float32 = Tensor, "f4"
    module._C = types.SimpleNamespace(_cuda_getDevice=lambda: module.device,
                                      _dynamo=types.SimpleNamespace(guards=types.SimpleNamespace(_empty_strided_cuda=empty_strided)))
    return module


@functools.lru_cache  # one, as the extension keeps its functions
def cupy():
    module = types.ModuleType("cupy")
    module.stream = 0x90

    class ndarray(Dlpack):
        def __init__(self, shape, dtype=None):
            super().__init__(np.zeros(shape, dtype) if dtype is not None else shape)
            self.data = types.SimpleNamespace(ptr=self.pointer, device_id=0)
            self.shape, self.dtype, self._c_contiguous = self.x.shape, self.x.dtype, True

    module.ndarray = ndarray
    module.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=module.stream))
    return module


@functools.lru_cache
def jax():
    """With a stream for foreign work; arrays that are quiet are on a device without."""
    module = types.ModuleType("jax")
    module.stream, module.driver, module.fault = 0xa0, driver(), None

    class Device:
        def get_stream_for_external_ready_events(self):
            if self is devices[1]:
                raise RuntimeError("UNIMPLEMENTED")
            return module.stream

    devices = [Device(), Device()]

    class Array(Dlpack):
        quiet, direct, asked = False, 0, 0

        def devices(self):
            self.asked += 1
            return {devices[self.quiet]}

        def __array_namespace__(self):
            return types.SimpleNamespace(from_dlpack=lambda array: imported(array.__dlpack__(stream=module.stream), None, module.stream))

    def imported(capsule, maker, stream):
        made = Array(np.zeros(()))
        made.capsule, made.maker, made.ready, made.pointer = capsule, maker, stream, managed(capsule).tensor.data
        made.waited = len(module.driver.calls("cuStreamSynchronize"))
        if module.fault:
            raise module.fault
        return made

    def to_buffer(capsule, device, stream):
        assert device is devices[0]
        return imported(capsule, module.jaxlib, stream)

    def to_capsule(array, stream):
        array.direct += 1
        return array.__dlpack__(stream=stream)

    module.Array = Array
    module.jaxlib = types.SimpleNamespace(dlpack_managed_tensor_to_buffer=to_buffer, buffer_to_dlpack_managed_tensor=to_capsule)
    return module
