"""How a candidate ended: every expected end of an evaluation is one of these values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from optiml_magic.model.hazard import Hazard


class Outcome(StrEnum):
    """The end of an evaluation. Only ``PASSED`` may win."""

    PASSED = "passed"
    INVALID = "invalid"  # a directive or a binding does not fit the task
    COMPILE_ERROR = "compile_error"
    UNSUPPORTED = "unsupported"  # the device cannot run it; nothing is said about the kernel
    LAUNCH_ERROR = "launch_error"
    OUT_OF_BOUNDS = "out_of_bounds"
    MISALIGNED = "misaligned"
    TRAP = "trap"
    BARRIER = "barrier"  # a barrier in divergent code, or a deadlock
    RACE = "race"
    UNINITIALISED = "uninitialised"  # a value that nobody wrote decides what comes out
    INVALID_LANE = "invalid_lane"  # a shuffle or vote with lanes that are not there
    TIMEOUT = "timeout"
    CRASHED = "crashed"  # the device host died
    WRONG = "wrong"
    INPUT_MODIFIED = "input_modified"
    SUSPICIOUS = "suspicious"  # right, but with less memory traffic than the task needs


@dataclass(frozen=True)
class Writer:
    """The thread that wrote an element last, and the line on which it did."""

    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    line: int = 0


@dataclass(frozen=True)
class OutputCheck:
    """One output compared with what the oracle wants.

    ``error`` is the relative norm ``|got - wanted| / |wanted|`` over the finite elements. ``wrong``
    counts elements outside the tolerance, ``unwritten`` those among them that still hold the
    poison, ``nonfinite`` those that are NaN or infinite where the oracle is not. ``max_ulp`` is the
    error of the element with the largest absolute one, in units of the last place of the wanted
    value (0 for integers). ``picture`` shows where the wrong elements lie: at most 8 rows of 32
    cells over the output, ``.`` for none, ``+`` for some and ``#`` for all of a cell. ``writer`` is
    who wrote the first wrong element, where it was asked for and the device can tell. ``share`` is
    how much of what is allowed a float is off by, at most: above 1 where one is wrong.
    """

    name: str
    elements: int
    wrong: int
    unwritten: int
    nonfinite: int
    error: float
    max_abs_error: float
    rtol: float
    atol: float
    first_index: tuple[int, ...] = ()
    got: str = ""
    wanted: str = ""
    max_ulp: float = 0.0
    picture: tuple[str, ...] = ()
    writer: Writer | None = None
    share: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.wrong == 0

    @property
    def comparable(self) -> bool:
        """Whether the errors are of what is wrong: they are not where all of that is NaN."""
        return self.passed or self.wrong > self.nonfinite


@dataclass(frozen=True)
class Verdict:
    """The outcome, one sentence a person can act on, the line it points at, and the evidence."""

    outcome: Outcome
    summary: str
    line: int = 0
    fix: str = ""
    checks: tuple[OutputCheck, ...] = ()
    notes: tuple[str, ...] = ()
    hazards: tuple[Hazard, ...] = ()  # where they were looked for
    printed: str = ""  # by the kernel, on the first set of inputs on which it printed anything

    @property
    def passed(self) -> bool:
        """Whether the candidate may compete."""
        return self.outcome is Outcome.PASSED
