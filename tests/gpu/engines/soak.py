#!/usr/bin/env python3
"""soak.py [options] NAME|@GROUP ...: programs of others for minutes on end, with --why, in turn; a check that nothing adds up that should not.

Each program runs plain once, with --times as many steps as usual. Then the programs run preloaded, one behind the other, again and again until --minutes
are over. Of each run must hold: it ends well; its results are the plain ones, where two plain runs agree; the counters of the library add up; it says why
(--why); and from half of its steps to the end it takes no more memory of host and GPU than the plain run, but for ROOM_MIB and its graphs. One line each; the last one counts.
Exit status: 0 all held, 1 something did not.
"""
import os
import sys
import time

import try_all

ROOM_MIB = {'host_mib': 16, 'gpu_mib': 4}
VARIES = ('openmm',)   # plain runs differ among themselves


def adds_up(stats):
    """Each op went out in a graph or by itself, and of the latter each has one reason."""
    issued = stats['issued']
    seen = sum(stats['ops'].values())
    return seen == issued['in_graphs'] + issued['eager'] and issued['eager'] == sum(stats['eager_by'].values()) and seen > 0


def grown(extra):
    """MiB from half of the steps to the end."""
    return {k: (extra['end'][k] or 0) - (extra['half'][k] or 0) for k in ROOM_MIB}


def faults(name, plain, mine):
    """What does not hold of a preloaded run."""
    if mine['rc'] != 0 or 'line' not in mine:
        return ['it ended with %s: %s' % (mine['rc'], mine.get('why') or (mine.get('stderr') or [''])[-1])]
    found = []
    if mine['line']['hash'] != plain['line']['hash'] and name not in VARIES:
        found.append('its results are others')
    if 'stats' not in mine or not adds_up(mine['stats']):
        found.append('its counters do not add up')
    if not any('cusplice: why' in s for s in mine.get('said', [])):
        found.append('it does not say why')
    usual, more = grown(plain['line']['extra']), grown(mine['line']['extra'])
    room = dict(ROOM_MIB, gpu_mib=ROOM_MIB['gpu_mib'] + mine.get('stats', {}).get('graph_bytes', 0) // 2**20)   # graphs may be built at any time
    found += ['%s grew by %d, plain by %d' % (k, more[k], usual[k]) for k in room if more[k] > max(usual[k], 0) + room[k]]
    return found


def main():
    parser = try_all.arguments()
    parser.description, parser.usage = __doc__, None
    parser.add_argument('--minutes', type=float, default=20)
    parser.add_argument('--times', type=int, default=5)
    a = parser.parse_args()
    if a.times < 2:
        parser.error('--times: 2 or more, for the first half of the steps is left out of what grows')
    a.lib, a.presets = os.path.abspath(a.lib), os.path.abspath(a.presets)
    a.deadline = a.minutes * 60
    a.set.append('why=yes')
    os.environ['TRIAL_TIMES'] = str(a.times)
    trial = try_all.Trial(a)
    names = trial.prepare(trial.names())
    runs = bad = round_number = 0
    plain, late = {}, ('deadline', 'no time left')
    while trial.end - time.time() > 10:
        for name in names:
            if round_number == 0:
                usual = trial.one(try_all.Run(name, 'plain', 0))
                if usual.get('why') in late:
                    continue
                plain[name] = usual
                if plain[name]['rc'] != 0:
                    print('%-14s plain: %s' % (name, faults(name, plain[name], plain[name])[0]), flush=True)
            if name not in plain or plain[name]['rc'] != 0:
                continue
            mine = trial.one(try_all.Run(name, 'pre', round_number))
            if mine.get('why') in late:
                break
            wrong = faults(name, plain[name], mine)
            runs, bad = runs + 1, bad + bool(wrong)
            line = mine.get('line', {}).get('extra', {})
            print('%-14s %s steps, %s %s -> %s: %s' % (name, line.get('steps'), line.get('ran_s'), line.get('half'), line.get('end'), '; '.join(wrong) or 'as plain'), flush=True)
        round_number += 1
        if not any(p['rc'] == 0 for p in plain.values()):
            break
    lost = sum(p['rc'] != 0 for p in plain.values())
    print('soak: %.1f minutes, %d programs, %d runs, %d in which something did not hold, %d programs that do not run plain, %d for which there was no time' %
          ((time.time() - trial.started) / 60, len(names), runs, bad, lost, len(names) - len(plain)))
    sys.exit(1 if bad or not runs else 0)


if __name__ == '__main__':
    main()
