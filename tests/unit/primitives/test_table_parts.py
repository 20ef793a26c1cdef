"""The part of a table that a block needs, in its shared memory."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Refused
from optiml_magic.kernels.primitives.persistent import Stride, persistent
from optiml_magic.kernels.primitives.table_parts import parted, table_parts

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64), m) block(64)
__global__ void k(const float* t, const unsigned char* q, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int z = blockIdx.y;
    const float* own = t + z * 48;
    if (i >= n) return;
    float s = 0;
    %s
    out[z * n + i] = s;
}
"""
LOADS = [
    "for (int k = 0; k < 3; ++k) s += own[k * 16 + (q[i * 3 + k] & 15)];",
    "for (int k = 0; k < 3; ++k) s += t[z * 48 + k * 16 + q[i * 3 + k] % 16];",
    "s = own[q[3 * i] & 31] - *(own + 16 + (q[3 * i + 1] >> 3));",
    "s = (q[i] & 1) ? own[2 + (q[3 * i] & 31)] : t[blockIdx.y * 48];",
]
SHAPES = {"t": ("m", "48"), "q": ("u1", "n", "3"), "out": ("m", "n")}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("sizes", [{"n": 71, "m": 3}, {"n": 1, "m": 1}])
def test_it_does_the_same(load: str, sizes: dict[str, int]) -> None:
    text = TEXT % load
    made = parted(kernel(text), ["t"])
    assert "t_table[&" in applied(made).program.text
    same(text, made, SHAPES, sizes)
    few = applied(persistent(kernel(text), Stride(2, 32, (1, 2), (32,), 1, (1,))))
    same(text, parted(few, ["t"]), SHAPES, sizes)


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        ("s = own[q[i] * n];", "how far apart"),
        ("s = own[(int)out[i]];", "how far apart"),
        ("s = own[q[i]] + t[q[i]];", "several parts"),
        ("s = t[z * 48 - 1 + q[i]];", "begins before"),
        ("s = own[(q[i] << 8) + q[i + 1]];", "does not fit"),
    ],
)
def test_refused(load: str, reason: str) -> None:
    assert reason in refused(parted(kernel(TEXT % load), ["t"]))[0]


def test_blocks_with_parts_of_their_own_are_left_alone() -> None:
    (found,) = table_parts(kernel(TEXT % "s = t[i * 48 + q[i]];"))
    assert isinstance(found, Refused)
    assert "a part of its own" in found.reason
