"""All pairs of the rows of one matrix: most are the same with both rows exchanged, some are not."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_PARAMETERS = "const float* x, const float* y, const int* w, float* out, int n, int d"


def both_sides(rng: Random) -> Made:
    """Products, distances and counts of what differs, stored on either side or on both."""
    columns = rng.choice([0, 0, 0, 1])
    one, other = ("x[k * n + i]", "x[k * n + j]") if columns else ("x[i * d + k]", "x[j * d + k]")
    if rng.choice([0, 0, 0, 0, 1]):
        other = other.replace("x[", "y[")
    if rng.choice([0, 1]):
        one, other = other, one
    apart = f"({one} - {other})"
    start, step = rng.choice([
        ("float s = 0.0f;", f"s += {one} * {other};"),
        ("float s = 0.0f;", f"float e = {apart};\ns += e * e;"),
        ("float s = 0.0f;", f"float a = {one}, b = {other};\ns += (a - b) * (a - b);"),
        ("float s = x[i];", f"s += fabsf({apart});"),
        ("float s = 0.0f;", f"s = fmaxf(s, fabsf({apart}));"),
        ("int s = 0;", "if (w[i * d + k] != w[j * d + k]) s++;"),
        ("int s = j;", "s += w[i * d + k] == w[j * d + k];"),
        ("int s = 0;", "s += (w[i * d + k] ^ w[j * d + k]) & 1;"),
        ("float s = 0.0f;", f"s += y[k] * ({one} * {other});"),
        ("float s = 0.0f;", f"s += {one} * {other} * y[k];"),
        ("float s = 0.0f, u = 0.0f;", f"s += {one} * {other};\nu += {one} * {one};"),
        ("float s = 0.0f;", f"if ({one} > {other}) s += 1.0f;"),
        ("float s = 0.0f;", f"if ({apart} > 0.25f || {other} - {one} > 0.25f) s += 1.0f;"),
        ("float s = 0.0f;", f"s += {apart} * (i - j);"),
    ])  # fmt: skip
    whole = "s * u" if " u = " in start else "s"
    value = rng.choice([whole, whole, f"({whole}) * 2.0f + i", f"x[i * d] - ({whole}) * x[j * d]"])
    end = rng.choice([
        f"out[i * n + j] = {value};", f"out[i * n + j] = {value};", f"out[j * n + i] = {value};",
        f"out[i * n + j] += {value};", f"if (i != j) out[i * n + j] = {value};\nelse out[i * n + i] = 1.0f;",
        f"if (i > j) return;\nout[i * n + j] = {value};",
    ])  # fmt: skip
    body = f"{start}\nfor (int k = 0; k < d; ++k) {{\n{step}\n}}\n{end}"
    text = program(rng, "both_sides", _PARAMETERS, axes(rng, ("j", "n"), ("i", "n")), body)
    arrays = {
        "x": Array("f4", ("n", "d")), "y": Array("f4", ("n", "d")), "w": Array("i4", ("n", "d")),
        "out": Array("f4", ("n", "n")),
    }  # fmt: skip
    first, second = sizes_of(rng, ["n", "d"], (1, 2, 5, 16, 31, 33, 64))
    return Made("both_sides", text, arrays, first, second, inout=("out",))


FAMILY = (both_sides,)
