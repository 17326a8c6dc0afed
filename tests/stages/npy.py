# SPDX-License-Identifier: Apache-2.0
"""npy.py - arrays of a run as .npy files, without NumPy."""
import array
import re

CODES = {'f4': 'f', 'f8': 'd', 'i4': 'i', 'i8': 'q', 'u4': 'I', 'u1': 'B'}


def write(path, kind, shape, values):
    text = "{'descr': '<%s', 'fortran_order': False, 'shape': (%s), }" % (kind, ''.join(f'{n}, ' for n in shape))
    head = text + ' ' * (-(len(text) + 11) % 64) + '\n'
    with open(path, 'wb') as f:
        f.write(b'\x93NUMPY\x01\x00' + len(head).to_bytes(2, 'little') + head.encode())
        array.array(CODES[kind], values).tofile(f)


def read(path):
    data = open(path, 'rb').read()
    end = 10 + int.from_bytes(data[8:10], 'little')
    kind = re.search(rb"'descr': '[<|](\w\w)'", data[:end]).group(1).decode()
    values = array.array(CODES[kind])
    values.frombytes(data[end:])
    return list(values)
