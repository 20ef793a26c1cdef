"""Filters and transforms whose weights are functions of some of their indices alone."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, flat, program, sizes_of

_SIDES = (1, 2, 3, 5, 8, 13, 17, 21, 33)
_FUNCTIONS = (
    "sinf({})", "cosf({}) * 0.5f", "powf(0.9f, fabsf({}))", "expf(-fabsf({}))", "bump({})",
    "1.0f / (1.0f + {} * {})", "sqrtf(fabsf({}))", "sinf({}) / ({} + 9.5f)",
)  # fmt: skip
_BUMP = (
    "__device__ float bump(float v) {\n    if (v < 0.25f) return 1.0f - v;\n"
    "    return sinf(v) / v;\n}\n"
)


def _weight(rng: Random, of: list[str]) -> str:
    """A function of some of these indices, or the product of two."""
    chosen = rng.sample(of, rng.choice([1, 1, min(2, len(of))]))
    words = rng.choice(["0.125f * {}", "({} + 0.5f) / 7.0f", "(float){} / s"])
    inner = " - ".join(words.format(one) for one in chosen)
    found = rng.choice(_FUNCTIONS).replace("{}", f"({inner})")
    return f"({found} * {_weight(rng, of)})" if rng.choice([0, 0, 1]) else f"({found})"


def _begin(rng: Random, place: str) -> tuple[str, str]:
    """Where a short loop begins, and how many rounds it makes."""
    return rng.choice([("0", "3"), ("-1", "4"), (f"{place} - 1", "3"), (f"{place} / 2", "4"),
                       (f"(int)({place} * 0.75f) - 1", "4"), ("0", "s"), (f"{place}", "s")])  # fmt: skip


def resampled(rng: Random) -> Made:
    """A window around a place, in two directions; weights of rows, columns and both."""
    (from_j, rows), (from_i, columns) = _begin(rng, "y"), _begin(rng, "x")
    of = ["x", "y", "i", "j", "s"]
    local = rng.choice([0, 1])
    weight = _weight(rng, of)
    element = f"a[{flat(rng, 'min(max(j, 0), h - 1)', 'w', 'min(max(i, 0), w - 1)')}]"
    inner = rng.choice([
        f"sum += {element} * {weight};", f"float g = {weight};\nsum += g * {element};\nall += g;",
        f"const float g = {weight}, q = {_weight(rng, of)};\nsum += g * {element} - q;",
        f"if (i != x) sum += {element} / ({weight} + 9.0f);",
    ])  # fmt: skip
    before = f"float of_row = {_weight(rng, ['x', 'y', 'j'])};\nsum += of_row;\n" if local else ""
    body = (
        f"float sum = 0.0f, all = 1.0f;\nint j0 = {from_j}, i0 = {from_i};\n"
        f"for (int j = j0; j < j0 + {rows}; ++j) {{\n{before}"
        f"for (int i = i0; i < i0 + {columns}; i++) {{\n{inner}\n}}\n}}\n"
        "out[y * w + x] = sum / all;"
    )
    body = body.replace(" / all", rng.choice([" / all", ""]))
    parameters = "const float* a, float* out, int w, int h, int s"
    text = _BUMP + program(rng, "resampled", parameters, axes(rng, ("x", "w"), ("y", "h")), body)
    text = text.replace("unsigned int ", "int ").replace("unsigned ", "int ")
    one, other = sizes_of(rng, ["w", "h"], _SIDES)
    one["s"], other["s"] = rng.choice([2, 3, 5]), rng.choice([1, 2, 4])
    plane = Array("f4", ("h", "w"))
    return Made("resampled", text, {"a": plane, "out": plane}, one, other, exact=False)


def separable(rng: Random) -> Made:
    """A window whose weights are those of its rows times those of its columns."""
    up = rng.choice(["", "", " / s"])
    places = {
        axis: rng.choice([f"min(max({axis}{up} + {at}, 0), {size} - 1)",
                          f"max(min({axis}{up} + {at}, {size} - 1), 0)"])
        for axis, at, size in (("y", "j", "h"), ("x", "i", "w"))
    }  # fmt: skip
    guarded = rng.choice([0, 0, 1])
    if guarded:
        places = {"y": f"y{up} + j", "x": f"x{up} + i"}
    named = guarded or rng.choice([0, 1])
    row, column = ("yy", "xx") if named else (places["y"], places["x"])
    element = f"a[{flat(rng, row, 'w', column)}]"
    one, two = rng.choice([
        ("expf(-(float)(i * i + j * j) / (2.0f * b * b))", ""),
        ("expf(-(i * i) * b - (j * j) * b)", ""), ("expf((-i * i - j * j) / b)", ""),
        (f"({_weight(rng, ['i'])})", f"({_weight(rng, ['j'])})"),
        (f"({_weight(rng, ['x', 'i'])})", f"({_weight(rng, ['y', 'j'])})"),
        ("f[i + s]", "f[j + s]"), ("(f[i + s] / b)", "(j + 2.5f)"), ("0.5f", "(j * b)"),
    ])  # fmt: skip
    weight = f"{one} * {two}" if two else one
    body = rng.choice([
        f"sum += {element} * {weight};", f"float g = {weight};\nsum += g * {element};\nall += g;",
        f"float v = {element};\nsum += {weight} * v;\nall += {weight} * v * v;",
        f"float g = {one};\nsum += g * {element}{f' * {two}' if two else ''};",
    ])  # fmt: skip
    if named:
        body = f"int yy = {places['y']};\nint xx = {places['x']};\n" + (
            f"if (yy >= 0 && yy < h && xx >= 0 && xx < w) {{\n{body}\n}}" if guarded else body
        )
    body = (
        "float sum = 0.0f, all = 1.0f;\nfor (int j = -s; j <= s; j++) {\n"
        f"for (int i = -s; i <= s; i++) {{\n{body}\n}}\n}}\nout[y * w + x] = sum / all;"
    )
    body = body.replace(" / all", rng.choice([" / all", ""]))
    parameters = "const float* a, const float* f, float* out, int w, int h, int s, float b"
    text = _BUMP + program(rng, "separable", parameters, axes(rng, ("x", "w"), ("y", "h")), body)
    text = text.replace("unsigned int ", "int ").replace("unsigned ", "int ")
    one_, other = sizes_of(rng, ["w", "h"], _SIDES)
    one_["s"], other["s"] = rng.choice([2, 3, 5]), rng.choice([1, 2, 4])
    plane, row_ = Array("f4", ("h", "w")), Array("f4", ("2 * s + 1",))
    return Made(
        "separable",
        text,
        {"a": plane, "f": row_, "out": plane},
        one_,
        other,
        exact=False,
        scalars={"b": 2.5},
    )


def transform(rng: Random) -> Made:
    """Sums of elements of a row, weighted by the column and the round."""
    of = rng.choice([["x", "k"], ["x", "k", "y"], ["k"], ["x", "w"]])
    element = "a[y * n + k]"
    inner = rng.choice([
        f"sum += {element} * {_weight(rng, of)};",
        f"float g = {_weight(rng, of)};\nsum += {element} * g;\nother -= {element} * {_weight(rng, of)};",
        f"sum += {element} * {_weight(rng, of)} * {_weight(rng, ['k'])};",
    ])  # fmt: skip
    body = (
        "float sum = 0.0f, other = 0.0f;\n"
        f"for (int k = 0; k < n; ++k) {{\n{inner}\n}}\nout[y * w + x] = sum + other;"
    )
    parameters = "const float* a, float* out, int w, int h, int n, int s"
    text = _BUMP + program(rng, "transform", parameters, axes(rng, ("x", "w"), ("y", "h")), body)
    text = text.replace("unsigned int ", "int ").replace("unsigned ", "int ")
    one, other = sizes_of(rng, ["w", "h", "n"], _SIDES)
    one["s"], other["s"] = rng.choice([2, 3, 5]), rng.choice([1, 2, 4])
    arrays = {"a": Array("f4", ("h", "n")), "out": Array("f4", ("h", "w"))}
    return Made("transform", text, arrays, one, other, exact=False)


def bordered(rng: Random) -> Made:
    """A window that ends where the plane does, by tests, by what is skipped, or by its loops."""
    whole = rng.choice([0, 0, 1])  # sums of whole numbers
    loops, places, skipped = [], {}, []
    for axis, at, size in (("y", "j", "h"), ("x", "i", "w")):
        reach = rng.choice(["s", "s", "2"])
        around = f"int {at} = -{reach}; {at} <= {reach}; {at}++"
        place = f"{axis} + {at}"
        test, unless = f"{place} >= 0 && {place} < {size}", f"{place} < 0 || {place} >= {size}"
        chosen = rng.choice(["test", "skip", "choice", "head"])
        if chosen == "head":
            end = rng.choice([f"{at} < min({axis} + {reach}, {size})",
                              f"{at} <= min({size} - 1, {axis} + {reach})"])  # fmt: skip
            around, place, test = f"int {at} = max({axis} - {reach}, 0); {end}; ++{at}", at, ""
        elif chosen == "choice":
            clamp = f"p{at} = p{at} < 0 ? 0 : p{at} >= {size} ? {size} - 1 : p{at};"
            skipped.append(f"int p{at} = {place};\n{clamp}")
            place, test = f"p{at}", ""
        elif chosen == "skip":
            skipped.append(f"if ({unless}) continue;")
            test = ""
        loops.append((around, test))
        places[axis] = place
    element = f"a[{flat(rng, places['y'], 'w', places['x'])}]"
    weight = rng.choice(["", "(2 - j) * (3 + i) * ", "(s + 1 - abs(j)) * "])
    if not whole:
        weight = rng.choice([weight, "(1.5f + j) * (i - 0.5f) * ", "f[(j + 64) % 7] * ",
                             "f[abs(i - x) % 7] * f[abs(j - y) % 7] * "])  # fmt: skip
    term = f"sum += {weight}{element};\n"
    if not weight and not whole:
        term = rng.choice([term, f"sum += (j + 0.5f) * i / (1.5f + {element} * {element});\n"])
    term += rng.choice(["", "n++;\n", f"n += {element} > 1;\n"])
    test = " && ".join(one for _, one in loops if one)
    skips = "\n".join(skipped) + "\n" if skipped else ""
    inner = f"{skips}if ({test}) {{\n{term}}}" if test else f"{skips}{term}"
    (rows, _), (columns, _) = loops
    kind = "int" if whole else "float"
    body = (
        f"{kind} sum = 0;\nint n = 1;\nfor ({rows})\nfor ({columns}) {{\n{inner}\n}}\n"
        "out[y * w + x] = (float)sum / n;"
    )
    parameters = "const int* a, const float* f, float* out, int w, int h, int s"
    if not whole:
        parameters = parameters.replace("int* a", "float* a")
    text = program(rng, "bordered", parameters, axes(rng, ("x", "w"), ("y", "h")), body)
    text = text.replace("unsigned int ", "int ").replace("unsigned ", "int ")
    one, other = sizes_of(rng, ["w", "h"], _SIDES)
    one["s"], other["s"] = rng.choice([2, 3, 4]), rng.choice([0, 1, 2])
    arrays = {
        "a": Array("i4" if whole else "f4", ("h", "w")),
        "f": Array("f4", ("7",)),
        "out": Array("f4", ("h", "w")),
    }
    return Made("bordered", text, arrays, one, other, exact=False)


FAMILY = (resampled, resampled, separable, bordered, transform)
