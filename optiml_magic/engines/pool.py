"""Compilation on the cores of this machine, one device at a time, counters by the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optiml_magic.compilers.pool import CompilerPool
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.search.loop import Batches

FEW = Batches(4, 1)


@dataclass(frozen=True)
class Pool:
    """The engine of a card: while it runs one candidate, those behind it are compiled.

    A batch is counted by one process of ncu, which ends beside the next batch. The sizes are ours.
    """

    evaluator: Evaluator
    compilers: CompilerPool
    goes_on: Callable[[], bool]
    batches: Batches = FEW

    def __call__(self, candidates: Sequence[Candidate]) -> Callable[[], Sequence[Evaluation]]:
        for candidate in candidates[1:]:
            request = self.evaluator.request(candidate)
            if request is not None:
                self.compilers.ahead(request)
        return self.evaluator.begin(candidates, self.goes_on)
