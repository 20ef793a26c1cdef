"""Sums that are scaled anew as a greater value comes, in two loops."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.fast import fast
from optiml_magic.kernels.primitives.unscaled import unscaled

from .running import same
from .shapes import applied, kernel, refused

ONLINE = """\
#pragma optiml launch k grid(cdiv(rows, 32)) block(32)
__global__ void k(const float* x, const float* v, float* out, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float w = 0.5f;
    float m = -1e30f, d = 0.0f;
    for (int c = 0; c < cols; ++c) {
        ROUND
    }
    for (int c = 0; c < cols; ++c) out[r * cols + c] = expf(x[r * cols + c] - m) / d;
}
"""
SHAPES = {"x": ("rows", "cols"), "v": ("cols",), "out": ("rows", "cols")}
SIZES = {"rows": 37, "cols": 29}
PLAIN = (
    "float t = x[r * cols + c]; float n = fmaxf(m, t); d = d * expf(m - n) + expf(t - n); m = n;"
)
ROUNDS = {
    "plain": PLAIN,
    "before": "float old = m; m = max(__ldg(&x[r * cols + c]), m); "
    "d = d * expf(old - m) + expf(__ldg(&x[r * cols + c]) - m);",
    "branch": "float t = x[r * cols + c]; if (t > m) { d *= expf(m - t); m = t; } d += expf(t - m);",
    "branches": "const float t = x[r * cols + c]; "
    "if (m < t) { d = 1.0f + d * expf(m - t); m = t; } else { d += expf(t - m); }",
    "factor": "float t = x[r * cols + c] * v[0]; float n = t >= m ? t : m; float f = __expf(m - n);"
    " float p = __expf(t - n); d = fmaf(d, f, p); m = n;",
    "temperature": "float t = x[r * cols + c]; "
    "if (t > m) { d *= expf(w * (m - t)); m = t; } d += expf(w * (t - m));",
    "number": "float t = x[r * cols + c]; "
    "if (t > m) { d *= exp2f(1.4427f * (m - t)); m = t; } d += exp2f((t - m) * 1.4427f);",
    "index": "int at = r * cols + c; float n = fmaxf(m, x[at]); "
    "d = (float)(d * exp(m - n)) + exp(x[at] - n); m = n;",
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDS)
def test_every_spelling_becomes_two_loops(name: str) -> None:
    text = ONLINE.replace("ROUND", ROUNDS[name])
    made = applied(unscaled(kernel(text)))
    assert made.program.text.count("for (") == 3
    own = [r for r in made.reading.reductions if r.place in ("m", "d")]
    assert [r.op for r in own] == [
        ">" if name in ("branch", "branches", "factor", "temperature", "number") else "max",
        "+",
    ]
    same(text, made, SHAPES, SIZES, rounds=True)


def test_a_temperature_that_may_be_below_zero_is_told() -> None:
    for name, steps in ROUNDS.items():
        made = applied(unscaled(kernel(ONLINE.replace("ROUND", steps))))
        told = any("temperature is not above zero" in one for one in made.arithmetic)
        assert told == (name == "temperature")


INFINITE = {
    "plain": False, "before": False, "branch": False, "branches": True, "factor": False,
}  # fmt: skip


@pytest.mark.parametrize("name", INFINITE)
def test_what_infinite_values_change_is_declared(name: str) -> None:
    text = ONLINE.replace("ROUND", ROUNDS[name])
    below = text.replace("m = -1e30f", "m = -INFINITY")
    for which, declared in ((text, INFINITE[name]), (below, True)):
        made = applied(unscaled(kernel(which)))
        assert any("values are infinite" in one for one in made.arithmetic) == declared


def test_what_is_summed_up_with_weights_is_scaled_alike() -> None:
    text = ONLINE.replace("ROUND", PLAIN.replace("m = n;", "o = o * expf(m - n) + "
        "expf(t - n) * v[c]; m = n;")).replace("d = 0.0f;", "d = 0.0f, o = v[0];")  # fmt: skip
    text = text.replace("/ d;", "/ d + o;")
    made = applied(unscaled(kernel(text)))
    assert "if (m > m_begin) {" in made.program.text
    assert "o *= expf(m_begin - m);" in made.program.text
    assert "d *=" not in made.program.text
    same(text, made, SHAPES, SIZES, rounds=True)


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("expf(m - n) +", "expf(n - m) +", "`d` is not scaled as the greatest value grows", 7),
        ("expf(m - n) +", "expf(m - n) * 2 +", "`d` is not scaled as the greatest value grows", 7),
        ("+ expf(t - n)", "+ expf(t - m)", "`d` is not scaled as the greatest value grows", 7),
        ("m = n;", "m = t;", "`m` does not become the greatest value", 7),
        ("m = n;", "m = n; out[r] = d;", "its rounds do more than to sum up", 8),
        ("m = n;", "m = n; if (d > 9.0f) break;", "the loop has another way out", 7),
        ("float t", "if (c == 3) continue; float t", "a round is left before its end", 8),
        ("fmaxf(m, t)", "fmaxf(d, t)", "another value than the greatest is compared", 7),
        ("fmaxf(m, t)", "fmaxf(m, t + d)", "its rounds scale nothing anew", 7),
        ("float t =", "if (c % 2) d = 1.0f; float t =", "branch asks for more than", 7),
        (
            "expf(m - n) + expf(t - n)",
            "expf(v[c] * (m - n)) + expf(v[c] * (t - n))",
            "`d` is not scaled as the greatest value grows",
            7,
        ),
        (
            "expf(m - n) + expf(t - n)",
            "expf(w * (m - n)) + expf(t - n)",
            "`d` is not scaled as the greatest value grows",
            7,
        ),
        (
            "float t = x[r * cols + c]; float n",
            "float w = c; float t = x[r * cols + c]; float n",
            "",
            -1,
        ),
        ("d * expf", "d + c * expf", "`d` is not scaled as the greatest value grows", 7),
    ],
)
def test_refused_with_its_line(old: str, new: str, reason: str, line: int) -> None:
    text = ONLINE.replace("ROUND", PLAIN.replace(old, new))
    if line < 0:  # a local of the round that is called as what stays
        text = text.replace("expf(m - n)", "expf(w * (m - n))").replace(
            "expf(t - n)", "expf(w * (t - n))"
        )
        reason, line = "`d` is not scaled as the greatest value grows", 7
    found, where = refused(unscaled(kernel(text)))
    assert reason in found
    assert where == line


def test_loops_without_powers_say_nothing() -> None:
    text = ONLINE.replace("ROUND", "m = fmaxf(m, x[r * cols + c]); d += x[r * cols + c];")
    assert refused(unscaled(kernel(text))) == (
        "no loop scales sums anew as a greater value comes", 0)  # fmt: skip


def test_what_was_made_short_is_followed_and_another_function_of_that_name_is_not() -> None:
    text = ONLINE.replace("ROUND", PLAIN)
    short = fast(kernel(text), ("functions",))
    assert isinstance(short, Kernel)
    assert "fast_exp2((m - n) * 1.44269504f)" in short.program.text
    made = applied(unscaled(short))
    assert "fast_exp2(1.44269504f * (t - m))" in made.program.text
    same(text, made, SHAPES, SIZES, rounds=True)
    other = "__device__ float fast_exp2(float x) { return 1.0f + x; }\n__global__"
    own = text.replace("expf(", "fast_exp2(").replace("__global__", other, 1)
    assert refused(unscaled(kernel(own)))[0] == "its rounds do more than to sum up"
