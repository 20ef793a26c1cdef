"""What is checked of a program as it is read, beyond each directive by itself."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.source.directives import (
    Directive,
    InitDirective,
    LaunchDirective,
    RepeatDirective,
    ScratchDirective,
    SizeDirective,
    TuneDirective,
    ZeroDirective,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optiml_magic.source.lexer import Lexed, PreprocessorLine

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LONGEST = 1_000_000  # characters
_ODD = re.compile("[\0\ud800-\udfff]")


def check_spelling(line: PreprocessorLine, lexed: Lexed) -> None:
    """A pragma that is nearly ours would be ignored, and its launch with it."""
    words = _WORD.findall(line.rest) if line.word == "pragma" else []
    if words and words[0] in difflib.get_close_matches("optiml", words[:1], cutoff=0.8):
        raise SourceError(
            f"unknown pragma `{words[0]}`",
            fix="did you mean `#pragma optiml`?",
            line=lexed.line_at(line.start),
        )


def check_text(text: str) -> None:
    if len(text) > _LONGEST:
        raise SourceError(
            f"a text of {len(text) / 1e6:.1f} million characters",
            fix=f"keep a program below {_LONGEST // 1_000_000} million characters",
        )
    odd = _ODD.search(text)
    if odd:
        raise SourceError(
            "a character that no file can hold"
            if odd[0] != "\0"
            else "a null byte, which ends a text for a compiler",
            fix="remove it",
            line=text.count("\n", 0, odd.start()) + 1,
        )


def check_unique(directives: Iterable[Directive]) -> None:
    seen: dict[tuple[type, str], int] = {}
    for directive in directives:
        match directive:
            case TuneDirective(name) | ScratchDirective(name) | SizeDirective(name):
                pass
            case ZeroDirective(name) | InitDirective(name):
                pass
            case _:
                continue
        key = (type(directive), name)
        if key in seen:
            raise SourceError(
                f"`{name}` has this directive on line {seen[key]} already",
                fix="remove one of the two",
                line=directive.line,
            )
        seen[key] = directive.line


def check_dispatches(directives: Iterable[Directive]) -> None:
    """A dispatch ends with a launch that runs otherwise, and is one step of its round."""
    before: LaunchDirective | None = None
    repeated: RepeatDirective | None = None  # since that launch
    for directive in directives:
        if isinstance(directive, RepeatDirective):
            repeated = directive
        if not isinstance(directive, LaunchDirective):
            continue
        if directive.otherwise:
            _check_continued(directive, before, repeated)
        else:
            _check_ended(before)
        before, repeated = directive, None
    _check_ended(before)


def _check_continued(
    launch: LaunchDirective, before: LaunchDirective | None, repeated: RepeatDirective | None
) -> None:
    if before is None or before.condition is None:
        raise SourceError(
            "`else` without an `if` before it",
            fix="give the launch above a condition, `if (n % 4 == 0)`, or take `else` away",
            line=launch.line,
        )
    if repeated is not None or launch.repeat is not before.repeat:
        raise SourceError(
            "`repeat` between the launches of one dispatch",
            fix="write it above the first of them, or on it; it holds for all",
            line=launch.line if repeated is None else repeated.line,
        )


def _check_ended(before: LaunchDirective | None) -> None:
    if before is not None and before.condition is not None:
        raise SourceError(
            f"nothing runs where `if ({before.condition})` does not hold",
            fix="let the launch that runs then follow, with `else` at its end",
            line=before.line,
        )
