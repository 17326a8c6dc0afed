# SPDX-License-Identifier: Apache-2.0
"""emitted.py - the PTX of a spec's default plan, which several tests look at: what an executable has emitted is kept beside it."""
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import zlib


@functools.cache
def folder(ptxgen):
    """Of this very executable; those of earlier ones go."""
    all_of = pathlib.Path(ptxgen).resolve().parent / 'emitted'
    mine = all_of / hashlib.sha256(pathlib.Path(ptxgen).read_bytes()).hexdigest()[:16]
    for other in set(all_of.glob('*')) - {mine}:
        shutil.rmtree(other, ignore_errors=True)
    mine.mkdir(parents=True, exist_ok=True)
    return mine


def ptx_of(ptxgen, spec, arch):
    """(exit status, PTX, messages), the last two as bytes"""
    key = hashlib.sha256(f'{arch} {os.path.basename(spec)}\n'.encode() + pathlib.Path(spec).read_bytes()).hexdigest()[:32]
    kept = folder(ptxgen) / key
    if kept.exists():
        return 0, zlib.decompress(kept.read_bytes()), b''
    done = subprocess.run([ptxgen, str(spec), f'--arch={arch}', '--cache=off', '-o', '-'], capture_output=True, check=False)
    if done.returncode == 0:
        new = kept.with_suffix(f'.{os.getpid()}')
        new.write_bytes(zlib.compress(done.stdout, 1))
        new.replace(kept)
    return done.returncode, done.stdout, done.stderr
