"""Layers of images by channels: convolutions of one channel or of a group, and pools."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, indented, sizes_of

_WIDTHS = (1, 2, 3, 4, 5, 8, 12, 13, 16, 20, 32, 33, 36)
_HEIGHTS = (1, 2, 3, 5, 8, 9, 12)
_FEW = (1, 2, 3)


def _launched(rng: Random) -> tuple[str, str, list[str], str]:
    """A launch with an output a thread, its places, and what leaves the others."""
    x, y = (f"blockIdx.{a} * blockDim.{a} + threadIdx.{a}" for a in "xy")
    plane, channel = rng.choice([
        ("blockIdx.z / c", "blockIdx.z % c"), ("blockIdx.z / c", "blockIdx.z - b * c"),
    ])  # fmt: skip
    guard = rng.choice(
        ["if (x >= w || y >= h) return;", "if (y >= h) return;\nif (x >= w) return;"]
    )
    match rng.randrange(4):
        case 0:
            places = [f"x = {x}", f"y = {y}", f"b = {plane}", f"q = {channel}"]
            width, height = rng.choice([(16, 16), (32, 4), (8, 8)])
            grid = f"cdiv(w, {width}), cdiv(h, {height}), n * c"
            return grid, f"{width}, {height}", places, guard
        case 1:
            rest = rng.choice(["i / w % h", "(i / w) % h"])
            places = [
                f"i = {x}",
                "x = i % w",
                f"y = {rest}",
                "q = i / (w * h) % c",
                "b = i / (w * h * c)",
            ]
            return "cdiv(n * c * h * w, 128)", "128", places, "if (i >= n * c * h * w) return;"
        case 2:
            places = [
                f"i = {x}",
                "q = i % c",
                "x = i / c % w",
                "y = i / (c * w) % h",
                "b = i / (c * w * h)",
            ]
            return "cdiv(n * h * w * c, 64)", "64", places, "if (i >= n * h * w * c) return;"
        case _:
            return (
                "w, h, n",
                "c",
                ["q = threadIdx.x", "x = blockIdx.x", "y = blockIdx.y", "b = blockIdx.z"],
                "",
            )


def layer(rng: Random) -> Made:
    """A window of one channel, or of the channels of a group, in either layout of images."""
    grid, block, places, guard = _launched(rng)
    inner = rng.random() < 0.6  # channels around planes
    stride, apart, side = (
        rng.choice([1, 1, 1, 2]),
        rng.choice(["", "", "2 * ", "d * "]),
        rng.choice([2, 3, 3]),
    )
    groups = rng.choice([False, False, True])
    first = rng.choice(["0", "1", "p"])
    across, down = (f"{s} * {stride} + {apart}{k} - {first}" if stride > 1 or apart
                    else f"{s} + {k} - {first}" for s, k in (("x", "j"), ("y", "k")))  # fmt: skip
    source, plane = ("s", "q / (c / s)") if groups else ("c", "q")
    at = (f"((b * {source} + {plane}) * (h * {stride}) + v) * (w * {stride}) + u" if inner
          else f"((b * (h * {stride}) + v) * (w * {stride}) + u) * {source} + {plane}")  # fmt: skip
    weight = (
        f"f[({'q * ' + str(side) + ' + k'}) * {side} + j]"
        if inner
        else f"f[(k * {side} + j) * c + q]"
    )
    update, begin, stored = rng.choice([
        (f"s_ += a[{at}] * {weight};", "float s_ = 0.0f;", "s_"),
        (f"s_ += a[{at}] * {weight};", "float s_ = bias;", "s_ > 0 ? s_ : 0.0f"),
        (f"s_ = fmaxf(s_, a[{at}]);", "float s_ = -9.0f;", "s_"),
        (f"s_ += a[{at}];", "float s_ = 0;", "s_ / 4"),
        (f"s_ += a[{at}]; many++;", "float s_ = 0; int many = 0;", "s_ + many"),
    ])  # fmt: skip
    test = "u >= 0 && u < w * S && v >= 0 && v < h * S".replace("S", str(stride))
    tested = rng.choice([
        f"int u = {across}, v = {down};\nif ({test}) {{ {update} }}",
        f"int u = {across};\nint v = {down};\nif (!({test})) continue;\n{update}",
    ])  # fmt: skip
    loops = f"for (int k = 0; k < {side}; k++)\nfor (int j = 0; j < {side}; j++) {{\n{tested}\n}}"
    here = "((b * c + q) * h + y) * w + x" if inner else "((b * h + y) * w + x) * c + q"
    one = rng.choice([True, False])
    named = [f"int {', '.join(places)};"] if one else [f"int {place};" for place in places]
    body = "\n".join([*named, guard, begin, loops, f"out[{here}] = {stored};"])
    text = (
        f"#pragma optiml launch layer grid({grid}) block({block})\n"
        "__global__ void layer(const float* a, const float* f, float* out, "
        "int n, int c, int s, int h, int w, int d, int p, float bias) {\n"
        f"{indented(body)}\n}}\n"
    )
    wide, high = f"{stride} * w", f"{stride} * h"
    arrays = {
        "a": Array("f4", ("n", source, high, wide) if inner else ("n", high, wide, source)),
        "f": Array("f4", (f"c * {side * side}",)),
        "out": Array("f4", ("n", "c", "h", "w") if inner else ("n", "h", "w", "c"), "zeros"),
    }
    told, others = sizes_of(rng, ["w"], _WIDTHS)
    for sizes in (told, others):
        groups_of = rng.choice(_FEW)
        sizes |= {"h": rng.choice(_HEIGHTS), "n": rng.choice(_FEW), "s": groups_of,
                  "c": groups_of * rng.choice(_FEW), "d": rng.choice(_FEW), "p": rng.choice([0, 1, 2])}  # fmt: skip
    return Made("layer", text, arrays, told, others, scalars={"bias": 0.5}, inout=("out",))


FAMILY = (layer,)
