"""Products that are the same on both sides of the diagonal are computed on one of them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.blocked import block_outputs
from optiml_magic.kernels.primitives.multiplied import multiplied
from optiml_magic.kernels.primitives.tile_layout import Tile
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

PAIRS = """\
__device__ float squared(float x) {{ return x * x; }}
__device__ float of_block(float x) {{ return x * blockIdx.x; }}
#pragma optiml launch k grid(cdiv(n, 16), cdiv({high}, 16)) block(16, 16)
__global__ void k(const float* x, const unsigned* w, const float* y, float* out, int n, int m, int d) {{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= {high} || j >= n) return;
    {start} s = 0;
    {before}
    for (int k = 0; k < d; ++k) {{ {round} }}
    {end}
}}
"""
ARRAYS = {
    "x": Array("f4", ("n + m", "d")), "w": Array("u4", ("n", "d")), "y": Array("f4", ("n + m", "d")),
    "out": Array("f4", ("n + m", "n + m"), "zeros"),
}  # fmt: skip
SIZES, OTHERS = {"n": 37, "m": 37, "d": 21}, {"n": 64, "m": 64, "d": 8}
TILE = Tile(16, 32, 8, 4, 4)


def pairs(round_: str, end: str = "out[i * n + j] = s;", **more: str) -> str:
    given = {"start": "float", "high": "n", "before": "", **more}
    return PAIRS.format(round=round_, end=end, **given)


@pytest.mark.parametrize(
    ("round_", "more"),
    [
        ("s += x[i * d + k] * x[j * d + k];", {}),
        ("s += x[j * d + k] * x[i * d + k];", {"end": "out[j * n + i] = s + i;"}),
        ("s += f * (x[i * d + k] + x[j * d + k]);", {"before": "const float f = y[d / 2];"}),
        ("float e = x[i * d + k] - x[j * d + k]; s += e * e;", {"end": "out[i * n + j] = sqrtf(s);"}),
        ("s += powf(x[i * d + k] - x[j * d + k], 2.0f);", {}),
        ("s += fabsf(x[i * d + k] - x[j * d + k]);", {"end": "if (i != j) out[i * n + j] = s;"}),
        ("s = fmaxf(s, fabsf(x[i * d + k] - x[j * d + k]));", {}),
        ("const float e = x[k * n + j] - x[k * n + i]; s = fmaf(e, e, s);", {}),
        ("if (w[i * d + k] != w[j * d + k]) s++;", {"start": "int", "end": "out[i * n + j] += s - j;"}),
        ("s += __popc(w[i * d + k] ^ w[j * d + k]);", {"start": "int"}),
        ("if (k % 3 != 1) s += fminf(x[i * d + k], x[j * d + k]);", {}),
        ("s += (x[i * d + k] + y[i * d + k]) * (y[j * d + k] + x[j * d + k]);", {}),
        ("s += y[k] * (x[i * d + k] * x[j * d + k]);",
         {"end": "if (s < 0) s = -s;\nout[i * n + j] = s * y[i] + y[j];"}),
        ("s -= -(x[j * d + k] - y[j * d + k]) * (y[i * d + k] - x[i * d + k]);", {}),
    ],
)  # fmt: skip
def test_each_pair_is_computed_once(round_: str, more: dict[str, str]) -> None:
    text = pairs(round_, **more)
    found = written(block_outputs(kernel_of(text), 0, TILE, mirrored=True))
    assert "out_row < out_col" in found
    assert end_of(text, found, ARRAYS, SIZES, OTHERS) == "same"


@pytest.mark.parametrize(
    ("round_", "more"),
    [
        ("s += x[i * d + k] * y[j * d + k];", {}),
        ("s += x[i * d + k] - x[j * d + k];", {}),
        ("s += x[i * d + k] * y[k] * x[j * d + k];", {}),  # rounds otherwise
        ("s += (float)(w[i * d + k] - w[j * d + k]) * (float)(w[i * d + k] - w[j * d + k]);", {}),
        ("s += squared(x[i * d + k] - x[j * d + k]);", {}),
        ("s += of_block(x[i * d + k] * x[j * d + k]);", {}),
        ("s += x[i * d + k] * x[j * d + k] * bias;", {"before": "float bias = y[i];"}),
        ("if (x[i * d + k] < x[j * d + k]) s += 1;", {}),
        ("s += x[i * d + k] * x[j * d + k];", {"high": "m"}),
        ("s += x[i * d + k] * x[(j + 1) * d + k];", {}),
        ("if (k < i) s += x[i * d + k] * x[j * d + k];", {}),
        ("s += f * (x[i * d + k] + x[j * d + k]);", {"before": "const float f = y[i];"}),
        ("s += f * (x[i * d + k] + x[j * d + k]);", {"before": "const float f = out[0];"}),
    ],
)
def test_else_all_of_them_are(round_: str, more: dict[str, str]) -> None:
    text = pairs(round_, **more)
    why = refused(block_outputs(kernel_of(text), 0, TILE, mirrored=True))
    assert "diagonal" in why or "square" in why or "load" in why or "index" in why


def test_a_function_of_the_text_is_what_it_does_and_not_what_it_is_called() -> None:
    own = "__device__ float hypotf(float x, float y) { return x * x - y; }\n"
    text = own + pairs("s += hypotf(x[i * d + k], x[j * d + k]);")
    assert "both sides" in refused(block_outputs(kernel_of(text), 0, TILE, mirrored=True))


def test_sums_of_rows_and_of_columns_change_places() -> None:
    text = pairs(
        "float e = x[i * d + k] - x[j * d + k]; s += e * e;", end="out[i * n + j] = sqrtf(s);"
    )
    products = multiplied(kernel_of(text), 0)
    found = block_outputs(products, 0, TILE, mirrored=True)  # type: ignore[arg-type]
    assert end_of(text, written(found), ARRAYS, SIZES, OTHERS, rounds=True) == "same"


def test_outputs_of_one_index_are_mirrored_as_well() -> None:
    text = pairs("s += x[i * d + k] * x[j * d + k];").replace(
        "int j = blockIdx.x * blockDim.x + threadIdx.x;",
        "int at = blockIdx.x * blockDim.x + threadIdx.x; if (at >= n * n) return; int j = at % n;",
    )
    text = text.replace("int i = blockIdx.y * blockDim.y + threadIdx.y;", "int i = at / n;")
    text = text.replace("if (i >= n || j >= n) return;\n", "")
    text = text.replace(
        "grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16)", "grid(cdiv(n * n, 64)) block(64)"
    )
    found = written(block_outputs(kernel_of(text), 0, TILE, mirrored=True))
    assert end_of(text, found, ARRAYS, SIZES, OTHERS) == "same"
