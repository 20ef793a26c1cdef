"""Arithmetic that was wrong once in a search, which others that change it so too are tried after.

What is off by more than the tolerance in one program of a kernel will be so in the others: an edit
that did nothing but that says which arithmetic it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Idea
from optiml_magic.model.verdict import Outcome
from optiml_magic.proposers.together import SPELLED

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
    """What edits of expressions alone changed that were wrong."""
    for step in evaluated:
        edit = step.candidate.proposal
        failed = step.evaluation.verdict.outcome is Outcome.WRONG
        if failed and edit.proposer in SPELLED and edit.arithmetic:
            yield frozenset(edit.arithmetic)
