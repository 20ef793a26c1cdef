"""The winner at half the sizes: a gain and a loss are said, and who is wrong there has not won."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Step, Trajectory
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve

N = 1 << 14
ROOT = """\
#pragma optiml launch twice grid(cdiv(n, 256)) block(256)
__global__ void twice(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
    if (i < n) out[i] = 2.0f * x[i];
}
"""
TEXTS = {
    "the input kernel": ROOT % "for (int r = 0; r < 400; ++r) __syncthreads();",
    "faster everywhere": ROOT % "",
    "slower at half": ROOT % "if (n <= 8192) for (int r = 0; r < 900; ++r) __syncthreads();",
    "wrong at half": ROOT % "if (n == 8192) n = 8191;",
}


@pytest.fixture(scope="module")
def steps() -> Iterator[tuple[Evaluator, dict[str, Step]]]:
    x = np.linspace(-1, 1, N, dtype=np.float32)
    task = Task(TEXTS["the input kernel"], reference=lambda x: 2 * x, inputs={"x": x, "n": N})
    with session(resolve({"device": "emulated"})) as members:
        evaluator = Evaluator(prepare(task, seeds=1), members.tools)
        candidates = [
            Candidate(number, 0 if number else None, Proposal(text, name, "test"))
            for number, (name, text) in enumerate(TEXTS.items())
        ]
        found = evaluator(candidates)
        yield evaluator, dict(zip(TEXTS, map(Step, candidates, found), strict=True))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("faster everywhere", "at half the sizes, n = 8192: "),
        ("slower at half", "slower than the input kernel at n = 8192: 0."),
    ],
)
def test_what_becomes_of_the_gain_is_said(
    steps: tuple[Evaluator, dict[str, Step]], name: str, told: str
) -> None:
    evaluator, found = steps
    assert found[name].evaluation.verdict.passed
    root = found["the input kernel"].candidate
    assert evaluator.elsewhere(root, found[name].candidate) is None
    assert any(note.startswith(told) for note in evaluator.notes)


def test_it_is_half_of_what_was_measured_where_less_was_verified() -> None:
    """Tiny sizes, at which a large task is verified, say nothing about its speed."""

    def inputs(rng: np.random.Generator, n: int) -> dict[str, object]:
        return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}

    text = TEXTS["the input kernel"]
    task = Task(
        text, reference=lambda x: 2 * x, inputs=inputs, sizes={"n": N}, verify_sizes={"n": 600}
    )
    with session(resolve({"device": "emulated"})) as members:
        evaluator = Evaluator(prepare(task, seeds=1), members.tools)
        root, better = (
            Candidate(0, None, Proposal(text, "the input kernel", "test")),
            Candidate(1, 0, Proposal(TEXTS["faster everywhere"], "faster", "test")),
        )
        assert all(found.verdict.passed for found in evaluator([root, better]))
        assert evaluator.elsewhere(root, better) is None
        told = evaluator.notes
    assert any(note.startswith(f"at half the sizes, n = {N // 2}: ") for note in told), told


def test_who_is_wrong_there_has_not_won(steps: tuple[Evaluator, dict[str, Step]]) -> None:
    evaluator, found = steps
    root, wrong, other = (
        found[n] for n in ("the input kernel", "wrong at half", "faster everywhere")
    )
    assert wrong.evaluation.verdict.passed  # nobody had looked at that size
    verdict = evaluator.elsewhere(root.candidate, wrong.candidate)
    assert isinstance(verdict, Verdict)
    assert verdict.outcome is Outcome.WRONG
    ended = Trajectory((root, wrong, other), "done").rejected(wrong, verdict)
    assert ended.best.candidate is other.candidate
    assert ended.steps[1].evaluation.verdict is verdict
