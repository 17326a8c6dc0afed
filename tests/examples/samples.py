#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""samples.py LIBRARY FAKE_CUDA DOT_H CUDA_INCLUDE CC CXX VALGRIND [SANITIZERS] - every C sample compiles, works, and fails without a leak.

Samples are the indented code in the comments at the heads of include/ptxgen, the ```c blocks of README.md and docs/*.md that call the
library, and examples/*.c.  Each is compiled as its reader would, warnings being errors, and run (VALGRIND yes: under valgrind; or the leak
checker of the sanitizers): once with all that it needs, then without its files, with a wrong operator in its spec, without a driver, and with each of some
calls of the driver failing.  A failing run must say something else than the good one.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIBRARY, FAKE, DOT_H, CUDA, CC, CXX, VALGRIND = sys.argv[1:8]
SANITIZE = sys.argv[8] if len(sys.argv) > 8 else ""
BROKEN = 99
WATCH = ["valgrind", "--quiet", f"--error-exitcode={BROKEN}", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect",
         f"--suppressions={ROOT}/tests/valgrind.supp"]
DRIVER_CALLS = ("cuMemAlloc", "cuModuleLoadDataEx", "cuStreamCreate")


def samples():
    """Name, text of a C file, and its arguments."""
    for path in sorted((ROOT / "include/ptxgen").glob("*.h*")):
        head = path.read_text().split("*/\n#ifndef")[0]
        code = re.search(r"((?:^ \*     .*\n|^ \*\n(?= \*     ))+)", head, re.MULTILINE)[1]
        code = re.sub(r"^ \*(     )?", "", code, flags=re.MULTILINE)
        yield path.name, code if "int main" in code else body(code) if path.suffix == ".h" else wrapped(code), []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for i, code in enumerate(re.findall(r"^```c\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)):
            if "ptxgen_" in code:
                yield f"{path.name}:{i + 1}", code if "int main" in code else body(code), []
    for path in sorted((ROOT / "examples").glob("*.c")):
        yield path.name, path.read_text(), ["dot.yaml"] if "SPEC" in path.read_text() else []


def body(code):
    return f"#include <stdio.h>\n#include <ptxgen/launch.h>\nint main(void)\n{{\n{code}return 0;\n}}\n"


def wrapped(code):
    return "#include <cstdio>\n#include <ptxgen/ptxgen.hpp>\n" \
           f"int main() try {{\n{code}}} catch (const ptxgen::error &e) {{\nstd::puts(e.what());\nreturn 1;\n}}\n"


def compiled(folder, text):
    compiler, source = [[CC, "-std=c11"], "sample.c"] if "ptxgen.hpp" not in text else [[CXX, "-std=c++17"], "sample.cc"]
    (folder / source).write_text(text)
    cuda = [f"-I{folder}", f"-isystem{CUDA}", FAKE] if "dot.h" in text else []
    sanitize = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
    subprocess.run([*compiler, "-g", "-Wall", "-Wextra", "-Werror", *sanitize, f"-I{ROOT}/include", source, *cuda, LIBRARY,
                    f"-Wl,-rpath,{pathlib.Path(LIBRARY).parent}", "-o", "sample"], cwd=folder, check=True)
    return str(folder / "sample")


def run(program, arguments, folder, **variables):
    environment = {**os.environ, "PTXGEN_LIBCUDA": FAKE, "PTXGEN_CACHE": str(folder / "cache"), "PTXGEN_TUNING": "off",
                   "ASAN_OPTIONS": f"detect_leaks=1:exitcode={BROKEN}", **variables}
    watch = WATCH if VALGRIND == "yes" and shutil.which("valgrind") else []
    done = subprocess.run([*watch, program, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    return said, "" if 0 <= done.returncode < BROKEN else f"status {done.returncode}: {said[:3000]}"


def failing_runs(text, program, arguments, folder):
    """What is wrong, and the run with it."""
    if '"dot.yaml"' in text or arguments:
        (folder / "dot.yaml").rename(folder / "away.yaml")
        yield "without its file", run(program, arguments, folder)
        (folder / "away.yaml").rename(folder / "dot.yaml")
    if "_gpu_open" in text:
        yield "without a driver", run(program, arguments, folder, PTXGEN_LIBCUDA="/nonexistent")
    for call in DRIVER_CALLS if "_gpu_open" in text or "cuInit" in text else ():
        if call != "cuStreamCreate" or "_stream_create" in text:
            yield f"when {call} fails", run(program, arguments, folder, FAKE_CUDA_FAIL=call)
    if "operator: add" in text:
        yield "with a wrong operator", run(compiled(folder, text.replace("operator: add", "operator: ad")), arguments, folder)


def main():
    failures, runs = [], 0
    for name, text, arguments in samples():
        if "dot.h" in text and CUDA == "no":
            continue
        with tempfile.TemporaryDirectory() as path:
            folder = pathlib.Path(path)
            shutil.copy(ROOT / "specs/dot.yaml", folder)
            if "dot.h" in text:
                shutil.copy(DOT_H, folder)
            program = compiled(folder, text)
            good, wrong = run(program, arguments, folder)
            tried = [("as it is", (good, wrong or ("" if good and "error" not in good else f"says {good!r}")))]
            tried += list(failing_runs(text, program, arguments, folder))
            for what, (said, wrong) in tried:
                runs += 1
                if wrong or (what != "as it is" and said in ("", good)):
                    failures.append(f"{name} {what}: {wrong or f'says {said!r}'}")
            if len(tried) < 2:
                failures.append(f"{name}: nothing makes it fail")
    print(*failures, sep="\n")
    print(f"{runs - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or runs < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
