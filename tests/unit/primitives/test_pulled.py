"""What many threads add to an element, by one thread of its own."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.pulled import pulled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(m, 16), cdiv(n, 8)) block(16, 8)
__global__ void k(const float* a, const float* b, float* out, float* down, int* num, int n, int m, int w) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    BODY
}
"""
FLAT = """\
#pragma optiml launch k grid(cdiv(n * m, 128)) block(128)
__global__ void k(const float* a, const float* b, float* out, float* down, int* num, int n, int m, int w) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n * m) return;
    int r = t / m, c = t % m;
    BODY
}
"""
INSIDE = "if (r < n && c < m) "
ROUNDS = "for (int i = 0; i < w; i++) "
PRODUCT = "atomicAdd(&out[c * w + i], a[r * m + c] * b[r * w + i]);"
ARRAYS = {
    "a": Array("f4", ("n", "m"), "any"),
    "b": Array("f4", ("n", "w"), "any"),
    "out": Array("f4", ("6 * m * w",), "any"),
    "down": Array("f4", ("n * w",), "any"),
    "num": Array("i4", ("m + w",), "any"),
}
LARGE, SMALL = {"n": 19, "m": 21, "w": 9}, {"n": 1, "m": 1, "w": 1}


@pytest.mark.parametrize(
    "body",
    [
        INSIDE + ROUNDS + PRODUCT,
        "if (r >= n || c >= m) return; float v = a[r * m + c]; " + ROUNDS
        + "{ float g = v * b[r * w + i]; atomicAdd(out + c * w + i, g); }",
        INSIDE + ROUNDS + "atomicAdd(&out[i], a[r * m + c] * b[r * w + i]);",
        INSIDE + ROUNDS + "atomicMax(&num[i], (int)(5 * b[r * w + i]) - c);",
        INSIDE + ROUNDS + "{ float v = b[r * w + i]; atomicAdd(&out[2 * (c * w + i)], v); "
        "atomicAdd(&out[2 * (c * w + i) + 1], v * v); }",
        INSIDE + ROUNDS + "for (int j = 0; j < 3; ++j) "
        "atomicAdd(&out[(c * w + i) * 3 + j], b[r * w + i] * j);",
        INSIDE + ROUNDS + "{ atomicAdd(&out[c * w + i], b[r * w + i]); atomicSub(&num[i], r); }"
        .replace("num[i], r", "num[c + i], r"),
        INSIDE + ROUNDS + "atomicAdd(&num[((int)b[c] & 3) + i], (int)b[r]);",
        INSIDE + ROUNDS + "for (int j = 0; j <= i; j++) "
        "atomicAdd(&out[i * w + j], b[r * w + i] * b[r * w + j]);",
        INSIDE + "{ float g = a[r * m + c]; atomicAdd(&num[c], (int)g); " + ROUNDS
        + "{ atomicAdd(&out[c * w + i], g * b[r * w + i]); "
        "atomicAdd(&down[r * w + i], g * b[c + i]); } }",
        INSIDE + ROUNDS + "{ atomicAdd(&out[c * w + i], b[r * w + i]); "
        "atomicAdd(&out[r * w + i], 2.0f); }",
        INSIDE + ROUNDS + "atomicAdd(&out[i + i % 4], b[r * w + i]);",  # elements that meet
        INSIDE + ROUNDS + "atomicAdd(&out[i + (i > 3 ? 2 : 5)], b[r * w + i]);",
        INSIDE + ROUNDS + "atomicAdd(&out[i + ((int)b[i] & 3)], b[r * w + i]);",
    ],
)  # fmt: skip
def test_an_element_has_a_thread_that_adds_up(body: str) -> None:
    before = TEXT.replace("BODY", body)
    after = written(pulled(kernel_of(before)))
    assert end_of(before, after, ARRAYS, LARGE, SMALL, rounds=True) == "same"


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (INSIDE + ROUNDS + "{ " + PRODUCT + " num[i] = 1; }", "num[i] = 1;"),
        (INSIDE + "{ " + ROUNDS + PRODUCT + " atomicAdd(num, 1); }", "atomicAdd(num, 1);"),
        (INSIDE + ROUNDS + "{ " + PRODUCT + " if (b[r] > 2) atomicAdd(&num[i], 1); }", "[i], 1)"),
        ("if (r >= n || c >= m) return; float z = 0; " + ROUNDS + "z += b[r * w + i]; "
         "float g = rintf(9 * a[r * m + c] / (1.0f + z * z)); atomicAdd(&down[r], g); "
         + ROUNDS + "atomicAdd(&out[c * w + i], g * b[r * w + i]);", "g_found[(size_t)r"),
        (INSIDE + "{ float p[3]; float z = 0; for (int k = 0; k < 3; ++k) { p[k] = b[r * w] * k; "
         "z += p[k]; } for (int k = 0; k < 3; ++k) { float g = p[k] + z; int h = (int)g; " + ROUNDS
         + "{ atomicAdd(&out[k * w + i], g * b[r * w + i]); atomicMax(&num[i], h + k); } } }",
         "g_found[((size_t)r * m + c) * 3 + k] = g;"),
        (INSIDE + "{ float g = rintf(9 * erff(powf(a[r * m + c], 3.0f))); num[0] = n; "
         "for (int k = 0; k < 2; k++) { " + ROUNDS + "atomicAdd(&out[c * w + i], g + k); } }",
         "g_found["),
    ],
)  # fmt: skip
def test_what_else_is_done_or_takes_long_has_a_launch_before(body: str, left: str) -> None:
    before = TEXT.replace("BODY", body)
    made = pulled(kernel_of(before))
    after = written(made)
    assert "k_items" in after
    assert left in after[: after.index("void k(")]
    assert end_of(before, after, ARRAYS, LARGE, SMALL, rounds=True) == "same"


def test_an_element_of_one_thread_needs_no_atomic_operation() -> None:
    made = pulled(kernel_of(TEXT.replace("BODY", INSIDE + ROUNDS + PRODUCT)))
    assert "atomicAdd" not in written(made)
    assert "out[c * w + i] += out_sum;" in written(made)
    shared = INSIDE + ROUNDS + PRODUCT.replace("c * w + i]", "c + i]")
    assert "atomicAdd(&out[c + i]" in written(pulled(kernel_of(TEXT.replace("BODY", shared))))


def test_the_digits_of_one_axis() -> None:
    before = FLAT.replace("BODY", ROUNDS + PRODUCT)
    after = written(pulled(kernel_of(before)))
    assert "atomicAdd" not in after
    assert end_of(before, after, ARRAYS, LARGE, SMALL, rounds=True) == "same"


def test_whole_numbers_are_the_same_in_any_order() -> None:
    counted = INSIDE + ROUNDS + "atomicAdd(&num[i], r);"
    assert not getattr(pulled(kernel_of(TEXT.replace("BODY", counted))), "arithmetic", None)
    made = pulled(kernel_of(TEXT.replace("BODY", INSIDE + ROUNDS + PRODUCT)))
    assert getattr(made, "arithmetic", ()) == ("the order of additions",)


SPACE = """\
#pragma optiml launch k grid(cdiv(n * p * p, 128)) block(128)
__global__ void k(const float* x, const float* g, float* dw, int n, int p, int m, int s) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n * p * p) return;
    int c = t % p, r = t / p % p, b = t / (p * p);
    float v = g[t];
    for (int i = 0; i < m; i++)
        for (int y = 0; y < s; y++)
            for (int z = 0; z < s; z++)
                atomicAdd(&dw[((b * m + i) * s + y) * s + z], v * x[(i * 2 * p + r + y) * 2 * p + c + z]);
}
"""


def test_elements_along_four_axes() -> None:
    after = written(pulled(kernel_of(SPACE)))
    assert "atomicAdd" not in after
    arrays = {
        "x": Array("f4", ("m", "2 * p", "2 * p"), "any"),
        "g": Array("f4", ("n", "p", "p"), "any"),
        "dw": Array("f4", ("n", "m", "s", "s"), "any"),
    }
    sizes = {"n": 5, "p": 7, "m": 3, "s": 4}
    few = dict.fromkeys(sizes, 1)
    assert end_of(SPACE, after, arrays, sizes, few, rounds=True) == "same"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (INSIDE + "atomicAdd(&out[c], a[r * m + c]);", "no rounds of a loop"),
        (INSIDE + ROUNDS + "atomicAdd(&out[c], a[r * m + i]);", "no rounds of a loop"),
        (INSIDE + ROUNDS + "atomicAdd(&out[(r * m + c) * w + i], 1.0f);", "elements of its own"),
        (INSIDE + ROUNDS + "if (b[i] > 0) " + PRODUCT, "a test says"),
        (INSIDE.replace(")", " && a[r] > 0)") + ROUNDS + PRODUCT, "a test says"),
        (INSIDE + ROUNDS.replace("i < w", "i < c") + PRODUCT, ""),
        (INSIDE + ROUNDS + "for (int j = 0; j <= i; j++) atomicAdd(&out[j], b[r * w + i]);",
         "another number of rounds"),
        (INSIDE + ROUNDS.replace("i = 0", "i = r") + PRODUCT, ""),
        (INSIDE + ROUNDS.replace("i++", "i += 2") + PRODUCT, ""),
        (INSIDE + ROUNDS + "{ if (b[i] > 3) break; " + PRODUCT + " }", ""),
        (INSIDE + ROUNDS + "atomicAdd(&out[c * w + i], out[r]);", "in another way"),
        (INSIDE + ROUNDS + "num[c] = atomicAdd(&num[i], 1);", "in another way"),
        (INSIDE + ROUNDS + "atomicAdd(&out[c * w + i], a[r] * threadIdx.x);", "more than an index"),
        (INSIDE + "{ float g = a[r]; g += 1; " + ROUNDS + "atomicAdd(&out[c * w + i], g); }",
         "`g` is not one plain number"),
        ("if (c < m) " + ROUNDS + "atomicAdd(&out[c * w + i], a[c]);", "how many items"),
        ("float g = r < n && c < m ? a[r * m + c] : 0; if (c < m) " + ROUNDS
         + "atomicAdd(&out[c * w + i], g + 1);", ""),
    ],
)  # fmt: skip
def test_refused(body: str, reason: str) -> None:
    assert reason in refused(pulled(kernel_of(TEXT.replace("BODY", body))))
