"""Tests of borders before loops whose rounds the data decide."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.bordered import bordered
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const float* a, float* out, int w, int h, int most) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    int q = 0;
    {0}
    out[y * w + x] = s + 100.0f * q;
}}
"""
BOX = """while (s < 9.0f && q < 3) {
        q++;
        for (int i = -q; i <= q; i++)
            for (int j = -q; j <= q; j++)
                if (x + j >= 0 && x + j < w && y - i >= 0 && y - i <= h - 1) s += a[(y - i) * w + x + j];
    }"""
ARRAYS = {"a": Array("f4", ("h", "w"), "positive"), "out": Array("f4", ("h", "w"), "zeros")}


def made(body: str) -> Kernel | Refused:
    return bordered(kernel_of(TEXT.format(body)))


@pytest.mark.parametrize(
    ("body", "inside"),
    [
        (BOX, "x >= 3 && w - x >= 4 && y >= 3 && h - y >= 4"),
        (BOX.replace("q < 3", "q <= 3"), "x >= 4 && w - x >= 5 && y >= 4 && h - y >= 5"),
        (BOX.replace("q++;", "q += 2;"), "x >= 4 && w - x >= 5 && y >= 4 && h - y >= 5"),
        (BOX.replace("q++;", "if (s > 1.0f) ++q; q++;"), "x >= 4"),
        (BOX.replace("-q; j <= q", "1 - q; j < q + 2"), "x >= 2 && w - x >= 5"),
        ("for (q = 0; q < 5 && s < 7.0f; q++) { if (x - q >= 0) s += a[y * w + x - q]; }", ""),
        ("for (; q < 5 && s < 7.0f; q++) { if (x - q >= 0) s += a[y * w + x - q]; }", "x >= 4"),
        ("for (int r = 1; r < 5; r++) { const int far = -r; if (x + far > 0 && s < 9.0f) s += 1.0f; if (0 < x + far) s += a[y * w + x + far]; if (s > 40.0f) break; }", "x >= 5"),
        ("while (q < 4) { q++; if (w > x + q) { s += a[y * w + x + q]; } else s = 0.0f; if (y >= q) s += 1.0f; }", "y >= 4"),
    ],
)  # fmt: skip
def test_away_from_the_borders_none_is_asked_for(body: str, inside: str) -> None:
    found = made(body)
    if not inside:
        assert "no loop asks" in refused(found)
        return
    after = written(found)
    assert f"if ({inside}" in after
    assert after.count("} else {") >= 1
    for w, h in ((40, 21), (7, 3), (16, 8)):
        sizes = {"w": w, "h": h, "most": 3}
        assert (
            end_of(TEXT.format(body), after, ARRAYS, sizes, {"w": 9, "h": 30, "most": 2}) == "same"
        )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("q < 3", "q < most"),
        ("q < 3", "q < 3 || s < 1.0f"),
        ("q++;", "q++; if (s > 5.0f) q = 0;"),
        ("q++;", "q++; x++;"),
        ("q++;", "for (int r = 0; r < 2; r++) q++;"),
        ("q++;", "int* p = &q; ++*p;"),
        ("int j = -q", "unsigned j = 0"),
        ("j++", "j += 2"),
        ("s += a", "s += i++ < 9 ? 1.0f : a"),
    ],
)
def test_what_counters_may_pass_is_asked_for(old: str, new: str) -> None:
    body = BOX.replace(old, new)
    assert body != BOX
    found = made(body)
    assert isinstance(found, Refused) or "x >= 3" not in written(found)


@pytest.mark.parametrize(
    "waits", ["__syncthreads();", "s = __shfl_sync(~0u, s, 3);", "s += __any_sync(~0u, s > 1.0f);"]
)
def test_loops_whose_threads_meet_stay_one(waits: str) -> None:
    assert "no loop asks" not in refused(made(BOX.replace("q++;", f"q++; {waits}")))
