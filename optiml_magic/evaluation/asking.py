"""Which candidates ncu is asked of, and how closely it looks.

It looks closely at one program of a search: the input kernel; where that is so slow that it would
take most of the seconds, the first program instead that somebody may build on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.space import TUNER
from optiml_magic.profilers.levels import Levels

# Times slower than the best so far, beyond which nobody builds on a candidate: ncu is not asked of
# it. Ours.
_REACH = 1.25


class Asking:
    """Of one search; ``promised`` are the metrics that edits are to move, in order.

    ``whole``: one program is all that there is, so ncu is asked of it however slow it is.
    """

    def __init__(self, levels: Levels, *, whole: bool) -> None:
        self._levels = levels
        self._whole = whole
        self._promised: dict[str, None] = {}
        self._seconds: dict[int, float] = {}  # by number
        self.looked = False  # closely, at some program

    @property
    def promised(self) -> tuple[str, ...]:
        return tuple(self._promised)

    def expect(self, candidate: Candidate) -> None:
        """A promise can be tested only where its metric is counted, of later ones too."""
        promise = candidate.proposal.hypothesis
        if promise is not None and promise.is_counted:
            self._promised[promise.metric] = None

    def remember(self, evaluation: Evaluation) -> None:
        """One of a run that is resumed."""
        measured = evaluation.measurement
        if measured is not None:
            self.looked |= any(metric.source == "ncu" for metric in measured.metrics)

    def of(
        self, pairs: Iterable[tuple[Candidate, Evaluation]], runs: Collection[int], best: float
    ) -> set[int]:
        """The numbers of those, among the ``runs``, that ncu is asked of.

        They are near ``best`` seconds, or promise something that is counted. Where it looks closely
        at another than the input kernel, the fastest alone.
        """
        asked = set()
        for candidate, evaluation in pairs:
            near = self._in_reach(candidate, evaluation, best)
            promise = candidate.proposal.hypothesis
            promises = promise is not None and promise.is_counted
            if (near or promises) and candidate.number in runs and self._affords(candidate.number):
                asked.add(candidate.number)
        if not self.looked and asked and 0 not in asked:
            return {min(asked, key=self._seconds.__getitem__)}
        return asked

    def _affords(self, number: int) -> bool:
        return self._whole or self._levels.affords(self._seconds[number])

    def _in_reach(self, candidate: Candidate, evaluation: Evaluation, best: float) -> bool:
        """Whether it is near the best so far; of other numbers alone, what is better with them.

        The input kernel always, since everything is compared with it.
        """
        measured, before = evaluation.measurement, float("inf")
        if measured is None:
            return False
        self._seconds[candidate.number] = measured.seconds
        if candidate.number == 0:
            return True
        if candidate.proposal.proposer == TUNER and candidate.parent is not None:
            before = self._seconds.get(candidate.parent, before)
        return measured.seconds <= min(_REACH * best, before)
