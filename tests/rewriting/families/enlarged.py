"""Images enlarged by a number or a size: which pixel is before an output, in floats as well."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_SIDES = (1, 2, 3, 5, 8, 13, 16, 21, 33)
_QUOTIENTS = (
    "int cU = U / s;", "int cU = floorf((float)U / s);", "int cU = (int)(U / (float)s);",
    "float sU = (float)U / s;\nint cU = floorf(sU);", "int cU = __float2int_rd((float)U / s);",
    "float fU = U;\nfloat sU = fU / s;\nint cU = (int)sU;", "int cU = floor((double)U / s);",
    "int cU = floorf((float)U / s) - 1;", "int cU;\ncU = truncf((float)U / s) + 1;",
)  # fmt: skip


def _window(rng: Random, count: int) -> str:
    """The sum of a window around a place, with weights of where it is between two pixels."""
    begin = rng.choice(["-1", "0", str(-(count // 2)), str(1 - count)])
    row, column = "min(max(cy + j, 0), h - 1)", "min(max(cx + i, 0), w - 1)"
    loop = f"for (int {{0}} = {begin}; {{0}} < {begin} + {count}; {{0}}++)"
    weights = rng.choice(["f[j + 8]", "f[y % s + 8] * f[j + 8]", "1.0f / (1 + abs(y - cy * s))"])
    place = rng.choice(["w * s", "(w * s)"])
    return rng.choice([
        "sum += a[min(max(cy, 0), h - 1) * w + min(max(cx, 0), w - 1)];",
        f"{loop.format('j')} sum += a[{row} * ({place}) + x] * {weights};",
        f"{loop.format('i')} sum += a[y * w + {column}] * f[i + 8];",
        (f"{loop.format('j')} {{\n{loop.format('i')} {{\n"
         f"sum += a[{row} * w + {column}] * f[j + 8] * f[i + 8];\n}}\n}}"),
        f"{loop.format('j')} if (cy + j >= 0 && cy + j < h) sum += a[(cy + j) * ({place}) + x];",
    ])  # fmt: skip


def enlarged(rng: Random) -> Made:
    """Nearest pixels and windows of an image that is enlarged, rows alone or both ways."""
    quotient = "\n".join(rng.choice(_QUOTIENTS).replace("U", u) for u in rng.sample("xy", 2))
    first = rng.choice(["", "", "if (w * s <= 0) return;\n", "if (h < 1 || s < 1) return;\n"])
    body = f"{first}{quotient}\nfloat sum = 0.0f;\n{_window(rng, rng.choice([2, 3, 6]))}\n"
    body += f"out[y * (w * s) + x] = {rng.choice(['sum', 'sum', 'sum * 0.5f + x % s'])};"
    size = rng.choice(["s", "s", "s", "2", "3"])
    parameters = "const float* a, const float* f, float* out, int w, int h, int s"
    over = axes(rng, ("x", "(w * s)"), ("y", "(h * s)"))
    text = program(rng, "enlarged", parameters, over, body)
    text = text.replace("unsigned int ", "int ").replace("unsigned ", "int ")
    if size != "s":
        text = text.replace("(w * s)", f"(w * {size})").replace("(h * s)", f"(h * {size})")
        text = text.replace("/ s", f"/ {size}").replace("% s", f"% {size}")
    one, other = sizes_of(rng, ["w", "h"], _SIDES)
    one["s"], other["s"] = (
        (int(size), int(size)) if size != "s" else rng.choice([(2, 3), (4, 1), (3, 2)])
    )
    plane = (f"h * {size}", f"w * {size}")
    arrays = {
        "a": Array("f4", plane), "f": Array("f4", ("24",)), "out": Array("f4", plane, "zeros"),
    }  # fmt: skip
    return Made("enlarged", text, arrays, one, other, exact="1.0f /" not in text)


FAMILY = (enlarged,)
