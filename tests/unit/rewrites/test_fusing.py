"""Launches in a row as one: how many at once, what is said of it, and where nothing is offered."""

from __future__ import annotations

import pytest

from optiml_magic.proposers.rewrites import REWRITES
from tests.ideas import asked, made

HEAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
CHAIN = f"""\
#pragma optiml scratch s f4[n]
#pragma optiml scratch t f4[n]
#pragma optiml launch one grid(cdiv(n, 256)) block(256)
#pragma optiml launch two grid(cdiv(n, 256)) block(256)
#pragma optiml launch three grid(cdiv(n, 256)) block(256)
__global__ void one(const float* a, float* s, int n) {{ {HEAD} if (i < n) s[i] = a[i] + 1.0f; }}
__global__ void two(const float* s, float* t, int n) {{ {HEAD} if (i < n) t[i] = s[i] - 2.0f; }}
__global__ void three(const float* t, float* o, int n) {{ {HEAD} if (i < n) o[i] = t[i] * t[i]; }}
"""
ROWS = """\
#pragma optiml scratch t f4[h * w]
#pragma optiml launch squares grid(cdiv(h * w, 256)) block(256)
#pragma optiml launch sums grid(cdiv(h, 256)) block(256)
#pragma optiml launch scaled grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)
__global__ void squares(const float* a, float* t, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < h * w) t[i] = a[i] * a[i];
}
__global__ void sums(const float* t, float* s, int h, int w) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float sum = 0.0f;
    for (int j = 0; j < w; j++) sum += t[r * w + j];
    s[r] = sum;
}
__global__ void scaled(const float* a, const float* s, float* o, int h, int w) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < h && c < w) o[r * w + c] = a[r * w + c] / s[r];
}
"""
RULES = {rule.name: rule for rule in REWRITES}


def test_all_of_a_chain_at_once(compiles) -> None:
    ideas, refused = asked(RULES["fuse_elementwise"], CHAIN)
    assert [i.title.split(" into")[0] for i in ideas] == ["fuse one, two and three", "fuse two and three"]  # fmt: skip
    assert ideas[0].prior > ideas[1].prior
    assert not any(i.arithmetic for i in ideas)
    assert not refused
    found = made(ideas[:1])[0].text
    assert "scratch" not in found
    compiles(found)


def test_products_that_a_sum_follows_may_be_rounded_together() -> None:
    text = CHAIN.replace("a[i] + 1.0f", "a[i] * 3.0f")
    ideas, _ = asked(RULES["fuse_elementwise"], text)
    assert [bool(i.arithmetic) for i in ideas] == [True, False]


def test_a_product_and_what_finishes_it_are_one_kernel_of_tiles(compiles) -> None:
    text = """\
#pragma optiml launch product grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
#pragma optiml launch relu grid(cdiv(m * n, 256)) block(256)
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    float s = 0.0f;
    for (int q = 0; q < k; q++) s += a[i * k + q] * b[q * n + j];
    c[i * n + j] = s;
}
__global__ void relu(float* c, const float* bias, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m * n) c[i] = fmaxf(c[i] + bias[i % n], 0.0f);
}
"""
    ideas, _ = asked(RULES["fuse_elementwise"], text)
    fuse, *tiled = [i for i in ideas if i.title.startswith("fuse product and relu")]
    assert all("; tiles in shared memory and registers" in i.title for i in tiled)
    assert max(i.prior for i in tiled) > fuse.prior
    found = made(tiled[:1])[0].text
    assert found.count("#pragma optiml launch") == 1
    assert "_tile[" in found
    assert "fmaxf(" in found
    compiles(found)


def test_a_reduction_and_what_is_around_it_is_one_kernel_of_lanes(compiles) -> None:
    ideas, refused = asked(RULES["fuse_map_reduce"], ROWS)
    assert not refused
    assert [i.title.split(";")[0] for i in ideas[:2]] == ["fuse squares, sums and scaled by rows"] * 2  # fmt: skip
    text = made(ideas[:1])[0].text
    assert text.count("#pragma optiml launch") == 1
    assert "LANES" in text
    compiles(text)


BLURS = """\
#pragma optiml scratch t f4[h * w]
#pragma optiml launch across grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
#pragma optiml launch down grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void across(const float* a, float* t, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int i = -2; i <= 2; i++) if (x + i >= 0 && x + i < w) s += a[y * w + x + i];
    t[y * w + x] = s;
}
__global__ void down(const float* t, float* o, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int i = -2; i <= 2; i++) if (y + i >= 0 && y + i < h) s += t[(y + i) * w + x];
    o[y * w + x] = s;
}
"""


def test_two_passes_over_an_image_are_one_of_several_pixels(compiles) -> None:
    ideas, _ = asked(RULES["fuse_map_reduce"], BLURS)
    assert ideas
    for found in made(ideas):
        assert "scratch" not in found.text
        assert found.text.count("launch ") == 1
        assert "ITEMS_" in found.text
        compiles(found.text)


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("s[i] - 2.0f", "s[n - 1 - i] - 2.0f", "another thread", 7),
        ("if (i < n) s[i] = a[i]", "if (i < n) s[i] = threadIdx.x", "more than its index", 6),
    ],
)
def test_refused_with_its_line(old: str, new: str, reason: str, line: int) -> None:
    _, refused = asked(RULES["fuse_elementwise"], CHAIN.replace(old, new))
    assert reason in refused[0].reason
    assert refused[0].line == line


def test_an_index_that_is_divided_is_offered_as_two_axes(compiles) -> None:
    text = f"""\
#pragma optiml launch k grid(cdiv(h * w, 256)) block(256)
__global__ void k(const float* a, const float* b, float* o, int h, int w) {{
    {HEAD}
    if (i < h * w) o[i] = a[i % w * h + i / w];
}}
"""
    ideas, _ = asked(RULES["index_strength"], text)
    texts = [p.text for p in made(ideas)]
    assert [("BLOCK_X" in t, "BLOCK_Y" in t) for t in texts] == [(True, True)] * 3
    assert all("<= 65535" in t for t in texts)
    compiles(texts[0])
    assert not asked(RULES["index_strength"], text.replace("a[i % w * h + i / w]", "a[i]"))[0]
