"""Items whose rounds begin or end at themselves, several a thread: those beside the diagonal."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.bunched import Bunch, bunched
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.rectangular import all_rectangular
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, written

PAIRS = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, const float* y, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    int count = 0;
    for (int j = i + 1; j < n; ++j) {
        float d = x[i] - x[j];
        if (d > y[j]) { sum += d * y[i]; count++; }
    }
    out[i] = sum + count;
}
"""
_LOOP = "int j = i + 1; j < n; ++j"
ARRAYS = {"x": Array("f4", ("n",)), "y": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
HEADS = {
    _LOOP: "j = j_all; j < j_end",
    "int j = i; j < n; j++": "j = j_all; j < j_end",
    "int j = 0; j < i; ++j": "j = (int)(0); j < j_least",
    "int j = 0; j <= i; ++j": "j = (int)(0); j < j_least",
    "unsigned j = i + 3; j < n; ++j": "j = j_all; j < j_end",
    "long long j = 0; j < i + 1; ++j": "j = (long long)(0); j < j_least",
}


def taken(text: str, items: int = 4) -> str:
    made = bunched(all_rectangular(kernel_of(text)), Bunch(items, 32))
    return written(made)


@pytest.mark.parametrize("head", HEADS)
def test_rounds_beside_the_diagonal_are_tested_and_no_others(head: str) -> None:
    text = PAIRS.replace(_LOOP, head)
    after = taken(text)
    begins, behind = after.split(HEADS[head])
    assert "if (j" not in behind.split("float d")[0]
    assert "j < j_all" in begins + behind
    assert "if (j" in begins + behind
    for sizes in ({"n": 300, "m": 0}, {"n": 129, "m": 0}, {"n": 5, "m": 0}):
        assert end_of(text, after, ARRAYS, sizes, {"n": 33, "m": 1}) == "same"


@pytest.mark.parametrize("head", [_LOOP, "int j = 0; j < i; ++j"])
def test_blocks_that_share_the_rounds_have_those_of_their_part(head: str) -> None:
    text = PAIRS.replace(_LOOP, head)
    parts = chunk(all_rectangular(kernel_of(text)), 0, 3, (1, 3))
    assert isinstance(parts, Kernel), parts
    after = written(bunched(front(parts), Bunch(2, 32)))
    assert "j_round_all" in after
    assert end_of(text, after, ARRAYS, {"n": 300, "m": 0}, {"n": 70, "m": 0}, rounds=True) == "same"


@pytest.mark.parametrize(
    "head",
    ["int j = 2 * i; j < n; ++j", "int j = 0; j < n; ++j", "int j = n - 1 - i; j < n; ++j"],
)
def test_other_rounds_stay_one_loop(head: str) -> None:
    after = taken(PAIRS.replace(_LOOP, head))
    assert after.count(" j = ") == 1
    sizes = {"n": 70, "m": 0}
    assert end_of(PAIRS.replace(_LOOP, head), after, ARRAYS, sizes, {"n": 33, "m": 1}) == "same"


TWICE = """\
    for (int j = 0; j < i; ++j) if (x[j] > x[i]) count++;
    for (int j = i + 1; j < n; ++j) if (x[j] > x[i]) count += 2;
"""
TABLED = """\
    float c[3] = {}, d{};
    for (int j = 0; j < i; ++j) { c[j % 3] += x[j]; d += 1.0f; }
    sum = c[0] - c[1] * 2 + d;
"""
MOVING = """\
    for (int j = 0; j < n; ++j) { float q = (sum += 1); if (j > i) { count += q > y[j] * 90; } }
"""


@pytest.mark.parametrize("body", [TWICE, TABLED, MOVING])
def test_what_stands_around_such_rounds_stays_what_it_is(body: str) -> None:
    before, rest = PAIRS.split("    for (int j")
    text = before + body + "    out[i]" + rest.split("    out[i]")[1]
    after = taken(text)
    assert ("j_least" in after) == (body is not MOVING)
    for n in (300, 5):
        assert end_of(text, after, ARRAYS, {"n": n, "m": 0}, {"n": 33, "m": 1}) == "same"
