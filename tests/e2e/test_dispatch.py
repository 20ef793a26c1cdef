"""A program of which the host runs one launch or the other: both are verified, or it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from optiml_magic.calls import call
from optiml_magic.evaluation import Evaluator
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.model.view import View
from optiml_magic.problem import prepare
from optiml_magic.proposers.rewrites.block_size import BlockSize
from optiml_magic.proposers.rewrites.coalesce_mapping import CoalesceMapping
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.session import Session, session
from optiml_magic.settings import resolve
from optiml_magic.source.program import parse_program
from tests.ideas import asked, view_of

SLOW = """\
__global__ void k(const float* x, float* out, int rows, int cols) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < rows * cols) out[i] = 2.0f * x[i];
}
"""
FAST = """\
__global__ void fast(const float4* x, float4* out, int rows, int cols) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < rows * cols / 4) {
        float4 v = x[i];
        out[i] = make_float4(2.0f * v.x, 2.0f * v.y, 2.0f * v.z, 2.0f * v.w);
    }
}
"""
ANY = SLOW.replace(" k(", " fast(").replace("2.0f * x[i]", "x[i] + x[i]")  # right at all sizes
LAUNCH = "#pragma optiml launch k grid(cdiv(rows * cols, 64)) block(64)"
INPUT = f"{LAUNCH}\n{SLOW}"
X = np.random.default_rng(0).uniform(1, 2, (24, 64)).astype(np.float32)
TASK = Task(INPUT, lambda x: 2 * x, {"x": X, "rows": 24, "cols": 64}, name="twice")
SETTINGS = {"device": "emulated:h200", "instructions": 10_000_000}

Evaluate = Callable[[str], Evaluation]


def dispatch(condition: str, fast: str = FAST, slow: str = SLOW) -> str:
    elements = "rows * cols / 4" if "float4" in fast else "rows * cols"
    launch = f"#pragma optiml launch fast grid(cdiv({elements}, 64)) block(64) if ({condition})"
    return f"{launch}\n{LAUNCH} else\n{fast}{slow}"


@pytest.fixture(scope="module")
def members() -> Iterator[Session]:
    with session(resolve(SETTINGS), task=TASK) as found:
        yield found


def evaluating(members: Session, task: Task) -> Evaluate:
    """Evaluates programs of a task, after its input kernel."""
    evaluator, numbers = Evaluator(prepare(task, seeds=2), members.tools), count()

    def evaluate(text: str) -> Evaluation:
        number = next(numbers)
        candidate = Candidate(number, 0 if number else None, Proposal(text, "", "test"))
        return evaluator([candidate])[0]

    assert evaluate(task.text).verdict.passed
    return evaluate


@pytest.fixture(scope="module")
def evaluate(members: Session) -> Evaluate:
    return evaluating(members, TASK)


def test_both_launches_are_verified_and_a_fault_of_either_is_found(evaluate: Evaluate) -> None:
    fours = "cols % 4 == 0"
    good = evaluate(dispatch(fours))
    assert good.verdict.passed, good
    assert good.verdict.summary.startswith(f"up to {24 * 64} output elements right on ")
    assert good.only_where == ()
    fast = evaluate(dispatch(fours, FAST.replace("2.0f * v.w", "3.0f * v.w"))).verdict
    assert fast.outcome is Outcome.WRONG, fast
    slow = evaluate(dispatch(fours, slow=SLOW.replace("2.0f", "2.5f"))).verdict
    assert (slow.outcome, "cols = " in slow.summary) == (Outcome.WRONG, True), slow


def test_it_is_tried_right_beside_the_number_of_its_condition(evaluate: Evaluate) -> None:
    for condition, factor in (("cols >= 47", "cols == 46"), ("cols > 47", "cols == 47")):
        text = dispatch(condition, ANY, SLOW.replace("2.0f", f"({factor} ? 0.0f : 2.0f)"))
        found = evaluate(text).verdict
        assert found.outcome is Outcome.WRONG, found
        assert f"cols = {factor[-2:]}" in found.summary


def test_a_launch_for_sizes_just_below_the_given_ones_is_tried_there(evaluate: Evaluate) -> None:
    wrong = SLOW.replace("2.0f", "3.0f")
    found = evaluate(dispatch("rows * cols < 1000 || rows * cols == 24 * 64", ANY, wrong)).verdict
    assert (found.outcome, "on " in found.summary) == (Outcome.WRONG, True), found


def test_a_launch_that_no_sizes_reach_is_the_input_or_runs_in_place_of_the_other(
    evaluate: Evaluate,
) -> None:
    never = "rows * cols <= 1 << 30"
    own = evaluate(dispatch(never, ANY)).verdict
    assert own.passed, own
    assert any("the launch on line 2 ran at no sizes that were tried" in n for n in own.notes)
    wrong = evaluate(dispatch(never, ANY, SLOW.replace("2.0f", "3.0f"))).verdict
    assert wrong.outcome is Outcome.WRONG
    other = evaluate(
        dispatch(never, ANY, SLOW.replace("2.0f * x[i]", "0.5f * (4.0f * x[i])"))
    ).verdict
    assert other.passed, other
    assert any("tried, and was run in place of the other" in note for note in other.notes)
    refused = evaluate(dispatch("rows * cols > 1 << 30", ANY)).verdict
    assert refused.outcome is Outcome.INVALID
    assert "no sizes that were tried run this launch" in refused.summary
    assert refused.line == 1


def test_programs_that_differ_where_no_sizes_lead_are_two(evaluate: Evaluate) -> None:
    one = evaluate(dispatch("cols % 4 == 0 && cols < 1048576"))
    other = evaluate(dispatch("cols % 4 == 0 && cols < 1048577"))
    same = evaluate(dispatch("cols % 4 == 0 &&  (cols<1048576)"))
    assert one.duplicate_of is None
    assert other.duplicate_of is None
    assert same.duplicate_of == one.candidate


def test_a_requirement_of_its_own_is_named(members: Session, evaluate: Evaluate) -> None:
    fast = "#pragma optiml launch fast grid(cdiv(rows * cols / 4, 64)) block(64)\n" + FAST
    tuned = "#pragma optiml tune LANES in {2, 4} = 4\n#pragma optiml require LANES > 1\n"
    narrow = evaluate(f"{tuned}#pragma optiml require cols % LANES == 0\n{fast}")
    assert narrow.verdict.passed, narrow.verdict
    assert narrow.only_where == ("cols % 4 == 0",)
    required = "#pragma optiml require cols % 4 == 0\n"
    task = Task(required + INPUT, TASK.reference, TASK.inputs)
    assert evaluating(members, task)(required + fast).only_where == ()


def test_an_input_that_dispatches_sets_the_sizes_for_all(members: Session) -> None:
    task = Task(dispatch("cols % 4 == 0"), TASK.reference, TASK.inputs, name="both")
    odd = INPUT.replace("2.0f", "(cols == 31 ? 0.0f : 2.0f)")
    assert evaluating(members, task)(odd).verdict.outcome is Outcome.WRONG


def test_a_kernel_in_hand_runs_whichever_launch_fits_its_arrays(members: Session) -> None:
    problem = prepare(TASK, seeds=1)
    for shape in ((5, 8), (5, 7), (1, 1)):
        x = np.random.default_rng(1).uniform(1, 2, shape).astype(np.float32)
        found = call(problem, members.tools, dispatch("cols % 4 == 0"), {"x": x})
        assert np.array_equal(found["out"], 2 * x)


class Fours(KernelRule):
    """Elements four at a time, where rows are of such: for the sake of its condition."""

    name = "fours"
    teaches = "fewer loads"

    def sites(self, kernel: Kernel) -> Iterator[Site]:
        made = parse_program(
            f"#pragma optiml require cols % 4 == 0\n{LAUNCH.replace('* cols', '* cols / 4')}\n"
            + FAST.replace("fast", "k")
        )
        yield Site(
            "k", "fours", lambda: replace(kernel, program=made), 0.5, Hypothesis(TIME, "lower", "")
        )


def test_what_a_rule_makes_is_verified_at_both_sides(evaluate: Evaluate) -> None:
    ((idea,), _) = asked(Fours(), INPUT)
    text = idea.make()
    assert isinstance(text, str)
    good = evaluate(text)
    assert good.verdict.passed, good
    assert good.only_where == ()
    fast = evaluate(text.replace("2.0f * v.w", "3.0f * v.w")).verdict
    slow = evaluate(text.replace("2.0f * x[i]", "2.5f * x[i]")).verdict
    assert {fast.outcome, slow.outcome} == {Outcome.WRONG}
    assert "cols = " in slow.summary


TURNED = """\
#pragma optiml launch k grid(cdiv(rows, 8), cdiv(cols, 8)) block(8, 8)
__global__ void k(const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) out[row * cols + col] = 2.0f * x[row * cols + col];
}
"""


def test_a_launch_for_sizes_that_nobody_tries_is_the_inputs_after_every_rule(
    members: Session,
) -> None:
    evaluate = evaluating(members, Task(TURNED, TASK.reference, TASK.inputs, name="turned"))
    root, text = view_of(TURNED).step, TURNED
    for rule in (CoalesceMapping(), BlockSize()):
        view = View(view_of(text).step, root)
        made = next(
            found.make()
            for found in rule.propose(parse_program(text), view)
            if isinstance(found, Idea)
        )
        assert isinstance(made, str)
        text = made
        found = evaluate(text)
        assert found.verdict.passed, found.verdict
        assert any("it is the input kernel's own" in note for note in found.verdict.notes)
        assert found.only_where == ()
    assert len(parse_program(text).launches) == 2


def test_a_size_that_a_condition_reads_is_tried_as_it_is_measured(members: Session) -> None:
    def inputs(rng: np.random.Generator, rows: int, cols: int) -> dict[str, object]:
        return {"x": rng.random((rows, cols), np.float32), "rows": rows, "cols": cols}

    full, verified = {"rows": 4096, "cols": 96}, {"rows": 20, "cols": 12}
    task = Task(INPUT, TASK.reference, inputs, sizes=full, verify_sizes=verified)
    evaluate = evaluating(members, task)
    found = evaluate(dispatch("cols == 96", FAST)).verdict
    assert found.passed, found
    wrong = evaluate(dispatch("cols == 96", FAST.replace("2.0f * v.w", "3.0f * v.w"))).verdict
    assert (wrong.outcome, "cols = 96" in wrong.summary) == (Outcome.WRONG, True), wrong

    # A kernel may ask by itself, which no launch shows.
    inside = INPUT.replace("2.0f", "(cols == 96 ? 3.0f : 2.0f)")
    wrong = evaluate(inside).verdict
    assert (wrong.outcome, "cols = 96" in wrong.summary) == (Outcome.WRONG, True), wrong
    assert evaluate(inside.replace("3.0f", "4.0f / 2.0f")).verdict.passed

    # Where it is no size of the task, but follows from one.
    def halved(rng: np.random.Generator, rows: int, width: int) -> dict[str, object]:
        return inputs(rng, rows, width // 2)

    task = replace(
        task,
        inputs=halved,
        sizes={"rows": 4096, "width": 192},
        verify_sizes={"rows": 20, "width": 24},
    )
    found = evaluating(members, task)(dispatch("cols == 96", FAST)).verdict
    assert found.passed, found


TWICE = """\
#pragma optiml scratch y f4[rows * cols]
#pragma optiml launch one grid(cdiv(rows * cols, 64)) block(64)
#pragma optiml launch two grid(cdiv(rows * cols, 64)) block(64)
__global__ void one(const float* x, float* y, int rows, int cols) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < rows * cols) y[i] = x[i] + 1.0f;
}
__global__ void two(const float* y, float* out, int rows, int cols) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < rows * cols) out[i] = 2.0f * y[i];
}
"""


def test_beside_another_edit_the_inputs_own_launch_is_run_where_it_never_would(
    members: Session,
) -> None:
    task = Task(
        TWICE, lambda x: 2 * (x + 1), TASK.inputs, name="steps", outputs={"out": "f4[24, 64]"}
    )
    evaluate = evaluating(members, task)
    launch = "#pragma optiml launch one grid(cdiv(rows * cols, 64)) block(64)"
    fast = f"{launch.replace('one', 'quick')} if (rows * cols < 1 << 30)\n{launch} else"
    quick = TWICE[TWICE.index("__global__") : TWICE.index("__global__ void two")]
    text = TWICE.replace(launch, fast) + quick.replace("one", "quick")
    edited = text.replace("2.0f * y[i]", "0.5f * (4.0f * y[i])")
    found = evaluate(edited).verdict
    assert found.passed, found
    assert any("and was run in place of the other" in note for note in found.notes)
    # Where the other launch became two as well.
    half = "#pragma optiml launch two grid(cdiv(rows * cols, 64)) block(64)"
    zero = "#pragma optiml launch nothing grid(1) block(1)"
    kernel = "__global__ void nothing(float* out) { out[0] = 0.0f; }"
    assert evaluate(edited.replace(half, f"{zero}\n{half}") + kernel).verdict.passed
    # The second launch relies on what the first leaves where the condition holds.
    both = text.replace("2.0f * y[i]", "y[i]")
    head, tail = both.rsplit("x[i] + 1.0f", 1)
    relies = evaluate(f"{head}2.0f * (x[i] + 1.0f){tail}").verdict
    assert relies.outcome is Outcome.WRONG, relies
    other = evaluate(edited.replace("block(64) else", "block(32) else")).verdict
    assert other.outcome is Outcome.WRONG, other
