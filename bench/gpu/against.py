#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""against BUNDLE OTHER CSV [PROBLEM...] - the cells of the curated table by two builds in turns: is one of them slower now?

BUNDLE and OTHER hold bin/gpubench and lib/libptxgen.so.0; the cells are BUNDLE's, all unless problems are named.  A row of CSV is a
cell: the least of the medians of either build, and this build's time over the other's.  Cells that seem slower by more than 1 % are
measured again, up to AGAIN more times: only what stays slower is.  Lines whose cells CSV has are left out, so a second start goes on.
The last line counts the cells; the exit status is 1 if one is slower or was not measured.
"""
import csv
import os
import subprocess
import sys
import tempfile

CELL, TURNS, AGAIN, SLOWER = ['problem', 'mode', 'n', 'segment', 'extent'], 2, 3, 1.01
FIELDS = ['line'] + CELL + ['other_us', 'us', 'ratio']


def measured(bundle, specs, line):
    """Median of each cell of a line."""
    with tempfile.NamedTemporaryFile('r', suffix='.csv') as file:
        subprocess.run([bundle + '/bin/gpubench', '--specs', specs, '--no-peers', '--peers', 'none', '--samples', '15', '--csv', file.name, *line.split()],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       env={**os.environ, 'LD_LIBRARY_PATH': bundle + '/lib', 'PTXGEN_CACHE': 'off'})
        return {tuple(row[name] for name in CELL): float(row['us'])
                for row in csv.DictReader(r for r in file if not r.startswith('#')) if row['implementation'] == 'ptxgen'}


def compared(bundle, other, line):
    """(the other's, this one's) least time of each cell."""
    least = {}
    for turn in range(TURNS + AGAIN):
        if turn >= TURNS and all(new <= SLOWER * old for old, new in least.values()):
            break
        olds, news = (measured(b, bundle + '/bench/specs', line) for b in (other, bundle))
        for cell, new in news.items():
            old = olds.get(cell, float('inf'))
            least[cell] = tuple(map(min, least.get(cell, (old, new)), (old, new)))
    return least


def main():
    bundle, other, path, *problems = sys.argv[1:]
    with open(bundle + '/bench/cells', encoding='utf-8') as file:
        lines = [line.strip() for line in file if not problems or line.split()[1] in problems]
    rows = []
    if os.path.exists(path):
        with open(path, encoding='utf-8') as file:
            rows = list(csv.DictReader(file))
    there, failed = {row['line'] for row in rows}, 0
    with open(path, 'w', encoding='utf-8', newline='') as file:
        table = csv.DictWriter(file, FIELDS, lineterminator='\n')
        table.writeheader()
        table.writerows(rows)
        for line in lines:
            if line in there:
                continue
            try:
                cells = compared(bundle, other, line)
            except (subprocess.CalledProcessError, OSError) as error:
                print(f'not measured: {line}: {error}', flush=True)
                failed += 1
                continue
            for cell, (old, new) in cells.items():
                rows.append({**dict(zip(CELL, cell)), 'line': line, 'other_us': f'{old:.4f}', 'us': f'{new:.4f}', 'ratio': f'{new / old:.4f}'})
                table.writerow(rows[-1])
            file.flush()
            print(f'{max(new / old for old, new in cells.values()):.3f} at most: {line}', flush=True)
    slower = [row for row in rows if float(row['ratio']) > SLOWER]
    for row in sorted(slower, key=lambda row: -float(row['ratio'])):
        print(row['ratio'], *(row[name] for name in CELL), row['other_us'], row['us'])
    print(f'{len(rows)} cells, {len(slower)} slower by more than 1 %, {failed} lines not measured')
    return 1 if slower or failed else 0


if __name__ == '__main__':
    sys.exit(main())
