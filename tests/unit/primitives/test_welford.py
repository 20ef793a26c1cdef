"""Running means, and what varies around them, as two loops that only add up."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.welford import welford

from .running import same
from .shapes import applied, kernel, refused

ROW = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, float* out, int w, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    const float* x = a + r * w;
    %s
    out[r * 3] = mean; out[r * 3 + 1] = m2; out[r * 3 + 2] = %s;
}
"""
BEGIN = "float mean = 0.0f, m2 = 0.0f;"
LOOP = "for (int i = 0; i < w; ++i) { %s }"
SHAPES = {"a": ("h", "w"), "out": ("h", "3")}
PLAIN = "float d = x[i] - mean; mean += d / (i + 1); m2 += d * (x[i] - mean);"
SPELLED = [
    BEGIN + LOOP % PLAIN,
    BEGIN + LOOP % "float v = x[i], d = v - mean; mean = mean + d / (float)(i + 1);"
    "float e = v - mean; m2 = m2 + d * e;",
    BEGIN + LOOP % "float old = mean; mean += (x[i] - mean) * (1.0f / (i + 1));"
    "m2 += (x[i] - old) * (x[i] - mean);",
    BEGIN + LOOP % "float inv = 1.0f / (i + 1.0f), d = x[i] - mean; mean += d * inv;"
    "m2 = fmaf(d, x[i] - mean, m2);",
    BEGIN + LOOP % "float d = 2.0f * x[i] - x[0] - mean; mean += d / (i + 1);"
    "m2 += d * (2.0f * x[i] - x[0] - mean);",
    "float mean = 7.0f, m2 = 3.0f;" + LOOP % PLAIN,
    "float mean = w > 0 ? x[0] : 0.0f, m2 = 0.0f;" + (LOOP % PLAIN).replace("i = 0", "i = 1"),
    "float mean = 0.5f, m2 = 1.0f;" + (LOOP % PLAIN).replace("i + 1", "i + 5"),
    BEGIN + LOOP % "float d = x[i] - mean; m2 += d * d * i / (i + 1); mean += d / (i + 1);",
    BEGIN + LOOP % "mean = (mean * (float)i + x[i]) / (i + 1);",
    BEGIN.replace("m2 = 0.0f", "m2 = -1.0f") + LOOP % "float d = x[i] - mean; mean += d / (i + 1);",
]
COUNTED = [
    "int n = 0;" + BEGIN + LOOP % "n++; float d = x[i] - mean; mean += d / n;"
    "m2 += d * (x[i] - mean);",
    "float n = 0.0f;" + BEGIN + LOOP % "n += 1.0f; float d = x[i] - mean; mean += d / n;"
    "m2 += d * (x[i] - mean);",
    "int n = 0;" + BEGIN + LOOP % "n++; float d = x[i] - mean; mean += d / n;"
    "m2 += d * d * ((n - 1.0f) / (float)n);",
    "int n = 2;" + BEGIN + LOOP % "float d = x[i] - mean; mean += d / (n + 1);"
    "m2 += d * (x[i] - mean); ++n;",
]


@pytest.mark.parametrize(("w", "h"), [(1, 1), (2, 33), (40, 5), (133, 3)])
@pytest.mark.parametrize("at", range(len(SPELLED) + len(COUNTED)))
def test_it_leaves_the_mean_and_what_varies_around_it(at: int, w: int, h: int) -> None:
    text = ROW % ([*SPELLED, *COUNTED][at], "n" if at >= len(SPELLED) else "0")
    made = welford(kernel(text))
    assert applied(made).program.text.count("_sum +=") == 1
    same(text, made, SHAPES, {"w": w, "h": h}, rounds=True)


def test_of_no_rounds_nothing_is_left() -> None:
    text = ROW % ("int n = 0; float mean = 3.0f, m2 = 1.0f;" + LOOP % (
        "n++; float d = x[i] - mean; mean += d / n; m2 += d * (x[i] - mean);"
    ).replace("i < w", "i < w - 9"), "n")  # fmt: skip
    same(text, welford(kernel(text)), SHAPES, {"w": 4, "h": 5}, rounds=True)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("float d = x[i] - mean; mean += d / (i + 1); m2 += d * d;", "its rounds carry no mean"),
        ("float d = x[i] - mean; mean += d / (i + 2); m2 += d * (x[i] - mean); mean += 1.0f / (i + 1);",
         "what it divides by does not count its rounds"),
        ("float d = x[i] - mean; mean += d / (2 * i + 1); m2 += d * (x[i] - mean);",
         "what it divides by does not count its rounds"),
        ("float d = x[i] - mean; mean += d / i; m2 += d * (x[i] - mean);",
         "how many it has counted before is not known"),
        ("float d = x[i] - mean; mean += d / (i + 1); m2 += d * (x[i] - mean); out[r] = mean;",
         "its rounds do more than to sum up"),
        ("float d = x[i] - mean; if (d > 0) mean += d / (i + 1);",
         "a branch asks for more than what is greater"),
        ("float d = x[i] - mean; mean += d / (i + 1); if (d > 9) continue; m2 += d;",
         "a round is left before its end"),
        ("int d = x[i] - mean; mean += d / (i + 1.0f); m2 += d * (x[i] - mean);",
         "it converts to a whole number"),
        ("mean += x[i] * (1 / (i + 1));", "a quotient of whole numbers is not followed"),
        ("float d = x[i] * m2 - mean; mean += d / (i + 1); m2 += d;", "its rounds carry no mean"),
        ("float d = x[i] - mean; mean += d / (i + 1); m2 += d * (x[i] - mean); n *= 2;",
         "its rounds do more than to sum up"),
        ("n++; float d = x[i] - mean; mean += d / (i + 1); m2 += d * (x[i] - mean);",
         "its rounds do more than to sum up"),
        ("n++; float d = x[i] - mean; mean += d / n; m2 += d * (x[i] - mean);",
         "how many it has counted before is not known"),
    ],
)  # fmt: skip
def test_what_is_no_running_mean_is_left_alone(body: str, reason: str) -> None:
    text = ROW % ("int n = r;" + BEGIN + LOOP % body, "n")
    assert refused(welford(kernel(text)))[0] == reason
