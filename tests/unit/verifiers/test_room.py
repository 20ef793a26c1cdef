"""Where the input kernel is off by much of what is allowed, others may be off by more."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.verifiers import learning

# A stand-in for what rounding does: a share of each element, 0.8 of what is allowed at large ones.
TEXT = """#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + 1.6e-5f * x[i];
}
"""
#: Off by more, where inputs are below those that the task has.
OTHER = TEXT.replace("1.6e-5f", "(x[i] < 0.9f ? 5e-5f : 1.6e-5f)")
NARROW = TEXT.replace("1.6e-5f", "(x[i] < 0.9f ? 5e-4f : 1.6e-5f)")
N = 4000


def verdicts(*texts: str, rtol: float | None = None) -> list[Verdict]:
    """What becomes of the input kernel and of these, with all trials."""
    x = np.random.default_rng(0).uniform(1, 2, N).astype(np.float32)
    task = Task(TEXT, lambda x: x.astype(np.float64), {"x": x, "n": N}, rtol=rtol)
    with session(resolve({"device": "emulated:h200"}), task=task) as members:
        judged = Evaluator(prepare(task, seeds=1), members.tools, thorough=True)
        return [
            judged([Candidate(at, 0 if at else None, Proposal(text, "", "test"))])[0].verdict
            for at, text in enumerate((TEXT, *texts))
        ]


def test_what_rounding_does_to_the_input_kernel_it_may_do_to_others() -> None:
    first, other, narrow = verdicts(OTHER, NARROW)
    assert first.passed
    assert first.checks[0].share == pytest.approx(0.4, abs=0.1)
    assert other.passed, other.summary
    assert narrow.outcome is Outcome.WRONG
    assert narrow.checks[0].share > 1


@pytest.mark.parametrize("rtol", [None, 2e-5])
def test_else_it_is_wrong(monkeypatch: pytest.MonkeyPatch, rtol: float | None) -> None:
    if rtol is None:
        monkeypatch.setattr(learning, "_NEAR", math.inf)
    _, other = verdicts(OTHER, rtol=rtol)
    assert other.outcome is Outcome.WRONG
