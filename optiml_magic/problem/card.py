"""References on a card: CuPy in this process, whose context no candidate ever runs in.

They get float64 arrays as NumPy's would be. A card is asked while nobody times on it, and nothing
of an answer stays there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array
from optiml_magic.devices.maps import digest, has_subnormals, mapped, widened
from optiml_magic.devices.memory import stored
from optiml_magic.devices.turns import turn
from optiml_magic.model.dtypes import kind
from optiml_magic.problem.reference import Answer, arguments, named
from optiml_magic.problem.scales import Maps
from optiml_magic.problem.tolerance import scale_of


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
        """The library, on this card; loaded when something is asked of it."""
        library = self._load()
        library.cuda.Device(int(self._device.partition(":")[2] or 0)).use()
        return library

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
            cp = self._cp
            with turn(self._device):
                found = self._asked(reference, values, maps, outputs)
            cp.get_default_memory_pool().free_all_blocks()
        except Exception as cause:  # noqa: BLE001  # any failure means that a card is not to its taste
            told = str(cause).partition("\n")[0][:200]
            return Refusal(f"{type(cause).__name__}: {told}")
        return found

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
            array = cp.asarray(stored(value))
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
        found = named(
            reference(**arguments(reference, {**values, **wide})), outputs, lambda given: given
        )
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
