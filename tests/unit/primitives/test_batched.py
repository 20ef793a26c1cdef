"""What several rounds of a loop load, before the first of them computes."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.batched import batched
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 2)) block(64)
__global__ void k(const float* a, const float* b, float* c, int n, int m) {
    int i = blockIdx.x * 2 + threadIdx.x / 32;
    if (i >= n) return;
    float s = 0.0f;
    for (int k = threadIdx.x % 32; k < m; k += 32) s += a[i * m + k] * b[k];
    for (int apart = 16; apart > 0; apart /= 2) s += __shfl_xor_sync(~0u, s, apart);
    if (threadIdx.x % 32 == 0) c[i] = s;
}
"""
SUM = "s += a[i * m + k] * b[k];"
HEAD = "int k = threadIdx.x % 32; k < m; k += 32"


def test_what_rounds_load_stands_before_all_of_them() -> None:
    after = written(batched(kernel_of(TEXT), 4))
    for now in (
        "#pragma optiml tune ROUNDS in {1, 2, 4, 8} = 4 if (ROUNDS * 2 + 40) * 64 <= 65536\n",
        "    for (int first = threadIdx.x % 32; first < m; first += ROUNDS * 32) {\n",
        "        float a_batch[ROUNDS];\n        float b_batch[ROUNDS];\n",
        "            const int k = first + round * 32;\n            if (k < m) {\n",
        "                a_batch[round] = a[i * m + k];\n                b_batch[round] = b[k];\n",
        "                s += a_batch[round] * b_batch[round];\n",
    ):
        assert now in after


@pytest.mark.parametrize(
    ("head", "body"),
    sampled(
        [
            (HEAD, SUM),
            (HEAD, "{ float v = a[i * m + k]; s = fmaxf(s, v); s -= v * b[k] * (k % 3); }"),
            (HEAD, "{ float v = a[i * m + k]; if (k % 2 == 0) s += v; else s -= v; }"),
            (
                HEAD,
                "{ float v = a[i * m + k]; \n#pragma unroll\nfor (int t = 0; t < 3; ++t) s += v * t; }",
            ),
            (HEAD, "{ float first = a[i * m + k], round = b[k]; s += first * round; }"),
            (HEAD, "{ s += a[i * m + k]; s *= b[k]; if (s > 9.0f) s = 0.0f; }"),
            (HEAD.replace("< m", "<= m - 1"), SUM),
            (HEAD.replace("int k", "unsigned k"), SUM),
            (HEAD.replace("int k", "long long k"), SUM),
            (HEAD.replace("k += 32", "k += blockDim.x / 2"), SUM),
            ("int k = 0; k < m; ++k", SUM),
            ("int k = 0; k != m; k++", SUM),
            (HEAD.replace("k < m", "m > k"), SUM),
        ],
        6,
    ),
)
def test_it_does_the_same(head: str, body: str) -> None:
    text = TEXT.replace(SUM, body).replace(HEAD, head)
    arrays = {"a": Array("f4", ("n * m",)), "b": Array("f4", ("m",)), "c": Array("f4", ("n",))}
    for count in (1, 4, 8):
        after = written(batched(kernel_of(text), count))
        sizes = {"n": 5, "m": 301}, {"n": 3, "m": 32}
        assert end_of(text, after, arrays, *sizes, rounds=True) == "same"


VECTORS = """\
#pragma optiml launch k grid(n) block(32)
__global__ void k(const int4* a, const short2* b, int* c, int n, int m) {
    int s = 0;
    for (int k = threadIdx.x; k < m; k += 32) {
        const int4 v = a[blockIdx.x * m + k];
        s += v.x + v.y * b[k].x + v.z + v.w * b[k].y;
    }
    c[blockIdx.x * 32 + threadIdx.x] = s;
}
"""


def test_places_that_are_loaded_come_first() -> None:
    text = TEXT.replace("const float* b", "const int* b").replace(SUM, "s += a[b[k]] * b[k];")
    after = written(batched(kernel_of(text), 4))
    assert after.index("b_batch[round] = b[k];") < after.index("a_batch[round] = a[b_batch[round]]")
    arrays = {"a": Array("f4", ("n * m",)), "b": Array("i4", ("m",), "below m"),
              "c": Array("f4", ("n",))}  # fmt: skip
    assert end_of(text, after, arrays, {"n": 5, "m": 301}, {"n": 3, "m": 7}, rounds=True) == "same"


def test_vectors_are_loaded_whole() -> None:
    after = written(batched(kernel_of(VECTORS), 4))
    assert "int4 a_batch[ROUNDS];" in after
    arrays = {"a": Array("i4", ("n * m", "4")), "b": Array("i2", ("m", "2")),
              "c": Array("i4", ("n", "32"))}  # fmt: skip
    assert end_of(VECTORS, after, arrays, {"n": 5, "m": 141}, {"n": 3, "m": 1}) == "same"


@pytest.mark.parametrize(
    ("head", "body", "why"),
    [
        (HEAD, "{ s += a[i * m + k]; i = i + 0; }", "its rounds load from where others say"),
        (HEAD, "{ int p = i * m + k; s += a[p]; p = 0; }", "its rounds load from where others say"),
        (HEAD, "if (b[k] > 0.0f) s += a[i * m + k];", "its rounds load from where others say"),
        (HEAD, "{ int p = (int)b[k]; s += a[p]; }", "its rounds load from where others say"),
        (HEAD, "{ s += a[i * m + k]; if (s > 2.0f) break; }", ""),
        (HEAD, "{ if (k == 3) continue; s += a[i * m + k]; }", "its rounds go on in several ways"),
        (HEAD, "{ s += a[i * m + k]; c[i] = s; }", "its rounds do more than to load"),
        (HEAD, "{ s += a[i * m + k]; atomicAdd(c, s); }", "there is an atomic operation"),
        (HEAD, "{ s += a[i * m + k]; s = __shfl_sync(~0u, s, 0); }", "a function that it calls"),
        (HEAD, '{ s += a[i * m + k]; printf("%f", s); }', "a function that it calls"),
        (HEAD, "{ s += a[i * m + k]; k += 1; }", ""),
        (HEAD, "{ static int t; s += a[i * m + k]; }", ""),
        (HEAD.replace("int k", "short k"), SUM, "its counter may not hold a longer step"),
        (HEAD.replace("32", "gridDim.x"), SUM, "several of its steps may be more"),
        (HEAD.replace("k += 32", "k += n"), SUM, "several of its steps may be more"),
        ("int k = m - 1; k >= 0; --k", SUM, "the loop does not count up in its head"),
        (HEAD, "s += 1.0f;", "no loop of few rounds loads from memory"),
        (HEAD, "s += ((volatile float*)a)[i * m + k];", "its memory may change at any time"),
    ],
)  # fmt: skip
def test_refused(head: str, body: str, why: str) -> None:
    text = TEXT.replace(SUM, body).replace(HEAD, head)
    assert why in refused(batched(kernel_of(text), 4))


def test_places_that_rounds_put_into_an_array_are_not_known_before_them() -> None:
    own = "{ at[k & 1] = (at[~k & 1] + k) % m; s += a[at[k & 1]]; }"
    text = TEXT.replace(SUM, own).replace("float s = 0.0f;", "float s = 0.0f; int at[2] = {};")
    assert "its rounds load from where others say" in refused(batched(kernel_of(text), 4))


def test_what_other_loops_touch_again_is_kept_and_not_loaded_in_batches() -> None:
    loop = f"for ({HEAD}) {SUM}"
    twice = TEXT.replace(loop, f"{loop}\n    {loop}")
    assert "few rounds" in refused(batched(kernel_of(twice), 4))


def test_a_batch_is_not_taken_in_batches_again() -> None:
    made = batched(kernel_of(TEXT), 4)
    assert "few rounds" in refused(batched(kernel_of(written(made)), 4))
