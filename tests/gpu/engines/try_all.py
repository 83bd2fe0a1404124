#!/usr/bin/env python3
"""try_all.py [options] NAME|@GROUP ...: programs of others, as they are and under cusplice, with their own graphs too, in turns; all of it in OUT/try.json.

All variants of a program (programs.py) are started at once. They import side by side, take the GPU one after the other to get ready, and then take turns of
parts of a second on the CPUs that are fastest then: ../child.py. So ratios are of the same moments of the same machine. --one-by-one runs them one behind
the other instead, whole, --rounds times. Packages are unpacked to a folder of the temporary directory from */NAME.tar.xz (make_packs.py) when first
needed. A program whose preloaded result differs or that fails is run again in modes eager, observe and off, one by one, if there is time."""
import argparse
import concurrent.futures
import contextlib
import glob
import hashlib
import json
import os
import queue
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..')]

import child as children  # noqa: E402
import table  # noqa: E402
from programs import GROUPS, MODES, PROGRAMS, own_word, preloads, unknown  # noqa: E402

SITE = os.path.join(tempfile.gettempdir(), 'engines-site')
PACKS = os.environ.get('ENGINES_PACKS', HERE)   # where make_packs.py wrote its archives, or folders with them
SYS = []   # packs of system libraries, where some are needed
OVER = {'vllmfa3': 'vllm'}   # packs that belong into another one's folder


def nvidia_libs():
    found = []
    for p in sys.path:
        found += sorted(glob.glob(os.path.join(p, 'nvidia', '*', 'lib')))
    return found


def driver_folders():
    """The folder of the driver's libcuda.so.1, and one with it under the name libcuda.so where nothing else has that."""
    probe = ('import ctypes\nctypes.CDLL("libcuda.so.1")\nprint([l.split()[-1] for l in open("/proc/self/maps") if "libcuda.so" in l][0])\n'
             'try:\n ctypes.CDLL("libcuda.so")\n print("both")\nexcept OSError: print("one")')
    try:
        said = subprocess.run([sys.executable, '-c', probe], capture_output=True, text=True, timeout=30).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return [], []
    if len(said) != 2:
        return [], []
    link = []
    if said[1] == 'one':
        link = [os.path.join(SITE, 'libcuda')]
        if not os.path.isdir(link[0]):
            os.makedirs(link[0])
            os.symlink(said[0], os.path.join(link[0], 'libcuda.so'))
    return [os.path.dirname(said[0])], link


def find_pack(name):
    hits = glob.glob(os.path.join(PACKS, '*', name + '.tar.xz')) + glob.glob(os.path.join(PACKS, name + '.tar.xz'))
    return hits[0] if hits else None


def unpack(name):
    to = os.path.join(SITE, name)
    over = os.path.join(SITE, OVER[name]) if name in OVER else None
    if os.path.isdir(to):
        return name, 0.0, None
    if over and not os.path.isdir(over):
        return name, 0.0, 'nothing to put it into'
    pack = find_pack(name)
    if not pack:
        return name, 0.0, 'not carried'
    t = time.time()
    try:
        with tarfile.open(pack, 'r:xz') as tar:
            tar.extractall(over or to + '.part', filter='data')
        if over:
            os.mkdir(to)
        else:
            os.rename(to + '.part', to)
    except Exception as e:
        return name, time.time() - t, repr(e)
    return name, time.time() - t, None


class Run:
    def __init__(self, name, variant, number):
        self.name, self.variant, self.number = name, variant, number
        self.out = None


class Trial:
    def __init__(self, a):
        self.a = a
        self.end = time.time() + a.deadline
        self.out = a.out or '.'
        self.work = tempfile.mkdtemp(prefix='try-')
        self.lock = os.path.join(self.work, 'gpu.lock')
        self.libs = nvidia_libs()
        self.results = {}
        self.guard = threading.Lock()
        self.live = set()
        self.started = time.time()

    def environment(self, run, base):
        p = PROGRAMS[run.name]
        env = dict(os.environ)
        for k in list(env):
            if k.startswith('CUSPLICE') or k == 'LD_PRELOAD':
                del env[k]
        flag, own = p['own'][own_word(run.variant)] if own_word(run.variant) else (p['flag'], {})
        for k, v in {**p['env'], **own}.items():
            if v is not None and k != 'CUBLAS12':
                env[k] = v
            else:
                env.pop(k, None)
        env['TRIAL_NAME'], env['TRIAL_FLAG'] = run.name, flag
        env['TRIAL_LOCK'], env['TRIAL_MARK'] = self.lock, base + '.mark'
        env['PYTHONUNBUFFERED'] = env['PYTHONFAULTHANDLER'] = '1'
        env['HF_HUB_OFFLINE'] = '1'
        env['TOKENIZERS_PARALLELISM'] = 'false'
        env.setdefault('XDG_CACHE_HOME', os.path.join(tempfile.gettempdir(), 'engines-xdg'))
        if self.a.steps:
            env['TRIAL_STEPS'] = str(self.a.steps)
        if self.a.cpu:
            env['TRIAL_DEVICE'] = 'cpu'
        site = [os.path.join(SITE, s) for s in p['site']] + ([self.a.site] if self.a.site else [])
        env['PYTHONPATH'] = ':'.join(site + [env['PYTHONPATH']] if env.get('PYTHONPATH') else site)
        paths = []
        if p['env'].get('CUBLAS12'):
            paths.append(os.path.join(SITE, 'cublas12'))
        if p['libs'] or p['env'].get('CUBLAS12'):
            paths += self.libs
        paths += (self.driver if p['libs'] else []) + self.driver_link
        paths += [os.path.join(SITE, 'sys', 'lib')] if os.path.isdir(os.path.join(SITE, 'sys', 'lib')) else []
        if env.get('LD_LIBRARY_PATH'):
            paths.append(env['LD_LIBRARY_PATH'])
        if paths:
            env['LD_LIBRARY_PATH'] = ':'.join(paths)
        words = preloads(run.variant)
        if words:
            env['LD_PRELOAD'] = self.a.lib
            env['CUSPLICE_STATS'] = base + '.stats.%p.json'
            if p.get('stats_every'):
                env['CUSPLICE_STATS_EVERY'] = '2'
            if 'cfg' in words:
                env['CUSPLICE_CONFIG'] = os.path.join(self.a.presets, p['preset'] + '.conf')
            if 'steps' in words:
                env['CUSPLICE_CONFIG'] = os.path.join(HERE, p['steps'])
            if 'off' in words:
                env['CUSPLICE'] = 'off'
            if 'floor' in words:
                env['LD_PRELOAD'] = os.path.join(os.path.dirname(self.a.lib), 'libcusplice-ablation.so')
                env['CUSPLICE_MODE'], env['CUSPLICE_WITHOUT'] = 'eager', 'launches'
            if 'other' in words:
                env['LD_PRELOAD'] = os.path.join(os.path.dirname(self.a.lib), 'libcusplice-other.so')
            for mode in set(words) & set(MODES):
                env['CUSPLICE_MODE'] = mode
            if 'verify' in words:
                env['CUSPLICE_VERIFY_REPORT'] = base + '.verify.json'
            for s in self.a.set + [w for w in words if '=' in w]:
                k, v = s.split('=', 1)
                env['CUSPLICE_' + k.upper()] = v
        return env

    def one(self, run):
        p = PROGRAMS[run.name]
        base = self.base(run)
        result = {'variant': run.variant, 'rc': None}
        left = self.end - time.time()
        if left < 8:
            result['why'] = 'no time left'
            return result
        out, err = open(base + '.out', 'wb'), open(base + '.err', 'wb')
        t0 = time.time()
        child = subprocess.Popen(self.a.wrap.split() + [sys.executable, '-W', 'ignore', os.path.join(HERE, 'progs', p['script'] + '.py')], stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=err, env=self.environment(run, base), start_new_session=True, cwd=self.work)
        with self.guard:
            self.live.add(child)
        limit = p['timeout'] * self.a.patience
        ready = go = None
        why = None
        while True:
            rc = child.poll()
            if rc is not None:
                break
            now = time.time()
            if go is None and os.path.exists(base + '.mark'):
                words = dict(line.split() for line in open(base + '.mark').read().splitlines() if len(line.split()) == 2)
                ready = float(words['ready']) if 'ready' in words else ready
                go = float(words['go']) if 'go' in words else go
            if now > self.end:
                why = 'deadline'
            elif go is not None and now - go > limit:
                why = 'more than %d s' % limit
            elif ready is None and now - t0 > 150 * self.a.patience:
                why = 'no start in %d s' % (150 * self.a.patience)
            if why:   # its processes say where they are: PYTHONFAULTHANDLER
                self.kill(child, signal.SIGABRT)
                time.sleep(1)
                self.kill(child)
                rc = child.wait()
                break
            time.sleep(0.03)
        self.kill(child)   # what it left behind in its own group
        with self.guard:
            self.live.discard(child)
        out.close()
        err.close()
        result.update(rc=rc, wall_s=round(time.time() - t0, 1))
        if why:
            result['why'] = why
        self.understand(result, base, open(base + '.out', errors='replace').read(), open(base + '.err', errors='replace').read())
        return result

    def understand(self, result, base, text, errors):
        """What a run has said, and the library of it, into `result`."""
        lines = []
        for line in text.splitlines():
            if line.startswith('{"name"'):
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    pass
        if lines:
            result['line'], result['parts'] = lines[-1], {line.get('part') or '': line for line in lines}
        said = [s for s in errors.splitlines() if 'cusplice' in s.lower()]
        if said:
            result['said'] = [s[:300] for s in said[:20]]
        if result['rc'] != 0 or 'line' not in result:
            result['stderr'] = [s[:400] for s in (errors.splitlines() + (['--- stdout'] + text.splitlines()[-15:] if text else []))[-200 if 'why' in result else -45:]]
        best = None
        for f in glob.glob(base + '.stats.*.json'):
            try:
                d = json.load(open(f))
            except (OSError, ValueError):
                continue
            n = sum(v for v in d.get('issued', {}).values() if isinstance(v, int))
            result['stats_files'] = result.get('stats_files', 0) + 1
            if best is None or n > best[0]:
                best = (n, d)
        if best:
            result['stats'] = best[1]
        if os.path.exists(base + '.verify.json'):
            try:
                result['verify'] = json.load(open(base + '.verify.json'))
            except ValueError:
                pass

    def base(self, run):
        return os.path.join(self.work, '%s.%s.%d' % (run.name, run.variant, run.number))

    def in_turns(self, name, variants, number):
        """All variants of a program at once, in turns: one result for each."""
        p = PROGRAMS[name]
        runs = [Run(name, v, number) for v in variants]
        left = self.end - time.time()
        if left < p['takes'] * self.a.patience:
            return [{'variant': v, 'rc': None, 'why': 'no time left'} for v in variants]
        runner = children.Runner(self.work, self.work, os.path.join(self.work, 'runner'), most=max(5, left - 4))
        script = [sys.executable, '-W', 'ignore', os.path.join(HERE, 'progs', p['script'] + '.py')]
        jobs = [(script, 'plain', self.environment(run, self.base(run))) for run in runs]
        found = runner.in_turn(jobs, limit=(60 + p['timeout']) * self.a.patience, meet=p['parts'], native=False, turn=p['turn'], cpus=p['cpus'])
        results = []
        for run, done in zip(runs, found):
            result = {'variant': run.variant, 'rc': done.rc, 'wall_s': round(done.seconds, 1), 'turns': True, 'host_ms': [round(t, 3) for t in done.host_ms][-40:]}
            if done.hung or done.unready:
                result['why'] = 'hung, or the deadline' if done.hung else 'it ended before its turns'
            self.understand(result, self.base(run), done.stdout or '', done.stderr or '')
            results.append(result)
        return results

    @staticmethod
    def kill(child, by=signal.SIGKILL):
        try:
            os.killpg(child.pid, by)
        except (ProcessLookupError, PermissionError):
            pass

    def whole(self):
        return {'argv': sys.argv, 'machine': self.machine, 'lib': self.lib_hash, 'when': time.strftime('%Y-%m-%d'), 'seconds': round(time.time() - self.started, 1), 'results': self.results}

    def write(self):
        text = json.dumps(self.whole())
        if len(text) > 15 << 20:
            slim = {name: [{k: v for k, v in r.items() if k != 'stats'} for r in runs] for name, runs in self.results.items()}
            text = json.dumps({**self.whole(), 'stats': 'left out', 'results': slim})
        path = os.path.join(self.out, self.a.name + '.json')
        with open(path + '.tmp', 'w') as f:
            f.write(text)
        os.replace(path + '.tmp', path)

    def names(self):
        names = [n for word in self.a.names or ['@torch'] for n in (GROUPS[word[1:]] if word.startswith('@') else [word])]
        return list(dict.fromkeys(names))

    def prepare(self, names):
        """Unpacks what these programs need; returns those whose packs are there."""
        a = self.a
        try:
            self.machine = subprocess.run(['nvidia-smi', '--query-gpu=name,driver_version', '--format=csv,noheader'], capture_output=True, text=True, timeout=20).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            self.machine = 'no nvidia-smi'
        self.lib_hash = hashlib.sha256(open(a.lib, 'rb').read()).hexdigest()[:16] if os.path.exists(a.lib) else None
        os.makedirs(SITE, exist_ok=True)
        os.makedirs(self.out, exist_ok=True)
        self.driver, self.driver_link = driver_folders()
        packs = sorted({s for n in names for s in PROGRAMS[n]['site']} | set(SYS))
        missing = {}
        with concurrent.futures.ProcessPoolExecutor(8) as pool:
            for some in ([n for n in packs if n not in OVER], [n for n in packs if n in OVER]):
                for name, s, why in pool.map(unpack, some):
                    if why:
                        missing[name] = why
                    elif s:
                        print('unpacked %s in %.1f s' % (name, s), flush=True)
        real = [f for d in self.libs for f in glob.glob(os.path.join(d, 'libcublas.so.1[23]'))]
        link = os.path.join(SITE, 'cublas12')
        if real and not os.path.isdir(link):
            os.makedirs(link)
            for f in real[:1]:
                os.symlink(f, os.path.join(link, 'libcublas.so.12'))
        print('%s; %d programs; unpacked in %.0f s%s' % (self.machine, len(names), time.time() - self.started, '; missing: %s' % missing if missing else ''), flush=True)
        there = []
        for n in names:
            lacks = {s: missing[s] for s in PROGRAMS[n]['site'] if s in missing}
            if lacks and not a.site:
                print('%-16s skipped: %s' % (n, lacks), flush=True)
            else:
                there.append(n)
        return there

    def main(self):
        a = self.a
        there = self.prepare(self.names())
        if a.unpack:
            return
        self.results = {n: [] for n in there}
        try:
            if a.one_by_one:
                self.one_by_one([Run(n, v, k) for n in self.results for k in range(a.rounds or 2) for v in self.variants(n)])
            else:
                for n in self.results:
                    for k in range(a.rounds or 1):
                        self.results[n] += self.in_turns(n, self.variants(n), k)
                        self.write()
                    self.tell(n)
            if not a.no_diagnose:
                self.one_by_one([Run(n, v, 0) for n in self.results if table.suspect(self.results[n]) for v in ('eager', 'observe', 'off')])
        finally:
            for one in list(self.live):
                self.kill(one)
            self.write()
        print('%.0f s' % (time.time() - self.started), flush=True)

    def variants(self, name):
        return self.a.variants.split(',') if self.a.variants else PROGRAMS[name]['variants']

    def tell(self, name):
        try:
            print(table.text(name, self.results[name]), flush=True)
        except Exception as e:   # all of it is in the file
            print('%s: no row: %r' % (name, e), flush=True)

    def one_by_one(self, runs):
        """While one has the GPU the next ones import (--ahead); if only one runs at a time, on the CPUs that are fastest then."""
        todo, left = queue.Queue(), {}
        for run in runs:
            todo.put(run)
            left[run.name] = left.get(run.name, 0) + 1

        def work():
            while True:
                try:
                    run = todo.get_nowait()
                except queue.Empty:
                    return
                settled = children.Finished([], run.variant, {})
                try:
                    with children.Settled(settled) if self.a.ahead == 1 else contextlib.nullcontext():
                        result = self.one(run)
                    result['host_ms'] = [round(t, 3) for t in settled.host_ms]
                except Exception as e:   # the driver's own fault: told, not fatal
                    result = {'variant': run.variant, 'rc': None, 'why': 'driver: %r' % e}
                with self.guard:
                    self.results[run.name].append(result)
                    left[run.name] -= 1
                    if not left[run.name]:
                        self.tell(run.name)
                    try:
                        self.write()
                    except OSError as e:
                        print('not written: %r' % e, flush=True)

        threads = [threading.Thread(target=work) for _ in range(max(1, self.a.ahead))]
        for t in threads:
            t.start()
            time.sleep(0.2)
        for t in threads:
            t.join()


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('names', nargs='*')
    p.add_argument('--deadline', type=float, default=540, help='seconds, from the start: no program begins that would not be over by then')
    p.add_argument('--rounds', type=int, help='starts of each variant (1; one by one: 2)')
    p.add_argument('--one-by-one', action='store_true', help='no turns: one run behind the other')
    p.add_argument('--ahead', type=int, default=1, help='one by one: processes at a time, of which one has the GPU (1)')
    p.add_argument('--variants', help='with , between them; those of each program unless given (programs.py). pre+KEY=VALUE: with that setting; pre+other: with libcusplice-other.so beside LIB')
    p.add_argument('--no-diagnose', action='store_true')
    p.add_argument('--set', action='append', default=[], help='KEY=VALUE: a setting of cusplice for every preloaded run')
    p.add_argument('--patience', type=float, default=1.0, help='all limits times this')
    p.add_argument('--steps', type=int, default=0)
    p.add_argument('--lib', default=os.path.join(HERE, 'libcusplice.so'))
    p.add_argument('--name', default='try', help='OUT/NAME.json')
    p.add_argument('--presets', default=os.path.join(HERE, '..', '..', '..', 'config', 'presets'), help='the folder of presets')
    p.add_argument('--wrap', default='', help='a command in front of each run, such as harness/bench/noise with its options: one by one')
    p.add_argument('--unpack', action='store_true', help='only unpack what the programs need and is here')
    p.add_argument('--merge', nargs='+', metavar='FILE', help='run nothing: one table of what these files hold; of a program in several, the last one that has results')
    p.add_argument('--markdown', metavar='FILE', help='write the tables for ENGINES.md and README.md there; - is the terminal')
    p.add_argument('--out')
    p.add_argument('--cpu', action='store_true', help='dry run without a GPU')
    p.add_argument('--site', help='a folder with all packages (dry run)')
    p.add_argument('--list', action='store_true')
    return p


def main():
    p = arguments()
    a = p.parse_args()
    a.lib, a.presets = os.path.abspath(a.lib), os.path.abspath(a.presets)
    a.one_by_one = a.one_by_one or bool(a.wrap)
    if a.list:
        for g, v in GROUPS.items():
            print('@' + g, ' '.join(v))
        for n, one in PROGRAMS.items():
            print('%-14s about %d s: %s; %s' % (n, one['takes'], one['what'], ', '.join(one['variants'])))
        return
    for name in a.names:
        if name.lstrip('@') not in (GROUPS if name.startswith('@') else PROGRAMS):
            p.error(f'no program {name}; there are {", ".join(PROGRAMS)}, and groups @{", @".join(GROUPS)}')
    if a.variants:
        for name in a.names:
            for one in GROUPS[name[1:]] if name.startswith('@') else [name]:
                for wrong in filter(None, (unknown(one, v) for v in a.variants.split(','))):
                    p.error(wrong)
    if a.merge:
        tries = [json.load(open(f)) for f in a.merge]
    else:
        trial = Trial(a)
        trial.main()
        tries = [trial.whole()]
    if a.merge or a.markdown:
        table.write(a.markdown or '-', tries)


if __name__ == '__main__':
    main()
