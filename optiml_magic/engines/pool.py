"""Compilation on the cores of this machine, one device at a time, counters by the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optiml_magic.compilers.pool import CompilerPool
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation


@dataclass(frozen=True)
class Pool:
    """The engine of a card: while it runs one candidate, those behind it are compiled."""

    evaluator: Evaluator
    compilers: CompilerPool
    batch: int = 4  # ours: one process of ncu a batch, and the search decides in between

    def __call__(self, candidates: Sequence[Candidate]) -> Sequence[Evaluation]:
        for candidate in candidates[1:]:
            request = self.evaluator.request(candidate)
            if request is not None:
                self.compilers.ahead(request)
        return self.evaluator(candidates)
