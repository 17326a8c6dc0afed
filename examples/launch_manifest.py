#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launch_manifest.py NAME.json NAME.ptx KEY=VALUE... - runs a program by its manifest, without ptxgen.

A KEY is a size or a param.  Inputs are zero; the first bytes of the outputs are printed.  docs/manifest.md explains it.
"""
import ctypes, json, math, operator as o, os, re, struct, sys

cu = ctypes.CDLL(os.environ.get('PTXGEN_LIBCUDA', 'libcuda.so.1'))
I32, U64, PTR = ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p
PACK = {'bool': '?', 'i8': 'b', 'i16': 'h', 'i32': 'i', 'i64': 'q', 'u8': 'B', 'u16': 'H', 'u32': 'I', 'u64': 'Q', 'f16': 'e', 'f32': 'f', 'f64': 'd'}
DEVICE = {'sms': 16, 'major': 75, 'minor': 76, 'smem': 97}  # numbers of the driver's attributes, then their values
OPS = {'+': o.add, '-': o.sub, '*': o.mul, '/': lambda a, b: int(math.copysign(1, a * b)) * (abs(a) // abs(b)) if b else 0,
       '%': lambda a, b: a - b * OPS['/'](a, b) if b else 0, 'cdiv': lambda a, b: -(-a // b) if b else 0, 'min': min, 'max': max, '<': o.lt, '<=': o.le,
       '==': o.eq, '!=': o.ne, '>=': o.ge, '>': o.gt, 'and': lambda a, b: a and b, 'or': lambda a, b: a or b}

def call(name, *args):
    if result := getattr(cu, name)(*args):
        sys.exit(f'{name}: error {result}')

def get(kind, name, *args):
    call(name, ctypes.byref(value := kind()), *args)
    return value

def allocate(count):  # all zero
    call('cuMemsetD8Async', address := get(U64, 'cuMemAlloc_v2', U64(count or 1)), 0, U64(count or 1), None)
    return address.value

def array_bytes(array, size):
    return array['stride'] * math.prod(d['constant'] if 'constant' in d else size[d['size']] + d['add'] for d in array['shape'])

def start(function, kernel, step, grid, shared, cluster, values):
    kept = [ctypes.create_string_buffer(v) for v in values]
    args = (PTR * len(kept))(*map(ctypes.addressof, kept))
    attributes = [(6, 1)] if step['dependent'] and DEVICE['arch'] >= 90 else []
    attributes += [(4, cluster)] * (cluster > 0)
    packed = ctypes.create_string_buffer(b''.join(struct.pack('I4xIII52x', name, x, 1, 1) for name, x in attributes))
    call('cuLaunchKernelEx', struct.pack('7I4xQQI4x', grid, 1, 1, kernel['threads'], 1, 1, shared, 0, ctypes.addressof(packed), len(attributes)), function, args, None)

class Program:  # of one manifest of version 1
    def __init__(self, manifest, module):
        self.m, self.module, self.kept = manifest, module, {}

    def formula(self, f, absent=0):
        stack = []
        for t in f['postfix'] if f else [absent]:
            if t in OPS or t == 'not':
                b = stack.pop()
                stack.append(not b if t == 'not' else OPS[t](stack.pop(), b))
            elif str(t).startswith(('misalign(', 'apart(')):
                of = [self.at[name] for name in re.findall(r'\w+', t)[1:]]
                stack.append(sum(bit for bit in (1, 2, 4, 8) if any((a ^ (of[0] if t[0] == 'a' else 0)) & bit for a in of)))
            else:
                stack.append(t if isinstance(t, int) else self.word.get(t, 0))
        return int(stack[0])

    def argument(self, a, address, buffer, sweep, left):
        if a['kind'] in ('value', 'param'):
            kind, value = (a['type'], self.formula(a['value'])) if a['kind'] == 'value' else (self.m['params'][a['index']]['type'], self.word[f'param({a["of"]})'])
            return struct.pack('f', value)[2:] if kind == 'bf16' else struct.pack(PACK[kind], value)
        kind, index = a['kind'], a['index']
        if kind == 'next' or kind == 'fed' and sweep:  # output and buffer take turns, so that the last sweep writes the output
            kind, index = ('output', a['output']) if left % 2 == (kind == 'next') else ('buffer', a['buffer'])
        return struct.pack('Q', buffer[index] if kind == 'buffer' else address[index + (len(self.m['inputs']) if kind == 'output' else 0)])

    def launch(self, size, address, param):
        self.at = dict(zip([a['name'] for a in self.m['inputs'] + self.m['outputs']], address))
        self.word = {**DEVICE, **size, **{f'size({k})': v for k, v in size.items()}, **{f'param({k})': v for k, v in param.items()}}
        for check in self.m['checks']:
            self.formula(check['condition']) or sys.exit(check['message'])
        case = next(c for c in self.m['cases'] if self.formula(c['guard'], 1))
        function = [get(PTR, 'cuModuleGetFunction', self.module, k['name'].encode()) for k in case['kernels']]
        for s in case['steps']:
            kernel, shared = case['kernels'][s['kernel']], self.formula(s['shared'])
            call('cuFuncSetAttribute', function[s['kernel']], 8, DEVICE['smem'] - kernel['shared_static'])
            call('cuFuncSetAttribute', function[s['kernel']], 14, int(s['nonportable_cluster']))
            self.word[f'resident({kernel["name"]})'] = get(I32, 'cuOccupancyMaxActiveBlocksPerMultiprocessor', function[s['kernel']], kernel['threads'], U64(shared)).value
        need = [self.formula(b['bytes']) for b in case['buffers']]
        place = [(case['name'], i, max(n, 256).bit_length()) for i, n in enumerate(need)]  # kept: control buffers hold what launches left there
        self.kept.update({p: allocate(1 << p[2]) for p in place if p not in self.kept})
        sweep, sweeps = 0, sum(self.formula(s['repeat']) for s in case['steps'] if s['repeat'])
        for s in case['steps']:
            kernel, grid = case['kernels'][s['kernel']], self.formula(s['grid'])
            for _ in range(self.formula(s['repeat'], 1) if grid else 0):
                values = [self.argument(a, address, [self.kept[p] for p in place], sweep, sweeps - sweep) for a in kernel['args']]
                start(function[s['kernel']], kernel, s, grid, self.formula(s['shared']), self.formula(s['cluster'], kernel['cluster']), values)
                sweep += s['repeat'] is not None

def main():
    whole, given = json.load(open(sys.argv[1])), dict(x.split('=') for x in sys.argv[3:])
    names = [[a['name'] for a in whole[k]] for k in ('inputs', 'outputs')]
    if whole['manifest'] == 1:  # one stage
        whole.update(between=[], feedback=[], steps=1, until=None, check_every=1, stages=[{'inputs': names[0], 'outputs': names[1], 'program': dict(whole)}])
    call('cuInit', 0)
    call('cuCtxSetCurrent', get(PTR, 'cuDevicePrimaryCtxRetain', 0))
    DEVICE.update({k: get(I32, 'cuDeviceGetAttribute', v, 0).value for k, v in DEVICE.items()})
    DEVICE['arch'] = 10 * DEVICE['major'] + DEVICE['minor']
    module = get(PTR, 'cuModuleLoadData', open(sys.argv[2], 'rb').read() + b'\0')
    size = {s: int(given[s]) for s in whole['sizes']}
    param = {p['name']: (float if 'f' in p['type'] else int)(given.get(p['name'], p.get('default'))) for p in whole['params']}
    home = {a['name']: allocate(array_bytes(a, size)) for a in whole['inputs'] + whole['outputs'] + [b['array'] for b in whole['between']]}
    arrays = {a['name']: a for a in whole['outputs'] + [b['array'] for b in whole['between']]}
    twin = {f['output']: allocate(array_bytes(arrays[f['output']], size)) if f['twin'] else home[f['output']] for f in whole['feedback']}
    program, at, step = [Program(s['program'], module) for s in whole['stages']], dict(home), 0
    steps = whole['steps'] if isinstance(whole['steps'], int) else param[whole['steps']]
    done = I32(0)
    while step < steps and not done.value:
        for f in whole['feedback']:  # what the last step wrote is read, and the other memory written; the last step writes home
            at[f['input']] = at[f['output']] if step else home[f['input']]
            at[f['output']] = twin[f['output']] if (steps - 1 - step) % 2 else home[f['output']]
        checks = whole['until'] and (step + 1) % whole['check_every'] == 0  # else nobody reads what the last stage writes
        for p, s in zip(program, whole['stages'][:-1] if whole['until'] and not checks else whole['stages']):
            p.launch(size, [at[name] for name in s['inputs'] + s['outputs']], {**param, 'step': step})
        if checks and step + 1 < steps:
            call('cuStreamSynchronize', None)
            call('cuMemcpyDtoH_v2', ctypes.byref(done), U64(at[whole['until']]), U64(1))
        step += 1
    for f in whole['feedback']:
        last = at[f['output']] if step else home[f['input']]
        if last != home[f['output']]:
            call('cuMemcpyDtoDAsync_v2', U64(home[f['output']]), U64(last), U64(array_bytes(arrays[f['output']], size)), None)
    call('cuStreamSynchronize', None)
    for a in whole['outputs']:
        count = min(array_bytes(a, size), 32)
        call('cuMemcpyDtoH_v2', host := ctypes.create_string_buffer(count + 1), U64(home[a['name']]), U64(count))
        print(a['name'], host.raw[:count].hex(' ', a['stride']))

main()
