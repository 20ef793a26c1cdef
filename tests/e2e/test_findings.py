"""Every tool fires on its faulty kernel, names the line, and stays silent on the sound one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from diagnosing import Diagnoses, as_on_a_card, lines

from optiml_magic.findings import TOOLS
from optiml_magic.testing.findings import NAMES, pair
from optiml_magic.testing.findings.tasks import TASKS
from tests.present import sampled

# On a card it reads a counter of the L2 that nothing here stands for.
ONLY_EMULATED = {"atomic_contention"}


@pytest.fixture(scope="module")
def diagnoses() -> Iterator[Diagnoses]:
    with Diagnoses("emulated") as found:
        yield found


def test_every_tool_has_a_pair_and_every_pair_a_tool_and_a_task() -> None:
    assert {tool.name for tool in TOOLS} == set(NAMES)
    assert {pair(name).task for name in NAMES} == set(TASKS)
    assert len(NAMES) >= 22
    for name in NAMES:
        assert pair(name).faulty != pair(name).sound


@pytest.mark.parametrize("name", sampled((n for n in NAMES if "emulated" in pair(n).devices), 24))
def test_a_tool_fires_on_the_faulty_kernel_alone(diagnoses: Diagnoses, name: str) -> None:
    wanted = pair(name)
    faulty, sound = diagnoses.of(wanted)
    assert set(lines(faulty, name)) == {wanted.line}
    assert sound is None or lines(sound, name) == []
    if name not in ONLY_EMULATED:
        tool = next(tool for tool in TOOLS if tool.name == name)
        found = [[f.line for f in tool.diagnose(as_on_a_card(s))] for s in diagnoses.subjects]
        assert set(found[0]) == {wanted.line}
        assert found[1:] in ([], [[]])
