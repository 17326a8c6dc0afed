# SPDX-License-Identifier: Apache-2.0
"""Specs from Python functions: traced once, printed as YAML, compiled as any other spec."""
import ast
import inspect
import json
import re
from collections.abc import Mapping

from . import _values as values

PLAIN = re.compile(r"[A-Za-z_(0-9.][\w .,+*/()<>=|^&%\[\]-]*")
COMPILE = ("arch", "variant", "gpu", "tuning", "settings", "sizes", "cache")


def scalar(x, flow=False):
    """As YAML; quoted where YAML or a reader might take it for something else."""
    x = {True: "true", False: "false"}[x] if isinstance(x, bool) else str(x)
    plain = PLAIN.fullmatch(x) and not x.endswith((" ", ":")) and not (flow and re.search(r"[,\[\]]", x)) and x not in ("true", "false", "null")
    return x if plain or x in ("true", "false") else json.dumps(x, ensure_ascii=False)


def flow(x):
    if isinstance(x, Mapping):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in x.items()) + "}"
    return "[" + ", ".join(flow(item) for item in x) + "]" if isinstance(x, (list, tuple)) else scalar(x, True)


def yaml(spec, indent=""):
    """A dict as the text of a spec: what fits into a line in flow style."""
    lines = []
    for key, item in spec.items():
        line = f"{indent}{key}: {scalar(item) if not isinstance(item, (Mapping, list, tuple)) else flow(item)}"
        if isinstance(item, Mapping) and (not indent and key in ("inputs", "outputs", "operator", "reductions", "scans", "let", "stages")
                                       or len(line) > 100 or "kind" in item):
            lines += [f"{indent}{key}:", yaml(item, indent + "  ")]
        else:
            lines.append(line)
    return "\n".join(lines)


# ---- operators ----------------------------------------------------------------------------------------------------------------------
class Operator:
    """An operator of one's own, traced; `spec` is what stands under `operator` in a spec."""

    __slots__ = ("_function", "spec")

    def __init__(self, function, state, identity, commutative):
        self._function = function
        combine, lets = written(function(values.Value("a"), values.Value("b")), "t")
        identity = None if identity is None else written(identity, "t")[0]
        parts = {"state": state, "identity": identity, "let": lets or None, "combine": combine, "commutative": commutative}
        self.spec = {key: item for key, item in parts.items() if item is not None}

    def __call__(self, a, b):
        return self._function(a, b)

    def __repr__(self):
        return f"<ptxgen.Operator {self._function.__name__} on {flow(self.spec['state'])}>"


def annotation(function, state):
    """What `from __future__ import annotations` made a text of its source; a type that was given as a text stays."""
    if not isinstance(state, str):
        return state
    try:
        return ast.literal_eval(state)
    except (SyntaxError, ValueError):
        seen = inspect.getclosurevars(function)
        return {**function.__globals__, **seen.nonlocals}.get(state, state)


def operator(function=None, *, state=None, identity=None, commutative=None):
    """An operator from a function of two states, the left one first; the state is a type or a dict of them, here or as `a`'s annotation."""
    if function is None:
        return lambda f: operator(f, state=state, identity=identity, commutative=commutative)
    parameters = list(inspect.signature(function).parameters.values())
    if state is None and parameters and parameters[0].annotation is not inspect.Parameter.empty:
        state = annotation(function, parameters[0].annotation)
    if len(parameters) != 2 or state is None:
        raise TypeError(f"{function.__name__} is no operator: it takes two states, whose type is given as state= or at the first of them")
    return Operator(function, state, identity, commutative)


def written(result, prefix, taken=()):
    """What a function gave as texts, and lets for what it uses more than once."""
    parts = result if isinstance(result, dict) else {None: result}
    lets, known, number = {}, {}, 0
    for x in values.shared(list(parts.values())):
        number += 1
        while f"{prefix}{number}" in taken:
            number += 1
        lets[f"{prefix}{number}"] = values.text(x, known)
        known[id(x)] = f"{prefix}{number}"
    texts = {key: values.text(x, known) for key, x in parts.items()}
    return (texts if isinstance(result, dict) else texts[None]), lets


# ---- specs ----------------------------------------------------------------------------------------------------------------------------
def traced(function, known):
    """What a function gives for values that have the names of its parameters; one with a default keeps that."""
    names = [name for name, p in inspect.signature(function).parameters.items() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    wrong = [name for name in names if name not in known]
    if wrong:
        raise TypeError(f"there is nothing called '{wrong[0]}' here; there is {', '.join(known)}")
    return function(*(values.Value(name, truth=str(known[name]).startswith("bool")) for name in names))


def expressions(item, known, lets):
    """A function as a text or a dict of texts, an operator as its spec, anything else as it is. lets: where shared parts go, or None."""
    if isinstance(item, Operator):
        return item.spec
    if not callable(item):
        return item
    result = traced(item, known)
    if lets is None:
        return {key: values.text(x) for key, x in result.items()} if isinstance(result, dict) else values.text(result)
    made, more = written(result, "t", {*known, *lets})
    lets.update(more)
    return made


def combined(key, item):
    """What stands at `operator`: a function must be an operator, whose state has a type."""
    if key == "operator" and callable(item) and not isinstance(item, Operator):
        raise TypeError("a function that combines states is an operator after @ptxgen.operator, which takes the state's type")
    return item


def entries(item, known, lets):
    """The value of a key; of `reductions` and `scans` each entry, which may be an operator alone."""
    made = {}
    for name, entry in item.items():
        entry = entry if isinstance(entry, dict) else {"operator": entry}
        made[name] = {key: expressions(combined(key, part), known, lets) for key, part in entry.items()}
    return made


def build(kind, inputs, outputs, keys):
    from . import compile  # pylint: disable=import-outside-toplevel,redefined-builtin
    options = {key: keys.pop(key) for key in COMPILE if key in keys}
    lets, stencil_like = dict(keys.pop("let", {})), kind == "stencil"
    sizes = [name for shape in inputs.values() for name in re.findall(r"\b[A-Za-z_]\w*\b(?=[^\[]*\])", str(shape))]
    known = {**inputs, **keys.get("params", {}), **dict.fromkeys([*sizes, *lets])}
    results = dict.fromkeys([*{"reduce": ["r"], "scan": ["s", "total"]}.get(kind, []), *keys.get("reductions", {}), *keys.get("scans", {})])
    spec = {"kind": kind, **{key: keys.pop(key) for key in ("name", "doc") if key in keys}, "inputs": inputs}
    spec.update({key: keys.pop(key) for key in ("params", "boundary") if key in keys})
    body = {}
    for key, item in keys.items():
        if key in ("reductions", "scans"):
            body[key] = entries(item, {**known, **outputs}, None) if stencil_like else entries(item, known, lets)
        else:
            body[key] = expressions(combined(key, item), known, lets if key == "map" else None)
    made = {}
    for name, item in outputs.items():
        made[name] = item if not isinstance(item, tuple) else {
            "type": item[0], "value": expressions(item[1], {**known, **results}, lets if stencil_like else None)}
    return compile({**spec, **({"let": lets} if lets else {}), **body, "outputs": made}, spec.get("name", kind), **options)


def reduce(inputs, operator=None, *, outputs, **keys):
    """A reduction. `map` and the values of outputs are functions of inputs, params, sizes and results by their names; other keys are the spec's."""
    return build("reduce", inputs, outputs, {**({} if operator is None else {"operator": operator}), **keys})


def scan(inputs, operator=None, *, outputs, **keys):
    """A scan, as reduce() is a reduction."""
    return build("scan", inputs, outputs, {**({} if operator is None else {"operator": operator}), **keys})


def stencil(inputs, *, outputs, **keys):
    """A stencil: every output is (type, function of the inputs), and u[-1, 0] is a neighbour."""
    return build("stencil", inputs, outputs, keys)


def map(inputs, *, outputs, **keys):  # pylint: disable=redefined-builtin
    """Values per element: a stencil without neighbours."""
    return build("stencil", inputs, outputs, keys)
