#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apps_points.py - the applications of apps.py that are about points and keys: algorithms, inputs, and APPS."""
import bisect
import math
import random


def flat(rows):
    return [x for row in rows for x in row]


def uniform(seed, rows, columns, low=-1.0, high=1.0, of=4096):
    """Multiples of 1/of, which f32 has, so that both sides begin alike."""
    r = random.Random(seed)
    return [[round(r.uniform(low, high) * of) / of for _ in range(columns)] for _ in range(rows)]


def nbody(given, p):
    mass, at, speed = given['mass'], list(zip(*(given[c] for c in 'xyz'))), list(zip(*(given[c] for c in 'uvw')))
    for _ in range(p['steps']):
        def force(i):
            pull = [0.0, 0.0, 0.0]
            for m, other in zip(mass, at):
                d = [b - a for a, b in zip(at[i], other)]
                far = math.sqrt(sum(x * x for x in d) + p['soft'])
                pull = [f + m * x / far ** 3 for f, x in zip(pull, d)]
            return pull
        speed = [[s + p['dt'] * f for s, f in zip(speed[i], force(i))] for i in range(len(mass))]
        at = [[x + p['dt'] * s for x, s in zip(point, own)] for point, own in zip(at, speed)]
    return {f'{name}_next': list(values) for name, values in zip('xyzuvw', [*zip(*at), *zip(*speed)])}, p['steps']


def mri_q(given, _):
    samples = list(zip(*(given[name] for name in ('re', 'im', 'kx', 'ky', 'kz'))))
    q = [sum((re * re + im * im) * complex(math.cos(a), math.sin(a)) for re, im, kx, ky, kz in samples
             for a in [2 * math.pi * (kx * x + ky * y + kz * z)]) for x, y, z in zip(given['x'], given['y'], given['z'])]
    return {'qr': [v.real for v in q], 'qi': [v.imag for v in q]}, 1


def nearest4(given, _):
    best = [sorted((sum((a - b) ** 2 for a, b in zip(q, x)), i) for i, x in enumerate(given['p']))[:4] for q in given['q']]
    return {**{f'n{k}': [row[k][1] for row in best] for k in range(4)}, 'distance': [math.sqrt(row[3][0]) for row in best]}, 1


def tpacf(given, _):
    sets = [list(zip(*row)) for row in zip(given['x'], given['y'], given['z'])]
    angles = [math.acos(c) for c in given['edge']]

    def bin_of(a, b):
        return bisect.bisect_left(angles, math.acos(max(-1.0, min(1.0, sum(x * y for x, y in zip(a, b))))))
    dd, rr, dr = [0] * 32, [0] * 32, [0] * 32
    for number, points in enumerate(sets):
        for i, a in enumerate(points):
            for b in points[i + 1:]:
                (rr if number else dd)[bin_of(a, b)] += 1
            for b in sets[0] if number else ():
                dr[bin_of(a, b)] += 1
    m, r = len(sets[0]), len(sets) - 1
    pairs = m * (m - 1) / 2
    w = [((d / pairs) - 2 * x / (r * m * m) + y / (r * pairs)) / (y / (r * pairs)) if y else 0.0 for d, x, y in zip(dd, dr, rr)]
    return {'pairs': flat(zip(dd, rr)), 'mixed': dr, 'w': w}, 1


def options(given, p):
    """The triangle alone, from its long side to its tip."""
    price = []
    for spot, strike, rate, vol, years in zip(*(given[name] for name in ('spot', 'strike', 'rate', 'vol', 'years'))):
        dt = years / p['steps']
        up, drift = math.exp(vol * math.sqrt(3 * dt)), (rate - vol * vol / 2) * math.sqrt(dt / (12 * vol * vol))
        value = [max(strike - spot * up ** k, 0) for k in range(-p['steps'], p['steps'] + 1)]
        for step in range(p['steps'] - 1, -1, -1):
            value = [max(strike - spot * up ** (i - step), math.exp(-rate * dt) * (
                (1 / 6 - drift) * value[i] + 2 / 3 * value[i + 1] + (1 / 6 + drift) * value[i + 2])) for i in range(2 * step + 1)]
        price += value
    return {'price': price}, p['steps']


def kd_tree(given, p):
    x, levels = given['x'], p['steps'] // 24
    medians = [0.0] * (2 ** levels - 1)

    def build(points, level, node):
        if level == levels:
            return points
        axis, half = level % len(x[0]), len(points) // 2
        points = sorted(points, key=lambda i: x[i][axis])
        medians[node] = (x[points[half - 1]][axis] + x[points[half]][axis]) / 2
        return build(points[:half], level + 1, 2 * node + 1) + build(points[half:], level + 1, 2 * node + 2)
    return {'next': build(given['order'], 0, 0), 'medians': medians}, p['steps']


def sorted_stretch(given, _):
    longest = []
    for row in given['x']:
        best = length = 1
        for a, b in zip(row, row[1:]):
            length = length + 1 if a <= b else 1
            best = max(best, length)
        longest.append(best)
    return {'longest': longest}, 1


def radix_sort_rows(given, _):
    return {'sorted': flat(map(sorted, given['key']))}, 16


def radix_sort8(given, _):
    return {'sorted': sorted(flat(given['key']))}, 4


def radix_sort4(given, _):
    return {'sorted': sorted(flat(given['key']))}, 8


def directions(seed, sets, m):
    """x, y and z of points of the unit sphere; those of set 0 are near each other."""
    r = random.Random(seed)
    out = ([], [], [])
    for number in range(sets):
        points = [[r.gauss(0 if number else 2, 1) for _ in 'xyz'] for _ in range(m)]
        for axis in range(3):
            out[axis].append([point[axis] / math.hypot(*point) for point in points])
    return dict(zip('xyz', out))


def keys(seed, rows, columns, bits=32):
    r = random.Random(seed)
    return [[r.getrandbits(bits) << 32 - bits for _ in range(columns)] for _ in range(rows)]


def columns_of(seed, n, names, low=-1.0, high=1.0):
    return dict(zip(names, uniform(seed, len(names), n, low, high)))


STRETCHES = [list(range(100))] + [[random.Random(i).randrange(5) for i in range(row, row + 100)] for row in range(5)]
APPS = {
    'nbody': ({'j': 24, 'n': 24}, {'mass': uniform(7, 1, 24, 0.5, 2.0)[0], **columns_of(8, 24, 'xyzuvw')},
              {'dt': 0.01, 'soft': 0.01, 'steps': 5}, nbody, 1e-4),
    'mri_q': ({'k': 50, 'n': 40}, {**columns_of(9, 50, ('re', 'im', 'kx', 'ky', 'kz')), **columns_of(10, 40, 'xyz')}, {}, mri_q, 1e-5),
    # eighths: many distances are equal
    'nearest4': ({'m': 30, 'n': 150, 'f': 2}, {'q': uniform(11, 30, 2, of=8), 'p': uniform(12, 150, 2, of=8)}, {}, nearest4, 1e-6),
    'tpacf': ({'s': 4, 'm': 30, 'p': 30, 'k': 32},
              {**directions(13, 4, 30), 'edge': [math.cos(math.pi * (i + 1) / 32) for i in range(31)]}, {}, tpacf, 1e-8),
    'options': ({'o': 9, 'n': 41},
                {**columns_of(14, 9, ('spot', 'strike'), 80, 120), 'rate': [0.01 * i for i in range(9)],
                 **columns_of(15, 9, ('vol', 'years'), 0.25, 1), 'node': [float(i - 20) for i in range(41)]}, {'steps': 20}, options, 1e-5),
    'kd_tree': ({'n': 96, 'd': 3, 'q': 31},
                {'x': uniform(16, 96, 3, 0, 0.99), 'order': list(range(96)), 'median': [0.0] * 31}, {'steps': 5 * 24}, kd_tree, 1e-8),
    'sorted_stretch': ({'m': 6, 'n': 100}, {'x': STRETCHES}, {}, sorted_stretch, 0),
    'radix_sort_rows': ({'m': 5, 'n': 130}, {'key': keys(17, 5, 130)}, {}, radix_sort_rows, 0),
    'radix_sort4': ({'b': 5, 't': 90, 'd': 16}, {'key': keys(19, 5, 90), 'value': list(range(16))}, {}, radix_sort4, 0),
    # twelve bits, so that keys and digits are equal
    'radix_sort8': ({'b': 6, 't': 40, 'd': 256}, {'key': keys(18, 6, 40, 12)}, {}, radix_sort8, 0),
}
