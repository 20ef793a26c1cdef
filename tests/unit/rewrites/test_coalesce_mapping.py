"""Axes swapped where that brings lanes together, the launch along with the kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.kernels.primitives.coalescing import apart
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.model.finding import Action, Finding
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

SCALE = """
#pragma optiml launch scale grid(cdiv(h, 16), cdiv(w, 16)) block(16, 16)
__global__ void scale(const float* a, float* o, int h, int w) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;  // .x and .y in words stay
    int x = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < h && x < w) o[y * w + x] = 2.0f * a[y * w + x];
}"""

MATMUL = """
#pragma optiml launch g grid((m + 7) / 8, (n + 31) / 32) block(8, 32)
__global__ void g(const float *p, const float *q, float *r, int m, int n, int k)
{
    size_t i = (size_t)blockDim.x * blockIdx.x + threadIdx.x;
    size_t j = (size_t)blockDim.y * blockIdx.y + threadIdx.y;
    if (i >= m) return;
    if (j >= n) return;
    float s = 0.f;
    for (int t = 0; t < k; t++) s += p[i * k + t] * q[t * (size_t)n + j];
    r[i * n + j] = s;
}"""


def test_the_swap(propose):
    wide, plain = propose("coalesce_mapping", SCALE)
    assert "grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)" in wide.text
    assert "grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)" in plain.text
    assert wide.prior > plain.prior > 0.5
    assert (
        "int y = blockIdx.y * blockDim.y + threadIdx.y;  // .x and .y in words stay" in plain.text
    )
    arrays = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h", "w"), "zeros")}
    for found in (wide, plain):
        assert end_of(SCALE, found.text, arrays, {"h": 21, "w": 50}, {"h": 40, "w": 7}) == "same"


def test_matmul(propose):
    found = propose("coalesce_mapping", MATMUL)
    (one,) = found
    assert "grid((n + 31) / 32, (m + 7) / 8) block(32, 8)" in one.text
    fast, slow = parse_program(one.text).launches
    assert (fast.kernel, slow.kernel, slow.otherwise) == ("g_fast", "g", True)
    assert fast.condition is not None
    assert [fast.condition.evaluate({"m": 65535 * 8 + n}) for n in (0, 1)] == [1, 0]
    shapes = {"p": ("m", "k"), "q": ("k", "n"), "r": ("m", "n")}
    arrays = {n: Array("f4", of, "zeros" if n == "r" else "numbers") for n, of in shapes.items()}
    sizes, others = {"m": 19, "n": 40, "k": 13}, {"m": 9, "n": 3, "k": 5}
    assert end_of(MATMUL, one.text, arrays, sizes, others) == "same"


def test_a_literal_block_is_cut_as_well(propose, compiles):
    text = SCALE.replace("blockDim.x", "16").replace("blockDim.y", "16")
    wide, plain = propose("coalesce_mapping", text)
    assert "block(32, 8)" in wide.text
    assert "blockIdx.x * blockDim.x + threadIdx.x" in wide.text
    assert "block(16, 16)" in plain.text
    assert "blockIdx.x * 16 + threadIdx.x" in plain.text
    compiles(wide.text)


def test_beside_a_shared_tile_threads_are_renamed_alone(propose, compiles):
    tile = (
        "__shared__ float s[16][16]; s[threadIdx.x][threadIdx.y] = 0; __syncthreads();\n    if (y"
    )
    (found,) = propose("coalesce_mapping", SCALE.replace("if (y", tile))
    assert "s[threadIdx.y][threadIdx.x]" in found.text
    assert "block(16, 16)" in found.text
    compiles(found.text)


def test_threads_that_lie_across_their_blocks_are_turned_alone(propose, compiles):
    text = """
#pragma optiml launch k grid(cdiv(w, 32), cdiv(h, 32)) block(32, 32)
__global__ void k(const float* a, float* o, int w, int h) {
    int row = blockIdx.y * 32 + threadIdx.x, column = blockIdx.x * 32 + threadIdx.y;
    if (row < h && column < w) o[row * w + column] = a[row * w + column] * 2.0f;
}"""
    (found,) = {p.text for p in propose("coalesce_mapping", text)}
    assert "row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x" in found
    assert "grid(cdiv(w, 32), cdiv(h, 32))" in found
    compiles(found)


def test_a_thread_a_row_beside_blocks_of_one(propose, compiles):
    text = SCALE.replace("cdiv(w, 16)", "w").replace("block(16, 16)", "block(256)")
    text = text.replace("cdiv(h, 16)", "cdiv(h, 256)")
    (found,) = propose("coalesce_mapping", text.replace("blockDim.y + threadIdx.y", "1"))
    assert found.title == "swap threadIdx.x and threadIdx.y, in blocks of 32 x 8"
    assert "grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)" in found.text
    compiles(found.text)


def test_an_index_that_is_taken_apart(propose):
    text = """
#pragma optiml launch k grid(cdiv(rows * cols, 256)) block(256)
__global__ void k(const float* a, float* o, int rows, int cols) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= rows * cols) return;
    int col = t / rows, row = t % rows;
    o[row * cols + col] = 2.0f * a[row * cols + col];
}"""
    (found,) = propose("coalesce_mapping", text)
    assert "int col = t % cols, row = t / cols;" in found.text
    assert found.prior == 0.8
    assert propose("coalesce_mapping", text.replace("row * cols + col", "col * rows + row")) == []


def test_a_finding_lifts_the_prior(propose):
    finding = Finding("t", "warning", "", (), (Action("", "coalesce_mapping"),), (1, 2))
    assert propose("coalesce_mapping", SCALE, [finding])[0].prior > 0.85


def test_a_transpose_is_a_coin_toss(propose):
    text = SCALE.replace("o[y * w + x]", "o[x * h + y]")
    assert all(p.prior <= 0.1 for p in propose("coalesce_mapping", text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "int y = blockIdx.x * blockDim.x + threadIdx.x;",
            "int y = blockIdx.x;",
        ),  # no pattern left
        ("if (y", "if (__any_sync(~0u, y > 2)) return;\n    if (y"),
        ("if (y", "__syncwarp();\n    if (y"),
        ("y * w + x", "x * h + y"),  # coalesced as it is
        ("block(16, 16)", "block(16, 1)"),
        ("block(16, 16)", "block(256)"),
    ],
)
def test_refused(old, new, propose):
    assert propose("coalesce_mapping", SCALE.replace(old, new)) == []


def test_items_of_a_thread_that_come_as_one_vector_are_neighbours(propose):
    text = """
#pragma optiml tune ITEMS in {4, 8} = 4
#pragma optiml launch k grid(cdiv(w, 32 * ITEMS), cdiv(h, 8)) block(32, 8)
__global__ void k(const float* a, float* o, int w, int h) {
    int x = (blockIdx.x * 32 + threadIdx.x) * ITEMS, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= w || y >= h) return;
    for (int i = 0; i < ITEMS; i += 4)
        *(float4*)&o[y * w + x + i] = *(const float4*)&a[y * w + x + i];
}"""
    assert propose("coalesce_mapping", text) == []


@pytest.mark.parametrize(
    ("place", "sectors"),
    [("x / 2", 0), ("x % 32 / 4", 0), ("x / 2 * 16", 16), ("x % 8 * 64 + x / 8", 8)],
)
def test_quotients_of_an_index_may_be_neighbours(place: str, sectors: int) -> None:
    text = f"""\
#pragma optiml launch k grid(4, 4) block(32, 8)
__global__ void k(const float* a, float* out, int w) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    out[y * w + x] = a[{place}];
}}
"""
    (kernel,) = kernels(parse_program(text), None)
    facts = LaunchFacts("k", 1, (4, 4, 1), (32, 8, 1), {}, {"w": 128})
    assert apart(replace(kernel, facts=facts), "threadIdx.x") == sectors
