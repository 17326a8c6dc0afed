# SPDX-License-Identifier: Apache-2.0
"""What libraries that trace calls have to know about a function before it runs: types and shapes, from its declarations."""
import re

from ._errors import UnsupportedError

TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "bool": "bool", "u8": "uint8", "u16": "uint16", "u32": "uint32",
         "u64": "uint64", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"}


def shape(declaration):
    """(type, [(size or None, what is added)]) of "f32[m, k - 1]"."""
    if declaration[0] == "{":
        raise UnsupportedError(f"an array of structures, {declaration}, is no tensor")
    type_, _, dims = declaration.rstrip("]").partition("[")
    made = []
    for dim in filter(None, dims.split(", ")):
        name, sign, add = re.fullmatch(r"(\w+)(?: ([+-]) (\d+))?", dim).groups()
        made.append((None, int(name)) if name.isdigit() else (name, int((sign or "") + (add or "0"))))
    return TYPES[type_], made


class Known:
    """A function's inputs and outputs as (type, dimensions) by name, and the sizes that no input shows."""

    def __init__(self, f):
        self.f, self.inputs = f, {name: shape(text) for name, text in f.inputs.items()}
        self.outputs = {name: shape(text) for name, text in f.outputs.items()}
        seen = {size for _, dims in self.inputs.values() for size, _ in dims}
        self.sizes = [size for size in f.sizes if size not in seen]
        self.names = [*self.inputs, *self.sizes, *f.params]

    def words(self, args, given):
        """The arguments by name, without params that have their defaults."""
        return {name: x for name, x in {**dict(zip(self.names, args)), **given}.items() if x is not None}

    def extents(self, words):
        """All sizes by name, each from the first input that shows it."""
        seen = {size: extent - add for name, (_, dims) in reversed(self.inputs.items()) for (size, add), extent in zip(dims, words[name].shape) if size}
        return {**seen, **{size: words[size] for size in self.sizes}}

    def results(self, sizes):
        """(type, shape) of each output."""
        return [(type_, tuple(sizes[size] + add if size else add for size, add in dims)) for type_, dims in self.outputs.values()]
