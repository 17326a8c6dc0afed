#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""files.py PTXGEN FAKE_CUDA SPECS [CUDA_INCLUDE COMPILER...] - what leaves ptxgen launches what the library launches.

The driver that only records (tests/support/fake_cuda.c) writes down what `ptxgen run` asks for, and what the generated
header of the same spec does: kernels, grids, all arguments, copies, reads of the condition.  An address is an array of the
user's, or memory of the launcher; which memory that is may differ, but not which arguments share it.

What repeats until a condition holds is a graph to the library where the driver has conditional nodes; the graph, as that
driver goes through it, launches what the library's own walk launches with an older driver.
"""
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# spec, sizes, params without defaults and others that are wanted, steps until the condition holds
ROWS = [
    ('apps/heat', 'm=30 n=40', '', 3),
    ('apps/heat', 'm=300 n=1000', 'steps=2', 9),
    ('apps/hotspot', 'm=40 n=40', 'step_div_cap=0.1 rx=1.0 ry=2.0 rz=3.0 amb=80.0', 4),
    ('apps/srad', 'm=64 n=96', 'steps=4', 1),
    ('apps/conjugate_gradient', 'm=33 n=70', '', 2),
    ('apps/kmeans', 'n=5000 f=4 k=5', '', 5),
    ('apps/backpropagation', 'n=5000 h=16 o=3', 'steps=3', 1),
    ('apps/radix_sort', 'n=100000', '', 1),
    ('apps/components', 'v=1000 e=7000', '', 2),
    ('seldom', 'n=3000', '', 3),
    ('inner', 'n=3000', '', 1),
    ('feeds', 'n=500', 'times=0', 1),
    ('dot', 'n=1000000', '', 1),
    ('row_softmax', 'm=300 n=1000', '', 1),
    ('jacobi2d', 'm=700 n=900', 'steps=5', 1),
    ('scan_sum', 'n=1000000', '', 1),
    ('segment_sum', 'n=10000 k=101', '', 1),
    ('histogram', 'n=100000', '', 1),
    ('polynomial', 'n=1000', 'at=0.5', 1),
]
SPECS = {  # beside those of specs/
    'inner': 'inputs: {x: "f32[n]"}\nstages:\n  a: {kind: stencil, boundary: clamp, outputs: {y: {type: "f32[n]", value: "x[1] * 0.5"}}, '
             'iterate: {steps: step, feedback: {x: y}}}\n  b: {kind: map, outputs: {z: {type: "f32[n]", value: "y + x"}}}\n'
             'outputs: [z]\niterate: {steps: 4, feedback: {x: z}}\n',
    'seldom': 'inputs: {x: "f32[n]"}\nparams: {steps: {type: i32, value: 9}}\nstages:\n'
              '  a: {kind: stencil, boundary: clamp, outputs: {y: {type: "f32[n]", value: "(x[-1] + x[1]) * 0.5"}}}\n'
              '  b: {kind: reduce, map: y, operator: max, outputs: {top: f32}}\noutputs: [y, top]\n'
              'iterate: {steps: steps, feedback: {x: y}, until: top < 0.25, check_every: 2}\n',
    'feeds': 'inputs: {x: "i16[n]", y: "f64[n]"}\nparams: {times: i64}\nstages:\n  a: {kind: map, outputs: {u: {type: "f64[n]", value: y + f64(x)}}}\n'
             '  b: {kind: map, outputs: {v: {type: "i16[n]", value: x + 1}}}\noutputs: [u, v]\niterate: {steps: times, feedback: {x: v, y: u}}\n',
}
ADDRESS = re.compile(r'm(\d+)\+\d+')


def pairs(text):
    return dict(p.split('=') for p in text.split())


# Drivers of CUDA 12.3 have no conditional nodes.
def run(command, log, steps, version=12030):
    env = dict(os.environ, FAKE_CUDA_LOG=log, FAKE_CUDA_STEPS=str(steps), FAKE_CUDA_VERSION=str(version), PTXGEN_CACHE='off')
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        return [f'{command[0]} ended with {done.returncode}: {done.stdout[-300:]}{done.stderr[-600:]}']
    # Which memory is made zero, and when, is a launcher's own affair.
    return [line for line in pathlib.Path(log).read_text().splitlines() if not re.match(r'fill \S+ 0 ', line)]


def differs(mine, wanted, users, one_to_one):
    """What differs: '' for nothing."""
    there, back = {}, {}
    for number, (a, b) in enumerate(zip(mine, wanted)):
        for x, y in zip(a.split() + [''], b.split() + ['']):
            m, n = ADDRESS.fullmatch(x), ADDRESS.fullmatch(y)
            same = x == y
            if m and n and int(m[1]) >= users and int(n[1]) >= users:
                same = there.setdefault(x, y) == y and (not one_to_one or back.setdefault(y, x) == x)
            if not same:
                return f'line {number}:\n  {a}\n  {b}'
    return '' if len(mine) == len(wanted) else f'{len(mine)} lines instead of {len(wanted)}: {mine[:1]}'


def array_bytes(array, size):
    dims = [d['constant'] if 'constant' in d else int(size[d['size']]) + d['add'] for d in array['shape']]
    return array['stride'] * math.prod(dims)


def driver(manifest, sizes, params):
    """A program in C that launches the header twice, and sees that a wrong workspace is refused."""
    name, arrays = manifest['name'], manifest['inputs'] + manifest['outputs']
    values = [params.get(p['name'], f'{name}_DEFAULT_{p["name"]}') for p in manifest['params']]
    size = [sizes[s] for s in manifest['sizes']]
    call = f'{name}_launch(' + ', '.join(['&program', 'NULL', *size, *[f'ptxgen_pointer(a[{i}])' for i in range(len(arrays))], *values,
                                         'ptxgen_pointer(workspace)', 'bytes'])
    lines = [f'#include "{name}.h"', '#include <stdio.h>', 'int main(void)', '{', f'    static {name}_program program;',
             f'    CUdeviceptr a[{len(arrays)}], workspace;', '    CUcontext context;', '    size_t bytes = 0;', '    int wrong = cuInit(0);',
             '    wrong = wrong || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);']
    lines += [f'    wrong = wrong || cuMemAlloc(&a[{i}], {array_bytes(a, sizes)});' for i, a in enumerate(arrays)]
    lines += [f'    wrong = wrong || {name}_load(&program) || {name}_workspace_bytes({", ".join(["&program", *size, *values, "&bytes"])});',
              '    wrong = wrong || cuMemAlloc(&workspace, bytes);', f'    wrong = wrong || {call}) || {call}) || !{call.replace("workspace", "workspace + 8")});',
              f'    wrong = wrong || (bytes >= 256 && !{call} - 256));',
              '    if (wrong)', '        printf("%s\\n", program.message ? program.message : "?");', f'    {name}_unload(&program);', '    return wrong;', '}']
    return '\n'.join(lines) + '\n'


def header_differs(work, row, manifest, fake, include, compiler, wanted):
    name, sizes, params, steps = row
    source = work / 'driver.c'
    source.write_text(driver(manifest, pairs(sizes), pairs(params)))
    done = subprocess.run([*compiler.split(), '-Wall', '-Wextra', '-Werror', '-Wpedantic', '-isystem', include, source, '-x', 'none', fake, f'-Wl,-rpath,{os.path.dirname(fake)}',
                           '-o', work / 'driver'], capture_output=True, text=True, check=False)
    if done.returncode:
        return f'{compiler}: {done.stderr[:2000]}'
    return differs(run([work / 'driver'], work / 'log', steps), wanted + wanted, len(manifest['inputs'] + manifest['outputs']), True)


def graph_differs(command, log, steps, users):
    """Where a loop ends after an odd number of steps, its graph launches no step that does not count.  A graph has a second memory for
    more arrays than the walk has, so addresses are left out; tests/unit/api/test_stage_graphs.c looks at them."""
    ways = [[ADDRESS.sub('m0+0', line) for line in run([*command, '--param', 'steps=99'], log, steps | 1, version)] for version in (12040, 12030)]
    return differs(*ways, users, True)


def main():
    ptxgen, fake, specs = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3])
    include = sys.argv[4] if len(sys.argv) > 4 and os.path.isdir(sys.argv[4]) else None
    compilers = [c for c in sys.argv[5:] if include and shutil.which(c.split()[0])]
    example = pathlib.Path(__file__).resolve().parents[2] / 'examples/launch_manifest.py'
    os.environ['PTXGEN_LIBCUDA'] = fake
    work, wrong, seen, graphs = pathlib.Path(tempfile.mkdtemp()), 0, 0, 0
    for number, row in enumerate(ROWS):
        name, sizes, params, steps = row
        spec = work / f'{name}.yaml' if name in SPECS else specs / f'{name}.yaml'
        if name in SPECS:
            spec.write_text(SPECS[name])
        subprocess.run([ptxgen, spec, '--emit=ptx,manifest,header', '--arch=sm_90', '-o', f'{work}/'], check=True)
        manifest = json.loads((work / f'{spec.stem}.json').read_text())
        more = [x for s in sizes.split() for x in ('--size', s)] + [x for p in params.split() for x in ('--param', p)]
        command, users = [ptxgen, 'run', spec, '--device', 'cuda', *more], len(manifest['inputs'] + manifest['outputs'])
        wanted = run(command, work / 'log', steps)
        seen += sum(line.startswith('launch ') for line in wanted)
        found = {}
        if compilers and manifest['manifest'] == 2:  # others: tests/unit/program/test_program.c
            compiler = compilers[number % len(compilers)]
            found['header'] = header_differs(work, row, manifest, fake, include, compiler, wanted)
        if manifest.get('until'):
            found['graph'] = graph_differs(command, work / 'log', steps, users)
            graphs += 1
        mine = run([sys.executable, example, work / f'{spec.stem}.json', work / f'{spec.stem}.ptx', *sizes.split(), *params.split()], work / 'log', steps)
        found['launch_manifest.py'] = differs(mine, wanted, users, False)
        for what, text in found.items():
            if text:
                wrong += 1
                print(f'FAIL {name} {sizes}: {what}: {text}')
    shutil.rmtree(work)
    print(f'{len(ROWS)} specs, {seen} launches, {graphs} graphs, {wrong} failed')
    return 1 if wrong or seen < 100 or graphs < 6 else 0


if __name__ == '__main__':
    sys.exit(main())
