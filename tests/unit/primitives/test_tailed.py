"""What rounds do not hand on, by a launch behind with a thread a round."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.tailed import tail_of, tailed
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

FILTER = """\
#pragma optiml launch k grid(cdiv(rows, 32)) block(32)
__global__ void k(const float* x, const float* w, float* y, float* z, float* last, int rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    BEFORE
    float env = 0.0f;
    for (int t = 0; t < n; t++) {
        float v = x[i * n + t];
        STEP
        DONE
    }
    last[i] = env;
}
"""
STEP = "if (v > env) env = 0.5f * env + 0.5f * v; else env = 0.9f * env;"
DONE = "y[i * n + t] = logf(env + 1.5f) * v;"
ARRAYS = {
    "x": Array("f4", ("rows", "n")),
    "w": Array("f4", ("n",)),
    "y": Array("f4", ("rows", "n"), "zeros"),
    "z": Array("f4", ("rows", "n"), "zeros"),
    "last": Array("f4", ("rows",), "zeros"),
}
DEFAULT = {"BEFORE": "", "STEP": STEP, "DONE": DONE}


def text_of(**parts: str) -> str:
    text = FILTER
    for name, words in {**DEFAULT, **parts}.items():
        text = text.replace(name, words)
    return text


GOOD = [
    {},
    {"DONE": "float g = expf(env) + v; y[i * n + t] = g; z[i * n + t] = g * w[t];"},
    {"DONE": "for (int q = 0; q < 3; q++) v += expf(env * q); y[i * n + t] = v;",
     "STEP": "env = env * 0.5f + x[i * n + t];"},
    {"DONE": "if (env > 0.3f) y[i * n + t] = expf(env); else z[i * n + t] = v;"},
    {"BEFORE": "const float* row = x + i * n; float gain = sqrtf(w[0]);",
     "DONE": "y[i * n + t] = row[t] * gain * expf(env);"},
    {"DONE": "y[t * rows + i] = expf(env);", "BEFORE": "int from = i * n;",
     "STEP": "float u = v * v; env = env * 0.25f + u; float q = env + u;"},
    {"STEP": "env = env * 0.5f + v; double d = env; d += env;", "DONE": "y[i * n + t] = (float)exp(d);"},
    {"BEFORE": "int q = i; float s = q * 0.5f;", "DONE": "int i = q; y[i * n + t] = expf(env) + s;"},
]  # fmt: skip
BAD = [
    ({"DONE": "y[i * n + t] = expf(env); env = env * 0.5f;"}, "hand"),
    ({"DONE": "y[i] = expf(env);"}, "of its own"),
    ({"DONE": "y[i * n + t] = expf(env); y[i * n] = 1.0f;"}, "touched elsewhere"),
    ({"DONE": "y[i * n + t] = expf(env); z[i * n + t] = y[i * n + t];"}, "asks for what"),
    ({"DONE": "if (env > 3.0f) break; y[i * n + t] = expf(env);"}, "count from 0"),
    ({"DONE": "atomicAdd(&y[i * n + t], expf(env));"}, "of its own"),
    ({"DONE": "float a[2]; a[t % 2] = env; y[i * n + t] = expf(a[0]);"}, ""),
    ({"DONE": "last[i] = env;"}, ""),
    (
        {
            "BEFORE": "auto f = [&](float a) { return a * 2 + i; };",
            "DONE": "y[i * n + t] = f(expf(env));",
        },
        "closures",
    ),
    (
        {
            "STEP": "double d = env; env = env * 0.5f + v; d += env;",
            "DONE": "y[i * n + t] = (float)exp(d);",
        },
        "before and after",
    ),
    (
        {"STEP": "z[i * n + t] = env; env = env * 0.5f + v;", "DONE": "y[i * n + t] = expf(env);"},
        "before and after",
    ),
    (
        {"STEP": "env = env * 0.5f + v; y[i * n + t] = expf(env);", "DONE": "env += 1.0f;"},
        "handed on behind",
    ),
    ({"STEP": "v *= 2.0f;"}, "hand nothing on"),
    ({"DONE": ""}, "nothing but hand on"),
]


@pytest.mark.parametrize("parts", GOOD)
def test_a_launch_behind_does_the_rest(parts: dict[str, str]) -> None:
    text = text_of(**parts)
    after = written(tailed(kernel_of(text)))
    assert "env_found" in after or "d_found" in after
    first = after.split("__global__ void k_items")[1].split("__global__")[0]
    assert "expf" not in first
    assert "logf" not in first
    for rows, n in ((1, 1), (40, 9), (33, 70)):
        assert end_of(text, after, ARRAYS, {"rows": rows, "n": n}, {"rows": 5, "n": 3}) == "same"


@pytest.mark.parametrize(("parts", "reason"), BAD)
def test_what_depends_on_the_order_stays(parts: dict[str, str], reason: str) -> None:
    assert reason in refused(tailed(kernel_of(text_of(**parts))))


def test_a_parameter_that_rounds_change_stays() -> None:
    text = text_of(STEP="env = env * 0.5f + v; g = g * 0.5f + v;", DONE="y[i * n + t] = expf(g);")
    text = text.replace("int n)", "int n, float g)")
    assert refused(tailed(kernel_of(text))) == "the parameter `g` changes"


def test_what_rounds_begin_with_is_no_local_of_the_item() -> None:
    text = text_of(
        BEFORE="float g = 1.0f, twice = g * 2.0f;", STEP="y[i * n + t] = expf(env) + twice;",
        DONE="g = g * 0.5f + v; env = env * 0.5f + g;",
    )  # fmt: skip
    after = written(tailed(kernel_of(text)))
    assert end_of(text, after, ARRAYS, {"rows": 33, "n": 70}, {"rows": 5, "n": 3}) == "same"


def test_what_is_found_again_does_not_wait() -> None:
    kernel = kernel_of(text_of(DONE="y[i * n + t] = powf(env, v);"))
    _, _, tail = tail_of(kernel)
    assert [v.name for v in tail.saved] == ["env"]
    assert tail.is_long(kernel)
    assert not tail_of(kernel_of(text_of(DONE="y[i * n + t] = env * v;")))[2].is_long(kernel)


def test_two_functions_of_a_middling_length_are_long_wherever_they_are() -> None:
    one = "y[i * n + t] = tanhf(env);"
    for done, long in ((one, False), (f"{one} z[i * n + t] = log1pf(env);", True)):
        kernel = kernel_of(text_of(DONE=done))
        assert tail_of(kernel)[2].is_long(kernel) == long
