"""Arithmetic that was wrong once in a search, which others that change it so too are tried after.

What is off by more than the tolerance in one program of a kernel will be so in the others: an edit
that did nothing but that says which arithmetic it is, and so does one that went along with a shape
which is right by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Idea
from optiml_magic.model.verdict import Outcome
from optiml_magic.proposers.together import ALONG, SPELLED

_DOUBT = 0.5  # of the chance, by which it is below what is made without being tried alone: ours


def doubted(ideas: Sequence[Idea], evaluated: Sequence[Step]) -> list[Idea]:
    """The ideas, with half the chance where they change arithmetic that was wrong elsewhere."""
    wrong = [*_wrong(evaluated)]
    return [
        replace(idea, prior=round(_DOUBT * idea.prior, 3))
        if any(words <= {*idea.arithmetic} for words in wrong) else idea
        for idea in ideas
    ]  # fmt: skip


def _wrong(evaluated: Sequence[Step]) -> Iterator[frozenset[str]]:
    """What edits of expressions changed that were wrong, alone or beside a shape that was right."""
    for step in evaluated:
        edit = step.candidate.proposal
        if step.evaluation.verdict.outcome is not Outcome.WRONG or not edit.arithmetic:
            continue
        if edit.proposer in SPELLED:
            yield frozenset(edit.arithmetic)
        for other in evaluated if edit.proposer == ALONG else ():
            shape, right = other.candidate, other.evaluation.verdict.passed
            alone = edit.title.startswith(f"{shape.proposal.title}; ")
            beside = {*edit.arithmetic} - {*shape.proposal.arithmetic}
            if right and alone and beside and shape.parent == step.candidate.parent:
                yield frozenset(beside)
