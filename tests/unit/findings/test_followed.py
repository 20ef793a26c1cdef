"""Advice that a program follows already, or cannot follow, is not given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.findings.followed import across_the_grid, fitting, padded
from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding
from optiml_magic.model.launch import Launch, LaunchPlan
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .test_subject import subject

NAIVE = """\
__global__ void rows(const float* a, float* out, int n, int m) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0.0f;
    for (int j = 0; j < m; j++)
        sum += a[row * m + j];
    out[row] = sum;
}
"""
WARPS = """\
__device__ float whole(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    return v;
}
__global__ void rows(const float* a, float* out, int n, int m) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= n) return;
    float sum = 0.0f;
    for (int j = lane; j < m; j += 32)
        sum += a[row * m + j];
    sum = whole(sum);
    if (lane == 0) out[row] = sum;
}
"""
TREES = """\
__global__ void rows(const float* a, float* out, int m) {
    __shared__ float parts[256];
    float sum = 0.0f;
    for (int j = threadIdx.x; j < m; j += blockDim.x)
        sum += a[blockIdx.x * m + j];
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int t = 1; t < 256; t++) sum += parts[t];
        out[blockIdx.x] = sum;
    }
}
"""
SPARSE = """\
__global__ void spmv(const int* starts, const int* at, const float* x, float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = starts[row]; k < starts[row + 1]; k++)
        sum += x[at[k]];
    y[row] = sum;
}
"""


def finding(line: int, *rules: str, tool: str = "tool") -> Finding:
    evidence = Evidence("metric", 2.0, 1.0, "", "emulated", line)
    actions = tuple(Action(f"Do {rule}.", rule) for rule in rules)
    return Finding(tool, "warning", "because", (evidence,), actions, (1.0, 2.0))


def left(text: str, line: int, *rules: str) -> list[str]:
    (found,) = fitting([finding(line, *rules)], subject(text))
    return [action.rewrite for action in found.actions]


@pytest.mark.parametrize(("text", "line", "stays"), [(NAIVE, 6, True), (WARPS, 10, False),
                                                      (TREES, 5, False)])  # fmt: skip
def test_lanes_for_what_one_thread_does(text: str, line: int, stays: bool) -> None:
    wanted = ["row_to_lanes", "block_size"] if stays else ["block_size"]
    assert left(text, line, "row_to_lanes", "block_size") == wanted
    assert left(text, 0, "row_to_lanes", "block_size") == wanted


def test_lanes_for_the_kernel_that_has_none() -> None:
    text = NAIVE + WARPS.replace("void rows", "void warps")
    assert left(text, 6, "row_to_lanes") == ["row_to_lanes"]
    assert left(text, 18, "row_to_lanes") == []


@pytest.mark.parametrize("rule", ["stage_tile", "transpose_tile"])
def test_no_barrier_in_a_loop_with_rounds_of_each_threads_own(rule: str) -> None:
    assert left(SPARSE, 6, rule, "row_to_lanes") == ["row_to_lanes"]
    assert left(NAIVE, 6, rule) == [rule]


def test_one_advice_for_several_lines() -> None:
    found = list(fitting([finding(5, "a", "b"), finding(6, "a"), finding(7, "a", "c"),
                          finding(8, "a", tool="other")], subject(NAIVE)))  # fmt: skip
    said = [[action.rewrite for action in one.actions] for one in found]
    assert said == [["a", "b"], [], ["c"], ["a"]]


@pytest.mark.parametrize(
    ("tile", "is_padded"),
    [("float tile[32][32]", False), ("float tile[32][33]", True), ("double tile[32][33]", False),
     ("float tile[SIDE][SIDE + 1]", True), ("float tile[SIDE][SIDE]", False)],
)  # fmt: skip
def test_tiles_with_a_pad(tile: str, is_padded: bool) -> None:
    text = f"""\
#define SIDE 16
__global__ void turn(const float* a, float* b, int n) {{
    __shared__ {tile};
    tile[threadIdx.y][threadIdx.x] = a[threadIdx.y * n + threadIdx.x];
    __syncthreads();
    b[threadIdx.y * n + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}}
"""
    assert padded(6, "load", subject(text)) is is_padded


def chain(text: str, arrays: dict[str, tuple[str, ...]]) -> Subject:
    sizes = {"n": 512}
    filled = {name: Array("f4", shape) for name, shape in arrays.items()}
    made = Made("one", text, filled, sizes, sizes, inout=tuple(arrays))
    stand = Stand(made)
    launches = tuple(Launch("k", (1, 1, 1), (1, 1, 1), 0, ()) for _ in range(2))
    known = replace(subject(stand.text), plan=LaunchPlan(launches))
    return replace(known, facts=stand.facts(stand.text))


FIRST = """\
#pragma optiml launch first grid(cdiv(n, 64)) block(64)
#pragma optiml launch second grid(cdiv(n, 64)) block(64)
__global__ void first(const float* a, float* b, float* total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { b[i] = a[i] * 2.0f; atomicAdd(&total[0], a[i]); }
}
"""


@pytest.mark.parametrize(
    ("loaded", "apart"),
    [("b[i]", False), ("b[i] / total[0]", True), ("total[0]", True), ("b[0]", True)],
)
def test_what_all_blocks_did_is_not_fused(loaded: str, apart: bool) -> None:
    text = f"""{FIRST}
__global__ void second(const float* b, const float* total, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = {loaded};
}}
"""
    arrays = {"a": ("n",), "b": ("n",), "total": ("1",), "out": ("n",)}
    assert across_the_grid(chain(text, arrays)) is apart


@pytest.mark.parametrize(("loaded", "apart"), [("a[i] * 2.0f", False), ("a[i - 1] + a[i]", True)])
def test_steps_in_which_elements_meet_their_neighbours_are_not_fused(
    loaded: str, apart: bool
) -> None:
    text = f"""\
#pragma optiml launch step grid(cdiv(n, 64)) block(64) repeat(4) swap(a, b)
__global__ void step(const float* a, float* b, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n) b[i] = {loaded};
}}
"""
    assert across_the_grid(chain(text, {"a": ("n",), "b": ("n",)})) is apart
