"""Rows of a window that have a name of their own."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.named_rows import named_rows
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import kernel_of, refused, unchanged, written

WINDOW = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 4)) block(16, 4)
__global__ void k(const float* a, float* out, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f;
    HEAD {
        BODY
    }
    out[y * w + x] = sum;
}
"""
ARRAYS = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"))}
COLUMNS = "for (int i = 0; i < r; i++) if (x + i < w) sum += a[PLACE * w + x + i] * (PLACE - y);"
AROUND = "for (int j = -r; j <= r; j++)"
BETWEEN = "for (int j = max(y - r, 0); j < min(y + r, h); j++)"


def of(head: str, body: str) -> str:
    return WINDOW.replace("HEAD", head).replace("BODY", body)


@pytest.mark.parametrize(
    ("head", "body", "left"),
    [
        (AROUND, "if (y + j >= 0 && y + j < h) " + COLUMNS.replace("PLACE", "(y + j)"),
         "int row = y + j;"),
        (AROUND, "if (y + j >= 0 && y + j < h) { sum += j; " + COLUMNS.replace("PLACE", "(y + j)") + " }",
         "if (row >= 0 && row < h)"),
        (AROUND.replace("-r; j <= r", "y - r; j <= y + r"),
         "if (0 <= j && j < h) " + COLUMNS.replace("PLACE", "j"), "int row = j;"),
        (BETWEEN, COLUMNS.replace("PLACE", "j"), "if (row >= 0 && row < h)"),
        (BETWEEN.replace("j < min(y + r, h)", "j <= min(h - 1, y + r)"), COLUMNS.replace("PLACE", "j"),
         "row < h)"),
        (BETWEEN, "if (j == 3) continue; " + COLUMNS.replace("PLACE", "j"), "if (row == 3)"),
    ],
)  # fmt: skip
def test_a_row_that_is_tested_or_counted_has_a_name(head: str, body: str, left: str) -> None:
    text = of(head, body)
    made = written(named_rows(kernel_of(text)))
    assert left in made, made
    assert (
        unchanged(text, made, ARRAYS, {"w": 33, "h": 9, "r": 3}, {"w": 5, "h": 6, "r": 1}) == "same"
    )


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (AROUND, "int p = y + j; if (p >= 0 && p < h) " + COLUMNS.replace("PLACE", "p")),
        (AROUND, "if (y + r >= 0 && y < h - r) " + COLUMNS.replace("PLACE", "(y + r)")),  # no round's own
        (AROUND, "if ((y + j) / 2 >= 0) " + COLUMNS.replace("PLACE", "y")),
        (AROUND, "if (y + j >= 0 && y + j < h) { r++; " + COLUMNS.replace("PLACE", "(y + j)")
         + " } if (y + r >= 0) { sum += 1.0f; r++; }".replace("y + r", "y + j + r")),
        (BETWEEN.replace("max(y - r, 0)", "y - r"), COLUMNS.replace("PLACE", "max(j, 0)")),
        (BETWEEN.replace("min(y + r, h)", "y + r"), COLUMNS.replace("PLACE", "min(j, h - 1)")),
        (BETWEEN.replace("j++", "j += r"), COLUMNS.replace("PLACE", "j")),
        (BETWEEN, "int p = j; " + COLUMNS.replace("PLACE", "p")),
        (BETWEEN, "sum += a[j * w + x];"),
    ],
)  # fmt: skip
def test_other_rows_stay(head: str, body: str) -> None:
    found = named_rows(kernel_of(of(head, body)))
    if "r++" in body:  # the first test moves nothing of its own row, the second one does
        assert "int row = y + j;" in written(found)
    else:
        assert "no loop" in refused(found)
