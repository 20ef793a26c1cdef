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
        float tmp = 0.0;
        for (int i = 0; i < K; ++i) tmp += A[x * K + i] * B[i * N + y];
        C[x * N + y] = alpha * tmp + beta * C[x * N + y];
    }
}
""".replace("GIVEN", _GIVEN)
_SHARED = """\
#define BS 32
#pragma optiml launch k grid(cdiv(M, 32), cdiv(N, 32)) block(32 * 32)
__global__ void k(GIVEN) {
    const uint cRow = blockIdx.x, cCol = blockIdx.y;
    __shared__ float As[BS * BS], Bs[BS * BS];
    const uint threadCol = threadIdx.x % BS, threadRow = threadIdx.x / BS;
    A += cRow * BS * K;
    B += cCol * BS;
    C += cRow * BS * N + cCol * BS;
    float tmp = 0.0;
    for (int bk = 0; bk < K; bk += BS) {
        As[threadRow * BS + threadCol] = A[threadRow * K + threadCol];
        Bs[threadRow * BS + threadCol] = B[threadRow * N + threadCol];
        __syncthreads();
        A += BS;
        B += BS * N;
        for (int dot = 0; dot < BS; ++dot)
            tmp += As[threadRow * BS + dot] * Bs[dot * BS + threadCol];
        __syncthreads();
    }
    C[threadRow * N + threadCol] = alpha * tmp + beta * C[threadRow * N + threadCol];
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
    one, other = ({"M": 64, "N": 32, "K": 96}, {"M": 32, "N": 64, "K": 32}) if whole else (
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
        changed(_LINE, ("tmp += A[x * K + i] * B[i * N + y];", "{ tmp += *a * *b; ++a; b += N; }"),
                ("float tmp", "const float *a = A + x * K, *b = B + y; float tmp")),
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
        changed(_SHARED, ("#define BS 32\n", ""), ("const uint cRow",
                "const uint BS = 32, cRow")),
        changed(_SHARED, ("block(32 * 32)", "block(32, 32)"), ("threadIdx.x % BS", "threadIdx.x"),
                ("threadIdx.x / BS", "threadIdx.y")),
        changed(_SHARED, (_MOVES, ""), (_LATE, f"        __syncthreads();\n{_MOVES}    }}")),
        changed(_SHARED, ("A += cRow * BS * K;", "A = &A[cRow * BS * K];")),
        changed(_SHARED, ("A += cRow * BS * K;", "const float* a = A + cRow * BS * K;"),
                ("= A[", "= a["), ("A += BS;", "a += BS;")),
        changed(_SHARED, ("alpha * tmp + beta * C[threadRow * N + threadCol]", "tmp")),
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
        changed(_SHARED, ("A += BS;", "if (tmp < 1.0f) A += BS;")),
        changed(_SHARED, ("A += BS;", "A += bk;")),
        changed(_SHARED, ("A += BS;", "A += threadRow;")),
        changed(_SHARED, ("        __syncthreads();\n        A", "        A")),
        changed(_SHARED, ("A += BS;", "A += BS; C += 1;")),
        changed(_SHARED, ("B += BS * N;\n", "B += BS * N;\n        if (bk == 32) break;\n")),
        changed(_SHARED, ("const float* A", "float* A"), ("float tmp = 0.0;",
                "float tmp = 0.0; A[threadIdx.x] = 1.0f;")),
        changed(_SHARED, ("const float* A", "float* A"), (_LATE, "        A[0] = 2.0f;\n" + _LATE)),
    ],
)  # fmt: skip
def test_tiles_that_are_not_followed_stay(before: str) -> None:
    assert sites(before) == []


@pytest.mark.parametrize(
    "before",
    [
        changed(_SHARED, ("        As[", "        A += 0; As[")),
        changed(_SHARED, ("A += BS;", "A += BS; A -= BS; A += BS;")),
        changed(_SHARED, ("A += BS;", "A -= BS;"), ("A += cRow * BS * K;",
                "A += cRow * BS * K + K - BS;")),
    ],
)  # fmt: skip
def test_pointers_that_go_another_way_lead_to_the_same(before: str) -> None:
    assert all(end(before, site, whole=True) == "same" for site in sites(before))
