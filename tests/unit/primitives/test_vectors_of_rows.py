"""Vectors of rows that begin anywhere, go down, or differ in their types, and what is left out."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.vectors import upward, vectorise
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, written

WALK = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, float* path, unsigned char* b, float* out, int w, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float s = 0, t = 0;
    %s
    out[r] = s + t;
}
"""
UP = "for (int i = 0; i < w; ++i) { %s }"
DOWN = "for (int i = w - 1; i >= 0; --i) { %s }"
STEP = "s = 0.5f * s + a[r * w + i] - t; t = s;"
OTHERS = {"h": 2, "w": 7}


def made(
    body: str, w: int, more: str = "0", strips: tuple[int, ...] = ()
) -> tuple[str, str, dict[str, Array], dict[str, int]]:
    rest = "w + 1" if more == "1" else "w"
    arrays = {
        "a": Array("f4", ("h", "w")), "path": Array("f4", ("h", rest), "zeros"),
        "b": Array("u1", ("h", rest), "zeros"), "out": Array("f4", ("h",), "zeros"),
    }  # fmt: skip
    text, sizes = WALK % body, {"h": 33, "w": w}
    facts = Stand(Made("one", text, arrays, sizes, OTHERS)).facts(text)
    kernel = upward(kernel_of(text, facts), 0)
    return text, written(vectorise(kernel, 0, strips=strips)), arrays, sizes


@pytest.mark.parametrize("w", [1, 3, 47, 62, 64, 65])
@pytest.mark.parametrize("head", [UP, DOWN])
@pytest.mark.parametrize("strips", [(), (16, 8)])
def test_rows_of_any_length_have_vectors_from_where_these_are_whole(
    head: str, w: int, strips: tuple[int, ...]
) -> None:
    text, found, arrays, sizes = made(head % STEP, w, strips=strips)
    assert "float4*>(&a[" in found
    assert ("up_" in found) == bool(w % 4)
    assert end_of(text, found, arrays, sizes, OTHERS) == "same"


def test_of_rows_that_begin_in_different_places_those_that_are_stored_have_vectors() -> None:
    step = "s = fabsf(s - a[r * w + i]); path[r * (w + 1) + i + 1] = s;"
    text = UP % step
    source, found, arrays, sizes = made(text, 64, more="1", strips=(16,))
    assert "float4*>(&path[" in found
    assert "float4*>(&a[" not in found
    assert end_of(source, found, arrays, sizes, OTHERS) == "same"


@pytest.mark.parametrize("w", [64, 61, 76])
def test_each_array_has_vectors_of_sixteen_bytes_in_a_strip(w: int) -> None:
    body = UP % "s = fabsf(s - a[r * w + i]); b[r * w + i] = s > 1.0f;"
    text, found, arrays, sizes = made(body, w, strips=(16, 32))
    assert "uint4*>(&b[" in found
    assert "float4*>(&a[" in found
    assert end_of(text, found, arrays, sizes, OTHERS) == "same"


def test_what_every_way_stores_is_stored_by_vectors() -> None:
    step = "s += a[r * w + i]; if (s > 1) { b[r * w + i] = 1; s = 0; } else b[r * w + i] = 0;"
    text, found, arrays, sizes = made(UP % step, 64)
    assert "unsigned int*>(&b[" in found
    assert end_of(text, found, arrays, sizes, OTHERS) == "same"


@pytest.mark.parametrize(
    "step",
    [
        "s += a[r * w + i]; if (s > 1) b[r * w + i] = 1;",
        "s += a[r * w + i]; if (s > 1) { b[r * w + i] = 1; s = 0; } else if (t > 0) b[r * w + i] = 0;",
        "s += a[r * w + i]; if (s < 0) continue; b[r * w + i] = 1;",
    ],
)
def test_what_some_rounds_do_not_store_is_stored_as_it_was(step: str) -> None:
    text, found, arrays, sizes = made(UP % step, 64)
    assert "*>(&b[" not in found
    assert end_of(text, found, arrays, sizes, OTHERS) == "same"


@pytest.mark.parametrize("w", [64, 63])
@pytest.mark.parametrize(
    "step",
    [
        "s = fabsf(s - a[r * w + i]) + (i > 0 ? a[r * w + i - 1] : 0.0f);",
        "s = fabsf(s - a[r * w + i]) + (i + 1 < w ? a[r * w + i + 1] : 0.0f);",
    ],
)
@pytest.mark.parametrize("head", [UP, DOWN])
def test_an_element_beside_is_in_the_vector_mostly(head: str, step: str, w: int) -> None:
    text, found, arrays, sizes = made(head % step, w)
    assert "? a_items[" in found
    assert end_of(text, found, arrays, sizes, OTHERS) == "same"


def test_a_hint_of_a_loop_that_is_one_strip_stays_with_its_rest() -> None:
    loop = "for (int j = 0; j < w; ++j) {\n#pragma unroll\nfor (int e = 0; e < 12; ++e) t += a[j * 12 + e]; }"
    text = WALK % loop
    found = written(vectorise(kernel_of(text), 1, strips=(12,)))
    assert "first" not in found
    assert (
        "} else {\n            #pragma unroll\n            for (int e = 0; e < 12; ++e) t +="
        in found
    )
    arrays = {
        "a": Array("f4", ("w", "12")), "path": Array("f4", ("1",), "zeros"),
        "b": Array("u1", ("1",), "zeros"), "out": Array("f4", ("h",), "zeros"),
    }  # fmt: skip
    assert end_of(text, found, arrays, {"h": 33, "w": 7}, {"h": 5, "w": 3}) == "same"


@pytest.mark.parametrize("off", [0, 1])
@pytest.mark.parametrize("count", [12, 24, 16])
def test_strips_of_a_known_number_of_rounds_say_where_each_is(count: int, off: int) -> None:
    body = f"""\
    float m[{count}] = {{0}};
    for (int j = 0; j < w; ++j) {{
        const float* p = a + (r + j) % h * {count} + {off};
        if (j % 3 != 1)
            for (int e = 0; e < {count}; ++e) m[e] += (j + 1) * p[e];
        else s += p[0];
    }}
    for (int e = 0; e < {count}; ++e) t = 0.5f * t + m[e];"""
    text = WALK % body
    strips = tuple(n for n in (16, 8, 12) if count % n == 0)
    found = written(vectorise(kernel_of(text), 1, strips=strips))
    several = len(strips) > 1
    assert (f"e_first < {count}; e_first += STRIP" in found) == several
    assert (f"for (int e = 0; e < {count}; ++e) {{" in found) == (not several)
    assert f"for (int e = 0; e < {count}; ++e) m[e] +=" in found
    assert "whole_e" not in found
    arrays = {
        "a": Array("f4", ("h", f"{count + 1}")), "path": Array("f4", ("1",), "zeros"),
        "b": Array("u1", ("1",), "zeros"), "out": Array("f4", ("h",), "zeros"),
    }  # fmt: skip
    assert end_of(text, found, arrays, {"h": 33, "w": 7}, {"h": 5, "w": 3}) == "same"
    uneven = next(n for n in (16, 12) if count % n)
    assert "whole_e" in written(vectorise(kernel_of(text), 1, strips=(uneven,)))
