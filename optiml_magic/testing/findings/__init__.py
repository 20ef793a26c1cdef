"""For each micro-profiling tool a kernel with the fault that it looks for, and one without.

Each pair is a ``.cu`` file beside this one, named like the tool. A line that ends with ``//-``
stands in the first alone, one with ``//+`` in the second alone; the line that the tool must name
ends with ``//!`` or ``//-!``. ``devices`` says who can tell: ``emulated``, ``cuda`` or both;
``without`` the same of the second kernel, where that differs. ``chip`` is the emulated one, where
it must be small to be filled by a quick test. The tasks are in ``tasks.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in _FOLDER.glob("*.cu")))
_FIELD = re.compile(r"^// (task|devices|without|chip): (.*)$", re.MULTILINE)
_MARK = re.compile(r"\s*//([-+]?)(!?)$")


@dataclass(frozen=True)
class Pair:
    """Two programs of one task. ``line`` is 0 where the tool means the kernel as a whole."""

    name: str
    task: str
    devices: frozenset[str]
    without: frozenset[str]
    chip: str
    line: int
    faulty: str
    sound: str


def pair(name: str) -> Pair:
    """The pair of that tool."""
    source = (_FOLDER / f"{name}.cu").read_text()
    fields = {match[1]: match[2] for match in _FIELD.finditer(source)}
    marks = [_MARK.search(line) for line in source.splitlines()]
    wanted = [at for at, mark in enumerate(marks, 1) if mark and mark[2]]
    devices = frozenset(fields["devices"].split())
    return Pair(
        name,
        fields["task"],
        devices,
        frozenset(fields["without"].split()) if "without" in fields else devices,
        fields.get("chip", "h200"),
        wanted[0] if wanted else 0,
        _program(source, "-"),
        _program(source, "+"),
    )


def _program(source: str, kept: str) -> str:
    """The lines of one of the two; those of the other are left blank, so that numbers stay."""
    lines = []
    for line in source.splitlines():
        mark = _MARK.search(line)
        other = mark is not None and mark[1] not in ("", kept)
        lines.append("" if other else _MARK.sub("", line))
    return "\n".join(lines) + "\n"
