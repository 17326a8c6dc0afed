# SPDX-License-Identifier: Apache-2.0
"""gen_data.py - random sizes and elements, awkward ones preferred."""
import math

from arith import FLOATS, INF, NAN, ROUND, int_range, is_float, largest, least

EDGES = [0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257]
LARGER = [511, 513, 1000, 1023, 1024, 1025]
SMALL = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33]


def size_one(r, most):
    kind = r.random()
    if kind < 0.55:
        n = r.choice(EDGES)
    elif kind < 0.8:
        n = r.choice(LARGER)
    elif kind < 0.93 or most < 5000:
        n = r.randrange(1, 1500)
    else:
        n = r.randrange(5000, most)
    return min(n, most)


def sizes_of(r, names, most):
    """Sizes whose product is at most about `most`."""
    if len(names) == 1:
        return {names[0]: size_one(r, most)}
    result, left = {}, min(most, r.choice([300, 2000, 6000, 6000, 15000]))
    order = list(names)
    r.shuffle(order)
    for i, name in enumerate(order):
        pool = EDGES + LARGER if i == 0 and r.random() < 0.5 else SMALL
        fitting = [n for n in pool if n <= left] or [1]
        n = r.choice(fitting)
        if n == 0 and r.random() < 0.7:
            n = r.choice(fitting)
        result[name] = n
        left = max(1, left // max(1, n))
    return {n: result[n] for n in names}


PROFILES = ['small', 'unit', 'wild', 'full']


def value(r, t, profile):
    if t == 'bool':
        return r.random() < (0.5 if profile != 'small' else 0.1)
    return float_value(r, t, profile) if is_float(t) else int_value(r, t, profile)


def int_value(r, t, profile):
    lo, hi = int_range(t)
    if profile in ('small', 'unit'):
        return r.randrange(max(lo, -8), 9)
    if profile == 'wild' and r.random() < 0.3:
        return r.choice([lo, hi, lo + 1, hi - 1, 0, 1, hi // 2, -1 if lo else 2])
    return r.randrange(lo, hi + 1)


def float_value(r, t, profile):
    if profile == 'small':
        return float(r.randrange(-8, 9)) + 0.0
    if profile == 'unit':
        return ROUND[t](r.uniform(-1, 1))
    if profile == 'wild' and r.random() < 0.2:
        extremes = [INF, -INF, NAN, -0.0, 0.0, least(t), -least(t), largest(t), -largest(t),
                    math.ldexp(1.5, FLOATS[t][1] - 3)]
        return r.choice(extremes)
    return ROUND[t](r.uniform(-1, 1) * 2.0 ** r.randrange(-6, 7))


def element(r, t, profile):
    return tuple(value(r, ft, profile) for _, ft in t) if isinstance(t, tuple) else value(r, t, profile)


def elements(r, t, count, profile):
    if count > 3000:  # a long array repeats, from places that do not line up
        pool = [element(r, t, profile) for _ in range(1009)]
        return (pool * (count // 1009 + 1))[:count]
    return [element(r, t, profile) for _ in range(count)]


def offsets(r, count, n):
    """Ascending, from at least 0 to at most n, with empty and long segments."""
    if count == 0:
        return []
    kind = r.random()
    if kind < 0.3:
        cuts = [r.choice([0, n, r.randrange(n + 1)]) for _ in range(count)]
    else:
        cuts = [r.randrange(n + 1) for _ in range(count)]
    cuts.sort()
    if r.random() < 0.6:
        cuts[0] = 0
        cuts[-1] = n if count > 1 else cuts[-1]
    return cuts
