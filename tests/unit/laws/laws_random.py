#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""laws_random.py PTXGEN [SEED [COUNT]] - the law checker against random operators of small integers.

An operator is a random expression, made as text of the language and of Python alike.  Python tries all triples of
-4 ... 4: where it finds one that is not associative, the checker must refute; and what the checker shows must be what
Python computes.  No refutation may take more than two seconds on an idle machine (here ten, for a busy one).
"""
import random
import re
import subprocess
import sys
import tempfile
import time


def expression(depth):
    """The same in the language and in Python."""
    if depth == 0 or random.random() < 0.15:
        leaf = random.choice(["a", "b", "a", "b", "0", "1", "2"])
        return leaf, leaf
    kind = random.choice(["+", "-", "*", "min", "max", "if", "+", "min", "max"])
    (x, px), (y, py) = expression(depth - 1), expression(depth - 1)
    if kind in "+-*":
        return f"({x} {kind} {y})", f"({px} {kind} {py})"
    if kind != "if":
        return f"{kind}({x}, {y})", f"{kind}({px}, {py})"
    (p, pp), (q, pq) = expression(depth - 1), expression(depth - 1)
    return f"(if {x} < {y} then {p} else {q})", f"({pp} if {px} < {py} else {pq})"


def judge(ptxgen, text, folder):
    """Does the checker refute, its example, and the seconds that it took?"""
    path = folder + "/operator.yaml"
    with open(path, "w", encoding="ascii") as f:
        f.write("kind: reduce\ninputs: {x: 'i32[n]'}\n"
                f"operator: {{state: i32, combine: '{text}'}}\noutputs: {{s: i32}}\n")
    begin = time.monotonic()
    done = subprocess.run([ptxgen, "check", path, "--cache=off"], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    numbers = re.search(r"not associative: a = (-?\d+), b = (-?\d+), c = (-?\d+): \(ab\)c = (-?\d+), a\(bc\) = (-?\d+)",
                        done.stderr)
    return done.returncode == 1, numbers and [int(x) for x in numbers.groups()], seconds


def main():
    ptxgen = sys.argv[1]
    seed, count = (int(sys.argv[k]) if len(sys.argv) > k else usual for k, usual in ((2, 1), (3, 40)))
    random.seed(seed)
    refuted = faults = 0
    small = range(-4, 5)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            text, python = expression(random.choice([1, 2, 2, 3]))
            f = eval("lambda a, b: " + python)  # pylint: disable=eval-used
            wrong = any(f(f(a, b), c) != f(a, f(b, c)) for a in small for b in small for c in small)
            found, example, seconds = judge(ptxgen, text, folder)
            fault = None
            if found and not example:
                fault = "no counterexample is shown"
            elif found and (f(f(*example[:2]), example[2]), f(example[0], f(*example[1:3]))) != tuple(example[3:]):
                fault = f"the counterexample {example} is none"
            elif wrong and not found:
                fault = "not refuted"
            elif found and seconds > 10:
                fault = f"{seconds:.1f} s"
            refuted += found
            if fault:
                faults += 1
                print(f"FAIL {text}: {fault}")
    print(f"{count} operators, {refuted} refuted, {faults} failures")
    sys.exit(1 if faults or not refuted else 0)


main()
