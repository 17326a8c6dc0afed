# SPDX-License-Identifier: Apache-2.0
"""gen_operators.py - random reductions and scans: a map with a built-in or an own operator that is associative.

Own operators on floats are exact on small integers in any order, so that what they give is known.
"""
from arith import INTS, NUMBERS, TYPES, is_float, is_int, lossless
from expr import SUMS
from gen_expr import is_literal
from operators import LIFTED, WIDER

BUILTIN = ['add'] * 6 + ['mul'] * 2 + ['min', 'max'] * 2 + ['and', 'or', 'xor', 'first', 'last', 'argmin', 'argmax',
                                                            'argmin', 'logsumexp', 'welford', 'affine']
COMMON = ['f32'] * 5 + ['i32'] * 3 + ['f64', 'i64', 'u32', 'u8', 'i8', 'i16', 'u16', 'u64', 'f16', 'bf16', 'bool']


class Reduction:
    """entry: the keys of the spec; state: its type; defaults: types of outputs that need no value; small: only on data
    that stays exact."""

    def __init__(self, entry, state, defaults, identity=True, small=False):
        self.entry, self.state, self.defaults, self.identity, self.small = entry, state, defaults, identity, small


class Operators:
    def __init__(self, random, expressions):
        self.random, self.make = random, expressions

    def scalar_map(self, t, names, depth=2):
        text = self.make.expression(t, names, depth)
        return f'{t}({names.by_type["i64"][0]})' if is_literal(text, names) and 'i64' in names.by_type else text

    def reduction(self, names, varying=None):
        """varying: names that a combine may read besides its operands, or None."""
        if self.random.random() < 0.3:
            return self.own(names, varying)
        name = self.random.choice(BUILTIN)
        special = getattr(self, 'on_' + name, None)
        return special(names) if special else self.scalar(name, names)

    # -- built-in --
    def type_for(self, name):
        r = self.random
        if name in ('and', 'or', 'xor'):
            return r.choice(list(INTS) + ['bool'] * 3)
        if name in ('first', 'last'):
            return r.choice(TYPES)
        return r.choice([t for t in COMMON if t != 'bool'])

    def scalar(self, name, names):
        t = self.type_for(name)
        entry = {'map': self.scalar_map(t, names), 'operator': name}
        state = WIDER.get(t, t) if name in ('add', 'mul') else t
        wide = [a for a in NUMBERS if lossless(t, a)]
        if name in ('add', 'mul', 'min', 'max') and self.random.random() < 0.2:
            entry['accumulator'] = state = self.random.choice(wide)
        if name == 'add' and self.random.random() < 0.1:
            state = self.random.choice(NUMBERS)
            entry = {'map': self.make.expression('bool', names, 2), 'operator': 'add', 'accumulator': state}
            t = state
        defaults = [a for a in TYPES if lossless(state, a) and (state != 'bool' or a == 'bool')]
        if name in ('add', 'mul'):
            defaults.append(t)
        return Reduction(entry, state, defaults, name not in ('first', 'last'))

    def defaulted(self, t):
        """Without a map, of a single input of this type."""
        r = self.random
        if isinstance(t, tuple):
            combine = {f: f'a.{f} or b.{f}' if ft == 'bool' else f'a.{f} + b.{f}' for f, ft in t}
            identity = {f: 'false' if ft == 'bool' else '0' for f, ft in t}
            narrow = any(ft in ('f16', 'bf16') for _, ft in t)
            if narrow:
                combine = {f: f'b.{f}' for f, _ in t}
                return self.result(t, None, combine, None)
            return self.result(t, identity, combine, None, small=any(is_float(ft) for _, ft in t))
        name = r.choice(['and', 'or', 'xor', 'first', 'last'] if t == 'bool' else
                        ['add', 'add', 'mul', 'min', 'max', 'first', 'last'] + (['logsumexp', 'welford'] if t in ('f32', 'f64') else []))
        if name in ('logsumexp', 'welford'):
            state = tuple((f, t) for f in LIFTED[name])
            return Reduction({'operator': name}, state, [t])
        state = WIDER.get(t, t) if name in ('add', 'mul') else t
        return Reduction({'operator': name}, state, [state, t], name not in ('first', 'last'))

    def arg(self, name, names):
        t, index = self.type_for('min'), self.random.choice(['i64', 'i64', 'i32', 'u32', 'i16'])
        place = f'index({self.random.choice(names.dims)})' if names.dims else '0'
        place = place if index == 'i64' else f'{index}({place})'
        entry = {'map': {'value': self.scalar_map(t, names), 'index': place}, 'operator': name}
        return Reduction(entry, (('value', t), ('index', index)), [])

    def on_argmin(self, names):
        return self.arg('argmin', names)

    def on_argmax(self, names):
        return self.arg('argmax', names)

    def on_logsumexp(self, names):
        t = self.random.choice(['f32', 'f32', 'f64', 'f16', 'bf16'])
        entry = {'map': self.scalar_map(t, names, 1), 'operator': 'logsumexp'}
        return Reduction(entry, (('max', t), ('sum', t)), [t])

    def on_welford(self, names):
        t = self.random.choice(['f32', 'f32', 'f64'])
        entry = {'map': self.scalar_map(t, names, 1), 'operator': 'welford'}
        return Reduction(entry, (('n', t), ('mean', t), ('m2', t)), [t])

    def on_affine(self, names):
        t = self.random.choice(['f32', 'f64', 'i32', 'u8', 'i64', 'u32'])
        a = self.scalar_map(t, names, 1)
        a = f'sign({a})' if is_float(t) else a
        entry = {'map': {'a': a, 'b': self.small_map(t, names)}, 'operator': 'affine'}
        return Reduction(entry, (('a', t), ('b', t)), [], small=is_float(t))

    def small_map(self, t, names):
        """Integers stay small integers."""
        whole = {x: [n for n in texts if not n.startswith(('let', 'gather', 'near', 'at(', *SUMS, 'out', 'next'))]
                 for x, texts in names.by_type.items() if isinstance(x, str)}
        if whole.get(t):
            return self.random.choice(whole[t])
        other = self.random.choice([x for x in whole if whole[x] and (x != 'i64' or is_int(t))] or ['i64'])
        return f'{t}({self.random.choice(whole[other])})'

    # -- own --
    def own(self, names, varying):
        kinds = [self.hash, self.product, self.best_sum, self.last_where, self.pair, self.widest, self.linear, self.left,
                 self.saturated, self.count_and_sum, self.interval]
        if varying and varying.by_type:
            kinds += [self.masked, self.masked]
        return self.random.choice(kinds)(names, varying)

    def result(self, state, identity, combine, entry_map, let=None, commutative=None, small=False, drop=True):
        operator = {'state': dict(state) if isinstance(state, tuple) else state}
        keep = identity is not None and (not drop or self.random.random() < 0.85)
        if keep:
            operator['identity'] = identity
        if let:
            operator['let'] = let
        operator['combine'] = combine
        if commutative and self.random.random() < 0.5:
            operator['commutative'] = 'true'
        defaults = [] if isinstance(state, tuple) else [state]
        entry = {'operator': operator} if entry_map is None else {'map': entry_map, 'operator': operator}
        return Reduction(entry, state, defaults, keep, small)

    def unsigned(self):
        return self.random.choice(['u8', 'u16', 'u32', 'u64', 'i32', 'i64', 'i8'])

    def hash(self, names, _):
        t = self.unsigned()
        return self.result((('h', t), ('p', t)), {'h': '0', 'p': '1'}, {'h': 'a.h * b.p + b.h', 'p': 'a.p * b.p'},
                           {'h': self.scalar_map(t, names), 'p': self.scalar_map(t, names, 1)})

    def product(self, names, _):
        t = self.unsigned()
        f = ['m00', 'm01', 'm10', 'm11']
        combine = {f'm{i}{j}': f'a.m{i}0 * b.m0{j} + a.m{i}1 * b.m1{j}' for i in (0, 1) for j in (0, 1)}
        return self.result(tuple((x, t) for x in f), dict(zip(f, '1001')), combine,
                           {x: self.scalar_map(t, names, 1) for x in f})

    def best_sum(self, names, _):
        t = self.random.choice(['i32', 'i64', 'f32', 'f64'])
        text = {'best': 'max(max(a.best, b.best), a.right + b.left)', 'left': 'max(a.left, a.sum + b.left)',
                'right': 'max(b.right, b.sum + a.right)', 'sum': 'a.sum + b.sum'}
        x = self.small_map(t, names) if is_float(t) else f'{t}({self.scalar_map("i16", names, 1)})'
        top = f'max({x}, 0)'
        return self.result(tuple((f, t) for f in text), {f: '0' for f in text}, text,
                           {'best': top, 'left': top, 'right': top, 'sum': x}, small=is_float(t))

    def last_where(self, names, _):
        t = self.random.choice(COMMON)
        return self.result((('v', t), ('ok', 'bool')), {'v': 'false' if t == 'bool' else '0', 'ok': 'false'},
                           {'v': 'if b.ok then b.v else a.v', 'ok': 'a.ok or b.ok'},
                           {'v': self.scalar_map(t, names), 'ok': self.make.expression('bool', names, 2)}, drop=False)

    def pair(self, names, _):
        t, u = self.random.choice(['f32', 'f64', 'i32', 'u16']), self.random.choice(['u8', 'i64', 'u64', 'i16'])
        x = self.small_map(t, names) if is_float(t) else self.scalar_map(t, names)
        return self.result((('s', t), ('x', u)), {'s': '0', 'x': '0'}, {'s': 'a.s + b.s', 'x': 'a.x ^ b.x'},
                           {'s': x, 'x': self.scalar_map(u, names)}, commutative=True, small=is_float(t))

    def widest(self, names, _):
        t = self.random.choice(['i8', 'i32', 'u16', 'i64', 'u8'])
        return self.result(t, None, 'if a < b then b else a', self.scalar_map(t, names), commutative=True)

    def linear(self, names, _):
        t = self.random.choice(['u32', 'i32', 'u8', 'i64', 'f32'])
        if t == 'f32':
            a, b = f'sign({self.small_map(t, names)})', self.small_map(t, names)
        else:
            a, b = self.scalar_map(t, names, 1), self.scalar_map(t, names, 1)
        return self.result((('k', t), ('c', t)), {'k': '1', 'c': '0'}, {'k': 'w', 'c': 'b.k * a.c + b.c'},
                           {'k': a, 'c': b}, let={'w': 'a.k * b.k'}, small=t == 'f32')

    def left(self, names, _):
        t = self.random.choice(COMMON)
        return self.result(t, None, self.random.choice(['a', 'b']), self.scalar_map(t, names))

    def saturated(self, names, _):
        t = self.random.choice(['u8', 'u16'])
        return self.result('u32', '0', 'min(a + b, 1000)', f'min(u32({self.scalar_map(t, names, 1)}), 1000)', commutative=True)

    def three(self, names):
        """Commutes and has an identity; the fields fill several words."""
        t, u = self.random.choice(['f64', 'i64', 'u64']), self.random.choice(['u8', 'i16', 'i32'])
        x = self.small_map(t, names) if is_float(t) else self.scalar_map(t, names)
        made = self.result((('s', t), ('x', u), ('n', 'i32')), {'s': '0', 'x': '0', 'n': '0'},
                           {'s': 'a.s + b.s', 'x': 'a.x ^ b.x', 'n': 'a.n + b.n'},
                           {'s': x, 'x': self.scalar_map(u, names), 'n': '1'}, small=is_float(t), drop=False)
        made.entry['operator']['commutative'] = 'true'
        return made

    def count_and_sum(self, names, _):
        t = self.random.choice(['f32', 'f64', 'i64'])
        return self.result((('n', 'i32'), ('sum', t)), {'n': '0', 'sum': '0'}, {'n': 'a.n + b.n', 'sum': 'a.sum + b.sum'},
                           {'n': '1', 'sum': self.small_map(t, names)}, small=is_float(t))

    def interval(self, names, _):
        t = self.random.choice(['i32', 'f32', 'u8', 'i64'])
        x = self.small_map(t, names)
        return self.result((('lo', t), ('hi', t)), None, {'lo': 'min(a.lo, b.lo)', 'hi': 'max(a.hi, b.hi)'},
                           {'lo': x, 'hi': x}, commutative=True, small=is_float(t))

    def masked(self, names, varying):
        """Reads what is the same for all that is combined."""
        t = self.random.choice(['u32', 'i32', 'u64', 'u8'])
        which = self.random.choice([x for x in varying.types() if x in INTS or x == 'bool'] or [None])
        more = f'{t}({self.random.choice(varying.by_type[which])})' if which else '3'
        return self.result(t, None, f'a + b + {more}', self.scalar_map(t, names), commutative=True)
