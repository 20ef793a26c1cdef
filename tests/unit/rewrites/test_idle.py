"""Ideas that leave a thread for each block of a launch that kept the chip busy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.model.facts import Facts, LaunchFacts
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites.idle import idle
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.proposers.rewrites.tabulate_weights import TabulateWeights
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.unit.primitives.alike import kernel_of

TREE = """\
#pragma optiml launch k grid(264) block(256)
__global__ void k(const float* x, float* o, int n, float p) {
    __shared__ float s[256];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i] * powf(p, 3.0f);
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int h = 128; h > 0; h >>= 1) {
        if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];
        __syncthreads();
    }
    if (threadIdx.x == 0) o[blockIdx.x] = s[0];
}
"""
ALONE = """\
#pragma optiml launch k grid(264) block(256)
__global__ void k(const float* x, float* o, int n, float p) {
    float sum = 0.0f;
    if (threadIdx.x == 0) {
        for (int i = 0; i < n; ++i) sum += x[i] * powf(p, 3.0f);
        o[blockIdx.x] = sum;
    }
}
"""


def facts(grid: int, block: int, chip: str = "h200") -> Facts:
    launch = LaunchFacts("k", 1, (grid, 1, 1), (block, 1, 1), {}, {"n": 1 << 20})
    return Facts((launch,), {}, 1e-5, 1e-8, chip)


def of_shape(text: str, grid: str, block: str) -> str:
    return text.replace("grid(264) block(256)", f"grid({grid}) block({block})")


@pytest.mark.parametrize(
    ("text", "before", "after", "end"),
    [
        (TREE, (264, 256), ("cdiv(264, 256)", "256"), "of 67584 threads it leaves 512, too few for the chip"),
        (TREE, (264, 256), ("33", "128"), None),  # a warp for each multiprocessor
        (TREE, (264, 256), ("n / 256", "256"), None),
        (TREE, (8, 256), ("1", "256"), None),  # it was idle before
        (TREE, (64, 264), ("1", "32"), "of 16896 threads it leaves 32, too few for the chip"),
        (ALONE, (264, 256), ("2", "256"), None),  # of which few worked
    ],
)  # fmt: skip
def test_a_busy_chip_stays_so(
    text: str, before: tuple[int, int], after: tuple[str, str], end: str | None
) -> None:
    kernel = kernel_of(text, facts(*before))
    assert idle(parse_program(of_shape(text, *after)), kernel) == end


def test_nothing_is_said_of_what_is_not_known() -> None:
    made = parse_program(of_shape(TREE, "2", "256"))
    assert idle(made, kernel_of(TREE)) is None
    assert idle(made, kernel_of(TREE, facts(264, 256, "other"))) is None
    kernel = kernel_of(TREE, facts(264, 256))
    assert idle(parse_program(of_shape(TREE, "parts", "256")), kernel) is None


def test_other_launches_are_not_asked() -> None:
    more = "#pragma optiml launch other grid(n) block(256)\n__global__ void other(float* o, int n) {}\n"
    kernel = kernel_of(TREE, facts(264, 256))
    kernel = replace(kernel, program=parse_program(more + TREE))
    assert idle(parse_program(more + of_shape(TREE, "2", "256")), kernel) is not None
    assert idle(parse_program(of_shape(TREE, "2", "256") + more), kernel) is not None


def texts(rule: type[TabulateWeights | RowToLanes]) -> list[bool]:
    view = replace(view_of(TREE), find_facts=lambda: facts(264, 256))
    ideas = rule().propose(parse_program(TREE), view)
    return [isinstance(idea.make(), str) for idea in ideas if isinstance(idea, Idea)]


def test_a_rule_that_deals_nothing_out_has_no_idea_of_one_thread_a_block() -> None:
    assert texts(TabulateWeights) == [False]
    assert any(texts(RowToLanes))
