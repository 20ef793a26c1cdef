"""Items of a thread that lie a block's width apart, as rounds in steps of the block."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.striped import striped

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#define ITEMS 4
#define WIDE 64
#pragma optiml launch k grid(cdiv(n, 256)) block(64)
__global__ void k(const float* a, float* out, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    const unsigned int u = threadIdx.x;
    float sum = 0.0f;
    %s
    s[t] = sum;
    __syncthreads();
    for (int o = 32; o > 0; o /= 2) {
        if (t < o) s[t] = fmaxf(s[t], s[t + o]);
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""
SHAPES = {"a": ("n",), "out": ("(n + 255) / 256",)}
USE = "if (i < n) sum = fmaxf(sum, a[i]);"


@pytest.mark.parametrize(
    ("body", "now"),
    [
        (f"for (int j = 0; j < 4; ++j) {{ int i = blockIdx.x * 256 + j * 64 + t; {USE} }}",
         "blockIdx.x * 256 + item"),
        (f"for (int j = 0; j < ITEMS; j++) {{ int i = blockIdx.x * 256 + t + j * WIDE; {USE} }}",
         "blockIdx.x * 256 + item"),
        (f"for (int j = 0; j < 4; ++j) {{ int i = blockIdx.x * 256 + j * 64 + threadIdx.x; {USE} }}",
         "(unsigned int)item"),
        (f"for (int j = 0; j < 4; ++j) {{ int i = u + blockIdx.x * 256 + 64 * j; {USE} }}",
         "blockIdx.x * 256 + ((unsigned int)item)"),
        (f"for (int j = 0; j < 4; ++j) {{ int i = j * 64 + t + (int)blockIdx.x * 256; {USE} }}",
         "item + (int)blockIdx.x * 256"),
        (f"for (int j = 0; j < 4; ++j) {{ int i = (int)blockIdx.x * 256 + (t + j * (int)64); {USE} }}", ""),
        (f"for (int j = 0; j < 4; ++j) {{ int i = blockIdx.x * 256 + j * blockDim.x + t; {USE} }}",
         "item < 256; item += 64"),
        (f"\n#pragma unroll\nfor (int j = 0; j < 4; ++j) {{ int i = blockIdx.x * 256 + j * 64 + t; {USE} }}",
         "item < 256"),
        (f"int item = 3; for (int j = 0; j < 4; ++j) {{ int i = blockIdx.x * 256 + j * 64 + t; {USE} }} sum += item;",
         "item_2 < 256"),
        ("for (int j = 0; j < 4; ++j) if ((int)blockIdx.x * 256 + j * 64 + t < n) sum = fmaxf(sum, a[(int)blockIdx.x * 256 + j * 64 + t]);",
         "a[(int)blockIdx.x * 256 + item]"),
        (f"for (int j = 0; j < 4; ++j) {{ int i = blockIdx.x * 256 + j * 64 + t; if (i >= n) continue; {USE} }}",
         "continue"),
        (f"for (int j = 0; j < 4; ++j) {{ int i = blockIdx.x * 256 + j * 64 + t; for (int q = 0; q < 2; ++q) {USE} }}",
         "item"),
        (f"size_t w = blockIdx.x * 256; for (int j = 0; j < 4; ++j) {{ size_t i = w + j * 64 + u; {USE} }}",
         "w + ((unsigned int)item)"),
        ("for (int j = 0; j < 4; ++j) { const float* p = a + j * 64 + t; int i = blockIdx.x * 256; if (i + j * 64 + t < n) sum = fmaxf(sum, p[i]); }",
         "a + item"),
        (f"for (int j = 0; j < n; j += 64) {{ int i = j + t; {USE} }}", "item < (n + 63) / 64 * 64; item += 64"),
        (f"for (int j = 0; j < n - 3; j += blockDim.x) {{ int i = t + j + 1; {USE} }}",
         "item < (n - 3 + 63) / 64 * 64"),
        (f"for (int j = 0; j < (n + 63) / 64; ++j) {{ int i = j * 64 + t; {USE} }}",
         "item <= ((n + 63) / 64 - 1) * 64 + 63"),
        (f"size_t m = n; for (size_t j = 0; j < (m + 63) / 64; ++j) {{ size_t i = j * 64 + threadIdx.x; {USE} }}",
         "size_t i = item;"),
        (f"size_t m = n; for (size_t j = 0; j < m; j += 64) {{ size_t i = j + threadIdx.x; {USE} }}",
         "size_t item = threadIdx.x; item < (m + 63) / 64 * 64"),
        ("for (int j = 0; j < n / 64 * 64; j += WIDE) sum = fmaxf(sum, a[j + t]);", "a[item]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [1, 63, 256, 1001])
def test_items_of_a_thread(body: str, now: str, n: int) -> None:
    text = TEXT % body
    made = striped(kernel(text))
    if not now:  # a sum with a cast of the width is none of a product with it
        assert refused(made)
        return
    assert now in applied(made).program.text
    assert "#pragma unroll" not in applied(made).program.text
    same(text, made, SHAPES, {"n": n})


@pytest.mark.parametrize(
    "body",
    [
        "for (int j = 0; j < 4; ++j) { int i = blockIdx.x * 256 + j * 32 + t; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < 4; ++j) { int i = blockIdx.x * 256 + j * 64; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < 4; ++j) { int i = blockIdx.x * 256 + j * 64 - t; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < 4; ++j) { int i = blockIdx.x * 256 + j * 64 + 2 * t; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < 4; ++j) { int i = blockIdx.x * 256 + j * 64 + t + t; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < 4; ++j) { int i = blockIdx.x * 256 + j * 64 + t; if (i < n) sum += a[i] * j; }",
        "for (int j = 1; j < 4; ++j) { int i = blockIdx.x * 256 + j * 64 + t; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < 4; j += 2) { int i = blockIdx.x * 256 + j * 64 + t; if (i < n) sum += a[i]; }",
        "for (unsigned int j = 0; j < n / 64u; ++j) { int i = j * 64 + t; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < n; j += 32) { int i = j + t; if (i < n) sum += a[i]; }",
        "for (int j = 0; j <= n; j += 64) { int i = j + t; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < n; j += 64) { int i = j + t; if (i < n) sum += a[i] * j; }",
        "for (int j = 0; j < n; j += 64) { int i = j + 2 * t; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < n + 0LL; j += 64) { int i = j + t; if (i < n) sum += a[i]; }",
        "for (int j = t; j < n; j += 64) { int i = j + t; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < 4; ++j) { int i = blockIdx.x * 256 + j * 64 + t; if (i < n) sum += a[i]; if (sum > 9) break; }",
        "for (int j = 0; j < 4; ++j) { int i = blockIdx.x * 256 + j * 64 + t; if (i < n) sum += a[i]; j += 0; }",
        "int m = t; m += 1; for (int j = 0; j < 4; ++j) { int i = blockIdx.x * 256 + j * 64 + m; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < 1; ++j) { int i = blockIdx.x * 256 + j * 64 + t; if (i < n) sum += a[i]; }",
        "long long w = threadIdx.x; for (int j = 0; j < 4; ++j) { long long i = blockIdx.x * 256 + j * 64 + w; if (i < n) sum += a[i]; }",
        "for (int j = 0; j < 4; ++j) { int i = (blockIdx.x * 4 + j) * 64 + t; if (i < n) sum += a[i]; }",
        # Sums of 32 bits that wrap around before they are one of 64, or a float.
        "long long w = 5; for (int j = 0; j < 4; ++j) { long long i = w + (-20 + j * 64) + u; if (i >= 0 && i < n) sum += a[i]; }",
        "long long w = 5; for (int j = 0; j < 4; ++j) { long long i = w + j * 64 + (u - 20 + n); if (i >= 0 && i < n) sum += a[i]; }",
        "double w = 5; for (int j = 0; j < 4; ++j) { int i = w + (n - 20 + j * 64) + u; if (i >= 0 && i < n) sum += a[i]; }",
        "for (int j = 0; j < 4; ++j) { float w = 0.5f + t + j * 64; if (w < n) sum += w; }",
    ],
)  # fmt: skip
def test_what_is_left_alone(body: str) -> None:
    """Other widths and numbers of a thread, rounds that ask for more, loops that are left."""
    assert refused(striped(kernel(TEXT % body)))


def test_blocks_of_two_axes_or_of_a_tuned_extent_are_left_alone() -> None:
    text = TEXT % f"for (int j = 0; j < 4; ++j) {{ int i = blockIdx.x * 256 + j * 64 + t; {USE} }}"
    assert refused(striped(kernel(text.replace("block(64)", "block(64, 2)"))))
    tuned = text.replace("block(64)", "block(B)").replace(
        "#define ITEMS", "#pragma optiml tune B in {32, 64} = 64\n#define ITEMS"
    )
    assert refused(striped(kernel(tuned)))


@pytest.mark.parametrize("n", [1, 300, 1001])
def test_what_a_block_finds_of_its_items_is_one_loop(n: int) -> None:
    body = f"for (int j = 0; j < 4; ++j) {{ int i = blockIdx.x * 256 + j * 64 + t; {USE} }}"
    made = raised(kernel(TEXT % body))
    assert "< 256; ++" in applied(made).program.text.replace("thread += 1", "++thread")
    same(TEXT % body, made, SHAPES, {"n": n})
