"""Loads of every round but one, made in all of them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.foreseen import foreseen
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* x, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int j = 0; j < m; ++j) {
        if (j == i) continue;
        float d = a[3 * i + 1] - x[j];
        if (d > 0.5f) s += d * x[j + 1];
    }
    out[i] = s;
}
"""
INSIDE = TEXT.replace("if (j == i) continue;", "if (i != j) {").replace("x[j + 1];", "x[j + 1]; }")
SHAPES = {"a": ("3 * n",), "x": ("m + 1",), "out": ("n",)}


def test_what_a_round_meets_and_what_is_the_items_own() -> None:
    after = applied(foreseen(kernel(TEXT))).program.text
    for now in (
        "#pragma optiml require n >= 2\n#pragma optiml require m >= 2\n",
        "    const float a_own = a[3 * i + 1];\n    for (int j",
        "        const float x_met = x[j];\n        if (j == i) continue;\n",
        "float d = a_own - x_met;",
        "s += d * x[j + 1];",  # of rounds that a number decides on
    ):
        assert now in after


@pytest.mark.parametrize(
    "text",
    sampled(
        [
            INSIDE,
            TEXT,
            TEXT.replace("j = 0; j < m", "j = 1; j <= m").replace("m + 1", "m + 2"),
            TEXT.replace("if (i >= n) return;", "if (i < n) {").replace("= s;", "= s; }"),
            TEXT.replace("int j = 0; j < m", "int j = m - 1; j >= 0").replace("++j", "--j"),
        ],
        3,
    ),
)
@pytest.mark.parametrize("sizes", [{"n": 71, "m": 9}, {"n": 2, "m": 2}])
def test_it_does_the_same(text: str, sizes: dict[str, int]) -> None:
    shapes = SHAPES | {"x": ("m + 2",)}
    made = foreseen(kernel(text))
    if "--j" in text:
        assert refused(made)[0] == "no round is left out"
    else:
        same(text, made, shapes, sizes)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("if (j == i) continue;", "if (j == n) continue;", "no round is left out"),
        ("if (j == i) continue;", "if (j == 2 * i) continue;", "no round is left out"),
        ("if (j == i) continue;", "if (j == i || s > 9) continue;", "no round is left out"),
        ("j < m", "j < i", "no round is left out"),
        ("const float* a, const float* x", "float* a, const float* x", ""),
        ("if (i >= n) return;", "", "how many items there are its guards do not say as its launch does"),
    ],
)  # fmt: skip
def test_refused(old: str, new: str, why: str) -> None:
    made = foreseen(kernel(TEXT.replace(old, new)))
    if why:
        assert refused(made)[0] == why
    else:
        assert "a_own" in applied(made).program.text


def test_structures_are_taken_whole_or_by_their_members() -> None:
    text = TEXT.replace("const float* a", "const float4* a").replace("a[3 * i + 1] -", "a[i].y -")
    after = applied(foreseen(kernel(text))).program.text
    assert "const float a_own = a[i].y;" in after
    after = applied(
        foreseen(kernel(text.replace("float d = a[i].y", "float4 p = a[i]; float d = p.y")))
    ).program.text
    assert "const float4 a_own = a[i];" in after
    assert "float4 p = a_own;" in after


def test_what_somebody_writes_is_loaded_where_it_was() -> None:
    text = TEXT.replace("const float* a,", "float* a,").replace("out[i] = s;", "a[3 * i + 1] = s;")
    after = applied(foreseen(kernel(text))).program.text
    assert "a_own" not in after
    assert "x_met" in after
