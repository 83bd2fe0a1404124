"""cusplice makes CUDA programs launch faster. This package holds the library and the command `cusplice`."""
import os
import sys


def main():
    """The console script: becomes the launcher, which passes the program's exit status through."""
    launcher = os.path.join(os.path.dirname(os.path.realpath(__file__)), "bin", "cusplice")
    if sys.argv[1:2] == ["demo"]:  # which looks for a python3: behind all others there is this one
        os.environ["PATH"] = os.environ.get("PATH", os.defpath) + os.pathsep + os.path.dirname(sys.executable)
    os.execv(launcher, ["cusplice"] + sys.argv[1:])
