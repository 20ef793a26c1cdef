"""Items near a border that are taken together: which tests stay, and where."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.hoisted import hoisted
from optiml_magic.kernels.primitives.jammed import Several, jam
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

POOL = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4), c) block(8, 4)
__global__ void k(const float* a, const float* f, float* o, int w, int h, int c, int n, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    %s
    o[(blockIdx.z * h + y) * w + x] = s;
}
"""
TAP = "f[blockIdx.z * 64 + i * 3 + j]"
NEAR = "int v = y + i - 1, u = x + j - 1;"
LOOPS = "for (int i = 0; i < %d; ++i) for (int j = 0; j < %d; ++j) {\n%s\n}"
INSIDE = "if (v >= 0 && v < m && u >= 0 && u < n)"
ARRAYS = {
    "a": Array("f4", ("m", "n")), "f": Array("f4", ("c", "64")),
    "o": Array("f4", ("c", "h", "w"), "zeros"),
}  # fmt: skip


def sizes(w: int, h: int, by: int = 1) -> dict[str, int]:
    return {"w": w, "h": h, "c": 3, "n": w * by, "m": h * by}


def padded(body: str, **counts: tuple[int, ...]) -> Kernel | Refused:
    several = Several({"x": (4, 8), **counts}, padded=True)
    return jam(where_legal(hoisted, kernel_of(POOL % body)), several)


@pytest.mark.parametrize(
    ("body", "by"),
    [
        (LOOPS % (3, 3, f"{NEAR} {INSIDE} s += a[v * n + u];"), 1),
        (LOOPS % (5, 7, f"int v = y + i - 2, u = x + j - 3; {INSIDE} s += a[v * n + u];"), 1),
        (LOOPS % (3, 3, f"int v = 2 * y + i - 1, u = 2 * x + j - 1; {INSIDE} s += a[v * n + u];"), 2),
        (LOOPS % (3, 3, f"{NEAR} {INSIDE} s += a[v * n + u] * {TAP};"), 1),
        ("s = a[y * n + x]; if (x > 0) s -= a[y * n + x - 1]; if (x < n - 1) s += a[y * n + x + 1];",
         1),
    ],
)  # fmt: skip
def test_an_item_at_a_border_is_taken_with_those_beside_it(body: str, by: int) -> None:
    text = written(padded(body))
    together = text[text.index("if (inside)") : text.rindex("if (edges)")]
    assert "if (0 < x_first" in together  # whether there is one before the first
    inside = next(line for line in text.splitlines() if "bool inside" in line)
    assert "y > 0" not in inside
    for shape in ((16, 5), (32, 9), (4, 1), (13, 4)):
        end = end_of(POOL % body, text, ARRAYS, sizes(*shape, by), sizes(8, 3, by))
        assert end in ("same", "narrowed"), end


def test_what_all_items_test_alike_stands_around_what_they_load() -> None:
    body = LOOPS % (3, 3, f"{NEAR} {INSIDE} s += a[v * n + u] * {TAP};")
    text = written(padded(body, z=(2, 4)))
    together = text[text.index("if (inside)") : text.rindex("if (edges)")]
    assert together.index("if (v >= 0 && v < m) {") < together.index("float4")
    assert "a_row[ITEMS_X + 8]" in together  # one for all items along z
    assert "j + x_item - 1 >= 0 && j + x_item - 1 < ITEMS_X) || u >= 0 && u < n" in together
    shapes = sizes(16, 5), sizes(20, 3)
    assert end_of(POOL % body, text, ARRAYS, *shapes) == "same"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("s = a[y * n + x];", "no test of a border stays"),
        ("if (x > 0) s += a[y * n + x - 1];", "not every element of a vector is loaded of `a`"),
        (LOOPS % (3, 3, "int u = x + j - 1; if (u >= 0 && 2 * x < n) s += a[y * n + u];"),
         "a test is not of where its element is in a row"),
        ("if (f[x] > 0.0f) for (int j = 0; j < 3; ++j) if (x + j >= 1 && x + j <= n) s += a[x + j - 1];",
         "not every item loads its elements of `a` anew"),
    ],
)  # fmt: skip
def test_windows_whose_elements_may_be_absent_are_refused(body: str, reason: str) -> None:
    assert reason in refused(padded(body))
