"""Puts every mutant of a C file into that file, each behind CUS_MUTANT(its number): one build serves all of them.

tools/mutate-lines calls it with libclang's translation unit of the file. Each mutant is a prefix and a suffix around a piece of source, so
that mutants nest: what one of them changes is the original text, and the original branch holds the mutants within. Code that comes from a
macro stays as it is, since its text is elsewhere; so do constants that C wants at compile time.
"""
import bisect
import dataclasses
import re

from clang.cindex import CursorKind as K
from clang.cindex import TypeKind as T

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "&": "|",
         "|": "&", "^": "|", "<<": ">>", ">>": "<<", "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|="}
LOGICAL = ("&&", "||")
ALWAYS = re.compile(r"!?CUS_(HAZARD|PAYS)\(\w+\)")  # true in the library: leaving it out of an && or, negated, of an || changes nothing
WORDS = {K.IF_STMT: "if", K.FOR_STMT: "for", K.WHILE_STMT: "while", K.DO_STMT: "do", K.SWITCH_STMT: "switch"}
INTEGERS = (T.BOOL, T.CHAR_U, T.UCHAR, T.USHORT, T.UINT, T.ULONG, T.ULONGLONG, T.CHAR_S, T.SCHAR, T.SHORT, T.INT, T.LONG, T.LONGLONG, T.ENUM)
HEAD = """extern unsigned cus_mutant;
extern unsigned char *cus_mutant_reached;
#ifndef CUS_MUTANT
#define CUS_MUTANT(n) (cus_mutant_reached[n] = 1, cus_mutant == (n))
#endif
"""
# The variables behind CUS_MUTANT, for one file that every binary links. The file of MUTATE_LINES_REACHED has a byte for each mutant; all
# processes of a test write to it. Before the constructor ran, the code is the original.
DEFINITIONS = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static unsigned char cus_mutant_nowhere[%(room)d];
unsigned cus_mutant;
unsigned char *cus_mutant_reached = cus_mutant_nowhere;
__attribute__((constructor(101))) static void cus_mutant_start(void) {
    const char *number = getenv("MUTATE_LINES"), *file = getenv("MUTATE_LINES_REACHED");
    if (number)
        cus_mutant = (unsigned)atoi(number);
    int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(0, sizeof cus_mutant_nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED)
        cus_mutant_reached = map;
    close(fd);
}
"""


@dataclasses.dataclass
class Mutant:
    start: int  # bytes of the file
    end: int
    prefix: str  # holds %d, where the number comes
    suffix: str
    function: str
    line: int
    was: str
    now: str
    number: int = 0


class Finder:
    """The mutants of one file, outer ones before those within them."""

    def __init__(self, unit, path, source):
        self.path, self.source, self.found = path, source, []
        self.function, self.returns = "", None
        macros = [c for c in unit.cursor.get_children() if c.kind == K.MACRO_INSTANTIATION and self.here(c)]
        self.macros = sorted((c.extent.start.offset, c.extent.end.offset) for c in macros)
        for cursor in unit.cursor.get_children():
            if cursor.kind == K.FUNCTION_DECL and cursor.is_definition() and self.here(cursor):
                body = list(cursor.get_children())[-1]
                if not self.of_macro(body):
                    self.function, self.returns = cursor.spelling, cursor.result_type.get_canonical()
                    self.statement(body)

    def here(self, cursor):
        file = cursor.extent.start.file
        return file and file.name == self.path

    def of_macro(self, cursor):
        """The cursor comes from one macro, is within its arguments, or is in a file that this one includes here."""
        if not self.here(cursor):
            return True
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        place = bisect.bisect_right(self.macros, (start, 1 << 60)) - 1
        return start >= end or any(s <= start and end <= e for s, e in self.macros[max(0, place - 3):place + 1])

    def text(self, start, end):
        return self.source[start:end].decode()

    def of(self, cursor):
        return self.text(cursor.extent.start.offset, cursor.extent.end.offset)

    def add(self, cursor, prefix, suffix, now, end=None):
        start, end = cursor.extent.start.offset, end or cursor.extent.end.offset
        was = self.text(start, end)
        if "\n#" in was or start >= end:
            return
        line = cursor.extent.start.line
        shown = [re.sub(r"\s+", " ", text) for text in (was, now)]
        self.found.append(Mutant(start, end, prefix, suffix, self.function, line, *shown))

    def replace(self, cursor, now):
        self.add(cursor, f"(CUS_MUTANT(%d) ? ({now}) : (", "))", now)

    def negate(self, cursor):
        self.add(cursor, "(CUS_MUTANT(%d) == !(", "))", f"!({self.of(cursor)})")

    @staticmethod
    def bare(cursor):
        """Without the implicit casts around it."""
        while cursor.kind in (K.UNEXPOSED_EXPR, ):
            inner = list(cursor.get_children())
            if len(inner) != 1 or inner[0].extent != cursor.extent:
                break
            cursor = inner[0]
        return cursor

    def operator(self, cursor):
        """The operator of two operands as the source has it, or None."""
        operands = list(cursor.get_children())
        if cursor.kind not in (K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR) or len(operands) != 2:
            return None
        between = self.text(operands[0].extent.end.offset, operands[1].extent.start.offset)
        found = re.fullmatch(r"\s*(?:/\*.*?\*/\s*)?([-+*/%&|^<>=!]+)\s*(?:/\*.*?\*/\s*)?", between, re.S)
        return found and found[1]

    def condition(self, cursor):
        """What a branch or a loop asks."""
        inner = self.bare(cursor)
        while inner.kind == K.PAREN_EXPR and not self.of_macro(inner):
            inner = self.bare(list(inner.get_children())[0])
        if self.operator(inner) not in LOGICAL:
            self.negate(cursor)
        self.expression(cursor, asked=True)

    def operand(self, cursor, neutral):
        """One side of && or ||: a mutant goes without it."""
        inner = self.bare(cursor)
        while inner.kind == K.PAREN_EXPR and not self.of_macro(inner):
            inner = self.bare(list(inner.get_children())[0])
        if self.operator(inner) not in LOGICAL:
            if ALWAYS.fullmatch(self.of(inner)) and neutral != self.of(inner).startswith("!"):
                pass
            elif neutral:
                self.add(cursor, "(CUS_MUTANT(%d) || (", "))", "true")
            else:
                self.add(cursor, "(!CUS_MUTANT(%d) && (", "))", "false")
        self.expression(cursor, asked=True)

    def expression(self, cursor, asked=False):
        """asked: a condition or an operand of one, which has its mutant."""
        cursor = self.bare(cursor)
        if self.of_macro(cursor) or cursor.kind in (K.CXX_UNARY_EXPR, K.GENERIC_SELECTION_EXPR, K.ADDR_LABEL_EXPR):
            return
        if cursor.kind == K.CALL_EXPR and cursor.spelling == "__builtin_return_address":  # its argument is constant
            return
        inner = list(cursor.get_children())
        operator = self.operator(cursor)
        if cursor.kind in (K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR):
            pointers = any(c.type.get_canonical().kind in (T.POINTER, T.CONSTANTARRAY, T.INCOMPLETEARRAY) for c in map(self.bare, inner))
            if operator in SWAPS and not (pointers and operator in "+-*/%&|^"):
                left, right = map(self.of, inner)
                assigns = cursor.kind == K.COMPOUND_ASSIGNMENT_OPERATOR
                self.replace(cursor, f"{left} {SWAPS[operator]} ({right})" if assigns else f"({left}) {SWAPS[operator]} ({right})")
                self.found[-1].now = re.sub(r"\s+", " ", f"{left} {SWAPS[operator]} {right}")
            for child in inner:
                self.operand(child, operator == "&&") if operator in LOGICAL else self.expression(child)
        elif cursor.kind == K.CONDITIONAL_OPERATOR and len(inner) == 3:
            self.condition(inner[0])
            self.expression(inner[1])
            self.expression(inner[2])
        elif cursor.kind == K.INTEGER_LITERAL:
            text = self.of(cursor)
            if re.fullmatch(r"(0x[0-9a-fA-F]+|\d+)[uUlL]*", text):
                self.replace(cursor, f"{text} + 1")
        elif cursor.kind == K.UNARY_OPERATOR and self.of(cursor).startswith("!") and inner:
            if not asked and not self.of_macro(inner[0]):
                self.replace(cursor, f"!!({self.of(inner[0])})")
            self.expression(inner[0], asked=True)
        elif cursor.kind == K.StmtExpr:
            self.statement(inner[0])
        elif cursor.kind == K.PAREN_EXPR:
            self.expression(inner[0], asked)
        elif cursor.kind == K.INIT_LIST_EXPR:
            if self.of(cursor) != "{0}":
                for child in inner:
                    self.initial(child)
        elif cursor.kind.is_expression():
            for child in inner:
                if child.kind.is_expression():
                    self.expression(child)

    def initial(self, cursor):
        """An entry of a list of initial values: its designator is constant."""
        for child in [cursor] if self.text(cursor.extent.start.offset, cursor.extent.start.offset + 1) not in ".[" else list(cursor.get_children())[-1:]:
            if child.kind.is_expression():
                self.expression(child)

    def statement(self, cursor):
        inner = list(cursor.get_children())
        kind = cursor.kind
        if self.of_macro(cursor) and kind != K.COMPOUND_STMT:
            return
        if kind.is_expression():
            self.dropped_expression(cursor)
        elif kind == K.COMPOUND_STMT:
            for child in inner:
                self.statement(child)
        elif kind in WORDS and not self.of(cursor).startswith(WORDS[kind]):  # a macro has the head of a loop
            self.statement(inner[-1])
        elif kind == K.IF_STMT:
            self.condition(inner[0])
            for child in inner[1:]:
                self.statement(child)
        elif kind == K.WHILE_STMT:
            self.condition(inner[0])
            self.statement(inner[1])
        elif kind == K.DO_STMT:
            self.statement(inner[0])
            self.condition(inner[1])
        elif kind == K.FOR_STMT:
            self.loop(cursor, inner)
        elif kind == K.SWITCH_STMT:
            self.expression(inner[0])
            self.statement(inner[-1])
        elif kind in (K.CASE_STMT, K.DEFAULT_STMT, K.LABEL_STMT):
            self.statement(inner[-1])
        elif kind == K.RETURN_STMT and inner:
            self.returned(inner[0])
        elif kind in (K.BREAK_STMT, K.CONTINUE_STMT, K.RETURN_STMT):
            self.dropped_jump(cursor)
        elif kind == K.DECL_STMT:
            for child in inner:
                self.declared(child)

    def loop(self, cursor, inner):
        marks = [t.extent.start.offset for t in cursor.get_tokens() if t.spelling == ";"][:2]
        for child in inner[:-1]:
            start = child.extent.start.offset
            if start < marks[0]:
                self.statement(child) if child.kind == K.DECL_STMT else self.expression(child)
            elif start < marks[1]:
                self.condition(child)
            else:
                self.expression(child)
        self.statement(inner[-1])

    def dropped_expression(self, cursor):
        cursor = self.bare(cursor)
        if cursor.kind in (K.CALL_EXPR, K.UNARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR, K.BINARY_OPERATOR):
            self.add(cursor, "(void)(CUS_MUTANT(%d) ? 0 : ((", "), 0))", "")
        self.expression(cursor)

    def dropped_jump(self, cursor):
        end = self.source.index(b";", cursor.extent.end.offset - 1) + 1
        self.add(cursor, "{ if (!CUS_MUTANT(%d)) ", " }", "", end)

    def returned(self, cursor):
        kind = self.returns.kind
        text = self.of(cursor)
        inner = self.bare(cursor)
        logical = self.operator(inner) in LOGICAL
        if kind == T.BOOL or (kind in INTEGERS and inner.type.get_canonical().kind == T.BOOL):
            if not logical:
                self.negate(cursor)
        elif kind in INTEGERS:
            self.replace(cursor, f"!({text})")
        elif kind == T.POINTER and text != "NULL":
            self.replace(cursor, "0")
        self.expression(cursor, asked=True)

    def declared(self, cursor):
        if cursor.kind != K.VAR_DECL or cursor.storage_class.name == "STATIC":
            return
        for child in cursor.get_children():
            if child.kind.is_expression() and self.source[:child.extent.start.offset].rstrip().endswith(b"="):
                self.expression(child)


def mutate(unit, path, first):
    """The mutants of a file, numbered from `first`, and its text with all of them (the same text, if there are none)."""
    with open(path, "rb") as file:
        source = file.read()
    found = Finder(unit, path, source).found
    for number, mutant in enumerate(found, first):
        mutant.number = number
    text, at, open_ = [], 0, []
    for mutant in sorted(found, key=lambda m: (m.start, -m.end)):
        while open_ and open_[-1].end <= mutant.start:
            text += [source[at:open_[-1].end].decode(), open_[-1].suffix]
            at = open_.pop().end
        text += [source[at:mutant.start].decode(), mutant.prefix.replace("%d", str(mutant.number), 1)]
        at = mutant.start
        open_.append(mutant)
    while open_:
        text += [source[at:open_[-1].end].decode(), open_[-1].suffix]
        at = open_.pop().end
    text.append(source[at:].decode())
    body = "".join(text)
    if not found:
        return [], body
    if path.endswith(".h"):  # in C++ an enum does not come of an int, and a warning of a header is everybody's
        return found, f"#ifdef __cplusplus\n{source.decode()}\n#else\n#pragma GCC system_header\n{HEAD}{body}\n#endif\n"
    return found, HEAD + body
