# SPDX-License-Identifier: Apache-2.0
"""operations.py - operators and functions of expressions, by name and type, from docs/spec-language.md ("Operations").

operation(NAME, TYPE) gives a Python function of the operands.  Functions other than sqrt, fma and the roundings may be
off by FUNCTION_ULPS units in the last place (docs/cli.md, "What --verify compares").
"""
import functools
import math
import operator
from fractions import Fraction

from arith import (CONVERT, INF, INTS, NAN, ROUND, UNKNOWN, WRAP, Span, Unknown, ends, hull, int_range, is_float,
                   is_signed, largest, round_exact, same, span, ulp)

FUNCTION_ULPS = 4


# ---- truth values ------------------------------------------------------------------------------
def pick(c, x, y):
    return hull(x, y) if c.__class__ is Unknown else x if c else y


def both(a, b):
    if a.__class__ is Unknown or b.__class__ is Unknown:
        return False if a is False or b is False else UNKNOWN
    return a and b


def negate_bool(a):
    return a if a.__class__ is Unknown else not a


def either(a, b):
    return negate_bool(both(negate_bool(a), negate_bool(b)))


def ordered(compare):
    """compare is < or <=; of two ranges it is decided where all pairs of their values agree."""
    def call(a, b):
        if a.__class__ is Unknown or b.__class__ is Unknown:
            return UNKNOWN
        if a.__class__ is Span or b.__class__ is Span:
            (al, ah), (bl, bh) = ends(a), ends(b)
            if al != al or bl != bl:
                return False
            return True if compare(ah, bl) else UNKNOWN if compare(al, bh) else False
        return compare(a, b)
    return call


less, at_most = ordered(operator.lt), ordered(operator.le)


def equal(a, b):
    if a.__class__ is Unknown or b.__class__ is Unknown:
        return UNKNOWN
    if a.__class__ is Span or b.__class__ is Span:
        (al, ah), (bl, bh) = ends(a), ends(b)
        if al == ah == bl == bh:
            return True
        return False if al != al or bl != bl or ah < bl or bh < al else UNKNOWN
    return a == b


COMPARE = {'==': equal, '!=': lambda a, b: negate_bool(equal(a, b)), '<': less, '<=': at_most,
           '>': lambda a, b: less(b, a), '>=': lambda a, b: at_most(b, a)}


# ---- integers ----------------------------------------------------------------------------------
def quotient(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def decided(function):
    """The function, and UNKNOWN of operands that are not decided, for which Python has no such operation."""
    def checked(*args):
        try:
            return function(*args)
        except TypeError:
            if any(a.__class__ in (Unknown, Span) for a in args):
                return UNKNOWN
            raise
    return checked


def shift_right(a, b, bits):
    return a >> min(b % (1 << bits), bits)


def int_operation(name, t):
    wrap, bits = WRAP[t], INTS[t]
    low, mask = int_range(t)[0], (1 << bits) - 1
    table = {
        '+': lambda a, b: wrap(a + b), '-': lambda a, b: wrap(a - b), '*': lambda a, b: wrap(a * b),
        '/': lambda a, b: wrap(quotient(a, b)) if b else 0,
        '%': lambda a, b: wrap(a - b * quotient(a, b)) if b else 0,
        '<<': lambda a, b: wrap(a << (b & mask)) if (b & mask) < bits else 0,
        '>>': lambda a, b: shift_right(a, b, bits),
        '&': lambda a, b: a & b, '|': lambda a, b: a | b, '^': lambda a, b: a ^ b,
        'neg': lambda a: wrap(-a), '~': lambda a: wrap(~a),
        'min': min, 'max': max, 'clamp': lambda x, lo, hi: min(max(x, lo), hi),
        'abs': lambda a: a if a == low and is_signed(t) else abs(a), 'sign': lambda a: (a > 0) - (a < 0),
        'popcount': lambda a: (a & mask).bit_count(), 'clz': lambda a: bits - (a & mask).bit_length(),
        'ctz': lambda a: ((a & mask & -(a & mask)).bit_length() or bits + 1) - 1,
    }
    return decided(table[name])


BOOL = {'&': lambda a, b: a and b, '|': lambda a, b: a or b, '^': lambda a, b: a ^ b}


# ---- floats ------------------------------------------------------------------------------------
def divide(a, b):
    if b.__class__ is float and b == 0 and a.__class__ is float:
        if a == 0 or a != a:
            return NAN
        return math.copysign(INF, a) * math.copysign(1, b)
    return a / b


def least_of(a, b):
    if a.__class__ is Span or b.__class__ is Span:
        (al, ah), (bl, bh) = ends(a), ends(b)
        return b if al != al else a if bl != bl else Span(min(al, bl), min(ah, bh))
    if a == 0 and b == 0:
        return a if math.copysign(1, a) < 0 else b
    return b if a != a else a if b != b else b if b < a else a


def negated(a):
    return -a


def either_undecided(function):
    def checked(a, b):
        return UNKNOWN if a.__class__ is Unknown or b.__class__ is Unknown else function(a, b)
    return checked


float_min = either_undecided(least_of)


def float_max(a, b):
    return negated(float_min(negated(a), negated(b)))


def absolute(a):
    if a.__class__ is Span:
        return Span(0.0 if a.lo <= 0 <= a.hi else min(abs(a.lo), abs(a.hi)), max(abs(a.lo), abs(a.hi)))
    return a if a.__class__ is Unknown else abs(a)


def sign_of(a):
    if a.__class__ is not float:
        return a if a.__class__ is Unknown else span(float((a.lo > 0) - (a.lo < 0)), float((a.hi > 0) - (a.hi < 0)))
    return a if a != a or a == 0 else math.copysign(1.0, a)


def rounding(function):
    """floor and the like, which keep the sign of zero."""
    def whole(a):
        if a.__class__ is Span:
            return span(whole(a.lo), whole(a.hi))
        if a.__class__ is Unknown or a != a or math.isinf(a):
            return a
        return math.copysign(float(function(a)), a)
    return whole


def fma(a, b, c, t):
    if any(x.__class__ is not float for x in (a, b, c)):
        return ROUND[t](a * b + c)
    if not all(map(math.isfinite, (a, b))):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    return round_exact(exact, t)


def remainder(a, b):
    if a != a or b != b or math.isinf(a) or b == 0:
        return NAN
    return math.fmod(a, b)


def square_root(a):
    if a.__class__ is Span:
        return UNKNOWN if a.lo < 0 else Span(math.sqrt(a.lo), math.sqrt(a.hi))
    return a if a.__class__ is Unknown else NAN if a < 0 else a if a != a else math.sqrt(a)


# ---- functions that are near, not exact --------------------------------------------------------
def guarded(function, overflow=INF):
    """C's results where Python raises."""
    def call(*args):
        try:
            return float(function(*args))
        except OverflowError:
            return overflow
        except ValueError:
            return NAN
    return call


def logarithm(function, edge=0.0):
    return guarded(lambda x: x if x != x else -INF if x == edge else function(x))


def signed_overflow(function):
    return lambda x: guarded(function, math.copysign(INF, x) if x == x else NAN)(x)


def cube_root(x):
    return x if x == 0 or x != x or math.isinf(x) else math.copysign(math.exp(math.log(abs(x)) / 3), x)


def power(x, y):
    if x == 0 and y < 0:
        odd = math.isfinite(y) and y == math.floor(y) and math.fmod(y, 2) != 0
        return math.copysign(INF, x) if odd else INF
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INF if x < 0 and math.fmod(y, 2) != 0 else INF
    except ValueError:
        return NAN


def inverse_root(x):
    return math.copysign(INF, x) if x == 0 else NAN if x < 0 else x if x != x else 1 / math.sqrt(x)


RISING, FALLING, OTHER = 1, -1, 0
NEAR = {
    'rsqrt': (inverse_root, FALLING), 'cbrt': (cube_root, RISING), 'exp': (guarded(math.exp), RISING),
    'exp2': (guarded(lambda x: 2.0 ** x if x == x else x), RISING),
    'exp10': (guarded(lambda x: 10.0 ** x if x == x else x), RISING),
    'expm1': (guarded(math.expm1), RISING), 'log': (logarithm(math.log), RISING),
    'log2': (logarithm(math.log2), RISING), 'log10': (logarithm(math.log10), RISING),
    'log1p': (logarithm(math.log1p, -1.0), RISING), 'sin': (guarded(math.sin), OTHER),
    'cos': (guarded(math.cos), OTHER), 'tan': (guarded(math.tan), OTHER), 'asin': (guarded(math.asin), RISING),
    'acos': (guarded(math.acos), FALLING), 'atan': (math.atan, RISING), 'sinh': (signed_overflow(math.sinh), RISING),
    'cosh': (guarded(math.cosh), OTHER), 'tanh': (math.tanh, RISING), 'erf': (math.erf, RISING),
    'pow': (power, OTHER), 'atan2': (math.atan2, OTHER), 'hypot': (math.hypot, OTHER),
}


def widened(y, t):
    """All that may come for the exact result y."""
    if y != y or math.isinf(y):
        return y
    slack, top = FUNCTION_ULPS * ulp(t, y) + abs(y) * 1e-15, largest(t)
    lo, hi = y - slack, y + slack
    return Span(lo if lo >= -top else -INF, hi if hi <= top else INF)


def near(name, t):
    function, growth = NEAR[name]

    def call(*args):
        if all(a.__class__ is float for a in args):
            return widened(function(*args), t)
        if UNKNOWN in args or not growth:
            return UNKNOWN
        lo, hi = (args[0].lo, args[0].hi) if growth == RISING else (args[0].hi, args[0].lo)
        lo, hi = widened(function(lo), t), widened(function(hi), t)
        return span(ends(lo)[0], ends(hi)[1])
    return call


def float_operation(name, t):
    r = ROUND[t]
    table = {
        '+': lambda a, b: r(a + b), '-': lambda a, b: r(a - b), '*': lambda a, b: r(a * b),
        '/': lambda a, b: r(divide(a, b)), '%': decided(remainder), 'neg': negated,
        'min': float_min, 'max': float_max, 'clamp': lambda x, lo, hi: float_min(float_max(x, lo), hi),
        'abs': absolute, 'sign': sign_of, 'sqrt': lambda a: r(square_root(a)), 'fma': lambda a, b, c: fma(a, b, c, t),
        'floor': rounding(math.floor), 'ceil': rounding(math.ceil), 'trunc': rounding(math.trunc),
        'round': rounding(round), 'isnan': lambda a: a if a.__class__ is Unknown else a != a, 'isinf': decided(math.isinf),
    }
    return table.get(name) or near(name, t)


@functools.lru_cache(None)
def operation(name, t):
    if name in COMPARE:
        return COMPARE[name]
    if t == 'bool':
        return decided(BOOL[name])
    return float_operation(name, t) if is_float(t) else int_operation(name, t)


# name: (number of operands, 'N' any number, 'F' float, 'I' integer)
FUNCTIONS = {**{f: (1, 'F') for f in NEAR}, 'pow': (2, 'F'), 'atan2': (2, 'F'), 'hypot': (2, 'F'),
             'min': (2, 'N'), 'max': (2, 'N'), 'clamp': (3, 'N'), 'abs': (1, 'N'), 'sign': (1, 'N'),
             'sqrt': (1, 'F'), 'fma': (3, 'F'), 'floor': (1, 'F'), 'ceil': (1, 'F'), 'trunc': (1, 'F'),
             'round': (1, 'F'), 'isnan': (1, 'F'), 'isinf': (1, 'F'),
             'popcount': (1, 'I'), 'clz': (1, 'I'), 'ctz': (1, 'I')}
