"""A task too large to verify: verified at smaller sizes, measured at its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optiml_magic.calling import Kernels
from optiml_magic.errors import UsageError
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import evaluate_once
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task

LARGE = {"m": 384, "n": 384, "k": 384}
SMALL = {"m": 40, "n": 48, "k": 33}
SETTINGS = {"device": "emulated:h200", "verify_seeds": 2, "count_instructions": 20_000_000}


def large(text: str = "", **changes: object) -> Task:
    task = known_task("matmul_tiled", **LARGE)
    return replace(task, kernel=text or task.text, verify_sizes=SMALL, **changes)  # type: ignore[arg-type]


def test_it_is_verified_small_and_counted_on_a_sample_of_the_large_one() -> None:
    checked = evaluate_once(large(), resolve(SETTINGS))
    verdict, measured = checked.evaluation.verdict, checked.evaluation.measurement
    assert verdict.passed, verdict
    assert sum(check.elements for check in verdict.checks) < 384 * 384
    assert any("programs are verified at m = 40, n = 48, k = 33" in note for note in verdict.notes)
    assert measured is not None
    (kernel,) = measured.kernels
    assert kernel.sampled is not None
    assert kernel.sampled.of == 24 * 24
    whole = evaluate_once(known_task("matmul_tiled", **LARGE), resolve({"verify_seeds": 1}))
    assert whole.evaluation.measurement is not None
    exact = whole.evaluation.measurement.kernels[0].thread_instructions
    assert kernel.thread_instructions == pytest.approx(exact, rel=kernel.sampled.error + 1e-6)


def test_a_wrong_kernel_is_caught_at_the_small_sizes() -> None:
    text = known_task("matmul_tiled").text.replace("row < m && col < n", "row < m && col < n - 1")
    verdict = evaluate_once(large(text), resolve(SETTINGS), counters=False).evaluation.verdict
    assert verdict.outcome is Outcome.WRONG


def test_without_a_reference_the_kernel_answers_at_the_small_sizes() -> None:
    task = large(reference=None, outputs={"c": "f4[m, n]"})
    verdict = evaluate_once(task, resolve(SETTINGS), counters=False).evaluation.verdict
    assert verdict.passed, verdict


def test_the_first_instance_is_the_users_own_and_not_verified() -> None:
    first, *others = prepare(large(), seeds=2).instances
    assert first.shapes["c"] == (384, 384)
    assert not first.verified
    assert [other.shapes["c"] for other in others] == [(40, 48), (40, 48)]
    assert all(other.verified for other in others)


@pytest.mark.parametrize("smaller", [True, False])
def test_an_export_says_at_which_sizes_it_was_checked(smaller: bool, tmp_path: Path) -> None:
    problem = prepare(large() if smaller else known_task("matmul_tiled", **SMALL), seeds=1)
    kernels = Kernels.of(problem, resolve(SETTINGS))
    text = problem.program.text
    for made in (kernels(text), Kernels.again(kernels.data, text)(text)):
        made.export(tmp_path / "made.cu", overwrite=True)
        head = (tmp_path / "made.cu").read_text().split("\n\n")[0]
        if smaller:
            assert "Measured at: a[384, 384], b[384, 384]" in head
            assert "Checked at: m = 40, n = 48, k = 33, and below." in head
        else:
            assert "Checked at: a[40, 33], b[33, 48]" in head


def test_sizes_that_cannot_be_drawn_are_refused() -> None:
    arrays = {"a": np.ones((8, 8), np.float32), "b": np.ones((8, 8), np.float32)}
    fixed = {**arrays, "m": 8, "n": 8, "k": 8}
    with pytest.raises(UsageError, match="the inputs are given arrays"):
        prepare(replace(large(), inputs=fixed, verify_sizes={"m": 4}), seeds=1)
    with pytest.raises(UsageError, match="`rows` is not a size of the task"):
        prepare(replace(large(), verify_sizes={"rows": 4}), seeds=1)


ROWS = """\
#pragma optiml require w == 96
#pragma optiml launch k grid(h) block(32)
__global__ void k(const float* a, float* o, int h, int w) {
    for (int i = threadIdx.x; i < 96; i += 32) o[blockIdx.x * 96 + i] = 2.0f * a[blockIdx.x * 96 + i];
}
"""


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("", "", Outcome.PASSED),
        ("i < 96; i", "i < 95; i", Outcome.WRONG),
        ("require w == 96", "require w == 96 && h == 4000", Outcome.INVALID),
    ],
)
def test_a_program_for_the_sizes_measured_is_verified_beside_those_asked_for(
    old: str, new: str, outcome: Outcome
) -> None:
    def inputs(rng: np.random.Generator, h: int, w: int) -> dict[str, object]:
        return {"a": rng.standard_normal((h, w), np.float32), "h": h, "w": w}

    whole = ROWS.replace("#pragma optiml require w == 96\n", "").replace("96", "w")
    task = Task(
        whole, reference=lambda a, h, w: {"o": 2 * a}, inputs=inputs, outputs={"o": "f4[h, w]"},
        sizes={"h": 4000, "w": 96}, verify_sizes={"h": 3, "w": 5},
    )  # fmt: skip
    problem = prepare(task, seeds=1)
    text = ROWS.replace(old, new) if old else ROWS
    with session(resolve(SETTINGS), task=task) as members:
        members.begin(problem)
        evaluate = Evaluator(problem, members.tools)
        evaluate([Candidate(0, None, Proposal(problem.program.text, "", "user"))])
        (found,) = evaluate([Candidate(1, 0, Proposal(text, "", "user"))])
    assert found.verdict.outcome is outcome, found.verdict
    if outcome is Outcome.PASSED:
        assert any("it was verified at others" in note for note in found.verdict.notes)


DERIVED = """\
#pragma optiml launch fast grid(cdiv(c * 98, 64)) block(64) if (rest == 98 && c == 512)
#pragma optiml launch sums grid(cdiv(c * rest, 64)) block(64) else
__global__ void fast(const float* a, float* o, int c, int n, int k, int rest) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    if (i >= c * 98) return;
    for (int j = 0; j < FAST; ++j) s += a[i / 98 * n + i % 98 + j];
    o[i] = s;
}
__global__ void sums(const float* a, float* o, int c, int n, int k, int rest) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    if (i >= c * rest) return;
    for (int j = 0; j < k; ++j) s += a[i / rest * n + i % rest + j];
    o[i] = s;
}
"""


@pytest.mark.parametrize(("rounds", "outcome"), [("k", Outcome.PASSED), ("2", Outcome.WRONG)])
def test_a_launch_for_what_follows_from_two_sizes_is_verified(
    rounds: str, outcome: Outcome
) -> None:
    def inputs(rng: np.random.Generator, c: int, n: int, k: int) -> dict[str, object]:
        a = rng.integers(-9, 9, (c, n)).astype("f4")
        return {"a": a, "c": c, "n": n, "k": k, "rest": n - k + 1}

    def reference(a: Any, c: int, n: int, k: int, rest: int) -> dict[str, Any]:
        return {"o": sum(a[:, j : j + rest] for j in range(k))}

    input_kernel = DERIVED[DERIVED.index("__global__ void sums") :]
    launch = "#pragma optiml launch sums grid(cdiv(c * rest, 64)) block(64)\n"
    task = Task(
        launch + input_kernel, reference=reference, inputs=inputs,
        outputs={"o": "f4[c, rest]"}, sizes={"c": 512, "n": 100, "k": 3},
        verify_sizes={"c": 5, "n": 7, "k": 3},
    )  # fmt: skip
    problem = prepare(task, seeds=1)
    with session(resolve(SETTINGS), task=task) as members:
        members.begin(problem)
        evaluate = Evaluator(problem, members.tools)
        evaluate([Candidate(0, None, Proposal(problem.program.text, "", "user"))])
        text = DERIVED.replace("FAST", rounds)
        (found,) = evaluate([Candidate(1, 0, Proposal(text, "", "user"))])
    assert found.verdict.outcome is outcome, found.verdict
