"""Elements whose members are stored one by one, stored as a whole."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.stored_whole import stored_whole
from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from tests.ideas import asked
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of
from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""


@pytest.mark.parametrize(
    ("body", "made"),
    sampled([
        ("out[i].x = a[i]; /* then */ out[i].y = a[n - 1 - i] * 2.0;",
         ["out[i] = make_float2(a[i], a[n - 1 - i] * 2.0);"]),
        ("float2* o = out + i; o[0].y = 1; o[0].x = a[i];", ["o[0] = make_float2(a[i], 1);"]),
        ("out[i].x = 3; out[i].x = out[i].x + 1; out[i].y = 4;", ["make_float2(out[i].x + 1, 4)"]),
        ("if (i % 2) { out[i].x = 1; out[i].y = 2; } else { out[i].y = a[i]; out[i].x = 5; }",
         ["make_float2(1, 2)", "make_float2(5, a[i])"]),
    ], 2),
)  # fmt: skip
def test_members_side_by_side_are_one_store(body: str, made: list[str]) -> None:
    text = TEXT % body
    found = applied(stored_whole(kernel(text)))
    assert all(part in found.program.text for part in made), found.program.text
    shapes = {"a": ("n",), "out": ("n", "2")}
    same(text, found, shapes, {"n": 70})


@pytest.mark.parametrize(
    "body",
    [
        "out[i].x = a[i]; out[i].y = out[i].x;",
        "out[i].x = a[i];",
        "out[i].x = 1; if (n > 3) out[i].y = 2;",
        "out[i].x = 1; out[n - 1 - i].y = 2;",
        "int k = i; out[i].x = k++; out[i].y = k++;",
        "int k = i; out[k++].x = 1; out[k++].y = 2;",
        "out[i].x += 1; out[i].y = 2;",
        "out[i].x = 1; float t = out[i].x; out[i].y = t;",
        "volatile float2* o = out; o[i].x = 1; o[i].y = 2;",
        "float2 o[2]; o[1].x = 1; o[1].y = 2; out[i] = o[1];",
    ],
)
def test_those_that_stay(body: str) -> None:
    assert "member by member" in refused(stored_whole(kernel(TEXT % body)))[0]


def test_windows_of_complex_numbers_are_shared_by_neighbours() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float2* a, const float2* taps, float2* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float re = 0.0f, im = 0.0f;
    for (int k = 0; k < m; k++) {
        re += a[i + k].x * taps[k].x - a[i + k].y * taps[k].y;
        im += a[i + k].x * taps[k].y + a[i + k].y * taps[k].x;
    }
    out[i].x = re;
    out[i].y = im;
}"""
    found = [i for i in asked(ShareLoads(), text)[0] if "take several items along x" in i.title]
    assert found
    arrays = {"a": Array("f4", ("n + m", "2")), "taps": Array("f4", ("m", "2")),
              "out": Array("f4", ("n", "2"), "zeros")}  # fmt: skip
    made = found[0].make()
    assert isinstance(made, str)
    assert end_of(text, made, arrays, {"n": 300, "m": 20}, {"n": 3, "m": 2}) == "same"
