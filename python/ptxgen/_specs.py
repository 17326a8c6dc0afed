# SPDX-License-Identifier: Apache-2.0
"""Specs from Python functions: traced once, printed as YAML, compiled as any other spec."""
import json
import re
from collections.abc import Mapping

from . import _values as values
from ._known import TYPES

PLAIN = re.compile(r"[A-Za-z_(0-9.][\w .,+*/()<>=|^&%\[\]-]*")
COMPILE = ("arch", "variant", "gpu", "tuning", "settings", "sizes", "cache")


def scalar(x, flow=False):
    """As YAML; quoted where YAML or a reader might take it for something else.  An expression is its text."""
    if not isinstance(x, str):
        n = values.text(x) if isinstance(x, values.Value) else values.number(x)
        if n is None:
            raise TypeError(f"{x!r} has no form in a spec")
        x = str(n).lower() if isinstance(n, bool) else str(n)
    plain = PLAIN.fullmatch(x) and not x.endswith((" ", ":")) and not (flow and re.search(r"[,\[\]]", x)) and x != "null"
    return x if plain else json.dumps(x, ensure_ascii=False)


def flow(x):
    if isinstance(x, Mapping):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in x.items()) + "}"
    return "[" + ", ".join(flow(item) for item in x) + "]" if isinstance(x, (list, tuple)) else scalar(x, True)


def yaml(spec, indent=""):
    """A dict as the text of a spec: what fits into a line in flow style."""
    lines = []
    for key, item in spec.items():
        line = f"{indent}{key}: {scalar(item) if not isinstance(item, (Mapping, list, tuple)) else flow(item)}"
        if isinstance(item, Mapping) and (not indent and key in ("inputs", "outputs", "operator", "operators", "reductions", "scans", "let", "stages")
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
        combine, lets = written(function(values.Value("a", type=state), values.Value("b", type=state)), "t")
        identity = None if identity is None else written(identity, "t")[0]
        parts = {"state": state, "identity": identity, "let": lets or None, "combine": combine, "commutative": commutative}
        self.spec = {key: item for key, item in parts.items() if item is not None}

    def __call__(self, a, b):
        return self._function(a, b)

    def __repr__(self):
        return f"<ptxgen.Operator {name_of(self._function)} on {flow(self.spec['state'])}>"


def name_of(function):
    return getattr(function, "__name__", repr(function))


def annotation(function, text):
    """What an annotation means that is a text: a type as it is, or, after `from __future__ import annotations`, the source of what would stand here."""
    if text in TYPES:
        return text
    import inspect  # pylint: disable=import-outside-toplevel
    function = inspect.unwrap(function)
    try:
        seen = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
        return eval(text, getattr(function, "__globals__", {}), seen)  # pylint: disable=eval-used
    except Exception as error:
        raise TypeError(f"the annotation {text!r} of {name_of(function)}() is no type, and means nothing where its module looks names up ({error}): "
                        "give the type as state=") from error


def operator(function=None, *, state=None, identity=None, commutative=None):
    """An operator from a function of two states, the left one first; the state is a type or a dict of them, here or as `a`'s annotation."""
    if function is None:
        return lambda f: operator(f, state=state, identity=identity, commutative=commutative)
    import inspect  # pylint: disable=import-outside-toplevel
    parameters = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    if state is None and parameters and parameters[0].annotation is not inspect.Parameter.empty:
        state = parameters[0].annotation
        state = annotation(function, state) if isinstance(state, str) else state
    if len(parameters) != 2 or state is None:
        raise TypeError(f"{name_of(function)} is no operator: it takes two states, whose type is given as state= or at the first of them")
    if not isinstance(state, (str, Mapping)):
        raise TypeError(f"the state of {name_of(function)} is a type, as 'f32', or a dict of them, and not {state!r}")
    return Operator(function, state, identity, commutative)


def written(result, prefix, taken=()):
    """What a function gave as texts, and lets for what it uses more than once."""
    parts = result if isinstance(result, Mapping) else {None: result}
    lets, known, number = {}, {}, 0
    for x in values.shared(list(parts.values())):
        number += 1
        while f"{prefix}{number}" in taken:
            number += 1
        lets[f"{prefix}{number}"] = values.text(x, known)
        known[id(x)] = f"{prefix}{number}"
    texts = {key: values.text(x, known) for key, x in parts.items()}
    return (texts if isinstance(result, Mapping) else texts[None]), lets


# ---- specs ----------------------------------------------------------------------------------------------------------------------------
def element(declared):
    """The type of what is declared, without its shape: a text, or a dict of fields."""
    if isinstance(declared, Mapping):
        declared = declared.get("type")
    return declared.partition("[")[0].strip() if isinstance(declared, str) else declared


def traced(function, known):
    """What a function gives for values that have the names of its parameters, of the types in `known`; a parameter with a default keeps that."""
    import inspect  # pylint: disable=import-outside-toplevel  # it takes milliseconds, and what only loads specs does not need it
    args, words = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError(f"{name_of(function)} takes values of any name: write a function of what it uses, as lambda x: ops.sqrt(x)")
        if p.default is p.empty and p.name not in known:
            raise TypeError(f"there is nothing called '{p.name}' here; there is {', '.join(known)}")
        if p.default is not p.empty and p.name in known:
            raise TypeError(f"'{p.name}' has a default, and is the name of a value here: give one of them another name")
        if p.default is p.empty and p.kind is p.KEYWORD_ONLY:
            words[p.name] = values.Value(p.name, type=known[p.name])
        elif p.default is p.empty:
            args.append(values.Value(p.name, type=known[p.name]))
    return function(*args, **words)


def expressions(item, known, lets):
    """A function as a text or a dict of texts, anything else as it is; and its type where that is known. lets: where shared parts go, or None."""
    if not callable(item):
        return item, None
    result = traced(item, known)
    if isinstance(result, Mapping):
        result = {key: values.value(x) for key, x in result.items()}
        type_ = {key: x._type for key, x in result.items()}
    else:
        result = values.value(result)
        type_ = result._type
    if lets is None:
        return ({key: values.text(x) for key, x in result.items()} if isinstance(result, dict) else values.text(result)), type_
    made, more = written(result, "t", {*known, *lets})
    lets.update(more)
    return made, type_


def combined(entry, known, lets, type_):
    """What says how elements are combined, with texts for functions, and the type of the result where that is known; type_: without a map."""
    made = {}
    for key, item in entry.items():
        if isinstance(item, Operator):
            made[key] = item.spec
        elif key == "operator" and callable(item):
            raise TypeError("operator= is a name, as 'max', or a function of two states after @ptxgen.operator, which takes their type")
        else:
            made[key], of = expressions(item, known, lets if key == "map" else None)
            type_ = of if key == "map" else type_
    operator_ = made.get("operator")
    if isinstance(operator_, Mapping):
        return made, operator_.get("state")
    return made, type_ if operator_ in ("and", "or", "xor") else None


def look(inputs, outputs):
    """What is easily mistaken."""
    for what, given in (("inputs", inputs), ("outputs", outputs)):
        if not isinstance(given, Mapping):
            raise TypeError(f"{what} are a dict from names to types, as {{'x': 'f32[n]'}}, and not {given!r}")
    for name, item in outputs.items():
        if callable(item) or isinstance(item, tuple) and len(item) != 2:
            raise TypeError(f"output '{name}' is a type, as 'f32[n]', or a pair of a type and a function")


def build(kind, inputs, outputs, keys):
    from . import compile  # pylint: disable=import-outside-toplevel,redefined-builtin
    look(inputs, outputs)
    options = {key: keys.pop(key) for key in COMPILE if key in keys}
    given, lets, stencil_like = keys.pop("let", {}), {}, kind in ("stencil", "map")
    sizes = [name for shape in inputs.values() for name in re.findall(r"\b[A-Za-z_]\w*\b(?=[^\[]*\])", str(shape))]
    known = {**{name: element(x) for name, x in {**inputs, **keys.get("params", {})}.items()}, **dict.fromkeys([*sizes, *given])}
    for name, item in given.items():
        lets[name], known[name] = expressions(item, known, None)
    spec = {"kind": kind, **{key: keys.pop(key) for key in ("name", "doc") if key in keys}, "inputs": inputs}
    spec.update({key: keys.pop(key) for key in ("params", "boundary") if key in keys})
    own = {name: item.spec if isinstance(item, Operator) else item for name, item in keys.pop("operators", {}).items()}
    spec.update({"operators": own} if own else {})
    lists = {key: keys.pop(key) for key in ("reductions", "scans") if key in keys}
    only = element(next(iter(inputs.values()))) if len(inputs) == 1 else None
    body, type_ = combined(keys, known, lets, only)
    results = dict.fromkeys({"reduce": ["r"], "scan": ["s", "total"]}.get(kind, []), type_)
    beside = {**known, **{name: element(x[0] if isinstance(x, tuple) else x) for name, x in outputs.items()}} if stencil_like else known
    for key, of in lists.items():
        body[key] = {}
        for name, entry in of.items():
            entry = entry if isinstance(entry, Mapping) else {"operator": entry}
            body[key][name], results[name] = combined(entry, beside, None if stencil_like else lets, only)
    made = {}
    for name, item in outputs.items():
        item = {"type": item[0], "value": item[1]} if isinstance(item, tuple) else item
        made[name] = item if not isinstance(item, Mapping) else {
            key: expressions(part, {**known, **results}, lets if stencil_like and key == "value" else None)[0] for key, part in item.items()}
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
    return build("map", inputs, outputs, keys)
