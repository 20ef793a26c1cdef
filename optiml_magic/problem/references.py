"""Where the wanted answers of a task come from: its reference on NumPy's arrays, or on a card.

A card is used where NumPy would be slow, the reference takes CuPy arrays, and both agree at a small
size. Which it was, and why, is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array, Buffer
from optiml_magic.devices.compare import compare
from optiml_magic.devices.maps import digest
from optiml_magic.model.dtypes import kind
from optiml_magic.model.peer import Peer
from optiml_magic.model.verdict import OutputCheck
from optiml_magic.problem import reference
from optiml_magic.problem.card import Card, Refusal
from optiml_magic.problem.libraries import Home
from optiml_magic.problem.reference import Answer
from optiml_magic.problem.scales import Maps, scaled
from optiml_magic.problem.tolerance import tolerance

NO_MAPS: Maps = {}
_SHORT = 0.01  # seconds of a call that something else may have held up; ours
_LARGE = 1 << 20  # bytes from which on a card compares faster, copies included


class References:
    """The reference of one task. Raises what ``reference.ask`` raises."""

    def __init__(
        self,
        call: Callable[..., Any],
        outputs: Sequence[str],
        homes: Mapping[str, Home],
        card: Card | None = None,
    ) -> None:
        """``outputs`` are in the kernel's order; ``card`` is one that may be tried."""
        self._call = call
        self._outputs = outputs
        self._homes = homes
        self._offered = None if homes else card  # arrays of a library go back to that library
        self._timing = self._offered
        self._card: Card | None = None
        self.seconds = 0.0  # of a call at the sizes where it is asked
        self.by_numpy = 0.0  # the same, were NumPy to answer
        self.note = ""  # where a card was tried: what came of it

    @property
    def may_use_card(self) -> bool:
        """Whether there is a card that was not tried yet."""
        return self._offered is not None

    @property
    def is_on_card(self) -> bool:
        """Whether the card answers."""
        return self._card is not None

    def timed(self, values: Mapping[str, Any]) -> Peer | Refusal | None:
        """CuPy running the reference on ``values``, timed on the card; None where there is none."""
        card = self._timing
        return None if card is None else card.timed(self._call, values, self._outputs)

    def answer(
        self,
        values: Mapping[str, Any],
        maps: Maps = NO_MAPS,
        *,
        twice: bool = False,
        digests: bool = False,
    ) -> Answer:
        """What each output should be for ``values`` after their ``maps``.

        ``twice`` demands the same answer again. ``digests`` asks for those of the arrays.
        """
        if self._card is not None:
            found = self._on_card(self._card, values, maps, twice=twice)
            if isinstance(found, Answer):
                return found
            self._card = None
            self.note = f"references: computed by NumPy; on the card, {found.reason}"
        content = scaled(values, maps)
        answer = reference.ask(self._call, content, self._outputs, self._homes, twice=twice)
        return _with_digests(answer, content) if digests else answer

    def _on_card(
        self, card: Card, values: Mapping[str, Any], maps: Maps, *, twice: bool
    ) -> Answer | Refusal:
        """What the card gives; twice, where its sums may come in another order the second time."""
        found = card.ask(self._call, values, maps, self._outputs)
        if not twice or isinstance(found, Refusal):
            return found
        again = card.ask(self._call, values, maps, self._outputs)
        if isinstance(again, Refusal):
            return again
        differing = next((n for n in found.outputs if not _agree(found, again, n)), None)
        return found if differing is None else Refusal(f"`{differing}` differs from run to run")

    def compared(self, buffer: Buffer, got: Array) -> OutputCheck:
        """How far ``got`` is from what a buffer with an answer should hold.

        By the same code wherever there is room: on the card, where that is in use, or here.
        """
        if self._card is not None and got.nbytes >= _LARGE:
            found = self._card.compared(buffer, got)
            if isinstance(found, OutputCheck):
                return found
        assert buffer.tolerance is not None
        return compare(buffer.name, got, buffer.expected, buffer.tolerance, None)

    def time(self, values: Mapping[str, Any]) -> float:
        """Seconds of one call of whoever answers; of a short one the least of three."""
        first = self.answer(values).seconds
        if first > _SHORT:
            return first
        return min(first, *(self.answer(values).seconds for _ in range(2)))

    def try_card(self, values: Mapping[str, Any], where: str) -> None:
        """Use the card from now on, where it agrees with NumPy on these values, and is faster.

        ``where`` names their sizes.
        """
        card, self._offered = self._offered, None
        if card is None or self._card is not None:
            return
        exact = self.answer(values)
        if not exact.wide:
            self.note = "references: computed by NumPy, in the dtypes of the inputs"
            return
        found = card.ask(self._call, values, NO_MAPS, self._outputs)
        if isinstance(found, Answer):
            found = card.ask(self._call, values, NO_MAPS, self._outputs)  # what it needs is there
        if isinstance(found, Refusal):
            self.note = f"references: computed by NumPy; on the card, {found.reason}"
            return
        differing = next((n for n in exact.outputs if not _agree(exact, found, n)), None)
        if differing is not None:
            self.note = (
                f"references: computed by NumPy; on the card `{differing}` differs at {where}"
            )
        elif found.seconds < exact.seconds:
            self._card = card
            self.note = f"references: computed on the card, compared with NumPy at {where}"
        else:
            self.note = "references: computed by NumPy, which is faster here than the card"


def digests_of(values: Mapping[str, Any]) -> dict[str, int]:
    """The digest of each array."""
    return {n: digest(v) for n, v in values.items() if isinstance(v, np.ndarray)}


def _with_digests(answer: Answer, content: Mapping[str, Any]) -> Answer:
    return Answer(answer.outputs, answer.wide, answer.seconds, answer.scales, digests_of(content))


def _agree(exact: Answer, found: Answer, name: str) -> bool:
    """Whether an output is the same but for the order in which float64 numbers are added up."""
    one, two = exact.outputs[name], found.outputs[name]
    if (one.shape, one.dtype) != (two.shape, two.dtype):
        return False
    if kind(one.dtype) not in "fc":
        return bool(np.array_equal(one, two))
    limits = tolerance(one, np.dtype(np.float64))
    return _close(one, two, limits.rtol, limits.atol)


def _close(one: Array, two: Array, rtol: float, atol: float) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.allclose(two, one, rtol, atol, equal_nan=True))
