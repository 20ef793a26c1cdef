"""A size that groups divide is a product, so that the place within a group is a digit."""

from __future__ import annotations

from random import Random

import pytest

from optiml_magic.kernels.primitives.evenly import evenly
from tests.rewriting.offers import Offer, offers
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, refused, written

FLAT = """\
#pragma optiml launch conv grid(cdiv(n * f * h * w, 64)) block(64)
__global__ void conv(const float* x, const float* k, float* y, int n, int c, int h, int w, int f, int g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * f * h * w) return;
    int ox = i % w, oy = i / w % h, of = i / (w * h) % f, on = i / (w * h * f);
    int per = c / g, own = of / (f / g);
    float s = 0.0f;
    for (int ic = 0; ic < per; ic++)
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) {
                int iy = oy + a - 1, ix = ox + b - 1;
                if (iy >= 0 && iy < h && ix >= 0 && ix < w)
                    s += x[((on * c + own * per + ic) * h + iy) * w + ix] * k[((of * per + ic) * 3 + a) * 3 + b];
            }
    y[i] = s;
}
"""
PLANES = FLAT.replace("cdiv(n * f * h * w, 64)", "cdiv(w, 32), cdiv(h, 4), n * f").replace(
    "block(64)", "block(32, 4)"
)
PLANES = (
    PLANES[: PLANES.index("    int i =")]
    + """\
    int ox = blockIdx.x * 32 + threadIdx.x, oy = blockIdx.y * 4 + threadIdx.y;
    int of = blockIdx.z % f, on = blockIdx.z / f;
    if (ox >= w || oy >= h) return;
"""
    + PLANES[PLANES.index("    int per") :].replace("y[i]", "y[((on * f + of) * h + oy) * w + ox]")
)
ARRAYS = {
    "x": Array("f4", ("n * 2", "c", "h", "w")), "k": Array("f4", ("f", "c / g", "9")),
    "y": Array("f4", ("n", "f", "h", "w"), "zeros"),
}  # fmt: skip
SIZES = {"n": 2, "c": 6, "h": 9, "w": 34, "f": 34, "g": 2}
OTHERS = {"n": 1, "c": 6, "h": 3, "w": 4, "f": 9, "g": 2}
HELD = FLAT.replace("own = of / (f / g)", "each = f / g, own = of / each")


@pytest.mark.parametrize("text", [FLAT, PLANES, HELD, FLAT.replace("/ g", "/ 2")])
def test_products_of_each_group(text: str) -> None:
    stand = Stand(Made("layer", text, ARRAYS, SIZES, OTHERS, exact=False))
    made = offers(
        text, text, lambda: stand.facts(text), Random(0), each=1, rules=("blocked_product",)
    )
    found = [one for one in made if isinstance(one, Offer)]
    assert found
    for one in found:
        applied = stand.applied(one, text)
        assert applied.sound, f"{applied.end}: {applied.detail}\n{one.text}"


def test_the_size_is_a_product_where_groups_divide_it() -> None:
    after = written(evenly(kernel_of(FLAT)))
    assert "require g >= 1 && f % g == 0" in after
    assert "grid(cdiv(n * (f / g * g) * h * w, 64))" in after
    assert "% (f / g * g)" in after
    assert "of / (f / g)" in after
    assert end_of(FLAT, after, ARRAYS, SIZES, SIZES | {"n": 1}) == "same"
    assert "f % 2 == 0" in written(evenly(kernel_of(FLAT.replace("/ g", "/ 2"))))


def test_groups_that_do_not_divide_it_at_the_given_sizes() -> None:
    stand = Stand(Made("layer", FLAT, ARRAYS, OTHERS, OTHERS, exact=False))
    assert "does not divide" in refused(evenly(kernel_of(FLAT, stand.facts(FLAT))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int f, int g", "int f, unsigned g"),  # the product would have no sign
        ("int f, int g", "short f, short g"),
        ("int per", "g = g + 1; int per"),
        ("int per", "f = f - 1; int per"),
        ("int per", "const int* p = &f; int per"),
        ("of / (f / g)", "of / (f / (g + 1))"),
        ("of / (f / g)", "of / (h / g)"),
        ("of / (f / g)", "(of + 1) / (f / g)"),
        ("of / (f / g)", "of / (f / f)"),
        ("/ (w * h) % f", "/ (w * h) % n"),
    ],
)
def test_refused(old: str, new: str) -> None:
    text = FLAT.replace(old, new, 1)
    assert text != FLAT
    assert "no digit of an index" in refused(evenly(kernel_of(text)))


def test_names_that_the_launch_gives_to_others() -> None:
    text = FLAT.replace("block(64)", "block(64) args(x, k, y, n, c, h, w, m, g)", 1)
    assert "no digit of an index" in refused(evenly(kernel_of(text)))
