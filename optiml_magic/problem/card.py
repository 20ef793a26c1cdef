"""References on a card: CuPy in this process, whose context no candidate ever runs in.

They get float64 arrays as NumPy's would be, and CuPy where they say NumPy. A card is asked while
nobody times on it, and nothing of an answer stays there.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array, Buffer, Sampling
from optiml_magic.devices.compare import compare
from optiml_magic.devices.functions import captured, line_of, readied, sampled
from optiml_magic.devices.maps import digest, has_subnormals, mapped, widened
from optiml_magic.devices.memory import stored
from optiml_magic.devices.ratio import ratio
from optiml_magic.devices.reductions import quickly_compiled
from optiml_magic.devices.sending import sent
from optiml_magic.devices.turns import turn
from optiml_magic.model.dtypes import BFLOAT16, kind
from optiml_magic.model.peer import Peer
from optiml_magic.model.verdict import OutputCheck
from optiml_magic.problem.reference import Answer, arguments, named
from optiml_magic.problem.scales import Maps
from optiml_magic.problem.tolerance import scale_of
from optiml_magic.rebound import computed, rebound

_SAMPLING = Sampling(least=10, most=100, seconds=1.0)  # as candidates are


@dataclass(frozen=True)
class Refusal:
    """Why a reference cannot run on a card."""

    reason: str


class Card:
    """A card by the name of its device, ``cuda:0``; ``load`` gives the library of its arrays."""

    def __init__(self, device: str, load: Callable[[], Any]) -> None:
        self._device = device
        self._load = load

    @cached_property
    def _cp(self) -> Any:
        """The library; loaded when something is asked of it."""
        return self._load()

    @contextmanager
    def _working(self) -> Iterator[Any]:
        """The library, while nobody times on this card; what was used goes back to the driver."""
        cp, index = self._cp, int(self._device.partition(":")[2] or 0)
        with turn(self._device, shared=True), cp.cuda.Device(index), quickly_compiled(cp):
            try:
                yield cp
            finally:
                cp.get_default_memory_pool().free_all_blocks()

    def ask(
        self,
        reference: Callable[..., Any],
        values: Mapping[str, Any],
        maps: Maps,
        outputs: Sequence[str],
    ) -> Answer | Refusal:
        """The answer for ``values`` after their ``maps``, in float64; with every array's digest.

        A refusal where the reference does not take these arrays, gives others back, or fails.
        """
        try:
            with self._working():
                found = self._asked(reference, values, maps, outputs)
        except Exception as cause:  # noqa: BLE001  # whatever it is, the reference does not run on a card
            return Refusal(line_of(cause))
        return found

    def timed(
        self, reference: Callable[..., Any], values: Mapping[str, Any], outputs: Sequence[str]
    ) -> Peer | Refusal:
        """CuPy running the reference, warmed up, on ``values`` in the dtypes that they have."""
        cp, index = self._cp, int(self._device.partition(":")[2] or 0)
        try:
            with turn(self._device), cp.cuda.Device(index):
                try:
                    return self._timed(reference, values, outputs)
                finally:
                    cp.get_default_memory_pool().free_all_blocks()
        except Exception as cause:  # noqa: BLE001  # whatever it is, CuPy does not run it
            return Refusal(line_of(cause))

    def compared(self, buffer: Buffer, got: Array) -> OutputCheck | Refusal:
        """How far ``got`` is from what a buffer with an answer should hold."""
        assert buffer.expected is not None
        assert buffer.tolerance is not None
        try:
            with self._working() as cp:
                found = compare(
                    buffer.name,
                    sent(cp, stored(got)),
                    sent(cp, stored(buffer.expected)),
                    buffer.tolerance,
                    None,
                    xp=cp,
                    dtypes=(buffer.array.dtype, buffer.expected.dtype),
                )
        except Exception as cause:  # noqa: BLE001  # there may be no room for it on the card
            return Refusal(line_of(cause))
        return found

    def _timed(
        self, reference: Callable[..., Any], values: Mapping[str, Any], outputs: Sequence[str]
    ) -> Peer | Refusal:
        cp, call = self._cp, rebound(reference, self._cp)
        asked = arguments(reference, values)
        arrays = {n: v for n, v in asked.items() if isinstance(v, np.ndarray)}
        for name, array in arrays.items():
            if kind(array.dtype) == "V" or array.dtype == BFLOAT16:
                return Refusal(f"`{name}` holds {array.dtype}")

        def make() -> Callable[[], Any]:
            given = {**asked, **{n: sent(cp, stored(array)) for n, array in arrays.items()}}
            return partial(computed, cp, call, given)

        found = named(make()(), outputs, lambda value: value)
        for name, array in found.items():
            if not isinstance(array, cp.ndarray):
                return Refusal(f"it gives `{name}` as a {type(array).__name__}")
        footprint = sum(array.nbytes for array in (*arrays.values(), *found.values()))
        ready = readied(cp, make, lambda stream: stream, partial(captured, cp), footprint)
        (samples,) = sampled(cp, [ready], _SAMPLING)
        seconds = statistics.median(samples)
        error = ratio([seconds] * len(samples), samples).error
        return Peer("CuPy running the reference", seconds, error, ready.how)

    def _asked(
        self,
        reference: Callable[..., Any],
        values: Mapping[str, Any],
        maps: Maps,
        outputs: Sequence[str],
    ) -> Answer | Refusal:
        cp, digests, wide = self._cp, {}, {}
        asked = set(map(id, arguments(reference, values).values()))
        for name, value in values.items():
            if not isinstance(value, np.ndarray):
                continue
            if kind(value.dtype) == "V":
                return Refusal(f"`{name}` holds structs")
            array = sent(cp, stored(value))
            if name in maps:
                array = mapped(maps[name], array, xp=cp, dtype=value.dtype)
            digests[name] = digest(array, cp)
            if id(value) in asked and has_subnormals(array, value.dtype, cp):
                return Refusal(f"`{name}` holds subnormal numbers, which CuPy takes for 0")
            if id(value) in asked:
                wide[name] = widened(array, value.dtype, cp)
            del array
        cp.cuda.Device().synchronize()
        began = time.monotonic()
        call, given = rebound(reference, cp), arguments(reference, {**values, **wide})
        found = named(call(**given), outputs, lambda value: value)
        cp.cuda.Device().synchronize()
        seconds = time.monotonic() - began
        for name, array in found.items():
            if not isinstance(array, cp.ndarray):
                return Refusal(f"it gives `{name}` as a {type(array).__name__}")
        scales = {n: scale_of(a, cp) for n, a in found.items() if a.dtype.kind in "fc"}
        answers: dict[str, Array] = {name: array.get() for name, array in found.items()}
        return Answer(answers, True, seconds, scales, digests)


def cupy_on(device: str) -> Card | None:
    """The card behind a device, None where there is none."""
    if device.partition(":")[0] != "cuda":
        return None

    def load() -> Any:
        import cupy

        return cupy

    return Card(device, load)
