# SPDX-License-Identifier: Apache-2.0
"""gen_by.py - random reductions and scans by computed indices."""
from arith import INTS

FIELDS = ['on_welford', 'on_welford', 'on_argmin', 'on_argmax', 'on_logsumexp', 'three']
OPERATORS = ['add', 'add', 'add', 'mul', 'min', 'max', 'and', 'or', 'xor']


class By:
    """A part of SpecMaker."""

    def by(self, names, rest, fixed):
        """Outputs with a value per bin: k of them, or a table, and the dimensions that remain."""
        r = self.random
        found = {f'r{i}': self.of_bins(names) for i in range(r.choice([1, 1, 2, 3]))}
        self.spec['reductions'] = {n: one.entry for n, one in found.items()}
        self.small = self.small or any(one.small for one in found.values())
        bins = r.choice([['k'], ['k'], ['7'], ['k', '5'], ['3', 'k']])[:3 - len(rest)]
        indices = [self.index(names) for _ in bins]
        self.spec['by'] = indices[0] if len(indices) == 1 and self.chance(0.7) else indices
        for _ in range(r.choice([1, 1, 2, 3])):
            self.per_segment(found, [], fixed, 'r', bins + rest)

    def of_bins(self, names):
        """A reduction that commutes and has an identity: of scalars, which are updated by themselves, or of several fields."""
        if self.chance(0.7):
            return self.operators.scalar(self.random.choice(OPERATORS), names)
        return getattr(self.operators, self.random.choice(FIELDS))(names)

    def scan_by(self, names, found, rest, fixed):
        """Values per element, totals of bins, or both; `bins` where nothing else says how many there are."""
        r, bins = self.random, self.random.choice(['k', 'k', '7', '300'])
        shape = rest.copy()
        shape.insert(r.randrange(len(rest) + 1), bins)
        self.spec['by'] = self.index(names) if self.chance(0.9) else [self.index(names)]
        kind = r.choice(['elements', 'totals', 'both'])
        if kind != 'totals':
            self.scan_outputs(found, names, rest, fixed, 'bins')
        if kind != 'elements':  # perhaps the name is taken
            self.per_segment(found, [], fixed, 'total', shape)
        if kind != 'totals' or self.chance(0.2):
            self.spec['bins'] = bins

    def index(self, names):
        """Of any integer type; most of them lie within some bins."""
        t = self.random.choice(list(INTS))
        text = self.make.expression(t, names, 2)
        return text if self.chance(0.2) else f'({text}) % {self.random.choice([2, 3, 7, 20, 100])}'
