"""Functions that are timed on a card as graphs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from optiml_magic.devices.functions import GRAPH, captured, readied
from tests.unit.devices.card import Card, floats

N, SECONDS = 1 << 10, 1e-3


def test_the_arrays_of_a_graph_live_as_long_as_it() -> None:
    def increased(address: Any) -> None:
        floats(address, N)[:] += 1

    card = Card({"increase": (increased, SECONDS)})
    cp: Any = card.module()
    arrays: list[weakref.ref[Any]] = []

    def make() -> Callable[[], Any]:
        array = np.zeros(N, np.float32)
        arrays.append(weakref.ref(array))
        return lambda: card.launch("increase", (array.ctypes.data,))

    ready = readied(cp, make, lambda stream: stream, partial(captured, cp), 4 * N)
    gc.collect()
    assert (ready.how, ready.sets) == (GRAPH, len(arrays))
    assert ready.sets == 4  # as many as fill four milliseconds
    before = [array()[0] for array in arrays]  # type: ignore[index]
    ready.launch()
    assert [array()[0] for array in arrays] == [value + 1 for value in before]  # type: ignore[index]
    del ready
    gc.collect()
    assert not any(array() is not None for array in arrays)
