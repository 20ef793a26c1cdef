"""Runs of a few edits, each of the input kernel or of an earlier edit."""

from __future__ import annotations

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.space import TUNER
from optiml_magic.model.verdict import Outcome, Verdict

KERNEL = "__global__ void k() {}\n"


def measured(seconds: float) -> Measurement:
    return Measurement("h200", "events", seconds, 1.01, (), (), ())


def step(
    number: int, seconds: float | None, move: str = "", parent: int | None = 0, *, text: str = "",
    tuned: bool = False,
) -> Step:  # fmt: skip
    """One that passed in so many seconds; None: it is wrong."""
    proposer = (
        TUNER
        if tuned
        else "user"
        if parent is None
        else move.split(maxsplit=1)[0]
        if move
        else "llm"
    )
    proposal = Proposal(text or f"{KERNEL}// {number}", f"edit {number}", proposer, move=move)
    verdict = Verdict(Outcome.PASSED if seconds else Outcome.WRONG, "")
    time = measured(seconds) if seconds else None
    evaluation = Evaluation(number, str(number), verdict, time, roofline="memory")
    return Step(Candidate(number, parent, proposal), evaluation)


def trajectory(*edits: tuple[str, float | None]) -> Trajectory:
    """An input kernel of 8 seconds, and edits of it with their seconds."""
    root = step(0, 8.0, parent=None)
    return Trajectory((root, *(step(n, s, move) for n, (move, s) in enumerate(edits, 1))), "spent")
