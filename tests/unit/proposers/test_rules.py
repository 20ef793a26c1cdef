"""The rules as one proposer: texts when they are wanted, refusals, arithmetic, and --exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from optiml_magic.model.facts import Facts
from optiml_magic.model.finding import Action, Finding
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal, foremost
from optiml_magic.model.view import View
from optiml_magic.proposers import rules
from optiml_magic.proposers.mixture import mixed
from optiml_magic.proposers.rewrites.block_size import BlockSize
from optiml_magic.proposers.rules import RuleProposer, broken
from optiml_magic.source.program import Program
from tests.ideas import made, view_of

SUM = """\
#pragma optiml launch total grid(cdiv(rows, 64)) block(64)
__global__ void total(const T* a, T* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    T sum = 0;
    for (int i = 0; i < cols; ++i) sum += a[row * cols + i];
    out[row] = sum;
}
"""
SCALE = """\
#pragma optiml launch scale grid(cdiv(n, 64)) block(64)
__global__ void scale(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] * 1.5;
}
"""


def ideas(text: str, rule: str, *, exact: bool = False) -> list[Idea]:
    found = RuleProposer(exact=exact).propose(view_of(text), 16).ideas
    return [idea for idea in found if idea.proposer == rule]


@pytest.mark.parametrize(
    ("kind", "arithmetic"), [("float", ("the order of additions",)), ("int", ())]
)
def test_sums_of_floats_depend_on_their_order(kind: str, arithmetic: tuple[str, ...]) -> None:
    text = SUM.replace("T ", f"{kind} ").replace("T*", f"{kind}*")
    assert {found.arithmetic for found in ideas(text, "row_to_lanes")} == {arithmetic}
    largest = text.replace("sum +=", "sum = max(sum,").replace("+ i];", "+ i]);")
    found = ideas(largest, "row_to_lanes")
    assert {one.arithmetic for one in found} == {()}
    assert {one.arithmetic for one in made(found)} == {()}


def test_constants_lose_their_precision() -> None:
    (found,) = ideas(SCALE, "float_literals")
    assert found.arithmetic == ("double constants to float",)
    (wished,) = ideas(SCALE.replace("* 1.5", "* (double)a[i]"), "float_literals")
    assert wished.arithmetic == ("double temporaries to float",)


def test_exact_turns_what_changes_the_arithmetic_into_refusals() -> None:
    found = RuleProposer(exact=True).propose(view_of(SCALE), 16)
    assert not [idea for idea in found.ideas if idea.arithmetic]
    assert "float_literals: changes double constants to float, and --exact forbids it" in [
        str(refusal) for refusal in found.refused
    ]
    assert [i.key for i in ideas(SCALE, "block_size")] == [
        i.key for i in ideas(SCALE, "block_size", exact=True)
    ]


def test_what_stands_in_the_way_is_told_with_its_line() -> None:
    text = SUM.replace("T ", "float ").replace("T*", "float*")
    left = text.replace(
        "sum += a[row * cols + i];", "{ sum += a[row * cols + i]; if (sum) break; }"
    )
    refused = RuleProposer().propose(view_of(left), 16).refused
    wanted = "row_to_lanes: what ends the loop depends on rounds before, line 6"
    assert wanted in [str(refusal) for refusal in refused]
    double = SCALE.replace("* 1.5;", "* (double)by;").replace("int n", "double by, int n")
    (found,) = [
        r for r in RuleProposer().propose(view_of(double), 16).refused if r.rule == "float_literals"
    ]
    assert str(found).endswith(", line 4")
    (broken,) = RuleProposer().propose(view_of("#pragma optiml tune"), 16).refused
    assert broken.rule == "rules"
    assert broken.line == 1


class Breaks:
    """Has one idea that breaks when it is made, and then breaks."""

    name = "breaks"

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        yield Idea("never made", self.name, lambda: str([][0]), key="breaks late")
        raise KeyError("a local" * 100)


def test_a_rule_that_breaks_costs_its_own_ideas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "broken", broken)
    view = view_of(SCALE)
    found = RuleProposer([Breaks(), BlockSize()]).propose(view, 16)
    assert {idea.proposer for idea in found.ideas} == {"breaks", "block_size"}
    (fault,) = found.refused
    assert fault.fault
    assert str(fault).startswith("breaks: the rule failed: KeyError in test_rules.py, line ")
    assert len(str(fault)) < 200
    (late,) = [idea.make() for idea in found.ideas if idea.proposer == "breaks"]
    assert "IndexError in test_rules.py" in str(late)
    many = [Refusal("other", f"reason {n}") for n in range(20)]
    assert foremost([*many, fault])[0] is fault


def test_block_sizes_are_written_when_they_are_tried() -> None:
    found = RuleProposer([BlockSize()]).propose(view_of(SCALE), 16).ideas
    assert found
    assert all(idea.text is None for idea in found)
    assert len({proposal.text for proposal in made(found)}) == sum(len(i.starts) for i in found)
    finding = Finding("waves", "note", "because", (), (Action("try", "block_size"),), (1.0, 2.0))
    lifted = RuleProposer([BlockSize()]).propose(view_of(SCALE, [finding]), 16).ideas
    assert [idea.key for idea in lifted] == [idea.key for idea in found]
    assert all(one.prior > other.prior for one, other in zip(lifted, found, strict=True))
    assert {idea.answers for idea in lifted} == {"waves"}


def test_facts_are_found_when_somebody_asks_and_once_a_view() -> None:
    found: list[Facts] = []

    def find() -> Facts:
        found.append(Facts((), {}, 1e-5, 1e-8, "h200"))
        return found[-1]

    view = replace(view_of(SCALE), find_facts=find)
    mixed((RuleProposer(),), view, 16)
    asked = len(found)
    assert view.facts is view.facts
    assert len(found) == asked + 1
    assert view_of(SCALE).facts is None
