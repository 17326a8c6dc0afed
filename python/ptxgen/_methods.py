# SPDX-License-Identifier: Apache-2.0
"""The methods of Function that are no calls, over the plain ones of the extension."""
import json
import keyword
import math
import os
import re
import struct

from ._errors import Error, MismatchError, UsageError
from ._native import _results, _tuning_path

PTX, MANIFEST = 0, 1
TEXT, HTML = 0, 2


def choice(f, arch=None, sizes=None, **more):
    """What a plan is made with: that of the function, and what is given."""
    made = {**f._choice, **{key: value for key, value in more.items() if value is not None}}
    if arch is not None:
        made["arch"] = arch
    if sizes:
        made["sizes"] = {**made.get("sizes", {}), **sizes}
    return made


def explain(self, *, arch=None, gpu=None, all=False, **sizes):
    """What was chosen and why, what it costs, and how far it is from the limit."""
    return self._explain(choice(self, arch, sizes, gpu=gpu), TEXT, int(all))


def ptx(self, arch=None, **sizes):
    """The PTX of all cases."""
    return self._code(choice(self, arch, sizes), PTX)


def manifest(self):
    """All that a launcher must know, as a dict."""
    return json.loads(self._code(self._choice, MANIFEST))


def variants(self, draw=100, *, seed=1, arch=None, **sizes):
    """Variants, drawn at random: tuples (id, strategy, why_not, predicted_seconds); of each stage, as STAGE:ID, in a program."""
    return self._variants(choice(self, arch, sizes), draw, seed)


def check(self, prover=None, time_limit_ms=0):
    """Judge the laws of the operators; a refuted law that is relied upon raises SpecError."""
    names = ("reduction", "operator", "law", "verdict", "expected", "example", "cause", "method", "identity")
    return [dict(zip(names, row)) for row in self._check(prover, time_limit_ms)]


def verify(self, *args, **words):
    """Call, and compare each element with the sequential reference, in a program those of each stage: the number that agree."""
    compared, _, different, first = self._verify(*args, **words)
    if different:
        raise MismatchError(f"{different} of {compared} values differ; the first: {first}")
    return compared


def tune(self, *args, limit=64, samples=9, seed=1, file=None, **words):
    """Measure variants at the sizes of these arrays on their GPU; the fastest goes into the tuning file, which calls use from then on.

    Gives (variant, seconds) of all that were measured, the fastest first.  The winner's results were compared with the reference.
    In a program each stage is tuned by itself, with `limit` variants, by the time of the whole program; variants are STAGE:ID."""
    def seconds(**options):
        f = type(self)(self.yaml, self.name, {**self._choice, "tuning": "off", **options})
        return f, min(f._seconds(10, *args, **words)[0] for _ in range(samples))

    _, device, arch, sizes, counts = self._seconds(1, *args, **words)
    if not counts:
        raise UsageError("with 'determinism: device' the order of combination follows from the spec alone: nothing is left to tune")
    known = dict(zip(self.sizes, sizes))
    usual, times = seconds()[1], {}
    for variant, _, why_not, _ in self.variants(limit, seed=seed, arch=arch, **known):
        stage = variant.partition("@")[0].rpartition(":")[0]
        if why_not is None and stage in counts:
            try:
                times.setdefault(stage, []).append((seconds(variant=variant, sizes=known)[1], variant))
            except Error:
                continue  # it does not fit this device
    path = file or self._choice.get("tuning") or _tuning_path()
    for of in times.values():  # one list, or one of each stage
        best, winner = min(of)
        if best < usual:
            type(self)(self.yaml, self.name, {**self._choice, "tuning": "off", "variant": winner}).verify(*args, **words)
            if path and path != "off":
                keep(path, lambda text: self._entry(text, device, sizes, winner, best, usual, len(of) + 1))
                self._choice["tuning"] = path
                self._forget()
    return [(variant, time) for time, variant in sorted([(usual, "default"), *(x for of in times.values() for x in of)])]


def keep(path, change):
    """A file's text, changed and put in its place at once."""
    import pathlib  # pylint: disable=import-outside-toplevel  # as inspect elsewhere: each takes milliseconds, and few programs need it
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(change(path.read_text(encoding="utf-8") if path.exists() else None), encoding="utf-8")
    new.replace(path)


def defaults(self):
    """The values of params by name: floats in as few digits as their type needs."""
    def shortest(kind, value):
        if kind not in ("f16", "f32") or value != value or value in (math.inf, -math.inf):
            return value
        code = "e" if kind == "f16" else "f"
        return next(x for x in (float(f"{value:.{digits}g}") for digits in range(1, 18)) if struct.unpack(code, struct.pack(code, x))[0] == value)

    return {name: shortest(self.params[name], value) for name, value in self._defaults.items()}


def hidden_sizes(self):
    """Sizes that no input shows: these are given, or out= is."""
    return [size for size in self.sizes if not any(re.search(rf"\b{size}\b", what.partition("[")[2]) for what in self.inputs.values())]


def represent(self):
    """<ptxgen.Function saxpy(x: f32[n], y: f32[n], *, a: f32) -> z: f32[n]>"""
    known = defaults(self)
    words = [f"{name}: {what}{f' = {known[name]}' if name in known else ''}" for name, what in self.params.items()] + hidden_sizes(self)
    inputs = [f"{name}: {what}" for name, what in self.inputs.items()]
    outputs = ", ".join(f"{name}: {what}" for name, what in self.outputs.items())
    return f"<ptxgen.Function {self.name}({', '.join(inputs + ['*'] * bool(words) + words)}) -> {outputs}>"


def signature(self):
    """For inspect.signature(), help() and editors.  A name that is a word of Python's is given by position, or as **{'name': value}."""
    import inspect  # pylint: disable=import-outside-toplevel
    kind, known = inspect.Parameter, defaults(self)
    by_name = not any(keyword.iskeyword(name) for name in self.inputs)
    made = [kind(name if by_name or not keyword.iskeyword(name) else name + "_", kind.POSITIONAL_OR_KEYWORD if by_name else kind.POSITIONAL_ONLY,
                 annotation=what) for name, what in self.inputs.items()]
    words = {name: kind(name, kind.KEYWORD_ONLY, annotation=what, default=known.get(name, kind.empty))
             for name, what in self.params.items() if not keyword.iskeyword(name)}
    words.update({name: kind(name, kind.KEYWORD_ONLY, default=None) for name in [*self.sizes, "out", "stream"] if not keyword.iskeyword(name)})
    rest = [kind("words", kind.VAR_KEYWORD)] if any(keyword.iskeyword(name) for name in [*self.params, *self.sizes]) else []
    returns = next(iter(self.outputs.values())) if len(self.outputs) == 1 else ", ".join(f"{name}: {what}" for name, what in self.outputs.items())
    return inspect.Signature(made + list(words.values()) + rest, return_annotation=returns)


def reduce_function(self):
    """Pickled and copied as what it was made of; compiled again at its next call."""
    return type(self), (self.yaml, self.name, self._choice)


def reduce_results(self):
    return restore_results, (type(self).__match_args__, tuple(self))


def restore_results(names, values):
    return _results(names)(values)


# A notebook has a style of its own, light or dark; what it lacks are the lengths of bars, and the lines of the stages' graph.
STYLE = """.ptxgen table{width:100%}.ptxgen td{text-align:left;vertical-align:top;overflow-wrap:anywhere}
.ptxgen td.number{text-align:right;white-space:nowrap}.ptxgen .wide{width:60%}.ptxgen tr.unfit{opacity:.6}.ptxgen tr.chosen td:first-child{font-weight:700}
.ptxgen .bar{height:.9em;border-radius:.2em;background:#4078c0}.ptxgen .bar.least{background:#999}.ptxgen .bar.predicted{background:#d9a23b}
.ptxgen svg{width:100%;height:auto}.ptxgen svg text{fill:currentColor;font:11px sans-serif}
.ptxgen svg rect{fill:none;stroke:currentColor}.ptxgen svg .edge{fill:none;stroke:currentColor}
.ptxgen .flow{display:flex;align-items:center;gap:2.5em}.ptxgen .flow li{list-style:none;border:1px solid;padding:.3em .8em;margin:.3em 0}"""


def page(self):
    """What a notebook shows: the sections of the page of `ptxgen explain --html` without the code, with a style of their own."""
    return f'<div class="ptxgen"><style>{STYLE}</style>{self._explain(self._choice, HTML, 0)}</div>'


def attach(function):
    for method in (explain, ptx, variants, check, verify, tune):
        setattr(function, method.__name__, method)
    function.manifest = property(manifest)
    function.__repr__ = represent
    function.__signature__ = property(signature)
    function.__reduce__ = reduce_function
    function._repr_html_ = page
