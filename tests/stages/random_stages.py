#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_stages.py PTXGEN [--count N] [--seed S] - random programs of stages on the host executor, against Python.

A program is a graph of maps, stencils, reductions of rows, of everything, by a key and of segments, scans, selections,
maps that write or read at computed places, sums inside and rows less their results, on u32, where every order gives
the same bits, and on f32 where sums are exact; in a loop with feedback, sometimes until a condition holds.  Some maps write
types that do not hold every value, so that a map that has become part of its reader must still convert.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

import npy

MASK = (1 << 32) - 1
SHAPES = {'rows': ('m', 'n'), 'row': ('n',), 'column': ('m',), 'one': (), 'cube': ('m', 'n', 'p'), 'bins': ('8',),
          'offsets': ('9',)}


# how the value of an expression becomes an element, and what u32() makes of it
NARROW = {'u8': ('u8({})', lambda x: x & 255), 'i8': ('i8({})', lambda x: ((x & 255) ^ 128) - 128 & MASK),
          'f16': ('f16(f32({} % 60000))', lambda x: int(struct.unpack('e', struct.pack('e', x % 60000))[0])),
          'f32': ('f32({} % 60000)', lambda x: x % 60000)}


def type_of(shape, element='u32'):
    dims = SHAPES[shape]
    return f'{element}[{", ".join(dims)}]' if dims else element


class Program:
    """Arrays by name with their shape; stages as (name, text, function of the arrays and the step)."""

    def __init__(self, r):
        self.r = r
        self.shape, self.stages, self.element = {}, [], {}
        self.inputs = ['x0', 'x1', 'x2']
        for name in self.inputs:
            self.shape[name] = r.choice(['rows', 'rows', 'row', 'cube'])
        self.shape['x0'], self.shape['x2'], self.loops = 'rows', 'row', r.random() < 0.6
        for k in range(r.randint(1, 8)):
            self.add(k)
        made = [a for a in self.shape if a not in self.inputs and a not in self.element]
        if not made:
            self.total('last', 'y')
            made = ['y']
        # few leave, so that the others may become part of what reads them
        self.outputs = r.sample(made, min(len(made), r.choice([1, 2, len(made)])))
        self.fuse = r.random() < 0.95
        self.steps, self.feedback, self.until, self.every = 1, {}, None, 1
        if self.loops:
            self.loop(made)

    def of(self, *shapes):
        """An array of these shapes, often the newest: chains of maps."""
        fit = [a for a in self.shape if self.shape[a] in shapes]
        return fit[-1] if self.r.random() < 0.5 else self.r.choice(fit)

    def add(self, k):
        kind = self.r.choice(['map'] * 7 + ['narrow'] * 3 + ['total', 'per_row', 'by', 'select', 'lookup', 'segments', 'flags', 'floats', 'deep']
                             + ['stencil', 'scan', 'less', 'by', 'select', 'scatter', 'lookup', 'inner', 'segments', 'flags', 'floats',
                                'sweeps', 'deep'])
        getattr(self, kind)(f's{k}', f'y{k}')

    def __getitem__(self, a):
        """An array in an expression."""
        return f'u32({a})' if a.split('[')[0] in self.element else a

    def stage(self, name, out, shape, text, function):
        self.stages.append((name, text, out, function))
        self.shape[out] = shape

    def map(self, name, out):
        a = self.of('rows', 'row', 'cube', 'column')
        shape, step = self.shape[a], self.loops and self.r.random() < 0.3
        b = self.r.choice([x for x in self.shape if set(SHAPES[self.shape[x]]) <= set(SHAPES[shape])])
        p, q = self.r.randrange(1, 9), self.r.randrange(1, 9)
        look = lookup(self.shape[b], shape)
        # own lets, some of which other stages call the same
        let = self.r.choice(['', '', 't', f't{name}'])
        value = f'{let or f"{self[a]} * {p}"} + ({self[b]} ^ {q})' + (' + u32(step)' if step else '')
        self.stage(name, out, shape,
                   '{kind: map, ' + (f'let: {{{let}: {self[a]} * {p}}}, ' if let else '') + self.r.choice(['', '', '', '', '', 'fuse: false, '])
                   + f'outputs: {{{out}: {{type: "{type_of(shape)}", value: {value}}}}}}}',
                   lambda v, s, d: [x * p + (v[b][look(i, d)] ^ q) + s * step & MASK for i, x in enumerate(v[a])])

    def narrow(self, name, out):
        a = self.of('rows', 'row', 'cube', 'column')
        self.element[out], p = self.r.choice(list(NARROW)), self.r.randrange(1, 9)
        text, function = NARROW[self.element[out]]
        self.stage(name, out, self.shape[a],
                   f'{{kind: map, outputs: {{{out}: {{type: "{type_of(self.shape[a], self.element[out])}", '
                   f'value: {text.format(f"({self[a]} * {p})")}}}}}}}',
                   lambda v, s, d: [function(x * p & MASK) for x in v[a]])

    def stencil(self, name, out):
        a = self.of('rows')
        self.stage(name, out, 'rows',
                   f'{{kind: stencil, boundary: wrap, outputs: {{{out}: {{type: "u32[m, n]", '
                   f'value: "{self[a + "[-1, 0]"]} + 3 * {self[a + "[0, 2]"]} - {self[a]}"}}}}}}',
                   lambda v, s, d: [(v[a][(i // d[1] - 1) % d[0] * d[1] + i % d[1]]
                                     + 3 * v[a][i // d[1] * d[1] + (i % d[1] + 2) % d[1]] - v[a][i]) & MASK
                                    for i in range(d[0] * d[1])])

    def total(self, name, out):
        a, (op, f) = self.of('rows', 'row', 'cube', 'column', 'bins'), self.operator()
        self.stage(name, out, 'one',
                   f'{{kind: reduce, map: {self[a]}, operator: {op}, outputs: {{{out}: u32}}}}', lambda v, s, d: [f(v[a])])

    def per_row(self, name, out):
        a, (op, f) = self.of('rows'), self.operator()
        self.stage(name, out, 'column',
                   f'{{kind: reduce, over: n, map: {self[a]}, operator: {op}, outputs: {{{out}: "u32[m]"}}}}',
                   lambda v, s, d: [f(v[a][i * d[1]:(i + 1) * d[1]]) for i in range(d[0])])

    def less(self, name, out):
        a = self.of('rows')
        self.stage(name, out, 'rows',
                   f'{{kind: reduce, over: n, map: {self[a]}, operator: add, '
                   f'outputs: {{{out}: {{type: "u32[m, n]", value: {self[a]} * 2 - r}}}}}}',
                   lambda v, s, d: [(x * 2 - sum(v[a][i // d[1] * d[1]:(i // d[1] + 1) * d[1]])) & MASK
                                    for i, x in enumerate(v[a])])

    def scan(self, name, out):
        a = self.of('rows', 'row', 'cube')
        last = 'mnp'.index(SHAPES[self.shape[a]][-1])

        def sums(v, s, d):
            result = []
            for i, x in enumerate(v[a]):
                result.append((x + (result[-1] if i % d[last] else 0)) & MASK)
            return result
        self.stage(name, out, self.shape[a],
                   f'{{kind: scan, map: {self[a]}, operator: add, outputs: {{{out}: "{type_of(self.shape[a])}"}}}}', sums)

    def by(self, name, out):
        a, (op, f) = self.of('rows', 'row', 'cube'), self.operator()
        p, keys = self.r.randrange(1, 9), self.r.choice([3, 8, 9])  # a key of 8 counts nowhere
        self.stage(name, out, 'bins',
                   f'{{kind: reduce, by: i32({self[a]} % {keys}), map: {self[a]} * {p}, operator: {op}, outputs: {{{out}: "u32[8]"}}}}',
                   lambda v, s, d: [f([0] + [x * p & MASK for x in v[a] if x % keys == k]) for k in range(8)])

    def select(self, name, out):
        a, q = self.of('row'), self.r.randrange(3)
        # behind the values that are kept there is nothing to read
        self.stage(name, f'c{out}', 'one',
                   f'{{kind: scan, outputs: {{k{out}: {{type: "u32[n]", where: {self[a]} % 3 == {q}, value: {self[a]}}}, '
                   f'c{out}: {{type: i64, count: k{out}}}}}}}', lambda v, s, d: [sum(x % 3 == q for x in v[a])])
        self.element[f'c{out}'] = 'i64'
        self.stage(f'{name}b', out, 'one',
                   f'{{kind: reduce, map: "if index(n) < c{out} then k{out} * u32(index(n) + 1) else 0", operator: add, '
                   f'outputs: {{{out}: u32}}}}',
                   lambda v, s, d: [sum(x * (i + 1) for i, x in enumerate(x for x in v[a] if x % 3 == q)) & MASK])

    def scatter(self, name, out):
        a, (op, f), p, start = self.of('rows', 'row', 'cube'), self.operator(), self.r.randrange(1, 9), self.r.randrange(3)
        self.stage(name, out, 'bins',
                   f'{{kind: map, outputs: {{{out}: {{type: "u32[8]", at: i32({self[a]} % 8), value: {self[a]} * {p}, '
                   f'combine: {op}, initial: {start}}}}}}}',
                   lambda v, s, d: [f([start] + [x * p & MASK for x in v[a] if x % 8 == k]) for k in range(8)])

    def lookup(self, name, out):
        a = self.of('rows', 'row', 'cube')
        tables = [x for x in self.shape if self.shape[x] in ('row', 'bins') and x not in self.element]
        if not tables:
            self.scatter(name, out)
            return
        b = self.r.choice(tables)
        n = '8' if self.shape[b] == 'bins' else 'u32(n)'
        self.stage(name, out, self.shape[a],
                   f'{{kind: map, outputs: {{{out}: {{type: "{type_of(self.shape[a])}", value: "at({b}, {self[a]} % {n}) + 1"}}}}}}',
                   lambda v, s, d: [v[b][x % len(v[b])] + 1 & MASK for x in v[a]])

    def inner(self, name, out):
        a, p = self.of('rows'), self.r.randrange(1, 9)
        self.stage(name, out, 'column',
                   f'{{kind: map, outputs: {{{out}: {{type: "u32[m]", value: "sum(n, {self[a]} * {p}) + 1"}}}}}}',
                   lambda v, s, d: [sum(v[a][i * d[1]:(i + 1) * d[1]]) * p + 1 & MASK for i in range(d[0])])

    def segments(self, name, out):
        a, (op, f) = self.of('row'), self.operator()
        if 'off' not in self.inputs:
            self.inputs.append('off')
            self.shape['off'], self.element['off'] = 'offsets', 'i32'
        self.stage(name, out, 'bins',
                   f'{{kind: reduce, segments: {{offsets: off}}, map: {self[a]}, operator: {op}, outputs: {{{out}: "u32[8]"}}}}',
                   lambda v, s, d: [f([0] + v[a][v['off'][k]:v['off'][k + 1]]) for k in range(8)])

    def flags(self, name, out):
        a = self.of('row')
        self.stage(name, f'h{out}', 'row', f'{{kind: map, outputs: {{h{out}: {{type: "bool[n]", value: {self[a]} % 4 == 0}}}}}}',
                   lambda v, s, d: [x % 4 == 0 for x in v[a]])
        self.element[f'h{out}'] = 'bool'

        def sums(v, s, d):
            result = []
            for x in v[a]:
                result.append((x + (result[-1] if result and x % 4 else 0)) & MASK)
            return result
        self.stage(f'{name}b', out, 'row',
                   f'{{kind: scan, segments: {{flags: h{out}}}, map: {self[a]}, operator: add, outputs: {{{out}: "u32[n]"}}}}', sums)

    def floats(self, name, out):
        a = self.of('rows', 'row')
        rows = self.shape[a] == 'rows' and self.r.random() < 0.5
        self.element[out] = 'f32'
        self.stage(name, out, 'column' if rows else 'one',
                   f'{{kind: reduce, {"over: n, " if rows else ""}map: f32({self[a]} % 16), operator: add, '
                   f'outputs: {{{out}: "f32{"[m]" if rows else ""}"}}}}',
                   lambda v, s, d: [sum(x % 16 for x in v[a][i:i + (d[1] if rows else len(v[a]))])
                                    for i in range(0, len(v[a]) if rows else 1, d[1])])

    def sweeps(self, name, out):
        a, steps = self.of('rows'), self.r.randint(1, 3)
        if a in self.element:
            self.stencil(name, out)
            return

        def swept(v, s, d):
            u = v[a]
            for _ in range(steps):
                u = [u[i // d[1] * d[1] + (i + 1) % d[1]] + 3 * x & MASK if d[1] > 1 else 4 * x & MASK for i, x in enumerate(u)]
            return u
        self.stage(name, out, 'rows',
                   f'{{kind: stencil, boundary: wrap, iterate: {{steps: {steps}, feedback: {{{a}: {out}}}}}, '
                   f'outputs: {{{out}: {{type: "u32[m, n]", value: "{a}[0, 1] + 3 * {a}"}}}}}}', swept)

    def deep(self, name, out):
        cubes = [x for x in self.shape if self.shape[x] == 'cube']
        if not cubes:
            self.floats(name, out)
            return
        a, (op, f) = self.r.choice(cubes), self.operator()
        self.stage(name, out, 'rows',
                   f'{{kind: reduce, over: p, map: {self[a]}, operator: {op}, outputs: {{{out}: "u32[m, n]"}}}}',
                   lambda v, s, d: [f(v[a][i * d[2]:(i + 1) * d[2]]) for i in range(d[0] * d[1])])

    def operator(self):
        def xor(values):
            result = 0
            for x in values:
                result ^= x
            return result
        return self.r.choice([('add', lambda v: sum(v) & MASK), ('max', max), ('xor', xor)])

    def loop(self, made):
        self.steps = self.r.randint(1, 5)
        free = list(made)
        for name in self.inputs:
            fits = [a for a in free if self.shape[a] == self.shape[name]]
            if fits and self.r.random() < 0.8:
                self.feedback[name] = self.r.choice(fits)
                free.remove(self.feedback[name])
        scalars = [a for a in made if self.shape[a] == 'one']
        if scalars and self.r.random() < 0.7:
            self.until = self.r.choice(scalars)
            self.every = self.r.choice([1, 1, 2, 3])
            self.steps += 4 * (self.every > 1)

    def text(self):
        lines = ['inputs: {' + ', '.join(f'{a}: "{type_of(self.shape[a], self.element.get(a, "u32"))}"' for a in self.inputs) + '}', 'stages:']
        lines += [f'  {name}: {text}' for name, text, _, _ in self.stages]
        lines.append('outputs: [' + ', '.join(self.outputs) + ']')
        lines += [] if self.fuse else ['fuse: false']
        if self.loops:
            fed = ', '.join(f'{a}: {b}' for a, b in self.feedback.items())
            lines.append(f'iterate: {{steps: {self.steps}' + (f', feedback: {{{fed}}}' if fed else '')
                         + (f', until: {self.until} % 3 == 1' if self.until else '')
                         + (f', check_every: {self.every}' if self.every > 1 else '') + '}')
        return '\n'.join(lines) + '\n'

    def evaluate(self, values, dims):
        v = dict(values)
        for step in range(self.steps):
            for _, _, out, function in self.stages:
                v[out] = function(v, step, dims)
            if self.until and (step + 1) % self.every == 0 and v[self.until][0] % 3 == 1:
                break
            for name, fed in self.feedback.items():
                v['next ' + name] = v[fed]
            for name in self.feedback:
                v[name] = v.pop('next ' + name)
        return {name: v[name] for name in self.outputs}


def extent(s, dims):
    return int(s) if s.isdigit() else dims['mnp'.index(s)]


def lookup(shape, within):
    """Index of an element of `shape` at element i of `within`."""
    def index(i, dims):
        at = {}
        for s in reversed(SHAPES[within]):
            i, at[s] = divmod(i, extent(s, dims))
        result = 0
        for s in SHAPES[shape]:
            result = result * extent(s, dims) + at[s]
        return result
    return index


def check(ptxgen, device, seed):
    r = random.Random(seed)
    program, dims = Program(r), (r.choice([1, 2, 7, 33]), r.choice([1, 3, 64, 100]), r.choice([1, 2, 5]))
    values = {a: [r.randrange(1 << 32) for _ in range(size_of(program.shape[a], dims))] for a in program.inputs}
    if 'off' in values:
        values['off'] = sorted(x % (dims[1] + 1) for x in values['off'])
    sizes = {s for a in program.inputs for s in SHAPES[program.shape[a]] if not s.isdigit()}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / 'p.yaml').write_text(program.text())
        simt = f'--simt=seed:{seed % 97}' + r.choice(['', ',all', ',race,late', ',weak,stale', ',sms:2'])
        command = [ptxgen, 'run', str(folder / 'p.yaml'), '--device', device] + ([simt] if device == 'cpu' else [])
        command += r.choice([[], [], ['--verify']])
        command += [f'--size={s}={extent(s, dims)}' for s in sorted(sizes)]
        for name, elements in values.items():
            npy.write(folder / f'{name}.npy', 'i4' if name == 'off' else 'u4', [extent(s, dims) for s in SHAPES[program.shape[name]]], elements)
            command.append(f'--input={name}={folder}/{name}.npy')
        command += [f'--output={name}={folder}/{name}.out.npy' for name in program.outputs]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f'seed {seed}: {done.stderr}\n{program.text()}', 0, 0
        for name, want in program.evaluate(values, dims).items():
            if npy.read(folder / f'{name}.out.npy') != want:
                return f'seed {seed}: {name} differs\n{program.text()}', 0, 0
        shown = subprocess.run([ptxgen, str(folder / 'p.yaml'), '--emit=problem', '-o', '-'], capture_output=True, text=True,
                               check=True).stdout
    return None, sum(len(names.split()) for names in re.findall('^# with: (.*)', shown, re.M)), shown.count('\n# apart: ')


def size_of(shape, dims):
    size = 1
    for s in SHAPES[shape]:
        size *= extent(s, dims)
    return size


def main():
    p = argparse.ArgumentParser()
    p.add_argument('ptxgen')
    p.add_argument('--count', type=int, default=300)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--device', default='cpu')
    a = p.parse_args()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda k: check(a.ptxgen, a.device, a.seed + k), range(a.count)))
    bad, fused, apart = [text for text, _, _ in found if text], sum(f for _, f, _ in found), sum(n for _, _, n in found)
    for text in bad[:5]:
        print('FAIL', text)
    print(f'{a.count} programs, {fused} stages in others, {apart} apart, {len(bad)} failed')
    return 1 if bad or not (fused and apart) else 0


if __name__ == '__main__':
    sys.exit(main())
