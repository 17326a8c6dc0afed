# SPDX-License-Identifier: Apache-2.0
"""Typed expressions, of which equal ones are one object; read from the canonical text of a problem and printed through _values."""
import re
import weakref

from . import _values as values
from ._errors import UnsupportedError

KNOWN: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
TYPES = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64".split()
FLOATS = TYPES[-4:]
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
TOKEN = re.compile(r"\s*(\d[\w.]*(?:(?<=e)[+-]\d+)?|[A-Za-z_]\w*|<<|>>|[=!<>]=|[-+*/%&|^~<>()\[\],.])")


class Node:
    """op: const, name (param, size), read (an input here or beside), result, index, at, sum, neg, a symbol, a function, a type.  args: Nodes and texts."""

    __slots__ = ("op", "args", "type", "__weakref__")

    def __add__(self, other):
        if other.op == "neg":
            return make("-", self, other.args[0])
        if self is other and self.type in FLOATS:
            return const(2.0, self.type) * self
        if self.op == other.op and self.op in ("f16", "bf16") and self.args[0].type == other.args[0].type:
            return make(self.op, self.args[0] + other.args[0])
        return other if zero(self) else self if zero(other) else make("+", self, other)

    def __sub__(self, other):
        return self if zero(other) else make("-", self, other)

    def __mul__(self, other):
        if zero(self) or one(other):
            return self
        if zero(other) or one(self):
            return other
        for x, y in ((self, other), (other, self)):
            if x.op == "neg":
                return -(x.args[0] * y)
        return make("*", self, other)

    def __truediv__(self, other):
        if self.op == "neg":
            return -(self.args[0] / other)
        return self if zero(self) or one(other) else make("/", self, other)

    def __neg__(self):
        return self if zero(self) else self.args[0] if self.op == "neg" else make("neg", self)


def make(op, *args, type=None):
    if type is None:
        nodes = [x for x in args if isinstance(x, Node)]
        nodes = nodes[1:] if op in ("if", "select") else nodes
        type = "bool" if op in COMPARISONS or op in ("not", "and", "or", "isnan", "isinf") else op if op in TYPES else next(
            (x.type for x in nodes if x.op != "const"), nodes[0].type)
    node = KNOWN.get((op, args, type))
    if node is None:
        node = Node()
        node.op, node.args, node.type = op, args, type
        KNOWN[op, args, type] = node
    return node


def const(x, type):
    return make("const", repr(x) if isinstance(x, float) else str(x), type=type)


def zero(x):
    return x.op == "const" and x.args[0] in ("0", "0.0")


def one(x):
    return x.op == "const" and x.args[0] in ("1", "1.0")


def walk(roots):
    """All nodes, each after its parts."""
    seen, stack = {}, [(root, False) for root in roots]
    while stack:
        node, done = stack.pop()
        if done:
            seen[node] = None
        elif node not in seen:
            stack.append((node, True))
            stack.extend((part, False) for part in node.args if isinstance(part, Node))
    return list(seen)


def rebuilt(root, change):
    """The expression, with change(node, new arguments) for each node."""
    made = {}
    for node in walk([root]):
        made[node] = change(node, tuple(made.get(part, part) if isinstance(part, Node) else part for part in node.args))
    return made[root]


# ---- reading --------------------------------------------------------------------------------------------------------------------------
class Reader:
    """One expression; names: what each name means, as a function of what follows it."""

    def __init__(self, source, names):
        self.tokens, self.at, self.names = TOKEN.findall(source) + [""], 0, names

    def take(self, *wanted):
        token = self.tokens[self.at]
        if wanted and token not in wanted:
            raise ValueError(f"{token!r} where {' or '.join(wanted)} belongs")
        self.at += 1
        return token

    def whole(self):
        node = self.value()
        self.take("")
        return node

    def value(self):
        token = self.take()
        if token == "(":
            return self.group()
        if token == "-" or token[0].isdigit() or token in ("true", "false", "inf", "nan"):
            return self.number(token, None)
        if self.tokens[self.at] == "(":
            return self.call(token)
        parts, offsets = [token], ()
        while self.tokens[self.at] in (".", "["):
            if self.take() == ".":
                parts.append(self.take())
            else:
                offsets = self.offsets()
        return self.names(parts, offsets)

    def number(self, token, type):
        if token == "-":
            x = self.number(self.take(), type)
            return make("neg", x)
        if type is None:
            type = "bool" if token in ("true", "false") else "i32" if token.isdigit() else "f32"
        return make("const", token, type=type)

    def offsets(self):
        made = []
        while True:
            sign = -1 if self.tokens[self.at] == "-" and self.take() else 1
            made.append(sign * int(self.take()))
            if self.take(",", "]") == "]":
                return tuple(made)

    def group(self):
        """What stands between ( and ), which every operation has around it."""
        token = self.tokens[self.at]
        number = token == "-" and (self.tokens[self.at + 1][0].isdigit() or self.tokens[self.at + 1] == "inf") and self.tokens[self.at + 2] != ")"
        if token in ("-", "~", "not", "!") and not number:
            self.take()
            node = make({"-": "neg", "!": "not"}.get(token, token), self.value())
        elif token == "if":
            parts = [self.value() for word in ("if", "then", "else") if self.take(word)]
            node = make("if", *parts)
        else:
            left = self.value()
            node = make(self.take(), left, self.value())
        self.take(")")
        return node

    def call(self, name):
        self.take("(")
        if name in TYPES and (self.tokens[self.at] == "-" or self.tokens[self.at][0].isdigit() or self.tokens[self.at] in ("inf", "nan")):
            node = self.number(self.take(), name)
            self.take(")")
            return node
        first = [self.take()] if name in ("index", "at", "sum", "product", "least", "greatest", "all", "any", "gather") else []
        if name == "gather":
            raise UnsupportedError("gather() has no gradient that follows from the spec: its offsets are known at the launch alone")
        args = []
        while self.take(",", ")") == "," if first or args else True:
            args.append(self.value())
        if name == "at":
            field = "." + self.take() if self.tokens[self.at] == "." and self.take() else ""
            return make("at", first[0], field, *args, type=self.names([first[0], *filter(None, [field[1:]])], ()).type)
        return make(name, *first, *args, type="i64" if name == "index" else None)


# ---- printing -------------------------------------------------------------------------------------------------------------------------
def printed(node, known):
    """As a Value; known: those that exist."""
    for x in walk([node]):
        if x not in known:
            known[x] = form(x, [known.get(part, part) if isinstance(part, Node) else part for part in x.args])
    return known[node]


def form(x, args):
    if x.op in ("const", "name", "result"):
        return values.Value(x.args[0])
    if x.op == "read":
        name, field, offsets = x.args
        return values.Value(name + (f"[{', '.join(map(str, offsets))}]" if any(offsets) else "") + field)
    if x.op == "index":
        return values.Value(f"index({args[0]})")
    if x.op == "at":
        return values.Value(f"at({args[0]}, {', '.join(['{}'] * len(args[2:]))}){args[1]}", values.ATOM, tuple(args[2:]))
    if x.op in ("sum", "product", "least", "greatest", "all", "any"):
        return values.Value(f"{x.op}({args[0]}, {{}})", values.ATOM, (args[1],))
    if x.op in ("neg", "~"):
        return values.Value({"neg": "-{}"}.get(x.op, "~{}"), values.PREFIX, tuple(args))
    if x.op == "not":
        return values.Value("not {}", values.PRECEDENCE["not"], tuple(args))
    if x.op in values.PRECEDENCE:
        return values.binary(x.op, *args)
    return values.call("select" if x.op == "if" else x.op, *args)
