"""A plane computed where a stencil asks for its elements."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.kernels.primitives.inlined_planes import inlined_planes
from optiml_magic.source.program import parse_program

from .running import same
from .shapes import applied, refused

HEAD = """\
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
"""
CHAIN = f"""\
#pragma optiml scratch t f4[h * w]
#pragma optiml launch one grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
#pragma optiml launch two grid(cdiv(w, 16), cdiv(h, 2)) block(16, 2)
__global__ void one(const float* a, float* t, int h, int w) {{
{HEAD}    %s
}}

__global__ void two(const float* t, float* out, int h, int w) {{
{HEAD}    %s
}}
"""
SHAPES = {"a": ("h", "w"), "out": ("h", "w")}
ROW = """float s = 0;
    for (int i = -2; i <= 2; i++) s += a[y * w + min(max(x + i, 0), w - 1)];
    t[y * w + x] = s;"""
PLAIN = "t[y * w + x] = a[y * w + x] * 2;"
COLUMN = """float s = 0;
    for (int i = -2; i <= 2; i++) { int v = min(max(y + i, 0), h - 1); s += t[v * w + x]; }
    out[y * w + x] = s;"""
BORDER = "if (x == 0 || x == w - 1) { t[y * w + x] = a[y * w + x]; return; } t[y * w + x] = a[y * w + x - 1];"
INNER = "if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {{ out[y * w + x] = 0; return; }} out[y * w + x] = {};"


def _first(text: str) -> Kernel:
    return kernels(parse_program(text), None)[0]


@pytest.mark.parametrize(
    "one",
    [ROW, PLAIN, BORDER, "int at = y * w + x; float s = a[at]; if (x == y) s = -s; t[at] = s;"],
)
@pytest.mark.parametrize(
    "two",
    [
        COLUMN,
        COLUMN.replace("int v = min(max(y + i, 0), h - 1);", "int v = y + i; if (v < 0 || v >= h) continue;"),
        INNER.format("t[(y - 1) * w + x + 1] - t[(y + 1) * w + x - 1]"),
        "int at = y * w + x; " + INNER.format("t[at - w - 1] + t[at + w] + t[at - w - 1]"),
        "int c = x + w; " + INNER.format("t[(y - 1) * w + c]"),
        COLUMN.replace("int v = min(max(y + i, 0), h - 1); s += t[v * w + x];", "int u = min(max(x + i, 0), w - 1); s += t[y * w + u];"),
    ],
)  # fmt: skip
def test_elements_of_a_plane_are_computed_where_they_are_asked_for(one: str, two: str) -> None:
    text = CHAIN % (one, two)
    made = inlined_planes(_first(text))
    program = applied(made).program
    assert "scratch" not in program.text
    assert len(program.launches) == 1
    for sizes in ({"h": 9, "w": 21}, {"h": 1, "w": 3}, {"h": 5, "w": 1}):
        same(text, made, SHAPES, sizes)


@pytest.mark.parametrize(
    "one",
    [
        "float s = blockIdx.y * blockDim.y + threadIdx.y - 1 < h ? 1 : 2; t[y * w + x] = s + a[y * w + x];",
        "float s = blockIdx.x * blockDim.x + threadIdx.x - 2 < w ? 1 : 2; t[y * w + x] = s + a[y * w + x];",
        "float s = u - 1 < w && v - 1 < h ? a[(v - 1) * w + u - 1] : 2; t[y * w + x] = s;",
        "auto q = blockIdx.y * blockDim.y + threadIdx.y; t[y * w + x] = q - 1 < h ? 1 : 2;",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kinds", [("int", "int"), ("unsigned", "int"), ("int", "unsigned")])
def test_numbers_without_a_sign_stay_so(one: str, kinds: tuple[str, str]) -> None:
    text = CHAIN % (one, INNER.format("t[(y - 1) * w + x + 1] - t[(y + 1) * w + x - 1]"))
    places = [f"blockIdx.{a} * blockDim.{a} + threadIdx.{a}" for a in "xy"]
    for kind, name, place in zip(kinds, "xy", places, strict=True):
        text = text.replace(f"int {name} = {place};", f"{kind} {name} = {place};", 1)
    text = text.replace(
        "    float s = u", f"    unsigned u = {places[0]}, v = {places[1]};\n    float s = u"
    )
    made = inlined_planes(_first(text))
    applied(made)
    same(text, made, SHAPES, {"h": 7, "w": 11})


@pytest.mark.parametrize(
    ("one", "two", "reason"),
    [
        (ROW, "out[y * w + x] = y < h - 1 ? 0 : t[y * w + x];", "only sometimes"),
        (ROW, "if (y * w + x + 1 < h * w) out[y * w + x] = t[y * w + x + 1];", "another row"),
        (ROW, "out[y * w + x] = t[x * h + y];", "another row"),
        (ROW.replace("-2; i <= 2", "-20; i <= 20"), COLUMN, "long loop"),
        (ROW.replace("i <= 2", "i <= h"), COLUMN, "long loop"),
        (f"if (x > 0) {{ {PLAIN} }}", COLUMN, "left out"),
        (f"if (y < 1) return; {PLAIN}", COLUMN, "left out"),
        ("t[x * h + y] = a[y * w + x];", COLUMN, "its item's index"),
        (f"{PLAIN} t[y * w + x] += 1;", COLUMN, "more than one"),
        (PLAIN, "out[y * w + x] = a[y * w + x];", "not asked for"),
    ],
)  # fmt: skip
def test_refused(one: str, two: str, reason: str) -> None:
    text = CHAIN % (one, two)
    if "a[" in two:
        text = text.replace("two(const float* t,", "two(const float* t, const float* a,")
    assert reason in refused(inlined_planes(_first(text)))[0]


def test_all_of_the_array_is_stored_and_nobody_else_asks_for_it() -> None:
    text = CHAIN % (PLAIN, COLUMN)
    longer = text.replace("f4[h * w]", "f4[h * w + 1]")
    assert "not all" in refused(inlined_planes(_first(longer)))[0]
    again = text + (
        "#pragma optiml launch three grid(1) block(1)\n"
        "__global__ void three(const float* t, float* out) { out[0] += t[0]; }\n"
    )
    assert "asked for elsewhere" in refused(inlined_planes(_first(again)))[0]


def test_rows_are_as_long_as_a_size() -> None:
    text = (CHAIN % (PLAIN, COLUMN)).replace("* w", "* (2 * w)").replace("x >= w", "x >= 2 * w")
    text = text.replace("cdiv(w,", "cdiv(2 * w,")
    assert "not a single size" in refused(inlined_planes(_first(text)))[0]


def test_what_statements_of_a_block_both_ask_for_is_computed_once() -> None:
    two = "float u = t[y * w + x]; float v = t[y * w + x] * 2; out[y * w + x] = u - v;"
    text = CHAIN % (PLAIN, two)
    made = inlined_planes(_first(text))
    assert applied(made).program.text.count("a[") == 1
    same(text, made, SHAPES, {"h": 7, "w": 11})


def test_elements_are_computed_in_a_few_places() -> None:
    asked = " + ".join(f"t[(y + {i}) * w + x]" for i in range(26))
    two = f"if (y + 26 < h) out[y * w + x] = {asked};"
    assert "too many places" in refused(inlined_planes(_first(CHAIN % (ROW, two))))[0]
