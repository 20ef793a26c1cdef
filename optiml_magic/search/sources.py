"""What a search is given: where ideas, further roots, edits by hand and open numbers come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Ideas
from optiml_magic.model.space import Space
from optiml_magic.model.suggestion import Suggestion
from optiml_magic.model.view import View

Expand = Callable[[View, int], Ideas]
"""Ideas for a step, best first; if none of them becomes a new text there are no more."""
Roots = Callable[[Sequence[Step]], Sequence[Proposal]]
"""Further programs to begin from, in the light of all steps so far; asked again when they are told,
until there are none."""
ByHand = Callable[[int, int], Suggestion | None]
"""What was written by hand and becomes the next candidate, by its number and how many were told."""
Spaces = Callable[[Step], Space | None]
"""The open numbers of a step's program; None where it has none."""


def untuned(_: Step) -> Space | None:
    """No program has open numbers."""
    return None


def no_more(_: Sequence[Step]) -> Sequence[Proposal]:
    """The search begins from one program."""
    return ()


def nobody(_number: int, _told: int) -> Suggestion | None:
    """Nothing is written by hand."""
    return None


def also(*proposals: Proposal) -> Roots:
    """It begins from these as well."""
    waiting = [proposals]
    return lambda _: waiting.pop() if waiting else ()


@dataclass(frozen=True)
class Sources:
    """Where the programs of a search come from."""

    expand: Expand
    roots: Roots = no_more
    by_hand: ByHand = nobody
