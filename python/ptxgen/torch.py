# SPDX-License-Identifier: Apache-2.0
"""Functions as operators of PyTorch, which torch.compile keeps in its graphs and autograd goes through: op = ptxgen.torch.op(f)."""
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._errors import UnsupportedError
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


made_of: dict[str, str] = {}  # what an operator of a name computes


def name_of(f, name, asked):
    """PyTorch drops an operator when another one takes its name, and functions from Python have the name of their kind: a second one that
    computes something else gets a name of its own."""
    content = repr((f.yaml, asked))
    if name is None and made_of.get(f.name, content) != content:
        name = f"{f.name}_{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    made_of[name or f.name] = content
    return name or f.name


def op(f: Function, name: str | None = None, *, wrt: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Callable[..., Any]:
    """f as an operator of PyTorch, 'ptxgen::NAME', by default after f, with a suffix where that is taken; it takes the inputs, then sizes that no input shows, then params, by position or name.

    Gradients are those of ptxgen.vjp(f, wrt, outputs); without one, the backward pass raises the reason."""
    known = Op(f)
    name = name_of(f, name, (wrt, outputs))
    made = torch.library.custom_op(f"ptxgen::{name}", known.run, mutates_args=(), schema=known.schema())
    made.register_fake(known.fake)
    try:
        gradient = vjp(f, wrt, outputs)
    except UnsupportedError as error:
        if wrt or outputs:
            raise
        return refused(made, error)
    back = Op(gradient)
    back_op = torch.library.custom_op(f"ptxgen::{name}_vjp", back.run, mutates_args=(), schema=back.schema())
    back_op.register_fake(back.fake)

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
    return made


def refused(made, error):
    """An operator whose backward pass says why there is none."""
    def backward(ctx, *grads):
        raise error

    made.register_autograd(backward, setup_context=lambda ctx, inputs, output: None)
    return made
