"""What a view is of."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.model.objective import Objective
from optiml_magic.model.thought import BASELINES, Author


@dataclass(frozen=True)
class Subject:
    """One search to watch: fixed before it starts. ``seconds`` is its limit, 0 where it has none.

    ``background`` says that the search runs beside the notebook's cells, not inside one; ``author``
    who wrote the input kernel, where the user did not.
    """

    task: str
    device: str
    reason: str  # why this device
    budget: int
    seconds: float = 0.0
    background: bool = False
    objective: Objective = "speed"
    author: Author | None = None

    @property
    def baseline(self) -> str:
        """What the input kernel is called."""
        return BASELINES[self.author]
