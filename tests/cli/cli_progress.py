#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cli_progress.py PTXGEN SPECS - what a terminal shows of steps that take over a second, and what an interrupt leaves.

Needs pseudo-terminals, and is skipped without them.
"""
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED, INTERRUPTED = 77, 130
PTXGEN, SPECS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
ENVIRONMENT = {**os.environ, "PTXGEN_CACHE": "off", "PTXGEN_TUNING": "off", "PTXGEN_LIBCUDA": "/no/such/library"}
failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print("FAIL", what)


def on_terminal(*words, act=None):
    """What a terminal gets of a run, and how the run ends; act(pid, seen) is called as the text grows."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(PTXGEN, ["ptxgen", *words], ENVIRONMENT)
    seen = b""
    try:
        while part := os.read(fd, 4096):
            seen += part
            if act:
                act(pid, seen.decode(errors="replace"))
    except OSError:  # the end
        pass
    os.close(fd)
    return seen.decode(errors="replace"), os.waitpid(pid, 0)[1]


class Once:
    """Sends a signal when a text is there."""

    def __init__(self, text, number=signal.SIGINT):
        self.text, self.number, self.sent = text, number, False

    def __call__(self, pid, seen):
        if not self.sent and self.text in seen:
            self.sent = True
            os.kill(pid, self.number)


def grown(words, wanted):
    """The text of a run at the first size, from 2^20 on, at which a step is shown, or should be."""
    for log in range(20, 28):
        begin = time.monotonic()
        seen, status = on_terminal(*words, "--size", f"n=2^{log}")
        if re.search(wanted, seen) or time.monotonic() - begin > 10:
            break
    return seen, status, log


def steps():
    run = ("run", f"{SPECS}/logsumexp.yaml", "--device", "cpu", "--verify")
    line = r"\r\x1b\[Kevaluating the sequential reference: \d+ s, about \d+ s left"
    seen, status, log = grown(run, line)
    check(re.search(line, seen) and status == 0, f"no progress of the reference: {seen!r}")
    check(re.search(r"left\r\x1b\[K", seen) and "verified: " in seen, f"the line stays: {seen!r}")
    piped = subprocess.run([PTXGEN, *run, "--size", f"n=2^{log}"], env=ENVIRONMENT, capture_output=True, text=True)
    check(piped.stderr == "" and "\x1b" not in piped.stdout, f"progress in a pipe: {piped.stderr!r}")
    check(piped.stdout.splitlines() == [x.split("\x1b[K")[-1] for x in seen.split("\r\n") if x],
          f"other results on a terminal: {seen!r} {piped.stdout!r}")
    line = r"running on the host executor: \d+ s, about \d+ s left"
    seen, status, log = grown((*run[:-1], "--simt=race"), line)
    check(re.search(line, seen) and status == 0, f"no progress of the host executor: {seen!r}")
    begin = time.monotonic()
    seen, status = on_terminal("check", f"{SPECS}/sum.yaml", f"{SPECS}/row_modulus.yaml")
    check(time.monotonic() - begin < 3 or re.search(r"judging the operators of \S+row_modulus.yaml \(2 of 2\): \d+ s", seen),
          f"no progress of check: {seen!r}")


def interrupts(folder):
    seen, status = on_terminal("run", f"{SPECS}/logsumexp.yaml", "--device", "cpu", "--verify", "--size", "n=2^24", "--output",
                               f"lse={folder}/r.npy", act=Once(" s left"))
    check("no file is half written" in seen and os.WIFSIGNALED(status), f"an interrupt of run: {seen!r} {status}")
    check(not list(folder.iterdir()), "files are left")

    tune = ("tune", f"{SPECS}/sum.yaml", "--size", "n=3000", "--device", "cpu", "--limit", "40", f"--tuning={folder}/t.yaml",
            f"--journal={folder}/j", "--strategy=reduce.block,reduce.gather")
    seen, status = on_terminal(*tune, act=Once("] 3 of 40, default"))
    check(" left" in seen and "stopping after" in seen, f"progress of tune: {seen!r}")
    check(f"interrupted; what was measured is kept in {folder}/j" in seen, f"an interrupt of tune: {seen!r}")
    check(os.WIFEXITED(status) and os.WEXITSTATUS(status) == INTERRUPTED, f"status {status}")
    tried = int(re.search(r"(\d+) of \d+ variants tried", seen)[1])
    check(3 <= tried < 40 and "variant: " in (folder / "t.yaml").read_text(), "the best so far is not written")
    again = subprocess.run([PTXGEN, *tune], env=ENVIRONMENT, capture_output=True, text=True)
    check(again.returncode == 0 and "40 of " in again.stdout and again.stderr == "", f"tune does not go on: {again}")

    for name in ("t.yaml", "j"):
        (folder / name).unlink()
    on_terminal(*tune, act=Once("] 3 of 40, default", signal.SIGKILL))
    check("variant: " in (folder / "t.yaml").read_text(), "the best is lost when the program is killed")


def main():
    try:
        os.close(os.openpty()[0])
    except OSError as error:
        print(f"cli_progress: skipped: there are no pseudo-terminals: {error}")
        sys.exit(SKIPPED)
    steps()
    with tempfile.TemporaryDirectory() as folder:
        interrupts(pathlib.Path(folder))
    print(f"cli_progress: {failures} failures")
    sys.exit(failures > 0)


main()
