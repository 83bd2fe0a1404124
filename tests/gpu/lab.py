"""The Lab: what the cases of cases.py, and of the other case modules, use to run programs and file checks."""

import os
import statistics


class Lab:
    """What a case works with: the runner, how much to repeat, and where checks are filed."""

    def __init__(self, runner, name, quick, plain_only, words=None):
        self.runner, self.name, self.quick, self.plain_only, self.words = runner, name, quick, plain_only, words or {}
        self.checks, self.figures, self.stats, self.notes, self.commands = [], {}, {}, [], []

    def check(self, what, ok, value="", bound="", issue=False):
        """Files one check. `issue` marks the rows of the table of bounds."""
        self.checks.append({"case": self.name, "what": what, "ok": bool(ok), "value": value, "bound": bound,
                            "issue": issue})

    def wants(self, program):
        """Whether --programs, if it was given, has a word of this name."""
        return not self.words.get("programs") or any(word in program for word in self.words["programs"].split(","))

    def skip(self, why):
        self.checks.append({"case": self.name, "what": why, "ok": None, "value": "", "bound": "", "issue": False})

    def lacks(self, *modules):
        """Files a skip and says true where the Python of the run does not have one of these modules."""
        code = "import importlib.util as u, sys; sys.exit(' '.join(m for m in sys.argv[1:] if not u.find_spec(m)) or 0)"
        done = self.runner.run([self.runner.python, "-c", code, *modules], native=False)
        if done.rc != 0:
            self.skip(f"{self.runner.python} has no {done.stderr.strip()[-60:]}")
        return done.rc != 0

    def fail(self, done):
        self.check("runs to its end", False, done.why())

    def compare(self, what, figure, over, bound, at_least=False, issue=True):
        """Files a ratio of two medians against its bound, where both were measured."""
        if figure not in self.figures or over not in self.figures:
            if not self.plain_only:
                self.check(what, False, "not measured", bound, issue=issue)
            return
        ratio = self.figures[figure]["median"] / self.figures[over]["median"]
        ok = ratio >= bound if at_least else ratio <= bound
        self.check(what, ok, round(ratio, 4), f"{'>=' if at_least else '<='} {bound:.2f}", issue=issue)

    def same(self, what, runs, key, issue=False):
        """Every run of every variant gave the same value under `key`."""
        values = {variant: sorted({str(key(done)) for done in all_of}) for variant, all_of in runs.items() if all_of}
        distinct = sorted({v for of in values.values() for v in of})
        if len(values) > 1 or len(distinct) > 1:
            shown = distinct[0] if len(distinct) == 1 else "; ".join(f"{k}: {', '.join(v)}" for k, v in values.items())
            self.check(what, len(distinct) == 1, shown[:300], "equal", issue)

    def measure(self, variants, call, key, reps):
        """Alternates the variants `reps` times. Returns the runs by variant; files medians of `key`, if one is given."""
        names = [v for v in variants if not (self.plain_only and variants[v] != "plain")]
        runs = {name: [] for name in names}
        for rep in range(reps):
            for name in names if rep % 2 == 0 else reversed(names):
                done = call(name, variants[name])
                if not done.ok or done.result is None:
                    self.fail(done)
                    names = [n for n in names if n != name]
                    continue
                runs[name].append(done)
                self.see(name, done)
        self.file(runs, key)
        return runs

    def beside(self, jobs, key, reps, **how):
        """The same of programs that stop by themselves, (argv, variant, environment) by name: they run at once, in turns (Runner.in_turn, `how`)."""
        runs = {name: [] for name in jobs if not (self.plain_only and jobs[name][1] != "plain")}
        for rep in range(reps if runs else 0):
            names = list(runs) if rep % 2 == 0 else list(reversed(runs))
            for name, done in zip(names, self.runner.in_turn([jobs[name] for name in names], **how)):
                if not done.ok or done.result is None:
                    self.fail(done)
                    continue
                runs[name].append(done)
                self.see(name, done)
        self.file(runs, key)
        return runs

    def file(self, runs, key):
        """Files the medians of `key`, if one is given."""
        for name, all_of in runs.items():
            values = [done.result[key] for done in all_of] if key else []
            if values:
                self.figures[name] = {"key": key, "median": statistics.median(values), "all": values}

    def see(self, name, done):
        """Keeps the library's account of a preloaded run and checks what must always hold in it."""
        words = [f"{k}={v}" for k, v in done.env.items()] + done.argv
        command = f"{done.variant}: {' '.join(words)}".replace(self.runner.root + os.sep, "")
        if command not in self.commands:
            self.commands.append(command)
        if done.variant != "preload":
            return
        if done.stats is None:
            self.check("stats file written", False, name)
            return
        self.stats[name] = done.stats
        ops, issued = sum(done.stats["ops"].values()), done.stats["issued"]
        if ops != issued["in_graphs"] + issued["eager"]:
            self.check("ops = in graphs + eager", False, f"{ops}, {issued}")
        said = [line for line in done.stderr.splitlines() if line.startswith("cusplice[")]
        self.notes += [f"{name}: {line}" for line in said[:6] if f"{name}: {line}" not in self.notes]
