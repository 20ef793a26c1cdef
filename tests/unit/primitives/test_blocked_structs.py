"""Products whose elements are pairs of numbers, by tiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.blocked import block_outputs
from optiml_magic.kernels.primitives.tile_layout import Tile
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import Site
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, written

TILE = Tile(16, 32, 8, 4, 4, 1)
PAIRS = """\
STRUCT
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const Pair* a, const Pair* b, float* re, float* im, int m, int n, int d) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m || j >= n) return;
    float x = 0.0f, y = 0.0f;
    for (int k = 0; k < d; ++k) {
        Pair p = a[i * d + k], q = b[k * n + j];
        x += p.re * q.re - p.im * q.im;
        y += p.re * q.im + p.im * q.re;
    }
    re[i * n + j] = x;
    im[i * n + j] = y;
}
"""
ARRAYS = {
    "a": Array("re:f4 im:f4", ("m", "d")), "b": Array("re:f4 im:f4", ("d", "n")),
    "re": Array("f4", ("m", "n"), "zeros"), "im": Array("f4", ("m", "n"), "zeros"),
}  # fmt: skip
SIZES = {"m": 19, "n": 37, "d": 21}, {"m": 1, "n": 5, "d": 3}
STRUCTS = (
    "struct Pair { float re, im; };",
    "typedef struct { float re, im; } Pair;  // of no Pair(x)",
    "struct Pair { float re, im; Pair() = default; __device__ Pair(float x) : re(x), im(0) {} };",
    "struct alignas(8) Pair { float re, im; static const int parts = 2; };",
)


@pytest.mark.parametrize("struct", sampled([*STRUCTS], 2))
def test_elements_of_a_structure_begin_with_its_zeros(struct: str) -> None:
    text = PAIRS.replace("STRUCT", struct)
    made = written(block_outputs(kernel_of(text), 0, TILE))
    assert ": Pair{};" in made
    assert end_of(text, made, ARRAYS, *SIZES, rounds=True) == "same"


@pytest.mark.parametrize(
    "struct",
    [
        "struct Pair { float re = 1, im; };",
        "struct Pair { float re{1}, im; };",
        "struct Pair { float re, im; __device__ Pair() { re = im = 1; } };",
        "struct Pair { float re, im; __device__ Pair(float x) : re(x), im(0) {} };",
        "struct One { float v = 1; }; struct Pair { float re, im; One one; };",
    ],
)
def test_elements_that_begin_with_other_values_are_refused(struct: str) -> None:
    made = block_outputs(kernel_of(PAIRS.replace("STRUCT", struct)), 0, TILE)
    assert not isinstance(made, Kernel)
    assert (made.reason, made.line) == ("a `Pair` does not begin with zeros", 8)


@pytest.mark.parametrize(
    ("struct", "columns"),
    [("struct Pair { float re, im; };", 4), ("struct Pair { float re; };", 8)],
)
def test_threads_have_as_many_words_of_sums_whatever_an_output_is(
    struct: str, columns: int
) -> None:
    text = PAIRS.replace("STRUCT", struct)
    if columns == 8:
        text = text.replace(" - p.im * q.im", "").replace("y += p.re * q.im + p.im * q.re;", "")
    grid, sizes = (128, 128, 1), {"m": 2048, "n": 2048, "d": 2048}
    facts = LaunchFacts("k", 1, grid, (16, 16, 1), {}, sizes)
    known = replace(kernel_of(text), facts=facts, chip="h200")
    (site,) = (s for s in BlockedProduct().sites(known) if isinstance(s, Site))
    first = site.points[0]
    assert (first["TM"], first["TN"]) == (8, columns)
