# SPDX-License-Identifier: Apache-2.0
"""The examples in Triton.  A selection needs blocks that wait for each other, which Triton has no word for."""
import torch
import triton
import triton.language as tl

@triton.jit
def square(x, y, n, BLOCK: tl.constexpr):  # for calls.py
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n)
    tl.store(y + at, value * value + 1, at < n)

@triton.jit
def block_sums(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at, at < n, 0.0), 0))

def total(x):
    while x.numel() > 1:
        out = x.new_empty(triton.cdiv(x.numel(), 8192))
        block_sums[(len(out),)](x, out, x.numel(), BLOCK=8192, num_warps=8)
        x = out
    return x[0]

@triton.jit
def join(best, left, right, total, best2, left2, right2, total2):
    return (tl.maximum(tl.maximum(best, best2), right + left2), tl.maximum(left, total + left2),
            tl.maximum(right2, right + total2), total + total2)

@triton.jit
def block_segments(x, out, n, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if FIRST:
        total = tl.load(x + at, at < n, 0)
        best = tl.maximum(total, 0)
        left = best
        right = best
    else:
        best = tl.load(x + at, at < n, 0)
        left = tl.load(x + n + at, at < n, 0)
        right = tl.load(x + 2 * n + at, at < n, 0)
        total = tl.load(x + 3 * n + at, at < n, 0)
    best, left, right, total = tl.associative_scan((best, left, right, total), 0, join)
    last = tl.arange(0, BLOCK) == BLOCK - 1
    blocks = tl.num_programs(0)
    to = out + tl.program_id(0)
    tl.store(to, tl.sum(tl.where(last, best, 0), 0))
    tl.store(to + blocks, tl.sum(tl.where(last, left, 0), 0))
    tl.store(to + 2 * blocks, tl.sum(tl.where(last, right, 0), 0))
    tl.store(to + 3 * blocks, tl.sum(tl.where(last, total, 0), 0))

def max_segment_sum(x):
    n, first = x.numel(), True
    while first or n > 1:
        blocks = triton.cdiv(n, 2048)
        out = x.new_empty((4, blocks))
        block_segments[(blocks,)](x, out, n, FIRST=first, BLOCK=2048)
        x, n, first = out, blocks, False
    return x[0, 0]

@triton.jit
def row_sums(x, rows, out, BLOCK: tl.constexpr):
    begin = tl.load(rows + tl.program_id(0))
    end = tl.load(rows + tl.program_id(0) + 1)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(begin, end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(x + at, at < end, 0.0)
    tl.store(out + tl.program_id(0), tl.sum(sums, 0))

def ragged_sums(x, rows):
    out = x.new_empty(len(rows) - 1)
    row_sums[(len(out),)](x, rows, out, BLOCK=1024)
    return out

@triton.jit
def column_sums(x, sums, columns, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    so_far = tl.zeros((COLUMNS,), tl.float32)
    for start in range(0, m, ROWS):
        row = start + tl.arange(0, ROWS)
        at = row[:, None] * n + column[None, :]
        inside = (row[:, None] < m) & (column[None, :] < n)
        block = tl.load(x + at, inside, 0.0)
        tl.store(sums + at, tl.cumsum(block, 0) + so_far[None, :], inside)
        so_far += tl.sum(block, 0)
    tl.store(columns + column, so_far, column < n)

def cumulative_sum(x):
    m, n = x.shape
    sums, columns = torch.empty_like(x), x.new_empty(n)
    column_sums[(triton.cdiv(n, 32),)](x, sums, columns, m, n, ROWS=64, COLUMNS=32)
    return sums, columns

@triton.jit
def softmax_row(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    value = tl.load(x + row + at, at < n, -float("inf"))
    e = tl.exp(value - tl.max(value, 0))
    tl.store(y + row + at, e / tl.sum(e, 0), at < n)

def softmax(x):
    y = torch.empty_like(x)
    softmax_row[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
    return y

@triton.jit
def jacobi_step(u, new, m, n, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = u + row * n + column
    inside = (row > 0) & (row < m - 1) & (column > 0) & (column < n - 1)
    around = tl.load(at - n, inside, 0.0) + tl.load(at + n, inside, 0.0) + tl.load(at - 1, inside, 0.0) + tl.load(at + 1, inside, 0.0)
    tl.store(new + row * n + column, tl.where(inside, 0.25 * around, tl.load(at, column < n, 0.0)), column < n)

def jacobi(u, steps):
    m, n = u.shape
    new, spare = torch.empty_like(u), torch.empty_like(u)
    for _ in range(steps):
        jacobi_step[(triton.cdiv(n, 1024), m)](u, new, m, n, BLOCK=1024)
        u, new, spare = new, spare, new
    return u

@triton.jit
def block_counts(x, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    byte = tl.load(x + at, at < n, 0).to(tl.int32)
    bins = tl.arange(0, 256)
    outside = tl.sum((at >= n).to(tl.int32), 0)  # counted as zeros
    tl.atomic_add(counts + bins, tl.histogram(byte, 256) - tl.where(bins == 0, outside, 0))

def histogram(x):
    counts = torch.zeros(256, dtype=torch.int32, device=x.device)
    block_counts[(triton.cdiv(len(x), 8192),)](x, counts, len(x), BLOCK=8192)
    return counts

@triton.jit
def later(value, flag, value2, flag2):
    return tl.where(flag2 > 0, value2, tl.maximum(value, value2)), flag | flag2

@triton.jit
def block_ends(x, flags, values, begun, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    flag = tl.load(flags + at, at < n, 0).to(tl.int32)
    value, flag = tl.associative_scan((tl.load(x + at, at < n, -float("inf")), flag), 0, later)
    last = tl.arange(0, BLOCK) == BLOCK - 1
    tl.store(values + tl.program_id(0), tl.sum(tl.where(last, value, 0.0), 0))
    tl.store(begun + tl.program_id(0), tl.sum(tl.where(last, flag, 0), 0).to(tl.uint8))

@triton.jit
def finish(x, flags, before, out, n, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    flag = tl.load(flags + at, at < n, 0).to(tl.int32)
    value, flag = tl.associative_scan((tl.load(x + at, at < n, -float("inf")), flag), 0, later)
    known = tl.load(before + block - 1, block > 0, -float("inf"))
    tl.store(out + at, tl.where(flag > 0, value, tl.maximum(value, known)), at < n)

def scanned(x, flags):
    n, blocks = len(x), triton.cdiv(len(x), 2048)
    out, values, begun = torch.empty_like(x), x.new_empty(blocks), flags.new_empty(blocks)
    block_ends[(blocks,)](x, flags, values, begun, n, BLOCK=2048)
    finish[(blocks,)](x, flags, scanned(values, begun) if blocks > 1 else values, out, n, BLOCK=2048)
    return out

def running_maximum(x, begins):
    return scanned(x, begins.view(torch.uint8))

@triton.jit
def block_ranges(x, low, high, sums, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n, 0.0)
    tl.store(low + tl.program_id(0), tl.min(tl.where(at < n, value, float("inf")), 0))
    tl.store(high + tl.program_id(0), tl.max(tl.where(at < n, value, -float("inf")), 0))
    tl.store(sums + tl.program_id(0), tl.sum(value, 0))

def range_and_mean(x):
    low, high, sums = (x.new_empty(triton.cdiv(len(x), 8192)) for _ in range(3))
    block_ranges[(len(low),)](x, low, high, sums, len(x), BLOCK=8192, num_warps=8)
    return high.max() - low.min(), sums.sum() / len(x)
