"""What a short loop computes alike in every round of the loop around it, computed before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.tabulated import tabulated, tabulating
from optiml_magic.model.facts import ArrayFacts, LaunchFacts
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


STEERING = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float2* __restrict__ at, const float* __restrict__ w,
                  const int* __restrict__ order, float* __restrict__ out, int n, int few,
                  int sets) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float all = 0.0f;
    for (int j = 0; j < sets; ++j) {
        float sum = 0.0f;
        for (int m = 0; m < %s; ++m) {
            %s
        }
        all += sum * sum;
    }
    out[i] = all;
}
"""
STEERED = {
    "at": ("few", "2"), "w": ("sets", "few"), "order": ("i4", "few"), "out": ("n",),
}  # fmt: skip
TURNED = "float turn = at[m].x * i + at[m].y; sum += sinf(turn) * w[j * few + m];"
SIZES = {"n": 40, "few": 6, "sets": 3}
ARRAYS = {
    "at": ArrayFacts("at", "in", "float32", (6, 2), 48, 256),
    "w": ArrayFacts("w", "in", "float32", (3, 6), 72, 256),
    "order": ArrayFacts("order", "in", "int32", (6,), 24, 256),
    "out": ArrayFacts("out", "out", "float32", (40,), 160, 256),
}
MEASURED = LaunchFacts("k", 1, (2, 1, 1), (32, 1, 1), ARRAYS, SIZES)


def test_what_is_loaded_alike_in_all_rounds_may_be_what_it_is_made_of() -> None:
    text = STEERING % ("6", TURNED)
    found = applied(tabulated(replace(kernel(text), facts=MEASURED), 0))
    assert "sinf(turn);" in found.program.text
    assert "sum += made[m] * w[j * few + m];" in found.program.text
    assert [str(one.condition) for one in found.program.requires] == [
        "size(at) >= 11", "size(at) >= 12",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        "sum += sinf(w[j * few + m]);",
        "sum += sinf(w[i * few + m]);",
        "sum += sinf(at[order[m]].x);",
        "sum += sinf(out[m]);",
        "const float* p = &w[m]; sum += sinf(*p);",
    ],
)
def test_loads_that_change_or_may_lead_nowhere_stay(body: str) -> None:
    read = replace(kernel(STEERING % ("6", body)), facts=MEASURED)
    assert tabulating(read) is None


def test_short_loops_that_a_size_bounds_are_written_out_where_it_is_measured() -> None:
    text = STEERING % ("few", TURNED)
    rule = TabulateWeights()
    (site,) = rule.sites(rule.shaped(replace(kernel(text), facts=MEASURED)))
    assert isinstance(site, Site)
    assert site.title.endswith(", where few is 6")
    made_ = applied(site.apply())
    assert "made[m] = sinf(turn);" in made_.program.text
    same(text, made_, STEERED, SIZES, rounds=True)
