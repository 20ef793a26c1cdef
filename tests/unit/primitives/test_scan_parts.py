"""Running sums and extremes of few threads, a part of the rounds to each block."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import where_legal
from optiml_magic.kernels.primitives.carried import carried
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import is_simple
from optiml_magic.kernels.primitives.scan_parts import scan_in_parts
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

COLUMNS = """\
#pragma optiml launch k grid(cdiv(w, 64)) block(64)
__global__ void k(const int* c, int* out, int* last, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= w) return;
    BEFORE
    for (int r = FIRST; r < h; r++) {
        ROUND
    }
    BEHIND
}
"""
ONE = """\
#pragma optiml launch k grid(1) block(1)
__global__ void k(const int* c, int* out, int* last, int h, int w) {
    BEFORE
    for (int r = FIRST; r < h; r++) {
        ROUND
    }
    BEHIND
}
"""
ARRAYS = {
    "c": Array("i4", ("h", "w"), "positive"), "out": Array("i4", ("h", "w"), "zeros"),
    "last": Array("i4", ("w",), "zeros"),
}  # fmt: skip
SUM = ("int s = 0;", "0", "s += c[r * w + x]; out[r * w + x] = s;", "")


def text_of(parts: tuple[str, str, str, str], text: str = COLUMNS) -> str:
    for name, words in zip(("BEFORE", "FIRST", "ROUND", "BEHIND"), parts, strict=True):
        text = text.replace(name, words)
    return text


def in_parts(text: str, parts: int = 4):
    plain = as_counted(where_legal(carried, kernel_of(text)), 0, is_simple)
    return scan_in_parts(plain, 0, parts, (2, 4, 8))


@pytest.mark.parametrize(
    "parts",
    [
        SUM,
        ("int s = 3;", "0", "out[r * w + x] = s; s += c[r * w + x];", ""),  # of those before
        (
            "int s = c[x]; out[x] = s;",
            "1",
            "int v = c[r * w + x]; if (v > s) s = v; out[r * w + x] = s;",
            "",
        ),
        ("int s = 100;", "0", "s = min(s, c[r * w + x]); out[r * w + x] = s;", "last[x] = s;"),
        ("out[x] = c[x];", "1", "out[r * w + x] = out[(r - 1) * w + x] + c[r * w + x];", ""),
        (
            "int s = 0, t = 5;",
            "0",
            "s += c[r * w + x]; t ^= c[r * w + x]; out[r * w + x] = s - t;",
            "last[x] = s + t;",
        ),
        (
            "int s = 0;",
            "0",
            "if (c[r * w + x] & 1) s += 2; out[r * w + x] = s;",
            "{ int v = s; last[x] = v; }",
        ),
        ("int s = 0;", "0", "int t = s + c[r * w + x]; out[r * w + x] = t; s = t;", ""),
        (
            "if (w > 3) {\n int s = 0;",
            "0",
            "s += c[r * w + x]; out[r * w + x] = s;",
            "last[x] = s; }",
        ),
        (
            "int s = 0;",
            "0",
            "for (int j = 0; j < 3; j++) s += c[r * w + x] * j; out[r * w + x] = s;",
            "",
        ),
        ("int s = 0;", "0", "s += c[r * w + x]; atomicAdd(&out[x], s);", ""),
    ],
)
@pytest.mark.parametrize("count", [2, 8])
def test_each_part_goes_on_from_those_before(parts: tuple[str, str, str, str], count: int) -> None:
    before = text_of(parts)
    after = written(in_parts(before, count))
    assert "grid(cdiv(w, 64), PARTS)" in after
    for large in ({"h": 37, "w": 70}, {"h": 3, "w": 5}):
        assert end_of(before, after, ARRAYS, large, {"h": 1, "w": 1}) == "same"


@pytest.mark.parametrize(
    "parts",
    [
        ("int s = 0;", "0", "s += c[r]; out[r] = s;", "last[0] = s;"),
        ("out[0] = c[0];", "1", "out[r] = out[r - 1] + c[r];", ""),
    ],
)
def test_one_thread_becomes_a_block_for_each_part(parts: tuple[str, str, str, str]) -> None:
    before = text_of(parts, ONE)
    after = written(in_parts(before))
    assert "grid(PARTS) block(1)" in after
    assert end_of(before, after, ARRAYS, {"h": 37, "w": 3}, {"h": 1, "w": 1}) == "same"


def test_rows_are_changed_in_their_place() -> None:
    before = text_of(
        ("int s = 0;", "0", "s += out[r * w + x] + c[r * w + x]; out[r * w + x] = s;", "")
    )
    after = written(in_parts(before))
    assert end_of(before, after, ARRAYS, {"h": 37, "w": 70}, {"h": 1, "w": 1}) == "same"


@pytest.mark.parametrize(
    ("begin", "rounds"),
    [
        ("", "out[r * w + x] += out[(r - 1) * w + x];"),
        ("int s = out[x];", "s += out[r * w + x]; out[r * w + x] = s;"),
    ],
)
def test_a_row_goes_on_from_an_element_that_no_round_stores(begin: str, rounds: str) -> None:
    before = text_of((begin, "1", rounds, ""))
    made = as_counted(
        where_legal(carried, where_legal(in_register, kernel_of(before))), 0, is_simple
    )
    after = written(scan_in_parts(made, 0, 4, (2, 4, 8)))
    arrays = ARRAYS | {"out": Array("i4", ("h", "w"), "positive")}
    assert end_of(before, after, arrays, {"h": 37, "w": 70}, {"h": 1, "w": 1}) == "same"


@pytest.mark.parametrize(
    ("begin", "first"),
    [("int s = out[x]; out[x] = 7;", "1"), ("int s = out[x];", "0"), ("int s = out[w + x];", "1")],
)
def test_an_element_that_is_stored_as_well_begins_no_row(begin: str, first: str) -> None:
    text = text_of((begin, first, "s += c[r * w + x]; out[r * w + x] = s;", ""))
    assert refused(in_parts(text)).startswith("it asks for what the kernel writes")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (("int s = 0;", "0", "s = s * 3 + c[r * w + x]; out[r * w + x] = s;", ""), "went before"),
        (("int s = 0;", "0", "s += c[r * w + x];", "last[x] = s;"), "nothing goes from round"),
        (
            ("int s = 0, t = 0;", "0", "s += c[r * w + x]; t += s; out[r * w + x] = t;", ""),
            "went before",
        ),
        (
            (
                "int s = 0, t = 0;",
                "0",
                "s += c[r * w + x]; out[r * w + x] = s; t = max(t, 3);",
                "last[x] = t;",
            ),
            "beside a scan",
        ),
        (("int s = 0;", "0", "s += c[r * w + x]; out[x] = s;", ""), "store to one element"),
        (("int s = 0;", "0", "s += c[r * w + x]; out[r * w + x] = s; if (s > 9) break;", ""), ""),
        (
            ("int s = 0;", "0", "s += c[r * w + x]; out[r * w + x] = s; last[x] = r;", ""),
            "one element",
        ),
        (("int s = last[x]; last[x] = 1;", "0", SUM[2], ""), "what the kernel writes"),
        (("int s = 0; atomicAdd(&last[x], 2);", "0", SUM[2], ""), "more than to store"),
        (
            (
                "int s = 0, v = 0;",
                "0",
                "v = c[r * w + x]; s += v; out[r * w + x] = s;",
                "last[x] = v;",
            ),
            "went before",
        ),
        (("int s = 0;", "0", SUM[2], "last[x] = out[x];"), "what the kernel writes"),
        (("for (int q = 0; q < 2; q++) { int s = 0;", "0", SUM[2], "}"), ""),
        (("int s = blockIdx.y;", "0", SUM[2], ""), "where it stands along y"),
    ],
)
def test_other_loops_stay(parts: tuple[str, str, str, str], reason: str) -> None:
    assert reason in refused(in_parts(text_of(parts)))
