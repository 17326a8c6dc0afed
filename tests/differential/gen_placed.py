# SPDX-License-Identifier: Apache-2.0
"""gen_placed.py - outputs at computed places (at, combine, initial) in random specs of all kinds."""
from arith import INTS, is_float
from spec import Array

OWN = ('ku', 'kv', 'kw')  # dimensions that only such outputs have


class Placed:
    """A part of SpecMaker.  self.scopes: what the values of outputs may use, by the outputs' names."""

    def places(self):
        """Some outputs per element go where they say."""
        if 'iterate' in self.spec or 'interior' in str(self.spec.get('boundary')) or '#' in str(self.dims):
            return
        for name, names in self.scopes.items():
            entry = self.spec['outputs'].get(name)
            if not isinstance(entry, dict) or 'where' in entry or not self.chance(0.3):
                continue
            a = Array(name, entry)
            if sorted(a.keys) == sorted(self.dims) and not any(add for _, add in a.shape):
                meets = not isinstance(a.type, tuple) and self.chance(0.5)
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
        for i, d in enumerate(self.random.sample(self.dims, len(self.dims))):
            own = self.chance(0.4) and (len(self.dims) <= len(OWN) or i < 1)
            shape.append(OWN[i] if own else d)
            at.append(self.random.choice([f'index({d}) - 2', f'2 * index({d}) + 1', f'index({d})'] if own else
                                         [f'index({d})', f'{d} - 1 - index({d})', f'index({d}) + 1']))
        self.put(entry, t, shape, at)
        if not isinstance(t, tuple) and self.chance(0.3):
            entry['initial'] = 'false' if t == 'bool' else '1'

    def meeting(self, entry, t, names):
        """Elements meet by operators whose result does not depend on the order."""
        r = self.random
        rank = r.choice([1, 1, 2])
        at = [f'({self.make.expression(r.choice(list(INTS)), names, 2)}) & {r.choice([3, 15, 127])}' for _ in range(rank)]
        self.put(entry, t, list(OWN[:rank]), at)
        entry['combine'] = r.choice(['min', 'max'] if is_float(t) else ['and', 'or', 'xor'] if t == 'bool' else
                                    ['add', 'mul', 'min', 'max', 'and', 'or', 'xor'])
        entry['initial'] = r.choice(['true', 'false'] if t == 'bool' else ['0', '1', '3'])
