# SPDX-License-Identifier: Apache-2.0
"""operators.py - states, identities and combinations, built-in and a spec's own, from docs/spec-language.md.

An Operator has `state` (a type), `identity` (a value or None), `combine(a, b, i)` with i the number of the segment,
and `default`, what an output is that says nothing: (field texts) an expression of the result or None for all of it.
"""
import math
import operator as python

from arith import INF, UNKNOWN, Span, Unknown, int_range, is_float, unit
from expr import Compiler, SpecError, converted, is_product, parse, type_of
from operations import operation

SCALAR = {'add': '+', 'mul': '*', 'min': 'min', 'max': 'max', 'and': '&', 'or': '|', 'xor': '^'}
WIDER = {'f16': 'f32', 'bf16': 'f32', 'i8': 'i32', 'i16': 'i32', 'u8': 'u32', 'u16': 'u32'}
LIFTED = {'logsumexp': ('max', 'sum'), 'welford': ('n', 'mean', 'm2')}
BITS = {'and': python.and_, 'or': python.or_, 'xor': python.xor}


def highest(t):
    return INF if is_float(t) else int_range(t)[1]


def lowest(t):
    return -INF if is_float(t) else int_range(t)[0]


def scalar_identity(name, t):
    if name in ('add', 'mul'):
        return float(name == 'mul') if is_float(t) else int(name == 'mul')
    if name in ('min', 'max'):
        return highest(t) if name == 'min' else lowest(t)
    if t == 'bool':
        return name == 'and'
    return 0 if name != 'and' else (-1 if t[0] == 'i' else int_range(t)[1])


def builtin_combine(name, t):
    """Of two scalars."""
    if name in ('first', 'last'):
        return (lambda a, b: a) if name == 'first' else (lambda a, b: b)
    if name in BITS and is_float(t) or t == 'bool' and name not in BITS:
        raise SpecError(f'{name} of {t}')
    return operation(SCALAR[name], t)


def better(sign):
    """argmin and argmax: (value, index)."""
    def combine(a, b, _):
        (x, i), (y, j) = a, b
        if any(v.__class__ in (Unknown, Span) for v in (x, y, i, j)):
            return UNKNOWN, UNKNOWN
        if x != x or y != y:
            first = (y != y) if x == x else (x != x and y != y and i <= j)
        else:
            first = sign * x < sign * y or x == y and i <= j
        return a if first else b
    return combine


def affine(t):
    add, mul = operation('+', t), operation('*', t)
    return lambda l, r, _: (mul(r[0], l[0]), add(mul(r[0], l[1]), r[1]))


class Operator:
    def __init__(self, name, state, identity, combine, default=None):
        self.name, self.state, self.identity, self.combine, self.default = name, state, identity, combine, default
        self.mapped = None  # the type before it was widened
        self.contract = False  # products and sums of the operator may be rounded once


def fields_of(state, *names):
    if not isinstance(state, tuple) or [f for f, _ in state] != list(names):
        raise SpecError(f'{names} are needed')
    return [t for _, t in state]


def builtin(name, state):
    """The operator for a map of this type, which has been widened."""
    if name in ('argmin', 'argmax'):
        t, index = fields_of(state, 'value', 'index')
        worst = highest(t) if name == 'argmin' else lowest(t)
        return Operator(name, state, (worst, int_range(index)[1]), better(1 if name == 'argmin' else -1))
    if name == 'affine':
        t = fields_of(state, 'a', 'b')[0]
        one, zero = (1.0, 0.0) if is_float(t) else (1, 0)
        return Operator(name, state, (one, zero), affine(t))
    if name in LIFTED:
        t = state if isinstance(state, str) else state[0][1]
        kind = tuple((f, t) for f in LIFTED[name])
        identity = (-INF, 0.0) if name == 'logsumexp' else (0.0, 0.0, 0.0)
        return Operator(name, kind, identity, None, 'max + log(sum)' if name == 'logsumexp' else 'mean')
    combine = builtin_combine(name, state)
    identity = None if name in ('first', 'last') else scalar_identity(name, state)
    return Operator(name, state, identity, lambda a, b, _: combine(a, b))


# ---- gathers -----------------------------------------------------------------------------------
def gathered(place, name, nodes):
    """(operator, states) of neighbours whose values are in the names of the place, for an operator of this name."""
    entry = (place.run.spec.get('operators') or {}).get(name)
    if entry is None:
        columns = [place.values_of(node) for node in nodes]
        operator = builtin(name, columns[0][1] if len(nodes) == 1 else (('value', columns[0][1]), ('index', columns[1][1])))
    else:
        operator = own(entry, place)
        fields = operator.state if isinstance(operator.state, tuple) else (('', operator.state),)
        columns = []
        for node, (_, kind) in zip(nodes, fields):
            text, t = place.flattened(node, None if typed(place, node) else kind)
            columns.append((place.values(converted(place.compiler, text, t, kind)), kind))
    states = columns[0][0] if len(nodes) == 1 else list(zip(*(values for values, _ in columns)))
    return operator, states


# ---- a spec's own ------------------------------------------------------------------------------
class OperatorScope:
    """Names in `combine`: a, b, the operator's lets, and what is the same for all that is combined."""

    def __init__(self, place, state, lets):
        self.place, self.state, self.lets = place, state, lets
        self.compiler = place.compiler

    def resolve(self, name, wanted=None):
        if name in self.lets:
            t = type_of(self.lets[name], self)
            return f'let_{name}', t
        if name in ('a', 'b'):
            return f'state_{name}', self.state
        return self.place.resolve(name, wanted)

    def neighbour(self, name, offsets):
        raise SpecError('no neighbours in an operator')

    index = gather = at = sum = neighbour


def fields_text(compiler, scope, state, entry):
    """An expression, or one per field, as the text of a value."""
    if not isinstance(state, tuple):
        return compiler.text(parse(entry), scope, state)[0]
    if not isinstance(entry, dict):
        return compiler.text(parse(entry), scope, state)[0]
    return '(' + ''.join(compiler.text(parse(entry[f]), scope, t)[0] + ', ' for f, t in state) + ')'


def own(entry, place):
    state = entry['state']
    state = tuple(state.items()) if isinstance(state, dict) else state
    scope = OperatorScope(place, state, {n: parse(e) for n, e in (entry.get('let') or {}).items()})
    compiler, lines = place.compiler, ['def combine(state_a, state_b, i):']
    contract, compiler.contract = compiler.contract, False
    for name, node in scope.lets.items():
        lines.append(f'    let_{name} = {compiler.text(node, scope)[0]}')
    lines.append(f'    return {fields_text(compiler, scope, state, entry["combine"])}')
    exec('\n'.join(lines), compiler.names)  # pylint: disable=exec-used
    compiler.contract = contract
    identity = None
    if 'identity' in entry:
        identity = uniform_value(place, state, entry['identity'])
    operator = Operator('own', state, identity, compiler.names['combine'])
    operator.contract = contract
    return operator


def uniform_value(place, state, entry):
    """Of params and sizes alone: an identity, an init."""
    text = fields_text(place.compiler, place, state, entry)
    return eval(text, {**place.compiler.names, 'i': 0})  # pylint: disable=eval-used


def map_type(name, t, accumulator):
    """The state's type for a built-in operator."""
    if accumulator is not None:
        return accumulator if not isinstance(t, tuple) else t
    if name in ('add', 'mul') and not isinstance(t, tuple):
        return WIDER.get(t, t)
    return t


# ---- one reduction or scan ---------------------------------------------------------------------
def mapped(place, entry, state):
    """Values of the map at all points, and their type: of the expression if `state` is None, else the state's."""
    if not isinstance(entry, dict):
        node = parse(entry)
        text, t = place.flattened(node, state if isinstance(state, str) and not typed(place, node) else None)
        if isinstance(state, str) and t != state:
            text = converted(place.compiler, text, t, state)
        return place.values(text), (state if isinstance(state, str) else t)
    kinds, columns = dict(state or ()), {}
    for f, e in entry.items():
        node = parse(e)
        wanted = kinds.get(f) if not typed(place, node) else None
        text, t = place.flattened(node, wanted)
        if f in kinds:
            text, t = converted(place.compiler, text, t, kinds[f]), kinds[f]
        columns[f] = (place.values(text), t)
    order = [f for f, _ in state] if state else list(entry)
    return list(zip(*(columns[f][0] for f in order))), tuple((f, columns[f][1]) for f in order)


def typed(place, node):
    return type_of(node, place) not in ('int', 'real')


def lift(name, values, t):
    """A scalar map of logsumexp or welford as states."""
    if name not in LIFTED or isinstance(t, tuple):
        return values
    return [(v, 1.0) for v in values] if name == 'logsumexp' else [(1.0, v, 0.0) for v in values]


def prepare(place, segments, entry, init):
    """(operator, values of the map, init or None) of one reduction; segments: the place of its combine and init."""
    which, accumulator = entry['operator'], entry.get('accumulator')
    if isinstance(which, dict):
        operator = own(which, segments)
        values, _ = mapped(place, entry['map'], operator.state)
    else:
        values, t = mapped(place, entry['map'], None)
        order = {'argmin': ('value', 'index'), 'argmax': ('value', 'index'), 'affine': ('a', 'b'), **LIFTED}.get(which)
        if isinstance(t, tuple) and order:
            names = [f for f, _ in t]
            values = [tuple(v[names.index(f)] for f in order) for v in values]
            t = tuple((f, dict(t)[f]) for f in order)
        kind = map_type(which, t, accumulator)
        if kind != t:
            values = convert_all(values, t, kind)
        if which == 'add' and place.compiler.contract and not isinstance(entry['map'], dict) and is_product(parse(entry['map'])):
            values = [loose(v, kind) for v in values] if t == kind else values
        operator, values = builtin(which, kind), lift(which, values, t)
        operator.mapped, operator.contract = t, place.compiler.contract
    start = None if init is None else uniform_value(segments, operator.state, init)
    return operator, values, start


def loose(v, t):
    """A product that may be added without being rounded."""
    return Span(v - abs(v) * unit(t), v + abs(v) * unit(t)) if v.__class__ is float and v and math.isfinite(v) else v


def convert_all(values, a, b):
    if isinstance(a, str) and a in ('int', 'real'):
        return values
    compiler = Compiler()
    converted(compiler, 'v', a, b)
    convert = compiler.names['to_' + b]
    return [convert(v) for v in values]
