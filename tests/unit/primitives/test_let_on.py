"""Loops of a few rounds that a comparison ends make all of them; others stay as they are."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.let_on import let_on
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(32)
__global__ void k(const float* a, float* out, int n, int m) {
    int base = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    %s
}
"""
ARRAYS = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
SIZES = {"n": 300, "m": 3}, {"n": 37, "m": 9}
ADD = "out[base + k] = a[base + k] * 2;"


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < 8 && base + k < n; k++) " + ADD,
        "for (int k = 0; base + k < n && k < 8; ++k) { " + ADD + " }",
        "int k = 0; while (k < 8 && base + k < n) { " + ADD + " k++; }",
        "int k = 0; while (base + k < n && k < 8) { " + ADD + " k += 2; }",
        "for (int k = 0; k < 8; k++) { int i = base + k; if (i >= n) break; out[i] = a[i] + k; }",
        "for (int k = 0; k < 8; k++) { if (base + k > n - 1) { break; } " + ADD + " }",
        "for (int k = 0; k < 8 && base + k < n && k < 6; k++) " + ADD,
        "int end = min(base + 8, n); for (int i = base; i < end; i++) out[i] = a[i] * 2;",
        "for (int i = base; i < min(n, base + 8); i++) out[i] = a[i] * 2;",
        "int few = n - base < 8 ? n - base : 8; for (int k = 0; k < few; ++k) " + ADD,
        ("for (int k = 0; k < 8; k++) { int i = base + k; if (i >= n) break; "
         "if (a[i] < 0) continue; float v = a[i]; for (int j = 0; j < m; ++j) v *= 2; out[i] = v; }"),
    ],
)  # fmt: skip
def test_rounds_behind_the_end_do_nothing(body: str) -> None:
    text = TEXT % body
    after = written(let_on(kernel_of(text)))
    assert "&&" not in after or "k < 6" in body
    assert "break" not in after
    assert kernel_of(after).reading.axes[0].trips in (4, 8)
    assert end_of(text, after, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = base; i < min(base + m, n); i++) out[i] = a[i] * 2;",
        "for (int i = base; i < min(base + 100, n); i++) out[i] = a[i] * 2;",
        "for (int k = 0; k < 8 && a[k] > 0; k++) " + ADD,  # which data end
        "for (int k = 0; k < 8 && base - k > 9; k--) " + ADD,
        "for (int k = 0; k < 8 && base + k >= m; k++) " + ADD,  # which may hold again
        "for (int k = 0; k < n && base + k < n; k++) " + ADD,  # nobody knows how many
        "for (int k = 0; k < 1000 && base + k < n; k++) " + ADD,
        "for (int k = 0; k < 8 && base + k < n; k++) { " + ADD + " base += k; }",
        "for (int k = 0; k < 8; k++) { if (base + k >= n) break; if (a[k] < 0) break; " + ADD + " }",
        "for (int k = 0; k < 8; k++) { out[k] = 1; if (base + k >= n) break; " + ADD + " }",
        "for (int k = 0; k < 8; k++) { if (base + k * k - 9 * k >= n) break; " + ADD + " }",
        "int k = 0; while (k < 8 && base + k < n) { " + ADD + " k++; } if (k) out[base] = k;",
        "int k; for (k = 0; k < 8; k++) { if (base + k >= n) break; " + ADD + " } out[base] = k;",
        "int k = 0; while (k < 8 && base + k < n) { int by = 1; " + ADD + " k += by; }",
        "int k = 0; while (k < 8 && base + k < n) { k++; if (base + k < n) " + ADD + " }",
        "int c = 0; for (int k = 0; k < 8 && base + k < n; k++, c++) " + ADD + " out[base] += c;",
        "int s; for (int k = 0; k < 8; k++) { if ((s = base + k) >= n) break; " + ADD + " } out[0] = s;",
        "int s = 0; for (int k = 0; k < 8; k++) { if (base + k + s++ >= n) break; " + ADD + " }",
        "for (int k = 0; k < 8; k++) { float v = a[base + k]; if (base + k >= n) break; out[base + k] = v; }",
        "for (int k = 0; k < 8; k++) { int q = n / (n - base - k); if (base + k >= n) break; " + ADD + " out[base] = q; }",
        "int z = 0; int& k = z; for (; k < 8 && base + k < n; k++) " + ADD + " out[base] = z;",
        "int k = 0; int* p = &k; for (; k < 8 && base + k < n; k++) " + ADD + " out[base] = *p;",
        "for (int k = 0; k < 8 && base + k < n; k++) { using I = int; I j = base + k; out[j] = a[j]; }",
    ],
)  # fmt: skip
def test_others_stay(body: str) -> None:
    assert refused(let_on(kernel_of(TEXT % body))) == "no comparison ends a loop of a few rounds"


def test_rounds_that_were_not_made_ask_for_sums_that_leave_no_type() -> None:
    text = TEXT % (
        "int far = 2147483640 + n % 2; "
        "for (int k = 0; k < 16 && far + k < 2147483642; k++) out[base + k] = a[base + k];"
    )
    arrays = {"a": Array("f4", ("n * 8 + 16",)), "out": Array("f4", ("n * 8 + 16",), "zeros")}
    text = text.replace("grid(cdiv(n, 256))", "grid(1)")
    after = written(let_on(kernel_of(text)))
    assert "(long long)" in after
    assert end_of(text, after, arrays, {"n": 32, "m": 1}, {"n": 33, "m": 1}) == "same"


def test_lanes_take_what_is_there_by_vectors() -> None:
    text = TEXT % ("for (int k = 0; k < 8 && base + k < n; k++) " + ADD)
    ideas, _ = asked(RowToLanes(), text)
    for one in made(ideas)[:1]:
        assert "float4*" in one.text
        assert end_of(text, one.text, ARRAYS, *SIZES) == "same"
