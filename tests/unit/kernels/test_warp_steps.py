"""Lanes of a warp that ran in step, with the waits that they need since they may run apart."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.kernels.warp_steps import warp_steps
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once, optimize
from optiml_magic.settings import resolve

KERNEL = """\
template <int N> __device__ void all(volatile float* s, unsigned int t) {
    if (N >= 64) s[t] += s[t + 32];
    if (N >= 32) { s[t] += s[t + 16]; }
    s[t] = s[t] + s[t + 8];
    s[t] += s[t + 4]; s[t] += s[t + 2];
    if (t < 1) s[t] += s[t + 1];
}
#pragma optiml launch k grid(rows) block(64)
__global__ void k(const float* a, float* out, int rows) {
    __shared__ float part[64];
    const int t = threadIdx.x, lane = t & 31;
    float v = a[blockIdx.x * 64 + t];
    BODY
}
"""
HALVES = "part[t] = v; __syncthreads(); "
END = " if (t == 0) out[blockIdx.x] = part[0];"
#: Ways in which a warp adds up in step.
STEPS = {
    "a function": HALVES + "if (t < 32) all<64>(part, t);" + END,
    "unrolled": HALVES + "if (t < 32) { volatile float* p = part; p[t] += p[t + 32]; p[t] += p[t + 16];"
    "p[t] += p[t + 8]; p[t] += p[t + 4]; p[t] += p[t + 2]; p[t] += p[t + 1]; }" + END,
    "a loop": HALVES + "if (t < 32) { volatile float* p = part; for (int d = 32; d > 0; d /= 2)\n"
    " p[t] = p[t] +\n p[t + d]; }" + END,
    "by lanes": "volatile float* p = part; p[t] = v; if (lane < 16) p[t] += p[t + 16];"
    " if (lane < 8) { p[t] += p[t + 8]; } if (lane < 4) p[t] += p[t + 4]; if (lane < 2) p[t] += p[t + 2];"
    " if (!lane) p[t] += p[t + 1]; __syncthreads(); if (t == 0) out[blockIdx.x] = p[0] + p[32];",
    "with waits": HALVES + "if (t < 32) { part[t] += part[t + 32]; __syncwarp(); part[t] += part[t + 16];"
    " __syncwarp(); part[t] += part[t + 8]; __syncwarp(); part[t] += part[t + 4]; __syncwarp();"
    " part[t] += part[t + 2]; __syncwarp(); part[t] += part[t + 1]; __syncwarp(); }" + END,
    "a chain": "volatile float* p = part; float own = p[t] = v;"
    " if (lane >= 1) p[t] = own += p[t - 1]; if (lane >= 2) p[t] = own += p[t - 2];"
    " if (lane >= 4) p[t] = own += p[t - 4]; if (lane >= 8) p[t] = own += p[t - 8];"
    " if (lane >= 16) p[t] = own += p[t - 16];"
    " __syncthreads(); if (t == 0) out[blockIdx.x] = p[31] + p[63];",
    "warps by their numbers": HALVES + "const int FIRST = 32; if (t >> 5 == 0 && t < FIRST)"
    " { volatile float* p = part; for (int d = 32; d > 0; d /= 2) p[t] += p[t + d]; }" + END,
    "a scan": "volatile float* p = part; p[t] = v; for (int d = 1; d < 32; d *= 2)"
    " if (lane >= d) p[t] = v = v + p[t - d];"
    " __syncthreads(); if (t == 0) out[blockIdx.x] = p[31] + p[63];",
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_each_lane_waits_until_all_have_loaded(name: str) -> None:
    text = KERNEL.replace("BODY", STEPS[name])
    made, notes = warp_steps(text)
    assert len(made.splitlines()) == len(text.splitlines())
    assert notes
    assert all("lanes of a warp may run apart" in note.text for note in notes)
    a = np.random.default_rng(0).random((5, 64), np.float32)
    task = Task(made, inputs={"a": a, "rows": 5}, reference=lambda a: a.sum(1))
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    found = evaluate_once(task, settings, hazards=True, counters=False)
    assert found.evaluation.verdict.passed, found.evaluation.verdict


def test_a_search_goes_on_and_says_so_where_a_check_tells_of_the_race() -> None:
    text = KERNEL.replace("BODY", STEPS["unrolled"])
    a = np.random.default_rng(0).random((5, 64), np.float32)
    task = Task(text, inputs={"a": a, "rows": 5})
    settings = {"device": "emulated:h200", "verify_seeds": 1, "budget": 1, "llm": "none"}
    checked = evaluate_once(task, resolve(settings), hazards=True, counters=False)
    assert checked.evaluation.verdict.outcome == "race"
    summary = optimize(task, resolve({**settings, "experience": "none"})).summary
    (step, *_) = summary.trajectory.steps
    assert step.evaluation.verdict.passed
    assert any("lanes of a warp may run apart" in note for note in summary.notes)


@pytest.mark.parametrize(
    "body",
    [
        HALVES + "for (int d = 32; d; d /= 2) { if (t < d) part[t] += part[t + d]; __syncthreads(); }",
        HALVES + "if (t == 0) for (int i = 1; i < 64; i++) part[0] += part[i];",
        HALVES + "if (t == 0) { volatile float* p = part; for (int i = 1; i < 64; i++) p[t] += p[i]; }",
        HALVES + "if (t == 0) { volatile float* p = part; for (int i = 1; i < 64; i++) p[i] += p[i - 1]; }",
        "volatile float own[2]; own[t & 1] = v; own[t & 1] += own[1 - (t & 1)];",
        "volatile float* p = part; float w = p[t + 16]; __syncwarp(); p[t] += w; __syncwarp();",
        "volatile float* p = part; p[t] += v;",
        HALVES + "if (t == 0) { volatile float* p = part; int i = 1; while (i < 64) { p[i] += p[i - 1]; i++; } }",
        HALVES + "volatile float* p = part; if (t < 10) { p[t] += p[t + 10]; p[t] += p[t + 5]; }",
        HALVES + "volatile float* p = part; int r = t % 4; while (r-- > 0) p[t] = p[t ^ 1];",
        HALVES + "volatile float* p = part; if (t < 16) p[t] += p[t + 16]; else p[t] = 0.0f;",
        HALVES + "volatile float* p = part; for (int d = 1; d < 9; ++d) { if (lane < d) continue; p[t] += p[t - d]; }",
    ],
)  # fmt: skip
def test_what_waits_or_is_one_lane_s_stays(body: str) -> None:
    text = KERNEL[KERNEL.index("#pragma") :].replace("BODY", body)
    assert warp_steps(text) == (text, ())


def test_a_function_that_one_lane_calls_stays() -> None:
    add = "__device__ void add(volatile float* s, int i) { s[i] += s[i + 1]; }\n"
    body = HALVES + "if (t == 0) add(part, 3);"
    text = add + KERNEL[KERNEL.index("#pragma") :].replace("BODY", body)
    assert warp_steps(text) == (text, ())
    whole = text.replace("t == 0", "t < 32").replace("part, 3", "part, t")
    assert warp_steps(whole) != (whole, ())
