"""cusplice makes CUDA programs launch faster. From Python:

* `run` runs a program with the library preloaded, as `cusplice run` does.
* `configure_subprocess` gives the environment in which somebody else starts one: subprocess,
  multiprocessing, Ray.
* `step`, `force_break`, `suspend`, `resume`, `suspended` and `counters` talk to the library in
  this process. Where none is preloaded they do nothing. `loaded` tells whether one is. They are
  the calls of the header cusplice.h.

Importing the module starts nothing and preloads nothing: a library comes into a process only when
the process starts.
"""
import ctypes
import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from typing import Any, Iterator, List, Mapping, MutableMapping, NamedTuple, NoReturn, Optional
from typing import Sequence, Union

__all__ = [
    "Counters", "configure_subprocess", "counters", "force_break", "interface", "loaded", "resume",
    "run", "step", "suspend", "suspended",
]

_Path = Union[str, "os.PathLike[str]"]
_Paths = Union[_Path, Sequence[_Path]]
_Patterns = Union[str, Sequence[str]]
_Settings = Mapping[str, object]

# ---- programs with the library ----


def _launcher() -> str:
    """The command of this package, which finds its library by its own path."""
    return os.path.join(os.path.dirname(os.path.realpath(__file__)), "bin", "cusplice")


def _all(one_or_more: _Paths) -> List[str]:
    if isinstance(one_or_more, (str, os.PathLike)):
        return [os.fspath(one_or_more)]
    return [os.fspath(one) for one in one_or_more]


def _command(config: _Paths, eager: _Patterns, mode: Optional[str], stats: Optional[_Path],
             why: bool, settings: Optional[_Settings]) -> List[str]:
    """`cusplice run` with these options, which the launcher judges."""
    command = [_launcher(), "run"]
    for name in _all(config):
        command += ["--config", name]
    for key, value in (settings or {}).items():
        text = ("no", "yes")[value] if isinstance(value, bool) else value
        command += ["--set", f"{key}={text}"]
    for pattern in _all(eager):
        command += ["--eager", pattern]
    if mode is not None:
        command += ["--mode", mode]
    if stats is not None:
        command += ["--stats", os.fspath(stats)]
    return command + ["--why"] * why


def run(argv: _Paths, *, config: _Paths = (), eager: _Patterns = (), mode: Optional[str] = None,
        stats: Optional[_Path] = None, why: bool = False, set: Optional[_Settings] = None,
        **options: Any) -> "subprocess.CompletedProcess[Any]":
    """Runs a program with the library preloaded, as `cusplice run` does, and waits for it.

    argv: the program and its arguments.
    config: a file or a preset ("pytorch"), or several; of two files the later one is stronger.
    eager: a pattern of kernels that stay out of graphs, or several.
    mode: which launches become graphs: "piecewise", "full", "observe", "off" and others.
    stats: a file for counters as JSON, or a folder for those of each process: its name ends in a
        slash.
    why: say at the program's end, on stderr, what went into graphs and what did not.
    set: any setting of cusplice.conf: {"hold_us": 60}. True and False are yes and no.
    options: all that subprocess.run takes, but for shell and executable: env, cwd, check,
        timeout, capture_output. Relative paths count from cwd.

    The returncode is the program's: -N, if signal N ended it. 125: an option or setting is wrong;
    126: the program cannot be run; 127: it is not found. Stderr has the reason then, and what the
    launcher says of the run.
    """
    for name in ("shell", "executable"):
        if name in options:
            raise TypeError(f"cusplice.run() takes no {name}: argv names the program")
    command = _command(config, eager, mode, stats, why, set)
    return subprocess.run([*command, "--", *_all(argv)], **options)


def configure_subprocess(env: Optional[MutableMapping[str, str]] = None, *, config: _Paths = (),
                         eager: _Patterns = (), mode: Optional[str] = None,
                         stats: Optional[_Path] = None, why: bool = False,
                         set: Optional[_Settings] = None) -> MutableMapping[str, str]:
    """The environment of programs that others start, so that they run as under `run`.

    The options are those of `run`.

    env: is filled in and returned. None: a copy of os.environ is. A dict {} gets the variables
        alone, for Ray's env_vars. With os.environ itself, all that this process starts from now
        on is preloaded, such as the children of multiprocessing's "spawn".

    Other entries of its LD_PRELOAD stay, behind the library. The folder of `stats` is made.
    Nobody gathers what the programs say: with `why` each writes its report to its own stderr, or
    into the folder of `stats`.

    Raises ValueError with the launcher's message where an option or setting is wrong. Nothing is
    filled in then. The variables are those that `cusplice run --print-env` prints: this function
    starts it, which takes some milliseconds.
    """
    filled: MutableMapping[str, str] = dict(os.environ) if env is None else env
    # The launcher asks these where the user's settings and caches are, also if env has them not.
    homes = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    known = {name: os.environ[name] for name in homes if name in os.environ}
    printed = subprocess.run(
        [*_command(config, eager, mode, stats, why, set), "--print-env"], check=False,
        env={**known, **filled}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    said = os.fsdecode(printed.stderr)
    if printed.returncode:
        raise ValueError(said.strip())
    sys.stderr.write(said)
    words = iter(shlex.split(os.fsdecode(printed.stdout)))
    for word in words:
        name, _, value = next(words).partition("=")
        if word == "export":
            filled[name] = value
        else:
            filled.pop(name, None)
    return filled


# ---- the library in this process ----


class Counters(NamedTuple):
    """Counts since the process began, over all streams. All are 0 where no library is preloaded.
    Later versions add fields at the end.

    They count ops unless it says otherwise. An op is a kernel launch, a memset, a copy, a record
    of an event, or a wait of a stream for one.

    launches: kernel launches.
    memsets: memsets.
    copies: copies.
    in_graphs: ops that the launch of a graph issued.
    eager: ops that were issued one by one.
    graph_launches: graphs launched.
    steps: steps ended: by a synchronisation, by step(), or by a repetition of a loop.
    patched_nodes: nodes of graphs whose parameters were changed before a launch.
    graph_bytes: device memory that graphs hold, an estimate in bytes.
    build_us: microseconds spent on building graphs.
    records: records of events that could be deferred.
    waits: waits for events that fork or join a stream within a graph.
    """
    launches: int
    memsets: int
    copies: int
    in_graphs: int
    eager: int
    graph_launches: int
    steps: int
    patched_nodes: int
    graph_bytes: int
    build_us: int
    records: int
    waits: int


class _Counters(ctypes.Structure):
    """struct cusplice_counters."""
    _fields_ = [(name, ctypes.c_uint64) for name in Counters._fields]


# The functions of a preloaded library are in the scope of the process. ctypes lets go of the GIL
# while one runs.
_process = ctypes.CDLL(None)
_preloaded = hasattr(_process, "cusplice_interface_")
if _preloaded:
    _process.cusplice_read_counters_.restype = ctypes.c_size_t
    _process.cusplice_read_counters_.argtypes = [ctypes.POINTER(_Counters), ctypes.c_size_t]


def interface() -> int:
    """The version of the interface that the preloaded library has; 0: none is preloaded. A
    library with CUSPLICE=off answers too.
    """
    return int(_process.cusplice_interface_()) if _preloaded else 0


def loaded() -> bool:
    """Is a library preloaded into this process? It may still be off, or the driver too old for
    graphs.
    """
    return _preloaded


def step() -> None:
    """Ends a step on the stream on which the calling thread worked last, and issues what it
    deferred there.

    For loops whose steps do not end in a synchronisation. Waits for nothing.
    """
    if _preloaded:
        _process.cusplice_mark_step_()


def force_break() -> None:
    """Issues what the calling thread has deferred. The next op begins a new graph.

    For a place at which something outside CUDA is about to look at the GPU's work.
    """
    if _preloaded:
        _process.cusplice_force_break_()


def suspend() -> None:
    """Suspends the library for the calling thread: its ops go straight to the driver, until it
    has called resume() as often as this.
    """
    if _preloaded:
        _process.cusplice_suspend_()


def resume() -> None:
    """Takes one suspend() of the calling thread back. Ignored where there is none."""
    if _preloaded:
        _process.cusplice_resume_()


@contextmanager
def suspended() -> Iterator[None]:
    """Suspends the library for the calling thread within a with statement or, as a decorator,
    within a function.
    """
    suspend()
    try:
        yield
    finally:
        resume()


def counters() -> Counters:
    """What the library in this process has counted so far; takes some microseconds."""
    now = _Counters()
    if _preloaded:
        _process.cusplice_read_counters_(ctypes.byref(now), ctypes.sizeof(now))
    return Counters(*(getattr(now, name) for name in Counters._fields))


# ---- the console script ----


def main() -> NoReturn:
    """Becomes the launcher, which passes the program's exit status through."""
    if sys.argv[1:2] == ["demo"]:  # which looks for a python3: behind all others there is this one
        path = os.environ.get("PATH", os.defpath)
        os.environ["PATH"] = path + os.pathsep + os.path.dirname(sys.executable)
    os.execv(_launcher(), ["cusplice"] + sys.argv[1:])
