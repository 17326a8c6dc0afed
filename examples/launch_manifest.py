#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launch_manifest.py NAME.json NAME.ptx KEY=VALUE... - launches what a manifest describes (docs/manifest.md) without ptxgen.
A KEY is a size or a param.  The bytes of all inputs are 0; the first bytes of each output are printed."""
import ctypes, json, operator, os, re, struct, sys
cu = ctypes.CDLL(os.environ.get('PTXGEN_LIBCUDA', 'libcuda.so.1'))
PACK = dict(bool='?', i8='b', i16='h', i32='i', i64='q', u8='B', u16='H', u32='I', u64='Q', f16='e', f32='f', f64='d')
OPS = {'+': operator.add, '-': operator.sub, '*': operator.mul, '/': lambda a, b: int(a / b) if b else 0, 'min': min, 'max': max,
       '%': lambda a, b: a - b * OPS['/'](a, b), 'cdiv': lambda a, b: -(-a // b) if b else 0, '<': operator.lt, '<=': operator.le, '==': operator.eq,
       '!=': operator.ne, '>=': operator.ge, '>': operator.gt, 'and': lambda a, b: a and b, 'or': lambda a, b: a or b}
def call(name, *args):  # 64 bits for every address: a plain number would be a C int
    if result := getattr(cu, name)(*args):
        sys.exit(f'{name}: CUDA error {result}')
def get(name, *args, kind=ctypes.c_int):
    call(name, ctypes.byref(out := kind()), *args)
    return out.value
def allocate(n):
    call('cuMemsetD8Async', ctypes.c_uint64(p := get('cuMemAlloc_v2', ctypes.c_size_t(n or 1), kind=ctypes.c_uint64)), 0, ctypes.c_size_t(n), None)
    return p
def elements(array, size):
    dims = [d['constant'] if 'constant' in d else size[d['size']] + d['add'] for d in array['shape']]
    return 0 if min(dims, default=1) < 0 else __import__('math').prod(dims)
class Program:
    def __init__(self, m, module):
        self.m, self.memory = m, {}  # buffers keep their place, and what control buffers hold, from launch to launch
        self.kernel = {k['name']: get('cuModuleGetFunction', module, k['name'].encode(), kind=ctypes.c_void_p) for c in m['cases'] for k in c['kernels']}
    def launch(self, size, array, param):
        m, resident = self.m, {}
        at = dict(zip([a['name'] for a in m['inputs'] + m['outputs']], array))
        def word(w):
            name, *of = re.findall(r'\w+', w)
            first = at[of[0]] if name == 'apart' else 0
            bits = __import__('functools').reduce(operator.or_, [at[a] ^ first for a in of], 0) % 16 if name in ('misalign', 'apart') else 0
            special = {'misalign': bits, 'apart': bits, 'resident': resident.get(*of, 0) if name == 'resident' else 0, 'param': param.get(*of) if name == 'param' else 0}
            return special[name] if of and name in special else size[of[0]] if of else DEVICE.get(w, size.get(w))
        def formula(f, absent=0):
            stack = []
            for token in f['postfix'] if f else [absent]:
                b = stack.pop() if token in OPS or token == 'not' else None
                stack.append(not b if token == 'not' else OPS[token](stack.pop(), b) if token in OPS else token if isinstance(token, int) else word(token))
            return int(stack[0])
        for c in m['checks']:
            formula(c['condition']) or sys.exit(c['message'])
        case = next(c for c in m['cases'] if formula(c['guard'], 1))
