# SPDX-License-Identifier: Apache-2.0
"""The functions of the spec language on traced values: ops.max(a.best, b.best), ops.f32(i), ops.where(x > 0, x, 0)."""
from ._values import ATOM, PRECEDENCE, Value, call, value


def where(condition, x, y):
    """x where the condition holds, otherwise y."""
    return call("select", condition, x, y)


def logical_not(x):
    """Whether a condition does not hold."""
    return Value("not {}", PRECEDENCE["not"], (value(x),), "bool")


def index(dimension):
    """The element's position along a dimension, an i64 from 0."""
    return Value(f"index({dimension if isinstance(dimension, str) else dimension._form})")


def at(array, *places):
    """The element of an input at a place that is computed, an index per dimension."""
    if not isinstance(array, Value) or array._parts or not places:
        raise TypeError("at() reads an input at a place: ops.at(x, i), with an index per dimension")
    return Value(f"at({array._form}, {', '.join(['{}'] * len(places))})", ATOM, tuple(map(value, places)), array._type)


def expression(source):
    """An expression of the spec language as it is, for what has no function here."""
    return Value("({})", parts=(Value(source),))


NAMES = ("abs acos asin atan atan2 cbrt ceil clamp clz cos cosh ctz erf exp exp10 exp2 expm1 floor fma hypot isinf isnan log log10 log1p "
         "log2 max min popcount pow round rsqrt select sign sin sinh sqrt tan tanh trunc "
         "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64").split()


def __getattr__(name):
    if name not in NAMES:
        raise AttributeError(f"the spec language has no function '{name}'")

    def function(*args):
        return call(name, *args)

    function.__name__ = name
    globals()[name] = function
    return function


def __dir__():
    return ["at", "expression", "index", "logical_not", "where", *NAMES]
