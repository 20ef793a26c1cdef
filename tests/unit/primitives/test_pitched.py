"""Rows that lie so many bytes apart, as rows of their elements."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.jammed import Several, jam
from optiml_magic.kernels.primitives.pitched import pitched
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const KIND* a, KIND* out, SIZE pitch, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    BODY
}
"""
ROW = "const KIND* row = (const KIND*)((const char*)a + (y - 1) * pitch);"
NEAR = f"{ROW} out[y * w + x] = row[x - 1] + row[x + 1];"


def text_of(body: str, kind: str = "float", size: str = "size_t") -> str:
    return TEXT.replace("BODY", body).replace("KIND", kind).replace("SIZE", size)


def ends(before: str, after: str) -> str:
    arrays = {"a": Array("f4", ("h", "w + 3")), "out": Array("f4", ("h", "w + 3"), "zeros")}
    large, small = {"w": 40, "h": 9, "pitch": 172}, {"w": 5, "h": 2, "pitch": 32}
    return end_of(before, after, arrays, large, small, rounds=True)


@pytest.mark.parametrize(
    ("body", "now"),
    [
        (NEAR, "a + (y - 1) * (pitch / 4)"),
        (NEAR.replace("(const char*)a", "reinterpret_cast<const unsigned char*>(a)"), "(pitch / 4)"),
        (NEAR.replace("(y - 1) * pitch", "pitch * (size_t)y + x * 8").replace("[x + 1]", "[1 - x]").replace("[x - 1]", "[-x]"), "x * 2"),
        ("*((KIND*)((char*)out + y * pitch / 1) + x) = 1;", ""),
        ("((KIND*)((char*)out + (y - 1) * (pitch)))[x] = a[x];", "(out + (y - 1) * (pitch / 4))[x]"),
    ],
)  # fmt: skip
def test_rows_begin_so_many_elements_apart(body: str, now: str) -> None:
    text = text_of(body)
    if not now:
        assert "no row" in refused(pitched(kernel_of(text)))
        return
    after = written(pitched(kernel_of(text)))
    assert now in after
    assert "#pragma optiml require pitch % 4 == 0" in after
    assert ends(text, after) == "same"


@pytest.mark.parametrize(
    ("body", "kind", "size"),
    [
        (NEAR, "float", "unsigned"),  # may wrap around
        (NEAR, "unsigned char", "size_t"),
        (NEAR.replace("const KIND* row = (const KIND*)", "const int* row = (const int*)"), "float", "int"),
        (NEAR.replace("* pitch", "* pitch + 2"), "float", "int"),
        (NEAR.replace("* pitch", "* (pitch + 4)"), "float", "int"),
        (NEAR.replace("(const char*)a", "(const short*)a"), "float", "int"),
        (f"pitch += 4; {NEAR}", "float", "int"),
        (f"a += 1; {NEAR}", "float", "int"),
    ],
)  # fmt: skip
def test_what_may_begin_within_an_element_stays(body: str, kind: str, size: str) -> None:
    assert "no row of its arrays" in refused(pitched(kernel_of(text_of(body, kind, size))))


@pytest.mark.parametrize("size", ["size_t", "int"])
def test_items_share_rows_that_a_quotient_of_a_size_lies_apart(size: str) -> None:
    body = f"{ROW} {ROW.replace('row', 'next').replace('y - 1', 'y + 1')} out[y * w + x] = row[x] + next[x];"
    text = text_of(body, size=size)
    ready = kernel_of(written(pitched(kernel_of(text))))
    for several in Several({"y": (2, 4)}), Several({"x": (4,), "y": (2,)}):
        after = written(jam(ready, several))
        assert "* (long long)(pitch / 4)" in after or "* (pitch / 4)" in after
        assert ends(text, after) == "same"
