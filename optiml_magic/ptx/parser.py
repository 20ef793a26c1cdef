"""PTX text to the nouns of ``nouns``.

Source: PTX ISA 9.x, "Syntax" and "Directives". Register scopes are resolved here: every register
and every variable of a function has a name of its own afterwards.
"""

from __future__ import annotations

import math
import re
import struct
from bisect import bisect_left
from dataclasses import replace
from functools import lru_cache

from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.ptx.nouns import (
    Address,
    Call,
    Function,
    Immediate,
    Instruction,
    Item,
    Label,
    Negated,
    Operand,
    Pair,
    PtxModule,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
    bits,
)
from optiml_magic.ptx.sources import SourceLines


@lru_cache(maxsize=4)
def parse(text: str) -> PtxModule:
    """The module that ``text`` describes. Raises UnsupportedPtx for directives unknown here.

    Whoever asks again gets the same one: nobody changes it.
    """
    return _Parser(text).module()


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LINE_DIRECTIVE = re.compile(
    r"^\s*\.(?:loc|file|version|target|address_size)\b[^\n;]*$", re.MULTILINE
)
_LABEL = re.compile(r"^\s*([\w$%]+)\s*:(?!:)", re.MULTILINE)
_SECTION = re.compile(r"^\s*\.section\b", re.MULTILINE)


def _statements(text: str) -> list[tuple[str, int]]:
    """Statements without their ``;``, and the 1-based line where each begins.

    A brace that opens or closes a scope stands alone.
    """
    text = _COMMENT.sub(lambda m: "\n" * m[0].count("\n"), text)
    text = _LINE_DIRECTIVE.sub(lambda m: m[0] + ";", text)
    text = _LABEL.sub(lambda m: m[0] + ";", text)
    ends = [match.start() for match in re.finditer("\n", text)]
    out: list[tuple[str, int]] = []
    start = depth = 0
    for match in re.finditer(r"[{};]", text):
        char, at = match[0], match.start()
        pending = text[start:at].strip()
        if depth:  # inside a vector operand or an initialiser
            depth += {"{": 1, "}": -1}.get(char, 0)
            continue
        if char == "{" and pending and not _opens_body(pending):
            depth = 1
            continue
        if pending:
            begin = start + len(text[start:at]) - len(text[start:at].lstrip())
            out.append((" ".join(pending.split()), bisect_left(ends, begin) + 1))
        if char != ";":
            out.append((char, 0))
        start = at + 1
    return out


def _opens_body(pending: str) -> bool:
    return re.match(r"(\.(visible|weak|extern|common)\s+)*\.(entry|func)\b", pending) is not None


class _Parser:
    """One pass over the statements with a stack of register scopes."""

    def __init__(self, text: str) -> None:
        section = _SECTION.search(text)
        self._sources = SourceLines(text)
        self._statements = _statements(text[: section.start()] if section else text)
        self._variables: list[Variable] = []
        self._functions: dict[str, Function] = {}
        self._function: Function | None = None
        self._scopes: list[dict[str, Register]] = []
        self._renamed: list[dict[str, str]] = []
        self._count = 0
        self._table = ""
        self._line = 0  # of the PTX

    def module(self) -> PtxModule:
        for statement, line in self._statements:
            self._line = line
            if self._function is None:
                self._outside(statement)
            else:
                self._inside(self._function, statement)
        return PtxModule(self._variables, self._functions)

    def _outside(self, statement: str) -> None:
        if _opens_body(statement):
            self._function = _header(statement)
            self._sources.line = 0
        elif re.match(r"\.(version|target|address_size|file|loc|pragma|alias)\b", statement):
            pass
        elif declared := declaration(statement):
            self._variables.extend(declared)
        elif statement not in "{}":
            raise UnsupportedPtx(statement, 0, f"The PTX directive `{statement}` is not supported.")

    def _inside(self, function: Function, statement: str) -> None:
        if statement == "{":
            self._scopes.append({})
            self._renamed.append({})
        elif statement == "}":
            self._scopes.pop()
            self._renamed.pop()
            if not self._scopes:
                self._functions[function.name] = function
                self._function = None
        elif not self._scopes:  # a prototype, with no body
            self._function = None
            self._outside(statement)
        else:
            self._body(function, statement)

    def _body(self, function: Function, statement: str) -> None:
        if statement.endswith(":"):
            self._table = statement[:-1]
            function.body.append(Label(self._table))
        elif statement.startswith(".loc "):
            self._sources.follow(statement)
        elif statement.startswith(".branchtargets"):
            names = statement.split(None, 1)[1]
            function.tables[self._table] = tuple(n.strip() for n in names.split(","))
        elif statement.startswith((".callprototype", ".calltargets")):
            pass  # any function whose address is taken may be called, if its parameters fit
        elif statement.startswith(".reg"):
            self._registers(statement)
        elif statement.startswith("."):
            self._declare(function, statement)
        else:
            function.body.append(self._instruction(statement))

    def _declare(self, function: Function, statement: str) -> None:
        for variable in declaration(statement) or ():
            name = variable.name
            if len(self._scopes) > 1:
                self._count += 1
                name = f"{variable.name}#{self._count}"
                self._renamed[-1][variable.name] = name
            function.variables.append(replace(variable, name=name))

    def _registers(self, statement: str) -> None:
        type_, names = re.match(r"\.reg\s*\.(\w+)\s+(.*)", statement).groups()  # type: ignore[union-attr]
        self._count += 1
        suffix = f"#{self._count}" if len(self._scopes) > 1 else ""
        for name in (n.strip() for n in names.split(",")):
            ranged = re.match(r"([%\w$]+)<(\d+)>", name)
            all_ = [f"{ranged[1]}{i}" for i in range(int(ranged[2]))] if ranged else [name]
            self._scopes[-1].update({n: Register(n + suffix, type_) for n in all_})

    def _instruction(self, statement: str) -> Item:
        match = re.match(r"(?:@(!?)\s*([%\w$]+)\s+)?([\w.:]+)\s*(.*)", statement)
        if match is None:
            raise UnsupportedPtx(statement, self._sources.line, f"Cannot read `{statement}`.")
        unless, guard, opcode, rest = match.groups()
        register = self._find(guard) if guard else None
        if opcode.split(".")[0] == "call":
            return replace(self._call(rest, register), unless=bool(unless))
        operands = tuple(self._operand(part) for part in split(rest))
        return Instruction(
            opcode, operands, self._sources.line, register, bool(unless), ptx_line=self._line
        )

    def _call(self, rest: str, guard: Register | None) -> Call:
        parts = split(rest)
        results = self._names(parts.pop(0)) if parts[0].startswith("(") else ()
        arguments = self._names(parts[1]) if len(parts) > 1 else ()
        pointer = self._find(parts[0])
        target = "" if pointer else parts[0]
        return Call(target, arguments, results, self._sources.line, guard, pointer=pointer)

    def _names(self, group: str) -> tuple[str, ...]:
        return tuple(self._rename(n) for n in split(group.strip("() ")))

    def _rename(self, name: str) -> str:
        return next((s[name] for s in reversed(self._renamed) if name in s), name)

    def _find(self, name: str) -> Register | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _operand(self, text: str) -> Operand:
        text = text.strip()
        if text == "_":
            return Sink()
        if text[0] == "[":
            return self._address(text[1:-1])
        if text[0] == "{":
            return Vector(tuple(self._operand(p) for p in split(text[1:-1])))
        if "|" in text:
            first, second = text.split("|")
            return Pair(self._operand(first), self._operand(second))
        if text[0] == "!" and (register := self._find(text[1:].strip())):
            return Negated(register)
        if register := self._find(text):
            return register
        return self._value(text)

    def _value(self, text: str) -> Operand:
        immediate = literal(text)
        if immediate is not None:
            return immediate
        if text == "WARP_SZ":
            return Immediate(32)
        if text.startswith("%"):
            return Special(text)
        match = re.match(r"([\w$%]+)\s*(?:([+-])\s*(\d+))?$", text)
        if match is None:
            raise UnsupportedPtx(text, self._sources.line, f"Cannot read the operand `{text}`.")
        offset = int((match[2] or "+") + (match[3] or "0"))
        return Symbol(self._rename(match[1]), offset)

    def _address(self, text: str) -> Address:
        match = re.match(r"\s*([\w$%.]+)\s*(?:\+\s*(-?\w+)|(-\d+))?\s*$", text)
        if match is None:
            raise UnsupportedPtx(text, self._sources.line, f"Cannot read the address `[{text}]`.")
        base = self._operand(match[1])
        offset = int(match[2] or match[3] or "0", 0)
        if not isinstance(base, Register | Symbol | Immediate):
            raise UnsupportedPtx(text, self._sources.line, f"Cannot read the address `[{text}]`.")
        return Address(base, offset)


def split(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def literal(text: str) -> Immediate | None:
    """PTX ISA, "Constants": 12, -1, 0x1fU, 0f3F800000, 0d3FF0000000000000, 1.5e3."""
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return Immediate(int(match[1], 16), "f32")
    if match := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", text):
        return Immediate(int(match[1], 16), "f64")
    if re.fullmatch(r"-?(\d+\.\d*([eE][+-]?\d+)?|\d+[eE][+-]?\d+)", text):
        return Immediate(int.from_bytes(struct.pack("<d", float(text)), "little"), "f64")
    if match := re.fullmatch(r"(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?", text):
        digits = match[2]
        octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
        value = int(digits, 8 if octal else 0)
        return Immediate(-value if match[1] else value)
    return None


_VARIABLE = re.compile(
    r"(?:\.(?:visible|weak|extern|common|managed)\s+)*\.(?P<space>global|const|shared|local|param)"
    r"(?:\s*\.attribute\([^)]*\))?(?:\s*\.align\s+(?P<align>\d+))?(?:\s*\.ptr\b[^%]*?(?=\s\S+$))?"
    r"\s*\.(?P<type>\w+)\s+(?P<name>[\w$%]+)\s*(?P<extent>(?:\[\d*\]\s*)*)(?:=\s*(?P<value>.*))?$"
)


def declaration(statement: str) -> list[Variable] | None:
    """The variable that ``statement`` declares, or None where it is not a declaration."""
    statement = re.sub(
        r"\.ptr\b(?:\s*\.(?:global|const|shared|local))?(?:\s*\.align\s+\d+)?", "", statement
    )
    match = _VARIABLE.match(statement)
    if match is None:
        return None
    element = max(bits(match["type"]) // 8, 1)
    count = 1
    for extent in re.findall(r"\[(\d*)\]", match["extent"]):
        count *= int(extent or 0)
    initial = _initial(match["value"] or "")
    return [
        Variable(
            match["name"],
            match["space"],
            element * count,
            int(match["align"] or element),
            initial,
            element,
        )
    ]


def _initial(text: str) -> tuple[int | Symbol, ...]:
    values: list[int | Symbol] = []
    for part in split(text.strip().removeprefix("{").removesuffix("}")):
        immediate = literal(part)
        if immediate is not None:
            values.append(immediate.value)
        elif part.startswith("{"):
            values.extend(_initial(part))
        else:
            name = re.sub(r"generic\(([^)]*)\)", r"\1", part)
            base, _, offset = name.partition("+")
            values.append(Symbol(base.strip(), int(offset or 0)))
    return tuple(values)


def _header(statement: str) -> Function:
    match = re.match(
        r".*?\.(?P<kind>entry|func)\s*(?:\((?P<results>[^)]*)\))?\s*(?P<name>[\w$]+)"
        r"\s*(?:\((?P<params>.*?)\))?(?P<directives>[^()]*)$",
        statement,
    )
    if match is None:
        raise UnsupportedPtx(statement, 0, f"Cannot read the function header `{statement}`.")

    def variables(group: str | None) -> list[Variable]:
        return [v for part in split(group or "") for v in declaration(part) or ()]

    _refuse_clusters(match["directives"])
    most = _extents(match["directives"], "maxntid")
    return Function(
        match["name"],
        match["kind"] == "entry",
        variables(match["params"]),
        variables(match["results"]),
        most_threads=math.prod(most) if most else None,
        block=_extents(match["directives"], "reqntid"),
    )


def _extents(directives: str, name: str) -> tuple[int, int, int] | None:
    """The extents that a directive of a kernel gives. PTX ISA, "Performance-Tuning Directives"."""
    match = re.search(rf"\.{name}\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", directives)
    return (int(match[1]), int(match[2] or 1), int(match[3] or 1)) if match else None


def _refuse_clusters(directives: str) -> None:
    """PTX ISA, "Cluster Dimension Directives". A cluster of one block is like any block."""
    size = _extents(directives, "reqnctapercluster")
    if (size or ".explicitcluster" in directives) and size != (1, 1, 1):
        text = f".reqnctapercluster {', '.join(map(str, size))}" if size else ".explicitcluster"
        message = f"`{text}` is not supported: the emulator has no clusters."
        raise UnsupportedPtx(text, 0, message)
