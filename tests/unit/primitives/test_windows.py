"""Windows along rows: several elements an item, every second one, what is loaded and stored."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.jammed import Several, jam
from optiml_magic.kernels.primitives.reached import holds
from optiml_magic.kernels.symbols import Always, Compare, Condition, Every, Some, Untold
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

PLANE = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const %s* a, %s* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    %s
}
"""
FOUR = Several({"x": (4,)})
BYTE = "unsigned char"
CHANNELS = "for (int c = 0; c < 3; ++c) "
INSIDE = "if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return; "
SQUARE = "for (int j = -1; j <= 1; ++j) for (int i = -1; i <= 1; ++i) "


@pytest.mark.parametrize(
    ("types", "body", "words", "shapes"),
    sampled([
        ((BYTE, BYTE), f"{CHANNELS}out[(y * w + x) * 3 + c] = 255 - a[(y * w + x) * 3 + c];",
         ["a_row[ITEMS_X * 3];", "out_row[ITEMS_X * 3];", "part < ITEMS_X * 3"],
         {"a": ("u1", "h", "w", "3"), "out": ("u1", "h", "w", "3")}),
        ((BYTE, "float"), f"{CHANNELS}out[(c * h + y) * w + x] = a[(y * w + x) * 3 + c] / 255.0f;",
         ["float out_row[3][ITEMS_X];", "&out_at[c * h * w + part]"],
         {"a": ("u1", "h", "w", "3"), "out": ("3", "h", "w")}),
        (("float", "float"),
         ("float m = -1.0f; for (int j = 0; j < 3; ++j) for (int i = 0; i < 3; ++i) {"
          " int q = 2 * y + j - 1, p = 2 * x + i - 1;"
          " if (q >= 0 && q < 2 * h && p >= 0 && p < 2 * w) m = fmaxf(m, a[q * (2 * w) + p]); }"
          " out[y * w + x] = m;"),
         ["float a_row[5][ITEMS_X * 2 + 4];"], {"a": ("2 * h", "2 * w"), "out": ("h", "w")}),
        (("float", "float"), "out[y * w + x] += a[y * w + x] * 0.5f; out[y * w + x] -= 1.0f;",
         ["float out_row[ITEMS_X];", "out_row[x_item] -= 1.0f;"],
         {"a": ("h", "w"), "out": ("h", "w")}),
        (("float", "float"),
         (f"{INSIDE} float s = 0.0f; {SQUARE} if (i != 0 || j != 0) s += a[(y + j) * w + x + i];"
          " out[y * w + x] = s > 1.0f && a[y * w + x] > 0.0f ? s : 0.0f;"),
         ["if (i != 0 || j != 0)", "a_row[1][x_item + 4]"], {"a": ("h", "w"), "out": ("h", "w")}),
        (("float", "float"),
         (f"{INSIDE} float v[9]; int n = 0; {SQUARE} v[n++] = a[(y + j) * w + x + i];"
          " for (int i = 0; i < 5; ++i) for (int j = i + 1; j < 9; ++j)"
          " if (v[j] < v[i]) { float t = v[i]; v[i] = v[j]; v[j] = t; } out[y * w + x] = v[4];"),
         ["v[n++] = a_row["], {"a": ("h", "w"), "out": ("h", "w")}),
        ((BYTE, BYTE),
         ("int s = 0, n = 0; for (int j = -2; j <= 2; ++j) for (int i = -2; i <= 2; ++i) {"
          " int q = y + j, p = x + i;"
          " if (q >= 0 && q < h && p >= 0 && p < w) { s += a[q * w + p]; ++n; } }"
          " out[y * w + x] = s / n;"),
         ["int s_columns[ITEMS_X + 4];", "s_column += a_row[j + 2][i + x_item + 4];",
          "s[x_item] += s_columns[x_item + i];"], {"a": ("u1", "h", "w"), "out": ("u1", "h", "w")}),
        ((BYTE, BYTE),
         (f"{BYTE} s = 255; {SQUARE} {{"
          f" {BYTE} v = a[min(max(y + j, 0), h - 1) * w + min(max(x + i, 0), w - 1)];"
          " if (v < s) s = v; } out[y * w + x] = s;"),
         ["s[x_item] = min(s[x_item], s_columns[x_item + i]);"],
         {"a": ("u1", "h", "w"), "out": ("u1", "h", "w")}),
    ], 2),
)  # fmt: skip
def test_rows_of_items(
    types: tuple[str, str], body: str, words: list[str], shapes: dict[str, tuple[str, ...]]
) -> None:
    text = PLANE % (*types, body)
    made = jam(kernel(text), FOUR)
    for part in words:
        assert part in applied(made).program.text
    same(text, made, shapes, {"w": 28, "h": 7})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{CHANNELS}out[(y * w + x) * 4 + c] = a[(y * w + x) * 3 + c];", "fill a vector"),
        ("out[y * w + x] = out[y * w + x + 1] + a[x];", "not every item loads"),
        ((f"{INSIDE} float s = 0.0f; {SQUARE} if (i == 0) s += a[(y + j) * w + x + 2 * i];"
         " out[y * w + x] = s;"), ""),
        ((f"{INSIDE} float s = 0.0f; {SQUARE} if (i <= 0) s += a[(y + j) * w + x + i];"
         " out[y * w + x] = s;"), "not every item loads"),
        ((f"{INSIDE} float s = 0.0f; {SQUARE} {{ if (a[x] > 1.0f) continue; s += a[y * w + x + i]; }}"
         " out[y * w + x] = s;"), "not every item loads"),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_refused(body: str, reason: str) -> None:
    found = jam(kernel(PLANE % ("float", "float", body)), FOUR)
    if reason:
        assert reason in refused(found)[0]


@pytest.mark.parametrize(
    "term",
    ["a[(y + j) * w + x + i] * i", "a[(y + j) * w + x + i] * 0.5f", "a[(y + i) * w + x + j - i]"],
)
def test_columns_that_differ_are_not_shared(term: str) -> None:
    body = f"{INSIDE} int s = 0; {SQUARE} s += {term}; out[y * w + x] = s;"
    assert "columns" not in applied(jam(kernel(PLANE % (BYTE, BYTE, body)), FOUR)).program.text


@pytest.mark.parametrize(
    ("declared", "inner"),
    [
        ("int q = 0;", "q += VALUE; s += q;"),
        ("int q = 0;", "q ^= VALUE; if (q > s) s = q;"),
        ("int q[2] = {0, 0};", "q[1] += VALUE; s += q[1];"),
    ],
)
def test_what_a_row_adds_up_goes_from_column_to_column(declared: str, inner: str) -> None:
    value = "a[min(max(y + j, 0), h - 1) * w + min(max(x + i, 0), w - 1)]"
    loops = SQUARE.replace("for (int i", f"{{ {declared} for (int i")
    body = f"int s = 0; {loops}{{ {inner.replace('VALUE', value)} }} }} out[y * w + x] = s;"
    text = PLANE % (BYTE, BYTE, body)
    made = jam(kernel(text), FOUR)
    assert "columns" not in applied(made).program.text
    same(text, made, {"a": ("u1", "h", "w"), "out": ("u1", "h", "w")}, {"w": 28, "h": 7})


def test_a_condition_on_numbers() -> None:
    k = Polynomial.symbol("k")
    at_least = Compare(">=", k - Polynomial.constant(2), frozenset())
    other: Condition = Compare("!=", k * k - Polynomial.constant(9), frozenset())
    assert holds(at_least, {"k": 2}) is True
    assert holds(Every((at_least, other)), {"k": 3}) is False
    assert holds(Some((at_least, other)), {"k": 0}) is True
    assert holds(~other, {"k": -3}) is True
    assert holds(Always(False), {}) is False
    assert holds(at_least, {}) is None
    assert holds(Every((at_least, Untold("f", frozenset()))), {"k": 2}) is None


@pytest.mark.parametrize("w", sampled([7, 16, 33, 64], 2))
@pytest.mark.parametrize(
    ("test", "least"),
    [
        ("x + j >= 0 && x + j < w", "4 <= x_first"),
        ("x >= 3 && x < w - 3", "4 <= x_first"),
    ],
)
def test_three_elements_beside_a_vector_come_as_four(test: str, least: str, w: int) -> None:
    loop = "for (int j = -3; j <= 3; ++j)"
    body = f"float s = 0; {loop} if ({test}) s += a[y * w + x + j]; out[y * w + x] = s;"
    if "j" not in test:
        body = (
            f"if (!({test})) return; float s = 0; {loop} s += a[y * w + x + j]; out[y * w + x] = s;"
        )
    text = PLANE % ("float", "float", body)
    made = jam(kernel(text), FOUR)
    found = applied(made).program.text
    assert "*reinterpret_cast<float4*>(&a_row[0]) = " in found
    assert "*reinterpret_cast<float4*>(&a_row[ITEMS_X + 4]) = " in found
    assert least in found or "x_first - 4" in found
    same(text, made, {"a": ("h", "w"), "out": ("h", "w")}, {"w": w, "h": 3})


@pytest.mark.parametrize("hint", ["#pragma unroll", "#pragma unroll 2"])
def test_loops_may_say_themselves_that_they_are_unrolled(hint: str) -> None:
    loops = f"\n{hint}\nfor (int i = -1; i <= 1; i++)\n{{\n{hint}\nfor (int j = -1; j <= 1; j++)\n"
    places = "min(max(y + i, 0), h - 1) * w + min(max(x + j, 0), w - 1)"
    inside = "if (x >= w || y >= h) return;"
    body = f"{inside} float s = 0;{loops} s += a[{places}];\n}}\nout[y * w + x] = s;"
    text = PLANE % ("float", "float", body)
    made = jam(kernel(text), FOUR)
    if hint[-1] == "2":
        assert refused(made)[0] == "a loop around its loads is not unrolled"
        return
    assert "a_row" in applied(made).program.text
    same(text, made, {"a": ("h", "w"), "out": ("h", "w")}, {"w": 37, "h": 5})
