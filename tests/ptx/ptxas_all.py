#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ptxas_all.py PTXGEN PTXAS [AMOUNT] - the PTX of default plans assembles, with no local memory: no spills.

Of every spec, those of the benchmarks too, and of the survey's stencils: their heavy shapes are where registers run out.  What assembled
before need not again (scripts/verdicts.py).  Of problems that the survey draws, the case that takes the drawn sizes.  Exit status 77 without ptxas.  Last line: "N passed, N failed".
"""
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / 'bench/survey'), str(ROOT / 'scripts')]
import emitted
import problems
import verdicts

SAMPLE = [('box', 2, 3, 'f32'), ('star', 4, 3, 'f32'), ('von Neumann', 3, 3, 'f32'), ('box', 1, 3, 'f32'), ('star', 1, 3, 'f64'),
          ('box', 1, 3, 'i8'), ('von Neumann', 3, 2, 'f16'), ('box', 2, 2, 'f16'), ('box', 2, 3, 'f32', 'c')]
EVERY = [(form, r, dims, t) for t in ('f32', 'f64', 'f16', 'i32', 'i8') for dims in (1, 2, 3) for form in ('star', 'box', 'von Neumann')
         for r in range(1, 5) if (2 * r + 1) ** dims <= 125 or form == 'star' or (form == 'von Neumann' and r <= 3) if dims > 1 or form == 'star']
SPILLED = [('k7', 29), ('q5', 86), ('q5', 94), ('s31', 248), ('spills', 31)]  # each did once: seed and index of the survey
DRAWN = [('ptxas', i) for i in range(40) if i != 3]  # 3: planes of 25 points with reflect, 16 bytes
AMOUNTS = {  # architectures of the specs, shapes of stencils, their architectures, problems drawn for sm_90
    'quick': ((90,), SAMPLE, (90,), SPILLED),           # the one with bulk copies: ./dev test
    'full': ((75, 90), SAMPLE, (80, 90), SPILLED),      # the oldest, too: the tests of ./dev check
    'rest': ((80, 86, 89, 100, 120), [], (), DRAWN),    # what `full` leaves out: ./dev check
    'all': ((75, 80, 86, 89, 90, 100, 120), EVERY, (75, 80, 86, 89, 90, 100, 120), SPILLED + DRAWN),
}
LOCAL = re.compile(r"Compiling entry function '(\w+)'|(\d+) bytes stack frame")


def spec_of(form, r, dims, t, *beside):
    rng, axes = random.Random(1), ['d', 'm', 'n'][-dims:]
    number = '{:.4f}'.format if 'f' in t else (lambda c: str(1 + int(8 * c)))
    terms = [f'{number(rng.random() + 0.01)} * u[{", ".join(map(str, p))}]' for p in problems.offsets(form, r, dims)]
    terms += beside  # arrays that are read at the point
    total = ' + '.join(terms)
    value = f'0.1 * ({total})' if 'f' in t else f'({total}) >> 3'
    return problems.write('stencil', {name: problems.shape(t, axes) for name in ('u', *beside)}, '', {'y': (problems.shape(t, axes), value)})


def assembled(ptxgen, ptxas, known, spec, arch):
    """What is wrong: a line each."""
    status, text, said = emitted.ptx_of(ptxgen, spec, f'sm_{arch}')
    if status:
        return ['ptxgen failed: ' + said.decode().partition('\n')[0]]
    key = known.key(str(arch), text)
    if known.good(key):
        return []
    with tempfile.NamedTemporaryFile(suffix='.ptx') as ptx:
        ptx.write(text)
        ptx.flush()
        done = subprocess.run([ptxas, '-v', f'-arch=sm_{arch}', '-o', os.devnull, ptx.name], capture_output=True, text=True, check=False)
    if done.returncode:
        return [next((line for line in done.stderr.splitlines() if re.search('error|fatal', line, re.I)), f'status {done.returncode}')]
    found, kernel = [], ''
    for entry, local in LOCAL.findall(done.stderr + done.stdout):
        kernel = entry or kernel
        found += [f'{kernel}: {local} bytes of local memory'] if local and int(local) else []
    if not found:
        known.found_good(key)
    return found


def taken(ptxgen, ptxas, work, seed, index):
    """The same of the case that a drawn problem takes on sm_90, as `explain` tells."""
    _, text, sizes = problems.problem(seed, index)
    spec = pathlib.Path(work) / f'drawn_{seed}_{index}.yaml'
    spec.write_text(text, encoding='utf8')
    done = subprocess.run([ptxgen, 'explain', spec, *(f'--size={k}={n}' for k, n in sizes.items()), '--arch=sm_90', '--tuning=off'],
                          capture_output=True, text=True, check=False, env={**os.environ, 'PTXGEN_CACHE': 'off', 'PTXGEN_PTXAS': ptxas})
    local = [int(n) for n in re.findall(r'(\d+)\s+local', done.stdout)]
    if done.returncode or not local:
        return [f'explain tells of no local memory: {done.stderr.partition(chr(10))[0]}']
    return [f'{max(local)} bytes of local memory'] if max(local) else []


def main():
    if len(sys.argv) < 3 or not os.access(sys.argv[2], os.X_OK):
        print('no ptxas')
        return 77
    ptxgen, ptxas = sys.argv[1:3]
    architectures, shapes, of_shapes, problems_drawn = AMOUNTS[sys.argv[3] if len(sys.argv) > 3 else 'all']
    known = verdicts.Verdicts('ptxas', ptxas, '--version')
    failed = 0
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        drawn = []
        for shape in shapes:
            drawn.append(pathlib.Path(work) / (re.sub(r'\W', '_', '_'.join(map(str, shape))) + '.yaml'))
            drawn[-1].write_text(spec_of(*shape), encoding='utf8')
        specs = [s for folder in ('specs', 'bench/specs') for s in sorted((ROOT / folder).glob('*.yaml'))]
        jobs = [(s, arch) for s in specs for arch in architectures] + [(s, arch) for s in drawn for arch in of_shapes]
        for (spec, arch), wrong in zip(jobs, pool.map(lambda job: assembled(ptxgen, ptxas, known, *job), jobs)):
            failed += bool(wrong)
            for line in wrong:
                print(f'{spec.stem} sm_{arch}: {line}', flush=True)
        for (seed, index), wrong in zip(problems_drawn, pool.map(lambda job: taken(ptxgen, ptxas, work, *job), problems_drawn)):
            failed += bool(wrong)
            for line in wrong:
                print(f'problem {index} of seed {seed}, sm_90: {line}', flush=True)
    known.save()
    print(f'{len(jobs) + len(problems_drawn) - failed} passed, {failed} failed')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
