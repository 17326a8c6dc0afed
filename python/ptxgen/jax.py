# SPDX-License-Identifier: Apache-2.0
"""Functions inside programs that JAX compiles: op = ptxgen.jax.op(f); jax.jit(lambda x: op(x) + 1).

XLA calls the handlers of python/native/jax.c on its own stream, with its own buffers; nothing is copied, allocated or waited for."""
import hashlib
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax

try:
    from jax import ffi
except ImportError:  # before JAX 0.5
    from jax.extend import ffi

from ._errors import UnsupportedError, UsageError
from ._known import Known
from ._native import Function, _jax_handlers, _jax_record
from ._vjp import vjp


def register():
    """Once: under these names, programs find the handlers."""
    for (target, platform), stages in _jax_handlers().items():
        ffi.register_ffi_target(target, stages, platform=platform)


register()


def device():
    """The GPU whose workspace is asked for while a call is traced, or -1."""
    if jax.default_backend() not in ("gpu", "cuda"):
        return -1
    return getattr(jax.local_devices()[0], "local_hardware_id", None) or 0


def dtype(name):
    return jax.numpy.dtype(getattr(jax.numpy, "bool_" if name == "bool" else name))


def ffi_call(target, results, args, vmap_method, **attributes):
    """JAX's, which took the arguments itself before 0.4.36."""
    if any(p.name == "args" for p in inspect.signature(ffi.ffi_call).parameters.values()):
        return ffi.ffi_call(target, results, *args, **attributes)
    return ffi.ffi_call(target, results, vmap_method=vmap_method)(*args, **attributes)


class Call:
    """A function as JAX calls it."""

    def __init__(self, f, vmap_method):
        self.f, self.known, self.vmap_method = f, Known(f), vmap_method
        waits = re.match(r"# stages of .* until ", f._problem)  # the host reads the condition of such a loop: no command buffer keeps it
        self.target = "ptxgen_waits" if waits else "ptxgen"

    def check(self, args, given):
        """What would be refused when the program runs is refused while it is traced."""
        f, known = self.f, self.known
        if len(args) != len(known.inputs):
            raise TypeError(f"{f.name}() takes {len(known.inputs)} arrays, {', '.join(known.inputs)}, and was given {len(args)}; params and sizes are keywords")
        for name in given:
            if name not in known.names or name in known.inputs:
                raise TypeError(f"{f.name}() has no keyword {name!r}; it takes {', '.join([*known.sizes, *f.params]) or 'none'}")
        for name in [*known.sizes, *(p for p in f.params if p not in f._defaults)]:
            if name not in given:
                raise TypeError(f"{f.name}() misses {'size' if name in known.sizes else 'param'} {name!r}, which has no default")
        for (name, (type_, dims)), x in zip(known.inputs.items(), args):
            if x.dtype != dtype(type_) or len(x.shape) != len(dims):
                raise UsageError(f"array '{name}' is {x.dtype}{list(x.shape)}; the spec says {f.inputs[name]}")
        sizes = known.extents({**dict(zip(known.inputs, args)), **given})
        for (name, (_, dims)), x in zip(known.inputs.items(), args):
            for d, (size, add) in enumerate(dims):
                if x.shape[d] != (sizes[size] if size else 0) + add:
                    raise UsageError(f"array '{name}' has {x.shape[d]} elements in dimension {d}; the other arrays ask for {(sizes[size] if size else 0) + add}")
        return sizes

    def __call__(self, args, given):
        """The outputs, always as a tuple."""
        sizes = self.check(args, given)
        words = {**sizes, **given}
        content = repr((self.f.name, self.f.yaml, sorted(self.f._choice.items()), sorted(words.items())))
        key = f"{self.f.name}-{hashlib.sha256(content.encode()).hexdigest()[:32]}"
        workspace = _jax_record(key.encode(), self.f, words, device())
        shapes = [*((dtype(type_), shape) for type_, shape in self.known.results(sizes)), (dtype("uint8"), (workspace,))]
        results = tuple(jax.ShapeDtypeStruct(shape, type_) for type_, shape in shapes)
        return tuple(ffi_call(self.target, results, args, self.vmap_method, call=key))[:-1]


def op(f: Function, *, wrt: Sequence[str] | None = None, outputs: Sequence[str] | None = None,
       vmap_method: str = "sequential") -> Callable[..., Any]:
    """f for arrays that JAX traces: inputs by position, params and sizes that no input shows by keyword, as plain numbers.

    Gradients (reverse mode) are those of ptxgen.vjp(f, wrt, outputs); without one, taking a gradient raises the reason.
    vmap_method is that of jax.ffi.ffi_call()."""
    forward = Call(f, vmap_method)
    backward, reason = None, None
    try:
        backward = Call(vjp(f, wrt, outputs), vmap_method)
    except UnsupportedError as error:
        if wrt or outputs:
            raise
        reason = error

    def call(*args, **given):
        def plain(*arrays):
            made = forward(arrays, given)
            return made if len(made) > 1 else made[0]

        def with_inputs(*arrays):
            if backward is None:
                raise reason
            return plain(*arrays), arrays

        def gradients(arrays, grads):
            known = dict(zip(forward.known.inputs, arrays))
            by_output = dict(zip(forward.known.outputs, grads if len(forward.known.outputs) > 1 else (grads,)))
            known.update({f"grad_{name}": g for name, g in by_output.items()})
            extents = forward.known.extents({**known, **given})
            words = {name: x for name, x in {**extents, **given}.items() if name in backward.known.sizes or name in backward.f.params}
            made = dict(zip(backward.known.outputs, backward(tuple(known[name] for name in backward.known.inputs), words)))
            return tuple(made.get(f"grad_{name}") for name in forward.known.inputs)

        function = jax.custom_vjp(plain)
        function.defvjp(with_inputs, gradients)
        return function(*args)

    call.__name__ = call.__qualname__ = f.name
    call.__doc__ = f"{f!r} for JAX."
    return call
