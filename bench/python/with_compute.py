# SPDX-License-Identifier: Apache-2.0
"""The examples in cuda.compute, with CuPy's arrays.  It has no scans along columns, no rows that are reduced and then mapped, and no
stencils.  Its reductions are for operators that commute, so the largest sum of a segment is the end of a scan."""
import cupy
import cuda.compute
import numpy
from cuda.compute import OpKind, TransformIterator, ZipIterator, gpu_struct

def total(x):
    out = cupy.empty(1, "f4")
    cuda.compute.reduce_into(x, out, OpKind.PLUS, len(x), numpy.zeros(1, "f4"))
    return out[0]

@gpu_struct
class Segment:
    best: numpy.int32
    left: numpy.int32
    right: numpy.int32
    total: numpy.int32

def join(a: Segment, b: Segment) -> Segment:
    return Segment(max(max(a.best, b.best), a.right + b.left), max(a.left, a.total + b.left), max(b.right, a.right + b.total), a.total + b.total)

def one(x):
    return Segment(max(x, 0), max(x, 0), max(x, 0), x)

def max_segment_sum(x):
    out = cupy.empty(len(x), Segment.dtype)
    cuda.compute.inclusive_scan(TransformIterator(x, one), out, join, Segment(0, 0, 0, 0), len(x))
    return out[-1:].view("i4")[0]

def ragged_sums(x, rows):
    out = cupy.empty(len(rows) - 1, "f4")
    cuda.compute.segmented_reduce(x, out, rows[:-1], rows[1:], OpKind.PLUS, numpy.zeros(1, "f4"), len(out))
    return out

def histogram(x):
    counts = cupy.empty(256, "i4")
    cuda.compute.histogram_even(x, counts, 257, numpy.int32(0), numpy.int32(256), len(x))
    return counts

def selection(x, threshold):
    kept, count = cupy.empty_like(x), cupy.zeros(2, "u8")
    cuda.compute.select(x, kept, count, lambda value: value > threshold, len(x))
    return kept, count[0]

@gpu_struct
class Begun:
    value: numpy.float32
    flag: numpy.int32

def later(a: Begun, b: Begun) -> Begun:
    return Begun(b.value if b.flag else max(a.value, b.value), a.flag | b.flag)

def running_maximum(x, begins):
    out = cupy.empty(len(x), Begun.dtype)
    flags = begins.view("u1").astype("i4")
    cuda.compute.inclusive_scan(ZipIterator(x, flags), out, later, Begun(-numpy.inf, 0), len(x))
    return out.view("f4")[::2]

@gpu_struct
class Range:
    low: numpy.float32
    high: numpy.float32
    sum: numpy.float32

def wider(a: Range, b: Range) -> Range:
    return Range(min(a.low, b.low), max(a.high, b.high), a.sum + b.sum)

def point(x):
    return Range(x, x, x)

def range_and_mean(x):
    out = cupy.empty((), Range.dtype)
    cuda.compute.reduce_into(TransformIterator(x, point), out, wider, len(x), Range(numpy.inf, -numpy.inf, 0))
    low, high, sums = out.reshape(1).view("f4")
    return high - low, sums / len(x)
