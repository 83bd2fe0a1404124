"""What try_all.py has found: a line for the terminal, and the tables of ../ENGINES.md and the README. Pure functions of its JSON."""
import statistics
import sys

from programs import PROGRAMS, own_word, preloads

HEAD = ['program', 'what it is', 'launches', 'plain ms', 'preloaded ms', 'fastest tenth', 'without launches', 'median', 'first ten', 'whole run', 'start-up s', 'GPU MiB',
        '/ own graphs', 'in graphs', 'results', 'what ended runs']


ASIDE = ('eager', 'observe', 'off', 'floor')  # variants that have no row in the first table


def ended(run):
    return run.get('rc') == 0 and not run.get('why') and 'line' in run


def line_of(run, part):
    parts = run.get('parts') or {'': run['line']}
    return parts.get(part)


def lines(runs, variant, part):
    return [line for line in (line_of(r, part) for r in runs if r['variant'] == variant and ended(r)) if line]


def mean(values):
    values = [v for v in values if isinstance(v, (int, float))]
    return statistics.mean(values) if values else None


def figure(of, key):
    """The mean over the runs of a figure, or None."""
    return mean([line['ms_per_step'] if key == 'ms' else line['extra'].get(key) for line in of])


def ratio(of, over, key):
    above, below = figure(of, key), figure(over, key)
    return above / below if above is not None and below else None


def apart(a, b):
    return max(abs(x - y) / (abs(x) + 1e-12) for x, y in zip(a, b))


def equal(base, other):
    """Whether the results of `other` are those of `base`, in words."""
    before, after = {line['hash'] for line in base}, {line['hash'] for line in other}
    if not before or not after:
        return '-'
    if len(before) > 1:
        word = 'varies'
    else:
        word = 'equal' if after == before else '**differ**'
    sums = [line['extra'].get('check') for line in base + other]
    if word != 'equal' and all(sums):
        word += ' (sums: plain %.1e, preloaded %.1e apart)' % (max([apart(sums[0], s) for s in sums[1:len(base)]] or [0]), max(apart(sums[0], s) for s in sums[len(base):]))
    return word + (', one run' if len(base) == 1 and word != 'varies' else '')


def share(stats):
    issued = {k: v for k, v in stats.get('issued', {}).items() if isinstance(v, int)}
    return sum(issued.values()), issued.get('in_graphs', 0)


def breaks(stats, most=3):
    """The kernels and calls that ended the most runs, each with its reason, and how often no graph was there."""
    rows = sorted(stats.get('breaks_by_kernel', []), key=lambda row: -row.get('runs', 0))
    said = ['%s (%s) %d' % (row.get('name') or row.get('by'), row.get('reason'), row['runs']) for row in rows if row.get('runs')][:most]
    if not said:
        plain = sorted(((k, v) for k, v in stats.get('breaks', {}).items() if isinstance(v, int) and v), key=lambda kv: -kv[1])
        said = ['%s %d' % kv for kv in plain[:most]]
    fallbacks = ['%s %d' % kv for kv in stats.get('fallbacks', {}).items() if isinstance(kv[1], int) and kv[1] and kv[0] != 'withholding_off']
    return ', '.join(said) + ('; fallbacks: ' + ', '.join(fallbacks) if fallbacks else '')


def rows(name, runs):
    """A row for each part and each variant that is preloaded, over the same without the library."""
    found = []
    parts = list(dict.fromkeys(part for r in runs if ended(r) for part in (r.get('parts') or {'': 0})))
    variants = list(dict.fromkeys(r['variant'] for r in runs))
    for part in parts:
        owns = [lines(runs, v, part) for v in variants if own_word(v) and not preloads(v)]
        for variant in variants:
            over = own_word(variant) or 'plain'
            base, mine = lines(runs, over, part), lines(runs, variant, part)
            if not preloads(variant) or not mine or variant in ASIDE:
                continue
            stats = next((r['stats'] for r in runs if r['variant'] == variant and 'stats' in r), {})
            launches, inside = share(stats)
            best = min((f for f in (figure(own, 'ms') for own in owns) if f), default=None)
            found.append({
                'program': name, 'part': part, 'variant': variant, 'over': over, 'launches': launches, 'plain': figure(base, 'ms'), 'pre': figure(mine, 'ms'),
                'ratio': ratio(mine, base, 'ms'), 'p10': ratio(mine, base, 'p10'), 'floor': ratio(lines(runs, 'floor', part), base, 'p10') if over == 'plain' else None, 'first10': (figure(mine, 'first10_ms'), figure(base, 'first10_ms')),
                'whole': ratio(mine, base, 'whole_s'), 'start': (figure(mine, 'start_s'), figure(base, 'start_s')), 'mib': (figure(mine, 'own_mib'), figure(base, 'own_mib')),
                'own': figure(mine, 'ms') / best if best and not own_word(variant) else None, 'share': inside / launches if launches else None,
                'results': equal(base, mine), 'breaks': breaks(stats)})
    return found


def shown(value, how='%.3f'):
    return '-' if value is None else how % value


def pair(two, how):
    return '-' if two == (None, None) else ' / '.join(shown(v, how) for v in two)


def label(row):
    usual = 'pre' if row['over'] == 'plain' else row['over'] + '+pre'
    return ' '.join(filter(None, [row['program'], row['part'], row['variant'] if row['variant'] != usual else row['over'] if row['over'] != 'plain' else '']))


def cells(row):
    what = PROGRAMS[row['program']]['what'] if row['program'] in PROGRAMS else ''
    first = pair(row['first10'], '%.4g')
    return [label(row), what, row['launches'], shown(row['plain'], '%.4g'), shown(row['pre'], '%.4g'), shown(row['p10']), shown(row['floor']), shown(row['ratio']), first, shown(row['whole']),
            pair(row['start'], '%.1f'), pair(row['mib'], '%d'), shown(row['own']), '-' if row['share'] is None else '%.1f %%' % (100 * row['share']), row['results'], row['breaks']]


def markdown(head, body):
    clean = [[str(cell).replace('|', '\\|').replace('\n', ' ') for cell in row] for row in body]
    return '\n'.join('| ' + ' | '.join(row) + ' |' for row in [head, ['---'] * len(head)] + clean) + '\n'


def owns_alone(name, runs):
    """What the program's own graphs are without the library: part, word, ms, over plain, start-up, memory."""
    found = []
    for variant in dict.fromkeys(r['variant'] for r in runs):
        for part in dict.fromkeys(p for r in runs if r['variant'] == variant and ended(r) for p in (r.get('parts') or {'': 0})):
            of, plain = lines(runs, variant, part), lines(runs, 'plain', part)
            if own_word(variant) and not preloads(variant) and of:
                found.append([' '.join(filter(None, [name, part, variant])), shown(figure(of, 'ms'), '%.4g'), shown(ratio(of, plain, 'ms')), shown(figure(of, 'start_s'), '%.1f'),
                              shown(figure(of, 'own_mib'), '%d'), equal(plain, of)])
    return found


def suspect(runs):
    """Whether a preloaded variant failed, or came to another result than plain runs that agree."""
    plain = {r['line']['hash'] for r in runs if r['variant'] == 'plain' and ended(r)}
    others = [r for r in runs if preloads(r['variant']) and r['variant'] != 'floor' and r.get('why') not in ('no time left', 'deadline')]
    failed = [r for r in others if r.get('rc') not in (0, None)]
    other = {r['line']['hash'] for r in others if ended(r) and not own_word(r['variant'])} - plain
    return bool(plain and (failed or len(plain) == 1 and other))


def text(name, runs):
    """For the terminal, while other programs wait: a line for each row, and what went wrong."""
    said = []
    for row in rows(name, runs):
        said.append('%-30s %s -> %s ms, ratio %s, tenth %s, first ten %s, whole %s, start %s s, %s MiB, /own %s, %s in graphs of %d, %s | %s' % (
            label(row), *(shown(row[k], '%.4g') for k in ('plain', 'pre')), *(shown(row[k]) for k in ('ratio', 'p10')), pair(row['first10'], '%.4g'), shown(row['whole']),
            pair(row['start'], '%.1f'), pair(row['mib'], '%d'), shown(row['own']), '-' if row['share'] is None else '%.1f%%' % (100 * row['share']), row['launches'], row['results'],
            row['breaks'][:160]))
    said += ['%-30s %s ms, %s of plain, start %s s, %s MiB, %s' % tuple(cells) for cells in owns_alone(name, runs)]
    for r in runs:
        if not ended(r):
            said.append('%-16s %s: rc %s %s: %s' % (name, r['variant'], r.get('rc'), r.get('why') or '', (r.get('stderr') or ['-'])[-1][:300]))
        elif r['variant'] in ASIDE:
            said.append('%-16s %s: %s ms, hash %s' % (name, r['variant'], r['line']['ms_per_step'], r['line']['hash']))
    return '\n'.join(said) or '%-16s nothing' % name


def merge(tries):
    """Of a program in several, the last one that has results."""
    results = {}
    for one in tries:
        results.update({name: runs for name, runs in one['results'].items() if any(ended(r) for r in runs) or name not in results})
    return results


def document(tries):
    results = merge(tries)
    found = [row for name, runs in results.items() for row in rows(name, runs)]
    out = ['Measured: ' + '; '.join(dict.fromkeys('%s, %s, library sha256 %s' % (t.get('machine'), t.get('when'), t.get('lib')) for t in tries)) + '.', '', markdown(HEAD, map(cells, found))]
    alone = [row for name, runs in results.items() for row in owns_alone(name, runs)]
    if alone:
        out += ['Own graphs without the library:', '', markdown(['program', 'ms', 'over plain', 'start-up s', 'GPU MiB', 'results'], alone)]
    lost = [(name, r) for name, runs in results.items() for r in runs if not ended(r)]
    if lost:
        out += ['Did not run:', ''] + ['- %s %s: rc %s, %s' % (name, r['variant'], r.get('rc'), r.get('why') or (r.get('stderr') or ['-'])[-1][:200]) for name, r in lost] + ['']
    judged = sorted((row for row in found if row['p10'] and row['program'] != 'busy'), key=lambda row: row['p10'])
    short = lambda some: markdown(['program', 'divided by the time of', 'ratio', 'results'],
                                  [[label(row), 'the plain program' if row['over'] == 'plain' else 'the same with its own graphs', shown(row['p10']), row['results']] for row in some])
    worst = [row for row in judged[5:][-5:]]
    out += ['For README.md, the five best:', '', short(judged[:5]), 'and the five worst:', '', short(worst)]
    slow = [row for row in found if row['whole'] and row['whole'] > 1.01 and row['program'] != 'busy']
    out += ['Above 1.01 of plain over the whole run: ' + (', '.join('%s %.3f' % (label(row), row['whole']) for row in slow) or 'none') + '.', '']
    return '\n'.join(out)


def write(path, tries):
    if path == '-':
        sys.stdout.write(document(tries))
        return
    with open(path, 'w') as f:
        f.write(document(tries))
