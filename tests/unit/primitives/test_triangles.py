"""Products of which guards leave a part out: triangles, masks, mirrored stores, loops in threads."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import Site
from tests.present import sampled

from .running import same
from .shapes import PLANE, applied, kernel

TILE = {"BM": 16, "BN": 32, "BK": 8, "TM": 4, "TN": 4, "BLOCKS": 1}

ROWS = """\
#pragma optiml launch one grid(cdiv(m, 64)) block(64)
__global__ void one(const float* a, float* out, int m, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m) {
        %s
    }
}
"""
TO_HERE = "for (int j = 0; j <= i; j++) { %s }"
FROM_HERE = "for (int j = i; j < m; j++) { %s }"
SUM = "float s = 0.0f; for (int k = 0; k < d; k++) s += a[i * d + k] * a[j * d + k];"
BOTH = "out[i * m + j] = s; out[j * m + i] = s;"
PLANES = """\
#pragma optiml launch one grid(cdiv(m, 16), cdiv(m, 16)) block(16, 16)
__global__ void one(const float* a, float* out, int m, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= m) return;
    %s
}
"""


def tiled(text: str) -> Kernel | Refused:
    """What the rule makes of the first product in a kernel."""
    rule = BlockedProduct()
    found = list(rule.sites(rule.shaped(kernel(text))))
    first = next((site for site in found if isinstance(site, Site)), found[0])
    return first.apply() if isinstance(first, Site) else first


MIRRORED = (
    ROWS % (TO_HERE % (SUM + BOTH)),
    ROWS % (FROM_HERE % (SUM + BOTH)),
    ROWS % ("int j, k; " + (FROM_HERE % (
        "out[i * m + j] = 0.0f; for (k = 0; k < d; k++) out[i * m + j] += a[i * d + k] * "
        "a[j * d + k]; out[j * m + i] = out[i * m + j];")).replace("int j = ", "j = ")),
    (ROWS % ("out[i * m + i] = 1.0f; for (int j = i + 1; j < m; j++) {" + SUM + BOTH + "}")
     ).replace("i < m)", "i < m - 1)"),
    ROWS % (TO_HERE % (SUM + "out[i * m + j] = s; if (i != j) out[j * m + i] = -s;")),
    ROWS % ("for (int j = 0; j < i; ++j) {" + SUM + "out[j * m + i] = expf(s); }"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "m", "d"), sampled(
    [(text, m, d) for text in MIRRORED for m, d in ((37, 9), (36, 12))], 3))  # fmt: skip
def test_each_thread_of_a_triangle_shares_its_row(text: str, m: int, d: int) -> None:
    same(text, tiled(text), {"a": ("m", "d"), "out": ("m", "m")}, {"m": m, "d": d}, TILE,
         rounds="expf" in text)  # fmt: skip


MASKED = (
    PLANES % ("if (j > i) { out[i * m + j] = -INFINITY; return; } " + SUM
              + "out[i * m + j] = s * 0.5f;"),
    PLANES % ("if (j <= i) { " + SUM + "out[i * m + j] = s; } else { out[i * m + j] = 0.0f; }"),
    PLANES % ("if (j < i) return; " + SUM + "out[i * m + j] = s;"),
    PLANES % ("if (j > i || j <= i - 9) return; " + SUM + "out[i * m + j] = s;"),
    PLANES % ("if (i + j < m) { " + SUM + "out[i * m + j] = s; }"),
    PLANES % ("if (i > 5 && j <= i) { " + SUM + "out[i * m + j] = s; }"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "m", "d"), sampled(
    [(text, m, d) for text in MASKED for m, d in ((37, 9), (36, 12))], 3))  # fmt: skip
def test_tiles_without_an_output_have_no_rounds(text: str, m: int, d: int) -> None:
    made = applied(tiled(text))
    assert "if (tile_" in made.program.text.replace("if ((tile", "if (tile")
    same(text, made, {"a": ("m", "d"), "out": ("m", "m")}, {"m": m, "d": d}, TILE)


TRIANGLES = (
    "for (int k = 0; k <= i; ++k) s += a[i * d + k] * b[k * n + j];",
    "for (int k = i; k < d; ++k) s += a[i * d + k] * b[k * n + j];",
    "for (int k = i + 1; k < d; k++) s += a[k * m + i] * b[k * n + j];",
    "for (int k = j; k <= i; ++k) s += a[i * d + k] * b[k * n + j];",
    "for (int k = 0; k < d; ++k) { if (k > i) continue; s += a[i * d + k] * b[k * n + j]; }",
    "for (int k = 0; k < d; ++k) if (k <= i && k >= i - 5) s += a[i * d + k] * b[k * n + j];",
    "for (int k = 0; k < i; ++k) s += fabsf(a[i * d + k] - b[k * n + j]) + 1.0f;",
)
_SQUARE = "if (i < m && j < n && m == d && n == d) {"


@pytest.mark.parametrize(("inside", "d"), sampled(
    [(inside, d) for inside in TRIANGLES for d in (20, 37, 64)], 3))  # fmt: skip
def test_rounds_of_a_triangle_are_those_of_its_tiles(inside: str, d: int) -> None:
    text = PLANE.replace("int j = ", "if (m > d || n > d) return; int j = ", 1) % inside
    shapes = {"a": ("m", "d") if "a[i" in inside else ("d", "m"), "b": ("d", "n"),
              "out": ("m", "n")}  # fmt: skip
    same(text, tiled(text), shapes, {"m": d, "n": d, "d": d}, TILE)
