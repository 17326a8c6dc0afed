# SPDX-License-Identifier: Apache-2.0
"""gen_spec.py - random well-typed specs of all kinds, as plain data (what render.py writes as YAML)."""
from arith import INTS
from gen_expr import is_literal
from gen_by import By
from gen_parts import BOUNDARIES, DIMS, Parts
from gen_placed import Kept, Placed
from spec import Array, iteration_space, joined, named, spelled, tables


class SpecMaker(By, Kept, Placed, Parts):
    """A method for each kind."""

    def mapped(self):
        """Columns, reduced and mapped with their results: what stays in registers, by vectors of neighbours."""
        r = self.random
        rank = r.choice([2, 3, 3])
        self.dims, self.skip, self.tables, self.near = DIMS[:rank], set(), set(), 0.0
        self.groups, self.apart, self.columns, self.small = [[d] for d in self.dims], False, self.dims[-1], True
        t, gone = r.choice(['f32', 'f32', 'i32', 'i32', 'f64', 'i16', 'u8']), r.choice(self.dims[:-1])
        kind = f'{t}[{joined(self.dims)}]'
        self.spec = {'kind': 'reduce', 'inputs': {'u': kind, 'v': f'{t}[{self.dims[-1]}]', 'w': f'{t}[{self.dims[0]}]'},
                     'over': gone, 'outputs': {}, 'operator': r.choice(['add', 'max', 'min', 'max'] + ['xor'] * (t in INTS))}
        place = [f'{t}(index({d}))' for d in self.dims]

        def terms(count):
            near = [f'u[{", ".join(str(r.choice([0, 0, 1, -1])) for _ in self.dims)}]' for _ in range(3)]
            return ' - '.join(['u'] + r.sample(near + ['v', 'w', *place], count))
        self.spec['map'] = terms(r.randrange(3))
        result = {'u8': 'u32', 'i16': 'i32'}.get(t, t) if self.spec['operator'] == 'add' else t
        for i in range(r.choice([1, 1, 2])):
            self.spec['outputs'][f'out{i}'] = {'type': f'{t}[{joined(self.shuffled(self.dims))}]', 'value': f'{terms(r.randrange(3))} - {t}(r)'}
        if self.chance(0.5):
            self.spec['outputs']['each'] = {'type': f'{result}[{joined(self.shuffled([d for d in self.dims if d != gone]))}]', 'value': 'r'}
        if self.chance(0.5):
            self.spec['boundary'] = r.choice(BOUNDARIES[:4])
        return self.finish()

    def reduce(self):
        r = self.random
        if self.chance(0.08):
            return self.mapped()
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
        if not segmented and not self.results and len(rest) < 3 and not self.apart and self.chance(0.15):
            self.by(names, rest, fixed)
            if neighbours:
                self.boundary()
            return self.finish()
        uniform = self.uniform()
        for n, a in self.arrays().items():
            if set(a.keys) <= set(rest if not self.apart else []) and n not in self.skip:
                uniform.add(n, a.type)
        found = self.several(names, 1 if self.chance(0.75) else r.randrange(2, 4), 'reductions', uniform)
        if not self.init(found, segmented):
            return None
        shape = ['k-1'] if segmented else rest
        for _ in range(r.choice([1, 1, 1, 2, 3])):
            self.per_segment(found, rest if not segmented else [], fixed, 'r', self.shuffled(shape))
        if self.chance(0.4):
            here = names.copy()
            for n, one in found.items() if self.chance(0.7) else ():
                here.add(n or 'r', one.state)
            self.value_output('element', here, self.shuffled(self.dims))
        if self.results and '#' not in str(self.dims) and not self.apart and (not rest or len(rest) + 1 == len(self.dims)):
            self.kept(found, names, rest, segmented)
        if neighbours:
            self.boundary()
        return self.finish()

    def order(self):
        """The iteration space in its own order."""
        self.dims = list(iteration_space(self.spec))
        if len(self.dims) > 1 and self.chance(0.1):
            self.spec['space'] = spelled(self.shuffled(self.dims))
            self.dims = list(iteration_space(self.spec))

    def group(self, dim):
        return next((list(g) for g in self.groups if dim in g), [dim])

    def over(self):
        """Chooses; returns what remains."""
        r = self.random
        if 'segments' in self.spec or self.chance(0.4):
            if self.chance(0.3) and 'segments' not in self.spec:
                self.spec['over'] = named(self.dims)
            if len(named(self.dims)) < len(self.dims) and 'over' in self.spec:
                return [d for d in self.dims if d not in self.spec['over']]
            return []
        groups = [g for g in self.groups if named(g)]
        gone = sum(r.sample(groups, r.randrange(1, len(groups) + 1)), [])
        self.spec['over'] = gone[0] if len(gone) == 1 and self.chance(0.7) else gone
        return [d for d in self.dims if d not in gone]

    def scan(self):
        r = self.random
        segments = r.choice(['offsets', 'flags', 'starts', None, None, None, None])
        self.begin('scan', 1 if segments == 'offsets' or (segments == 'flags' and self.chance(0.6)) else None)
        self.skip = set()
        if segments in ('offsets', 'flags'):
            self.skip = {'seg'}
            self.spec['segments'] = {segments: 'seg'}
            self.spec['inputs']['seg'] = f'{r.choice(["i32", "u32", "i64"])}[k]' if segments == 'offsets' else \
                f'{r.choice(list(INTS) + ["bool"] * 4)}[{joined(self.dims)}]'
        if segments == 'flags' and len(self.dims) > 1:
            segments = 'starts'
        self.order()
        along = [self.dims[-1]] if self.lone(self.dims[-1]) else self.group(self.dims[-1])
        if self.chance(0.35):
            along = r.sample(self.dims, r.randrange(1, 4)) if self.apart else self.group(r.choice(self.dims))
        if along != [self.dims[-1]] or self.chance(0.1):
            self.spec['over'] = along[0] if len(along) == 1 else along
        rest = [d for d in self.dims if d not in along]
        if self.chance(0.3):
            self.spec['mode'] = r.choice(['exclusive'] * 3 + ['inclusive'])
        if self.chance(0.3):
            self.spec['direction'] = r.choice(['reverse'] * 3 + ['forward'])
        neighbours = 0.5 if self.chance(0.25) else 0.0
        names = self.at_elements(self.skip, neighbours)
        fixed = self.lets(names)
        uniform = self.uniform()
        for n, a in self.arrays().items():
            if set(a.keys) <= set(rest if not segments and not self.apart else []) and n not in self.skip:
                uniform.add(n, a.type)
        by = not segments and not self.apart and not self.results and len(rest) < 3 and self.chance(0.2)
        keeps = not by and not self.apart and (self.results or (segments in (None, 'starts') and self.chance(0.4)))
        found = {}
        if not keeps or self.results or segments or self.chance(0.5):
            found = self.several(names, 1 if self.chance(0.85) else 2, 'scans', uniform)
        if segments == 'starts' and 'segments' not in self.spec:
            self.spec['segments'] = {'starts': self.make.expression('bool', names, 2)}
        if not self.init(found, by or self.spec.get('mode') == 'exclusive' or segments == 'offsets'):
            return None
        if by:
            self.scan_by(names, found, rest, fixed)
        if keeps:
            self.kept(found, names, rest, segments)
        if found and not by and not (keeps and self.chance(0.5)):
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
        if segments not in ('flags', 'starts', 'bins') and self.chance(0.3):
            if not (segments is None and any(not f.identity for f in found.values()) and self.chance(0.5)):
                self.per_segment(found, rest if not segments else [], fixed, 'total',
                                 ['k-1'] if segments else self.shuffled(rest))

    def classic(self):
        """A weighted sum of neighbours, iterated: what the strategies for stencils are made for."""
        r = self.random
        rank = r.choices([1, 2, 3], [30, 50, 20])[0]
        self.dims, self.skip, self.tables, self.near = DIMS[:rank], set(), set(), 0.0
        self.groups, self.apart = [[d] for d in self.dims], False
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
        self.begin(r.choice(['stencil', 'stencil', 'map']))
        self.tables = set()
        self.skip = set()
        self.order()
        names = self.at_elements((), 0.85, r.choice([1, 1, 1, 2, 2, 3, 9]))
        if self.chance(0.15) and all(map(self.lone, self.dims)) and not self.apart:
            self.gathers(names)
        self.lets(names)
        for i in range(r.choice([1, 1, 1, 2, 3])):
            self.value_output(f'out{i}', names, self.shuffled(self.dims))
            if self.chance(0.1) and '#' not in str(self.dims):
                self.shrink(f'out{i}')
        if self.chance(0.3) and not self.apart:
            self.iterate(names)
        if self.chance(0.2):
            self.beside(names)
        self.boundary(interior=not self.apart)
        return self.finish()

    def shrink(self, name):
        """An output smaller than the space."""
        entry, less = self.spec['outputs'][name], self.random.randrange(1, 4)
        if not self.lone(Array(name, entry).keys[0]):
            return
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
        inner.by_type = {t: [n for n in texts if '(e, ' not in n] for t, texts in inner.by_type.items()}  # it sums over no dimension
        inner.by_type = {t: texts for t, texts in inner.by_type.items() if texts}
        for _ in range(4):
            inner.add(f'k{field}', t)
        if self.chance(0.5):
            self.spec['inputs']['weights'] = f'{t}[p]'
            self.tables.add('weights')
            inner.add('weights', t)
        self.gathered = (name, rank)
        names.known.update({n: inner.known[n] for n in ('k', 'weights') if n in inner.known})
        each = self.make.expression(t, inner, 1)
        each = f'k{field}' if is_literal(each, inner) else each
        if t != 'bool' and self.chance(0.5):
            self.gathered_state(names, f'gather({name}, offs, k', t, each)
        else:
            names.add(f'gather({name}, offs, k, {r.choice(operators)}, {each})', t)

    def gathered_state(self, names, begin, t, each):
        """With fields, of a built-in operator or the spec's own, from the call or through a let; or an own scalar."""
        r, index = self.random, self.random.choice(['index(p)', 'i32(index(p))', 'i16(index(p))'])
        kind = 'i64' if index == 'index(p)' else index[:3]
        fields, args, name = (('value', t), ('index', kind)), f'{each}, {index}', r.choice(['argmin', 'argmax', 'two', 'pair', 'low'])
        own = {'two': {'state': {'value': t, 'next': t}, 'identity': {'value': '0', 'next': '1'}, 'combine': {
                   'value': 'max(a.value, b.value)', 'next': 'max(min(a.value, b.value), max(a.next, b.next))'}},
               'pair': {'state': {'value': t, 'row': kind}, 'identity': {'value': '0', 'row': '0'}, 'let': {'both': 'a.row ^ b.row'},
                        'combine': {'value': 'a.value + b.value', 'row': 'both'}},
               'low': {'state': t, 'identity': '1', 'combine': 'if b < a then b else a', 'commutative': 'true'}}.get(name)
        if own:
            self.spec['operators'] = {name: own}
            fields = t if name == 'low' else tuple(own['state'].items())
            args = f'{each}, {each}' if name == 'two' else args if name == 'pair' else each
            names.known[name] = fields
        text = f'{begin}, {name}, {args})'
        if name != 'low' and self.chance(0.5):
            self.spec.setdefault('let', {})['near'] = text
            text = 'near'
        names.add(text, fields)

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
        self.places()
        if 'offs' in self.spec['inputs'] and 'gather(' not in str(self.spec):
            del self.spec['inputs']['offs']
        if self.spec.get('operators') and not any(f', {n}, ' in str({**self.spec, 'operators': 0}) for n in self.spec['operators']):
            del self.spec['operators']
        if 'weights' in self.spec['inputs'] and 'weights' not in str({**self.spec, 'inputs': 0}):
            del self.spec['inputs']['weights']
        if self.table and 'at(tab' in str(self.spec):
            self.spec['inputs']['tab'] = self.table.entry
        if self.rows and '(e, ' in str(self.spec):
            self.spec['inputs']['rows'] = self.rows.entry
        fed = self.spec.get('iterate', {}).get('feedback', {})
        results = str([e for n, e in self.spec['outputs'].items() if n.startswith('total')]) + str(self.spec.get('let'))
        if any(f'at({n},' in results for n in fed):
            return None  # not in the language yet
        if tables(self.spec) - {'tab'}:
            return None  # an array of the space has become a table
        if 'by' not in self.spec and self.chance(0.15):
            self.spec['determinism'] = r.choice(['any', 'run', 'device'])
        if self.spec.get('determinism', 'any') == 'any' and self.chance(0.15):
            self.spec['contract'] = 'true'
        return self.spec

    def make_spec(self):
        kind = self.random.choices(['reduce', 'scan', 'stencil'], [40, 29, 31])[0]
        self.scopes, self.results = {}, self.chance(0.15)
        return getattr(self, kind)()
