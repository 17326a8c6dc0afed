# SPDX-License-Identifier: Apache-2.0
"""evaluate.py - the result of a spec, written from docs/spec-language.md alone: it shares nothing with ptxgen.

evaluate(SPEC, SIZES, PARAMS, DATA) gives the elements of every output: values, Span (a range), UNKNOWN (anything) or
KEEP (memory stays as it is).  Refused says that a launch must fail.
"""
import math

from arith import UNKNOWN, Span
from expr import Literal, SpecError, converted, parse, type_of
from fold import fold, prefixes
from operators import prepare
from place import Place, Repeated, Run
from segments import Refused, Undecided, binned, bins_place, in_rows, is_placed, per_element, segments_of, split


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
    if kind in ('stencil', 'map'):
        from stencil import stencil
        return stencil(run)
    try:
        return reduce(run) if kind == 'reduce' else scan(run)
    except Undecided:
        return {n: [UNKNOWN] * output.count(run.sizes) for n, output in run.outputs.items()}


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


# ---- computed places ---------------------------------------------------------------------------
def settle(run, output, place, values):
    """Values of all points, KEEP for those that write nothing, where the output has them."""
    return scatter(run, output, place, values) if is_placed(run, output) else \
        arrange(run, output, run.dims, values, run.sizes)


def indices(place, said):
    """Of each point, an index per dimension."""
    columns = []
    for text in listed(said['at']):
        node = parse(text)
        literal = isinstance(type_of(node, place), Literal)
        columns.append(place.values_of(node, 'i64' if literal else None)[0])
    return list(zip(*columns))


def initial_value(run, said, t):
    once = Place(run, [], count=1)
    if isinstance(t, tuple):
        return tuple(once.values_as(parse(said[f]), ft)[0] for f, ft in t)
    return once.values_as(parse(said), t)[0]


def meeting(run, said, t):
    """How two elements at one place become one."""
    from operators import builtin, own  # which need places themselves
    combine = (own(said, Place(run, [], count=1)) if isinstance(said, dict) else builtin(said, t)).combine
    return lambda a, b: combine(a, b, 0)


def scatter(run, output, place, values):
    said, extents, count = run.spec['outputs'][output.name], output.extents(run.sizes), output.count(run.sizes)
    held, written = [KEEP] * count, set()
    if 'initial' in said:
        held = [initial_value(run, said['initial'], output.type)] * count
    combine = meeting(run, said['combine'], output.type) if 'combine' in said else None
    for index, value in zip(indices(place, said), values):
        if value is not KEEP and any(i is UNKNOWN for i in index):
            return [UNKNOWN] * count
        if value is KEEP or any(not 0 <= i < n for i, n in zip(index, extents)):
            continue
        at = 0
        for i, n in zip(index, extents):
            at = at * n + i
        if combine:
            both = (held[at], value) if not isinstance(value, tuple) else (*held[at], *value)
            unknown = UNKNOWN if not isinstance(value, tuple) else (UNKNOWN,) * len(value)
            held[at] = unknown if any(x is UNKNOWN or isinstance(x, Span) for x in both) else combine(held[at], value)
        elif at in written:
            raise Refused('two elements at one place')
        else:
            held[at] = value
            written.add(at)
    return held


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
        said = run.spec['outputs'][name]
        if isinstance(said, dict) and ('where' in said or 'count' in said):
            outputs[name] = reduce_kept(run, output, said, results, points, rest)
            continue
        if per_element(run, output):
            outputs[name] = beside_reduction(run, output, results, points, rest is None)
            continue
        place = Place(run, segments.dims, {n: r[:2] for n, r in results.items()}, count=len(points))
        values = output_values(place, output, results)
        outputs[name] = values if rest is None else arrange(run, output, rest, values, run.sizes)
    return outputs


def beside_reduction(run, output, results, segments, gaps):
    """Of a reduction, per element, with the results of its segment; elements outside of all segments are not written."""
    place = Place(run, run.dims)
    place.extra = {n: (spread(each, segments, place.count), state) for n, (each, state, _) in results.items()}
    values = output_values(place, output, {})
    if gaps:
        inside = set(p for segment in segments for p in segment)
        values = [v if p in inside else KEEP for p, v in enumerate(values)]
    return settle(run, output, place, values)


def reduce_kept(run, output, said, results, segments, rest):
    """Elements that results keep, or how many."""
    place, by = Place(run, run.dims), run.outputs[said['count']] if 'count' in said else output
    place.extra = {n: (spread(each, segments, place.count), state) for n, (each, state, _) in results.items()}
    kept, counts = side_by_side(run, by, place, output_values(place, by, {}), segments)
    if 'count' not in said:
        return kept
    return counts if rest is None else arrange(run, output, rest, counts, run.sizes)


def spread(each, segments, count):
    """A value per segment at each of its points."""
    values = [UNKNOWN] * count
    for value, segment in zip(each, segments):
        for p in segment:
            values[p] = value
    return values


class SegmentScope(Place):
    """What combines between offsets or flags may read: arrays of one element, whichever segment it is."""

    def listed(self, values, t):
        return super().listed(Repeated(values), t)


def one_place(place, rest):
    return place if rest is not None else SegmentScope(place.run, [])


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


def scan_results(run, place, segments, points, owners, entry):
    operator, values, start = prepare(place, segments, default_map(run, entry), run.spec.get('init'))
    running, totals = [KEEP] * place.count, []
    backwards, exclusive = run.spec.get('direction') == 'reverse', run.spec.get('mode') == 'exclusive'
    for i, segment in zip(owners, points):
        order = segment[::-1] if backwards else segment
        each, total = scan_segment(operator, [values[p] for p in order], start, i, exclusive)
        totals.append(total)
        for p, v in zip(order, each):
            running[p] = v
    return running, totals, operator


def scan(run):
    over = listed(run.spec.get('over', run.dims[-1]))
    if 'by' in run.spec:
        rest, points, owners = binned(run, over)
        segments = Place(run, rest)
    else:
        rest, points = split(run, over)
        owners, segments = range(len(points)), Place(run, rest if rest is not None else [], count=len(points))
    several = entries(run.spec, 'scans') if 'scans' in run.spec or 'operator' in run.spec else {}
    found = {n: scan_results(run, Place(run, run.dims), one_place(segments, rest), points, owners, e) for n, e in several.items()}
    outputs = {}
    for name, output in run.outputs.items():
        said = run.spec['outputs'][name]
        if isinstance(said, dict) and 'where' in said:
            outputs[name] = scan_kept(run, output, found, points)[0]
        elif isinstance(said, dict) and 'count' in said:
            counts = scan_kept(run, run.outputs[said['count']], found, points)[1]
            rows = segments_of(run, over)[0] if in_rows(run) else rest
            outputs[name] = counts if rows is None else arrange(run, output, rows, counts, run.sizes)
        elif per_element(run, output):
            outputs[name] = scan_elements(run, output, found, points)
        elif 'by' in run.spec:
            outputs[name] = bin_totals(run, output, found, rest)
        else:
            outputs[name] = scan_totals(run, output, found, segments, rest)
    return outputs


def scan_place(run, found, points):
    """(where values per element are evaluated, results)"""
    results = {n or 's': (fill(running), op.state, op) for n, (running, _, op) in found.items()}
    backwards = run.spec.get('direction') == 'reverse'
    last = [False] * Place(run, run.dims).count
    for segment in points:
        if segment:
            last[segment[0] if backwards else segment[-1]] = True
    return Place(run, run.dims, {**{n: r[:2] for n, r in results.items()}, 'last': (last, 'bool')}), results


def scan_kept(run, output, found, points):
    """(values side by side, how many per scan): segments that expressions begin are one scan."""
    place, results = scan_place(run, found, points)
    return side_by_side(run, output, place, output_values(place, output, results), points)


def side_by_side(run, output, place, values, points):
    """The same, of values of all elements; what lies outside of all segments is not kept."""
    said = run.spec['outputs'][output.name]
    where = place.values_as(parse(said['where']), 'bool')
    if run.spec.get('segments'):
        inside = set(p for segment in points for p in segment)
        where = [w if p in inside else False for p, w in enumerate(where)]
        points = segments_of(run, listed(run.spec.get('over', run.dims[-1])))[1] if in_rows(run) else [list(range(place.count))]
    kept, counts = [KEEP] * place.count, []
    for scan_points in points:
        order = scan_points[::-1] if run.spec.get('direction') == 'reverse' else scan_points
        to = scan_points[::-1] if said.get('from') == 'end' else scan_points
        undecided = any(where[p] is UNKNOWN for p in order)
        chosen = [] if undecided else [values[p] for p in order if where[p]]
        for p, v in zip(to, [UNKNOWN] * len(to) if undecided else chosen):
            kept[p] = v
        counts.append(UNKNOWN if undecided else len(chosen))
    return kept, counts


def scan_elements(run, output, found, points):
    untouched = next((f[0] for f in found.values()), [None] * Place(run, run.dims).count)
    place, results = scan_place(run, found, points)
    values = output_values(place, output, results)
    values = [KEEP if u is KEEP else v for u, v in zip(untouched, values)]
    return settle(run, output, place, values)


def fill(running):
    return [UNKNOWN if v is KEEP else v for v in running]


def bin_totals(run, output, found, rest):
    """From bins within segments to the output's own order."""
    extents, at = output.extents(run.sizes), bins_place(output, rest)
    count, inner, bins = math.prod(extents), math.prod(extents[at + 1:]), extents[at]
    kept = {n: (running, totals[:count], op) for n, (running, totals, op) in found.items()}
    values = scan_totals(run, output, kept, Place(run, [], count=count), None)
    return [values[(i // (bins * inner) * inner + i % inner) * bins + i // inner % bins] for i in range(count)]


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
