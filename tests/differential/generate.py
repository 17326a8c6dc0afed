# SPDX-License-Identifier: Apache-2.0
"""generate.py - random cases: a spec, how it is planned and run, sizes, data, and what evaluate.py expects.

Case INDEX of SEED is the same on every machine: its randomness comes from these two alone.
"""
import random

from evaluate import Refused, evaluate
from expr import SpecError
from gen_data import PROFILES, elements, offsets, sizes_of, value
from gen_placed import OWN
from gen_spec import SpecMaker
from render import Renderer
from spec import Array, dimension_names

MODES = ['race', 'weak', 'stale', 'late', 'uninit', 'bounds', 'guard']


def make_case(seed, index):
    """None when the evaluator finds nothing to do with it (a form that needs what the draw did not give)."""
    r = random.Random(f'{seed}/{index}')
    maker = SpecMaker(r)
    spec = maker.make_spec()
    if spec is None:
        return None
    try:
        return complete(r, maker, spec, f'{seed}/{index}')
    except SpecError:  # literals that nothing decides, where a type was wanted
        return None


def complete(r, maker, spec, name):
    case = {'id': name, 'spec': spec, 'runs': []}
    count = r.choice([1, 1, 1, 2, 3])
    for _ in range(count):
        case['runs'].append(make_run(r, maker, spec))
    assume(r, spec, case)
    for run in case['runs']:
        run['expected'] = expectation(spec, run)
    case['settings'] = settings(r, case)
    case['text'] = Renderer(r).spec(spec)
    return case


def expectation(spec, run):
    try:
        return evaluate(spec, run['sizes'], run['params'], run['data'])
    except Refused:
        return None


# ---- runs --------------------------------------------------------------------------------------
def make_run(r, maker, spec):
    inputs = [Array(n, e) for n, e in spec['inputs'].items()]
    outputs = [Array(n, e) for n, e in spec['outputs'].items()]
    names = dimension_names(spec)
    sizes = sizes_of(r, [d for d in names if d not in ('k', 'p', 'q', 'e', *OWN)], (20000 if spec['kind'] in ('stencil', 'map') else 70000) if r.random() < 0.4 else 1500)
    if maker.columns and r.random() < 0.7:  # whole vectors, of one row or of several
        sizes[maker.columns] = r.choice([2, 4, 6, 8, 12, 20, 32, 36, 64])
    if 'at(' in str(spec):  # what is read at places has elements
        sizes = {d: max(1, n) for d, n in sizes.items()}
    if 'q' in names:
        sizes['q'] = r.choice([1, 2, 3, 7, 64, 100, 1000])
    if 'e' in names:
        sizes['e'] = r.choice([0, 1, 2, 3, 4, 5, 9])
    if 'k' in names:
        sizes['k'] = r.choice([0, 1, 2, 3, 5, 17, 33, 64, 129, 300])
    for d in OWN:
        if d in names:
            sizes[d] = r.choice([0, 1, 3, 8, 16, 100])
    if 'p' in names:
        sizes['p'] = r.choice([0, 1, 2, 3, 5, 8])
    profile = 'small' if maker.small else r.choices(PROFILES, [50, 20, 15, 15])[0]
    run = {'inputs': inputs, 'outputs': outputs, 'sizes': sizes, 'zeros_alike': maker.zeros_alike}
    run['params'] = params(r, spec, profile)
    run['data'] = {a.name: data(r, maker, spec, a, sizes, profile) for a in inputs}
    run['shift'] = {a.name: r.randrange(1, 8) * a.layout()[1] for a in inputs + outputs if r.random() < 0.15} \
        if r.random() < 0.5 else {}
    run['modes'], run['again'] = modes(r, run, reads_kept(spec)), modes(r, run, reads_kept(spec))
    run['same_bits'] = same_bits(spec)
    if run['same_bits'] and spec['determinism'] == 'run':  # promised on the same device
        run['again'] = on_device_of(run['modes'], run['again'])
    return run


def params(r, spec, profile):
    result = {}
    for name, entry in (spec.get('params') or {}).items():
        t, default = (entry['type'], True) if isinstance(entry, dict) else (entry, False)
        if default and r.random() < 0.5:
            continue
        result[name] = r.choice([0, 1, 1, 2, 3, 5]) if name == 'steps' else value(r, t, 'small' if r.random() < 0.7 else profile)
    return result


def data(r, maker, spec, array, sizes, profile):
    count = array.count(sizes)
    given = spec.get('segments') or {}
    if given.get('offsets') == array.name:
        return offsets(r, count, next(n for d, n in sizes.items() if d not in ('k', 'p', 'q', 'e')))
    if given.get('flags') == array.name:
        share = r.choice([0.01, 0.1, 0.5])
        return [value(r, array.type, 'full') if r.random() < share else (False if array.type == 'bool' else 0)
                for _ in range(count)]
    if array.name in {*getattr(maker, 'tables', ())} - {'weights'}:
        return [r.randrange(-3, 4) for _ in range(count)]
    return elements(r, array.type, count, profile)


def reads_kept(spec):
    """May a reduction read what the memory of an output held, where points are not computed?"""
    return 'reductions' in spec and 'interior' in repr(spec.get('boundary'))


def modes(r, run, initialised):
    """Modes of the executor; `initialised`: outputs have values beforehand, which `uninit` does not see."""
    if r.random() < 0.4:
        return ''
    words = [f'seed:{r.randrange(1000)}']
    if r.random() < 0.4 and all(a.count(run['sizes']) < 6000 for a in run['inputs']):
        words += r.choice([['race'], ['race', 'weak'], ['all'], r.sample(MODES, 2)])
    if initialised:
        words = [w for w in words if w not in ('all', 'uninit')]
    if r.random() < 0.3:
        words += r.choice([[f'sms:{r.choice([1, 2, 3, 8])}'], [f'resident:{r.choice([1, 2, 5])}']])
    return ','.join(words)


def on_device_of(first, second):
    """The modes `second` with as many multiprocessors and resident blocks as `first`."""
    def device(word):
        return word.startswith(('sms:', 'resident:'))
    return ','.join([w for w in second.split(',') if w and not device(w)] + [w for w in first.split(',') if device(w)])


def same_bits(spec):
    """2: also where arrays lie elsewhere."""
    level = spec.get('determinism', 'any')
    if level == 'any':
        return 0
    return 1 if level == 'run' and spec['kind'] == 'scan' else 2


def assume(r, spec, case):
    """Facts that the first run keeps, and the others perhaps."""
    if r.random() > 0.12:
        return
    name, n = r.choice(list(case['runs'][0]['sizes'].items()))
    facts = {}
    if r.random() < 0.6 and n > 0:
        facts['min'] = r.choice([1, n, max(1, n // 2)])
    if r.random() < 0.5:
        facts['max'] = r.choice([n, n + 1, 65536 + n])
    if r.random() < 0.4 and n > 0:
        facts['multiple_of'] = n & -n
    if r.random() < 0.15:
        facts = {'equals': n}
    if facts:
        spec['assume'] = {name: facts}


# ---- how it is planned -------------------------------------------------------------------------
def settings(r, case):
    kind, result = r.random(), {}
    single = len(case['runs']) == 1
    if single and r.random() < 0.7:  # which also compiles in a fraction of the time
        result['known' if any(run['shift'] for run in case['runs']) else r.choice(['only', 'only', 'known'])] = '1'
    if r.random() < 0.2:
        result['arch'] = r.choice(['sm_70', 'sm_75', 'sm_80', 'sm_90', 'sm_100'])
    if kind < 0.4:
        result['draw'] = str(r.randrange(1 << 30))
    elif kind < 0.47:
        result['pin'] = str(r.randrange(1 << 30))
    elif kind < 0.55 and single:
        result['tuned'] = str(r.randrange(1 << 30))
        result.pop('only', None)
        for name, n in case['runs'][0]['sizes'].items():
            result[f'near:{name}'] = str(max(1, int(n * r.uniform(0.75, 1.35))))
    return result
