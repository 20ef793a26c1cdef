"""Vectors on the sides of tiles that turn: where they are taken, and that nothing else changes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.kernels.primitives.transposed import Tile, turn
from optiml_magic.kernels.primitives.turned_sides import Sides
from optiml_magic.kernels.primitives.turns import Turn
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.source.program import parse_program
from tests.present import sampled
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .shapes import applied, kernel, refused
from .test_turn import FLAT, LINES, STEPS, VOLUME

_PLANE = """\
#include <cuda_fp16.h>
#pragma optiml launch k grid(cdiv(cols, 32), cdiv(rows, 8)) block(32, 8)
__global__ void k(%s, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || col >= cols) return;
    %s
}
"""
_ONE = "const float* a, float* out"
_TWO = "const float* a, const float* b, float* out"
IN, OUT = "a[row * cols + col]", "out[col * rows + row]"
SMALL = Tile(16, 32, 64, 1)


def plane(body: str, given: str = _ONE) -> str:
    return _PLANE % (given, body)


def widths(text: str) -> tuple[int, int]:
    """The elements of vectors that are loaded, and of those that are stored."""
    parts = Turn(kernel(text))
    parts.check()
    found = Sides(parts)
    return found.load.width, found.store.width


def turned(text: str, tile: Tile = SMALL) -> Kernel | Refused:
    return turn(kernel(text), tile)


COPY = plane(f"{OUT} = {IN};")
#: Bodies, what they are given, and how wide vectors of both sides are.
BODIES = {
    "copy": (f"{OUT} = {IN};", _ONE, (4, 4)),
    "bias along the stores": (f"{OUT} = {IN} * 2.0f + b[row];", _TWO, (4, 4)),
    "bias along the loads": (f"{OUT} = {IN} + b[col];", _TWO, (4, 4)),
    "another array as it is stored": (f"{OUT} = {IN} - b[col * rows + row];", _TWO, (4, 4)),
    "two arrays": (f"{OUT} = {IN} * b[row * cols + col];", _TWO, (4, 4)),
    "added to": (f"{OUT} += {IN};", _ONE, (4, 4)),
    "changed twice": (f"{OUT} = {IN}; {OUT} *= 2.0f; {OUT} += {OUT};", _ONE, (4, 4)),
    "behind a pointer": (f"float* p = &{OUT}; *p = {IN}; p[0] -= 1.0f;", _ONE, (4, 4)),
    "a reference": (f"float& r = {OUT}; r = {IN}; r = r * r;", _ONE, (4, 4)),
    "a step": (f"{OUT} = {IN}; ++{OUT};", _ONE, (4, 4)),
    "a choice": (f"{OUT} = {IN} > 0.0f ? {IN} : b[row];", _TWO, (4, 4)),
    "some of the rows": (f"if (row > 2) {OUT} = {IN};", _ONE, (4, 4)),
    "all but some rows": (f"if (row < rows - 3) {OUT} = {IN};", _ONE, (4, 4)),
    "some of the columns": (f"if (col >= 5 && col < cols - 3) {OUT} = {IN};", _ONE, (4, 4)),
    "all but one column": (f"if (col == 5) return; {OUT} = {IN};", _ONE, (1, 4)),
    "all but one row": (f"if (row == 5) return; {OUT} = {IN};", _ONE, (4, 1)),
    "every other row": (f"if (row % 2) {OUT} = {IN};", _ONE, (4, 1)),
    "what data say": (f"if ({IN} > 0.0f) {OUT} = {IN};", _ONE, (4, 1)),
    "what data say of both": (
        f"if ({IN} > 0.0f) {OUT} = {IN}; else {OUT} = -1.0f;", _ONE, (4, 1)),
    "left early": (f"float v = {IN}; if (v < 0.0f) return; {OUT} = v;", _ONE, (4, 1)),
    "loaded where it is not stored": (
        f"float v = {OUT}; if (row > 3) {OUT} = {IN} + v; b[col * rows + row] = v;",
        "const float* a, float* b, float* out", (4, 1)),
    "two places": (f"{OUT} = {IN}; out[rows * cols + col * rows + row] = 1.0f;", _ONE, (4, 1)),
    "in rounds": (f"float v = {IN}; for (int k = 0; k < 3; ++k) {OUT} += v;", _ONE, (4, 1)),
    "rows upside down": (f"out[col * rows + rows - 1 - row] = {IN};", _ONE, (4, 4)),
    "columns upside down": (f"{OUT} = a[row * cols + cols - 1 - col];", _ONE, (4, 4)),
    "both upside down": (
        "out[(cols - 1 - col) * rows + rows - 1 - row] = a[row * cols + cols - 1 - col];",
        _ONE, (4, 4)),
    "further on": (f"{OUT} = a[row * (cols + 4) + col + 4];", _ONE, (4, 4)),
    "two further on": (f"{OUT} = a[row * (cols + 2) + col + 2];", _ONE, (2, 4)),
    "one further on": (f"{OUT} = a[row * (cols + 1) + col + 1];", _ONE, (1, 4)),
    "as neighbours": (f"{OUT} = {IN} + a[row * cols + (col > 0 ? col - 1 : 0)];", _ONE, (4, 4)),
    "the one before": (f"if (col > 0) {OUT} = a[row * cols + col - 1];", _ONE, (1, 4)),
    "doubles": (f"{OUT} = {IN};", "const double* a, double* out", (1, 1)),
    "bytes": (f"{OUT} = {IN};", "const unsigned char* a, unsigned char* out", (16, 16)),
    "halves": (f"{OUT} = {IN};", "const __half* a, __half* out", (8, 8)),
    "to halves": (f"{OUT} = __float2half({IN});", "const float* a, __half* out", (4, 8)),
    "from halves": (f"{OUT} = __half2float({IN}) * 0.5f;", "const __half* a, float* out", (8, 4)),
    "to doubles": (f"{OUT} = {IN};", "const float* a, double* out", (4, 1)),
    "pairs": (f"{OUT} = {IN};", "const float2* a, float2* out", (1, 1)),
    "volatile": (f"{OUT} = {IN};", "const volatile float* a, volatile float* out", (1, 1)),
    "two stores": (f"{OUT} = {IN}; b[col * rows + row] = -{IN};",
                   "const float* a, float* b, float* out", (4, 4)),
    "counted": (f"{OUT} = {IN}; atomicAdd(&b[col], 1.0f);",
                "const float* a, float* b, float* out", (4, 4)),
    "counted where it is stored": (f"{OUT} = {IN}; atomicAdd(&{OUT}, 1.0f);", _ONE, (4, 1)),
    "names of ours": (
        f"float out_items = {IN}; int tile_item = row, b = col; {OUT} = out_items * tile_item + b;",
        _ONE, (4, 4)),
    "assigned within": (f"float v; {OUT} = v = {IN}; b[col * rows + row] = v;",
                        "const float* a, float* b, float* out", (4, 4)),
    "a shadow of a size": (
        f"float v = {IN}; {{ int rows = row; v += rows; }} {OUT} = v;", _ONE, (4, 4)),
    "a shadow that guards": (
        f"float v = {IN}; {{ int cols = row; if (col < cols) v = 1.0f; }} {OUT} = v;",
        _ONE, (4, 4)),
    "a shadow that keeps from it": (
        f"float v = {IN}; {{ int cols = 7; if (row < cols) {OUT} = v; }}", _ONE, (4, 4)),
    "a counter that moves": (
        f"int r = row; for (int k = 0; k < 2; ++k) ++r; out[col * rows + r - 2] = {IN};",
        _ONE, (4, 4)),
    "either of two": (
        f"if (row < cols) {OUT} = {IN}; else if (col > 2) {OUT} = 2.0f;", _ONE, (4, 1)),
    "a test that assigns": (
        f"int n = 0; if ((n = row) < rows) {OUT} = {IN} + n;", _ONE, (4, 4)),
    "a short circuit": (f"if (row > 1 && {IN} > 0.0f) {OUT} = {IN};", _ONE, (4, 1)),
    "one or the other": (f"if (row > 1 || col > 1) {OUT} = {IN};", _ONE, (1, 1)),
    "a switch": (
        f"switch (col & 1) {{ case 0: {OUT} = {IN}; break; default: break; }}", _ONE, (1, 4)),
    "a loop that may end": (
        f"float v = {IN}; for (int k = 0; k < 4; ++k) {{ if (v < 1) break; v /= 2; }} {OUT} = v;",
        _ONE, (4, 4)),
    "an array of its own": (
        f"float v[2]; v[row > 3] = {IN}; v[row <= 3] = b[row]; {OUT} = v[0] - v[1];",
        _TWO, (4, 4)),
    "one store in another": (f"b[col * rows + row] = {OUT} = {IN};",
                             "const float* a, float* b, float* out", (4, 4)),
    "stored by a function": (f"__stcs(&{OUT}, {IN});", _ONE, (4, 1)),
    "loaded by a function": (f"{OUT} = __ldg(&{IN});", _ONE, (4, 4)),
    "whole numbers": (f"{OUT} = {IN} * 3 + col;", "const int* a, int* out", (4, 4)),
    "shorts": (f"{OUT} = {IN} / 2;", "const short* a, unsigned short* out", (8, 8)),
    "nothing of bytes but signs": (f"{OUT} = {IN} > 0;", "const float* a, bool* out", (4, 16)),
    "as a value": (f"float v = ({OUT} = {IN}); if (v != v) {OUT} = 0.0f;", _ONE, (4, 1)),
}  # fmt: skip


_TYPES = {"float": "f4", "double": "f8", "unsigned char": "u1", "__half": "f2", "float2": "f4",
          "int": "i4", "short": "i2", "unsigned short": "u2", "bool": "?"}  # fmt: skip
SIZES = [(36, 72), (37, 45), (40, 67), (66, 36), (48, 96), (1, 5)]


def made_of(name: str, sizes: tuple[int, int], content: str = "numbers") -> Made:
    body, given, _ = BODIES[name]
    arrays = {}
    for one in given.split(","):
        kind, array = one.replace("const ", "").replace("volatile ", "").split("*")
        more = ("2",) if kind.strip() == "float2" else ()
        whole = content if _TYPES[kind.strip()][0] == "f" else "numbers"
        # Larger than any of the bodies goes.
        shape = ("rows * 2 + 2", "cols + 4", *more)
        arrays[array.strip()] = Array(_TYPES[kind.strip()], shape, whole)
    known = dict(zip(("rows", "cols"), sizes, strict=True))
    others = {n: max(1, s // 3) for n, s in known.items()}
    return Made(name, plane(body, given), arrays, known, others)


def unharmed(made: Made, after: str) -> str:
    found = Stand(made).applied(Offer("one", "", after, False), made.text)
    return found.end if found.sound else f"{found.end}: {found.detail}\n{after}"


@pytest.mark.parametrize("name", sampled(BODIES))
def test_how_wide_vectors_are(name: str) -> None:
    body, given, wanted = BODIES[name]
    assert widths(plane(body, given)) == wanted


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", sampled(BODIES))
def test_each_element_is_what_it_was(name: str, sizes: tuple[int, int]) -> None:
    after = applied(turned(plane(*BODIES[name][:2]))).program.text
    content = "odd" if sum(sizes) % 2 else "numbers"
    assert unharmed(made_of(name, sizes, content), after) == "same"


@pytest.mark.parametrize("name", ["copy", "added to", "bytes", "rows upside down", "to halves"])
def test_where_a_pointer_is_not_aligned_there_is_another_way(name: str) -> None:
    """No buffer of a check is: what asks for it is made to fail."""
    after = applied(turned(plane(*BODIES[name][:2]))).program.text
    for array in ("a", "out"):
        no = re.sub(rf"\(size_t\){array} % \d+ == 0", "false", after)
        assert no != after
        assert unharmed(made_of(name, (48, 96)), no) == "same"


@pytest.mark.parametrize(
    "tile", [Tile(64, 64, 256, 1), Tile(64, 16, 64, 0), Tile(16, 64, 32, 4), Tile(4, 256, 64, 1)]
)
@pytest.mark.parametrize("name", ["copy", "halves", "bytes"])
def test_tiles_may_be_of_any_shape(name: str, tile: Tile) -> None:
    after = applied(turned(plane(*BODIES[name][:2]), tile)).program.text
    assert unharmed(made_of(name, (112, 80)), after) == "same"


def test_a_block_may_have_fewer_threads() -> None:
    text = (
        COPY.replace("void k", "void __launch_bounds__(100) k")
        .replace("rows, 8", "rows, 2")
        .replace("32, 8", "32, 2")
    )
    found = applied(turned(text, Tile(64, 64, 256, 1)))
    assert found.program.values == {"TILE_ROWS": 32, "TILE_COLS": 64, "THREADS": 64, "PAD": 1}
    few = COPY.replace("void k", "void __launch_bounds__(16) k").replace("rows, 8", "rows, 2")
    few = few.replace("cols, 32", "cols, 8").replace("32, 8", "8, 2")
    assert refused(turned(few))[0] == "its blocks have too few threads for a tile"


@pytest.mark.parametrize("threads", [32, 40, 64, 1000])
@pytest.mark.parametrize("name", ["copy", "bytes", "doubles", "all but one column"])
def test_a_tile_is_cut_until_a_block_can_take_it(name: str, threads: int) -> None:
    text = plane(*BODIES[name][:2]).replace("void k", f"void __launch_bounds__({threads}) k")
    found = applied(turned(text.replace("8)", "1)"), Tile(4, 256, 512, 1))).program
    assert found.values["THREADS"] <= threads
    assert found.with_values(found.values).values == found.values


def test_an_array_that_goes_by_two_names_is_stored_one_by_one() -> None:
    made = made_of("another array as it is stored", (36, 72)).aliased("out", "b")
    stand = Stand(made)
    (one,) = kernels(parse_program(stand.text), stand.facts(stand.text))
    parts = Turn(one)
    parts.check()
    assert Sides(parts).store.width == 1
    after = applied(turn(one, SMALL)).program.text
    assert stand.applied(Offer("one", "", after, False), stand.text).end == "same"


@pytest.mark.parametrize(
    ("rows", "cols", "wanted"),
    [(64, 64, (4, 4)), (64, 63, (1, 4)), (63, 64, (4, 1)), (66, 62, (2, 2)), (63, 65, (1, 1))],
)
def test_measured_sizes_tell_how_wide_vectors_are(
    rows: int, cols: int, wanted: tuple[int, int]
) -> None:
    facts = LaunchFacts("k", 1, (1, 1, 1), (32, 8, 1), {}, {"rows": rows, "cols": cols})
    parts = Turn(replace(kernel(COPY), facts=facts))
    parts.check()
    sides = Sides(parts)
    assert (sides.load.width, sides.store.width) == wanted


def test_tests_that_hold_for_all_of_a_vector_are_not_asked_for_each() -> None:
    made = applied(turned(plane(f"if (row > 2 && col < cols) {OUT} = {IN};"))).program.text
    fast = made.rpartition("out_items[4];")[2].partition("} else {")[0]
    assert "row > 2" in made.rpartition("} else {")[2]
    assert "if" not in fast


def test_what_is_asked_of_sizes_is_asked_once() -> None:
    made = applied(turned(STEPS % ("int", "int"))).program.text
    assert "const bool aligned_loads = (size_t)a % 16 == 0 && e % 4 == 0;" in made
    assert "const bool aligned_stores = (size_t)out % 16 == 0 && c % 4 == 0;" in made


@pytest.mark.parametrize(("text", "wanted"), [(FLAT, (4, 4)), (LINES, (16, 16)), (VOLUME, (1, 1))])
def test_digits_of_an_index_have_vectors_as_well(text: str, wanted: tuple[int, int]) -> None:
    assert widths(text) == wanted
