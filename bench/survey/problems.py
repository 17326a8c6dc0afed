# SPDX-License-Identifier: Apache-2.0
"""problems - specs and sizes drawn at random, for the survey.

problem(seed, index) is a function of its arguments alone.  A problem has a family (what the report groups by), the
text of a spec, and its sizes.  What is drawn: kind, operator and its state, element types, maps and their inputs,
operands that repeat, the dimensions that are combined, shapes of stencils up to radius 4 and 125 points in one to
three dimensions, boundaries, steps, segments, orders of dimensions in outputs, and extents that are even or odd.
"""
import itertools
import random

BYTES = {'i8': 1, 'u8': 1, 'i16': 2, 'f16': 2, 'bf16': 2, 'i32': 4, 'u32': 4, 'f32': 4, 'i64': 8, 'f64': 8}
FLOATS = ('f32', 'f32', 'f32', 'f64', 'f16', 'bf16')
ANY = FLOATS + ('i32', 'i32', 'i64', 'u32', 'i16', 'i8', 'u8')

MSS = '''operator:
  state: {best: T, left: T, right: T, total: T}
  identity: {best: 0, left: 0, right: 0, total: 0}
  combine:
    best: max(max(a.best, b.best), a.right + b.left)
    left: max(a.left, a.total + b.left)
    right: max(b.right, a.right + b.total)
    total: a.total + b.total
'''
COMPLEX = '''operator:
  state: {re: T, im: T}
  identity: {re: 1, im: 0}
  combine: {re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re}
'''
RUN = '''operator:
  state: {length: i32, all: bool}
  identity: {length: 0, all: true}
  combine: {length: "if b.all then a.length + b.length else b.length", all: a.all and b.all}
'''


class Draw:
    """Choices of one problem, and the spec as it grows."""

    def __init__(self, rng):
        self.rng = rng
        self.inputs = {}

    def one(self, *items):
        return self.rng.choice(items)

    def chance(self, p):
        return self.rng.random() < p

    def extent(self, about):
        """An extent near `about`: even ones are multiples of 256 where that is near, odd ones are not."""
        about = max(1, int(about))
        if about < 64:
            return about
        even = max(256, about // 256 * 256) if about >= 512 else about // 16 * 16
        return even - self.one(0, 0, 1, 1, 3, 2)

    def volume(self, width):
        """Elements, so that an array of them has 32 to 512 MB; at times one that the L2 cache holds."""
        return self.one(1 << 22, 1 << 26, 1 << 27, 1 << 28, 1 << 28, 1 << 28) // width


def typed(text, t):
    return text.replace('T', t)


def contribution(d, t, rank):
    """(map line, inputs beside x) of a scalar contribution of the type t; x has `rank` dimensions."""
    back = ', '.join(['0'] * (rank - 1) + ['-1'])
    x = d.one('x', 'x', 'x', 'x * x', 'abs(x)', 'max(x, 0)', 'x * y', 'x - y', f'x - x[{back}]')
    return x, {'y': t} if 'y' in x else {}


def operation(d, t, rank, axes):
    """(operator and map as YAML, inputs beside x, outputs {name: (type, value)}, the operator's name); `axes` are combined."""
    kind = d.one('add', 'add', 'add', 'max', 'arg', 'mss', 'complex', 'run', 'welford', 'logsumexp', 'several', 'mul')
    if kind in ('welford', 'logsumexp') and t not in ('f32', 'f64'):
        kind = 'add'
    if kind in ('mss', 'complex') and BYTES[t] < 4:
        kind = 'max'
    if kind in ('add', 'max', 'mul'):
        x, more = contribution(d, t, rank)
        wide = {'add': {'f16': 'f32', 'bf16': 'f32', 'i8': 'i32', 'i16': 'i32', 'u8': 'u32'}.get(t, t)}.get(kind, t)
        wide = {'f16': 'f32', 'bf16': 'f32', 'i8': 'i32', 'i16': 'i32', 'u8': 'u32'}.get(t, t) if kind == 'mul' else wide
        return f'operator: {kind}\nmap: {x}\n', more, {'r': (wide, '{s}')}, kind
    if kind == 'arg':
        return (f'operator: {d.one("argmin", "argmax")}\nmap: {{value: x, index: index({axes[-1]})}}\n', {},
                {'r': (t, '{s}.value'), 'at': ('i64', '{s}.index')}, kind)
    if kind == 'mss':
        fields = 'best: "max(x, 0)", left: "max(x, 0)", right: "max(x, 0)", total: x'
        return typed(MSS, t) + f'map: {{{fields}}}\n', {}, {'r': (t, '{s}.best')}, kind
    if kind == 'complex':
        return typed(COMPLEX, t) + 'map: {re: x, im: y}\n', {'y': t}, {'r': (t, '{s}.re'), 'im': (t, '{s}.im')}, kind
    if kind == 'run':
        return RUN + 'map: {length: "if x > 0 then 1 else 0", all: x > 0}\n', {}, {'r': ('i32', '{s}.length')}, kind
    if kind == 'welford':
        return 'operator: welford\nmap: x\n', {}, {'r': (t, '{s}.mean'), 'm2': (t, '{s}.m2')}, kind
    if kind == 'logsumexp':
        return 'operator: logsumexp\nmap: x\n', {}, {'r': (t, '{s}.max + log({s}.sum)')}, kind
    return None, {}, {'r': (t, 'lo'), 'hi': (t, 'hi')}, kind


def shape(t, axes):
    return f'"{t}[{", ".join(axes)}]"' if axes else t


def write(kind, inputs, rest, outputs):
    lines = [f'kind: {kind}', 'inputs:']
    lines += [f'  {name}: {text}' for name, text in inputs.items()]
    lines += [line for line in rest.splitlines() if line]
    lines += ['outputs:'] + [f'  {name}: {{type: {t}, value: "{value}"}}' for name, (t, value) in outputs.items()]
    return '\n'.join(lines) + '\n'


def combined(d, kind):
    """A reduction or scan over some of one to three dimensions."""
    t = d.one(*ANY)
    axes = ['n'] if d.chance(0.35) else d.one(['m', 'n'], ['m', 'n'], ['d', 'm', 'n'])
    over = axes if len(axes) == 1 else d.one(*[list(c) for k in (1, 1, 2) for c in itertools.combinations(axes, k) if k < len(axes)])
    volume = d.volume(BYTES[t])
    if len(axes) == 1:
        sizes = {'n': d.extent(volume)}
    elif len(axes) == 2:
        n = d.extent(2 ** d.rng.uniform(2, 20))
        sizes = {'m': d.extent(max(2, min(volume // n, 1 << 24))), 'n': n}
    else:
        n, m = d.extent(2 ** d.rng.uniform(2, 13)), d.extent(2 ** d.rng.uniform(2, 10))
        sizes = {'d': d.extent(max(2, volume // (n * m))), 'm': m, 'n': n}
    law, more, results, name = operation(d, t, len(axes), [a for a in axes if a in over])
    inputs = {'x': shape(t, axes)} | {k: shape(u, axes) for k, u in more.items()}
    family = f'{kind} of ' + {1: 'an array', 2: 'two dimensions', 3: 'three dimensions'}[len(axes)]
    rest = '' if len(axes) == 1 else f'over: [{", ".join(over)}]\n'
    if law is None:
        word = 'reductions' if kind == 'reduce' else 'scans'
        rest += f'{word}:\n  lo: {{map: x, operator: min}}\n  hi: {{map: x, operator: max}}\n'
    else:
        if len(axes) > 1 and name == 'add' and 'f' in t and d.chance(0.4):  # an operand that repeats
            w = d.one(*[a for a in axes])
            inputs['w'], law = shape(t, [w]), law.replace('map: x', 'map: w * x', 1)
            family = f'{kind} with an operand that repeats'
        rest += law
    if kind == 'scan':
        rest += ('direction: reverse\n' if d.chance(0.25) else '') + ('mode: exclusive\n' if d.chance(0.25) else '')
        segments = d.one('flags', 'offsets', '', '', '') if len(axes) == 1 else ''
        left = axes
    else:
        segments = d.one('offsets', '', '', '') if len(axes) == 1 else ''
        left = [a for a in axes if a not in over]
    if segments == 'flags':
        inputs['f'], family = '"u8[n]"', 'scan between flags'
    elif segments == 'offsets':
        inputs['off'], family = '"i32[k]"', f'{kind} between offsets'
        sizes['k'] = max(2, int(sizes['n'] / 2 ** d.rng.uniform(2, 16)))
        left = left if kind == 'scan' else ['k-1']
    if segments:
        rest += f'segments: {{{segments}: {"f" if segments == "flags" else "off"}}}\n'
    if len(left) > 1 and d.chance(0.15):
        left, family = left[::-1], f'{kind} with a permuted output'
    state = 'r' if kind == 'reduce' else 's'
    outputs = {k: (shape(u, left), v.replace('{s}', state)) for k, (u, v) in results.items()}
    return family, write(kind, inputs, rest, outputs), sizes


def offsets(form, r, dims):
    cube = itertools.product(range(-r, r + 1), repeat=dims)
    if form == 'star':
        return [p for p in cube if sum(c != 0 for c in p) <= 1]
    return [p for p in cube if form != 'von Neumann' or sum(map(abs, p)) <= r]


def around(d, dims):
    """Offsets of a stencil, and what they are called."""
    form = d.one('star', 'star', 'star', 'box', 'von Neumann', 'random')
    r = d.one(1, 1, 1, 2, 2, 3, 4) if form == 'star' or dims == 1 else d.one(1, 1, 2, 2, 3)
    if dims == 3 and form == 'box':
        r = min(r, 2)
    cube = offsets(form, r, dims)
    if form == 'random':
        cube = d.rng.sample(cube, min((2 * r + 1) ** dims, d.one(3, 5, 9, 14)))
    return cube, f'{form} of radius {r}'


def stencil(d):
    t = d.one('f32', 'f32', 'f32', 'f32', 'f64', 'i32', 'f16', 'i8')
    dims = d.one(1, 2, 2, 3, 3)
    axes = ['d', 'm', 'n'][-dims:]
    points, form = around(d, dims)
    side = d.volume(BYTES[t]) ** (1 / dims)
    sizes = {a: d.extent(side * (1 if dims == 1 else d.one(0.5, 1, 1, 2))) for a in axes}
    number = '{:.4f}'.format if 'f' in t else (lambda c: str(1 + int(8 * c)))
    terms = [f'{number(d.rng.random() + 0.01)} * u[{", ".join(map(str, p))}]' for p in points]
    if d.chance(0.5):  # one coefficient for all
        terms = [f'u[{", ".join(map(str, p))}]' for p in points]
    inputs = {'u': shape(t, axes)}
    if d.chance(0.25):
        inputs['c'], terms = shape(t, axes), terms + ['c']
    boundary = d.one('clamp', 'wrap', 'reflect', 'interior', '{constant: 0}')
    family = f'stencil in {dims}-D'
    left = axes
    if dims > 1 and d.chance(0.08):
        left, family = axes[::-1], 'stencil with a permuted output'
    rest = f'boundary: {boundary}\n'
    if left == axes and d.chance(0.15):
        rest += f'iterate: {{steps: {d.one(4, 16)}, feedback: {{u: y}}}}\n'
        family += ', steps'
    total = ' + '.join(terms)
    value = f'0.1 * ({total})' if 'f' in t else f'({total}) >> 3'
    return f'{family}, {form}' if len(points) > 27 else family, write('stencil', inputs, rest, {'y': (shape(t, left), value)}), sizes


def distances(d):
    """Reductions over operands that repeat: distances of points to centres, and forces between all pairs."""
    n, k, f = d.extent(2 ** d.rng.uniform(12, 19)), d.extent(2 ** d.rng.uniform(2, 8)), d.one(2, 3, 4, 16, 34, 64)
    if d.chance(0.5):
        text = 'kind: reduce\ninputs: {p: "f32[n, f]", c: "f32[k, f]"}\nspace: [n, k, f]\nover: f\n' \
               'map: (p - c) * (p - c)\noperator: add\noutputs: {r: "f32[n, k]"}\n'
        return 'distances', text, {'n': n, 'k': k, 'f': f}
    n = d.extent(2 ** d.rng.uniform(11, 15))
    text = 'kind: reduce\ninputs: {x: "f32[n]", y: "f32[m]", w: "f32[m]"}\nspace: [n, m]\nover: m\n' \
           'map: w * rsqrt((x - y) * (x - y) + 0.01)\noperator: add\noutputs: {r: "f32[n]"}\n'
    return 'all pairs', text, {'n': n, 'm': n}


def problem(seed, index):
    """(family, text of a spec, sizes)."""
    d = Draw(random.Random(f'{seed}/{index}'))
    kind = d.rng.choices(['reduce', 'scan', 'stencil', 'pairs'], [36, 28, 32, 4])[0]
    return stencil(d) if kind == 'stencil' else distances(d) if kind == 'pairs' else combined(d, kind)
