# SPDX-License-Identifier: Apache-2.0
"""Values that stand for an element's while a function is traced."""
import math
import operator

# How tightly an expression binds, as in the spec language's grammar.
PRECEDENCE = {"or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8,
              "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}
PREFIX, ATOM = 11, 12
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Value:
    """An expression of the spec language: a name, or an operation on others.  _truth: it is known to be a bool."""

    __slots__ = ("_form", "_level", "_parts", "_truth")
    __hash__ = object.__hash__

    def __init__(self, form, level=ATOM, parts=(), truth=False):
        self._form, self._level, self._parts, self._truth = form, level, parts, truth

    def __repr__(self):
        return f"<ptxgen value {text(self)}>"

    def __getattr__(self, name):
        if name.startswith("_") or self._parts:
            raise AttributeError(f"'{text(self)}' has no field '{name}'" if self._parts else name)
        return Value(f"{self._form}.{name}")

    def __getitem__(self, at):
        if self._parts:
            raise TypeError(f"'{text(self)}' is no input, and has no neighbours")
        try:
            places = [str(operator.index(i)) for i in (at if isinstance(at, tuple) else (at,))]
        except TypeError:
            raise TypeError(f"neighbours of '{self._form}' are at fixed distances, as {self._form}[-1]; ops.at({self._form}, i) reads at a place "
                            "that is computed") from None
        return Value(f"{self._form}[{', '.join(places)}]", truth=self._truth)

    def __bool__(self):
        raise TypeError(f"'{text(self)}' is known when a kernel runs: write where(condition, x, y) for a choice, and & | ~ for and, or, not")

    def __iter__(self):
        raise TypeError(f"'{text(self)}' is one element's value, and has no parts to go through")

    def __neg__(self):
        return Value("-{}", PREFIX, (self,))

    def __invert__(self):
        return Value("not {}", PRECEDENCE["not"], (self,), True) if self._truth else Value("~{}", PREFIX, (self,))

    def __floordiv__(self, other):
        raise TypeError("the spec language has no //: x / y of integers leaves out the remainder, towards zero; ops.floor(x / y) is for floats")
    __rfloordiv__ = __floordiv__

    def __abs__(self):
        return call("abs", self)

    def __pow__(self, other):
        return call("pow", self, other)

    def __rpow__(self, other):
        return call("pow", other, self)


def value(x):
    """A number, a truth value or a Value as a Value."""
    if isinstance(x, Value):
        return x
    if hasattr(x, "dtype") and getattr(x, "shape", None) == () and callable(getattr(x, "item", None)):
        x = x.item()  # a scalar of NumPy
    if isinstance(x, bool):
        return Value("true" if x else "false", truth=True)
    if isinstance(x, (int, float)):
        number = "nan" if x != x else "inf" if abs(x) == math.inf else repr(abs(x))
        return Value(number) if math.copysign(1, x) > 0 else Value("-{}", PREFIX, (Value(number),))
    raise TypeError(f"{x!r} is no number and no traced value")


def call(name, *args):
    args = tuple(map(value, args))
    truth = name in ("isnan", "isinf", "bool") or name == "select" and len(args) == 3 and args[1]._truth and args[2]._truth
    return Value(f"{name}({', '.join(['{}'] * len(args))})", ATOM, args, truth)


def binary(symbol, left, right):
    left, right = value(left), value(right)
    truth = symbol in COMPARISONS or symbol in "&|^" and left._truth and right._truth
    return Value("{} " + symbol + " {}", PRECEDENCE[symbol], (left, right), truth)


def methods():
    names = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "%": "mod", "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift"}
    for symbol, name in names.items():
        setattr(Value, f"__{name}__", lambda a, b, symbol=symbol: binary(symbol, a, b))
        setattr(Value, f"__r{name}__", lambda a, b, symbol=symbol: binary(symbol, b, a))
    for symbol, name in {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}.items():
        setattr(Value, f"__{name}__", lambda a, b, symbol=symbol: binary(symbol, a, b))


methods()


def text(x, lets=None):
    """The expression; parts that are in `lets` by the names that they have there."""
    return shown(value(x), lets or {})[0]


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
