"""Kernels without a launch, run as inferred at odd sizes, give what numpy gives."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from tests.present import sampled

HEAD = "__global__ void k(const float* a, float* out, int w, int h) "
FLAT = "int i = blockIdx.x * blockDim.x + threadIdx.x, n = w * h; "
PLANE = "int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; "


def doubled(a):
    return 2 * a


def mirrored(a):
    return a.T.copy()


def summed(a):
    return a.sum(axis=1)


KERNELS = [
    (FLAT + "if (i < n) out[i] = 2 * a[i];", doubled),
    (FLAT + "for (; i < n; i += gridDim.x * blockDim.x) out[i] = 2 * a[i];", doubled),
    (
        FLAT + "i *= 4; if (i + 3 < n) { for (int k = 0; k < 4; ++k) out[i + k] = 2 * a[i + k]; }"
        " else for (; i < n; ++i) out[i] = 2 * a[i];",
        doubled,
    ),
    (
        (
            "int i = blockIdx.x * 1024 + threadIdx.x, n = w * h; for (int k = 0; k < 4; ++k) {"
            " int j = i + k * 256; if (j < n) out[j] = 2 * a[j]; }"
        ),
        doubled,
    ),
    (FLAT + "int r = i / w, c = i % w; if (r < h) out[c * h + r] = a[i];", mirrored),
    (PLANE + "if (x >= w || y >= h) return; out[x * h + y] = a[y * w + x];", mirrored),
    (
        (
            "__shared__ float t[32][33]; int x = blockIdx.x * 32 + threadIdx.x;"
            "int y = blockIdx.y * 32 + threadIdx.y; for (int j = 0; j < 32; j += 8)"
            " if (x < w && y + j < h) t[threadIdx.y + j][threadIdx.x] = a[(y + j) * w + x];"
            "__syncthreads(); x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;"
            "for (int j = 0; j < 32; j += 8)"
            " if (x < h && y + j < w) out[(y + j) * h + x] = t[threadIdx.x][threadIdx.y + j];"
        ),
        mirrored,
    ),
    (
        (
            "for (int r = blockIdx.x; r < h; r += gridDim.x)"
            " for (int c = threadIdx.x; c < w; c += blockDim.x) out[c * h + r] = a[r * w + c];"
        ),
        mirrored,
    ),
    (
        (
            "int r = blockIdx.x * blockDim.x + threadIdx.x; if (r < h) { float s = 0;"
            " for (int c = 0; c < w; ++c) s += a[r * w + c]; out[r] = s; }"
        ),
        summed,
    ),
    (
        (
            "__shared__ float s[128]; int r = blockIdx.x; if (r >= h) return; float v = 0;"
            "for (int c = threadIdx.x; c < w; c += blockDim.x) v += a[r * w + c];"
            "s[threadIdx.x] = v; __syncthreads(); for (int st = blockDim.x / 2; st > 0; st /= 2) {"
            " if (threadIdx.x < st) s[threadIdx.x] += s[threadIdx.x + st]; __syncthreads(); }"
            "if (threadIdx.x == 0) out[r] = s[0];"
        ),
        summed,
    ),
    (
        (
            "int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;"
            "if (r >= h) return; float v = 0; for (int c = lane; c < w; c += 32) v += a[r * w + c];"
            "for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);"
            "if (lane == 0) out[r] = v;"
        ),
        summed,
    ),
]


SIZES = [(77, 45), (1003, 1), (1, 33)]  # of columns and rows, in turn


@pytest.mark.parametrize("at", sampled(range(len(KERNELS)), 4))
def test_an_inferred_launch_gives_the_answer(at):
    body, reference = KERNELS[at]
    w, h = SIZES[at % len(SIZES)]
    a = np.random.default_rng(0).random((h, w), dtype=np.float32)
    task = Task(f"{HEAD}{{ {body} }}", reference=reference, inputs={"a": a, "w": w, "h": h})
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    checked = evaluate_once(task, settings, counters=False)
    assert checked.problem.launch == "inferred"
    assert checked.evaluation.verdict.passed, checked.evaluation.verdict
