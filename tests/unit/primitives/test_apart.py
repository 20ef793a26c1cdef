"""A kernel of its own for each launch of it."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.apart import apart
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites.block_size import BlockSize
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.source.program import parse_program
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of

TWICE = """\
#pragma optiml scratch tmp float32[n]
#pragma optiml launch sweep grid(cdiv(n, 64)) block(64) args(a, tmp, n)
#pragma optiml launch sweep grid(cdiv(n, 64)) block(64) args(tmp, c, n)
__global__ void sweep(const float* from, float* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i > 0 ? i - 1 : n - 1] + from[i];
}
"""
CHOSEN = """args(a, tmp, n) if (n > 64)
#pragma optiml launch sweep grid(n) block(1) args(a, tmp, n) else"""
AGAIN = "\n#pragma optiml launch sweep grid(cdiv(n, 64)) block(64) args(tmp, c, n)"
MADE = """#define NAME(a) __global__ void a
NAME(sweep)("""
ARRAYS = {"a": Array("f4", ("n",)), "c": Array("f4", ("n",))}


def test_each_launch_has_its_own() -> None:
    after = apart(parse_program(TWICE))
    assert [launch.kernel for launch in after.launches] == ["sweep", "sweep_2"]
    assert after.text.count("__global__ void sweep") == 2
    assert apart(after) is after
    assert end_of(TWICE, after.text, ARRAYS, {"n": 70}, {"n": 3}) == "same"


def test_a_template_is_copied_with_its_head_and_launched_with_its_arguments() -> None:
    text = TWICE.replace("__global__", "template <int STEP> __global__").replace(
        "i - 1", "i - STEP"
    )
    text = text.replace("launch sweep", "launch sweep<1>")
    after = apart(parse_program(text))
    assert [launch.kernel for launch in after.launches] == ["sweep<1>", "sweep_2<1>"]
    assert after.text.count("template <int STEP> __global__") == 2
    assert end_of(text, after.text, ARRAYS, {"n": 70}, {"n": 3}) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("args(a, tmp, n)", CHOSEN),
        ("args(tmp, c, n)", "args(tmp, c, n)" + 7 * AGAIN),
        ("__global__ void sweep(", MADE),
    ],
    ids=["the host chooses", "many launches", "a macro makes it"],
)  # fmt: skip
def test_those_that_stay(old: str, new: str) -> None:
    program = parse_program(TWICE.replace(old, new))
    assert apart(program) is program


def test_a_short_kernel_may_have_more_launches_than_a_long_one() -> None:
    often = TWICE.replace(AGAIN, 4 * AGAIN)
    assert len({launch.kernel for launch in apart(parse_program(often)).launches}) == 5
    long = parse_program(often.replace("    if (i", 120 * "    i = i + n - n;\n" + "    if (i"))
    assert apart(long) is long


def test_what_no_rule_looks_at_is_refused() -> None:
    text = TWICE.replace(AGAIN, 8 * AGAIN)
    step = Step(
        Candidate(0, None, Proposal(text, "", "")), Evaluation(0, "", Verdict(Outcome.PASSED, ""))
    )
    found = RuleProposer((BlockSize(),)).propose(View(step, step, find_facts=lambda: None), 1)
    assert not found.ideas
    assert [r.reason for r in found.refused] == [
        "no rule looks at `sweep`, of which there are 9 launches"
    ]


def test_rules_see_both_with_what_is_known_of_each() -> None:
    stand = Stand(Made("one", TWICE, ARRAYS, {"n": 70}, {"n": 3}))
    step = Step(
        Candidate(0, None, Proposal(TWICE, "", "")), Evaluation(0, "", Verdict(Outcome.PASSED, ""))
    )
    view = View(step, step, find_facts=lambda: stand.facts(TWICE))
    ideas = RuleProposer((BlockSize(),)).propose(view, 1).ideas
    assert {idea.launches for idea in ideas} == {("sweep",), ("sweep_2",), ("sweep", "sweep_2")}
    for idea in ideas:
        made = idea.make()
        assert isinstance(made, str)
        assert end_of(TWICE, made, ARRAYS, {"n": 70}, {"n": 3}) == "same"
