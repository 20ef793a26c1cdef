"""What items add to the elements of a row, by columns in a launch behind."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.behind import behind

from .running import same
from .shapes import applied, kernel

GRADIENT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const float* y, float* loss, float* z, float* g, int n, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    for (int j = 0; j < d; j++) s += x[i * d + j];
    float e = s - y[i];
    for (int j = 0; j < d; j++) atomicAdd(&g[j], e * x[i * d + j]);
    loss[i] = e * e;
}
"""
UPDATE = "atomicAdd(&g[j], e * x[i * d + j]);"
SHAPES = {"x": ("n", "d"), "y": ("n",), "loss": ("n",), "z": ("n", "d"), "g": ("d",)}


def made(text: str) -> Kernel | Refused:
    return behind(kernel(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (UPDATE, "{ float v = x[i * d + j] * 2.0f; z[i * d + j] = v; atomicAdd(g + j, e * v - 1.0f); }"),
        (UPDATE, "{ z[i * d + j] = e; atomicAdd(&g[d - 1 - j], x[i * d + j] - y[i]); }"),
        (UPDATE, "{ atomicAdd(&g[j], e); atomicAdd(&g[d - 1 - j], 1.0f); }"),
        ("float s = 0.0f;", "const float* row = x + i * d; int at = i * d; float s = 0.0f;"),
        ("if (i >= n) return;", "int r = i * d, q = r + 1; if (i >= n) return;"),
        ("int i = blockIdx.x * blockDim.x + threadIdx.x;",
         "unsigned int i = threadIdx.x + blockIdx.x * blockDim.x;"),
        ("int j = 0; j < d; j++) atomic", "unsigned j = 0; j < d; ++j) atomic"),
        ("float e = s - y[i];", "double e = s; e -= y[i];"),
    ],
)  # fmt: skip
def test_a_launch_behind_adds_up_by_columns(old: str, new: str) -> None:
    text = GRADIENT.replace(old, new) if old else GRADIENT
    if "row =" in new:
        text = text.replace(UPDATE, "atomicAdd(&g[j], e * row[j] + x[at + j]);")
    if "q = r" in new:
        text = text.replace(UPDATE, "atomicAdd(&g[j], e * x[q + j - 1]);")
    found = applied(made(text))
    assert [d.kernel for d in found.program.launches] == ["k_items", "k"]
    for n, d in (1, 1), (70, 37), (131, 3):
        same(text, found, SHAPES, {"n": n, "d": d}, {"ITEMS": 8}, rounds=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int j = 0; j < d; j++) atomic", "int j = 0; j <= i && j < d; j++) atomic"),
        (UPDATE, "{ atomicAdd(&g[j], e); e *= 0.5f; }"),
        (UPDATE, "{ if (x[i * d + j] > 1.0f) break; atomicAdd(&g[j], e); }"),
        (UPDATE, "{ if (x[i * d + j] > 1.0f) continue; atomicAdd(&g[j], e); }"),
        (UPDATE, "if (x[i * d + j] > 0.0f) atomicAdd(&g[j], e);"),
        (UPDATE, "{ z[i * d + j] = e; atomicAdd(&g[j], z[i * d + j]); }"),
        (UPDATE, "atomicAdd(&g[i], e);"),
        (UPDATE, "atomicAdd(&g[(i + j) % d], e);"),
        (UPDATE, "e += atomicAdd(&g[j], e);"),
        ("float e = s - y[i];", "float e = s - y[i]; if (e < 0.0f) return;"),
        ("float s = 0.0f;", "if (d > 5) return; float s = 0.0f;"),
        ("loss[i] = e * e;", "loss[i] = g[0];"),
        ("loss[i] = e * e;", "atomicAdd(&g[0], 1.0f);"),
        ("grid(cdiv(n, 64))", "grid(cdiv(n, 64), 2)"),
        ("__global__ void", "__global__ void __launch_bounds__(64)"),
        ("float e = s - y[i];", "float4 e4 = make_float4(s, s, s, s);"),
    ],
)
def test_what_is_not_the_same_for_all_columns_stays(old: str, new: str) -> None:
    text = GRADIENT.replace(old, new)
    if "e4" in new:
        text = text.replace(UPDATE, "atomicAdd(&g[j], e4.x);").replace("e * e", "s")
    found = made(text)
    assert isinstance(found, Refused), found.program.text
