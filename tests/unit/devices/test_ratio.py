"""The ratio of medians and its interval, against samples whose true ratio is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.devices.ratio import ratio
from tests.present import sampled

DRAWS = 300
seconds = st.floats(1e-7, 1.0)
rounds = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*[st.lists(seconds, min_size=2 * n, max_size=2 * n)] * 2)
)


def drawn(
    rng: np.random.Generator,
    true: float,
    *,
    count: int = 20,
    noise: float = 0.005,
    drift: float = 0.0,
) -> tuple[list[float], list[float]]:
    """Samples in the order A B B A, of a clock that slows down by ``drift`` over all of them."""
    slots = np.arange(4 * count).reshape(count, 4) / (4 * count)
    slow = 1 + drift * slots
    first = slow[:, [0, 3]].ravel() * np.exp(noise * rng.standard_normal(2 * count))
    other = true * slow[:, [1, 2]].ravel() * np.exp(noise * rng.standard_normal(2 * count))
    return list(20e-6 * first), list(20e-6 * other)


@given(rounds)
def test_the_interval_holds_the_ratio_of_the_medians(pair):
    baseline, other = pair
    found = ratio(baseline, other)
    assert found.value == pytest.approx(np.median(other) / np.median(baseline))
    assert found.low <= found.value <= found.high
    assert found.error >= 1
    assert found == ratio(baseline, other)


@given(rounds, st.floats(0.01, 100))
def test_a_unit_of_time_changes_nothing(pair, unit):
    baseline, other = pair
    scaled = ratio([unit * s for s in baseline], [unit * s for s in other])
    found = ratio(baseline, other)
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx(
        (found.value, found.low, found.high)
    )


@pytest.mark.parametrize(("count", "noise"), sampled([(10, 0.02), (10, 0.002), (30, 0.02)], 3))
def test_it_covers_the_truth_as_often_as_it_says(count, noise):
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(DRAWS):
        found = ratio(*drawn(rng, 1.05, count=count, noise=noise))
        hits += found.low <= 1.05 <= found.high
    assert hits >= 0.97 * DRAWS  # of 99 %: resampled medians of few rounds promise a little much


def test_equals_are_told_apart_from_a_twin_that_is_5_per_cent_slower():
    rng = np.random.default_rng(2)
    for _ in range(20):
        same, slower = ratio(*drawn(rng, 1.0)), ratio(*drawn(rng, 1.05))
        assert same.beyond < 1.005
        assert slower.low > 1.03


def test_a_drifting_clock_neither_shifts_nor_widens_the_ratio():
    rng = np.random.default_rng(3)
    steady = ratio(*drawn(rng, 1.02, noise=0.001))
    drifting = ratio(*drawn(rng, 1.02, noise=0.001, drift=0.2))
    assert drifting.value == pytest.approx(1.02, abs=0.002)
    assert steady.width < 0.005
    alone = np.median(drawn(rng, 1.02, noise=0.001, drift=0.2)[0][:20]) / 20e-6
    assert abs(alone - 1) > 0.02  # what samples not taken in turn would have been off by


def test_one_hiccup_in_ten_does_not_move_it():
    rng = np.random.default_rng(4)
    baseline, other = drawn(rng, 1.0)
    for at in range(0, len(other), 10):
        other[at] *= 8
    found = ratio(baseline, other)
    assert found.value == pytest.approx(1.0, abs=0.005)
    assert found.width < 0.03


def test_a_few_rounds_give_their_extremes_and_fewer_more():
    found = ratio([1.0, 2.0] * 3, [4.0, 6.0] * 3)
    assert (found.low, found.high) == pytest.approx((2.0, 6.0))
    found = ratio([1.0, 1.001], [2.0, 2.002])
    assert found.high / found.value == pytest.approx((2.002 / 1.0 / found.value) ** 8)
    assert 1.003 < found.error < 1.01


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_few_rounds_cover_the_truth_as_often(count):
    rng = np.random.default_rng(5)
    found = [ratio(*drawn(rng, 1.05, count=count, noise=0.005)) for _ in range(2000)]
    assert sum(one.low <= 1.05 <= one.high for one in found) >= 0.985 * len(found)


def test_what_the_interval_misses_one_by():
    assert ratio([1.0] * 20, [1.1] * 20).beyond == pytest.approx(1.1)
    assert ratio([1.1] * 20, [1.0] * 20).beyond == pytest.approx(1.1)
    assert ratio([1.0, 1.2] * 10, [1.2, 1.0] * 10).beyond == 1.0
