#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_against.py - bench/gpu/against.py with stand-ins for two builds of gpubench: what is slower, what is measured again, what stays."""
import csv
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "bench" / "gpu" / "against.py"
# A line's times, one for each call; the last of them for the calls after.  The file of calls says how many there were.
GPUBENCH = """#!/usr/bin/env python3
import pathlib, sys
times = {TIMES}
problem, out = sys.argv[sys.argv.index("--problem") + 1], sys.argv[sys.argv.index("--csv") + 1]
calls = pathlib.Path(sys.argv[0] + "." + problem)
called = len(calls.read_text()) if calls.exists() else 0
calls.write_text("x" * (called + 1))
assert "--no-peers" in sys.argv
with open(out, "w") as file:
    print("# a comment", "problem,mode,n,segment,extent,implementation,us", sep="\\n", file=file)
    print(f"{problem},stream,4,0,,ptxgen,{times[problem][min(called, len(times[problem]) - 1)]}", file=file)
    print(f"{problem},stream,4,0,,cub,1", file=file)
"""


class Against(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)

    def build(self, name, times):
        (self.at / name / "bin").mkdir(parents=True)
        (self.at / name / "bench").mkdir()
        program = self.at / name / "bin" / "gpubench"
        program.write_text(GPUBENCH.replace("{TIMES}", repr(times)))
        program.chmod(0o755)
        (self.at / name / "bench" / "cells").write_text("".join(f"--problem {p} --size 4\n" for p in times))

    def run_script(self, *problems):
        done = subprocess.run([sys.executable, SCRIPT, self.at / "new", self.at / "old", self.at / "against.csv", *problems],
                              capture_output=True, text=True, check=False)
        with open(self.at / "against.csv", encoding="utf-8") as file:
            return done.returncode, done.stdout.splitlines(), {row["problem"]: row for row in csv.DictReader(file)}

    def calls(self, name, problem):
        return len((self.at / name / "bin" / f"gpubench.{problem}").read_text())

    def test_what_stays_slower_is_slower(self):
        self.build("old", {"even": [10], "noise": [10], "slower": [10]})
        self.build("new", {"even": [10.05], "noise": [12, 12, 10], "slower": [10.2]})
        status, lines, rows = self.run_script()
        self.assertEqual((status, lines[-1]), (1, "3 cells, 1 slower by more than 1 %, 0 lines not measured"))
        self.assertEqual({name: row["ratio"] for name, row in rows.items()}, {"even": "1.0050", "noise": "1.0000", "slower": "1.0200"})
        self.assertEqual([self.calls("new", name) for name in rows], [2, 3, 5])

    def test_a_second_start_goes_on(self):
        self.build("old", {"a": [10], "b": [10]})
        self.build("new", {"a": [10], "b": [9]})
        self.assertEqual(self.run_script("a")[0], 0)
        status, lines, rows = self.run_script()
        self.assertEqual((status, lines[-1], sorted(rows)), (0, "2 cells, 0 slower by more than 1 %, 0 lines not measured", ["a", "b"]))
        self.assertEqual(self.calls("new", "a"), 2)

    def test_what_fails_is_said(self):
        self.build("old", {"a": [10]})
        self.build("new", {"a": [10], "b": [9]})  # the old build has no `b`
        status, lines, _ = self.run_script()
        self.assertEqual((status, lines[-1]), (1, "1 cells, 0 slower by more than 1 %, 1 lines not measured"))
        self.assertTrue(any(line.startswith("not measured: --problem b") for line in lines), lines)


if __name__ == "__main__":
    unittest.main()
