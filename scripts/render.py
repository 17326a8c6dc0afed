#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""render.py - run some specs and write what comes out as PNG files, for docs/gallery.md.

    scripts/render.py [--ptxgen FILE] [--device auto] [--specs DIR] [--to DIR] [--picture FILE.npy] [SCENE...]

Scenes: heat, blur, life, hotspot, plate, srad, clusters; all of them when none is named.  Needs nothing but Python: .npy and PNG files are read and written here.  ptxgen is
the newest one built in build/, or the one in PATH.  --picture is an array [height, width], or [height, width, colours] of which the mean is
taken, that is blurred in place of the picture drawn here; numbers above 2 count as 0 to 255.
"""
import argparse
import array
import ast
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRAD_STEPS = 6
CODES = {"u1": "B", "i1": "b", "b1": "B", "u2": "H", "i2": "h", "u4": "I", "i4": "i", "u8": "Q", "i8": "q", "f4": "f", "f8": "d"}


# ---- arrays: lists of rows --------------------------------------------------------------------------------------------------------------


def write_npy(path, kind, rows):
    """Rows of numbers as a two-dimensional array of `kind`, one of CODES."""
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    numbers = array.array(CODES[kind], (x for row in rows for x in row))
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + numbers.tobytes())


def read_npy(path):
    """Rows of numbers, one row where there is one dimension; colours are averaged."""
    data = path.read_bytes()
    if data[:6] != b"\x93NUMPY":
        sys.exit(f"render.py: {path} is no .npy file")
    begin, length = (10, struct.unpack_from("<H", data, 8)[0]) if data[6] == 1 else (12, struct.unpack_from("<I", data, 8)[0])
    header = ast.literal_eval(data[begin : begin + length].decode())
    kind, shape = header["descr"], header["shape"]
    shape = (1, *shape) if len(shape) == 1 else shape
    if kind[1:] not in CODES or kind[0] == ">" or header["fortran_order"] or len(shape) not in (2, 3) or 0 in shape:
        sys.exit(f"render.py: {path} is no picture: type {kind}, shape {shape}")
    numbers = array.array(CODES[kind[1:]], data[begin + length :])
    colours = shape[2] if len(shape) == 3 else 1
    points = [sum(numbers[i : i + colours]) / colours for i in range(0, len(numbers), colours)] if colours > 1 else list(numbers)
    return [points[i : i + shape[1]] for i in range(0, len(points), shape[1])]


def read_grey(path):
    """Rows in [0, 1] of a PNG file of 8 grey bits whose rows have no filter."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        packed, at = packed + (data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""), at + 12 + length
    width, height = struct.unpack_from(">II", data, 16)
    rows = zlib.decompress(packed)
    if data[24:29] != bytes((8, 0, 0, 0, 0)) or any(rows[y * (width + 1)] for y in range(height)):
        sys.exit(f"render.py: {path} is no picture of 8 grey bits without filters")
    return [[x / 255 for x in rows[y * (width + 1) + 1 : (y + 1) * (width + 1)]] for y in range(height)]


# ---- pictures: rows of bytes, three per point -------------------------------------------------------------------------------------------


def write_png(path, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    body = b"".join(b"\0" + row for row in rows)  # every row begins with its filter, 0: none
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(body, 9)) + chunk(b"IEND", b""))


def byte(x):
    return min(max(round(255 * x), 0), 255)


def grey(rows):
    return [bytes(v for x in row for v in (byte(x),) * 3) for row in rows]


def fire(rows):
    """[0, 1] from black through red and yellow to white."""
    return [bytes(byte(3 * x - k) for x in row for k in range(3)) for row in rows]


def beside(*pictures):
    """Pictures of one height with a white line between them."""
    line = b"\xff" * 12
    return [line.join(rows) for rows in zip(*pictures)]


def larger(rows, by):
    return [[x for x in row for _ in range(by)] for row in rows for _ in range(by)]


# ---- scenes -----------------------------------------------------------------------------------------------------------------------------


class Runner:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.TemporaryDirectory()

    def run(self, spec, kind, name, rows, output, **params):
        """An output of specs/SPEC.yaml, from one input; sizes m and n are those of the input."""
        return self.several(spec, {name: (kind, rows)}, {"m": len(rows), "n": len(rows[0])}, [output], **params)[0]

    def several(self, spec, inputs, sizes, outputs, **params):
        """The outputs of specs/SPEC.yaml; an input is (kind, rows)."""
        at = pathlib.Path(self.folder.name)
        command = [str(self.options.ptxgen), "run", str(self.options.specs / f"{spec}.yaml"), f"--device={self.options.device}"]
        for name, (kind, rows) in inputs.items():
            write_npy(at / f"{name}.npy", kind, rows)
            command += [f"--input={name}={at / name}.npy"]
        command += [f"--size={name}={value}" for name, value in sizes.items()]
        command += [f"--output={name}={at / name}.out.npy" for name in outputs]
        command += [f"--param={name}={value}" for name, value in params.items()]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"render.py: {' '.join(command)}\n{done.stderr}")
        return [read_npy(at / f"{name}.out.npy") for name in outputs]


def heat(runner):
    """A plate with a hot rim above and a few hot wires, after 0, 60 and 1200 steps."""
    u = [[0.0] * 192 for _ in range(192)]
    for y, row in enumerate(u):
        row[0] = 1 - y / 191
        for x in range(192):
            if y == 0 or (60 <= y < 64 and 40 <= x < 150) or (100 <= y < 180 and 130 <= x < 134):
                row[x] = 1.0
    return beside(fire(u), *(fire(runner.run("jacobi2d", "f4", "u", u, "out", steps=s)) for s in (60, 1200)))


def drawn_picture():
    """Discs, bars and a little noise."""
    discs = ((80, 90, 52, 0.9), (70, 80, 22, 0.1), (170, 180, 60, 0.35), (185, 165, 18, 1.0))
    noise = random.Random(1)

    def at(y, x):
        if y > 200 and x < 120:
            return float(x * x // 400 % 2)
        hit = [v for cy, cx, r, v in discs if (y - cy) ** 2 + (x - cx) ** 2 < r * r]
        return hit[-1] if hit else 0.2 + 0.5 * x / 255 * (1 - y / 255)

    return [[at(y, x) + noise.gauss(0, 0.06) for x in range(256)] for y in range(256)]


def blur(runner):
    """A picture, blurred once and eight times."""
    a = read_npy(runner.options.picture) if runner.options.picture else drawn_picture()
    if max(map(max, a)) > 2:
        a = [[x / 255 for x in row] for row in a]
    once = many = runner.run("gaussian5x5", "f4", "x", a, "blurred")
    for _ in range(7):
        many = runner.run("gaussian5x5", "f4", "x", many, "blurred")
    return beside(grey(a), grey(once), grey(many))


def life(runner):
    """The R-pentomino and a glider on a torus, after 0, 100 and 400 generations."""
    cell = [[0] * 128 for _ in range(128)]
    for y, x, figure in ((60, 60, ("011", "110", "010")), (5, 5, ("010", "001", "111"))):
        for dy, line in enumerate(figure):
            cell[y + dy][x : x + 3] = map(int, line)
    later = [runner.run("life", "u1", "cell", cell, "out", steps=s) for s in (100, 400)]
    return beside(*(grey(larger([[1 - x for x in row] for row in rows], 2)) for rows in (cell, *later)))


def boxes(extent, base, *figures):
    """A square of `base` with boxes (top, left, height, width, value)."""
    rows = [[base] * extent for _ in range(extent)]
    for top, left, height, width, value in figures:
        for row in rows[top : top + height]:
            row[left : left + width] = [value] * width
    return rows


def hotspot(runner):
    """The dissipation of a chip, and its temperatures after 50 steps and when they no longer change."""
    power = boxes(128, 0.02, (8, 8, 40, 52, 0.25), (8, 68, 24, 52, 0.1), (40, 76, 36, 36, 0.6), (60, 12, 56, 48, 0.12), (90, 84, 20, 20, 0.8))
    inputs = {"temp": ("f4", boxes(128, 80.0)), "power": ("f4", power)}
    chip = {"step_div_cap": 0.2, "rx": 1, "ry": 1, "rz": 40, "amb": 80}
    after = [runner.several("apps/hotspot", inputs, {"m": 128, "n": 128}, ["next"], **chip, **end)[0]
             for end in ({"steps": 50, "eps": 0}, {"steps": 20000, "eps": 0.01})]
    hottest = max(map(max, after[1])) - 80
    return beside(fire(larger(power, 2)), *(fire(larger([[(t - 80) / hottest for t in row] for row in rows], 2)) for rows in after))


def plate(runner):
    """Hot shapes on an insulated plate, after 100 steps, and when no point moves by 0.0005 any more."""
    u = boxes(128, 0.0, (16, 16, 28, 28, 1.0), (70, 60, 44, 12, 1.0), (84, 40, 12, 60, 1.0), (24, 96, 6, 24, 1.0))
    after = [runner.several("apps/heat", {"u": ("f4", u)}, {"m": 128, "n": 128}, ["next"], **end)[0]
             for end in ({"steps": 100, "eps": 0}, {"steps": 100000, "eps": 0.0005})]
    return beside(*(fire(larger(rows, 2)) for rows in (u, *after)))


def despeckled(runner, steps):
    """A photograph, the same with speckle as ultrasound and radar have it, which grows with the brightness, and what SRAD makes of that."""
    noise = random.Random(3)
    clean = read_grey(ROOT / "docs" / "images" / "camera.png")
    speckled = [[max(0.02, x * (1 + 0.25 * noise.gauss(0, 1))) for x in row] for row in clean]
    return clean, speckled, runner.several("apps/srad", {"img": ("f4", speckled)}, {"m": len(clean), "n": len(clean[0])}, ["next"], steps=steps)[0]


def srad(runner):
    """A photograph with speckle, and after the steps of diffusion; at the end the photograph itself."""
    clean, speckled, after = despeckled(runner, SRAD_STEPS)
    return beside(grey(speckled), grey(after), grey(clean))


COLOURS = [(0xE6, 0x9F, 0x00), (0x56, 0xB4, 0xE9), (0x00, 0x9E, 0x73), (0xF0, 0xE4, 0x42), (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00), (0xCC, 0x79, 0xA7)]


def clusters(runner):
    """Points by the nearest of seven centroids: of those at the beginning, and of those that k-means ends with."""
    r, extent = random.Random(5), 256
    middles = [(r.uniform(0.12, 0.88), r.uniform(0.12, 0.88)) for _ in COLOURS]
    points = [[r.gauss(c, 0.055) for c in middles[i % len(middles)]] for i in range(1400)]
    first = [points[i] for i in range(len(COLOURS))]
    first = [[0.5 + (c - 0.5) / 4 for c in point] for point in first]
    inputs, sizes = {"x": ("f4", points), "c": ("f4", first)}, {"n": len(points), "f": 2, "k": len(first)}

    def picture(members, centres):
        rows = [bytearray(b"\xff" * 3 * extent) for _ in range(extent)]
        marks = [(p, 1, COLOURS[m]) for p, m in zip(points, members)] + [(c, 3, (0, 0, 0)) for c in centres]
        for (px, py), size, colour in marks:
            for y in range(int(py * extent) - size, int(py * extent) + size):
                for x in range(int(px * extent) - size, int(px * extent) + size):
                    if 0 <= y < extent and 0 <= x < extent:
                        rows[y][3 * x : 3 * x + 3] = bytes(colour)
        return [bytes(row) for row in rows]

    begin, _ = runner.several("apps/kmeans", inputs, sizes, ["member", "next"], steps=1)
    end, centres = runner.several("apps/kmeans", inputs, sizes, ["member", "next"], steps=100)
    return beside(picture(begin[0], first), picture(end[0], centres))


# ---- the command ------------------------------------------------------------------------------------------------------------------------


def built():
    """The newest ptxgen in build/, or the one in PATH."""
    here = sorted(ROOT.glob("build/*/ptxgen"), key=lambda path: path.stat().st_mtime)
    found = here[-1] if here else shutil.which("ptxgen")
    return found or sys.exit(f"render.py: no ptxgen in {ROOT}/build/*/ nor in PATH; build it (see README.md), or say --ptxgen FILE")


def main():
    scenes = {f.__name__: f for f in (heat, blur, life, hotspot, plate, srad, clusters)}
    parser = argparse.ArgumentParser(description="Render the results of some specs as PNG files.")
    parser.add_argument("--ptxgen")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--specs", type=pathlib.Path, default=ROOT / "specs")
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "docs" / "images")
    parser.add_argument("--picture", type=pathlib.Path)
    parser.add_argument("scene", nargs="*", metavar="SCENE", help=", ".join(scenes))
    options = parser.parse_args()
    unknown = [s for s in options.scene if s not in scenes]
    if unknown:
        parser.error(f"no scene {', '.join(unknown)}")
    options.ptxgen = options.ptxgen or built()
    options.to.mkdir(parents=True, exist_ok=True)
    runner = Runner(options)
    for name in options.scene or scenes:
        write_png(options.to / f"{name}.png", scenes[name](runner))
        print(options.to / f"{name}.png")


if __name__ == "__main__":
    main()
