"""nvcc beside NVRTC on a real card: the same kernels, the same verdicts, host headers and flags."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvcc import NvccCompiler
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.model.build import Build
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once, optimize
from optiml_magic.settings import resolve
from optiml_magic.testing.contracts import _AXPY, DeviceContract
from optiml_magic.testing.kernels import NAMES, known_task
from tests.present import NVCC

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not NVCC, reason="no nvcc with a host compiler on this machine"),
]
HOST_HEADERS = """\
#include <cmath>
#include <cstdio>
#include <algorithm>
#include "util.cuh"
#ifdef __CUDACC_RELAXED_CONSTEXPR__
#define LARGER std::max
#else
#define LARGER fmaxf
#endif
static_assert(STEPS == 4, "from -D");
template <int N> __global__ void powers(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = 0.0f;
    for (int step = 0; step < N; ++step) v = LARGER(v, std::fabs(x[i])) + third(v);
    if (i < 0) printf("never %d", i);
    out[i] = v;
}
#pragma optiml launch powers<STEPS> grid(cdiv(n, 128)) block(128)
"""
UTIL = "#pragma once\n__device__ inline float third(float v) { return v / 3.0f; }\n"


def task() -> Task:
    x = np.random.default_rng(0).uniform(-1, 1, 100_000).astype(np.float32)

    def reference(x):  # type: ignore[no-untyped-def]
        v = np.zeros_like(x)
        for _ in range(4):
            v = np.maximum(v, np.abs(x)) + v / 3
        return v

    return Task(
        HOST_HEADERS,
        reference,
        inputs={"x": x, "n": x.size},
        headers={"util.cuh": UTIL},
        defines={"STEPS": "4"},
    )


class TestCudaDeviceOnNvcc(DeviceContract):
    """The contract of devices on what nvcc builds."""

    @pytest.fixture
    def device(self) -> Iterator[HostedDevice]:
        device = HostedDevice("cuda:0", seconds=60)
        yield device
        device.close()

    def build(self, text: str = _AXPY) -> Build:
        made = NvccCompiler().compile(text, ("axpy",), chip("h200"), CompileOptions())
        assert isinstance(made, Build), made
        return made


@pytest.mark.parametrize("name", NAMES)
def test_the_known_kernels_are_right_when_nvcc_compiles_them(name: str) -> None:
    settings = resolve({"device": "cuda", "compiler": "nvcc"})
    evaluation = evaluate_once(known_task(name), settings, counters=False).evaluation
    assert evaluation.verdict.passed, evaluation.verdict
    assert evaluation.measurement is not None
    assert evaluation.measurement.source == "events"


def test_the_rules_make_a_kernel_faster_that_nvcc_compiles() -> None:
    settings = resolve({"device": "cuda", "compiler": "nvcc", "budget": 8})
    result = optimize(known_task("transpose_naive", rows=4096, cols=4096), settings)
    assert result.speedup > 1.2
    assert result.summary.verdicts["passed"] >= 2


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"std": "c++20"},
        {"fast_math": True},
        {"nvcc_args": "-Xptxas -O1 --maxrregcount=32 --expt-relaxed-constexpr"},
    ],
    ids=str,
)
def test_host_headers_typed_headers_macros_and_flags(flags: dict[str, object]) -> None:
    settings = resolve({"device": "cuda", "compiler": "nvcc", **flags})
    checked = evaluate_once(task(), settings, counters=False)
    assert checked.evaluation.verdict.passed, checked.evaluation.verdict
    if "nvcc_args" in flags:
        assert all(r.registers <= 32 for r in checked.evaluation.resources)
