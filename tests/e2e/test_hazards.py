"""A kernel with the right answer and a hazard does not pass; its correct twin does."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import evaluate_once
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve

# Lanes of a warp run in step here, so the answer is right; on a GPU it need not be.
ROTATE = """\
#pragma optiml launch rotate grid(cdiv(n, 256)) block(256)
__global__ void rotate(const float* x, float* out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    if (i < n) s[t] = x[i];
    if (i < n) out[i] = s[t / 32 * 32 + (t + 1) % 32];
}
"""
MENDED = ROTATE.replace("    if (i < n) out", "    __syncwarp(); if (i < n) out")


def rotated(x):
    return np.roll(x.reshape(-1, 32), -1, axis=1).ravel()


@pytest.fixture
def inputs():
    return {"x": np.random.default_rng(0).random(1024, dtype=np.float32), "n": 1024}


def emulated():
    return resolve({"device": "emulated:h200"})


def test_a_check_names_both_lines_and_the_fix(inputs):
    task = Task(ROTATE, reference=rotated, inputs=inputs)
    verdict = evaluate_once(task, emulated(), hazards=True).evaluation.verdict
    assert verdict.outcome is Outcome.RACE
    (hazard,) = verdict.hazards
    assert hazard.lines == (5, 6)
    assert "__syncwarp" in verdict.fix
    assert "(the other line: 5)" in verdict.summary
    assert all(check.passed for check in verdict.checks)  # right, and still not good enough
    mended = evaluate_once(task, emulated(), program=MENDED, hazards=True).evaluation.verdict
    assert mended.passed
    assert mended.hazards == ()


def test_a_wrong_answer_is_explained(inputs):
    wrong = ROTATE.replace("t / 32 * 32 + (t + 1) % 32", "(t + 32) % 256")
    task = Task(
        wrong, reference=lambda x: np.roll(x.reshape(-1, 256), -32, 1).ravel(), inputs=inputs
    )
    verdict = evaluate_once(task, emulated(), hazards=True).evaluation.verdict
    assert verdict.outcome is Outcome.WRONG
    assert [h.kind for h in verdict.hazards] == ["race"]


def test_a_racy_kernel_cannot_be_the_oracle(inputs):
    task = Task(ROTATE, inputs=inputs, outputs={"out": "f4[n]"})
    verdict = evaluate_once(task, emulated(), counters=False).evaluation.verdict
    assert verdict.outcome is Outcome.RACE


def test_only_what_would_win_is_inspected_in_a_search(inputs):
    problem = prepare(Task(MENDED, reference=rotated, inputs=inputs), seeds=1)
    slow = ROTATE.replace(
        "if (i < n) out[i] =", "for (int k = 0; k < 50; ++k) if (i < n) ((volatile float*)out)[i] ="
    )
    with session(emulated(), extent="winners") as members:
        evaluator = Evaluator(problem, members.tools)
        texts = [MENDED, slow, ROTATE]
        evaluations = [
            evaluator([Candidate(number, None, Proposal(text, "", "test"))])[0]
            for number, text in enumerate(texts)
        ]
    assert [e.verdict.outcome for e in evaluations] == [
        Outcome.PASSED,
        Outcome.PASSED,  # racy too, but it can never win
        Outcome.RACE,
    ]


def test_exited_threads_are_a_note(inputs):
    early = """\
#pragma optiml launch half grid(cdiv(n, 256)) block(256)
__global__ void half(const float* x, float* out, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    s[threadIdx.x] = x[i];
    __syncthreads();
    out[i] = 0.5f * s[threadIdx.x];
}
"""
    task = Task(early, reference=lambda x: x / 2, inputs={"x": inputs["x"][:1000], "n": 1000})
    verdict = evaluate_once(task, emulated(), hazards=True).evaluation.verdict
    assert verdict.passed
    assert [(h.kind, h.severity, h.line) for h in verdict.hazards] == [
        ("exited_lanes", "warning", 7)
    ]
    assert any("exited" in note for note in verdict.notes)
