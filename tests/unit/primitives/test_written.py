"""Short loops over planes and fields of an item: written out, and which ones stay."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import where_legal
from optiml_magic.kernels.primitives.coarsened import Coarse, coarsen
from optiml_magic.kernels.primitives.written import written

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    %s
}
"""
SHAPES = {"a": ("4 * n",), "b": ("4 * n",), "out": ("4 * n",)}


def test_every_round_has_its_own_number() -> None:
    text = (
        TEXT % "#pragma unroll\n    for (int k = 1; k < 6; k += 2) s += a[k * n + i]; out[i] = s;"
    )
    after = applied(written(kernel(text))).program.text
    assert [f"const int k = {at};" in after for at in range(6)] == [0, 1, 0, 1, 0, 1]
    assert "for (" not in after
    assert "#pragma unroll" not in after


@pytest.mark.parametrize(
    ("body", "vectors"),
    [
        ("for (int k = 0; k < 4; k++) s += a[k * n + i] * b[k]; out[i] = s;", 5),
        ("for (int k = 3; k >= 0; --k) out[k * n + i] = a[k * n + i];", 8),
        ("for (int k = 0; k < 3; ++k) out[3 * i + k] = a[3 * i + k] * b[i];", 7),
        (("float g[4]; for (int k = 0; k < 4; ++k) { float v = a[i + k * n]; g[k] = v * v; }"
         " for (int k = 0; k < 4; ++k) s += g[k]; out[i] = s;"), 5),
        (("for (int p = 0; p < 2; ++p) for (int c = 0; c < 2; ++c)"
         " { out[(2 * p + c) * n + i] = p ? a[c * n + i] : b[i]; }"), 4),
        ("if (n > 3) for (unsigned k = 0; k < 2; ++k) { out[k * n + i] = b[k * n + i]; }", 4),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [256, 301])
def test_planes_and_fields_come_and_go_by_vectors(body: str, vectors: int, n: int) -> None:
    text = TEXT % body
    plain = applied(written(kernel(text)))
    same(text, plain, SHAPES, {"n": n})
    made = coarsen(plain, Coarse(0, 2, 32))
    found = applied(made).program.text.count("reinterpret_cast<const float4*>(&")
    stored = applied(made).program.text.count("reinterpret_cast<float4*>(&")
    assert found + stored >= vectors
    same(text, made, SHAPES, {"n": n})


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < n; ++k) s += a[k * n + i]; out[i] = s;",
        "for (int k = 0; k < 17; ++k) s += a[k * n + i]; out[i] = s;",
        "for (int k = 0; k < 4; ++k) s += a[k]; out[i] = s * b[i];",
        "for (int k = 0; k < 4; ++k) { if (s > 2.0f) break; s += a[k * n + i]; } out[i] = s;",
        "for (int k = 0; k < 4; ++k) { s += a[k * n + i]; k += s > 1.0f; } out[i] = s;",
        "int k; for (k = 0; k < 4; ++k) s += a[k * n + i]; out[i] = s + k;",
    ],
)
def test_other_loops_stay(body: str) -> None:
    assert "no short loop" in refused(written(kernel(TEXT % body)))[0]
    before = kernel(TEXT % body)
    assert where_legal(written, before) is before


def test_of_loops_in_each_other_as_many_rounds_as_there_may_be() -> None:
    body = (
        "for (int p = 0; p < 9; ++p) for (int c = 0; c < 4; ++c) s += a[c * n + i] * p; out[i] = s;"
    )
    after = applied(written(kernel(TEXT % body))).program.text
    assert "for (int p = 0" in after
    assert "const int c = 3;" in after
