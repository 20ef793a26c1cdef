from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.model.measurement import Measurement, Metric, speedup_interval
from optiml_magic.rewards import reward

TIMES = st.floats(1e-9, 10.0)


def measured(seconds: float, chip: str = "h200", **metrics: float) -> Measurement:
    named = tuple(Metric(n.replace("__dot__", "."), v, "", "emulated") for n, v in metrics.items())
    return Measurement(chip, "estimated", seconds, 1.3, named, (), ())


@given(before=TIMES, after=TIMES)
def test_speed_alone_is_symmetric_in_the_logarithm(before: float, after: float) -> None:
    there = reward(measured(before), measured(after))
    back = reward(measured(after), measured(before))
    assert there == pytest.approx(-back)
    assert -1 <= there <= 1


@pytest.mark.parametrize("before", [2.0, 16.0, 500.0])
def test_twice_as_fast_is_worth_the_same_wherever_it_is(before: float) -> None:
    root = measured(1000.0)
    gained = reward(root, measured(before / 2)) - reward(root, measured(before))
    assert gained == pytest.approx(1 / 16)


@given(before=TIMES, one=TIMES, two=TIMES)
def test_faster_is_never_worth_less(before: float, one: float, two: float) -> None:
    fast, slow = sorted((one, two))
    root = measured(before)
    assert reward(root, measured(fast)) >= reward(root, measured(slow))


def test_proxies_break_a_tie_and_guardrails_cost() -> None:
    root = measured(1.0, dram__bytes__dot__sum=1000.0, launch__registers_per_thread=32)
    less_traffic = measured(1.0, dram__bytes__dot__sum=100.0, launch__registers_per_thread=32)
    more_registers = measured(1.0, dram__bytes__dot__sum=1000.0, launch__registers_per_thread=128)
    assert reward(root, root) == 0
    assert reward(root, less_traffic) > 0
    assert reward(root, more_registers) < 0


def test_an_absent_metric_drops_its_term() -> None:
    root = measured(1.0, dram__bytes__dot__sum=1000.0)
    assert reward(root, measured(1.0)) == 0


def test_chips_never_mix() -> None:
    with pytest.raises(ValueError, match="one chip"):
        reward(measured(1.0), measured(1.0, chip="t4"))
    with pytest.raises(ValueError, match="do not compare"):
        speedup_interval(measured(1.0), measured(1.0, chip="t4"))


def test_the_interval_of_a_ratio() -> None:
    assert speedup_interval(measured(2.6), measured(1.0)) == pytest.approx((2.6, 2.0, 3.38))
