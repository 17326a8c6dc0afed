# SPDX-License-Identifier: Apache-2.0
"""A problem as data, read from its canonical text; what has no gradient by its form is refused here."""
import re

from ._errors import UnsupportedError
from ._nodes import Reader, make


class Array:
    """dims: names and numbers as texts."""

    def __init__(self, text):
        shape = re.fullmatch(r"(\w+): (.*?)\[([^\]]*)\](.*)", text)
        self.name, self.type, dims, self.more = shape.groups()
        self.dims = [dim.strip() for dim in dims.split(",")] if dims else []
        self.fields = dict(re.findall(r"(\w+): (\w+)", self.type)) if self.type[0] == "{" else {}
        edge = re.search(r" boundary \[(.*)\]", self.more)
        self.edges = [e.strip() for e in edge[1].split(",")] if edge else ["clamp"] * len(self.dims)

    def declared(self):
        return f"{self.type}[{', '.join(self.dims)}]"


class State:
    """A reduction or a scan: its operator's name, and by field (None: a single one) type, map, init and combine."""

    def __init__(self, name, operator):
        self.name, self.operator = name, operator
        self.type, self.map, self.init, self.combine = {}, {}, {}, {}

    def sums(self):
        """Whether every field is a sum of its own."""
        return all(text == (f"(a.{f} + b.{f})" if f else "(a + b)") for f, text in self.combine.items())


class Problem:
    def __init__(self, text):
        self.inputs, self.params, self.states, self.outputs, self.values, self.lets = {}, {}, {}, {}, {}, {}
        self.flags = self.steps = self.feedback = None
        for line in text.splitlines():
            self.read(line)

    def read(self, line):
        word, _, rest = line.strip().partition(" ")
        if line.startswith("  "):
            self.entry(word, rest, line)
        elif word == "problem":
            self.name, _, kind = rest.partition(": ")
            kind = kind.split(", ")
            self.kind, self.exclusive, self.reverse, self.contract = kind[0], "exclusive" in kind, "reverse" in kind, "contract" in kind
            self.determinism = next(word.split()[1] for word in kind if word.startswith("determinism"))
        elif word == "space":
            dims, over, segments = re.fullmatch(r"\[(.*?)\](?: over (.*?))?( segments .*)?", rest).groups()
            self.space, self.over = dims.split(", "), over.split(", ") if over else []
            joined = [d for d in self.space if "*" in d]
            if joined:
                raise UnsupportedError(f"dimensions that are one to the kernels, {joined[0]}: a gradient has three dimensions at most")
            self.segments(segments)
        elif word == "input":
            array = Array(rest)
            self.inputs[array.name] = array
        elif word == "param":
            name, type, default = re.fullmatch(r"(\w+): (\w+)(?: = (.*))?", rest).groups()
            self.params[name] = type, default
        elif word == "let":
            name, source = re.fullmatch(r"([\w.]+): \w+ = (.*)", rest).groups()
            self.lets[name] = self.node(source)
        elif word in ("reduction", "scan"):
            name, operator = re.fullmatch(r"(\w+): (\w+).*", rest).groups()
            self.states[name] = self.state = State(name, operator)
        elif word == "output":
            self.output(rest)
        elif word == "iterate":
            self.steps, feedback = re.fullmatch(r"(\w+) steps ?(.*)", rest).groups()
            self.feedback = dict(pair.split(" <- ") for pair in feedback.split(", ")) if feedback else {}
        elif word == "operator":
            raise UnsupportedError("gather() has no gradient that follows from the spec: its offsets are known at the launch alone")
        elif word == "by":
            raise UnsupportedError("what is computed by index has no gradient here: a place of a gradient would be read by 'by'")

    def segments(self, text):
        if text and "flags" in text and self.kind == "scan":
            self.flags = text.split()[-1]
        elif text:
            raise UnsupportedError(f"{text.strip()}: an element's gradient would be read by its segment, which has no form in a spec")

    def output(self, rest):
        declaration, _, per = rest.partition(" per ")
        array = Array(declaration)
        if array.fields:
            raise UnsupportedError(f"output '{array.name}' has fields, and gradients are arrays of one type")
        if per not in ("element", "segment", "scan", "element, from its segment's result"):
            raise UnsupportedError(f"output '{array.name}' is written per {per}: its gradient would be read there")
        if [d for d in array.dims if d not in self.space]:
            raise UnsupportedError(f"output '{array.name}' has a part of the points only, {array.declared()}")
        array.more = per
        self.outputs[array.name] = array

    def entry(self, word, rest, line):
        what, _, field = word.rstrip(":").partition(".")
        if what == "value":
            self.values[list(self.outputs)[-1]] = self.node(rest[2:])
        elif what in ("map", "init", "combine"):
            type, _, source = rest.partition(" = ")
            self.state.type[field or None] = type
            getattr(self.state, what)[field or None] = source if what == "combine" else self.node(source)

    def node(self, source):
        return Reader(source, self.meaning).whole()

    def meaning(self, parts, offsets):
        """The node of a name, with fields and offsets."""
        name, fields = parts[0], parts[1:]
        if name in self.lets:
            return self.lets[name]
        total = fields[:1] == ["total"] and name in self.states or name == "total" and self.kind == "scan" and "total" not in self.params
        if total or name in self.states:
            state = self.states[name if name in self.states else next(iter(self.states))]
            field = (fields[1:] if fields[:1] == ["total"] and total else fields) or [None]
            return make("result", ".".join(parts), state.name, field[0], bool(total), type=state.type[field[0]])
        if name in self.inputs:
            array = self.inputs[name]
            return make("read", name, "".join(f".{f}" for f in fields), offsets or (0,) * len(array.dims),
                        type=array.fields[fields[0]] if fields else array.type)
        if name in self.outputs:
            raise UnsupportedError(f"a reduction that reads the stencil's output '{name}' has no gradient here")
        return make("name", name, type=self.params[name][0] if name in self.params else "i64")
