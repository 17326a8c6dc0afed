# SPDX-License-Identifier: Apache-2.0
"""expr.py - expressions of the spec language: parsed, typed, and translated to Python, from docs/spec-language.md.

A scope says what names mean: resolve(NAME), neighbour(NAME, OFFSETS), index(DIMENSION), gather(...), at(...), sum(...) each give a
Value (Python text, type).  The type of a structure is a tuple of (field, type).  A Compiler collects the functions that
its texts call.
"""
import re

from arith import CONVERT, TYPES, int_range, is_float, is_int, lossless
from operations import COMPARE, FUNCTIONS, both, either, negate_bool, operation, pick

WORDS = {'if', 'then', 'else', 'and', 'or', 'not', 'true', 'false', 'inf', 'nan'}
TOKEN = re.compile(r'\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)|(<<|>>|<=|>=|==|!=|&&|\|\||.))', re.S)
LEVELS = [('or', '||'), ('and', '&&'), None, ('==', '!=', '<', '<=', '>', '>='), ('|',), ('^',), ('&',), ('<<', '>>'),
          ('+', '-'), ('*', '/', '%')]
NOT_LEVEL, COMPARE_LEVEL, PREFIX_LEVEL = 2, 3, len(LEVELS)
SUMS = {'sum': 'add', 'product': 'mul', 'least': 'min', 'greatest': 'max', 'all': 'and', 'any': 'or'}
SAME = {'||': 'or', '&&': 'and'}


class SpecError(Exception):
    """The spec is not well-typed, as this reading of the page has it."""


class Literal(str):
    """What type a literal has that nothing decides: 'int' or 'real'."""


INT, REAL = Literal('int'), Literal('real')


# ---- parsing -----------------------------------------------------------------------------------
class Parser:
    def __init__(self, text):
        self.text, self.tokens, self.at = text, [], 0
        for number, name, sign in TOKEN.findall(text.strip()):
            self.tokens.append(('number', number) if number else ('name', name) if name else ('sign', sign))
        self.tokens.append(('end', ''))

    def peek(self):
        return self.tokens[self.at][1]

    def take(self, wanted=None):
        kind, text = self.tokens[self.at]
        if wanted is not None and text != wanted:
            raise SpecError(f'{wanted!r} expected at {text!r} in {self.text!r}')
        self.at += 1
        return kind, text

    def whole(self):
        node = self.expression()
        if self.tokens[self.at][0] != 'end':
            raise SpecError(f'{self.peek()!r} left over in {self.text!r}')
        return node

    def expression(self):
        return self.conditional() if self.peek() == 'if' else self.binary(0)

    def conditional(self):
        self.take('if')
        c = self.expression()
        self.take('then')
        a = self.expression()
        self.take('else')
        return ('if', c, a, self.expression())

    def operand(self, level):
        return self.conditional() if self.peek() == 'if' else self.binary(level)

    def binary(self, level):
        if level == PREFIX_LEVEL:
            return self.prefix()
        if level == NOT_LEVEL:
            if self.peek() in ('not', '!'):
                self.take()
                return ('not', self.operand(level))
            return self.binary(level + 1)
        node = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            sign = self.take()[1]
            node = ('binary', SAME.get(sign, sign), node, self.operand(level + 1))
            if level == COMPARE_LEVEL and self.peek() in LEVELS[level]:
                raise SpecError('comparisons do not chain')
        return node

    def prefix(self):
        if self.peek() in ('-', '~'):
            sign = self.take()[1]
            return ('prefix', sign, self.conditional() if self.peek() == 'if' else self.prefix())
        node = self.primary()
        while self.peek() in ('.', '['):
            if self.take()[1] == '.':
                node = ('field', node, self.take()[1])
            else:
                node = ('neighbour', node[1], self.offsets())
        return node

    def offsets(self):
        result = []
        while True:
            sign = 1
            while self.peek() in ('-', '+'):
                sign = -sign if self.take()[1] == '-' else sign
            result.append(sign * int(self.take()[1]))
            if self.take()[1] == ']':
                return tuple(result)

    def primary(self):
        kind, text = self.take()
        if kind == 'number':
            return ('literal', text)
        if text == '(':
            node = self.expression()
            self.take(')')
            return node
        if kind != 'name':
            raise SpecError(f'{text!r} is no operand in {self.text!r}')
        if text in ('true', 'false', 'inf', 'nan'):
            return ('literal', text)
        if self.peek() != '(':
            return ('name', text)
        if text == 'at':
            args = self.arguments()
            return ('at', args[0][1], args[1:])
        if text in SUMS:
            dimension, term = self.arguments()
            return ('sum', text, dimension[1], term)
        return self.gather() if text == 'gather' else ('call', text, self.arguments())

    def arguments(self):
        self.take('(')
        args = [self.expression()]
        while self.peek() == ',':
            self.take()
            args.append(self.expression())
        self.take(')')
        return args

    def gather(self):
        self.take('(')
        words = []
        for _ in range(4):
            words.append(self.take()[1])
            self.take(',')
        nodes = [self.expression()]
        while self.peek() == ',':
            self.take()
            nodes.append(self.expression())
        self.take(')')
        return ('gather', *words, nodes)


def parse(text):
    return Parser(str(text)).whole()


def is_product(node):
    return node[:2] == ('binary', '*')


# ---- types -------------------------------------------------------------------------------------
def join(a, b):
    if isinstance(a, Literal) and isinstance(b, Literal):
        return REAL if REAL in (a, b) else INT
    if isinstance(a, Literal) or isinstance(b, Literal):
        return b if isinstance(a, Literal) else a
    if a != b:
        raise SpecError(f'{a} beside {b}')
    return a


def literal_type(text):
    return 'bool' if text in ('true', 'false') else INT if text.isdigit() else REAL


def natural(node, scope):
    """The type of a literal that nothing decides."""
    kind = node[0]
    if kind == 'literal':
        return 'f32' if not node[1].isdigit() else 'i32' if int(node[1]) < 2 ** 31 else 'i64'
    if kind == 'name':
        return natural(scope.lets[node[1]], scope)
    parts = {'if': node[2:], 'binary': node[2:], 'prefix': node[2:], 'call': node[-1][node[1] == 'select':]}[kind]
    kinds = [natural(n, scope) for n in parts]
    return 'f32' if 'f32' in kinds else 'i64' if 'i64' in kinds else 'i32'


def type_of(node, scope):
    kind = node[0]
    if kind == 'literal':
        return literal_type(node[1])
    if kind == 'name':
        return scope.resolve(node[1])[1]
    if kind == 'field':
        fields = dict(type_of(node[1], scope))
        return fields[node[2]]
    if kind == 'neighbour':
        return scope.neighbour(node[1], node[2])[1]
    if kind == 'prefix':
        return type_of(node[2], scope)
    if kind == 'not':
        return 'bool'
    if kind == 'if':
        return join(type_of(node[2], scope), type_of(node[3], scope))
    if kind == 'binary':
        return 'bool' if node[1] in COMPARE or node[1] in ('and', 'or') else \
            join(type_of(node[2], scope), type_of(node[3], scope))
    if kind in ('gather', 'at', 'sum'):
        return getattr(scope, kind)(node[1:])[1]
    return call_type(node, scope)


def call_type(node, scope):
    name, args = node[1], node[2]
    if name in TYPES:
        return name
    if name == 'index':
        return 'i64'
    if name == 'select':
        return join(type_of(args[1], scope), type_of(args[2], scope))
    if name in ('isnan', 'isinf'):
        return 'bool'
    if name not in FUNCTIONS:
        raise SpecError(f'no function {name}')
    result = type_of(args[0], scope)
    for a in args[1:]:
        result = join(result, type_of(a, scope))
    return result


# ---- translation to Python ---------------------------------------------------------------------
class Compiler:
    """Texts of Python, and the names that they use."""

    def __init__(self, contract=False):
        self.contract = contract
        self.names = {'pick': pick, 'both': both, 'either': either, 'negate_bool': negate_bool}

    def call(self, function, name, *args):
        self.names[name] = function
        return f'{name}({", ".join(args)})'

    def operate(self, sign, t, *args):
        spelled = 'op_' + ''.join(c if c.isalnum() else str(ord(c)) for c in sign) + '_' + t
        return self.call(operation(sign, t), spelled, *args)

    def constant(self, value):
        name = f'k{len(self.names)}'
        self.names[name] = value
        return name

    def text(self, node, scope, wanted=None):
        """(text, type); a literal takes the wanted type."""
        t = type_of(node, scope)
        if isinstance(t, Literal):
            t = wanted if wanted is not None else natural(node, scope)
        elif wanted is not None and wanted != t:
            raise SpecError(f'{t} where {wanted} is needed')
        return getattr(self, 'on_' + node[0])(node, scope, t), t

    def on_literal(self, node, scope, t):
        text = node[1]
        if text in ('true', 'false'):
            return 'True' if text == 'true' else 'False'
        if is_int(t):
            if not text.isdigit() or int(text) > int_range(t)[1]:
                raise SpecError(f'{text} does not fit {t}')
            return self.constant(int(text))
        if t == 'bool':
            raise SpecError(f'{text} is no bool')
        if text.isdigit():
            return self.constant(CONVERT[t](int(text)))
        return self.constant(CONVERT[t](float(text)))

    def on_name(self, node, scope, t):
        return scope.resolve(node[1], t)[0]

    def on_neighbour(self, node, scope, t):
        return scope.neighbour(node[1], node[2])[0]

    def on_gather(self, node, scope, t):
        return scope.gather(node[1:])[0]

    def on_at(self, node, scope, t):
        return scope.at(node[1:])[0]

    def on_sum(self, node, scope, t):
        return scope.sum(node[1:])[0]

    def on_field(self, node, scope, t):
        text, fields = self.text(node[1], scope)
        return f'{text}[{[f for f, _ in fields].index(node[2])}]'

    def on_prefix(self, node, scope, t):
        inner = node[2]
        if node[1] == '-' and inner[0] == 'literal' and is_int(t):
            if not inner[1].isdigit() or -int(inner[1]) < int_range(t)[0]:
                raise SpecError(f'-{inner[1]} does not fit {t}')
            return self.constant(-int(inner[1]))
        if node[1] == '~' and not is_int(t) or t == 'bool':
            raise SpecError(f'{node[1]} of {t}')
        return self.operate('neg' if node[1] == '-' else '~', t, self.text(inner, scope, t)[0])

    def on_not(self, node, scope, t):
        return f'negate_bool({self.text(node[1], scope, "bool")[0]})'

    def on_if(self, node, scope, t):
        arms = ', '.join(self.text(n, scope, t)[0] for n in node[2:])
        return f'pick({self.text(node[1], scope, "bool")[0]}, {arms})'

    def on_binary(self, node, scope, t):
        sign, a, b = node[1:]
        if sign in ('and', 'or'):
            pair = ', '.join(self.text(n, scope, 'bool')[0] for n in (a, b))
            return f'{"both" if sign == "and" else "either"}({pair})'
        if sign in COMPARE:
            t = join(type_of(a, scope), type_of(b, scope))
            t = natural(('binary', sign, a, b), scope) if isinstance(t, Literal) else t
        elif t == 'bool' and sign not in '&|^' or is_float(t) and sign in ('&', '|', '^', '<<', '>>'):
            raise SpecError(f'{sign} of {t}')
        if self.contract and sign in '+-' and is_float(t) and (is_product(a) or is_product(b)):
            return self.fused(sign, a, b, scope, t)
        return self.operate(sign, t, self.text(a, scope, t)[0], self.text(b, scope, t)[0])

    def fused(self, sign, a, b, scope, t):
        """A product and the sum that takes it, rounded once: of two products the right one."""
        x, y, z = (self.text(n, scope, t)[0] for n in ((*b[2:], a) if is_product(b) else (*a[2:], b)))
        if sign == '-' and is_product(b):
            x = self.operate('neg', t, x)
        elif sign == '-':
            z = self.operate('neg', t, z)
        return self.operate('fma', t, x, y, z)

    def convertible(self, node, scope, t):
        """What a conversion converts: literals take its type, where they fit and their operations exist for it."""
        if isinstance(type_of(node, scope), Literal):
            try:
                return self.text(node, scope, t)[0]
            except SpecError:
                pass
        return self.text(node, scope)[0]

    def on_call(self, node, scope, t):
        name, args = node[1], node[2]
        if name == 'index':
            return scope.index(args[0][1])[0]
        if name == 'select':
            return self.on_if(('if', *args), scope, t)
        if name in TYPES:
            return self.call(CONVERT[name], 'to_' + name, self.convertible(args[0], scope, name))
        if name in ('isnan', 'isinf'):
            t = type_of(args[0], scope)
        count, kind = FUNCTIONS[name]
        if count != len(args) or kind == 'F' and not is_float(t) or kind == 'I' and not is_int(t) or t == 'bool':
            raise SpecError(f'{name} of {len(args)} {t}')
        return self.operate(name, t, *(self.text(a, scope, t)[0] for a in args))


def converted(compiler, text, a, b):
    """The implicit conversion of a map or a default result."""
    if a == b:
        return text
    if isinstance(a, tuple) or isinstance(b, tuple) or not lossless(a, b):
        raise SpecError(f'{a} does not become {b} by itself')
    return compiler.call(CONVERT[b], 'to_' + b, text)


