# SPDX-License-Identifier: Apache-2.0
"""launch_manifest.py NAME.json NAME.ptx NAME=VALUE... - runs a program on zeros by its manifest, without ptxgen: docs/manifest.md walks through it."""
import ctypes, fractions, functools, json, math, operator as o, os, re, struct, sys
cu, I32, U64 = ctypes.CDLL(os.environ.get('PTXGEN_LIBCUDA', 'libcuda.so.1')), ctypes.c_int, ctypes.c_uint64
PACK = {'bool': '?', 'i8': 'b', 'i16': 'h', 'i32': 'i', 'i64': 'q', 'u8': 'B', 'u16': 'H', 'u32': 'I', 'u64': 'Q', 'f16': 'e', 'f32': 'f', 'f64': 'd'}
OPS = {x: eval(f'lambda a, b: a {x} b') for x in '+ - * < <= == != >= > and or'.split()} | {'min': min, 'max': max, 'not': o.not_, 'cdiv': lambda a, b: -(-a // b) if b else 0, 'pow2': lambda a, b: 1 << min(max(-(-a // b) - 1 if b else 0, 0).bit_length(), 62),
       '/': lambda a, b: int(fractions.Fraction(a, b)) if b else 0, '%': lambda a, b: a - b * int(fractions.Fraction(a, b)) if b else 0}
def call(name, *args): (error := getattr(cu, name)(*args)) and sys.exit(f'{name}: error {error}')
def get(kind, name, *args): return call(name, ctypes.byref(value := kind()), *args) or value.value
memory = functools.cache(lambda owner, bits: call('cuMemsetD8Async', U64(at := get(U64, 'cuMemAlloc_v2', U64(1 << bits))), 0, U64(1 << bits), None) or at)
def formula(f, at, absent=0):
    stack = []
    for t in f['postfix'] if f else [absent]:
        n, of = (t in OPS) * (2 - (t == 'not')), [at[name] for name in re.findall(r'\w+', t)[1:]] if re.match('misalign|apart', str(t)) else []
        bits = functools.reduce(o.or_, [(a ^ (of[0] if t[0] == 'a' else 0)) & 15 for a in of], 0)
        stack[len(stack) - n:] = [OPS[t](*stack[len(stack) - n:]) if n else bits if of else word.get(t, t if isinstance(t, int) else 0)]
    return int(stack[0])
def argument(a, m, at, buffer, first, left):
    kind, index = a['kind'], a.get('index')
    if kind in ('value', 'param'):
        kind, x = (a['type'], formula(a['value'], at)) if kind == 'value' else (m['params'][index]['type'], word[f'param({a["of"]})'])
        return struct.pack('f', x)[2:] if kind == 'bf16' else struct.pack(PACK[kind], x)
    if kind == 'next' or kind == 'fed' and not first: kind, index = ('output', a['output']) if left % 2 == (kind == 'next') else ('buffer', a['buffer'])
    return struct.pack('Q', buffer[index] if kind == 'buffer' else at[m['outputs' if kind == 'output' else 'inputs'][index]['name']])
def launch(m, at):  # a program of version 1; at: the addresses of arrays
    for check in m['checks']: formula(check['condition'], at) or sys.exit(check['message'])
    case = next(c for c in m['cases'] if formula(c['guard'], at, 1))
    launches = [(s, k := case['kernels'][s['kernel']], U64(get(U64, 'cuModuleGetFunction', module, k['name'].encode()))) for s in case['steps']]
    for s, k, f in launches:
        call('cuFuncSetAttribute', f, 8, word['smem'] - k['shared_static']) or call('cuFuncSetAttribute', f, 14, int(s['nonportable_cluster']))
        word[f'resident({k["name"]})'] = get(I32, 'cuOccupancyMaxActiveBlocksPerMultiprocessor', f, k['threads'], U64(formula(s['shared'], at)))
    buffer = [memory((m['name'], case['name'], i), max(formula(b['bytes'], at), 256).bit_length()) for i, b in enumerate(case['buffers'])]
    left = sweeps = sum(formula(s['repeat'], at) for s, _, _ in launches)
    for s, k, f in launches:
        for _ in range(formula(s['repeat'], at, 1) if formula(s['grid'], at) else 0):
            kept, cluster = [ctypes.create_string_buffer(argument(a, m, at, buffer, left == sweeps, left)) for a in k['args']], formula(s['cluster'], at, k['cluster'])
            extra = [(6, 1)] * (s['dependent'] and word['arch'] >= 90) + [(4, cluster)] * (cluster > 0)
            packed = ctypes.create_string_buffer(b''.join(struct.pack('I4xIII52x', name, x, 1, 1) for name, x in extra))
            config = struct.pack('7I4xQQI4x', formula(s['grid'], at), 1, 1, k['threads'], 1, 1, formula(s['shared'], at), 0, ctypes.addressof(packed), len(extra))
            call('cuLaunchKernelEx', config, f, (ctypes.c_void_p * len(kept))(*map(ctypes.addressof, kept)), None)
            left -= s['repeat'] is not None
whole, given = json.load(open(sys.argv[1])), dict(x.split('=') for x in sys.argv[3:])
call('cuInit', 0) or call('cuCtxSetCurrent', U64(get(U64, 'cuDevicePrimaryCtxRetain', 0)))
word = {name: get(I32, 'cuDeviceGetAttribute', number, 0) for name, number in (('sms', 16), ('major', 75), ('minor', 76), ('smem', 97))}
word |= {'arch': 10 * word['major'] + word['minor']} | {w: int(given[s]) for s in whole['sizes'] for w in (s, f'size({s})')}
word |= {f'param({p["name"]})': (float if 'f' in p['type'] else int)(given.get(p['name'], p.get('default'))) for p in whole['params']}
arrays, module = whole['inputs'] + whole['outputs'] + [b['array'] for b in whole.get('between', [])], U64(get(U64, 'cuModuleLoadData', open(sys.argv[2], 'rb').read() + b'\0'))
size = {a['name']: a['stride'] * math.prod(d['constant'] if 'constant' in d else word[d['size']] + d['add'] for d in a['shape']) for a in arrays}
def home(name, twin=0): return memory((name, twin), size[name].bit_length())
at, done, step, until, stages = {a: home(a) for a in size}, I32(0), 0, whole.get('until'), whole.get('stages', [{'program': whole}])
feedback, steps = whole.get('feedback', []), word.get(f'param({whole.get("steps")})', whole.get('steps', 1))
while step < steps and not done.value:  # a step reads what the last one wrote; the last of all writes home
    for f in feedback: at[f['input']], at[f['output']] = at[f['output']] if step else home(f['input']), home(f['output'], f['twin'] * (steps - 1 - step) % 2)
    checks, word['param(step)'], step = until and (step + 1) % whole['check_every'] == 0, step, step + 1
    for s in stages[:-1] if until and not checks else stages: launch(s['program'], at)
    if checks and step < steps: call('cuMemcpyDtoH_v2', ctypes.byref(done), U64(at[until]), U64(1))
for f in feedback: (a := at[f['output']] if step else home(f['input'])) == (b := home(f['output'])) or call('cuMemcpyDtoDAsync_v2', U64(b), U64(a), U64(size[f['output']]), None)
for a in whole['outputs']:
    call('cuMemcpyDtoH_v2', host := ctypes.create_string_buffer(64), U64(home(a['name'])), U64(n := min(size[a['name']], 32))) or print(a['name'], host.raw[:n].hex(' ', a['stride']))
