#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mpi.py LIBRARY FOLDER - the examples with MPI: the same output for 1, 2, 3 and 5 ranks, and the right one."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / 'examples/mpi'
MASK = 2 ** 64 - 1


def segment_sum():
    best = here = 0
    for i in range(1000003):
        x = (i + 1) * 0x9E3779B97F4A7C15 & MASK
        here = max(0, here + ((x ^ x >> 29) * 0xBF58476D1CE4E5B9 & MASK) // 2 ** 52 % 201 - 100)
        best = max(best, here)
    return best


def heat():
    """In double precision."""
    m, n = 300, 200
    u = [[100.0 if 120 <= i < 180 and 80 <= j < 120 else 20.0 for j in range(n)] for i in range(m)]
    for _ in range(50):
        u = [[u[i][j] + 0.2 * (u[max(i - 1, 0)][j] + u[min(i + 1, m - 1)][j] + u[i][max(j - 1, 0)] + u[i][min(j + 1, n - 1)]
                               - 4 * u[i][j]) for j in range(n)] for i in range(m)]
    return sum(map(sum, u))


def main():
    library, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if not shutil.which('mpicc') or not shutil.which('mpirun'):
        print('there is no mpicc, or no mpirun')
        return 77
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, 'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', 'PTXGEN_CACHE': 'off',
                   'OMPI_MCA_rmaps_base_oversubscribe': '1', 'OMPI_MCA_btl_vader_single_copy_mechanism': 'none'}
    bad = []
    for name, expected, bound in (('segment_sum', segment_sum(), 0), ('heat', heat(), 1e-6)):
        program = folder / name
        subprocess.run(['mpicc', '-Wall', '-Wextra', '-Werror', '-g', f'-I{ROOT}/include', SOURCES / f'{name}.c', library,
                        f'-Wl,-rpath,{library.parent}', '-o', program], check=True)
        said = set()
        for ranks in ('1', '2', '3', '5'):
            done = subprocess.run(['mpirun', '-n', ranks, program], cwd=SOURCES, env=environment, capture_output=True, text=True,
                                  timeout=300, check=False)
            said.add(done.stdout if done.returncode == 0 else f'{ranks} ranks: {done.stdout}{done.stderr}')
        number = re.search(r': (-?[0-9.e+]+)$', next(iter(said)).strip())
        if len(said) != 1 or not number or abs(float(number[1]) - expected) > bound * abs(expected):
            bad.append(f'{name}: expected {expected}, got {said}')
        # Every rank ends, and says why, when one has no spec.
        done = subprocess.run(['mpirun', '-n', '2', program], cwd='/', env=environment, capture_output=True, text=True, timeout=300,
                              check=False)
        if done.returncode == 0 or 'cannot be read' not in done.stderr:
            bad.append(f'{name}: without its spec it says {done.stdout}{done.stderr}')
    print(*bad, sep='\n')
    print(f'{4 - len(bad)} passed, {len(bad)} failed')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
