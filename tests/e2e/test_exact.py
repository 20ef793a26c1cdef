"""What edits change of the arithmetic, what was not tried, and ``--exact``: in a real shell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from optiml_magic.errors import OracleError
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import optimize
from optiml_magic.reports import contract
from optiml_magic.result import Result
from optiml_magic.settings import resolve
from tests.unit.llms.endpoint import completed, serving

SETUP = """\
import numpy as np
rows, cols = 128, 64
a = np.random.default_rng(0).random((rows, cols), dtype=np.float32)
def sums(a): return a.sum(axis=1, dtype=np.float64)
"""
SUMS = """\
__global__ void total(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = 0; i < cols; ++i) sum += a[row * cols + i];
    out[row] = sum;
}
"""
SMALL = {"device": "emulated:h200", "verify_seeds": 1}
FORBIDDEN = "warp_per_item: changes the order of additions, and --exact forbids it"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "optiml_magic")
    shell.run_cell(SETUP)
    yield shell
    InteractiveShell.clear_instance()


def cell(shell: InteractiveShell, line: str) -> Result:
    with capture_output():
        outcome = shell.run_cell(f"%%optiml {line} --device emulated:h200 --verify-seeds 1 --ref sums\n{SUMS}")
    outcome.raise_error()
    assert isinstance(outcome.result, Result)
    return outcome.result


def test_the_report_says_what_changed_and_how_near_it_is_to_wrong(shell: InteractiveShell) -> None:
    result = cell(shell, "optimize --budget 2")
    assert "a warp per item" in result.summary.recipe
    worst = result.summary.worst_output
    assert worst is not None
    assert 0.0 < worst.error < worst.rtol
    told = f"changes the order of additions; largest error {worst.error:.2g}, of `out`, "
    assert f"arithmetic   {told}{worst.rtol:.2g} allowed" in repr(result)
    assert told in result._repr_mimebundle_()["text/html"]
    best = contract.optimized(result.summary)["best"]
    assert best["arithmetic"] == ["the order of additions"]
    assert best["largest_error"] == {"output": "out", "error": worst.error, "allowed": worst.rtol}


def test_exact_forbids_rules_that_change_it_and_says_so(shell: InteractiveShell) -> None:
    result = cell(shell, "optimize --budget 3 --exact")
    proposers = {step.candidate.proposal.proposer for step in result.trajectory.steps}
    assert "warp_per_item" not in proposers
    assert len(proposers) > 1
    assert all(step.evaluation.verdict.passed for step in result.trajectory.steps)
    told = repr(result)
    assert "not tried on" in told
    assert f"  {FORBIDDEN}" in told
    assert "Not tried" in (page := result._repr_mimebundle_()["text/html"])
    assert FORBIDDEN in page
    found = contract.optimized(result.summary)
    assert found["exact"]
    assert {"rule": "warp_per_item", "line": 0, "reason": FORBIDDEN.partition(": ")[2]} in (
        found["steps"][0]["refused"]
    )


def saying(*programs: tuple[str, str, list[str]]) -> Any:
    promise = {"metric": "dram__bytes.sum", "direction": "lower", "because": "less"}
    proposals = [
        {"title": t, "rationale": "", "hypothesis": promise, "program": p, "arithmetic": a}
        for t, p, a in programs
    ]
    return completed(json.dumps({"proposals": proposals}))


def test_a_model_is_told_and_held_to_the_bits() -> None:
    a = np.random.default_rng(0).random((64, 40), dtype=np.float32)
    task = Task(
        f"#pragma optiml launch total grid(cdiv(rows, 64)) block(64)\n{SUMS}",
        reference=lambda a: a.sum(axis=1, dtype=np.float64),
        inputs={"a": a, "rows": 64, "cols": 40},
        outputs={"out": "f4[rows]"},
    )
    forwards, back = "for (int i = 0; i < cols; ++i)", "for (int i = cols - 1; i >= 0; --i)"
    backwards = task.text.replace(forwards, back)
    answers = [
        saying(("backwards", backwards, []), ("it says so", backwards + "\n", ["the order"])),
        *[saying() for _ in range(9)],
    ]
    with serving(*answers) as endpoint:
        model = {"llm": "toy", "llm_url": endpoint.url}
        result = optimize(task, resolve({**SMALL, **model, "budget": 9, "exact": True}))
        question = endpoint.bodies[0]["messages"][1]["content"]
    assert "Every bit of every output must be the one that the input kernel gives" in question
    assert "# What the rules refused and why" in question
    assert f"- {FORBIDDEN}" in question
    steps = {step.candidate.proposal.title: step for step in result.trajectory.steps}
    verdict = steps["backwards"].evaluation.verdict
    assert verdict.outcome is Outcome.WRONG
    assert "its bits are not those of the input kernel" in verdict.summary
    assert "it says so" not in steps
    assert any("no edit may change the arithmetic" in note for note in result.summary.notes)


def test_an_input_kernel_without_lasting_bits_cannot_be_kept_exactly() -> None:
    text = """\
#pragma optiml launch total grid(cdiv(n, 64)) block(64)
#pragma optiml init(out) = 0
__global__ void total(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, a[i]);
}
"""
    a = np.random.default_rng(0).random(4096, dtype=np.float32)
    task = Task(
        text,
        reference=lambda a: np.array([a.sum(dtype=np.float64)]),
        inputs={"a": a, "n": a.size},
        outputs={"out": "f4[1]"},
    )
    settings = resolve({**SMALL, "llm": "none", "exact": True})
    with pytest.raises(OracleError, match="other bits from run to run"):
        optimize(task, settings)
