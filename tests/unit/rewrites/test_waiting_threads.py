"""Threads that wait for each other, and go along rows of their own in between; blocks by a size."""

from __future__ import annotations

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
