# SPDX-License-Identifier: Apache-2.0
"""gen_expr.py - random well-typed expressions, as text with as few parentheses as the grammar allows (or more)."""
from arith import INTS, NUMBERS, TYPES, is_float
from expr import INT, LEVELS, Literal, parse, type_of

LEVEL = {sign: i for i, level in enumerate(LEVELS) if level for sign in level}
IF, NOT, PREFIX, ATOM = -1, 2, len(LEVELS), len(LEVELS) + 1
ONE_FLOAT = ['abs', 'sign', 'sqrt', 'floor', 'ceil', 'trunc', 'round']
NEAR = ['rsqrt', 'cbrt', 'exp', 'exp2', 'exp10', 'expm1', 'log', 'log2', 'log10', 'log1p', 'sin', 'cos', 'tan', 'asin',
        'acos', 'atan', 'sinh', 'cosh', 'tanh', 'erf', 'pow', 'atan2', 'hypot']


class Types:
    """A scope that knows types alone."""

    def __init__(self, names):
        self.names, self.lets = names, {}

    def resolve(self, name, _=None):
        if name.startswith('lit'):
            return '', INT
        return '', self.names.known[name]

    def neighbour(self, name, _):
        return self.resolve(name)

    def gather(self, words):
        name, types = words[3], [type_of(node, self) for node in words[4]]
        return '', self.names.known[name] if name in self.names.known else types[0] if len(types) == 1 else \
            (('value', types[0]), ('index', types[1]))

    def at(self, words):
        return self.resolve(words[0])

    def sum(self, words):
        return '', 'bool' if words[0] in ('all', 'any') else type_of(words[2], self)


def is_literal(text, names):
    """Nothing decides its type."""
    return isinstance(type_of(parse(text), Types(names)), Literal)


class Names:
    """What may be read: type -> texts; `dims` for index(); `near` says whether inexact functions may be used."""

    def __init__(self, near=0.0):
        self.by_type, self.known, self.dims, self.literals, self.near = {}, {}, [], [], near

    def add(self, text, t):
        """A scalar, or a structure: its fields, and itself."""
        if text.isidentifier():
            self.known[text] = t
        base, dot, rest = text.partition('.')
        if dot and base.isidentifier() and base not in self.known:
            self.known[base] = ((rest, t),)
        if isinstance(t, tuple):
            for f, ft in t:
                self.add(f'{text}.{f}', ft)
        self.by_type.setdefault(t, []).append(text)

    def copy(self):
        other = Names(self.near)
        other.known = dict(self.known)
        other.by_type = {t: list(names) for t, names in self.by_type.items()}
        other.dims, other.literals = list(self.dims), list(self.literals)
        return other

    def types(self):
        return [t for t in self.by_type if isinstance(t, str)]


class Expressions:
    def __init__(self, random):
        self.random = random

    def expression(self, t, names, depth=3):
        return self.make(t, names, depth)[0]

    def wrap(self, pair, level):
        text, own = pair
        return f'({text})' if own < level or own < ATOM and self.random.random() < 0.1 else text

    def make(self, t, names, depth):
        """(text, level)"""
        r = self.random
        if depth <= 0 or r.random() < 0.15:
            return self.leaf(t, names)
        if r.random() < 0.08:
            return self.conditional(t, names, depth)
        if t == 'bool':
            return self.truth(names, depth)
        if r.random() < 0.12:
            return self.conversion(t, names, depth)
        return self.float_made(t, names, depth) if is_float(t) else self.int_made(t, names, depth)

    def leaf(self, t, names):
        r, own = self.random, names.by_type.get(t, [])
        if own and r.random() < 0.8:
            return r.choice(own), ATOM
        if t == 'i64' and names.dims and r.random() < 0.4:
            return f'index({r.choice(names.dims)})', ATOM
        others = [x for x in names.types() if x != t]
        if others and r.random() < 0.75:
            other = r.choice(others)
            return f'{t}({r.choice(names.by_type[other])})', ATOM
        return self.literal(t, names.literals)

    def literal(self, t, lets=()):
        r = self.random
        if lets and t != 'bool' and r.random() < 0.5:
            return r.choice(lets), ATOM
        if t == 'bool':
            return r.choice(['true', 'false']), ATOM
        number = str(r.choice([0, 1, 2, 3, 5, 7, 8, 15, 31, 64, 100]))
        if is_float(t) and r.random() < 0.5:
            number = r.choice(['0.5', '1.5', '2.25', '0.125', '1e-2', '0.1', '3.0', '2.5e1', 'inf' if r.random() < 0.1 else '0.75'])
        if t[0] != 'u' and r.random() < 0.25:
            return '-' + number, PREFIX
        return number, ATOM

    def conditional(self, t, names, depth):
        c = self.make('bool', names, depth - 1)
        a, b = (self.make(t, names, depth - 1) for _ in range(2))
        if self.random.random() < 0.4:
            return f'select({c[0]}, {a[0]}, {b[0]})', ATOM
        return f'if {c[0]} then {a[0]} else {b[0]}', IF

    def binary(self, sign, t, names, depth, level=None):
        level = LEVEL[sign] if level is None else level
        a, b = self.make(t, names, depth - 1), self.make(t, names, depth - 1)
        left = level + 1 if sign in LEVELS[3] else level
        text = f'{self.wrap(a, max(left, 0))} {sign} {self.wrap(b, level + 1)}'
        # an `if` on the left would swallow the rest
        return text, level

    def truth(self, names, depth):
        r = self.random
        kind = r.random()
        if kind < 0.5:
            t = r.choice(names.types() or NUMBERS)
            t = r.choice(NUMBERS) if t == 'bool' and r.random() < 0.5 else t
            sign = r.choice(LEVELS[3] if t != 'bool' else ('==', '!='))
            return self.binary(sign, t, names, depth)
        if kind < 0.75:
            return self.binary(r.choice(['and', 'or', '&&', '||']), 'bool', names, depth)
        if kind < 0.85:
            return r.choice(['not ', '!']) + self.wrap(self.make('bool', names, depth - 1), NOT), NOT
        if kind < 0.92:
            return self.binary(r.choice(['&', '|', '^']), 'bool', names, depth)
        floats = [t for t in names.types() if is_float(t)]
        if floats:
            return f'{r.choice(["isnan", "isinf"])}({self.expression(r.choice(floats), names, depth - 1)})', ATOM
        t = r.choice([x for x in names.types() if x != 'bool'] or ['i32'])
        return f'bool({self.expression(t, names, depth - 1)})', ATOM

    def conversion(self, t, names, depth):
        r = self.random
        other = r.choice(names.types() or TYPES)
        if not self.typed(other, names):
            return self.leaf(t, names)
        inner = self.make(other, names, depth - 1)[0]
        return f'{t}({inner})', ATOM

    def typed(self, t, names):
        return t in names.by_type

    def float_made(self, t, names, depth):
        r = self.random
        kind = r.random()
        if kind < 0.6:
            return self.binary(r.choice(['+', '+', '-', '-', '*', '*', '/', '%' if r.random() < 0.3 else '+']), t, names, depth)
        if kind < 0.68:
            return '-' + self.wrap(self.make(t, names, depth - 1), PREFIX), PREFIX
        if names.near and r.random() < names.near:
            return self.function(r.choice(NEAR), t, names, depth)
        if kind < 0.75:
            return self.function('fma', t, names, depth)
        return self.function(r.choice(ONE_FLOAT + ['min', 'max', 'clamp']), t, names, depth)

    def function(self, name, t, names, depth):
        count = {'min': 2, 'max': 2, 'clamp': 3, 'fma': 3, 'pow': 2, 'atan2': 2, 'hypot': 2}.get(name, 1)
        args = ', '.join(self.expression(t, names, depth - 1) for _ in range(count))
        return f'{name}({args})', ATOM

    def int_made(self, t, names, depth):
        r = self.random
        kind = r.random()
        if kind < 0.5:
            return self.binary(r.choice(['+', '-', '*', '/', '%']), t, names, depth)
        if kind < 0.65:
            return self.binary(r.choice(['&', '|', '^']), t, names, depth)
        if kind < 0.75:
            return self.shift(t, names, depth)
        if kind < 0.85:
            pair = self.make(t, names, depth - 1)
            literal = t[0] == 'u' and is_literal(pair[0], names)
            return ('~' if literal else r.choice(['-', '~'])) + self.wrap(pair, PREFIX), PREFIX
        return self.function(r.choice(['abs', 'sign', 'min', 'max', 'clamp', 'popcount', 'clz', 'ctz']), t, names, depth)

    def shift(self, t, names, depth):
        sign = self.random.choice(['<<', '>>'])
        return self.binary(sign, t, names, depth)
