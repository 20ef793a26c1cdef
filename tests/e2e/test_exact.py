"""What edits change of the arithmetic, what was not tried, and ``--exact``: in a real shell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from optiml_magic.errors import OracleError
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.problem import prepare
from optiml_magic.reports import contract
from optiml_magic.result import Result
from optiml_magic.session import session
from optiml_magic.settings import resolve

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
FORBIDDEN = "row_to_lanes: changes the order of additions, and --exact forbids it"


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
        outcome = shell.run_cell(
            f"%%optiml {line} --device emulated:h200 --verify-seeds 1 --ref sums\n{SUMS}"
        )
    outcome.raise_error()
    assert isinstance(outcome.result, Result)
    return outcome.result


def test_exact_forbids_rules_that_change_it_and_says_so(shell: InteractiveShell) -> None:
    result = cell(shell, "optimize --budget 2 --exact")
    proposers = {step.candidate.proposal.proposer for step in result.trajectory.steps}
    assert "row_to_lanes" not in proposers
    assert all(step.evaluation.verdict.passed for step in result.trajectory.steps)
    told = repr(result)
    assert "not tried on" in told
    assert f"  {FORBIDDEN}" in told
    assert "Not tried" in (page := result._repr_mimebundle_()["text/html"])
    assert FORBIDDEN in page
    found = contract.optimized(result.summary)
    assert found["exact"]
    assert {"rule": "row_to_lanes", "line": 0, "reason": FORBIDDEN.partition(": ")[2]} in (
        found["steps"][0]["refused"]
    )


def verdicts(text: str, *others: str) -> list[Verdict]:
    """Of the programs in turn, the first of them the input kernel, where every bit must stay."""
    a = np.random.default_rng(0).random((64, 40), dtype=np.float32)
    task = Task(
        text,
        reference=lambda a: a.sum(axis=1, dtype=np.float64),
        inputs={"a": a, "rows": 64, "cols": 40},
        outputs={"out": "f4[rows]"},
    )
    problem = prepare(task, seeds=1)
    found = []
    with session(resolve({"device": "emulated:h200"}), task=task) as members:
        evaluator = Evaluator(problem, members.tools, exact=True)
        for number, program in enumerate((problem.program.text, *others)):
            proposal = Proposal(program, "", "test")
            (evaluation,) = evaluator([Candidate(number, 0 if number else None, proposal)])
            found.append(evaluation.verdict)
    return found


def test_candidates_are_held_to_the_bits_of_the_input_kernel() -> None:
    text = f"#pragma optiml launch total grid(cdiv(rows, 64)) block(64)\n{SUMS}"
    forwards, back = "for (int i = 0; i < cols; ++i)", "for (int i = cols - 1; i >= 0; --i)"
    same = text.replace("block(64)", "block(32)").replace("cdiv(rows, 64)", "cdiv(rows, 32)")
    root, moved, turned = verdicts(text, same, text.replace(forwards, back))
    assert root.passed
    assert moved.passed
    assert turned.outcome is Outcome.WRONG
    assert (
        "`out` is within the tolerance, but its bits are not those of the input" in turned.summary
    )
    assert turned.checks


def test_an_input_kernel_without_lasting_bits_cannot_be_kept_exactly() -> None:
    text = """\
#pragma optiml launch total grid(cols) block(64)
#pragma optiml init(out) = 0
__global__ void total(const float* a, float* out, int rows, int cols) {
    if (threadIdx.x < rows) atomicAdd(&out[threadIdx.x], a[threadIdx.x * cols + blockIdx.x]);
}
"""
    with pytest.raises(OracleError, match="other bits from run to run"):
        verdicts(text)
