# SPDX-License-Identifier: Apache-2.0
"""Functions as operators of PyTorch, which torch.compile keeps in its graphs and autograd goes through: op = ptxgen.torch.op(f)."""
import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._errors import UnsupportedError, UsageError
from ._known import Known
from ._native import Function
from ._vjp import vjp


class Op(Known):
    """What an operator of PyTorch knows about a function."""

    def schema(self):
        kind = {"f": "float", "b": "float", "i": "int", "u": "int"}
        params = [f"{'bool' if type_ == 'bool' else kind[type_[0]]}? {name}=None" for name, type_ in self.f.params.items()]
        args = [*(f"Tensor {name}" for name in self.inputs), *(f"SymInt {name}" for name in self.sizes), *params]
        results = ", ".join(["Tensor"] * len(self.outputs))
        return f"({', '.join(args)}) -> {results if len(self.outputs) == 1 else f'({results})'}"

    def run(self, *args, **given):
        made = self.f(**self.words(args, given))
        return tuple(made) if len(self.outputs) > 1 else made

    def fake(self, *args, **given):
        """Tensors of the types and shapes of the results."""
        words = self.words(args, given)
        sizes = self.extents(words)
        like = words[next(iter(self.inputs))]
        made = [like.new_empty(shape, dtype=getattr(torch, type_)) for type_, shape in self.results(sizes)]
        return tuple(made) if len(made) > 1 else made[0]


# By name, what an operator is made of, and the operator.  PyTorch drops an operator when another one takes its name, so none does.
registered: dict[str, tuple[str, Callable[..., Any]]] = {}
NAMELESS = re.compile(r"(spec|reduce|scan|stencil)(_vjp)*")  # what a function is called that was given no name


def taken(name, content):
    return registered.get(name, (content,))[0] != content


def free_name(name, content):
    """The name, with a part of the content's hash if a function has no name of its own, or another one has it.  Processes that make the same
    functions should give them the same names, because torch.compile keeps graphs by the names of operators."""
    if NAMELESS.fullmatch(name) or taken(name, content):
        return f"{name}_{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    return name


def op(f: Function, name: str | None = None, *, wrt: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Callable[..., Any]:
    """f as an operator of PyTorch, 'ptxgen::NAME'; it takes the inputs, then sizes that no input shows, then params, by position or name.

    The name is f's; if f has none, or another function has it, it ends in a hash of the spec and the options.  The same again gives the same operator.
    Gradients are those of ptxgen.vjp(f, wrt, outputs); without one, the backward pass raises the reason."""
    content = repr((f.yaml, sorted(f._choice.items()), wrt and list(wrt), outputs and list(outputs)))  # type: ignore[attr-defined]
    if name is not None and taken(name, content):
        raise UsageError(f"another function is 'ptxgen::{name}' in this process: give this one another name, or none")
    name = name or free_name(f.name, content)
    if name not in registered:
        gradient = reason = None
        try:
            gradient = vjp(f, wrt, outputs)
        except UnsupportedError as error:
            if wrt or outputs:
                raise
            reason = error
        known, back_content = Op(f), f"backward of {content}"
        made = register(known, name, content)
        if gradient is None:
            refused(made, reason)
        else:
            back = Op(gradient)
            differentiable(made, known, back, register(back, free_name(f"{name}_vjp", back_content), back_content))
    return registered[name][1]


def register(known, name, content):
    made = torch.library.custom_op(f"ptxgen::{name}", known.run, mutates_args=(), schema=known.schema())
    made.register_fake(known.fake)
    registered[name] = content, made
    return made


def refused(made, error):
    """The backward pass says why there is none."""
    def backward(ctx, *grads):
        raise error

    made.register_autograd(backward, setup_context=lambda ctx, inputs, output: None)


def differentiable(made, known, back, back_op):
    """The backward pass is an operator of its own."""
    def setup_context(ctx, inputs, output):  # pylint: disable=unused-argument
        words = known.words(inputs, {})
        ctx.save_for_backward(*(words[x] for x in known.inputs if x in back.inputs))
        ctx.words = {x: y for x, y in {**words, **known.extents(words)}.items() if x in back.names and x not in back.inputs}

    def backward(ctx, *grads):
        words = {**ctx.words, **dict(zip((x for x in known.inputs if x in back.inputs), ctx.saved_tensors))}
        words.update({x: grads[i].contiguous() for i, x in enumerate(f"grad_{y}" for y in known.outputs) if x in back.inputs})
        results = back_op(**words)
        by_name = dict(zip(back.outputs, results if len(back.outputs) > 1 else (results,)))
        return tuple(by_name.get(f"grad_{x}") for x in known.names)

    made.register_autograd(backward, setup_context=setup_context)
