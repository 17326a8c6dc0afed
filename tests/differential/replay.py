# SPDX-License-Identifier: Apache-2.0
"""replay.py - one case of a seed again: its spec and data in files, and what shows it."""
import os
import subprocess

from arith import BYTES, UNKNOWN, Span
from casefile import case_record
from evaluate import KEEP
from generate import make_case
from shrink import shrink
from spec import pack


def descr(array):
    """The type of a .npy file, as Python text."""
    def one(t):
        return '|b1' if t == 'bool' else '<u2' if t == 'bf16' else f'{"|" if BYTES[t] == 1 else "<"}{t[0]}{BYTES[t]}'
    if not isinstance(array.type, tuple):
        return repr(one(array.type))
    offsets, size = array.layout()
    names, kinds = [f for f, _ in array.type], [one(t) for _, t in array.type]
    return repr({'names': names, 'formats': kinds, 'offsets': offsets, 'itemsize': size, 'aligned': True})


def write_npy(path, array, values, sizes):
    kind = descr(array)
    if isinstance(array.type, tuple):
        kind = repr(structured(array))
    shape = ''.join(f'{e}, ' for e in array.extents(sizes))
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': ({shape}), }}"
    header = header.ljust((len(header) + 10 + 64) // 64 * 64 - 11) + '\n'
    with open(path, 'wb') as f:
        f.write(b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header.encode() + pack(array, values))


def structured(array):
    """Fields with their padding, as numpy writes aligned structures."""
    offsets, size = array.layout()
    fields, at = [], 0
    for (name, t), offset in zip(array.type, offsets):
        if offset > at:
            fields.append(('', f'|V{offset - at}'))
        kind = '|b1' if t == 'bool' else '<u2' if t == 'bf16' else f'{"|" if BYTES[t] == 1 else "<"}{t[0]}{BYTES[t]}'
        fields.append((name, kind))
        at = offset + BYTES[t]
    return fields + ([('', f'|V{size - at}')] if size > at else [])


def shown(v):
    return 'as it was' if v is KEEP else 'anything' if v is UNKNOWN else f'[{v.lo!r}, {v.hi!r}]' if isinstance(v, Span) else repr(v)


def command(folder, k, run, case):
    words = ['ptxgen run', os.path.join(folder, 'spec.yaml'), '--device cpu']
    words += [f'--size {n}={v}' for n, v in run['sizes'].items()]
    words += [f'--param {n}={str(v).lower() if isinstance(v, bool) else repr(v)}' for n, v in run['params'].items()]
    words += [f'--input {a.name}={folder}/run{k}.{a.name}.npy' for a in run['inputs']]
    words += [f'--output {a.name}=-' for a in run['outputs']]
    words += [f'--simt={run["modes"]}'] if run['modes'] else []
    words += [f'--variant={case["settings"]["variant"]}'] if 'variant' in case['settings'] else []
    words += [f'--arch={case["settings"]["arch"]}'] if 'arch' in case['settings'] else []
    return ' '.join(words)


def write(folder, case):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'spec.yaml'), 'w', encoding='utf-8') as f:
        f.write(case['text'])
    for k, run in enumerate(case['runs']):
        for a in run['inputs']:
            write_npy(os.path.join(folder, f'run{k}.{a.name}.npy'), a, run['data'][a.name], run['sizes'])
        with open(os.path.join(folder, f'run{k}.expected'), 'w', encoding='utf-8') as f:
            for name, values in (run['expected'] or {'the launch is refused': []}).items():
                f.writelines(f'{name}[{i}] {shown(v)}\n' for i, v in enumerate(values))


def show(folder, case):
    print(case['text'], end='')
    for k, run in enumerate(case['runs']):
        print(f'run {k}: sizes {run["sizes"]} params {run["params"]} shifts {run["shift"]} modes {run["modes"]!r} {run["again"]!r}')
        print('  ' + command(folder, k, run, case))
    print(f'settings: {case["settings"]}')


def replay(options, find_runner):
    seed, index = options.replay.rsplit('/', 1)
    case = make_case(seed, int(index))
    folder = options.to or f'differential-{seed}-{index}'
    if case is None:
        print('this case was drawn without result')
        return 0
    write(folder, case)
    path = os.path.join(folder, 'case.bin')
    with open(path, 'wb') as f:
        f.write(case_record(case))
    show(folder, case)
    runner = [find_runner()] + (['--gpu'] if options.gpu else [])
    print(' '.join(runner + [path]), flush=True)
    status = subprocess.run(runner + ['--verbose', path], check=False).returncode
    if options.shrink and status:
        small, message = shrink(case, runner)
        print('---- smaller:')
        write(folder + '-small', small)
        show(folder + '-small', small)
        print(message)
    return status
