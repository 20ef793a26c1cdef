"""Products of matrices as tutorials write them: tiles of the rule's own for each of them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import Site
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of, written

_GIVEN = "int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C"
_LINE = """\
#define BS 32
#pragma optiml launch k grid(cdiv(M, BS), cdiv(N, BS)) block(BS * BS)
__global__ void k(GIVEN) {
    const int x = blockIdx.x * BS + (threadIdx.x / BS);
    const int y = blockIdx.y * BS + (threadIdx.x % BS);
    if (x < M && y < N) {
        float sum = 0.0;
        for (int i = 0; i < K; ++i) sum += A[x * K + i] * B[i * N + y];
        C[x * N + y] = alpha * sum + beta * C[x * N + y];
    }
}
""".replace("GIVEN", _GIVEN)
_SHARED = """\
#define BS 32
#pragma optiml launch k grid(cdiv(M, 32), cdiv(N, 32)) block(32 * 32)
__global__ void k(GIVEN) {
    const uint tile_row = blockIdx.x, tile_col = blockIdx.y;
    __shared__ float left[BS * BS], right[BS * BS];
    const uint own_col = threadIdx.x % BS, own_row = threadIdx.x / BS;
    A += tile_row * BS * K;
    B += tile_col * BS;
    C += tile_row * BS * N + tile_col * BS;
    float sum = 0.0;
    for (int bk = 0; bk < K; bk += BS) {
        left[own_row * BS + own_col] = A[own_row * K + own_col];
        right[own_row * BS + own_col] = B[own_row * N + own_col];
        __syncthreads();
        A += BS;
        B += BS * N;
        for (int dot = 0; dot < BS; ++dot)
            sum += left[own_row * BS + dot] * right[dot * BS + own_col];
        __syncthreads();
    }
    C[own_row * N + own_col] = alpha * sum + beta * C[own_row * N + own_col];
}
""".replace("GIVEN", _GIVEN)
_MOVES = """        A += BS;
        B += BS * N;
"""
_LATE = "        __syncthreads();\n    }"


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def sites(text: str) -> list[Site]:
    rule = BlockedProduct()
    try:
        return [s for s in rule.sites(rule.shaped(kernel_of(text))) if isinstance(s, Site)]
    except NotLegal:
        return []


def end(before: str, site: Site, *, whole: bool) -> str:
    arrays = {"A": Array("f4", ("M", "K")), "B": Array("f4", ("K", "N")),
              "C": Array("f4", ("M", "N"))}  # fmt: skip
    one, other = ({"M": 128, "N": 64, "K": 96}, {"M": 64, "N": 128, "K": 32}) if whole else (
        {"M": 37, "N": 45, "K": 29}, {"M": 3, "N": 5, "K": 7})  # fmt: skip
    return end_of(before, written(site.apply()), arrays, one, other, rounds=True, alpha=0.5,
                  beta=2.0)  # fmt: skip


@pytest.mark.parametrize(
    "before",
    [
        _LINE,
        changed(_LINE, ("#define BS 32\n", ""), ("BS * BS", "1024"), ("cdiv(M, BS), cdiv(N, BS)",
                "cdiv(M, 32), cdiv(N, 32)"), ("const int x", "const uint BS = 32; const int x")),
        changed(_LINE, ("x.x / BS", "x.x % BS"), ("y * BS + (threadIdx.x % BS)",
                "y * BS + (threadIdx.x / BS)")),
        changed(_LINE, ("block(BS * BS)", "block(BS, BS)"), ("(threadIdx.x / BS)", "threadIdx.y"),
                ("(threadIdx.x % BS)", "threadIdx.x")),
        changed(_LINE, ("sum += A[x * K + i] * B[i * N + y];", "{ sum += *a * *b; ++a; b += N; }"),
                ("float sum", "const float *a = A + x * K, *b = B + y; float sum")),
    ],
)  # fmt: skip
def test_products_without_tiles(before: str) -> None:
    (site,) = sites(before)
    assert site.prior == 0.94
    assert end(before, site, whole=False) == "same"


@pytest.mark.parametrize(
    "before",
    [
        _SHARED,
        changed(_SHARED, ("#define BS 32\n", ""), ("const uint tile_row",
                "const uint BS = 32, tile_row")),
        changed(_SHARED, ("block(32 * 32)", "block(32, 32)"), ("threadIdx.x % BS", "threadIdx.x"),
                ("threadIdx.x / BS", "threadIdx.y")),
        changed(_SHARED, (_MOVES, ""), (_LATE, f"        __syncthreads();\n{_MOVES}    }}")),
        changed(_SHARED, ("A += tile_row * BS * K;", "A = &A[tile_row * BS * K];")),
        changed(_SHARED, ("A += tile_row * BS * K;", "const float* a = A + tile_row * BS * K;"),
                ("= A[", "= a["), ("A += BS;", "a += BS;")),
        changed(_SHARED, ("alpha * sum + beta * C[own_row * N + own_col]", "sum")),
        changed(_SHARED, ("bk = 0; bk < K; bk += BS", "t = 0; t < K / BS; ++t")),
    ],
)  # fmt: skip
def test_products_of_tiles_along_which_pointers_go(before: str) -> None:
    (site,) = sites(before)
    assert site.prior == 0.94
    assert end(before, site, whole=True) == "same"


@pytest.mark.parametrize(
    "before",
    [
        changed(_SHARED, ("A += BS;", "if (sum < 1.0f) A += BS;")),
        changed(_SHARED, ("A += BS;", "A += bk;")),
        changed(_SHARED, ("A += BS;", "A += own_row;")),
        changed(_SHARED, ("        __syncthreads();\n        A", "        A")),
        changed(_SHARED, ("A += BS;", "A += BS; C += 1;")),
        changed(_SHARED, ("B += BS * N;\n", "B += BS * N;\n        if (bk == 32) break;\n")),
        changed(_SHARED, ("const float* A", "float* A"), ("float sum = 0.0;",
                "float sum = 0.0; A[threadIdx.x] = 1.0f;")),
        changed(_SHARED, ("const float* A", "float* A"), (_LATE, "        A[0] = 2.0f;\n" + _LATE)),
    ],
)  # fmt: skip
def test_tiles_that_are_not_followed_stay(before: str) -> None:
    assert sites(before) == []


@pytest.mark.parametrize(
    "before",
    [
        changed(_SHARED, ("        left[", "        A += 0; left[")),
        changed(_SHARED, ("A += BS;", "A += BS; A -= BS; A += BS;")),
        changed(_SHARED, ("A += BS;", "A -= BS;"), ("A += tile_row * BS * K;",
                "A += tile_row * BS * K + K - BS;")),
    ],
)  # fmt: skip
def test_pointers_that_go_another_way_lead_to_the_same(before: str) -> None:
    assert all(end(before, site, whole=True) == "same" for site in sites(before))


_RESULTS = """\
#define BM 64
#define BN 64
#define BK 8
#define TM 8
#pragma optiml launch k grid(cdiv(N, BN), cdiv(M, BM)) block(BM * BN / TM)
__global__ void k(GIVEN) {
    const unsigned tile_row = blockIdx.y, tile_col = blockIdx.x;
    const int own_col = threadIdx.x % BN, own_row = threadIdx.x / BN;
    __shared__ float left[BM * BK], right[BK * BN];
    A += tile_row * BM * K;
    B += tile_col * BN;
    C += tile_row * BM * N + tile_col * BN;
    const unsigned innerColA = threadIdx.x % BK, innerRowA = threadIdx.x / BK;
    const unsigned innerColB = threadIdx.x % BN, innerRowB = threadIdx.x / BN;
    float acc[TM] = {0.0};
    for (unsigned bk = 0; bk < K; bk += BK) {
        left[innerRowA * BK + innerColA] = A[innerRowA * K + innerColA];
        right[innerRowB * BN + innerColB] = B[innerRowB * N + innerColB];
        __syncthreads();
        A += BK;
        B += BK * N;
        for (unsigned dot = 0; dot < BK; ++dot) {
            float tmpB = right[dot * BN + own_col];
            for (unsigned i = 0; i < TM; ++i)
                acc[i] += left[(own_row * TM + i) * BK + dot] * tmpB;
        }
        __syncthreads();
    }
    for (unsigned i = 0; i < TM; ++i)
        C[(own_row * TM + i) * N + own_col] =
            alpha * acc[i] + beta * C[(own_row * TM + i) * N + own_col];
}
""".replace("GIVEN", _GIVEN)
_COARSE = """\
#define T 16
#define F 4
#pragma optiml launch k grid(N / (T * F), M / T) block(T, T)
__global__ void k(GIVEN) {
    __shared__ float left[T][T], right[T][T];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T + ty;
    int start = blockIdx.x * T * F + tx;
    float acc[F];
    for (int c = 0; c < F; ++c) acc[c] = 0.0f;
    for (int ph = 0; ph < K / T; ++ph) {
        left[ty][tx] = A[row * K + ph * T + tx];
        for (int c = 0; c < F; ++c) {
            int col = start + c * T;
            right[ty][tx] = B[(ph * T + ty) * N + col];
            __syncthreads();
            for (int k = 0; k < T; ++k) acc[c] += left[ty][k] * right[k][tx];
            __syncthreads();
        }
    }
    for (int c = 0; c < F; ++c) {
        int col = start + c * T;
        C[row * N + col] = alpha * acc[c] + beta * C[row * N + col];
    }
}
""".replace("GIVEN", _GIVEN)
_ZEROS = "acc[TM]; for (unsigned i = 0; i < TM; ++i) acc[i] = 0;"
_MOVED = "{ acc[c] += left[ty][k] * right[k][tx]; row += 0; }"
_WITHIN = [
    ("N / (T * F), M / T", "cdiv(N, T * F), cdiv(M, T)"),
    ("ph < K / T", "ph < (K + T - 1) / T"),
    ("= A[row * K + ph * T + tx]", "= row < M && ph * T + tx < K ? A[row * K + ph * T + tx] : 0"),
    ("= B[(ph * T + ty) * N + col]",
     "= col < N && ph * T + ty < K ? B[(ph * T + ty) * N + col] : 0"),
    ("        C[row", "        if (row < M && col < N) C[row"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "whole"),
    [
        (_RESULTS, True),
        (changed(_RESULTS, ("own_row * TM + i", "own_row + i * (BM / TM)")), True),
        (changed(_RESULTS, ("acc[TM] = {0.0};", _ZEROS), ("for (unsigned dot", "#pragma unroll\n        for (unsigned dot")), True),
        (_COARSE, True),
        (changed(_COARSE, *_WITHIN), False),
    ],
)  # fmt: skip
def test_products_of_threads_with_several_results(before: str, whole: bool) -> None:
    (site,) = sites(before)
    assert site.prior == 0.94
    assert end(before, site, whole=whole) == "same"


@pytest.mark.parametrize(
    "before",
    [
        changed(_COARSE, ("            __syncthreads();\n            for", "            for")),
        changed(_COARSE, ("            __syncthreads();\n            for",
                "            if (row < M) __syncthreads();\n            for")),
        changed(_COARSE, ("            int col = start + c * T;\n            right",
                "            int col = start + c * T;\n            acc[c] += left[0][0];\n            right")),
        changed(_COARSE, ("acc[c] += left", "acc[c ^ 1] += left")),
        changed(_COARSE, ("acc[c] + beta", "acc[0] + beta")),
        changed(_COARSE, ("start + c * T", "start + c * T / 2")),
        changed(_COARSE, ("acc[c] += left[ty][k] * right[k][tx];", _MOVED)),
    ],
)  # fmt: skip
def test_results_that_are_not_followed_stay(before: str) -> None:
    assert sites(before) == []
