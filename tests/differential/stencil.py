# SPDX-License-Identifier: Apache-2.0
"""stencil.py - steps of a stencil, what is fed back, and reductions beside it."""
from arith import UNKNOWN
from evaluate import KEEP, Refused, arrange, output_values, reduce_results, settle
from place import Place


def steps_of(run):
    entry = (run.spec.get('iterate') or {}).get('steps', 1)
    steps = run.params[entry][0] if entry in run.params else int(entry)
    if steps < 0:
        raise Refused('a negative number of steps')
    return steps


def is_point(output, run):
    return set(output.keys) == set(run.dims)


def stencil(run):
    feedback = (run.spec.get('iterate') or {}).get('feedback') or {}
    reductions = run.spec.get('reductions') or {}
    points = [n for n, o in run.outputs.items() if not (reductions and not o.keys)]
    steps = steps_of(run)
    if steps == 0:
        return no_steps(run, feedback)
    held = {n: None for n in points}
    for _ in range(steps):
        run.reader.skipped = set()
        place = Place(run, run.dims)
        new = {n: step_output(place, run.outputs[n]) for n in points}
        results = totals(run, new, reductions, feedback)  # reads of their maps count as surroundings in every step
        kept(run, new, feedback)
        for n in points:
            held[n] = merge(held[n], new[n])
        for name, out in feedback.items():
            run.data[name] = arrange(run, run.outputs[out], run.dims, held[out], run.sizes)
    outputs = {n: settle(run, run.outputs[n], Place(run, run.dims), held[n]) for n in points}
    for name in run.outputs:
        if name not in outputs:
            place = Place(run, [], {n: r[:2] for n, r in results.items()})
            outputs[name] = output_values(place, run.outputs[name], results)
    return outputs


def no_steps(run, feedback):
    if set(feedback.values()) != set(run.outputs):
        raise Refused('no steps, and outputs that nothing is copied to')
    return {out: list(run.data[name]) for name, out in feedback.items()}


def step_output(place, output):
    return output_values(place, output, {})


def merge(old, new):
    """A point that is not computed holds what it held."""
    return new if old is None else [o if v is KEEP else v for o, v in zip(old, new)]


def kept(run, new, feedback):
    """Points that are not computed: the value of the input that is fed back, else the memory as it is."""
    sources = {out: Place(run, run.dims) for out in feedback.values()}
    for name, values in new.items():
        before = None
        if name in sources:
            source = next(i for i, o in feedback.items() if o == name)
            before = run.reader.read(source, run.dims)
        for p in run.reader.skipped:
            values[p] = before[p] if before is not None else KEEP


def undecided(t):
    return tuple(UNKNOWN for _ in t) if isinstance(t, tuple) else UNKNOWN


def totals(run, new, reductions, feedback):
    """Reductions of the last step, over all points.  An output at a point that is not computed has what it keeps; what
    memory held before is not known here."""
    if not reductions:
        return {}
    extra = {n: (values, run.outputs[n].type) for n, values in new.items()}
    place = Place(run, run.dims, extra)
    segments = Place(run, [])
    results = reduce_results(run, place, segments, [list(range(place.count))], reductions)
    if not run.reader.skipped:
        return results
    seen = {n: list(values) for n, values in new.items()}
    kept(run, seen, feedback)
    if any(v is KEEP for values in seen.values() for v in values):
        return {n: ([undecided(r[1])], *r[1:]) for n, r in results.items()}
    extra = {n: (values, run.outputs[n].type) for n, values in seen.items()}
    return reduce_results(run, Place(run, run.dims, extra), segments, [list(range(place.count))], reductions)
