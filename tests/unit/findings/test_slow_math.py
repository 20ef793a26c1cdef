"""Which arithmetic counts as slow, on the emulated device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from diagnosing import Recorder

from optiml_magic.evaluation import Evaluator
from optiml_magic.findings import Subject
from optiml_magic.findings.slow_math import SlowMath
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.finding import Finding
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.session import Session, session
from optiml_magic.settings import resolve
from tests.present import sampled

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i], s = 0.0f;
    for (int k = 1; k < 33; ++k)
        s += EXPRESSION;
    out[i] = s;
}
"""


@pytest.fixture(scope="module")
def members() -> Iterator[Session]:
    with session(resolve({"device": "emulated:t4"}), machine=True) as found:
        yield found


def diagnosed(members: Session, expression: str) -> list[Finding]:
    x = np.random.default_rng(0).uniform(0.1, 1.0, 4096).astype(np.float32)
    text = TEXT.replace("EXPRESSION", expression)
    problem = prepare(Task(text, inputs={"x": x, "n": len(x)}, outputs={"out": "f4[n]"}), seeds=1)
    kept: list[Subject] = []
    tools = replace(members.tools, findings=(Recorder(kept),))
    (found,) = Evaluator(problem, tools)([Candidate(0, None, Proposal(text, "", "test"))])
    assert found.verdict.passed, found.verdict
    return list(SlowMath().diagnose(kept[0]))


@pytest.mark.parametrize("name", sampled(["::sinf", "sinf", "tanhf", "logf", "erff"], 3))
def test_an_exact_function_in_a_loop_is_slow_on_its_line(members: Session, name: str) -> None:
    (finding,) = diagnosed(members, f"{name}(v * k)")
    assert finding.line == 7
    assert f"call of `{name.removeprefix('::')}`" in finding.cause
    assert "fast form" in finding.actions[0].advice


def test_so_are_powers_and_remainders(members: Session) -> None:
    assert "call of `powf`" in diagnosed(members, "powf(v, k + 0.5f)")[0].cause
    assert "call of `fmodf`" in diagnosed(members, "fmodf(v * k, 0.3f)")[0].cause
    assert "integer remainder" in diagnosed(members, "x[(i + k) % n]")[0].cause


@pytest.mark.parametrize(
    "expression",
    sampled(
        ["__sinf(v * k)", "__logf(v * k)", "__expf(v * k)", "expf(v - k)", "v * v * k", "sinf + v"],
        6,
    ),
)
def test_fast_forms_are_not(members: Session, expression: str) -> None:
    if expression.startswith("sinf"):
        expression = expression.replace("sinf", "/* sinf(v) */ v")
    assert diagnosed(members, expression) == []
