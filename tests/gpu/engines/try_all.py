#!/usr/bin/env python3
"""try_all.py [options] NAME|@GROUP ...: programs of others, as they are and under cusplice, in turn; a table, and all of it in OUT/try.json (--out).

Each program is run plain, preloaded, plain, preloaded (--rounds 2), then with its preset where it has one. While one has the GPU the next one imports
(--ahead 2). Packages are unpacked to a folder of the temporary directory from */NAME.tar.xz beside this file (make_packs.py) when first needed. A program whose preloaded result differs or that fails is
run again in modes eager, observe and off, at the end."""
import argparse
import concurrent.futures
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
SITE = os.path.join(tempfile.gettempdir(), 'engines-site')
PACKS = os.environ.get('ENGINES_PACKS', HERE)   # where make_packs.py wrote its archives, or folders with them
SYS = []   # packs of system libraries, where some are needed
OVER = {'vllmfa3': 'vllm'}   # packs that belong into another one's folder


def entry(script, flag='', site=(), preset=None, env=None, libs=False, timeout=90):
    return dict(script=script, flag=flag, site=list(site), preset=preset, env=env or {}, libs=libs, timeout=timeout)


PROGRAMS = {
    # PyTorch and JAX, where they are installed
    'timm-effnet': entry('timm_effnet'), 'st-minilm': entry('st_minilm', preset='pytorch'), 'hf-whisper': entry('hf_whisper', preset='pytorch'),
    'pyg-gat': entry('pyg_gat'), 'ode': entry('ode'), 'unet20': entry('unet20'), 'lstm100': entry('lstm100'),
    'numpyro': entry('numpyro_mcmc', timeout=120), 'numpyro-nograph': entry('numpyro_mcmc', 'nograph', timeout=120),
    # packed
    'ct2-gpt2': entry('ct2', 'gpt2', ['ctranslate2'], env={'CUBLAS12': '1'}),
    'warp-fluid': entry('warp_ex', 'fluid', ['warp']), 'warp-fluid-graph': entry('warp_ex', 'fluid-graph', ['warp']),
    'openmm': entry('openmm_water', '', ['openmm'], libs=True), 'unet': entry('unet', '', ['small-diffusers']),
    'ort': entry('ort_bert', '', ['ort'], libs=True), 'ort-graph': entry('ort_bert', 'graph', ['ort'], libs=True),
    'vllm-eager': entry('vllm_llama', 'eager', ['vllm', 'vllmdeps', 'vllmfa3'], preset='vllm', timeout=240),
    'vllm-graphs': entry('vllm_llama', 'graphs', ['vllm', 'vllmdeps', 'vllmfa3'], timeout=300),
    'vllm-piecewise': entry('vllm_llama', 'piecewise', ['vllm', 'vllmdeps', 'vllmfa3'], timeout=300),
    'vllm-full': entry('vllm_llama', 'piecewise-full', ['vllm', 'vllmdeps', 'vllmfa3'], timeout=300),
    'vllm-mp': entry('vllm_llama', 'eager-mp', ['vllm', 'vllmdeps', 'vllmfa3'], timeout=240),
    'vllm-b32': entry('vllm_llama', 'eager-b32', ['vllm', 'vllmdeps', 'vllmfa3'], preset='vllm', timeout=240),
    'vllm-full-one': entry('vllm_llama', 'piecewise-full-one', ['vllm', 'vllmdeps', 'vllmfa3'], timeout=300),
    'vllm-full-b32': entry('vllm_llama', 'piecewise-full-b32', ['vllm', 'vllmdeps', 'vllmfa3'], timeout=300),
    'vllm-one': entry('vllm_llama', 'eager-one', ['vllm', 'vllmdeps', 'vllmfa3'], timeout=240),
    'vllm-triton': entry('vllm_llama', 'eager-triton', ['vllm', 'vllmdeps'], preset='vllm', timeout=240),
    'vllm-triton-one': entry('vllm_llama', 'eager-triton-one', ['vllm', 'vllmdeps'], timeout=240),
    'vllm-triton-full': entry('vllm_llama', 'piecewise-full-triton', ['vllm', 'vllmdeps'], timeout=300),
}
for k in ('vllm-eager', 'vllm-b32', 'vllm-full-b32', 'vllm-full-one', 'vllm-graphs', 'vllm-piecewise', 'vllm-full', 'vllm-mp', 'vllm-one', 'vllm-triton', 'vllm-triton-one', 'vllm-triton-full'):
    PROGRAMS[k]['stats_every'] = True
GROUPS = {
    'torch': ['timm-effnet', 'st-minilm', 'hf-whisper', 'pyg-gat', 'ode', 'unet20', 'lstm100'],
    'jax': ['numpyro', 'numpyro-nograph'],
    'engines': ['ct2-gpt2', 'openmm', 'unet'],
    'warp': ['warp-fluid', 'warp-fluid-graph'],
    'ort': ['ort', 'ort-graph'],
    'vllm': ['vllm-eager', 'vllm-full', 'vllm-graphs', 'vllm-mp', 'vllm-one', 'vllm-piecewise'],
    'vllm-triton': ['vllm-triton', 'vllm-triton-full', 'vllm-triton-one'],
}
GROUPS['all'] = list(PROGRAMS)


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
        env.update({k: v for k, v in p['env'].items() if k != 'CUBLAS12'})
        env['TRIAL_NAME'], env['TRIAL_FLAG'] = run.name, p['flag']
        env['TRIAL_LOCK'], env['TRIAL_MARK'] = self.lock, base + '.mark'
        env['PYTHONUNBUFFERED'] = '1'
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
        if run.variant != 'plain':
            env['LD_PRELOAD'] = self.a.lib
            env['CUSPLICE_STATS'] = base + '.stats.%p.json'
            if p.get('stats_every'):
                env['CUSPLICE_STATS_EVERY'] = '2'
            if run.variant == 'cfg':
                env['CUSPLICE_CONFIG'] = os.path.join(self.a.presets, p['preset'] + '.conf')
            elif run.variant == 'off':
                env['CUSPLICE'] = 'off'
            elif run.variant in ('eager', 'observe', 'full', 'verify'):
                env['CUSPLICE_MODE'] = run.variant
            if run.variant == 'verify':
                env['CUSPLICE_VERIFY_REPORT'] = base + '.verify.json'
            for s in self.a.set:
                k, v = s.split('=', 1)
                env['CUSPLICE_' + k.upper()] = v
        return env

    def one(self, run):
        p = PROGRAMS[run.name]
        base = os.path.join(self.work, '%s.%s.%d' % (run.name, run.variant, run.number))
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
            if why:
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
        text = open(base + '.out', errors='replace').read()
        for line in reversed(text.splitlines()):
            if line.startswith('{"name"'):
                try:
                    result['line'] = json.loads(line)
                    break
                except ValueError:
                    pass
        errors = open(base + '.err', errors='replace').read()
        said = [s for s in errors.splitlines() if 'cusplice' in s.lower()]
        if said:
            result['said'] = [s[:300] for s in said[:20]]
        if rc != 0 or 'line' not in result:
            result['stderr'] = [s[:400] for s in (errors.splitlines() + (['--- stdout'] + text.splitlines()[-15:] if text else []))[-45:]]
        best = None
        for f in glob.glob(base + '.stats.*.json'):
            try:
                d = json.load(open(f))
            except ValueError:
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
        return result

    @staticmethod
    def kill(child):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def write(self):
        text = json.dumps({'argv': sys.argv, 'machine': self.machine, 'lib': self.lib_hash, 'seconds': round(time.time() - self.started, 1), 'results': self.results})
        if len(text) > 15 << 20:
            for runs in self.results.values():
                for r in runs:
                    r.pop('stats', None)
            text = json.dumps({'argv': sys.argv, 'machine': self.machine, 'lib': self.lib_hash, 'stats': 'left out', 'results': self.results})
        path = os.path.join(self.out, self.a.name + '.json')
        with open(path + '.tmp', 'w') as f:
            f.write(text)
        os.replace(path + '.tmp', path)

    def row(self, name):
        runs = self.results[name]
        good = lambda v: [r for r in runs if r['variant'] == v and r.get('rc') == 0 and 'line' in r]
        plain, pre, cfg = good('plain'), good('pre'), good('cfg')
        ms = lambda rs: [r['line']['ms_per_step'] for r in rs]
        late = lambda rs: [r['line']['extra']['median_2nd_half_ms'] for r in rs]
        mean = lambda xs: sum(xs) / len(xs)
        ratio = lambda f, rs: '%.3f' % (mean(f(rs)) / mean(f(plain))) if rs and plain and mean(f(plain)) else '-'
        hashes = lambda rs: [r['line']['hash'] for r in rs]
        same = '-'
        if plain:
            p = set(hashes(plain))
            same = ('plain same' if len(p) == 1 else 'PLAIN VARIES') if len(plain) > 1 else 'one plain'
            others = pre + cfg
            if others:
                if set(hashes(others)) <= p:
                    same += ', pre EQUAL'
                elif len(p) == 1:
                    same += ', pre DIFFERS'
                else:
                    same += ', pre other'
                checks = [[x for x in r['line']['extra'].get('check', [])] for r in plain + others]
                if any(set(hashes(others)) - p for _ in [0]) and all(checks) and len({len(c) for c in checks}) == 1:
                    rel = lambda a, b: max(abs(x - y) / (abs(x) + 1e-12) for x, y in zip(a, b))
                    same += ' (check: plain %.1e, pre %.1e)' % (max([rel(checks[0], c) for c in checks[1:len(plain)]] or [0]),
                                                                max(rel(checks[0], c) for c in checks[len(plain):]))
        parts = ['%-16s' % name, 'plain ' + ' '.join('%.4g' % x for x in ms(plain)), 'pre ' + ' '.join('%.4g' % x for x in ms(pre)),
                 'ratio ' + ratio(ms, pre) + ' late ' + ratio(late, pre)]
        if cfg:
            parts.append('cfg ' + ratio(ms, cfg))
        parts.append(same)
        parts.append('rc ' + ' '.join('%s:%s%s' % (r['variant'][:3], r.get('rc'), '(' + r['why'] + ')' if r.get('why') else '') for r in runs if r.get('rc') != 0 or 'line' not in r)
                     if any(r.get('rc') != 0 or 'line' not in r for r in runs) else 'rc 0')
        for r in runs:
            if r['variant'] == 'pre' and 'stats' in r:
                s = r['stats']
                issued = s.get('issued', {})
                n = sum(v for v in issued.values() if isinstance(v, int))
                parts.append('graphs %.1f%% of %d' % (100.0 * issued.get('in_graphs', 0) / n if n else 0, n))
                top = lambda d: ' '.join('%s=%s' % kv for kv in sorted(((k, v) for k, v in d.items() if isinstance(v, int) and v), key=lambda kv: -kv[1])[:3])
                parts.append('breaks: ' + top(s.get('breaks', {})))
                parts.append('eager: ' + top(s.get('eager_by', {})))
                if top(s.get('fallbacks', {})):
                    parts.append('fallbacks: ' + top(s.get('fallbacks', {})))
                break
        print(' | '.join(parts), flush=True)
        for r in runs:
            if r.get('rc') not in (0,) and r.get('stderr'):
                print('    %s: %s' % (r['variant'], r['stderr'][-1][:300]), flush=True)
                break
        for r in runs:
            if r['variant'] not in ('plain', 'pre', 'cfg'):
                line = r.get('line') or {}
                print('    %s: rc %s ms %s hash %s%s' % (r['variant'], r.get('rc'), line.get('ms_per_step'), line.get('hash'),
                                                     ' (plain ' + '/'.join(sorted(set(hashes(plain)))) + ')' if plain else ''), flush=True)

    def main(self):
        a = self.a
        names = []
        for n in a.names or ['@torch']:
            names += GROUPS[n[1:]] if n.startswith('@') else [n]
        names = [n for i, n in enumerate(names) if n not in names[:i]]
        bad = [n for n in names if n not in PROGRAMS]
        if bad:
            sys.exit('no such program: %s; there are %s' % (bad, ' '.join(PROGRAMS)))
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
        if a.unpack:
            return
        todo = queue.Queue()
        left = {}
        for n in names:
            if any(s in missing for s in PROGRAMS[n]['site']) and not a.site:
                print('%-16s skipped: %s' % (n, {s: missing[s] for s in PROGRAMS[n]['site'] if s in missing}), flush=True)
                continue
            self.results[n] = []
            runs = []
            for k in range(a.rounds):
                runs += [Run(n, v, k) for v in a.variants.split(',')]
            if PROGRAMS[n]['preset'] and not a.no_cfg and 'pre' in a.variants:
                runs.append(Run(n, 'cfg', 0))
            left[n] = len(runs)
            for r in runs:
                todo.put(r)
        shown = set()

        def work():
            while True:
                try:
                    run = todo.get_nowait()
                except queue.Empty:
                    return
                try:
                    result = self.one(run)
                except Exception as e:   # the driver's own fault: told, not fatal
                    result = {'variant': run.variant, 'rc': None, 'why': 'driver: %r' % e}
                with self.guard:
                    self.results[run.name].append(result)
                    left[run.name] -= 1
                    if left[run.name] <= 0:
                        try:
                            self.row(run.name)
                        except Exception as e:
                            print('%s: no row: %r' % (run.name, e), flush=True)
                        if run.name not in shown and not a.no_diagnose:
                            shown.add(run.name)
                            rs = self.results[run.name]
                            h = lambda v: {r['line']['hash'] for r in rs if r['variant'] == v and r.get('rc') == 0 and 'line' in r}
                            failed = [r for r in rs if r['variant'] in ('pre', 'cfg') and r.get('rc') != 0 and r.get('why') not in ('deadline', 'no time left')]
                            if h('plain') and (failed or (len(h('plain')) == 1 and h('pre') - h('plain'))):
                                for v in ('eager', 'observe', 'off'):
                                    left[run.name] += 1
                                    todo.put(Run(run.name, v, 0))
                    try:
                        self.write()
                    except OSError as e:
                        print('not written: %r' % e, flush=True)

        threads = [threading.Thread(target=work) for _ in range(max(1, a.ahead))]
        try:
            for t in threads:
                t.start()
                time.sleep(0.2)
            for t in threads:
                t.join()
            work()   # what was put in when the others had gone
        finally:
            for child in list(self.live):
                self.kill(child)
            self.write()
        print('%.0f s' % (time.time() - self.started), flush=True)


if __name__ == '__main__':
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('names', nargs='*')
    p.add_argument('--deadline', type=float, default=540, help='seconds, from the start')
    p.add_argument('--rounds', type=int, default=2)
    p.add_argument('--ahead', type=int, default=2, help='processes at a time, of which one has the GPU')
    p.add_argument('--variants', default='plain,pre', help='of plain, pre, cfg, off, eager, observe, full, verify')
    p.add_argument('--no-cfg', action='store_true')
    p.add_argument('--no-diagnose', action='store_true')
    p.add_argument('--set', action='append', default=[], help='KEY=VALUE: a setting of cusplice for every preloaded run')
    p.add_argument('--patience', type=float, default=1.0, help='all limits times this')
    p.add_argument('--steps', type=int, default=0)
    p.add_argument('--lib', default=os.path.join(HERE, 'libcusplice.so'))
    p.add_argument('--name', default='try', help='OUT/NAME.json')
    p.add_argument('--presets', default=os.path.join(HERE, '..', 'config', 'presets'), help='the folder of presets')
    p.add_argument('--wrap', default='', help='a command in front of each run, such as harness/bench/noise with its options')
    p.add_argument('--unpack', action='store_true', help='only unpack what the programs need and is here')
    p.add_argument('--out')
    p.add_argument('--cpu', action='store_true', help='dry run without a GPU')
    p.add_argument('--site', help='a folder with all packages (dry run)')
    p.add_argument('--list', action='store_true')
    a = p.parse_args()
    a.lib = os.path.abspath(a.lib)
    if a.list:
        for g, v in GROUPS.items():
            print('@' + g, ' '.join(v))
    else:
        Trial(a).main()
