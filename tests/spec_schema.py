#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""spec_schema.py PTXGEN FOLDER... - all specs of the folders follow `ptxgen schema`, and specs that are wrong do not."""
import json
import pathlib
import subprocess
import sys

try:
    import jsonschema
    import yaml
except ImportError as error:
    if sys.executable == '/usr/bin/python3':
        print(error)
        sys.exit(77)
    sys.exit(subprocess.run(['/usr/bin/python3', *sys.argv], check=False).returncode)

SUM = {'kind': 'reduce', 'inputs': {'x': 'f32[n]'}, 'operator': 'add', 'outputs': {'r': 'f32'}}
STAGES = {'inputs': {'x': 'f32[n]'}, 'stages': {'a': {'kind': 'reduce', 'operator': 'add', 'outputs': {'s': 'f32'}}}, 'outputs': ['s']}
WRONG = [  # a spec, and what is added to it, or to its stage
    (SUM, {'outptus': {}}), (SUM, {'kind': 'reduec'}), (SUM, {'mode': 'exclusive'}), (SUM, {'outputs': {'r': {'type': 'f32', 'valeu': 'r'}}}),
    (SUM, {'operator': '+'}), (SUM, {'space': list('abcdefg')}), (STAGES, {'kind': 'reduec'}), (STAGES, {'name': 'b'}), (STAGES, {'fuse': 1}),
    (STAGES, {'inputs': {'x': 'f32[n]'}}), (STAGES, {'operatr': 'add'}),
]


class Loader(yaml.SafeLoader):  # pylint: disable=too-many-ancestors
    """YAML 1.2, as editors and ptxgen read it: `off` is a text."""


Loader.yaml_implicit_resolvers = {first: [(tag, rule) for tag, rule in rules if tag != 'tag:yaml.org,2002:bool' or first in 'tf']
                                  for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def references(schema):
    if isinstance(schema, dict):
        return ([schema['$ref']] if '$ref' in schema else []) + [r for item in schema.values() for r in references(item)]
    return [r for item in schema for r in references(item)] if isinstance(schema, list) else []


def main():
    ptxgen, *folders = sys.argv[1:]
    schema = json.loads(subprocess.run([ptxgen, 'schema'], capture_output=True, text=True, check=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    wrong = [f'nothing is at {r}' for r in set(references(schema)) if r.removeprefix('#/$defs/') not in schema['$defs']]
    specs = [path for folder in folders for path in sorted(pathlib.Path(folder).rglob('*.yaml'))]
    for path in specs:
        for error in validator.iter_errors(yaml.load(path.read_text(encoding='utf-8'), Loader)):
            wrong.append(f'{path}: {error.json_path}: {error.message[:200]}')
    for spec, more in WRONG:
        changed = {**spec, 'stages': {'a': {**spec['stages']['a'], **more}}} if 'stages' in spec else {**spec, **more}
        if validator.is_valid(spec) and validator.is_valid(changed):
            wrong.append(f'{more} passes')
    for text in wrong:
        print('FAIL', text)
    count = len(specs) + len(WRONG) + 1
    print(f'{count - len(wrong)} passed, {len(wrong)} failed')
    return 1 if wrong or len(specs) < 100 else 0


sys.exit(main())
