"""Kernels that end badly: each its verdict on its line, and the next candidate evaluated correctly."""

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

GOOD = """\
#pragma optiml launch twice grid(cdiv(n, 128)) block(128)
__global__ void twice(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
"""
FAULTS = {
    "infinite loop": ("while (out[i] != 12345.0f || x[i] < 2.0f) {} ", Outcome.TIMEOUT, 4),
    "out of bounds": ("out[i + (1 << 20)] = 1.0f; ", Outcome.OUT_OF_BOUNDS, 4),
    "just out of bounds": ("if (i == n - 1) out[n] = 1.0f; ", Outcome.OUT_OF_BOUNDS, 4),
    "negative index": ("if (i == 0) out[-1] = 1.0f; ", Outcome.OUT_OF_BOUNDS, 4),
    "trap": ("if (i == 5) __trap(); ", Outcome.TRAP, 4),
    "misaligned": ("*(double*)(out + 1) = 1.0; ", Outcome.MISALIGNED, 4),
    "syntax": ("int 3x; ", Outcome.COMPILE_ERROR, 4),
    "writes its input": ("((float*)x)[i] = 0.0f; ", Outcome.INPUT_MODIFIED, 0),
    "skips": ("if (i % 7) ", Outcome.WRONG, 0),
    "nan": ("if (i == 3) out[i] = NAN; else ", Outcome.WRONG, 0),
}


@pytest.fixture(scope="module")
def evaluator():  # type: ignore[no-untyped-def]
    x = np.random.default_rng(0).uniform(-1, 1, 1000).astype(np.float32)
    task = Task(GOOD, reference=lambda x: 2 * x, inputs={"x": x, "n": 1000})
    settings = resolve({"instructions": 20_000_000})
    problem = prepare(task, seeds=2)
    with session(settings) as members:
        yield Evaluator(problem, members.tools)


def candidate(number: int, text: str) -> Candidate:
    return Candidate(number, None, Proposal(text, "", "test"))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_verdict_and_the_next_candidate_passes(evaluator, name: str) -> None:  # type: ignore[no-untyped-def]
    fault, outcome, line = FAULTS[name]
    number = 2 * list(FAULTS).index(name)
    head, _, tail = GOOD.partition("if (i < n)")
    bad = f"{head}if (i < n) {{ {fault} }}\n    if (i < n){tail}"
    if name in ("skips", "nan"):
        bad = f"{head}if (i < n) {fault}{tail}"
    (evaluation,) = evaluator([candidate(number, bad)])
    assert evaluation.verdict.outcome is outcome, evaluation.verdict
    assert evaluation.verdict.line == line
    assert evaluation.verdict.summary
    # Machine code of its own, or the evidence of an earlier candidate would be repeated.
    good = GOOD.replace("x[i];", f"x[i] + (i == -{number + 1} ? 1.0f : 0.0f);")
    (healthy,) = evaluator([candidate(number + 1, good)])
    assert healthy.verdict.passed, healthy.verdict
    assert healthy.duplicate_of is None


def test_unwritten_elements_are_told_apart(evaluator) -> None:  # type: ignore[no-untyped-def]
    (evaluation,) = evaluator([candidate(99, GOOD.replace("i < n", "i < n - 10"))])
    assert evaluation.verdict.checks[0].unwritten == 10
    assert "10 were never written" in evaluation.verdict.summary


def test_a_launch_that_cannot_be_is_invalid(evaluator) -> None:  # type: ignore[no-untyped-def]
    (evaluation,) = evaluator([candidate(100, GOOD.replace("block(128)", "block(2048)"))])
    assert evaluation.verdict.outcome is Outcome.INVALID
    assert evaluation.verdict.line == 1


def test_a_race_that_one_order_of_the_warps_hides_shows_in_the_other() -> None:
    racy = """\
#pragma optiml launch shift grid(cdiv(n, 256)) block(256)
__global__ void shift(const float* x, float* out, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) s[threadIdx.x] = x[i];
    if (i < n) out[i] = threadIdx.x > 0 ? s[threadIdx.x - 1] : 0.0f;
}
"""
    x = np.random.default_rng(0).random(1024, dtype=np.float32)

    def shifted(x):  # type: ignore[no-untyped-def]
        blocks = x.reshape(-1, 256)
        return np.concatenate([np.zeros((len(blocks), 1)), blocks[:, :-1]], 1).ravel()

    task = Task(racy, reference=shifted, inputs={"x": x, "n": 1024})
    assert (
        evaluate_once(task, resolve(), counters=False).evaluation.verdict.outcome is Outcome.WRONG
    )
    mended = racy.replace("    if (i < n) out", "    __syncthreads();\n    if (i < n) out")
    assert evaluate_once(task, resolve(), program=mended, counters=False).evaluation.verdict.passed
