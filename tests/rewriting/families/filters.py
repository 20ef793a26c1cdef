"""Filters and correlations: long loops whose rounds go along a row as the items do."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_LINES = (1, 3, 8, 16, 31, 40, 64, 65, 100, 128, 300, 516)
_ROWS = (1, 2, 3, 5)
_TAPS = (64, 70, 96, 100, 131)


def filtered(rng: Random) -> Made:
    """A line, or several rows, with taps that all items have alike, in either direction."""
    rows = rng.choice([0, 0, 1])
    row = "" if not rows else rng.choice(["y * w + ", "y * (w + r) + ", "(w + r) * y + "])
    sign = rng.choice(["", "", "- ", "r - 1 - "])
    place = f"{row}x + k" if not sign else f"{row}x + r - 1 - k" if sign == "- " else f"{row}x + k"
    tap = rng.choice(["k", "k", "r - 1 - k", "2 * k"])
    head = rng.choice([
        "for (int k = 0; k < r; k++)", "for (int k = 0; k < r; ++k)",
        "for (int k = 0; k <= r - 1; k++)", "for (int k = 1; k < r; k++)",
        "for (int k = r - 1; k >= 0; k--)", "for (int k = 0; k < r; k += 2)",
    ])  # fmt: skip
    update, begin, stored = rng.choice([
        (f"s += f[{tap}] * a[{place}];", "float s = 0.0f;", "s"),
        (f"s += f[{tap}] * a[{place}];", "float s = a[x];", "0.5f * s"),
        (f"float v = a[{place}] - f[{tap}];\ns += v * v;", "float s = 0.0f;", "s"),
        (f"s = fmaxf(s, a[{place}] * f[{tap}]);", "float s = -99.0f;", "s"),
        (f"s += fabsf(a[{place}] - f[{tap}]);\nif (s > 1e9f) break;", "float s = 0.0f;", "s"),
        (f"if (f[{tap}] == 0.0f) continue;\ns += f[{tap}] * a[{place}];", "float s = 0.0f;", "s"),
        (f"s += a[{place}] * a[{place}];", "double s = 0.0;", "(float)s"),
        (f"s += f[{tap}] * a[{place}];\nt += a[{place}];", "float s = 0.0f, t = 1.0f;", "s - t"),
    ])  # fmt: skip
    here = "y * w + x" if rows else "x"
    body = f"{begin}\n{head} {{\n{update}\n}}\nout[{here}] = {stored};"
    over = axes(rng, *([("x", "w"), ("y", "h")] if rows else [("x", "w")]))
    parameters = "const float* a, const float* f, float* out, int w, int r"
    text = program(rng, "filtered", f"{parameters}, int h" if rows else parameters, over, body)
    text = text.replace("unsigned int ", "int ").replace("unsigned ", "int ")
    line = ("h + 1", "w + r") if rows else ("w + r",)
    arrays = {
        "a": Array("f4", line),
        "f": Array("f4", ("2 * r",)),
        "out": Array("f4", ("h", "w") if rows else ("w",)),
    }
    one, other = sizes_of(rng, ["w"], _LINES)
    if rows:
        one["h"], other["h"] = rng.choice(_ROWS), rng.choice(_ROWS)
    one["r"], other["r"] = rng.choice(_TAPS), rng.choice([1, 2, 7, 31, 32, 33, *_TAPS])
    return Made("filtered", text, arrays, one, other, inout=("out",))


def correlated(rng: Random) -> Made:
    """The sum of products of two signals for each lag, of one channel or several."""
    rows = rng.choice([0, 1, 1])
    channel = "y * r + " if rows else ""
    other = rng.choice(["y * (r + w) + ", "y * r + y * w + "]) if rows else ""
    head = rng.choice([
        "for (int k = 0; k < r; k++)", "for (int k = 0; k < r - 1; ++k)",
        "for (int k = 0; k < r - x; k++)", "for (int k = x; k < r; k++)",
    ])  # fmt: skip
    update = rng.choice([
        f"s += a[{channel}k] * b[{other}k + x];", f"s += b[{other}x + k] * a[{channel}k];",
        f"s += k + x < r ? a[{channel}k] * b[{other}k + x] : 0.0f;",
        f"if (k + x >= r) continue;\ns += a[{channel}k] * a[{channel}k + x];",
        f"if (k + x < r) s += a[{channel}k] * a[{channel}k + x];",
    ])  # fmt: skip
    here = "y * w + x" if rows else "x"
    body = f"float s = 0.0f;\n{head} {{\n{update}\n}}\nout[{here}] = s;"
    over = axes(rng, *([("x", "w"), ("y", "h")] if rows else [("x", "w")]))
    parameters = "const float* a, const float* b, float* out, int w, int r"
    text = program(rng, "correlated", f"{parameters}, int h" if rows else parameters, over, body)
    text = text.replace("unsigned int ", "int ").replace("unsigned ", "int ")
    arrays = {
        "a": Array("f4", ("h", "r") if rows else ("r",)),
        "b": Array("f4", ("h", "r + w") if rows else ("r + w",)),
        "out": Array("f4", ("h", "w") if rows else ("w",)),
    }
    one, others = sizes_of(rng, ["w"], _LINES[1:8])
    if rows:
        one["h"], others["h"] = rng.choice(_ROWS), rng.choice(_ROWS)
    one["r"], others["r"] = rng.choice([128, 256, 300, 515]), rng.choice([1, 40, 64, 300])
    return Made("correlated", text, arrays, one, others, inout=("out",))


FAMILY = (filtered, correlated)
