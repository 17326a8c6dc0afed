#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ptx_values.py PTXGEN - the PTX that is generated computes what the language says, at the edges where it is easy to be wrong.

A spec with one output per expression is compiled for each architecture, and the kernel of its first case is interpreted (ptx_interpreter.py).
What should come out is computed from the same operands in exact arithmetic.  So the test needs no GPU, and sees what LLVM made of the code:
the host executor runs the same emitters, but another backend.  It computes the same values here as well.
"""
import fractions
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

from ptx_interpreter import FORMATS, Kernel, add, decode, encode, extreme, fma, product, sign_of, signed

PTXGEN = str(pathlib.Path(sys.argv[1]).resolve())
HOST = "the host"
ARCHITECTURES = [HOST, "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
THREADS = 256
NPY = {"f16": "<f2", "bf16": "<u2", "f32": "<f4", "f64": "<f8"}


def on_host(spec, inputs, expressions, n, results=None):
    """inputs have n elements, outputs `results`, else n."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "spec.yaml"
        path.write_text(spec)
        command = [PTXGEN, "run", str(path), "--device=cpu", "--tuning=off", "--verify"]
        for name, (kind, size, numbers) in inputs.items():
            kind = NPY.get(kind) or f"{'|' if size == 1 else '<'}{kind[0]}{size}"
            header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({n},), }}"
            header += " " * (-(11 + len(header)) % 64) + "\n"
            data = b"".join(x.to_bytes(size, "little") for x in numbers)
            file = pathlib.Path(folder) / f"{name}.npy"
            file.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
            command.append(f"--input={name}={file}")
        files = [pathlib.Path(folder) / f"o{i}.npy" for i in range(len(expressions))]
        done = subprocess.run(command + [f"--output={f.stem}={f}" for f in files], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{spec}{done.stderr}")
        result, m = [], results or n
        for (_, _, size), f in zip(expressions, files):
            data = f.read_bytes()[-m * size :]
            result.append([int.from_bytes(data[i * size : (i + 1) * size], "little") for i in range(m)])
        return result


def evaluate(arch, inputs, expressions):
    """For each expression its values over the operands.  inputs: name -> (type, bytes of an element, numbers)."""
    n = max(len(x) for _, _, x in inputs.values())
    lines = ["kind: stencil", "inputs:"]
    lines += [f"  {name}: {kind}[n]" for name, (kind, _, _) in inputs.items()]
    lines += ["outputs:"]
    lines += [f'  o{i}: {{type: "{kind}[n]", value: "{text}"}}' for i, (text, kind, _) in enumerate(expressions)]
    if arch == HOST:
        return on_host("\n".join(lines) + "\n", inputs, expressions, n)
    assert n <= THREADS
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("\n".join(lines) + "\n")
        f.flush()
        command = [PTXGEN, f.name, f"--arch={arch}", "-o", "-", "--set", "strategy=stencil.global", "--tuning=off"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n" + "\n".join(lines) + "\n" + done.stderr)
    kernel = Kernel(done.stdout)
    memory, address = bytearray(), []
    for _, size, numbers in inputs.values():
        address.append(len(memory))
        memory += b"".join(x.to_bytes(size, "little") for x in numbers) + bytes(size * (THREADS - len(numbers)))
    for _, _, size in expressions:
        address.append(len(memory))
        memory += bytes(size * THREADS)
    for thread in range(n):
        kernel.run(thread, address + [THREADS], memory)
    result = []
    for (_, _, size), at in zip(expressions, address[len(inputs) :]):
        result.append([int.from_bytes(memory[at + i * size : at + (i + 1) * size], "little") for i in range(n)])
    return result


failures = []


def expect(arch, what, operands, got, want):
    if got != want:
        failures.append(f"{arch}: {what} of {', '.join(hex(x) for x in operands)} is {got:#x}, not {want:#x}")


def shifts(arch):
    for width in (8, 16, 32, 64):
        for kind in "ui":
            amounts = [0, 1, width - 1, width, width + 1, (1 << width - 1) - 1, 1 << width - 1, (1 << width) - 1]
            if width == 64:
                amounts += [1 << 32, (1 << 32) + 3, (1 << 32) + 63, (1 << 33) - 1, 1 << 63 | 1]
            pairs = [(x, a) for x in (2, (1 << width) - 2, 0x5A & (1 << width) - 1 | 1) for a in amounts]
            ty, size = f"{kind}{width}", width // 8
            inputs = {"x": (ty, size, [p[0] for p in pairs]), "v": (ty, size, [p[1] for p in pairs])}
            left, right, fixed = evaluate(
                arch, inputs, [("x << v", ty, size), ("x >> v", ty, size), (f"x << {width - 1}", ty, size)])
            for i, (x, amount) in enumerate(pairs):
                number = signed(x, width) if kind == "i" else x
                expect(arch, f"{ty} <<", (x, amount), left[i], (x << min(amount, width)) & (1 << width) - 1)
                expect(arch, f"{ty} >>", (x, amount), right[i], (number >> min(amount, width)) & (1 << width) - 1)
                expect(arch, f"{ty} << constant", (x,), fixed[i], (x << width - 1) & (1 << width) - 1)


SPECIAL = {  # 0, the least, the largest subnormal, the least normal, 1, the largest, infinity, NaN; then their negatives
    kind: [sign << width - 1 | x for sign in (0, 1) for x in (
        0, 1, (1 << mantissa) - 1, 1 << mantissa, (1 << exponent - 1) - 1 << mantissa, ((1 << exponent) - 1 << mantissa) - 1,
        (1 << exponent) - 1 << mantissa, ((1 << exponent) - 1 << mantissa) + 1)]
    for kind, (width, exponent, mantissa) in FORMATS.items()
}


def same_float(kind, a, b):
    return a == b or (decode(kind, a) == "nan" and decode(kind, b) == "nan")


def expect_float(arch, what, kind, operands, got, want):
    if not same_float(kind, got, want):
        expect(arch, what, operands, got, want)


def extremes(arch):
    for kind, (width, _, _) in FORMATS.items():
        pairs = [(a, b) for a in SPECIAL[kind] for b in SPECIAL[kind]]
        size = width // 8
        inputs = {"x": (kind, size, [p[0] for p in pairs]), "y": (kind, size, [p[1] for p in pairs])}
        names = ["min(x, y)", "max(x, y)", "clamp(x, y, -0.0)", "clamp(0.0, x, y)"]
        got = evaluate(arch, inputs, [(name, kind, size) for name in names])
        for i, (a, b) in enumerate(pairs):
            zero, least = 1 << width - 1, extreme(kind, "max", 0, a)
            want = [extreme(kind, "min", a, b), extreme(kind, "max", a, b),
                    extreme(kind, "min", extreme(kind, "max", a, b), zero), extreme(kind, "min", least, b)]
            for name, values, w in zip(names, got, want):
                expect_float(arch, f"{kind} {name}", kind, (a, b), values[i], w)


def zeros(arch):
    """The minimum of zeros is -0 wherever it stands, their maximum 0."""
    if arch != HOST:
        return
    for kind, (width, _, _) in FORMATS.items():
        spec = (f"kind: reduce\ninputs: {{x: '{kind}[n]'}}\nreductions:\n  o0: {{map: x, operator: min}}\n  o1: {{map: x, operator: max}}\n"
                f"outputs: {{o0: {kind}, o1: {kind}}}\n")
        for n, other in ((2, 0), (1000, 999), (20000, 12345)):
            for sign in (0, 1):
                x = [sign << width - 1] * n
                x[other] ^= 1 << width - 1
                got = on_host(spec, {"x": (kind, width // 8, x)}, [("min", kind, width // 8), ("max", kind, width // 8)], n, 1)
                expect(arch, f"{kind} minimum", (n, other, sign), got[0][0], 1 << width - 1)
                expect(arch, f"{kind} maximum", (n, other, sign), got[1][0], 0)


def triples(kind, count):
    """Operands of fma whose sum lies near the middle between two floats, and any others."""
    width, exponent_bits, mantissa_bits = FORMATS[kind]
    state = 1

    def random(n):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (state >> 33) % n

    for i in range(count):
        a, b = random(1 << width), random(1 << width)
        c = random(1 << width)
        if i % 4:
            middle = 1 << exponent_bits - 2
            a = random(2) << width - 1 | middle + random(middle) << mantissa_bits | random(1 << mantissa_bits)
            b = random(2) << width - 1 | middle + random(middle) << mantissa_bits | random(1 << mantissa_bits)
            c = random(1 << width)
        if i % 4 > 1:  # a tiny addend, which decides a tie
            c &= 1 << width - 1 | (1 << mantissa_bits + 2) - 1
        if i % 4 == 3:  # a product that is a tie: an odd number with one digit more than fits
            x, y = ((random(1 << j) << 1 | 1 | 1 << j + 1) for j in (mantissa_bits // 2 + 1, mantissa_bits - mantissa_bits // 2 - 1))
            a, b = encode(kind, fractions.Fraction(x)), encode(kind, fractions.Fraction(y))
        yield a, b, c


def fused(arch):
    for kind in ("f16", "bf16"):
        every = list(triples(kind, 4000 if arch == HOST else THREADS - 16)) + [(x, SPECIAL[kind][4], y) for x, y in zip(
            SPECIAL[kind], reversed(SPECIAL[kind]))]
        inputs = {name: (kind, 2, [t[i] for t in every]) for i, name in enumerate("xyz")}
        (got,) = evaluate(arch, inputs, [("fma(x, y, z)", kind, 2)])
        for t, value in zip(every, got):
            expect_float(arch, f"{kind} fma", kind, t, value, fma(kind, *t))


def conversions(arch):
    near = [sign * ((1 << e) + (1 << e - 9) + d) for e in (20, 40, 52, 53, 54, 60, 62) for d in (-1, 0, 1) for sign in (1, -1)]
    near += [sign * (2049 * 4 + d) for d in (-1, 0, 1) for sign in (1, -1)] + [0, 1, 65519, 65520, (1 << 63) - 1]
    for source in ("i64", "u64"):
        numbers = [x & (1 << 64) - 1 for x in near]
        got = evaluate(arch, {"x": (source, 8, numbers)}, [(f"{kind}(x)", kind, FORMATS[kind][0] // 8) for kind in FORMATS])
        for kind, values in zip(FORMATS, got):
            for x, value in zip(numbers, values):
                exact = fractions.Fraction(signed(x, 64) if source == "i64" else x)
                expect_float(arch, f"{kind} of {source}", kind, (x,), value, encode(kind, exact))
    middle = fractions.Fraction(2) ** 5 * (1 + fractions.Fraction(1, 1 << 8)), fractions.Fraction(2) ** 5 * (1 + fractions.Fraction(1, 1 << 11))
    small = fractions.Fraction(1, 1 << 25), fractions.Fraction(1, 1 << 134), fractions.Fraction(3, 1 << 134)
    doubles = SPECIAL["f64"] + [encode("f64", x * s) + d for x in middle + small for s in (1, -1) for d in (-1, 0, 1)]
    got = evaluate(arch, {"x": ("f64", 8, doubles)}, [(f"{kind}(x)", kind, FORMATS[kind][0] // 8) for kind in FORMATS])
    for kind, values in zip(FORMATS, got):
        for x, value in zip(doubles, values):
            y = decode("f64", x)
            expect_float(arch, f"{kind} of f64", kind, (x,), value, encode(kind, y, bool(sign_of("f64", x))))


def narrow(arch):
    """One operation of a narrow type, by way of a wider one: rounding twice must not show."""
    for kind in ("f16", "bf16"):
        pairs = [(a, b) for a, b, _ in triples(kind, 4000 if arch == HOST else THREADS)]
        pairs[:16] = zip(SPECIAL[kind], reversed(SPECIAL[kind]))
        inputs = {"x": (kind, 2, [p[0] for p in pairs]), "y": (kind, 2, [p[1] for p in pairs])}
        total, times = evaluate(arch, inputs, [("x + y", kind, 2), ("x * y", kind, 2)])
        for i, (a, b) in enumerate(pairs):
            x, negative = product(kind, a, b)
            expect_float(arch, f"{kind} +", kind, (a, b), total[i], add(kind, a, b))
            expect_float(arch, f"{kind} *", kind, (a, b), times[i], encode(kind, x, negative))


def signs(arch):
    """abs, negation and selections where the least number or a zero with a sign comes in."""
    for width in (8, 16, 32, 64):
        kind, size, least = f"i{width}", width // 8, -1 << width - 1
        pairs = [(x, y) for x in (least, least + 1, -128, -5, 0, 7, -least - 1) for y in (least, -3, 2, -least - 1)]
        mask = (1 << width) - 1
        inputs = {"x": (kind, size, [p[0] & mask for p in pairs]), "y": (kind, size, [p[1] & mask for p in pairs])}
        texts = ["abs(x)", "abs(x) % y", "abs(x) >> 3", "if x < 0 then -x else x", "max(-x, y)", "min(max(-x, -y), x)", "max(abs(x), y)"]
        got = evaluate(arch, inputs, [(text, kind, size) for text in texts])
        texts.append("-x / y")  # apart, since the others make another form of -x
        got += evaluate(arch, inputs, [(texts[-1], kind, size)])
        (byte,) = evaluate(arch, inputs, [(f"{kind}(-i8(x))", kind, size)])
        for i, (x, y) in enumerate(pairs):
            minus, other = signed(-x & mask, width), signed(-y & mask, width)
            size_of = minus if x < 0 else x
            rest = abs(size_of) % abs(y) * (1 if size_of > 0 else -1)
            want = [size_of, rest, size_of >> 3, size_of, max(minus, y), min(max(minus, other), x), max(size_of, y),
                    abs(minus) // abs(y) * (1 if (minus < 0) == (y < 0) else -1)]
            for text, values, w in zip(texts, got, want):
                expect(arch, f"{kind} {text}", (x & mask, y & mask), values[i], w & mask)
            expect(arch, f"{kind} -i8(x)", (x & mask,), byte[i], signed(-x & 255, 8) & mask)
    for kind, (width, _, _) in FORMATS.items():
        pairs = [(x, y) for x in (0, 1) for y in (0, 1)]
        inputs = {"x": ("i32", 4, [p[0] for p in pairs]), "y": ("i32", 4, [p[1] for p in pairs])}
        one, zero = encode(kind, fractions.Fraction(-1)), 1 << width - 1
        either, negative = evaluate(arch, inputs, [
            (f"{kind}(-i32(x > 0 || y > 0))", kind, width // 8), (f"if x > 0 then -{kind}(0) else -{kind}(1)", kind, width // 8)])
        for i, (x, y) in enumerate(pairs):
            expect(arch, f"{kind} of minus a bool", (x, y), either[i], one if x or y else 0)
            expect(arch, f"{kind} negative zero or minus one", (x,), negative[i], zero if x else one)
        texts = ["if x < 0 then x else 0", "if x > 0 then x else 0", "if x < 0 then 0 else x", "if x > 0 then 0 else x",
                 "if x < -0.0 then x else -0.0", "if x > -0.0 then x else -0.0", "if f(i) < x then f(i) else x", "if x < f(i) then x else f(i)"]
        texts = [text.replace("f(i)", f"{kind}(i)") for text in texts]
        inputs = {"x": (kind, width // 8, SPECIAL[kind]), "i": ("i8", 1, [0] * len(SPECIAL[kind]))}
        got = evaluate(arch, inputs, [(text, kind, width // 8) for text in texts])
        zero = 1 << width - 1
        for i, x in enumerate(SPECIAL[kind]):
            value = decode(kind, x)
            number = 0.0 if value == "nan" else float(value) if isinstance(value, str) else value
            below, above = number < 0, number > 0
            want = [x if below else 0, x if above else 0, 0 if below else x, 0 if above else x, x if below else zero,
                    x if above else zero, 0 if above else x, x if below else 0]
            for text, values, w in zip(texts, got, want):
                expect_float(arch, f"{kind} {text}", kind, (x,), values[i], w)


def falling(arch):
    """exp(x - maximum) of rows of two elements, a thread each: within four units in the last place, or 0 below the least normal number."""
    if arch not in ("sm_80", "sm_90", "sm_120"):
        return
    def compiled(spec, *pins):
        return subprocess.run([PTXGEN, "-", f"--arch={arch}", "-o", "-", "--tuning=off", *pins], input=spec, capture_output=True, text=True,
                              check=True).stdout

    if "max.NaN" in compiled("kind: reduce\ninputs: {x: 'f32[n]'}\nmap: {m: x, s: 1.0}\noutputs: {y: {type: f32, value: r.s}}\noperator:\n"
                             "  {state: {m: f32, s: f32}, combine: {m: 'max(a.m, b.m)', s: 'a.s * exp(a.m - max(a.m, b.m)) + b.s * exp(a.m - b.m)'}}\n"):
        failures.append(f"{arch}: an exponential of a user's own operator is taken for what falls")
    pins = ["strategy=segreduce.resident", "lanes=1", "vector=1", "items=2", f"threads={THREADS}", "pdl=0"]
    text = compiled("kind: reduce\ninputs: {x: 'f32[m, n]'}\noperator: logsumexp\nover: n\n"
                    "outputs: {y: {type: 'f32[m, n]', value: exp(x - r.max)}}\n", "--size=n=2", *(f"--set={p}" for p in pins))
    steps = [fractions.Fraction(i * i, 200) for i in range(THREADS - 3)]  # to 320
    bits = [[encode("f32", m), encode("f32", m - d)] for d, m in zip(steps, [0, fractions.Fraction(7, 3), -1000] * THREADS)]
    bits += [[encode("f32", 1), encode("f32", "-inf")], [encode("f32", 1), encode("f32", "nan")], [SPECIAL["f32"][5], SPECIAL["f32"][13]]]
    memory = bytearray(b"".join(x.to_bytes(4, "little") for row in bits for x in row) + bytes(8 * THREADS))
    kernel = Kernel(text)
    for thread in range(THREADS):
        kernel.run(thread, [0, 8 * THREADS, 0, 0, THREADS, 2], memory)
    for i, (most, x) in enumerate(bits):
        got = [int.from_bytes(memory[(at := 8 * THREADS + 8 * i + 4 * j) : at + 4], "little") for j in (0, 1)]
        difference, value = decode("f32", add("f32", x, most ^ 1 << 31)), decode("f32", got[1])
        want = math.exp(difference) if isinstance(difference, fractions.Fraction) else 0
        wrong = value != "nan" if difference == "nan" else value == "nan" or abs(value - want) > 2**-21 * want + 2**-126
        if wrong or got[0] != encode("f32", 1):
            failures.append(f"{arch}: exp(x - maximum) of {hex(x)}, {hex(most)} is {got[1]:#x}, of the maximum {got[0]:#x}")


def main():
    for arch in ARCHITECTURES:
        for check in (signs, falling, shifts, extremes, zeros, fused, conversions, narrow):
            check(arch)
    kinds = {}
    for line in failures:
        kinds.setdefault(line.split(" of ")[0], []).append(line)
    for lines in kinds.values():
        print("\n".join(lines[:3]), f"({len(lines)} of these)" if len(lines) > 3 else "")
    print(f"{len(failures)} values are wrong")
    return len(failures) > 0


sys.exit(main())
