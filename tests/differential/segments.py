# SPDX-License-Identifier: Apache-2.0
"""segments.py - which points are combined with each other: segments, and bins; which outputs have a value for each point."""
import math

from arith import UNKNOWN
from expr import parse
from place import Place
from spec import parse_dimension


class Refused(Exception):
    """A launch with this data is an error."""


class Undecided(Exception):
    """Where segments begin is not known."""


def is_placed(run, output):
    said = run.spec['outputs'][output.name]
    return isinstance(said, dict) and 'at' in said


def per_element(run, output):
    if is_placed(run, output):
        return True
    return ('by' not in run.spec or run.spec['kind'] == 'scan') and set(output.keys) == set(run.dims) and all(add == 0 or not n for n, add in output.shape)


def segments_of(run, over):
    """(remaining dimensions, a list of points per segment)."""
    rest = [d for d in run.dims if d not in over]
    place, segments = Place(run, run.dims), Place(run, rest)
    numbers = [0] * place.count
    for d in rest:
        extent = run.extent[d]
        numbers = [n * extent + c for n, c in zip(numbers, place.positions(d))]
    points = [[] for _ in range(segments.count)]
    for p, n in enumerate(numbers):
        points[n].append(p)
    return rest, points


def offset_segments(run, name):
    """Points of segments between offsets."""
    offsets, n = run.data[name], run.extent[run.dims[0]]
    if any(a > b for a, b in zip(offsets, offsets[1:])) or any(o < 0 or o > n for o in offsets):
        raise Refused('offsets')
    return [list(range(a, b)) for a, b in zip(offsets, offsets[1:])]


def flag_segments(flags, order):
    points, current = [], []
    for p in order:
        f = flags[p]
        if f is UNKNOWN:
            raise Undecided
        if f and current:
            points.append(current)
            current = []
        current.append(p)
    return points + [current] if current else points


def bins(run, over):
    """Points of bins, row-major in the new dimensions and then those that remain."""
    place, indices = Place(run, run.dims), run.spec['by'] if isinstance(run.spec['by'], list) else [run.spec['by']]
    extents = next(iter(run.outputs.values())).extents(run.sizes)
    columns = [place.values_of(parse(text))[0] for text in indices]
    columns += [place.positions(d) for d in run.dims if d not in over]
    points = [[] for _ in range(math.prod(extents))]
    for p, at in enumerate(zip(*columns)):
        if UNKNOWN in at or any(i.__class__ is not int for i in at):
            raise Undecided
        if all(0 <= i < n for i, n in zip(at, extents)):
            number = 0
            for i, n in zip(at, extents):
                number = number * n + i
            points[number].append(p)
    return points


def scanned_bins(run, rest):
    """How many bins a scan has: as it says, or as the totals have besides the dimensions that remain."""
    if 'bins' in run.spec:
        name, n = parse_dimension(run.spec['bins'])
        return run.sizes[name] if name else n
    output = next(o for o in run.outputs.values() if bins_place(o, rest) is not None and not per_element(run, o))
    return output.extents(run.sizes)[bins_place(output, rest)]


def bins_place(output, rest):
    """Which dimension of totals is that of the bins; None: it has none."""
    plain = [[k.split('#')[0] for k in keys] for keys in (output.keys, rest)]
    for at in reversed(range(len(output.keys))):
        if plain[0][:at] + plain[0][at + 1:] == plain[1]:
            return at
    return None


def binned(run, over):
    """(dimensions that remain, points of each bin of each segment and then of elements of none, the segment of each)."""
    rest, rows = segments_of(run, over)
    by = run.spec['by'][0] if isinstance(run.spec['by'], list) else run.spec['by']
    number, bins = Place(run, run.dims).values_of(parse(by))[0], scanned_bins(run, rest)
    if any(i.__class__ is not int for i in number):
        raise Undecided
    points = [[p for p in row if number[p] == b] for row in rows for b in range(bins)]
    owners = [s for s in range(len(rows)) for _ in range(bins)]
    for s, row in enumerate(rows):
        lone = [[p] for p in row if not 0 <= number[p] < bins]
        points, owners = points + lone, owners + [s] * len(lone)
    return rest, points, owners


def split(run, over):
    """(dimensions of an output per segment or None, points of each)."""
    given = run.spec.get('segments')
    if 'by' in run.spec:
        return None, bins(run, over)
    if not given:
        return segments_of(run, over)
    if 'offsets' in given:
        return None, offset_segments(run, given['offsets'])
    if not in_rows(run):
        return None, flag_segments(run.data[given['flags']], range(run.extent[run.dims[0]]))
    rows = segments_of(run, over)[1]
    begins = starts(run, rows)
    return None, [segment for row in rows for segment in flag_segments(begins, row)]


def in_rows(run):
    """Do segments begin inside each row?"""
    given = run.spec.get('segments', {})
    return 'starts' in given or ('flags' in given and len(run.dims) > 1)


def starts(run, rows):
    """Where segments begin by an expression or flags; the first element of a row always does."""
    first, given, place = {row[0] for row in rows if row}, run.spec['segments'], Place(run, run.dims)
    begins = place.values_of(parse(given['flags']))[0] if 'flags' in given else place.values_as(parse(given['starts']), 'bool')
    return [p in first or begins for p, begins in enumerate(begins)]
