"""The rule for counted differences: what it offers, and what kernels become of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.proposers.rewrites.bit_planes import BitPlanes
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.source.program import parse_program
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made
from tests.unit.primitives.alike import end_of, kernel_of

BLOCK_A_PAIR = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(n, n) block(64)
__global__ void k(const {0}* a, int* out, int n, int d) {{
    int i = blockIdx.y, j = blockIdx.x, c = 0;
    for (int k = threadIdx.x; k < d; k += blockDim.x) {{
        if (a[i * d + k] {1} a[j * d + k]) c++;
    }}
    atomicAdd(&out[i * n + j], c);
}}
"""
THREAD_A_PAIR = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const int* a, int* out, {0} n, {0} d) {{
    {0} j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    int c = 0;
    for ({0} k = 0; k < d; k++) c += a[i * d + k] != a[j * d + k];
    out[i * n + j] = c;
}}
"""
PRODUCT = THREAD_A_PAIR.replace("!=", "*")
SIZES = {"n": 67, "d": 100}, {"n": 5, "d": 3}


def arrays(dtype: str = "i4", content: str = "below n") -> dict[str, Array]:
    return {"a": Array(dtype, ("n", "d"), content), "out": Array("i4", ("n", "n"), "zeros")}


def found(kernel: Kernel) -> list[Site | Refused]:
    return [*BitPlanes().sites(BitPlanes().shaped(kernel))]


def check(text: str, site: Site | Refused, given: dict[str, Array]) -> None:
    """A site, with each of its points, comes to the same."""
    assert isinstance(site, Site), site
    made = site.apply()
    assert isinstance(made, Kernel), made
    for point in site.points:
        chosen = made.program.with_values(point)
        assert end_of(text, chosen.text, given, *SIZES) == "same"


@pytest.mark.parametrize(
    ("kind", "dtype", "content", "op"),
    [
        ("int", "i4", "below n", "!="), ("int", "i4", "bits", "=="),
        ("unsigned char", "u1", "bits", "!="), ("char", "i1", "bits", "=="),
    ],
)  # fmt: skip
def test_pairs_of_blocks_are_compared_each_once(
    kind: str, dtype: str, content: str, op: str
) -> None:
    text = BLOCK_A_PAIR.format(kind, op)
    every, once = found(kernel_of(text))
    assert isinstance(once, Site)
    assert "each pair once" in once.title
    for site in (every, once):
        check(text, site, arrays(dtype, content))


@pytest.mark.parametrize("kind", ["int", "unsigned int", "size_t"])
def test_sizes_that_are_known_may_have_other_types(kind: str) -> None:
    text = THREAD_A_PAIR.format(kind)
    stand = Stand(Made("one", text, arrays(), *SIZES))
    (kernel,) = kernels(parse_program(text), stand.facts(text))
    every, once = found(kernel)
    for site in (every, once):
        check(text, site, arrays())


def test_few_tiles_share_out_the_words() -> None:
    text = THREAD_A_PAIR.format("int")
    stand = Stand(Made("one", text, arrays(), {"n": 67, "d": 1030}, SIZES[1]))
    (kernel,) = kernels(parse_program(text), stand.facts(text))
    several = [s for s in found(kernel) if isinstance(s, Site) and "share them out" in s.title]
    assert ["each pair once" in site.title for site in several] == [False, True]
    for site in several:
        check(text, replace(site, points=site.points[:1]), arrays())


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({"n": 67, "d": 60}, "60 elements are too few for words of 32"),
        ({"n": 31, "d": 100}, "elements are compared 31 times each"),
    ],
)
def test_what_is_small_is_compared_as_it_is(sizes: dict[str, int], reason: str) -> None:
    text = THREAD_A_PAIR.format("int")
    stand = Stand(Made("one", text, arrays(), sizes, SIZES[1]))
    (kernel,) = kernels(parse_program(text), stand.facts(text))
    (refusal,) = found(kernel)
    assert isinstance(refusal, Refused)
    assert refusal.reason == reason


def test_a_product_is_no_comparison() -> None:
    assert not found(kernel_of(PRODUCT.format("int")))
