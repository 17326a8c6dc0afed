#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plot.py FILE.csv... [--to DIR] - SVG plots of benchmark results, one per problem and mode.

Reads the CSV that gpubench writes.  Time against n, both logarithmic; one line per
implementation, the band from the 10th to the 90th percentile behind it.  Plain Python.
"""
import csv
import math
import os
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 70, 190, 40, 50
COLOURS = ["#0b6e4f", "#c1440e", "#3465a4", "#a40000", "#75507b", "#c4a000", "#555753", "#06989a"]


def load(paths):
    """{(problem, mode, segment): {implementation: [(n, us, p10, p90)]}}, best first in file order."""
    plots = {}
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                key = (row["problem"], row["mode"], int(row["segment"]))
                name = f"{row['implementation'].split()[0]} limit" if row["us"] == row["limit_us"] else row["implementation"]
                point = (int(row["n"]), *(float(row[column]) for column in ("us", "p10", "p90")))
                plots.setdefault(key, {}).setdefault(name, []).append(point)
    for lines in plots.values():
        for points in lines.values():
            points.sort()
    return plots


def scale(low, high, begin, end):
    """Logarithmic scale from [low, high] to pixels."""
    span = math.log(high / low) or 1.0
    return lambda x: begin + (end - begin) * math.log(x / low) / span


def ticks(low, high, base):
    exponent = math.floor(math.log(low, base))
    while base**exponent <= high * 1.0001:
        if base**exponent >= low * 0.9999:
            yield base**exponent, exponent
        exponent += 1


def axes(out, x, y, xs, ys):
    for value, exponent in ticks(xs[0], xs[1], 2):
        if exponent % 2 == 0:
            out.append(f'<line x1="{x(value):.1f}" y1="{TOP}" x2="{x(value):.1f}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>')
            out.append(f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">2^{exponent}</text>')
    for decade, _ in ticks(ys[0] / 10, ys[1], 10):
        for factor in (1, 2, 5):
            value = decade * factor
            if ys[0] <= value <= ys[1]:
                out.append(f'<line x1="{LEFT}" y1="{y(value):.1f}" x2="{WIDTH - RIGHT}" y2="{y(value):.1f}" stroke="#eee"/>')
                out.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">elements</text>')
    out.append(f'<text x="16" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" '
               f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})">microseconds</text>')


def line(out, x, y, points, colour, dashed):
    band = [f"{x(n):.1f},{y(low):.1f}" for n, _, low, _ in points]
    band += [f"{x(n):.1f},{y(high):.1f}" for n, _, _, high in reversed(points)]
    out.append(f'<polygon points="{" ".join(band)}" fill="{colour}" opacity="0.15"/>')
    path = " ".join(f"{x(n):.1f},{y(us):.1f}" for n, us, _, _ in points)
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
    for n, us, _, _ in points:
        out.append(f'<circle cx="{x(n):.1f}" cy="{y(us):.1f}" r="2.5" fill="{colour}"/>')


def plot(title, lines):
    everything = [point for points in lines.values() for point in points]
    xs = (min(p[0] for p in everything), max(p[0] for p in everything))
    ys = (min(p[2] for p in everything) * 0.8, max(p[3] for p in everything) * 1.25)
    if xs[0] == xs[1]:
        xs = (xs[0] / 2, xs[1] * 2)
    x, y = scale(*xs, LEFT, WIDTH - RIGHT), scale(*ys, HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
           f'font-size="12"><rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="24" font-size="15">{title}</text>']
    axes(out, x, y, xs, ys)
    for i, (name, points) in enumerate(lines.items()):
        colour = "#888888" if name.endswith(" limit") else COLOURS[i % len(COLOURS)]
        line(out, x, y, points, colour, name.endswith(" limit"))
        out.append(f'<text x="{WIDTH - RIGHT + 14}" y="{TOP + 14 + 18 * i}" fill="{colour}">{name}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main(arguments):
    folder = "."
    if "--to" in arguments:
        at = arguments.index("--to")
        folder = arguments[at + 1]
        arguments = arguments[:at] + arguments[at + 2:]
    if not arguments:
        sys.exit(__doc__)
    for (problem, mode, segment), lines in load(arguments).items():
        name = f"{problem}-{mode}" + (f"-{segment}" if segment else "")
        with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(plot(f"{problem}, {mode}" + (f", segments of {segment}" if segment else ""), lines))


if __name__ == "__main__":
    main(sys.argv[1:])
