"""Blocks that combine what their threads found: other widths where that is certainly the same."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.cooperating import cooperation
from optiml_magic.kernels.primitives.cutting import cut, tuned
from tests.present import SOAK
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

SUMS = """\
#pragma optiml launch sums grid(h) block(64)
__global__ void sums(const float* a, float* o, int h, int w) {
    __shared__ float part[64];
    int t = threadIdx.x, row = blockIdx.x;
    float sum = 0.0f;
    for (int i = t; i < w; i += 64) sum += a[row * w + i];
    part[t] = sum;
    __syncthreads();
    for (int d = 32; d > 0; d /= 2) {
        if (t < d) part[t] += part[t + d];
        __syncthreads();
    }
    if (t == 0) o[row] = part[0];
}
"""
#: Least and greatest first, then what is left over of each element, in place.
SPREAD = """\
#pragma optiml launch spread grid(h) block(64)
__global__ void spread(float* o, const float* a, int h, int w) {
    __shared__ float part[64];
    __shared__ float mean;
    const int width = blockDim.x;
    float most = a[blockIdx.x * w];
    for (int i = threadIdx.x; i < w; i = i + width) {
        float v = a[blockIdx.x * w + i];
        most = fmaxf(most, v);
    }
    part[threadIdx.x] = most;
    __syncthreads();
    for (unsigned d = width >> 1; d; d >>= 1) {
        if (d > threadIdx.x) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + d]);
        __syncthreads();
    }
    most = part[0];
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < w; i += blockDim.x) {
        o[blockIdx.x * w + i] = a[blockIdx.x * w + i] - most;
        sum += o[blockIdx.x * w + i];
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d /= 2) {
        if (threadIdx.x < d) part[threadIdx.x] += part[d + threadIdx.x];
        __syncthreads();
    }
    if (!threadIdx.x) {
        float whole = part[0];
        mean = whole / w;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < w; i += blockDim.x) o[blockIdx.x * w + i] -= mean;
}
"""
ALL = """\
#pragma optiml init(o) = 0
#pragma optiml launch total grid(2) block(64)
__global__ void total(const int* a, int* o, int n) {
    __shared__ int part[128];
    int sum = 0;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 64 * gridDim.x) sum += a[i];
    part[threadIdx.x] = sum;
    for (int d = 64 / 2; d >= 1; d = d >> 1) {
        __syncthreads();
        if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    }
    if (threadIdx.x == 0) atomicAdd(&o[0], part[0]);
}
"""
ROWS = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h",), "zeros")}
PLANE = {"o": Array("f4", ("h", "w"), "zeros"), "a": Array("f4", ("h", "w"))}
LINE = {"a": Array("i4", ("n",)), "o": Array("i4", ("1",), "zeros")}


def test_what_stands_for_the_width_follows_it() -> None:
    after = written(tuned(kernel_of(SUMS), {"x": (32, 128)}))
    assert "tune BLOCK in {32, 64, 128} = 64" in after
    assert "grid(h) block(BLOCK)" in after
    assert "part[BLOCK]" in after
    assert "i += blockDim.x)" in after
    assert "int d = blockDim.x / 2;" in after
    assert "64" not in after.partition("block(BLOCK)")[2]
    for width in (32, 128) if SOAK else (128,):
        other = kernel_of(after).program.with_values({"BLOCK": width}).text
        assert end_of(SUMS, other, ROWS, {"h": 3, "w": 150}, {"h": 2, "w": 7}) == "same"


def test_several_reductions_and_what_all_threads_make_of_them() -> None:
    after = written(cut(kernel_of(SPREAD), {"x": 32}))
    end = end_of(SPREAD, after, PLANE, {"h": 3, "w": 150}, {"h": 2, "w": 7}, rounds=True)
    assert end == "same"
    assert cooperation(kernel_of(SPREAD)).rounds


def test_blocks_that_share_a_sum() -> None:
    after = written(cut(kernel_of(ALL), {"x": 128}))
    assert "grid(2) block(128)" in after
    assert "part[128]" in after
    assert "i += blockDim.x * gridDim.x" in after.replace("(int)(", "").replace(
        "gridDim.x)", "gridDim.x"
    )
    assert end_of(ALL, after, LINE, {"n": 500}, {"n": 5}) == "same"
    assert "256 threads along x are not certain" in refused(cut(kernel_of(ALL), {"x": 256}))
    assert not cooperation(kernel_of(ALL)).rounds
    assert cooperation(kernel_of(ALL.replace("int* ", "float* ").replace("int part", "float part").replace("int sum", "float sum"))).rounds  # fmt: skip


LOOP = "for (int i = t; i < w; i += 64) sum += a[row * w + i];"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("sum = 0.0f", "sum = 1.0f", "`sum` does not begin with nothing"),
        ("sum = 0.0f;", "sum = 0.0f;\n    for (int r = 0; r < 2; ++r, sum += 1.0f) {}", "changes something"),
        ("sum = 0.0f", "sum = a[row]", "`sum` does not begin with nothing"),
        ("i = t;", "i = t + 1;", "`t` differs from thread to thread"),
        ("float sum = 0.0f", "int sum = 0", "`sum` goes from round to round"),
        ("i += 64", "i += 32", "the rounds that its threads share are not read"),
        ("i < w", "i < w && i < t", "its test has more in it than a bound"),
        ("i < w", "i < 4 * t", "`t` differs from thread to thread"),
        ("sum += a", "sum += t * a", "`t` differs from thread to thread"),
        ("sum += a", "sum = 2 * sum + a", "`sum` goes from round to round"),
        ("sum += a[row * w + i];", "{ sum += a[row * w + i]; if (sum > 9) break; }", ""),
        ("sum += a[row * w + i];", "{ sum += a[row * w + i]; __syncthreads(); }", "wait in rounds"),
        ("sum += a[row * w + i];", "o[i + h] = sum;", "is not followed"),
        (LOOP, LOOP + "\n    sum += 1.0f;", "is not followed"),
        (LOOP, f"if (w > 3) {LOOP}", "is not followed"),
        (LOOP, LOOP + LOOP.replace("sum += a", "o[h + i / 2] = a"), "its rounds meet in memory"),
        (LOOP, LOOP + "\n    for (int i = t; i < w; i += 64) o[h + i] = i;\n    for (int i = t; i < w; i += 64) sum += o[h + 64 + i];", "its rounds meet"),
        (LOOP, LOOP + "\n    for (int i = t; i < w; i += 64) sum += o[i];", "shared rounds meet"),
        (LOOP, LOOP + "\n    sum = sum * 2.0f;", "`sum` differs from thread to thread"),
        (LOOP, LOOP + LOOP.replace("sum +=", "more += sum *").replace("for", "float more = 0;\n    for"), "`sum` differs"),
        ("part[t] = sum", "part[63 - t] = sum", "is not followed"),
        ("part[t] = sum", "part[t] = sum + t", "is not followed"),
        ("part[64]", "part[32]", "has not an element a thread"),
        ("part[64]", "part[64][1]", "has not an element a thread"),
        ("d = 32", "d = 16", ""),
        ("d > 0", "d > 1", ""),
        ("d /= 2", "d /= 4", ""),
        ("t < d", "t <= d", ""),
        ("part[t + d]", "part[t + d - 1]", ""),
        ("part[t] += part[t + d]", "part[t] = fmaxf(part[t], part[t + d])", "is not all of it"),
        ("part[t] +=", "part[t] -=", ""),
        ("part[t] += part[t + d]", "part[t] = part[t] - part[t + d]", ""),
        ("part[t] += part[t + d]", "part[t] = umax(part[t], part[t + d])", "`umax` converts numbers"),
        ("        __syncthreads();\n", "", ""),
        ("t == 0", "t == 63", "`t` differs"),
        ("t == 0", "t < 1", "`t` differs"),
        ("= part[0]", "= __syncthreads_count(1)", "counts threads"),
        ("= part[0]", "= part[1]", "which element of `part`"),
        ("o[row] = part[0]", "o[row] = blockDim.x * part[0]", "where in its block it stands"),
        ("o[row] = part[0]", "o[row] = part[0], o[h] = 64", ""),
        ("if (t == 0) ", "", "is not followed"),
        ("if (t == 0)", "if (t == 0) o[row] = 1; else", "another way"),
        ("    __syncthreads();\n    for", "    __syncwarp();\n    for", "threads of a warp wait"),
        ("float part", "volatile float part", "which threads are one warp"),
        ("float part", "double part", "rounded on the way"),
        ("block(64)", "block(48)", "not a power of two"),
        ("block(64)", "block(64, 1, 2)", "not a power of two"),
    ],
)  # fmt: skip
def test_refused(old: str, new: str, reason: str) -> None:
    assert old in SUMS
    with pytest.raises(NotLegal) as told:
        cooperation(kernel_of(SUMS.replace(old, new)))
    assert reason in told.value.reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("atomicAdd(&o[0], part[0])", "o[blockIdx.x] = part[0]", "`part`"),
        ("atomicAdd(&o[0], part[0])", "atomicAdd(&o[blockIdx.x], part[0])", "which one it is"),
        ("atomicAdd(&o[0], part[0])", "atomicAdd(&o[0], 2 * part[0])", "`part`"),
        ("atomicAdd(&o[0], part[0])", "atomicMax(&o[0], part[0])", "`atomicMax`"),
        ("atomicAdd(&o[0], part[0])", "o[0] += part[0]", "`part`"),
        ("64 * gridDim.x", "128 * gridDim.x", "that blocks share"),
        ("sum += a[i]", "sum += a[i] * blockIdx.x", "which one it is"),
        ("int part", "long long part", "is rounded on the way"),
    ],
)
def test_blocks_that_share_are_refused(old: str, new: str, reason: str) -> None:
    assert old in ALL
    with pytest.raises(NotLegal) as told:
        cooperation(kernel_of(ALL.replace(old, new)))
    assert reason in told.value.reason


def test_extremes_are_compared_as_what_they_are() -> None:
    most = ALL.replace("sum += a[i]", "sum = max(sum, a[i])").replace("int sum", "unsigned sum")
    with pytest.raises(NotLegal, match="`sum` is compared as another type"):
        cooperation(kernel_of(most))


def test_what_a_loop_leaves_behind_is_what_its_next_round_begins_with() -> None:
    around = SUMS.replace("    float sum", "    for (int r = 0; r < 2; ++r) {\n    float sum", 1)
    inside = around.replace("o[row] = part[0];", "o[row] = part[0];\n    __syncthreads();\n    }")
    assert cooperation(kernel_of(inside)).extents
    early = inside.replace("float sum = 0.0f;", "float old = part[0];\n    float sum = old * 0;")
    with pytest.raises(NotLegal, match="part"):
        cooperation(kernel_of(early))
    kept = inside.replace("    float sum = 0.0f;\n", "").replace(
        "int t =", "float sum = 0.0f;\n    int t ="
    )
    with pytest.raises(NotLegal, match="begin with nothing"):
        cooperation(kernel_of(kept))
