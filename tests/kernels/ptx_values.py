#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ptx_values.py PTXGEN - the PTX that is generated computes what the language says, at the edges where it is easy to be wrong.

A spec with one output per expression is compiled for each architecture, and the kernel of its first case is interpreted here, thread by
thread, as the PTX manual defines each instruction.  What should come out is computed from the same operands in exact arithmetic.  So
the test needs no GPU, and sees what LLVM made of the code: the host executor runs the same emitters, but another backend.  It
computes the same values here as well.
"""
import fractions
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

PTXGEN = str(pathlib.Path(sys.argv[1]).resolve())
HOST = "the host"
ARCHITECTURES = [HOST, "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
THREADS = 256

# ---- formats: (bits, exponent bits, mantissa bits) -----------------------------------------------------------------

FORMATS = {"f16": (16, 5, 10), "bf16": (16, 8, 7), "f32": (32, 8, 23), "f64": (64, 11, 52)}


def decode(kind, bits):
    """The value of a float's bits: a Fraction, or "inf", "-inf", "nan"; the sign of zero is in sign_of()."""
    width, exponent_bits, mantissa_bits = FORMATS[kind]
    sign = -1 if bits >> (width - 1) & 1 else 1
    exponent = bits >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = bits & (1 << mantissa_bits) - 1
    if exponent == (1 << exponent_bits) - 1:
        return "nan" if mantissa else "inf" if sign > 0 else "-inf"
    bias = (1 << exponent_bits - 1) - 1 + mantissa_bits
    if exponent:
        mantissa += 1 << mantissa_bits
    return sign * mantissa * fractions.Fraction(2) ** (max(exponent, 1) - bias)


def sign_of(kind, bits):
    return bits >> FORMATS[kind][0] - 1 & 1


def encode(kind, x, negative_zero=False):
    """The bits of the float next to x, ties to even."""
    width, exponent_bits, mantissa_bits = FORMATS[kind]
    top = (1 << exponent_bits) - 1 << mantissa_bits
    if x == "nan":
        return top | 1 << mantissa_bits - 1
    if x in ("inf", "-inf"):
        return top | (x == "-inf") << width - 1
    negative = x < 0 or (x == 0 and negative_zero)
    x = abs(x)
    bias = (1 << exponent_bits - 1) - 1
    least = 1 - bias - mantissa_bits  # exponent of the smallest subnormal
    exponent = least
    if x:
        e = x.numerator.bit_length() - x.denominator.bit_length()
        e -= fractions.Fraction(2) ** e > x
        exponent = max(e - mantissa_bits, least)
    quotient = x / fractions.Fraction(2) ** exponent
    whole = quotient.numerator // quotient.denominator
    rest = quotient - whole
    whole += rest > fractions.Fraction(1, 2) or (rest == fractions.Fraction(1, 2) and whole & 1)
    bits = whole if exponent == least else whole + (exponent - least << mantissa_bits)
    return min(bits, top) | negative << width - 1


def add(kind, a, b, exact_a=None):
    """The bits of a + b, rounded once; exact_a: the value of a where it is no float."""
    x, y = decode(kind, a) if exact_a is None else exact_a, decode(kind, b)
    if "nan" in (x, y) or {x, y} == {"inf", "-inf"}:
        return encode(kind, "nan")
    for z in (x, y):
        if isinstance(z, str):
            return encode(kind, z)
    zero = x == 0 and y == 0 and sign_of(kind, a) and sign_of(kind, b)
    return encode(kind, x + y, bool(zero))


def product(kind, a, b):
    x, y = decode(kind, a), decode(kind, b)
    negative = sign_of(kind, a) != sign_of(kind, b)
    if isinstance(x, str) or isinstance(y, str):
        if "nan" in (x, y) or 0 in (x, y):
            return "nan", negative
        return "-inf" if negative else "inf", negative
    return x * y, negative


def fma(kind, a, b, c):
    x, negative = product(kind, a, b)
    sign = negative << FORMATS[kind][0] - 1
    return add(kind, sign, c, x)


def extreme(kind, name, a, b):
    """min and max: a number before NaN, -0 before +0."""
    if decode(kind, a) == "nan" or decode(kind, b) == "nan":
        return b if decode(kind, a) == "nan" else a
    key = lambda bits: (float(decode(kind, bits)), not sign_of(kind, bits))
    return (min if name == "min" else max)(a, b, key=key)


# ---- the interpreter -----------------------------------------------------------------------------------------------


def signed(x, width):
    return x - (1 << width) if x >> width - 1 & 1 else x


def quotient(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


class Kernel:
    """The first entry of a PTX text, run for one thread at a time.

    Where ptxas is known to take an instruction for another one, it computes what comes of that: abs of the least number is the
    largest, and so is its negation where a minimum or maximum takes it."""

    def __init__(self, text):
        body = text[text.index(".visible .entry"):]
        body = re.sub(r"//[^\n]*", "", body[: body.index("\n}")])
        self.parameters = re.findall(r"\.param [^,)\n]*?(\w+_param_\d+)", body)
        self.code, self.label = [], {}
        for line in body[body.index("{") + 1 :].replace("{ ", "").replace(" }", "").split(";"):
            line = line.strip()
            while m := re.match(r"(\$?\w+):\s*", line):
                self.label[m[1]] = len(self.code)
                line = line[m.end() :]
            if line and not line.startswith(".reg"):
                self.code.append(line)

    def run(self, thread, values, memory):
        self.r, self.memory, self.negated = {}, memory, set()
        parameter = dict(zip(self.parameters, values))
        at = 0
        while True:
            line = self.code[at]
            at += 1
            if m := re.match(r"@(!?)(%\w+)\s+(.*)", line, re.S):
                if bool(self.r[m[2]]) == (m[1] == "!"):
                    continue
                line = m[3]
            op, _, rest = line.partition("\t") if "\t" in line else line.partition(" ")
            op, rest = op.strip(), rest.strip()
            if op in ("ret", "exit"):
                return
            if op.startswith("bra"):
                at = self.label[rest]
                continue
            arg = [a.strip() for a in re.split(r",(?![^{\[]*[}\]])", rest)]
            if op.startswith("ld.param"):
                self.r[arg[0]] = parameter[arg[1].strip("[]")]
            elif arg[-1].startswith("%tid") or arg[-1].startswith("%ctaid"):
                self.r[arg[0]] = thread if arg[-1] == "%tid.x" else 0
            else:
                self.step(op.split("."), arg)

    def value(self, text, kind=""):
        if text in self.r:
            return self.r[text]
        if text.startswith("0f") or text.startswith("0d"):
            return int(text[2:], 16)
        width = 8 * int(re.sub(r"\D", "", kind) or 64) // 8
        return int(text, 0) & (1 << width) - 1

    def set(self, name, x, kind):
        width = 1 if kind == "pred" else int(re.sub(r"\D", "", kind))
        if name != "_":
            self.r[name] = x & (1 << width) - 1

    def address(self, text):
        m = re.fullmatch(r"\[(%\w+)(?:\+(-?\d+))?\]", text)
        return self.r[m[1]] + int(m[2] or 0)

    def step(self, op, arg):
        name, kind = op[0], op[-1]
        width = 1 if kind == "pred" else int(re.sub(r"\D", "", kind))
        if name == "ld":
            size = width // 8
            x = int.from_bytes(self.memory[(at := self.address(arg[1])) : at + size], "little")
            self.r[arg[0]] = signed(x, width) & (1 << 64) - 1 if kind[0] == "s" else x
        elif name == "st":
            size, at = width // 8, self.address(arg[0])
            self.memory[at : at + size] = (self.value(arg[1], kind) & (1 << width) - 1).to_bytes(size, "little")
        elif name == "vote":
            self.set(arg[0], self.r[arg[1]], "pred")
        elif name == "mov":
            self.move(arg, width, kind)
        elif name == "cvt":
            self.set(arg[0], self.convert(op[1:], self.value(arg[1], kind)), op[-2])
        elif name in ("set", "setp"):
            self.set(arg[0], self.compare(op, *(self.value(a, kind) for a in arg[1:3])), "pred")
        elif name == "selp":
            self.set(arg[0], self.value(arg[1 if self.r[arg[3]] else 2], kind), kind)
        else:
            # the amount of a shift has 32 bits whatever is shifted
            kinds = [kind, "b32"] if name in ("shl", "shr") else [kind] * 3
            x = [self.value(a, k) for a, k in zip(arg[1:], kinds)]
            if name in ("min", "max") and kind == "s32":
                x = [(1 << 31) - 1 if a in self.negated and v == 1 << 31 else v for a, v in zip(arg[1:], x)]
            self.negated.discard(arg[0])
            if name == "neg":
                self.negated.add(arg[0])
            x = [v & (1 << int(k[1:])) - 1 if k[1:].isdigit() else v for v, k in zip(x, kinds)]
            self.set(arg[0], (self.float_step if kind in FORMATS else self.integer_step)(op, x, width), kind)

    def move(self, arg, width, kind):
        if arg[0].startswith("{"):
            names = [n.strip() for n in arg[0].strip("{}").split(",")]
            for i, n in enumerate(names):
                part = width // len(names)
                self.set(n, self.r[arg[1]] >> i * part, f"b{part}")
        elif arg[1].startswith("{"):
            names = [n.strip() for n in arg[1].strip("{}").split(",")]
            part = width // len(names)
            self.set(arg[0], sum(self.value(n, f"b{part}") << i * part for i, n in enumerate(names)), kind)
        else:
            self.set(arg[0], self.value(arg[1], kind), kind)

    @staticmethod
    def convert(op, x):
        to, source = op[-2], op[-1]
        if source not in FORMATS:
            width = int(source[1:])
            x &= (1 << width) - 1
            x = signed(x, width) if source[0] == "s" else x
            return encode(to, fractions.Fraction(x)) if to in FORMATS else x
        y = decode(source, x)
        if to in FORMATS:
            assert y == "nan" or to == "f64" or "rn" in op or FORMATS[to][0] > FORMATS[source][0], op
            return encode(to, y, bool(sign_of(source, x)))
        raise NotImplementedError(".".join(op))

    @staticmethod
    def compare(op, a, b):
        relation, kind = op[1], op[-1]
        if kind in FORMATS:
            x, y = decode(kind, a), decode(kind, b)
            nan = "nan" in (x, y)
            if relation in ("nan", "num"):
                return nan == (relation == "nan")
            if nan:
                return relation in ("ne", "neu", "equ", "ltu", "leu", "gtu", "geu") and relation != "ne"
            a, b = float(x), float(y)
            relation = relation.rstrip("u") if relation != "equ" else "eq"
        else:
            width = int(kind[1:])
            a, b = (signed(v, width) if kind[0] == "s" else v for v in (a, b))
        order = {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "lo": a < b, "ls": a <= b, "hi": a > b, "hs": a >= b}
        return {**order, "eq": a == b, "ne": a != b}[relation]

    @staticmethod
    def integer_step(op, x, width):
        name, kind = op[0], op[-1]
        number = [signed(v, width) if kind[0] == "s" else v for v in x]
        if name == "shl":
            return x[0] << min(x[1], width)
        if name == "shr":
            return number[0] >> min(x[1], width)
        if name in ("min", "max"):
            return (min if name == "min" else max)(number)
        if name == "bfe" and kind == "u32":
            return x[0] >> (x[1] & 255) & (1 << (x[2] & 255)) - 1
        return {
            "add": lambda: x[0] + x[1],
            "sub": lambda: x[0] - x[1],
            "mul": lambda: x[0] * x[1],
            "and": lambda: x[0] & x[1],
            "or": lambda: x[0] | x[1],
            "xor": lambda: x[0] ^ x[1],
            "not": lambda: ~x[0],
            "neg": lambda: -x[0],
            "rem": lambda: number[0] - number[1] * quotient(*number),
            "div": lambda: quotient(*number),
            "abs": lambda: min(abs(number[0]), (1 << width - 1) - 1),
        }[name]()

    @staticmethod
    def float_step(op, x, width):
        name, kind = op[0], op[-1]
        assert "ftz" not in op and "approx" not in op, op
        if name == "sub":
            x[1] ^= 1 << width - 1
        if name in ("add", "sub"):
            return add(kind, x[0], x[1])
        if name == "mul":
            y, negative = product(kind, x[0], x[1])
            return encode(kind, y, negative)
        if name == "fma":
            return fma(kind, *x)
        if name in ("min", "max") and "NaN" not in op:
            return extreme(kind, name, x[0], x[1])
        if name in ("neg", "abs"):
            sign = 1 << width - 1
            return x[0] ^ sign if name == "neg" else x[0] & ~sign
        raise NotImplementedError(".".join(op))


# ---- expressions and what they should give -------------------------------------------------------------------------


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
        pairs = [(x, y) for x in (least, least + 1, -5, 0, 7, -least - 1) for y in (least, -3, 2, -least - 1)]
        mask = (1 << width) - 1
        inputs = {"x": (kind, size, [p[0] & mask for p in pairs]), "y": (kind, size, [p[1] & mask for p in pairs])}
        texts = ["abs(x)", "abs(x) % y", "abs(x) >> 3", "if x < 0 then -x else x", "max(-x, y)", "min(max(-x, -y), x)", "max(abs(x), y)"]
        got = evaluate(arch, inputs, [(text, kind, size) for text in texts])
        for i, (x, y) in enumerate(pairs):
            minus, other = signed(-x & mask, width), signed(-y & mask, width)
            size_of = minus if x < 0 else x
            rest = abs(size_of) % abs(y) * (1 if size_of > 0 else -1)
            want = [size_of, rest, size_of >> 3, size_of, max(minus, y), min(max(minus, other), x), max(size_of, y)]
            for text, values, w in zip(texts, got, want):
                expect(arch, f"{kind} {text}", (x & mask, y & mask), values[i], w & mask)
    for kind, (width, _, _) in FORMATS.items():
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


def main():
    for arch in ARCHITECTURES:
        for check in (signs, shifts, extremes, zeros, fused, conversions, narrow):
            check(arch)
    kinds = {}
    for line in failures:
        kinds.setdefault(line.split(" of ")[0], []).append(line)
    for lines in kinds.values():
        print("\n".join(lines[:3]), f"({len(lines)} of these)" if len(lines) > 3 else "")
    print(f"{len(failures)} values are wrong")
    return len(failures) > 0


sys.exit(main())
