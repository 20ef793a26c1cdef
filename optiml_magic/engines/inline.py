"""One candidate after the other, in this thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.search.loop import ONE, Batches


@dataclass(frozen=True)
class Inline:
    """The engine of a device that is this machine's CPU: nothing would be faster beside it."""

    evaluator: Evaluator
    goes_on: Callable[[], bool]
    batches: Batches = ONE

    def __call__(self, candidates: Sequence[Candidate]) -> Callable[[], Sequence[Evaluation]]:
        return self.evaluator.begin(candidates, self.goes_on)
