# SPDX-License-Identifier: Apache-2.0
"""The methods of Function that are no calls, over the plain ones of the extension."""
import json
import os
import pathlib

from ._errors import Error, MismatchError, UsageError
from ._native import _tuning_path

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
    """Variants, drawn at random: tuples (id, strategy, why_not, predicted_seconds)."""
    return self._variants(choice(self, arch, sizes), draw, seed)


def check(self, prover=None, time_limit_ms=0):
    """Judge the laws of the operators; a refuted law that is relied upon raises SpecError."""
    names = ("reduction", "operator", "law", "verdict", "expected", "example", "cause", "method", "identity")
    return [dict(zip(names, row)) for row in self._check(prover, time_limit_ms)]


def verify(self, *args, **words):
    """Call, and compare each element with the sequential reference: the number that agree."""
    compared, _, different, first = self._verify(*args, **words)
    if different:
        raise MismatchError(f"{different} of {compared} values differ; the first: {first}")
    return compared


def tune(self, *args, limit=64, samples=9, seed=1, file=None, **words):
    """Measure variants at the sizes of these arrays on their GPU; the fastest goes into the tuning file, which calls use from then on.

    Gives (variant, seconds) of all that were measured, the fastest first.  The winner's results were compared with the reference."""
    def seconds(**options):
        f = type(self)(self.yaml, self.name, {**self._choice, "tuning": "off", **options})
        return f, min(f._seconds(10, *args, **words)[0] for _ in range(samples))

    _, device, arch, sizes, counts = self._seconds(1, *args, **words)
    if not counts:
        raise UsageError("with 'determinism: device' the order of combination follows from the spec alone: nothing is left to tune")
    known = dict(zip(self.sizes, sizes))
    usual, times = seconds()[1], []
    for variant, _, why_not, _ in self.variants(limit, seed=seed, arch=arch, **known):
        if why_not is None:
            try:
                times.append((seconds(variant=variant, sizes=known)[1], variant))
            except Error:
                continue  # it does not fit this device
    times = sorted([(usual, "default"), *times])
    winner = times[0][1]
    if winner != "default":
        type(self)(self.yaml, self.name, {**self._choice, "tuning": "off", "variant": winner}).verify(*args, **words)
        path = file or self._choice.get("tuning") or _tuning_path()
        if path and path != "off":
            keep(path, lambda text: self._entry(text, device, sizes, winner, times[0][0], usual, len(times)))
            self._choice["tuning"] = path
            self._forget()
    return [(variant, time) for time, variant in times]


def keep(path, change):
    """A file's text, changed and put in its place at once."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(change(path.read_text(encoding="utf-8") if path.exists() else None), encoding="utf-8")
    new.replace(path)


def represent(self):
    """<ptxgen.Function dot(x: f32[n], y: f32[n]) -> dot: f32>"""
    inputs, outputs = (", ".join(f"{name}: {what}" for name, what in rows.items()) for rows in (self.inputs, self.outputs))
    return f"<ptxgen.Function {self.name}({inputs}) -> {outputs}>"


def page(self):
    """What a notebook shows."""
    return self._explain(self._choice, HTML, 0)


def attach(function):
    for method in (explain, ptx, variants, check, verify, tune):
        setattr(function, method.__name__, method)
    function.manifest = property(manifest)
    function.__repr__ = represent
    function._repr_html_ = page
