"""PTX that cannot be read, or cannot run here."""

from __future__ import annotations


class UnsupportedPtx(Exception):  # noqa: N818  # it says what the PTX is
    """This PTX cannot be used. ``line`` is a 1-based line of the compiled text, 0 when unknown."""

    def __init__(self, instruction: str, line: int, message: str) -> None:
        super().__init__(message)
        self.instruction = instruction
        self.line = line
        self.message = message
