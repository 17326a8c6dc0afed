# SPDX-License-Identifier: Apache-2.0
"""fold.py - all elements of a segment combined, and all prefixes, with what any order of combination may give.

Where the order cannot change bits the result is a value.  Sums and products of floats become a Span from the
magnitudes and the number of operations, unless every partial result is exact.  logsumexp and welford have bounds of
their own.  Other operators with floats are combined in two orders; where these differ, or where a partial result has
probably been rounded, nothing is known.
"""
import math
from fractions import Fraction

from arith import FLOATS, INF, NAN, UNKNOWN, Span, is_float, largest, least, same, unit
from operations import FUNCTION_ULPS


def has_float(state):
    return any(is_float(t) for _, t in state) if isinstance(state, tuple) else is_float(state)


def fold(operator, values, start, i):
    """The last of the prefixes; None of no elements and no start."""
    values = values if start is None else [start] + values
    if not values:
        return operator.identity
    return folder(operator)(operator, values, i, True)[-1]


def prefixes(operator, values, start, i):
    """Inclusive results, one more in front for the start if there is one."""
    values = values if start is None else [start] + values
    return folder(operator)(operator, values, i, False) if values else []


def folder(operator):
    if operator.name in ('add', 'mul') and is_float(operator.state):
        return sums if operator.name == 'add' else products
    if operator.name in ('logsumexp', 'welford'):
        return exponentials if operator.name == 'logsumexp' else moments
    if operator.name in ('own', 'affine') and has_float(operator.state):
        return two_orders
    return in_order


def in_order(operator, values, i, _):
    combine, s = operator.combine, values[0]
    result = [s]
    for v in values[1:]:
        s = combine(s, v, i)
        result.append(s)
    return result


def two_orders(operator, values, i, last):
    """From the left, and in runs with a run's prefix on the left of its own."""
    partials, combine = in_order(operator, values, i, False), operator.combine
    direct = partials
    run, before, other = max(2, math.isqrt(len(values))), None, []
    for begin in range(0, len(values), run):
        inside = in_order(operator, values[begin:begin + run], i, False)
        if last:
            inside = [None] * (len(inside) - 1) + [tree(combine, values[begin:begin + run], i)]
        inside = inside if before is None else [None if v is None else combine(before, v, i) for v in inside]
        before, other = inside[-1], other + inside
    if last:
        direct, other = [direct[-1]], [other[-1]]
    rounded = [k if not last or k is None else 0 for k in rounded_from(operator.state, values, partials)]
    if operator.contract:
        rounded = [0] * len(rounded)
    return [decided(a, b, [k is not None and k <= n for k in rounded]) for n, (a, b) in enumerate(zip(direct, other))]


def rounded_from(state, values, partials):
    """Per component the first of the partial results that uses all digits of its type and is none of the values: another
    order may round otherwise, whatever two orders gave.  None: there is none."""
    if not isinstance(state, tuple):
        state, values, partials = (('', state),), [(v,) for v in values], [(v,) for v in partials]
    return [first_rounded(t, [v[c] for v in values], [v[c] for v in partials]) for c, (_, t) in enumerate(state)]


def first_rounded(t, values, partials):
    if not is_float(t):
        return None
    given = {v for v in values if v.__class__ is float}
    for k, v in enumerate(partials):
        if v.__class__ is float and math.isfinite(v) and v not in given and int(math.frexp(v)[0] * 2 ** FLOATS[t][0]) & 1:
            return k
    return None


def decided(a, b, rounded):
    if isinstance(a, tuple):
        return tuple(x if same(x, y) and not r else UNKNOWN for x, y, r in zip(a, b, rounded))
    return a if same(a, b) and not rounded[0] else UNKNOWN


def tree(combine, values, i):
    while len(values) > 1:
        pairs = [combine(values[k], values[k + 1], i) for k in range(0, len(values) - 1, 2)]
        values = pairs + values[len(pairs) * 2:]
    return values[0]


# ---- sums of floats ----------------------------------------------------------------------------
def quantum_of(values):
    """The exponent of a power of two that divides all values."""
    least_bit = 0
    for v in values:
        least_bit = max(least_bit, v.as_integer_ratio()[1].bit_length() - 1)
    return -least_bit


def special(values):
    """The sum from the first NaN or infinity on, per element; None before it."""
    found, result = None, []
    for v in values:
        if v.__class__ is not float:
            found = UNKNOWN
        elif not math.isfinite(v) and found is not UNKNOWN:
            found = v if found is None else found + v
        result.append(found)
    return result


def middle(v):
    if v.__class__ is not Span:
        return v
    return UNKNOWN if math.isinf(v.lo) or math.isinf(v.hi) else (v.lo + v.hi) / 2


def spread(v):
    return (v.hi - v.lo) / 2 * 1.0000001 if v.__class__ is Span else 0.0


def sums(operator, values, _, last):
    t = operator.state
    slack = [spread(v) for v in values]
    centre = [middle(v) for v in values]
    odd = special(centre)
    finite = [v if v.__class__ is float and math.isfinite(v) else 0.0 for v in centre]
    quantum = quantum_of(finite)
    exact = [v.as_integer_ratio() for v in finite]
    whole = [n * ((1 << -quantum) // d) for n, d in exact]
    total, size, loose, result, limit, top = 0, 0, 0.0, [], 1 << FLOATS[t][0], Fraction(largest(t))
    minus = 0  # how many at the beginning are -0
    while minus < len(finite) and slack[minus] == 0 and finite[minus] == 0 and math.copysign(1, finite[minus]) < 0:
        minus += 1
    for k, (w, extra) in enumerate(zip(whole, slack)):
        total, size, loose = total + w, size + abs(w), loose + extra
        if last and k + 1 < len(whole):
            continue
        if odd[k] is not None:  # in another order the rest may overflow to the other infinity
            open_ended = odd[k] == odd[k] and Fraction(size, 1 << -quantum) > top
            result.append(UNKNOWN if open_ended else odd[k])
        elif k < minus:
            result.append(Span(-0.0, 0.0))  # an identity may have been added
        elif size <= limit and loose == 0 and Fraction(size, 1 << -quantum) <= top:
            result.append(float(Fraction(total, 1 << -quantum)))
        else:
            result.append(near_sum(Fraction(total, 1 << -quantum), Fraction(size, 1 << -quantum), k, loose, t, top))
    return result


def near_sum(total, size, steps, loose, t, top):
    if size + Fraction(loose) > top / 2:
        return UNKNOWN
    relative = steps * unit(t) * 1.01 / (1 - min(0.5, steps * unit(t)))
    slack = relative * (float(size) + loose) + loose + steps * least(t) * (t == 'f64')
    value = float(total)
    return Span(value - slack - abs(value) * 2e-16, value + slack + abs(value) * 2e-16)


# ---- products ----------------------------------------------------------------------------------
def products(operator, values, _, last):
    t, result = operator.state, []
    p, emin, emax = FLOATS[t]
    value, up, down, bits, known = 1.0, 0, 0, 0, True
    for k, v in enumerate(values):
        known = known and v.__class__ is float and math.isfinite(v)
        if known and v != 0:
            m, e = math.frexp(v)
            up, down = up + max(e, 0), down + min(e - 1, 0)
            bits += significant(m)
        safe = known and emin < down and up < emax
        value = value * v if safe else NAN
        result.append(product(value, bits <= p, k, t) if safe else UNKNOWN)
    return result


def product(value, exact, steps, t):
    slack = 0.0 if exact else abs(value) * (steps * unit(t) * 1.02 + 1e-15 * (steps + 1))
    return near(value, slack)


def significant(m):
    """Bits that a factor adds to those of a product: none for powers of two."""
    n = int(abs(m) * 2 ** 53)
    bits = n.bit_length() - (n & -n).bit_length() + 1
    return bits if bits > 1 else 0


# ---- logsumexp and welford ---------------------------------------------------------------------
def exponentials(operator, values, _, last):
    t = operator.state[0][1]
    top, total, result, lowest = -INF, 0.0, [], INF
    for k, (m, s) in enumerate(values):
        if m.__class__ is not float or s.__class__ is not float or not math.isfinite(m) or not math.isfinite(s):
            return result + [(UNKNOWN, UNKNOWN)] * (len(values) - k)
        new = m if m > top or (m == top and math.copysign(1, m) > 0) else top  # 0 is larger than -0
        total = total * math.exp(top - new) + s * math.exp(m - new)
        top, lowest = new, min(lowest, m)
        step = unit(t) * (2 * FUNCTION_ULPS + 4 + 2 * abs(top - lowest))
        slack = total * min(1.0, 1.1 * k * step) + k * least(t)
        result.append((top, Span(total - slack, total + slack) if k else total))
    return result


def moments(operator, values, _, last):
    t = operator.state[0][1]
    result, n, centre, m2, big = [], 0.0, 0.0, 0.0, 0.0
    for k, (c, mean, own_m2) in enumerate(values):
        if any(v.__class__ is not float or not math.isfinite(v) for v in (c, mean, own_m2)) or c < 0:
            return result + [(UNKNOWN, UNKNOWN, UNKNOWN)] * (len(values) - k)
        if k == 0:
            n, centre, m2 = c, mean, own_m2
        elif n + c:
            d, w = mean - centre, c / (n + c)
            n, centre, m2 = n + c, centre + d * w, m2 + own_m2 + d * d * (n * w)
        big = max(big, abs(mean))
        slack = unit(t) * 4 * k
        if n >= 1 / unit(t) or n * big * big > largest(t) / 8:
            result.append((UNKNOWN, UNKNOWN, UNKNOWN))
            continue
        wide = 8 * slack * (m2 + n * big * big) + k * least(t)
        result.append((n, near(centre, slack * big + k * least(t)), near(m2, wide)))
    return result


def near(value, slack):
    return Span(value - slack, value + slack) if slack else value
