"""The limits stand between the rounding of honest code and a shortcut in lower precision."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.devices.base import Tolerance
from optiml_magic.devices.compare import compare
from optiml_magic.verifiers.tolerance import tolerance

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


def test_a_tasks_own_limits_win() -> None:
    assert tolerance(np.ones(3), np.dtype("f4"), rtol=0.1, atol=0.2) == Tolerance(0.1, 0.2)


def test_integers_are_exact() -> None:
    assert tolerance(np.ones(3), np.dtype("i4")) == Tolerance(0.0, 0.0)
    assert tolerance(np.ones(3), np.dtype("u1"), atol=1) == Tolerance(0.0, 1)
