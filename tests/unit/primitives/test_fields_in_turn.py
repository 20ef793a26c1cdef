"""Channels that a launch has along z, as a loop of each pixel's thread."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.fields_in_turn import fields_in_turn
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4), 3) block(8, 4)
__global__ void k(const unsigned char* a, const float* g, unsigned char* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.z;
    BODY
}
"""
PIXEL = "(y * w + x) * 3 + c"
OWN = f"out[{PIXEL}] = a[{PIXEL}] * g[c];"
SUM = f"int s = c; for (int i = 0; i <= 1; i++) if (x + i < w) s += a[{PIXEL} + 3 * i]; out[{PIXEL}] = s / 2;"
LEFT = f"if (x >= w || y >= h) return; if (a[{PIXEL}] > 99) {{ out[{PIXEL}] = 1; return; }} out[{PIXEL}] = 2;"


def text_of(body: str, *, threads: bool = False) -> str:
    text = TEXT.replace("BODY", body)
    if threads:
        text = text.replace(", 3) block(8, 4)", ") block(8, 4, 3)").replace(
            "blockIdx.z", "threadIdx.z"
        )
    return text


def ends(before: str, after: str) -> str:
    arrays = {
        "a": Array("u1", ("h", "w", "3")), "g": Array("f4", ("3",), "small"),
        "out": Array("u1", ("h", "w", "3"), "zeros"),
    }  # fmt: skip
    return end_of(before, after, arrays, {"w": 40, "h": 9}, {"w": 1, "h": 1})


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize(
    ("body", "now"),
    [
        (f"if (x < w && y < h) {OWN}", "if (x < w && y < h) {\n        for (unsigned int field = 0;"),
        (f"if (x >= w || y >= h) return; float f = g[c]; {SUM} if (f > 1) {OWN}", "return;\n    for ("),
        (LEFT, "continue;"),
        (f"if (x >= w || y >= h || c > 1) return; {OWN}", "continue;"),
    ],
)  # fmt: skip
def test_a_thread_takes_all_fields_of_its_item(body: str, now: str, threads: bool) -> None:
    text = text_of(body, threads=threads)
    after = written(fields_in_turn(kernel_of(text)))
    assert now in after
    assert ".z" not in after
    assert ends(text, after) == "same"


def test_what_each_field_counts_is_counted_once_for_each() -> None:
    body = f"int n = atomicAdd((int*)g, 1); if (x < w && y < h) out[{PIXEL}] = n * 0 + 1;"
    after = written(fields_in_turn(kernel_of(text_of(body).replace("const float* g", "float* g"))))
    assert after.index("++field") < after.index("atomicAdd") < after.index("x < w")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (text_of(OWN.replace("* 3 + c", "+ c * w * h")), "fields of one item"),
        (text_of(OWN.replace("* g[c]", "* gridDim.z")), "more than its index"),
        (text_of(f"for (int i = 0; i < 2; ++i) if (a[i + c] > 9) return; {OWN}"), "within a loop"),
        (text_of(f"__shared__ int s; s = x; __syncthreads(); {OWN}"), "wait"),
        (text_of(OWN).replace(", 3) block", ", 5) block"), "a few threads"),
        (text_of(OWN).replace(", 3) block", ", h) block"), "a few threads"),
    ],
)
def test_what_is_no_field_of_an_item_stays(text: str, reason: str) -> None:
    assert reason in refused(fields_in_turn(kernel_of(text)))


def test_pixels_come_by_vectors() -> None:
    text = text_of(f"if (x < w && y < h) {OWN}")
    (first, *_) = made(asked(VectoriseMap(), text)[0])
    assert "uint4" in first.text
    assert ends(text, first.text) == "same"
