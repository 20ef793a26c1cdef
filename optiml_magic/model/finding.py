"""What a measurement means: a finding, its evidence and actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["critical", "warning", "note"]
Direction = Literal["lower", "higher"]
RooflineClass = Literal["memory", "compute", "latency", "launch", "mixed"]


@dataclass(frozen=True)
class Evidence:
    """One fact behind a finding: the metric, its value, and the threshold that it crossed."""

    metric: str
    value: float
    threshold: float
    unit: str
    source: str  # emulated, estimated, ncu, events, sass
    line: int = 0  # 1-based line of the kernel text; 0 when the whole kernel is meant


@dataclass(frozen=True)
class Action:
    """Something to try; ``rewrite`` names the rule that can do it, where there is one.

    ``metric`` is what it should move, ``direction`` which way, and ``factor`` how many times lower
    or higher it becomes, from the least to the most; ``(1.0, 1.0)`` promises the direction alone.
    """

    advice: str
    rewrite: str = ""
    metric: str = ""
    direction: Direction = "lower"
    factor: tuple[float, float] = (1.0, 1.0)

    @property
    def told(self) -> str:
        """The advice, and who does it."""
        return f"{self.advice} ({f'rule {self.rewrite}' if self.rewrite else 'by hand'})"


@dataclass(frozen=True)
class Finding:
    """One piece of advice: root cause in a sentence, evidence, actions from best to worst.

    ``gain`` is the expected speed-up as a range, 1.0 is none, and ``reason`` why it should be so.
    """

    tool: str
    severity: Severity
    cause: str
    evidence: tuple[Evidence, ...]
    actions: tuple[Action, ...]
    gain: tuple[float, float]
    reason: str = ""

    @property
    def line(self) -> int:
        """The 1-based line that it is about, 0 when the whole kernel is meant."""
        return next((e.line for e in self.evidence if e.line), 0)


@dataclass(frozen=True)
class Answered:
    """A finding that an edit was made for, and whose subject it changed.

    ``line`` is that of the program before the edit, 0 where the whole kernel is meant.
    """

    tool: str
    line: int
    cause: str

    def __str__(self) -> str:
        return f"{self.tool} on line {self.line}" if self.line else self.tool
