#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""render.py - run some stencils and write what comes out as PNG files, for docs/gallery.md.

    scripts/render.py [--ptxgen build/dev/ptxgen] [--device auto] [--specs specs] [--to docs/images] [--picture FILE.npy] [SCENE...]

Scenes: heat, blur, life; all of them when none is named.  Needs numpy; PNG files are written here.  --picture is a two-dimensional array
that is blurred in place of the picture drawn here.
"""
import argparse
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np


def write_png(path, pixels):
    """pixels: u8[h, w] grey or u8[h, w, 3]."""
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 else 0
    rows = np.zeros((height, 1 + pixels[0].size), np.uint8)  # every row begins with its filter, 0: none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b""))


def grey(a):
    return np.clip(np.rint(a * 255), 0, 255).astype(np.uint8)


def fire(a):
    """[0, 1] from black through red and yellow to white."""
    a = np.clip(a, 0, 1)
    return np.stack([grey(a * 3), grey(a * 3 - 1), grey(a * 3 - 2)], axis=-1)


def beside(*pictures):
    """Pictures of one height with a white line between them."""
    line = np.full((pictures[0].shape[0], 4) + pictures[0].shape[2:], 255, np.uint8)
    parts = [pictures[0]]
    for p in pictures[1:]:
        parts += [line, p]
    return np.concatenate(parts, axis=1)


class Runner:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.TemporaryDirectory()

    def run(self, spec, inputs, output, **params):
        """An output of specs/SPEC.yaml as an array; sizes m and n are those of the inputs."""
        at = pathlib.Path(self.folder.name)
        m, n = next(iter(inputs.values())).shape
        command = [self.options.ptxgen, "run", f"{self.options.specs}/{spec}.yaml", f"--device={self.options.device}", f"--size=m={m}",
                   f"--size=n={n}", f"--output={output}={at / 'out.npy'}"]
        for name, array in inputs.items():
            np.save(at / f"{name}.npy", array)
            command.append(f"--input={name}={at / name}.npy")
        command += [f"--param={name}={value}" for name, value in params.items()]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"render.py: {' '.join(command)}\n{done.stderr}")
        return np.load(at / "out.npy")


def heat(runner):
    """A plate with a hot rim above and a few hot wires, after 0, 60 and 1200 steps."""
    u = np.zeros((192, 192), np.float32)
    u[0, :] = 1
    u[:, 0] = np.linspace(1, 0, 192)
    u[60:64, 40:150] = 1
    u[100:180, 130:134] = 1
    return beside(fire(u), *(fire(runner.run("jacobi2d", {"u": u}, "out", steps=s)) for s in (60, 1200)))


def drawn_picture():
    """Discs, bars and a little noise."""
    y, x = np.mgrid[0:256, 0:256].astype(np.float32)
    a = 0.2 + 0.5 * x / 255 * (1 - y / 255)
    for cy, cx, r, v in ((80, 90, 52, 0.9), (70, 80, 22, 0.1), (170, 180, 60, 0.35), (185, 165, 18, 1.0)):
        a = np.where((y - cy) ** 2 + (x - cx) ** 2 < r * r, v, a)
    bars = (y > 200) & (x < 120)
    a = np.where(bars, (x * x // 400 % 2), a)
    return (a + np.random.default_rng(1).normal(0, 0.06, a.shape)).astype(np.float32)


def blur(runner):
    """A picture, blurred once and eight times."""
    a = np.load(runner.options.picture).astype(np.float32) if runner.options.picture else drawn_picture()
    if a.max() > 2:
        a = a / 255
    once = many = runner.run("gaussian5x5", {"x": a}, "blurred")
    for _ in range(7):
        many = runner.run("gaussian5x5", {"x": many}, "blurred")
    return beside(grey(a), grey(once), grey(many))


def life(runner):
    """The R-pentomino and a glider on a torus, after 0, 100 and 400 generations."""
    cell = np.zeros((128, 128), np.uint8)
    cell[60:63, 60:63] = [[0, 1, 1], [1, 1, 0], [0, 1, 0]]
    cell[5:8, 5:8] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
    pictures = [cell] + [runner.run("life", {"cell": cell}, "out", steps=s) for s in (100, 400)]
    return beside(*(np.kron(255 - 255 * p, np.ones((2, 2), np.uint8)).astype(np.uint8) for p in pictures))


def main():
    scenes = {"heat": heat, "blur": blur, "life": life}
    parser = argparse.ArgumentParser(description="Render some stencils as PNG files.")
    parser.add_argument("--ptxgen", default="build/dev/ptxgen")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--specs", default="specs")
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path("docs/images"))
    parser.add_argument("--picture")
    parser.add_argument("scene", nargs="*", metavar="SCENE", help=", ".join(scenes))
    options = parser.parse_args()
    unknown = [s for s in options.scene if s not in scenes]
    if unknown:
        parser.error(f"no scene {', '.join(unknown)}")
    options.to.mkdir(parents=True, exist_ok=True)
    runner = Runner(options)
    for name in options.scene or scenes:
        write_png(options.to / f"{name}.png", scenes[name](runner))
        print(options.to / f"{name}.png")


if __name__ == "__main__":
    main()
