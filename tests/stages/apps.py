#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apps.py PTXGEN SPECS [--device DEVICE] - every spec of SPECS (specs/apps) on the host executor, or on a GPU (cuda), against Python
that shares nothing with ptxgen: the algorithm in double precision, and how far f32 may be from it.
"""
import argparse
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import apps_points
import npy
from apps_points import flat, uniform

M, N = 14, 11


def grid(f):
    return [[f(i, j) for j in range(N)] for i in range(M)]


def clamped(u, i, j):
    return u[min(max(i, 0), M - 1)][min(max(j, 0), N - 1)]


def heat(given, p):
    u, moved, step = given['u'], math.inf, 0
    while step < p['steps'] and moved >= p['eps']:
        new = grid(lambda i, j: u[i][j] + 0.2 * (clamped(u, i - 1, j) + clamped(u, i + 1, j) + clamped(u, i, j - 1)
                                                 + clamped(u, i, j + 1) - 4 * u[i][j]))
        moved = max(abs(new[i][j] - u[i][j]) for i in range(M) for j in range(N))
        u, step = new, step + 1
    return {'next': flat(u), 'moved': [moved]}, step


def hotspot(given, p):
    t, power, moved, step = given['temp'], given['power'], math.inf, 0
    while step < p['steps'] and moved >= p['eps']:
        new = grid(lambda i, j: t[i][j] + p['step_div_cap'] * (
            power[i][j] + (clamped(t, i + 1, j) + clamped(t, i - 1, j) - 2 * t[i][j]) / p['ry']
            + (clamped(t, i, j + 1) + clamped(t, i, j - 1) - 2 * t[i][j]) / p['rx'] + (p['amb'] - t[i][j]) / p['rz']))
        moved = max(abs(new[i][j] - t[i][j]) for i in range(M) for j in range(N))
        t, step = new, step + 1
    return {'next': flat(t), 'moved': [moved]}, step


def srad(given, p):
    img = given['img']
    for _ in range(p['steps']):
        mean = sum(flat(img)) / (M * N)
        variance = sum(x * x for x in flat(img)) / (M * N) - mean * mean
        q0 = variance / (mean * mean)

        def sides(i, j):
            x = img[i][j]
            return [clamped(img, i - 1, j) - x, clamped(img, i + 1, j) - x, clamped(img, i, j - 1) - x,
                    clamped(img, i, j + 1) - x]

        def coefficient(i, j):
            d, x = sides(i, j), img[i][j]
            g2, lap = sum(v * v for v in d) / (x * x), sum(d) / x
            q = (0.5 * g2 - lap * lap / 16) / (1 + 0.25 * lap) ** 2
            return min(max(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0.0), 1.0)
        c = grid(coefficient)

        def update(i, j):
            n, s, w, e = sides(i, j)
            return img[i][j] + 0.25 * p['lambda'] * (c[i][j] * (n + w) + clamped(c, i + 1, j) * s + clamped(c, i, j + 1) * e)
        img = grid(update)
    return {'next': flat(img)}, p['steps']


def conjugate_gradient(given, p):
    """The solution itself, by relaxation: what conjugate gradients must come to."""
    b, x = given['r'], grid(lambda i, j: 0.0)

    def zero(u, i, j):
        return u[i][j] if 0 <= i < M and 0 <= j < N else 0.0
    for _ in range(3000):
        for i in range(M):
            for j in range(N):
                x[i][j] = (b[i][j] + zero(x, i - 1, j) + zero(x, i + 1, j) + zero(x, i, j - 1) + zero(x, i, j + 1)) / 4
    return {'x_next': flat(x)}, None


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b))


def kmeans(given, p):
    points, centres = given['x'], given['c']
    moved, step = math.inf, 0
    while step < p['steps'] and moved >= p['eps']:
        member = [min(range(len(centres)), key=lambda k: distance(x, centres[k])) for x in points]
        new = []
        for k, old in enumerate(centres):
            own = [x for x, m in zip(points, member) if m == k]
            new.append([sum(column) / len(own) for column in zip(*own)] if own else old)
        moved = max(abs(a - b) for a, b in zip(flat(new), flat(centres)))
        centres, step = new, step + 1
    return {'member': member, 'next': flat(centres)}, step


def radix_sort(given, _):
    return {'sorted': sorted(given['key'])}, 32


def components(given, _):
    """By union and find."""
    parent = list(given['label'])

    def root(i):
        while parent[i] != i:
            i = parent[i]
        return i
    for a, b in zip(given['from'], given['to']):
        a, b = root(a), root(b)
        parent[max(a, b)] = min(a, b)
    return {'next': [root(i) for i in range(len(parent))]}, None


def squash(z):
    return 1 / (1 + math.exp(-z))


def backpropagation(given, p):
    x, target, w1, w2 = given['x'], given['target'], given['w1'], given['w2']
    for _ in range(p['steps']):
        y1 = [squash(sum(x[i] * w1[i][j] for i in range(len(x)))) for j in range(len(w2))]
        y2 = [squash(sum(y1[j] * w2[j][k] for j in range(len(y1)))) for k in range(len(target))]
        d2 = [y * (1 - y) * (t - y) for y, t in zip(y2, target)]
        d1 = [y1[j] * (1 - y1[j]) * sum(d2[k] * w2[j][k] for k in range(len(d2))) for j in range(len(y1))]
        w2 = [[w + p['rate'] * y1[j] * d2[k] for k, w in enumerate(row)] for j, row in enumerate(w2)]
        w1 = [[w + p['rate'] * x[i] * d1[j] for j, w in enumerate(row)] for i, row in enumerate(w1)]
    return {'next1': flat(w1), 'next2': flat(w2), 'y2': y2}, p['steps']


def plate(i, j):
    return 100.0 if i == 0 else (i * 7 + j * 13) % 10


def edges(seed, vertices, count):
    """Both directions of each edge, among vertices of the same remainder: several components."""
    r = random.Random(seed)
    pairs = []
    for _ in range(count):
        a = r.randrange(vertices)
        b = r.randrange(a % 3, vertices, 3)
        pairs += [(a, b), (b, a)]
    return [a for a, _ in pairs], [b for _, b in pairs]


right, zero = uniform(1, M, N), grid(lambda i, j: 0.0)
sources, targets = edges(3, 60, 45)
# sizes, inputs (a list with a float is f32), params, the algorithm, and the relative error that f32 may have; 0: integers
GRID = {'m': M, 'n': N}
APPS = {
    'heat': (GRID, {'u': grid(plate)}, {'steps': 1000, 'eps': 0.01}, heat, 1e-4),
    'hotspot': (GRID, {'temp': grid(lambda i, j: 80.0), 'power': grid(lambda i, j: 0.1 * ((i + j) % 5))},
                {'step_div_cap': 0.2, 'rx': 2.0, 'ry': 3.0, 'rz': 5.0, 'amb': 80.0, 'steps': 1000, 'eps': 0.001},
                hotspot, 1e-4),
    'srad': (GRID, {'img': grid(lambda i, j: 20 + 10 * math.sin(i) + 5 * random.Random(i * N + j).random())},
             {'lambda': 0.5, 'steps': 10}, srad, 1e-4),
    'conjugate_gradient': (GRID, {'x': zero, 'r': right, 'p': right}, {'steps': 300, 'eps': 1e-10},
                           conjugate_gradient, 1e-4),
    'kmeans': ({'n': 200, 'f': 3, 'k': 5}, {'x': uniform(2, 200, 3), 'c': uniform(3, 5, 3)}, {'steps': 50, 'eps': 1e-4},
               kmeans, 1e-4),
    'radix_sort': ({'n': 700}, {'key': [random.Random(i).getrandbits(32) for i in range(700)]}, {}, radix_sort, 0),
    'components': ({'v': 60, 'e': 90}, {'label': list(range(60)), 'from': sources, 'to': targets}, {}, components, 0),
    'backpropagation': ({'n': 40, 'h': 16, 'o': 2},
                        {'x': uniform(4, 1, 40)[0], 'w1': uniform(5, 40, 16), 'w2': uniform(6, 16, 2), 'target': [0.25, 0.75]},
                        {'rate': 0.5, 'steps': 4}, backpropagation, 1e-4),
    **apps_points.APPS,
}
UNSIGNED = ('key', 'sorted')


def kind_of(name, values):
    return 'f4' if isinstance(values[0], float) else 'u4' if name in UNSIGNED else 'i4'


def run(ptxgen, spec, app, where, folder):
    sizes, given, params = app[:3]
    command = [ptxgen, 'run', str(spec), '--verify'] + where
    command += [f'--size={name}={n}' for name, n in sizes.items()]
    for name, values in given.items():
        rows = values if isinstance(values[0], list) else None
        shape, values = ((len(rows), len(rows[0])), flat(rows)) if rows else ((len(values),), values)
        values = [float(v) for v in values] if any(isinstance(v, float) for v in values) else values
        npy.write(folder / f'{name}.npy', kind_of(name, values), shape, values)
        command += ['--input', f'{name}={folder}/{name}.npy']
    return command + [f'--param={name}={value}' for name, value in params.items()]


def check(ptxgen, spec, device, folder):
    _, given, params, algorithm, bound = app = APPS[spec.stem]
    expected, steps = algorithm(given, params)
    scale = max(abs(x) for values in expected.values() for x in values)
    failed = []
    for modes in ('--simt=seed:1', '--simt=seed:5,all') if device == 'cpu' else ('',):
        command = run(ptxgen, spec, app, ['--device', device] + modes.split(), folder)
        command += [f'--output={name}={folder}/{name}.out.npy' for name in expected]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            failed.append(f'{modes}: {done.stderr or done.stdout}')
            continue
        for name, want in expected.items():
            got = npy.read(folder / f'{name}.out.npy')
            worst = max(abs(g - w) for g, w in zip(got, want))
            if len(got) != len(want) or not worst <= (bound * scale if isinstance(want[0], float) else 0):
                failed.append(f'{modes}: {name} is off by {worst} of {scale}, after {steps} steps')
    return failed


def main():
    p = argparse.ArgumentParser()
    p.add_argument('ptxgen')
    p.add_argument('specs', type=pathlib.Path)
    p.add_argument('--device', default='cpu')
    a = p.parse_args()
    specs = sorted(a.specs.glob('*.yaml'))
    bad = [f'{name}: no such spec' for name in APPS if name not in [s.stem for s in specs]]
    with tempfile.TemporaryDirectory() as folder:
        for spec in specs:
            if spec.stem not in APPS:
                bad.append(f'{spec.stem}: nothing checks it')
                continue
            bad += [f'{spec.stem}: {text}' for text in check(a.ptxgen, spec, a.device, pathlib.Path(folder))]
    for text in bad:
        print('FAIL', text)
    print(f'{len(specs)} applications, {len(bad)} failed')
    return 1 if bad or not specs else 0


if __name__ == '__main__':
    sys.exit(main())
