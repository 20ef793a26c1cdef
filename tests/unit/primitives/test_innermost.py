"""What rounds test and compute around the loop in them goes into the rounds of that loop."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.collapsed import nested
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.innermost import innermost
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

WINDOW = """\
#pragma optiml launch k grid(cdiv(w, 32), cdiv(h, 4)) block(32, 4)
__global__ void k(const float* a, const float* f, float* o, int h, int w, int d) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    BODY
    o[y * w + x] = s;
}
"""
ARRAYS = {
    "a": Array("f4", ("h", "w")), "f": Array("f4", ("9 * h * w",)),
    "o": Array("f4", ("h", "w"), "zeros"),
}  # fmt: skip
SIZES = {"h": 7, "w": 37, "d": 3}, {"h": 3, "w": 5, "d": 2}
INSIDE = "if (q >= 0 && q < w) s += a[p * w + q] * f[i * 3 + j];"
ROWS = "int p = y + i - 1; if (p < 0 || p >= h) continue;"
COLUMNS = f"for (int j = 0; j < 3; j++) {{ int q = x + j - 1; {INSIDE} }}"


def moved(body: str) -> Kernel:
    text = WINDOW.replace("BODY", body)
    after = innermost(kernel_of(text), 0)
    assert end_of(text, written(after), ARRAYS, *SIZES) == "same"
    assert isinstance(after, Kernel)
    return after


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (f"for (int i = 0; i < 3; i++) {{ {ROWS} {COLUMNS} }}", 2),
        (f"for (int i = 0; i < 3; i++) {{ int p = y + i - 1; if (p >= 0 && p < h) {COLUMNS} }}", 2),
        (
            (f"for (int c = 0; c < d; c++) {{ const float* g = f + c * 3; int z = c * 2; "
            f"for (int i = 0; i < 3; i++) {{ {ROWS} if (p > z) {{ const float* r = &a[p * w]; "
            "for (int j = 0; j < 3; j++) { int q = x + j - 1; if (q < 0) continue; "
            "if (q < w) s += r[q] * g[j]; } } } }"),
            3,
        ),
        (f"for (int i = 0; i < 3; i++) {{ int p = y + i / d; {COLUMNS.replace('p * w', 'y * w')} }}", 2),
        (
            "for (int i = 0; i < d; i++) { if (w % (i + 1)) continue; if (i < h && h / (i + 1) > 0) "
            "{ int p = h / (i + 1) - 1; " + COLUMNS + " } }",
            2,
        ),
    ],
)  # fmt: skip
def test_a_loop_is_alone_in_a_loop(body: str, count: int) -> None:
    made = moved(body)
    (outer, *_) = loops_in(made.function.body)
    assert len([outer, *nested(outer)]) == count


CASES = [
    (f"for (int i = 0; i < 3; i++) {{ {ROWS} {COLUMNS} s += 1.0f; }}", "more than locals and tests"),
    (f"for (int i = 0; i < 3; i++) {{ {ROWS} s *= 0.5f; {COLUMNS} }}", "more than locals and tests"),
    (f"for (int i = 0; i < 3; i++) {{ {ROWS} if (p > 1) {{ {COLUMNS} }} else s += 2.0f; }}",
     "more than locals and tests"),
    (f"for (int i = 0; i < 3; i++) {{ int p = y; if (s > 3.0f) continue; {COLUMNS} }}",
     "what rounds change"),
    (f"for (int i = 0; i < 3; i++) {{ int p = y; float t = s; {COLUMNS.replace('s +=', 's += t *')} }}",
     "what rounds change"),
    (f"for (int i = 0; i < 3; i++) {{ int p = y; if (a[y * w + i] > 0.0f) {{ {COLUMNS} }} }}",
     "loads or changes"),
    (f"for (int i = 0; i < 3; i++) {{ int p = y; if (p == h) break; {COLUMNS} }}",
     "more than locals and tests"),
    (("for (int i = 0; i < 3; i++) { int p = y; for (int j = 0; j < 3; j++) "
     "{ if (j > p) break; s += a[p * w + x]; } }"), "does not count from 0"),
    # The inner loop may not end, or divide by zero, where nothing let it begin.
    (("for (int i = 0; i < d; i++) { if (i < 1) continue; for (int j = 0; j < w / i; j++) "
     "s += a[y * w + x]; }"), "may depend on a test"),
    ("for (int i = 0; i < 3; i++) { int n = i + 1; for (int j = 0; j < n; j++) s += a[y * w + x]; }",
     "depends on them"),
    (("for (int i = 0; i < 3; i++) { int p = y, j = x; s += 0.0f; for (int j = 0; j < 3; j++) "
     "s += a[p * w + x]; }"), "more than locals and tests"),
    (("for (int i = 0; i < 3; i++) { int j = x; if (j > 2) { for (int j = 0; j < 3; j++) "
     "s += a[y * w + x]; } }"), "the same names"),
    (("int p = 2; for (int i = 0; i < 3; i++) { if (p > i) { for (int j = 0; j < 3; j++) "
     "{ float p = a[y * w + x]; s += p; } } }"), "the same names"),
    (("for (int i = 0; i < 3; i++) { int p = y; int u = p; u += i; for (int j = 0; j < 3; j++) "
     "s += a[p * w + x] * u; }"), "more than locals and tests"),
    (("for (int i = 0; i < 3; i++) { int u = i; for (int j = 0; j < 3; j++) "
     "{ s += a[y * w + x] * u; u += 1; } }"), "not a local of each round"),
    ("for (int i = 0; i < 3; i++) { int p = y; for (int j = 1; j < 3; j *= 2) s += a[p * w + x]; }",
     "does not count"),
    ("for (int i = 0; i < 3; i++) { int p = y; int j = 0; while (j < 3) { s += a[p * w + x]; j++; } }",
     ""),
    ("for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) s += a[y * w + x];",
     "nothing stands around"),
    ("for (int i = 0; i < 3; i++) { if (y > i) s += a[y * w + x]; }", "nothing stands around"),
    (("for (int i = 0; i < 3; i++) { using T = int; T p = y; for (int j = 0; j < 3; j++) "
     "s += a[p * w + x] * (T)2; }"), "more than statements"),
    (("for (int i = 0; i < 3; i++) { float t[2] = {1.0f, 2.0f}; for (int j = 0; j < 2; j++) "
     "s += a[y * w + x] * t[j]; }"), ""),
    # What rounds change may have another name.
    (("int t = 0; int& v = t; for (int i = 0; i < 3; i++) { int u = v; "
     "for (int j = 0; j < 3; j++) { t += j + u; } } s = t;"), "by another name"),
    (("int t = 0; int& v = t; for (int i = 0; i < 3; i++) { int u = t; "
     "for (int j = 0; j < 3; j++) { v += j + u; } } s = t;"), "by another name"),
    (("int t = 0; int* q = &t; for (int i = 0; i < 3; i++) { int u = t; "
     "for (int j = 0; j < 3; j++) { *q += j + u; } } s = t;"), "by another name"),
    (("int t = 0; auto f = [&] { t++; }; for (int i = 0; i < 3; i++) { int u = t; "
     "for (int j = 0; j < 3; j++) { f(); s += u; } }"), ""),
]  # fmt: skip


@pytest.mark.parametrize(("body", "reason"), CASES, ids=range(len(CASES)))
def test_refused(body: str, reason: str) -> None:
    assert reason in refused(innermost(kernel_of(WINDOW.replace("BODY", body)), 0))


@pytest.mark.parametrize(
    ("word", "change", "reason"),
    [
        ("__device__ int gt = 2;", "gt += j + u;", "by another name"),
        ("__device__ int gt = 2; __device__ void inc() { gt += 1; }", "inc();", "by another name"),
        ("__constant__ int gt = 2;", "s += j + u;", ""),
        ("constexpr int gt = 2;", "s += j + u;", ""),
        ("const int gt = 2;", "s += j + u;", ""),
    ],
)
def test_what_the_module_may_change_stays(word: str, change: str, reason: str) -> None:
    body = (
        f"for (int i = 0; i < 3; i++) {{ int u = gt; for (int j = 0; j < 3; j++) {{ {change} }} }}"
    )
    before = f"{word}\n{WINDOW.replace('BODY', body)}"
    found = innermost(kernel_of(before), 0)
    if reason:
        assert reason in refused(found)
    else:
        assert end_of(before, written(found), ARRAYS, *SIZES) == "same"


def test_a_constant_array_may_be_led_to() -> None:
    moved("float t[2] = {1.0f, 2.0f}; for (int i = 0; i < 3; i++) { const float* r = &t[i / 2]; "
          "for (int j = 0; j < 3; j++) { s += *r * j; } }")  # fmt: skip
