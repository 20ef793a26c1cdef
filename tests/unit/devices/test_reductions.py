"""Large arrays are reduced in two steps on a card, to what one step gives."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from optiml_magic.devices import reductions
from optiml_magic.devices.base import Tolerance
from optiml_magic.devices.compare import compare
from optiml_magic.devices.reductions import counted, place_of_largest, reduced, same_bytes
from tests.unit.devices.card import ndarray

CARD: Any = types.SimpleNamespace(**vars(np))  # any library but NumPy is taken for a card's
CARD.bincount = lambda *given, **more: np.bincount(*given, **more).view(ndarray)
SIZES = (1, 7, 64, 65, 640, 1000)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reductions, "LARGE", 64)
    monkeypatch.setattr(reductions, "_ROW", 16)


@pytest.mark.parametrize("size", SIZES)
def test_two_steps_come_to_what_one_gives(size: int) -> None:
    numbers = np.random.default_rng(size).integers(-50, 50, size).astype(np.float64)
    odd = numbers % 2 == 1
    assert reduced(np.sum, numbers, CARD) == numbers.sum()
    assert reduced(np.max, numbers, CARD) == numbers.max()
    assert bool(reduced(np.any, odd, CARD)) == odd.any()
    assert bool(reduced(np.all, odd, CARD)) == odd.all()
    assert counted(odd, CARD) == np.count_nonzero(odd)


@pytest.mark.parametrize("size", SIZES)
def test_the_first_largest_is_found_wherever_it_is(size: int) -> None:
    for at in {0, size // 2, size - 1}:
        numbers = np.zeros(size)
        numbers[at] = 2.0
        assert place_of_largest(numbers, CARD) == at
        numbers[0] = 2.0
        assert place_of_largest(numbers, CARD) == 0


@pytest.mark.parametrize("size", SIZES)
def test_one_byte_that_differs_is_seen_wherever_it_is(size: int) -> None:
    one = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    assert same_bytes(one, one.copy(), CARD)
    for at in {0, size // 2, size - 1}:
        other = one.copy()
        other[at] ^= 1
        assert not same_bytes(one, other, CARD)


def test_a_comparison_in_two_steps_is_that_of_one() -> None:
    rng = np.random.default_rng(0)
    wanted = rng.uniform(1, 2, 1003)
    got = wanted.astype(np.float32)
    got[[3, 500, 1002]] += [0.5, 1.5, 0.25]
    got[7] = np.nan
    found = [compare("out", got, wanted, Tolerance(1e-5, 0), None, xp=xp) for xp in (np, CARD)]
    assert found[0].wrong == found[1].wrong == 4
    assert found[0].max_abs_error == found[1].max_abs_error
    assert found[0].first_index == found[1].first_index
    assert found[0].error == pytest.approx(found[1].error, rel=1e-12)
