#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""golden_ptx.py PTXGEN SPECS GOLDEN RELEASE [--accept | --of ARCH] - did a change touch the PTX of a default plan?

GOLDEN has a line per spec, with a hash of the PTX for each architecture: without comments and with all names numbered in
order of appearance, so that kernels, parameters and files may be renamed.  A difference is a failure that names the specs; where
it is wanted, `--accept` (./dev golden) writes the new hashes, and the diff of GOLDEN shows which specs a commit touched.

`--of sm_90` looks at this architecture alone, `--of all` at all of them.

The hashes are those of one release of LLVM.  With another RELEASE the test is skipped (exit status 77).
"""
import concurrent.futures
import hashlib
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import emitted

ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_120"]
DECLARED = re.compile(
    r"\.(?:entry|func)\s+([\w$]+)|\.param\s+[^;\n]*?([\w$]+)(?:\[\d+\])?\s*[,\n)]"
    r"|\.(?:shared|global|const)\s+\.align\s+\d+\s+\.b\d+\s+([\w$]+)"
)
WORD = re.compile(r"[A-Za-z_$][\w$]*")


def normal(ptx):
    """The text without comments and layout, declared names numbered."""
    ptx = re.sub(r"//[^\n]*", "", ptx).replace("$L__BB", "$L")
    ptx = re.sub(r",[ \t]+", ",", re.sub(r"[ \t]+", " ", ptx))
    numbers = {}
    for match in DECLARED.finditer(ptx):
        name = next(group for group in match.groups() if group)
        numbers.setdefault(name, f"name{len(numbers)}")
    ptx = WORD.sub(lambda m: numbers.get(m.group(), m.group()), ptx)
    return "\n".join(line.strip() for line in ptx.splitlines() if line.strip())


def digest(ptxgen, spec, arch):
    status, ptx, _ = emitted.ptx_of(ptxgen, spec, arch)
    text = normal(ptx.decode()) if status == 0 else f"exit status {status}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def all_digests(ptxgen, specs, architectures):
    jobs = [(spec, arch) for spec in sorted(specs.glob("*.yaml")) for arch in architectures]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        hashes = pool.map(lambda job: digest(ptxgen, *job), jobs)
        return {f"{spec.stem} {arch}": value for (spec, arch), value in zip(jobs, hashes)}


def read(golden):
    """The release of LLVM, and a hash per spec and architecture."""
    lines = golden.read_text().splitlines() if golden.exists() else [""]
    rows = [line.split() for line in lines[1:]]
    return lines[0].removeprefix("# LLVM "), {f"{spec} {arch}": value for spec, *values in rows for arch, value in zip(ARCHITECTURES, values)}


def write(golden, release, hashes):
    rows = [" ".join([spec, *(hashes[f"{spec} {arch}"] for arch in ARCHITECTURES)]) for spec in sorted({key.split()[0] for key in hashes})]
    golden.write_text("\n".join([f"# LLVM {release}", *rows, ""]))


def main():
    ptxgen, specs, golden, release = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
    known, before = read(golden)
    if "--accept" not in sys.argv and known != release:
        print(f"golden PTX is that of LLVM {known}; this is {release}: skipped")
        return 77
    of = sys.argv[sys.argv.index("--of") + 1] if "--of" in sys.argv else "all"
    architectures = ARCHITECTURES if of == "all" else [of]
    now = all_digests(ptxgen, specs, architectures)
    before = {key: value for key, value in before.items() if key.split()[1] in architectures}
    changed = sorted(key for key in now.keys() | before.keys() if now.get(key) != before.get(key))
    for key in changed:
        print(f"{'CHANGED' if '--accept' in sys.argv else 'FAIL'} {key}")
    if "--accept" in sys.argv:
        write(golden, release, now)
        return 0
    print(f"{len(now) - len(changed)} passed, {len(changed)} failed")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
