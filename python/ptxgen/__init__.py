# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans and stencils from a spec: f = ptxgen.load("mss.yaml"); f(x).  See docs/python.md."""
import collections.abc
import os

from ._errors import (DeviceError, Diagnostic, Error, FileError, FindingError, InternalError, MismatchError, SpecError,
                      UnsupportedError, UsageError)
from ._native import Array, Function, explain_code, schema
from ._native import version as __version__
from . import _methods, ops
from ._specs import Operator, map, operator, reduce, scan, stencil, yaml  # pylint: disable=redefined-builtin
from ._vjp import vjp

__all__ = ["Array", "DeviceError", "Diagnostic", "Error", "FileError", "FindingError", "Function", "InternalError",
           "MismatchError", "Operator", "SpecError", "UnsupportedError", "UsageError", "compile", "explain_code", "load", "map",
           "operator", "ops", "reduce", "scan", "schema", "stencil", "vjp"]
_methods.attach(Function)


def texts(what, given, kinds, said):
    """A dict whose values are of these types; anything else is refused by name."""
    if not isinstance(given, collections.abc.Mapping) or not all(isinstance(key, str) and isinstance(value, kinds) for key, value in given.items()):
        raise TypeError(f"{what} is a dict from names to {said}, and not {given!r}")
    return dict(given)


def options(settings, sizes, **given):
    """What compile() was given, with the right types."""
    for name, value in given.items():
        if value is not None and not isinstance(value, (str, os.PathLike) if name in ("tuning", "cache") else str):
            raise TypeError(f"{name} is a text, and not {value!r}")
    made = {name: os.fspath(value) for name, value in given.items() if value is not None}
    if settings is not None:
        made["settings"] = {name: str(value) for name, value in texts("settings", settings, (str, int), "texts or numbers").items()}
    if sizes is not None:
        made["sizes"] = texts("sizes", sizes, int, "numbers")
    return made


def compile(spec, name="spec", *, arch=None, variant=None, gpu=None, tuning=None, settings=None, sizes=None, cache=None):
    """A function from the text of a spec, or from a dict of the same form."""
    if isinstance(spec, collections.abc.Mapping):
        spec = yaml(spec) + "\n"
    if not isinstance(spec, str):
        raise TypeError(f"a spec is a text or a dict, and not {type(spec).__name__!r}; ptxgen.load() reads a file")
    if spec.endswith((".yaml", ".yml")) and "\n" not in spec:
        raise UsageError(f"{spec!r} is the name of a file and no spec: ptxgen.load() reads a file")
    return Function(spec, name, options(settings, sizes, arch=arch, variant=variant, gpu=gpu, tuning=tuning, cache=cache))


def load(path, **options):
    """A function from a file; the options are those of compile()."""
    with open(path, encoding="utf-8") as file:
        return compile(file.read(), os.path.splitext(os.path.basename(path))[0], **options)
