# SPDX-License-Identifier: Apache-2.0
"""Values that stand for an element's while a function is traced."""
import math
import operator
from collections.abc import Mapping

from ._errors import SpecError

# How tightly an expression binds, as in the spec language's grammar.
PRECEDENCE = {"or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8,
              "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}
PREFIX, ATOM = 11, 12
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Value:
    """An expression of the spec language: a name, or an operation on others.  _type: a text, or a dict of fields; None where it is not known."""

    __slots__ = ("_form", "_level", "_parts", "_type")
    __hash__ = object.__hash__

    def __init__(self, form, level=ATOM, parts=(), type=None):
        self._form, self._level, self._parts, self._type = form, level, parts, type

    def __repr__(self):
        return f"<ptxgen value {text(self)}>"

    def __getattr__(self, name):
        fields = self._type if isinstance(self._type, Mapping) else {}
        if name.startswith("_") or self._parts and name not in fields:
            raise AttributeError(f"'{text(self)}' has no field '{name}'" if self._parts else name)
        return Value(f"{self._form}.{name}", ATOM, self._parts, fields.get(name, self._type if name == "total" else None))

    def __getitem__(self, at):
        if self._parts:
            raise TypeError(f"'{text(self)}' is no input, and has no neighbours")
        try:
            places = [str(operator.index(i)) for i in (at if isinstance(at, tuple) else (at,))]
        except TypeError:
            raise TypeError(f"neighbours of '{self._form}' are at fixed distances, as {self._form}[-1]; ops.at({self._form}, i) reads at a place "
                            "that is computed") from None
        return Value(f"{self._form}[{', '.join(places)}]", type=self._type)

    def __bool__(self):
        raise TypeError(f"'{text(self)}' is known when a kernel runs: write where(condition, x, y) for a choice, "
                        "ops.min and ops.max for min and max, and & | ~ for and, or, not")

    def __float__(self, *_):
        raise TypeError(f"'{text(self)}' is known when a kernel runs, and is no number before: the functions of ops take it, as ops.sqrt(x) and ops.i32(x)")
    __int__ = __index__ = __round__ = __float__

    def __iter__(self):
        raise TypeError(f"'{text(self)}' is one element's value, and has no parts to go through")

    def __neg__(self):
        return Value("-{}", PREFIX, (self,))

    def __pos__(self):
        return self

    def __invert__(self):
        return Value("not {}", PRECEDENCE["not"], (self,), "bool") if self._type == "bool" else Value("~{}", PREFIX, (self,))

    def __floordiv__(self, other):
        raise TypeError("the spec language has no //: write x / y for integers, which leaves out the remainder, and ops.floor(x / y) for floats")
    __rfloordiv__ = __divmod__ = __rdivmod__ = __floordiv__

    def __abs__(self):
        return call("abs", self)

    def __pow__(self, other):
        return power(self, other)

    def __rpow__(self, other):
        return power(other, self)

    def __array_ufunc__(self, function, how, *args, **words):
        """NumPy's numbers on the left leave the operation to the methods here; its functions are refused, because some mean something else."""
        name = function.__name__
        if name in OPERATORS and how == "__call__" and not words:
            return power(*args) if name == "power" else binary(OPERATORS[name], *args)
        raise TypeError(f"numpy.{name} takes no '{text(self)}', which is known when a kernel runs: write "
                        + (f"ops.{FUNCTIONS[name]}" if name in FUNCTIONS else "it with the functions of ops"))


def number(x):
    """What counts as a number, as one of Python's; None for anything else.  Scalars of NumPy and its like say their own."""
    if hasattr(x, "dtype"):
        x = x.item() if getattr(x, "shape", None) == () else None
    for convert, method in ((operator.index, "__index__"), (float, "__float__")):
        if not isinstance(x, (int, float)) and hasattr(x, method):
            x = convert(x)
    return x if isinstance(x, (int, float)) else None


def value(x):
    """A number, a truth value or a Value as a Value."""
    if isinstance(x, Value):
        return x
    n = number(x)
    if n is None:
        raise TypeError(f"{x!r} is no number and no traced value")
    if isinstance(n, bool):
        return Value("true" if n else "false", type="bool")
    size = "nan" if n != n else "inf" if abs(n) == math.inf else repr(abs(n))
    negative = math.copysign(1, n) < 0 if isinstance(n, float) else n < 0
    return Value("-{}", PREFIX, (Value(size),)) if negative else Value(size)


def all_bool(*args):
    return "bool" if all(x._type == "bool" for x in args) else None


def call(name, *args):
    args = tuple(map(value, args))
    type_ = "bool" if name in ("isnan", "isinf", "bool") else all_bool(*args[1:]) if name == "select" else None
    return Value(f"{name}({', '.join(['{}'] * len(args))})", ATOM, args, type_)


def binary(symbol, left, right):
    left, right = value(left), value(right)
    type_ = "bool" if symbol in COMPARISONS else all_bool(left, right) if symbol in "&|^" else None
    return Value("{} " + symbol + " {}", PRECEDENCE[symbol], (left, right), type_)


def power(base, exponent):
    """A few factors are multiplied: that is exact for integers, and pow() is many operations."""
    n = None if isinstance(exponent, Value) else number(exponent)
    if not isinstance(n, int) or n not in (2, 3, 4):
        return call("pow", base, exponent)
    square = binary("*", base, base)
    return square if n == 2 else binary("*", square, base if n == 3 else square)


def methods():
    names = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "%": "mod", "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift"}
    for symbol, name in names.items():
        setattr(Value, f"__{name}__", lambda a, b, symbol=symbol: binary(symbol, a, b))
        setattr(Value, f"__r{name}__", lambda a, b, symbol=symbol: binary(symbol, b, a))
    for symbol, name in {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}.items():
        setattr(Value, f"__{name}__", lambda a, b, symbol=symbol: binary(symbol, a, b))


methods()

# By NumPy's names: the operators, and the functions of `ops` that are nearest.
OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "remainder": "%", "power": "**", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
             "left_shift": "<<", "right_shift": ">>", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
FUNCTIONS = {"maximum": "max", "minimum": "min", "fmax": "max", "fmin": "min", "absolute": "abs", "fabs": "abs", "rint": "round", "logical_not": "logical_not",
             **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "tan2")},
             **{name: name for name in "cbrt ceil cos cosh exp exp2 expm1 floor hypot isinf isnan log log10 log1p log2 sign sin sinh sqrt tan tanh trunc".split()}}


def text(x, lets=None):
    """The expression; parts that are in `lets` by the names that they have there."""
    try:
        return shown(value(x), lets or {})[0]
    except RecursionError:
        raise SpecError("an expression has more operations inside each other than a spec may have, which are 512") from None


def shown(x, lets):
    if id(x) in lets:
        return lets[id(x)], ATOM
    parts = []
    for i, part in enumerate(x._parts):
        inner, level = shown(part, lets)
        tight = x._level + (i > 0 and x._level < PREFIX or x._level == PRECEDENCE["=="])
        parts.append(f"({inner})" if x._level < ATOM and level < tight else inner)
    return (x._form.format(*parts) if x._parts else x._form), x._level


def shared(roots):
    """The operations that are used more than once, each after what it uses itself."""
    count, order, seen = {}, [], set()
    stack = [(value(root), False) for root in reversed(roots)]
    while stack:
        x, done = stack.pop()
        if done:
            order.append(x)
            continue
        count[id(x)] = count.get(id(x), 0) + 1
        if id(x) not in seen:
            seen.add(id(x))
            stack.append((x, True))
            stack.extend((part, False) for part in reversed(x._parts))
    return [x for x in order if x._parts and count[id(x)] > 1]
