"""What has no graph, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refused:
    """Why a reference has no graph: ``line`` of its own file, 0 where it is none of it."""

    reason: str
    line: int
    fix: str


class RefusalError(Exception):
    """The same on its way out of the reference; ``fix`` says what to write instead."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix
        self.line = 0  # of the reference's own file, where it is known already
