"""The verdict names the block and the thread that wrote the first wrong element last."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.commands.views import CheckView
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, OutputCheck, Writer
from optiml_magic.optimize import evaluate_once
from optiml_magic.problem import prepare
from optiml_magic.reports import marks
from optiml_magic.session import session
from optiml_magic.settings import resolve

X = np.arange(1, 321, dtype=np.float32)
HEAD = "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
KERNEL = """__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * x[i];
}
"""
RIGHT = HEAD + KERNEL


def task(text: str = RIGHT) -> Task:
    return Task(text, reference=lambda x: 2 * x, inputs={"x": X, "n": 320})


def check(text: str) -> OutputCheck:
    verdict = evaluate_once(task(), resolve(), program=text, hazards=True).evaluation.verdict
    assert verdict.outcome is Outcome.WRONG, verdict
    return verdict.checks[0]


def test_the_first_wrong_element_has_its_writer_in_text_and_html() -> None:
    wrong = RIGHT.replace("2 * x[i]", "i < 130 ? 2 * x[i] : 7")
    view = CheckView(evaluate_once(task(), resolve(), program=wrong, hazards=True))
    found = view.evaluation.verdict.checks[0]
    assert found.first_index == (130,)
    assert found.writer == Writer((2, 0, 0), (2, 0, 0), 4)
    pages = view._repr_mimebundle_()
    for words in (
        "line 4: 190 of 320 elements of `out` are wrong on seed 0: first out[130] = 7.0, ",
        "out[130] = 7.0, wanted 262.0, written by thread (2, 0, 0) of block (2, 0, 0)",
        "ulp",
        "out: where it is wrong (. nowhere, + here and there, # everywhere)",
        "....####",
    ):
        assert words in pages["text/plain"]
        assert words in pages["text/html"]
    assert view.evaluation.verdict.line == 4
    for kind in ("text/plain", "text/html"):
        assert pages[kind].count("line 4") == 1
    (mark,) = pages[marks.MIME]["marks"]
    assert (mark["line"], mark["source"]) == (4, wrong.splitlines()[3].strip())


@pytest.mark.slow
def test_where_all_that_is_wrong_is_nan_no_error_is_told() -> None:
    """Each right element is off by a rounding, which says nothing of what is wrong."""
    spoilt = RIGHT.replace("2 * x[i];", "i % 4 ? 1.9999999f * x[i] : NAN;")
    view = CheckView(evaluate_once(task(), resolve(), program=spoilt, hazards=True))
    (found,) = view.evaluation.verdict.checks
    assert (found.wrong, found.nonfinite, found.max_ulp > 0) == (80, 80, True)
    pages = view._repr_mimebundle_()
    for page in (pages["text/plain"], pages["text/html"]):
        assert "80 are NaN or infinite and should not be" in page
        assert "240 of 320 right" in page
        assert "the worst" not in page
        assert "relative error" not in page


@pytest.mark.slow
def test_where_some_of_it_is_nan_the_errors_are_of_the_others() -> None:
    spoilt = RIGHT.replace("2 * x[i];", "i % 4 ? 2 * x[i] : i % 8 ? NAN : 3 * x[i];")
    view = CheckView(evaluate_once(task(), resolve(), program=spoilt, hazards=True))
    pages = view._repr_mimebundle_()
    for page in (pages["text/plain"], pages["text/html"]):
        assert "; the worst of the finite ones is off by 313, " in page
        assert "; 40 are NaN or infinite and should not be" in page
        assert "240 of 320 right, relative error of the finite ones 0.19 " in page


@pytest.mark.slow
def test_of_two_writers_it_is_the_last() -> None:
    wrong = RIGHT.replace("}\n", "    if (i == 300) atomicExch(&out[9], 5.0f);\n}\n")
    found = check(wrong)
    assert (found.first_index, found.writer) == ((9,), Writer((4, 0, 0), (44, 0, 0), 5))


@pytest.mark.slow
def test_of_two_launches_it_is_the_one_that_wrote_last() -> None:
    spoil = "__global__ void spoil(float* out) { if (threadIdx.x > 5) out[threadIdx.x] = 0; }\n"
    wrong = RIGHT + spoil + "#pragma optiml launch spoil grid(1) block(32)\n"
    again = "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
    assert check(wrong).writer == Writer((0, 0, 0), (6, 0, 0), 6)
    later = RIGHT.replace("2 * x[i]", "i == 3 ? 9 : 2 * x[i]") + spoil
    later += "#pragma optiml launch spoil grid(1) block(32)\n"
    assert check(later).writer == Writer((0, 0, 0), (3, 0, 0), 4)
    assert again in later


def test_a_vector_store_is_the_writer_of_each_element() -> None:
    wrong = """#pragma optiml require n % 4 == 0
#pragma optiml launch k grid(cdiv(n, 256)) block(64)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i >= n) return;
    float4 v = reinterpret_cast<const float4*>(x)[i];
    reinterpret_cast<float4*>(out)[i] = make_float4(2 * v.x, 2 * v.y, 3 * v.z, 2 * v.w);
}
"""
    found = check(wrong)
    assert (found.first_index, found.writer) == ((2,), Writer((0, 0, 0), (0, 0, 0), 7))


def test_nobody_is_named_where_nobody_wrote() -> None:
    found = check(RIGHT.replace("i < n", "i < n && i != 70"))
    assert (found.first_index, found.unwritten, found.writer) == ((70,), 1, None)


@pytest.mark.slow
def test_a_search_does_not_ask() -> None:
    with session(resolve(), extent="winners") as members:
        evaluator = Evaluator(prepare(task(), seeds=1), members.tools)
        wrong = RIGHT.replace("2 * x[i]", "3 * x[i]")
        ended = [
            evaluator([Candidate(at, None, Proposal(text, "", "test"))])[0].verdict
            for at, text in enumerate((RIGHT, wrong))
        ]
    assert ended[1].outcome is Outcome.WRONG
    assert ended[1].checks[0].writer is None
