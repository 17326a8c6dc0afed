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
            jsonschema.validate(json.loads(done.stdout), schema)
        except (ValueError, jsonschema.ValidationError) as error:
            wrong += 1
            print('FAIL', spec, done.stderr, str(error)[:1000])
    print(f'{len(some) - wrong} passed, {wrong} failed')
    return 1 if wrong or len(some) < 10 else 0


if __name__ == '__main__':
    sys.exit(main())
