"""The seam of the engines: candidates in, their evaluations out, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.search.loop import Batches


class Engine(Protocol):
    """Decides where and when the stages run; what they find does not depend on it.

    It is told whether the search goes on before each candidate of a batch, and waits there while
    that is paused.
    """

    @property
    def batches(self) -> Batches:
        """How it wants to be asked."""

    def __call__(self, candidates: Sequence[Candidate]) -> Callable[[], Sequence[Evaluation]]:
        """Begin; the result waits for their evaluations, in order: the first, if it was stopped."""
