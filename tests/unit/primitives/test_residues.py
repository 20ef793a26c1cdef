"""Threads of one remainder, which makes the same rounds, are neighbours."""

from __future__ import annotations

from random import Random

import pytest

from optiml_magic.kernels.primitives.residues import by_residue, sieved_by_residue
from tests.rewriting.offers import Offer, offers
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, refused, written

LAYER = """\
#pragma optiml launch deconv grid(cdiv(2 * w, 16), cdiv(2 * h, 4), f) block(16, 4)
__global__ void deconv(const float* x, const float* k, float* y, int c, int f, int h, int w) {
    int ox = blockIdx.x * blockDim.x + threadIdx.x;
    int oy = blockIdx.y * blockDim.y + threadIdx.y;
    int of = blockIdx.z;
    if (ox >= 2 * w || oy >= 2 * h) return;
    float s = 0.0f;
    for (int ic = 0; ic < c; ic++)
        for (int ky = 0; ky < 4; ky++)
            for (int kx = 0; kx < 4; kx++) {
                int ty = oy + 1 - ky, tx = ox + 1 - kx;
                if (ty % 2 != 0 || tx % 2 != 0) continue;
                int iy = ty / 2, ix = tx / 2;
                if (iy >= 0 && iy < h && ix >= 0 && ix < w)
                    s += x[(ic * h + iy) * w + ix] * k[((ic * f + of) * 4 + ky) * 4 + kx];
            }
    y[(of * 2 * h + oy) * 2 * w + ox] = s;
}
"""
ARRAYS = {
    "x": Array("f4", ("c", "h", "w")), "k": Array("f4", ("c", "f", "16")),
    "y": Array("f4", ("f", "2 * h", "2 * w"), "zeros"),
}  # fmt: skip
SIZES = {"c": 3, "f": 17, "h": 5, "w": 19}, {"c": 2, "f": 3, "h": 3, "w": 4}
THREE = (
    LAYER.replace("ky < 4", "ky < 3").replace("kx < 4", "kx < 3")
    .replace("+ of) * 4 + ky) * 4 + kx", "+ of) * 3 + ky) * 3 + kx")
)  # fmt: skip
FORMS = [
    LAYER,
    THREE,
    LAYER.replace("ox >= 2 * w || oy >= 2 * h", "!(2 * w > ox && oy <= 2 * h - 1)"),
    LAYER.replace("if (ox >= 2 * w || oy >= 2 * h) return;", "if (oy >= h * 2) return; if (ox >= w * 2) return;"),
    LAYER.replace("2 * w", "3 * w").replace("2 * h", "3 * h").replace("% 2", "% 3").replace("/ 2", "/ 3"),
    LAYER.replace("oy + 1 - ky, tx = ox + 1 - kx", "oy + ky - 2, tx = ox + kx - 2"),
]  # fmt: skip


@pytest.mark.parametrize("text", FORMS, ids=range(len(FORMS)))
def test_outputs_of_one_remainder_are_neighbours(text: str) -> None:
    arrays = ARRAYS | {"y": Array("f4", ("f", "3 * h", "3 * w"), "zeros")}
    for step in (by_residue, sieved_by_residue):
        after = written(step(kernel_of(text)))
        assert "blockIdx.z / 2 % 2" in after or "blockIdx.z / 3 % 3" in after
        assert end_of(text, after, arrays, *SIZES) == "same"


def test_the_launch_has_a_digit_for_each_remainder() -> None:
    after = written(by_residue(kernel_of(LAYER)))
    assert "grid(cdiv(w, 16), cdiv(h, 4), f * 2 * 2) block(16, 4)" in after
    assert "if ((place_x >= w) || (place_y >= h)) return;" in after


# As modules have it: the stride, the border and the extents of the output are given.
GIVEN = """\
#pragma optiml launch deconv grid(cdiv(b * f * oh * ow, 128)) block(128)
__global__ void deconv(const float* x, const float* k, float* y, int b, int c, int f, int h, int w,
                       int size, int stride, int pad, int oh, int ow) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= b * f * oh * ow) return;
    int ox = i % ow, oy = i / ow % oh, of = i / (ow * oh) % f, image = i / (ow * oh * f);
    float s = 0.0f;
    for (int ic = 0; ic < c; ic++)
        for (int ky = 0; ky < size; ky++) {
            int iy = oy + pad - ky;
            if (iy < 0 || iy % stride != 0) continue;
            iy /= stride;
            if (iy >= h) continue;
            for (int kx = 0; kx < size; kx++) {
                int ix = ox + pad - kx;
                if (ix < 0 || ix % stride != 0) continue;
                ix /= stride;
                if (ix >= w) continue;
                s += x[((image * c + ic) * h + iy) * w + ix] * k[((ic * f + of) * size + ky) * size + kx];
            }
        }
    y[i] = s;
}
"""
OF_GIVEN = {
    "x": Array("f4", ("b", "c", "h", "w")), "k": Array("f4", ("c", "f", "size", "size")),
    "y": Array("f4", ("b", "f", "oh", "ow"), "zeros"),
}  # fmt: skip
GIVEN_SIZES = (
    {"b": 2, "c": 3, "f": 17, "h": 5, "w": 19, "size": 4, "stride": 2, "pad": 1, "oh": 10, "ow": 38},
    {"b": 1, "c": 2, "f": 3, "h": 3, "w": 4, "size": 3, "stride": 2, "pad": 0, "oh": 7, "ow": 9},
)  # fmt: skip
OF_ONE = (
    {"b": 2, "c": 2, "f": 33, "h": 6, "w": 62, "size": 3, "stride": 1, "pad": 0, "oh": 8, "ow": 64},
    GIVEN_SIZES[0],
)
ALONG = """\
#pragma optiml launch deconv grid(cdiv(b * f * ol, 128)) block(128)
__global__ void deconv(const float* x, const float* k, float* y, int b, int c, int f, int l, int size,
                       int stride, int pad, int ol) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= b * f * ol) return;
    int o = i % ol, of = i / ol % f, row = i / (ol * f);
    float s = 0.0f;
    for (int ic = 0; ic < c; ++ic)
        for (int j = 0; j < size; ++j) {
            int at = o + pad - j;
            if (at >= 0 && at % stride == 0) {
                at /= stride;
                if (at < l) s += x[(row * c + ic) * l + at] * k[(ic * f + of) * size + j];
            }
        }
    y[i] = s;
}
"""
OF_ALONG = {
    "x": Array("f4", ("b", "c", "l")), "k": Array("f4", ("c", "f", "size")),
    "y": Array("f4", ("b", "f", "ol"), "zeros"),
}  # fmt: skip
ALONG_SIZES = (
    {"b": 2, "c": 3, "f": 17, "l": 21, "size": 4, "stride": 2, "pad": 1, "ol": 42},
    {"b": 2, "c": 2, "f": 3, "l": 5, "size": 3, "stride": 3, "pad": 0, "ol": 15},
)


@pytest.mark.parametrize(
    ("text", "arrays", "sizes"),
    [
        (LAYER, ARRAYS, SIZES), (THREE, ARRAYS, SIZES),
        (GIVEN, OF_GIVEN, GIVEN_SIZES), (GIVEN, OF_GIVEN, OF_ONE), (ALONG, OF_ALONG, ALONG_SIZES),
    ],
)  # fmt: skip
def test_layers_are_products_of_tiles(
    text: str, arrays: dict[str, Array], sizes: tuple[dict[str, int], dict[str, int]]
) -> None:
    stand = Stand(Made("layer", text, arrays, *sizes, exact=False))
    made = offers(
        text, text, lambda: stand.facts(text), Random(0), each=2, rules=("blocked_product",)
    )
    found = [one for one in made if isinstance(one, Offer)]
    assert found
    for one in found:
        before, _, _ = one.text.partition("s_tile[own_row][own_col] +=")
        assert before.splitlines()[-2].strip().startswith("for (int own_"), "a round has tests"
        applied = stand.applied(one, text)
        assert applied.sound, f"{applied.end}: {applied.detail}\n{one.text}"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("if (ty % 2 != 0 || tx % 2 != 0) continue;", "", "no remainder of an index"),
        ("% 2 != 0", "% c != 0", "no remainder of an index"),
        ("2 * w", "(v + w)", "is not a multiple of 2"),
        ("2 * w", "(2 * w - 1)", "is not a multiple of 2"),
        ("if (ox >= 2 * w || oy >= 2 * h) return;", "", "is not a multiple of 2"),
        ("float s = 0.0f;", "float s = gridDim.z;", "counts the blocks"),
        ("float s = 0.0f;", "__shared__ float t; t = 0.0f; __syncthreads(); float s = t;", "wait"),
        ("float s = 0.0f;", "float s = __shfl_sync(~0u, ox, 0);", "lanes exchange"),
    ],
)
def test_refused(old: str, new: str, reason: str) -> None:
    text = LAYER.replace(old, new).replace("int h, int w", "int h, int w, int v")
    assert reason in refused(by_residue(kernel_of(text)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Tests of another bound, of the index in another way, and within a round stay.
        ("float s = 0.0f;", "if (ox >= 7) return; float s = 0.0f;"),
        ("float s = 0.0f;", "if (ox + 1 > 2 * w - 3) return; float s = 0.0f;"),
        ("ox >= 2 * w || oy >= 2 * h", "ox >= 2 * w || oy >= 2 * h || ox == 3"),
        ("ox >= 2 * w || oy >= 2 * h", "ox >= 2 * w || oy >= 2 * h || -ox < -9"),
        ("float s = 0.0f;", "float s = threadIdx.x + 3 * blockIdx.y;"),
        ("int of = blockIdx.z;", "int of = blockIdx.z; if (of > 1 && ox < 2 * w - 2) return;"),
    ],
)
def test_other_tests_of_the_index_stay(old: str, new: str) -> None:
    text = LAYER.replace(old, new, 1)
    assert text != LAYER
    after = written(by_residue(kernel_of(text)))
    assert end_of(text, after, ARRAYS, *SIZES) == "same"
