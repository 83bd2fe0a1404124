#!/usr/bin/env python3
"""What the Python module of the wheel promises, on the simulator: it has each call and each counter of cusplice.h; preloaded, each call does
what it says, and without the library nothing; run() is cusplice run; configure_subprocess() gives the variables of the launcher, and
children of subprocess and multiprocessing are preloaded by them; importing starts nothing. The examples in tools/docs run.

Run by //tests/package:module_test.
"""
import inspect
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path.cwd()  # the root of the runfiles
WORK = pathlib.Path(tempfile.mkdtemp())
sys.dont_write_bytecode = True


def install():
    """The module as the wheel has it: the launcher below its folder, found by that alone. HOME is empty."""
    (WORK / "cusplice/bin").mkdir(parents=True)
    for name in ("__init__.py", "py.typed"):
        shutil.copy(HERE / "tools/package/cusplice" / name, WORK / "cusplice")
    (WORK / "cusplice/bin/cusplice").symlink_to((HERE / "tools/cusplice").resolve())
    shutil.copy(HERE / "tests/package/guest.py", WORK)
    (WORK / "run").mkdir(mode=0o700)
    for name in [name for name in os.environ if name.startswith(("CUSPLICE", "XDG_", "LD_PRELOAD", "BASH_FUNC"))]:
        del os.environ[name]
    os.environ.update({"HOME": str(WORK), "XDG_RUNTIME_DIR": str(WORK / "run"), "LD_LIBRARY_PATH": str(HERE / "harness/sim/lib"),
                       "PYTHONPATH": str(WORK), "PYTHONDONTWRITEBYTECODE": "1"})
    sys.path.insert(0, str(WORK))
    os.chdir(WORK)


install()
import cusplice  # noqa: E402

PYTHON = sys.executable
LIBRARY = str((HERE / "tools/cusplice").resolve().parents[1] / "shim/libcusplice.so")


def environment_of(output):
    return dict(entry.split("=", 1) for entry in output.decode().split("\0")[:-1])


class Declared(unittest.TestCase):
    def setUp(self):
        self.header = re.sub(r"/\*.*?\*/", "", (HERE / "shim/include/cusplice.h").read_text(), flags=re.S)

    def test_counters_are_those_of_the_header(self):
        struct = re.search(r"struct cusplice_counters \{(.*?)\}", self.header, re.S).group(1)
        fields = re.findall(r"\w+", struct.replace("uint64_t", ""))
        self.assertEqual(re.findall(r"(\w+) \w+[,;]", struct), ["uint64_t"] * struct.count(";"), "another type has another size")
        self.assertEqual(list(cusplice.Counters._fields), fields)
        self.assertEqual(re.findall(r"^(\w+): \w", inspect.getdoc(cusplice.Counters), re.M), fields)

    def test_functions_are_those_of_the_header(self):
        declared = set(re.findall(r"CUSPLICE_WEAK \w+ (\w+)\(", self.header))
        self.assertIn("cusplice_mark_step_", declared)
        self.assertEqual(set(re.findall(r"_process\.(\w+_)\b", inspect.getsource(cusplice))), declared)

    def test_all_is_typed_and_documented(self):
        for name in cusplice.__all__:
            one = getattr(cusplice, name)
            self.assertTrue(one.__doc__, name)
            if inspect.isfunction(one):
                self.assertEqual(set(one.__annotations__), set(inspect.signature(one).parameters) | {"return"}, name)
        self.assertTrue((WORK / "cusplice/py.typed").exists())


class Alone(unittest.TestCase):
    def test_calls_do_nothing(self):
        for call in (cusplice.step, cusplice.force_break, cusplice.suspend, cusplice.resume):
            self.assertIsNone(call())
        with cusplice.suspended():
            self.assertFalse(cusplice.loaded())
        self.assertEqual(cusplice.interface(), 0)
        self.assertEqual(cusplice.counters(), (0,) * len(cusplice.Counters._fields))

    def test_importing_starts_nothing_and_loads_no_library(self):
        code = ("import sys; events = []; sys.addaudithook(lambda name, words: events.append((name, words)))\n"
                "import cusplice\n"
                "print([e for e in events if e[0].startswith(('subprocess', 'os.exec', 'os.fork', 'os.posix_spawn', 'os.system', 'socket'))])\n"
                "print({e[1] for e in events if e[0] == 'ctypes.dlopen'}, sorted(set(sys.modules) & {'torch', 'numpy', 'multiprocessing', 'asyncio'}))")
        printed = subprocess.run([PYTHON, "-c", code], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
        self.assertEqual(printed, "[]\n{(None,)} []\n")


class Run(unittest.TestCase):
    def test_the_library_is_preloaded_and_calls_do_what_they_say(self):
        done = cusplice.run([PYTHON, "guest.py", "interface"], set={"hold_us": 1000000}, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr.decode())

    def test_ends_as_subprocess_does(self):
        self.assertEqual(cusplice.run(["sh", "-c", "exit 7"], stderr=subprocess.DEVNULL).returncode, 7)
        self.assertEqual(cusplice.run(["sh", "-c", "kill -15 $$"], stderr=subprocess.DEVNULL).returncode, -signal.SIGTERM)
        self.assertEqual(cusplice.run("/nowhere/program", stderr=subprocess.DEVNULL).returncode, 127)
        with self.assertRaises(subprocess.CalledProcessError) as raised:
            cusplice.run(["true"], config="pytorh", check=True, capture_output=True)
        self.assertEqual(raised.exception.returncode, 125)
        self.assertIn(b"the nearest preset is pytorch", raised.exception.stderr)
        with self.assertRaises(subprocess.TimeoutExpired):
            cusplice.run(["sleep", "60"], timeout=0.3)
        self.assertEqual(cusplice.run(["--print-env"], stderr=subprocess.DEVNULL).returncode, 127, "that is no option")
        for refused in ({"shell": True}, {"executable": "/bin/true"}):
            with self.assertRaises(TypeError):
                cusplice.run(["false"], **refused)

    def test_options_are_those_of_the_launcher(self):
        (WORK / "a b.conf").write_text("hold_us = 60\n")
        done = cusplice.run(["env", "-0"], config=["pytorch", WORK / "a b.conf"], eager=["a*", "re:^b"], mode="full", stats="RUN/", why=True,
                            set={"live": False, "submit_ns": 7}, cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0)
        seen = environment_of(done.stdout)
        self.assertRegex(seen["CUSPLICE_CONFIG"], rf"/presets/pytorch\.conf:{WORK}/a b\.conf$")
        self.assertEqual({name: seen["CUSPLICE_" + name] for name in ("EAGER", "MODE", "STATS", "WHY", "LIVE", "SUBMIT_NS")},
                         {"EAGER": "a*;re:^b", "MODE": "full", "STATS": f"{WORK}/RUN/{{process}}.json", "WHY": "yes", "LIVE": "no", "SUBMIT_NS": "7"})

    def test_arguments_stay_the_programs(self):
        done = cusplice.run(["echo", "--mode", "-c"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(done.stdout, b"--mode -c\n")


class Configured(unittest.TestCase):
    def test_variables_are_those_of_run(self):
        for options in ({}, {"config": "pytorch", "eager": "a*", "mode": "full"}, {"stats": WORK / "it's $1.json", "set": {"hold_us": 60}},
                        {"stats": "FOLDER/", "why": True}, {"mode": "off"}):
            before = {**os.environ, "LD_PRELOAD": "/nowhere/other.so", "CUSPLICE_CACHE_OFFERED": "/nowhere", "CUSPLICE_EAGER": "b\nc"}
            expected = environment_of(cusplice.run(["env", "-0"], env=before, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options).stdout)
            self.assertTrue(expected.pop("CUSPLICE_HANDSHAKE"), "which ends with the run")
            filled = dict(before)
            self.assertIs(cusplice.configure_subprocess(filled, **options), filled)
            self.assertEqual(filled, expected, options)
            self.assertEqual(filled["LD_PRELOAD"], LIBRARY + ":/nowhere/other.so")
            self.assertEqual("CUSPLICE_CACHE_OFFERED" in filled, options.get("mode") != "off")

    def test_an_empty_environment_gets_the_variables_alone(self):
        filled = cusplice.configure_subprocess({})
        self.assertEqual({name for name in filled if not name.startswith("CUSPLICE_")}, {"LD_PRELOAD", "ASAN_OPTIONS"})
        self.assertEqual(filled["LD_PRELOAD"], LIBRARY)
        self.assertEqual(filled["CUSPLICE_CACHE_OFFERED"], f"{WORK}/.cache/cusplice")

    def test_this_process_stays_as_it_is(self):
        before = dict(os.environ)
        filled = cusplice.configure_subprocess()
        self.assertEqual(dict(os.environ), before)
        self.assertEqual({name: filled[name] for name in before}, before)
        done = subprocess.run([PYTHON, "guest.py"], env=filled, check=True, stdout=subprocess.PIPE, universal_newlines=True)
        self.assertRegex(done.stdout, r"^True Counters\(launches=0, memsets=160, copies=0, in_graphs=[1-9]")

    def test_what_is_wrong_is_said_and_nothing_filled_in(self):
        for options, says in (({"config": "pytorh"}, "the nearest preset is pytorch"), ({"set": {"hold_u": 1}}, "hold_us"), ({"stats": "-"}, "a file or folder")):
            filled = {"A": "b"}
            with self.assertRaisesRegex(ValueError, says):
                cusplice.configure_subprocess(filled, **options)
            self.assertEqual(filled, {"A": "b"})


class Children(unittest.TestCase):
    def test_those_of_multiprocessing_are_preloaded(self):
        for method in ("spawn", "forkserver"):
            done = subprocess.run([PYTHON, "guest.py", method], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
            self.assertEqual(done.returncode, 0, f"{method}: {done.stdout}")


class Documents(unittest.TestCase):
    def test_examples_run(self):
        program = WORK / "your-program"
        program.write_text(f"#!/bin/sh\nexec {PYTHON} guest.py\n")
        program.chmod(0o755)
        ran, not_run = 0, []
        for document in sorted((HERE / "tools/docs").glob("*.md")):
            for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", document.read_text(), re.M | re.S)):
                example = WORK / f"example{number}.py"
                example.write_text(code)
                compile(code, str(document), "exec")
                for name in re.findall(r"\bcusplice\.(\w+)", code):
                    self.assertIn(name, cusplice.__all__, document)
                needs = re.match(r"# not run: (.*)", code)
                if needs:
                    not_run.append(needs.group(1))
                    continue
                done = subprocess.run([PYTHON, example], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
                self.assertEqual(done.returncode, 0, f"{document}:\n{code}\n{done.stdout}")
                ran += 1
        print(f"{ran} examples run; not run: {', '.join(not_run) or 'none'}")
        self.assertGreaterEqual(ran, 3)


if __name__ == "__main__":
    if os.environ.get("CUS_TEST_SANITIZER"):
        print("SKIPPED: Python does not run with a sanitizer's library")
        sys.exit(0)
    if os.environ.get("CUS_TEST_EMULATED"):
        print("SKIPPED: Python here is a program for another kind of processor than the library")
        sys.exit(0)
    try:
        unittest.main()
    finally:
        shutil.rmtree(WORK)
