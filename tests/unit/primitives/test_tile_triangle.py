"""Tiles of a triangle, numbered so that no block comes for one without an output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.blocked import Blocking, block_outputs
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.operands import Contraction
from optiml_magic.kernels.primitives.tile_layout import Tile
from optiml_magic.kernels.primitives.tile_triangle import working
from optiml_magic.model.facts import LaunchFacts
from tests.present import sampled

from .running import same
from .shapes import applied, kernel

TILE = Tile(16, 32, 8, 4, 4, 1)
VALUES = {"BM": 16, "BN": 32, "BK": 8, "TM": 4, "TN": 4, "BLOCKS": 1}
PLANES = """\
#pragma optiml launch one grid(cdiv(m, 16), cdiv(m, 16)) block(16, 16)
__global__ void one(const float* a, float* out, int m, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= m) return;
    %s
}
"""
SUM = "float s = 0.0f; for (int k = 0; k < d; k++) s += a[i * d + k] * a[j * d + k];"
STORED = "out[i * m + j] = s;"
WITHIN = "if (%s) { " + SUM + STORED + " }"
NUMBERED: dict[str, Callable[[int, int], bool]] = {
    PLANES % ("if (j > i) return; " + SUM + STORED): lambda i, j: j <= i,
    PLANES % ("if (j < i) return; " + SUM + STORED + " out[j * m + i] = s;"): lambda i, j: j >= i,
    PLANES % (WITHIN % "j < i"): lambda i, j: j < i,
    PLANES % (WITHIN % "j >= i + 20"): lambda i, j: j >= i + 20,
    PLANES % (WITHIN % "j <= i && j > i - 40"): lambda i, j: i - 40 < j <= i,
}
LYING: tuple[dict[str, int], ...] = ({}, {"BM": 32}, {"BM": 64, "TM": 8}, {"BN": 64, "BK": 16})


@pytest.mark.parametrize(("text", "m", "lying"), sampled(
    [(text, m, lying) for text in NUMBERED for m in (1, 37, 64, 200) for lying in LYING], 12,
))  # fmt: skip
def test_tiles_beside_a_triangle_are_not_launched(text: str, m: int, lying: dict[str, int]) -> None:
    made = applied(block_outputs(kernel(text), 0, TILE))
    assert "grid(cdiv(m, max(BM, BN)) * (cdiv(m, max(BM, BN)) + 1) / 2" in made.program.text
    same(text, made, {"a": ("m", "d"), "out": ("m", "m")}, {"m": m, "d": 9}, VALUES | lying)


@pytest.mark.parametrize(
    "text",
    [
        PLANES % (WITHIN % "j <= i" + "else { out[i * m + j] = 0.0f; }"),
        PLANES % (WITHIN % "j <= i" + " if (j == i + 9) out[i * m + j] = 2.0f;"),
        PLANES % (WITHIN % "j <= i + 1"),
        PLANES % (WITHIN % "i + j < m"),
        PLANES % (WITHIN % "2 * j <= i"),
        PLANES % (WITHIN % "j <= i + d"),
        (PLANES % (WITHIN % "j <= i")).replace("j >= m", "j >= d").replace(
            "grid(cdiv(m", "grid(cdiv(d"),
    ],
)  # fmt: skip
def test_tiles_that_store_are_launched(text: str) -> None:
    made = block_outputs(kernel(text), 0, TILE)
    if isinstance(made, Kernel):
        assert "BN), cdiv(m, BM))" in made.program.text


@pytest.mark.parametrize(("text", "parts"), sampled(
    [(text, parts) for text in NUMBERED for parts in (1, 3, 7)], 5,
))  # fmt: skip
def test_blocks_share_the_rounds_of_a_triangle(text: str, parts: int) -> None:
    whole = chunk(kernel(text), 0, 2, (1, 2, 3, 7))
    assert isinstance(whole, Kernel)
    made = applied(block_outputs(front(whole), 0, TILE))
    assert "/ 2 * (max(BM, BN) / min(BM, BN)), 1, PARTS)" in made.program.text
    for m, d in ((37, 11), (64, 2)):
        same(text, made, {"a": ("m", "d"), "out": ("m", "m")}, {"m": m, "d": d},
             VALUES | {"PARTS": parts}, rounds=True)  # fmt: skip


BLOCK_ROWS = """\
#pragma optiml launch one grid(cdiv(m, 64), m) block(64, 1)
__global__ void one(const float* a, float* out, int m, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j <= i) { %s }
}
"""


@pytest.mark.parametrize("rows", ["m", "m + 1"])
def test_rows_that_are_blocks_share_their_rounds_as_well(rows: str) -> None:
    text = (BLOCK_ROWS % (SUM + STORED)).replace("64), m)", f"64), {rows})")
    text = text.replace(
        "j <= i)", "j <= i && j < m && i < m)" if rows != "m" else "j <= i && j < m)"
    )
    whole = chunk(kernel(text), 0, 2, (1, 2, 3))
    assert isinstance(whole, Kernel)
    made = applied(block_outputs(front(whole), 0, TILE))
    same(text, made, {"a": ("m", "d"), "out": ("m", "m")}, {"m": 37, "d": 11},
         VALUES | {"PARTS": 3}, rounds=True)  # fmt: skip


@pytest.mark.parametrize("tile", [TILE, Tile(64, 16, 8, 4, 2), Tile(32, 32)])
@pytest.mark.parametrize("text", NUMBERED)
def test_tiles_with_outputs_are_counted(text: str, tile: Tile) -> None:
    m, found = 150, kernel(text)
    facts = LaunchFacts("one", 1, (10, 10, 1), (16, 16, 1), {}, {"m": m, "d": 9})
    known = replace(found, facts=facts)
    product = Blocking(Contraction(known, loops_in(known.function.body)[0]))
    tiles = {
        (i // tile.rows, j // tile.columns)
        for i in range(m) for j in range(m) if NUMBERED[text](i, j)
    }  # fmt: skip
    counted = working(product.parts, product.turns.around, tile)
    assert counted == len(tiles) or "i - 40" in text
    assert counted is not None
    assert counted >= len(tiles)
