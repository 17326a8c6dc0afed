# SPDX-License-Identifier: Apache-2.0
"""evaluate.py - the result of a spec, written from docs/spec-language.md alone: it shares nothing with ptxgen.

evaluate(SPEC, SIZES, PARAMS, DATA) gives the elements of every output: values, Span (a range), UNKNOWN (anything) or
KEEP (memory stays as it is).  Refused says that a launch must fail.
"""
from arith import UNKNOWN
from expr import SpecError, converted, parse
from fold import fold, prefixes
from operators import prepare
from place import Place, Repeated, Run


class Refused(Exception):
    """A launch with this data is an error."""


class Keep:
    def __repr__(self):
        return 'KEEP'


KEEP = Keep()


def check_sizes(spec, sizes):
    for name, facts in (spec.get('assume') or {}).items():
        n = sizes[name]
        if not facts.get('min', n) <= n <= facts.get('max', n) or n % facts.get('multiple_of', 1) or \
                facts.get('equals', n) != n:
            raise Refused(f'{name} = {n} breaks what is assumed')


def evaluate(spec, sizes, params, data):
    check_sizes(spec, sizes)
    run = Run(spec, sizes, params, data)
    if any(name and sizes[name] + add < 0 for output in run.outputs.values() for name, add in output.shape):
        raise Refused('an output of fewer than no elements')
    kind = spec['kind']
    if kind == 'stencil':
        from stencil import stencil
        return stencil(run)
    return reduce(run) if kind == 'reduce' else scan(run)


# ---- what is combined --------------------------------------------------------------------------
def listed(x):
    return [x] if isinstance(x, str) else list(x)


def entries(spec, several):
    """name -> {map, operator, accumulator}; the nameless one is '' """
    if several in spec:
        return {n: dict(e) for n, e in spec[several].items()}
    return {'': {k: spec[k] for k in ('map', 'operator', 'accumulator') if k in spec}}


def default_map(run, entry):
    """Without a map it is the single input."""
    if 'map' in entry:
        return entry
    from spec import aside
    names = [n for n in run.arrays if n not in aside(run.spec)]
    if len(names) != 1:
        raise SpecError('a map is needed')
    t = run.arrays[names[0]].type
    return {**entry, 'map': {f: f'{names[0]}.{f}' for f, _ in t} if isinstance(t, tuple) else names[0]}


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


def flag_segments(run, name):
    points, current = [], []
    for p, f in enumerate(run.data[name]):
        if f and current:
            points.append(current)
            current = []
        current.append(p)
    return points + [current] if current else points


def split(run, over):
    """(dimensions of an output per segment or None, points of each)."""
    given = run.spec.get('segments')
    if not given:
        return segments_of(run, over)
    if 'offsets' in given:
        return None, offset_segments(run, given['offsets'])
    return None, flag_segments(run, given['flags'])


# ---- outputs -----------------------------------------------------------------------------------
def default_text(output, results, name):
    """The value of an output that gives none, as an expression or one per field."""
    said = name if name in results else next(iter(results))
    operator, state = results[said][2], results[said][1]
    if isinstance(output.type, tuple):
        return {f: f'{said}.{f}' for f, _ in output.type}
    if operator.default:
        return f'{said}.max + log({said}.sum)' if operator.name == 'logsumexp' else f'{said}.mean'
    if isinstance(state, tuple):
        raise SpecError(f'{name} needs a value')
    return said


def back_to(place, text, a, b, operator):
    """A default result may go back to the type that it was widened from."""
    from arith import CONVERT, lossless
    if lossless(a, b):
        return converted(place.compiler, text, a, b)
    if operator.name not in ('add', 'mul') or b != operator.mapped:
        raise SpecError(f'{a} for {b}')
    return place.compiler.call(CONVERT[b], 'to_' + b, text)


def output_values(place, output, results):
    """Values at all points of the place."""
    if output.value is None:
        text = default_text(output, results, output.name)
        if not isinstance(text, dict):
            node = parse(text)
            source, t = place.flattened(node)
            return place.values(back_to(place, source, t, output.type, results.get(output.name, next(iter(results.values())))[2]))
    else:
        text = output.value
    if isinstance(text, dict):
        fields = dict(output.type)
        columns = [place.values_as(parse(text[f]), fields[f]) for f in fields]
        return list(zip(*columns)) if columns[0] else []
    node = parse(text)
    if isinstance(output.type, tuple):
        values, t = place.values_of(node)
        names = [f for f, _ in t]
        return [tuple(v[names.index(f)] for f, _ in output.type) if v is not UNKNOWN else v for v in values]
    return place.values_as(node, output.type)


def arrange(run, output, dims, values, sizes):
    """From the order of `dims` to the output's own."""
    extents = output.extents(sizes)
    if output.keys == list(dims) and [run.extent[d] for d in dims] == extents:
        return values
    strides, inner = {}, 1
    for d in reversed(dims):
        strides[d], inner = inner, inner * run.extent[d]
    flat = [0]
    for key, extent in zip(output.keys, extents):
        flat = [f + c * strides[key] for f in flat for c in range(extent)]
    return [values[f] for f in flat]


def value_or_refuse(operator, values, start, i):
    result = fold(operator, values, start, i)
    if result is None:
        raise Refused('no elements, no identity')
    return result


# ---- reductions --------------------------------------------------------------------------------
def reduce_results(run, place, segments, points, several):
    """name -> (a value per segment, type, operator)."""
    results = {}
    for name, entry in several.items():
        entry = default_map(run, entry)
        operator, values, start = prepare(place, segments, entry, run.spec.get('init'))
        each = [value_or_refuse(operator, [values[p] for p in segment], start, i) for i, segment in enumerate(points)]
        results[name or 'r'] = (each, operator.state, operator)
    return results


def reduce(run):
    over = listed(run.spec.get('over', run.dims))
    rest, points = split(run, over)
    segments = Place(run, rest if rest is not None else [], count=len(points))
    combining = segments if rest is not None else Place(run, [])
    results = reduce_results(run, Place(run, run.dims), one_place(combining, rest), points, entries(run.spec, 'reductions'))
    outputs = {}
    for name, output in run.outputs.items():
        if per_element(run, output):
            outputs[name] = beside_reduction(run, output, points if rest is None else None)
            continue
        place = Place(run, segments.dims, {n: r[:2] for n, r in results.items()}, count=len(points))
        values = output_values(place, output, results)
        outputs[name] = values if rest is None else arrange(run, output, rest, values, run.sizes)
    return outputs


def beside_reduction(run, output, segments):
    """Of a reduction, per element; elements outside of all segments are not written."""
    values = output_values(Place(run, run.dims), output, {})
    if segments is not None:
        inside = set(p for segment in segments for p in segment)
        values = [v if p in inside else KEEP for p, v in enumerate(values)]
    return arrange(run, output, run.dims, values, run.sizes)


class SegmentScope(Place):
    """What combines between offsets or flags may read: arrays of one element, whichever segment it is."""

    def listed(self, values, t):
        return super().listed(Repeated(values), t)


def one_place(place, rest):
    return place if rest is not None else SegmentScope(place.run, [])


def per_element(run, output):
    return set(output.keys) == set(run.dims) and all(add == 0 or not n for n, add in output.shape)


# ---- scans -------------------------------------------------------------------------------------
def scan_segment(operator, values, start, i, exclusive):
    """(a value per element, total)."""
    inclusive = prefixes(operator, values, start, i)
    total = inclusive[-1] if inclusive else operator.identity
    if exclusive:
        first = start if start is not None else operator.identity
        if first is None and values:
            raise Refused('no identity for the first element')
        inclusive = (inclusive if start is not None else [first] + inclusive)[:len(values)]
    elif start is not None:
        inclusive = inclusive[1:]
    return inclusive, total


def scan_results(run, place, segments, points, entry):
    operator, values, start = prepare(place, segments, default_map(run, entry), run.spec.get('init'))
    running, totals = [KEEP] * place.count, []
    backwards, exclusive = run.spec.get('direction') == 'reverse', run.spec.get('mode') == 'exclusive'
    for i, segment in enumerate(points):
        order = segment[::-1] if backwards else segment
        each, total = scan_segment(operator, [values[p] for p in order], start, i, exclusive)
        totals.append(total)
        for p, v in zip(order, each):
            running[p] = v
    return running, totals, operator


def scan(run):
    over = listed(run.spec.get('over', run.dims[-1]))
    rest, points = split(run, over)
    segments = Place(run, rest if rest is not None else [], count=len(points))
    several = entries(run.spec, 'scans')
    found = {n: scan_results(run, Place(run, run.dims), one_place(segments, rest), points, e) for n, e in several.items()}
    outputs = {}
    for name, output in run.outputs.items():
        if per_element(run, output):
            outputs[name] = scan_elements(run, output, found)
        else:
            outputs[name] = scan_totals(run, output, found, segments, rest)
    return outputs


def scan_elements(run, output, found):
    untouched = next(iter(found.values()))[0]
    results = {n or 's': (fill(running), op.state, op) for n, (running, _, op) in found.items()}
    place = Place(run, run.dims, {n: r[:2] for n, r in results.items()})
    values = output_values(place, output, results)
    values = [KEEP if u is KEEP else v for u, v in zip(untouched, values)]
    return arrange(run, output, run.dims, values, run.sizes)


def fill(running):
    return [UNKNOWN if v is KEEP else v for v in running]


def scan_totals(run, output, found, segments, rest):
    for totals in (f[1] for f in found.values()):
        if None in totals:
            raise Refused('a total of no elements')
    extra = {n: ([(t,) for t in totals], (('total', op.state),)) for n, (_, totals, op) in found.items() if n}
    if '' in found:
        extra['total'] = (found[''][1], found[''][2].state)
    place = Place(run, segments.dims, extra, count=segments.count)
    named = output.name if output.name in found else ''
    results = {}
    if output.value is None:
        operator = found[named][2]
        results = {f'{named}.total' if named else 'total': (None, operator.state, operator)}
    values = output_values(place, output, results)
    return values if rest is None else arrange(run, output, rest, values, run.sizes)
