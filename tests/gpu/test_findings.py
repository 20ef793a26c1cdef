"""The pairs of the tools on a card: counters by ncu, both kernels of a pair in one process of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from optiml_magic.findings import TOOLS
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.testing.findings import NAMES, pair
from tests.diagnosing import Diagnoses, lines

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def diagnoses() -> Iterator[Diagnoses]:
    with Diagnoses("cuda") as found:
        yield found


@pytest.mark.parametrize("name", [n for n in NAMES if "cuda" in pair(n).devices])
def test_a_tool_fires_on_the_faulty_kernel_alone(diagnoses: Diagnoses, name: str) -> None:
    wanted = pair(name)
    faulty, sound = diagnoses.of(wanted)
    assert set(lines(faulty, name)) == {wanted.line}, seen(name, faulty)
    if sound is not None:
        assert lines(sound, name) == [], seen(name, sound)


def seen(name: str, evaluation: Evaluation) -> str:
    """What that tool was shown."""
    measured = evaluation.measurement
    assert measured is not None
    metrics = next(tool.metrics for tool in TOOLS if tool.name == name)
    values = {m: measured.why(m) or measured.get(m) for m in metrics}
    return f"{evaluation.roofline}, {values}, {evaluation.findings}"
