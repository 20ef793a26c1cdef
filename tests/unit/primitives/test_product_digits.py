"""Products of many matrices whose launch numbers them, and their elements, by digits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.source.program import parse_program
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of

CONTRACT = """\
#pragma optiml launch contract %s
__global__ void contract(const float* X, const float* W, float* Y, int B, int I, int J, int K, int L) {
    %s
    float s = 0;
    for (int j = 0; j < J; j++) s += X[((b * I + i) * J + j) * K + k] * W[(k * J + j) * L + l];
    Y[((b * I + i) * K + k) * L + l] = s;
}
"""
ARRAYS = {
    "X": Array("f4", ("B", "I", "J", "K")), "W": Array("f4", ("K", "J", "L")),
    "Y": Array("f4", ("B", "I", "K", "L"), "zeros"),
}  # fmt: skip
SIZES = (
    {"B": 2, "I": 3, "J": 17, "K": 5, "L": 19},
    {"B": 3, "I": 1, "J": 1, "K": 1, "L": 37},
    {"B": 1, "I": 20, "J": 9, "K": 3, "L": 1},
)
LINE = "grid(cdiv(K * L, 64), B * I) block(64)"
FLAT = "int t = blockIdx.x * 64 + threadIdx.x, k = t / L, l = t % L; if (t >= K * L) return; "
ROWS = "grid(cdiv(L, 16), cdiv(B * I, 4), K) block(16, 4)"
PLANE = """int l = blockIdx.x * 16 + threadIdx.x, t = blockIdx.y * 4 + threadIdx.y, k = blockIdx.z;
    if (l >= L || t >= B * I) return; """
DIGITS = "int b = blockIdx.y / I, i = blockIdx.y % I;"
KERNELS = (
    (LINE, FLAT + DIGITS),
    (LINE, FLAT + DIGITS.replace("int", "unsigned")),
    (LINE, FLAT + "size_t b = (size_t)blockIdx.y / I, i = (size_t)blockIdx.y % I;"),
    (LINE, FLAT + "int b = blockIdx.y / I, i = blockIdx.y - b * I;"),
    (LINE, FLAT + DIGITS + " I += 1; I -= 1;"),
    (LINE, FLAT + DIGITS + " if (gridDim.y < 5) return;"),
    (LINE.replace("B * I", "B * I + 1"), FLAT + DIGITS + " if (blockIdx.y >= B * I) return;"),
    (LINE, FLAT.replace("t / L, l = t % L", "t % K, l = t / K") + DIGITS),
    (LINE, FLAT + "int i = blockIdx.y / B, b = blockIdx.y % B;"),
    (LINE.replace("B * I", "I, B"), FLAT + "int i = blockIdx.y, b = blockIdx.z;"),
    (ROWS, PLANE + "int b = t / I, i = t % I;"),
    (ROWS, PLANE + "int b = t % B, i = t / B;"),
    (LINE, FLAT + DIGITS.replace("% I", "% J % I")),
)


def sites(launch: str, digits: str) -> tuple[str, list[Site | Refused]]:
    text, rule = CONTRACT % (launch, digits), BlockedProduct()
    return text, [*rule.sites(rule.shaped(kernel_of(text)))]


@pytest.mark.parametrize(("launch", "digits"), sampled([*KERNELS], 4))
def test_rows_of_all_matrices_lie_below_each_other(launch: str, digits: str) -> None:
    text, (site,) = sites(launch, digits)
    assert isinstance(site, Site), site
    made = site.apply()
    assert isinstance(made, Kernel), made
    point = {"BM": 16, "BN": 32, "BK": 16, "TM": 2, "TN": 2, "BLOCKS": 1}
    after = made.program.with_values(point).text
    for other in SIZES[1:]:
        assert end_of(text, after, ARRAYS, SIZES[0], other, rounds=True) == "same"


@pytest.mark.parametrize(
    ("launch", "digits", "reason"),
    [
        (LINE, FLAT + DIGITS.replace("int", "short"), "an index is not a sum of its parts"),
        (LINE, FLAT + DIGITS + " if (gridDim.x > 1) return;", "an index is not a sum of its parts"),
        (LINE, FLAT + DIGITS + " if (b == 1 && i > 0) return;", "not a comparison"),
    ],
)
def test_other_digits_are_refused(launch: str, digits: str, reason: str) -> None:
    _, (found,) = sites(launch, digits)
    assert isinstance(found, Refused), found
    assert reason in found.reason


@pytest.mark.parametrize(
    ("guard", "reason"),
    [
        ("if (t % 3 + l + j >= 2) ", "a guard ties rows to columns"),
        ("if (t % 3 + j >= 2) ", "a guard ties rows to columns"),
        ("if (t % 3 >= 1 && l % 2 == 0) ", ""),
    ],
)
def test_digits_in_guards(guard: str, reason: str) -> None:
    digits = PLANE + "int b = t / I, i = t % I;"
    text = (CONTRACT % (ROWS, digits)).replace("s += X", guard + "s += X")
    rule = BlockedProduct()
    (found,) = rule.sites(rule.shaped(kernel_of(text)))
    if reason:
        assert isinstance(found, Refused), found
        assert reason in found.reason
        return
    assert isinstance(found, Site), found
    made = found.apply()
    assert isinstance(made, Kernel), made
    point = {"BM": 16, "BN": 32, "BK": 16, "TM": 2, "TN": 2, "BLOCKS": 1}
    after = made.program.with_values(point).text
    for other in SIZES[1:]:
        assert end_of(text, after, ARRAYS, SIZES[0], other, rounds=True) == "same"


WEIGHTS = """\
#pragma optiml launch weights grid(cdiv(K * C * R * S, 64)) block(64)
__global__ void weights(const float* x, const float* dy, float* dw, int N, int C, int H, int W, int K, int R, int S) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= K * C * R * S) return;
    int s = t % S, r = t / S % R, c = t / (S * R) % C, k = t / (S * R * C);
    float sum = 0.0f;
    for (int n = 0; n < N; n++)
        for (int p = 0; p < H; p++)
            for (int q = 0; q < W; q++) {
                int h = p + r - R / 2, w = q + s - S / 2;
                if (h >= 0 && h < H && w >= 0 && w < W)
                    sum += x[((n * C + c) * H + h) * W + w] * dy[((n * K + k) * H + p) * W + q];
            }
    dw[t] = sum;
}
"""
WEIGHT_ARRAYS = {
    "x": Array("f4", ("N", "C", "H", "W")), "dy": Array("f4", ("N", "K", "H", "W")),
    "dw": Array("f4", ("K", "C", "R", "S"), "zeros"),
}  # fmt: skip
WEIGHT_SIZES = {"N": 3, "C": 4, "H": 9, "W": 7, "K": 6, "R": 3, "S": 3}


def test_a_column_has_digits_of_its_own() -> None:
    (kernel,) = kernels(parse_program(WEIGHTS), None)
    facts = LaunchFacts("weights", 1, (4, 1, 1), (64, 1, 1), {}, WEIGHT_SIZES)
    rule = BlockedProduct()
    (site,) = rule.sites(rule.shaped(replace(kernel, facts=facts)))
    assert isinstance(site, Site), site
    assert {f"where {n} is {WEIGHT_SIZES[n]}" for n in "HWRS"} <= {*site.title.split(", ")}
    made = site.apply()
    assert isinstance(made, Kernel), made
    point = {"BM": 16, "BN": 32, "BK": 16, "TM": 2, "TN": 2, "BLOCKS": 1}
    after = made.program.with_values(point).text
    ends = {"same": ({}, {"K": 37, "C": 9}, {"N": 1, "C": 1, "K": 1}), "narrowed": ({"R": 1},)}
    for end, sizes in ends.items():
        for changed in sizes:
            given = WEIGHT_ARRAYS, WEIGHT_SIZES, WEIGHT_SIZES | changed
            assert end_of(WEIGHTS, after, *given, rounds=True) == end


LAYER = """\
#pragma optiml launch layer grid(cdiv(H * W, 64), K, N) block(64)
__global__ void layer(const float* X, const float* F, float* Y, int N, int C, int H, int W, int K) {
    int p = blockIdx.x * blockDim.x + threadIdx.x, k = blockIdx.y, n = blockIdx.z;
    if (p >= H * W) return;
    int x = p % W, y = p / W;
    float s = 0;
    for (int c = 0; c < C; c++)
        for (int b = -1; b <= 1; b++)
            for (int d = -1; d <= 1; d++)
                if (y + b >= 0 && y + b < H && x + d >= 0 && x + d < W)
                    s += X[((n * C + c) * H + y + b) * W + x + d] * F[((k * C + c) * 3 + b + 1) * 3 + d + 1];
    Y[(n * K + k) * H * W + p] = s;
}
"""
OF_LAYER = {
    "X": Array("f4", ("N", "C", "H", "W")), "F": Array("f4", ("K", "C", "3", "3")),
    "Y": Array("f4", ("N", "K", "H", "W"), "zeros"),
}  # fmt: skip
LAYERS = (
    {"N": 2, "C": 3, "H": 9, "W": 7, "K": 5},
    {"N": 1, "C": 2, "H": 1, "W": 33, "K": 3},
    {"N": 3, "C": 1, "H": 17, "W": 1, "K": 1},
)


def test_pixels_that_are_one_index_are_columns_where_filters_have_an_axis() -> None:
    rule = BlockedProduct()
    found = [*rule.sites(rule.shaped(kernel_of(LAYER)))]
    sites = [site for site in found if isinstance(site, Site)]
    assert sites, found
    made = sites[0].apply()
    assert isinstance(made, Kernel), made
    point = {"BM": 16, "BN": 32, "BK": 32, "TM": 2, "TN": 2, "BLOCKS": 1}
    after = made.program.with_values(point).text
    assert "cdiv(H * W, BN)" in after
    for other in LAYERS[1:]:
        assert end_of(LAYER, after, OF_LAYER, LAYERS[0], other, rounds=True) == "same"
