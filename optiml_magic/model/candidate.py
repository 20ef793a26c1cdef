"""A program the search looks at, and the proposal it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from optiml_magic.model.hypothesis import Hypothesis


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edit that a proposer suggests: the whole new program text and why it should be faster.

    ``prior`` in (0, 1] orders the proposals of one parent; higher is tried earlier. ``answers`` is
    the tool whose finding asked for the edit; "" where none did. ``arithmetic`` says in words what
    arithmetic the edit changes, such as "the order of additions". ``move`` names the edit for the
    experience, without any name of the program: the rule and the place; "" where no rule made it.
    """

    text: str
    title: str
    proposer: str
    rationale: str = ""
    hypothesis: Hypothesis | None = None
    prior: float = 0.5
    answers: str = ""
    arithmetic: tuple[str, ...] = ()
    move: str = ""

    @property
    def digest(self) -> str:
        """The first 16 hex digits of the SHA-256 of the text."""
        return text_digest(self.text)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposal with a place in the tree: ``number`` counts creations, the input kernel is 0.

    What the search began from has no ``parent``.
    """

    number: int
    parent: int | None
    proposal: Proposal

    def __repr__(self) -> str:
        of = "" if self.parent is None else f" of #{self.parent}"
        return f"<candidate #{self.number}{of}: {self.proposal.title}>"

    @property
    def text(self) -> str:
        """The program text: kernels and directives."""
        return self.proposal.text

    @property
    def digest(self) -> str:
        """The first 16 hex digits of the SHA-256 of the text."""
        return self.proposal.digest


def text_digest(text: str) -> str:
    """The first 16 hex digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
