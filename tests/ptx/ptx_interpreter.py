# SPDX-License-Identifier: Apache-2.0
"""ptx_interpreter.py - floats bit by bit, and an interpreter of the PTX that is generated, thread by thread, as the PTX manual defines each
instruction."""
import fractions
import math
import re

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
    largest, so is a negation of 16 bits, a minimum or maximum of 16 or 32 bits takes what was to be negated, and a selection of
    -0.0 or -1.0 has 0 for -0."""

    def __init__(self, text):
        body = text[text.index(".visible .entry"):]
        body = re.sub(r"//[^\n]*", "", body[: re.search(r"\n}\n(?=\n|\Z)", body).start()])
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
        self.r, self.memory, self.negated = {}, memory, {}
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
            elif arg[-1].startswith(("%tid", "%ctaid", "%nctaid")):
                self.r[arg[0]] = thread if arg[-1] == "%tid.x" else arg[-1] == "%nctaid.x"
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
            x = self.value(arg[1 if self.r[arg[3]] else 2], kind)
            lost = kind == "f32" and {self.value(arg[1], kind), self.value(arg[2], kind)} == {1 << 31, 0xBF800000}
            self.set(arg[0], 0 if lost and x == 1 << 31 else x, kind)
        else:
            # the amount of a shift has 32 bits whatever is shifted
            kinds = [kind, "b32"] if name in ("shl", "shr") else [kind] * 3
            x = [self.value(a, k) for a, k in zip(arg[1:], kinds)]
            if name in ("min", "max") and kind in ("s16", "s32", "u16", "u32"):
                x = [self.negated.get(a, v) for a, v in zip(arg[1:], x)]
            self.negated.pop(arg[0], None)
            if name == "neg":
                self.negated[arg[0]] = x[0]
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
            "neg": lambda: min(-number[0], (1 << 15) - 1) if width == 16 else -x[0],
            "rem": lambda: number[0] - number[1] * quotient(*number),
            "div": lambda: quotient(*number),
            "abs": lambda: min(abs(number[0]), (1 << width - 1) - 1),
        }[name]()

    @staticmethod
    def float_step(op, x, width):
        name, kind = op[0], op[-1]
        if op == ["ex2", "approx", "ftz", "f32"]:  # rounded: the manual allows a unit in the last place more
            power = decode(kind, x[0])
            power = math.exp2(power) if isinstance(power, fractions.Fraction) else {"nan": "nan", "inf": "inf", "-inf": 0}[power]
            return encode(kind, power if isinstance(power, str) else fractions.Fraction(power) * (power >= 2**-126))
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
        if name in ("min", "max"):
            return encode(kind, "nan") if "NaN" in op and "nan" in map(lambda v: decode(kind, v), x) else extreme(kind, name, x[0], x[1])
        if name in ("neg", "abs"):
            sign = 1 << width - 1
            return x[0] ^ sign if name == "neg" else x[0] & ~sign
        raise NotImplementedError(".".join(op))
