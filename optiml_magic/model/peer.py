"""Who else computes a task on its card."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """One that was timed on the card, apart from the kernels: ``seconds`` of one run.

    They may be off by the factor ``ratio_error``; ``how`` says how it was launched.
    """

    name: str
    seconds: float
    ratio_error: float
    how: str
