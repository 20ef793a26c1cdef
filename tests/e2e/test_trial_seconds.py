"""Trials within a number of seconds: what is left out is told, and what catches most is kept."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.problem import instances, prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from tests.present import sampled

N = 2000
TEXT = """#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, float a, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] = a * x[i] + 1.0f;
}
"""
DISPATCH = TEXT.replace(
    "#pragma optiml launch k grid(cdiv(n, 256)) block(256)",
    "#pragma optiml launch k grid(cdiv(n, 256)) block(256) if (n % 4 == 0)\n"
    "#pragma optiml launch k grid(cdiv(n, 256)) block(256) else",
)
WRONG = {
    "clamps": TEXT.replace("a * x[i] +", "a * fminf(x[i], 2.5f) +"),
    "takes magnitudes": TEXT.replace("a * x[i] +", "a * fabsf(x[i]) +"),
    "knows the scalar": TEXT.replace("a * x[i] +", "3.0f * x[i] +"),
    "knows the grid": TEXT.replace("cdiv(n, 256)", "cdiv(n, 256) - (n == 257)"),
    "has no guard": TEXT.replace("if (i < n) ", ""),
    "fails at its own size alone": TEXT.replace("a * x[i]", f"(i > {N - 40} ? fabsf(a) * fabsf(x[i]) : a * x[i])"),
}  # fmt: skip


def verdicts(seconds: float, *texts: str) -> tuple[list[Verdict], tuple[str, ...]]:
    x = np.random.default_rng(0).uniform(1, 2, N).astype(np.float32)
    values = {"x": x, "a": np.float32(3), "n": N}
    problem = prepare(Task(TEXT, lambda x, a: a * x + 1, values), seeds=1)
    with session(resolve({"device": "emulated:h200"}), task=problem.task) as members:
        tools = replace(members.tools, trial_seconds=seconds)
        evaluator = Evaluator(problem, tools, thorough=True)
        candidates = [
            Candidate(at, 0 if at else None, Proposal(text, "", "test"))
            for at, text in enumerate((problem.program.text, *texts))
        ]
        found = [evaluator([candidate])[0].verdict for candidate in candidates]
        return found[1:], evaluator.notes


def test_with_next_to_no_seconds_the_first_of_each_kind_catch_what_they_are_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(instances, "_WORTH", 0)  # every array is changed where it lies
    honest = TEXT.replace("256", "128")
    names = sampled(WRONG, 3)
    texts = [WRONG[name] for name in names]
    found, notes = verdicts(1e-6, *texts, honest, DISPATCH.replace("256", "64"))
    (note,) = [note for note in notes if note.startswith("trials: ")]
    assert re.match(
        r"trials: 11 of 39, (the reference takes|more would take longer than 1e-06 s)", note
    )
    *wrong, right, dispatch = found
    for name, verdict in zip(names, wrong, strict=True):
        assert verdict.outcome in (Outcome.WRONG, Outcome.OUT_OF_BOUNDS), (name, verdict)
    assert right.passed, right
    assert dispatch.passed, dispatch
