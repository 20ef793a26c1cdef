"""Kernels whose sizes and places have 64 bits: all that any rule makes of them compiles."""

from __future__ import annotations

from random import Random

import pytest

from tests.rewriting.offers import Offer, offers
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

_I = "blockIdx.x * blockDim.x + threadIdx.x"
_HEAD = "#pragma optiml launch k grid(cdiv(n, 128)) block(128)\n__global__ void k"
_PLANE = "#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)\n__global__ void k"
_XY = (
    "    LONG j = (LONG)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    LONG i = (LONG)blockIdx.y * blockDim.y + threadIdx.y;\n"
    "    if (i >= m || j >= n) return;\n"
)
_MN = {"m": 33, "n": 64}, {"m": 20, "n": 37}
_N = {"n": 2048}, {"n": 301}


def _made(name: str, text: str, arrays: dict[str, Array], sizes=_N) -> Made:
    return Made(name, text, arrays, *sizes, exact=False)


KERNELS = (
    _made(
        "map",
        f"{_HEAD}(const float* a, float* out, LONG n) {{\n    LONG i = (LONG){_I};\n"
        "    if (i < n) out[i] = a[i] / 3.0f;\n}\n",
        {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")},
    ),
    _made(
        "map of a product",
        "#pragma optiml launch k grid(cdiv(m * n, 64)) block(64)\n"
        "__global__ void k(const float* a, float* out, int m, int n) {\n"
        "    LONG total = (LONG)m * n;\n"
        "    for (LONG i = (LONG)" + _I + "; i < total; i += (LONG)gridDim.x * blockDim.x)\n"
        "        out[i] = a[i] + 1.0f;\n}\n",
        {"a": Array("f4", ("m", "n")), "out": Array("f4", ("m", "n"), "zeros")},
        _MN,
    ),
    _made(
        "sum",
        "#pragma optiml zero(out)\n#pragma optiml launch k grid(16) block(64)\n"
        "__global__ void k(const float* a, float* out, LONG n) {\n"
        "    for (LONG i = (LONG)" + _I + "; i < n; i += (LONG)gridDim.x * blockDim.x)\n"
        "        atomicAdd(out, a[i]);\n}\n",
        {"a": Array("f4", ("n",)), "out": Array("f4", ("1",), "zeros")},
    ),
    _made(
        "sums of rows",
        f"{_HEAD}(const float* a, float* out, LONG n, LONG m) {{\n    LONG i = (LONG){_I};\n"
        "    if (i >= n) return;\n    float s = 0.0f;\n"
        "    for (LONG k = 0; k < m; ++k) s += a[i * m + k];\n    out[i] = s;\n}\n",
        {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n",), "zeros")},
        _MN,
    ),
    _made(
        "histogram",
        f"#pragma optiml zero(bins)\n{_HEAD}(const int* a, int* bins, LONG n) {{\n"
        f"    LONG i = (LONG){_I};\n    if (i < n) atomicAdd(&bins[a[i]], 1);\n}}\n",
        {"a": Array("i4", ("n",), "below n"), "bins": Array("i4", ("n",), "zeros")},
    ),
    _made(
        "stencil",
        f"{_PLANE}(const float* a, float* out, LONG m, LONG n) {{\n{_XY}"
        "    float s = a[i * n + j];\n    if (j > 0) s += a[i * n + j - 1];\n"
        "    if (j + 1 < n) s += a[i * n + j + 1];\n    if (i + 1 < m) s += a[(i + 1) * n + j];\n"
        "    out[i * n + j] = s;\n}\n",
        {"a": Array("f4", ("m", "n")), "out": Array("f4", ("m", "n"), "zeros")},
        _MN,
    ),
    _made(
        "window",
        f"{_HEAD}(const float* a, float* out, LONG n, LONG m) {{\n    LONG i = (LONG){_I};\n"
        "    if (i >= n) return;\n    float s = 0.0f;\n"
        "    for (LONG k = 0; k < m; ++k) s += a[i + k];\n    out[i] = s;\n}\n",
        {"a": Array("f4", ("n + m",)), "out": Array("f4", ("n",), "zeros")},
        ({"n": 2048, "m": 40}, {"n": 301, "m": 9}),
    ),
    _made(
        "transposition",
        f"{_PLANE}(const float* a, float* out, LONG m, LONG n) {{\n{_XY}"
        "    out[j * m + i] = a[i * n + j];\n}\n",
        {"a": Array("f4", ("m", "n")), "out": Array("f4", ("n", "m"), "zeros")},
        _MN,
    ),
    _made(
        "product",
        f"{_PLANE}(const float* a, const float* b, float* out, LONG m, LONG n, LONG p) {{\n{_XY}"
        "    float s = 0.0f;\n"
        "    for (LONG k = 0; k < p; ++k) s += a[i * p + k] * b[k * n + j];\n"
        "    out[i * n + j] = s;\n}\n",
        {
            "a": Array("f4", ("m", "p")),
            "b": Array("f4", ("p", "n")),
            "out": Array("f4", ("m", "n"), "zeros"),
        },
        ({"m": 64, "n": 64, "p": 64}, {"m": 20, "n": 37, "p": 9}),
    ),
)


@pytest.mark.parametrize("kind", ["size_t", "long long"])
@pytest.mark.parametrize("one", KERNELS, ids=lambda one: one.family)
def test_all_that_rules_make_compiles(one: Made, kind: str, compiles) -> None:
    text = one.text.replace("LONG", kind)
    each = 2 if one.family == "product" else 9  # of a product there are many, and they are long
    stand = Stand(Made(one.family, text, one.arrays, one.sizes, one.others, exact=False))
    found = offers(stand.text, stand.text, lambda: stand.facts(stand.text), Random(0), each=each)
    made = {offer.text: offer.rule for offer in found if isinstance(offer, Offer)}
    assert made
    for text in made:
        compiles(text)
