"""Elements of three numbers, loaded and stored number by number."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.jammed import Several, jam
from optiml_magic.kernels.primitives.triples import by_numbers
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const VECTOR* a, VECTOR* out, int w, int h, const int* at) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    BODY
}
"""
CLAMPED = "a[min(y + j, h - 1) * w + max(x + i, 0)]"
BLUR = f"""\
float r = 0, g = 0, b = 0;
for (int j = 0; j <= 1; ++j)
    for (int i = -1; i <= 0; ++i) {{ VECTOR p = {CLAMPED}; r += p.x; g += p.y; b += p.z; }}
out[y * w + x] = make_VECTOR(r / 4, g / 4, b / 4);"""


def _text(body: str, kind: str = "uchar3") -> str:
    return TEXT.replace("BODY", body).replace("VECTOR", kind)


def _arrays(dtype: str) -> dict[str, Array]:
    shape = ("h", "w", "3")
    return {
        "a": Array(dtype, shape), "out": Array(dtype, shape, "zeros"),
        "at": Array("i4", ("w",), "below w"),
    }  # fmt: skip


SIZES = {"w": 40, "h": 9}, {"w": 17, "h": 2}


@pytest.mark.parametrize(("kind", "dtype"), sampled([("uchar3", "u1"), ("float3", "f4")]))
def test_they_come_and_go_one_by_one(kind: str, dtype: str) -> None:
    text = _text(BLUR, kind)
    after = written(by_numbers(kernel_of(text)))
    assert f"make_{kind}({CLAMPED}.x, {CLAMPED}.y, {CLAMPED}.z)" in after
    assert "out[y * w + x].z = out_value.z;" in after
    assert end_of(text, after, _arrays(dtype), *SIZES) == "same"


@pytest.mark.parametrize(("kind", "dtype"), [("uchar3", "u1"), ("short3", "i2"), ("float3", "f4")])
def test_items_share_their_numbers(kind: str, dtype: str) -> None:
    text = _text(BLUR, kind)
    ready = kernel_of(written(by_numbers(kernel_of(text))))
    after = written(jam(ready, Several({"x": (8,), "y": (2, 4)})))
    assert "a_row" in after
    assert ">(&a[(size_t)y_first * w + x_first])" in after
    assert end_of(text, after, _arrays(dtype), *SIZES) == "same"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("out[y * w + x] = a[at[x]];", "memory says where"),
        ("int i = y * w + x; out[i] = a[i++];", "cannot be said again"),
        ("const uchar3& p = a[x]; out[x] = make_uchar3(p.x, 1, 2);", ""),
        ("uchar3 p; out[x] = p = a[x];", ""),
        ("out[x + w] = out[x] = a[x];", "within something else"),
        ("out[x].x = a[x].y;", "no element has three numbers"),
    ],
)
def test_what_stays(body: str, reason: str) -> None:
    made = by_numbers(kernel_of(_text(body)))
    if reason:
        assert reason in refused(made)
    else:
        after, sizes = written(made), ({"w": 9, "h": 1}, {"w": 3, "h": 1})
        assert end_of(_text(body), after, _arrays("u1"), *sizes) == "same"
