"""The pairs of the tools on a card: counters by ncu, both kernels of a pair in one process of it."""

from __future__ import annotations

import pytest
from diagnosing import evaluated, lines

from optiml_magic.testing.findings import NAMES, pair

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", [n for n in NAMES if "cuda" in pair(n).devices])
def test_a_tool_fires_on_the_faulty_kernel_alone(name: str) -> None:
    wanted = pair(name)
    faulty, sound = evaluated(wanted, "cuda")
    assert set(lines(faulty, name)) == {wanted.line}, faulty.measurement
    assert sound is None or lines(sound, name) == [], sound.measurement
