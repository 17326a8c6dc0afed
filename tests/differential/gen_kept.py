# SPDX-License-Identifier: Apache-2.0
"""gen_kept.py - outputs of some elements (where, from, count) in random scans; where `results` is set, conditions use results,
also those of reductions, and such a spec becomes one of two stages."""


class Kept:
    """A part of SpecMaker."""

    def kept(self, found, names, rest, segments):
        """Outputs of some elements, and how many they are."""
        r, here, at = self.random, names.copy(), names.copy()
        scan, given = self.spec['kind'] == 'scan', self.spec.get('segments', {})
        for n, one in found.items():
            here.add(n or ('s' if scan else 'r'), one.state)
        for scope in (here, at) if scan and not {'flags', 'offsets'} & {*given} else ():
            scope.add('last', 'bool')
        at = here if self.results else at
        where = self.make.expression('bool', at, 2)
        for i in range(r.choice([1, 1, 2, 3])):
            self.value_output(f'kept{i}', here, list(self.dims))
            entry = self.spec['outputs'][f'kept{i}']
            entry['where'] = where if self.chance(0.6) else self.make.expression('bool', at, 2)
            if self.chance(0.3):
                entry['from'] = r.choice(['end', 'end', 'start'])
        if self.chance(0.6):
            shape = [] if segments and segments != 'starts' else self.shuffled(rest)
            self.spec['outputs']['count'] = {'type': self.typed(r.choice(['i64', 'i32']), shape), 'count': 'kept0'}
