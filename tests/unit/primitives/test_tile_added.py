"""Products of which each output is added to one place."""

from __future__ import annotations

import pytest

from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of

TEXT = """\
#pragma optiml launch k grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const float* x, const float* y, float* c, float* total, int* count, int n, int m, int d) {
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i < n && j < m) {
        float s = 0.0f;
        for (int k = 0; k < d; ++k) s += x[i * d + k] * y[k * m + j];
        END
    }
}
"""
ARRAYS = {
    "x": Array("f4", ("n * d",)), "y": Array("f4", ("d * m",)), "c": Array("f4", ("n * m",)),
    "total": Array("f4", ("n + 2",)), "count": Array("i4", ("2",)),
}  # fmt: skip
SIZES = {"n": 19, "m": 33, "d": 20}, {"n": 2, "m": 3, "d": 5}


def programs(end: str) -> list[str]:
    ideas, _ = asked(BlockedProduct(), TEXT.replace("END", end))
    return [p.text for p in made(ideas)]


@pytest.mark.parametrize(
    ("end", "times"),
    [
        ("atomicAdd(total, s > 0.5f ? s : 0.0f);", 1),
        ("c[i * m + j] = s; atomicAdd(&total[1], s);", 1),
        ("if (s > 0.0f) { atomicAdd(count + 1, 1); atomicAdd(&total[0], 2.0f * s); }", 2),
    ],
)
def test_each_warp_adds_once(end: str, times: int) -> None:
    found = programs(end)
    assert found
    for text in found:
        assert text.count("if (threadIdx.x % 32 == 0) atomicAdd(") == times
        before = TEXT.replace("END", end)
        assert end_of(before, text, ARRAYS, *SIZES, rounds=True) == "same"


@pytest.mark.parametrize(
    "end",
    [
        "atomicAdd(&total[i], s);", "atomicMax(count, (int)s);", "c[(int)atomicAdd(total, s)] = s;",
        "c[i * m + j] = s + x[0]; atomicAdd(&total[count[0] & 1], s);",
        "int at = j; atomicAdd(&total[at % 2], s);",
    ],
)  # fmt: skip
def test_other_atomic_operations_are_refused(end: str) -> None:
    assert not programs(end)
