"""Threads that wait for each other, and go along rows of their own in between; blocks by a size."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.sized import block_sized
from optiml_magic.model.facts import ArrayFacts, Facts, LaunchFacts
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of

SCORES = """\
#pragma optiml launch k grid(heads) block(BLOCK)
__global__ void k(const float* q, const float* rows, float* out, int heads, int n, int d) {
    __shared__ float scores[128];
    for (int t = threadIdx.x; t < n; t += blockDim.x) {
        const float* row = rows + (blockIdx.x * n + t) * d;
        float acc = 0.0f;
        for (int e = 0; e < d; e++) acc += q[blockIdx.x * d + e] * row[e];
        scores[t] = acc;
    }
    __syncthreads();
    if (threadIdx.x < heads) {
        float s = 0.0f;
        for (int t = 0; t < n; t++) s = s * 0.5f + scores[(t * 7 + threadIdx.x) % n];
        out[blockIdx.x * heads + threadIdx.x] = s;
    }
}
"""
ARRAYS = {
    "q": Array("f4", ("heads", "d")),
    "rows": Array("f4", ("heads", "n", "d")),
    "out": Array("f4", ("heads", "heads"), "zeros"),
}


def test_a_thread_takes_vectors_of_its_row_also_where_it_waits_later() -> None:
    text = SCORES.replace("BLOCK", "64")
    ideas, _ = asked(RowToLanes(), text)
    (idea,) = (one for one in ideas if "vectors of its row" in one.title)
    after = idea.make()
    assert isinstance(after, str)
    assert "rows_items[STRIP]" in after
    sizes = {"heads": 3, "n": 70, "d": 40}
    assert end_of(text, after, ARRAYS, sizes, {"heads": 2, "n": 5, "d": 7}) == "same"


def facts(d: int) -> Facts:
    arrays = {
        name: ArrayFacts(name, role, "f4", (count,), 4 * count, 256)
        for name, role, count in (("q", "input", 3 * d), ("rows", "input", 30 * d), ("out", "output", 9))
    }  # fmt: skip
    launch = LaunchFacts("k", 1, (3, 1, 1), (d, 1, 1), arrays, {"heads": 3, "n": 10, "d": d})
    return Facts((launch,), {}, 1e-5, 1e-8, "h200")


def test_a_size_that_says_how_many_threads_a_block_has_is_a_number() -> None:
    text = SCORES.replace("BLOCK", "d")
    kernel = kernel_of(text, facts(32))
    assert kernel.block[0] is None
    made = block_sized(kernel)
    assert isinstance(made, Kernel)
    assert made.block == (32, 1, 1)
    assert "#pragma optiml require d == 32" in made.program.text
    assert isinstance(block_sized(made), Refused)
    assert isinstance(block_sized(kernel_of(text)), Refused)
    sizes = {"heads": 3, "n": 10, "d": 32}
    assert end_of(text, made.program.text, ARRAYS, sizes, {"heads": 2, "n": 5, "d": 32}) == "same"


@pytest.mark.parametrize(
    ("d", "block", "asked"),
    [
        (32, "min(d, 32)", "d >= 32"),
        (70, "min(32, 2 * d)", "2 * d >= 32"),
        (31, "min(d, 32)", "d == 31"),
        (31, "max(d, 31)", "d == 31"),
    ],
)
def test_a_block_of_at_most_so_many_threads_has_a_number_of_them(
    d: int, block: str, asked: str
) -> None:
    text = f"""
#pragma optiml launch k grid(rows) block({block})
__global__ void k(const int* a, int* out, int rows, int d) {{
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        out[blockIdx.x * d + i] = a[blockIdx.x * d + i] + 1;
}}"""
    launch = LaunchFacts("k", 1, (3, 1, 1), (min(d, 32), 1, 1), {}, {"rows": 3, "d": d})
    made = block_sized(kernel_of(text, Facts((launch,), {}, 1e-5, 1e-8, "h200")))
    assert isinstance(made, Kernel)
    assert made.block == (min(d, 32), 1, 1)
    assert f"#pragma optiml require {asked}" in made.program.text.replace("(", "").replace(")", "")
    arrays = {"a": Array("i4", ("rows", "d")), "out": Array("i4", ("rows", "d"), "zeros")}
    sizes = {"rows": 3, "d": d}
    assert end_of(text, made.program.text, arrays, sizes, {"rows": 1, "d": d}) == "same"
