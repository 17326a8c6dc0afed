#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests.py PTXGEN SPECS SCHEMA - manifests of all applications and of a part of the other specs follow the schema."""
import json
import pathlib
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    if sys.executable == '/usr/bin/python3':
        print('python3-jsonschema is not installed')
        sys.exit(77)
    sys.exit(subprocess.run(['/usr/bin/python3', *sys.argv], check=False).returncode)


def main():
    ptxgen, specs, schema = sys.argv[1], pathlib.Path(sys.argv[2]), json.loads(pathlib.Path(sys.argv[3]).read_text())
    wrong, some = 0, sorted(specs.glob('*.yaml'))[::7] + sorted(specs.glob('apps/*.yaml'))
    for spec in some:
        done = subprocess.run([ptxgen, spec, '--emit=manifest', '-o', '-'], capture_output=True, text=True, check=False)
        try:
            manifest = json.loads(done.stdout)
            jsonschema.validate(manifest, schema)
            for stage in manifest.get('stages', []):  # docs/manifest.md: the same names in the stage's program
                names = [[a['name'] for a in stage['program'][key]] for key in ('inputs', 'outputs')]
                if names != [stage['inputs'], stage['outputs']]:
                    raise ValueError(f'stage {stage["name"]} has the arrays {names}')
        except (ValueError, jsonschema.ValidationError) as error:
            wrong += 1
            print('FAIL', spec, done.stderr, str(error)[:1000])
    example = specs.parent / 'examples/launch_manifest.py'
    if len(example.read_text().splitlines()) > 60:
        wrong += 1
        print(f'FAIL {example}: more than the 60 lines that docs/manifest.md promises')
    print(f'{len(some) - wrong} passed, {wrong} failed')
    return 1 if wrong or len(some) < 10 else 0


if __name__ == '__main__':
    sys.exit(main())
