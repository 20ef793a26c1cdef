"""The user's headers written into a text, in place of their ``#include`` lines."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from optiml_magic.compilers.base import CompileOptions
from optiml_magic.errors import UsageError
from optiml_magic.source.lexer import Lexed, PreprocessorLine, lex

_NAME = re.compile(r"(?P<open>[<\"])(?P<name>[^>\"]+)[>\"]")
_OPENING, _CLOSING = ("if", "ifdef", "ifndef"), "endif"
_NESTED = 40  # headers within one another


@dataclass(frozen=True)
class _Header:
    """A header that was found: ``key`` tells it from others, ``inside`` is where its own are."""

    key: str
    text: str
    inside: str
    folder: Path | None


@dataclass
class Headers:
    """Those of a compile's options. ``missing`` collects what a text needs and cannot be given.

    An ``#include`` in angle brackets that only a ``-I`` folder answers is left alone, since that is
    how libraries are included; so is one that names a macro.
    """

    options: CompileOptions
    missing: list[str] = field(default_factory=list)
    _always: set[str] = field(default_factory=set)  # written where no #if can turn them off
    _sometimes: dict[str, str] = field(default_factory=dict)  # with the macro that guards it

    def written_into(self, text: str) -> str:
        """``text`` with every header of the user in it, each once where that is the same."""
        return self._expanded(_Header("", text, "", None), 0, ())

    def _expanded(self, header: _Header, depth: int, stack: tuple[str, ...]) -> str:
        lexed = lex(header.text)
        guard = _guard(lexed)
        pieces, at = [], 0
        for line in lexed.lines:
            depth += line.word in _OPENING
            depth -= line.word == _CLOSING
            if line.word != "include":
                continue
            replacement = self._included(line, header, depth - guard, stack)
            if replacement is not None:
                pieces += [header.text[at : line.start], replacement]
                at = line.end
        return "".join([*pieces, header.text[at:]])

    def _included(
        self, line: PreprocessorLine, header: _Header, depth: int, stack: tuple[str, ...]
    ) -> str | None:
        """What stands for an include; None where the line stays."""
        named = _NAME.match(line.rest)
        if named is None:
            self._miss(f"#include {line.rest}")
            return None
        found = self._found(named["name"], header, quoted=named["open"] == '"')
        if found is None:
            return None
        lexed = lex(found.text)
        once = next((x for x in lexed.lines if _is_once(x)), None)
        guarded = once is not None or _guard(lexed)
        told = f"// {Path(named['name']).name}"
        if guarded and (found.key in self._always or found.key in stack):
            return f"{told} is above"
        if len(stack) == _NESTED:
            raise UsageError(
                f'`#include "{named["name"]}"` includes itself without an end',
                fix="begin the header with #pragma once",
            )
        macro = self._sometimes.get(found.key, "")
        if depth:
            plain = re.sub(r"\W", "_", Path(named["name"]).name)
            macro = self._sometimes.setdefault(found.key, f"ONCE_{len(self._sometimes)}_{plain}")
        else:
            self._always.add(found.key)
        body = self._expanded(found, depth, (*stack, found.key)).strip()
        if once is None:
            return f"{told}\n{body}\n// end of {Path(named['name']).name}"
        body = "\n".join(x for x in body.split("\n") if not re.match(r"\s*#\s*pragma\s+once\b", x))
        if macro:  # another include writes it too
            body = f"#ifndef {macro}\n#define {macro}\n{body.strip()}\n#endif"
        return f"{told}\n{body.strip()}\n// end of {Path(named['name']).name}"

    def _found(self, name: str, header: _Header, *, quoted: bool) -> _Header | None:
        memory = dict(self.options.headers)
        for typed in (os.path.normpath(os.path.join(header.inside, name)), name):  # noqa: PTH118  # names, not files
            if typed in memory:
                return _Header(f"typed {typed}", memory[typed], os.path.dirname(typed), None)  # noqa: PTH120
        absolute = Path(name).is_absolute()
        beside = [header.folder] if header.folder and quoted else []
        folders = [Path("/")] if absolute else [*beside, *map(Path, self.options.include)]
        for path in (folder / name for folder in folders):
            if path.is_file():
                if not quoted and not absolute:
                    self._miss(f"#include <{name}>")
                    return None
                text = path.read_text(encoding="utf-8", errors="replace")
                return _Header(f"file {path.resolve()}", text, "", path.parent)
        return None

    def _miss(self, what: str) -> None:
        if what not in self.missing:
            self.missing.append(what)


def _is_once(line: PreprocessorLine) -> bool:
    return line.word == "pragma" and line.rest.split() == ["once"]


def _guard(lexed: Lexed) -> bool:
    """Whether all of a text stands in ``#ifndef NAME``, ``#define NAME``, ``#endif``."""
    lines = lexed.lines
    if len(lines) < 3 or (lines[0].word, lines[1].word) != ("ifndef", "define"):
        return False
    depth = 0
    for at, line in enumerate(lines):
        depth += line.word in _OPENING
        depth -= line.word == _CLOSING
        if depth == 0 and at < len(lines) - 1:
            return False
    outside = lexed.code[: lines[0].start] + lexed.code[lines[-1].end :]
    return not outside.strip() and lines[0].rest == (lines[1].rest.split() or [""])[0]
