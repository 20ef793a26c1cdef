"""The choices of fast forms: all of a kernel together, and each kind by itself."""

from __future__ import annotations

import pytest

from optiml_magic.proposers.rewrites.fast_functions import FastFunctions
from tests.ideas import asked

TEXT = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* o, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) {
        float v = expf(x[i]);
        o[i] = v / (1.0f + v);
    }
}"""


def test_each_choice_says_what_it_changes(propose, compiles):
    ideas, refused = asked(FastFunctions(), TEXT)
    assert not refused
    assert [idea.arithmetic for idea in ideas] == [
        ("fast exponentials and logarithms", "divisions by approximate reciprocals"),
        ("fast exponentials and logarithms",),
        ("divisions by approximate reciprocals",),
    ]
    both = propose("fast_functions", TEXT)[0]
    assert "div.rn" in compiles(TEXT)
    assert "div.rn" not in compiles(both.text)


def test_a_sine_of_any_angle_stays():
    ideas, (refused,) = asked(FastFunctions(), TEXT.replace("v / (1.0f + v)", "v + sinf(x[i])"))
    assert [idea.title for idea in ideas] == ["use fast exponentials and logarithms"]
    assert refused.line == 7
    assert "argument may be anything" in refused.reason


def test_an_angle_is_not_made_of_fast_functions():
    """Position embeddings turn thousands of radians, by a power of what they turn at."""
    text = TEXT.replace("expf(x[i])", "n * powf(x[i], 0.3f)").replace("/ (1.0f + v)", "* cosf(v)")
    ideas, refused = asked(FastFunctions(), text)
    assert not ideas
    assert "an angle, which may be many turns, depends on its last bits" in refused[0].reason
    assert refused[0].line == 7
    beside, _ = asked(FastFunctions(), text.replace("cosf(v)", "cosf(x[i])"))
    assert [idea.title for idea in beside] == ["use fast exponentials and logarithms"]


MAGNIFIED = (
    "float u = expf(x[i]), d = expf(-x[i]); o[i] = (1.0f - d) / (u - d);",
    "float u = expf(x[i]), d = expf(-x[i]), w = u - d; o[i] = x[i] / w;",
    "float d = expf(-x[i]); o[i] = x[i] / (float)(expf(x[i]) - 2.0f * d);",
    "float p = n * expf(x[i]); int at = (int)floorf(p); o[i] = x[min(max(at, 0), n - 1)];",
    "float p = n * expf(x[i]); int at = p < 0 ? 0 : 1; o[i] = x[i] + x[at];",
    "int at = 0; if (expf(x[i]) > 0.5f) at = i; o[i] = x[at];",
    "int at = 0; while (at < n - 1 && at < expf(x[i])) at++; o[i] = x[at];",
)
STEADY = (
    "float u = expf(x[i]), d = expf(-x[i]); o[i] = (u - d) / (u + d);",
    "float u = expf(x[i]); o[i] = u / (1.0f - u);",
    "float u = expf(x[i]), d = x[i]; o[i] = u / (d - 3.0f);",
    "float u = expf(x[i]), d = expf(-x[i]); o[i] = (u - d) * x[0] / 3.0f;",
    "int at = (int)floorf(n * x[i]); o[i] = expf(x[min(max(at, 0), n - 1)]);",
    "float u = expf(x[i]); if (u > 0.5f) o[i] = u - expf(-x[i]);",
)


@pytest.mark.parametrize("body", MAGNIFIED)
def test_little_may_become_much(body: str) -> None:
    text = TEXT.replace(TEXT[TEXT.index("float v") : TEXT.index("    }\n}")], f"{body}\n")
    ideas, _ = asked(FastFunctions(), text)
    found = [idea for idea in ideas if "fast exponentials and logarithms" in idea.arithmetic]
    assert found
    assert {idea.prior for idea in found} == {0.12}


@pytest.mark.parametrize("body", STEADY)
def test_little_stays_little(body: str) -> None:
    text = TEXT.replace(TEXT[TEXT.index("float v") : TEXT.index("    }\n}")], f"{body}\n")
    ideas, _ = asked(FastFunctions(), text)
    found = [idea for idea in ideas if "fast exponentials and logarithms" in idea.arithmetic]
    assert max(idea.prior for idea in found) >= 0.4


def test_what_stays_little_is_still_changed_together():
    """The divisor is a difference of exponentials; the logarithm of a division is nobody's."""
    text = TEXT.replace("o[i] = v / (1.0f + v);", "o[i] = x[i] / (v - expf(-v)) + 1.0f / x[i];")
    ideas, _ = asked(FastFunctions(), text)
    assert [(idea.arithmetic, idea.prior) for idea in ideas] == [
        (("divisions by approximate reciprocals",), 0.62),
        (("fast exponentials and logarithms", "divisions by approximate reciprocals"), 0.12),
        (("fast exponentials and logarithms",), 0.12),
    ]


def test_doubles_are_divided_by_once_for_all_rounds(compiles):
    text = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const double* x, double* o, int n, int m, double h) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    double s = 0;
    for (int j = 0; j < m; ++j) s += (x[i] - x[j]) / h;
    o[i] = s;
}"""
    ideas, refused = asked(FastFunctions(), text)
    assert not refused
    (idea,) = ideas
    assert idea.arithmetic == ("divisions by approximate reciprocals",)
    made = idea.make()
    assert "const double reciprocal = 1.0 / h;" in made
    assert "(x[i] - x[j]) * reciprocal" in made
    compiles(made)
    assert not asked(FastFunctions(), text.replace("/ h", "/ (j + h)"))[0]
