"""A tree of many nodes, for what the search itself costs."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from functools import partial

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.search.loop import Budget, at_once, run
from optiml_magic.search.search import TreeSearch

_WIDTH, _DEPTH = 12, 6  # ideas of a node; edits in a row, more than any rule's recipe has
_PRIORS = tuple(0.8 - 0.05 * at for at in range(_WIDTH))
_NO_IDEAS = Ideas()
_PASSED, _WRONG = Verdict(Outcome.PASSED, ""), Verdict(Outcome.WRONG, "")
_TIME = Measurement("toy", "estimated", 1.0, 1.01, (), (), ())


def grown(nodes: int, seed: int = 0) -> float:
    """Processor seconds of it all: the search, and the little that its problem takes.

    Each program has twelve edits, up to six in a row; a fifth of the candidates fails, the others
    gain or lose at random.
    """
    rng = random.Random(seed)

    def evaluate(candidates: Sequence[Candidate]) -> list[Evaluation]:
        return [_told(candidate, rng) for candidate in candidates]

    def expand(view: View, count: int) -> Ideas:
        del count
        return _ideas(view.step.candidate.text)

    tree = TreeSearch(Proposal("0", "the input kernel", "user"), expand, seed=seed)
    began = time.process_time()
    run(tree, at_once(evaluate), Budget(nodes))
    spent = time.process_time() - began
    assert len(tree.nodes) == nodes
    return round(spent, 2)


def _ideas(text: str) -> Ideas:
    if text.count(".") == _DEPTH:
        return _NO_IDEAS
    edits = [(f"{text}.{at}", prior) for at, prior in enumerate(_PRIORS)]
    return Ideas(tuple([Idea(e, "toy", partial(str, e), e, prior=prior) for e, prior in edits]))


def _told(candidate: Candidate, rng: random.Random) -> Evaluation:
    number, text = candidate.number, candidate.text
    if number and rng.random() < 0.2:
        return Evaluation(number, text, _WRONG)
    worth = 0.01 * text.count(".") + rng.gauss(0, 0.02)
    return Evaluation(number, text, _PASSED, _TIME, reward=max(-1.0, min(1.0, worth)))
