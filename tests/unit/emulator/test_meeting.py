"""The busiest word and line of atomics, from all blocks or from some."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.emulator.meeting import hottest

SLOTS = 1024


def drawn(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Updates and blocks by slot, where row b has the places that block b updates."""
    updates, blocks = np.zeros(SLOTS, np.int64), np.zeros(SLOTS, np.int64)
    for row in places:
        np.add.at(updates, row, 1)
        blocks[np.unique(row)] += 1
    return updates, blocks


@pytest.mark.parametrize("total", [200, 3000])
def test_one_place_for_all(total: int) -> None:
    found = hottest(*drawn(np.full((200, 64), 7)), 200, total)
    assert found == (64 * total, 64 * total)


def test_a_place_for_each_block() -> None:
    places = np.repeat(np.arange(200)[:, None], 64, axis=1)
    word, line = hottest(*drawn(places), 200, 100_000)
    assert word == 64
    assert line == 32 * 64


@pytest.mark.parametrize("of", [3, 200, 900])
def test_a_sample_of_random_places_is_near_all(of: int) -> None:
    places = np.random.default_rng(of).integers(0, of, (4000, 256))
    whole = hottest(*drawn(places), 4000, 4000)
    some = hottest(*drawn(places[:200]), 200, 4000)
    assert 0.7 * whole[0] < some[0] < 1.5 * whole[0]
    assert 0.7 * whole[1] < some[1] < 1.5 * whole[1]
