# SPDX-License-Identifier: Apache-2.0
"""gen_parts.py - inputs, names, lets, boundaries and outputs of random specs."""
from arith import INTS
from gen_expr import Expressions, Names, is_literal
from gen_operators import COMMON, Operators
from spec import Array, joined, named, spelled

DIMS = ['n', 'm', 'l']
DEEP = ['n', 'm', 'l', 'd', 'g', 'h']  # more dimensions than kernels know: neighbours that are treated alike
INPUTS = ['x', 'y', 'z', 'w', 'u', 'v', 'weight', 'off_axis', 'no', 'q1']
BOUNDARIES = ['clamp', 'wrap', 'reflect', 'mirror', 'constant']


class Parts:
    """What specs of all kinds are made of."""

    def __init__(self, random):
        self.random = random
        self.make = Expressions(random)
        self.operators = Operators(random, self.make)
        self.small = self.zeros_alike = False
        self.skip, self.tables, self.table, self.rows, self.columns = set(), set(), None, None, None

    def chance(self, p):
        return self.random.random() < p

    # ---- inputs, params, lets ------------------------------------------------------------------
    def begin(self, kind, rank=None):
        r = self.random
        self.spec = {'kind': kind, 'inputs': {}, 'outputs': {}}
        if self.chance(0.1):
            self.spec = {'name': 'probe', 'doc': "a spec: 'made' at random", 'ptxgen': 1, **self.spec}
        flat = rank is not None
        rank = rank or r.choices([1, 2, 3], [60, 28, 12])[0]
        self.dims = r.sample(DIMS, rank) if self.chance(0.5) else DIMS[:rank]
        self.groups, self.apart = [[d] for d in self.dims], False
        if not flat and self.chance(0.15):
            self.deepen(rank)
        elif self.chance(0.06) and kind != 'scan' and rank < 3 and not flat:
            self.dims.insert(r.randrange(rank + 1), f'{r.choice([1, 2, 3, 4, 7])}#0')
            self.groups = [[d] for d in self.dims]
        count = 1 + min(int(r.expovariate(0.9)), 5)
        if self.chance(0.02):
            count = r.randrange(8, 30)
        shapes = [list(self.dims)] + [self.shape() for _ in range(count - 1)]
        if len(self.dims) > 1 and self.chance(0.06):
            shapes = [list(g) for g in self.groups]  # no input has all dimensions
        if self.chance(0.3):
            r.shuffle(shapes)
        for i, shape in enumerate(shapes):
            name = INPUTS[i] if i < len(INPUTS) else f'in{i}'
            self.spec['inputs'][name] = self.input_entry(shape)
        self.near = 0.3 if self.chance(0.15) else 0.0
        self.params()

    def deepen(self, rank):
        """Four to six dimensions in `rank` groups of neighbours that every array has together, or not at all; or apart."""
        r, count = self.random, self.random.randrange(4, 7)
        names = r.sample(DEEP[:count], count) if self.chance(0.5) else DEEP[:count]
        cuts = [0, *sorted(r.sample(range(1, count), rank - 1)), count]
        self.apart = self.chance(0.35)
        self.groups = [[d] for d in names] if self.apart else [names[a:b] for a, b in zip(cuts, cuts[1:])]
        self.dims = list(names)

    def shape(self):
        r, kind = self.random, self.random.random()
        if kind < 0.5:
            return list(self.dims)
        if kind < 0.6:
            return sum(r.sample(self.groups, len(self.groups)), [])
        return sum(r.sample(self.groups, r.randrange(0, len(self.groups) + 1)), [])

    def lone(self, dim):
        """Is the dimension in no group with others?"""
        return all(len(g) == 1 or dim not in g for g in self.groups)

    def array_type(self, shape):
        r = self.random
        return f'{r.choice(COMMON)}[{joined(shape)}]'

    def input_entry(self, shape):
        r = self.random
        if not self.chance(0.1):
            return self.array_type(shape)
        names = r.sample(['re', 'im', 'a1', 'b1', 'key'], r.randrange(1, 4))
        return {'type': {f: r.choice(COMMON) for f in names}, 'shape': spelled(shape)}

    def params(self):
        r = self.random
        for i in range(r.choice([0, 0, 0, 1, 2])):
            t = r.choice([t for t in COMMON if t != 'bool'] + ['bool'])
            entry = t
            if self.chance(0.5):
                entry = {'type': t, 'value': 'true' if t == 'bool' else r.choice(['0', '1', '3', '100'])}
            self.spec.setdefault('params', {})[f'p{i}'] = entry

    def param_types(self):
        return {n: e['type'] if isinstance(e, dict) else e for n, e in self.spec.get('params', {}).items()}

    def uniform(self):
        """Params and sizes."""
        names = Names()
        for n, t in self.param_types().items():
            names.add(n, t)
        for d in named(self.dims):
            names.add(d, 'i64')
        return names

    def arrays(self):
        return {n: Array(n, e) for n, e in self.spec['inputs'].items()}

    def at_elements(self, skip=(), neighbours=0.0, far=2):
        """Names of a map or a value per element."""
        names, r = self.uniform(), self.random
        names.near, names.dims = self.near, named(self.dims)
        for name, a in self.arrays().items():
            if name in skip:
                continue
            names.add(name, a.type)
            for _ in range(3 if a.shape and self.chance(neighbours) else 0):
                offsets = ', '.join(str(r.randrange(-far, far + 1)) if self.lone(k) else '0' for k in a.keys)
                names.add(f'{name}[{offsets}]', a.type)
        self.reads(names)
        self.sums(names)
        return names

    def reads(self, names):
        """Reads at computed places: of a table with sizes of its own, and of the arrays that there are."""
        r = self.random
        integers = [t for t in INTS if t in names.by_type] or (['i64'] if names.dims else [])
        if not integers or not self.chance(0.2):
            return
        self.table = self.table or Array('tab', f'{r.choice(COMMON)}[{r.choice(["q", "q", "q, 3"])}]')
        deep = any(len(g) > 1 for g in self.groups)
        arrays = [self.table] + [a for n, a in self.arrays().items() if a.shape and not deep and n not in self.skip | self.tables]
        plain = names.copy()
        plain.near = 0.0
        for _ in range(r.choice([1, 1, 2])):
            a = r.choice(arrays)
            places = ', '.join(self.make.expression(r.choice(integers), plain, 1) for _ in a.shape)
            names.add(f'at({a.name}, {places})', a.type)
            names.known.setdefault(a.name, a.type)

    def sums(self, names):
        """Sums over e, which the array `rows` has, beside a dimension of the place or none."""
        r = self.random
        if not self.chance(0.15):
            return
        dims = [d for d in names.dims if self.lone(d)]
        d = r.choice(dims) if dims else None
        self.rows = self.rows or Array('rows', f'{r.choice(COMMON)}[{joined(r.choice([["e"], ["e", d], [d, "e"]]) if d else ["e"])}]')
        t = self.rows.type
        if not set(self.rows.keys) - {'e'} <= set(names.dims):
            return
        inner = names.copy()
        inner.near, inner.dims = 0.0, names.dims + ['e']
        inner.add('rows', t)
        term = self.make.expression(t, inner, 2)
        names.known.setdefault('rows', t)
        function = r.choice(['sum', 'sum', 'product', 'least', 'greatest', 'all', 'any'])
        if function in ('all', 'any'):
            sign = r.choice(['==', '!='] if t == 'bool' else ['<', '!='])
            names.add(f'{function}(e, rows {sign} ({term}))', 'bool')
        elif t != 'bool':
            names.add(f'{function}(e, ({term}) {r.choice("+*-")} rows)', t)

    def lets(self, names):
        """Adds lets to the spec and to the names; returns those that are the same everywhere."""
        r, fixed = self.random, {}
        for i in range(r.choice([0, 0, 0, 1, 2, 3])):
            name = r.choice('ab') + '_'[:i] if self.chance(0.05) else f'let{i}'
            if self.chance(0.2):
                self.spec.setdefault('let', {})[f'lit{i}'] = r.choice(['2', '1 + 2', '5', '3 * (4 - 1)', 'min(8, 2 * 7)'])
                names.literals.append(f'lit{i}')
                continue
            t = r.choice(COMMON)
            source = self.uniform() if self.chance(0.3) else names
            text = self.make.expression(t, source, 2)
            if self.chance(0.02):
                few = '(e, ' in str(source.by_type)  # each sum is a loop of its own
                terms = [self.make.leaf(t, source)[0] for _ in range(r.choice([20] if few else [20, 100, 250]))]
                text = ' + '.join(terms) if t != 'bool' else text
            if is_literal(text, source) or name in names.known:
                continue
            self.spec.setdefault('let', {})[name] = text
            names.add(name, t)
            if source is not names:
                fixed[name] = t
        return fixed

    # ---- boundaries ----------------------------------------------------------------------------
    def boundary(self, interior=False):
        modes = BOUNDARIES + (['interior'] * 2 if interior else [])
        if self.chance(0.1):
            return
        if self.chance(0.65):
            self.spec['boundary'] = self.mode(modes, None)
            return
        each = {}
        for name, a in self.arrays().items():
            if not a.shape or self.chance(0.4) or name in getattr(self, 'tables', ()):
                continue
            if len(a.shape) > 1 and self.chance(0.5):
                each[name] = {k: self.mode(modes, a) for k in named(a.keys) if self.chance(0.8)} or 'clamp'
            else:
                each[name] = self.mode(modes, a)
        if each:
            self.spec['boundary'] = self.one_constant(each)

    def one_constant(self, each):
        """An input has one constant."""
        for modes in each.values():
            if isinstance(modes, dict) and 'constant' not in modes:
                constants = [m for m in modes.values() if isinstance(m, dict)]
                for k in modes:
                    if isinstance(modes[k], dict):
                        modes[k] = constants[0]
        return each

    def mode(self, modes, array):
        mode = self.random.choice(modes)
        if mode != 'constant':
            return mode
        arrays = [array] if array else list(self.arrays().values())
        if any(t == 'bool' for a in arrays for _, t in a.fields()):
            return 'clamp'
        if array and isinstance(array.type, tuple) and self.chance(0.5):
            return {'constant': {f: self.random.choice(['0', '1', '7']) for f, _ in array.type}}
        return {'constant': self.random.choice(['0', '1', '7', '100'])}

    # ---- what is combined ----------------------------------------------------------------------
    def several(self, names, count, key, varying):
        """Puts reductions or scans into the spec: name -> Reduction; '' is the nameless one."""
        found = {}
        own = [a for n, a in self.arrays().items() if n not in self.skip]
        if len(own) == 1 and self.chance(0.4):
            found[''] = self.operators.defaulted(own[0].type)
            count = 0
        for i in range(count):
            found['' if count == 1 and self.chance(0.8) else f'r{i}'] = self.operators.reduction(names, varying)
        for name, one in found.items():
            if name:
                self.spec.setdefault(key, {})[name] = one.entry
            else:
                self.spec.update(one.entry)
            self.small |= one.small
            custom = isinstance(one.entry['operator'], dict) or one.entry['operator'] == 'affine'
            self.zeros_alike |= custom and ('f32' in str(one.state) or 'f64' in str(one.state))
        return found

    def init(self, found, needed):
        """An init, where every state can take one."""
        r = self.random
        lacking = [f for f in found.values() if not f.identity]
        if (not self.chance(0.25) and not (needed and lacking)) or not found:
            return True
        states = [f.state for f in found.values()]
        if any(f.entry['operator'] in ('logsumexp', 'welford') for f in found.values()):
            return not (needed and lacking)
        if all(isinstance(s, str) for s in states):
            if 'bool' in states:
                if set(states) != {'bool'}:
                    return not (needed and lacking)
                self.spec['init'] = r.choice(['true', 'false'])
            else:
                fitting = [p for p, t in self.param_types().items() if set(states) == {t}]
                self.spec['init'] = r.choice(fitting) if fitting and self.chance(0.6) else r.choice(['0', '1', '5', '100'])
            return True
        if len(states) == 1:
            self.spec['init'] = {f: 'true' if t == 'bool' else r.choice(['0', '1', '2']) for f, t in states[0]}
            return True
        return not (needed and lacking)

    def per_segment(self, found, rest, fixed, prefix, shape):
        """Outputs with the remaining dimensions."""
        r, names = self.random, self.uniform()
        names.near = self.near
        for n, one in found.items():
            names.add((n + '.total' if prefix == 'total' else n) if n else prefix, one.state)
        for n, t in fixed.items():
            names.add(n, t)
        for n, a in self.arrays().items():
            if set(a.keys) <= set(rest) and n not in self.skip:
                names.add(n, a.type)
        if not self.spec.get('segments'):
            names.dims = named(rest)
        self.reads(names)
        self.sums(names)
        n, one = r.choice(list(found.items()))
        name = f'total{len(self.spec["outputs"])}'
        if one.defaults and self.chance(0.6):
            if n and (len(found) > 1 or True):
                name = n
            if name not in self.spec['outputs']:
                self.spec['outputs'][name] = self.typed(r.choice(one.defaults), shape)
            return
        self.value_output(name, names, shape, (n + '.total' if prefix == 'total' else n) if n else prefix, one.state)

    def typed(self, t, shape):
        if not shape:
            return t if self.chance(0.7) else f'{t}[]'
        return f'{t}[{joined(shape)}]'

    def value_output(self, name, names, shape, text=None, state=None):
        r = self.random
        if isinstance(state, tuple) and self.chance(0.3):
            entry = {'type': dict(state), 'value': text}
        elif self.chance(0.08):
            fields = {f: r.choice(COMMON) for f in r.sample(['re', 'im', 'k'], r.randrange(1, 4))}
            entry = {'type': fields, 'value': {f: self.make.expression(t, names, 2) for f, t in fields.items()}}
        else:
            t = r.choice([x for x in names.types() if self.chance(0.5)] or COMMON)
            entry = {'type': self.typed(t, shape), 'value': self.make.expression(t, names, 3)}
        if isinstance(entry['type'], dict) and shape:
            entry['shape'] = spelled(shape)
        self.spec['outputs'][name] = entry
        self.scopes[name] = names

    def shuffled(self, dims):
        if not self.chance(0.25) or (self.apart and len(dims) < len(self.dims)):
            return list(dims)
        groups = [[d for d in dims if d in g] for g in self.groups] + [[d] for d in dims if not any(d in g for g in self.groups)]
        return sum(self.random.sample(groups, len(groups)), [])

    # ---- kinds ---------------------------------------------------------------------------------
