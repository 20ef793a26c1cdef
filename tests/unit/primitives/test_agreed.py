"""Tiles of which each part is brought with the border that it alone has, loaded where they are read."""

from __future__ import annotations

import re

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.one_load import one_load
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.unstaged import unstaged
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import kernel_of, refused, unchanged, written

LINE = """\
#pragma optiml require n %% 32 == 0
#pragma optiml launch k grid(n / 32, m) block(32)
__global__ void k(const float* a, float* out, int n, int m) {
    __shared__ float s[38];
    const int t = threadIdx.x, i = blockIdx.x * 32 + t, row = blockIdx.y * n;
    %s
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 7; ++k) sum += (k + 1) * s[t + k];
    out[row + i] = sum;
}
"""
PLANE = """\
#pragma optiml require w %% 8 == 0
#pragma optiml require h %% 8 == 0
#pragma optiml launch k grid(w / 8, h / 8) block(8, 8)
__global__ void k(const float* a, float* out, int w, int h) {
    __shared__ float s[10][10];
    const int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    s[ty][tx] = a[y * w + x];
    %s
    __syncthreads();
    out[y * w + x] = %s;
}
"""
CROSS = "s[ty][tx - 1] + 2 * s[ty][tx + 1] + 3 * s[ty - 1][tx] + 4 * s[ty + 1][tx] + s[ty][tx]"
SQUARE = "s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty - 1][tx + 1] + 2 * s[ty + 1][tx - 1] + 3 * s[ty - 1][tx - 1] + 4 * s[ty + 1][tx + 1]"  # fmt: skip
ARRAYS = {"a": Array("f4", ("m", "n")), "out": Array("f4", ("m", "n"), "zeros")}
PLANES = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")}


def line(middle: str, left: str, right: str) -> str:
    """A row with three elements of its neighbours on either side."""
    ends = f"if (t < 3) {{ s[t] = {left}; s[t + 35] = {right}; }}"
    return LINE % f"s[t + 3] = {middle};\n    {ends}"


@pytest.mark.parametrize(
    ("middle", "left", "right"),
    sampled([
        ("a[row + i]", "a[row + max(i - 3, 0)]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "a[row + (i < 3 ? 0 : i - 3)]", "a[row + (i + 32 >= n ? n - 1 : i + 32)]"),
        ("a[row + i]", "a[row + (i - 3 + n) % n]", "a[row + (i + 32) % n]"),
        ("a[row + i]", "a[row + (i < 3 ? i - 3 + n : i - 3)]", "a[row + (i + 32 < n ? i + 32 : i + 32 - n)]"),
        ("a[row + i]", "a[row + (i < 3 ? i - 3 + n : i - 3)]", "a[row + (i + 32) % n]"),
        ("a[row + i]", "a[row + abs(i - 3)]", "a[row + (i + 32 < n ? i + 32 : 2 * n - 34 - i)]"),
        ("a[row + i]", "a[row + abs(i - 3)]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "i < 3 ? 0.0f : a[row + i - 3]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "a[row + max(i - 3, 0)]", "i + 32 < n ? a[row + i + 32] : 0.0f"),
        ("a[row + i] * 2.0f", "a[row + max(i - 3, 0)] * 2.0f", "a[row + min(i + 32, n - 1)] * 2.0f"),
        ("a[row + i] - a[i]", "a[row + max(i - 3, 0)] - a[max(i - 3, 0)]",
         "a[row + min(i + 32, n - 1)] - a[min(i + 32, n - 1)]"),
        ("a[row + n - 1 - i]", "a[row + n - 1 - max(i - 3, 0)]", "a[row + n - 1 - min(i + 32, n - 1)]"),
    ], 2),
)  # fmt: skip
def test_parts_with_borders_of_their_own_are_loaded_with_all_of_them(
    middle: str, left: str, right: str
) -> None:
    text = line(middle, left, right)
    made = written(unstaged(kernel_of(text)))
    assert "__shared__" not in made
    assert unchanged(text, made, ARRAYS, {"n": 96, "m": 3}, {"n": 32, "m": 1}) == "same"


@pytest.mark.parametrize(
    ("ends", "read"),
    sampled([
        ("""if (tx == 1) s[ty][0] = a[y * w + (x == 0 ? w - 1 : x - 1)];
    if (tx == 8) s[ty][9] = a[y * w + (x == w - 1 ? 0 : x + 1)];
    if (ty == 1) s[0][tx] = a[(y == 0 ? h - 1 : y - 1) * w + x];
    if (ty == 8) s[9][tx] = a[(y == h - 1 ? 0 : y + 1) * w + x];""", CROSS),
        ("""if (tx == 1) s[ty][0] = a[y * w + max(x - 1, 0)];
    if (tx == 8) s[ty][9] = a[y * w + min(x + 1, w - 1)];
    if (ty == 1) s[0][tx] = a[max(y - 1, 0) * w + x];
    if (ty == 8) s[9][tx] = a[min(y + 1, h - 1) * w + x];""", CROSS),
        ("""const int l = max(x - 1, 0), r = min(x + 1, w - 1), u = max(y - 1, 0), d = min(y + 1, h - 1);
    if (tx == 1) s[ty][0] = a[y * w + l];
    if (tx == 8) s[ty][9] = a[y * w + r];
    if (ty == 1) s[0][tx] = a[u * w + x];
    if (ty == 8) s[9][tx] = a[d * w + x];
    if (tx == 1 && ty == 1) s[0][0] = a[u * w + l];
    if (tx == 8 && ty == 1) s[0][9] = a[u * w + r];
    if (tx == 1 && ty == 8) s[9][0] = a[d * w + l];
    if (tx == 8 && ty == 8) s[9][9] = a[d * w + r];""", SQUARE),
    ], 2),
)  # fmt: skip
def test_planes_have_borders_along_both_axes(ends: str, read: str) -> None:
    text = PLANE % (ends, read)
    made = written(unstaged(kernel_of(text)))
    assert "__shared__" not in made
    assert unchanged(text, made, PLANES, {"w": 24, "h": 16}, {"w": 8, "h": 8}) == "same"


@pytest.mark.parametrize(
    ("middle", "left", "right"),
    [
        ("a[row + i]", "a[row + (blockIdx.x == 0 ? 0 : i - 3)]", "a[row + min(i + 32, n - 1)]"),
        # other elements than a border of the same place
        ("a[row + i]", "a[row + max(i - 2, 0)]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "a[row + max(i - 3, 1)]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "a[row + max(i - 3, 0)]", "a[row + min(i + 32, n - 2)] * 1.0f"),
        ("a[row + i]", "a[max(i - 3, 0)]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "a[row + t]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "a[row + n - 1 - t]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + n - 1 - i]", "a[row + max(i - 3, 0)]", "a[row + min(i + 32, n - 1)]"),
        # another computation
        ("a[row + i]", "a[row + max(i - 3, 0)] * 2.0f", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "-a[row + max(i - 3, 0)]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "a[row + max(i - 3, 0)]", "sqrtf(a[row + min(i + 32, n - 1)])"),
        # a border that the middle may be beyond as well
        ("a[row + i]", "a[row + max(i - 3, 40)]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "a[row + max(i - 3, 0)]", "a[row + min(i + 32, m)]"),
        ("a[row + i]", "a[row + abs(i - 40)]", "a[row + min(i + 32, n - 1)]"),
        ("a[row + i]", "a[row + (i - 3 + n) % m]", "a[row + (i + 32) % n]"),
        ("a[row + i]", "a[row + (i - 3 + 2 * n) % (n + 1)]", "a[row + (i + 32) % n]"),
        # whether there is an element is said of each part in another way
        ("a[row + i]", "i < 3 ? 0.0f : a[row + i - 3]", "i + 32 < n ? a[row + i + 32] : 1.0f"),
    ],
)  # fmt: skip
def test_parts_that_do_not_agree_are_refused(middle: str, left: str, right: str) -> None:
    reason = refused(unstaged(kernel_of(line(middle, left, right))))
    assert "several ways" in reason or "another way" in reason or "not certain" in reason, reason


WRAPPED = """\
s[t + 3] = a[row + i];
    int l = i - 3, r = i + 32;
    if (l < 0) l += n;
    if (r >= n) { r -= n; }
    if (t < 3) { s[t] = a[row + l]; s[t + 35] = a[row + r]; }"""


def test_borders_that_branches_give_are_left_out_with_their_locals() -> None:
    text = LINE % WRAPPED
    made = written(unstaged(kernel_of(text)))
    assert "int l" not in made
    assert unchanged(text, made, ARRAYS, {"n": 96, "m": 3}, {"n": 32, "m": 1}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "int l = i - 3;\nif (l < 0) l += n;\nout[row + i] = a[row + l];",
        "int l = i - 3, r = 1;\nif (l < 0) r = 2;\nif (r > 1) l = i;\nout[row + i] = a[row + l];",
        "int l = i, r = 0;\nif (l < 9) { l = 9; r = 1; }\nout[row + i] = r;",
        "int l = i;\nif (l++ < 9) l += n;\nout[row + i] = l;",
        "int l = i;\nif (l < 9) l = 9; else out[row + i] = l;",
        "int l = i;\nif (l < 9) { l = 9; out[row + i] = 1; }",
    ],
)
def test_what_a_branch_gives_stays_where_somebody_asks_for_it(body: str) -> None:
    text = LINE % "s[t + 3] = a[row + i];"
    text = (
        text[: text.index("    __shared__")]
        + f"""\
    const int t = threadIdx.x, i = blockIdx.x * 32 + t, row = blockIdx.y * n;
    {body}
}}
"""
    )
    made = pruned(kernel_of(text))
    after = made.program.text if isinstance(made, Kernel) else text
    assert re.search(r"\bl = i", after)
    assert unchanged(text, after, ARRAYS, {"n": 96, "m": 3}, {"n": 32, "m": 1}) == "same"


@pytest.mark.parametrize(
    "ends",
    sampled([
        """s[t] = i < 3 ? a[row] : a[row + i - 3];
        s[t + 35] = i + 32 < n ? a[row + i + 32] : a[row + n - 1];""",
        """if (i >= 3) s[t] = a[row + i - 3]; else s[t] = a[row];
        if (i + 32 < n) { s[t + 35] = a[row + i + 32]; } else { s[t + 35] = a[row + n - 1]; }""",
        """const float l = i < 3 ? a[row + i - 3 + n] : a[row + i - 3];
        s[t] = l;
        if (i + 32 < n) s[t + 35] = a[row + i + 32]; else s[t + 35] = a[row + i + 32 - n];""",
        """if (n < 3) s[t] = a[row + i]; else if (i < 3) s[t] = a[row + i - 3 + n]; else s[t] = a[row + i - 3];
        s[t + 35] = a[row + (i + 32 < n ? i + 32 : i + 32 - n)];""",
    ], 2),
)  # fmt: skip
def test_loads_on_both_ways_are_one_from_the_place_chosen(ends: str) -> None:
    text = LINE % f"s[t + 3] = a[row + i];\n    if (t < 3) {{\n        {ends}\n    }}"
    made = written(unstaged(kernel_of(text)))
    assert unchanged(text, made, ARRAYS, {"n": 96, "m": 3}, {"n": 32, "m": 1}) == "same"


@pytest.mark.parametrize(
    "ends",
    [
        "s[t] = i < 3 ? out[row] : a[row + i - 3];",
        "s[t] = i < 3 ? a[row] : 2 * a[row + i - 3];",
        "s[t] = i < 3 ? a[row + (unsigned)0] : a[row + i - 3];",
        "s[t] = i < 3 ? a[row] : *(a + row + i - 3);",
        "s[t] = i++ < 3 ? a[row] : a[row + i - 3];",
        "if (i++ < 3) s[t] = a[row]; else s[t] = a[row + i - 3];",
        "if (i < 3) s[t] = a[row]; else s[2 - t] = a[row + i - 3];",
        "if (i < 3) s[t] += a[row]; else s[t] = a[row + i - 3];",
        "if (i < 3) s[t] = a[row]; else { s[t] = a[row + i - 3]; i += 1; }",
        "if (i < 3) s[t] = a[row]; else if (i > 40) s[t] = a[row + i - 3];",
    ],
)
def test_other_choices_stay(ends: str) -> None:
    text = (LINE % ends).replace("const int t", "int t")
    refused(one_load(kernel_of(text)))


RAGGED = """\
#pragma optiml launch k grid(cdiv(n, 32), m) block(32)
__global__ void k(const float* a, float* out, int n, int m) {
    __shared__ float s[34];
    const int t = threadIdx.x, i = blockIdx.x * 32 + t, row = blockIdx.y * n;
    %s
    __syncthreads();
    if (i < n) out[row + i] = s[t] + 2 * s[t + 1] + 3 * s[t + 2];
}
"""
RAGGED_PLANE = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 8)) block(8, 8)
__global__ void k(const float* a, float* out, int w, int h) {
    __shared__ float s[10][10];
    const int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    if (x < w && y < h) {
        s[ty][tx] = a[y * w + x];
        if (tx == 1) s[ty][0] = a[y * w + (x > 0 ? x - 1 : 0)];
        if (tx == 8 || x == w - 1) s[ty][tx + 1] = a[y * w + (x < w - 1 ? x + 1 : x)];
        if (ty == 1) s[0][tx] = a[(y > 0 ? y - 1 : 0) * w + x];
        if (ty == 8 || y == h - 1) s[ty + 1][tx] = a[(y < h - 1 ? y + 1 : y) * w + x];
    }
    __syncthreads();
    if (x < w && y < h) out[y * w + x] = s[ty][tx - 1] + 2 * s[ty][tx + 1] + 3 * s[ty - 1][tx] + 4 * s[ty + 1][tx];
}
"""  # fmt: skip
ENDS = {"n": 45, "m": 3}, {"n": 31, "m": 1}


@pytest.mark.parametrize(
    "body",
    sampled([
        """if (i < n) s[t + 1] = a[row + i];
    if (t == 0) s[0] = a[row + max(i - 1, 0)];
    if (t == 31 || i == n - 1) s[t + 2] = a[row + min(i + 1, n - 1)];""",
        """if (i < n) {
        s[t + 1] = a[row + i];
        if (t == 0) s[0] = a[row + (i + n - 1) % n];
        if (i == n - 1 || t == 31) s[t + 2] = a[row + (i < n - 1 ? i + 1 : 0)];
    }""",
    ], 2),
)  # fmt: skip
def test_the_last_thread_of_a_row_brings_what_no_other_does(body: str) -> None:
    text = RAGGED % body
    made = written(unstaged(kernel_of(text)))
    assert "__shared__" not in made
    assert unchanged(text, made, ARRAYS, *ENDS) == "same"


def test_the_last_threads_of_a_plane_bring_what_no_others_do() -> None:
    made = written(unstaged(kernel_of(RAGGED_PLANE)))
    assert "__shared__" not in made
    sizes = {"w": 21, "h": 11}, {"w": 7, "h": 8}
    assert unchanged(RAGGED_PLANE, made, PLANES, *sizes) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (tx == 8 || x == w - 1)", "if (tx == 8)"),
        ("if (tx == 8 || x == w - 1)", "if (tx == 8 || x == w - 2)"),
        ("if (tx == 8 || x == w - 1)", "if (tx == 8 && x == w - 1)"),
        ("if (ty == 8 || y == h - 1)", "if (ty == 8 || y == w - 1)"),
        ("if (ty == 8 || y == h - 1)", "if (ty == 8 || x == w - 1)"),
        ("(x < w - 1 ? x + 1 : x)", "(x < w - 1 ? x - 1 : x)"),
        ("(x < w - 1 ? x + 1 : x)", "(x < w - 2 ? x + 1 : x)"),
        ("if (x < w && y < h) {", "if (x < w && y < h && a[0] > 0) {"),
        ("if (x < w && y < h) {", "if (x + 1 < w && y < h) {"),
        ("if (x < w && y < h) out", "if (x <= w && y < h) out"),
    ],
)
def test_what_nobody_may_have_brought_is_refused(old: str, new: str) -> None:
    assert old in RAGGED_PLANE
    refused(unstaged(kernel_of(RAGGED_PLANE.replace(old, new))))
