"""Loops in each other that go on where the one before ended, as one loop."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.unnested import unnested

from .running import same
from .shapes import applied, kernel, refused

GROUPS = """\
#pragma optiml launch k grid(cdiv(m * g, 64)) block(64)
__global__ void k(const float* x, const float* scale, float* y, int m, int g, int e, int p) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= m * g) return;
    int group = item % g;
    float sum = 0.0f;
    for (int c = group * e; c < (group + 1) * e; c++)
        for (int i = 0; i < p; i++) {
            float v = x[(item / g * g * e + c) * p + i];
            sum += v * v;
        }
    for (int c = group * e; c < (group + 1) * e; ++c)
        for (int i = 0; i < p; ++i) {
            int at = (item / g * g * e + c) * p + i;
            y[at] = x[at] * scale[c] / sum + i;
        }
}
"""
SHAPES = {"x": ("m", "g", "e", "p"), "scale": ("g", "e"), "y": ("m", "g", "e", "p")}
SIZES = {"m": 3, "g": 5, "e": 3, "p": 7}
CHANNELS = """\
#pragma optiml launch k grid(cdiv(c, 32)) block(32)
__global__ void k(const float* x, float* out, int n, int c, int h, int w) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= c) return;
    float s = 0;
    for (int i = 0; i < n; i++)
        for (int r = 0; r < h; r++)
            for (int q = 0; q < w; q++)
                s += x[((i * c + k) * h + r) * w + q];
    out[k] = s;
}
"""
PIXELS = {"x": ("n", "c", "h", "w"), "out": ("c",)}


def _loops(made: Kernel) -> int:
    return made.program.text.count("for (")


def test_what_asks_for_a_counter_alone_gets_a_quotient() -> None:
    made = applied(unnested(kernel(GROUPS)))
    text = made.program.text
    assert _loops(made) == 2
    assert text.count(" / p;") == 1  # of the second loop, for what is scaled
    assert "const int i = run % p;" in text
    assert "run < e * p" in text
    same(GROUPS, made, SHAPES, SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int q = 0; q < w; q++", "int q = 0; q <= w - 1; ++q"),
        ("int q = 0; q < w; q++", "int q = 0; w > q; q += 1"),
        ("int r = 0; r < h; r++", "size_t r = 0; r < h; r++"),
        ("s += x[", "if ((r + k) % 3 != 0) s += x["),
        ("                s += x[((i * c + k) * h + r) * w + q];",
         "                { const int line = i * c + k; s += x[line * h * w + (q + r * w)] * q; }"),
    ],
)  # fmt: skip
def test_rows_of_pixels_are_one_row(old: str, new: str) -> None:
    text = CHANNELS.replace(old, new)
    made = applied(unnested(kernel(text)))
    assert _loops(made) == 2
    same(text, made, PIXELS, {"n": 3, "c": 35, "h": 5, "w": 7})


def test_runs_of_runs_are_taken_apart_by_whole_products() -> None:
    text = CHANNELS.replace("((i * c + k)", "((k * n + i)").replace("w + q]", "w + q] * r * i")
    made = applied(unnested(kernel(text)))
    assert _loops(made) == 1
    assert "% (h * w)" in made.program.text
    same(text, made, {**PIXELS, "x": ("c", "n", "h", "w")}, {"n": 3, "c": 35, "h": 5, "w": 7})


def test_rounds_that_are_counted_by_longs_have_a_longer_counter() -> None:
    wide = CHANNELS.replace("x[((i", "x[(((size_t)i")
    assert "for (int run = 0; run < h * w; ++run)" in applied(unnested(kernel(wide))).program.text
    long = wide.replace("int h, int w", "int h, long long w").replace("int q", "long long q")
    made = applied(unnested(kernel(long)))
    assert "for (long long run = 0; run < h * w; ++run)" in made.program.text
    assert "for (int run = 0;" in applied(unnested(kernel(CHANNELS))).program.text


def test_what_is_under_a_test_alone_has_an_int_for_its_quotients() -> None:
    text = CHANNELS.replace("s += x[", "if (r > 0 && q < w - 1) s += x[")
    made = applied(unnested(kernel(text)))
    assert "for (int run = 0; run < h * w; ++run)" in made.program.text
    same(text, made, PIXELS, {"n": 3, "c": 35, "h": 5, "w": 7})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("* w + q]", "* (w + 1) + q]"),  # rows with room behind them
        ("int q = 0;", "int q = 1;"),
        ("q++)", "q += 2)"),
        ("q < w;", "q < r;"),
        ("q < w;", "q < w && s < 9.0f;"),
        ("s += x[", "if (s > 9.0f) break; s += x["),
        ("for (int q", "s *= 2; for (int q"),
        ("+ r) * w + q]", "+ h - r) * w + q]"),
    ],
)
def test_what_does_not_go_on_stays(old: str, new: str) -> None:
    text = CHANNELS.replace(old, new)
    if "s *= 2" in new:
        text = text.replace("s *= 2;", "{ s *= 2;").replace("w + q];", "w + q]; }")
    reason, line = refused(unnested(kernel(text)))
    assert reason == "no loop goes on where the one inside of it has ended"
    assert line == 0


def test_a_counter_in_a_local_of_the_round_stands_still_as_well() -> None:
    text = GROUPS.replace(
        "            int at = (item / g * g * e + c) * p + i;\n",
        """\
            int channel = c + 0 * i, mine = item / g * g * e + channel;
            int at = mine * p + i;
            float more = channel;
""",
    ).replace("/ sum + i;", "/ sum + i + more;")
    made = applied(unnested(kernel(text)))
    assert _loops(made) == 2
    same(text, made, SHAPES, SIZES)
