# SPDX-License-Identifier: Apache-2.0
"""gen_placed.py - outputs at computed places (at, combine, initial) and of some elements (where, from, count) in random specs."""
from arith import INTS, int_range, is_float
from spec import Array

OWN = ('ku', 'kv', 'kw')  # dimensions that only such outputs have


class Placed:
    """A part of SpecMaker.  self.scopes: what the values of outputs may use, by the outputs' names."""

    def places(self):
        """Some outputs per element go where they say."""
        if 'iterate' in self.spec or 'interior' in str(self.spec.get('boundary')) or '#' in str(self.dims):
            return
        if self.chance(0.3):
            self.together()
        for name, names in self.scopes.items():
            entry = self.spec['outputs'].get(name)
            if not isinstance(entry, dict) or 'where' in entry or 'at' in entry or not self.chance(0.3):
                continue
            a = Array(name, entry)
            if sorted(a.keys) == sorted(self.dims) and not any(add for _, add in a.shape):
                meets = self.chance(0.7 if isinstance(a.type, tuple) else 0.5)
                (self.meeting if meets else self.alone)(entry, a.type, names)

    def put(self, entry, t, shape, at):
        entry['at'] = at[0] if len(at) == 1 and self.chance(0.7) else at
        if isinstance(t, tuple):
            entry['shape'] = shape
        else:
            entry['type'] = f'{t}[{", ".join(shape)}]'

    def alone(self, entry, t, _):
        """Each element has a place of its own, or none."""
        shape, at = [], []
        plain = self.chance(0.25)  # only another order
        for i, d in enumerate(self.random.sample(self.dims, len(self.dims))):
            own = not plain and self.chance(0.4) and (len(self.dims) <= len(OWN) or i < 1)
            shape.append(OWN[i] if own else d)
            at.append(f'index({d})' if plain else self.random.choice([f'index({d}) - 2', f'2 * index({d}) + 1', f'index({d})'] if own else
                                         [f'index({d})', f'{d} - 1 - index({d})', f'index({d}) + 1']))
        self.put(entry, t, shape, at)
        if not isinstance(t, tuple) and self.chance(0.3):
            entry['initial'] = 'false' if t == 'bool' else '1'

    def together(self):
        """All outputs of a map meet at the same places, which are few: such a map has tables of bins."""
        entries = {n: e for n, e in self.spec['outputs'].items() if n in self.scopes}
        if len(entries) < len(self.spec['outputs']) or 'reductions' in self.spec or self.spec['kind'] not in ('map', 'stencil'):
            return
        arrays = [Array(n, e) for n, e in entries.items()]
        if any(any(add for _, add in a.shape) for a in arrays):
            return
        names = next(iter(self.scopes.values()))
        shape, at = self.few(names)
        for entry, a in zip(entries.values(), arrays):
            if isinstance(entry, dict):
                self.meeting(entry, a.type, names, shape, at)

    def few(self, names):
        r = self.random
        rank = r.choice([1, 1, 2])
        at = [f'({self.make.expression(r.choice(list(INTS)), names, 2)}) & {r.choice([3, 15, 127])}' for _ in range(rank)]
        if self.spec['kind'] == 'reduce':  # a segment's elements that all write the same to one place are refused
            over = self.spec.get('over', self.dims)
            at[0] = f'i64({at[0]}) ^ (index({over if isinstance(over, str) else over[0]}) & 1)'
        return list(OWN[:rank]), at

    def joined(self, t):
        """How a field meets that of another element, in any order, and what changes nothing."""
        each = [('max(a.{0}, b.{0})', '-inf'), ('min(b.{0}, a.{0})', 'inf')] if is_float(t) else \
            [('a.{0} or b.{0}', 'false'), ('a.{0} ^ b.{0}', 'false')] if t == 'bool' else \
            [('a.{0} + b.{0}', '0'), ('b.{0} | a.{0}', '0'), ('a.{0} ^ b.{0}', '0'), ('min(a.{0}, b.{0})', str(int_range(t)[1]))]
        return self.random.choice(each)

    def meeting(self, entry, t, names, shape=None, at=None):
        """Elements meet by operators whose result does not depend on the order."""
        r = self.random
        if shape is None:
            shape, at = self.few(names)
        self.put(entry, t, list(shape), list(at))
        if isinstance(t, tuple):
            each = {f: self.joined(ft) for f, ft in t}
            entry['combine'] = {'state': dict(t), 'combine': {f: text.format(f) for f, (text, _) in each.items()}}
            if self.chance(0.7):
                entry['combine']['identity'] = {f: none for f, (_, none) in each.items()}
            entry['initial'] = {f: 'false' if ft == 'bool' else r.choice('013') for f, ft in t}
            return
        entry['combine'] = r.choice(['min', 'max'] if is_float(t) else ['and', 'or', 'xor'] if t == 'bool' else
                                    ['add', 'mul', 'min', 'max', 'and', 'or', 'xor'])
        entry['initial'] = r.choice(['true', 'false'] if t == 'bool' else ['0', '1', '3'])


class Kept:
    """A part of SpecMaker.  Where `results` is set, conditions use results, also those of reductions, and such a spec becomes one of
    two stages."""

    def kept(self, found, names, rest, segments):
        """Outputs of some elements, and how many they are."""
        r, here, at = self.random, names.copy(), names.copy()
        scan, given = self.spec['kind'] == 'scan', self.spec.get('segments', {})
        for n, one in found.items():
            here.add(n or ('s' if scan else 'r'), one.state)
        for scope in (here, at) if scan and not {'flags', 'offsets'} & {*given} else ():
            scope.add('last', 'bool')
        at = here if self.results else at
        where = self.make.expression('bool', at, 2)
        for i in range(r.choice([1, 1, 2, 3])):
            self.value_output(f'kept{i}', here, list(self.dims))
            entry = self.spec['outputs'][f'kept{i}']
            entry['where'] = where if self.chance(0.6) else self.make.expression('bool', at, 2)
            if self.chance(0.3):
                entry['from'] = r.choice(['end', 'end', 'start'])
        if self.chance(0.6):
            shape = [] if segments and segments != 'starts' else self.shuffled(rest)
            self.spec['outputs']['count'] = {'type': self.typed(r.choice(['i64', 'i32']), shape), 'count': 'kept0'}
