"""Sums over two loops whose terms have factors that one of them leaves alone."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import where_legal
from optiml_magic.kernels.primitives.factored import factored
from optiml_magic.kernels.primitives.hoisted import hoisted
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import kernel_of, refused, unchanged, written

WINDOW = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 4)) block(16, 4)
__device__ float bump(float v) { if (v > 0.5f) return v; return 1.0f - v; }
__global__ void k(const float* a, const float* f, float* out, int w, int h, int r, float b) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f, all = 1.0f;
    for (int j = -r; j <= r; j++) {
        for (int i = -r; i <= r; i++) {
            int yy = min(max(y + j, 0), h - 1);
            int xx = min(max(x + i, 0), w - 1);
            BODY
        }
    }
    out[y * w + x] = sum / all;
}
"""
ARRAYS = {
    "a": Array("f4", ("h", "w")),
    "f": Array("f4", ("2 * r + 1",)),
    "out": Array("f4", ("h", "w")),
}
GAUSS = "float g = expf(-(i * i + j * j) / (2.0f * b * b)); sum += g * a[yy * w + xx]; all += g;"


def of(body: str) -> str:
    return WINDOW.replace("BODY", body)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (GAUSS, "sum += expf(-(j * j) / (2.0f * b * b)) * sum_part;"),
        (GAUSS.replace("i * i + j * j", "(i - j) * 2 + 3 * j"), "all += expf("),
        ("sum += f[j + r] * f[i + r] * a[yy * w + xx];", "sum += f[j + r] * sum_part;"),
        ("sum += a[yy * w + xx] * bump(x - i) * bump(y - j);", "sum += bump(y - j) * sum_part;"),
        ("float v = a[yy * w + xx]; sum += v * v * j;", "sum += j * sum_part;"),
        ("sum += a[yy * w + xx] * i / (j + 0.5f);", "sum += 1.0f / (j + 0.5f) * sum_part;"),
        ("sum += (j + 0.5f) * i / (a[yy * w + xx] + 3);", "sum_part += i / (a[yy * w + xx] + 3);"),
        ("sum += (j + 0.5f) / (a[yy * w + xx] + 3);", "sum_part += 1.0f / (a[yy * w + xx] + 3);"),
        ("sum += (r + 1 - abs(j)) * (r + 1 - abs(i)) * a[yy * w + xx];",
         "sum += (float)(r + 1 - abs(j)) * sum_part;"),
        ("sum += b * j;", "sum += b * j * sum_part;"),
        ("sum -= f[j + r] * a[yy * w + xx];", "sum -= f[j + r] * sum_part;"),
        ("if (i != x) sum += (y + 0.5f) * a[yy * w + xx];", "sum += (y + 0.5f) * sum_part;"),
        ("if (y + j >= 1 && x + i >= 1) sum += bump(j) * a[yy * w + xx];", "if (y + j >= 1)"),
        ("sum += j * a[min(y + j + r, h - 1) * w + xx];", "int place = min(y + j + r, h - 1);"),
    ],
)  # fmt: skip
def test_what_terms_have_in_common_multiplies_their_sum(body: str, left: str) -> None:
    text = of(body)
    made = written(factored(where_legal(hoisted, kernel_of(text))))
    assert left in made, made
    for size in ({"w": 33, "h": 9}, {"w": 1, "h": 1}, {"w": 5, "h": 17}):
        others = {"w": 17, "h": 6, "r": 1}
        assert unchanged(text, made, ARRAYS, size | {"r": 3}, others, rounds=True, b=2.5) == "same"


def test_a_sum_that_is_the_same_for_all_rows_is_found_once() -> None:
    made = written(factored(kernel_of(of(GAUSS))))
    first, rest = made.split("all_part = 0;")
    assert "for (int j" not in first
    assert rest.index("all_part += ") < rest.index("for (int j")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sum += a[yy * w + xx];", "no factor"),
        ("sum += expf(a[yy * w + xx] - b * j);", "no factor"),  # its parts may be out of range
        ("float g = expf((i * i + j * j) * f[0]); sum += g;", "no factor"),
        ("sum += expf(i * j) * a[yy * w + xx];", "no factor"),
        ("sum += j * i / (2 * r + 1);", "no factor"),  # of whole numbers
        ("sum += j * a[yy * w + xx]; if (i > 5) break;", "not counted"),
        ("sum += j * a[yy * w + xx]; sum *= 0.5f;", "more than to add up"),
        ("sum += j * a[yy * w + xx] * sum;", "meanwhile"),
        ("sum += j * a[yy * w + xx]; all += j * sum;", "meanwhile"),
        ("sum += j * a[yy * w + xx]; sum += j * b;", "meanwhile"),
        ("sum -= j * a[yy * w + xx]; sum += j * b;", "meanwhile"),
        ("if (i > x) sum += f[j + r] * a[yy * w + xx];", "no factor"),  # nobody may ask for it
        ("sum += j * *(f++);", "more than to add up"),
        ("out[y * w + x] = j; sum += j;", "more than to add up"),
    ],
)
def test_what_is_no_such_sum_stays(body: str, reason: str) -> None:
    assert reason in refused(factored(kernel_of(of(body))))


def test_an_inner_loop_that_may_have_no_round_asks_for_nothing() -> None:
    text = of("sum += f[j + r] * a[yy * w + xx];").replace("i = -r; i <= r", "i = 0; i < r - 2")
    assert "no factor" in refused(factored(kernel_of(text)))


WHOLE = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 4)) block(16, 4)
__device__ const int weight[3] = {1, 2, 1};
__global__ void k(const unsigned char* a, int* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int sum = 0, n = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) {
            int yy = min(max(y + j, 0), h - 1), xx = min(max(x + i, 0), w - 1);
            BODY
        }
    out[y * w + x] = sum + n * 1000;
}
"""
BYTES = {"a": Array("u1", ("h", "w")), "out": Array("i4", ("h", "w"))}


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("sum += weight[j + 1] * weight[i + 1] * a[yy * w + xx];", "sum += weight[j + 1] * sum_part;"),
        ("sum += a[yy * w + xx];", "sum += sum_part;"),
        ("sum -= a[yy * w + xx]; n += i * j;", "sum -= sum_part;"),
        ("if (a[yy * w + xx] > 100) { sum += a[yy * w + xx]; n++; }", "n_part += 1;"),
        ("int g = weight[j + 1] * weight[i + 1]; sum += g * (a[yy * w + xx] > 9); n += g;",
         "n += weight[j + 1] * n_part;"),
    ],
)  # fmt: skip
def test_plain_sums_of_whole_numbers_are_taken_where_they_are_asked_for(
    body: str, left: str
) -> None:
    text = WHOLE.replace("BODY", body)
    assert "not a float" in refused(factored(kernel_of(text)))
    made = written(factored(kernel_of(text), plain=True))
    assert left in made, made
    assert unchanged(text, made, BYTES, {"w": 33, "h": 9}, {"w": 5, "h": 6}) == "same"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("int sum = 0, n = 0;", "short sum = 0; int n = 0;"), "not a float"),
        (("BODY", "sum += 0.5f * a[yy * w + xx];"), "not a float"),  # rounded in each round
        (("BODY", "if (x > 3) return; n++;"), "not counted"),
    ],
)
def test_what_whole_numbers_do_not_add_up_stays(change: tuple[str, str], reason: str) -> None:
    text = WHOLE.replace(*change).replace("BODY", "sum += a[yy * w + xx];")
    assert reason in refused(factored(kernel_of(text), plain=True))
