"""The seam of the proposers: a step of the search in, ideas for edits of its program out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from optiml_magic.model.idea import Ideas
    from optiml_magic.model.view import View


class Proposer(Protocol):
    """Suggests edits. Deterministic, or journalled so that a resumed run sees the same answers."""

    @property
    def name(self) -> str:
        """Stands beside each step that came from it."""

    def propose(self, view: View, count: int) -> Ideas:
        """Ideas for ``view.step``, best first; about ``count`` of them."""
