"""The limits stand between the rounding of honest code and a shortcut in lower precision."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from optiml_magic.devices.base import Tolerance
from optiml_magic.devices.compare import compare
from optiml_magic.problem.tolerance import scale_of, terms, tolerance

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("length", [16, 256, 4096])
def test_float32_dot_products_pass_and_float16_ones_fail(length: int) -> None:
    a, b = RNG.uniform(-1, 1, (2, 64, length)).astype(np.float32)
    wanted = a.astype(np.float64) @ b.T.astype(np.float64)
    limits = tolerance(wanted, np.dtype("f4"))
    honest = np.zeros((64, 64), np.float32)
    for k in range(length):  # one term after the other, the way a simple kernel adds
        honest += a[:, k, None] * b[None, :, k]
    assert compare("c", honest, wanted, limits, None).passed
    cheap = a.astype(np.float16).astype(np.float32) @ b.astype(np.float16).T.astype(np.float32)
    assert not compare("c", cheap, wanted, limits, None).passed


@pytest.mark.parametrize("length", [1 << 12, 1 << 16, 1 << 20])
def test_long_sums_pass_and_ones_of_rounded_terms_fail_on_mixed_signs(length: int) -> None:
    x = RNG.uniform(0.5, 1.5, (16, length)).astype(np.float32)
    for a in (x, x * RNG.choice(np.float32([-1, 1]), x.shape)):
        wanted = a.astype(np.float64).sum(axis=1)
        limits = tolerance(wanted, np.dtype("f4"), terms=length)
        honest = np.add.accumulate(a, axis=1, dtype=np.float32)[:, -1].copy()  # one after the other
        assert compare("s", honest, wanted, limits, None).passed
    cheap = a.astype(np.float16).astype(np.float64).sum(axis=1).astype(np.float32)
    assert not compare("s", cheap, wanted, limits, None).passed


def test_terms_are_the_longest_axis_or_the_inputs_of_an_output() -> None:
    one, two = np.zeros((3, 50), np.float32), np.zeros((4, 4), np.int32)
    assert terms([one, two], np.zeros((3, 3))) == 50
    assert terms([one], np.zeros(1)) == 150
    assert terms([two], np.zeros(1)) == 1


def test_a_tasks_own_limits_win() -> None:
    assert tolerance(np.ones(3), np.dtype("f4"), rtol=0.1, atol=0.2) == Tolerance(0.1, 0.2)


def test_integers_are_exact() -> None:
    assert tolerance(np.ones(3), np.dtype("i4")) == Tolerance(0.0, 0.0)
    assert tolerance(np.ones(3), np.dtype("u1"), atol=1) == Tolerance(0.0, 1)


def test_bfloat16_rounding_passes_and_two_bits_of_fraction_fail() -> None:
    wanted = RNG.uniform(1, 2, 4096)
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    limits = tolerance(wanted, bfloat16)
    assert compare("x", wanted.astype(bfloat16), wanted, limits, None).passed
    cheap = wanted.astype(ml_dtypes.float8_e5m2).astype(bfloat16)
    assert not compare("x", cheap, wanted, limits, None).passed


def test_each_number_of_a_struct_has_its_own_limits() -> None:
    own = np.dtype([("x", "f4"), ("id", "i4"), ("big", "f4")])
    wanted = np.zeros(100, [("x", "f8"), ("id", "i4"), ("big", "f8")])
    wanted["x"], wanted["big"] = 1e-3, 1e6
    limits = tolerance(wanted, own)
    assert limits.fields[1] == Tolerance(0.0, 0.0)
    assert limits.fields[0].atol < 1e-6 < limits.fields[2].atol
    got = wanted.astype(own)
    assert compare("s", got, wanted, limits, None).passed
    for name, error in (("x", 1e-4), ("id", 1), ("big", 1e3)):
        wrong = got.copy()
        wrong[name][17] += error
        check = compare("s", wrong, wanted, limits, None)
        assert (check.wrong, check.first_index) == (1, (17,))


def test_what_underflows_in_a_float_may_be_zero() -> None:
    wanted = np.array([1e-100, 1e-60, 1e-39])
    assert tolerance(wanted, np.dtype("f4")).atol >= 1e-39
    assert tolerance(wanted, np.dtype("f8")).atol < 1e-60
    assert tolerance(np.array([1e-3]), np.dtype("f4")).atol < 1e-7


def test_a_sample_tells_the_scale_of_a_large_output() -> None:
    rng = np.random.default_rng(0)
    columns = np.exp(rng.uniform(-3, 3, 2048))  # each of a magnitude of its own
    large = rng.standard_normal((2048, 2048)) * columns
    assert scale_of(large) == pytest.approx(float(np.median(np.abs(large))), rel=0.02)
    sparse = np.zeros(1 << 22)
    sparse[5] = -3.0
    assert scale_of(sparse) == 3.0
