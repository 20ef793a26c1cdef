"""Kernels that are templates, as their launches make them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.instantiated import instantiated
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites.index_strength import IndexStrength
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.source.program import parse_program
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of

ROWS = """\
#define WIDTH 33
template <int W> __device__ float scaled(float x) { return x / W; }
template <typename T, int W, bool ROOT = false>
__global__ void norms(const T* a, T* out, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    T kept[W];  // W of them
    for (int i = 0; i < W; ++i) kept[i] = scaled<W>(a[r * W + i]);
    T s = T(0);
    for (int i = 0; i < W; ++i) s += kept[i] * kept[i];
    out[r] = ROOT ? sqrtf(s) : s;
}
#pragma optiml launch norms<float, WIDTH> grid(cdiv(n, 64)) block(64)
"""
ARRAYS = {"a": Array("f4", ("n", "33")), "out": Array("f4", ("n",), "zeros")}


def test_parameters_are_what_the_launch_says() -> None:
    after = instantiated(parse_program(ROWS))
    assert "float kept[WIDTH];  // W of them" in after.text
    assert "scaled<WIDTH>(a[r * WIDTH + i])" in after.text
    assert "out[r] = false ? sqrtf(s) : s;" in after.text
    assert "template <int W> __device__" in after.text
    assert after.launches[0].kernel == "norms"
    assert instantiated(after) is after
    assert end_of(ROWS, after.text, ARRAYS, {"n": 70}, {"n": 3}) == "same"


def test_expressions_are_put_in_brackets() -> None:
    text = ROWS.replace("launch norms<float, WIDTH>", "launch norms<float, WIDTH - 0, true>")
    after = instantiated(parse_program(text))
    assert "a[r * (WIDTH-0) + i]" in after.text
    assert end_of(text, after.text, ARRAYS, {"n": 70}, {"n": 3}) == "same"


def test_what_is_instantiated_explicitly_is_so_by_its_launch() -> None:
    again = "template __global__ void norms<float, WIDTH, false>(const float*, float*, int);\n"
    text = ROWS.replace("#pragma optiml launch", f"{again}#pragma optiml launch")
    after = instantiated(parse_program(text))
    assert after.text == instantiated(parse_program(ROWS)).text.replace(
        "}\n#pragma", "}\n\n#pragma"
    )
    assert end_of(text, after.text, ARRAYS, {"n": 70}, {"n": 3}) == "same"


STAYS = {
    "a macro names it": ("int r =", "\n#define AT(i) (r * W + i)\n    int r =", "a[r * W + i]", "a[AT(i)]"),
    "a macro makes it": ("template <typename T, int W", "#define KERNEL __global__ void norms\ntemplate <typename T, int W",
                         "__global__ void norms", "KERNEL"),
    "hidden": ("T s = T(0);", "T s = T(0); { int W = 2; s += W; }", "", ""),
    "a member": ("T s = T(0);", "struct { int W; } o; o.W = 0; T s = o.W;", "", ""),
    "no plain type": ("norms<float, WIDTH>", "norms<float*, WIDTH>", "", ""),
    "not told": ("norms<float, WIDTH>", "norms<float>", "", ""),
    "brackets": ("norms<float, WIDTH>", "norms<unsigned int, WIDTH>", "", ""),
}  # fmt: skip


@pytest.mark.parametrize("swaps", STAYS.values(), ids=STAYS)
def test_a_template_that_stays(swaps: tuple[str, str, str, str]) -> None:
    text = ROWS
    for old, new in (swaps[:2], swaps[2:]):
        assert old in text
        text = text.replace(old, new) if old else text
    program = parse_program(text)
    assert instantiated(program) is program


def test_rules_see_the_numbers() -> None:
    stand = Stand(Made("one", ROWS, ARRAYS, {"n": 70}, {"n": 3}))
    step = Step(
        Candidate(0, None, Proposal(ROWS, "", "")), Evaluation(0, "", Verdict(Outcome.PASSED, ""))
    )
    view = View(step, step, find_facts=lambda: stand.facts(ROWS))
    (idea, *_) = RuleProposer((RowToLanes(),)).propose(view, 1).ideas
    made = idea.make()
    assert isinstance(made, str)
    assert "launch norms grid" in made
    assert end_of(ROWS, made, ARRAYS, {"n": 70}, {"n": 3}) in ("same", "rounded")


DIVIDED = """\
template <typename T> __global__ void k(const T* a, T* out, int n, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T s = 0;
    for (int j = 0; j < 9; ++j) s += a[(i + j) / w] * a[(i + j) % w];
    out[i] = s;
}
#pragma optiml launch k<float> grid(cdiv(n, 64)) block(64)
"""


def test_behind_a_dispatch_stays_the_input_kernel_however_it_is_spelled() -> None:
    plain = instantiated(parse_program(DIVIDED)).text
    launch = "#pragma optiml launch k grid(cdiv(n, 64)) block(64)"
    fast = plain[: plain.index("#pragma")].replace(" k(", " k_fast(")
    said = f"{launch.replace(' k ', ' k_fast ')} if (n <= 1000)\n{launch} else"
    text = fast + plain.replace(launch, said)
    arrays = {"a": Array("f4", ("n + 9",)), "out": Array("f4", ("n",), "zeros")}
    stand = Stand(Made("one", DIVIDED, arrays, {"n": 70, "w": 7}, {"n": 3, "w": 2}))
    root, step = (
        Step(
            Candidate(at, None, Proposal(x, "", "")),
            Evaluation(at, "", Verdict(Outcome.PASSED, "")),
        )
        for at, x in enumerate((DIVIDED, text))
    )
    view = View(step, root, find_facts=lambda: stand.facts(text))
    (idea, *_) = RuleProposer((IndexStrength(),)).propose(view, 1).ideas
    made = idea.make()
    assert isinstance(made, str)
    (launches,) = parse_program(made).alternatives
    assert [str(x.condition) for x in launches] == ["n <= 1000 && w == 7", "None"]
    assert end_of(DIVIDED, made, arrays, {"n": 70, "w": 7}, {"n": 3, "w": 2}) == "same"
