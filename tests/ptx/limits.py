#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""limits.py PTXGEN [PART OF A NAME] - compiling a spec that uses the documented limits takes bounded time and memory.

Each spec is compiled for sm_90, all cases of the default plan, in a process of its own, whose time on the processor and largest size
wait4() tells.  Chains of lets that each use the one before twice have 2^n paths through n lets: whoever walks paths never ends.
"""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

PTXGEN = str(pathlib.Path(sys.argv[1]).resolve())
SECONDS, MEGABYTES = 2, 1024
LETS, DEPTH = 256, 512


def chain(first, indent="", n=LETS):
    return "".join(f"{indent}l{i}: {f'l{i - 1} + l{i - 1}' if i else first}\n" for i in range(n))


LAST = f"l{LETS - 1}"
OPERATOR = f"operator:\n  state: i32\n  identity: 0\n  let:\n{chain('a + b', '    ')}  combine: {LAST}\n"

SPECS = {
    "lets of a reduction": f"kind: reduce\ninputs: {{x: 'f32[n]'}}\nlet:\n{chain('x', '  ')}map: {LAST}\noperator: add\noutputs: {{y: f32}}\n",
    "lets of a scan": f"kind: scan\ninputs: {{x: 'f32[n]'}}\nlet:\n{chain('x', '  ')}map: {LAST}\noperator: add\noutputs: {{y: 'f32[n]'}}\n",
    "lets of results": f"kind: reduce\ninputs: {{x: 'f32[n]'}}\nparams: {{p: {{type: f32, value: 0.5}}}}\nlet:\n{chain('p', '  ')}map: x\noperator: add\n"
    f"outputs: {{y: {{type: f32, value: r + {LAST}}}}}\n",
    "lets of literals": f"kind: reduce\ninputs: {{x: 'f32[n]', z: 'i64[n]'}}\nlet:\n{chain('1', '  ')}reductions:\n"
    f"  s: {{map: x + {LAST}, operator: add}}\n  t: {{map: z + l40, operator: add}}\noutputs: {{s: f32, t: i64}}\n",
    "lets of an operator, reduced": f"kind: reduce\ninputs: {{x: 'i32[n]'}}\n{OPERATOR}outputs: {{y: i32}}\n",
    "lets of an operator, scanned": f"kind: scan\ninputs: {{x: 'i32[n]'}}\n{OPERATOR}outputs: {{y: 'i32[n]'}}\n",
    "lets of a stencil": f"kind: stencil\ninputs: {{x: 'f32[n]'}}\nlet:\n{chain('x[-1] * 0.5', '  ')}outputs:\n"
    f"  y: {{type: 'f32[n]', value: {LAST}}}\n",
    "lets of a stencil of bytes": f"kind: stencil\ninputs: {{x: 'u8[n]'}}\nlet:\n{chain('x[-1] * 5', '  ')}outputs:\n"
    f"  y: {{type: 'u8[n]', value: {LAST}}}\n",
    "lets of a stencil with steps": f"kind: stencil\ninputs: {{x: 'f32[m, n]'}}\nlet:\n{chain('x[-1, 1] * 0.5', '  ')}outputs:\n"
    f"  y: {{type: 'f32[m, n]', value: {LAST}}}\niterate: {{steps: 9, feedback: {{x: y}}}}\n",
    "lets of reductions beside a stencil": f"kind: stencil\ninputs: {{x: 'f32[n]'}}\nlet:\n{chain('x[-1] * 0.5', '  ')}reductions:\n"
    f"  s: {{map: {LAST} + y, operator: add}}\noutputs:\n  y: {{type: 'f32[n]', value: {LAST}}}\n  s: f32\n",
    "lets in a gather": f"kind: stencil\ninputs: {{x: 'f32[n]', off: 'i32[p]'}}\nlet:\n{chain('x * 0.5', '  ')}outputs:\n"
    f"  y: {{type: 'f32[n]', value: 'gather(x, off, k, add, k * {LAST}) + {LAST}'}}\n",
}

# Too deep with its lets written out, for whoever recurses through them.
DEEP = "".join(f"  l{i}: {f'l{i - 1}' if i else 'FIRST'}{' + FIRST' * 500}\n" for i in range(LETS))
REFUSED = {
    first: f"kind: stencil\ninputs: {{x: 'f32[n]'}}\nlet:\n{DEEP.replace('FIRST', first)}outputs: {{y: {{type: 'f32[n]', value: {LAST}}}}}\n"
    for first in ("x", "1")
}


def deep(x, other="x", operators=DEPTH - 3):
    return f"{x} * 2.0" + f" + {other}" * operators


def several(what, n, separator=", "):
    return separator.join(what.replace("#", str(i)) for i in range(n))


DEEP_MAP = f"map: '{deep('x')}'\noperator: add\n"
DEEP_OPERATOR = f"operator: {{state: f32, identity: 0, combine: 'a + b{' * 0.5 + b' * (DEPTH // 2 - 2)}'}}\n"
POINTS = " + ".join(f"x[{a}, {b}, {c}]" for a in range(-2, 3) for b in range(-2, 3) for c in range(-2, 3))
STEPS = "iterate: {steps: 9, feedback: {x: y}}\n"
FIELDS = several("f#: f32", 16)
WIDE_OPERATOR = (f"operator:\n  state: {{{FIELDS}}}\n  identity: {{{several('f#: 0', 16)}}}\n"
                 f"  combine: {{{', '.join(f'f{i}: a.f{i} + b.f{i} * a.f{(i + 1) % 16}' for i in range(16))}}}\n")
MANY = several("x#: 'f32[n]'", 38)
STRUCTURES = ", ".join(f"x{i}: {{type: {{{FIELDS}}}, shape: [n]}}" for i in range(30))
ALL_FIELDS = " + ".join(f"x{i}.f{j}" for i in range(30) for j in range(16))
MANY_SUM = several("x#", 38, " + ")
SPECS |= {
    "a deep map": f"kind: reduce\ninputs: {{x: 'f32[n]'}}\n{DEEP_MAP}outputs: {{y: f32}}\n",
    "a deep map of rows": f"kind: reduce\ninputs: {{x: 'f32[m, n]'}}\nover: n\n{DEEP_MAP}outputs: {{y: 'f32[m]'}}\n",
    "a deep map of columns": f"kind: reduce\ninputs: {{x: 'f32[m, n]'}}\nover: m\n{DEEP_MAP}outputs: {{y: 'f32[n]'}}\n",
    "a deep map of segments": f"kind: reduce\ninputs: {{x: 'f32[n]', off: 'i32[k]'}}\nsegments: {{offsets: off}}\n{DEEP_MAP}outputs: {{y: 'f32[k-1]'}}\n",
    "a deep map of a scan": f"kind: scan\ninputs: {{x: 'f32[n]'}}\n{DEEP_MAP}outputs: {{y: 'f32[n]'}}\n",
    "a deep map of scanned rows": f"kind: scan\ninputs: {{x: 'f32[m, n]'}}\n{DEEP_MAP}outputs: {{y: 'f32[m, n]'}}\n",
    "a deep map of scanned columns": f"kind: scan\ninputs: {{x: 'f32[m, n]'}}\nover: m\n{DEEP_MAP}outputs: {{y: 'f32[m, n]'}}\n",
    "a deep map between flags": f"kind: scan\ninputs: {{x: 'f32[n]', f: 'bool[n]'}}\nsegments: {{flags: f}}\n{DEEP_MAP}outputs: {{y: 'f32[n]'}}\n",
    "a deep map between offsets": f"kind: scan\ninputs: {{x: 'f32[n]', off: 'i32[k]'}}\nsegments: {{offsets: off}}\n{DEEP_MAP}outputs: {{y: 'f32[n]'}}\n",
    "a deep operator": f"kind: reduce\ninputs: {{x: 'f32[n]'}}\n{DEEP_OPERATOR}outputs: {{y: f32}}\n",
    "a deep operator of a scan": f"kind: scan\ninputs: {{x: 'f32[n]'}}\n{DEEP_OPERATOR}outputs: {{y: 'f32[n]'}}\n",
    "a deep stencil": f"kind: stencil\ninputs: {{x: 'f32[n]'}}\noutputs: {{y: {{type: 'f32[n]', value: '{deep('x[-1]')}'}}}}\n",
    "a deep stencil of two dimensions": f"kind: stencil\ninputs: {{x: 'f32[m, n]'}}\noutputs: {{y: {{type: 'f32[m, n]', value: '{deep('x[1, -1]')}'}}}}\n{STEPS}",
    "a deep stencil of three dimensions": "kind: stencil\ninputs: {x: 'f32[l, m, n]'}\n"
    f"outputs: {{y: {{type: 'f32[l, m, n]', value: '{deep('x[0, 1, 0]', 'x[0, 1, 0]')}'}}}}\n{STEPS}",
    "125 points": f"kind: stencil\ninputs: {{x: 'f32[l, m, n]'}}\noutputs: {{y: {{type: 'f32[l, m, n]', value: '{POINTS}'}}}}\n{STEPS}",
    "125 points in turn": f"kind: stencil\ninputs: {{x: 'f64[l, m, n]'}}\nboundary: wrap\n"
    f"outputs: {{y: {{type: 'f64[l, m, n]', value: '{POINTS}'}}}}\n{STEPS}",
    "125 points and their change": f"kind: stencil\ninputs: {{x: 'f32[l, m, n]'}}\nreductions: {{e: {{map: abs(x - y), operator: max}}}}\n"
    f"outputs: {{e: f32, y: {{type: 'f32[l, m, n]', value: '{POINTS}'}}}}\n{STEPS}",
    "16 fields": f"kind: reduce\ninputs:\n  x: {{type: {{{FIELDS}}}, shape: [n]}}\n{WIDE_OPERATOR}outputs:\n  y: {{type: {{{FIELDS}}}}}\n",
    "16 fields scanned": f"kind: scan\ninputs:\n  x: {{type: {{{FIELDS}}}, shape: [n]}}\n{WIDE_OPERATOR}outputs:\n  y: {{type: {{{FIELDS}}}, shape: [n]}}\n",
    "16 reductions": "kind: reduce\ninputs: {x: 'f32[n]'}\nreductions:\n" + several("  r#: {map: x * #.0, operator: add}\n", 16, "")
    + f"outputs: {{{several('r#: f32', 16)}}}\n",
    "16 reductions of rows": "kind: reduce\ninputs: {x: 'f32[m, n]'}\nover: n\nreductions:\n" + several("  r#: {map: x * #.0, operator: add}\n", 16, "")
    + f"outputs: {{{several(chr(39).join(('r#: ', 'f32[m]', '')), 16)}}}\n",
    "16 scans": "kind: scan\ninputs: {x: 'f32[n]'}\nscans:\n" + several("  r#: {map: x * #.0, operator: add}\n", 16, "")
    + f"outputs: {{{several(chr(39).join(('r#: ', 'f32[n]', '')), 16)}}}\n",
    "30 arrays of 16 fields summed": f"kind: reduce\ninputs: {{{STRUCTURES}}}\nmap: {ALL_FIELDS}\noperator: add\noutputs: {{y: f32}}\n",
    "30 arrays of 16 fields scanned": f"kind: scan\ninputs: {{{STRUCTURES}}}\nmap: {ALL_FIELDS}\noperator: add\noutputs: {{y: 'f32[n]'}}\n",
    "30 arrays of 16 fields at a point": f"kind: stencil\ninputs: {{{STRUCTURES}}}\noutputs: {{y: {{type: 'f32[n]', value: '{ALL_FIELDS}'}}}}\n",
    "38 arrays summed": f"kind: reduce\ninputs: {{{MANY}}}\nmap: {MANY_SUM}\noperator: add\noutputs: {{y: f32}}\n",
    "38 arrays scanned": f"kind: scan\ninputs: {{{MANY}}}\nmap: {MANY_SUM}\noperator: add\noutputs: {{y: 'f32[n]'}}\n",
    "38 arrays around a point": f"kind: stencil\ninputs: {{{MANY}}}\noutputs: {{y: {{type: 'f32[n]', value: '{several('x#[-1]', 38, ' + ')}'}}}}\n",
    "38 arrays written": "kind: stencil\ninputs: {x: 'f32[n]'}\noutputs: {" + several("y#: {type: 'f32[n]', value: 'x[#]'}", 38) + "}\n",
}


def measure(arguments, limit):
    """The status, seconds, megabytes and last words of a process."""
    def bound():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    child = subprocess.Popen([PTXGEN] + arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=bound)
    said = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    return status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said


def commands(path, text):
    """What is done with a spec: its name, the arguments, and the seconds that it may take."""
    yield "compiling", [path, "--arch=sm_90", "--tuning=off", "-o", "-"], SECONDS
    if "let:" not in text:
        return
    run = ["run", path, "--device", "cpu", "--verify", "--size", "n=70"]
    for size, example in (("[m", "m=9"), ("[p", "p=3")):
        run += ["--size", example] if size in text else []
    yield "printing", [path, "--emit=problem", "-o", "-"], SECONDS
    yield "checking", ["check", "--prover=off", path], SECONDS
    yield "verifying", run, SECONDS
    yield "explaining", ["explain", path], 5 * SECONDS  # and assembling, where there is ptxas


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for what, text in SPECS.items():
            path = pathlib.Path(folder) / (what.replace(" ", "_").replace(",", "") + ".yaml")
            path.write_text(text)
            if len(sys.argv) > 2 and sys.argv[2] not in what:
                continue
            for doing, arguments, most in commands(str(path), text):
                status, seconds, megabytes, said = measure(arguments, 10 * SECONDS)
                if status or seconds > most or megabytes > MEGABYTES:
                    failed += 1
                    print(f"{doing} {what}: status {status}, {seconds:.2f} s, {megabytes:.0f} MB {said[-300:]}")
        for first, text in REFUSED.items():
            path = pathlib.Path(folder) / "deep.yaml"
            path.write_text(text)
            status, _, _, said = measure([str(path), "-o", "-", "--diagnostics=json"], 10 * SECONDS)
            if os.waitstatus_to_exitcode(status) != 1 or "2104" not in said:
                failed += 1
                print(f"{LETS} lets of 500 operators on {first}: status {status} {said[-300:]}")
    print(f"{len(SPECS)} specs; {failed} times too much was taken")
    return failed > 0


sys.exit(main())
