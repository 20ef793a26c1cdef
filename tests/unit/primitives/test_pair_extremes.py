"""Extremes of neighbouring items by integers in halves: bytes, 16 bits, either sign, colours."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.jammed import Several, jam_in_pairs
from optiml_magic.kernels.primitives.pairs import in_pairs
from tests.present import sampled

from .running import same
from .shapes import applied, kernel

HEAD = """\
%s
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const T* a, T* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    %s
}
"""
SQUARE = "for (int j = -1; j <= 1; ++j) for (int i = -1; i <= 1; ++i) "
AT = "a[(y + j) * w + x + i]"
HERE, LEFT, BELOW = "a[y * w + x]", "a[y * w + x - 1]", "a[(y + 1) * w + x]"
OUT = "out[y * w + x] = "
ORDER = "__device__ void in_order(N& p, N& q) { const N m = min(p, q); q = max(p, q); p = m; }"
LANE = "__device__ N lane(N p, N q) { if (p < q) return q; return p; }"
BOTH = (
    "__device__ T most(T p, const T& q) { if (p.x < q.y) return make_uchar4(p.z, max(p.y, q.y), 3,"
    " q.w); return make_uchar4(p.z, max(p.y, q.y), 3, q.w); }"
    " __device__ void least(T& p, T q) { q.x = min(p.x, q.x); p = q; }"
)
LEAST = f"T m = {HERE}; {SQUARE} m = min(m, {AT}); {OUT}m;"
SWAPPED = (
    f"T v[9]; int n = 0; {SQUARE} v[n++] = {AT}; for (int i = 0; i < 5; ++i)"
    " for (int j = i + 1; j < 9; ++j) if (v[j] < v[i]) { T q = v[i]; v[i] = v[j]; v[j] = q; }"
    f" {OUT}v[4];"
)
LANES = (
    f"T m = {HERE}; {SQUARE} {{ T p = {AT}; m.x = max(m.x, p.x); m.y = min(p.y, m.y); }} {OUT}m;"
)
NUMBERS = {
    "unsigned char": "u1", "signed char": "i1", "char": "i1", "unsigned short": "u2",
    "short": "i2", "uint8_t": "u1", "int16_t": "i2",
}  # fmt: skip
VECTORS = {"uchar": "u1", "char": "i1", "ushort": "u2", "short": "i2"}


def _made(
    kind: str, body: str, helper: str = "", *, tall: bool = False, chip: str = "h200"
) -> tuple[str, Kernel]:
    lane = kind.rstrip("234")
    number = {"uchar": "unsigned char", "ushort": "unsigned short"}.get(lane, lane)
    number = "signed char" if kind != lane and lane == "char" else number
    text = HEAD % (helper.replace("N", number), body.replace("N ", f"{number} "))
    for mark in ("* ", "& ", " "):
        text = text.replace(f"T{mark}", f"{kind}{mark}")
    counts = {"x": (8,), "y": (2,)} if tall else {"x": (4,)}
    if "uint8_t" in text or "int16_t" in text:
        text = f"#include <cstdint>\n{text}"
    return text, applied(jam_in_pairs(replace(kernel(text), chip=chip), Several(counts)))


def _same(text: str, made: Kernel, dtype: str, lanes: int = 1) -> None:
    assert "pair_ending(a_row" in made.program.text
    shape = ("h", "w", str(lanes)) if lanes > 1 else ("h", "w")
    for w in (52, 3):
        shapes = {"a": (dtype, *shape), "out": (dtype, *shape)}
        same(text, made, shapes, {"w": w, "h": 7}, given="bits")


@pytest.mark.parametrize("kind", [k for k in NUMBERS if NUMBERS[k] != "u1"])
@pytest.mark.parametrize(
    ("helper", "body"),
    sampled([
        ("", LEAST),
        ("", SWAPPED),
        ("", f"int m = -100; {SQUARE} m = max(m, (int){AT}); {OUT}min(m, 100);"),
        ("", f"N b = {BELOW}, c = {LEFT}; b = b > c ? c : b; {OUT}max(b, {HERE});"),
        (ORDER, (f"N v[3] = {{{HERE}, {LEFT}, {BELOW}}}; in_order(v[0], v[1]);"
                f" in_order(v[1], v[2]); in_order(v[0], v[1]); {OUT}v[1];")),
        (LANE, f"{OUT}lane(lane({HERE}, {LEFT}), {BELOW});"),
    ], 3),
)  # fmt: skip
def test_numbers(kind: str, helper: str, body: str) -> None:
    if "-100" in body and kind.startswith("unsigned"):
        body = body.replace("-100", "0")
    text, made = _made(kind, body, helper, tall=kind != "short")
    _same(text, made, NUMBERS[kind])


@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("lane", VECTORS)
def test_vectors(lane: str, lanes: int) -> None:
    text, made = _made(f"{lane}{lanes}", LANES, tall=lanes == 4)
    _same(text, made, VECTORS[lane], lanes)


@pytest.mark.parametrize(
    ("helper", "body"),
    sampled([
        ("", f"T p = {HERE}, q = {LEFT}; N v = min(p.x, q.z); {OUT}make_uchar4(v, p.w, 7, p.y);"),
        ("", (f"T v[3] = {{}}; v[0] = {HERE}; v[1] = {LEFT}; v[2] = {BELOW}; T m = v[0];"
             " for (int i = 1; i < 3; ++i) { m.x = min(m.x, v[i].x); m.z = max(m.z, v[i].y); }"
             f" {OUT}m;")),
        ("", (f"T p; p = {HERE}; const T q = p; p = {BELOW}; if (p.x > q.x) {{ N t = p.x; p.x = q.x;"
             f" p.y = q.y; p.z = t; }} else {{ p.y = q.y; p.z = q.x; }} p.w = min(p.w, q.w); {OUT}p;")),
        (BOTH, f"T p = {HERE}, q = {LEFT}; least(p, q); {OUT}most(p, q);"),
        (ORDER, f"T p = {HERE}, q = {LEFT}; in_order(p.x, q.x); in_order(p.z, q.w); {OUT}q;"),
        (ORDER, (f"T p = {HERE}; in_order(p.x, p.y); in_order(p.y, p.z); in_order(p.x, p.y);"
                f" {OUT}make_uchar4(p.y, p.y, p.y, 255);")),
        (LANE, (f"T p = {HERE}, q = {LEFT}; p.y = 3; {OUT}make_uchar4(lane(p.x, q.x), p.y,"
               " min(max((int)q.z, 20), 200), min(p.w, 128));")),
        ("", (f"N r[9], g[9]; int n = 0; {SQUARE} {{ T p = make_uchar4(0, 0, 0, 0); p = {AT};"
             " r[n] = p.x; g[n] = p.y; n++; } for (int i = 0; i < 5; ++i) for (int j = i + 1; j < 9;"
             " ++j) { if (r[j] < r[i]) { N q = r[i]; r[i] = r[j]; r[j] = q; }"
             " if (g[i] > g[j]) { N q = g[i]; g[i] = g[j]; g[j] = q; } }"
             f" {OUT}make_uchar4(r[4], g[4], 0, 255);")),
    ], 4),
)  # fmt: skip
def test_colours(helper: str, body: str) -> None:
    for tall in (False, True):
        text, made = _made("uchar4", body, helper, tall=tall)
        _same(text, made, "u1", 4)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("unsigned char", "u1"), ("signed char", "i1"), ("short", "i2")]
)
@pytest.mark.parametrize("lanes", [2, 3, 4])
def test_colours_side_by_side(kind: str, dtype: str, lanes: int) -> None:
    """Pixels of several numbers, as ``a[3 * i + c]`` asks for them."""
    place, own = f"a[((y + j) * w + x + i) * {lanes} + c]", f"(y * w + x) * {lanes} + c"
    body = (
        f"for (int c = 0; c < {lanes}; ++c) {{ T m = a[{own}]; {SQUARE} m = max(m, {place});"
        f" out[{own}] = m; }}"
    )
    text, made = _made(kind, body, tall=lanes == 3)
    _same(text, made, dtype, lanes)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("short", f"{OUT}max({HERE} + {LEFT}, 0);"),  # may not fit
        ("short", f"{OUT}{HERE} / 2 > {LEFT} / 2 ? {HERE} : {LEFT};"),  # more than an extreme
        ("short", f"N b = {BELOW}; {OUT}{HERE} > {LEFT} ? b : 3;"),
        ("short", f"{OUT}min((unsigned){HERE}, 100u);"),  # of another sign
        ("short", f"{OUT}max({HERE}, 3u) & 7;"),
        ("short", f"{OUT}{HERE};"),  # nothing is computed
        ("short", f"int s = 0; for (int i = 0; i < {HERE}; ++i) s = 1; {OUT}min(s, 1);"),
        ("signed char", f"{OUT}(unsigned char){HERE} > 3 ? 3 : 1;"),
        ("short", f"float m = {HERE}; {OUT}fmaxf(m, {LEFT});"),
        ("short", f"{OUT}max({HERE}, (short)w);"),  # nobody knows how great it is
        ("uchar4", f"T p = {HERE}; p.x = p.x + 1; p.y = max(p.y, p.z); {OUT}p;"),
        ("uchar4", f"T p = {HERE}, q = {LEFT}; {OUT}p.x > q.x ? p : q;"),
        ("uchar4", f"T q = {HERE}, p; p.x = 1; p.y = max(q.x, 3); {OUT}p;"),  # not all is set
        ("ushort4", f"T p = {HERE}; {OUT}make_ushort4(min(p.x, 200) + 1, 0, 0, 0);"),
        ("ushort4", f"T p = {HERE}; {OUT}make_ushort4(min(p.x, p.y), (unsigned char)p.z, 0, 0);"),
        ("uchar4", f"T p = {HERE}; const T* q = &p; {OUT}make_uchar4(max(q->x, q->y), 0, 0, 0);"),
        ("uchar4", f"T p = {HERE}; T& q = p; q.x = max(p.y, p.z); {OUT}p;"),
    ],
)
def test_what_is_not_certain_stays(kind: str, body: str) -> None:
    _text, made = _made(kind, body)
    assert "pair_" not in made.program.text


def test_functions_of_these_names_are_others() -> None:
    made_so = "__device__ uchar4 make_uchar4(int p, int q) { return uchar4{}; }"
    body = f"T p = {HERE}; {OUT}make_uchar4(p.x, max(p.y, 2));"
    _text, made = _made("uchar4", body, made_so)
    assert "pair_" not in made.program.text
    most = "__device__ short min(short p, short q) { return p > q ? p : q; }"
    text, made = _made("short", LEAST, most)
    _same(text, made, "i2")


@pytest.mark.parametrize("chip", ["a100", ""])
def test_earlier_chips_have_no_such_instruction(chip: str) -> None:
    _text, made = _made("short", LEAST, chip=chip)
    assert "pair_" not in made.program.text


def test_bytes_alone_are_halves_of_floats() -> None:
    _text, made = _made("unsigned char", LEAST)
    assert "pair_at(a_row" in made.program.text


@pytest.mark.parametrize(
    ("stores", "paired"),
    [
        ("o[i] = m;", True),
        ("o[i] = m; o[i + 1] = p;", False),  # the next item stores there as well
        ("o[i] = m; o[i + 8] = p;", False),
        ("o[2 * i] = m; o[2 * i + 1] = p;", True),
        ("o[2 * i] = m;", False),
        ("o[2 * i + 1] = m; o[2 * i] = p;", True),
        ("o[7 - i] = m;", False),
        ("o[i * i] = m;", False),
        ("int q = w + i; o[i] = m;", True),
        ("int q = w + i; m.x = max((int)m.x, q); o[i] = m;", False),
        ("for (int q = 0; q < 2; ++q) { int s = q; s = s + q; m.y = s; } o[i] = m;", True),
    ],
)
def test_each_number_is_stored_once(stores: str, *, paired: bool) -> None:
    text = f"""
#pragma optiml launch k grid(1) block(1)
__global__ void k(const uchar4* a, uchar4* out, int w) {{
    uchar4 r[12];
    for (int j = 0; j < 12; ++j) r[j] = a[j];
    uchar4 o[20];
    for (int j = 0; j < 20; ++j) o[j] = make_uchar4(1, 2, 3, 4);
    for (int i = 0; i < 8; ++i) {{
        uchar4 m = r[i], p = r[i + 2];
        m.x = max(m.x, p.y);
        m.z = min(m.z, p.w);
        {stores}
    }}
    for (int j = 0; j < 20; ++j) out[j] = o[j];
}}"""
    made = in_pairs(replace(kernel(text), chip="h200"))
    assert isinstance(made, Kernel) == paired
    if paired:
        shapes = {"a": ("u1", "12", "4"), "out": ("u1", "20", "4")}
        same(text, made, shapes, {"w": 3}, given="bits")


@pytest.mark.parametrize("seed", sampled([*range(40)], 4))
def test_drawn_extremes(seed: int) -> None:
    rng = Random(seed)
    kind, dtype, least, most = rng.choice([
        ("signed char", "i1", -128, 127), ("short", "i2", -(1 << 15), (1 << 15) - 1),
        ("unsigned short", "u2", 0, (1 << 16) - 1),
    ])  # fmt: skip

    def drawn(deep: int) -> str:
        if deep == 0:
            j, i = rng.randint(-1, 1), rng.randint(-1, 1)
            number = rng.randint(least + 1, most - 1)
            return rng.choice([f"a[(y + {j}) * w + x + {i}]"] * 4 + [f"({number})"])
        one, two = drawn(deep - 1), drawn(rng.randint(0, deep - 1))
        return rng.choice([
            f"min((int){one}, (int){two})", f"max((int){one}, (int){two})",
            f"({one} > {two} ? {two} : {one})", f"({one} <= {two} ? {two} : {one})",
        ])  # fmt: skip

    text, made = _made(kind, f"int v = max((int){HERE}, {drawn(4)}); {OUT}v;", tall=bool(seed % 2))
    _same(text, made, dtype)
