#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""processes.py LIBPTXGEN - two processes as ranks, each with a GPU that writes into the memory of the other one.

Sums and time steps are compared with Python's own. Exit status: 0 only when all agree.
"""
import ctypes
import multiprocessing
import os
import queue
import struct
import sys

RANKS, COLUMNS, ROWS, STEPS = 2, 1024, 300, 24
SUM = b"kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n"
HEAT = (b"kind: stencil\ninputs: {x: 'i32[n, m]'}\nboundary: wrap\niterate: {steps: %d, feedback: {x: y}}\n"
        b"outputs: {y: {type: 'i32[n, m]', value: 'x[-1, 0] - x[1, 0] + x[0, 1]'}}\n" % STEPS)


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 128)]


def good(status, what):
    if status != 0:
        raise RuntimeError(f"{what} gives {status}")


def nccl():
    return ctypes.CDLL(os.environ.get("PTXGEN_LIBNCCL", "libnccl.so.2"))


class Rank:
    """A session, a GPU whose context is current, and a communicator."""

    def __init__(self, library, number, unique):
        cuda, self.lib, self.number = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(library), number
        context, comm = ctypes.c_void_p(), ctypes.c_void_p()
        good(cuda.cuInit(0), "cuInit")
        good(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number), "cuDevicePrimaryCtxRetain")
        good(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        good(nccl().ncclCommInitRank(ctypes.byref(comm), RANKS, unique, number), "ncclCommInitRank")
        self.session, self.gpu, self.comm, self.stream = (ctypes.c_void_p() for _ in range(4))
        self.call("session_create", ctypes.byref(self.session))
        self.call("gpu_open", self.session, number, ctypes.byref(self.gpu))
        self.call("stream_create", self.session, self.gpu, ctypes.byref(self.stream))
        self.call("comm_from_nccl", self.session, self.gpu, comm, None, ctypes.byref(self.comm))

    def call(self, name, *arguments):
        good(getattr(self.lib, "ptxgen_" + name)(*arguments), name)

    def run(self, spec, sizes, data, out_bytes, launches):
        """The bytes of the output after so many launches, and how they travelled."""
        problem, dist, x, y = (ctypes.c_void_p() for _ in range(4))
        self.call("problem_from_string", self.session, spec, ctypes.c_size_t(len(spec)), b"spec", ctypes.byref(problem))
        self.call("dist_load", self.session, self.comm, problem, None, ctypes.byref(dist))
        self.call("gpu_alloc", self.session, self.gpu, ctypes.c_size_t(len(data)), ctypes.byref(x))
        self.call("gpu_alloc", self.session, self.gpu, ctypes.c_size_t(out_bytes), ctypes.byref(y))
        self.call("gpu_write", self.session, self.gpu, x, data, ctypes.c_size_t(len(data)))
        arrays = (ctypes.c_int64 * len(sizes))(*sizes), (ctypes.c_void_p * 1)(x.value), (ctypes.c_void_p * 1)(y.value)
        args = (ctypes.c_void_p * 4)(*(ctypes.addressof(a) for a in arrays), None)
        self.call("dist_prepare", self.session, dist, args, self.stream)
        for _ in range(launches):
            self.call("dist_launch_on", self.session, dist, args, self.stream)
        self.call("stream_wait", self.session, self.gpu, self.stream)
        result = ctypes.create_string_buffer(out_bytes)
        self.call("gpu_read", self.session, self.gpu, result, y, ctypes.c_size_t(out_bytes))
        self.call("dist_check", self.session, dist)
        self.lib.ptxgen_dist_transport.restype = ctypes.c_char_p
        way = self.lib.ptxgen_dist_transport(dist).decode()
        self.lib.ptxgen_dist_destroy(dist)
        return result.raw, way


def cell(row, column):
    return (row * 7919 + column * 104729) % 1000


def work(library, number, unique, answers):
    rank = Rank(library, number, Id.from_buffer_copy(unique))
    values = [(i * 37 + number) % 11 - 5 for i in range(100003 + number)]
    total, way = rank.run(SUM, [len(values)], struct.pack(f"{len(values)}f", *values), 4, 5)
    rows = [cell(number * ROWS + r, c) for r in range(ROWS) for c in range(COLUMNS)]
    heat, heat_way = rank.run(HEAT, [ROWS, COLUMNS], struct.pack(f"{len(rows)}i", *rows), 4 * len(rows), 3)
    answers.put((number, sum(values), struct.unpack("f", total)[0], heat, {way, heat_way}))


def wrapped(value):
    return (value + 2**31) % 2**32 - 2**31


def steps():
    """All rows after the steps; a row is a list."""
    x = [[cell(r, c) for c in range(COLUMNS)] for r in range(RANKS * ROWS)]
    for _ in range(STEPS):
        x = [[wrapped(a - b + c) for a, b, c in zip(x[r - 1], x[(r + 1) % len(x)], x[r][1:] + x[r][:1])] for r in range(len(x))]
    return x


def main():
    unique = Id()
    good(nccl().ncclGetUniqueId(ctypes.byref(unique)), "ncclGetUniqueId")
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    ranks = [spawn.Process(target=work, args=(sys.argv[1], r, bytes(unique), answers)) for r in range(RANKS)]
    for rank in ranks:
        rank.start()
    try:
        got = sorted(answers.get(timeout=60) for _ in ranks)
    except queue.Empty:
        for rank in ranks:
            rank.kill()
        print("FAIL: the processes have not both answered within a minute")
        return 1
    for rank in ranks:
        rank.join()
    want_sum, want = sum(own for _, own, _, _, _ in got), steps()
    wrong = 0
    for number, _, total, heat, ways in got:
        mine = struct.pack(f"{ROWS * COLUMNS}i", *(v for row in want[number * ROWS:(number + 1) * ROWS] for v in row))
        ok = total == want_sum and heat == mine and ways == {"peers"}
        print(f"process {number}: {'ok' if ok else 'FAIL'} ({', '.join(sorted(ways))})")
        wrong += not ok
    return wrong


if __name__ == "__main__":
    sys.exit(main())
