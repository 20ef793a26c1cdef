"""The seam of the engines: candidates in, their evaluations out, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation


class Engine(Protocol):
    """Decides where and when the stages run; what they find does not depend on it."""

    @property
    def batch(self) -> int:
        """How many candidates it takes at a time."""

    def __call__(self, candidates: Sequence[Candidate]) -> Sequence[Evaluation]:
        """Their evaluations, in order."""
