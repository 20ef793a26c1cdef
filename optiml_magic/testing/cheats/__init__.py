"""Kernels that cheat, each with an honest twin: the first must be rejected, the second must pass.

Each is a ``.cu`` file beside this one. A line that ends with ``//-`` stands in the cheat alone, one
with ``//+`` in the twin alone. ``row`` is that of the table in docs/trust.md; ``rejected`` gives
the outcomes that are right, and words of the summary: it is not enough to be rejected for anything.
``device`` names the only family of devices that can tell. The tasks are in ``tasks.py``, and their
input kernels in ``inputs``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from optiml_magic.model.verdict import Outcome, Verdict

_FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in _FOLDER.glob("*.cu")))
_FIELD = re.compile(r"^// (task|row|rejected|device): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Cheat:
    """One pair. ``device`` is empty where every device can tell."""

    name: str
    task: str
    row: int
    outcomes: tuple[Outcome, ...]
    words: str
    device: str
    text: str
    twin: str

    def rejects(self, verdict: Verdict) -> bool:
        """Whether the verdict is the right one, for the right reason."""
        return verdict.outcome in self.outcomes and self.words in verdict.summary


def cheat(name: str) -> Cheat:
    """The pair of that name."""
    source = (_FOLDER / f"{name}.cu").read_text()
    fields = {match[1]: match[2] for match in _FIELD.finditer(source)}
    outcomes, _, words = fields["rejected"].partition(":")
    return Cheat(
        name,
        fields["task"],
        int(fields["row"]),
        tuple(Outcome(outcome) for outcome in outcomes.split("|")),
        words.strip(),
        fields.get("device", ""),
        _without(source, "//+"),
        _without(source, "//-"),
    )


def _without(source: str, mark: str) -> str:
    other = {"//+": "//-", "//-": "//+"}[mark]
    lines = ("" if line.endswith(mark) else line for line in source.splitlines())
    return "\n".join(line.removesuffix(other).rstrip() for line in lines) + "\n"
