# SPDX-License-Identifier: Apache-2.0
"""gen_spec.py - random well-typed specs of all kinds, as plain data (what render.py writes as YAML)."""
from arith import INTS
from gen_expr import Expressions, Names, is_literal
from gen_operators import COMMON, Operators
from spec import Array, iteration_space, joined, named, spelled

DIMS = ['n', 'm', 'l']
INPUTS = ['x', 'y', 'z', 'w', 'u', 'v', 'weight', 'off_axis', 'no', 'q1']
BOUNDARIES = ['clamp', 'wrap', 'reflect', 'mirror', 'constant']


class SpecMaker:
    def __init__(self, random):
        self.random = random
        self.make = Expressions(random)
        self.operators = Operators(random, self.make)
        self.small = self.zeros_alike = False

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
        if self.chance(0.06) and kind != 'scan' and rank < 3 and not flat:
            self.dims.insert(r.randrange(rank + 1), f'{r.choice([1, 2, 3, 4, 7])}#0')
        count = 1 + min(int(r.expovariate(0.9)), 5)
        if self.chance(0.02):
            count = r.randrange(8, 30)
        shapes = [list(self.dims)] + [self.shape() for _ in range(count - 1)]
        if len(self.dims) > 1 and self.chance(0.06):
            shapes = [[d] for d in self.dims]  # no input has all dimensions
        if self.chance(0.3):
            r.shuffle(shapes)
        for i, shape in enumerate(shapes):
            name = INPUTS[i] if i < len(INPUTS) else f'in{i}'
            self.spec['inputs'][name] = self.input_entry(shape)
        self.near = 0.3 if self.chance(0.15) else 0.0
        self.params()

    def shape(self):
        r, kind = self.random, self.random.random()
        if kind < 0.5:
            return list(self.dims)
        if kind < 0.6:
            return r.sample(self.dims, len(self.dims))
        return r.sample(self.dims, r.randrange(0, len(self.dims) + 1))

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
                offsets = ', '.join(str(r.randrange(-far, far + 1)) for _ in a.shape)
                names.add(f'{name}[{offsets}]', a.type)
        return names

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
                text = ' + '.join([self.make.leaf(t, source)[0] for _ in range(r.choice([20, 100, 250]))]) if t != 'bool' else text
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
        if not self.chance(0.25) and not (needed and lacking):
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

    def shuffled(self, dims):
        return self.random.sample(dims, len(dims)) if self.chance(0.25) else list(dims)

    # ---- kinds ---------------------------------------------------------------------------------
    def reduce(self):
        r = self.random
        segmented = self.chance(0.2)
        self.begin('reduce', 1 if segmented else None)
        self.skip = set()
        if segmented:
            self.spec['inputs']['off'] = f'{r.choice(["i32", "u32", "i64"])}[k]'
            self.spec['segments'] = {'offsets': 'off'}
            self.skip = {'off'}
        self.order()
        neighbours = 0.5 if self.chance(0.25) else 0.0
        names = self.at_elements(self.skip, neighbours)
        rest = self.over()
        fixed = self.lets(names)
        uniform = self.uniform()
        for n, a in self.arrays().items():
            if set(a.keys) <= set(rest) and n not in self.skip:
                uniform.add(n, a.type)
        found = self.several(names, 1 if self.chance(0.75) else r.randrange(2, 4), 'reductions', uniform)
        if not self.init(found, segmented):
            return None
        shape = ['k-1'] if segmented else rest
        for _ in range(r.choice([1, 1, 1, 2, 3])):
            self.per_segment(found, rest if not segmented else [], fixed, 'r', self.shuffled(shape))
        if self.chance(0.2):
            self.value_output('element', names, self.shuffled(self.dims))
        if neighbours:
            self.boundary()
        return self.finish()

    def order(self):
        """The iteration space in its own order."""
        self.dims = list(iteration_space(self.spec))
        if len(self.dims) > 1 and self.chance(0.1):
            self.spec['space'] = spelled(self.shuffled(self.dims))
            self.dims = list(iteration_space(self.spec))

    def over(self):
        """Chooses; returns what remains."""
        r = self.random
        if 'segments' in self.spec or self.chance(0.4):
            if self.chance(0.3) and 'segments' not in self.spec:
                self.spec['over'] = named(self.dims)
            if len(named(self.dims)) < len(self.dims) and 'over' in self.spec:
                return [d for d in self.dims if d not in self.spec['over']]
            return []
        gone = r.sample(named(self.dims), r.randrange(1, len(named(self.dims)) + 1))
        self.spec['over'] = gone[0] if len(gone) == 1 and self.chance(0.7) else gone
        return [d for d in self.dims if d not in gone]

    def scan(self):
        r = self.random
        segments = r.choice(['offsets', 'flags', None, None, None, None])
        self.begin('scan', 1 if segments else None)
        self.skip = set()
        if segments:
            self.skip = {'seg'}
            self.spec['segments'] = {segments: 'seg'}
            self.spec['inputs']['seg'] = f'{r.choice(["i32", "u32", "i64"])}[k]' if segments == 'offsets' else \
                f'{r.choice(list(INTS) + ["bool"] * 4)}[{self.dims[0]}]'
        self.order()
        along = self.dims[-1]
        if self.chance(0.35):
            along = r.choice(self.dims)
            self.spec['over'] = along
        rest = [d for d in self.dims if d != along]
        if self.chance(0.3):
            self.spec['mode'] = r.choice(['exclusive'] * 3 + ['inclusive'])
        if self.chance(0.3):
            self.spec['direction'] = r.choice(['reverse'] * 3 + ['forward'])
        neighbours = 0.5 if self.chance(0.25) else 0.0
        names = self.at_elements(self.skip, neighbours)
        fixed = self.lets(names)
        uniform = self.uniform()
        for n, a in self.arrays().items():
            if set(a.keys) <= set(rest) and n not in self.skip:
                uniform.add(n, a.type)
        found = self.several(names, 1 if self.chance(0.85) else 2, 'scans', uniform)
        if not self.init(found, self.spec.get('mode') == 'exclusive' or segments == 'offsets'):
            return None
        self.scan_outputs(found, names, rest, fixed, segments)
        if neighbours:
            self.boundary()
        return self.finish()

    def scan_outputs(self, found, names, rest, fixed, segments):
        r, here = self.random, names.copy()
        for n, one in found.items():
            here.add(n or 's', one.state)
        for i in range(r.choice([1, 1, 1, 2])):
            n, one = r.choice(list(found.items()))
            if one.defaults and self.chance(0.7):
                self.spec['outputs'][n or f'out{i}'] = self.typed(r.choice(one.defaults), self.shuffled(self.dims))
            else:
                self.value_output(f'out{i}', here, self.shuffled(self.dims), n or 's', one.state)
        if segments != 'flags' and self.chance(0.3):
            if not (segments is None and any(not f.identity for f in found.values()) and self.chance(0.5)):
                self.per_segment(found, rest if not segments else [], fixed, 'total',
                                 ['k-1'] if segments else self.shuffled(rest))

    def classic(self):
        """A weighted sum of neighbours, iterated: what the strategies for stencils are made for."""
        r = self.random
        rank = r.choices([1, 2, 3], [30, 50, 20])[0]
        self.dims, self.skip, self.tables, self.near = DIMS[:rank], set(), set(), 0.0
        t = r.choice(['f32', 'f32', 'f32', 'f64', 'i32', 'u8', 'i16', 'f16'])
        kind = f'{t}[{joined(self.dims)}]'
        self.spec = {'kind': 'stencil', 'inputs': {'u': kind}, 'outputs': {}}
        if self.chance(0.2):
            self.spec['inputs']['c'] = kind
        far = r.choice([1, 1, 1, 2, 3])
        reads = {', '.join(str(r.randrange(-far, far + 1) if self.chance(0.6) else 0) for _ in self.dims) for _ in range(r.randrange(2, 8))}
        value = ' + '.join(f'u[{at}]' if self.chance(0.5) else f'{r.choice([2, 3, 5])} * u[{at}]' for at in sorted(reads))
        if 'c' in self.spec['inputs']:
            value += ' - c'
        self.spec['outputs']['out'] = {'type': kind, 'value': value if t not in ('f32', 'f64') else f'0.25 * ({value})'}
        self.spec['boundary'] = self.mode(BOUNDARIES + ['interior'], self.arrays()['u'])
        steps = str(r.choice([1, 2, 3, 4, 5, 6, 7, 9]))
        if self.chance(0.8):
            if self.chance(0.4):
                self.spec['params'], steps = {'steps': 'i32'}, 'steps'
            self.spec['iterate'] = {'steps': steps, 'feedback': {'u': 'out'}}
        if self.chance(0.2):
            names = self.at_elements((), 0.0)
            self.beside(names)
        return self.finish()

    def stencil(self):
        r = self.random
        if self.chance(0.3):
            return self.classic()
        self.begin('stencil')
        self.tables = set()
        self.skip = set()
        self.order()
        names = self.at_elements((), 0.85, r.choice([1, 1, 1, 2, 2, 3, 9]))
        if self.chance(0.15):
            self.gathers(names)
        self.lets(names)
        for i in range(r.choice([1, 1, 1, 2, 3])):
            self.value_output(f'out{i}', names, self.shuffled(self.dims))
            if self.chance(0.1) and '#' not in str(self.dims):
                self.shrink(f'out{i}')
        if self.chance(0.3):
            self.iterate(names)
        if self.chance(0.2):
            self.beside(names)
        self.boundary(interior=True)
        return self.finish()

    def shrink(self, name):
        """An output smaller than the space."""
        entry, less = self.spec['outputs'][name], self.random.randrange(1, 4)
        if isinstance(entry['type'], dict):
            entry['shape'] = [f'{d}-{less}' if i == 0 else d for i, d in enumerate(entry['shape'])]
        else:
            t, _, shape = entry['type'].partition('[')
            parts = shape[:-1].split(', ')
            entry['type'] = f'{t}[{", ".join([f"{parts[0]}-{less}"] + parts[1:])}]'

    def gathers(self, names):
        r = self.random
        candidates = [(n, a) for n, a in self.arrays().items() if a.shape and n not in self.tables]
        name, a = r.choice(candidates)
        rank = len(a.shape)
        self.spec['inputs']['offs'] = f'i32[p{", " + str(rank) if rank > 1 else ""}]'
        self.tables = {'offs'}
        field, t = r.choice([(f'.{f}' if f else '', t) for f, t in a.fields()])
        operators = ['and', 'or', 'xor'] if t == 'bool' else ['add', 'mul', 'min', 'max']
        operators += ['and', 'or', 'xor'] if t in INTS else []
        inner = names.copy()
        inner.near = 0.0
        for _ in range(4):
            inner.add(f'k{field}', t)
        self.gathered = (name, rank)
        names.known['k'] = inner.known['k']
        each = self.make.expression(t, inner, 1)
        each = f'k{field}' if is_literal(each, inner) else each
        names.add(f'gather({name}, offs, k, {r.choice(operators)}, {each})', t)

    def iterate(self, names):
        """Feeds outputs back to inputs of the same type and shape."""
        r, feedback = self.random, {}
        for n, a in self.arrays().items():
            if n in self.tables or sorted(a.keys) != sorted(self.dims) or len(a.keys) != len(self.dims) or self.chance(0.3):
                continue
            out = f'next_{n}'
            shape = [k for k in a.keys]
            if isinstance(a.type, tuple):
                value = {f: self.make.expression(t, names, 2) for f, t in a.type}
                self.spec['outputs'][out] = {'type': dict(a.type), 'shape': spelled(shape), 'value': value}
            else:
                self.spec['outputs'][out] = {'type': self.typed(a.type, shape), 'value': self.make.expression(a.type, names, 2)}
            feedback[n] = out
            if self.chance(0.6):
                break
        if not feedback:
            return
        if self.chance(0.5):
            for n in [n for n in self.spec['outputs'] if n not in feedback.values()]:
                del self.spec['outputs'][n]
        steps = str(r.choice([1, 2, 3, 4, 5, 7]))
        if self.chance(0.5):
            self.spec.setdefault('params', {})['steps'] = r.choice(['i32', 'i64'])
            steps = 'steps'
        self.spec['iterate'] = {'steps': steps, 'feedback': feedback}

    def beside(self, names):
        """Reductions of what a stencil computes."""
        here = names.copy()
        here.by_type = {t: [n for n in texts if not n.startswith('gather')] for t, texts in here.by_type.items()}
        here.by_type = {t: texts for t, texts in here.by_type.items() if texts}
        for n, entry in self.spec['outputs'].items():
            a = Array(n, entry)
            if all(add == 0 for _, add in a.shape):
                here.add(n, a.type)
                here.add(n, a.type)
        found = {f'r{i}': self.operators.reduction(here, None) for i in range(self.random.choice([1, 1, 2]))}
        self.spec['reductions'] = {n: one.entry for n, one in found.items()}
        for one in found.values():
            self.small |= one.small
            self.zeros_alike |= isinstance(one.entry['operator'], dict)
        self.per_segment(found, [], {}, '', [])

    # ---- the rest ------------------------------------------------------------------------------
    def finish(self):
        r = self.random
        if 'offs' in self.spec['inputs'] and 'gather(' not in str(self.spec):
            del self.spec['inputs']['offs']
        if self.chance(0.15):
            self.spec['determinism'] = r.choice(['any', 'run', 'device'])
        return self.spec

    def make_spec(self):
        kind = self.random.choices(['reduce', 'scan', 'stencil'], [40, 29, 31])[0]
        return getattr(self, kind)()
