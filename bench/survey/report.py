# SPDX-License-Identifier: Apache-2.0
"""report - the tables of the survey."""
import collections

NEAR_BEST, NEAR_LIMIT, NEVER = 1.05, 1.25, 1.3
STEPS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3)


def share(values, most):
    """Of the values, the part that is at most `most`, in percent."""
    return 100 * sum(v <= most for v in values) / len(values) if values else float('nan')


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] if values else float('nan')


def to_best(row):
    return row['default_us'] / row['best_us']


def to_limit(row):
    return row['default_us'] / row['limit_us']


def sizes_of(row):
    return ' '.join(f'{k}={n}' for k, n in row['sizes'].items())


def distribution(name, values):
    head = f'{name:<34}' + ''.join(f'{f"<={s}":>8}' for s in STEPS) + f'{"median":>9}{"p90":>7}{"worst":>8}\n'
    line = f'{f"share of {len(values)}, percent":<34}' + ''.join(f'{share(values, s):8.1f}' for s in STEPS)
    return head + line + f'{quantile(values, 0.5):9.3f}{quantile(values, 0.9):7.2f}{max(values, default=float("nan")):8.2f}\n'


def worst(rows, ratio, count, what):
    text = f'\nworst by {what}\n{"problem":>14}{"default":>10}{"best":>10}{"limit":>10}{"/best":>7}{"/limit":>7}  family, sizes: default -> best\n'
    for r in sorted(rows, key=ratio, reverse=True)[:count]:
        text += (f'{r["seed"] + "/" + str(r["index"]):>14}{r["default_us"]:10.1f}{r["best_us"]:10.1f}{r["limit_us"]:10.1f}{to_best(r):7.2f}'
                 f'{to_limit(r):7.2f}  {r["family"]}, {sizes_of(r)}: {r["strategy"]}.{r["case"]} -> {r["best"]}\n')
    return text


def families(rows):
    groups = collections.defaultdict(list)
    for r in rows:
        groups[r['family']].append(r)
    text = f'\n{"family":<44}{"problems":>9}{"near best":>11}{"worst":>7}{"near limit":>12}{"median":>8}\n'
    for name, group in sorted(groups.items(), key=lambda g: -len(g[1])):
        best, limit = [to_best(r) for r in group], [to_limit(r) for r in group]
        text += f'{name:<44}{len(group):9}{share(best, NEAR_BEST):10.0f}%{max(best):7.2f}{share(limit, NEAR_LIMIT):11.0f}%{quantile(limit, 0.5):8.2f}\n'
    return text


def report(rows, count):
    """All tables of the rows of a results file."""
    problems = [r for r in rows if 'index' in r]
    good, failed = [r for r in problems if 'default_us' in r], [r for r in problems if 'default_us' not in r]
    memory = [r for r in good if r['bound'] == 'memory']
    best, limit = [to_best(r) for r in good], [to_limit(r) for r in memory]
    text = f'{len(good)} problems measured, {len(failed)} not'
    rates = [r['rate'] for r in rows if 'rate' in r]
    text += f'; a copy of 1 GiB: {min(rates):.2f} to {max(rates):.2f} TB/s\n' if rates else '\n'
    text += f'default within 5 % of the best: {share(best, NEAR_BEST):.1f} % (goal 95)\n'
    text += f'default more than {NEVER} times the best: {sum(b > NEVER for b in best)} (goal 0)\n'
    text += f'bound by memory, default within {NEAR_LIMIT} of the limit: {share(limit, NEAR_LIMIT):.1f} % of {len(memory)} (goal 90)\n\n'
    text += distribution('default / best', best) + distribution('default / limit, bound by memory', limit)
    text += distribution('best / limit, bound by memory', [r['best_us'] / r['limit_us'] for r in memory])
    text += families(good) + worst(good, to_best, count, 'default / best') + worst(good, to_limit, count, 'default / limit')
    for r in failed:
        text += f'\nnot measured: {r["seed"]}/{r["index"]} {r["family"]}, {sizes_of(r)}: {r["failed"]}'
    wrong = [r for r in good if 'wrong' in r]
    text += ''.join(f'\nwrong results: {r["seed"]}/{r["index"]} {" ".join(r["wrong"])}' for r in wrong)
    return text + '\n' * bool(failed or wrong)


def spec_table(rows, times):
    """CSV of the specs, the slowest beside their limit first."""
    rate = f'{times[-1][0] / times[-1][1] * 1e-6:.3f}' if times else 'not measured'
    text = f'# TB/s of a copy: {rate}\nspec,extents,sizes,strategy,case,us,TB/s,limit_us,bound,share\n'
    good = [r for r in rows if 'us' in r]
    for r in sorted(good, key=lambda r: r['limit_us'] / r['us']):
        text += (f'{r["spec"]},{r["extents"]},{sizes_of(r)},{r["strategy"]},{r["case"]},{r["us"]:.2f},{r["bytes"] / r["us"] * 1e-6:.3f},'
                 f'{r["limit_us"]:.2f},{r["bound"]},{r["limit_us"] / r["us"]:.3f}\n')
    parts = [r['limit_us'] / r['us'] for r in good]
    text += ''.join(f'# {r["spec"]} {r["extents"]}: {r["failed"]}\n' for r in rows if 'failed' in r)
    counts = ', '.join(f'{sum(p < x for p in parts)} below {x:.0%}' for x in (0.88, 0.8, 0.5, 0.25))
    return text + f'# {len(parts)} rows: {counts}\n'
