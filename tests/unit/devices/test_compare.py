from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from optiml_magic.devices.base import Tolerance
from optiml_magic.devices.compare import _read, _rows, compare, poison_like
from optiml_magic.model.dtypes import numbers

EXACT = Tolerance(0.0, 0.0)
LOOSE = Tolerance(1e-3, 1e-3)
DTYPES = ["f2", "f4", "f8", "i1", "i4", "u8", "?", "c8", "c16"]


@given(
    dtype=st.sampled_from(DTYPES),
    shape=hnp.array_shapes(max_dims=3, max_side=5),
    data=st.data(),
)
def test_an_array_equals_itself(dtype: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    array = data.draw(hnp.arrays(dtype, shape))
    assert compare("x", array, array.copy(), EXACT, None).passed


@given(dtype=st.sampled_from(["f4", "f8", "i4", "u8"]), size=st.integers(1, 50), data=st.data())
def test_one_wrong_element_is_found_where_it_is(dtype: str, size: int, data: st.DataObject) -> None:
    wanted = np.arange(size).astype(dtype)
    at = data.draw(st.integers(0, size - 1))
    got = wanted.copy()
    got[at] += 1
    check = compare("x", got, wanted, EXACT, None)
    assert (check.wrong, check.first_index) == (1, (at,))
    assert not check.passed


def test_nan_and_infinity_fail_closed() -> None:
    wanted = np.ones(4)
    got = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    check = compare("x", got, wanted, LOOSE, None)
    assert (check.wrong, check.nonfinite, check.first_index) == (3, 3, (1,))


def test_the_largest_complex_number_equals_itself() -> None:
    largest = np.array([1.27e308 * (1 + 1j)])
    assert compare("x", largest.copy(), largest, EXACT, None).passed


def test_nan_passes_only_where_the_oracle_has_one() -> None:
    wanted = np.array([np.nan, np.inf, 1.0, -np.inf])
    same = wanted.astype(np.float32)
    assert compare("x", same, wanted, LOOSE, None).passed
    swapped = np.array([np.inf, np.nan, 1.0, np.inf], np.float32)
    assert compare("x", swapped, wanted, LOOSE, None).wrong == 3
    assert compare("x", np.ones(4, np.float32), wanted, LOOSE, None).wrong == 3


def test_unwritten_elements_are_counted_by_their_bits() -> None:
    got = poison_like(np.empty(100, np.float32), seed=5)
    poison = got.copy()
    got[:60] = 1.0
    check = compare("x", got, np.ones(100), LOOSE, poison)
    assert (check.wrong, check.unwritten) == (40, 40)


def test_integers_are_exact_beyond_what_a_double_can_tell() -> None:
    wanted = np.array([2**62], np.int64)
    assert not compare("x", wanted + 1, wanted, EXACT, None).passed


def test_integers_may_be_allowed_to_differ() -> None:
    wanted = np.array([3, 200], np.uint8)
    one = Tolerance(0.0, 1.0)
    assert compare("x", wanted - 1, wanted, one, None).passed
    assert compare("x", wanted - 2, wanted, one, None).wrong == 2


def test_poison_differs_with_its_seed() -> None:
    like = np.empty(64, np.int32)
    assert not np.array_equal(poison_like(like, 1), poison_like(like, 2))
    assert np.array_equal(poison_like(like, 1), poison_like(like, 1))


@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_an_empty_output_passes(dtype: str) -> None:
    empty = np.empty((0, 3), dtype)
    assert compare("x", empty, empty, EXACT, None).passed


@given(bits=hnp.arrays(np.uint16, st.integers(1, 40)))
def test_every_bfloat16_is_read_as_ml_dtypes_reads_it(bits: np.ndarray) -> None:
    values = bits.view(ml_dtypes.bfloat16)
    wide = values.astype(np.float64)
    assert compare("x", values, wide, EXACT, None).passed
    stored = compare("x", bits, wide, EXACT, bits, dtypes=(values.dtype, wide.dtype))
    assert stored.passed
    changed = bits.copy()
    changed[-1] ^= 1
    check = compare("x", changed.view(ml_dtypes.bfloat16), wide, EXACT, None)
    both_nan = np.isnan(changed.view(ml_dtypes.bfloat16)[-1].astype(float)) and np.isnan(wide[-1])
    assert check.wrong == (0 if both_nan else 1)


def test_a_struct_is_wrong_where_any_number_of_it_is_and_padding_is_nothing() -> None:
    dtype = np.dtype([("on", "?"), ("x", "f4", (2,)), ("z", "c16")], align=True)
    wanted = np.zeros((4, 5), dtype)
    poison = poison_like(wanted, 3)
    assert compare("s", poison, wanted, EXACT, poison).unwritten == 20
    got = poison.copy()
    for name in dtype.names or ():
        got[name] = wanted[name]
    assert got.tobytes() != wanted.tobytes()  # padding keeps its poison
    assert compare("s", got, wanted, EXACT, poison).passed
    got["z"][1, 2] = np.nan
    got["x"][3, 4, 1] = 2
    check = compare("s", got, wanted, EXACT, poison)
    assert (check.wrong, check.nonfinite, check.first_index) == (2, 1, (1, 2))
    assert "nan" in check.got
    raw = [a.reshape(-1).view(np.uint8).reshape(4, 5, dtype.itemsize) for a in (got, wanted)]
    assert compare("s", *raw, EXACT, None, dtypes=(dtype, dtype)) == compare(
        "s", got, wanted, EXACT, None
    )


@pytest.mark.parametrize(
    ("shape", "at", "picture"),
    [
        ((8, 32), (2, 5), ["." * 32] * 2 + ["." * 5 + "#" + "." * 26] + ["." * 32] * 5),
        ((80, 3), (79, 0), ["..."] * 7 + ["+.."]),
        ((3,), (1,), [".#."]),
        ((40,), (33,), ["." * 32, ".#......"]),
        ((2, 2, 2), (1, 0, 1), ["..", "..", ".#", ".."]),
    ],
)
def test_a_picture_shows_where_the_wrong_elements_lie(shape, at, picture) -> None:
    wanted = np.zeros(shape)
    got = wanted.copy()
    got[at] = 1
    assert compare("x", got, wanted, EXACT, None).picture == tuple(picture)
    assert compare("x", wanted, wanted, EXACT, None).picture == ()


@pytest.mark.parametrize("size", [1, 7, 255, 256, 257, 1000, 4097])
def test_all_cells_are_full_where_all_is_wrong(size: int) -> None:
    found = compare("x", np.ones(size), np.zeros(size), EXACT, None).picture
    assert len(found) <= 8
    assert max(map(len, found)) <= 32
    assert set("".join(found)) == {"#"}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ml_dtypes.bfloat16])
@pytest.mark.parametrize("value", [1.0, 1.5, 1024.0, 1e-3])
def test_errors_count_in_units_of_the_last_place(dtype, value: float) -> None:
    wanted = np.full(9, value).astype(dtype)
    got = wanted.copy()
    words = got.view(f"u{got.itemsize}")
    words[4] += 3  # the next three floats up
    check = compare("x", got, wanted.astype(np.float64), EXACT, None)
    assert check.max_ulp == pytest.approx(3)
    assert check.first_index == (4,)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_packed_struct_is_read_aligned(rows: int) -> None:
    """A card traps at a double that lies at byte 1; NumPy only takes longer."""
    packed = np.zeros(rows, np.dtype([("alive", "i1"), ("v", "f8"), ("id", "i4", 2)]))
    for number in numbers(packed.dtype):
        read = _read(_rows(packed, packed.dtype), number, np)
        assert read.flags.aligned, number
