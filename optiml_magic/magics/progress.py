"""One line that tells how far a search is, updated in place and gone at the end."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from optiml_magic.model.evaluation import Step
from optiml_magic.reports.quantities import ratio


class _Line:
    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


class Progress:
    """Called with each step; ``display`` is IPython's, which returns a handle to update."""

    def __init__(self, budget: int, display: Callable[..., Any]) -> None:
        self._budget = budget
        self._display = display
        self._handle: Any = None
        self._root: float | None = None
        self._best: float | None = None
        self._count = 0

    def __enter__(self) -> Self:
        self._handle = self._display(_Line("compiling"), display_id=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._show(f"{self._count} evaluations")

    def __call__(self, step: Step) -> None:
        self._count += 1
        measured = step.evaluation.measurement
        if measured is not None:
            self._root = self._root or measured.seconds
            self._best = min(self._best or measured.seconds, measured.seconds)
        gain = (
            f", best {ratio(self._root / self._best)} estimated"
            if self._root and self._best
            else ""
        )
        self._show(f"{self._count} of {self._budget}{gain}: {step.candidate.proposal.title}")

    def _show(self, text: str) -> None:
        if self._handle is not None:
            self._handle.update(_Line(text))
