"""Lists the undefined names that each given Python file uses. Otherwise a case would fail only when it reaches them, on the machine with the
GPU. Status 1 if there are any.

    python3 tests/gpu/names_check.py tests/gpu/*.py
"""

import builtins
import symtable
import sys


def tables(table):
    yield table
    for child in table.get_children():
        yield from tables(child)


def undefined(path):
    with open(path) as f:
        top = symtable.symtable(f.read(), path, "exec")
    known = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()} | set(dir(builtins)) | {"__file__"}
    for table in tables(top):  # what a function makes global
        known |= {s.get_name() for s in table.get_symbols() if s.is_declared_global() and s.is_assigned()}
    return sorted({s.get_name() for table in tables(top) for s in table.get_symbols() if s.is_global() and s.is_referenced()} - known
                  | {s.get_name() for s in top.get_symbols() if s.is_referenced()} - known)


found = [(path, undefined(path)) for path in sys.argv[1:]]
for path, names in found:
    if names:
        print(f"{path}: {', '.join(names)}")
sys.exit(any(names for _, names in found))
