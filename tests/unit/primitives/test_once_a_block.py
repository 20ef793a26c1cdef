"""What threads of a block compute alike, once in shared memory."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.factored import factored
from optiml_magic.kernels.primitives.once_a_block import once_a_block

from .running import same
from .shapes import applied, kernel

TRANSFORM = """\
#pragma optiml launch k grid(w, h) block(8, 4)
__global__ void k(const float* a, const float* b, float* z, int w, int h) {
    int u = threadIdx.x, v = threadIdx.y;
    int bx = blockIdx.x * 8, by = blockIdx.y * 4;
    float s = 0.0f;
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 8; x++)
            s += a[(by + y) * (w * 8) + bx + x] * cosf(x * u * 0.125f) * cosf(y * v * 0.25f);
    z[(by + v) * (w * 8) + bx + u] = s;
}
"""
SUM = "s += a[(by + y) * (w * 8) + bx + x] * cosf(x * u * 0.125f) * cosf(y * v * 0.25f);"
BOUND = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* a, const float* b, float* z, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= w || j >= h) return;
    float s = 0.0f;
    for (int r = 0; r < 5; r++) s += a[j * w + i] * sinf(r * threadIdx.x * 0.125f);
    z[j * w + i] = s;
}
"""
WAY = """\
__device__ float long_way(float x) { while (x > 1.0f) x = sinf(x) * x; return x; }
"""
SHAPES = {"a": ("h * 4", "w * 8"), "b": ("h * 4", "w * 8"), "z": ("h * 4", "w * 8")}


def made(text: str) -> Kernel | Refused:
    return once_a_block(where_legal(factored, kernel(text), plain=True))


@pytest.mark.parametrize(
    ("old", "new", "arrays"),
    [
        ("", "", 3),
        (SUM, "s += a[(by + y) * (w * 8) + bx + x] * b[y * (w * 8) + v] * cosf(x * u * 0.125f);", 2),
        (SUM, "s += a[(by + y) * (w * 8) + bx + x] * (x + u) * (y + v);", 1),
        (SUM, "{ int r = by + y; s += a[r * (w * 8) + bx + x] * cosf(x * u * 0.5f) * (y - v); }", 2),
        (SUM, "s += a[by * (w * 8) + bx + u] * sinf(x * 0.125f) * (y + v);", 1),
        (SUM, "{ int t = x + 1; s += a[(by + v) * (w * 8) + bx + u] * sinf(t * 0.5f) / (x + 1.5f); }", 1),
        ("block(8, 4)", "block(8, 4, 2)", 3),
        ("float s = 0.0f;", "float s = 0.0f; if (w > 1000) return;", 3),
        ("for (int y", "for (unsigned char y", 3),
        ("for (int x", "for (unsigned x", 3),
        (SUM, "if (b[y] > 0.0f) s += a[(by + v) * (w * 8) + bx + x] * cosf(x * u * 0.125f);", 1),
        ("y < 4", "y < 3", 3),
        ("y < 4", "y < 7", 3),
    ],
)  # fmt: skip
def test_a_block_finds_them_before_the_loop(old: str, new: str, arrays: int) -> None:
    text = TRANSFORM.replace(old, new) if old else TRANSFORM
    if "y < 7" in text:
        text = text.replace("(by + y)", "(by + y % 4)")
    found = made(text)
    assert applied(found).program.text.count("__shared__") == arrays
    for w, h in (1, 1), (3, 2):
        if "4, 2)" not in new:
            same(text, found, SHAPES, {"w": w, "h": h}, rounds=True)


TABLE = "s += b[x] * cosf(x * u * 0.1f);"


@pytest.mark.parametrize(
    "body",
    [
        "{ { float f = x * 0.1f; s += b[x] * cosf(f * u); } { float f = x * 0.2f; s += cosf(f * u); } }",
        f"{{ {TABLE} {{ int u = v; {TABLE} }} }}",
        f"{{ {{ int u = v; {TABLE} }} {TABLE} }}",
        f"{TABLE} for (int x = 0; x < 11; x++) {TABLE}",
        f"{TABLE} for (int x = 3; x < 11; x += 2) {TABLE}",
        f"{TABLE} {{ int x = 10 + y; {TABLE} }}",
    ],
)
def test_the_same_words_that_mean_something_else_have_tables_of_their_own(body: str) -> None:
    text = TRANSFORM.replace("y++)", "y++) {").replace(f"    {SUM}", f"    {body} }}")
    found = made(text)
    assert applied(found)
    for w, h in (2, 1), (3, 2):
        same(text, found, SHAPES, {"w": w, "h": h}, rounds=True)


@pytest.mark.parametrize(
    ("head", "sums"),
    [
        ("for (int c = 0; c < 3; ++c)", 1),
        ("for (int c = blockIdx.x; c < w + 2; c += gridDim.x)", 1),
        ("for (int c = w; c > 0; --c) if (w > c)", 1),
        ("for (int c = 0; c < u; ++c)", 0),
        ("for (int c = 0; c < 3; ++c) if (c > u)", 0),
        ("for (int c = 0; a[c] < 1.0f && c < w; ++c)", 0),
    ],
)
def test_in_rounds_that_all_threads_make_it_is_found_anew(head: str, sums: int) -> None:
    start, end = TRANSFORM.index("    float s ="), TRANSFORM.index("}\n")
    body = TRANSFORM[start:end].replace("cosf(x * u * 0.125f)", "(x + u + c)")
    body = body.replace("z[", "z[0 * c + ").replace("cosf(y * v * 0.25f)", "(y + v)")
    text = f"{TRANSFORM[:start]}{head} {{\n{body}}}\n}}\n"
    found = made(text)
    if not sums:
        assert isinstance(found, Refused), found.program.text
        return
    assert applied(found).program.text.count("__syncthreads") == 2
    for w, h in (1, 1), (3, 2):
        same(text, found, SHAPES, {"w": w, "h": h}, rounds=True)


def test_blocks_that_a_bound_cuts_off_are_left_to_the_kernel() -> None:
    found = applied(made(BOUND))
    asked = [str(one.condition) for one in found.program.requires]
    assert asked == ["w % 8 == 0", "h % 4 == 0"]
    shapes = dict.fromkeys(("a", "b", "z"), ("h", "w"))
    same(BOUND, found, shapes, {"w": 24, "h": 12}, rounds=True)


@pytest.mark.parametrize("given", ["odd", "zeros"])
def test_extreme_values_are_summed_up_alike(given: str) -> None:
    text = TRANSFORM.replace("= s;", "= s == s ? s : 99.0f;")  # any NaN is one
    text = text.replace(SUM, "s += a[(by + y) * (w * 8) + bx + x] * (x + u + 1) * (y + v + 1);")
    same(text, made(text), SHAPES, {"w": 3, "h": 2}, rounds=True, given=given)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SUM, "s += a[(by + v) * (w * 8) + bx + x] * (x + u);"),
        (SUM, "s += a[(by + y) * (w * 8) + bx + x] * (u + v + x) * (y + 1);"),
        (SUM, "s += a[(by + y) * (w * 8) + bx + x] * cosf(x * u * v * 0.125f) * s;"),
        (SUM, "s += z[(by + y) * (w * 8) + bx + x] * (x + u) * (y + v);"),
        ("s += a", "if (y > v) continue; s += a"),
        ("float s = 0.0f;", "float s = 0.0f; if (u > 2) return;"),
        ("float s = 0.0f;", "float s = 0.0f; if (a[by + u] > 1.0f) return;"),
        ("float s = 0.0f;", "float s = 0.0f; u += s > 1.0f; v += s > 1.0f;"),
        ("y < 4", "y < v"),
        ("y < 4", "y < w"),
        ("y = 0; y < 4", "y = v; y < v + 4"),
        ("for (int y", "if (u > 1) for (int y"),
        ("grid(w, h) block(8, 4)", "grid(w, h) block(8, 4) shared(64)"),
    ],
)
def test_what_is_a_threads_own_stays(old: str, new: str) -> None:
    text = TRANSFORM.replace(old, new)
    if "y < w" in new or "= v;" in new or "< v" in new or "continue" in new:
        text = text.replace("* cosf(x * u * 0.125f) * cosf(y * v * 0.25f)", "* (x + u) * (y + v)")
    found = made(text)
    assert isinstance(found, Refused), found.program.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (i >= w || j >= h) return;", "if (i >= w || j >= h - 1) return;"),
        ("if (i >= w || j >= h) return;", "if (i >= w || j >= h || i < 2) return;"),
        ("if (i >= w || j >= h) return;", "if (i >= w || j >= h) { z[0] = 1.0f; return; }"),
        ("r * threadIdx.x * 0.125f", "r * i * 0.125f + threadIdx.y"),
        ("r * threadIdx.x * 0.125f", "a[r] + threadIdx.x"),
        ("r * threadIdx.x * 0.125f", "r / (threadIdx.x + w)"),
        ("r * threadIdx.x * 0.125f", "threadIdx.x * 0.125f"),
        ("r * threadIdx.x * 0.125f", "r * warpSize * 0.125f"),
        ("sinf(r * threadIdx.x", "long_way(r * threadIdx.x"),
        ("s += a[j * w + i] * sinf", "s += __shfl_xor_sync(~0u, a[j * w + i], 1) * sinf"),
    ],
)
def test_threads_that_part_before_share_nothing(old: str, new: str) -> None:
    text = BOUND.replace(old, new)
    if "long_way" in new:
        text = f"{WAY}{text}"
    found = made(text)
    assert isinstance(found, Refused), found.program.text
