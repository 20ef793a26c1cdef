"""Short local arrays as a local for each element, so that rounds may hand them on."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.by_element import by_element
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = (
    "#define N 2\n#pragma optiml launch k grid(cdiv(h, 32)) block(32)\n"
    "__global__ void k(const float* a, float* out, int h, int w) {{\n"
    "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n    if (r >= h) return;\n"
    "    {start}\n    for (int c = 0; c < w; ++c) {{\n        float x = a[r * w + c];\n"
    "        {body}\n        out[r * w + c] = x;\n    }}\n}}\n"
)
BEGUN = "float z[N]; for (int i = 0; i < N; ++i) z[i] = 0.1f * i;"
CHAIN = "for (int i = 0; i < N; ++i) { z[i] = 0.5f * x - 0.25f * z[i]; x = z[i]; }"


def text(body: str = CHAIN, start: str = BEGUN) -> str:
    return TEXT.format(start=start, body=body)


def end(before: str, made: Kernel | Refused) -> str:
    arrays = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")}
    return end_of(before, written(made), arrays, {"h": 5, "w": 77}, {"h": 3, "w": 8})


@pytest.mark.parametrize(
    ("body", "start"),
    [
        (CHAIN, BEGUN),
        (CHAIN, "float z[2] = {};"),
        ("float q[2], p = z[1], t[1] = {z[0] + p}; q[0] = x; q[1] = p; x = q[1] + t[0]; z[0] = q[0];",
         "float z[2] = {}, u = 3;"),
        (CHAIN, "float z[4] = {1, 2};"),
        (CHAIN, "float z[2] = {5};"),
        (CHAIN, "float z[2] = {0.5f * r};"),
        (CHAIN.replace("++i", "i += 1").replace("0; i < N", "1; i < 1 + N"), "float z[3] = {};"),
        ("for (int i = 2; i > 0; --i) z[i] = z[i - 1] + 1; z[0] = x; x = z[2];", "float z[3] = {};"),
        ("for (int i = 0; i < 2; ++i) for (int j = 0; j < 2; ++j) z[i * 2 + j] += x; x = z[3];",
         "float z[4] = {};"),
        ("float q[2] = {x, 1}; x = q[0] + q[1] * z[0]; z[0] = q[0];", "float z[1] = {0};"),
        ("for (unsigned i = 0; i < 2; ++i) z[i] += (i - 1) / 2 * x; x = z[0];", "float z[2] = {};"),
        ("for (long long i = 0; i < 2; ++i) z[i] += (i << 33 >> 32) * x; x = z[1];",
         "float z[2] = {};"),
        ("for (signed char i = -1; i < 1; ++i) z[i + 1] -= -i * x - -i; x = z[0];",
         "float z[2] = {};"),
        ("for (int i = -1; i < 1; ++i) z[-i] -= -i * x - -i; x = z[1];", "float z[2] = {};"),
        ("double q = z[0]; { float z = x; x = z + q; } z[0] = x;", "float z[1] = {0};"),
    ],
)  # fmt: skip
def test_arrays_become_locals(body: str, start: str) -> None:
    before = text(body, start)
    made = by_element(kernel_of(before))
    assert "z[" not in written(made)
    assert end(before, made) == "same"


@pytest.mark.parametrize(
    ("body", "start"),
    [
        ("x = z[c % 2]; z[0] = x;", "float z[2] = {};"),
        ("float* p = z; p[0] = x;", "float z[2] = {};"),
        ("float* p = &z[0]; p[1] = x; x = z[1];", "float z[2] = {};"),
        ("z[0] = x; x = reinterpret_cast<float2*>(&z[0])->y;", "float z[2] = {};"),
        ("z[0] = x; for (int i = 0; i < w; ++i) z[i % 2] += x;", "float z[2] = {};"),
        ("for (int i = 0; i < 9; ++i) z[i] = x;", "float z[9];"),
        ("for (int i = 0; i < 2; ++i) { if (x > 0) break; z[i] = x; }", "float z[2] = {};"),
        ("for (int i = 0; i < 2; ++i) { z[i] = x; i += x > 0; }", "float z[3] = {};"),
        (
            "for (int i = 0; i < 2; ++i) { z[i] = x; if (x > 1) continue; x = 0; }",
            "float z[2] = {};",
        ),
        ("z[0][1] = x;", "float z[2][2];"),
        ("z[0] = x;", "volatile float z[2];"),
        ("z[0] = x;", "__shared__ float z[2];"),
        ("z[0] = x; x = sizeof(z);", "float z[2];"),
    ],
)
def test_arrays_that_are_asked_for_otherwise_stay(body: str, start: str) -> None:
    made = by_element(kernel_of(text(body, start)))
    assert isinstance(made, Refused)
    assert "element" in refused(made)


def test_lanes_hand_on_a_chain_of_filters() -> None:
    ideas, _ = asked(RowToLanes(), text())
    made = next(i for i in ideas if "lanes of a warp share" in i.title).make()
    assert "lanes_before_" in str(made)
