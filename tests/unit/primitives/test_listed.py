"""Loops that keep sorted lists of the best that they come to, in parts."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.listed import listed
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, const float* y, float* out, int* at, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best[4] = {9.0f, 9.0f, 9.0f, 9.0f};
    int ids[4] = {-1, -1, -1, -1};
    for (int j = 0; j < m; j++) {
        const float d = fabsf(x[i] - y[j]);
        %s
    }
    for (int p = 0; p < 4; p++) { out[i * 4 + p] = best[p]; at[i * 4 + p] = ids[p]; }
}
"""
ARRAYS = {"x": Array("f4", ("n",)), "y": Array("f4", ("m",)),
          "out": Array("f4", ("n * 4",)), "at": Array("i4", ("n * 4",))}  # fmt: skip
SHIFTED = (
    "if (d < best[3]) { int p = 3; while (p > 0 && best[p - 1] > d) { best[p] = best[p - 1];"
    " ids[p] = ids[p - 1]; p--; } best[p] = d; ids[p] = j; }"
)


def made(body: str) -> Kernel | Refused:
    return listed(kernel_of(TEXT % body), 0, 4, (1, 4))


@pytest.mark.parametrize(
    "body",
    sampled([
        SHIFTED,
        "if (y[j] > 0) { " + SHIFTED + " }",
        SHIFTED.replace("best[p - 1] > d", "d < best[p - 1]").replace("p--", "p = p - 1"),
        ("if (d < best[3]) { int p; for (p = 3; p > 0 && d < best[p - 1]; --p) { best[p] ="
        " best[p - 1]; ids[p] = ids[p - 1]; } best[p] = d; ids[p] = j; }"),
        ("for (int p = 0; p < 4; p++) if (d < best[p]) { for (int q = 3; q > p; q--) { best[q] ="
        " best[q - 1]; ids[q] = ids[q - 1]; } best[p] = d; ids[p] = j; break; }"),
        ("if (!(d < best[3])) continue; int p = 3; for (; p > 0; p--) { if (!(best[p - 1] > d)) break;"
        " best[p] = best[p - 1]; ids[p] = ids[p - 1]; } best[p] = d; ids[p] = j;"),
        ("if (d < best[3]) { best[3] = d; ids[3] = j; for (int p = 3; p > 0 && best[p] < best[p - 1];"
        " p--) { float t = best[p]; best[p] = best[p - 1]; best[p - 1] = t; int u = ids[p];"
        " ids[p] = ids[p - 1]; ids[p - 1] = u; } }"),
    ], 3),
)  # fmt: skip
def test_lists_of_parts_become_one(body: str) -> None:
    after = written(made(body))
    assert "float d = best_parts[(part * 4 + place" in after
    assert "int j = ids_parts[" in after
    assert end_of(TEXT % body, after, ARRAYS, {"n": 33, "m": 70}, {"n": 5, "m": 2}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        SHIFTED.replace("best[p - 1] > d", "best[p - 1] >= d"),  # of equals the last is first
        SHIFTED.replace("d < best[3]", "!(d >= best[3])"),  # takes a NaN
        SHIFTED.replace("ids[p] = ids[p - 1];", ""),  # places that do not go along
        SHIFTED.replace("p > 0", "p > 1"),  # not to the front
        SHIFTED.replace("int p = 3", "int p = 2"),  # the last but one goes
        SHIFTED.replace("ids[p] = j", "ids[p] = best[0]"),
        SHIFTED.replace("best[p] = d;", "best[p] = d * 2;"),
        SHIFTED + " if (best[0] < 0.01f) break;",
        SHIFTED + " else ids[0] = -2;",
        "if (best[0] > 1) { " + SHIFTED + " }",
        "if (d < best[3]) { best[3] = d; ids[3] = j; }",
        "for (int p = 0; p < 4; p++) if (d < best[p]) { best[p] = d; ids[p] = j; }",
        "float e[1] = {d}; float& f = e[0]; " + SHIFTED.replace("best[p] = d", "best[p] = f"),
        SHIFTED.replace("best[3]", "best[3] && y[j] > 0"),
        "double e = d; " + SHIFTED.replace("best[p] = d;", "best[p] = e;"),
        ("float e = d; for (int p = 0; p < 4; p++) if (e < best[p]) { float t = best[p]; best[p] = e;"
        " e = t; }"),  # equals that are pushed on change places
    ],
)  # fmt: skip
def test_what_is_no_insertion_is_made_in_a_row(body: str) -> None:
    refused(made(body))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{9.0f, 9.0f, 9.0f, 9.0f}", "{9.0f, 8.0f, 9.0f, 9.0f}"),
        ("{9.0f, 9.0f, 9.0f, 9.0f}", "{x[i], x[i], x[i], x[i]}"),
        ("j < m; j++) {", "j < m; j++) { if (best[3] < 0.1f) best[3] = 9.0f;"),
        ("for (int p = 0; p < 4; p++) { out", "best[0] = 1; for (int p = 0; p < 4; p++) { out"),
    ],
)
def test_lists_begin_with_one_number_that_nothing_else_changes(old: str, new: str) -> None:
    text = (TEXT % SHIFTED).replace(old, new)
    refused(listed(kernel_of(text), 0, 4, (1, 4)))
