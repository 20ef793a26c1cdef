"""What is asked of a candidate beside the given inputs: as much as the input kernel can do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optiml_magic.chips import chip
from optiml_magic.commands.views import CheckView
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.build import Build
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.optimize import evaluate_once
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.cheats import cheat
from optiml_magic.testing.cheats.tasks import task as cheats_task
from tests.present import sampled

HEAD = "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
DOUBLE = HEAD + (
    "__global__ void k(const float* x, float* out, int n) {\n"
    "    int i = blockIdx.x * 64 + threadIdx.x;\n"
    "    if (i < n) out[i] = 2.0f * x[i];\n}\n"
)
UNGUARDED = DOUBLE.replace("if (i < n) ", "")
X = np.random.default_rng(0).uniform(1, 2, 1024).astype(np.float32)


def settings():
    return resolve({"device": "emulated:h200", "instructions": 10_000_000})


def task(text: str = DOUBLE, **more) -> Task:
    return replace(Task(text, lambda x: 2 * x, {"x": X, "n": 1024}), **more)


def verdict(of: Task, program: str | None = None) -> Verdict:
    return evaluate_once(of, settings(), program=program, counters=False).evaluation.verdict


def evaluations(of: Task, *programs: str, thorough: bool = False) -> list[Evaluation]:
    problem = prepare(of, seeds=3)
    with session(settings(), task=of) as members:
        evaluator = Evaluator(problem, members.tools, thorough=thorough)
        texts = (problem.program.text, *programs)
        candidates = [
            Candidate(at, 0 if at else None, Proposal(text, "", "test"))
            for at, text in enumerate(texts)
        ]
        return [evaluation for one in candidates for evaluation in evaluator([one])]


@pytest.mark.slow
def test_sizes_at_which_the_input_kernel_is_wrong_are_not_asked_of_a_candidate() -> None:
    checked = evaluate_once(task(UNGUARDED), settings(), program=UNGUARDED.replace("64", "32"))
    assert checked.evaluation.verdict.passed
    (note,) = [note for note in checked.notes if note.startswith("other sizes")]
    assert "2 checked, n = 64; n = 128" in note
    assert "the input kernel fails or differs from the reference at " in note
    assert verdict(task(), UNGUARDED.replace("64", "32")).outcome is Outcome.OUT_OF_BOUNDS


def test_a_size_at_which_the_input_kernel_never_ends_is_left_out() -> None:
    note = never_ending("n == 1")
    assert note.startswith("other sizes: 13 checked, ")
    assert note.endswith("; at n = 1 the input kernel takes longer than is tried")


def test_an_input_kernel_that_ends_at_no_other_size_is_asked_no_further() -> None:
    note = never_ending("n < 200")
    assert note.startswith("other sizes: ")
    assert int(note.split()[2]) < 13
    assert note.endswith("the input kernel takes longer than is tried")


def never_ending(when: str) -> str:
    """What is said of other sizes of a kernel that never ends at some."""
    loop = f"    while (({when}) && ((volatile const float*)x)[0] != 5.0f) {{}}\n    if"
    checked = evaluate_once(task(DOUBLE.replace("    if", loop)), settings())
    assert checked.evaluation.verdict.passed
    (note,) = [note for note in checked.notes if note.startswith("other sizes")]
    return note


@pytest.mark.slow
def test_a_program_may_say_itself_what_it_is_for() -> None:
    text = "#pragma optiml require n % 4 == 0\n" + DOUBLE.replace("64", "128")
    found = verdict(task(), text)
    assert found.passed
    assert any("its `require` leaves" in note for note in found.notes)
    never = text.replace("n % 4 == 0", "n == 7")
    assert verdict(task(), never).outcome is Outcome.INVALID


def test_without_a_reference_the_input_kernel_answers_at_other_sizes_too() -> None:
    of = task(reference=None, outputs={"out": "f4[n]"})
    skipping = DOUBLE.replace("i < n", "i < n / 4 * 4")
    found = verdict(of, skipping)
    assert found.outcome is Outcome.WRONG
    assert "on n = " in found.summary
    assert verdict(of, DOUBLE.replace("64", "128")).passed


@pytest.mark.slow
def test_what_costs_as_much_as_a_verification_is_for_those_that_would_win() -> None:
    pair = cheat("rounds_what_averages_out")
    slow = pair.text.replace("out[row] = sum", "for (int t = 0; t < 999; ++t) sum = fmaf(sum, __int_as_float(0x3f800000), t * 0.0f);\n    out[row] = sum")  # fmt: skip
    of = cheats_task(pair.task)
    _, lazy = evaluations(of, slow)
    assert lazy.verdict.passed
    _, strict = evaluations(of, slow, thorough=True)
    assert pair.rejects(strict.verdict)


@pytest.mark.slow
def test_the_same_code_with_other_launches_elsewhere_is_no_duplicate() -> None:
    constant = DOUBLE.replace("cdiv(n, 64)", "16")
    _, same, other = evaluations(task(), DOUBLE.replace("cdiv(n, 64)", "(n + 63) / 64"), constant)
    assert same.duplicate_of == 0
    assert other.duplicate_of is None


AROUND = (
    HEAD
    + """__global__ void k(const float* x, float* out, int n) {
    __shared__ float s[64];
    int i = min(blockIdx.x * 64 + threadIdx.x, n - 1);
    float v = 2.0f * x[i];
    s[threadIdx.x] = v;
    REST
}
"""
)
LEAVES = """if (v < 3.0f) { out[i] = v; return; }
    __syncthreads();
    out[i] = 2.0f * s[threadIdx.x] - v;"""
GOES_AROUND = """if (!(v < 3.0f)) {
    __syncthreads();
    v = 2.0f * s[threadIdx.x] - v; }
    out[i] = v;"""


@pytest.mark.slow
def test_the_same_code_of_a_return_and_of_a_way_around_a_barrier_is_no_duplicate() -> None:
    texts = AROUND.replace("REST", LEAVES), AROUND.replace("REST", GOES_AROUND)
    builds = [NvrtcCompiler().compile(t, ("k",), chip("h200"), CompileOptions()) for t in texts]
    assert len({build.digest for build in builds if isinstance(build, Build)}) == 1
    for order in (texts, texts[::-1]):
        found = dict(zip(order, evaluations(task(), *order)[1:], strict=True))
        assert all(evaluation.duplicate_of is None for evaluation in found.values())
        assert found[texts[0]].verdict.passed, found[texts[0]].verdict
        assert found[texts[1]].verdict.outcome is Outcome.BARRIER


@pytest.mark.slow
def test_a_sum_in_any_order_is_right_and_called_not_reproducible() -> None:
    total = (
        "#pragma optiml zero(out)\n"
        + HEAD
        + "__global__ void k(const float* x, float* out, int n) {\n"
        "    int i = blockIdx.x * 64 + threadIdx.x;\n"
        "    if (i < n) atomicAdd(out, x[i]);\n}\n"
    )
    of = task(total, reference=lambda x: x.sum(keepdims=True))
    found = verdict(of, total.replace("64", "128"))
    assert found.passed
    assert "`out` is not bitwise reproducible from run to run" in found.notes
    assert verdict(task(), DOUBLE.replace("64", "128")).notes == ()


@pytest.mark.slow
def test_declared_bytes_that_the_input_kernel_itself_does_not_move_bind_nobody() -> None:
    checked = evaluate_once(task(bytes=10**9), settings(), program=DOUBLE.replace("64", "128"))
    assert checked.evaluation.verdict.passed
    assert any("memory limits are not applied" in note for note in checked.notes)


def test_a_wrong_answer_is_drawn() -> None:
    late = DOUBLE.replace("2.0f * x[i]", "(i < 896 ? 2.0f : 2.001f) * x[i]")
    checked = evaluate_once(task(), settings(), program=late)
    (check,) = checked.evaluation.verdict.checks
    assert check.picture == ("." * 32,) * 7 + ("#" * 32,)
    assert "ulp" in checked.evaluation.verdict.summary
    shown = CheckView(checked)
    assert "  " + "#" * 32 in repr(shown)
    assert "#" * 32 in shown._repr_mimebundle_()["text/html"]


EACH = HEAD + (
    "__global__ void k(const {0}* x, {1}* out, int n) {{\n"
    "    int i = blockIdx.x * 64 + threadIdx.x;\n"
    "    if (i >= n) return;\n"
    "    {0} v = x[i];\n"
    "    out[i] = {2};\n}}\n"
)
PART = HEAD.replace("grid(cdiv(n, 64))", "grid(cdiv(n, 256))") + (
    "__global__ void k(const float* x, float* out, int n) {\n"
    "    int t = blockIdx.x * 64 + threadIdx.x;\n"
    "    if (n % 4 == REST) {\n"
    "        for (int j = t; j < n / 8 * 8; j += gridDim.x * 64) out[j] = 2.0f * x[j];\n"
    "    } else {\n"
    "        for (int j = t; j < n; j += gridDim.x * 64) out[j] = 2.0f * x[j];\n"
    "    }\n}\n"
)


def drawn(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"x": rng.integers(0, 1000, n).astype(np.int32), "n": n}


def normal(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"x": rng.standard_normal(n).astype(np.float32), "n": n}


def judged(of: Task, wrong: str, honest: str) -> Verdict:
    """The verdict on a wrong program, where another way to be right passes."""
    found, twin = (e.verdict for e in evaluations(of, wrong, honest)[1:])
    assert twin.passed, twin
    return found


@pytest.mark.parametrize("rest", sampled([0, 2], 2))
def test_a_tail_that_whole_vectors_leave_out(rest: int) -> None:
    wrong = PART.replace("REST", str(rest))
    honest = wrong.replace("n / 8 * 8", "n")
    found = judged(Task(DOUBLE, lambda x: 2 * x, normal, sizes={"n": 4096}), wrong, honest)
    assert found.outcome is Outcome.WRONG


@pytest.mark.parametrize(
    ("reference", "types", "right", "honest", "wrong", "shown"),
    sampled(
        [
            (
                lambda x: np.abs(x),
                ("int", "int"),
                "v < 0 ? -v : v",
                "abs(v)",
                "v",
                "integers of both signs",
            ),
            (
                lambda x: x.astype(np.int64) ** 2,
                ("int", "long long"),
                "(long long)v * v",
                "(long long)(-v) * (-v)",
                "v * v",
                "large integers",
            ),
        ],
        2,
    ),
)
def test_integers_that_the_given_ones_never_are(
    reference: Any, types: tuple[str, str], right: str, honest: str, wrong: str, shown: str
) -> None:
    of = Task(EACH.format(*types, right), reference, drawn, sizes={"n": 1024})
    found = judged(of, EACH.format(*types, wrong), EACH.format(*types, honest))
    assert found.outcome is Outcome.WRONG
    assert shown in found.summary


COUNTS = (
    "#pragma optiml zero(out)\n"
    + HEAD
    + (
        "__global__ void k(const int* x, int* out, int n) {\n"
        "    int i = blockIdx.x * 64 + threadIdx.x;\n"
        "    if (i < n) atomicAdd(out + x[i], 1);\n}\n"
    )
)
BYTES = (
    "#pragma optiml launch k grid(1) block(64)\n"
    "__global__ void k(const int* x, int* out, int n) {\n"
    "    COUNTER c = 0;\n"
    "    for (int i = 0; i < n; ++i) c += x[i] == threadIdx.x;\n"
    "    out[threadIdx.x] = c;\n}\n"
)


@pytest.mark.slow
def test_a_count_in_too_few_bits() -> None:
    def bins(rng: np.random.Generator, n: int) -> dict[str, Any]:
        return {"x": rng.integers(0, 64, n).astype(np.int32), "n": n}

    of = Task(COUNTS, lambda x: np.bincount(x, minlength=64), bins, sizes={"n": 2000})
    of = replace(of, outputs={"out": "i4[64]"})
    found = judged(of, BYTES.replace("COUNTER", "unsigned char"), BYTES.replace("COUNTER", "int"))
    assert found.outcome is Outcome.WRONG
    assert "integers all alike" in found.summary


ONE_HOT = """\
#pragma optiml launch k grid(1) block(%s)
__global__ void k(const int* label, float* out, int n, int c) {
    %s {
        for (int j = 0; j < c; ++j) out[i * c + j] = 0.0f;
        int at = i * c + label[i];
        if (at >= 0 && at < n * c) out[at] = 1.0f;
    }
}
"""


def test_integers_that_make_the_threads_of_the_input_kernel_race_are_not_asked() -> None:
    """A label below 0 lies in the row before, which lanes of one warp happen to fill first."""

    def labels(rng: np.random.Generator, n: int, c: int) -> dict[str, Any]:
        return {"label": rng.integers(0, c, n).astype(np.int32), "n": n, "c": c}

    lanes = ONE_HOT % (32, "int i = threadIdx.x; if (i < n)")
    backwards = ONE_HOT % (1, "for (int i = n - 1; i >= 0; --i)")
    of = Task(lanes, None, labels, sizes={"n": 32, "c": 7}, outputs={"out": "f4[n, c]"})
    assert [e.verdict.outcome for e in evaluations(of, backwards)] == [Outcome.PASSED] * 2


@pytest.mark.parametrize(
    ("reference", "right", "honest", "wrong"),
    sampled([
        (lambda x: np.sign(x), "(v > 0.f) - (v < 0.f)", "v > 0.f ? 1.f : v < 0.f ? -1.f : 0.f",
         "v < 0.f ? -1.f : 1.f"),
        (lambda x: np.where(x == 0, 0, 1 / np.where(x == 0, 1, x)), "v == 0.f ? 0.f : 1.f / v",
         "v != 0.f ? 1.f / v : 0.f", "1.f / v"),
    ], 2),
)  # fmt: skip
def test_zeros(reference: Any, right: str, honest: str, wrong: str) -> None:
    types = ("float", "float")
    of = Task(EACH.format(*types, right), reference, normal, sizes={"n": 1024})
    found = judged(of, EACH.format(*types, wrong), EACH.format(*types, honest))
    assert found.outcome is Outcome.WRONG
    assert "a third of the inputs 0" in found.summary


LAST = (
    "#pragma optiml launch k grid(cdiv(rows, 64)) block(64)\n"
    "__global__ void k(const float* x, int* out, int rows, int cols) {\n"
    "    int r = blockIdx.x * 64 + threadIdx.x, best = 0;\n"
    "    if (r >= rows) return;\n"
    "    for (int c = 1; c < cols; ++c) if (x[r * cols + c] > x[r * cols + best]) best = c;\n"
    "    out[r] = best;\n}\n"
)


@pytest.mark.slow
def test_ties() -> None:
    def rows(rng: np.random.Generator, rows: int, cols: int) -> dict[str, Any]:
        return {"x": rng.standard_normal((rows, cols)).astype("f4"), "rows": rows, "cols": cols}

    sizes = {"rows": 64, "cols": 100}
    of = Task(LAST, lambda x: x.argmax(1).astype(np.int32), rows, sizes=sizes)
    found = judged(of, LAST.replace("] > x", "] >= x"), LAST.replace("cols + best]", "cols+best]"))
    assert found.outcome is Outcome.WRONG


SHIFTED = (
    "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
    "__global__ void k(const float* x, float* out, int n, float eps) {\n"
    "    int i = blockIdx.x * 64 + threadIdx.x;\n"
    "    if (i < n) out[i] = x[i] / sqrtf(x[i] * x[i] + eps);\n}\n"
)


@pytest.mark.slow
def test_a_small_scalar_that_is_written_into_the_kernel() -> None:
    def inputs(rng: np.random.Generator, n: int) -> dict[str, Any]:
        return {**normal(rng, n), "eps": np.float32(1e-5)}

    of = Task(SHIFTED, lambda x, eps: x / np.sqrt(x * x + eps), inputs, sizes={"n": 1024})
    wrong, honest = SHIFTED.replace("+ eps", "+ 1e-5f"), SHIFTED.replace("x[i] * x[i] + eps",
                                                                         "eps + x[i] * x[i]")  # fmt: skip
    found = judged(of, wrong, honest)
    assert found.outcome is Outcome.WRONG
