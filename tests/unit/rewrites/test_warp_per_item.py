"""A warp per row: what is proposed runs on the emulated device against NumPy; what must not, is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from tests.present import sampled

HEAD = """\
#pragma optiml launch k grid((rows + 63) / 64) block(64)
__device__ float square(float x) { return x * x; }
__global__ void k(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
"""
SUM = """
    if (row >= rows) return;
    float s = 0.5f;
    for (int j = 0; j < cols; ++j) s += a[row * cols + j];
    out[row] = s;
}"""
KERNELS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "sum": (SUM, lambda a: a.sum(1) + 0.5),
    "from one on, bound included": (
        SUM.replace("j = 0; j < cols", "j = 1; j <= cols - 2"),
        lambda a: a[:, 1:-1].sum(1) + 0.5,
    ),
    "difference of two": (
        SUM.replace("s += a[row * cols + j]", "{ s -= a[row * cols + j]; t = t + square(a[row * cols + j]); }")
        .replace("float s = 0.5f;", "float s = 0.5f, t = 0;").replace("= s;", "= s + t;"),
        lambda a: 0.5 - a.sum(1) + (a * a).sum(1),
    ),
    "product": (
        SUM.replace("s += a[row * cols + j]", "s *= 1 + 0.01f * a[row * cols + j]"),
        lambda a: 0.5 * (1 + 0.01 * a).prod(1),
    ),
    "one line, braces, count of large ones": (
        " if (row < rows) { int n = 3; for (int j = 0; j < cols; j++) { if (a[row * cols + j] > 0.5f) n += 1; } out[row] = n; } }",
        lambda a: 3.0 + (a > 0.5).sum(1),
    ),
    "largest by if, smallest by fminf": (
        """
    if (row >= rows) return;
    float hi = -1, lo = 2;
    for (int j = 0; j < cols; ++j) {
        float x = a[row * cols + j];
        if (hi < x) hi = x;
        lo = fminf(lo, x);
    }
    if (hi > 0) out[row] = hi - lo; else out[row] = 0;
}""",
        lambda a: a.max(1) - a.min(1),
    ),
}  # fmt: skip
SOFTMAX = """
    if (row < rows) {
        const float* mine = a + row * cols;
        float m = -1e30f, s = 0.0f;
        for (int j = 0; j < cols; ++j) m = fmaxf(m, mine[j]);
        #pragma unroll 4
        for (int j = 0; j < cols; ++j) {
            float e = expf(mine[j] - m);
            out[row * cols + j] = e;
            s += e;
        }
        for (int j = 0; j < cols; ++j) { out[row * cols + j] /= s; }
    }
}"""


def softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("name", sampled([*KERNELS, "softmax"]))
def test_what_is_proposed_is_right_and_reads_fewer_sectors(propose, name: str) -> None:
    body, reference = {**KERNELS, "softmax": (SOFTMAX, softmax)}[name]
    a = np.random.default_rng(3).random((75, 83), dtype=np.float32)
    shape = "f4[rows, cols]" if name == "softmax" else "f4[rows]"
    inputs = {"a": a, "rows": 75, "cols": 83}
    task = Task(HEAD + body, reference, inputs, outputs={"out": shape})
    (found,) = propose("warp_per_item", HEAD + body)
    settings = resolve({"device": "emulated"})
    evaluation = evaluate_once(task, settings, program=found.text).evaluation
    assert evaluation.verdict.passed, (evaluation.verdict, found.text)
    before = evaluate_once(task, settings).evaluation.measurement
    assert evaluation.measurement is not None
    assert before is not None
    sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert evaluation.measurement.get(sectors) < 0.5 * before.get(sectors)


@pytest.mark.parametrize(
    "change",
    [
        ("s += a[row * cols + j]", "s += a[j * rows + row]"),  # nothing to gain: coalesced already
        ("s += a[row * cols + j]", "s = s * 0.5f + a[row * cols + j]"),  # a recurrence
        ("s += a[row * cols + j]", "{ s += a[row * cols + j]; out[row] = s; }"),
        ("s += a[row * cols + j]", "{ s += a[row * cols + j]; if (s > 3) break; }"),
        ("s += a[row * cols + j]", "{ s += a[row * cols + j]; if (s > 3) return; }"),
        ("s += a[row * cols + j]", "{ s += a[row * cols + j]; t = a[row * cols + j]; }"),
        ("s += a[row * cols + j]", "{ s += a[row * cols + j]; t += s; }"),
        ("s += a[row * cols + j]", "out[row * cols + j] = out[row * cols + j - 1] + a[row * cols + j]"),
        ("s += a[row * cols + j]", "atomicAdd(&out[(int)a[row * cols + j]], 1.0f)"),
        (
            "s += a[row * cols + j]",
            "{ struct { float m[2]; } o; for (int j = 0; j < 2; ++j) o.m[j] = a[row * cols + j]; s = o.m[1]; }",
        ),
        (
            "for (int j = 0; j < cols; ++j) s +=",
            "struct { float m[9]; } o; for (int j = 0; j < 9; ++j) o.m[j] =",
        ),
        (
            "for (int j = 0; j < cols; ++j) s +=",
            "float* p = out + row * cols; for (int j = 0; j < cols; ++j) *p++ =",
        ),
        ("++j", "j += 2"),
        ("++j", "j *= 2"),
        ("j < cols", "j < cols && s < 3"),
        ("out[row] = s;", "out[row] = s; s = out[row + 1];"),
        ("out[row] = s;", "out[row] = s + blockIdx.x;"),
        ("float s = 0.5f;", "float s = 0.5f; float each[4]; each[0] = s;"),
        ("float s = 0.5f;", "float s = 0.5f; __syncthreads();"),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_not_proposed(propose, change: tuple[str, str]) -> None:
    body = SUM.replace("float s = 0.5f;", "float s = 0.5f, t = 0;") if " t " in change[1] else SUM
    assert change[0] in body or change[0] == "float s = 0.5f;"
    assert propose("warp_per_item", HEAD + body.replace(*change)) == []


def test_blocks_that_no_warp_divides_are_left_alone(propose) -> None:
    text = (HEAD + SUM).replace("63) / 64) block(64)", "47) / 48) block(48)")
    assert propose("warp_per_item", text) == []
