"""Loads that some rounds of a loop leave alone, by vectors."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.copied_parameters import copied_parameters
from optiml_magic.kernels.primitives.vectors import vectorise, vectorised
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, refused, written

SOME = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, const unsigned char* c, float* b, float* out, int w, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float s = 0;
    for (int i = 0; i < w; ++i) { %s }
    out[r] = s;
}
"""
SIZES, OTHERS = {"h": 33, "w": 64}, {"h": 2, "w": 7}


def made(body: str, rows: str = "h", wide: str = "w") -> tuple[str, str, dict[str, Array]]:
    arrays = {
        "a": Array("f4", (rows, "w")), "c": Array("u1", ("h", "w")), "b": Array("f4", (wide,)),
        "out": Array("f4", ("h",), "zeros"),
    }  # fmt: skip
    text = SOME % body
    facts = Stand(Made("one", text, arrays, SIZES, OTHERS)).facts(text)
    return text, written(vectorise(kernel_of(text, facts), 0)), arrays


@pytest.mark.parametrize("rows", ["h", "h + 1"])
def test_they_are_there_where_what_all_rounds_load_is_in_a_smaller_array(rows: str) -> None:
    body = "if (c[r * w + i] & 1) continue; s += a[r * w + i]; if (s > 9) s -= a[r * w + i];"
    text, found, arrays = made(body, rows)
    assert "float4*>(&a[r * w + i_first])" in found
    assert "if (size(a) >= size(c))" in found or "require size(a) >= size(c)" in found
    assert end_of(text, found, arrays, SIZES, OTHERS) == "same"


@pytest.mark.parametrize(
    ("body", "rows", "wide"),
    [
        ("if (c[r * w + i] & 1) s += a[r * w + i + 1];", "h + 1", "w"),  # at another place
        ("if (c[r * w + i] & 1 && r < 9) s += a[r * w + i];", "h / 2 + 1", "w"),  # no longer array
        ("if (c[r * w + i] & 1) s += b[i];", "h", "w"),
        ("if (c[r * w + i] & 1) { s += b[r * w + i]; b[r * w + i] = 1; }", "h", "w * h"),
    ],
)
def test_else_each_round_that_asks_for_them_loads_them(body: str, rows: str, wide: str) -> None:
    text, found, arrays = made(body, rows, wide)
    assert "float4*>(&a" not in found
    assert "const float4*>(&b" not in found
    assert "require" not in found
    assert end_of(text, found, arrays, SIZES, OTHERS) == "same"


TABLE = """\
#pragma optiml launch k grid(h) block(32)
__global__ void k(const float* a, const int* t, float* out, int w, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    int page = t[r];
    while (page >= h) page -= h;
    %s
    float s = 0;
    for (int i = 0; i < w; ++i) { %s }
    out[r] = s;
}
"""


def by_table(before: str, body: str) -> tuple[str, str, dict[str, Array]]:
    arrays = {
        "a": Array("f4", ("h", "w")), "t": Array("i4", ("h",)), "out": Array("f4", ("h",), "zeros"),
    }  # fmt: skip
    text = TABLE % (before, body)
    facts = Stand(Made("one", text, arrays, SIZES, OTHERS)).facts(text)
    return text, written(vectorise(kernel_of(text, facts), 1)), arrays


@pytest.mark.parametrize(
    ("before", "body", "there"),
    [
        ("page = page < 0 ? 0 : page;", "s += a[page * w + i];", "&a[page * w + i_first]"),
        ("page = page < 0 ? 0 : page; const float* p = a + page * w;", "s += p[i] * 2;",
         "&p[i_first]"),
        ("page = page < 0 ? 0 : page; const float* p = a + page * w;", "s += *(p + i);",
         "&*(p + i_first)"),
    ],
)  # fmt: skip
def test_rows_that_begin_where_no_form_says_are_spelled_as_they_are(
    before: str, body: str, there: str
) -> None:
    text, found, arrays = by_table(before, body)
    assert f"float4*>({there})" in found
    assert end_of(text, found, arrays, SIZES, OTHERS) == "same"


ROWS = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, const int* t, float* out, int w, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    const float* row = a + (long long)r * w;
    float s = 0;
    for (int i = 0; i < %s; ++i) { if (i != t[r]) s += row[i] > 0 ? row[i] : 0; }
    out[r] = s;
}
"""


@pytest.mark.parametrize(
    ("end", "rows", "wide"),
    [("w", "h", "w"), ("w", "h + 1", "w"), ("w", "h - 1", "w"), ("w - 1", "h", "w"), ("w", "h", "w - 1")],
)  # fmt: skip
def test_a_row_is_there_where_the_array_has_one_for_each_thread(
    end: str, rows: str, wide: str
) -> None:
    text = ROWS % end
    arrays = {
        "a": Array("f4", (rows, wide)), "t": Array("i4", ("h",)), "out": Array("f4", ("h",), "zeros"),
    }  # fmt: skip
    whole = (end, wide) == ("w", "w") and rows != "h - 1"
    if not whole and end == "w":  # some threads have no row, which the input kernel asks for
        text = text.replace("r >= h", "(r + 1) * w > h * w - w")
    facts = Stand(Made("one", text, arrays, SIZES, OTHERS)).facts(text)
    found = vectorise(kernel_of(text, facts), 0)
    if not whole:
        assert "float4" not in getattr(getattr(found, "program", None), "text", "")
        return
    assert "size(a) >= w * h" in written(found) or "size(a) >= h * w" in written(found)
    assert end_of(text, written(found), arrays, SIZES, OTHERS) == "same"


def test_a_thread_without_a_row_that_goes_through_the_loop_loads_nothing_of_one() -> None:
    text = (ROWS % "w").replace("    if (r >= h) return;\n", "")
    text = text.replace("if (i != t[r]) s += row[i] > 0 ? row[i] : 0;", "s += r < h ? row[i] : 0;")
    text = text.replace("out[r] = s;", "if (r < h) out[r] = s;").replace("const int* t, ", "")
    arrays = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h",), "zeros")}
    facts = Stand(Made("one", text, arrays, SIZES, OTHERS)).facts(text)
    assert "consecutive" in refused(vectorise(kernel_of(text, facts), 0))


HEADS = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, float* out, %s w, %s h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float s = 0;
    int n = 1, q = r;
    int& g = q;
    for (%s) { %s }
    out[r] = s + n;
}
"""


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("int i = 0; i < w; ++i, ++n", "s += a[r * w + i] * n;"),
        ("int i = n++ - 1; i < w; ++i", "s += a[r * w + i];"),
        ("int i = 0; i < w; ++i", "s += a[g * w + i]; q = 0;"),
        ("int i = 0; i < w; ++i, q ^= 1", "s += a[(q & 1) * w + i];"),
    ],
)
def test_what_moves_with_the_rounds_besides_stays(head: str, body: str) -> None:
    text = HEADS % ("int", "int", head, body)
    assert not hasattr(vectorise(kernel_of(text), 0), "program")


@pytest.mark.parametrize("kind", ["unsigned", "int", "size_t"])
def test_a_loop_may_begin_behind_its_end(kind: str) -> None:
    text = HEADS % (kind, kind, f"{kind} i = 8; i < w; ++i", "s += a[r * w + i];")
    arrays = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h",), "zeros")}
    after = written(vectorise(kernel_of(text), 0))
    assert end_of(text, after, arrays, {"w": 64, "h": 40}, {"w": 3, "h": 5}) == "same"


def test_a_loop_with_something_that_is_not_read_stays() -> None:
    text = HEADS % (
        "int",
        "int",
        "int i = 0; i < w; ++i",
        "if (i == 3) goto e; s += a[r * w + i]; e: ;",
    )
    assert "not read" in str(vectorise(kernel_of(text), 0))


def test_loops_side_by_side_and_one_that_begins_elsewhere_have_names_of_their_own() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, float* out, int w, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float most = a[r * w];
    for (int i = 1; i < w; ++i) most = fmaxf(most, a[r * w + i]);
    float s = 0;
    for (int i = 0; i < w; ++i) s += a[r * w + i] > most / 2;
    for (int i = 0; i < w; ++i) s += a[r * w + i] < most / 4;
    out[r] = s;
}
"""
    arrays = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h",), "zeros")}
    facts = Stand(Made("one", text, arrays, SIZES, OTHERS)).facts(text)
    found, _ = vectorised(kernel_of(text, facts), (0, 1, 2))
    words = [word for word in found.program.text.split() if word.startswith("whole_i")]
    assert len({*words}) > 1
    assert end_of(text, found.program.text, arrays, SIZES, OTHERS) == "same"


@pytest.mark.parametrize("moved", ["a += r * w;", "a = a + (size_t)r * w;"])
def test_where_a_pointer_has_moved_rows_are_addressed_as_they_lie_in_the_array(moved: str) -> None:
    text = SOME.replace("    float s = 0;", f"    {moved}\n    float s = 0;") % "s += a[i];"
    arrays = {
        "a": Array("f4", ("h", "w")), "c": Array("u1", ("h", "w")), "b": Array("f4", ("w",)),
        "out": Array("f4", ("h",), "zeros"),
    }  # fmt: skip
    facts = Stand(Made("one", text, arrays, SIZES, OTHERS)).facts(text)
    kernel = kernel_of(text, facts)
    assert "changes" in refused(vectorise(kernel, 0))
    copied = copied_parameters(kernel)
    assert isinstance(copied, Kernel)
    found = written(vectorise(copied, 0))
    assert "float4*>(&a[" in found
    assert end_of(text, found, arrays, SIZES, OTHERS) == "same"
