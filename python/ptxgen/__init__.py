# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans and stencils from a spec: f = ptxgen.load("mss.yaml"); f(x).  See docs/python.md."""
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


def compile(spec, name="spec", *, arch=None, variant=None, gpu=None, tuning=None, settings=None, sizes=None, cache=None):
    """A function from the text of a spec, or from a dict of the same form."""
    if isinstance(spec, dict):
        spec = yaml(spec) + "\n"
    given = {"arch": arch, "variant": variant, "gpu": gpu, "tuning": tuning, "settings": settings, "sizes": sizes, "cache": cache}
    return Function(spec, name, {key: value for key, value in given.items() if value is not None})


def load(path, **options):
    """A function from a file; the options are those of compile()."""
    with open(path, encoding="utf-8") as file:
        return compile(file.read(), os.path.splitext(os.path.basename(path))[0], **options)
