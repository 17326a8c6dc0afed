# SPDX-License-Identifier: Apache-2.0
"""test_evaluate.py - the evaluator against examples worked by hand from docs/spec-language.md."""
import math
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from arith import CONVERT, INF, NAN, ROUND, UNKNOWN, Span, hull, lossless, same  # noqa: E402
from evaluate import KEEP, Refused, evaluate  # noqa: E402
from fold import fold, prefixes  # noqa: E402
from expr import Parser, SpecError  # noqa: E402
from operations import operation  # noqa: E402
from place import constant  # noqa: E402


class Arithmetic(unittest.TestCase):
    def test_integers(self):
        self.assertEqual(operation('+', 'i8')(127, 1), -128)
        self.assertEqual(operation('abs', 'i8')(-128), -128)
        self.assertEqual(operation('/', 'i32')(-7, 2), -3)
        self.assertEqual(operation('%', 'i32')(-7, 2), -1)
        self.assertEqual(operation('/', 'u16')(7, 0), 0)
        self.assertEqual(operation('%', 'u16')(7, 0), 0)
        self.assertEqual(operation('/', 'i16')(-32768, -1), -32768)
        self.assertEqual(operation('%', 'i16')(-32768, -1), 0)
        self.assertEqual(operation('<<', 'i8')(1, 8), 0)
        self.assertEqual(operation('<<', 'i8')(1, 7), -128)
        self.assertEqual(operation('>>', 'i8')(-5, -1), -1)
        self.assertEqual(operation('>>', 'u8')(200, 9), 0)
        self.assertEqual(operation('>>', 'i32')(-8, 1), -4)
        self.assertEqual([operation(f, 'u8')(0) for f in ('popcount', 'clz', 'ctz')], [0, 8, 8])
        self.assertEqual([operation(f, 'i8')(-128) for f in ('popcount', 'clz', 'ctz')], [1, 0, 7])

    def test_floats(self):
        self.assertEqual(operation('+', 'f16')(2048.0, 1.0), 2048.0)
        self.assertEqual(operation('+', 'bf16')(256.0, 1.0), 256.0)
        self.assertEqual(operation('+', 'bf16')(256.0, 3.0), 260.0)
        self.assertEqual(operation('*', 'f32')(1e30, 1e30), INF)
        self.assertEqual(operation('/', 'f32')(1.0, -0.0), -INF)
        self.assertTrue(same(operation('%', 'f64')(1.0, 0.0), NAN))
        self.assertEqual(operation('min', 'f32')(NAN, 3.0), 3.0)
        self.assertTrue(same(operation('sign', 'f32')(-0.0), -0.0))
        self.assertTrue(same(operation('round', 'f32')(2.5), 2.0))
        self.assertTrue(same(operation('round', 'f32')(-0.5), -0.0))
        one = 1 + 2.0 ** -23
        self.assertEqual(operation('fma', 'f32')(one, one, -1 - 2.0 ** -22), 2.0 ** -46)
        self.assertEqual(ROUND['bf16'](2.0 ** -126), 2.0 ** -126)
        self.assertTrue(same(ROUND['bf16'](-2.0 ** -134), -0.0))

    def test_orders_of_own_operators(self):
        """Two orders may agree by chance; what may have been rounded is not decided."""
        class Own:
            name, state, identity, contract = 'own', 'f32', 0.0, False
            combine = staticmethod(lambda a, b, _: operation('+', 'f32')(a, b))
        self.assertEqual(fold(Own, [1.0, 2.0, 0.5], None, None), 3.5)
        tenth = ROUND['f32'](0.1)
        self.assertEqual(fold(Own, [tenth, 0.0, -0.0], None, None), tenth)  # no digit of a sum
        steps = [3.0 + k * 2.0 ** -16 for k in range(765)]
        self.assertIs(fold(Own, steps, None, None), UNKNOWN)
        self.assertEqual(prefixes(Own, steps, None, None)[0], 3.0)
        self.assertIs(prefixes(Own, steps, None, None)[-1], UNKNOWN)
        Own.contract = True
        self.assertIs(fold(Own, [1.0, 2.0, 0.5], None, None), UNKNOWN)

    def test_conversions(self):
        self.assertEqual(CONVERT['u8'](300), 44)
        self.assertEqual(CONVERT['i8'](1e9), 127)
        self.assertEqual(CONVERT['u32'](-3.5), 0)
        self.assertEqual(CONVERT['i32'](NAN), 0)
        self.assertEqual(CONVERT['f32'](16777217), 16777216.0)
        self.assertEqual(CONVERT['f16'](70000), INF)
        self.assertIs(CONVERT['bool'](NAN), True)
        self.assertTrue(lossless('u8', 'bf16') and lossless('i16', 'f32') and lossless('f16', 'f32'))
        self.assertFalse(lossless('i32', 'f32') or lossless('f16', 'bf16') or lossless('u16', 'f16'))

    def test_ranges(self):
        e = operation('exp', 'f32')(1.0)
        self.assertIsInstance(e, Span)
        self.assertTrue(e.lo < math.e < e.hi and e.hi - e.lo < 3e-6)
        self.assertIs(Span(-1.0, 1.0) * INF, UNKNOWN)
        self.assertIs(Span(1.0, INF) - Span(1.0, INF), UNKNOWN)
        self.assertEqual(operation('-', 'f32')(-INF, Span(1.0, 2.0)), -INF)
        self.assertEqual(operation('fma', 'f32')(Span(1.0, 2.0), 3.0, INF), INF)


class Expressions(unittest.TestCase):
    def value(self, text, t='i32'):
        return constant(text, t)

    def test_either_of_two(self):
        self.assertEqual((hull(1.0, 2.0).lo, hull(1.0, 2.0).hi), (1.0, 2.0))
        for pair in ((1.0, NAN), (NAN, 1.0), (Span(0.0, 1.0), NAN)):
            self.assertIs(hull(*pair), UNKNOWN)

    def test_precedence(self):
        self.assertEqual(self.value('1 + 2 * 3 - 4 % 3'), 6)
        self.assertEqual(self.value('1 | 2 ^ 3 & 1'), 1 | 2 ^ 3 & 1)
        self.assertEqual(self.value('1 << 2 + 1'), 8)
        self.assertEqual(self.value('- 2 * 3'), -6)
        self.assertIs(self.value('not 1 == 2', 'bool'), True)
        self.assertIs(self.value('!true or true', 'bool'), True)
        self.assertEqual(self.value('if 1 < 2 then 3 else 4 + 5'), 3)
        self.assertIs(self.value('1 | 2 == 3', 'bool'), True)
        self.assertEqual(self.value('10 - 2 - 3'), 5)
        with self.assertRaises(SpecError):
            Parser('1 < 2 < 3').whole()

    def test_literals(self):
        self.assertEqual(self.value('u8(300)', 'u8'), 44)
        self.assertEqual(self.value('u32(-1)', 'u32'), 2 ** 32 - 1)
        self.assertEqual(self.value('1', 'f32'), 1.0)
        self.assertEqual(self.value('f32(1 / 2)', 'f32'), 0.5)
        self.assertEqual(self.value('f64(0.1)', 'f64'), 0.1)
        self.assertEqual(self.value('f32(ctz(8))', 'f32'), 3.0)
        self.assertEqual(self.value('bf16(~64)', 'bf16'), -65.0)
        self.assertEqual(self.value('f32(7 / 2 | 0)', 'f32'), 3.0)


class Specs(unittest.TestCase):
    def test_dot(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'f32[n]', 'y': 'f32[n]'}, 'map': 'x * y', 'operator': 'add',
                'outputs': {'dot': 'f32'}}
        self.assertEqual(evaluate(spec, {'n': 3}, {}, {'x': [1.0, 2.0, 3.0], 'y': [4.0, 5.0, 6.0]}), {'dot': [32.0]})
        self.assertEqual(evaluate(spec, {'n': 0}, {}, {'x': [], 'y': []}), {'dot': [0.0]})

    def test_float_sum_is_a_range(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'f32[n]'}, 'operator': 'add', 'outputs': {'s': 'f32'}}
        s = evaluate(spec, {'n': 3}, {}, {'x': [1e8, 0.1, -1e8]})['s'][0]
        self.assertTrue(s.lo <= 0.0 and s.hi >= 0.1 and s.hi < 30)

    def test_sum_that_may_overflow(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'f32[n]'}, 'operator': 'add', 'outputs': {'s': 'f32'}}
        self.assertIs(evaluate(spec, {'n': 3}, {}, {'x': [INF, -3e38, -3e38]})['s'][0], UNKNOWN)
        self.assertEqual(evaluate(spec, {'n': 2}, {}, {'x': [INF, -3e38]})['s'][0], INF)

    def test_the_order_of_the_space(self):
        spec = {'kind': 'scan', 'inputs': {'x': 'i32[m, n]'}, 'operator': 'add', 'outputs': {'y': 'i32[m, n]'}}
        data = {'x': [1, 2, 3, 4]}
        self.assertEqual(evaluate(spec, {'m': 2, 'n': 2}, {}, data), {'y': [1, 3, 3, 7]})
        self.assertEqual(evaluate({**spec, 'space': ['n', 'm']}, {'m': 2, 'n': 2}, {}, data), {'y': [1, 2, 4, 6]})

    def test_a_dimension_of_a_table_in_the_space(self):
        spec = {'kind': 'map', 'inputs': {'token': 'i32[b]', 'table': 'i32[v, h]'}, 'space': ['b', 'h'],
                'outputs': {'y': {'type': 'i32[b, h]', 'value': 'at(table, token, index(h))'}}}
        self.assertEqual(evaluate(spec, {'b': 3, 'v': 2, 'h': 2}, {}, {'token': [1, 0, 1], 'table': [1, 2, 3, 4]}),
                         {'y': [3, 4, 1, 2, 3, 4]})

    def test_rows(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'i32[m, n]', 'scale': 'i32[m]'}, 'map': 'x * x', 'operator': 'add',
                'over': 'n', 'outputs': {'norm': {'type': 'i32[m]', 'value': 'r * scale'},
                                         'scaled': {'type': 'i32[n, m]', 'value': 'x * scale'}}}
        data = {'x': [1, 2, 3, 4, 5, 6], 'scale': [10, 100]}
        self.assertEqual(evaluate(spec, {'m': 2, 'n': 3}, {}, data),
                         {'norm': [140, 7700], 'scaled': [10, 400, 20, 500, 30, 600]})

    def test_several(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'f32[n]'}, 'reductions': {
            'lo': {'map': 'x', 'operator': 'min'}, 'hi': {'map': 'x', 'operator': 'max'}},
            'outputs': {'range': {'type': 'f32', 'value': 'hi - lo'}, 'lo': 'f32'}}
        self.assertEqual(evaluate(spec, {'n': 3}, {}, {'x': [1.0, NAN, 4.0]}), {'range': [3.0], 'lo': [1.0]})

    def test_results_per_element(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'i32[m, n]'}, 'operator': 'add', 'over': 'n',
                'outputs': {'y': {'type': 'i32[n, m]', 'value': 'x - r'}, 'r': 'i32[m]'}}
        self.assertEqual(evaluate(spec, {'m': 2, 'n': 3}, {}, {'x': [1, 2, 3, 4, 5, 6]}),
                         {'y': [-5, -11, -4, -10, -3, -9], 'r': [6, 15]})
        spec = {'kind': 'reduce', 'inputs': {'x': 'i32[n]', 'o': 'i32[k]'}, 'operator': 'add',
                'segments': {'offsets': 'o'}, 'outputs': {'y': {'type': 'i32[n]', 'value': 'x - r'}}}
        self.assertEqual(evaluate(spec, {'n': 4, 'k': 3}, {}, {'x': [1, 2, 3, 4], 'o': [1, 1, 3]})['y'],
                         [KEEP, -3, -2, KEEP])

    def test_sums_inside(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'i32[n, f]', 'c': 'i32[k, f]'}, 'over': 'k', 'operator': 'argmin',
                'map': {'value': 'sum(f, (x - c) * (x - c))', 'index': 'index(k)'},
                'outputs': {'member': {'type': 'i64[n]', 'value': 'r.index'}}}
        sizes, data = {'n': 2, 'f': 2, 'k': 2}, {'x': [1, 9, 5, 5], 'c': [6, 4, 0, 8]}
        self.assertEqual(evaluate(spec, sizes, {}, data), {'member': [1, 0]})
        for value, result in (('product(f, x + i32(index(f)))', [10, 30]), ('least(f, x) - greatest(f, x)', [-8, 0]),
                              ('i32(all(f, x > 4)) + i32(any(f, x == 9))', [1, 1])):
            spec = {'kind': 'map', 'inputs': {'x': 'i32[n, f]'}, 'outputs': {'y': {'type': 'i32[n]', 'value': value}}}
            self.assertEqual(evaluate(spec, {'n': 2, 'f': 2}, {}, data)['y'], result)
            self.assertEqual(len(evaluate(spec, {'n': 2, 'f': 0}, {}, {'x': []})['y']), 2)

    def test_contract(self):
        """4097 * 4097 = 16785409 has no float: rounded it is 16785408."""
        x, square = [4097.0], 16785408.0
        for contract, left in (('true', 1.0), ('false', 0.0)):
            spec = {'kind': 'map', 'contract': contract, 'inputs': {'x': 'f32[n]', 'w': 'f32[n]'}, 'outputs': {'y': {'type': 'f32[n]', 'value': 'x * x - w'}}}
            self.assertEqual(evaluate(spec, {'n': 1}, {}, {'x': x, 'w': [square]})['y'], [left])
            spec['inputs']['x'], spec['outputs']['y']['value'] = 'f32[n, f]', 'sum(f, x * x) - w'
            self.assertEqual(evaluate(spec, {'n': 1, 'f': 2}, {}, {'x': x + x, 'w': [2 * square]})['y'], [0.0])
            self.assertEqual(evaluate(spec, {'n': 1, 'f': 2}, {}, {'x': [1.0] + x, 'w': [square]})['y'], [2 * left])

    def test_nan_alone(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'f32[n]'}, 'operator': 'min', 'outputs': {'r': 'f32'}}
        self.assertTrue(same(evaluate(spec, {'n': 1}, {}, {'x': [NAN]})['r'][0], NAN))
        self.assertEqual(evaluate(spec, {'n': 0}, {}, {'x': []})['r'][0], INF)

    def test_sum_of_infinities(self):
        def total(y, x):
            spec = {'kind': 'reduce', 'inputs': {'x': 'f32[n]', 'y': 'f32[n]'}, 'operator': 'add', 'map': 'y - sinh(x)', 'outputs': {'r': 'f32'}}
            return evaluate(spec, {'n': len(x)}, {}, {'x': x, 'y': y})['r'][0]
        self.assertEqual(total([-INF, 1.0], [1.0, INF]), -INF)
        self.assertTrue(same(total([INF, 1.0], [1.0, INF]), NAN))
        self.assertIs(total([1.0, 1.0], [1.0, 89.4159]), UNKNOWN)  # sinh may be the largest number or infinite

    def test_own_operator(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'i32[n]'}, 'map': {'first': 'x', 'count': '1'},
                'operator': {'state': {'first': 'i32', 'count': 'i32'}, 'let': {'c': 'a.count + b.count'},
                             'combine': {'first': 'if a.count > 0 then a.first else b.first', 'count': 'c'}},
                'outputs': {'f': {'type': 'i32', 'value': 'r.first'}, 'c': {'type': 'i32', 'value': 'r.count'}}}
        self.assertEqual(evaluate(spec, {'n': 3}, {}, {'x': [7, 8, 9]}), {'f': [7], 'c': [3]})
        with self.assertRaises(Refused):
            evaluate(spec, {'n': 0}, {}, {'x': []})

    def test_argmin(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'f32[n]'}, 'map': {'value': 'x', 'index': 'index(n)'},
                'operator': 'argmin', 'outputs': {'i': {'type': 'i64', 'value': 'r.index'}}}
        self.assertEqual(evaluate(spec, {'n': 4}, {}, {'x': [NAN, 2.0, 1.0, 1.0]}), {'i': [2]})

    def test_narrow_sum(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'i8[n]'}, 'operator': 'add', 'outputs': {'s': 'i8', 'r': 'i32'}}
        self.assertEqual(evaluate(spec, {'n': 3}, {}, {'x': [100, 100, 100]}), {'s': [44], 'r': [300]})

    def test_scan(self):
        spec = {'kind': 'scan', 'inputs': {'x': 'i32[m, n]'}, 'operator': 'add', 'mode': 'exclusive',
                'outputs': {'before': 'i32[m, n]', 'row_sum': 'i32[m]'}}
        data = {'x': [1, 2, 3, 4, 5, 6]}
        self.assertEqual(evaluate(spec, {'m': 2, 'n': 3}, {}, data),
                         {'before': [0, 1, 3, 0, 4, 9], 'row_sum': [6, 15]})
        spec.update(init='10', direction='reverse')
        self.assertEqual(evaluate(spec, {'m': 2, 'n': 3}, {}, data),
                         {'before': [15, 13, 10, 21, 16, 10], 'row_sum': [16, 25]})

    def test_scan_by(self):
        spec = {'kind': 'scan', 'inputs': {'key': 'i32[m, n]', 'x': 'i32[m, n]'}, 'by': 'key', 'map': 'x', 'operator': 'add',
                'mode': 'exclusive', 'init': '10', 'outputs': {'before': 'i32[m, n]', 'all': {'type': 'i32[2, m]', 'value': 'total'}}}
        data = {'key': [0, 1, 0, 1, 5, 1], 'x': [1, 2, 3, 4, 5, 6]}
        self.assertEqual(evaluate(spec, {'m': 2, 'n': 3}, {}, data),
                         {'before': [10, 10, 11, 10, 10, 14], 'all': [14, 10, 12, 20]})

    def test_offsets(self):
        spec = {'kind': 'scan', 'inputs': {'x': 'i32[n]', 'off': 'i32[k]'}, 'operator': 'add',
                'segments': {'offsets': 'off'}, 'outputs': {'s': 'i32[n]', 't': {'type': 'i32[k-1]', 'value': 'total'}}}
        data = {'x': [1, 2, 3, 4], 'off': [1, 1, 3]}
        self.assertEqual(evaluate(spec, {'n': 4, 'k': 3}, {}, data), {'s': [KEEP, 2, 5, KEEP], 't': [0, 5]})
        del spec['outputs']['t']
        self.assertEqual(evaluate(spec, {'n': 2, 'k': 0}, {}, {'x': [1, 2], 'off': []}), {'s': [KEEP, KEEP]})

    def test_flags(self):
        spec = {'kind': 'scan', 'inputs': {'x': 'i32[n]', 'f': 'bool[n]'}, 'map': 'x', 'operator': 'add',
                'segments': {'flags': 'f'}, 'direction': 'reverse', 'outputs': {'s': 'i32[n]'}}
        data = {'x': [1, 2, 3, 4], 'f': [False, False, True, False]}
        self.assertEqual(evaluate(spec, {'n': 4}, {}, data), {'s': [3, 2, 7, 4]})

    def stencil(self, boundary, value, x, **more):
        spec = {'kind': 'stencil', 'inputs': {'x': 'i32[n]'}, 'boundary': boundary,
                'outputs': {'y': {'type': 'i32[n]', 'value': value}}, **more}
        return evaluate(spec, {'n': len(x)}, {}, {'x': x})['y']

    def test_boundaries(self):
        x = [1, 2, 3, 4]
        self.assertEqual(self.stencil('clamp', 'x[-2]', x), [1, 1, 1, 2])
        self.assertEqual(self.stencil('wrap', 'x[-2]', x), [3, 4, 1, 2])
        self.assertEqual(self.stencil('reflect', 'x[-2]', x), [2, 1, 1, 2])
        self.assertEqual(self.stencil('mirror', 'x[-2]', x), [3, 2, 1, 2])
        self.assertEqual(self.stencil('mirror', 'x[2]', x), [3, 4, 3, 2])
        self.assertEqual(self.stencil({'constant': '9'}, 'x[2]', x), [3, 4, 9, 9])
        self.assertEqual(self.stencil('interior', 'x[1] + x', x), [3, 5, 7, KEEP])
        self.assertEqual(self.stencil('wrap', 'x[-9]', x), [4, 1, 2, 3])
        self.assertEqual(self.stencil('mirror', 'x[7]', [5]), [5])

    def test_iterate(self):
        self.assertEqual(self.stencil('interior', 'x[1]', [1, 2, 3], iterate={'steps': '2', 'feedback': {'x': 'y'}}),
                         [3, 3, 3])
        self.assertEqual(self.stencil('wrap', 'x[1]', [1, 2, 3], iterate={'steps': '0', 'feedback': {'x': 'y'}}),
                         [1, 2, 3])

    def test_gather(self):
        spec = {'kind': 'stencil', 'inputs': {'x': 'i32[m, n]', 'off': 'i32[p, 2]'}, 'outputs': {
            'y': {'type': 'i32[m, n]', 'value': 'gather(x, off, k, add, k * 2)'}}}
        data = {'x': [1, 2, 3, 4], 'off': [0, 1, -1, 0]}
        self.assertEqual(evaluate(spec, {'m': 2, 'n': 2, 'p': 2}, {}, data), {'y': [6, 8, 10, 12]})
        self.assertEqual(evaluate(spec, {'m': 2, 'n': 2, 'p': 0}, {}, {'x': [1, 2, 3, 4], 'off': []}), {'y': [0] * 4})
        spec['inputs']['w'] = 'i32[p]'
        spec['outputs']['y']['value'] = 'gather(x, off, k, add, k * w)'
        self.assertEqual(evaluate(spec, {'m': 2, 'n': 2, 'p': 2}, {}, {**data, 'w': [1, 10]}), {'y': [12, 22, 14, 24]})

    def test_gather_of_states(self):
        spec = {'kind': 'stencil', 'inputs': {'x': 'i32[n]', 'off': 'i32[p]'}, 'operators': {'two': {
            'state': {'first': 'i64', 'second': 'i64'}, 'identity': {'first': '-9', 'second': '-9'},
            'combine': {'first': 'max(a.first, b.first)', 'second': 'max(min(a.first, b.first), max(a.second, b.second))'}}},
            'let': {'best': 'gather(x, off, k, argmax, k, index(p))'}, 'outputs': {
                'i': {'type': 'i64[n]', 'value': 'best.index'}, 'v': {'type': 'i32[n]', 'value': 'best.value'},
                's': {'type': 'i64[n]', 'value': 'gather(x, off, k, two, k, -9).second'}}}
        data = {'x': [4, 1, 4, 2], 'off': [1, 0, 2]}
        self.assertEqual(evaluate(spec, {'n': 4, 'p': 3}, {}, data), {'i': [1, 0, 1, 0], 'v': [4, 4, 4, 2], 's': [4, 2, 2, 2]})
        self.assertEqual(evaluate(spec, {'n': 1, 'p': 0}, {}, {'x': [4], 'off': []}),
                         {'i': [2**63 - 1], 'v': [-2**31], 's': [-9]})

    def test_reduction_beside(self):
        spec = {'kind': 'stencil', 'inputs': {'u': 'i32[n]'}, 'reductions': {
            'change': {'map': 'abs(out - u)', 'operator': 'max'}},
            'outputs': {'out': {'type': 'i32[n]', 'value': 'u[-1] + u[1]'}, 'change': 'i32'}}
        self.assertEqual(evaluate(spec, {'n': 3}, {}, {'u': [1, 2, 3]}), {'out': [3, 4, 5], 'change': [2]})

    def test_smaller_output(self):
        spec = {'kind': 'stencil', 'inputs': {'u': 'i32[n]'}, 'outputs': {'d': {'type': 'i32[n-1]', 'value': 'u[1] - u'}}}
        self.assertEqual(evaluate(spec, {'n': 3}, {}, {'u': [1, 2, 4]}), {'d': [1, 2]})

    def test_undecided(self):
        spec = {'kind': 'reduce', 'inputs': {'x': 'f32[n]'}, 'operator': 'add', 'outputs': {
            's': {'type': 'i32', 'value': 'if r > 0.0 then 1 else 0'}}}
        self.assertIs(evaluate(spec, {'n': 3}, {}, {'x': [0.1, 0.2, -0.3]})['s'][0], UNKNOWN)


class Places(unittest.TestCase):
    def run_map(self, output, values, sizes):
        spec = {'kind': 'map', 'inputs': {'x': 'i32[n]'}, 'outputs': {'y': output}}
        return evaluate(spec, {'n': len(values), **sizes}, {}, {'x': values})['y']

    def test_alone(self):
        entry = {'type': 'i32[k]', 'at': 'x - 1', 'value': 'x'}
        self.assertEqual(self.run_map(entry, [3, 0, 1, 9], {'k': 4}), [1, KEEP, 3, KEEP])
        self.assertEqual(self.run_map({**entry, 'initial': '7'}, [3, 0, 1, 9], {'k': 4}), [1, 7, 3, 7])
        with self.assertRaises(Refused):
            self.run_map(entry, [3, 3], {'k': 4})

    def test_meeting(self):
        entry = {'type': 'i32[2, k]', 'at': ['x & 1', 'x / 2'], 'value': 'x', 'combine': 'add', 'initial': '10'}
        self.assertEqual(self.run_map(entry, [3, 2, 3, 5], {'k': 2}), [10, 12, 10, 16])

    def test_running_state(self):
        spec = {'kind': 'scan', 'inputs': {'x': 'i32[n]'}, 'map': 'i64(x % 2)', 'operator': 'add', 'mode': 'exclusive',
                'outputs': {'y': {'type': 'i32[n]', 'at': 'if x % 2 == 1 then s else n - 1 - (index(n) - s)', 'value': 'x'}}}
        self.assertEqual(evaluate(spec, {'n': 5}, {}, {'x': [1, 4, 3, 6, 5]})['y'], [1, 3, 5, 6, 4])


if __name__ == '__main__':
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f'{result.testsRun - bad} passed, {bad} failed')
    sys.exit(bad != 0)
