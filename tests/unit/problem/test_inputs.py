from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from optiml_magic.errors import UsageError
from optiml_magic.model.task import Task
from optiml_magic.problem.inputs import draw, like

NUMBERS = st.sampled_from(["f2", "f4", "f8", "i1", "u1", "i4", "i8", "?"])


@given(dtype=NUMBERS, shape=hnp.array_shapes(max_dims=2, max_side=6), data=st.data())
def test_fresh_arrays_are_like_the_given(
    dtype: str, shape: tuple[int, ...], data: st.DataObject
) -> None:
    array = data.draw(
        hnp.arrays(dtype, shape, elements={"allow_nan": False} if "f" in dtype else None)
    )
    fresh = like(array, np.random.default_rng(1))
    assert (fresh.dtype, fresh.shape) == (array.dtype, array.shape)
    if dtype != "?" and np.isfinite(array).all():
        assert fresh.min() >= array.min()
        assert fresh.max() <= array.max()


def test_infinities_are_no_order() -> None:
    assert like(np.full(3, np.inf, np.float16), np.random.default_rng(0)).shape == (3,)


def test_sorted_arrays_stay_sorted() -> None:
    offsets = np.array([0, 3, 3, 10, 40], np.int32)
    fresh = like(offsets, np.random.default_rng(2))
    assert np.all(np.diff(fresh) >= 0)


@pytest.mark.parametrize("least", [0, -5, 7])
def test_permutations_stay_permutations_at_any_size(least: int) -> None:
    rng = np.random.default_rng(3)
    fresh = like(rng.permutation(np.arange(least, least + 40)).astype(np.int32), rng, (25,))
    assert sorted(fresh.tolist()) == [*range(least, least + 25)]


def test_the_first_seed_is_the_users_own_data_and_others_are_fresh() -> None:
    x = np.arange(10, dtype=np.float32)[::-1].copy()
    task = Task("", inputs={"x": x, "n": 10})
    assert np.array_equal(draw(task, 0)["x"], x)
    assert not np.array_equal(draw(task, 1)["x"], x)
    assert draw(task, 1)["n"] == 10
    assert np.array_equal(draw(task, 1)["x"], draw(task, 1)["x"])


def test_an_input_function_gets_its_sizes_and_a_generator() -> None:
    task = Task("", inputs=lambda rng, n: {"x": rng.random(n)}, sizes={"n": 7})
    drawn = draw(task, 4)
    assert drawn["n"] == 7
    assert drawn["x"].shape == (7,)


@pytest.mark.parametrize("inputs", [lambda rng: 3, lambda: {}, lambda rng: {}["x"]])
def test_a_wrong_input_function_says_how_it_should_be(inputs: object) -> None:
    with pytest.raises(UsageError, match="make it return a dict"):
        draw(Task("", inputs=inputs), 0)  # type: ignore[arg-type]


BODY = np.dtype([("x", "f4"), ("id", "i4"), ("on", "?"), ("b", ml_dtypes.bfloat16, (2,))])


def test_fresh_structs_are_like_the_given_field_by_field() -> None:
    bodies = np.zeros(50, BODY)
    bodies["x"], bodies["id"] = np.linspace(5, 9, 50)[::-1], np.arange(50)[::-1]
    bodies["b"] = np.linspace(1, 2, 100).reshape(50, 2)
    fresh = like(bodies, np.random.default_rng(1))
    assert fresh.dtype == BODY
    assert fresh.tobytes() != bodies.tobytes()
    assert np.array_equal(np.sort(fresh["id"]), np.arange(50))
    assert 5 <= fresh["x"].min() < fresh["x"].max() <= 9
    assert 1 <= fresh["b"].astype(float).min() < fresh["b"].astype(float).max() <= 2


@pytest.mark.parametrize("order", [1, -1])
def test_fresh_bfloat16_arrays_keep_range_and_order(order: int) -> None:
    x = np.linspace(-3, 7, 40).astype(ml_dtypes.bfloat16)[::order].copy()
    fresh = like(x, np.random.default_rng(2))
    assert fresh.dtype == x.dtype
    wide = fresh.astype(np.float64)
    assert -3 <= wide.min() < wide.max() <= 7
    assert (order == 1) == bool(np.all(np.diff(wide) >= 0))
