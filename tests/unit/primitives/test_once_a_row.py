"""A thread an element that goes through its row becomes a thread a row, where that is the same."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.kernels.primitives.once_a_row import once_a_row
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

PLANE = """\
#pragma optiml launch k grid(cdiv(m, 32), cdiv(n, 4)) block(32, 4)
__global__ void k(const float* a, float* out, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c < m && r < n) {
        float top = -INFINITY, sum = 0.0f;
        for (int i = 0; i < m; ++i) top = fmaxf(top, a[r * m + i]);
        for (int i = 0; i < m; ++i) sum += expf(a[r * m + i] - top);
        out[r * m + c] = expf(a[r * m + c] - top) / sum;
    }
}
"""
LINE = """\
#pragma optiml launch k grid(cdiv(n * m, 256)) block(256)
__global__ void k(const float* a, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * m) return;
    int r = i / m, c = i % m;
    float mean = a[r * m];
    for (int j = 1; j < m; ++j) mean += a[r * m + j];
    mean /= m;
    float spread = 0.0f;
    for (int j = 0; j < m; ++j) {
        float apart = a[r * m + j] - mean;
        spread += apart * apart;
    }
    if (spread == 0.0f) return;
    out[i] = (a[r * m + c] - mean) * rsqrtf(spread / m);
}
"""


def once(text: str) -> Kernel | Refused:
    (kernel,) = kernels(parse_program(text), None)
    return once_a_row(kernel)


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        (PLANE, 3),
        (LINE, 3),
        (PLANE.replace("if (c < m && r < n) {", "if (c >= m || r >= n) return; {"), 3),
        (PLANE.replace("float top = -INFINITY", "float top = a[r * m]"), 3),
        (PLANE.replace("/ sum", "/ (c % 2 ? sum : 2.0f * sum)"), 3),
        (PLANE.replace("out[r", "if (c == 3) return; out[r"), 3),
        (LINE.replace("float spread = 0.0f;", "out[i] = mean; float spread = 0.0f;"), 3),
    ],
)
def test_what_a_row_has_in_common_is_computed_once(text: str, loops: int) -> None:
    made = once(text)
    assert isinstance(made, Kernel), made
    after = made.program.text
    own = after[after.index("__global__") :]
    assert own.count("for (") == loops
    arrays = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n", "m"), "zeros")}
    for sizes in ({"n": 5, "m": 70}, {"n": 130, "m": 1}, {"n": 1, "m": 33}):
        assert end_of(text, after, arrays, sizes, {"n": 3, "m": 40}, rounds=True) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum += expf(a[r * m + i] - top)", "sum += a[r * m + i] * c"),
        ("i < m; ++i) top", "i < c; ++i) top"),
        ("float top = -INFINITY, sum = 0.0f;", "if (c == 1) return; float top = 0.0f, sum = 0.0f;"),
        ("a[r * m + i]", "a[i * n + r + c]"),
        ("out[r * m + c] =", "if (c == 3) sum += 1.0f; out[r * m + c] ="),
        (
            "out[r * m + c] =",
            "float s = 0.0f; for (int i = 0; i < c; ++i) s += a[i]; out[r * m + c] = s *",
        ),
    ],
)
def test_elements_that_have_little_in_common_stay(old: str, new: str) -> None:
    assert isinstance(once(PLANE.replace(old, new)), Refused)


def test_what_the_loop_writes_is_not_read_before_it() -> None:
    text = PLANE.replace("const float* a, float* out", "float* a, float* out")
    text = text.replace("out[r * m + c] =", "a[r * m + c] =")
    assert isinstance(once(text), Refused)


@pytest.mark.parametrize("text", [PLANE, LINE])
def test_locals_of_one_name_stay_apart(text: str) -> None:
    made = once(
        text.replace("float sum", "float n2 = 0.0f, sum").replace(
            "float mean =", "float w = 1.0f, mean ="
        )
    )
    assert isinstance(made, Kernel)
