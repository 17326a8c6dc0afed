#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs_examples.py PTXGEN - the specs and commands that README.md and docs/*.md show are true.

A yaml block that begins with `# specs/NAME.yaml` (or `specs/apps/…`) shows that file: all of it but comments and `doc:`, or with lines `…` parts of it, in order.
One whose paragraph before ends with `NAME.yaml`: is a file of that page.  In other blocks, `$ ptxgen run` on a file of either kind is
run in a folder of the page's own and must print what follows; `…` there stands for any text.  Before it,
`$ python3 -c '…np.save("NAME", np.array(LIST, "TYPE"))…'` writes an array, which happens here, without NumPy.  Verdicts of `ptxgen check`
are not compared: they depend on the prover that there is.  On docs/apps.md, some command runs each spec of specs/apps.
"""
import ast
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PTXGEN = str(pathlib.Path(sys.argv[1]).resolve())
CODES = {"u1": "B", "i4": "i", "u4": "I", "i8": "q", "f4": "f", "f8": "d"}
SAVE = re.compile(r'np\.save\("(\w+\.npy)", np\.array\((\[[^()]*\]), "(\w+)"\)\)')
COMMAND = re.compile(r"\$ ptxgen run (\S+\.yaml)\b")


def elided(shown):
    """A pattern for text in which … stands for anything."""
    return re.compile(".*".join(re.escape(part) for part in shown.split("…")), re.DOTALL)


def significant(text):
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith(("#", "doc:")))


def save(folder, name, numbers, kind):
    shape = (len(numbers), len(numbers[0])) if isinstance(numbers[0], list) else (len(numbers),)
    numbers = sum(numbers, []) if len(shape) == 2 else numbers
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    data = struct.pack(f"<{len(numbers)}{CODES[kind]}", *numbers)
    (folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def blocks(text):
    """Language, text, and the line before, of each fenced block."""
    for m in re.finditer(r"^([^\n]*)\n+```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield m[2], m[3], m[1]


class Page:
    def __init__(self, path, folder):
        self.path, self.folder, self.failures, self.checked, self.ran = path, folder, [], {"specs": 0, "commands": 0}, set()
        os.symlink(ROOT / "specs", folder / "specs")

    def fail(self, what):
        self.failures.append(f"{self.path.relative_to(ROOT)}: {what}")

    def spec(self, text, before):
        shown = re.match(r"# (specs/[\w/]+\.yaml)\n", text)
        named = re.search(r"`(\w+\.yaml)`:$", before)
        if shown:
            self.checked["specs"] += 1
            if not elided(significant(text)).fullmatch(significant((ROOT / shown[1]).read_text())):
                self.fail(f"{shown[1]} is not what the page shows")
        elif named:
            (self.folder / named[1]).write_text(text)

    def session(self, text):
        for name, numbers, kind in SAVE.findall(text):
            save(self.folder, name, ast.literal_eval(numbers), kind)
        for part in re.split(r"^(?=\$ )", text.replace("\\\n", ""), flags=re.MULTILINE):
            command, _, shown = part.partition("\n")
            m = COMMAND.match(command)
            if m and shown.strip() and (self.folder / m[1]).exists():
                self.ran.add(m[1])
                self.command(command, shown)

    def command(self, command, shown):
        self.checked["commands"] += 1
        words = shlex.split(command[2:], comments=True)[1:]
        done = subprocess.run([PTXGEN, *words], cwd=self.folder, capture_output=True, text=True, check=False)
        said = done.stdout if done.returncode == 0 else done.stdout + done.stderr  # where there are but notes otherwise
        if not elided(shown.strip()).fullmatch(said.strip()):
            self.fail(f"{command}\n{said}instead of\n{shown}")


def main():
    failures, specs, commands = [], 0, 0
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        with tempfile.TemporaryDirectory() as folder:
            page = Page(path, pathlib.Path(folder))
            for language, text, before in blocks(path.read_text()):
                if language == "yaml":
                    page.spec(text, before)
                elif not language:
                    page.session(text)
            if path.name == "apps.md":  # each application has a command
                page.failures += [f"apps.md: no command runs {spec.name}" for spec in (ROOT / "specs/apps").glob("*.yaml")
                                  if f"specs/apps/{spec.name}" not in page.ran]
            failures += page.failures
            specs += page.checked["specs"]
            commands += page.checked["commands"]
    print(*failures, sep="\n")
    print(f"{specs} specs and {commands} commands, {len(failures)} failures")
    return 1 if failures or specs < 8 or commands < 9 else 0


if __name__ == "__main__":
    sys.exit(main())
