#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""survey.py PTXGEN - bench/survey without a GPU: its problems, its limits, its report, and how a portion goes on."""
import importlib.machinery
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SURVEY = os.path.join(HERE, '..', 'bench', 'survey')
sys.path.insert(0, SURVEY)
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader('survey', os.path.join(SURVEY, 'survey'))
survey = importlib.util.module_from_spec(importlib.util.spec_from_loader('survey', loader))
loader.exec_module(survey)

CHECKED, EXPLAINED = 80, 16
PTXGEN = sys.argv[1]
failures = 0


def expect(true, what):
    global failures
    failures += not true
    print(f'{"ok  " if true else "FAIL"} {what}')


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9)


def generator(folder):
    code = 'import hashlib, problems; print(hashlib.sha256(repr([problems.problem("tune", i) for i in range(50)]).encode()).hexdigest())'
    hashes = {subprocess.run([sys.executable, '-B', '-c', code], cwd=SURVEY, env={**os.environ, 'PYTHONHASHSEED': str(k)},
                             capture_output=True, text=True, check=True).stdout for k in (1, 2)}
    expect(len(hashes) == 1, 'a seed gives the same problems in every process')
    drawn = {seed: [survey.problems.problem(seed, i) for i in range(CHECKED)] for seed in ('tune', 'judge')}
    expect(sum(a == b for a, b in zip(*drawn.values())) == 0, 'another seed gives other problems')
    wrong = []
    for i, (_, text, sizes) in enumerate(drawn['judge']):
        path = os.path.join(folder, f'q{i}.yaml')
        with open(path, 'w', encoding='utf8') as f:
            f.write(text)
        steps = [['check', path]]
        if i < EXPLAINED:
            steps += [['explain', path, '--arch=sm_90', '--gpu=H200', '--json', '--tuning=off', *survey.size_args(sizes)]]
        for step in steps:
            done = subprocess.run([PTXGEN, *step], capture_output=True, text=True, env={**os.environ, 'PTXGEN_PTXAS': 'off'})
            case = json.loads(done.stdout)['at']['case'] if step[0] == 'explain' and done.returncode == 0 else 'any'
            wrong += [f'{i} {step[0]} {sizes}: {done.stderr}\n{text}'] if done.returncode or not case else []
    expect(not wrong, 'all problems are specs, and a case takes their sizes' + ''.join('\n' + w for w in wrong))


def limits():
    times = [(1000, 2.0), (4000, 4.0), (16000, 16.0)]
    expect(close(survey.copy_us(times, 10), 2.0), 'a copy takes no less than the smallest one')
    expect(close(survey.copy_us(times, 2000), math.sqrt(8)), 'between two copies: a power law')
    expect(close(survey.copy_us(times, 8000), 8.0), 'between the next two')
    expect(close(survey.copy_us(times, 32000), 32.0), 'above the largest: its rate')
    at = {'bytes_read': 3000, 'bytes_written': 1000, 'arithmetic_us': 3.0, 'roofline_us': 7.0}
    expect(survey.limit_of(times, at, '') == (4.0, 'memory'), 'the longer of memory and arithmetic')
    expect(survey.limit_of(times, {**at, 'arithmetic_us': 5.0}, 'iterate: {steps: 4, feedback: {u: y}}') == (20.0, 'arithmetic'), 'times steps')
    sizes = survey.spec_sizes('size n\nsize k\nspace [n] over n\n', survey.ODD)
    expect(sizes == {'n': 2**26 - 1, 'k': 65535}, 'sizes of a spec with segments')
    expect(survey.spec_sizes('size d\nsize m\nspace [d, m, n]\nsize n\n', survey.EVEN) == {'d': 400, 'm': 400, 'n': 416}, 'three dimensions')


def made(index, default, best, limit, **more):
    return {'seed': 's', 'index': index, 'family': 'f' if index else 'g', 'sizes': {'n': index}, 'limit_us': limit, 'bound': 'memory', 'strategy': 'a',
            'case': 'b', 'default_us': default, 'best_us': best, 'best': 'v', **more}


def report():
    rows = [{'copy': [[1, 1]], 'rate': 4.25}, made(0, 104, 100, 100), made(1, 140, 100, 90), made(2, 110, 110, 100),
            made(3, 50, 40, 10, bound='arithmetic'), {'seed': 's', 'index': 4, 'family': 'f', 'sizes': {}, 'failed': 'why'}]
    text = survey.report.report(rows, 2)
    for what in ('4 problems measured, 1 not', '4.25 to 4.25 TB/s', 'within 5 % of the best: 50.0 %', 'more than 1.3 times the best: 1 ',
                 'within 1.25 of the limit: 66.7 % of 3', 'not measured: s/4 f, : why'):
        expect(what in text, f'the report says: {what}')
    best, limit = (text.split(f'worst by default / {name}')[1].splitlines()[2:4] for name in ('best', 'limit'))
    expect([line.split()[0] for line in best] == ['s/1', 's/3'] and best[0].split()[4:6] == ['1.40', '1.56'], 'the worst beside the best')
    expect([line.split()[0] for line in limit] == ['s/3', 's/1'], 'the worst beside the limit')
    table = survey.report.spec_table([{'spec': 'x', 'extents': 'odd', 'sizes': {'n': 3}, 'strategy': 'a', 'case': 'b', 'bytes': 4e6, 'us': 2.0,
                                       'limit_us': 1.0, 'bound': 'memory'}, {'spec': 'y', 'extents': 'odd', 'failed': 'why'}], [(4e6, 1.0)])
    expect('x,odd,n=3,a,b,2.00,2.000,1.00,memory,0.500\n' in table and '# y odd: why' in table, 'a row of the specs')
    expect('# 1 rows: 1 below 88%, 1 below 80%, 0 below 50%' in table, 'the sum of the specs')


def portions(folder):
    file = os.path.join(folder, 'results.jsonl')
    command = [sys.executable, '-B', os.path.join(SURVEY, 'survey'), 'run', file, '--ptxgen', PTXGEN, '--device=cpu', '--limit=2', '--budget=1', '--count=2', '--jobs=1']
    subprocess.run(command + ['--seconds=0.001'], capture_output=True, check=True)
    expect(survey.read_rows(file) == [], 'no time: no problem, and no failure')
    subprocess.run(command, capture_output=True, check=True)
    rows = survey.read_rows(file)
    expect(sorted(r['index'] for r in rows) == [0, 1] and all(r.get('best_us', 0) > 0 for r in rows), f'two problems are measured: {rows}')
    with open(file, 'w', encoding='utf8') as f:
        f.write(json.dumps(rows[0]) + '\n' + json.dumps(rows[1])[:30])
    subprocess.run(command, capture_output=True, check=True)
    again = survey.read_rows(file)
    expect(again[0] == rows[0] and [r['index'] for r in again] == [r['index'] for r in rows], 'a second start does what is left')
    os.unlink(file)
    subprocess.run(command + ['--limit=0'], capture_output=True, check=True)
    rows = survey.read_rows(file)
    expect([r.get('best') for r in rows] == ['default', 'default'] and all(r['default_us'] > 0 for r in rows), f'the defaults alone: {rows}')


def one_fails():
    """A problem that cannot be made, or a program that is not there, is a row; what is left goes on."""
    made = survey.draw
    survey.draw = lambda seed, index, host: 1 / 0
    try:
        row = survey.measure(type('M', (), {'host': True}), 's', 7, [])
    finally:
        survey.draw = made
    expect(row['index'] == 7 and 'ZeroDivisionError' in row['failed'], f'a problem that cannot be made is a row: {row}')
    expect('not measured: s/7' in survey.report.report([row], 5), 'and a line of the report')


def main():
    one_fails()
    with tempfile.TemporaryDirectory() as folder:
        generator(folder)
        portions(folder)
    limits()
    report()
    return failures > 0


if __name__ == '__main__':
    sys.exit(main())
