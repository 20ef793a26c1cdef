"""How much text a rule may read for one request, so that no rule holds up a search.

The time of a reading grows with the length of its text, and a rule may read what each of its steps
makes. Text is counted and not time, so that the same request is always refused alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST = 64_000  # characters of a program: four times the longest of the best of the suite; ours
MOST = 2_000_000  # of all different texts: three times what a request there needs at most; ours


class TooMuch(Exception):  # noqa: N818  # an expected end, which becomes a refusal
    """The allowance is spent; the message is the reason of the refusal."""


class Allowance:
    """What is left to one request, whose texts are counted once each."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._texts: set[str] = set()
        self._read = 0

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Within, readings are of this request; they raise TooMuch."""
        before = _PRESENT.set(self)
        try:
            yield
        finally:
            _PRESENT.reset(before)

    def read(self, text: str) -> None:
        """Counts a text. Raises TooMuch."""
        check_length(text)
        if text not in self._texts:
            self._texts.add(text)
            self._read += len(text)
        if self._read > self._most:
            raise TooMuch(
                f"it would read more than {self._most} characters of intermediate programs"
            )


def check_length(text: str) -> None:
    """Raises TooMuch for a text that is too long for rules."""
    if len(text) > LONGEST:
        raise TooMuch(f"the program has {len(text)} characters, and rules take at most {LONGEST}")


_PRESENT: ContextVar[Allowance | None] = ContextVar("_PRESENT", default=None)


def spend(text: str) -> None:
    """Counts a text for the present request; outside of one there may be any. Raises TooMuch."""
    present = _PRESENT.get()
    if present is not None:
        present.read(text)
