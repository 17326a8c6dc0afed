#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tvm_ffi.py PTXGEN FAKE_CUDA SPECS CUDA_INCLUDE - files of --emit=tvm-ffi, compiled, loaded and called as tvm-ffi calls them.

The functions of tvm-ffi that they need are stand-ins here, and the driver is the one that records: a call launches what `ptxgen run`
launches, with the same numbers, and what is wrong is refused with a message."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile

STAND_INS = '''
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "fake_cuda.h"
fake_cuda_state_fn fake_cuda_state;
static char kind[100], text[2000];
void *stream_now;
void TVMFFIErrorSetRaisedFromCStr(const char *k, const char *message) { snprintf(kind, 100, "%s", k); snprintf(text, 2000, "%s", message); }
void *TVMFFIEnvGetStream(int32_t type, int32_t device) { (void)type; (void)device; return stream_now; }
const char *last_kind(void) { return kind; }
const char *last_text(void) { return text; }
void set_stream(void *stream) { stream_now = stream; }
void capture(int on) { fake_cuda_state()->capturing = on; }
/* Of the last launch; NULL in a capture that was spoiled. */
const void *launched_on(void)
{
    struct fake_cuda *fake = fake_cuda_state();
    int i = fake->ncalls - 1;
    while (i > 0 && strncmp(fake->call[i].name, "cuLaunchKernel", 14))
        i--;
    return i < 0 || fake->capture_spoiled ? NULL : fake->call[i].stream;
}
'''
SUPPORT = pathlib.Path(__file__).resolve().parents[1] / 'support'
CODES = {'bool': (6, 8), 'bf16': (4, 16)}
SPECS = {  # beside those of specs/
    'params': 'kind: map\ninputs: {x: "f32[n]"}\nparams: {h: f16, b: {type: bf16, value: 1.5}, k: {type: i8, value: -3}, u: {type: u16, value: 7}, '
              'flag: {type: bool, value: true}}\noutputs: {y: {type: "f32[n]", value: "if flag then x * f32(h) + f32(b) else x + f32(k) + f32(u)"}}\n',
}


class Tensor(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('device_type', ctypes.c_int32), ('device', ctypes.c_int32), ('rank', ctypes.c_int32),
                ('code', ctypes.c_uint8), ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16), ('shape', ctypes.POINTER(ctypes.c_int64)),
                ('strides', ctypes.POINTER(ctypes.c_int64)), ('offset', ctypes.c_uint64)]


class Value(ctypes.Union):
    _fields_ = [('integer', ctypes.c_int64), ('real', ctypes.c_double), ('pointer', ctypes.c_void_p)]


class Any(ctypes.Structure):
    _fields_ = [('type', ctypes.c_int32), ('zero', ctypes.c_uint32), ('v', Value)]


class Object(ctypes.Structure):  # a tensor of tvm-ffi's own
    _fields_ = [('count', ctypes.c_uint64), ('type', ctypes.c_int32), ('padding', ctypes.c_uint32), ('deleter', ctypes.c_void_p), ('tensor', Tensor)]


def numbers(*values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def tensor(element, *shape, **changes):
    kind, bits = CODES.get(element, ({'i': 0, 'u': 1, 'f': 2}[element[0]], int(re.sub(r'\D', '', element) or 8)))
    size = bits // 8
    for n in shape:
        size *= n
    t = Tensor(0, 2, 0, len(shape), kind, bits, 1, numbers(*shape), None, 0)
    t.memory = ctypes.create_string_buffer(size + 512)
    t.data = (ctypes.addressof(t.memory) + 255) // 256 * 256
    for name, value in changes.items():
        setattr(t, name, value)
    return t


def any_of(value):
    if value is None:
        return Any(0)
    if isinstance(value, bool):
        return Any(2, 0, Value(integer=value))
    if isinstance(value, int):
        return Any(1, 0, Value(integer=value))
    if isinstance(value, float):
        return Any(3, 0, Value(real=value))
    if isinstance(value, Object):
        return Any(70, 0, Value(pointer=ctypes.addressof(value)))
    return Any(7, 0, Value(pointer=ctypes.addressof(value)))


class Function:
    """A compiled file; calls give '' or the kind of the error and its message."""

    def __init__(self, o, spec):
        name = pathlib.Path(spec).stem
        subprocess.run([o.ptxgen, spec, '--emit=header,tvm-ffi', '--arch=sm_90', '-o', f'{o.work}/'], check=True)
        library = o.work / f'{name}.so'
        subprocess.run(['cc', '-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror', '-std=c11', '-D_GNU_SOURCE',
                        '-isystem', o.include, f'-I{SUPPORT}', o.work / f'{name}_tvm_ffi.c', o.work / 'stand_ins.c', '-x', 'none', o.fake,
                        f'-Wl,-rpath,{os.path.dirname(o.fake)}', '-lm', '-lpthread', '-o', library], check=True)
        self.library = ctypes.CDLL(str(library))
        self.call = getattr(self.library, f'__tvm_ffi_{name}')
        self.library.launched_on.restype, self.library.set_stream.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        self.library.last_kind.restype = self.library.last_text.restype = ctypes.c_char_p

    def __call__(self, *values):
        given, result = (Any * max(len(values), 1))(*map(any_of, values)), Any(1)
        status = self.call(None, given, len(values), ctypes.byref(result))
        said = f'{self.library.last_kind().decode()}: {self.library.last_text().decode()}'
        return said if status else '' if result.type == 0 else 'the result is not None'


class Options:
    pass


def launches(lines):
    """Kernels with their grids and numbers, without addresses."""
    return [re.sub(r'm\d+\+\d+|\b[0-9a-f]{9,}\b', '@', line) for line in lines if line.startswith('launch ')]


def logged(o, function, *values):
    before = len(o.log.read_text().splitlines()) if o.log.exists() else 0
    said = function(*values)
    return [f'error {said}'] if said else launches(o.log.read_text().splitlines()[before:])


def run(o, spec, *more):
    log = o.work / 'run.log'
    subprocess.run([o.ptxgen, 'run', spec, '--device', 'cuda', '--arch', 'sm_90', *more], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, FAKE_CUDA_LOG=str(log), PTXGEN_LIBCUDA=o.fake, PTXGEN_CACHE='off'))
    return launches(log.read_text().splitlines())


FAILED = []


def expect(what, found, wanted):
    good = wanted in found if isinstance(wanted, str) and wanted else found == wanted
    if not good:
        FAILED.append(what)
        print(f'FAIL {what}:\n  {found}\n  {wanted}')
    expect.count += 1


expect.count = 0


def same_launches(o):
    dot = Function(o, o.specs / 'dot.yaml')
    wanted = run(o, o.specs / 'dot.yaml', '--size', 'n=1000')
    x, y, out = tensor('f32', 1000), tensor('f32', 1000), tensor('f32')
    expect('dot', logged(o, dot, x, y, out), wanted)
    expect('dot, again', logged(o, dot, x, y, out), wanted)
    own = Object(1, 70, 0, None, x)
    expect('a tensor object', logged(o, dot, own, y, out), wanted)
    large = run(o, o.specs / 'dot.yaml', '--size', 'n=3000000')
    expect('a larger workspace', logged(o, dot, tensor('f32', 3000000), tensor('f32', 3000000), out), large)

    means = o.specs / 'apps/kmeans.yaml'
    wanted = run(o, means, '--size', 'n=500', '--size', 'f=4', '--size', 'k=5', '--param', 'steps=1')
    kmeans = Function(o, means)
    names = re.search(r'kmeans\((.*)\)', (o.work / 'kmeans_tvm_ffi.c').read_text())[1]
    shapes = {'x': ('f32', 500, 4), 'c': ('f32', 5, 4), 'member': ('i32', 500), 'next': ('f32', 5, 4), 'moved': ('f32',)}
    arrays = [tensor(*shapes[n]) for n in names.split(', ') if n in shapes]
    params = [1 if n.startswith('steps') else None for n in names.split(', ') if n not in shapes]
    expect('stages', logged(o, kmeans, *arrays, *params), wanted)

    product = Function(o, o.specs / 'complex_product.yaml')
    wanted = run(o, o.specs / 'complex_product.yaml', '--size', 'n=77')
    expect('fields', logged(o, product, tensor('f32', 77, 2), tensor('f32', 2)), wanted)
    expect('fields without their dimension', logged(o, product, tensor('f32', 77), tensor('f32', 2))[0], "'z' has 1 dimensions instead of 2")
    expect('too many fields', logged(o, product, tensor('f32', 77, 3), tensor('f32', 2))[0], "dimension 1 of 'z' has 3 elements instead of 2")
    means = Function(o, o.specs / 'segment_mean.yaml')
    wanted = run(o, o.specs / 'segment_mean.yaml', '--size', 'n=500', '--size', 'k=9')
    expect('added', logged(o, means, tensor('f32', 500), tensor('i32', 9), tensor('f32', 8), tensor('f32', 8)), wanted)
    expect('negative', logged(o, means, tensor('f32', 500), tensor('i32', 0), tensor('f32', 0), tensor('f32', 0))[0], "dimension 0 of 'mean' has 0 elements instead of -1")

    params = Function(o, o.params)
    x, y = tensor('f32', 700), tensor('f32', 700)
    for h, more, given in ((0.1, (), ()), (65504.0, (), ()), (1e-7, (), ()), (0.333251953125, ('b=-0.2', 'k=-128', 'u=65535', 'flag=false'), (-0.2, -128, 65535, False)),
                           (-2.00048828125, ('b=3.0078125',), (3.0078125, None)), (1e9, ('h=inf', 'b=inf'), (1e39,))):
        more = more if any(p.startswith('h=') for p in more) else (f'h={h!r}', *more)
        wanted = run(o, o.params, '--size', 'n=700', *[a for p in more for a in ('--param', p)])
        expect(f'params {h} {more}', logged(o, params, x, y, h, *given), wanted)


def refusals(o):
    dot, params = Function(o, o.specs / 'dot.yaml'), Function(o, o.params)
    x, y, out = tensor('f32', 100), tensor('f32', 100), tensor('f32')
    view = tensor('f32', 100, strides=numbers(2))
    table = ((dot, (x, y), 'TypeError: dot takes 3 to 3 arguments, and got 2'),
             (dot, (x, y, out, 1), 'got 4'),
             (dot, (x, 3, out), "TypeError: dot: 'y' must be a tensor"),
             (dot, (x, tensor('f64', 100), out), "TypeError: dot: the elements of 'y' must be f32"),
             (dot, (x, tensor('i32', 100), out), "the elements of 'y' must be f32"),
             (dot, (x, tensor('f32', 100, lanes=2), out), "the elements of 'y' must be f32"),
             (dot, (x, tensor('f32', 10, 10), out), "'y' has 2 dimensions instead of 1"),
             (dot, (x, tensor('f32', 99), out), "dimension 0 of 'y' has 99 elements instead of 100"),
             (dot, (x, view, out), "'y' must be contiguous"),
             (dot, (tensor('f32', 100, device_type=1), y, out), "'x' is not in the memory of a CUDA device"),
             (dot, (x, tensor('f32', 100, device=1), out), "'y' is on device 1, and what comes before it on device 0"),
             (dot, (x, tensor('f32', 100, data=None), out), 'dot: '),
             (params, (x, y), 'params takes 3 to 7 arguments'),
             (params, (x, y, None), "the param 'h' is missing"),
             (params, (x, y, x), "the param 'h' must be a number"),
             (params, (x, y, 1.0, 1.0, 1.5), "the param 'k' must be an integer"),
             (params, (x, y, 1.0, 1.0, 128), "the param 'k' is 128, and must be -128 to 127"),
             (params, (x, y, 1.0, 1.0, 1, -1), "must be 0 to 65535"))
    for function, values, wanted in table:
        found = logged(o, function, *values)
        expect(wanted, found[0] if found else 'it was launched', wanted)
    ones = tensor('f32', 1, strides=numbers(77))
    expect('strides of one element mean nothing', logged(o, dot, ones, ones, out)[0], 'launch ')


def streams(o):
    scan = Function(o, o.specs / 'scan_affine.yaml')
    arrays = [tensor('f32', 100) for _ in range(3)]
    scan.library.capture(1)
    expect('in a capture', logged(o, scan, *arrays, 0.5)[0], 'RuntimeError: scan_affine: code would be loaded, which a capture does not allow: call it once before')
    scan.library.capture(0)
    for stream in (0x510, 0x520, 0x510):
        scan.library.set_stream(stream)
        expect('another stream', logged(o, scan, *arrays, 0.5)[0], 'launch ')
        expect('the stream', scan.library.launched_on(), stream)
    scan.library.capture(1)
    expect('captured', scan(*arrays, 0.5), '')
    expect('the captured stream', scan.library.launched_on(), 0x510)
    expect('in a capture, with more memory', logged(o, scan, *[tensor('f32', 30000000)] * 3, 0.5)[0], 'memory would be allocated')
    scan.library.capture(0)


def main():
    o = Options()
    o.ptxgen, o.fake, o.specs, o.include = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
    with tempfile.TemporaryDirectory() as work:
        o.work = pathlib.Path(work)
        o.log = o.work / 'calls.log'
        o.params = o.work / 'params.yaml'
        os.environ.update(FAKE_CUDA_LOG=str(o.log))
        for name, text in SPECS.items():
            (o.work / f'{name}.yaml').write_text(text)
        (o.work / 'stand_ins.c').write_text(STAND_INS)
        same_launches(o)
        refusals(o)
        streams(o)
    print(f'{expect.count - len(FAILED)} passed, {len(FAILED)} failed')
    return 1 if FAILED else 0


if __name__ == '__main__':
    sys.exit(main())
