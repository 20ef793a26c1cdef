"""One ``#pragma optiml`` line to its directive."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError, nearest
from optiml_magic.source.directives import (
    ArgvDirective,
    Directive,
    InitDirective,
    LaunchDirective,
    RepeatDirective,
    RequireDirective,
    ScratchDirective,
    SizeDirective,
    TuneDirective,
    ZeroDirective,
)
from optiml_magic.source.dtypes import SCALARS, scalar_dtype
from optiml_magic.source.expressions import Expression, parse_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HEAD = re.compile(r"#\s*pragma\s+optiml\b")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_INTEGER = re.compile(r"[-+]?\s*(?:0[xX][0-9a-fA-F]{1,16}|\d{1,19})\b", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?[fF]?", re.ASCII)
CLAUSES = ("grid", "block", "shared", "args", "repeat", "swap")
_CLAUSE = re.compile(rf"\b({'|'.join(CLAUSES)})\s*\(")
_IF, _ELSE = re.compile(r"if\b"), re.compile(r"else\b")
_KERNEL = re.compile(r"(?:::)?[A-Za-z_]\w*[\w:<>,()*&+\-/% ]*", re.ASCII)
_DISPATCHED = "launch KERNEL grid(BLOCKS) block(THREADS) if (CONDITION)"
_OPENING, _CLOSING = "([{", ")]}"
_MAX_VALUES = 4096
_SPELLED_FLOATS = {"INFINITY": math.inf, "-INFINITY": -math.inf, "NAN": math.nan}


@dataclass(frozen=True)
class Form:
    """How a directive is written, and what it is for."""

    usage: str
    means: str


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "launch": Form(
            "launch KERNEL grid(BLOCKS) block(THREADS)", "one launch; several run in order"
        ),
        "tune": Form("tune TILE in {8, 16, 32} = 16", "a compile-time number that a search tunes"),
        "require": Form("require n % 4 == 0", "what must hold of the sizes for this program"),
        "scratch": Form("scratch partial float[cdiv(n, 256)]", "a temporary buffer"),
        "zero": Form("zero(out)", "a buffer cleared before the launches"),
        "init": Form("init(out) = 0", "what an output holds before the launches"),
        "argv": Form("argv(1024, 10)", "what the `main` of a pasted program is given"),
        "size": Form("size n = shape(a, 0)", "a scalar that follows an array's shape"),
        "repeat": Form("repeat(COUNT) swap(a, b)", "the launches below run so often, with swaps"),
    }
)


def parse_directive(text: str, *, line: int = 0, start: int = 0) -> Directive:
    """The directive on one logical line, which begins with ``#pragma optiml``.

    ``text`` has its comments blanked and ``start`` is its offset in the program.
    """
    head = HEAD.match(text)
    if head is None:
        raise SourceError("not a directive", fix="begin it with `#pragma optiml`", line=line)
    reader = _Reader(text, head.end(), line, start)
    word = reader.name("a directive", fix=f"use one of {_KNOWN}")
    if word not in _DIRECTIVES:
        raise reader.error(
            f"unknown directive `{word}`",
            nearest(word, _DIRECTIVES) or f"use one of {_KNOWN}",
        )
    directive = _DIRECTIVES[word](reader)
    reader.finish()
    return directive


class _Reader:
    """A cursor over one directive."""

    def __init__(self, text: str, at: int, line: int, start: int) -> None:
        self.text = text
        self.at = at
        self.line = line
        self.start = start
        self.place = {"line": line, "start": start, "end": start + len(text)}

    def error(self, message: str, fix: str = "") -> SourceError:
        return SourceError(message, fix=fix, line=self.line or None)

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, token: str) -> bool:
        self.skip()
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def expect(self, token: str, usage: str) -> None:
        if not self.take(token):
            found = self.text[self.at : self.at + 20].strip() or "the end of the line"
            raise self.error(f"`{token}` expected, `{found}` found", f"write `{usage}`")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        self.skip()
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def name(self, what: str, fix: str = "") -> str:
        name = self.match(_NAME)
        if name is None:
            raise self.error(f"{what} is missing", fix)
        return name

    def rest(self) -> str:
        text, self.at = self.text[self.at :], len(self.text)
        return text

    def expression(self, text: str) -> Expression:
        return parse_expression(text, self.line or None)

    def parts(self, usage: str, opening: str = "(") -> tuple[str, ...]:
        """The comma-separated texts up to the bracket that closes ``opening``."""
        self.expect(opening, usage)
        depth, begin, parts = 0, self.at, []
        for at in range(self.at, len(self.text)):
            char = self.text[at]
            if char in _OPENING:
                depth += 1
            elif char in _CLOSING:
                depth -= 1
            if depth < 0 or (char == "," and depth == 0):
                parts.append(self.text[begin:at])
                begin = at + 1
            if depth < 0:
                self.at = begin
                return tuple(parts)
        raise self.error(f"`{opening}` is never closed", f"write `{usage}`")

    def finish(self) -> None:
        self.skip()
        if self.at < len(self.text):
            left = self.text[self.at : self.at + 40].strip()
            raise self.error(f"unexpected `{left}` at the end of the directive", "remove it")


def _launch(reader: _Reader) -> LaunchDirective:
    usage = FORMS["launch"].usage
    clause = _CLAUSE.search(reader.text, reader.at)
    until = clause.start() if clause else len(reader.text)
    kernel = _spaced(reader.text[reader.at : until])
    reader.at = until
    if re.search(r"\b(if|else)\b", kernel):
        raise reader.error("`if` or `else` before the extents", f"write `{_DISPATCHED}`")
    if kernel and (not _KERNEL.fullmatch(kernel) or kernel.count("<") != kernel.count(">")):
        raise reader.error(f"`{kernel[:60]}` is not a kernel name", f"write `{usage}`")
    clauses: dict[str, tuple[str, ...]] = {}
    repeat = None
    while word := reader.match(_CLAUSE):
        word = word.rstrip("( \t")
        reader.at -= 1
        if word in ("repeat", "swap"):
            if word == "swap" or repeat is not None:
                raise reader.error(f"`{word}` is not expected here", "write `repeat(n) swap(a, b)`")
            repeat = _repeat(reader)
            continue
        if word in clauses:
            raise reader.error(f"`{word}` is given twice", f"write `{usage}`")
        clauses[word] = reader.parts(usage)
    if unknown := reader.match(re.compile(r"(?!if\b|else\b)[A-Za-z_]\w*(?=\s*\()", re.ASCII)):
        known = nearest(unknown, CLAUSES) or f"use one of {', '.join(CLAUSES)}"
        raise reader.error(f"unknown clause `{unknown}`", known)
    for word in ("grid", "block"):
        if not 1 <= len(clauses.get(word, ())) <= 3:
            message = f"a launch needs `{word}(...)` with 1 to 3 axes"
            raise reader.error(message, f"write `{usage}`")
    if len(clauses.get("shared", ("",))) != 1:
        raise reader.error("`shared` takes one number of bytes", "write `shared(BYTES)`")
    args = clauses.get("args")
    if args is not None and [part.strip() for part in args] == [""]:
        args = ()
    otherwise = reader.match(_ELSE) is not None
    return LaunchDirective(
        kernel or None,
        tuple(map(reader.expression, clauses["grid"])),
        tuple(map(reader.expression, clauses["block"])),
        reader.expression(clauses["shared"][0]) if "shared" in clauses else None,
        tuple(map(reader.expression, args)) if args is not None else None,
        repeat,
        _condition(reader),
        otherwise,
        **reader.place,
    )


def _condition(reader: _Reader) -> Expression | None:
    """What follows ``if``; a clause behind it would be read by nobody."""
    condition = None
    if reader.match(_IF):
        parts = reader.parts(_DISPATCHED)
        if len(parts) != 1:
            raise reader.error("`if` takes one condition", f"write `{_DISPATCHED}`")
        condition = reader.expression(parts[0])
    if late := reader.match(_CLAUSE):
        word = late.rstrip("( \t")
        raise reader.error(f"`{word}` after `if` or `else`", f"write `{_DISPATCHED}`")
    return condition


def _spaced(name: str) -> str:
    """A name expression with blanks only between words and after commas."""
    tokens = re.findall(r"\w+|[^\w\s]", name)
    text = ""
    for token in tokens:
        apart = text[-1:] == "," or (text[-1:].isidentifier() and token[:1].isidentifier())
        text += f" {token}" if apart else token
    return text


def _repeat(reader: _Reader) -> RepeatDirective:
    usage = FORMS["repeat"].usage
    count = reader.parts(usage)
    if len(count) != 1:
        raise reader.error("`repeat` takes one count", f"write `{usage}`")
    swaps = []
    while reader.match(re.compile(r"swap(?=\s*\()")):
        pair = [part.strip() for part in reader.parts(usage)]
        if len(pair) != 2 or not all(_NAME.fullmatch(name) for name in pair):
            raise reader.error("`swap` takes the names of two buffers", f"write `{usage}`")
        swaps.append((pair[0], pair[1]))
    return RepeatDirective(reader.expression(count[0]), tuple(swaps), **reader.place)


def _tune(reader: _Reader) -> TuneDirective:
    usage = FORMS["tune"].usage
    name = reader.name("the tuned name", f"write `{usage}`")
    if reader.match(re.compile(r"in\b")) is None:
        raise reader.error("`in` expected", f"write `{usage}`")
    values = tuple(_integer(reader, part, usage) for part in reader.parts(usage, "{"))
    if len(set(values)) != len(values) or len(values) > _MAX_VALUES:
        raise reader.error(f"the values of `{name}` repeat or are too many", "give each once")
    value, begin = None, reader.at
    if reader.take("="):
        reader.skip()
        begin = reader.at
        value = _integer(reader, reader.match(_INTEGER) or "", usage)
    end = reader.at if value is not None else begin
    condition = None
    if reader.match(_IF):
        condition = reader.expression(reader.rest())
    if value is not None and value not in values:
        raise reader.error(
            f"{name} = {value} is not in its set", f"choose one of {', '.join(map(str, values))}"
        )
    return TuneDirective(
        name, values, value, condition, **reader.place,
        value_start=reader.start + begin, value_end=reader.start + end,
    )  # fmt: skip


def _integer(reader: _Reader, text: str, usage: str) -> int:
    text = "".join(text.split())
    if not _INTEGER.fullmatch(text):
        raise reader.error(f"`{text[:40]}` is not an integer", f"write `{usage}`")
    value = int(text, 16 if "x" in text.lower() else 10)
    if not -(2**63) <= value < 2**63:
        raise reader.error(f"{value} is beyond 64 bits", "use a smaller value")
    return value


def _require(reader: _Reader) -> RequireDirective:
    return RequireDirective(reader.expression(reader.rest()), **reader.place)


def _scratch(reader: _Reader) -> ScratchDirective:
    usage = FORMS["scratch"].usage
    name = reader.name("the name of the buffer", f"write `{usage}`")
    spelled = " ".join((reader.match(re.compile(r"[<|]?[\w ]+(?=\[)", re.ASCII)) or "").split())
    dtype = scalar_dtype(spelled)
    if dtype is None:
        fix = nearest(spelled, SCALARS) or f"write `{usage}`"
        raise reader.error(f"`{spelled}` is not an element type", fix)
    counts = reader.parts(usage, "[")
    if len(counts) != 1:
        raise reader.error("a scratch buffer has one extent", f"write `{usage}`")
    return ScratchDirective(name, dtype, reader.expression(counts[0]), **reader.place)


def _one_buffer(reader: _Reader, usage: str) -> str:
    names = [part.strip() for part in reader.parts(usage)]
    if len(names) > 1:
        raise reader.error(f"{len(names)} buffers, where one is taken", "write a line for each")
    if not names or not _NAME.fullmatch(names[0]):
        raise reader.error("the name of one buffer is missing", f"write `{usage}`")
    return names[0]


def _zero(reader: _Reader) -> ZeroDirective:
    return ZeroDirective(_one_buffer(reader, FORMS["zero"].usage), **reader.place)


def _init(reader: _Reader) -> InitDirective:
    usage = FORMS["init"].usage
    buffer = _one_buffer(reader, usage)
    reader.expect("=", usage)
    text = reader.rest().strip()
    value: int | float | str
    if text in _SPELLED_FLOATS:
        value = _SPELLED_FLOATS[text]
    elif _INTEGER.fullmatch(text):
        value = _integer(reader, text, usage)
    elif _FLOAT.fullmatch(text):
        value = float(text.rstrip("fF"))
    elif _NAME.fullmatch(text):
        value = text
    else:
        raise reader.error(f"`{text[:40]}` is neither a number nor an array", f"write `{usage}`")
    return InitDirective(buffer, value, **reader.place)


def _size(reader: _Reader) -> SizeDirective:
    usage = FORMS["size"].usage
    name = reader.name("the name of the scalar", f"write `{usage}`")
    reader.expect("=", usage)
    return SizeDirective(name, reader.expression(reader.rest()), **reader.place)


def _argv(reader: _Reader) -> ArgvDirective:
    words = (part.strip().strip("\"'") for part in reader.parts(FORMS["argv"].usage))
    return ArgvDirective(tuple(word for word in words if word), **reader.place)


_DIRECTIVES: Mapping[str, Callable[[_Reader], Directive]] = MappingProxyType(
    {
        "launch": _launch,
        "tune": _tune,
        "require": _require,
        "scratch": _scratch,
        "zero": _zero,
        "init": _init,
        "argv": _argv,
        "size": _size,
        "repeat": _repeat,
    }
)
_KNOWN = ", ".join(_DIRECTIVES)
