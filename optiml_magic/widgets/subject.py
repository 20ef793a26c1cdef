"""What a view is of."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.model.objective import Objective


@dataclass(frozen=True)
class Subject:
    """One search to watch: fixed before it starts. ``seconds`` is its limit, 0 where it has none.

    ``background`` says that the search runs beside the notebook's cells, not inside one.
    """

    task: str
    device: str
    reason: str  # why this device
    budget: int
    seconds: float = 0.0
    background: bool = False
    objective: Objective = "speed"
