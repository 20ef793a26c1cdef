"""An edit that a proposer thinks of; its text is made only when the search tries it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optiml_magic.model.candidate import Proposal, text_digest
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.space import Point

Make = Callable[[], "str | Refusal"]


@dataclass(frozen=True, slots=True)
class Ready:
    """A text that is there already, in place of one that is still to be made."""

    text: str

    def __call__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Idea:
    """What a proposal will say, and ``make``, which gives its text or refuses late.

    ``key`` identifies the idea within its parent and is the same each time the proposer is asked:
    the rule, the site and the numbers. ``make`` is deterministic as well, and may be called again.
    ``arithmetic`` says in words what arithmetic the edit changes, such as "the order of additions";
    empty where every bit of the outputs stays. ``starts`` are values of the tuned names of its
    text to begin with; ``paid`` says that it cost money, and is to be tried for that reason.
    ``launches`` are the kernels of those launches that it edits; none where it may be any of them.
    The other fields are those of a proposal.
    """

    title: str
    proposer: str
    make: Make
    key: str
    rationale: str = ""
    hypothesis: Hypothesis | None = None
    prior: float = 0.5
    answers: str = ""
    arithmetic: tuple[str, ...] = ()
    move: str = ""
    starts: tuple[Point, ...] = ()
    paid: bool = False
    launches: tuple[str, ...] = ()

    @classmethod
    def of(cls, proposal: Proposal) -> Idea:
        """An idea whose text is there already, which also identifies it."""
        return cls(
            proposal.title,
            proposal.proposer,
            Ready(proposal.text),
            f"text {text_digest(proposal.text)}",
            proposal.rationale,
            proposal.hypothesis,
            proposal.prior,
            proposal.answers,
            proposal.arithmetic,
            proposal.move,
        )

    @property
    def text(self) -> str | None:
        """The text where it is there already."""
        return self.make.text if isinstance(self.make, Ready) else None

    def proposal(self, text: str) -> Proposal:
        """The proposal that this idea became, with the text that it made."""
        return Proposal(
            text,
            self.title,
            self.proposer,
            self.rationale,
            self.hypothesis,
            self.prior,
            self.answers,
            self.arithmetic,
            self.move,
        )


@dataclass(frozen=True, slots=True)
class Ideas:
    """A proposer's answer: ideas, best first, and what it would not do. No ideas: it has no more.

    It may repeat ideas that it gave before: the search knows them by their keys. ``more`` says that
    it may have others when it is asked later, though it has none now. ``weights`` are what it would
    multiply the chances of others' ideas by, by their keys.
    """

    ideas: tuple[Idea, ...] = ()
    refused: tuple[Refusal, ...] = ()
    more: bool = False
    weights: tuple[tuple[str, float], ...] = ()
