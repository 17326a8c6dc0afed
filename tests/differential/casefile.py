# SPDX-License-Identifier: Apache-2.0
"""casefile.py - cases for the runner: a spec, settings, and runs with data and what must come.

A number is u32; a text is a u64 length and its bytes; a list is its u32 count and its items.  A file is a list of texts
without a count, each a case:

    id, spec, settings [name, value], runs [modes, modes of the second launch, refused, same bits, sizes [name, value],
    params [name, value], inputs [array], outputs [array]]
    array: name, shift in bytes, memory image, agreement of each component (a byte), ranges (two doubles each)
"""
import struct

from arith import UNKNOWN, Span, is_float
from evaluate import KEEP
from spec import pack

BITS, KEPT, ANY, RANGE, ZERO = range(5)


def text(s):
    s = s if isinstance(s, bytes) else str(s).encode()
    return struct.pack('<Q', len(s)) + s


def number(n):
    return struct.pack('<I', n)


def listing(items):
    return number(len(items)) + b''.join(items)


def settings(mapping):
    return listing([text(k) + text(repr(v) if isinstance(v, float) else int(v) if isinstance(v, bool) else v)
                    for k, v in mapping.items()])


def array(name, shift, image, mask=b'', ranges=b''):
    return text(name) + number(shift) + text(image) + text(mask) + text(ranges)


def component(v, t, zeros_alike):
    """(value to pack, agreement, range)."""
    nothing = 0.0 if is_float(t) else False if t == 'bool' else 0
    if v is KEEP or v is UNKNOWN:
        return nothing, KEPT if v is KEEP else ANY, b''
    if isinstance(v, Span):
        if not is_float(t):
            return nothing, ANY, b''
        middle = (v.lo + v.hi) / 2
        return middle if abs(middle) < 1e4 else 0.0, RANGE, struct.pack('<dd', v.lo, v.hi)
    return v, ZERO if zeros_alike else BITS, b''


def expected(output, values, zeros_alike):
    """(image, mask, ranges) of an output."""
    fields = output.fields()
    single = not isinstance(output.type, tuple)
    elements, mask, ranges = [], bytearray(), bytearray()
    for v in values:
        parts = [v] if single else [v] * len(fields) if v is KEEP or v is UNKNOWN else v
        done = [component(p, t, zeros_alike) for p, (_, t) in zip(parts, fields)]
        elements.append(done[0][0] if single else tuple(d[0] for d in done))
        for _, how, ends in done:
            mask.append(how)
            ranges += ends
    return pack(output, elements), bytes(mask), bytes(ranges)


def run_record(run):
    """run: a dict of what generate.py makes."""
    inputs = [array(a.name, run['shift'].get(a.name, 0), pack(a, run['data'][a.name])) for a in run['inputs']]
    outputs = []
    for a in run['outputs']:
        values = run['expected'][a.name] if run['expected'] is not None else [UNKNOWN] * a.count(run['sizes'])
        outputs.append(array(a.name, run['shift'].get(a.name, 0), *expected(a, values, run['zeros_alike'])))
    return (text(run['modes']) + text(run['again']) + number(run['expected'] is None) + number(run['same_bits']) +
            settings(run['sizes']) + settings(run['params']) + listing(inputs) + listing(outputs))


def case_record(case):
    body = (text(case['id']) + text(case['text']) + settings(case['settings']) +
            listing([run_record(r) for r in case['runs']]))
    return text(body)
