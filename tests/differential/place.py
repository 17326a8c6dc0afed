# SPDX-License-Identifier: Apache-2.0
"""place.py - where expressions are evaluated: the points of some dimensions, and what names mean there.

A Run holds one evaluation: sizes, params, data.  A Place is a set of points; it is the scope (expr.py) of what is
evaluated at each of them.  The texts that it gives are Python with the number of the point as `i`.
"""
from arith import is_float, is_int
from boundary import Reader, unknown
from expr import SUMS, Compiler, Literal, SpecError, is_product, parse, type_of
from operations import operation
from spec import Array, dimension_names, extents_by_key, iteration_space

DEEPEST = 40


class Run:
    def __init__(self, spec, sizes, params, data):
        self.spec, self.sizes, self.data = spec, sizes, dict(data)
        self.arrays = {n: Array(n, e) for n, e in spec['inputs'].items()}
        self.outputs = {n: Array(n, e) for n, e in spec['outputs'].items()}
        self.dims = iteration_space(spec)
        self.extent = extents_by_key(spec, sizes)
        self.params = {}
        for name, entry in (spec.get('params') or {}).items():
            t, default = (entry['type'], entry.get('value')) if isinstance(entry, dict) else (entry, None)
            value = params[name] if name in params else constant(default, t)
            self.params[name] = (value, t)
        self.lets = {n: parse(e) for n, e in (spec.get('let') or {}).items()}
        self.names = dimension_names(spec)
        self.reader = Reader(self)


def constant(text, t):
    """The value of an expression of literals."""
    compiler = Compiler()
    scope = Nothing()
    source, _ = compiler.text(parse(text), scope, t)
    return eval(source, compiler.names)  # pylint: disable=eval-used


class Nothing:
    def resolve(self, name, wanted=None):
        raise SpecError(f'no {name} here')


class Place:
    """The points of `dims`; `extra` names results: name -> (list of values, type)."""

    def __init__(self, run, dims, extra=None, lets=True, count=None):
        self.run, self.dims, self.extra = run, list(dims), dict(extra or {})
        self.count = 1
        for d in self.dims:
            self.count *= run.extent[d]
        self.count = self.count if count is None else count
        self.compiler = Compiler(run.spec.get('contract') == 'true')
        self.lets, self.cache = (run.lets if lets else {}), {}

    # -- scope --
    def listed(self, values, t):
        return f'{self.compiler.constant(values)}[i]', t

    def resolve(self, name, wanted=None):
        if name in self.extra:
            return self.cached(('extra', name), lambda: self.listed(*self.extra[name]))
        if name in self.lets:
            return self.let(name, wanted)
        if name in self.run.arrays:
            return self.cached(('input', name), lambda: self.read(name, None))
        if name in self.run.params:
            return self.cached(('param', name), lambda: self.scalar(*self.run.params[name]))
        if name in self.run.names:
            return self.cached(('size', name), lambda: self.scalar(self.run.sizes[name], 'i64'))
        raise SpecError(f'no {name} here')

    def scalar(self, value, t):
        return self.compiler.constant(value), t

    def cached(self, key, make):
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]

    def let(self, name, wanted):
        node = self.run.lets[name]
        t = self.cached(('type', name), lambda: (type_of(node, self),))[0]
        if isinstance(t, Literal):
            return (self.compiler.text(node, self, wanted)[0], t) if wanted else ('', t)
        return self.cached(('let', name), lambda: self.listed(*self.values_of(node)))

    def read(self, name, offsets):
        array = self.run.arrays[name]
        if not set(array.keys) <= set(self.dims):
            raise SpecError(f'{name} varies here')
        values = self.run.reader.read(name, self.dims, offsets)
        return self.listed(values if len(values) == self.count else Repeated(values), array.type)

    def neighbour(self, name, offsets):
        return self.cached((name, offsets), lambda: self.read(name, offsets))

    def index(self, dim):
        return self.cached(('index', dim), lambda: self.listed(self.positions(dim), 'i64'))

    def positions(self, dim):
        inner, at = 1, self.dims.index(dim)
        for d in self.dims[at + 1:]:
            inner *= self.run.extent[d]
        extent = self.run.extent[dim]
        return [i // inner % extent for i in range(self.count)] if extent else []

    def at(self, words):
        name, nodes = words
        return self.cached(('at', name, repr(nodes)), lambda: self.listed(*self.placed(name, nodes)))

    def placed(self, name, nodes):
        array = self.run.arrays[name]
        if len(nodes) != len(array.keys):
            raise SpecError(f'{len(nodes)} indices of {name}')
        columns = []
        for node in nodes:
            literal = isinstance(type_of(node, self), Literal)
            values, t = self.values_of(node, 'i64' if literal else None)
            if not is_int(t):
                raise SpecError(f'an index of type {t}')
            columns.append(values)
        return self.run.reader.placed(name, list(zip(*columns))), array.type

    def gather(self, words):
        x, offsets, k, operator, nodes = words
        key = ('gather', x, offsets, k, operator, repr(nodes))
        return self.cached(key, lambda: self.listed(*self.gathered(x, offsets, k, operator, nodes)))

    def gathered(self, x, offsets, k, name, nodes):
        from operators import gathered  # which needs places itself
        array, table = self.run.arrays[x], self.run.arrays[offsets]
        rows = self.offset_rows(offsets, table)
        result, operator = None, None
        along = table.shape[0][0]
        for j, row in enumerate(rows or [None]):
            at = row if row is not None else (0,) * len(array.keys)
            near = {k: (self.run.reader.read(x, self.dims, at, row is not None), array.type)}
            inner = Inner(self, near) if along in self.dims else Running(self, along, j, near)
            operator, values = gathered(inner, name, nodes)
            if row is None:
                result = [operator.identity] * self.count
            else:
                result = values if result is None else [operator.combine(a, b, i) for i, (a, b) in enumerate(zip(result, values))]
        return result, operator.state

    def sum(self, words):
        return self.cached(('sum', repr(words)), lambda: self.listed(*self.summed(*words)))

    def summed(self, function, dim, node):
        from operators import scalar_identity, builtin_combine  # which needs places itself
        extent, result = self.run.extent[dim], None
        for j in range(max(extent, 1)):
            inner = Running(self, dim, j)
            wanted = 'bool' if function in ('all', 'any') else None
            values, t = inner.values_of(node, wanted)
            combine = builtin_combine(SUMS[function], t)
            if j and self.compiler.contract and function == 'sum' and is_float(t) and is_product(node):
                factors = [inner.values_of(n, t)[0] for n in node[2:]]
                result = list(map(operation('fma', t), *factors, result))
            else:
                result = values if j == 0 else [combine(a, b) for a, b in zip(result, values)]
        return (result if extent else [scalar_identity(SUMS[function], t)] * self.count), t

    def offset_rows(self, name, table):
        values = self.run.data[name]
        width = table.shape[1][1] if len(table.shape) > 1 else 1
        return [tuple(values[p:p + width]) for p in range(0, len(values), width)]

    # -- evaluation --
    def flattened(self, node, wanted=None):
        """(text, type) of an expression of any depth: what lies deep becomes a list of its own."""
        if depth(node) > DEEPEST:
            node = self.shortened(node)
        return self.compiler.text(node, self, wanted)

    def shortened(self, node):
        if not isinstance(node, tuple) or depth(node) <= DEEPEST // 2 or node[0] in ('sum', 'gather'):
            return node
        parts = tuple(self.shortened(n) if isinstance(n, tuple) else
                      [self.shortened(m) for m in n] if isinstance(n, list) else n for n in node)
        if depth(parts) <= DEEPEST // 2 or isinstance(type_of(parts, self), Literal):
            return parts
        if self.compiler.contract and is_product(parts):
            return parts  # the sum that takes it must see it
        name = f'.{len(self.extra)}'
        self.extra[name] = self.values_of(parts)
        return ('name', name)

    def values_of(self, node, wanted=None):
        text, t = self.flattened(node, wanted)
        return self.values(text), t

    def values(self, text):
        return eval(f'[{text} for i in range({self.count})]', self.compiler.names)  # pylint: disable=eval-used

    def values_as(self, node, t):
        return self.values(self.flattened(node, t)[0])


class Repeated(list):
    """One value for every index."""

    def __getitem__(self, i):
        return list.__getitem__(self, 0)


class Inner(Place):
    """The same points, where `k` of a gather has a name as well."""

    def __init__(self, outer, extra):
        super().__init__(outer.run, outer.dims, {**outer.extra, **extra}, count=outer.count)
        self.lets = {n: e for n, e in outer.lets.items() if n not in extra}


class Running(Inner):
    """The same points, at index j of a dimension that a sum goes over, or of the rows of a gather's offsets."""

    def __init__(self, outer, dim, j, near=None):
        super().__init__(outer, near or {})
        self.running = {**getattr(outer, 'running', {}), dim: j}

    def index(self, dim):
        return self.scalar(self.running[dim], 'i64') if dim in self.running else super().index(dim)

    def read(self, name, offsets):
        array = self.run.arrays[name]
        if not set(array.keys) & set(self.running):
            return super().read(name, offsets)
        columns = []
        for d, offset in zip(array.keys, offsets or (0,) * len(array.keys)):
            at = [self.running[d]] * self.count if d in self.running else self.positions(d)
            columns.append([c + offset for c in at])
        if not array.count(self.run.sizes):
            return self.listed([unknown(array.type)] * self.count, array.type)
        return self.listed(self.run.reader.placed(name, list(zip(*columns))), array.type)


def depth(node):
    if isinstance(node, list):
        return max(map(depth, node), default=0)
    return 1 + max((depth(n) for n in node[1:] if isinstance(n, (tuple, list))), default=0) \
        if isinstance(node, tuple) and node and isinstance(node[0], str) else 0
