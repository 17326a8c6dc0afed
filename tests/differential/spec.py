# SPDX-License-Identifier: Apache-2.0
"""spec.py - a spec as plain data (what a YAML reader would give), its arrays, and their memory.

An array's elements are a list of values, row-major; those of an array of structures are tuples of fields.
"""
import re
import struct

from arith import BYTES, round_bf16
from expr import SpecError

CODES = {'i8': 'b', 'i16': 'h', 'i32': 'i', 'i64': 'q', 'u8': 'B', 'u16': 'H', 'u32': 'I', 'u64': 'Q',
         'f16': 'e', 'bf16': 'H', 'f32': 'f', 'f64': 'd', 'bool': '?'}


def named(dims):
    """Without the constant ones, which are '3#0' here."""
    return [d for d in dims if '#' not in d]


def spelled(shape):
    return [d.split('#')[0] for d in shape]


def joined(shape):
    return ', '.join(spelled(shape))


def parse_type(text):
    """'f32[m, n]' as (type, [dimension, ...])."""
    text = text.replace(' ', '')
    if '[' not in text:
        return text, []
    name, shape = text[:-1].split('[')
    return name, shape.split(',') if shape else []


def parse_dimension(text):
    """(name or None, what is added to it or the constant)."""
    text = str(text).replace(' ', '')
    if text.isdigit():
        return None, int(text)
    name, _, less = text.partition('-')
    return name, -int(less or 0)


class Array:
    def __init__(self, name, entry):
        self.name, self.entry, self.value = name, entry, None
        kind = entry
        if isinstance(entry, dict):
            self.value, kind = entry.get('value'), entry['type']
        if isinstance(kind, dict):
            self.type = tuple(kind.items())
            shape = entry.get('shape', [])
        else:
            self.type, shape = parse_type(kind)
        self.shape = [parse_dimension(d) for d in shape]
        self.keys = self.key_dimensions()

    def key_dimensions(self):
        """Names of the dimensions; the first constant 3 of a shape is '3#0', the next '3#1'."""
        keys = []
        for name, add in self.shape:
            number = sum(k.startswith(f'{add}#') for k in keys)
            keys.append(name or f'{add}#{number}')
        return keys

    def extents(self, sizes):
        return [max(0, sizes[name] + add) if name else add for name, add in self.shape]

    def count(self, sizes):
        count = 1
        for e in self.extents(sizes):
            count *= e
        return count

    def fields(self):
        return self.type if isinstance(self.type, tuple) else (('', self.type),)

    def layout(self):
        """(offsets of the fields, size of an element), as a C compiler has them."""
        offsets, at, widest = [], 0, 1
        for _, t in self.fields():
            at = -(-at // BYTES[t]) * BYTES[t]
            offsets.append(at)
            at += BYTES[t]
            widest = max(widest, BYTES[t])
        return offsets, -(-at // widest) * widest


def to_memory(t, v):
    if t == 'bf16':
        return struct.unpack('<I', struct.pack('<f', round_bf16(v)))[0] >> 16
    return v


def pack(array, values):
    """The memory image of elements."""
    if not isinstance(array.type, tuple):
        t = array.type
        return struct.pack(f'<{len(values)}{CODES[t]}', *(to_memory(t, v) for v in values))
    offsets, size = array.layout()
    image = bytearray(size * len(values))
    for i, element in enumerate(values):
        for (_, t), offset, v in zip(array.type, offsets, element):
            struct.pack_into('<' + CODES[t], image, i * size + offset, to_memory(t, v))
    return bytes(image)


def dimension_names(spec):
    """Sizes in the order in which they appear."""
    names = []
    for group in ('inputs', 'outputs'):
        for name, entry in spec[group].items():
            names += [d for d, _ in Array(name, entry).shape if d and d not in names]
    names += [d for d, _ in [parse_dimension(spec['bins'])] if d] if 'bins' in spec else []
    return list(dict.fromkeys(names))


def gathered_offsets(spec):
    """Inputs that give offsets of neighbours."""
    found = set()
    texts = list((spec.get('let') or {}).values())
    texts += [o['value'] for o in spec['outputs'].values() if isinstance(o, dict) and 'value' in o]
    texts += [t for o in spec['outputs'].values() if isinstance(o, dict) for t in texts_of(o.get('at') or [])]
    flat = []
    for text in texts:
        flat += text.values() if isinstance(text, dict) else [text]
    for text in flat:
        for part in str(text).split('gather(')[1:]:
            found.add(part.split(',')[1].strip())
    return found


def texts_of(part):
    if isinstance(part, dict):
        return [t for value in part.values() for t in texts_of(value)]
    return [t for value in part for t in texts_of(value)] if isinstance(part, list) else [str(part)]


def tables(spec):
    """Inputs that are read with at() alone."""
    placed, plain = set(), set((spec.get('iterate') or {}).get('feedback') or {})
    for part in ('by', 'let', 'map', 'outputs', 'reductions', 'scans', 'segments'):
        for text in texts_of(spec.get(part) or {}):
            words = re.findall(r'[A-Za-z_][A-Za-z_0-9]*|[0-9.]+|\S', text)
            for i, word in enumerate(words):
                if i and words[i - 1] == '.':
                    continue
                (placed if words[max(0, i - 2):i] == ['at', '('] else plain).add(word)
    return (placed - plain) & set(spec['inputs'])


def summed(spec):
    """Dimensions that sums go over."""
    found = set()
    for part in ('by', 'let', 'map', 'outputs', 'reductions', 'scans', 'segments'):
        for text in texts_of(spec.get(part) or {}):
            found |= set(re.findall(r'\b(?:sum|product|least|greatest|all|any)\((\w+),', text))
    return found | weighted(spec)


def weighted(spec):
    """The rows of offsets for which inputs have values, where others go over something else."""
    arrays = {n: Array(n, e) for n, e in spec['inputs'].items()}
    offsets = gathered_offsets(spec)
    rows = {arrays[n].shape[0][0] for n in offsets}
    plain = [a for n, a in arrays.items() if n not in offsets and a.shape]
    return {p for p in rows if p and any(p not in [d for d, _ in a.shape] for a in plain)}


def aside(spec):
    """Inputs that do not count for the iteration space."""
    given = spec.get('segments') or {}
    one = {given[k] for k in ('offsets', 'flags') if k in given and len(Array(given[k], spec['inputs'][given[k]]).keys) == 1}
    return one | gathered_offsets(spec) | tables(spec)


def iteration_space(spec):
    gone = summed(spec)
    arrays = [[k for k in Array(n, e).keys if k not in gone] for n, e in spec['inputs'].items() if n not in aside(spec)]
    wanted = {str(text) for text in spec.get('space') or []}
    arrays.append([k for n in sorted(tables(spec)) for k in Array(n, spec['inputs'][n]).keys
                   if k.split('#')[0] in wanted and k not in gone])
    union = list(dict.fromkeys(k for keys in arrays for k in keys))
    keys = next((keys for keys in arrays if set(keys) == set(union)), union)
    if not union:
        raise SpecError('no iteration space')
    if 'space' not in spec:
        return keys
    order = []
    for text in map(str, spec['space']):
        order += [k for k in keys if k.split('#')[0] == text and k not in order][:1]
    if set(order) != set(union) or len(spec['space']) != len(order):
        raise SpecError('space lists other dimensions')
    return order


def extents_by_key(spec, sizes):
    return {k: sizes[k] if k in sizes else int(k.split('#')[0])
            for name, entry in spec['inputs'].items() for k in Array(name, entry).keys}
