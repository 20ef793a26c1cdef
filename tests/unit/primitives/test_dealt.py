"""Rounds that only update, or store apart, which several blocks share."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.counters import private
from optiml_magic.kernels.primitives.dealt import dealt
from optiml_magic.kernels.primitives.endings import enclosed
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

COUNTS = (1, 2, 3, 8)
TEXT = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, const int* c, int* out, float* y, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""
ARRAYS = {
    "x": Array("f4", ("n",)), "c": Array("i4", ("n + m",), "positive"),
    "out": Array("i4", ("20",), "zeros"), "y": Array("f4", ("n", "m"), "zeros"),
}  # fmt: skip


def made(body: str, at: int = 0) -> Kernel | Refused:
    kernel = where_legal(all_counted, kernel_of(TEXT % body), (at,))
    return dealt(where_legal(enclosed, kernel), at, 3, COUNTS)


@pytest.mark.parametrize(
    "body",
    sampled([
        "for (int j = i + 1; j < n; j++) if (c[i] < c[j]) atomicAdd(&out[c[j] % 20], 2);",
        "for (int j = 0; j < m; j++) { if (j == i) continue; atomicMax(&out[j % 7], c[i + j]); }",
        "for (int j = m - 1; j >= 0; --j) atomicSub(out + c[i + j] % 9, c[j]);",
        "for (int j = i % 3; j < m; j += 2) atomicXor(&out[(c[i] + c[j]) % 20], j);",
        "for (long long j = -2; j < m - 2; j++) atomicAdd(&out[c[i + j + 2] % 20], (int)j);",
        "int j = 0; while (j < m) { atomicAdd(&out[c[j] % 20], c[i]); j++; }",
        "for (int j = 0; j < m; j++) { y[i * m + j] = x[i] * j; atomicAdd(&out[c[j] % 5], 1); }",
        "for (int a = 0; a < 3; a++) for (int b = 0; b < m; b++) atomicAdd(&out[(a + b) % 20], 1);",
        "if (c[i] < 9) { for (int j = 0; j < m; ++j) atomicAdd(&out[c[j] % 20], 1); } else y[i] = 3;",
        "if (c[i] % 2) return;\nint k = c[i] % 20;\nfor (int j = 0; j < m; ++j) atomicAdd(&out[k], j);",
    ], 3),
)  # fmt: skip
def test_blocks_share_rounds(body: str) -> None:
    after = made(body)
    assert "PARTS" in written(after)
    end = end_of(TEXT % body, written(after), ARRAYS, {"n": 70, "m": 41}, {"n": 33, "m": 2})
    assert end == "same"


def test_each_block_has_copies_of_its_own() -> None:
    body = "for (int j = i + 1; j < n; j++) atomicAdd(&out[(c[i] + c[j]) % 30], 1);"
    body = body.replace("% 30", "% 20")
    after = made(body)
    assert isinstance(after, Kernel)
    counted = written(private(after, [("out", 16)], 2))
    assert "out_own" in counted
    assert end_of(TEXT % body, counted, ARRAYS, {"n": 70, "m": 3}, {"n": 1, "m": 1}) == "same"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for (int j = 0; j < m; ++j) atomicExch(&out[i % 20], j);", "do not only add up"),
        ("for (int j = 0; j < m; ++j) if (out[i % 20] < 5) atomicAdd(&out[i % 20], 1);",
         "do not only add up"),
        ("for (int j = 0; j < m; ++j) { int k = atomicAdd(&out[0], 1); y[k % 3] = j; }",
         "two rounds may store"),
        ("for (int j = 0; j < m; ++j) { atomicAdd(&out[i % 20], 1); atomicMax(&out[j % 20], j); }",
         "do not only add up"),
        ("int s = 0; for (int j = 0; j < m; ++j) { s += c[j]; atomicAdd(&out[s % 20], 1); }",
         "`s` goes from round to round"),
        ("int s = 0; for (int j = 0; j < m; ++j) { s += c[j]; atomicAdd(out, 1); } y[i * m] = s;",
         "its rounds add up"),
        ("for (int j = 0; j < m; ++j) { if (c[j] > 7) break; atomicAdd(&out[j % 20], 1); }",
         "another way out"),
        ("for (int j = 0; j < m; ++j) { if (c[j] > 7) return; atomicAdd(&out[j % 20], 1); }",
         "another way out"),
        ("atomicAdd(&out[1], c[i]); for (int j = 0; j < m; ++j) atomicAdd(&out[j % 20], 1);",
         "around the loop meets"),
        ("y[i * m] = c[i]; for (int j = 0; j < m; ++j) atomicAdd(&out[(int)y[i * m] % 20], 1);",
         "around the loop meets"),
        ("for (int j = 0; j < m; ++j) { y[i * m] = j; atomicAdd(&out[j % 20], 1); }",
         "two rounds may store"),
    ],
)  # fmt: skip
def test_what_rounds_need_of_each_other(body: str, reason: str) -> None:
    assert reason in refused(made(body))


def test_a_loop_inside_another_stays() -> None:
    body = "for (int a = 0; a < 3; a++) for (int b = 0; b < m; b++) atomicAdd(&out[b % 20], 1);"
    assert "inside another" in refused(made(body, 1))
