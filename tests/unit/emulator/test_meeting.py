"""The turns of atomics and their busiest line, from all blocks or from some."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.emulator.meeting import Met, met

SLOTS = 1024


def drawn(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Turns and blocks by slot, where row b has the sectors that block b adds to."""
    turns, blocks = np.zeros(SLOTS, np.int64), np.zeros(SLOTS, np.int64)
    for row in places:
        np.add.at(turns, row, 1)
        blocks[np.unique(row)] += 1
    return turns, blocks


@pytest.mark.parametrize("total", [200, 3000])
def test_one_place_for_all(total: int) -> None:
    found = met(*drawn(np.full((200, 64), 7)), 200, total)
    assert found == Met(64 * total, 64 * total)


def test_a_place_for_each_block() -> None:
    places = np.repeat(np.arange(200)[:, None], 64, axis=1)
    assert met(*drawn(places), 200, 100_000) == Met(64 * 100_000, 4 * 64)


@pytest.mark.parametrize("of", [3, 200, 900])
def test_a_sample_of_random_places_is_near_all(of: int) -> None:
    places = np.random.default_rng(of).integers(0, of, (4000, 256))
    whole = met(*drawn(places), 4000, 4000)
    some = met(*drawn(places[:200]), 200, 4000)
    assert some.turns == whole.turns
    assert 0.7 * whole.of_a_line < some.of_a_line < 1.5 * whole.of_a_line
