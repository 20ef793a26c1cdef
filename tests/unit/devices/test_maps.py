"""Maps of arrays: what each changes, and that parts and libraries make no difference."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ml_dtypes import bfloat16

from optiml_magic.devices.maps import Kind, Map, digest, has_subnormals, mapped
from tests.unit.devices.card import Card

CUPY = Card({}).module()
FLOATS = (np.float16, bfloat16, np.float32, np.float64, np.complex64, np.complex128)
KINDS: tuple[Kind, ...] = ("times", "signs", "magnitudes", "below", "thirds", "steps")


def stored(array: Any) -> Any:
    return array.view(np.uint16) if array.dtype == bfloat16 else array


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_card_which_takes_larger_parts_makes_the_same_bits(kind: Kind, dtype: Any) -> None:
    array = np.random.default_rng(0).uniform(-2, 2, 70_000).astype(dtype)
    change = Map(kind, 0.01, "f" if kind in ("below", "steps") else "fc", 3)
    here = mapped(change, array)
    there = mapped(change, CUPY.asarray(stored(array)), xp=CUPY, dtype=array.dtype)
    assert here.dtype == array.dtype
    assert np.array_equal(stored(here).view(np.uint8), there.view(np.uint8))
    assert digest(here) == digest(there, CUPY)


@pytest.mark.parametrize("dtype", FLOATS[:4])
def test_values_drawn_anew_need_every_digit_and_are_spread(dtype: Any) -> None:
    found = mapped(Map("signs"), np.ones(4096, dtype)).astype(np.float64)
    assert -1 < found.min() < -0.9
    assert 0.9 < found.max() < 1
    assert abs(found.mean()) < 0.1
    digits = int(ml_dtypes.finfo(dtype).nmant) + 1
    assert (found * 2.0 ** (digits - 1) % 1 != 0).any()


def test_signs_are_even_and_differ_from_seed_to_seed() -> None:
    ones = np.arange(1, 1 << 18, dtype=np.float32)
    one, two = (mapped(Map("signs", seed=seed), ones) < 0 for seed in (1, 2))
    assert 0.49 < one.mean() < 0.51
    assert 0.45 < (one == two).mean() < 0.55
    assert 0.45 < (one[: 1 << 16] == one[1 << 16 : 1 << 17]).mean() < 0.55


def test_integers_and_members_of_structs() -> None:
    numbers = np.array([(1.5, 7), (-2.0, -3)], [("x", "f4"), ("i", "i4")])
    assert mapped(Map("times", 2.0), numbers).tolist() == [(3.0, 7), (-4.0, -3)]
    alike = mapped(Map("alike", kinds="iu"), numbers)
    assert len(set(alike["i"].tolist())) == 1
    assert alike["x"].tolist() == [1.5, -2.0]
    large = mapped(Map("large", kinds="iu"), np.zeros(1000, np.int32))
    assert large.max() > 1 << 16 > -(1 << 16) > large.min()


def test_a_nan_and_what_is_subnormal_have_the_same_bits_everywhere() -> None:
    odd = np.array([np.nan, -np.nan, 1e-40, np.inf, 1.0], np.float32)
    assert has_subnormals(odd, odd.dtype, np)
    found = mapped(Map("times", 3.0), odd)
    assert found.view(np.uint32)[:3].tolist() == [0x7FC00000, 0x7FC00000, 0]
    assert not has_subnormals(found, found.dtype, np)


def test_a_digest_sees_one_bit_the_place_and_the_length() -> None:
    array = np.arange(100_001, dtype=np.float32)
    other, turned = array.copy(), array.copy()
    other.view(np.uint32)[77_777] ^= 1 << 31
    turned[[5, 70_000]] = array[[70_000, 5]]
    negated = array * np.where(np.arange(array.size) % 2, -1, 1).astype(np.float32)
    found = [digest(a) for a in (array, other, turned, negated, array[:-1], np.append(array, 0))]
    assert len(set(found)) == len(found)
