"""What a short loop computes alike in every round of the loop around it, computed before it."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.tabulated import tabulated, tabulating
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.tabulate_weights import TabulateWeights

from .running import same
from .shapes import applied, kernel

FILTER = """\
__device__ float weight(float v) { if (v < 0.5f) return 1.0f - v; return expf(-v); }
__device__ int within(int v, int n) { return v < 0 ? 0 : v >= n ? n - 1 : v; }
__device__ int around(int v, int n) { return (v + n) %% n; }
__device__ int counted(int* n, int i) { return ++*n + i; }
#pragma optiml launch k grid(cdiv(w, 32), h) block(32)
__global__ void k(const float* a, float* out, int s, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= w) return;
    float sigma = 0.5f * s;
    float sum = 0.0f;
    for (int j = 0; j < 4; ++j) {
        for (int i = -2; i <= 2; ++i) {
            %s
        }
    }
    out[y * w + x] = sum;
}
"""
SHAPES = {"a": ("h + 3", "w"), "out": ("h", "w")}
AT = "a[(y + j) * w + min(max(x + i, 0), w - 1)]"


def made(body: str) -> tuple[str, Kernel | Refused]:
    program = FILTER % body
    read = kernel(program)
    found = tabulating(read)
    return program, tabulated(read, 0 if found is None else found[0])


@pytest.mark.parametrize(
    ("body", "beside"),
    [
        (f"sum += expf(-(i * i) / (2.0f * sigma)) * {AT};", "made[i + 2] = expf("),
        (f"float g = weight(fabsf(i * sigma)); sum += g * {AT};", "float g = g_of[i + 2];"),
        (f"float d = i / sigma; float g = sinf(d) * d; sum += g * {AT};", "float g = g_of[i + 2]"),
        (f"if (i != 1) sum += {AT} / expf(i * sigma);", "/ made[i + 2]"),
    ],
)
def test_weights_of_a_row_are_those_of_all_rows(body: str, beside: str) -> None:
    text, found = made(body)
    assert beside in applied(found).program.text
    same(text, found, SHAPES, {"w": 37, "h": 5, "s": 3}, rounds=True)


@pytest.mark.parametrize(
    "body",
    [
        f"sum += expf(-(i * i + j) / sigma) * {AT};",
        f"sum += expf({AT} - i);",
        f"float g = sigma * i; sum += g * {AT};",
        f"sigma += 1.0f; sum += expf(i * sigma) * {AT};",
        f"float g = expf(i * sigma); g += j; sum += sinf(g) * {AT};",
        f"sum += counted(&h, i) * {AT};",
        f"sum += expf(sum + i) * {AT};",
    ],
)
def test_what_differs_between_rounds_or_does_more_than_compute_stays(body: str) -> None:
    text, found = made(body)
    if isinstance(found, Kernel):  # only the part that is the same
        assert "sinf(g)" in found.program.text
    else:
        assert tabulating(kernel(text)) is None


@pytest.mark.parametrize(
    ("above", "body"),
    [
        ("__device__ float g;", "g += 1.0f; sum += expf(g * i);"),
        ("__device__ float g;", "sum += expf(g * i);"),
        ("__shared__ float scale;", "sum += expf(scale * i);"),
        ("__device__ float g; __device__ float f(float v) { g += v; return expf(v); }", "sum += f(i);"),
        ("__device__ float g; __device__ float f(float v) { return expf(v * g); }", "g = j; sum += f(i);"),
        ("__device__ float f(float v) { return __shfl_xor_sync(~0u, expf(v), 1); }", "sum += f(i);"),
        ("__device__ float f(float v) { static int n; return expf(v) * ++n; }", "sum += f(i);"),
    ],
)  # fmt: skip
def test_what_reads_memory_or_other_lanes_stays(above: str, body: str) -> None:
    text = FILTER % f"{body} sum += {AT};"
    if above.startswith("__shared__"):
        text = text.replace("    float sum", f"    {above}\n    scale = 2.0f;\n    float sum")
    else:
        text = f"{above}\n{text}"
    assert tabulating(kernel(text)) is None


def test_the_rule_says_what_it_rounds() -> None:
    (product,) = TabulateWeights().sites(
        kernel(FILTER % f"float g = sinf(i * sigma) * 2.0f; sum += g + {AT};")
    )
    assert not isinstance(product, Refused)
    assert product.arithmetic
    (plain,) = TabulateWeights().sites(kernel(FILTER % f"sum += expf(i * sigma) * {AT};"))
    assert not isinstance(plain, Refused)
    assert not plain.arithmetic
    assert [*TabulateWeights().sites(kernel(FILTER % f"sum += {AT};"))] == []


@pytest.mark.parametrize(
    ("place", "likely"),
    [("within(x + i, w)", False), ("around(x + i, w)", True), ("(int)weight(i * sigma)", True)],
)
def test_places_that_a_few_instructions_clamp_come_later(place: str, likely: bool) -> None:
    text = FILTER % f"sum += a[(y + j) * w + {place}];"
    (site,) = TabulateWeights().sites(kernel(text))
    assert isinstance(site, Site)
    assert (site.prior > 0.5) == likely
