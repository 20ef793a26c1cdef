"""An index that each thread takes apart becomes an axis for each digit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.model.facts import LaunchFacts
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written
from .running import same
from .shapes import applied

POOL = """\
#pragma optiml launch pool grid(cdiv(c * (h / 2) * (w / 2), 256)) block(256)
__global__ void pool(const float* a, float* out, int c, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int rows = h / 2, cols = w / 2;
    if (i >= c * rows * cols) return;
    int channel = i / (rows * cols), rest = i % (rows * cols), y = rest / cols, x = rest % cols;
    float most = a[(channel * h + 2 * y) * w + 2 * x];
    most = fmaxf(most, a[(channel * h + 2 * y + 1) * w + 2 * x + 1]);
    out[i] = most;
}
"""
LAYER = """\
#pragma optiml launch layer grid(cdiv(b * f * h * w, 128)) block(128)
__global__ void layer(const float* a, const float* k, float* out, int b, int f, int h, int w, int r) {
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < b * f * h * w) {
        int x = i % w;
        int y = (i / w) % h;
        int filter = (i / (w * h)) % f;
        int image = i / (w * h * f);
        float sum = 0.0f;
        for (int p = 0; p < r; ++p)
            for (int q = 0; q < r; ++q)
                if (y + p < h && x + q < w)
                    sum += a[(image * h + y + p) * w + x + q] * k[(filter * r + p) * r + q];
        out[i] = sum;
    }
}
"""
PRODUCT = """\
#pragma optiml launch product grid(cdiv(m * n, 256)) block(256)
__global__ void product(const float* a, const float* b, float* out, int m, int n, int k) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= m * n) return;
    int row = at / n, col = at % n;
    float sum = 0.0f;
    for (int p = 0; p < k; ++p) sum += a[row * k + p] * b[p * n + col];
    out[row * n + col] = sum;
}
"""
LINE = """\
#pragma optiml launch k grid(cdiv(h * w, 32)) block(32)
__global__ void k(const float* a, const float* b, float* out, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
"""
LINES = {
    "a": Array("f4", ("h", "w")),
    "b": Array("f4", ("w",)),
    "out": Array("f4", ("h", "w"), "zeros"),
}
IMAGES = {
    "a": Array("f4", ("b", "h", "w")), "k": Array("f4", ("f", "r", "r")),
    "out": Array("f4", ("b", "f", "h", "w"), "zeros"),
}  # fmt: skip
MATRICES = {
    "a": Array("f4", ("m", "k")), "b": Array("f4", ("k", "n")),
    "out": Array("f4", ("m", "n"), "zeros"),
}  # fmt: skip


def test_three_digits_with_quotients_for_sizes() -> None:
    made = written(unravelled(kernel_of(POOL)))
    assert "grid(cdiv(w / 2, 32), cdiv(h / 2, 8), c) block(32, 8, 1)" in made
    assert "y = line, x = column;" in made
    assert "return" in made
    assert "i >= c * rows * cols" not in made


def test_four_digits_of_which_two_are_left() -> None:
    made = written(unravelled(kernel_of(LAYER)))
    assert "grid(cdiv(w, 32), cdiv(h, 4), b * f) block(32, 4, 1)" in made
    assert "filter = (rest % f);" in made
    assert "image = (rest / f);" in made
    sizes = {"b": 2, "f": 3, "h": 6, "w": 37, "r": 3}
    others = {"b": 1, "f": 2, "h": 13, "w": 5, "r": 2}
    assert end_of(LAYER, made, IMAGES, sizes, others) in ("same", "narrowed")


def test_rows_and_columns() -> None:
    made = written(unravelled(kernel_of(PRODUCT)))
    assert "grid(cdiv(n, 32), cdiv(m, 8)) block(32, 8)" in made
    sizes, others = {"m": 37, "n": 45, "k": 11}, {"m": 3, "n": 70, "k": 5}
    assert end_of(PRODUCT, made, MATRICES, sizes, others) in ("same", "narrowed")


@pytest.mark.parametrize(
    "body",
    [
        "if (i < h * w) out[i] = a[i] + b[i % w];",
        "if (i >= h * w) return;\nint r = i / w;\nif (a[i] < 0) return;\nout[i] = a[r * w];",
        "int c = i % w, r = i / w;\nif (r >= h) return;\nout[i] = a[i] + b[c];",
        "int c = i % w, r = i / w;\nif (r >= h) return;\nif (r >= 2) out[r * w + c] = a[c];",
        "if (i >= h * w) return;\nif (i >= w) out[i] = a[i % w];",
        "const int n = h * w;\nif (i < n) { int c = i % w, r = i / w; out[r * w + c] = a[c]; }",
    ],
)
def test_quotient_and_rest(body: str) -> None:
    text = LINE % body
    made = written(unravelled(kernel_of(text)))
    assert "/ w;" not in made
    sizes, others = {"h": 7, "w": 33}, {"h": 45, "w": 8}
    assert end_of(text, made, LINES, sizes, others) in ("same", "narrowed")


def test_of_rows_that_are_not_whole_the_last_keeps_its_guard() -> None:
    text = (LINE % "if (i < h) out[i] = b[i % w];").replace("cdiv(h * w, 32)", "cdiv(h, 32)")
    made = applied(unravelled(kernel_of(text)))
    assert "cdiv(h, w)" in str(made.launch.grid[1])
    assert "i < h" in made.program.text


CAFFE = """\
#pragma optiml launch k grid(cdiv(count, 64)) block(64)
__global__ void k(const float* a, float* out, int count, int ph, int pw, int stride, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int x = i % pw, y = i / pw % ph, c = i / pw / ph;
        out[i] = a[((c * ph + y) * pw + x) * stride];
    }
}
"""


def test_items_that_are_counted_alone_have_axes_and_a_guard() -> None:
    made = applied(unravelled(kernel_of(CAFFE)))
    assert str(made.launch.grid[2]).replace("(", "").startswith("cdivcount, ph * pw")
    sizes = {"count": 3 * 9 * 11 - 5, "ph": 9, "pw": 11, "stride": 2, "m": 900}
    same(CAFFE, made, {"a": ("m",), "out": ("count",)}, sizes)


SMALL = """\
#pragma optiml launch k grid(cdiv(n * c * h * w * r * r, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int c, int h, int w, int r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * c * h * r * w * r) return;
    int x = i % (w * r), y = i / (w * r) % (h * r), p = i / (w * r) / (h * r);
    out[i] = a[((p * r * r + y % r * r + x % r) * h + y / r) * w + x / r];
}
"""


def test_digits_that_are_too_few_share_an_axis() -> None:
    sizes = {"n": 2, "c": 3, "h": 6, "w": 20, "r": 2}
    facts = LaunchFacts("k", 1, (45, 1, 1), (64, 1, 1), {}, sizes)
    made = applied(unravelled(replace(kernel_of(SMALL), facts=facts)))
    assert "column >= (r * w)" in made.program.text or "column >= (w * r)" in made.program.text
    shapes = {"a": ("n", "c", "r", "r", "h", "w"), "out": ("n", "c", "h", "r", "w", "r")}
    same(SMALL, made, shapes, sizes)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("int row = at / n, col = at % n;", "int row = at / n, col = at % k;",
         "its threads do not take their index apart in one way"),
        ("int row = at / n, col = at % n;", "int row = at, col = at;",
         "its threads do not take their index apart in one way"),
        ("block(256)", "block(20)", "its block is not a number of whole rows"),
    ],
)  # fmt: skip
def test_what_is_refused(old: str, new: str, reason: str) -> None:
    text = PRODUCT.replace(old, new).replace("256)) block(20)", "20)) block(20)")
    assert refused(unravelled(kernel_of(text))).startswith(reason)


TOTAL = """\
#pragma optiml launch k grid(cdiv(total, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int c, int h, int w, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int x = i % w, y = i / w % h, q = i / (w * h) % c, p = i / (w * h * c);
    out[i] = a[((q * n + p) * h + y) * w + x];
}
"""


@pytest.mark.parametrize(("total", "whole"), [(2 * 3 * 9 * 40, True), (2 * 3 * 9 * 40 - 5, False)])
def test_a_number_of_items_is_one_of_whole_rows_where_it_may_be_asked(
    total: int, whole: bool
) -> None:
    sizes = {"n": 2, "c": 3, "h": 9, "w": 40, "total": total}
    facts = LaunchFacts("k", 1, (34, 1, 1), (64, 1, 1), {}, sizes)
    made = applied(unravelled(replace(kernel_of(TOTAL), facts=facts)))
    assert ("% (" in "".join(map(str, made.program.requires))) == whole
    assert ("if (i >= total)" in made.program.text) != whole
    if not whole:
        same(TOTAL, made, {"a": ("m",), "out": ("total",)}, {**sizes, "m": 3000})
        return
    arrays = {"a": Array("f4", ("n", "c", "h", "w")), "out": Array("f4", ("total",), "zeros")}
    small = {"n": 1, "c": 1, "h": 1, "w": 1, "total": 1}
    assert end_of(TOTAL, written(made), arrays, sizes, small) == "same"


BITS = """\
#pragma optiml launch k grid(cdiv(t * h * 16, 64)) block(64)
__global__ void k(const float* a, float* out, int t, int h) {
    %s i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= t * h * 16) return;
    int d = %s, head = (i >> 4) %% h, token = (i >> 4) / h;
    out[(head * t + token << 4) + d] = a[i];
}
"""


@pytest.mark.parametrize("kind", ["int", "unsigned", "long long"])
@pytest.mark.parametrize(
    "low", ["i & 15", "15u & i", "i % 16", "(int)(i & 0xf)", "(i + 1) & 15", "(i & 15) ^ 5"]
)
def test_digits_may_be_bits(kind: str, low: str) -> None:
    text = BITS % (kind, low)
    arrays = {"a": Array("f4", ("t", "h", "16")), "out": Array("f4", ("h", "t", "16"), "zeros")}
    after = written(unravelled(kernel_of(text)))
    assert "grid(cdiv(16, 32), cdiv(h, 2), t)" in after
    if low == "i & 15":
        assert "d = column, head = line, token = rest" in after
    assert end_of(text, after, arrays, {"t": 5, "h": 15}, {"t": 2, "h": 1}) == "same"


@pytest.mark.parametrize("low", ["i & 31", "i & 7"])
def test_bits_that_are_no_digits(low: str) -> None:
    assert "in one way" in refused(unravelled(kernel_of(BITS % ("int", low))))
