"""Local arrays that loops walk through as far as the data say."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.walked import walked

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const float* b, float* out, int n, int most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int m = min((i * 7) %% 13 + 1, most);
    float row[12], next[12];
    %s
    out[i] = s;
}
"""
START = "for (int j = 0; j <= m - 1; j++) row[j] = a[i * 12 + j];"
WHERE = "for (int j = 0; j < m; j++) { row[j] = a[i * 12 + j];"
DISTANCE = """\
m = min(m, 11);
for (int j = 0; j <= m; j++) row[j] = j;
for (int r = 1; r <= 5; ++r) {
    next[0] = r;
    for (int j = 1; j <= m; j++)
        next[j] = fminf(row[j] + b[i * 5 + r - 1], fminf(next[j - 1] + 1.0f, row[j - 1]));
    for (int j = 0; j <= m; j++) row[j] = next[j];
}
float s = row[m];"""
POWERS = """\
m = min(m, 12);
for (int j = 0; j < m; j++) row[j] = a[i * 12 + j];
float s = 0.0f;
for (int r = 0; r < 4; ++r)
    for (int j = 0; j < m; j++) {
        float v = row[j] * 0.5f;
        row[j] = v;
        if (v > b[i * 5 + r]) s += v;
    }
s = s + row[m - 1] + row[m / 2];"""
OWN = """\
m = min(m, 12);
float s = 0.0f;
for (int j = 0; j < m; j++) {
    int q = j % 5;
    row[j] = a[i * 12 + j] + b[i * 5 + q];
    if (int o = q + 1) s += row[j] * b[i * 5 + q] + o;
}
s += row[0];"""
BAND = """\
m = min(m, 11);
for (int j = 0; j < 12; j++) row[j] = 1e30f;
row[0] = 0.0f;
for (int r = 1; r <= 5; ++r) {
    for (int j = 0; j < 12; j++) next[j] = 1e30f;
    for (int j = r - 2 > 1 ? r - 2 : 1; j <= min(r + m / 2, 11); j++)
        next[j] = fabsf(a[i * 12 + j] - b[i * 5 + r - 1]) + fminf(row[j], fminf(next[j - 1], row[j - 1]));
    for (int j = 0; j < 12; j++) row[j] = next[j];
}
float s = row[5] > 1e29f ? -1.0f : row[5];"""
FROM = """\
m = min(m, 12);
for (int j = 0; j < 12; j++) row[j] = a[i * 12 + j];
float s = 0.0f;
HEAD { s = s * 0.5f + row[j]; row[j] = s; }
for (int j = 0; j < 12; j++) s += row[j] * j;"""
HEADS = (
    "for (int j = m / 2; j < m; j++)",
    "for (int j = max(m - 3, 0); j < m; ++j)",
    "for (int j = m; j < 12; j++)",
    "for (short j = m / 3; j <= m - 1; j += 1)",
    "for (int j = m > 6 ? 6 : m; j < m; j++)",
    "for (int q = 0; q < 3; ++q) for (int j = m / 2 - m / 3; j < m; j++)",
    "if (m > 4) for (int j = m / 2; j < m; j++)",
    "int j_begin = 1; s = j_begin; for (int j = m / 2; j < m; j++)",
    "int lo = m / 2; for (int j = lo; j < m; j++) if (row[j] > 0 || (lo = 7))",
    "int lo = m + b[i * 5] * 9; for (int j = max(lo, 0); j < m; j++)",
    "for (int j = -(-m / 2); m > j; j++)",
    "for (unsigned j = m / 2; j < m; j++)",
)
SHAPES = {"a": ("n", "12"), "b": ("n", "5"), "out": ("n",)}


@pytest.mark.parametrize("most", [1, 2, 7, 13])
@pytest.mark.parametrize("body", [BAND, *(FROM.replace("HEAD", head) for head in HEADS)])
def test_rounds_that_begin_where_the_data_say(body: str, most: int) -> None:
    made = walked(kernel(TEXT % body))
    assert "j >= j_begin" in applied(made).program.text
    same(TEXT % body, made, SHAPES, {"n": 33, "most": most})


@pytest.mark.parametrize(
    "head",
    [
        "for (int j = at[i]; j < m; j++)",
        "for (int j = s * m; j < m; j++)",
        "for (int j = m--; j < m; j++)",
        "for (int j = m / 2; j < m; j += 2)",
        "for (int j = m / 2; j * (m - 9) < m; j++)",
        "for (int j = m / 2; j > m - 9; j++)",
        "for (int j = 0; j > m - 9; j++)",
        "for (unsigned j = m / 2 - 3; j < m; j++)",
        "for (int j = m / 2; j != m; j++)",
        "for (int j = m - 1; j >= m / 2; j--)",
        "int j = m / 2; for (; j < m; j++)",
    ],
)
def test_other_beginnings_are_left(head: str) -> None:
    text = (TEXT % FROM.replace("HEAD", head)).replace("float* out", "const int* at, float* out")
    refused(walked(kernel(text)))


@pytest.mark.parametrize("n", [1, 33, 100])
@pytest.mark.parametrize("most", [0, 1, 5, 13])
@pytest.mark.parametrize("body", [DISTANCE, POWERS, OWN])
def test_an_array_that_is_walked_has_constant_indices(body: str, n: int, most: int) -> None:
    if body is POWERS and most == 0:
        return  # it asks for an element before the first
    text = TEXT % body
    made = walked(kernel(text))
    words = applied(made).program.text
    assert "#pragma unroll" in words
    assert "row[m]" not in words
    assert "row[m - 1]" not in words
    same(text, made, SHAPES, {"n": n, "most": most}, rounds=True)


def test_what_all_rounds_load_alike_is_loaded_before() -> None:
    words = applied(walked(kernel(TEXT % DISTANCE))).program.text
    assert "if (1 <= m) b_alike = b[i * 5 + r - 1];" in words
    assert "fminf(row[j] + b_alike" in words
    words = applied(walked(kernel(TEXT % POWERS))).program.text
    assert "if (v > b_alike)" in words


@pytest.mark.parametrize(
    "body",
    [
        # A place of the array that stays open, by a store, by an address, by the rounds of a loop.
        f"{START} row[m - 1] = 2.0f; float s = row[0];",
        f"{START} float* p = row; float s = p[0];",
        f"{START} float s = 0.0f; int q = 0; while (q < m) {{ s += row[q]; q += 2; }}",
        # How far a round may go is not said by what it certainly asks for.
        "for (int j = 0; j < m; j++) if (j < 12) row[j] = a[i * 12 + j]; float s = row[0];",
        # A bound that rounds move, and a round that may be the last.
        f"{WHERE} if (row[j] > 1.0f) --m; }} float s = row[0];",
        f"{WHERE} if (row[j] > 1.0f) break; }} float s = row[0];",
        # Constant already.
        "for (int j = 0; j < 12; j++) row[j] = a[i * 12 + j]; float s = row[3];",
    ],
)
def test_what_stays_open_is_left(body: str) -> None:
    reason, _ = refused(walked(kernel(TEXT % body)))
    assert reason == "no loop walks through a local array to where the data say"
