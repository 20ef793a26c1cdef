"""An index along x that is taken apart, of a launch with blocks for each plane."""

from __future__ import annotations

from random import Random

import pytest

from optiml_magic.kernels.primitives.residues import sieved_by_residue
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from tests.rewriting.offers import Offer, offers
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, refused, written

PLANES = """\
#pragma optiml launch shift grid(cdiv(h * w, 64), c, n) block(64)
__global__ void shift(const float* x, float* y, int n, int c, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h * w) return;
    int channel = blockIdx.y, image = blockIdx.z, row = i / w, col = i % w;
    float v = x[(image * c + channel) * h * w + i] + channel;
    if (row > 0 && col + 1 < w) v += 2.0f * x[((image * c + channel) * h + row - 1) * w + col + 1];
    y[((image * c + channel) * h + row) * w + col] = v;
}
"""
ARRAYS = {"x": Array("f4", ("n", "c", "h", "w")), "y": Array("f4", ("n", "c", "h", "w"), "zeros")}
SIZES = {"n": 2, "c": 3, "h": 5, "w": 37}, {"n": 1, "c": 2, "h": 3, "w": 4}
ONE = PLANES.replace(", c, n)", ", n * c)").replace("blockIdx.y, image = blockIdx.z", (
    "blockIdx.y % c, image = blockIdx.y / c"))  # fmt: skip


@pytest.mark.parametrize("text", [PLANES, ONE])
def test_rows_and_columns_are_axes_and_planes_blocks(text: str) -> None:
    after = written(unravelled_planes(kernel_of(text)))
    assert "grid(cdiv(w, 32), cdiv(h, 2), n * c) block(32, 2)" in after
    assert end_of(text, after, ARRAYS, *SIZES) == "same"


IMAGES = """\
#pragma optiml launch shift grid(cdiv(c * h * w, 64), %s) block(64)
__global__ void shift(const float* x, float* y, int n, int c, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= c * h * w) return;
    int image = %s, row = i / w %% h, col = i %% w, channel = i / (w * h);
    float v = x[image * c * h * w + i] + channel;
    if (row > 0 && col + 1 < w) v += 2.0f * x[((image * c + channel) * h + row - 1) * w + col + 1];
    y[image * c * h * w + i] = v;
}
"""


@pytest.mark.parametrize(
    ("blocks", "image"),
    [
        ("n", "blockIdx.y"),
        ("2, n / 2", "blockIdx.z * 2 + blockIdx.y"),
        ("size(x) / (c * h * w)", "blockIdx.y"),
    ],
)
@pytest.mark.parametrize("guard", [False, True])
def test_what_is_left_above_rows_and_columns_is_counted_with_the_planes(
    blocks: str, image: str, guard: bool
) -> None:
    text = IMAGES % (blocks, image)
    if guard:
        text = text.replace("(i >= c * h * w) return;", "(i < c * h * w) {")
        text = text.replace("] = v;\n}", "] = v;\n}\n}")
    after = written(unravelled_planes(kernel_of(text)))
    assert "grid(cdiv(w, 32), cdiv(h, 2), " in after
    assert end_of(text, after, ARRAYS, *({**s, "n": 2} for s in SIZES)) == "same"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (", c, n) block(64)", ", 1, n) block(64, 2)", "planes of one axis"),
        (", c, n) block(64)", ") block(64)", "planes of one axis"),
        ("row = i / w, col = i % w", "row = 1, col = i", "take their index apart"),
        ("if (i >= h * w) return;", "", "how many items there are"),
        ("float v =", "if (gridDim.y > 3) return; float v =", "counts the blocks"),
        ("float v =", "c = c + 0; float v =", "not said by sizes alone"),
        ("float v =", "__syncthreads(); float v =", "wait for each other"),
        (", c, n) block(64)", ", cdiv(c, 1), n) block(64)", "not said by sizes alone"),
    ],
)
def test_refused(old: str, new: str, reason: str) -> None:
    text = PLANES.replace(old, new)
    assert text != PLANES
    assert reason in refused(unravelled_planes(kernel_of(text)))


@pytest.mark.parametrize("kind", ["int", "long long", "size_t", "unsigned", "short"])
@pytest.mark.parametrize(
    "asks",
    [
        "if (blockIdx.y - 1u < 5) v += 1;",
        "long long d = blockIdx.y - 1u; v += d;",
        "v += sizeof(blockIdx.y) + (float)(blockIdx.z - 1);",
    ],
)
def test_blocks_stay_of_their_type(kind: str, asks: str) -> None:
    text = PLANES.replace("int c,", f"{kind} c,").replace("    y[", f"    {asks}\n    y[")
    after = written(unravelled_planes(kernel_of(text)))
    assert end_of(text, after, ARRAYS, *SIZES) == "same"


DECONV = """\
#define STRIDE 2
#pragma optiml launch deconv grid((2 * h * 2 * w + 63) / 64, f, n) block(64)
__global__ void deconv(const float* x, const float* k, float* y, int n, int c, int h, int w, int f) {
    int oh = (h - 1) * STRIDE - 2 + 4, ow = (w - 1) * STRIDE - 2 + 4;
    int pix = blockIdx.x * blockDim.x + threadIdx.x;
    if (pix >= oh * ow) return;
    int of = blockIdx.y, on = blockIdx.z, oy = pix / ow, ox = pix % ow;
    float s = 0.0f;
    for (int ic = 0; ic < c; ++ic)
        for (int a = 0; a < 4; ++a)
            for (int b = 0; b < 4; ++b) {
                int iy = oy + 1 - a, ix = ox + 1 - b;
                if (iy % STRIDE != 0 || ix % STRIDE != 0) continue;
                iy /= STRIDE;
                ix /= STRIDE;
                if (iy >= 0 && iy < h && ix >= 0 && ix < w)
                    s += x[((on * c + ic) * h + iy) * w + ix] * k[((ic * f + of) * 4 + a) * 4 + b];
            }
    y[((on * f + of) * oh + oy) * ow + ox] = s;
}
"""


def test_a_transposed_layer_of_one_index() -> None:
    kernel = BlockedProduct().shaped(kernel_of(DECONV))
    assert "blockIdx.z / 2 % 2" in kernel.program.text.replace("(int)", "").replace("(", "")
    arrays = {
        "x": Array("f4", ("n", "c", "h", "w")), "k": Array("f4", ("c", "f", "16")),
        "y": Array("f4", ("n", "f", "2 * h", "2 * w"), "zeros"),
    }  # fmt: skip
    sizes = {"n": 2, "c": 3, "h": 5, "w": 9, "f": 4}, {"n": 1, "c": 2, "h": 2, "w": 3, "f": 2}
    assert end_of(DECONV, kernel.program.text, arrays, *sizes) == "same"
    large = {"n": 2, "c": 3, "h": 9, "w": 21, "f": 17}
    stand = Stand(Made("layer", DECONV, arrays, large, sizes[1], exact=False))
    made = offers(
        DECONV, DECONV, lambda: stand.facts(DECONV), Random(0), each=1, rules=("blocked_product",)
    )
    found = [one for one in made if isinstance(one, Offer)]
    assert found
    for one in found:
        applied = stand.applied(one, DECONV)
        assert applied.sound, f"{applied.end}: {applied.detail}\n{one.text}"


def test_what_no_remainder_decides_stays_a_row() -> None:
    assert "no remainder of an index" in refused(sieved_by_residue(kernel_of(PLANES)))
