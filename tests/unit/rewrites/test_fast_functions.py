"""The choices of fast forms: all of a kernel together, and each kind by itself."""

from __future__ import annotations

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
