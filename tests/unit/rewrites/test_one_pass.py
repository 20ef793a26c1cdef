"""Where a variance takes one pass: of one kernel or two, by rows or by columns."""

from __future__ import annotations

import pytest

from optiml_magic.proposers.rewrites.one_pass import OnePass
from tests.ideas import asked, made

HEAD = "int k = blockIdx.x * blockDim.x + threadIdx.x;"
APART = f"""\
#pragma optiml scratch mean f4[m]
#pragma optiml launch means grid(cdiv(m, 128)) block(128)
#pragma optiml launch variances grid(cdiv(m, 128)) block(128)
__global__ void means(const float* a, float* mean, int n, int m) {{
    {HEAD}
    if (k >= m) return;
    float s = 0.0f;
    for (int i = 0; i < n; i++) s += a[AT];
    mean[k] = s / n;
}}
__global__ void variances(const float* a, const float* mean, float* out, int n, int m) {{
    {HEAD}
    if (k >= m) return;
    float s = 0.0f;
    for (int i = 0; i < n; i++) {{
        float d = a[AT] - mean[k];
        s += d * d;
    }}
    out[k] = s / (n - 1);
}}
"""
COLUMNS, ROWS = APART.replace("AT", "i * m + k"), APART.replace("AT", "k * n + i")


@pytest.mark.parametrize(
    ("text", "way"), [(COLUMNS, "rows of threads and blocks"), (ROWS, "lanes of a warp")]
)
def test_two_kernels_become_one_whose_loop_is_shared(text: str, way: str, compiles) -> None:
    ideas, refused = asked(OnePass(), text)
    assert not refused
    assert ideas[0].launches == ("means", "variances")
    assert way in ideas[0].title
    assert ideas[0].arithmetic[0] == "how sums of squares are made"
    found = made(ideas[:1])[0].text
    assert "_parts" in found or "LANES" in found
    compiles(found)


def test_one_that_can_not_be_shared_is_read_once_anyway(compiles) -> None:
    text = COLUMNS.replace("    out[k] =", "    if (gridDim.x > 9) s = 0.0f;\n    out[k] =")
    ideas, _ = asked(OnePass(), text.replace("mean[k] = s", "mean[k] = gridDim.x + s"))
    for found in made(ideas):
        compiles(found.text)


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("d * d", "d * s", "its rounds do more than to sum up", 11),
        ("a[i * m + k] - mean[k]", "a[i * m + k] * mean[k]", "no squares of differences", 11),
    ],
)
def test_refused_with_its_line(old: str, new: str, reason: str, line: int) -> None:
    ideas, refused = asked(OnePass(), COLUMNS.replace(old, new))
    assert not ideas
    (found,) = refused
    assert reason in found.reason
    assert found.line == line


def test_what_has_one_loop_says_nothing() -> None:
    text = COLUMNS.replace("float d = a[i * m + k] - mean[k];", "float d = a[k] - mean[k];")
    ideas, refused = asked(OnePass(), text[: text.index("__global__ void variances")].replace(
        "#pragma optiml launch variances grid(cdiv(m, 128)) block(128)\n", ""))  # fmt: skip
    assert not ideas
    assert not refused
