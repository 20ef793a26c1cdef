"""Which finding an edit answered: of those of the tool that it names, one whose subject it changed.

An edit that names a tool and changes something else answered nothing, whatever it gained. The text
decides, without its comments and blanks: first the line that a finding is about, then the kernel
around that line and its launches, and all of the program where it is about no line. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from optiml_magic.errors import UsageError
from optiml_magic.model.finding import Answered, Finding
from optiml_magic.source.program import Program, parse_program

_BRACES = re.compile(r"[{};]")


def answered(tool: str, findings: Sequence[Finding], before: str, after: str) -> Answered | None:
    """The finding about ``before`` that the edit to ``after`` answered; the most severe of several.

    None where the tool has none, or nothing of what its findings are about was changed.
    """
    named = [finding for finding in findings if finding.tool == tool]
    if not named or before == after:
        return None
    try:
        program, became = parse_program(before), parse_program(after)
    except UsageError:
        return None
    changes = _Changes.between(program, became)
    at_line = (f for f in named if f.line and changes.touch([range(f.line, f.line + 1)]))
    around = (f for f in named if changes.touch(_about(f.line, program)))
    found = next(at_line, None) or next(around, None)
    return None if found is None else Answered(found.tool, found.line, found.cause)


@dataclass(frozen=True)
class _Changes:
    """The lines that are gone or other, from 1, and those before which there are new ones."""

    lines: frozenset[int]
    before: frozenset[int]

    @classmethod
    def between(cls, one: Program, other: Program) -> _Changes:
        lines, before = set[int](), set[int]()
        matcher = SequenceMatcher(None, _bare(one), _bare(other), autojunk=False)
        for tag, start, end, _, _ in matcher.get_opcodes():
            if tag == "insert":
                before.add(start + 1)
            elif tag != "equal":
                lines.update(range(start + 1, end + 1))
        blank = {number for number, line in enumerate(_bare(one), 1) if not line}
        return cls(frozenset(lines - blank), frozenset(before))

    def touch(self, places: Sequence[range]) -> bool:
        """Whether any of it is within these lines."""
        return any(
            any(line in place for line in self.lines)
            or any(place.start < line < place.stop for line in self.before)
            for place in places
        )


def _bare(program: Program) -> list[str]:
    """The lines without comments, strings kept, blanks as one."""
    lines = program.lexed.code.split("\n")
    written = program.text.split("\n")
    for line in program.lexed.lines:
        first, last = program.lexed.line_at(line.start), program.lexed.line_at(line.end)
        lines[first - 1 : last] = [line.text, *[""] * (last - first)]
    quoted = ['"' in text for text in written]
    shown = [written[i] if quoted[i] and line.strip() else line for i, line in enumerate(lines)]
    return [" ".join(line.split()) for line in shown]


def _about(line: int, program: Program) -> list[range]:
    """What a finding is about: the function, or the like, with this line, and its launches."""
    whole = range(program.text.count("\n") + 3)
    if not line:
        return [whole]
    for start, end in _blocks(program.lexed.code):
        first, last = program.lexed.line_at(start), program.lexed.line_at(end)
        if first <= line <= last:
            text = program.lexed.code[start:end]
            own = (launch.line for launch in program.launches if _is_of(launch.kernel, text))
            return [range(first, last + 1), *(range(at, at + 1) for at in own)]
    return [range(line, line + 1)]


def launches_at(line: int, program: Program) -> frozenset[int]:
    """Which launches, in the order of the program, a line of their kernel or of theirs is about.

    None where the line is of a function that kernels call, or of none of them.
    """
    places = _about(line, program) if line else []
    return frozenset(
        at for at, launch in enumerate(program.launches) if any(launch.line in p for p in places)
    )


def _is_of(kernel: str | None, text: str) -> bool:
    """Whether a launch is of the kernel in a text; None is the only one that there is."""
    name = (kernel or "").partition("<")[0].strip()
    return kernel is None or re.search(rf"\b{re.escape(name)}\s*\(", text) is not None


def _blocks(code: str) -> Iterator[tuple[int, int]]:
    """From the first character of each function, or what else is in braces, to its last."""
    depth, start = 0, 0
    for brace in _BRACES.finditer(code):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            begin = start + len(code[start:]) - len(code[start:].lstrip())
            yield begin, brace.end() - 1
            start = brace.end()
