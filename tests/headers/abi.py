#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi.py LIBRARY CC NM [--accept] - the binary interface is the one that abi.txt has: functions, structures, enumerations.

Fails with the difference.  `./dev abi` accepts it (--accept): ptxgen.h says which changes a soname allows.

The library's thread-local variables are few, too: a program that opens the library at run time, as Python does, has room
for some hundred bytes of them, which all its libraries share.
"""
import difflib
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from misuse import fields, prototypes, stripped

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"
LIBRARY, CC, NM = sys.argv[1:4]
THREAD_LOCAL_MAX = 64 # bytes
PT_TLS = 7


def layout(text):
    """Lines that a compiled program writes."""
    code = ""
    for name in re.findall(r"typedef (?:struct|union) (ptxgen_\w+) \{", text):
        code += f'printf("{name} %zu:", sizeof({name}));'
        code += "".join(f'printf(" {f}@%zu", offsetof({name}, {f}));' for f, _, _ in fields(text, name)) + 'puts("");\n'
    for name, body in re.findall(r"enum (\w*) ?\{(.*?)\}", text, re.DOTALL):
        values = re.findall(r"\bPTXGEN_\w+", body)
        code += f'printf("enum {name}:");' + "".join(f'printf(" {v}=%d", (int){v});' for v in values) + 'puts("");\n'
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "layout.c"
        source.write_text(f"#include <stdio.h>\n#include <ptxgen/dist.h>\n#include <ptxgen/stages.h>\nint main(void)\n{{\n{code}return 0;\n}}\n")
        subprocess.run([CC, f"-I{INCLUDE}", source, "-o", f"{folder}/layout"], check=True)
        return subprocess.run([f"{folder}/layout"], check=True, capture_output=True, text=True).stdout


def thread_local_bytes():
    """Of the ELF file's segment for them; 64 bits, little-endian."""
    elf = pathlib.Path(LIBRARY).read_bytes()
    table, = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    segments = (struct.unpack_from("<II6Q", elf, table + i * size) for i in range(count))
    return sum(memory for kind, _, _, _, _, _, memory, _ in segments if kind == PT_TLS)


def main():
    text = stripped([INCLUDE / "ptxgen/ptxgen.h", INCLUDE / "ptxgen/launch.h", INCLUDE / "ptxgen/dist.h", INCLUDE / "ptxgen/stages.h"])
    functions = {name: f"{result} {name}({', '.join(p.declared for p in parameters) or 'void'})"
                 for result, name, parameters in prototypes(text)}
    symbols = subprocess.run([NM, "-D", "--defined-only", LIBRARY], check=True, capture_output=True, text=True).stdout
    exported = set(re.findall(r" T (\w+)", symbols))
    odd = sorted(exported ^ functions.keys())
    now = layout(text) + "".join(f"{functions[name]}\n" for name in sorted(functions))
    file = HERE / "abi.txt"
    if "--accept" in sys.argv:
        file.write_text(now)
    change = list(difflib.unified_diff(file.read_text().splitlines(), now.splitlines(), "abi.txt", "this build", lineterm="", n=0))
    large = [f"{thread_local_bytes()} bytes of thread-local variables, more than {THREAD_LOCAL_MAX}"] \
        if thread_local_bytes() > THREAD_LOCAL_MAX else []
    print(*large, *[f"{name} is {'exported' if name in exported else 'declared'} only" for name in odd], *change, sep="\n")
    return 1 if large or odd or change else 0


if __name__ == "__main__":
    sys.exit(main())
