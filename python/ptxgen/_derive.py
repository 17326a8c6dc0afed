# SPDX-License-Identifier: Apache-2.0
"""The chain rule on expressions, from a value back to what it is computed from."""
import math
import random

from ._errors import UnsupportedError
from ._nodes import FLOATS, TYPES, const, make, one, rebuilt, walk, zero

CHOICES = ("if", "select", "min", "max", "clamp", "abs")
FLAT = ("floor", "ceil", "round", "trunc", "sign")  # zero wherever they have a derivative
SUMS = ("sum", "product", "least", "greatest", "all", "any")


def is_float(type):
    return type in FLOATS


def function(name, *args):
    return make(name, *args)


# What a function's argument gets, by its argument x, its value y and what the value gets, g; k(c) is a number.
ONE = {
    "sqrt": lambda x, y, g, k: g / (k(2.0) * y), "rsqrt": lambda x, y, g, k: -(g * k(0.5) * y / x), "cbrt": lambda x, y, g, k: g / (k(3.0) * y * y),
    "exp": lambda x, y, g, k: g * y, "exp2": lambda x, y, g, k: g * y * k(math.log(2)), "exp10": lambda x, y, g, k: g * y * k(math.log(10)),
    "expm1": lambda x, y, g, k: g * (y + k(1.0)), "log": lambda x, y, g, k: g / x, "log2": lambda x, y, g, k: g / (x * k(math.log(2))),
    "log10": lambda x, y, g, k: g / (x * k(math.log(10))), "log1p": lambda x, y, g, k: g / (k(1.0) + x),
    "sin": lambda x, y, g, k: g * function("cos", x), "cos": lambda x, y, g, k: -(g * function("sin", x)), "tan": lambda x, y, g, k: g * (k(1.0) + y * y),
    "asin": lambda x, y, g, k: g / function("sqrt", k(1.0) - x * x), "acos": lambda x, y, g, k: -(g / function("sqrt", k(1.0) - x * x)),
    "atan": lambda x, y, g, k: g / (k(1.0) + x * x), "sinh": lambda x, y, g, k: g * function("cosh", x), "cosh": lambda x, y, g, k: g * function("sinh", x),
    "tanh": lambda x, y, g, k: g * (k(1.0) - y * y), "erf": lambda x, y, g, k: g * k(2 / math.sqrt(math.pi)) * function("exp", -(x * x)),
    "abs": lambda x, y, g, k: g * function("sign", x),
}


def chosen(condition, g):
    """g for each of two values, of which the condition takes the first: with when it is so."""
    return (lambda: (g, condition)), (lambda: (g, opposite(condition)))


def opposite(condition):
    return condition.args[0] if condition.op == "not" else make("not", condition)


def under(condition, g, other=None):
    """g where the condition holds (None: everywhere), the other value (0) elsewhere."""
    if condition is None:
        return g
    pair = g, const(0.0, g.type) if other is None else other
    return make("select", opposite(condition), *reversed(pair), type=g.type) if condition.op == "not" else make("select", condition, *pair, type=g.type)


def settled(gets):
    """What a node gets, everywhere.  gets: (what, under which condition, whether it is 0 elsewhere already)."""
    g, when, done = gets
    return g if done else under(when, g)


def joined(one_, two):
    """The sum of what a node gets in two ways."""
    (g, when, done), (h, then, also) = one_, two
    if when is then:
        return g + h, when, done and also
    if when is not None and then is opposite(when):
        return under(when, g, h), None, False
    return settled(one_) + settled(two), None if when is None or then is None else make("or", when, then), True


def parts_of(node, g):
    """What each argument gets, as functions that make it where it is needed: alone, or with the condition under which it gets that."""
    def k(x):
        return const(x, node.type)

    op, args = node.op, node.args
    x, y = (args + (None, None))[:2]
    if op in ONE:
        return [lambda: ONE[op](x, node, g, k)]
    if op in ("if", "select"):
        return [None, *chosen(args[0], g)] if is_float(node.type) else []
    if op in ("min", "max"):
        return chosen(make("<=" if op == "min" else ">=", x, y), g)
    if op == "clamp":
        inside = make("and", make(">", x, args[1]), make("<", x, args[2]))
        low, high = make("<=", x, args[1]), make(">=", x, args[2])
        return [lambda: (g, inside), lambda: (g, low), lambda: (g, make("and", high, make("not", low)))]
    rules = {
        "neg": lambda: [lambda: -g], "+": lambda: [lambda: g] * 2, "-": lambda: [lambda: g, lambda: -g], "*": lambda: [lambda: g * y, lambda: g * x],
        "/": lambda: [lambda: g / y, lambda: -(g * node / y)], "%": lambda: [lambda: g, lambda: -(g * function("trunc", x / y))],
        "fma": lambda: [lambda: g * y, lambda: g * x, lambda: g],
        "pow": lambda: [lambda: g * y * function("pow", x, y - k(1.0)), lambda: g * node * function("log", x)],
        "hypot": lambda: [lambda: g * x / node, lambda: g * y / node],
        "atan2": lambda: [lambda: g * y / (x * x + y * y), lambda: -(g * x / (x * x + y * y))],
    }
    if op in rules:
        return rules[op]()
    if op in TYPES:
        return [lambda: make(x.type, g)]
    return None


def pulled(root, seed, leaves, into=None):
    """What each leaf gets when the root gets the seed: a dict, added to `into`.  leaves: whether a node is one that counts.

    What a branch gets is chosen at the leaves, after all factors: a factor may be no number where the branch is not taken, as that of sqrt(x) below 0."""
    into = {} if into is None else into
    order = walk([root])
    active = set()
    for node in order:
        if leaves(node) or any(part in active for part in node.args) and is_float(node.type) and node.op not in FLAT:
            active.add(node)
    gets = {root: (seed, None, False)}
    for node in reversed(order):
        g, when, done = gets.pop(node, (None, None, False))
        if g is None or node not in active or zero(g):
            continue
        if leaves(node):
            g = settled((g, when, done))
            into[node] = into[node] + g if node in into else g
            continue
        parts = parts_of(node, g)
        if parts is None:
            raise UnsupportedError(f"{node.op}() has no gradient that follows from the spec")
        for part, get in zip(node.args, parts):
            if part in active:
                more = get()
                more, then = more if isinstance(more, tuple) else (more, None)
                both = then if when is None or then is when else when if then is None else make("and", when, then)
                more = more, both, done and more is g and then is None
                gets[part] = joined(gets[part], more) if part in gets else more
    return into


def depends(root, leaves):
    return any(leaves(node) for node in walk([root]))


def replaced(root, new):
    """The expression with other nodes for some of its leaves."""
    return rebuilt(root, lambda node, args: new[node] if node in new else node if args == node.args else make(node.op, *args, type=node.type))


def shifted(root, step, dims):
    """The expression at a place that lies a step further: a dict from dimensions to distances.  dims: those of each input."""
    def change(node, args):
        if node.op == "read":
            return make("read", *args[:2], tuple(o + step.get(d, 0) for o, d in zip(args[2], dims[args[0]])), type=node.type)
        if node.op == "index" and step.get(args[0]):
            return node + const(step[args[0]], "i64") if step[args[0]] > 0 else node - const(-step[args[0]], "i64")
        return node if args == node.args else make(node.op, *args, type=node.type)

    return rebuilt(root, change)


# ---- are two expressions equal? -----------------------------------------------------------------------------------------------------------
HOST = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y, "neg": lambda x: -x, "%": math.fmod,
        "select": lambda c, x, y: x if c else y, "if": lambda c, x, y: x if c else y, "rsqrt": lambda x: 1 / math.sqrt(x), "exp10": lambda x: 10.0 ** x,
        "exp2": lambda x: 2.0 ** x, "cbrt": lambda x: math.copysign(abs(x) ** (1 / 3), x), "fma": lambda x, y, z: x * y + z, "sign": lambda x: (x > 0) - (x < 0),
        "abs": abs, "min": min, "max": max, "clamp": lambda x, lo, hi: min(max(x, lo), hi), "not": lambda x: not x, "and": lambda x, y: x and y,
        "or": lambda x, y: x or y, "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y,
        ">": lambda x, y: x > y, ">=": lambda x, y: x >= y}


def number(root, leaf):
    """The value, where leaf(node) is that of a leaf."""
    made = {}
    for node in walk([root]):
        if node.op == "const":
            made[node] = {"true": True, "false": False}.get(node.args[0]) if node.type == "bool" else float(node.args[0])
        elif node.op in ("name", "read", "result", "index", "at", *SUMS):
            made[node] = leaf(node)
        elif node.op in TYPES:
            made[node] = float(made[node.args[0]]) if is_float(node.type) else int(made[node.args[0]])
        else:
            made[node] = (HOST.get(node.op) or getattr(math, node.op))(*(made[part] for part in node.args))
    return made[root]


def equal(left, right):
    """Whether two expressions agree at places drawn at random."""
    draw, agreed = random.Random(1), 0
    for _ in range(20):
        drawn = {}

        def leaf(node, drawn=drawn):
            return drawn.setdefault(node, draw.random() < 0.5 if node.type == "bool" else draw.uniform(0.5, 2) if is_float(node.type) else draw.randrange(1, 9))

        try:
            x, y = number(left, leaf), number(right, leaf)
        except (ValueError, ZeroDivisionError, OverflowError, AttributeError):
            continue
        if abs(x - y) > 1e-9 * max(1, abs(x), abs(y)):
            return False
        agreed += 1
    return agreed > 2


__all__ = ["CHOICES", "SUMS", "depends", "equal", "is_float", "one", "pulled", "replaced", "shifted"]
