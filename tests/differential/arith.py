# SPDX-License-Identifier: Apache-2.0
"""arith.py - scalar types and operations of the spec language, written from docs/spec-language.md.

Values are Python ints, bools and floats.  A float operation is computed in double and rounded once to its type, which
is right for + - * / and sqrt of f16, bf16 and f32; f64 is Python's own, and fma goes through fractions.

What the page leaves open is carried along: a Span is a range that holds every permitted result, UNKNOWN is anything.
"""
import math
import struct
from fractions import Fraction

INF, NAN = math.inf, math.nan
INTS = {'i8': 8, 'i16': 16, 'i32': 32, 'i64': 64, 'u8': 8, 'u16': 16, 'u32': 32, 'u64': 64}
# significant bits, least exponent of a normal number, largest exponent
FLOATS = {'f16': (11, -14, 15), 'bf16': (8, -126, 127), 'f32': (24, -126, 127), 'f64': (53, -1022, 1023)}
NUMBERS = list(INTS) + list(FLOATS)
TYPES = NUMBERS + ['bool']
BYTES = {**{t: b // 8 for t, b in INTS.items()}, 'f16': 2, 'bf16': 2, 'f32': 4, 'f64': 8, 'bool': 1}


def is_int(t):
    return t in INTS


def is_float(t):
    return t in FLOATS


def is_signed(t):
    return t[0] == 'i'


def int_range(t):
    bits = INTS[t]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed(t) else (0, (1 << bits) - 1)


def largest(t):
    p, _, emax = FLOATS[t]
    return math.ldexp(2.0 - math.ldexp(1.0, 1 - p), emax)


def unit(t):
    """Half the distance from 1 to the next number: the relative error of one rounding."""
    return math.ldexp(1.0, -FLOATS[t][0])


def least(t):
    """The smallest number above zero."""
    p, emin, _ = FLOATS[t]
    return math.ldexp(1.0, emin - p + 1)


def ulp(t, x):
    p, emin, _ = FLOATS[t]
    if x == 0 or x != x or math.isinf(x):
        return least(t)
    return math.ldexp(1.0, max(math.frexp(x)[1] - 1, emin) - p + 1)


def lossless(a, b):
    """Does type b hold every value of type a?"""
    if a == b or a == 'bool':
        return True
    if b == 'bool' or is_float(a) and is_int(b):
        return False
    if is_int(a) and is_int(b):
        (al, ah), (bl, bh) = int_range(a), int_range(b)
        return bl <= al and ah <= bh
    if is_int(a):
        return INTS[a] - is_signed(a) <= FLOATS[b][0] and (INTS[a] <= 16 or FLOATS[b][2] >= 127) and \
            int_range(a)[1] <= largest(b)
    return FLOATS[a][0] <= FLOATS[b][0] and FLOATS[a][2] <= FLOATS[b][2] and FLOATS[a][1] >= FLOATS[b][1]


# ---- what is not decided -----------------------------------------------------------------------
class Unknown:
    """Any value at all; every operation with it is as open."""

    def _same(self, *_):
        return self
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _same
    __getitem__ = rounded = _same

    def __repr__(self):
        return 'UNKNOWN'

    def __bool__(self):
        raise TypeError('an undecided value was taken for true or false')


UNKNOWN = Unknown()


class Span:
    """A float between lo and hi."""
    __slots__ = ('lo', 'hi')

    def __init__(self, lo, hi):
        self.lo, self.hi = lo, hi

    def __repr__(self):
        return f'Span({self.lo!r}, {self.hi!r})'

    def __neg__(self):
        return Span(-self.hi, -self.lo)

    def __add__(self, other):
        lo, hi = ends(other)
        if self.hi == INF and lo == -INF or self.lo == -INF and hi == INF:
            return UNKNOWN
        return span(self.lo + lo, self.hi + hi)
    __radd__ = __add__

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        lo, hi = ends(other)
        if INF in (-self.lo, self.hi) and lo <= 0 <= hi or INF in (-lo, hi) and self.lo <= 0 <= self.hi:
            return UNKNOWN
        return span(*around([self.lo * lo, self.lo * hi, self.hi * lo, self.hi * hi]))
    __rmul__ = __mul__

    def __truediv__(self, other):
        return divide_spans(self, other)

    def __rtruediv__(self, other):
        return divide_spans(other, self)

    def rounded(self, t):
        slack, top = 1.0001 * unit(t), largest(t)
        lo = self.lo if math.isinf(self.lo) else self.lo - abs(self.lo) * slack - least(t)
        hi = self.hi if math.isinf(self.hi) else self.hi + abs(self.hi) * slack + least(t)
        return span(lo if lo > -top else -INF, hi if hi < top else INF)


def ends(x):
    if x.__class__ is Span:
        return x.lo, x.hi
    return (x, x) if x.__class__ in (float, int) else (NAN, NAN)


def around(values):
    return (NAN, NAN) if any(v != v for v in values) else (min(values), max(values))


def span(lo, hi):
    if lo != lo or hi != hi:
        return UNKNOWN
    return lo if lo == hi and math.isinf(lo) else Span(lo, hi)


def divide_spans(a, b):
    (al, ah), (bl, bh) = ends(a), ends(b)
    if not (bl > 0 or bh < 0):
        return UNKNOWN
    return span(*around([x / y for x in (al, ah) for y in (bl, bh)]))


def hull(a, b):
    if same(a, b):
        return a
    if a.__class__ is tuple and b.__class__ is tuple:
        return tuple(map(hull, a, b))
    if a.__class__ in (float, Span) and b.__class__ in (float, Span):
        (al, ah), (bl, bh) = ends(a), ends(b)
        return span(*around([al, ah, bl, bh]))
    return UNKNOWN


def same(a, b):
    """The same value; all NaN are one, the zeros are two."""
    if a.__class__ is float and b.__class__ is float:
        return a == b and math.copysign(1, a) == math.copysign(1, b) or a != a and b != b
    if a.__class__ is tuple and b.__class__ is tuple:
        return all(map(same, a, b))
    return a is b or a.__class__ is b.__class__ and a.__class__ in (int, bool) and a == b


# ---- rounding ----------------------------------------------------------------------------------
def round_f64(x):
    return x if x.__class__ is float else x.rounded('f64')


def round_packed(code, t):
    packer = struct.Struct(code)
    pack, unpack = packer.pack, packer.unpack

    def rounder(x):
        if x.__class__ is float:
            try:
                return unpack(pack(x))[0]
            except OverflowError:
                return math.copysign(INF, x)
        return x.rounded(t)
    return rounder


def round_bf16(x):
    if x.__class__ is not float:
        return x.rounded('bf16')
    if x == 0 or x != x or math.isinf(x):
        return x
    quantum = max(math.frexp(x)[1] - 8, -133)
    if quantum > 120:
        return math.copysign(INF, x)
    y = math.ldexp(float(round(math.ldexp(x, -quantum))), quantum)
    y = math.copysign(y, x)
    return math.copysign(INF, x) if abs(y) > largest('bf16') else y


ROUND = {'f16': round_packed('<e', 'f16'), 'bf16': round_bf16, 'f32': round_packed('<f', 'f32'), 'f64': round_f64}


def round_exact(x, t):
    """A Fraction other than zero to the nearest number of the type, ties to even."""
    p, emin, _ = FLOATS[t]
    sign, x = (-1.0, -x) if x < 0 else (1.0, x)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    e = e - 1 if x < Fraction(2) ** e else e
    quantum = max(e, emin) - p + 1
    n = round(x / Fraction(2) ** quantum)
    if n == 0:
        return 0.0 * sign
    return sign * (INF if n * Fraction(2) ** quantum > Fraction(largest(t)) else math.ldexp(float(n), quantum))


def wrapper(t):
    bits = INTS[t]
    mask, half = (1 << bits) - 1, 1 << bits - 1
    if is_signed(t):
        return lambda x: x if x.__class__ is Unknown else ((x + half) & mask) - half
    return lambda x: x if x.__class__ is Unknown else x & mask


WRAP = {t: wrapper(t) for t in INTS}


# ---- conversions -------------------------------------------------------------------------------
def to_int(t):
    lo, hi = int_range(t)
    wrap = WRAP[t]

    def convert(x):
        if x.__class__ is float:
            if x != x:
                return 0
            return (lo if x < 0 else hi) if math.isinf(x) else min(max(math.trunc(x), lo), hi)
        if x.__class__ is Span:
            a, b = convert(x.lo), convert(x.hi)
            return a if a == b else UNKNOWN
        return x if x.__class__ is Unknown else wrap(int(x))
    return convert


def to_float(t):
    rounder = ROUND[t]

    def convert(x):
        if x.__class__ in (int, bool):
            return float(x) if abs(x) < 256 else round_exact(Fraction(x), t)
        if x.__class__ is Span:
            return span(convert(x.lo), convert(x.hi))
        return rounder(x)
    return convert


def to_bool(x):
    if x.__class__ is Span:
        return UNKNOWN if x.lo <= 0 <= x.hi else True
    return x if x.__class__ is Unknown else x != 0


def converter(t):
    return to_bool if t == 'bool' else to_int(t) if is_int(t) else to_float(t)


CONVERT = {t: converter(t) for t in TYPES}
