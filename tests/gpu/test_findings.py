"""The pairs of the tools on a card: counters by ncu, both kernels of a pair in one process of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from diagnosing import Diagnoses, lines

from optiml_magic.testing.findings import NAMES, pair

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def diagnoses() -> Iterator[Diagnoses]:
    with Diagnoses("cuda") as found:
        yield found


@pytest.mark.parametrize("name", [n for n in NAMES if "cuda" in pair(n).devices])
def test_a_tool_fires_on_the_faulty_kernel_alone(diagnoses: Diagnoses, name: str) -> None:
    wanted = pair(name)
    faulty, sound = diagnoses.of(wanted)
    assert set(lines(faulty, name)) == {wanted.line}, (faulty.roofline, faulty.measurement)
    silent = sound is None or lines(sound, name) == []
    assert silent, sound and (sound.roofline, sound.findings, sound.measurement)
