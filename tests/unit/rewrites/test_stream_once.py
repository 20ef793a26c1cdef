"""Which arrays caches let go of first, and that nothing but that changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.model.facts import ArrayFacts, LaunchFacts
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.stream_once import StreamOnce
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

N, M = 8192, 1024  # 32 MiB of float32

ROWS = """\
#pragma optiml launch k grid(n) block(256)
__global__ void k(const float* a, const float* w, float* out, int n, int m) {
    __shared__ float parts[256];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < m; i += 256) sum += a[blockIdx.x * m + i] * w[i];
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float all = 0.0f;
        for (int t = 0; t < 256; t++) all += parts[t];
        out[blockIdx.x] = all;
    }
}
"""
SIDES = """\
#pragma optiml launch k grid(cdiv(n * m, 1024)) block(256)
__global__ void k(const float* a, float* out, int n, int m) {
    int i = (blockIdx.x * 256 + threadIdx.x) * 4;
    if ((size_t)a % 16 == 0 && i + 3 < n * m) {
        float4 v = *reinterpret_cast<const float4*>(a + i);
        out[i] = v.x; out[i + 1] = v.y; out[i + 2] = v.z; out[i + 3] = v.w;
    } else {
        for (int k = 0; k < 4; k++) if (i + k < n * m) out[i + k] = a[i + k];
    }
}
"""


def sites(text: str, **more: ArrayFacts) -> list[Site]:
    """Where the rule applies at ``N`` and ``M``, on an H200."""
    (kernel,) = kernels(parse_program(text), None)
    arrays = {
        "a": ArrayFacts("a", "in", "float32", (N, M), 4 * N * M, 256),
        "w": ArrayFacts("w", "in", "float32", (M,), 4 * M, 256),
        "out": ArrayFacts("out", "out", "float32", (N, M), 4 * N * M, 256),
        **more,
    }
    grid = (N if "grid(n)" in text else N * M // 1024, 1, 1)
    facts = LaunchFacts("k", 1, grid, (256, 1, 1), arrays, {"n": N, "m": M})
    found = StreamOnce().sites(replace(kernel, facts=facts, chip="h200"))
    return [one for one in found if isinstance(one, Site)]


def end(text: str, site: Site) -> str:
    made = site.apply()
    assert isinstance(made, Kernel), made
    arrays = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n", "m"), "zeros")}
    if " w" in text:
        arrays["w"] = Array("f4", ("m",))
    return end_of(text, made.program.text, arrays, {"n": 5, "m": 301}, {"n": 3, "m": 7})


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        (ROWS, ["__ldcs(&a[blockIdx.x * m + i]) * w[i]"]),
        (SIDES, ["__ldcs(reinterpret_cast<const float4*>(a + i))", "__ldcs(&a[i + k])"]),
    ],
    ids=["rows", "sides"],
)
def test_what_each_thread_reads_for_itself(text: str, loads: list[str]) -> None:
    (site,) = sites(text)
    made = site.apply()
    assert isinstance(made, Kernel), made
    assert all(load in made.program.text for load in loads)
    assert end(text, site) == "same"


@pytest.mark.parametrize(
    "text",
    [
        ROWS.replace("sum += ", "sum += a[blockIdx.x * m + i] + "),  # twice
        ROWS.replace("out[blockIdx.x] = all", "out[blockIdx.x] = all + a[0]"),
        SIDES.replace("const float* a", "float* a").replace("else {", "else { a[i] = 0.0f;"),
    ],
    ids=["twice", "again", "written"],
)
def test_what_is_asked_for_again_stays(text: str) -> None:
    found = sites(text)
    if "a[0]" in text:  # by one thread of each block: hardly ever
        assert found
    else:
        assert not found


def test_what_fits_the_l2_and_what_two_pointers_lead_to_stay() -> None:
    small = ArrayFacts("a", "in", "float32", (64, M), 4 * 64 * M, 256)
    assert not sites(ROWS, a=small)
    assert not sites(ROWS, w=ArrayFacts("a", "in", "float32", (M,), 4 * M, 256))
