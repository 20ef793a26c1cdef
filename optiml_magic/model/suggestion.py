"""A program that a person writes while a search runs."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.model.candidate import Proposal

HAND = "hand"  # the proposer of what was written by hand


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A whole program written by hand as an edit of candidate ``parent``."""

    parent: int
    text: str

    @property
    def proposal(self) -> Proposal:
        """With a prior like that of any other."""
        return Proposal(self.text, "edited by hand", HAND)
