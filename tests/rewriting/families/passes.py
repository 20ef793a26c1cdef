"""Passes over an image: one stores a plane of which the next one asks for neighbours."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from tests.rewriting.writing import Array, Made, indented, sizes_of

_WIDTHS = (1, 2, 3, 4, 5, 8, 12, 13, 16, 20, 33, 36, 40)
_HEIGHTS = (1, 2, 3, 5, 8, 9, 12, 17)
_SOME = "float some"  # what is stored for some elements alone


def _window(rng: Random, array: str, weight: str) -> tuple[str, str]:
    """A sum over neighbours, as it is made and what it begins with."""
    down, across = rng.choice(["0", "i"]), rng.choice(["0", "i", "j"])
    if down == across == "0":
        across = "i"
    row = f"y + {down}" if down != "0" else "y"
    column = f"x + {across}" if across != "0" else "x"
    element = rng.choice([f"{array}[v * w + u]", f"{array}[u + v * w]", f"{array}[w * v + u]"])
    update = f"s += {element}{weight};"
    inner = rng.choice([
        f"int u = min(max({column}, 0), w - 1), v = min(max({row}, 0), h - 1);\n{update}",
        f"int u = {column}, v = {row};\nif (u >= 0 && u < w && v >= 0 && v < h) {update}",
        f"int u = {column}, v = {row};\nif (u < 0 || u >= w || v < 0 || v >= h) continue;\n{update}",
        f"int u = ({column} + w) % w, v = ({row} + h) % h;\n{update}",
    ])  # fmt: skip
    outer = rng.choice(["for (int i = -1; i <= 1; i++)", "for (int i = -2; i < 3; ++i)"])
    loops = f"{outer} {{\n{inner}\n}}"
    if "j" in (down, across):
        loops = f"for (int j = -1; j <= 1; j++)\n{loops}"
    return loops, rng.choice(["float s = 0.0f;", "float s = 1.0f;"])


def _point(rng: Random, array: str) -> str:
    """An expression of a few neighbours, where these are there."""
    return rng.choice([
        f"{array}[y * w + x - 1] + {array}[y * w + x + 1]",
        f"{array}[(y - 1) * w + x] - 2 * {array}[y * w + x] + {array}[(y + 1) * w + x]",
        f"{array}[(y - 1) * w + x + 1] - {array}[(y + 1) * w + x - 1]",
        f"{array}[at - w] + {array}[at + w] + {array}[at + 1] - {array}[at - 1]",
        f"{array}[at - w - 1] * 0.5f + {array}[at]",
    ])  # fmt: skip


def _kernel(rng: Random, name: str, source: str, target: str, body: str) -> str:
    x, y = (f"blockIdx.{a} * blockDim.{a} + threadIdx.{a}" for a in "xy")
    places = rng.choice(
        [
            f"int x = {x};\nint y = {y};",
            f"int x = {x}, y = {y};",
            f"const int y = {y};\nconst int x = {x};",
        ]
    )
    guard = rng.choice(
        ["if (x >= w || y >= h) return;", "if (x >= w) return;\nif (y >= h) return;", ""]
    )
    inner = body if guard else f"if (x < w && y < h) {{\n{body}\n}}"
    size = rng.choice(["16, 16", "32, 4", "8, 8"])
    wide, high = size.split(", ")
    whole = f"{places}\n{guard}\n{inner}"
    return (
        f"#pragma optiml launch {name} grid(cdiv(w, {wide}), cdiv(h, {high})) block({size})\n"
        f"__global__ void {name}(const float* {source}, const float* f, float* {target}, int w, int h) {{\n"
        f"{indented(whole)}\n}}\n"
    )


def _stored(rng: Random, source: str, target: str) -> str:
    """What one pass does for each of its elements."""
    weight = rng.choice(["", " * f[i + 2]", " * f[2]"])
    loops, begin = _window(rng, source, weight)
    inside = "x > 0 && y > 0 && x < w - 1 && y < h - 1"
    return rng.choice([
        f"{begin}\n{loops}\n{target}[y * w + x] = s;",
        f"{begin}\n{loops}\n{target}[y * w + x] = fmaxf(s, 0.0f);",
        f"float v = {source}[y * w + x] * f[1];\n{target}[y * w + x] = v * v;",
        f"int at = y * w + x;\nfloat r = 0.0f;\nif ({inside}) r = {_point(rng, source)};\n{target}[at] = r;",
        f"int at = y * w + x;\nif ({inside}) {target}[at] = {_point(rng, source)};\nelse {target}[at] = {source}[at];",
        f"int at = y * w + x;\nif ({inside}) {{\n{_SOME} = {_point(rng, source)};\n{target}[at] = some;\n}}",
    ])  # fmt: skip


def passes(rng: Random) -> Made:
    """Two or three launches over a plane, with scratch between."""
    arrays = ["a", "t", "out"] if rng.random() < 0.75 else ["a", "t", "q", "out"]
    made, scratch = "", ""
    for at, (source, target) in enumerate(pairwise(arrays)):
        body = _stored(rng, source, target)
        made += _kernel(rng, f"pass_{at}", source, target, body)
        if target != "out":
            scratch += f"#pragma optiml scratch {target} f4[h * w]\n"
            if _SOME in body:  # the others are read as well
                scratch += f"#pragma optiml zero({target})\n"
    told, others = sizes_of(rng, ["w"], _WIDTHS)
    for sizes in (told, others):
        sizes["h"] = rng.choice(_HEIGHTS)
    return Made(
        "passes", scratch + made,
        {"a": Array("f4", ("h", "w")), "f": Array("f4", ("5",)), "out": Array("f4", ("h", "w"), "zeros")},
        told, others, inout=("out",), exact=False,
    )  # fmt: skip


FAMILY = (passes,)
