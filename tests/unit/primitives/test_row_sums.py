"""Windows as sums of rows that neighbours have in common: the same sums, and what is refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.row_sums import row_sums
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

WINDOWS = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const unsigned char* a, const int* b, const float* f, int* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 9 || y < 2 || x >= w - 2 || y >= h - 2) return;
    int best = 0, at = 0;
    %s
    out[y * w + x] = best + at;
}
"""
ROWS = "for (int i = -2; i <= 2; ++i)"
COLUMNS = "for (int j = -2; j <= 2; ++j)"
HERE = "(y + i) * w + x + j"
BODIES = {
    "a box": f"{ROWS} {COLUMNS} best += b[{HERE}];",
    "differences": f"for (int d = 0; d < 7; ++d) {{ int s = 0; {ROWS} {COLUMNS} "
    f"s += abs(a[{HERE}] - a[{HERE} - d]); if (s > best) {{ best = s; at = d; }} }}",
    "numbers that wrap around": f"unsigned s = 7; {ROWS} {COLUMNS} s += 0x7fffff7fu * b[{HERE}]; "
    "best = s;",
    "under a test": f"{ROWS} {COLUMNS} if (a[{HERE}] > 100) best += a[{HERE}];",
    "upwards": f"for (int i = 0; i < 5; ++i) {COLUMNS} best += b[(y + 2 - i) * w + x + j];",
    "clamped": f"{ROWS} {COLUMNS} best += b[min(max(y + i, 1), h - 1) * w + max(x + j, 3)];",
}
ARRAYS = {"a": Array("u1", ("w * h",), "bits"), "b": Array("i4", ("w * h",)),
          "f": Array("f4", ("w * h",)), "out": Array("i4", ("w * h",), "zeros")}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_each_row_is_a_sum_by_itself(name: str) -> None:
    before = WINDOWS % BODIES[name]
    after = written(row_sums(kernel_of(before), "y"))
    assert after.count("_part") >= 3
    assert end_of(before, after, ARRAYS, {"w": 45, "h": 21}, {"w": 13, "h": 5}) == "same"


STAY = {
    "each row has weights": f"{ROWS} {COLUMNS} best += b[{HERE}] * b[i * 5 + j + 12];",
    "rows that all windows have": f"{ROWS} {COLUMNS} best += b[(i + 2) * w + x + j];",
    "rows two apart": f"{ROWS} {COLUMNS} best += b[(2 * y - 2 + i / 4) * w / 2 + x + j];",
    "the place of the item": f"{ROWS} {COLUMNS} best += b[{HERE}] * y;",
    "the greatest": f"{ROWS} {COLUMNS} best = max(best, b[{HERE}]);",
    "two rows": f"for (int i = 0; i < 2; ++i) {COLUMNS} best += b[{HERE}];",
    "of two columns": f"{ROWS} for (int j = 0; j < 2; ++j) best += b[{HERE}];",
    "it is asked for": f"{ROWS} {COLUMNS} best += b[{HERE}] + best;",
    "it is left": f"{ROWS} {COLUMNS} {{ if (b[{HERE}] < 0) break; best += b[{HERE}]; }}",
    "a sum of a byte": f"unsigned char s = 0; {ROWS} {COLUMNS} s += a[{HERE}]; best = s;",
    "one loop": f"{COLUMNS} best += b[y * w + x + j];",
}


@pytest.mark.parametrize("name", STAY)
def test_windows_without_rows_in_common(name: str) -> None:
    assert refused(row_sums(kernel_of(WINDOWS % STAY[name]), "y"))


def test_rows_are_asked_for_along_an_axis() -> None:
    box = WINDOWS % BODIES["a box"]
    assert refused(row_sums(kernel_of(box), "z"))
