"""Blocks of which threads at the rims do nothing, without these, and tests that all answer alike."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Refused
from optiml_magic.kernels.primitives.direct import places_in_full
from optiml_magic.kernels.primitives.foregone import foregone
from optiml_magic.kernels.primitives.forestalled import forestalled
from optiml_magic.kernels.primitives.slimmed import slimmed
from optiml_magic.kernels.primitives.unstaged import unstaged
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written
from .shapes import applied

TEXT = """\
#pragma optiml zero(out)
#pragma optiml launch f grid(cdiv(w, 12), cdiv(h, 6)) block(16, 8)
__global__ void f(const int* a, int* out, int w, int h) {
    BODY
}
"""
INNER = (
    "int x = blockIdx.x * 12 + threadIdx.x, y = blockIdx.y * 6 + threadIdx.y; "
    "if (threadIdx.x < 12 && threadIdx.y < 6) { if (x < w && y < h) out[y * w + x] = a[y * w + x]; }"
)


def text_of(body: str) -> str:
    return TEXT.replace("BODY", body)


HALO = """\
#define TILE 16
#define R 2
#pragma optiml zero(out)
#pragma optiml launch f grid(cdiv(w, TILE - 2 * R), cdiv(h, TILE - 2 * R)) block(TILE, TILE)
__global__ void f(const int* a, int* out, int w, int h) {
    __shared__ int tile[TILE][TILE];
    PLACES
    if (row >= 0 && row < h && col >= 0 && col < w) tile[ty][tx] = a[row * w + col];
    else tile[ty][tx] = 0;
    __syncthreads();
    int tileCol = tx - R, tileRow = ty - R;
    if (row >= 0 && row < h && col >= 0 && col < w)
        if (tileCol >= 0 && tileCol < TILE - 2 * R && tileRow >= 0 && tileRow < TILE - 2 * R) {
            int p = 0;
            for (int r = 0; r < 2 * R + 1; r++)
                for (int c = 0; c < 2 * R + 1; c++)
                    p += (r * 5 + c) * tile[tileRow + r][tileCol + c];
            out[row * w + col] = p;
        }
}
"""
AT = "int col = blockIdx.x * (TILE - 2 * R) + tx - R, row = blockIdx.y * (TILE - 2 * R) + ty - R;"


def ends(before: str, after: str) -> str:
    arrays = {"a": Array("i4", ("h", "w")), "out": Array("i4", ("h", "w"), "zeros")}
    return end_of(before, after, arrays, {"w": 50, "h": 13}, {"w": 5, "h": 6})


@pytest.mark.parametrize(
    "places",
    [
        f"int tx = threadIdx.x, ty = threadIdx.y; {AT}",
        f"const int tx = threadIdx.x; int ty = threadIdx.y; {AT}",
        f"int const ty = (int)threadIdx.y, tx = (int)threadIdx.x; {AT}",
        (
            "int tx = threadIdx.x, ty = threadIdx.y; "
            "int col = (int)blockIdx.x * 12 + tx - R, row = ty - R + (int)blockIdx.y * 12;"
        ),
        f"unsigned tx = threadIdx.x, ty = threadIdx.y; {AT}",
    ],
)
def test_locals_that_are_places_are_no_parts_of_an_index(places: str) -> None:
    before = HALO.replace("PLACES", places)
    after = written(slimmed(applied(unstaged(kernel_of(before)))))
    assert "block(12, 12)" in after
    assert "blockIdx.x * 12 + " in after
    assert " tx" not in after
    assert ends(before, after) == "same"


@pytest.mark.parametrize(
    "tx", ["short tx = threadIdx.x", "int tx = threadIdx.x; tx += w < 0", "float tx = threadIdx.x"]
)
def test_a_local_that_may_be_another_number_stays(tx: str) -> None:
    body = INNER.replace("threadIdx.x < 12", "tx < 12")
    found = places_in_full(kernel_of(text_of(f"{tx}; {body}")))
    assert isinstance(found, Refused)


@pytest.mark.parametrize(
    ("body", "block"),
    [
        (INNER, "block(12, 6)"),
        (INNER.replace("threadIdx.x < 12 &&", "x < w && !(threadIdx.x >= 12) &&"), "block(12, 6)"),
        (
            (
                "int tx = threadIdx.x - 2, ty = threadIdx.y - 1; "
                "int x = blockIdx.x * 12 + threadIdx.x - 2, y = blockIdx.y * 6 + threadIdx.y - 1; "
                "if (x >= 0 && x < w && y >= 0 && y < h) "
                "if (tx >= 0 && tx < 12 && ty >= 0 && ty < 6) out[y * w + x] = a[y * w + x] + blockDim.x;"
            ),
            "block(12, 6)",
        ),
        (
            (
                "int x = blockIdx.x * 12 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, s = 0; "
                "if (threadIdx.x >= 12) return; "
                "for (int j = 0; j < 3; ++j) "
                "s += (int)blockIdx.x * 12 + j + (int)threadIdx.x < w && y < h "
                "? a[y * w + (int)blockIdx.x * 12 + j + (int)threadIdx.x] : threadIdx.x < 20 ? 3 : 4; "
                "if (x < w && y < h) out[y * w + x] = s + (threadIdx.x > 12 || w > 20 ? 1 : 2);"
            ),
            "block(12, 8)",
        ),
        (
            (
                "int x = blockIdx.x * 12u + threadIdx.x, y = blockIdx.y * 6 + threadIdx.y; "
                "if (threadIdx.x - 2 < 12u && threadIdx.y < 6 && x - 2 < w && y < h) "
                "out[y * w + (x - 2)] = a[y * w + x - 2] / (int)threadIdx.x;"
            ),
            "block(12, 6)",
        ),
    ],
)
def test_the_others_are_launched_alone(body: str, block: str) -> None:
    before = text_of(body)
    after = written(slimmed(kernel_of(before)))
    assert block in after
    assert ends(before, after) == "same"


@pytest.mark.parametrize(
    "body",
    [
        INNER.replace("threadIdx.x < 12 && threadIdx.y < 6", "threadIdx.x < 16"),
        INNER.replace("threadIdx.x < 12 && threadIdx.y < 6", "threadIdx.x < 12 || threadIdx.y < 6"),
        INNER.replace("threadIdx.x < 12 && threadIdx.y < 6", "threadIdx.x < 10 && threadIdx.y < 5"),
        INNER + " if (threadIdx.x == 15 && threadIdx.y == 7 && h > 400) out[0] = 1;",
        INNER + " __syncthreads();",
        INNER + " __shared__ int s[16]; s[threadIdx.x] = a[0]; if (x < 0) out[0] = s[3];",
        INNER + " __syncwarp();",
        INNER + ' if (w < 0) printf("%d", x);',
        INNER + " int m = __shfl_xor_sync(~0u, x, 1); if (threadIdx.x < 0) out[m] = m;",
        INNER.replace("x < w &&", "threadIdx.x == 0 && threadIdx.y == 0 && x < w &&"),
        INNER.replace("out[y * w + x] =", "out[y * w + x + blockIdx.x + blockIdx.y] ="),
    ],
)
def test_refused(body: str) -> None:
    assert refused(slimmed(kernel_of(text_of(body))))


@pytest.mark.parametrize(
    ("test", "left"),
    [
        ("threadIdx.x < 16", "out[i] = 1;"),
        ("threadIdx.x - 1 >= 0", "out[i] = 1;"),
        ("(int)threadIdx.x >= 0 && i < w * h", "if (i < w * h) out[i] = 1;"),
        ("i < w * h && !(tx > 15)", "if (i < w * h) out[i] = 1;"),
        ("i >= w * h || tx <= 20", "out[i] = 1;"),
        ("tx < 0 || i < w * h", "if (i < w * h) out[i] = 1;"),
        ("!(tx < 0 || i >= w * h)", "if (!(i >= w * h)) out[i] = 1;"),
        ("tx / 16 == 0 && tx % 16 == tx && -tx <= 0", "out[i] = 1;"),
        ("blockDim.x == 5 || tx - 3 < 12", "if (blockDim.x == 5 || tx - 3 < 12)"),
        ("tx < 15", "if (tx < 15)"),
        ("(int)threadIdx.x - 1 >= 0", "if ((int)threadIdx.x - 1 >= 0)"),
        ("threadIdx.x < threadIdx.y + 99", "if (threadIdx.x < threadIdx.y + 99)"),
        ("threadIdx.x < w + 99", "if (threadIdx.x < w + 99)"),
        ("(short)threadIdx.x < 99", "if ((short)threadIdx.x < 99)"),
        ("tx < 99.5f", "if (tx < 99.5f)"),
        ("tx < a[0] || tx++ < 90", "if (tx < a[0] || tx++ < 90)"),
    ],
)
def test_a_test_that_all_threads_answer_alike(test: str, left: str) -> None:
    body = (
        "int i = (blockIdx.y * 8 + threadIdx.y) * w + blockIdx.x * 16 + threadIdx.x; "
        f"int tx = threadIdx.x; if (blockIdx.x * 16 + tx >= w || i / w >= h) return; "
        f"if ({test}) out[i] = 1; if (threadIdx.z == 0) out[i] += 2;"
    )
    before = text_of(body).replace("cdiv(w, 12), cdiv(h, 6)", "cdiv(w, 16), cdiv(h, 8)")
    after = written(foregone(kernel_of(before)))
    assert left in after
    assert ends(before, after) == "same"


@pytest.mark.parametrize(
    "value",
    [
        "(threadIdx.x < 20 ? 1 : 2.5f) / 2 * 8",
        "(tx < 99 ? -1 : 1u) / 2",
        "(tx % 16u == tx ? 1 : 2.5f) / 2 * 8",
        "(tx > 99 ? (tx > 99 ? 2.5f : 1) : 3) / 2 * 8",
        "((tx < 99 ? -1 : 1u) > 0) * 3",
        "(tx < 99 ? (short)-1 : 1u) / 2",
        "(h > 2 ? (tx % 16u == tx ? 1 : 2.5f) : 3) / 2 * 8",
    ],
)
def test_a_choice_keeps_the_type_of_both_its_ways(value: str) -> None:
    body = (
        "int tx = threadIdx.x, x = blockIdx.x * 16 + tx, y = blockIdx.y * 8 + threadIdx.y; "
        f"if (x >= w || y >= h) return; if (threadIdx.x < 20) out[y * w + x] = {value};"
    )
    before = text_of(body).replace("cdiv(w, 12), cdiv(h, 6)", "cdiv(w, 16), cdiv(h, 8)")
    after = written(foregone(kernel_of(before)))
    assert " ? " in after
    assert ends(before, after) == "same"


def test_types_of_one_name_in_branches_that_are_decided() -> None:
    cast = "if (threadIdx.x < 12) {{ using T = {}; x += (T)1.5f - (T)1; }} "
    before = text_of(
        "int x = blockIdx.x * 12 + threadIdx.x, y = blockIdx.y * 6 + threadIdx.y; "
        + cast.format("float") + cast.format("int")
        + "if (threadIdx.x < 12 && threadIdx.y < 6 && x < w && y < h) out[y * w + x] = 4;"
    )  # fmt: skip
    assert ends(before, written(slimmed(kernel_of(before)))) == "same"


LATE = (
    "int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y; int s = 0; "
    "for (int j = 0; j < 3; ++j) if (x + j < w && y < h) s += a[y * w + x + j]; "
    "if (x < w && y < h) { int t = s + 1; out[y * w + x] = t; }"
)


@pytest.mark.parametrize(
    "body",
    [
        LATE,
        LATE.replace("{ int t = s + 1; out[y * w + x] = t; }", "out[y * w + x] = s;"),
        LATE.replace("int s = 0;", "int s = 0; if (x == 3) return; const bool in = x < w && y < h;")
        .replace("if (x < w && y < h) {", "if (in) {"),
        LATE + " s = 4; for (int j = 0; j < 3; ++j) s += j;",
        LATE.replace("if (x < w", "if (x / 2 < 9 && x < w"),
        LATE.replace("int s = 0;", "int s = 0; if (h == 3) return;")
        .replace("if (x < w", "if (x / (h - 3) < 99 && x < w"),
    ],
)  # fmt: skip
def test_a_guard_stands_before_the_loops(body: str) -> None:
    before = text_of(body).replace("cdiv(w, 12), cdiv(h, 6)", "cdiv(w, 16), cdiv(h, 8)")
    after = written(forestalled(kernel_of(before)))
    assert after.index("if (!") < after.index("for (")
    assert "(h == 3) return;" not in after.partition("if (!")[2]
    assert ends(before, after) == "same"


@pytest.mark.parametrize(
    "body",
    [
        LATE + " else out[y * w + x] = 3;",
        LATE + " if (s > 90) out[0] = 1;",
        LATE.replace("if (x < w && y < h) {", "if (x < w && y < h && s > 0) {"),
        LATE.replace("if (x < w && y < h) {", "if (x < w && y < h && a[0] > 0) {"),
        LATE.replace("if (x < w && y < h) {", "x += 1; if (x < w && y < h) {"),
        LATE.replace("if (x < w && y < h) {", "if (x < w && atomicAdd(&out[0], 0) < 9) {"),
        LATE.replace("for (", "h += 1; for (").replace("s += a", "s += 0 * a"),
        LATE.replace("if (x < w && y < h) {", "__syncthreads(); if (x < w && y < h) {"),
        LATE.replace(
            "if (x < w && y < h) {", "s = __shfl_xor_sync(~0u, s, 1); if (x < w && y < h) {"
        ),
        LATE.replace("int s = 0;", 'int s = 0; if (x > 9000) printf("%d", x);'),
        LATE.replace("for (int j = 0; j < 3; ++j)", "int j = 0;"),
        LATE.replace("for (", "for (int i = 0; i < 3; ++i) { if (h == 3) return; } for (").replace(
            "if (x < w && y < h) {", "if (h == 4) return; if (x % (h - 3) == 0 && x < w && y < h) {"
        ),
        LATE.replace("int s = 0;", "int s = 0, *p = &x;").replace(
            "if (x < w &&", "*p = 2; if (x < w &&"
        ),
    ],
)
def test_other_guards_stay(body: str) -> None:
    assert refused(forestalled(kernel_of(text_of(body))))
