"""The seam of the proposers: a step of the search in, edits of its program out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optiml_magic.model.candidate import Proposal
    from optiml_magic.model.view import View


class Proposer(Protocol):
    """Suggests edits. Deterministic, or journalled so that a resumed run sees the same answers."""

    @property
    def name(self) -> str:
        """Stands beside each step that came from it."""

    def propose(self, view: View, count: int) -> Sequence[Proposal]:
        """Edits of ``view.step``, best first; about ``count`` of them. Empty: no more ideas."""
