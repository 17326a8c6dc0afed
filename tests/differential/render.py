# SPDX-License-Identifier: Apache-2.0
"""render.py - a spec as YAML: block style, flow style, and the ways to quote, at random."""


class Renderer:
    def __init__(self, random):
        self.random = random

    def spec(self, spec):
        keys = list(spec)
        if self.random.random() < 0.3:
            self.random.shuffle(keys)
        return ''.join(self.entry(k, spec[k], 0) for k in keys)

    def entry(self, key, value, indent):
        pad = '  ' * indent
        if isinstance(value, dict) and value:
            if indent > 0 and self.random.random() < 0.4 or not value:
                return f'{pad}{key}: {self.flow(value)}\n'
            return f'{pad}{key}:\n' + ''.join(self.entry(k, v, indent + 1) for k, v in value.items())
        if isinstance(value, list):
            return f'{pad}{key}: [{", ".join(map(self.quoted, value))}]\n'
        return f'{pad}{key}: {self.scalar(str(value))}\n'

    def flow(self, value):
        if isinstance(value, dict):
            return '{' + ', '.join(f'{k}: {self.flow(v)}' for k, v in value.items()) + '}'
        if isinstance(value, list):
            return '[' + ', '.join(map(self.quoted, value)) + ']'
        return self.quoted(value)

    def quoted(self, text):
        text = str(text)
        plain = text.replace('_', 'a').isalnum()
        if plain and self.random.random() < 0.7:
            return text
        if self.random.random() < 0.5:
            return "'" + text.replace("'", "''") + "'"
        return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '"'

    def scalar(self, text):
        first = text[:1]
        plain = first.isalnum() or first in '_(.' or first == '-' and text[1:2] not in (' ', '')
        plain = plain and ': ' not in text and ' #' not in text
        return text if plain and self.random.random() < 0.8 else self.quoted(text)
