# SPDX-License-Identifier: Apache-2.0
"""boundary.py - inputs read at the points of a place, neighbours too, and what lies beyond the edge."""
import itertools

from arith import CONVERT, UNKNOWN

OUTSIDE, NOWHERE = -(1 << 60), -(1 << 80)


def clamp(c, n):
    return min(max(c, 0), n - 1)


def wrap(c, n):
    return c % n


def reflect(c, n):
    c %= 2 * n
    return c if c < n else 2 * n - 1 - c


def mirror(c, n):
    if n == 1:
        return 0
    c %= 2 * n - 2
    return c if c < n else 2 * n - 2 - c


MODES = {'clamp': clamp, 'wrap': wrap, 'reflect': reflect, 'mirror': mirror}


def unknown(t):
    return tuple(UNKNOWN for _ in t) if isinstance(t, tuple) else UNKNOWN


def clamped(modes):
    return ['clamp' if m == 'interior' else m for m in modes]


class Reader:
    def __init__(self, run):
        self.run, self.cache, self.skipped = run, {}, set()

    def modes(self, name):
        """The mode of each dimension of an input."""
        keys = self.run.arrays[name].keys
        whole = self.run.spec.get('boundary', 'clamp')
        if isinstance(whole, dict) and list(whole) != ['constant']:
            whole = whole.get(name, 'clamp')
        if isinstance(whole, dict) and list(whole) != ['constant']:
            return [whole.get(k, 'clamp') for k in keys]
        return [whole] * len(keys)

    def constant(self, modes, t):
        from place import constant
        literal = next(m['constant'] for m in modes if isinstance(m, dict))
        if not isinstance(t, tuple):
            return constant(literal, t)
        each = literal if isinstance(literal, dict) else {f: literal for f, _ in t}
        return tuple(constant(each[f], ft) for f, ft in t)

    def along(self, c, n, mode):
        """The coordinate that is read, OUTSIDE for a constant, NOWHERE for interior."""
        if 0 <= c < n:
            return c
        if isinstance(mode, dict):
            return OUTSIDE
        return NOWHERE if mode == 'interior' else MODES[mode](c, n)

    def contributions(self, array, modes, dims, offsets):
        extents, strides, inner = array.extents(self.run.sizes), {}, 1
        for key, extent in reversed(list(zip(array.keys, extents))):
            strides[key], inner = inner, inner * extent
        tables = []
        for d in dims:
            if d not in strides:
                tables.append([0] * self.run.extent[d])
                continue
            k = array.keys.index(d)
            row = [self.along(c + offsets[k], extents[k], modes[k]) for c in range(extents[k])]
            tables.append([r * strides[d] if r >= 0 else r for r in row])
        return tables

    def flat(self, array, modes, dims, offsets):
        return list(map(sum, itertools.product(*self.contributions(array, modes, dims, offsets))))

    def placed(self, name, places):
        """Values at computed places, with interior those of clamp; nothing is known where a place is not."""
        array, data, modes = self.run.arrays[name], self.run.data[name], clamped(self.modes(name))
        extents = array.extents(self.run.sizes)
        beyond = self.constant(modes, array.type) if any(isinstance(m, dict) for m in modes) else None
        values = []
        for place in places:
            if not all(isinstance(c, int) for c in place):
                values.append(unknown(array.type))
                continue
            flat, outside = 0, False
            for c, n, mode in zip(place, extents, modes):
                at = self.along(CONVERT['i64'](c), n, mode)
                outside |= at < 0
                flat = flat * n + at
            values.append(beyond if outside else data[flat])
        return values

    def read(self, name, dims, offsets=None, counts=True):
        """Values at all points, with interior those of clamp; `counts`: points whose neighbours are NOWHERE are noted in
        `skipped`."""
        array, data = self.run.arrays[name], self.run.data[name]
        offsets = offsets or (0,) * len(array.keys)
        modes = self.modes(name)
        key = (name, tuple(dims), offsets)
        if key not in self.cache:
            self.cache[key] = [self.flat(array, how, dims, offsets) for how in (modes, clamped(modes))]
        nowhere, flat = self.cache[key]
        if counts:
            self.skipped.update(i for i, j in enumerate(nowhere) if j < NOWHERE // 2)
        if min(flat, default=0) >= 0:
            return [data[j] for j in flat]
        beyond = self.constant(modes, array.type) if any(isinstance(m, dict) for m in modes) else data[0]
        return [data[j] if j >= 0 else beyond for j in flat]
