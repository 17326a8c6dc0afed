# SPDX-License-Identifier: Apache-2.0
"""shrink.py - a failing case made smaller while it still fails: fewer runs, outputs, lets, inputs, keys, elements,
operations."""
import copy
import random
import re
import subprocess
import tempfile

from casefile import case_record
from expr import SpecError
from generate import expectation
from render import Renderer
from spec import Array

OPTIONAL = ['name', 'doc', 'ptxgen', 'let', 'operators', 'determinism', 'contract', 'assume', 'init', 'boundary', 'direction', 'mode', 'iterate', 'over',
            'params', 'reductions']


class Plain(random.Random):
    """Renders every spec alike."""

    def random(self):
        return 0.9


def rebuild(case, spec, runs, settings):
    """The case with another spec and other sizes, or None where these do not fit together."""
    new = {'id': case['id'], 'spec': spec, 'runs': [], 'settings': settings}
    try:
        for run in runs:
            run = dict(run, inputs=[Array(n, e) for n, e in spec['inputs'].items()],
                       outputs=[Array(n, e) for n, e in spec['outputs'].items()])
            run['data'] = {a.name: resized(spec, a, run) for a in run['inputs']}
            run['expected'] = expectation(spec, run)
            new['runs'].append(run)
        new['text'] = Renderer(Plain()).spec(spec)
        new['record'] = case_record(new)
    except (SpecError, KeyError, ValueError, TypeError, IndexError, AttributeError, StopIteration):
        return None
    return new


def resized(spec, array, run):
    old, count = run['data'][array.name], array.count(run['sizes'])
    if len(old) == count:
        values = old
    else:
        values = [old[i % len(old)] for i in range(count)] if old else [0] * count
    if (spec.get('segments') or {}).get('offsets') == array.name:
        n = next(v for d, v in run['sizes'].items() if d not in ('k', 'p'))
        values = sorted(min(v, n) for v in values)
    return values


def failure(case, runner):
    """What the runner says of it, without numbers, or None."""
    with tempfile.NamedTemporaryFile(suffix='.cases') as f:
        f.write(case['record'])
        f.flush()
        done = subprocess.run(runner + [f.name], stdout=subprocess.PIPE, check=False).stdout.decode(errors='replace')
    line = next((x for x in done.splitlines() if x.startswith('FAIL')), None)
    return line and line.partition(': ')[2]


def kind_of(message):
    """Messages of the same kind count as the same failure."""
    code = re.search(r'PTXG-\d+', message)
    return code.group() if code else 'wrong' if 'expected' in message else message[:20]


# ---- candidates --------------------------------------------------------------------------------
def without(spec, *path):
    new = copy.deepcopy(spec)
    place = new
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    if len(path) > 1 and not place:
        del new[path[0]]
    return new


def smaller_specs(spec):
    for group in ('outputs', 'inputs', 'let', 'params', 'reductions', 'scans'):
        for name in list(spec.get(group) or {}):
            yield without(spec, group, name)
    for key in OPTIONAL:
        if key in spec:
            yield without(spec, key)
    for path, text in texts(spec, ()):
        for shorter in shorter_texts(text):
            new = copy.deepcopy(spec)
            place = new
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = shorter
            yield new


def texts(node, path):
    """Expressions of a spec."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from texts(value, path + (key,))
        elif key in ('value', 'map') or path[:1] in (('let',), ('map',)) or 'value' in path or 'map' in path:
            yield path + (key,), str(value)


def shorter_texts(text):
    """Parts in parentheses, arms, operands: most are not well-typed, and dropped."""
    found = set(re.findall(r'\(([^()]+)\)', text)) | set(re.split(r' (?:[-+*/%&|^<>=!]+|then|else|and|or) ', text))
    found |= {re.sub(r'\([^()]*\)', '(1)', text, count=1), '1', '0', 'x'}
    cleaned = {re.sub(r'^if ', '', f.strip('() ')) for f in found} | found
    return sorted((f for f in cleaned if f and len(f) < len(text)), key=len)


def smaller_runs(run):
    for name, n in run['sizes'].items():
        for m in sorted({0, 1, 2, 3, 5, 8, 16, 33, n // 2, n - 1}):
            if 0 <= m < n:
                yield dict(run, sizes={**run['sizes'], name: m})
    for key in ('modes', 'again'):
        if run[key]:
            yield dict(run, **{key: ''})
    if run['shift']:
        yield dict(run, shift={})


def candidates(case):
    spec, runs, settings = case['spec'], case['runs'], case['settings']
    if len(runs) > 1:
        for run in runs:
            yield spec, [run], settings
    for name in settings:
        yield spec, runs, {k: v for k, v in settings.items() if k != name}
    for new in smaller_specs(spec):
        yield new, runs, settings
    if len(runs) == 1:
        for run in smaller_runs(runs[0]):
            yield spec, [run], settings


def shrink(case, runner, budget=400):
    """The smallest case found, and what the runner says of it."""
    case = rebuild(case, case['spec'], case['runs'], case['settings'])
    message = case and failure(case, runner)
    if not message:
        return case, None
    named = re.search(r'variant ([\w.]+@\S*?)[);]*( |$)', message)
    if named and 'draw' in case['settings']:  # the same variant of a smaller spec
        settings = {k: v for k, v in case['settings'].items() if k != 'draw'}
        pinned = rebuild(case, case['spec'], case['runs'], {**settings, 'variant': named.group(1).rstrip(')')})
        again = pinned and failure(pinned, runner)
        if again:
            case, message = pinned, again
    kind, progress = kind_of(message), True
    while progress and budget > 0:
        progress = False
        for spec, runs, settings in candidates(case):
            new = rebuild(case, spec, runs, settings)
            if new is None:
                continue
            budget -= 1
            said = failure(new, runner)
            if said and kind_of(said) == kind:
                case, message, progress = new, said, True
                break
            if budget <= 0:
                break
    return case, message
